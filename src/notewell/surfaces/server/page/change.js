// Change: remember, correct, settle, pin and forget. Nothing is written before its lines were shown.

import { el } from "./dom.js";
import { citation, section } from "./parts.js";
import { Preview } from "./preview.js";
import { hash } from "./route.js";
import * as words from "./words.js";

const ACTIONS = { remember: "Remember", correct: "Correct", settle: "Settle", pin: "Pin", forget: "Forget", undo: "Undo" };

export async function show(main, route, shell) {
  const home = await shell.home();
  const action = route.given.do === "unpin" ? "pin" : route.given.do in ACTIONS ? route.given.do : "remember";
  if (!shell.writable) {
    main.replaceChildren(el("h1", {}, "Change"), el("p", {}, shell.asOf ? "The past cannot be changed. Go back to today first." : "This server only reads: it was started so that nothing can be changed."));
    return {};
  }
  const tabs = el("nav", { class: "tabs", "aria-label": "What to do" }, ...Object.entries(ACTIONS).map(([name, label]) => el("a", { href: hash("change", { do: name }), "aria-current": name === action ? "page" : null }, label)));
  const body = el("div", { class: "change" });
  main.replaceChildren(el("h1", {}, "Change"), tabs, body);
  const preview = new Preview(shell);
  body.replaceChildren(await { remember, correct, settle, pin, forget, undo }[action](route.given, { shell, preview, home }), action === "undo" ? "" : preview.part);
  body.querySelector("textarea, input:not([type=checkbox])")?.focus({ preventScroll: true });
  return {};
}

function form(title, fields, { button = "Show what will be written", send }) {
  const submit = (event) => {
    event.preventDefault();
    send();
  };
  const made = el("form", { class: "form", autocomplete: "off", onsubmit: submit }, el("h2", {}, title), ...fields, el("p", {}, el("button", { class: "main" }, button)));
  made.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) made.requestSubmit();
  });
  return made;
}

function field(label, control, hint = "") {
  const id = `hint-${label.toLowerCase().replaceAll(" ", "-")}`;
  if (hint) control.setAttribute("aria-describedby", id);
  return el("div", { class: "field" }, el("label", {}, el("span", {}, label), control), hint ? el("span", { class: "quiet", id }, hint) : null);
}

const box = (value = "", rows = 5) => el("textarea", { rows, dir: "auto", required: true }, value);
const line = (value = "", more = {}) => el("input", { value, dir: "auto", spellcheck: "false", ...more });

