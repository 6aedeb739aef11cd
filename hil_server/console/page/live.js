// The page's own line to the console, beside NiceGUI's: frames come in and are drawn once per animation frame, ABORT goes out at once.
// The console sends a frame only when the page has shown the last but one, so a slow page gets fewer frames and never old ones.
import { cameras } from "/hil/cameras.js";
import { channels } from "/hil/channels.js";
import { crafts } from "/hil/crafts.js";
import { curves } from "/hil/curves.js";
import { views as instruments } from "/hil/instruments.js";
import { menu } from "/hil/menu.js";
import { views as kinds } from "/hil/panels.js";
import { player } from "/hil/player.js";
import { sticks } from "/hil/sticks.js";
import { views as tables } from "/hil/tables.js";
import { wires } from "/hil/wires.js";

Object.assign(kinds, { cameras, channels, crafts, curves, menu, player, sticks, wires }, instruments, tables);

// values: [t, smallest, largest of the first selected channel, of the second ...] of the live run; answers: newest first
export const state = { things: null, frame: null, curves: null, log: null, head: {}, answer: null, answers: [], selected: [], values: [],
  facts: null, requirements: null, lines: [], programme: null, channels: [], joints: [], fresh: 0, heard: performance.now(), at: 0 };
const SILENT = 2500; // ms without a word after which the console counts as gone: it speaks twice a second
const STALE = 500; // ms of age after which the values are old
const HUSH = 300; // ms for which no picture is drawn before the answer to an ABORT
const LOST = 2; // s of old values after which the connection counts as lost
const attached = new Map();
let socket = null;
let cut = false; // the line was there and is not
let scheduled = false;
let pending = null;
let urgent = -1e9; // when an ABORT without an answer yet went out
let offset = 0; // server clock minus page clock, s
let quickest = Infinity;
const ages = [];
const shown = [];

document.addEventListener("visibilitychange", () => (state.heard = performance.now())); // a hidden page acknowledges and receives nothing

export const now = () => (performance.timeOrigin + performance.now()) / 1000 + offset;

export function attach(element, kind, options) {
  const view = kinds[kind](element, options || {}, { state, send, command, commands, picture, schedule, link, old });
  attached.set(element, view);
  if (state.things) view.things?.(state);
  schedule();
}

export function detach(element) {
  attached.get(element)?.close?.();
  attached.delete(element);
}

export function send(message) {
  if (socket?.readyState !== WebSocket.OPEN) return false;
  socket.send(JSON.stringify(message));
  return true;
}

// a page that shows a log gives none: the console refuses them, too
export const commands = () => window.hilCommands !== false && !state.log;

export function command(name, args) {
  if (!commands()) return say({ answer: `${name}: this page shows a log and gives no commands: open the page of the live run`, good: false });
  if (name === "abort") urgent = performance.now();
  if (send({ command: name, args: args || {}, at: performance.now() })) return;
  if (name !== "abort") return say({ answer: `${name}: the console does not answer`, good: false });
  fetch("/abort", { method: "POST" })
    .then((reply) => reply.json())
    .then(say)
    .catch(() => say({ answer: "abort: the console does not answer: use the emergency button", good: false }));
}

window.hilCommand = command;

function say(answer) {
  urgent = -1e9;
  if (answer.at !== undefined) answer.round = performance.now() - answer.at;
  state.answer = answer;
  state.answers.unshift({ ...answer, when: new Date() });
  state.answers.length = Math.min(state.answers.length, 8);
  window.hilAnswer = answer;
  schedule();
}

export function schedule() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(draw);
}

function draw() {
  if (performance.now() - urgent < HUSH) return requestAnimationFrame(draw); // a picture takes longer than the answer may
  scheduled = false;
  const frame = pending;
  pending = null;
  if (frame) state.frame = frame;
  for (const view of attached.values()) {
    try {
      view.draw?.(state);
    } catch (error) {
      console.error(error);
    }
  }
  if (frame) requestAnimationFrame(() => presented(frame)); // by then the browser has taken the picture
}

function presented(frame) {
  shown.push(performance.now());
  while (shown[0] < performance.now() - 2000) shown.shift();
  const age = frame.wall ? 1000 * (now() - frame.wall) : null;
  if (age !== null) {
    ages.push(age);
    if (ages.length > 300) ages.shift();
  }
  send({ ack: frame.n, age });
}

export function picture() {
  const sorted = [...ages].sort((a, b) => a - b);
  const at = (part) => (sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] : null);
  return { age: at(0.5), p95: at(0.95), rate: shown.length / 2, count: sorted.length };
}
window.hilPicture = picture;
window.hilForget = () => { ages.length = 0; };

