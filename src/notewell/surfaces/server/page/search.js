// Search: hits as one types, and beside them the selected one in its note.

import { newest } from "./ask.js";
import { Beside } from "./beside.js";
import { chips, filters } from "./chips.js";
import { $, el, flowing, marked } from "./dom.js";
import { told } from "./parts.js";
import { hash } from "./route.js";
import { rendered } from "./safe.js";
import { numbers } from "./why.js";
import * as words from "./words.js";

const LIMIT = 12;
const WIDE = matchMedia("(min-width: 62rem)");

export async function show(main, route, shell) {
  const view = new Search(main, route, shell);
  await view.begin();
  return { leave: () => view.leave(), key: (event, typing) => view.key(event, typing), typed: () => view.run(), changed: () => view.run() };
}

class Search {
  constructor(main, route, shell) {
    this.shell = shell;
    this.given = { ...route.given };
    this.search = newest();
    this.answer = null;
    this.at = -1;
    this.list = el("ol", { id: "hits", role: "listbox", "aria-label": "Hits" });
    this.news = el("div", { id: "notices" });
    this.chips = el("div", { class: "chips", role: "group", "aria-label": "Filters" });
    this.beside = new Beside(shell, { back: () => this.close(), asked: () => this.asked() });
    this.missing = missing(shell, () => this.asked());
    const left = el("section", { class: "found", "aria-label": "Found" }, this.chips, this.news, this.list, this.missing);
    main.replaceChildren(el("h1", { class: "hidden" }, "Search"), el("div", { class: "search" }, left, this.beside.pane));
    this.body = main.querySelector(".search");
  }

  async begin() {
    const box = $("query");
    // Who types faster than the view comes keeps what was typed; an address from elsewhere has its own question.
    const ahead = document.activeElement === box && box.value.startsWith(this.given.q || " ");
    if (!ahead) box.value = this.given.q || "";
    for (const [name, value] of Object.entries({ role: "combobox", "aria-expanded": "true", "aria-controls": "hits", "aria-autocomplete": "list" })) box.setAttribute(name, value);
    if (document.activeElement === document.body || document.activeElement === $("view")) box.focus({ preventScroll: true });
    this.drawChips();
    let begun;
    do {
      begun = box.value;
      await this.run();
    } while (box.value !== begun && !this.left);
  }

  leave() {
    for (const name of ["role", "aria-expanded", "aria-controls", "aria-autocomplete", "aria-activedescendant"]) $("query").removeAttribute(name);
    this.beside.leave();
    this.left = true;
  }

  drawChips() {
    const change = (values) => {
      Object.assign(this.given, values);
      this.drawChips();
      this.run();
    };
    this.chips.replaceChildren(...chips(this.given, change, this.shell));
  }

  asked() {
    return this.shell.dated({ query: $("query").value, limit: LIMIT, ...filters(this.given, this.shell) });
  }

  async run() {
    const asked = this.asked();
    this.given.q = asked.query;
    this.shell.settle(hash("search", this.given));
    this.missing.hidden = !asked.query.trim();
    if (!asked.query.trim()) {
      this.clear();
      return;
    }
    try {
      const answer = await this.search("search", { ...asked, render: true });
      if (answer && !this.left && $("query").value.trim()) this.fill(answer);
    } catch (error) {
      this.shell.say(`${error.message}${error.hint ? `: ${error.hint}` : ""}`);
    }
  }

  clear() {
    this.answer = null;
    this.list.replaceChildren();
    this.news.replaceChildren();
    this.beside.clear();
    $("query").removeAttribute("aria-activedescendant");
    this.shell.say("Type a question, or a few words.");
  }

  fill(answer) {
    const before = this.answer?.results[this.at]?.id;
    const same = this.answer?.query === answer.query;
    this.answer = answer;
    this.list.replaceChildren(...answer.results.map((hit, i) => this.row(hit, i)));
    this.list.dataset.asked = answer.query;
    this.news.replaceChildren(...told(answer.notices));
    // A new question selects its first hit; news of the same one keep what was selected.
    const kept = same ? answer.results.findIndex((hit) => hit.id === before) : -1;
    this.select(Math.max(0, kept));
    const count = answer.results.length;
    this.shell.say(count ? `${words.plural(count, "passage")}${answer.stale ? ", and some notes are not read yet" : ""}` : "Nothing was found. Try other words, or fewer filters.");
  }

