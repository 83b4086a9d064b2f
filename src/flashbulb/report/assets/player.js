// Plays the recorded episodes of a task: choice, play and pause, speed, single steps, costs, and the memory's map.

const framesPerSecond = 30;
const speeds = [0.25, 0.5, 1, 2, 4, 8];

const openEpisode = (replay, episode) => {
  const film = episode.kind === "track" ? openTrack(episode) : openArena(episode);
  film.gained = unpack(episode.return);
  film.spent = new Float64Array(film.length + 1);
  for (const [t, cost] of film.costs) film.spent[t] = cost;
  for (let t = 1; t <= film.length; t += 1) film.spent[t] += film.spent[t - 1];
  film.limit = replay.limit;
  return film;
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
    this.strip = el("canvas", { class: "strip", "aria-hidden": "true" });
    this.scrub = el("input", { class: "scrub", type: "range", min: 0, value: 0, "aria-label": "step of the episode" });
    this.agent = choice("algorithm", this.replays.map((replay, k) => [k, `${replay.label} (seed ${replay.seed})`]));
    this.episode = choice("episode", []);
    // What an agent remembers is what there is to see first.
    this.agent.select.value = Math.max(0, this.replays.findIndex(({ episodes }) => episodes[0].maps?.length));
    this.speed = choice("speed", speeds.map((speed) => [speed, `${speed} ×`]));
    this.speed.select.value = "1";
    this.heat = check("intrinsic cost over the arena", true);
    this.dots = check("remembered states", true);
    this.gauges = { step: gauge("step"), gained: gauge("return"), spent: gauge("cost") };
    this.key = el("ul", { class: "key" });
    this.ramp = el("div", { class: "ramp" });
    this.memory = el("div", { class: "memory" });
    this.note = el("p", { class: "note" });
    this.play = button("play", () => this.toggle(), "Play");
    this.play.className = "play";
    const controls = el("div", { class: "controls", role: "group", "aria-label": "playback" }, this.play,
      button("step back", () => this.step(-1)), button("step forward", () => this.step(1)),
      button("cost before", () => this.seekCost(-1)), button("next cost", () => this.seekCost(1)), this.speed.label);
    this.memory.append(this.heat.label, this.dots.label, this.ramp);
    const side = el("div", { class: "side" },
      el("dl", { class: "gauges" }, Object.values(this.gauges).map(({ row }) => row)),
      this.memory, this.key, this.note);
    const choices = el("div", { class: "choices" }, this.agent.label, this.episode.label);
    const screen = el("div", { class: "screen" }, choices, this.canvas, this.strip, this.scrub, controls);
    this.element = el("div", { class: "player", role: "group", "aria-label": `replay of ${task}` }, screen, side);
    this.listen();
  }

  listen() {
    this.agent.select.addEventListener("change", () => this.choose());
    this.episode.select.addEventListener("change", () => this.open());
    this.scrub.addEventListener("input", () => { this.pause(); this.go(Number(this.scrub.value)); });
    for (const { input } of [this.heat, this.dots]) input.addEventListener("change", () => this.draw());
    this.canvas.addEventListener("keydown", (event) => this.onKey(event));
    const seek = (event) => {
      if (event.type === "pointermove" && !event.buttons) return;
      const box = this.strip.getBoundingClientRect();
      this.go(Math.round((this.film.length * (event.clientX - box.left)) / box.width));
    };
    this.strip.addEventListener("pointerdown", seek);
    this.strip.addEventListener("pointermove", seek);
  }

  onKey(event) {
    const act = {
      " ": () => this.toggle(), ArrowLeft: () => this.step(-1), ArrowRight: () => this.step(1),
      Home: () => this.go(0), End: () => this.go(this.film.length),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  /** Another algorithm: list its episodes and open the first. */
  choose() {
    this.replay = this.replays[Number(this.agent.select.value)];
    const names = this.replay.episodes.map((episode, k) => {
      const cost = episode.costs.reduce((sum, [, one]) => sum + one, 0);
      const gained = unpack(episode.return).at(-1);
      return el("option", { value: k }, `${k + 1}: return ${number(gained)}, cost ${number(cost)}`);
    });
    this.episode.select.replaceChildren(...names);
    this.open();
  }

  open() {
    this.pause();
    this.film = openEpisode(this.replay, this.replay.episodes[Number(this.episode.select.value)]);
    const isTrack = this.film.kind === "track";
    this.canvas.style.aspectRatio = isTrack ? "16 / 9" : "1";
    this.scrub.max = this.film.length;
    const key = isTrack ? trackKey() : arenaKey(this.film);
    this.key.replaceChildren(...key.map(([name, colour, shape]) => el("li", {}, swatch(colour, shape), name)));
    this.openMemory(isTrack ? [] : this.film.maps);
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
    const [low, high] = this.film.range.map((cost) => el("span", {}, number(cost)));
    this.ramp.replaceChildren(low, bar, high);
  }

  explain(hasMap) {
    const map = [
      " Colour is how much each place, as seen from there, reminds the agent of states in which it met a cost: the ",
      "largest intrinsic cost over headings. A dot is a place that looks most like one of them. Both are of the ",
      "moment at which a goal appeared or the episode began.",
    ];
    this.note.replaceChildren(
      `Played with the policy as it was after ${whole(this.replay.steps)} steps, noise included, on a seed that `,
      "training never saw.", ...(hasMap ? map : []), " With the picture in focus, ", el("kbd", {}, "space"),
      " plays and ", el("kbd", {}, "←"), " ", el("kbd", {}, "→"), " step.");
  }

  step(by) { this.pause(); this.go(Math.floor(this.frame) + by); }

  seekCost(direction) {
    this.pause();
    const at = Math.floor(this.frame);
    const times = this.film.costs.map(([t]) => t);
    const found = direction > 0 ? times.find((t) => t > at) : times.findLast((t) => t < at);
    if (found != null) this.go(found);
  }

  toggle() {
    if (this.playing) { this.pause(); return; }
    if (this.frame >= this.film.length) this.go(0);
    this.playing = true;
    label(this.play, "pause", "Pause");
    let before = null;
    const tick = (now) => {
      if (!this.playing) return;
      const seconds = before == null ? 0 : Math.min(0.25, (now - before) / 1000);
      before = now;
      this.go(this.frame + seconds * framesPerSecond * Number(this.speed.select.value));
      if (this.frame >= this.film.length) this.pause();
      else requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  pause() {
    this.playing = false;
    label(this.play, "play", "Play");
  }

  go(frame) {
    this.frame = Math.max(0, Math.min(this.film.length, frame));
    this.draw();
  }

  draw() {
    if (!this.canvas.clientWidth) return;
    const [film, frame] = [this.film, Math.floor(this.frame)];
    const options = { heat: this.heat.input.checked, dots: this.dots.input.checked };
    if (film.kind === "track") drawTrack(this.canvas, film, frame);
    else drawArena(this.canvas, film, frame, options);
    drawStrip(this.strip, film, frame);
    this.show(film, frame);
  }

  show(film, frame) {
    const { step, gained, spent } = this.gauges;
    step.value.textContent = whole(frame);
    step.small.textContent = `of ${whole(film.length)}`;
    gained.value.textContent = film.gained[frame].toFixed(2);
    const speed = film.kind === "track" ? film.speed[frame] : null;
    gained.small.textContent = speed == null ? "so far" : `speed ${number(speed)} m/s`;
    spent.value.textContent = number(film.spent[frame]);
    spent.small.textContent = `limit ${number(film.limit)}`;
    spent.dd.classList.toggle("over", film.spent[frame] > film.limit);
    this.scrub.value = frame;
    const sums = `return ${gained.value.textContent}, cost ${spent.value.textContent}`;
    const words = `step ${frame} of ${film.length}, ${sums}`;
    this.scrub.setAttribute("aria-valuetext", words);
    const what = film.kind === "track" ? "the runner from the side" : "the arena from above";
    this.canvas.setAttribute("aria-label", `${what}, ${words}`);
  }
}
