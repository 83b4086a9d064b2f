// Plays the recorded episodes of a task: selection, play and pause, speed, single steps, costs, and the memory map.

const framesPerSecond = 30;
const speeds = [0.25, 0.5, 1, 2, 4, 8];

/** The timeline under the picture shows the costs of the episode, their sum (or the speed), and the current step. */
const timelineCurve = (recording) => {
  if (recording.kind === "runner") return { values: recording.speed, limit: recording.speed_limit, name: "speed" };
  return { values: recording.cumulativeCost, limit: recording.limit, name: recording.costName };
};

const drawTimeline = (canvas, recording, frame) => {
  const { context, width, height } = sharpen(canvas);
  const colour = theme();
  const [top, bottom] = [16, height - 12];
  const { values, limit, name } = timelineCurve(recording);
  const known = Array.from(values).filter((value) => !Number.isNaN(value));
  const [low, high] = [Math.min(0, ...known), 1.08 * Math.max(limit, ...known, 1e-9)];
  const x = (t) => (width * t) / recording.length;
  const y = (value) => bottom - ((bottom - top) * (value - low)) / (high - low);
  const line = (first, last, opacity) => {
    context.beginPath();
    for (let t = first; t <= last; t += 1) if (!Number.isNaN(values[t])) context.lineTo(x(t), y(values[t]));
    context.globalAlpha = opacity;
    context.strokeStyle = colour("ink");
    context.lineWidth = 1.5;
    context.stroke();
    context.globalAlpha = 1;
  };
  context.strokeStyle = context.fillStyle = colour("cost");
  context.setLineDash([5, 4]);
  context.lineWidth = 1;
  context.beginPath(); context.moveTo(0, y(limit)); context.lineTo(width, y(limit)); context.stroke();
  context.setLineDash([]);
  for (const [t] of recording.costs) context.fillRect(x(t) - 0.75, bottom + 2, 1.5, height - bottom - 2);
  line(frame, recording.length, 0.25);
  line(0, frame, 1);
  context.strokeStyle = colour("focus");
  context.lineWidth = 2;
  context.beginPath(); context.moveTo(x(frame), 0); context.lineTo(x(frame), height); context.stroke();
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = colour("muted");
  context.textAlign = "left";
  context.fillText(name, 6, 11);
  context.fillStyle = colour("cost");
  context.textAlign = "right";
  context.fillText(`limit ${number(limit)}`, width - 6, 11);
};

const openEpisode = (replay, episode) => {
  const recording = episode.kind === "runner" ? openRunner(episode) : openArena(episode);
  recording.cumulativeReturn = decode(episode.return);
  recording.cumulativeCost = new Float64Array(recording.length + 1);
  for (const [t, cost] of recording.costs) recording.cumulativeCost[t] = cost;
  for (let t = 1; t <= recording.length; t += 1) recording.cumulativeCost[t] += recording.cumulativeCost[t - 1];
  recording.limit = replay.limit;
  recording.costName = ["cumulative cost", ...(replay.cost_name ? [replay.cost_name] : [])].join(": ");
  return recording;
};

class Player {
  constructor(task, replays) {
    this.replays = replays;
    this.frame = 0;
    this.playing = false;
    this.build(task);
    this.choose();
    whenResized(this.canvas, () => this.draw());
    onTheme(() => this.draw());
  }

