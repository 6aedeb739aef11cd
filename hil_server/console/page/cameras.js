// Camera pictures: shaded faces, the farthest first, each camera a part of one canvas. No graphics card is needed: where there is none, a
// software WebGL picture of this size came 100 ms later than this one.
import { describe, font, rotate } from "/hil/wires.js";

const HULL = { T: "#8d9a92", A: "#b09a7c" };
const LIGHT = [-0.72, 0.6, 0.35];
const SECTORS = 20, NEAR = 0.02;

const minus = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const unit = (a) => { const n = Math.hypot(...a) || 1; return [a[0] / n, a[1] / n, a[2] / n]; };

// Faces and lines of one body, in its axes. Bodies hardly turn, so the light is fixed to them and every face has one colour for good.
class Body {
  points = [];
  items = [];

  at(p) {
    return this.points.push(p) - 1;
  }

  // outside: seen from the side of its normal only
  face(corners, colour, outside = false, glowing = false) {
    const normal = unit(cross(minus(corners[1], corners[0]), minus(corners[corners.length - 1], corners[0])));
    const lit = dot(normal, LIGHT);
    const bright = glowing ? 1 : 0.4 + 0.6 * Math.max(0, outside ? lit : Math.abs(lit));
    const part = (k) => Math.round(parseInt(colour.slice(k, k + 2), 16) * bright);
    this.items.push({ fill: `rgb(${part(1)},${part(3)},${part(5)})`, corners: corners.map((p) => this.at(p)), normal: outside ? normal : null });
  }

  // profile: (x, radius) about X; outside: counted so that the normals point outwards for a profile that runs from front to back
  lathe(profile, colour, outside = false) {
    const around = ([x, r], k) => [x, r * Math.cos((2 * Math.PI * k) / SECTORS), r * Math.sin((2 * Math.PI * k) / SECTORS)];
    for (let i = 1; i < profile.length; i++) {
      const [a, b] = [profile[i - 1], profile[i]];
      for (let k = 0; k < SECTORS; k++) {
        const corners = [around(a, k), around(b, k), around(b, k + 1), around(a, k + 1)];
        this.face(a[1] < 1e-6 ? [corners[0], corners[1], corners[2]] : b[1] < 1e-6 ? [corners[0], corners[1], corners[3]] : corners, colour, outside);
      }
    }
  }

  box([x, y, z], [a, b, c], colour) {
    const corner = (i, j, k) => [x + (i * a) / 2, y + (j * b) / 2, z + (k * c) / 2];
    for (const s of [-1, 1]) {
      this.face([corner(s, -1, -1), corner(s, 1, -1), corner(s, 1, 1), corner(s, -1, 1)], colour);
      this.face([corner(-1, s, -1), corner(1, s, -1), corner(1, s, 1), corner(-1, s, 1)], colour);
      this.face([corner(-1, -1, s), corner(1, -1, s), corner(1, 1, s), corner(-1, 1, s)], colour);
    }
  }

  lines(all, colour) {
    for (const line of all) this.items.push({ stroke: colour, corners: line.map((p) => this.at(p)), normal: null });
  }
}

// forward, up and right of a camera that looks from `from` to `to` with Y up
function eye({ position_m: from, look_at_m: to, field_of_view_deg: angle, on }) {
  const forward = unit(minus(to, from));
  const right = unit(cross(forward, [0, 1, 0]));
  return { from, axes: [right, cross(right, forward), forward], tangent: Math.tan((angle * Math.PI) / 360), on: on === "target" ? "T" : "A" };
}

