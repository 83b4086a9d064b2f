// A runner from the side at one frame, the camera running along; red while it is too fast.

const openTrack = (film) => ({
  ...film,
  speed: unpack(film.speed),
  along: unpack(film.along),
  limbs: unpack(film.limbs),
  count: film.limbs.shape[1],
});

const drawGround = (context, film, at, view, colour, pixel) => {
  const { left, right, bottom, top } = view;
  context.strokeStyle = colour("floor-line");
  context.fillStyle = colour("muted");
  context.lineWidth = pixel;
  context.beginPath();
  for (let metre = Math.ceil(at + left); metre <= at + right; metre += 1) {
    context.moveTo(metre - at, bottom); context.lineTo(metre - at, top);
  }
  context.stroke();
  if (!film.ground) return;
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

const drawTrack = (canvas, film, frame) => {
  const { context, width, height } = sharpen(canvas);
  const colour = theme();
  context.fillStyle = colour("floor");
  context.fillRect(0, 0, width, height);
  const shot = Math.min(Math.floor(frame / film.every), film.along.length - 1);
  const at = film.along[shot];
  const tall = film.tall;  // metres in view
  const scale = height / tall;
  const pixel = 1 / scale;
  const ground = film.ground ? 0.4 : tall / 2;  // metres of it above the lower edge
  context.save();
  context.transform(scale, 0, 0, -scale, width / 2, height - ground * scale);
  const view = { left: -width / 2 / scale, right: width / 2 / scale, bottom: -ground, top: tall - ground };
  drawGround(context, film, at, view, colour, pixel);
  const fast = film.speed[frame] > film.speed_limit;
  context.strokeStyle = fast ? colour("cost") : colour("series-0");
  context.lineCap = "round";
  for (let k = 0; k < film.count; k += 1) {
    const [x1, y1, x2, y2] = film.limbs.subarray(4 * (shot * film.count + k), 4 * (shot * film.count + k) + 4);
    context.lineWidth = 2 * film.radii[k];
    context.beginPath(); context.moveTo(x1, y1); context.lineTo(x2 + 1e-6, y2); context.stroke();
  }
  context.restore();
  drawMetres(context, at, width, scale, height, colour);
};

const trackKey = () => [
  ["within the limit", "--series-0", "round"], ["faster than the limit: a cost", "--cost", "round"],
];
