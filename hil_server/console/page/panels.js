// Header, banner, numbers, flags, bars and the arm: everything that shows a frame without a history.
import { fill, html } from "/hil/markup.js";
import { describe, fit, font } from "/hil/wires.js";

const RED = "#ff8a65", BLUE = "#42a5f5", GREY = "#90a4ae", WHITE = "#eceff1", ORANGE = "#ffb74d";
const text = (element, value) => { if (element.textContent !== value) element.textContent = value; };

const WORDS = { gone: "no console", log: "log", live: "live", none: "no run", ended: "run ended", lost: "connection lost", old: "old", joining: "connecting" };

// run, how its data are, age of the picture, answer to the last command, ABORT
function header(element, options, { command, commands, picture, link, old }) {
  fill(element, html`<span class="hil-run"></span><span class="hil-badge"></span><span class="hil-picture" title="from the tick to the pixel, median of the last 300 pictures"></span>
    <span class="hil-answer" role="status"></span><button id="abort" class="hil-abort" aria-keyshortcuts="Alt+A" title="trips the run at once (Alt+A)">ABORT</button>`);
  const [run, badge, age, answer, button] = element.children;
  const press = () => {
    button.classList.add("pressed");
    setTimeout(() => button.classList.remove("pressed"), 400);
    command("abort");
  };
  button.addEventListener("pointerdown", press); // with the finger's or the mouse's first touch, not with its release
  button.addEventListener("click", (event) => {
    if (event.detail === 0) press(); // by keyboard: a click of the pointer has its count
  });
  return {
    draw({ head, answer: last, log, shows }) {
      const now = link();
      button.hidden = !commands();
      text(run, log ? `log ${shows}` : !head.run || head.run === "no run" ? "no run" : `run ${head.run}`);
      text(badge, now === "old" ? `${old().toFixed(1)} s old` : WORDS[now]);
      badge.dataset.link = now;
      const { age: p50, rate, count } = picture();
      text(age, now === "live" && count > 5 ? `picture ${p50.toFixed(0)} ms old (p50), ${rate.toFixed(0)}/s` : "");
      if (last) {
        text(answer, last.answer + (last.round ? ` (${last.round.toFixed(0)} ms there and back)` : ""));
        answer.classList.toggle("bad", !last.good);
      }
    },
  };
}

