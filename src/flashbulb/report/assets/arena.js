// A navigation task from above at one frame: intrinsic cost, objects, trajectory and robot.

const flashFrames = 12;

/** Colours of the map, from the lowest to the highest intrinsic cost. */
const heatColour = (share) => [
  Math.round(255 - 75 * share), Math.round(190 - 165 * share ** 0.8), Math.round(70 - 35 * share),
  Math.round(235 * share ** 1.2),
];

/** A map on the scale that all maps have, those of `flashbulb memory` too. */
const heatImage = (heat) => {
  const { low, high, power } = data.heat_scale;
  const [rows, columns] = heat.shape;
  const image = el("canvas", { width: columns, height: rows });
  const context = image.getContext("2d");
  const pixels = context.createImageData(columns, rows);
  decode(heat).forEach((value, k) => pixels.data.set(heatColour(((value - low) / (high - low)) ** power), 4 * k));
  context.putImageData(pixels, 0, 0);
  return image;
};

const openArena = (recording) => ({
  ...recording,
  agent: decode(recording.agent),
  boxes: ["vases", "gremlins"].map((name) => ({
    name, count: recording[name].shape[1], frames: recording[name].shape[0], rows: decode(recording[name]),
  })),
  maps: recording.maps.map((map) => ({ ...map, image: heatImage(map.heat) })),
});

const disc = (context, x, y, radius, colour, opacity, edge = 0) => {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fillStyle = context.strokeStyle = colour;
  context.globalAlpha = opacity;
  context.fill();
  context.globalAlpha = 1;
  if (edge) { context.lineWidth = edge; context.stroke(); }
};

const box = (context, [x, y, yaw], [dx, dy], [halfX, halfY], colour) => {
  context.save();
  context.translate(x, y);
  context.rotate(yaw);
  context.fillStyle = colour;
  context.fillRect(dx - halfX, dy - halfY, 2 * halfX, 2 * halfY);
  context.restore();
};

const drawFloor = (context, recording, colour, pixel) => {
  const half = recording.half;
  context.fillStyle = colour("floor");
  context.fillRect(-half, -half, 2 * half, 2 * half);
  context.strokeStyle = colour("floor-line");
  context.lineWidth = pixel;
  context.beginPath();
  for (let k = Math.ceil(-half); k <= half; k += 1) {
    context.moveTo(k, -half); context.lineTo(k, half);
    context.moveTo(-half, k); context.lineTo(half, k);
  }
  context.stroke();
  recording.walls.forEach((limit, axis) => {
    if (limit == null) return;
    for (const side of [-1, 1]) {
      context.save();
      if (axis === 1) context.rotate(Math.PI / 2);
      context.fillStyle = context.strokeStyle = colour("cost");
      context.globalAlpha = 0.08;
      context.fillRect(side * limit, -half, side * (half - limit), 2 * half);
      context.globalAlpha = 1;
      context.lineWidth = 2 * pixel;
      context.setLineDash([6 * pixel, 4 * pixel]);
      context.beginPath(); context.moveTo(side * limit, -half); context.lineTo(side * limit, half); context.stroke();
      context.restore();
    }
  });
};

const drawObjects = (context, recording, frame, colour, pixel) => {
  const size = data.sizes;
  if (recording.circle) disc(context, 0, 0, size.circle, colour("goal"), 0.08, 2 * pixel);
  recording.hazards.forEach(([x, y]) => disc(context, x, y, size.hazard, colour("hazard"), 0.28, 1.5 * pixel));
  recording.paths.forEach(([x, y]) => {
    context.setLineDash([2 * pixel, 3 * pixel]);
    disc(context, x, y, size.path, colour("gremlin"), 0, pixel);
    context.setLineDash([]);
  });
  const opacity = current(recording.blind, frame) ? 0.3 : 0.9;
  recording.buttons.forEach(([x, y]) => disc(context, x, y, size.button, colour("button"), opacity, pixel));
  const goal = current(recording.goals, frame);
  if (goal) {
    const radius = recording.buttons.length ? 1.8 * size.button : size.goal;
    disc(context, ...goal, radius, colour("goal"), 0.25, 2.5 * pixel);
  }
};

