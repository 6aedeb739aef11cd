// A run in three dimensions, at the instant of a slider: wire-frames of the docking units and the stand's legs in the axes of the target port,
// or the crafts (`about.solids`).
(() => {
  "use strict";
  const { View, placed } = globalThis.hilSpace;

  class Scene {
    constructor(figure) {
      this.about = JSON.parse(figure.querySelector("script").textContent);
      this.canvas = figure.querySelector("canvas");
      [this.slider, this.says, this.play] = [figure.querySelector("input[type=range]"), figure.querySelector("output"), figure.querySelector("button")];
      [this.stand, this.large] = [figure.querySelector(".with-stand"), figure.querySelector(".enlarged")];
      this.view = new View(this.canvas, () => this.draw());
      this.most = Math.max(1, ...this.about.force.map((f) => Math.hypot(...f)));
      const touch = this.about.force.findIndex((f) => Math.hypot(...f) > 0.2 * this.most);
      this.slider.value = touch < 0 ? 0 : touch;
      this.slider.addEventListener("input", () => this.draw());
      this.stand?.addEventListener("change", () => this.view.nearer(1 / this.view.near));
      this.large?.addEventListener("change", () => this.draw());
      this.play.addEventListener("click", () => this.run());
      for (const button of figure.querySelectorAll("button[data-at]")) {
        button.addEventListener("click", () => { this.slider.value = button.dataset.at; this.draw(); });
      }
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
      const tone = (c) => (dark ? c : { "#66bb6a": "#1b7a34", "#ffb74d": "#b85c00", "#eceff1": "#56606b", "#4fc3f7": "#0b6aa8" }[c] || c);
      g.clearRect(0, 0, box.width, box.height);
      const force = about.force[i], size = Math.hypot(...force), t = about.times[i], phase = about.phases.find(([a, b]) => t >= a && t <= b);
      let more = "";
      if (about.solids) {
        g.font = "11px sans-serif";
        const factor = this.view.crafts(g, box.width, box.height, about, about.frames[i], this.large?.checked, tone, of("--ink"));
        if (about.frames[i].bend) more = `, bending × ${factor}`;
      } else this.units(g, box, i, tone, of);
      this.says.textContent = `${t.toFixed(3)} s${phase ? `, ${phase[2]}` : ""}, ${size.toFixed(0)} N${more}`;
    }

    units(g, box, i, tone, of) {
      const { about, view } = this;
      const wide = this.stand?.checked ? 4.0 : about.extent;
      view.look(box.width, box.height, this.stand?.checked ? [0.5 * (about.stand.base[0][0][0]), 0, 0] : [-0.25 * about.extent, 0, 0], wide);
      if (this.stand?.checked) {
        const base = about.stand.base[about.stand.base.length > 1 ? i : 0], top = about.stand.top[i];
        for (const ring of [base, top]) view.line(g, [...ring, ring[0]], of("--soft"), 2);
        base.forEach((p, k) => view.line(g, [p, top[k]], of("--c0"), 3));
      }
      for (const { body, colour, lines } of about.shapes) {
        const X = body === "T" ? null : about.poses[body][i];
        for (const points of lines) view.line(g, X ? points.map((p) => placed(X, p)) : points, tone(colour), 1.2);
      }
      const force = about.force[i];
      if (Math.hypot(...force) > 0.01 * this.most) { // as the target feels it, at the port
        const part = 0.6 * about.extent / this.most;
        view.line(g, [[0, 0, 0], force.map((f) => f * part)], of("--bad"), 3);
      }
    }
  }
  for (const figure of document.querySelectorAll("figure.scene")) new Scene(figure);
})();