// how the run and the way to it stand: live; old (no data for a moment); ended; lost (no data, and no end was reported); none
// (nothing yet); joining (the console has not spoken yet); gone (no console)
export function link() {
  if (cut || performance.now() - state.heard > SILENT) return "gone";
  if (state.log) return "log";
  if (!state.head.old && state.fresh && late() < STALE) return "live";
  if (!state.head.run) return "joining";
  if (state.head.run === "no run") return "none";
  return state.head.end ? "ended" : old() > LOST ? "lost" : "old";
}
window.hilLink = link;

// how old the newest tick is that has come, ms: by its own time of day, and at least since it came
const late = () => Math.max(state.wall ? 1000 * (now() - state.wall) : 0, performance.now() - state.fresh);

// how old the values on the page are, s
export const old = () => late() / 1000;

function take(message) {
  state.heard = performance.now();
  if (message.clock !== undefined) {
    const back = performance.now();
    if (back - message.clock < quickest * 1.1) {
      quickest = Math.min(quickest * 1.1, back - message.clock);
      offset = message.server - (performance.timeOrigin + (message.clock + back) / 2) / 1000;
    }
  } else if (message.answer !== undefined) say(message);
  else if (message.things) {
    Object.assign(state, { things: message.things, frame: null, curves: null, values: [], log: message.log, shows: message.run });
    ages.length = 0;
    for (const view of attached.values()) view.things?.(state);
    schedule();
  } else if (message.curves) {
    state.curves = message.curves;
    schedule();
  } else if (message.state) (state.head = message.state), schedule();
  else if (message.channels) {
    Object.assign(state, { channels: message.channels, joints: message.joints, values: [] });
    for (const view of attached.values()) view.names?.(state);
    schedule();
  } else if (["facts", "requirements", "lines", "programme", "values"].some((key) => key in message)) {
    if (message.values) Object.assign(state, { table: message.values });
    else Object.assign(state, message);
    schedule();
  }
  else if (message.bodies || message.n) {
    state.fresh = performance.now();
    state.wall = message.wall;
    if (!state.log) remember(message);
    pending = message;
    schedule();
  }
}

// the page's own memory of the selected channels of a live run: the console sends what it knows of them, then what is new
function remember(message) {
  if (!message.points) return;
  if (message.whole || JSON.stringify(message.names) !== JSON.stringify(state.selected)) state.values = [];
  state.selected = message.names;
  state.values.push(...message.points);
  while (state.values.length && (state.values[0][0] < message.t - 120 || state.values[0][0] > message.t)) state.values.shift();
}

function open() {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  socket = new WebSocket(`${scheme}://${location.host}/live/${window.hilPane}`);
  socket.onmessage = (event) => take(JSON.parse(event.data));
  socket.onclose = () => {
    cut = true;
    schedule();
    setTimeout(open, 1000);
  };
  socket.onopen = () => {
    state.heard = performance.now();
    cut = false;
    quickest = Infinity;
    if (window.hilSelect?.length) send({ select: window.hilSelect });
  };
}

// ABORT by key, wherever the focus is, but not while a text is being written
const WRITES = "textarea, [contenteditable=true], input:not([type]), input[type=text], input[type=search]";
window.addEventListener("keydown", (event) => {
  if (!(event.altKey && !event.ctrlKey && !event.metaKey && event.code === "KeyA") || event.repeat) return;
  if (event.target.closest?.(WRITES)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  window.hilPressed = event.timeStamp;
  document.querySelector("#abort")?.classList.add("pressed");
  setTimeout(() => document.querySelector("#abort")?.classList.remove("pressed"), 400);
  command("abort");
}, true);

// the room that the header leaves, and where the link past it goes
const head = new ResizeObserver(([entry]) => document.documentElement.style.setProperty("--hil-head", `${Math.ceil(entry.target.getBoundingClientRect().height)}px`));
const setUp = setInterval(() => {
  const header = document.querySelector(".hil-header"), content = document.querySelector(".nicegui-content");
  if (!header || !content) return;
  clearInterval(setUp);
  head.observe(header);
  Object.assign(content, { id: "content", tabIndex: -1 });
  document.querySelector(".hil-skip").onclick = (event) => (event.preventDefault(), content.focus());
}, 50);

setInterval(() => {
  // what scrolls has to be reached by keyboard
  for (const card of document.querySelectorAll(".hil-card, .hil-figures, .hil-rows")) {
    if (card.scrollHeight > card.clientHeight + 1) card.tabIndex = 0;
    else card.removeAttribute("tabindex");
  }
  document.body.classList.toggle("stale", !["live", "log"].includes(link()));
  schedule();
}, 250);
setInterval(() => send({ clock: performance.now() }), 1000);
open();