const drawBoxes = (context, recording, frame, colour) => recording.boxes.forEach(({ name, count, frames, rows }) => {
  const at = 3 * count * Math.min(frame, frames - 1);
  for (let k = 0; k < count; k += 1) {
    const pose = rows.subarray(at + 3 * k, at + 3 * k + 3);
    box(context, pose, [0, 0], [data.sizes.box, data.sizes.box], colour(name.slice(0, -1)));
  }
});

const drawTrail = (context, recording, frame, colour, pixel) => {
  const line = (first, opacity, width) => {
    context.beginPath();
    for (let t = Math.max(0, first); t <= frame; t += 1) context.lineTo(recording.agent[3 * t], recording.agent[3 * t + 1]);
    context.globalAlpha = opacity;
    context.lineWidth = width * pixel;
    context.strokeStyle = colour("trail");
    context.lineJoin = context.lineCap = "round";
    context.stroke();
  };
  line(0, 0.3, 1.5);
  line(frame - 60, 0.75, 2.2);
  context.globalAlpha = 1;
  context.strokeStyle = colour("cost");
  context.lineWidth = 2 * pixel;
  context.beginPath();
  for (const [t] of recording.costs) {
    if (t > frame) break;
    const [x, y, arm] = [recording.agent[3 * t], recording.agent[3 * t + 1], 4 * pixel];
    context.moveTo(x - arm, y - arm); context.lineTo(x + arm, y + arm);
    context.moveTo(x - arm, y + arm); context.lineTo(x + arm, y - arm);
  }
  context.stroke();
};

const drawRobot = (context, recording, frame, colour, pixel) => {
  const pose = recording.agent.subarray(3 * frame, 3 * frame + 3);
  const since = frame - (recording.costs.findLast(([t]) => t <= frame)?.[0] ?? -Infinity);
  if (since < flashFrames) {
    disc(context, pose[0], pose[1], 0.16 + 0.02 * since, colour("cost"), 0.45 * (1 - since / flashFrames), 2 * pixel);
  }
  const [red, paper, ink] = [colour("robot"), colour("floor"), colour("trail")];
  if (recording.robot === "Point") {
    box(context, pose, [0.1, 0], [0.05, 0.05], red);
    disc(context, pose[0], pose[1], 0.1, red, 1);
    box(context, pose, [0.1, 0], [0.018, 0.018], paper);
    return;
  }
  for (const side of [-1, 1]) box(context, pose, [0.13 * side, 0.1], [0.025, 0.05], ink);
  box(context, pose, [0, 0], [0.1, 0.1], red);
  box(context, pose, [0, 0.14], [0.1, 0.02], red);
  box(context, pose, [0, -0.14], [0.05, 0.035], red);
  box(context, pose, [0, -0.05], [0.02, 0.05], paper);  // the front is the local -y
};

const drawArena = (canvas, recording, frame, options) => {
  const { context, width } = sharpen(canvas);
  const colour = theme();
  const scale = width / (2 * recording.half);
  const pixel = 1 / scale;
  context.transform(scale, 0, 0, -scale, width / 2, width / 2);  // metres, y upwards
  drawFloor(context, recording, colour, pixel);
  const map = recording.maps.findLast((candidate) => candidate.frame <= frame);
  const edge = data.sizes.map;
  if (map && options.heat) context.drawImage(map.image, -edge, -edge, 2 * edge, 2 * edge);
  drawObjects(context, recording, frame, colour, pixel);
  if (map && options.remembered) {
    map.remembered.forEach(([x, y]) => disc(context, x, y, 2.2 * pixel, colour("memory"), 1, 0));
  }
  drawBoxes(context, recording, frame, colour);
  drawTrail(context, recording, frame, colour, pixel);
  drawRobot(context, recording, frame, colour, pixel);
};

const arenaLegend = (recording) => [
  ["robot", "round", true],
  [recording.circle ? "circle" : "goal", "round", recording.circle || recording.goals[0][1] != null, "goal"],
  ["hazard", "round", recording.hazards.length], ["vase", "", recording.boxes[0].count], ["button", "round", recording.buttons.length],
  ["gremlin", "", recording.boxes[1].count], ["wall", "", recording.walls.some((limit) => limit != null), "cost"],
  ["step with a cost", "", recording.costs.length, "cost"],
].filter(([, , there]) => there).map(([name, shape, , colour]) => [name, `--${colour ?? name}`, shape]);
