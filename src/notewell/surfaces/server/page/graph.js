// The small graph of a note: what leads to it on the left, what it leads to on the right.

import { el, svg } from "./dom.js";
import { hash } from "./route.js";

const MOST = 7;
const ROW = 26;
const WIDTH = 360;

const short = (text, most) => ([...text].length > most ? `${[...text].slice(0, most - 1).join("")}…` : text);

export function graph(note) {
  const from = note.backlinks || [];
  const to = note.links || [];
  const rows = Math.max(1, Math.min(MOST, Math.max(from.length, to.length)));
  const height = rows * ROW + 24;
  const middle = 20 + (rows * ROW) / 2;
  const side = (list, left) => {
    const shown = list.slice(0, MOST);
    const top = middle - (shown.length * ROW) / 2;
    return shown.flatMap((one, i) => {
      const y = top + i * ROW + ROW / 2;
      const x = left ? 130 : WIDTH - 130;
      const hub = left ? WIDTH / 2 - 8 : WIDTH / 2 + 8;
      const bend = (x + hub) / 2;
      const name = one.title || one.path;
      const text = svg("text", { x: left ? x - 6 : x + 6, y: y + 4, "text-anchor": left ? "end" : "start" }, short(name, 17));
      return [svg("path", { d: `M${x} ${y}C${bend} ${y} ${bend} ${middle} ${hub} ${middle}` }), svg("a", { href: hash("note", {}, one.path), "aria-label": `${name}, ${left ? "leads here" : "linked from here"}` }, svg("title", {}, name), text)];
    });
  };
  const heads = [from.length && svg("text", { x: 0, y: 11, class: "side" }, "leads here"), to.length && svg("text", { x: WIDTH, y: 11, class: "side", "text-anchor": "end" }, "leads to")].filter(Boolean);
  const picture = svg("svg", { class: "graph", viewBox: `0 0 ${WIDTH} ${height}`, role: "group", "aria-label": "Notes around this one" }, ...heads, ...side(from, true), ...side(to, false), svg("circle", { cx: WIDTH / 2, cy: middle, r: 6 }));
  const left = [...from.slice(MOST), ...to.slice(MOST)];
  const rest = left.length ? el("details", { class: "rest" }, el("summary", {}, `${left.length} more`), el("ul", { class: "rows" }, ...left.map((one) => el("li", {}, el("a", { href: hash("note", {}, one.path), dir: "auto" }, one.title || one.path))))) : null;
  return el("div", {}, picture, rest);
}
