// The timeline under a replay: the costs of the episode, their sum (or the speed), and the current step.

const timelineCurve = (recording) => {
  if (recording.kind === "runner") return { values: recording.speed, limit: recording.speed_limit, name: "speed" };
  return { values: recording.cumulativeCost, limit: recording.limit, name: "cumulative cost" };
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
