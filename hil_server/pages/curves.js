// Curves of a page: small canvases whose data stand in the page, zoomed together. Nothing is loaded from anywhere.
//
// A figure holds its description as JSON. Points are zlib streams in base 64: for every line the steps in time (four byte planes, units of
// `step` s), then the steps in value (two byte planes, modulo 65536 of the line's range; GAP is no value).
(() => {
  "use strict";
  const GAP = 65535, RIGHT = 10, BELOW = 20;
  let LEFT = 58; // room of the figure that is drawn or touched; names of lanes take more
  const groups = new Map(); // figures of one time axis: {plots, whole, seen, cursor}
  let theme = null, printing = false;

  async function inflated(text) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  // times and values of every line out of the planes
  function unpacked(planes, about) {
    let at = 0;
    for (const line of about.lines) {
      const n = line.points, t = new Float64Array(n), y = new Float64Array(n);
      let time = 0, level = 0;
      for (let i = 0; i < n; i++) {
        time += planes[at + i] + 256 * (planes[at + n + i] + 256 * (planes[at + 2 * n + i] + 256 * planes[at + 3 * n + i]));
        level = (level + planes[at + 4 * n + i] + 256 * planes[at + 5 * n + i]) & 0xffff;
        t[i] = about.start + about.step * time;
        y[i] = level === GAP ? NaN : line.low + (line.high - line.low) * level / (GAP - 1);
      }
      at += 6 * n;
      line.t = t; line.y = y; line.shown = true;
    }
  }

  function colours() {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(name).trim();
    theme = { ink: of("--ink"), soft: of("--soft"), grid: of("--grid"), paper: of("--paper"), band: of("--band"), bad: of("--bad"), good: of("--good"),
              lines: [0, 1, 2, 3, 4, 5, 6, 7].map((i) => of(`--c${i}`)) };
  }

  function ticks(low, high, most) {
    const rough = (high - low) / Math.max(1, most), power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= rough) || power;
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step);
    return { step, found };
  }

  function written(value, step) {
    if (Math.abs(value) >= 1e5 || (step < 1e-4 && value !== 0)) return value.toExponential(1);
    return value.toFixed(Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9))));
  }

  const first = (t, x) => { // index of the first time not before x
    let low = 0, high = t.length;
    while (low < high) { const mid = (low + high) >> 1; if (t[mid] < x) low = mid + 1; else high = mid; }
    return low;
  };

  function valueAt(line, x) {
    const i = first(line.t, x), t = line.t, y = line.y;
    if (i === 0) return t.length && t[0] === x ? y[0] : NaN;
    if (i === t.length) return NaN;
    return y[i - 1] + (y[i] - y[i - 1]) * (x - t[i - 1]) / ((t[i] - t[i - 1]) || 1);
  }

  class Plot {
    constructor(figure, about) {
      this.figure = figure; this.about = about; this.canvas = figure.querySelector("canvas");
      this.key = figure.querySelector(".key"); this.back = figure.querySelector("button");
      const name = about.group;
      if (!groups.has(name)) groups.set(name, { plots: [], whole: [Infinity, -Infinity], seen: null, cursor: null });
      this.group = groups.get(name);
      this.group.plots.push(this);
      this.group.whole = [Math.min(this.group.whole[0], about.from), Math.max(this.group.whole[1], about.to)];
      this.home = about.window;
      if (about.lines.length && this.key) this.legend();
      this.back.addEventListener("click", () => this.look(null));
      this.listen();
      new ResizeObserver(() => this.draw()).observe(this.canvas);
    }

    legend() {
      this.about.lines.forEach((line) => {
        if (!line.name) return;
        const item = document.createElement("button"), swatch = document.createElement("i"), words = document.createElement("span");
        item.type = "button"; item.title = "hide or show this line"; item.setAttribute("aria-pressed", "true");
        swatch.style.background = line.dash ? "none" : `var(--c${line.colour})`;
        swatch.style.border = line.dash ? `1px dashed var(--c${line.colour})` : "none";
        words.textContent = line.name;
        item.append(swatch, words);
        item.addEventListener("click", () => {
          line.shown = !line.shown;
          item.setAttribute("aria-pressed", String(line.shown));
          this.draw();
        });
        this.key.append(item);
      });
    }

    range() { return this.group.seen || this.home || this.group.whole; }

    look(range) { // of all figures of the group; null: the whole
      const [low, high] = this.group.whole, least = 1e-5 * (high - low);
      if (range) {
        let [a, b] = range;
        if (b - a < least) { const middle = 0.5 * (a + b); a = middle - 0.5 * least; b = middle + 0.5 * least; }
        const width = Math.min(b - a, high - low);
        a = Math.max(low, Math.min(a, high - width));
        range = width >= 0.999 * (high - low) ? null : [a, a + width];
      }
      this.group.seen = range;
      for (const plot of this.group.plots) { plot.home = null; plot.draw(); }
    }

    zoom(factor, x) {
      const [a, b] = this.range(), at = x === undefined ? 0.5 * (a + b) : x;
      this.look([at - (at - a) * factor, at + (b - at) * factor]);
    }

    room(width) { LEFT = this.about.lanes.length && width > 520 ? 130 : 58; }

    timeAt(event) {
      this.room(this.canvas.clientWidth);
      const box = this.canvas.getBoundingClientRect(), [a, b] = this.range();
      const part = (event.clientX - box.left - LEFT) / Math.max(1, box.width - LEFT - RIGHT);
      return a + Math.max(0, Math.min(1, part)) * (b - a);
    }

    listen() {
      const c = this.canvas;
      c.addEventListener("pointerdown", (e) => {
        if (e.button) return;
        this.from = this.timeAt(e); this.downX = e.clientX; c.setPointerCapture(e.pointerId);
      });
      c.addEventListener("pointermove", (e) => {
        this.to = this.timeAt(e);
        this.group.cursor = this.to;
        document.dispatchEvent(new CustomEvent("hil-time", { detail: { group: this.about.group, time: this.to } }));
        for (const plot of this.group.plots) plot.draw();
      });
      const done = (e, cancelled) => {
        if (this.from !== undefined && !cancelled && Math.abs(e.clientX - this.downX) > 6) {
          const to = this.timeAt(e);
          this.look([Math.min(this.from, to), Math.max(this.from, to)]);
        }
        this.from = undefined;
        this.draw();
      };
      c.addEventListener("pointerup", (e) => done(e, false));
      c.addEventListener("pointercancel", (e) => done(e, true));
      c.addEventListener("pointerleave", () => {
        if (this.from !== undefined) return;
        this.group.cursor = null;
        for (const plot of this.group.plots) plot.draw();
      });
      c.addEventListener("dblclick", () => this.look(null));
      c.addEventListener("wheel", (e) => {
        if (!e.ctrlKey && !e.shiftKey) return; // the page scrolls
        e.preventDefault();
        this.zoom((e.deltaY || e.deltaX) > 0 ? 1.25 : 0.8, this.timeAt(e));
      }, { passive: false });
      c.addEventListener("keydown", (e) => {
        const [a, b] = this.range(), step = 0.1 * (b - a);
        const does = { ArrowLeft: () => this.look([a - step, b - step]), ArrowRight: () => this.look([a + step, b + step]),
                       "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), Home: () => this.look(null), 0: () => this.look(null) };
        if (e.ctrlKey || e.metaKey || e.altKey || !does[e.key]) return;
        e.preventDefault();
        does[e.key]();
      });
    }

    draw() {
      const canvas = this.canvas, box = canvas.getBoundingClientRect();
      if (!box.width || !theme) return;
      this.room(box.width);
      const ratio = printing ? 3 : window.devicePixelRatio || 1;
      const width = Math.round(box.width * ratio), height = Math.round(box.height * ratio);
      if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
      const g = canvas.getContext("2d");
      g.setTransform(ratio, 0, 0, ratio, 0, 0);
      g.clearRect(0, 0, box.width, box.height);
      g.font = "11px system-ui, sans-serif";
      const [a, b] = this.range(), about = this.about;
      const top = about.bands.length || about.marks.length ? 16 : 6, bottom = box.height - BELOW, right = box.width - RIGHT;
      const x = (t) => LEFT + (t - a) / (b - a) * (right - LEFT);
      this.back.hidden = !this.group.seen;
      this.bands(g, x, top, bottom, right);
      const across = ticks(a, b, (right - LEFT) / 75);
      g.strokeStyle = theme.grid; g.fillStyle = theme.soft; g.lineWidth = 1; g.textAlign = "center"; g.textBaseline = "top";
      for (const t of across.found) {
        g.beginPath(); g.moveTo(x(t), top); g.lineTo(x(t), bottom); g.stroke();
        if (x(t) < right - 12 || t === across.found[0]) g.fillText(written(t, across.step), x(t), bottom + 5);
      }
      g.textAlign = "right"; g.fillText("s", right, bottom + 5);
      if (about.lanes.length) this.lanes(g, x, top, bottom, right);
      else this.lines(g, x, top, bottom, right, a, b);
      g.strokeStyle = theme.soft; g.strokeRect(LEFT, top, right - LEFT, bottom - top);
      this.marks(g, x, top, bottom, right);
      this.cursor(g, x, top, bottom, a, b);
    }

    bands(g, x, top, bottom, right) {
      this.about.bands.forEach(([from, to, name], i) => {
        const u = Math.max(LEFT, x(from)), v = Math.min(right, x(to));
        if (v <= u) return;
        if (i % 2) { g.fillStyle = theme.band; g.fillRect(u, top, v - u, bottom - top); }
        g.fillStyle = theme.soft; g.textAlign = "center"; g.textBaseline = "top";
        if (g.measureText(name).width < v - u - 4) g.fillText(name, 0.5 * (u + v), 2);
      });
    }

    lines(g, x, top, bottom, right, a, b) {
      let low = Infinity, high = -Infinity;
      const about = this.about, shown = about.lines.filter((line) => line.shown);
      for (const line of shown) {
        const end = Math.min(line.t.length - 1, first(line.t, b));
        for (let i = Math.max(0, first(line.t, a) - 1); i <= end; i++) {
          const inside = line.t[i] >= a && line.t[i] <= b ? line.y[i] : valueAt(line, line.t[i] < a ? a : b);
          if (inside < low) low = inside;
          if (inside > high) high = inside;
        }
      }
      if (about.scale && !this.group.seen) { low = Math.min(low, about.scale[0]); high = Math.max(high, about.scale[1]); }
      const span = high - low;
      for (const [value] of this.about.limits) { // a limit that is near is in sight
        if (value > high && value < high + 1.5 * span) high = value;
        if (value < low && value > low - 1.5 * span) low = value;
      }
      if (!(high >= low)) { low = 0; high = 1; }
      if (high - low < 1e-12 * Math.max(1, Math.abs(high))) { const room = 0.5 * Math.abs(high) || 0.5; low -= room; high += room; }
      const room = 0.06 * (high - low);
      low -= room; high += room;
      const y = (v) => bottom - (v - low) / (high - low) * (bottom - top);
      const up = ticks(low, high, (bottom - top) / 32);
      g.strokeStyle = theme.grid; g.fillStyle = theme.soft; g.textAlign = "right"; g.textBaseline = "middle"; g.lineWidth = 1;
      for (const v of up.found) {
        g.beginPath(); g.moveTo(LEFT, y(v)); g.lineTo(right, y(v)); g.stroke();
        g.fillText(written(v, up.step), LEFT - 5, y(v));
      }
      g.save();
      g.beginPath(); g.rect(LEFT, top, right - LEFT, bottom - top); g.clip();
      for (const [value, words] of this.about.limits) {
        g.strokeStyle = theme.bad; g.fillStyle = theme.bad; g.setLineDash([6, 3]); g.textAlign = "left"; g.textBaseline = "bottom";
        g.beginPath(); g.moveTo(LEFT, y(value)); g.lineTo(right, y(value)); g.stroke();
        g.fillText(words, LEFT + 4, y(value) - 1);
      }
      for (const line of shown) {
        g.strokeStyle = theme.lines[line.colour]; g.lineWidth = printing ? 1 : 1.3; g.setLineDash(line.dash ? [5, 3] : []); g.lineJoin = "round";
        g.beginPath();
        let pen = false;
        const end = Math.min(line.t.length, first(line.t, b) + 1);
        for (let i = Math.max(0, first(line.t, a) - 1); i < end; i++) {
          if (Number.isNaN(line.y[i])) { pen = false; continue; }
          if (pen) g.lineTo(x(line.t[i]), y(line.y[i])); else g.moveTo(x(line.t[i]), y(line.y[i]));
          pen = true;
        }
        g.stroke();
      }
      g.restore();
      g.setLineDash([]);
    }

    lanes(g, x, top, bottom, right) {
      const all = this.about.lanes, tall = (bottom - top) / all.length;
      all.forEach(({ name, spans, colour }, i) => {
        const middle = top + (i + 0.5) * tall;
        g.fillStyle = theme.lines[colour];
        for (const [from, to] of spans) {
          const u = Math.max(LEFT, x(from)), v = Math.min(right, Math.max(x(to), x(from) + 1));
          if (v > u) g.fillRect(u, middle - 0.36 * tall, v - u, 0.72 * tall);
        }
        g.textBaseline = "middle";
        if (LEFT > 60) { g.textAlign = "right"; g.fillStyle = theme.ink; g.fillText(name, LEFT - 6, middle); return; }
        g.textAlign = "left"; // a narrow window has no room beside it
        g.fillStyle = theme.paper; g.globalAlpha = 0.8; g.fillRect(LEFT + 2, middle - 7, g.measureText(name).width + 4, 14); g.globalAlpha = 1;
        g.fillStyle = theme.ink; g.fillText(name, LEFT + 4, middle);
      });
    }

    marks(g, x, top, bottom, right) {
      const labels = []; // moments that are close share one
      for (const [t, words, kind] of this.about.marks) {
        if (x(t) < LEFT || x(t) > right) continue;
        g.strokeStyle = g.fillStyle = kind === "bad" ? theme.bad : kind === "good" ? theme.good : theme.ink;
        g.setLineDash([2, 3]); g.beginPath(); g.moveTo(x(t), top); g.lineTo(x(t), bottom); g.stroke(); g.setLineDash([]);
        const last = labels[labels.length - 1];
        if (last && x(t) < last.at + g.measureText(last.words).width + 8) last.words += `, ${words}`;
        else labels.push({ at: x(t), words, tone: g.fillStyle });
      }
      if (this.about.bands.length) return; // their names stand there
      g.textAlign = "left"; g.textBaseline = "top";
      for (const { at, words, tone } of labels) {
        g.fillStyle = tone;
        g.fillText(words, Math.max(LEFT, Math.min(at + 3, right - g.measureText(words).width)), 2);
      }
    }

    cursor(g, x, top, bottom, a, b) {
      const t = this.group.cursor;
      if (t === null || t < a || t > b) return;
      g.strokeStyle = theme.ink; g.lineWidth = 1;
      g.beginPath(); g.moveTo(x(t), top); g.lineTo(x(t), bottom); g.stroke();
      if (this.from !== undefined) {
        g.fillStyle = theme.ink; g.globalAlpha = 0.12;
        g.fillRect(Math.min(x(this.from), x(t)), top, Math.abs(x(t) - x(this.from)), bottom - top);
        g.globalAlpha = 1;
      }
      g.fillStyle = theme.ink; g.textAlign = x(t) > LEFT + 60 ? "right" : "left"; g.textBaseline = "bottom";
      g.fillText(`${t.toFixed(3)} s`, x(t) + (x(t) > LEFT + 60 ? -3 : 3), bottom - 2);
      this.values(g, x, top, t, x(t) < 0.5 * (x(a) + x(b)));
    }

    // what the lines are at the cursor, on the side where it is not
    values(g, x, top, t, right) {
      const rows = this.about.lines.filter((line) => line.shown).map((line) => [line, valueAt(line, t)]).filter(([, v]) => !Number.isNaN(v)).slice(0, 12);
      if (!rows.length) return;
      const words = rows.map(([line, v]) => `${line.name || (line.dash ? "dashed" : "")} ${v.toPrecision(4)}`.trim());
      const wide = Math.max(...words.map((w) => g.measureText(w).width)) + 10, [a, b] = this.range();
      const from = right ? x(b) - wide - 4 : x(a) + 4;
      g.fillStyle = theme.paper; g.globalAlpha = 0.88; g.fillRect(from, top + 3, wide, 13 * rows.length + 4); g.globalAlpha = 1;
      g.textAlign = "left"; g.textBaseline = "top";
      rows.forEach(([line], i) => { g.fillStyle = theme.lines[line.colour]; g.fillText(words[i], from + 5, top + 6 + 13 * i); });
    }
  }

  const every = (what) => { for (const group of groups.values()) for (const plot of group.plots) what(plot); };
  const redraw = () => { colours(); every((plot) => plot.draw()); };

  async function start() {
    colours();
    for (const figure of document.querySelectorAll("figure.plot")) {
      const about = JSON.parse(figure.querySelector("script").textContent);
      if (about.data) unpacked(await inflated(about.data), about);
      new Plot(figure, about);
    }
    redraw();
    document.documentElement.dataset.curves = "drawn";
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  matchMedia("print").addEventListener("change", (e) => { printing = e.matches; redraw(); });
  window.addEventListener("beforeprint", () => { for (const d of document.querySelectorAll("details")) d.open = true; printing = true; redraw(); });
  window.addEventListener("afterprint", () => { printing = false; redraw(); });
  window.hilCurves = { groups };
  start();
})();
