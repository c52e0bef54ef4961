// Draws the ranking: lines over all steps, the score of one passage as a sum, and a strip of dates.

import { el, svg } from "./dom.js";

const MOST = 100;

const short = (name) => name.replace(/\(.*/su, "").toLowerCase();

// Every step as a column: the legs first, then the fusion and the stages.
export function columns(trace) {
  const legs = trace.legs.map((step) => ({ ...step, leg: true }));
  return [...legs, ...trace.stages].map((step) => ({
    title: step.name,
    name: step.leg ? { lexical: "keywords", vector: "meaning", path: "name" }[step.name] || step.name : short(step.name),
    leg: Boolean(step.leg),
    places: new Map(step.order.map((mark) => [mark.id, mark])),
    dropped: new Set(step.dropped),
  }));
}

// The candidates that came furthest: first those in the last column, then those dropped late.
export function foremost(steps) {
  const seen = new Map();
  for (const step of [...steps].reverse()) {
    for (const mark of [...step.places.values()].sort((a, b) => a.rank - b.rank)) if (!seen.has(mark.id)) seen.set(mark.id, mark);
  }
  return [...seen.keys()].slice(0, MOST);
}

// With `names`, the steps have other names than the builders'.
export function slopes(picture, trace, { hits, chosen, choose, names = {} }) {
  const steps = columns(trace);
  const ids = foremost(steps);
  const shown = new Set(ids);
  const width = Math.max(320, picture.clientWidth || 640);
  const height = Math.max(240, picture.clientHeight || 420);
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const top = 34;
  const deepest = Math.max(2, ...steps.map((s) => Math.max(0, ...[...s.places.values()].filter((m) => shown.has(m.id)).map((m) => m.rank))));
  const x = (i) => 26 + (i * (width - 60)) / Math.max(1, steps.length - 1);
  // The first ranks matter most and get the most space.
  const y = (rank) => top + (Math.log1p(rank - 1) / Math.log1p(deepest - 1)) * (height - top - 12);
  const rows = [svg("title", {}, "Rank of every candidate after every step")];
  steps.forEach((step, i) => {
    rows.push(svg("line", { x1: x(i), x2: x(i), y1: top - 6, y2: height - 8 }));
    const label = svg("text", { x: x(i), y: i % 2 ? 24 : 12, "text-anchor": i === 0 ? "start" : i === steps.length - 1 ? "end" : "middle" }, names[step.name] || step.name);
    if (!names[step.name]) label.append(svg("title", {}, step.title));
    rows.push(label);
  });
  for (const rank of [1, 2, 5, 10, 20, 50, 100].filter((r) => r <= deepest)) {
    rows.push(svg("text", { x: 2, y: y(rank) + 4 }, String(rank)));
  }
  const order = [...ids].reverse().sort((a, b) => (a === chosen) - (b === chosen) || hits.has(a) - hits.has(b));
  const near = [];
  for (const id of order) {
    const points = steps.map((step, i) => (step.places.has(id) ? [x(i), y(step.places.get(id).rank)] : null));
    const path = curve(points);
    const kind = [hits.has(id) && "hit", id === chosen && "chosen", !hits.has(id) && "out"].filter(Boolean).join(" ");
    rows.push(svg("path", { d: path, class: kind }));
    near.push(svg("path", { d: path, class: "near", "data-id": id }, svg("title", {}, trace.candidates[id]?.citation || id)));
    if (hits.has(id) || id === chosen) {
      const last = points.findLast((p) => p);
      if (last) rows.push(svg("circle", { cx: last[0], cy: last[1], r: 3.5, class: id === chosen ? "chosen" : "" }));
    }
  }
  picture.replaceChildren(...rows, ...near);
  picture.onclick = (event) => event.target.dataset?.id && choose(event.target.dataset.id);
}

// A smooth line through the points; a step without the passage leaves a gap.
function curve(points) {
  let path = "";
  let before = null;
  for (const point of points) {
    if (point) {
      if (before) {
        const half = (before[0] + point[0]) / 2;
        path += `C${half} ${before[1]} ${half} ${point[1]} ${point[0]} ${point[1]}`;
      } else path += `M${point[0]} ${point[1]}h.01`;
    }
    before = point || before;
  }
  return path;
}

// The parts that add up to the score of one passage, from left to right.
export function sum(parts, names = {}) {
  const entries = Object.entries(parts).filter(([, value]) => Math.abs(value) > 0.0005);
  const width = 560;
  const total = entries.reduce((all, [, value]) => all + value, 0);
  let low = 0;
  let high = 0;
  let at = 0;
  for (const [, value] of entries) {
    at += value;
    low = Math.min(low, at);
    high = Math.max(high, at);
  }
  const scale = (value) => 110 + ((value - low) / (high - low || 1)) * (width - 180);
  const rows = [];
  let from = 0;
  [...entries, ["total", null]].forEach(([name, value], i) => {
    const to = value === null ? total : from + value;
    const begin = value === null ? 0 : from;
    const kind = value === null ? "sum" : value < 0 ? "minus" : "plus";
    const left = scale(Math.min(begin, to));
    const wide = Math.max(1.5, Math.abs(scale(to) - scale(begin)));
    const amount = value === null ? total.toFixed(2) : `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;
    rows.push(svg("text", { x: 0, y: i * 18 + 12 }, names[name] || name), svg("rect", { x: left, y: i * 18 + 3, width: wide, height: 11, rx: 2, class: kind }), svg("text", { x: left + wide + 4, y: i * 18 + 12 }, amount));
    from = to;
  });
  const label = `Parts of the score: ${entries.map(([name, value]) => `${names[name] || name} ${value.toFixed(2)}`).join(", ")}`;
  return svg("svg", { viewBox: `0 0 ${width} ${(entries.length + 1) * 18 + 4}`, role: "img", "aria-label": label }, ...rows);
}

// Candidates by month or day; a click limits the search to those days.
export function strip(picture, trace, { hits, pick }) {
  const dated = Object.entries(trace.candidates).filter(([, c]) => c.date);
  picture.toggleAttribute("hidden", dated.length < 2);
  if (dated.length < 2) return;
  const days = dated.map(([, c]) => c.date).sort();
  const long = Date.parse(days.at(-1)) - Date.parse(days[0]) > 70 * 864e5;
  const bins = new Map();
  for (const [id, c] of dated) {
    const key = long ? c.date.slice(0, 7) : c.date;
    const bin = bins.get(key) || { all: 0, hits: 0 };
    bin.all += 1;
    bin.hits += hits.has(id) ? 1 : 0;
    bins.set(key, bin);
  }
  const keys = [...bins.keys()].sort();
  const width = Math.max(300, picture.clientWidth || 500);
  const tallest = Math.max(...[...bins.values()].map((b) => b.all));
  const step = width / keys.length;
  picture.setAttribute("viewBox", `0 0 ${width} 50`);
  const rows = [svg("title", {}, `Candidates from ${days[0]} to ${days.at(-1)}`)];
  keys.forEach((key, i) => {
    const bin = bins.get(key);
    const bar = (count, kind) =>
      svg("rect", { x: i * step + 1, width: Math.max(1.5, Math.min(step - 2, 26)), y: 36 - (32 * count) / tallest, height: (32 * count) / tallest, class: kind, "data-days": key }, svg("title", {}, `${key}: ${bin.all} candidates, ${bin.hits} shown`));
    rows.push(bar(bin.all, ""));
    if (bin.hits) rows.push(bar(bin.hits, "hit"));
  });
  rows.push(svg("text", { x: 0, y: 48 }, keys[0]), svg("text", { x: width, y: 48, "text-anchor": "end" }, keys.at(-1)));
  picture.replaceChildren(...rows);
  picture.onclick = (event) => event.target.dataset?.days && pick(event.target.dataset.days);
}

export function table(target, trace) {
  const steps = columns(trace);
  const head = el("tr", {}, el("th", {}, "passage"), ...steps.map((s) => el("th", { title: s.title }, s.name)));
  const rows = foremost(steps).map((id) =>
    el("tr", {}, el("td", {}, trace.candidates[id]?.citation || id), ...steps.map((s) => el("td", {}, s.places.has(id) ? String(s.places.get(id).rank) : s.dropped.has(id) ? "dropped" : "–"))),
  );
  target.replaceChildren(el("thead", {}, head), el("tbody", {}, ...rows));
}
