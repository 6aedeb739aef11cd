// Wire-frames in the target port's axes (X along the docking axis into the target, Y up, Z to the right), in fixed projections.
const VIEWS = {
  side: { right: [1, 0, 0], up: [0, 1, 0], title: "side: X right, Y up" },
  top: { right: [1, 0, 0], up: [0, 0, -1], title: "top: X right, Z down" },
  axial: { right: [0, 0, 1], up: [0, 1, 0], title: "axial: Z right, Y up" },
  axonometric: { right: [0.79, -0.05, 0.61], up: [0.24, 0.94, -0.24], title: "axonometric" },
};
const RED = "#ff5252";

export function rotate([x, y, z, w], [a, b, c]) {
  const tx = 2 * (y * c - z * b), ty = 2 * (z * a - x * c), tz = 2 * (x * b - y * a);
  return [a + w * tx + y * tz - z * ty, b + w * ty + z * tx - x * tz, c + w * tz + x * ty - y * tx];
}

export function fit(canvas) {
  const box = canvas.parentElement.getBoundingClientRect();
  const width = Math.max(40, Math.floor(box.width)), height = Math.max(40, Math.floor(box.height));
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  const context = canvas.getContext("2d");
  context.clearRect(0, 0, width, height);
  return context;
}

// a font that grows with the page
let size = 16, sizeFor = 0;
export function font(px, family = "sans-serif") {
  if (sizeFor !== innerWidth) (sizeFor = innerWidth), (size = parseFloat(getComputedStyle(document.documentElement).fontSize));
  return `${Math.max(12, Math.round((px * size) / 14))}px ${family}`;
}

// the canvas of a drawn part, with words for who does not see it
export function describe(element, words) {
  const canvas = element.appendChild(document.createElement("canvas"));
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", words);
  return canvas;
}

export function wires(element, options) {
  const canvas = describe(element, `wire-frame of the units, ${VIEWS[options.projection].title}`);
  const still = document.createElement("canvas");
  const { right, up, title } = VIEWS[options.projection];
  let zoom = 1, drawn = "", shapes = [];
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom = Math.min(50, Math.max(0.05, zoom * Math.exp(-event.deltaY / 500)));
  }, { passive: false });
  canvas.addEventListener("dblclick", () => (zoom = 1));

  const onto = (p, scale, centre, w, h) => [
    w / 2 + scale * (right[0] * (p[0] - centre) + right[1] * p[1] + right[2] * p[2]),
    h / 2 - scale * (up[0] * (p[0] - centre) + up[1] * p[1] + up[2] * p[2]),
  ];

  function stroke(context, lines, pose, project) {
    context.beginPath();
    for (const line of lines) {
      for (let i = 0; i < line.length; i++) {
        let p = line[i];
        if (pose) {
          const q = rotate(pose.slice(3), p);
          p = [q[0] + pose[0], q[1] + pose[1], q[2] + pose[2]];
        }
        const [u, v] = project(p);
        if (i) context.lineTo(u, v);
        else context.moveTo(u, v);
      }
    }
    context.stroke();
  }

  return {
    things(state) {
      shapes = state.things.shapes;
      drawn = "";
    },
    draw({ things, frame }) {
      const context = fit(canvas);
      const { width, height } = canvas;
      if (!things) return;
      const scale = (zoom * Math.min(width, height)) / (2 * things.extent);
      const centre = options.projection === "axial" ? 0 : -0.25 * things.extent;
      const project = (p) => onto(p, scale, centre, width, height);
      const key = `${width} ${height} ${scale}`;
      if (key !== drawn) {
        Object.assign(still, { width, height });
        const calm = still.getContext("2d");
        calm.strokeStyle = "#37474f";
        stroke(calm, [[[-9, 0, 0], [9, 0, 0]], [[0, -9, 0], [0, 9, 0]], [[0, 0, -9], [0, 0, 9]]], null, project);
        for (const shape of shapes.filter((s) => s.body === "T")) {
          calm.strokeStyle = shape.colour;
          calm.globalAlpha = 0.8;
          stroke(calm, shape.lines, null, project);
        }
        drawn = key;
      }
      context.drawImage(still, 0, 0);
      context.fillStyle = "#90a4ae";
      context.font = font(12);
      context.fillText(title, 6, 16);
      if (!frame?.bodies) return;
      context.lineWidth = 1.2;
      for (const shape of shapes) {
        const pose = frame.bodies[shape.body];
        if (!pose || shape.body === "T") continue;
        const touches = frame.on.includes(shape.name); // by its width as well as by its colour
        context.strokeStyle = touches ? RED : shape.colour;
        context.lineWidth = touches ? 3.5 : 1.4;
        stroke(context, shape.lines, pose, project);
      }
      context.lineWidth = 1.4;
      context.strokeStyle = "#eceff1";
      stroke(context, frame.legs, null, project);
      context.fillStyle = RED;
      for (const p of frame.contacts) {
        const [u, v] = project(p);
        context.beginPath();
        context.arc(u, v, 6, 0, 2 * Math.PI);
        context.fill();
        context.stroke(); // a white ring round it
      }
    },
  };
}
