// Small pieces that several views share.

import { el } from "./dom.js";
import { noteAt } from "./route.js";
import * as words from "./words.js";

export function section(title, ...children) {
  const id = `part-${title.toLowerCase().replaceAll(/[^a-z]+/gu, "-")}`;
  return el("section", { "aria-labelledby": id }, el("h2", { id }, title), ...children);
}

export const meta = (...parts) => el("p", { class: "meta" }, ...parts.filter(Boolean).map((part) => el("span", { dir: "auto" }, part)));

export const citation = (name, label = name) => el("a", { href: noteAt(name), dir: "auto" }, label);

export const told = (notices = []) => notices.map((one) => el("p", { class: "notice" }, words.notice(one)));

export const more = (count) => (count > 0 ? el("p", { class: "quiet" }, `and ${count.toLocaleString("en")} more`) : null);

export function failed(error) {
  return el("div", { class: "failed", role: "alert" }, el("p", {}, error.message), error.hint ? el("p", { class: "quiet" }, error.hint) : null);
}

// One of a few choices, as a chip; it stands out once something is chosen.
export function chip(name, options, value, changed) {
  const list = options.map(([key, label]) => el("option", { value: key, selected: key === value }, label));
  const select = el("select", { "aria-label": name, onchange: () => changed(select.value) }, ...list);
  return el("label", { class: value ? "chip on" : "chip" }, el("span", {}, name), select);
}

// "@@ -7,3 +7,5 @@" is where the lines are: from line 7 on.
const shown = (line) => line.replace(/^@@ -\d+(,\d+)? \+(\d+)(,\d+)? @@.*$/u, "from line $2") || " ";

// The lines that a change takes away and adds, all of them; never without a sign, as colour alone says nothing to some.
export function diff(text) {
  const lines = text.replace(/\n$/u, "").split("\n");
  const rows = lines.slice(Math.max(0, lines.findIndex((line) => line.startsWith("@@"))));
  const kinds = { "+": "added", "-": "taken", "@": "where" };
  return el("pre", { class: "diff", tabindex: 0, role: "region", "aria-label": "Lines that change" }, ...rows.map((line) => el("span", { class: kinds[line[0]] || "same", dir: "auto" }, shown(line))));
}

export const tag = (text, kind = "") => el("span", { class: `tag ${kind}` }, text);
