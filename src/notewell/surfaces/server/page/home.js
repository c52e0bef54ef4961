// Home: what is remembered here at a glance, and what needs a person.

import { el } from "./dom.js";
import { calendar } from "./heat.js";
import { citation, failed, more, section, tag, told } from "./parts.js";
import { hash } from "./route.js";
import * as words from "./words.js";

export async function show(main, _route, shell) {
  const home = await shell.home();
  if (home.empty) main.replaceChildren(...welcome(home));
  else main.replaceChildren(...overview(home, shell));
  // What somebody has opened or is about to press does not go away under their hands.
  return { changed: () => main.querySelector("details[open], :focus") || shell.again() };
}

function welcome(home) {
  return [
    el("div", { class: "welcome" }, el("h1", { dir: "auto" }, home.workspace), ...home.empty.sentences.map((s) => el("p", {}, s)), el("pre", { class: "command", tabindex: 0, "aria-label": "Command" }, home.empty.command)),
    ...told(home.notices),
  ];
}

function overview(home, shell) {
  const { counts } = home;
  const figures = [["notes", counts.notes, "note"], ["conversations", counts.conversations, "conversation"], ["passages", counts.passages, "passage"], ["days", counts.days, "day"]];
  const shown = figures.filter(([name, count]) => count || name === "notes");
  return [
    el("header", { class: "lead" }, el("h1", { dir: "auto" }, home.workspace), el("dl", { class: "figures" }, ...shown.map(([many, count, one]) => el("div", {}, el("dd", {}, count.toLocaleString("en")), el("dt", {}, count === 1 ? one : many))))),
    ...told(home.notices),
    doubt(home.doubt, shell),
    home.days.length ? section("Days", calendar(home.days, { end: shell.asOf })) : "",
    el("div", { class: "halves" }, el("div", {}, pinned(home.pinned), attention(home.attention, shell)), el("div", {}, lately(home.lately), topics(home.topics))),
  ];
}

// Notes of a clone or of another user count as untrusted until a person says otherwise.
function doubt(found, shell) {
  if (!found) return "";
  const part = el("div", { class: "notice", id: "doubt" }, el("p", { dir: "auto" }, `These notes are not given to an agent unasked: ${found.reason}.`));
  const trust = async () => {
    try {
      await shell.ask("trust", { folder: found.folder });
      shell.changed();
      shell.again();
    } catch (error) {
      part.append(failed(error));
    }
  };
  part.append(shell.writable ? el("p", {}, el("button", { type: "button", onclick: trust }, "Trust them")) : el("pre", { class: "command" }, found.command));
  return part;
}

function pinned(notes) {
  if (!notes?.length) return "";
  return section("Pinned", el("ul", { class: "rows" }, ...notes.map((n) => el("li", {}, row(n.path, n.title || n.path), n.date ? el("p", { class: "meta" }, words.day(n.date)) : null))));
}

const row = (path, title, given = {}) => el("a", { href: hash("note", given, path), "data-row": true, dir: "auto" }, title);

function lately(list) {
  if (!list.length) return "";
  const line = (one) => el("li", {}, row(one.path, one.title || one.path), el("p", { class: "meta" }, el("span", {}, one.what), el("span", {}, words.day(one.when)), el("span", {}, words.source(one.source))));
  return section("Lately", el("ul", { class: "rows" }, ...list.slice(0, 10).map(line)), el("p", {}, el("a", { href: hash("time") }, "All days")));
}

function topics(list) {
  if (!list.length) return "";
  const link = (one) => el("li", {}, el("a", { class: "topic", href: hash("search", { q: one.name }), dir: "auto" }, one.kind === "tag" ? `#${one.name}` : one.name, el("span", { class: "count" }, String(one.count))));
  return section("Topics", el("ul", { class: "topics" }, ...list.map(link)));
}

// Every kind of thing that waits for a person; without any, one calm sentence.
function attention(found, shell) {
  const part = (name, title, sentence, line) => group(title, sentence, { list: found[name] || [], left: found.more?.[name] || 0, line });
  const groups = [
    part("conflicts", "Contradictions", "Two notes say different things.", (one) => conflict(one, shell)),
    part("copies", "Likely copies", "The same is written in more than one place.", copy),
    never(found.never_found),
    part("unread", "Not read", "What is written here cannot be found.", (one) => [el("span", { dir: "auto" }, one.path), el("p", { class: "quiet" }, [one.reason, one.hint].filter(Boolean).join(": "))]),
    part("useless", "Marked useless", "An agent was given these passages, and they did not help.", (one) => [citation(one.citation), el("p", { class: "quiet", dir: "auto" }, [words.day(one.when), one.prompt && `“${one.prompt}”`].filter(Boolean).join(", "))]),
  ].filter(Boolean);
  if (!groups.length) return section("Needs you", el("p", { class: "quiet" }, "Nothing: no contradictions, no copies, and every file is read."));
  return section("Needs you", ...groups);
}

const FEW = 3;

function group(title, sentence, { list, left, line }) {
  if (!list.length) return null;
  const items = list.map((one) => el("li", {}, ...line(one)));
  const rest = items.length > FEW ? el("details", { class: "rest" }, el("summary", {}, `${(items.length - FEW + left).toLocaleString("en")} more`), el("ul", { class: "rows" }, ...items.slice(FEW)), more(left)) : null;
  return el("div", { class: "need" }, el("h3", {}, title, tag((list.length + left).toLocaleString("en"))), el("p", { class: "quiet" }, sentence), el("ul", { class: "rows" }, ...items.slice(0, FEW)), rest);
}

function conflict(one, shell) {
  const side = (s) => el("p", { class: "said", dir: "auto" }, words.bare(s.text), " ", el("span", { class: "meta" }, citation(s.citation), s.date ? ` ${words.day(s.date)}` : ""));
  const settle = shell.writable ? el("a", { class: "button", href: hash("change", { do: "settle", keep: one.id, drop: one.other.id }), "data-row": true }, "Settle it") : null;
  return [side(one), side(one.other), settle];
}

function copy(one) {
  const others = one.others.flatMap((other, i) => [i ? ", " : "", citation(other)]);
  return [citation(one.citation), el("p", { class: "quiet" }, "also in ", ...others)];
}

function never(found) {
  if (!found?.count) return null;
  const items = found.paths.map((path) => el("li", {}, row(path, path)));
  return el("div", { class: "need" }, el("h3", {}, "Never found", tag(found.count.toLocaleString("en"))), el("p", { class: "quiet" }, found.since ? `No search and no agent has come to these notes since ${words.day(found.since)}.` : "No search and no agent has come to these notes yet."), el("details", { class: "rest" }, el("summary", {}, "Show them"), el("ul", { class: "rows" }, ...items), more(found.count - items.length)));
}
