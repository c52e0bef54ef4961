// The filters of a search: when, where, who and source.

import { el } from "./dom.js";
import { chip } from "./parts.js";
import * as words from "./words.js";

const WHEN = [["", "any time"], ["0", "today"], ["7", "last 7 days"], ["30", "last 30 days"], ["365", "last year"], ["days", "from … to …"]];
let sources = null; // the names of all sources, once somebody looked

// The arguments that the chosen filters stand for.
export function filters(given, shell) {
  const made = {};
  const now = shell.asOf || words.today();
  if (given.when === "days") {
    if (given.since) made.since = given.since;
    if (given.until) made.until = given.until;
  } else if (given.when) made.since = words.daysBefore(Number(given.when) || 0, now);
  if (given.where) made.path = given.where;
  if (given.who) made.origin = given.who;
  if (given.source) made.source = given.source;
  return made;
}

export function chips(given, change, shell) {
  const made = [chip("When", WHEN, given.when || "", (value) => change({ when: value }))];
  if (given.when === "days") made.push(date("since", "from"), date("until", "to"));
  made.push(where(given, change));
  made.push(chip("Who", [["", "anyone"], ...Object.entries(words.PEOPLE)], given.who || "", (value) => change({ who: value })));
  made.push(source(given, change, shell));
  const set = ["when", "where", "who", "source"].filter((name) => given[name]);
  if (set.length) made.push(el("button", { type: "button", class: "plain", onclick: () => change(Object.fromEntries(set.map((name) => [name, ""]))) }, "Clear"));
  return made;

  function date(name, label) {
    const input = el("input", { type: "date", "aria-label": label, value: given[name] || "", onchange: () => change({ [name]: input.value }) });
    return el("label", { class: given[name] ? "chip on" : "chip" }, el("span", {}, label), input);
  }
}

function where(given, change) {
  const input = el("input", { "aria-label": "Where", value: given.where || "", placeholder: "anywhere", spellcheck: "false", autocomplete: "off", size: 10, dir: "auto", onchange: () => change({ where: input.value.trim() }) });
  return el("label", { class: given.where ? "chip on" : "chip" }, el("span", {}, "Where"), input);
}

// The list of sources is asked for when somebody first looks at it: counting takes a moment.
function source(given, change, shell) {
  const names = new Set([...(sources || ["memory", "sessions"]), ...(given.source ? [given.source] : [])]);
  const made = chip("Source", [["", "all"], ...[...names].map((name) => [name, words.source(name)])], given.source || "", (value) => change({ source: value }));
  const select = made.querySelector("select");
  const learn = async () => {
    if (sources) return;
    sources = (await shell.ask("status")).sources.map((one) => one.name);
    for (const name of sources) if (!names.has(name)) select.append(el("option", { value: name }, words.source(name)));
  };
  select.addEventListener("focus", () => learn().catch(() => null), { once: true });
  return made;
}
