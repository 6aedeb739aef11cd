// What an operator flies by: range, closing rate, corridor and angles as instruments with units, the answers to commands, "again". Inside and
// outside are shown by a word and a shape, not by colour alone.
import { fill, html } from "/hil/markup.js";
const text = (element, value) => { if (element.textContent !== value) element.textContent = value; };

// label, unit, digits, factor to the unit shown; value and limit out of the frame's numbers and the run's limits: [middle, width] in SI, or null
const GAUGES = [
  { key: "rate", label: "closing rate", unit: "mm/s", digits: 1, factor: 1000, value: (n) => n[1][0], band: (l) => [l.velocity_x_nominal_m_s ?? 0, l.velocity_x_m_s] },
  { key: "roll", label: "roll", unit: "°", digits: 2, factor: 1, value: (n) => n[0][5], band: (l) => [0, l.roll_deg] },
  { key: "yaw", label: "yaw", unit: "°", digits: 2, factor: 1, value: (n) => n[0][3], band: (l) => [0, l.yaw_deg] },
  { key: "pitch", label: "pitch", unit: "°", digits: 2, factor: 1, value: (n) => n[0][4], band: (l) => [0, l.pitch_deg] },
];

function instruments(element) {
  element.classList.add("hil-instruments");
  fill(element, html`<div class="hil-range"><span>range along the axis</span><output>–</output><i>m</i></div>
    <div class="hil-gauges">${GAUGES.map((g) => html`<div class="hil-gauge" data-gauge="${g.key}"><span>${g.label}</span><output>–</output><i>${g.unit}</i><b></b>
      <div class="hil-scale" aria-hidden="true"><div class="hil-band"></div><div class="hil-zero"></div><div class="hil-mark"></div></div></div>`)}</div>
    <div class="hil-corridor"><svg viewBox="-120 -120 240 240" role="img" aria-label="corridor: the port across the axis, Y up, Z to the right">
      <rect class="hil-limit" /><path d="M-110 0H110M0 -110V110" /><circle class="hil-ring" r="55" /><circle class="hil-ring" r="110" />
      <line class="hil-drift" /><g class="hil-spot"><circle r="9" /><path d="M-15 0H15M0 -15V15" /></g></svg>
      <div><span>corridor</span><b></b><span class="hil-miss">y <output></output> <i>mm</i></span> <span class="hil-miss">z <output></output> <i>mm</i></span><small></small></div></div>`);
  const range = element.querySelector(".hil-range output"), gauges = [...element.querySelectorAll(".hil-gauge")];
  const corridor = element.querySelector(".hil-corridor"), state = corridor.querySelector("b"), [y, z] = corridor.querySelectorAll("output"), scale = corridor.querySelector("small");
  const rect = corridor.querySelector(".hil-limit"), spot = corridor.querySelector(".hil-spot"), drift = corridor.querySelector(".hil-drift");
  let outside = null;
  const judge = (place, inside) => {
    text(place, inside === null ? "" : inside ? "inside" : "▲ OUTSIDE");
    place.parentElement.classList.toggle("out", inside === false);
  };
  return {
    draw({ things, frame, log }) {
      const n = frame?.numbers;
      if (!n?.[0] || !n[1]) return;
      const limits = things.limits || {};
      text(range, (-n[0][0]).toFixed(3));
      const states = [];
      GAUGES.forEach((g, i) => {
        const value = g.value(n), [middle, width] = g.band(limits), known = width > 0;
        const full = 2 * (known ? Math.abs(middle) + width : Math.max(0.02, Math.abs(value))), inside = known ? Math.abs(value - middle) <= width : null;
        const box = gauges[i], at = (v) => `${50 + 50 * Math.max(-1, Math.min(1, v / full))}%`;
        text(box.querySelector("output"), (g.factor * value).toFixed(g.digits));
        judge(box.querySelector("b"), inside);
        states.push(inside);
        const band = box.querySelector(".hil-band");
        band.style.display = known ? "" : "none";
        if (known) (band.style.left = at(middle - width)), (band.style.right = `calc(100% - ${at(middle + width)})`);
        box.querySelector(".hil-mark").style.left = at(value);
      });
      const [, py, pz] = n[0], ly = limits.lateral_y_m, lz = limits.lateral_z_m, known = ly > 0 && lz > 0;
      const full = 2 * Math.max(known ? Math.max(ly, lz) : 0, known ? 0 : Math.hypot(py, pz), 0.02), k = 110 / full, clip = (v) => Math.max(-112, Math.min(112, v));
      rect.style.display = known ? "" : "none";
      if (known) for (const [name, value] of [["x", -k * lz], ["y", -k * ly], ["width", 2 * k * lz], ["height", 2 * k * ly]]) rect.setAttribute(name, value);
      const u = clip(k * pz), v = clip(-k * py);
      spot.setAttribute("transform", `translate(${u} ${v})`);
      for (const [name, value] of [["x1", u], ["y1", v], ["x2", clip(u + 10 * k * n[1][2])], ["y2", clip(v - 10 * k * n[1][1])]]) drift.setAttribute(name, value);
      text(y, (1000 * py).toFixed(0));
      text(z, (1000 * pz).toFixed(0));
      text(scale, `outer circle ${(1000 * full).toFixed(0)} mm; the line: ten seconds of drift`);
      const inside = known ? Math.abs(py) <= ly && Math.abs(pz) <= lz : null;
      judge(state, inside);
      states.push(inside);
      const now = states.includes(false);
      if (!log && now && outside === false) window.hilSound?.("outside");
      outside = now;
    },
  };
}

