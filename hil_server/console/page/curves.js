// Curves of the selected channels past a fixed yellow line, which is now: right to left (or left to right by option). Every pixel column
// shows the smallest and the largest value that it stands for: an envelope, in which no peak is lost and noise is a band, not wool. Capture: a
// white dashed line. Keys, when the picture has the focus: + and - change the time scale.
import { describe, fit, font } from "/hil/wires.js";

export const COLOURS = ["#4fc3f7", "#ffb74d", "#aed581", "#ce93d8", "#fff176", "#ef9a9a", "#80cbc4", "#b0bec5"];

// points [t, smallest, largest] -> per pixel column [u, smallest, largest], in the order of u; a column without a point is left out
export function columns(points, onto, left, right) {
  const found = new Map();
  for (const [t, low, high] of points) {
    if (low === null || low === undefined) continue;
    const u = Math.round(onto(t));
    if (u < left - 1 || u > right + 1) continue;
    const before = found.get(u);
    if (!before) found.set(u, [u, low, high]);
    else (before[1] = Math.min(before[1], low)), (before[2] = Math.max(before[2], high));
  }
  return [...found.values()].sort((a, b) => a[0] - b[0]);
}
window.hilColumns = columns;

// a unit of a channel whose first three components have another than the rest is written "N,N.m"
function unitOf(units, name) {
  const [base, index] = name.split("["), both = (units[base] || "").split(",");
  return both[both.length > 1 && parseInt(index) > 2 ? 1 : 0];
}