// what must be seen whatever else is on the page; nothing of it fades: a trip, a run that ended, data that stopped, a console that is gone
function banner(element, options, { link, old }) {
  element.setAttribute("role", "alert");
  const time = (seconds) => (seconds < 100 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds / 60)} min`);
  const tripped = (where, { tick, t, faults }) => {
    const [first, ...others] = faults;
    const also = others.length ? ` In the same tick: ${others.map((fault) => fault.name).join(", ")}.` : "";
    const why = first ? `${first.name}: ${first.meaning}. What to do: ${first.action}.` : "by a fault that its table does not name.";
    return ["trip", `${where} TRIPPED at tick ${tick}, ${t.toFixed(3)} s: ${why}${also}`];
  };
  return {
    draw({ head, heard, log, shows }) {
      const now = link(), lines = [];
      if (now === "gone") lines.push(["trip", `CONSOLE DOES NOT ANSWER for ${time((performance.now() - heard) / 1000)}: this page is old, and its ABORT does not reach the run. Use the emergency button; then type: hil-server console, and load this page again.`]);
      if (log?.trip) lines.push(tripped(`Log ${shows}`, log.trip));
      if (head.trip) lines.push(tripped(`Run ${head.run}`, head.trip));
      if (now === "ended") lines.push(["calm", `Run ${head.run} has ended: ${head.end}. The values are its last ones, ${time(old())} old. What it did: hil-server report ${head.log || "LOG"}, or the view Replay. The next run shows here by itself.`]);
      if (now === "lost") lines.push(["warn", `CONNECTION LOST to run ${head.run}: no data for ${time(old())}, and it has not reported its end. The stand may be moving: ABORT is still tried, else use the emergency button. Look at the terminal of hil-server run; the page continues when data arrive again.`]);
      if (now === "none") lines.push(["calm", `No run yet: nothing has come from ${head.from} since this console was started. Type in another terminal: hil-server run (or hil-server fly to fly one by hand); it shows here by itself.`]);
      if (element.children.length !== lines.length) element.replaceChildren(...lines.map(() => document.createElement("div")));
      lines.forEach(([kind, words], i) => {
        element.children[i].className = kind;
        text(element.children[i], words);
      });
    },
  };
}

// tables of numbers; options.groups: which; options.after: shown instead of options.before once captured
function numbers(element, options) {
  element.classList.add("live", "hil-numbers");
  const cells = new Map();
  const shown = (frame) => [...(options.groups || []), ...((frame?.capture_time >= 0 ? options.after : options.before) || [])];
  return {
    things({ things }) {
      element.replaceChildren();
      cells.clear();
      for (const i of new Set([...(options.groups || []), ...(options.before || []), ...(options.after || [])])) {
        const { title, rows } = things.numbers[i];
        if (!rows.length) continue; // a unit without analogue signals
        const box = element.appendChild(document.createElement("div"));
        fill(box, html`<div class="hil-title">${title}</div>${rows.map(([label, unit]) => html`<div class="hil-row"><span>${label}</span><b>–</b><i>${unit}</i></div>`)}`);
        cells.set(i, { box, rows, values: [...box.querySelectorAll("b")] });
      }
    },
    draw({ frame }) {
      const on = shown(frame);
      for (const [i, { box, rows, values }] of cells) {
        box.style.display = on.includes(i) ? "" : "none";
        const row = frame?.numbers?.[i];
        values.forEach((cell, k) => text(cell, row && k < row.length ? row[k].toFixed(rows[k][2]) : "–"));
      }
    },
  };
}

// words: phase, signals of the mechanism, times
function words(element) {
  element.classList.add("live", "hil-words");
  return {
    draw({ frame }) {
      if (!frame?.words) return;
      const time = (t) => (t >= 0 ? `${t.toFixed(3)} s` : "–");
      const lamp = (name, on) => html`<span class="hil-lamp ${on ? "on" : ""}">${on ? "●" : "○"} ${name}</span>`;
      const phase = frame.words.phase === "contact" && frame.first_contact_time < 0 ? "contact (no touch yet)" : frame.words.phase;
      fill(element, html`${Object.entries(frame.flags).map(([n, on]) => lamp(n, on))}${lamp("contact", frame.contact)}${lamp("capture", frame.capture_time >= 0)}
        <span>phase <b>${phase}</b></span><span>T contact <b>${time(frame.first_contact_time)}</b></span><span>T capture <b>${time(frame.capture_time)}</b></span>
        <span>T current <b class="time-shown">${frame.t.toFixed(3)} s</b></span>`);
    },
  };
}

// dampers: to the right positive, to the left negative, filled by value over limit; options.place chooses which
function bars(element, options) {
  element.classList.add("live");
  const canvas = describe(element, options.place === "spring" ? "latches" : `dampers, ${options.place}`);
  return {
    draw({ things, frame }) {
      const context = fit(canvas);
      const { width, height } = canvas;
      if (!things) return;
      context.font = font(11);
      const chosen = things.bars.map((bar, i) => [bar, frame?.bars?.[i]]).filter(([bar]) => bar.place === options.place);
      const upright = options.place === "spring";
      const step = Math.min(upright ? width / Math.max(1, chosen.length) : 30, (upright ? width : height) / Math.max(1, chosen.length));
      chosen.forEach(([bar, at], k) => {
        const part = at ? Math.max(-1, Math.min(1, at.value / bar.limit)) : 0;
        context.strokeStyle = GREY;
        context.fillStyle = at ? (options.place === "spring" ? "#f48fb1" : part < 0 ? BLUE : RED) : GREY;
        const label = at ? `${at.value.toFixed(bar.limit < 1 ? 4 : 2)} ${bar.unit}` : "not measured";
        if (upright) {
          const x = k * step + step / 2 - 14, top = 30, tall = height - 66;
          context.strokeRect(x, top, 28, tall);
          context.fillRect(x, top + tall * (1 - Math.abs(part)), 28, tall * Math.abs(part));
          context.fillStyle = WHITE;
          context.textAlign = "center";
          context.fillText(bar.label, x + 14, 14);
          context.fillText(at ? (1000 * at.value).toFixed(1) + " mm" : "–", x + 14, height - 22);
          (at?.flags || []).forEach((on, f) => {
            context.fillStyle = on ? (f ? BLUE : RED) : "#37474f";
            context.fillRect(x + 2 + f * 14, height - 14, 10, 8);
          });
        } else {
          const y = k * step + 4, left = 92, wide = Math.max(20, width - left - 100), middle = left + wide / 2;
          context.strokeRect(left, y, wide, step - 12);
          context.fillRect(part < 0 ? middle + (part * wide) / 2 : middle, y, Math.abs((part * wide) / 2), step - 12);
          context.strokeStyle = WHITE;
          context.beginPath();
          context.moveTo(middle, y - 2);
          context.lineTo(middle, y + step - 10);
          context.stroke();
          context.fillStyle = at ? WHITE : GREY;
          context.textAlign = "right";
          context.fillText(bar.label, left - 6, y + step / 2 - 2);
          context.textAlign = "left";
          context.fillText(label, left + wide + 6, y + step / 2 - 2);
        }
      });
      context.textAlign = "left";
    },
  };
}

// where head, hinge and base are across the axis, seen from the head
function lateral(element) {
  element.classList.add("live");
  const canvas = describe(element, "head, hinge and base across the axis");
  return {
    draw({ things, frame }) {
      const context = fit(canvas);
      const { width, height } = canvas;
      if (!things || !frame?.bodies) return;
      const scale = (0.9 * Math.min(width, height)) / (2 * Math.max(0.1, 0.35 * things.extent));
      const onto = ([, y, z]) => [width / 2 + scale * z, height / 2 - scale * y];
      context.strokeStyle = "#37474f";
      for (const r of [0.25, 0.5, 0.75, 1]) {
        context.beginPath();
        context.arc(width / 2, height / 2, (r * Math.min(width, height)) / 2.2, 0, 7);
        context.stroke();
      }
      context.font = font(11);
      context.fillStyle = GREY;
      context.fillText(`across the axis, outer circle ${((Math.min(width, height) / 2.2 / scale) * 1000).toFixed(0)} mm`, 6, 13);
      const points = ["head", "swing", "A"].filter((b) => frame.bodies[b]).map((b) => [b, onto(frame.bodies[b])]);
      context.strokeStyle = ORANGE;
      context.beginPath();
      points.forEach(([, [u, v]], i) => (i ? context.lineTo(u, v) : context.moveTo(u, v)));
      context.stroke();
      points.forEach(([name, [u, v]], i) => {
        if (name === "swing" && frame.bodies.A && frame.bodies.swing[1] === frame.bodies.A[1]) return;
        context.fillStyle = i ? ORANGE : WHITE;
        context.beginPath();
        context.arc(u, v, 4, 0, 7);
        context.fill();
        const left = name === "head"; // labels apart, for the points often lie on one another
        context.textAlign = left ? "right" : "left";
        context.fillText({ head: "1 head", swing: "2 hinge", A: "3 base" }[name], u + (left ? -8 : 8), v + (name === "A" ? 14 : 4));
        context.textAlign = "left";
      });
    },
  };
}

// the manipulator: from the side and from above, joints with limits, how near a singular configuration
function arm(element) {
  element.classList.add("live");
  const canvas = describe(element, "the manipulator from the side and from above, its joints");
  element.style.display = "none";
  return {
    things: ({ things }) => (element.style.display = things.arm ? "" : "none"),
    draw({ things, frame }) {
      if (!things?.arm) return;
      const context = fit(canvas);
      const { width, height } = canvas;
      context.font = font(11);
      context.fillStyle = GREY;
      if (!frame?.arm) return context.fillText("no joint angles in this run", 8, 16);
      const { places, q, near, sigma, limiting } = frame.arm;
      // the joints' table beside the two pictures, which stand side by side where there is room, else one above the other
      const table = Math.max(212, Math.floor(width * 0.5)), room = width - table, above = room < 230;
      const wideBox = above ? room : Math.floor(room / 2), highBox = above ? height / 2 : height;
      [["side: X right, Z up", 0, 2], ["top: X right, Y up", 0, 1]].forEach(([title, a, b], k) => {
        const us = places.map((p) => p[a]), vs = places.map((p) => p[b]);
        const span = Math.max(Math.max(...us) - Math.min(...us), Math.max(...vs) - Math.min(...vs), 0.2 * things.arm.reach);
        const scale = (0.78 * Math.min(wideBox, highBox - 24)) / span, x0 = above ? 0 : k * wideBox, y0 = above ? k * highBox : 0;
        const mu = (Math.max(...us) + Math.min(...us)) / 2, mv = (Math.max(...vs) + Math.min(...vs)) / 2;
        const onto = (p) => [x0 + wideBox / 2 + scale * (p[a] - mu), y0 + highBox / 2 + 8 - scale * (p[b] - mv)];
        context.fillStyle = GREY;
        context.fillText(title, x0 + 6, y0 + 13);
        context.strokeStyle = ORANGE;
        context.lineWidth = 3;
        context.beginPath();
        places.forEach((p, i) => (i ? context.lineTo(...onto(p)) : context.moveTo(...onto(p))));
        context.stroke();
        context.lineWidth = 1;
        places.forEach((p, i) => {
          context.fillStyle = i === 0 ? BLUE : i === places.length - 1 ? RED : WHITE;
          context.beginPath();
          context.arc(...onto(p), 3.5, 0, 7);
          context.fill();
        });
      });
      const left = room + 92, wide = Math.max(40, width - left - 56), step = Math.min(22, (height - 58) / q.length);
      q.forEach((angle, i) => {
        const low = things.arm.low[i] ?? -Math.PI, high = things.arm.high[i] ?? Math.PI, y = 6 + i * step;
        context.strokeStyle = GREY;
        context.strokeRect(left, y, wide, step - 8);
        context.fillStyle = near[i] ? RED : BLUE;
        context.fillRect(left + wide * Math.max(0, Math.min(1, (angle - low) / (high - low))) - 2, y - 1, 5, step - 6);
        context.fillStyle = limiting === i ? RED : WHITE;
        context.textAlign = "right";
        context.fillText(things.arm.joints[i], left - 6, y + step - 10);
        context.textAlign = "left";
        context.fillText(`${((angle * 180) / Math.PI).toFixed(1)}°`, left + wide + 6, y + step - 10);
      });
      const y = 6 + q.length * step + 12;
      context.fillStyle = sigma !== undefined && sigma !== null && sigma < 0.05 ? RED : WHITE;
      context.fillText(sigma === undefined || sigma === null ? "" : `smallest singular value ${sigma.toFixed(3)}`, room + 12, y);
      context.fillStyle = WHITE;
      const tip = frame.arm.tip, load = frame.arm.wrench;
      if (tip.length >= 3) context.fillText(`tip ${tip.slice(0, 3).map((x) => x.toFixed(3)).join("  ")} m`, room + 12, y + 14);
      if (load.length >= 6) context.fillText(`load ${Math.hypot(...load.slice(0, 3)).toFixed(0)} N  ${Math.hypot(...load.slice(3)).toFixed(0)} N.m`, room + 12, y + 28);
    },
  };
}

export const views = { header, banner, numbers, words, bars, lateral, arm };
