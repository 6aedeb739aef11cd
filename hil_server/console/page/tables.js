// The engineer's cards that are drawn by the page: requirements with margins, delay ledger, legs, tunable parameters, programme, events, values.
import { fill, html } from "/hil/markup.js";

const number = (value, digits = 4) => (typeof value === "number" && isFinite(value) ? String(Number(value.toPrecision(digits))) : "–");
// a long name may be broken behind its dots and underscores
const broken = (name) => html`${String(name).split(/(?<=[._])/).map((part) => html`${part}<wbr>`)}`;
const note = (words) => html`<p class="hil-empty">${words}</p>`;

// every requirement with its margin so far; met, violated, not judged are words with a sign of their own
const VERDICTS = { met: "✓ met", violated: "✗ VIOLATED", "not judged": "… not judged" };
function requirements(element) {
  return {
    draw({ requirements: all }) {
      if (!all?.length) return fill(element, note("This run states no requirements: [[requirement]] entries of its test file do."));
      fill(element, html`<table class="hil-table"><thead><tr><th>requirement</th><th>so far</th><th>value</th><th>limit</th><th>margin</th></tr></thead><tbody>${all
        .map((r) => {
          const part = typeof r.margin === "number" && typeof r.limit === "number" && r.limit ? Math.max(0, Math.min(1, r.margin / Math.abs(r.limit))) : null;
          return html`<tr class="${String(r.verdict).replace(" ", "-")}" title="${r.words}"><td>${r.name}</td><td>${VERDICTS[r.verdict] || r.verdict}</td><td>${number(r.value)} ${r.unit}</td>
            <td>${number(r.limit)}</td><td><span class="hil-margin">${part === null ? "" : html`<span style="width:${(100 * part).toFixed(0)}%"></span>`}</span>${number(r.margin)}</td></tr>`;
        })}</tbody></table>`);
    },
  };
}

// the delays one after another, each from where the one before it ended: what is compensated goes back
function ledger(element) {
  return {
    draw({ facts }) {
      const all = Object.entries(facts?.ledger || {});
      if (!all.length) return fill(element, note("No delays are known yet: the run tells them when it is prepared."));
      let at = 0;
      const steps = all.map(([name, seconds]) => {
        const start = name === "total" ? 0 : at;
        if (name !== "total") at += seconds;
        return [name, 1000 * seconds, 1000 * start];
      });
      const ends = steps.flatMap(([, ms, start]) => [start, start + ms]), low = Math.min(0, ...ends), wide = Math.max(...ends) - low || 1;
      const place = (ms) => `${(100 * (ms - low)) / wide}%`;
      fill(element, html`<div class="hil-ledger" role="table" aria-label="delays of the loop">${steps
        .map(([name, ms, start]) => html`<div role="row" class="${name === "total" ? "total" : ms < 0 ? "back" : ""}" title="${facts.origins[name]}"><span role="cell">${name}</span>
          <div role="cell"><div style="left:${place(Math.min(start, start + ms))};width:${(100 * Math.abs(ms)) / wide}%"></div></div><b role="cell">${ms.toFixed(2)} ms</b></div>`)}</div>`);
    },
  };
}

function legs(element) {
  return {
    draw({ facts, frame }) {
      const lengths = frame?.leg;
      if (!lengths) return fill(element, note("No legs yet."));
      const [low, high] = facts?.legs?.[0] ? facts.legs : [Math.min(...lengths) - 1, Math.max(...lengths) + 1];
      const head = facts?.legs?.[0] ? `${low.toFixed(3)} ... ${high.toFixed(3)} m, margin ${Number(frame.stroke_margin ?? NaN).toFixed(3)} m` : "the run names no limits";
      fill(element, html`<div class="hil-legs">${lengths.map((length, i) => {
        const part = (length - low) / (high - low), near = part < 0.1 || part > 0.9;
        return html`<div><span>${i + 1}</span><div class="hil-leg ${near ? "near" : ""}"><div style="left:${(100 * Math.max(0, Math.min(1, part))).toFixed(1)}%"></div></div>
          <b>${length.toFixed(4)} m</b><b>${near ? "▲ " : ""}${(1000 * (frame.follows?.[i] ?? NaN)).toFixed(2)} mm</b></div>`;
      })}<small>${head}; behind: following error</small></div>`);
    },
  };
}

