// Things in three dimensions on a canvas, turned by dragging and arrows, nearer with the wheel: for reports and for the console.
(() => {
  "use strict";
  const turned = ([x, y, z, w], [a, b, c]) => {
    const t = [2 * (y * c - z * b), 2 * (z * a - x * c), 2 * (x * b - y * a)];
    return [a + w * t[0] + y * t[2] - z * t[1], b + w * t[1] + z * t[0] - x * t[2], c + w * t[2] + x * t[1] - y * t[0]];
  };
  const placed = (X, p) => { const q = turned(X.slice(3), p); return [X[0] + q[0], X[1] + q[1], X[2] + q[2]]; };

  // where the points of a solid are: bent by its modal coordinates, in the frame of its body
  const points = ({ points: all, moves }, X, eta) => all.map((p, i) => {
    if (moves && eta) p = p.map((x, k) => moves[i][k].reduce((sum, move, j) => sum + move * eta[j], x));
    return placed(X, p);
  });

  class View {
    // redraw: called when the view has changed; always: the wheel comes nearer without Ctrl
    constructor(canvas, redraw, always = false) {
      Object.assign(this, { canvas, redraw, yaw: -0.7, tilt: 0.35, near: 1, held: null });
      canvas.addEventListener("pointerdown", (e) => { this.held = [e.clientX, e.clientY]; canvas.setPointerCapture(e.pointerId); });
      canvas.addEventListener("pointerup", () => { this.held = null; });
      canvas.addEventListener("pointermove", (e) => {
        if (!this.held) return;
        this.turn(0.008 * (e.clientX - this.held[0]), 0.008 * (e.clientY - this.held[1]));
        this.held = [e.clientX, e.clientY];
      });
      canvas.addEventListener("wheel", (e) => {
        if (!always && !e.ctrlKey && !e.shiftKey) return;
        e.preventDefault();
        this.nearer((e.deltaY || e.deltaX) > 0 ? 0.87 : 1.15);
      }, { passive: false });
      canvas.addEventListener("keydown", (e) => {
        const does = { ArrowLeft: () => this.turn(-0.1, 0), ArrowRight: () => this.turn(0.1, 0), ArrowUp: () => this.turn(0, -0.1), ArrowDown: () => this.turn(0, 0.1),
                       "+": () => this.nearer(1.15), "-": () => this.nearer(0.87) };
        if (!does[e.key]) return;
        e.preventDefault();
        does[e.key]();
      });
    }

    turn(yaw, tilt) {
      this.yaw += yaw;
      this.tilt = Math.max(-1.5, Math.min(1.5, this.tilt + tilt));
      this.redraw();
    }

    nearer(times) {
      this.near *= times;
      this.redraw();
    }

    // the middle of a picture of this size, and how many metres are in sight around it
    look(width, height, middle, wide) {
      Object.assign(this, { width, height, middle, scale: (this.near * Math.min(width / 2.4, height / 2)) / wide });
      this.angles = [Math.cos(this.yaw), Math.sin(this.yaw), Math.cos(this.tilt), Math.sin(this.tilt)];
    }

    // on the canvas, and how near: Y up, turned about it, then tilted
    seen(p) {
      const [cy, sy, ct, st] = this.angles;
      const [x, y, z] = [p[0] - this.middle[0], p[1] - this.middle[1], p[2] - this.middle[2]];
      const depth = -sy * x + cy * z;
      return [this.width / 2 + this.scale * (cy * x + sy * z), this.height / 2 - this.scale * (ct * y - st * depth), ct * depth + st * y];
    }

    path(g, all, close = false) {
      g.beginPath();
      all.forEach((p, k) => { const [x, y] = this.seen(p); if (k) g.lineTo(x, y); else g.moveTo(x, y); });
      if (close) g.closePath();
    }

    line(g, all, colour, thick) {
      g.strokeStyle = colour;
      g.lineWidth = thick;
      this.path(g, all);
      g.stroke();
    }

    // solids with a pose, the farthest face first; the names of their bodies. tone: the colour as this page shows it
    solids(g, solids, poses, bend, tone, ink) {
      const faces = [], names = new Map();
      for (const solid of solids) {
        if (!poses[solid.body]) continue;
        const at = points(solid, poses[solid.body], bend?.[solid.body]);
        for (const face of solid.faces) {
          const corners = face.map((i) => at[i]);
          faces.push({ corners, colour: tone(solid.colour), depth: corners.reduce((sum, p) => sum + this.seen(p)[2], 0) / corners.length });
        }
        names.set(solid.body, [solid.name, at[at.length - 1]]);
      }
      faces.sort((a, b) => a.depth - b.depth);
      g.lineWidth = 1;
      for (const { corners, colour } of faces) {
        g.fillStyle = g.strokeStyle = colour;
        this.path(g, corners, corners.length > 2);
        g.globalAlpha = 0.3;
        if (corners.length > 2) g.fill();
        g.globalAlpha = 0.8;
        g.stroke();
      }
      g.globalAlpha = 1;
      g.fillStyle = ink;
      const written = []; // a name where there is room for it
      for (const [name, p] of names.values()) {
        const [x, y] = this.seen(p);
        if (written.some(([u, v]) => Math.abs(u - x) < 70 && Math.abs(v - y) < 12)) continue;
        written.push([x, y]);
        g.fillText(name, x + 4, y - 4);
      }
    }

    // the whole of it in a picture of this size
    crafts(g, width, height, about, frame, large, tone, ink) {
      const shown = large && frame.large ? frame.large : frame.bodies, factor = shown === frame.bodies ? 1 : frame.factor;
      const bend = frame.bend && Object.fromEntries(Object.entries(frame.bend).map(([body, eta]) => [body, eta.map((x) => x * factor)]));
      if (this.about !== about) { // the view stays as it is while they move
        const all = about.solids.flatMap((solid) => (frame.bodies[solid.body] ? points(solid, frame.bodies[solid.body]) : []));
        const ends = [0, 1, 2].map((k) => all.reduce(([a, b], p) => [Math.min(a, p[k]), Math.max(b, p[k])], [Infinity, -Infinity]));
        this.about = about;
        this.fit = all.length ? [ends.map(([a, b]) => (a + b) / 2), 0.45 * Math.hypot(...ends.map(([a, b]) => b - a))] : [[0, 0, 0], 1];
      }
      this.look(width, height, ...this.fit);
      this.solids(g, about.solids, shown, bend, tone, ink);
      return factor;
    }
  }
  globalThis.hilSpace = { View, placed, points };
})();
