// Curves of the selected variables past a fixed yellow line, which is now: right to left (or left to right by option). Capture: a white dashed line.
import { fit } from "/hil/wires.js";

const COLOURS = ["#4fc3f7", "#ffb74d", "#aed581", "#ce93d8", "#fff176", "#ef9a9a"];

export function curves(element, options, { send, schedule }) {
  element.classList.add("live");
  const canvas = element.appendChild(document.createElement("canvas"));
  let span = options.seconds || 20;
  let asked = "";
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    span = Math.min(600, Math.max(0.2, span * Math.exp(event.deltaY / 800)));
    schedule();
  }, { passive: false });

  return {
    things: () => (asked = ""),
    draw({ frame, log, curves: fetched, selected, values }) {
      const context = fit(canvas);
      const { width, height } = canvas;
      if (!frame) return;
      const left = 210, wide = width - left - 6;
      const line = log ? 0.5 : 0.85; // of a live run nothing is known beyond now
      const way = window.hilLeftToRight ? -1 : 1;
      const t = frame.t;
      const scale = wide / span;
      const onto = (at) => left + wide * (way > 0 ? line : 1 - line) + way * scale * (at - t);
      let names = selected, series = [];
      if (log) {
        const from = t - span * line, to = t + span * (1 - line);
        const key = `${(window.hilSelect || []).join()} ${Math.floor(from / span)} ${span}`;
        if (key !== asked) {
          asked = key;
          send({ curves: [from - span, to + span] });
        }
        names = fetched?.names || [];
        series = fetched?.data || [];
      } else series = names.map((_, i) => values.map((row) => [row[0], row[i + 1]]));
      const tall = (height - 18) / Math.max(1, names.length);
      context.font = "11px monospace";
      names.forEach((name, i) => {
        const points = series[i] || [];
        const seen = points.filter(([at]) => onto(at) >= left - 20 && onto(at) <= left + wide + 20);
        let low = Infinity, high = -Infinity;
        for (const [, v] of seen) (low = Math.min(low, v)), (high = Math.max(high, v));
        if (!(high > low)) (low -= 0.5), (high += 0.5);
        if (!isFinite(low)) (low = -1), (high = 1);
        const top = i * tall + 4, y = (v) => top + (tall - 10) * (1 - (v - low) / (high - low));
        context.strokeStyle = "#263238";
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
        context.strokeStyle = COLOURS[i % COLOURS.length];
        context.lineWidth = 1.4;
        context.beginPath();
        seen.forEach(([at, v], k) => {
          if (k) context.lineTo(onto(at), y(v));
          else context.moveTo(onto(at), y(v));
        });
        context.stroke();
        context.restore();
        context.fillStyle = COLOURS[i % COLOURS.length];
        context.fillText(name, 6, top + 12);
        // the value of the frame's own tick: the curve is thinned, and its last point before the cursor may be another tick's
        const value = frame.selected?.[frame.names.indexOf(name)] ?? NaN;
        context.fillText(isNaN(value) ? "–" : value.toPrecision(5), 6, top + 26);
        context.fillStyle = "#78909c";
        if (tall > 40) {
          context.textAlign = "right";
          context.fillText(high.toPrecision(3), left - 6, top + 10);
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
        context.lineTo(onto(frame.capture_time), height - 16);
        context.stroke();
        context.setLineDash([]);
      }
      context.strokeStyle = "#ffeb3b";
      context.lineWidth = 2;
      context.beginPath();
      context.moveTo(onto(t), 0);
      context.lineTo(onto(t), height - 16);
      context.stroke();
      context.lineWidth = 1;
      context.fillStyle = "#90a4ae";
      const unit = [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100].find((u) => u * scale > 60) || 200;
      const ends = [t - (onto(t) - left) / scale, t + (left + wide - onto(t)) / scale];
      for (let at = Math.ceil(ends[0] / unit) * unit; at < ends[1]; at += unit) {
        const u = onto(at);
        if (u > left && u < left + wide - 20) context.fillText(at.toFixed(unit < 1 ? 2 : 0), u - 8, height - 4);
      }
      context.fillText(names.length ? "wheel: time scale" : "select variables to plot", 6, height - 4);
    },
  };
}
