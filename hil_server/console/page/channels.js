// Which channels a page plots: found by typing a part of the name, kept as a row of chips that can be dragged, moved by Alt and arrows, and removed.
import { COLOURS } from "/hil/curves.js";
import { fill, html } from "/hil/markup.js";

const MOST = 8;
let lists = 0;

export function channels(element, options, { state, send, schedule }) {
  const list = `hil-names-${++lists}`;
  element.classList.add("hil-channels");
  fill(element, html`<label>plot <input type="search" list="${list}" placeholder="find a channel" aria-label="find a channel to plot"></label>
    <datalist id="${list}"></datalist><ul aria-label="plotted channels"></ul><span class="hil-hint" role="status"></span>`);
  const input = element.querySelector("input"), names = element.querySelector("datalist"), chips = element.querySelector("ul"), hint = element.querySelector(".hil-hint");
  let chosen = [];

  const keep = () => {
    window.hilSelect = chosen;
    window.hilKeep?.({ curves: chosen });
    send({ select: chosen });
    show();
    schedule();
  };
  function add(name) {
    name = name.trim();
    hint.textContent = "";
    if (!state.channels.includes(name)) {
      const like = state.channels.filter((known) => known.toLowerCase().includes(name.toLowerCase()));
      if (!name || like.length !== 1) return void (hint.textContent = name ? `${like.length || "no"} channels are called so` : "");
      name = like[0];
    }
    if (chosen.includes(name)) return;
    if (chosen.length >= MOST) return void (hint.textContent = `${MOST} channels at most: remove one first`);
    chosen = [...chosen, name];
    input.value = "";
    keep();
  }
  function move(name, to) {
    const others = chosen.filter((other) => other !== name);
    others.splice(Math.max(0, Math.min(others.length, to)), 0, name);
    chosen = others;
    keep();
    chips.querySelectorAll("button")[chosen.indexOf(name)]?.focus();
  }
  function show() {
    chips.replaceChildren();
    chosen.forEach((name, i) => {
      const chip = chips.appendChild(document.createElement("li")), button = chip.appendChild(document.createElement("button"));
      button.textContent = `${name} ✕`;
      button.style.borderColor = COLOURS[i % COLOURS.length];
      button.title = "remove (Enter); move: drag, or Alt and arrow";
      button.setAttribute("aria-label", `remove ${name}`);
      button.draggable = true;
      button.onclick = () => ((chosen = chosen.filter((other) => other !== name)), keep(), (chips.querySelectorAll("button")[i] || input).focus());
      button.onkeydown = (event) => {
        const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (!by || !event.altKey) return;
        event.preventDefault();
        event.stopPropagation();
        move(name, chosen.indexOf(name) + by);
      };
      button.ondragstart = (event) => event.dataTransfer.setData("text/plain", name);
      chip.ondragover = (event) => event.preventDefault();
      chip.ondrop = (event) => {
        event.preventDefault();
        const dragged = event.dataTransfer.getData("text/plain");
        if (chosen.includes(dragged)) move(dragged, chosen.indexOf(name));
      };
    });
  }
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") event.preventDefault(), add(input.value);
  });
  input.addEventListener("input", (event) => {
    if ((!event.inputType || event.inputType === "insertReplacementText") && state.channels.includes(input.value)) add(input.value); // chosen from the list
  });
  window.hilAdd = add;
  const view = {
    names({ channels: known, joints }) {
      fill(names, html`${known.map((name) => html`<option value="${name}"></option>`)}`);
      const more = options.joints ? joints.slice(0, 2).map((_, i) => `joint_position[${i}]`) : [];
      const wanted = window.hilLayout?.curves || [...options.wanted, ...more];
      chosen = wanted.filter((name) => known.includes(name)).slice(0, MOST);
      window.hilSelect = chosen;
      send({ select: chosen });
      show();
    },
  };
  if (state.channels.length) view.names(state);
  return view;
}
