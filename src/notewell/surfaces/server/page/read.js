// Read: one note or conversation as a page, with what it leads to and what it said over time.

import { el } from "./dom.js";
import { graph } from "./graph.js";
import { citation, section, tag, told } from "./parts.js";
import { blockAt, reading, target } from "./prose.js";
import { hash } from "./route.js";
import * as words from "./words.js";

export async function show(main, route, shell) {
  const line = Number(route.given.line) || 0;
  const read = () => shell.ask("note", line ? { path: route.path, line } : { path: route.path });
  const note = await read();
  shell.title(note.title || note.path);
  const later = note.notices.some((one) => one.code === "later"); // on the day of this look back it was not there yet
  const article = el("article", { class: "prose note" }, ...(later ? [] : reading(note)));
  const aside = later ? [] : [outline(note, route), graphOf(note), statements(note), injected(note)].filter(Boolean);
  main.replaceChildren(
    el("div", { class: "read" }, el("div", { class: "page" }, head(note, shell), ...told(note.notices), article, around(note)), aside.length ? el("aside", { "aria-label": "About this note" }, ...aside) : ""),
  );
  if (shell.writable) offer(article, note);
  const found = line ? target(article, line, lastLine(note, line)) : null;
  found?.scrollIntoView({ block: "center" });
  const changed = async () => (await read()).text !== note.text && shell.again();
  return { changed: () => changed().catch(() => null), key: (event, typing) => turn(event, typing, note, shell) };
}

// The passage that holds the line ends here.
const lastLine = (note, line) => note.passages?.find((p) => p.start_line <= line && line <= p.end_line)?.end_line || line;

function head(note, shell) {
  const facts = [note.path, words.longDay(note.date), words.source(note.source)].filter(Boolean);
  const links = [];
  if (shell.writable) {
    const to = (action, label) => el("a", { class: "button", href: hash("change", { do: action, ref: note.path }) }, label);
    // What another program writes has no hash; it cannot be pinned, as that would change its file.
    if (note.hash) links.push(note.pinned ? to("unpin", "Unpin") : to("pin", "Pin"));
    links.push(to("forget", "Forget"));
  }
  const tags = [note.pinned && tag("pinned", "on"), note.kept && tag("kept by an agent")].filter(Boolean);
  return el("header", {}, el("h1", { dir: "auto" }, note.title || note.path), el("p", { class: "meta" }, ...facts.map((fact) => el("span", { dir: "auto" }, fact)), ...tags), links.length ? el("p", { class: "row" }, ...links) : null);
}

function outline(note, route) {
  const list = (note.outline || []).filter((one, i) => i || one.text !== note.title);
  if (list.length < 2) return null;
  const top = Math.min(...list.map((one) => one.level));
  return section("Outline", el("ul", { class: "outline" }, ...list.map((one) => el("li", { class: `depth-${Math.min(3, one.level - top)}` }, el("a", { href: hash("note", { line: one.line }, route.path), "data-row": true, dir: "auto" }, one.text)))));
}

function graphOf(note) {
  if (!note.links?.length && !note.backlinks?.length) return null;
  return section("Links", graph(note));
}

// "port of staging: 8081 until 2026-09-03, 9443 until 2026-11-02, 9600 now"
function statements(note) {
  if (!note.statements?.length) return null;
  const version = (one) => el("li", { class: one.until ? "past" : "now" }, el("p", { dir: "auto" }, words.bare(one.text)), el("p", { class: "meta" }, el("span", {}, one.until ? `until ${words.day(one.until)}` : "now"), citation(one.citation)));
  return section("Over time", ...note.statements.map((one) => el("div", { class: "versions" }, el("h3", { dir: "auto" }, one.subject), el("ol", {}, ...one.versions.map(version)))));
}

function injected(note) {
  if (!note.injected?.length) return null;
  const line = (one) => el("li", {}, el("p", { dir: "auto" }, one.prompt ? `“${one.prompt}”` : "at the start of a session"), el("p", { class: "meta" }, el("span", {}, words.day(one.when)), one.host ? el("span", {}, one.host) : null, citation(one.citation, one.citation.split("#")[1] || "all of it")));
  return section("Given to agents", el("ul", { class: "rows" }, ...note.injected.map(line)));
}

function around(note) {
  const end = (one, label, rel) => (one ? el("a", { href: hash("note", {}, one.path), rel, dir: "auto" }, el("span", { class: "quiet" }, label), one.title || one.path) : null);
  return el("nav", { class: "around", "aria-label": "Before and after" }, end(note.before, "Before", "prev"), end(note.after, "After", "next"));
}

// A quiet link at every passage that leads to its change.
function offer(article, note) {
  for (const one of note.passages || []) {
    const block = blockAt(article, one.start_line);
    if (!block || block.querySelector(".edit")) continue;
    const lines = one.start_line === one.end_line ? `line ${one.start_line}` : `lines ${one.start_line} to ${one.end_line}`;
    block.append(" ", el("a", { class: "edit", href: hash("change", { do: "correct", ref: one.id }), "aria-label": `Correct ${lines}` }, "correct"));
  }
}

// Left and right go to the notes before and after.
function turn(event, typing, note, shell) {
  const to = { ArrowLeft: note.before, ArrowRight: note.after }[event.key];
  if (typing || !to) return false;
  shell.go(hash("note", {}, to.path));
  return true;
}