  row(hit, i) {
    const tags = [hit.pinned && "pinned", hit.conflicts_with?.length && "contradicted elsewhere", hit.superseded_by && "replaced by a newer one", hit.hidden && "has a hidden secret"].filter(Boolean);
    const body = hit.html ? rendered(hit.html, { links: false }) : marked(flowing(hit.snippet), this.answer.query);
    const facts = [hit.citation, words.day(hit.date), words.source(hit.source), words.writer(hit.origin)];
    const made = el(
      "li",
      { role: "option", id: `hit-${i}`, "data-id": hit.id, "aria-selected": "false" },
      el("div", { class: "head" }, el("span", { class: "name", dir: "auto" }, words.headed(hit)), hit.certainty ? el("span", { class: `sure ${hit.certainty}` }, hit.certainty) : null),
      el("div", { class: "prose snippet", dir: "auto" }, ...body),
      el("p", { class: "meta" }, ...facts.filter(Boolean).map((fact) => el("span", { dir: "auto" }, fact)), ...tags.map((name) => el("span", { class: "warning" }, name))),
    );
    made.addEventListener("click", () => {
      this.select(i);
      if (!WIDE.matches) this.open();
    });
    return made;
  }

  select(at) {
    const hit = this.answer?.results[at];
    this.at = hit ? at : -1;
    [...this.list.children].forEach((row, i) => row.setAttribute("aria-selected", String(i === at)));
    if (!hit) {
      $("query").removeAttribute("aria-activedescendant");
      this.beside.clear();
      return;
    }
    $("query").setAttribute("aria-activedescendant", `hit-${at}`);
    this.list.children[at].scrollIntoView({ block: "nearest" });
    this.beside.show(hit, this.answer);
  }

  // On a small screen the passage takes the place of the list; on a wide one the keys go to it.
  open() {
    if (this.at < 0) return;
    this.body.classList.add("opened");
    this.beside.focus();
  }

  close() {
    this.body.classList.remove("opened");
    $("query").focus();
  }

  key(event, typing) {
    const own = event.target === $("query") || !typing;
    const inPane = this.beside.pane.contains(document.activeElement);
    if (event.key === "Escape" && (inPane || this.body.classList.contains("opened"))) this.close();
    else if (!typing && event.key === "w") this.beside.why();
    else if (!typing && event.key === "o") this.beside.page();
    else if (!own || inPane) return false;
    else if (event.key === "ArrowDown") this.select(Math.min(this.at + 1, (this.answer?.results.length || 0) - 1));
    else if (event.key === "ArrowUp") this.select(Math.max(this.at - 1, 0));
    else if (event.key === "Enter" && !event.isComposing && (event.target === $("query") || event.target === document.body)) this.open();
    else return false;
    return true;
  }
}

// "Why isn't that here?": what became of a note that one expected.
function missing(shell, asked) {
  const path = el("input", { id: "missing-path", placeholder: "memory/2026-05-06.md", spellcheck: "false", autocomplete: "off" });
  const story = el("div", { "aria-live": "polite" });
  const tell = async (event) => {
    event.preventDefault();
    if (!path.value.trim()) return;
    try {
      const { limit, ...rest } = asked();
      const answer = await shell.ask("why", { ...rest, reference: path.value.trim(), limit });
      const { trace } = await shell.ask("search", { ...rest, limit, explain: true });
      story.replaceChildren(el("p", {}, words.verdict(answer)), el("details", {}, el("summary", {}, "The numbers"), ...numbers(trace, answer.id)));
    } catch (error) {
      story.replaceChildren(el("p", {}, `${error.message}${error.hint ? `: ${error.hint}` : ""}`));
    }
  };
  const form = el("form", { class: "row", onsubmit: tell }, el("label", { for: "missing-path" }, "Path of the note"), path, el("button", {}, "Tell me"));
  return el("details", { class: "absent" }, el("summary", {}, "Why isn’t that here?"), form, story);
}