// results of the last commands, newest first: taken by whom and when, or why not
function answers(element) {
  fill(element, html`<ol class="hil-answers" aria-label="answers to commands"></ol>`);
  const list = element.firstChild;
  let shown = null;
  return {
    draw({ answers: all }) {
      if (all[0] === shown) return;
      shown = all[0];
      list.replaceChildren();
      for (const { answer, good, when, round } of all.slice(0, 4)) {
        const line = list.appendChild(document.createElement("li"));
        line.className = good ? "" : "bad";
        line.textContent = `${good ? "✓" : "✗ refused:"} ${answer}${round ? `, ${round.toFixed(0)} ms` : ""} (${when.toTimeString().slice(0, 8)})`;
      }
    },
  };
}

// a rehearsal: back to before the contact, and fly it again
function again(element, options, { command }) {
  fill(element, html`<div class="hil-again"><button id="again">Again</button> from <input id="again-s" type="number" min="1" max="600" step="1" value="30" aria-label="seconds before contact"> s before contact</div>`);
  element.querySelector("#again").onclick = () => command("again", { before_contact_s: parseFloat(element.querySelector("#again-s").value) || 30 });
  element.style.display = "none";
  return { things: ({ things, log }) => (element.style.display = things.rehearsal && !log ? "" : "none") };
}

// who holds the desk; another one's can be taken over once it has fallen silent, after a question. And what hold and resume do in this run
function desk(element, options, { send, commands }) {
  fill(element, html`<div class="hil-desk"><span>desk: <b>free</b></span><button id="take-over" style="display:none">take over</button></div>
    <dialog id="take-over-ask" aria-labelledby="take-over-words"><p id="take-over-words"></p>
    <button id="take-over-no">leave it</button><button id="take-over-yes">take over</button></dialog>`);
  const holder = element.querySelector("b"), button = element.querySelector("#take-over"), ask = element.querySelector("dialog");
  button.onclick = () => {
    ask.querySelector("p").textContent = `Take the desk from ${holder.textContent}? From then on its commands are refused, but for hold, stop and abort. The run's journal keeps who took it. One who is still there keeps it.`;
    ask.showModal();
  };
  let does = null;
  ask.querySelector("#take-over-no").onclick = () => ask.close();
  ask.querySelector("#take-over-yes").onclick = () => (ask.close(), send({ desk: "take over" }));
  return {
    draw({ head, facts }) {
      if (facts && facts.does !== does) {
        does = facts.does;
        for (const [name, what] of Object.entries(does)) document.querySelector(`button#${name}`)?.setAttribute("title", `${name}: ${what}`);
      }
      const words = head.desk_mine ? `${head.desk || "taken"}: this page` : head.desk || "free";
      if (holder.textContent !== words && !ask.open) holder.textContent = words;
      button.style.display = commands() && head.desk && !head.desk_mine ? "" : "none";
    },
  };
}

export const views = { instruments, answers, again, desk };