export function curves(element, options, { send, schedule }) {
  element.classList.add("live");
  const canvas = describe(element, "course of the chosen channels");
  element.tabIndex = 0;
  element.setAttribute("role", "group");
  element.setAttribute("aria-label", "curves: plus and minus change the time scale");
  const layout = window.hilLayout;
  let span = layout?.span || options.seconds || 20;
  let asked = "", bands = null;
  const stretch = (factor) => {
    span = Math.min(600, Math.max(0.2, span * factor));
    window.hilKeep?.({ span });
    schedule();
  };
  canvas.addEventListener("wheel", (event) => (event.preventDefault(), stretch(Math.exp(event.deltaY / 800))), { passive: false });
  element.addEventListener("keydown", (event) => {
    const factor = { "+": 0.8, "=": 0.8, "-": 1.25 }[event.key];
    if (factor) event.preventDefault(), stretch(factor);
  });
  // a channel that is dragged here is plotted
  element.addEventListener("dragover", (event) => event.preventDefault());
  element.addEventListener("drop", (event) => (event.preventDefault(), window.hilAdd?.(event.dataTransfer.getData("text/plain"))));

  return {
    things: () => (asked = ""),
    draw({ frame, log, curves: fetched, selected, values, facts }) {
      const context = fit(canvas);
      const { width, height } = canvas;
      if (!frame) return;
      const names = log ? fetched?.names || [] : selected;
      context.font = font(12, "monospace");
      const em = context.measureText("0").width, line = 2 * em;
      const left = Math.ceil(Math.min(0.35 * width, 24 * em)), wide = width - left - 6;
      const place = log ? 0.5 : options.live_line || 0.85; // of a live run nothing is known beyond now
      const way = window.hilLeftToRight ? -1 : 1;
      const t = frame.t;
      const scale = wide / span;
      const onto = (at) => left + wide * (way > 0 ? place : 1 - place) + way * scale * (at - t);
      if (log) {
        const from = t - span * place, to = t + span * (1 - place);
        const key = `${(window.hilSelect || []).join()} ${Math.floor(from / span)} ${span}`;
        if (key !== asked) {
          asked = key;
          send({ curves: [from - span, to + span] });
        }
      }
      const foot = 2 * em + 4, tall = (height - foot) / Math.max(1, names.length);
      const units = (log ? log.units : facts?.units) || {};
      names.forEach((name, i) => {
        const points = log ? (fetched.data[i] || []).map(([at, v]) => [at, v, v]) : values.map((row) => [row[0], row[2 * i + 1], row[2 * i + 2]]);
        const band = columns(points, onto, left, left + wide);
        let low = Infinity, high = -Infinity;
        for (const [, a, b] of band) (low = Math.min(low, a)), (high = Math.max(high, b));
        if (!isFinite(low)) (low = -1), (high = 1);
        if (!(high > low)) (low -= 0.5 * (Math.abs(low) || 1)), (high += 0.5 * (Math.abs(high) || 1));
        const top = i * tall + 4, y = (v) => top + (tall - 10) * (1 - (v - low) / (high - low));
        context.strokeStyle = "#37474f";
        context.strokeRect(left, top, wide, tall - 8);
        if (low < 0 && high > 0) {
          context.beginPath();
          context.moveTo(left, y(0));
          context.lineTo(left + wide, y(0));
          context.stroke();
        }
        context.save();
        context.beginPath();
        context.rect(left, top - 2, wide, tall);
        context.clip();
        const colour = COLOURS[i % COLOURS.length];
        context.fillStyle = context.strokeStyle = colour;
        context.lineWidth = 1.3;
        context.globalAlpha = 0.4;
        // of a live run half a second without a message is a gap
        const parts = [];
        band.forEach((column, k) => (k && (log || column[0] - band[k - 1][0] <= Math.max(3, 0.5 * scale)) ? parts.at(-1).push(column) : parts.push([column])));
        for (const part of parts) {
          context.beginPath();
          part.forEach(([u, , b], k) => (k ? context.lineTo(u, y(b)) : context.moveTo(u, y(b))));
          for (let k = part.length - 1; k >= 0; k--) context.lineTo(part[k][0], y(part[k][1]));
          context.closePath();
          context.fill();
        }
        context.globalAlpha = 1;
        context.beginPath();
        for (const part of parts) for (const which of [1, 2]) part.forEach((column, k) => (k ? context.lineTo(column[0], y(column[which])) : context.moveTo(column[0], y(column[which]))));
        context.stroke();
        context.restore();
        context.fillStyle = colour;
        context.fillText(name, 6, top + 1.6 * em);
        // the value of the frame's own tick: the curve is thinned, and its last point before the cursor may be another tick's
        const value = frame.selected?.[frame.names.indexOf(name)] ?? NaN;
        const unit = unitOf(units, name);
        context.fillText(isNaN(value) ? "–" : value.toPrecision(5), 6, top + 1.6 * em + line);
        if (unit && unit !== "-") {
          context.fillStyle = "#b0bec5";
          context.fillText(unit, 6 + 12 * em, top + 1.6 * em + line);
        }
        context.fillStyle = "#b0bec5";
        if (tall > 3.4 * line) {
          context.textAlign = "right";
          context.fillText(high.toPrecision(3), left - 6, top + 1.6 * em);
          context.fillText(low.toPrecision(3), left - 6, top + tall - 12);
          context.textAlign = "left";
        }
      });
      context.lineWidth = 1;
      if (frame.capture_time >= 0 && onto(frame.capture_time) > left && onto(frame.capture_time) < left + wide) {
        context.strokeStyle = "#ffffff";
        context.setLineDash([6, 5]);
        context.beginPath();
        context.moveTo(onto(frame.capture_time), 0);
        context.lineTo(onto(frame.capture_time), height - foot);
        context.stroke();
        context.setLineDash([]);
      }
      context.strokeStyle = "#ffeb3b";
      context.lineWidth = 2;
      context.beginPath();
      context.moveTo(onto(t) - (place === 1 ? 1 : 0), 0);
      context.lineTo(onto(t) - (place === 1 ? 1 : 0), height - foot);
      context.stroke();
      context.lineWidth = 1;
      context.fillStyle = "#b0bec5";
      const step = [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100].find((u) => u * scale > 8 * em) || 200;
      const ends = [t - (onto(t) - left) / scale, t + (left + wide - onto(t)) / scale];
      if (way < 0) ends.reverse();
      for (let at = Math.ceil(Math.min(...ends) / step) * step; at < Math.max(...ends); at += step) {
        const u = onto(at);
        if (u > left && u < left + wide - 5 * em) context.fillText(`${at.toFixed(step < 1 ? 2 : 0)} s`, u - 8, height - 5);
      }
      context.fillText(names.length ? "wheel, + -: time scale" : "choose channels to plot", 6, height - 5);
    },
  };
}
