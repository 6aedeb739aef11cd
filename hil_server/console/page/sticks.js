// Hand controllers as the loop has them, and, where the run allows rehearsal, a browser Gamepad or keys as one of them.
const NAMES = ["HL1", "HL2", "HL3", "HR1", "HR2", "HR3"];
const KEYS = { w: [0, 1], s: [0, -1], a: [1, 1], d: [1, -1], r: [2, 1], f: [2, -1], u: [3, 1], o: [3, -1], j: [4, 1], l: [4, -1], i: [5, 1], k: [5, -1] };
const PERIOD = 15; // ms

export function sticks(element, options, { state, send }) {
  element.classList.add("hil-sticks");
  element.innerHTML = `<div class="live"><div class="hil-axes">${NAMES.map((n) => `<div><span>${n}</span><div class="hil-axis"><div></div></div><b>0.00</b></div>`).join("")}</div>
    <div class="hil-modes"></div></div>
    <div class="hil-rehearsal" style="display:none"><label><input type="checkbox" id="rehearse"> this page is hand controller 0 (rehearsal)</label>
    <button id="deadman">deadman off</button><span id="pad">no gamepad: keys w s a d r f, u o j l i k; Enter: deadman</span></div>`;
  const axes = [...element.querySelectorAll(".hil-axis > div")], figures = [...element.querySelectorAll(".hil-axes b")];
  const modes = element.querySelector(".hil-modes"), box = element.querySelector(".hil-rehearsal");
  const on = element.querySelector("#rehearse"), deadman = element.querySelector("#deadman"), pad = element.querySelector("#pad");
  const held = new Set();
  let dead = true;

  const free = (next) => {
    dead = next;
    deadman.textContent = dead ? "deadman off" : "deadman ON";
    deadman.classList.toggle("on", !dead);
  };
  deadman.onclick = () => free(!dead);
  on.onchange = () => (free(true), held.clear());
  const key = (event) => {
    if (!on.checked || event.target.closest("input:not([type=checkbox]), textarea, .q-field")) return;
    if (event.key === "Enter" && event.type === "keydown" && !event.repeat && event.target.tagName !== "BUTTON") free(!dead);
    const name = event.key.toLowerCase();
    if (!KEYS[name]) return;
    event.preventDefault();
    event.type === "keydown" ? held.add(name) : held.delete(name);
  };
  const away = () => (held.clear(), free(true)); // a page that is not looked at moves nothing
  window.addEventListener("keydown", key);
  window.addEventListener("keyup", key);
  window.addEventListener("blur", away);
  document.addEventListener("visibilitychange", away);

  const timer = setInterval(() => {
    if (!on.checked || !state.things?.rehearsal || state.log) return;
    const found = [...(navigator.getGamepads?.() || [])].find((p) => p?.connected);
    const hand = [0, 0, 0, 0, 0, 0];
    let buttons = dead ? 0 : 1;
    if (found) {
      // left stick: up-down x, left-right z; right stick: up-down pitch, left-right yaw; triggers y; shoulder buttons: deadman
      const at = (i) => (Math.abs(found.axes[i] || 0) > 0.08 ? Math.max(-1, Math.min(1, found.axes[i])) : 0);
      const button = (i) => found.buttons[i]?.value || 0;
      Object.assign(hand, [-at(1), button(7) - button(6), at(0), (found.buttons[15]?.pressed ? 0.5 : 0) - (found.buttons[14]?.pressed ? 0.5 : 0), -at(2), -at(3)]);
      buttons = found.buttons[4]?.pressed || found.buttons[5]?.pressed ? 1 : buttons;
    }
    for (const name of held) hand[KEYS[name][0]] = KEYS[name][1] * 0.5;
    pad.textContent = found ? `gamepad: ${found.id.slice(0, 40)}` : "no gamepad: keys w s a d r f, u o j l i k; Enter: deadman";
    send({ hand, buttons });
  }, PERIOD);

  return {
    things: ({ things, log }) => (box.style.display = things.rehearsal && !log ? "" : "none"),
    draw({ frame }) {
      if (!frame?.hand) return;
      frame.hand.slice(0, 6).forEach((value, i) => {
        // a station that is not there counts for nothing; the second one adds to the first in the loop
        const sum = Math.max(-1, Math.min(1, value + (frame.hand[i + 6] || 0)));
        axes[i].style.left = `${50 + Math.min(0, sum) * 50}%`;
        axes[i].style.width = `${Math.abs(sum) * 50}%`;
        axes[i].style.background = sum < 0 ? "#42a5f5" : "#ef5350";
        figures[i].textContent = sum.toFixed(2);
      });
      const w = frame.words;
      const station = [0, 1].map((i) => (frame.hand_status[i] & 2 ? "stale" : frame.hand_status[i] & 1 ? (frame.hand_buttons[i] & 1 ? "deadman held" : "deadman off") : "none"));
      const html = `<span>controllers <b>${station.join(" / ")}</b></span><span>speed <b>${w.speed_mode ?? "–"}</b></span><span>frame <b>${w.rate_frame ?? "–"}</b></span>
        <span>arm <b>${w.arm_mode ?? "–"}</b></span><span>supervisory <b>${w.supervisory ?? "–"}</b>, ${Number(frame.supervisory_left).toFixed(3)} left, ${frame.supervisory_queue} waiting</span>`;
      if (modes.hilHtml !== html) modes.innerHTML = modes.hilHtml = html;
    },
    close() {
      clearInterval(timer);
      window.removeEventListener("keydown", key);
      window.removeEventListener("keyup", key);
      window.removeEventListener("blur", away);
      document.removeEventListener("visibilitychange", away);
    },
  };
}