// parameters that can be changed now; the value in force is the run's own, which ramps to what was asked
function tunables(element, options, { command }) {
  let built = null, rows = [];
  return {
    draw({ facts, frame }) {
      const all = facts?.tunables || [];
      if (built !== all) {
        built = all;
        rows = [];
        element.hilMarkup = null;
        if (!all.length) return fill(element, note("This run has no parameters that can be changed: no part declares a tunable one."));
        fill(element, html`<table class="hil-table"><thead><tr><th>parameter</th><th>now</th><th>new</th></tr></thead><tbody>${all.map((p) => html`<tr title="${p.meaning}">
          <td>${broken(p.name)}<br><small>${number(p.low)} ... ${number(p.high)} ${p.unit}, ${number(p.rate_per_s)} a second${p.phases?.length ? `, in ${p.phases.join(", ")}` : ""}</small></td>
          <td><output>${number(p.value)}</output></td><td><form><input type="number" step="any" min="${p.low}" max="${p.high}" value="${p.value ?? ""}" aria-label="new value of ${p.name}"><button>set</button></form></td></tr>`)}</tbody></table>`);
        rows = [...element.querySelectorAll("tbody tr")];
        rows.forEach((row, i) => (row.querySelector("form").onsubmit = (event) => {
          event.preventDefault();
          const value = parseFloat(row.querySelector("input").value);
          if (isFinite(value)) command("tune", { number: all[i].number, value });
        }));
      }
      rows.forEach((row, i) => {
        const value = frame?.tuned?.[all[i].number];
        if (value === undefined) return;
        const shown = number(value), place = row.querySelector("output");
        if (place.textContent !== shown) place.textContent = shown;
      });
    },
  };
}

// the programme: what was, what runs, what is next; between two variants start and hold
function programme(element, options, { command, schedule }) {
  fill(element, html`<p class="hil-programme-title" role="status"></p><div class="hil-next"><span></span> <button data-give="start">start it</button><button data-give="hold">hold</button><button data-give="stop">end the programme</button></div><div class="hil-rows"></div>`);
  const title = element.querySelector("p"), next = element.querySelector(".hil-next"), rows = element.querySelector(".hil-rows");
  for (const button of element.querySelectorAll("[data-give]")) button.onclick = () => command(button.dataset.give);
  const HEADS = ["state", "variant", "R1", "verdict", "capture s", "impact N", "impact N.m", "arm margin", "result", "description"];
  let shown = {};
  return {
    draw({ programme: found }) {
      if (found === shown) return;
      shown = found;
      next.style.display = found?.next ? "" : "none";
      if (!found) return void ((title.textContent = "No programme below the folder of the logs: hil-server run PROGRAMME.toml starts one."), fill(rows, html``));
      title.textContent = found.title;
      if (found.next) {
        next.querySelector("span").textContent = `${found.held ? "Waits for you: next" : "Next"}: ${found.next.number}${found.next.description ? `, ${found.next.description}` : ""}`;
        for (const button of next.querySelectorAll("button")) button.style.display = found.between ? "" : "none";
      }
      fill(rows, html`<table class="hil-table"><thead><tr>${HEADS.map((h) => html`<th>${h}</th>`)}</tr></thead><tbody>${found.rows
        .map((row) => html`<tr class="${row.state}">${HEADS.map((h) => html`<td>${row[h]}</td>`)}</tr>`)}</tbody></table>`);
      (rows.querySelector("tr.running") || rows.querySelector("tr.next"))?.scrollIntoView({ block: "nearest" });
      schedule();
    },
  };
}

function lines(element) {
  return {
    draw({ lines: all }) {
      if (!all?.length) return fill(element, note("Nothing has happened yet."));
      fill(element, html`<table class="hil-table"><thead><tr><th>t</th><th>kind</th><th>name</th><th>what to do</th></tr></thead><tbody>${all
        .map((line) => html`<tr class="${line.severity}"><td>${Number(line.t).toFixed(2)} s</td><td>${line.severity}</td><td>${String(line.name).replaceAll("_", " ")}</td><td>${line.action}</td></tr>`)}</tbody></table>`);
    },
  };
}

// all channels of one tick of a log, those of a part of the name alone
function values(element, options, { state, schedule }) {
  fill(element, html`<label>find <input type="search" aria-label="find a channel in the table"></label><div class="hil-rows"></div>`);
  const input = element.querySelector("input"), rows = element.querySelector(".hil-rows");
  input.oninput = () => schedule();
  return {
    draw({ table, log }) {
      if (!log || !table) return fill(rows, note("No log is shown."));
      const part = input.value.toLowerCase();
      fill(rows, html`<table class="hil-table hil-values"><thead><tr><th>channel</th><th>value</th></tr></thead><tbody>${table
        .filter(([name]) => name.toLowerCase().includes(part)).map(([name, value]) => html`<tr><td>${name}</td><td>${value}</td></tr>`)}</tbody></table>`);
    },
  };
}

export const views = { requirements, ledger, legs, tunables, programme, lines, values };