  build(task) {
    this.canvas = el("canvas", { class: "stage", tabindex: "0", role: "img" });
    this.timeline = el("canvas", { class: "timeline", "aria-hidden": "true" });
    this.scrub = el("input", { class: "scrub", type: "range", min: 0, value: 0, "aria-label": "step of the episode" });
    this.agent = choice("algorithm", this.replays.map((replay, k) => [k, `${replay.label} (seed ${replay.seed})`]));
    this.episode = choice("episode", []);
    // Start with the first agent that has a memory map.
    this.agent.select.value = Math.max(0, this.replays.findIndex(({ episodes }) => episodes[0].maps?.length));
    this.speed = choice("speed", speeds.map((speed) => [speed, `${speed} ×`]));
    this.speed.select.value = "1";
    this.heat = check("intrinsic cost over the arena", true);
    this.remembered = check("remembered states", true);
    this.counters = { step: counter("step"), reward: counter("return"), cost: counter("cost") };
    this.key = el("ul", { class: "key" });
    this.ramp = el("div", { class: "ramp" });
    this.memory = el("div", { class: "memory" });
    this.note = el("p", { class: "note" });
    this.play = button("play", () => this.toggle(), "Play");
    this.play.className = "play";
    const controls = el("div", { class: "controls", role: "group", "aria-label": "playback" }, this.play,
      button("step back", () => this.step(-1)), button("step forward", () => this.step(1)),
      button("previous cost", () => this.seekCost(-1)), button("next cost", () => this.seekCost(1)), this.speed.label);
    this.memory.append(this.heat.label, this.remembered.label, this.ramp);
    const side = el("div", { class: "side" },
      el("dl", { class: "counters" }, Object.values(this.counters).map(({ row }) => row)),
      this.memory, this.key, this.note);
    const choices = el("div", { class: "choices" }, this.agent.label, this.episode.label);
    const screen = el("div", { class: "screen" }, choices, this.canvas, this.timeline, this.scrub, controls);
    this.element = el("div", { class: "player", role: "group", "aria-label": `replay of ${task}` }, screen, side);
    this.listen();
  }

  listen() {
    this.agent.select.addEventListener("change", () => this.choose());
    this.episode.select.addEventListener("change", () => this.open());
    this.scrub.addEventListener("input", () => { this.pause(); this.go(Number(this.scrub.value)); });
    for (const { input } of [this.heat, this.remembered]) input.addEventListener("change", () => this.draw());
    this.canvas.addEventListener("keydown", (event) => this.onKey(event));
    const seek = (event) => {
      if (event.type === "pointermove" && !event.buttons) return;
      const box = this.timeline.getBoundingClientRect();
      this.go(Math.round((this.recording.length * (event.clientX - box.left)) / box.width));
    };
    this.timeline.addEventListener("pointerdown", seek);
    this.timeline.addEventListener("pointermove", seek);
  }

