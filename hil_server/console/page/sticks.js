// Hand controllers as the loop has them, and, where the run allows rehearsal, a browser Gamepad or keys as one of them. The keys and what they
// mean are the terminal's (`drivers/hand_controllers/keys.py`, put into the page as window.hilKeys): a press changes a rate, and it stays.
import { fill, html } from "/hil/markup.js";
const NAMES = ["HL1", "HL2", "HL3", "HR1", "HR2", "HR3"];
const PERIOD = 15; // ms
const DEADMAN = 1, VERNIER = 2;

export function sticks(element, options, { state, send }) {
  const table = window.hilKeys;
  element.classList.add("hil-sticks");
  fill(element, html`<div class="live"><div class="hil-axes">${NAMES.map((n) => html`<div><span>${n}</span><div class="hil-axis"><div></div></div><b>0.00</b></div>`)}</div>
    <div class="hil-modes"></div></div>
    <div class="hil-rehearsal" style="display:none"><label><input type="checkbox" id="rehearse"> this page is hand controller 0 (rehearsal)</label>
    <button id="deadman" aria-pressed="false">hold: deadman off</button><output id="hand-state"></output><span id="pad"></span></div>`);
  const axes = [...element.querySelectorAll(".hil-axis > div")], figures = [...element.querySelectorAll(".hil-axes b")];
  const modes = element.querySelector(".hil-modes"), box = element.querySelector(".hil-rehearsal");
  const on = element.querySelector("#rehearse"), deadman = element.querySelector("#deadman"), pad = element.querySelector("#pad"), shown = element.querySelector("#hand-state");
  let steps = [0, 0, 0, 0, 0, 0], vernier = false;
  const holds = new Set(); // by which the deadman is held now: "key", "button"

  const hold = (by, down) => {
    if (down === holds.has(by)) return;
    if (down) holds.add(by);
    else holds.delete(by);
    steps = [0, 0, 0, 0, 0, 0];
    show();
  };
  const release = () => ["key", "button"].forEach((by) => hold(by, false));
  const show = () => {
    const held = holds.size > 0, words = held ? "deadman HELD" : "hold: deadman off";
    if (deadman.textContent !== words) deadman.textContent = words;
    deadman.classList.toggle("on", held);
    deadman.setAttribute("aria-pressed", held);
  };
  deadman.onpointerdown = (event) => {
    if (event.button !== 0) return;
    deadman.setPointerCapture(event.pointerId); // its release comes here wherever the pointer is by then
    hold("button", true);
  };
  deadman.onpointerup = deadman.onpointercancel = deadman.onlostpointercapture = () => hold("button", false);
  deadman.oncontextmenu = (event) => event.preventDefault(); // a finger that stays down
  on.onchange = release;
  const flies = () => on.checked && state.things?.rehearsal && !state.log;
  const key = (event) => {
    const name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (name === table.deadman && event.type === "keyup") hold("key", false); // wherever the focus is by now
    if (!flies() || event.altKey || event.ctrlKey || event.metaKey) return;
    const at = event.target;
    if (at.closest?.("input:not([type=checkbox]), textarea, select, .q-field, [contenteditable=true]")) return;
    if (name === table.deadman) {
      if (at !== deadman && at.closest?.("button, a, summary")) return; // there it presses what has the focus
      if (event.type === "keydown" && !event.repeat) hold("key", true);
    } else if (name === table.zero) steps = [0, 0, 0, 0, 0, 0]; // always: it is what stops the arm, so it presses no button
    else if (name === table.vernier) vernier = event.type === "keydown" && !event.repeat ? !vernier : vernier;
    else if (table.axes[name]) {
      const [axis, sign] = table.axes[name];
      if (event.type === "keydown") steps[axis] = Math.max(-table.most, Math.min(table.most, steps[axis] + sign));
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  window.addEventListener("keydown", key, true);
  window.addEventListener("keyup", key, true);
  window.addEventListener("blur", release); // a page that is not looked at moves nothing
  document.addEventListener("visibilitychange", release);

  const timer = setInterval(() => {
    if (!flies()) return;
    const found = [...(navigator.getGamepads?.() || [])].find((p) => p?.connected);
    const hand = steps.map((n) => table.step * n);
    let buttons = (holds.size ? DEADMAN : 0) | (vernier ? VERNIER : 0);
    if (found) {
      // left stick: up-down x, left-right z; right stick: up-down pitch, left-right yaw; triggers y; d-pad left-right roll; shoulder buttons: deadman
      const at = (i) => (Math.abs(found.axes[i] || 0) > 0.08 ? Math.max(-1, Math.min(1, found.axes[i])) : 0);
      const button = (i) => found.buttons[i]?.value || 0;
      const roll = (found.buttons[15]?.pressed ? 0.5 : 0) - (found.buttons[14]?.pressed ? 0.5 : 0);
      [-at(1), button(7) - button(6), at(0), roll, -at(2), -at(3)].forEach((value, i) => (hand[i] = Math.max(-1, Math.min(1, hand[i] + value))));
      if (found.buttons[4]?.pressed || found.buttons[5]?.pressed) buttons |= DEADMAN;
    }
    const words = found ? `gamepad: ${found.id.slice(0, 40)}; keys as well: ${table.words}` : `no gamepad: ${table.words}`;
    if (pad.textContent !== words) pad.textContent = words;
    const rates = `${vernier ? "vernier" : "coarse"}${steps.some(Boolean) ? `, steps ${steps.join(" ")}` : ", rates zero"}`;
    if (shown.textContent !== rates) shown.textContent = rates;
    send({ hand, buttons });
  }, PERIOD);

  return {
    things: ({ things, log }) => {
      box.style.display = things.rehearsal && !log ? "" : "none";
      // the address of `hil-server fly` asks for it
      if (things.rehearsal && !log && new URLSearchParams(location.search).has("hand")) on.checked = true;
    },
    draw({ frame }) {
      if (!frame?.hand) return;
      frame.hand.slice(0, 6).forEach((value, i) => {
        // a station that is not there counts for nothing; the second one adds to the first in the loop
        const sum = Math.max(-1, Math.min(1, value + (frame.hand[i + 6] || 0)));
        axes[i].style.left = `${50 + Math.min(0, sum) * 50}%`;
        axes[i].style.width = `${Math.abs(sum) * 50}%`;
        axes[i].style.background = sum < 0 ? "#4fc3f7" : "#ffb74d";
        figures[i].textContent = sum.toFixed(2);
      });
      const w = frame.words;
      const station = [0, 1].map((i) => (frame.hand_status[i] & 2 ? "stale" : frame.hand_status[i] & 1 ? (frame.hand_buttons[i] & 1 ? "deadman held" : "deadman off") : "none"));
      fill(modes, html`<span>controllers <b>${station.join(" / ")}</b></span><span>speed <b>${w.speed_mode ?? "–"}</b></span><span>frame <b>${w.rate_frame ?? "–"}</b></span>
        <span>arm <b>${w.arm_mode ?? "–"}</b></span><span>supervisory <b>${w.supervisory ?? "–"}</b>, ${Number(frame.supervisory_left).toFixed(3)} left, ${frame.supervisory_queue} waiting</span>`);
    },
    close() {
      clearInterval(timer);
      window.removeEventListener("keydown", key, true);
      window.removeEventListener("keyup", key, true);
      window.removeEventListener("blur", release);
      document.removeEventListener("visibilitychange", release);
    },
  };
}
