// A velocity task from the side at one frame, the camera following the robot; red above the speed limit.

const openRunner = (recording) => ({
  ...recording,
  speed: decode(recording.speed),
  along: decode(recording.along),
  limbs: decode(recording.limbs),
  count: recording.limbs.shape[1],
});

const drawGround = (context, recording, at, view, colour, pixel) => {
  const { left, right, bottom, top } = view;
  context.strokeStyle = colour("floor-line");
  context.fillStyle = colour("muted");
  context.lineWidth = pixel;
  context.beginPath();
  for (let metre = Math.ceil(at + left); metre <= at + right; metre += 1) {
    context.moveTo(metre - at, bottom); context.lineTo(metre - at, top);
  }
  context.stroke();
  if (!recording.ground) return;
  context.strokeStyle = colour("muted");
  context.lineWidth = 2 * pixel;
  context.beginPath(); context.moveTo(left, 0); context.lineTo(right, 0); context.stroke();
};

const drawMetres = (context, at, width, scale, height, colour) => {
  context.fillStyle = colour("muted");
  context.font = "12px system-ui, sans-serif";
  context.textAlign = "center";
  for (let metre = Math.ceil(at - width / 2 / scale); metre <= at + width / 2 / scale; metre += 1) {
    context.fillText(`${metre} m`, width / 2 + (metre - at) * scale, height - 6);
  }
};

const drawRunner = (canvas, recording, frame) => {
  const { context, width, height } = sharpen(canvas);
  const colour = theme();
  context.fillStyle = colour("floor");
  context.fillRect(0, 0, width, height);
  const index = Math.min(Math.floor(frame / recording.every), recording.along.length - 1);
  const at = recording.along[index];
  const tall = recording.tall;  // metres in view
  const scale = height / tall;
  const pixel = 1 / scale;
  const ground = recording.ground ? 0.4 : tall / 2;  // metres between the lower edge and the ground
  context.save();
  context.transform(scale, 0, 0, -scale, width / 2, height - ground * scale);
  const view = { left: -width / 2 / scale, right: width / 2 / scale, bottom: -ground, top: tall - ground };
  drawGround(context, recording, at, view, colour, pixel);
  const fast = recording.speed[frame] > recording.speed_limit;
  context.strokeStyle = fast ? colour("cost") : colour("runner");
  context.lineCap = "round";
  for (let k = 0; k < recording.count; k += 1) {
    const [x1, y1, x2, y2] = recording.limbs.subarray(4 * (index * recording.count + k), 4 * (index * recording.count + k) + 4);
    context.lineWidth = 2 * recording.radii[k];
    context.beginPath(); context.moveTo(x1, y1); context.lineTo(x2 + 1e-6, y2); context.stroke();
  }
  context.restore();
  drawMetres(context, at, width, scale, height, colour);
};

const runnerLegend = () => [
  ["within the limit", "--runner", "round"], ["above the limit (cost)", "--cost", "round"],
];
