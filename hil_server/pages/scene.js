// Wire-frames of the docking units, and of the stand's legs, in the axes of the target port; turned by dragging, run by a slider.
(() => {
  "use strict";
  const turned = ([x, y, z, w], [a, b, c]) => {
    const t = [2 * (y * c - z * b), 2 * (z * a - x * c), 2 * (x * b - y * a)];
    return [a + w * t[0] + y * t[2] - z * t[1], b + w * t[1] + z * t[0] - x * t[2], c + w * t[2] + x * t[1] - y * t[0]];
  };
  const placed = (X, p) => { const q = turned(X.slice(3), p); return [X[0] + q[0], X[1] + q[1], X[2] + q[2]]; };

  class Scene {
    constructor(figure) {
      this.about = JSON.parse(figure.querySelector("script").textContent);
      this.canvas = figure.querySelector("canvas");
      [this.slider, this.says, this.play] = [figure.querySelector("input[type=range]"), figure.querySelector("output"), figure.querySelector("button")];
      this.stand = figure.querySelector(".with-stand");
      this.yaw = -0.7; this.tilt = 0.35; this.near = 1; this.most = Math.max(1, ...this.about.force.map((f) => Math.hypot(...f)));
      const touch = this.about.force.findIndex((f) => Math.hypot(...f) > 0.2 * this.most);
      this.slider.value = touch < 0 ? 0 : touch;
      this.slider.addEventListener("input", () => this.draw());
      this.stand?.addEventListener("change", () => { this.near = 1; this.draw(); });
      this.canvas.addEventListener("pointerdown", (e) => { this.held = [e.clientX, e.clientY]; this.canvas.setPointerCapture(e.pointerId); });
      this.canvas.addEventListener("pointerup", () => { this.held = null; });
      this.canvas.addEventListener("pointermove", (e) => {
        if (!this.held) return;
        this.turn(0.008 * (e.clientX - this.held[0]), 0.008 * (e.clientY - this.held[1]));
        this.held = [e.clientX, e.clientY];
      });
      this.canvas.addEventListener("wheel", (e) => {
        if (!e.ctrlKey && !e.shiftKey) return;
        e.preventDefault();
        this.near *= (e.deltaY || e.deltaX) > 0 ? 0.87 : 1.15;
        this.draw();
      }, { passive: false });
      this.canvas.addEventListener("keydown", (e) => {
        const does = { ArrowLeft: () => this.turn(-0.1, 0), ArrowRight: () => this.turn(0.1, 0), ArrowUp: () => this.turn(0, -0.1), ArrowDown: () => this.turn(0, 0.1),
                       "+": () => { this.near *= 1.15; this.draw(); }, "-": () => { this.near *= 0.87; this.draw(); } };
        if (!does[e.key]) return;
        e.preventDefault();
        does[e.key]();
      });
      this.play.addEventListener("click", () => this.run());
      document.addEventListener("hil-time", (e) => {
        if (e.detail.group !== "run") return;
        const i = this.about.times.findIndex((t) => t >= e.detail.time);
        this.slider.value = i < 0 ? this.about.times.length - 1 : i;
        this.draw();
      });
      new ResizeObserver(() => this.draw()).observe(this.canvas);
      for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", () => this.draw());
      window.addEventListener("beforeprint", () => this.draw());
      this.draw();
    }

    turn(yaw, tilt) {
      this.yaw += yaw;
      this.tilt = Math.max(-1.5, Math.min(1.5, this.tilt + tilt));
      this.draw();
    }

    run() {
      if (this.timer) { clearInterval(this.timer); this.timer = null; this.play.textContent = "play"; return; }
      if (+this.slider.value >= +this.slider.max) this.slider.value = 0;
      this.play.textContent = "stop";
      this.timer = setInterval(() => {
        this.slider.value = +this.slider.value + 1;
        this.draw();
        if (+this.slider.value >= +this.slider.max) this.run();
      }, 60);
    }

    draw() {
      const box = this.canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
      if (!box.width) return;
      this.canvas.width = Math.round(box.width * ratio); this.canvas.height = Math.round(box.height * ratio);
      const g = this.canvas.getContext("2d"), i = +this.slider.value, about = this.about;
      g.setTransform(ratio, 0, 0, ratio, 0, 0);
      const style = getComputedStyle(document.documentElement), of = (name) => style.getPropertyValue(name).trim();
      const dark = matchMedia("(prefers-color-scheme: dark)").matches && !matchMedia("print").matches;
      const tone = (c) => (dark ? c : { "#66bb6a": "#1b7a34", "#ffb74d": "#b85c00", "#eceff1": "#56606b" }[c] || c);
      g.clearRect(0, 0, box.width, box.height);
      const wide = this.stand?.checked ? 4.0 : about.extent;
      const middle = this.stand?.checked ? [0.5 * (about.stand.base[0][0][0]), 0, 0] : [-0.25 * about.extent, 0, 0];
      const scale = this.near * Math.min(box.width / 2.4, box.height / 2) / wide;
      const [cy, sy, ct, st] = [Math.cos(this.yaw), Math.sin(this.yaw), Math.cos(this.tilt), Math.sin(this.tilt)];
      const seen = (p) => { // Y up, turned about it, then tilted
        const [x, y, z] = [p[0] - middle[0], p[1] - middle[1], p[2] - middle[2]];
        const u = cy * x + sy * z, depth = -sy * x + cy * z;
        return [box.width / 2 + scale * u, box.height / 2 - scale * (ct * y - st * depth)];
      };
      const line = (points, colour, thick) => {
        g.strokeStyle = colour; g.lineWidth = thick; g.beginPath();
        points.forEach((p, k) => { const [x, y] = seen(p); if (k) g.lineTo(x, y); else g.moveTo(x, y); });
        g.stroke();
      };
      if (this.stand?.checked) {
        const base = about.stand.base[about.stand.base.length > 1 ? i : 0], top = about.stand.top[i];
        for (const ring of [base, top]) line([...ring, ring[0]], of("--soft"), 2);
        base.forEach((p, k) => line([p, top[k]], of("--c0"), 3));
      }
      for (const { body, colour, lines } of about.shapes) {
        const X = body === "T" ? null : about.poses[body][i];
        for (const points of lines) line(X ? points.map((p) => placed(X, p)) : points, tone(colour), 1.2);
      }
      const force = about.force[i], size = Math.hypot(...force);
      if (size > 0.01 * this.most) { // as the target feels it, at the port
        const part = 0.6 * about.extent / this.most;
        line([[0, 0, 0], force.map((f) => f * part)], of("--bad"), 3);
      }
      const t = about.times[i], phase = about.phases.find(([a, b]) => t >= a && t <= b);
      this.says.textContent = `${t.toFixed(3)} s${phase ? `, ${phase[2]}` : ""}, ${size.toFixed(0)} N`;
    }
  }
  for (const figure of document.querySelectorAll("figure.scene")) new Scene(figure);
})();