  onKey(event) {
    const act = {
      " ": () => this.toggle(), ArrowLeft: () => this.step(-1), ArrowRight: () => this.step(1),
      Home: () => this.go(0), End: () => this.go(this.recording.length),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  /** List the episodes of the selected algorithm and open the first. */
  choose() {
    this.replay = this.replays[Number(this.agent.select.value)];
    const names = this.replay.episodes.map((episode, k) => {
      const cost = episode.costs.reduce((sum, [, one]) => sum + one, 0);
      const total = decode(episode.return).at(-1);
      return el("option", { value: k }, `${k + 1}: return ${number(total)}, cost ${number(cost)}`);
    });
    this.episode.select.replaceChildren(...names);
    this.open();
  }

  open() {
    this.pause();
    this.recording = openEpisode(this.replay, this.replay.episodes[Number(this.episode.select.value)]);
    const isRunner = this.recording.kind === "runner";
    this.canvas.style.aspectRatio = isRunner ? "16 / 9" : "1";
    this.scrub.max = this.recording.length;
    const key = isRunner ? runnerLegend() : arenaLegend(this.recording);
    this.key.replaceChildren(...key.map(([name, colour, shape]) => el("li", {}, swatch(colour, shape), name)));
    this.openMemory(isRunner ? [] : this.recording.maps);
    this.go(0);
  }

  openMemory(maps) {
    this.memory.hidden = !maps.length;
    this.explain(maps.length > 0);
    if (!maps.length) return;
    const bar = el("canvas", { width: 64, height: 1, "aria-hidden": "true" });
    const context = bar.getContext("2d");
    const pixels = context.createImageData(64, 1);
    for (let k = 0; k < 64; k += 1) pixels.data.set(heatColour(k / 63), 4 * k);
    context.putImageData(pixels, 0, 0);
    const { low, high, power } = data.heat_scale;
    const marks = [low, 0.01, 0.1, high].map((cost) => {
      const mark = el("span", {}, number(cost));
      mark.style.left = `${100 * ((cost - low) / (high - low)) ** power}%`;
      return mark;
    });
    this.ramp.replaceChildren(bar, el("div", { class: "marks" }, marks));
  }

  explain(hasMap) {
    const map = [
      " Colour is the intrinsic cost at each position, the largest over all headings: how similar the observation ",
      "there is to remembered unsafe states. A dot is the position whose observation is closest to a remembered ",
      "state. Both are computed at the start of the episode and whenever the goal moves.",
    ];
    this.note.replaceChildren(
      `Stochastic policy after ${whole(this.replay.steps)} steps, on an evaluation seed that training does not use.`,
      ...(hasMap ? map : []), " With the picture focused, ", el("kbd", {}, "space"),
      " plays and ", el("kbd", {}, "←"), " ", el("kbd", {}, "→"), " step.");
  }

  step(by) { this.pause(); this.go(Math.floor(this.frame) + by); }

  seekCost(direction) {
    this.pause();
    const at = Math.floor(this.frame);
    const times = this.recording.costs.map(([t]) => t);
    const found = direction > 0 ? times.find((t) => t > at) : times.findLast((t) => t < at);
    if (found != null) this.go(found);
  }

  toggle() {
    if (this.playing) { this.pause(); return; }
    if (this.frame >= this.recording.length) this.go(0);
    this.playing = true;
    label(this.play, "pause", "Pause");
    let before = null;
    const tick = (now) => {
      if (!this.playing) return;
      const seconds = before == null ? 0 : Math.min(0.25, (now - before) / 1000);
      before = now;
      this.go(this.frame + seconds * framesPerSecond * Number(this.speed.select.value));
      if (this.frame >= this.recording.length) this.pause();
      else requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  pause() {
    this.playing = false;
    label(this.play, "play", "Play");
  }

  go(frame) {
    this.frame = Math.max(0, Math.min(this.recording.length, frame));
    this.draw();
  }

  draw() {
    if (!this.canvas.clientWidth) return;
    const [recording, frame] = [this.recording, Math.floor(this.frame)];
    const options = { heat: this.heat.input.checked, remembered: this.remembered.input.checked };
    if (recording.kind === "runner") drawRunner(this.canvas, recording, frame);
    else drawArena(this.canvas, recording, frame, options);
    drawTimeline(this.timeline, recording, frame);
    this.show(recording, frame);
  }

  show(recording, frame) {
    const { step, reward, cost } = this.counters;
    step.value.textContent = whole(frame);
    step.small.textContent = `of ${whole(recording.length)}`;
    reward.value.textContent = recording.cumulativeReturn[frame].toFixed(2);
    const speed = recording.kind === "runner" ? recording.speed[frame] : null;
    reward.small.textContent = speed == null ? "cumulative" : `speed ${number(speed)} m/s`;
    cost.value.textContent = number(recording.cumulativeCost[frame]);
    cost.small.textContent = `limit ${number(recording.limit)}`;
    cost.dd.classList.toggle("over", recording.cumulativeCost[frame] > recording.limit);
    this.scrub.value = frame;
    const sums = `return ${reward.value.textContent}, cost ${cost.value.textContent}`;
    const words = `step ${frame} of ${recording.length}, ${sums}`;
    this.scrub.setAttribute("aria-valuetext", words);
    const what = recording.kind === "runner" ? "the robot from the side" : "the arena from above";
    this.canvas.setAttribute("aria-label", `${what}, ${words}`);
  }
}