export function cameras(element) {
  const canvas = describe(element, "aim camera with its crosshair, two survey cameras");
  let bodies = {}, eyes = [];

  function build(things) {
    bodies = {};
    const body = (name) => (bodies[name] ||= new Body());
    const radii = { T: 0, A: 0 };
    const front = { T: 0.02, A: -0.25 };
    for (const shape of things.shapes) {
      if (shape.body in radii) for (const line of shape.lines) for (const p of line) radii[shape.body] = Math.max(radii[shape.body], Math.hypot(p[1], p[2]));
      if (shape.revolved) body(shape.body).lathe(shape.revolved, shape.colour);
      else body(shape.body).lines(shape.lines, shape.colour);
    }
    // the craft behind the units: drums, their walls in rings so that they can be put in order
    const hull = Math.max(1.25, radii.T + 0.6, radii.A + 0.6);
    const between = (a, b, n) => Array.from({ length: n + 1 }, (_, i) => a + ((b - a) * i) / n);
    body("T").lathe([...between(radii.T, hull, 2).map((r) => [front.T, r]), ...between(front.T, 3, 4).slice(1).map((x) => [x, hull])].reverse(), HULL.T, true);
    body("A").lathe([...between(0.05, hull, 3).map((r) => [front.A, r]), ...between(front.A, -4, 5).slice(1).map((x) => [x, hull])], HULL.A, true);
    target(body(things.cameras.cross.on === "target" ? "T" : "A"), things.cameras.cross);
    eyes = ["aim", "survey_1", "survey_2"].map((name) => eye(things.cameras[name]));
  }

  // plate with a black cross, and a white one that stands before it: they cover one another when the camera is square to the plate
  function target(body, { position_m: [x, y, z], size_m: arm, standoff_m: off, on }) {
    const forward = on === "target" ? -1 : 1, wide = arm / 8;
    const flat = (b, c, colour, at) => {
      const p = (j, k) => [x + forward * at, y + (j * b) / 2, z + (k * c) / 2];
      body.face([p(-1, -1), p(1, -1), p(1, 1), p(-1, 1)], colour, false, true);
    };
    flat(1.5 * arm, 1.5 * arm, "#e8eef2", 0.004);
    flat(arm, 1.4 * wide, "#101316", 0.012);
    flat(1.4 * wide, arm, "#101316", 0.014);
    body.box([x + (forward * off) / 2, y, z], [0.9 * off, wide / 2, wide / 2], "#6b7780");
    flat(0.8 * arm, 0.8 * wide, "#ffffff", off);
    flat(0.8 * wide, 0.8 * arm, "#ffffff", off + 0.001);
  }

  // everything in the camera's axes (right, up, forward)
  function seen(poses, { from, axes, on }) {
    const mount = poses[on], q = mount.slice(3), c = rotate(q, from);
    const place = [c[0] + mount[0], c[1] + mount[1], c[2] + mount[2]];
    const turned = axes.map((a) => rotate(q, a));
    const items = [];
    for (const [name, body] of Object.entries(bodies)) {
      const pose = poses[name];
      if (!pose) continue;
      const back = [-pose[3], -pose[4], -pose[5], pose[6]];
      const M = turned.map((a) => rotate(back, a)); // camera axes in the body's axes
      const o = minus(pose, place), shift = turned.map((a) => dot(a, o));
      const points = body.points.map((p) => [dot(M[0], p) + shift[0], dot(M[1], p) + shift[1], dot(M[2], p) + shift[2]]);
      const eyeInBody = rotate(back, minus(place, pose));
      for (const item of body.items) {
        if (item.normal && dot(item.normal, minus(eyeInBody, body.points[item.corners[0]])) <= 0) continue;
        let depth = 0;
        for (const i of item.corners) depth += Math.hypot(...points[i]);
        items.push({ item, points, depth: depth / item.corners.length });
      }
    }
    return items.sort((a, b) => b.depth - a.depth);
  }

  function paint(context, poses, camera, u0, v0, w, h) {
    const scale = h / 2 / camera.tangent, cu = u0 + w / 2, cv = v0 + h / 2;
    for (const { item, points } of seen(poses, camera)) {
      let corners = item.corners.map((i) => points[i]);
      if (corners.some((p) => p[2] < NEAR)) corners = clipped(corners, Boolean(item.fill));
      if (corners.length < 2) continue;
      context.beginPath();
      corners.forEach((p, i) => {
        const u = cu + (scale * p[0]) / p[2], v = cv - (scale * p[1]) / p[2];
        if (i) context.lineTo(u, v);
        else context.moveTo(u, v);
      });
      if (item.fill) {
        context.closePath();
        context.fillStyle = context.strokeStyle = item.fill;
        context.fill();
        context.stroke(); // closes the hair line between neighbours
      } else {
        context.strokeStyle = item.stroke;
        context.stroke();
      }
    }
  }

  // what lies before the camera
  function clipped(corners, closed) {
    const kept = [];
    corners.forEach((p, i) => {
      const q = corners[i ? i - 1 : corners.length - 1];
      if ((i || closed) && p[2] < NEAR !== q[2] < NEAR) {
        const s = (NEAR - q[2]) / (p[2] - q[2]);
        kept.push([q[0] + s * (p[0] - q[0]), q[1] + s * (p[1] - q[1]), NEAR]);
      }
      if (p[2] >= NEAR) kept.push(p);
    });
    return kept;
  }

  return {
    things: ({ things }) => build(things),
    draw({ frame }) {
      if (!eyes.length || !frame?.bodies) return;
      const box = element.getBoundingClientRect();
      const width = Math.max(90, Math.floor(box.width)), height = Math.max(60, Math.floor(box.height));
      if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
      const context = canvas.getContext("2d");
      // the aim is the largest; on a narrow page the others are below it
      const tall = width < 1.2 * height, big = tall ? Math.floor(height * 0.66) : Math.floor(width * 0.66), half = Math.floor((tall ? width : height) / 2);
      const parts = tall ? [[0, 0, width, big - 3], [0, big, half - 2, height - big], [half, big, width - half, height - big]]
        : [[0, 0, big - 3, height], [big, 0, width - big, half - 2], [big, half, width - big, height - half]];
      context.lineWidth = 1;
      parts.forEach(([u, v, w, h], i) => {
        context.save();
        context.beginPath();
        context.rect(u, v, w, h);
        context.clip();
        context.fillStyle = "#0b0f14";
        context.fillRect(u, v, w, h);
        paint(context, frame.bodies, eyes[i], u, v, w, h);
        context.fillStyle = "rgba(11, 15, 20, 0.6)";
        context.font = font(12);
        const title = ["aim camera", "survey camera 1", "survey camera 2"][i];
        context.fillRect(u, v, context.measureText(title).width + 16, 24);
        context.fillStyle = "#eceff1";
        context.fillText(title, u + 8, v + 17);
        if (i === 0) reticle(context, u + w / 2, v + h / 2, Math.min(w, h));
        context.restore();
      });
    },
  };

  // a line that is seen on bright and on dark: dark beneath, bright above
  function reticle(context, u, v, size) {
    context.beginPath();
    for (const [du, dv] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) {
      context.moveTo(u + du * 0.02 * size, v + dv * 0.02 * size);
      context.lineTo(u + du * 0.42 * size, v + dv * 0.42 * size);
      for (let k = 1; k <= 8; k++) {
        const at = 0.05 * k * size, tick = k % 2 ? 4 : 8;
        context.moveTo(u + du * at - dv * tick, v + dv * at - du * tick);
        context.lineTo(u + du * at + dv * tick, v + dv * at + du * tick);
      }
    }
    context.moveTo(u + 0.1 * size, v);
    context.arc(u, v, 0.1 * size, 0, 2 * Math.PI);
    for (const [colour, wide] of [["rgba(0, 0, 0, 0.75)", 3.5], ["#fff176", 1.5]]) {
      Object.assign(context, { strokeStyle: colour, lineWidth: wide });
      context.stroke();
    }
    context.lineWidth = 1;
  }
}
