// Cursor of a log: play, speed, step by GraphStep, scroll by keys. It asks the console for the frame at its time, one request at a time.
import { fill, html } from "/hil/markup.js";
export function player(element, options, { state, send, schedule }) {
  element.classList.add("hil-player");
  fill(element, html`<button id="play" title="space">play</button>
    <select id="speed" aria-label="speed of playing">${[0.05, 0.1, 0.25, 0.5, 1, 2, 4, 10].map((s) => html`<option value="${s}">${s} x</option>`)}</select>
    <button id="back" title="left arrow" aria-label="a step back">◀</button><label>GraphStep <input id="step" type="number" value="0.05" min="0.001" step="0.01"> s</label><button id="on" title="right arrow" aria-label="a step on">▶</button>
    <button id="contact">first contact</button><button id="capture">capture</button>
    <input id="time" type="range" aria-label="time of the log" min="0" max="1" step="0.001" value="0"><span class="hil-at"></span>`);
  element.querySelector("#speed").value = "1";
  const by = (id) => element.querySelector(`#${id}`);
  const [play, speed, step, slider, shown] = ["play", "speed", "step", "time"].map(by).concat(element.querySelector(".hil-at"));
  let at = 0, asked = null, playing = false, before = 0, waiting = 0;

  function go(t) {
    at = Math.min(state.log.to, Math.max(state.log.from, t));
    slider.value = at;
    ask();
  }
  function ask() {
    if (at === asked || (waiting && performance.now() - waiting < 1000)) return;
    if (send({ seek: at })) (asked = at), (waiting = performance.now());
  }
  const stride = (n) => go(at + n * (parseFloat(step.value) || 0.05));
  const toggle = (on) => {
    playing = on;
    play.textContent = on ? "pause" : "play";
    before = performance.now();
    if (on) requestAnimationFrame(run);
  };
  function run(time) {
    if (!playing || !state.log) return;
    at = Math.min(state.log.to, at + ((time - before) / 1000) * parseFloat(speed.value));
    before = time;
    slider.value = at;
    ask();
    if (at >= state.log.to) toggle(false);
    else requestAnimationFrame(run);
  }
  window.hilGo = go;
  play.onclick = () => toggle(!playing);
  by("back").onclick = () => stride(-1);
  by("on").onclick = () => stride(1);
  by("contact").onclick = () => state.log.first_contact >= 0 && go(state.log.first_contact);
  by("capture").onclick = () => state.log.capture >= 0 && go(state.log.capture);
  slider.oninput = () => go(parseFloat(slider.value));
  const keys = { ArrowLeft: () => stride(-1), ArrowRight: () => stride(1), PageUp: () => stride(-20), PageDown: () => stride(20),
    Home: () => go(state.log.from), End: () => go(state.log.to), " ": () => toggle(!playing) };
  const pressed = (event) => {
    if (!state.log || event.target.closest("input:not(#time), textarea, .q-field") || !keys[event.key]) return;
    event.preventDefault();
    if (event.key === " " && event.repeat) return;
    keys[event.key]();
  };
  window.addEventListener("keydown", pressed, true);
  return {
    things({ log }) {
      element.style.display = log ? "" : "none";
      toggle(false);
      if (!log) return;
      Object.assign(slider, { min: log.from, max: log.to });
      (asked = null), (waiting = 0);
      go(log.from);
    },
    draw({ frame, log }) {
      if (!log || !frame) return;
      waiting = 0;
      shown.textContent = `${frame.t.toFixed(3)} s of ${log.to.toFixed(2)} s, tick ${frame.tick}`;
      if (at !== asked) ask();
    },
    close: () => window.removeEventListener("keydown", pressed, true),
  };
}