function remember(given, { preview }) {
  const text = box(given.text);
  const file = line(given.file, { placeholder: "today’s note" });
  const heading = line(given.heading);
  const tags = line("", { placeholder: "work, travel" });
  const send = () => {
    const asked = { action: "remember", text: text.value };
    if (file.value.trim()) asked.file = file.value.trim();
    if (heading.value.trim()) asked.heading = heading.value.trim();
    const list = tags.value.split(",").map((one) => one.trim().replace(/^#/u, "")).filter(Boolean);
    if (list.length) asked.tags = list;
    preview.ask(asked);
  };
  return form("Remember something", [field("What", text, "Markdown"), el("div", { class: "fields" }, field("Note", file), field("Under the heading", heading), field("Tags", tags))], { send });
}

async function correct(given, { preview, shell }) {
  const ref = line(given.ref, { required: true, placeholder: "memory/deploy.md#L3" });
  const text = box();
  const now = el("div", { class: "quoted" });
  await quote(given.ref, now, { shell, into: text });
  ref.addEventListener("change", () => quote(ref.value.trim(), now, { shell, into: text }));
  return form("Correct a passage", [field("Passage", ref, "its id, or its note with the line"), now, field("What is right now", text, "The old passage stays in its note, marked as replaced.")], { send: () => preview.ask({ action: "correct", ref: ref.value.trim(), text: text.value }) });
}

// Shows what a reference names, and begins a correction from its text.
async function quote(ref, where, { shell, into = null }) {
  where.replaceChildren();
  if (!ref) return;
  try {
    const found = await shell.ask("get", { reference: ref });
    where.replaceChildren(el("p", { class: "meta" }, el("span", { dir: "auto" }, `${found.path}, lines ${found.start_line} to ${found.end_line}`)), el("blockquote", { dir: "auto" }, found.text.length > 1500 ? `${found.text.slice(0, 1500)}…` : found.text));
    if (into && !into.value) into.value = found.text.trim();
  } catch (error) {
    where.replaceChildren(el("p", { class: "quiet" }, error.message));
  }
}

async function settle(given, { preview, shell, home }) {
  const list = home.attention.conflicts;
  const one = list.find((c) => [c.id, c.other.id].includes(given.keep) && [c.id, c.other.id].includes(given.drop)) || (given.keep ? await pair(given, shell) : list[0]);
  if (!one) return el("p", {}, "There are no contradictions. Nothing needs to be settled.");
  const sides = [one, one.other].sort((a, b) => (a.date || "").localeCompare(b.date || ""));
  const known = sides[0].date && sides[0].date !== sides[1].date;
  const choice = (side, other, i) => {
    const button = el("button", { type: "button", onclick: () => preview.ask({ action: "settle", keep: side.id, drop: other.id }) }, "Keep this one");
    return el("li", { class: "side" }, el("p", { class: "meta" }, el("span", {}, words.day(side.date) || "without a date"), known ? el("span", {}, i ? "newer" : "older") : null, citation(side.citation)), el("blockquote", { dir: "auto" }, words.bare(side.text)), button);
  };
  const others = list.filter((c) => c !== one).slice(0, 10);
  const rest = others.length ? section("Other contradictions", el("ul", { class: "rows" }, ...others.map((c) => el("li", {}, el("a", { href: hash("change", { do: "settle", keep: c.id, drop: c.other.id }), "data-row": true, dir: "auto" }, `${c.citation} and ${c.other.citation}`))))) : null;
  return el("div", {}, el("h2", {}, "Which one is right?"), el("ul", { class: "sides" }, choice(sides[0], sides[1], 0), choice(sides[1], sides[0], 1)), rest);
}

// Two passages that are not in the list of Home, read one by one.
async function pair(given, shell) {
  const [one, other] = await Promise.all([given.keep, given.drop].map((reference) => shell.ask("get", { reference })));
  const as = (found, id) => ({ id, text: found.text, citation: `${found.path}#L${found.start_line}`, date: /\d{4}-\d\d-\d\d/u.exec(found.path)?.[0] || "" });
  return { ...as(one, given.keep), other: as(other, given.drop) };
}

function pin(given, { preview }) {
  const ref = line(given.ref, { required: true, placeholder: "memory/deploy.md" });
  const off = given.do === "unpin";
  const made = form(off ? "Unpin a note" : "Pin a note", [field("Note", ref, off ? "" : "A pinned note comes first on Home and is marked in hits.")], { send: () => preview.ask({ action: off ? "unpin" : "pin", ref: ref.value.trim() }) });
  if (given.ref) preview.ask({ action: off ? "unpin" : "pin", ref: given.ref });
  return made;
}

async function forget(given, { preview, shell }) {
  const ref = line(given.ref, { required: true, placeholder: "memory/deploy.md#L3" });
  const everywhere = el("input", { type: "checkbox" });
  const now = el("div", { class: "quoted" });
  await quote(given.ref, now, { shell });
  ref.addEventListener("change", () => quote(ref.value.trim(), now, { shell }));
  const send = () => preview.ask({ action: "forget", ref: ref.value.trim(), ...(everywhere.checked ? { everywhere: true } : {}) });
  return form("Forget for good", [field("Passage or note", ref), now, el("label", { class: "check" }, everywhere, " also where other notes say the same")], { button: "Show what will be removed", send });
}

async function undo(_given, { shell }) {
  const list = el("ul", { class: "rows" });
  const draw = async () => {
    const { changes } = await shell.ask("changes");
    const row = (one) => {
      const button = el("button", { type: "button", "data-row": true, onclick: () => take(one, button) }, "Undo");
      return el("li", { class: "undo" }, el("div", {}, el("p", { dir: "auto" }, one.summary), el("p", { class: "meta" }, el("span", {}, (one.when || "").slice(0, 16).replace("T", " ")), ...(one.paths || []).map((path) => el("span", { dir: "auto" }, path)))), button);
    };
    list.replaceChildren(...(changes.length ? changes.map(row) : [el("li", { class: "quiet" }, "Nothing was changed here lately.")]));
  };
  const take = async (one, button) => {
    button.disabled = true;
    try {
      shell.say((await shell.ask("undo", { undo: one.id })).receipt || "It is as it was before.");
      await draw();
    } catch (error) {
      button.replaceWith(el("p", { class: "failed", role: "alert" }, `${error.message}${error.hint ? `: ${error.hint}` : ""}`));
    }
  };
  await draw();
  return el("div", {}, el("h2", {}, "Take back a change"), list);
}
