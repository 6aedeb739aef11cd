// The page's menu: dim, sound, which cards are shown, the layout saved and read, the keys. What is chosen is kept by the browser.
import { fill, html } from "/hil/markup.js";
const KEY = "hil-layout";
const read = () => {
  try {
    return JSON.parse(localStorage.getItem(KEY)) || {};
  } catch {
    return {};
  }
};
const here = location.pathname;
// layout of this page: curves, span, hidden; of all pages: dim, sound
window.hilLayout = { ...read()[here] };
window.hilKeep = (part) => {
  Object.assign(window.hilLayout, part);
  const all = read();
  all[here] = { ...all[here], ...part };
  localStorage.setItem(KEY, JSON.stringify(all));
};
const common = { ...read().common };
const keepCommon = (part) => {
  Object.assign(common, part);
  localStorage.setItem(KEY, JSON.stringify({ ...read(), common }));
};

// what of a file of ours is a layout; null for anything else
export function layoutOf(text) {
  try {
    const found = JSON.parse(text);
    const page = (value) => value && typeof value === "object" && !Array.isArray(value) && (!value.curves || (Array.isArray(value.curves) && value.curves.every((c) => typeof c === "string")));
    return found && typeof found === "object" && !Array.isArray(found) && Object.keys(found).length && Object.values(found).every(page) ? found : null;
  } catch {
    return null;
  }
}

// sounds of what must not be missed; nothing sounds until it is switched on, and a browser lets it sound after a key or a click only
let audio = null;
function beep(...tones) {
  if (!common.sound) return;
  audio ||= new AudioContext();
  audio.resume();
  tones.forEach(([hertz, seconds], i) => {
    const tone = audio.createOscillator(), loud = audio.createGain(), at = audio.currentTime + tones.slice(0, i).reduce((sum, [, s]) => sum + s, 0);
    tone.frequency.value = hertz;
    loud.gain.setValueAtTime(0.15, at);
    loud.gain.setTargetAtTime(0, at + seconds * 0.8, 0.01);
    tone.connect(loud).connect(audio.destination);
    tone.start(at);
    tone.stop(at + seconds);
  });
  window.hilSounded = (window.hilSounded || 0) + 1; // tests count, they do not hear
}
const SOUNDS = {
  touch: [[660, 0.12]],
  capture: [[660, 0.12], [880, 0.2]],
  trip: [[440, 0.15], [330, 0.15], [440, 0.15], [330, 0.3]],
  lost: [[220, 0.5]],
  outside: [[300, 0.12]],
};
window.hilSound = (name) => beep(...SOUNDS[name]);

export function menu(element, options, { state, link, schedule }) {
  const keys = window.hilKeys?.words || "";
  fill(element, html`<details><summary>Page</summary><div class="hil-menu-box">
    <label><input type="checkbox" id="dim"> dim (a dark room)</label>
    <label><input type="checkbox" id="sound"> sound: touch, capture, trip, lost data, outside of the corridor</label>
    <fieldset class="hil-cards"><legend>shown</legend></fieldset>
    <div><button id="save-layout">save the layout</button> <label class="hil-file">read a layout <input type="file" id="read-layout" accept=".json,application/json"></label> <button id="shipped-layout">as shipped</button></div>
    <p role="status" id="layout-state"></p>
    <p><b>Keys.</b> Alt+A: ABORT, everywhere but in a text field. Tab, Shift+Tab: on, back. Alt+1 ... Alt+4: the views. A log: space plays, arrows step.
    ${here === "/operator" ? `Rehearsal: ${keys}.` : ""}</p></div></details>`);
  const by = (id) => element.querySelector(`#${id}`), saved = by("layout-state"), details = element.querySelector("details");
  const dim = (on) => document.body.classList.toggle("dim", on);
  by("dim").checked = Boolean(common.dim);
  by("sound").checked = Boolean(common.sound);
  dim(Boolean(common.dim));
  by("dim").onchange = (event) => (keepCommon({ dim: event.target.checked }), dim(event.target.checked));
  by("sound").onchange = (event) => (keepCommon({ sound: event.target.checked }), window.hilSound("touch"));
  details.addEventListener("keydown", (event) => {
    if (event.key === "Escape") (details.open = false), details.querySelector("summary").focus();
  });
  const cards = element.querySelector(".hil-cards");
  const hide = () => {
    for (const card of document.querySelectorAll("[data-card]")) card.hidden = (window.hilLayout.hidden || []).includes(card.dataset.card);
    schedule();
  };
  details.addEventListener("toggle", () => {
    const names = [...new Set([...document.querySelectorAll("[data-card]")].map((card) => card.dataset.card))];
    cards.style.display = names.length ? "" : "none";
    cards.querySelectorAll("label").forEach((label) => label.remove());
    for (const name of names) {
      const label = cards.appendChild(document.createElement("label")), box = label.appendChild(document.createElement("input"));
      label.append(` ${name}`);
      box.type = "checkbox";
      box.checked = !(window.hilLayout.hidden || []).includes(name);
      box.onchange = () => {
        const hidden = new Set(window.hilLayout.hidden || []);
        box.checked ? hidden.delete(name) : hidden.add(name);
        window.hilKeep({ hidden: [...hidden] });
        hide();
      };
    }
  });
  by("save-layout").onclick = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify(read(), null, 1)], { type: "application/json" }));
    link.download = "hil-console-layout.json";
    link.click();
    saved.textContent = "saved as hil-console-layout.json";
  };
  by("read-layout").onchange = async (event) => {
    const file = event.target.files[0];
    if (!file) return;
    const found = layoutOf(await file.text());
    if (!found) return void (saved.textContent = `${file.name}: not a layout of this console`);
    localStorage.setItem(KEY, JSON.stringify(found));
    location.reload();
  };
  by("shipped-layout").onclick = () => (localStorage.removeItem(KEY), location.reload());
  setTimeout(hide, 300);

  const jump = (event) => {
    if (!event.altKey || event.ctrlKey || event.metaKey || !/^Digit[1-9]$/.test(event.code)) return;
    const views = document.querySelectorAll(".hil-links a"), found = views[Number(event.code.slice(5)) - 1];
    if (found) event.preventDefault(), (location.href = found.href);
  };
  window.addEventListener("keydown", jump);

  let before = {};
  return {
    draw({ frame, head, log }) {
      if (log) return;
      const now = { trip: Boolean(head.trip), lost: ["lost", "gone"].includes(link()), touch: frame?.contact > 0, capture: frame?.capture_time >= 0 };
      for (const name of ["trip", "lost", "capture", "touch"]) if (now[name] && before[name] === false) window.hilSound(name);
      before = now;
    },
    close: () => window.removeEventListener("keydown", jump),
  };
}
