// The crafts: every body where joints and bending put it, turned by dragging; what is not drawn as it is stands below.
import "/hil/space.js";
import { describe, fit, font } from "/hil/wires.js";

export function crafts(element, options, { schedule }) {
  const canvas = describe(element, "the crafts with their bodies: arrows turn the picture, + and - scale it");
  canvas.tabIndex = 0;
  const view = new globalThis.hilSpace.View(canvas, schedule, true);
  const foot = element.appendChild(document.createElement("div"));
  foot.className = "hil-crafts";
  const label = foot.appendChild(document.createElement("label")), large = label.appendChild(document.createElement("input"));
  Object.assign(large, { type: "checkbox", checked: true });
  label.hidden = true;  // until it has its words
  const factor = label.appendChild(document.createElement("span")), list = foot.appendChild(document.createElement("details"));
  list.appendChild(document.createElement("summary")).textContent = "what is drawn";
  const words = list.appendChild(document.createElement("div"));
  large.addEventListener("change", schedule);
  return {
    draw({ things, frame }) {
      const context = fit(canvas);
      if (!things || !frame?.crafts) return;
      context.font = font(11);
      const times = view.crafts(context, canvas.width, canvas.height, things.crafts, frame.crafts, large.checked, (colour) => colour, "#cfd8dc");
      const drawn = [...things.crafts.notes, ...(frame.crafts.absent || [])].join("; ");
      if (words.textContent !== drawn) words.textContent = drawn;
      label.hidden = !frame.crafts.bend;
      const text = ` bending × ${large.checked ? times : frame.crafts.factor ?? 1}`;
      if (factor.textContent !== text) factor.textContent = text;
    },
  };
}
