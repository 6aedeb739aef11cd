// Elements from text that may be anybody's: a name out of a log is shown as it is written and never becomes markup. The one place of the pages
// that hands text to the parser of HTML (tests/test_markup.py holds it so).
export class Markup {
  constructor(text) {
    this.text = text;
  }
}

const safe = (value) => String(value ?? "").replace(/[&<>"']/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" })[c]);
const shown = (value) => (value instanceof Markup ? value.text : Array.isArray(value) ? value.map(shown).join("") : safe(value));

// html`<b>${name}</b>`: what is put in is text, or Markup (or a list of them) made by html itself. Attributes stand in double quotes.
export const html = (parts, ...values) => new Markup(parts.reduce((whole, part, i) => whole + shown(values[i - 1]) + part));

// the element's contents, unless they are that already
export function fill(element, markup) {
  if (!(markup instanceof Markup)) throw new TypeError("fill takes what html`...` makes");
  if (element.hilMarkup === markup.text) return;
  element.hilMarkup = markup.text;
  element.innerHTML = markup.text;
}
