// The selected hit beside the list: why it is here, and its note at its line.

import { el } from "./dom.js";
import { reading, target } from "./prose.js";
import { citation } from "./parts.js";
import { hash, noteAt } from "./route.js";
import { Why } from "./why.js";
import * as words from "./words.js";

const PAUSE_MS = 120; // a note is fetched once the typing rests

export class Beside {
  constructor(shell, { back, asked }) {
    this.shell = shell;
    this.hit = null;
    this.whyHere = new Why(shell, asked);
    this.head = el("header", {});
    this.note = el("article", { class: "prose note", "aria-label": "The note" });
    this.around = el("nav", { class: "around", "aria-label": "Before and after" });
    const close = el("button", { type: "button", class: "plain back", onclick: back }, "← Hits");
    this.text = el("div", { class: "text", tabindex: 0, role: "region", "aria-label": "The selected passage in its note" }, this.note, this.around);
    this.inner = el("div", { class: "inner", hidden: true }, this.head, this.whyHere.part, this.text);
    this.pane = el("section", { class: "beside", "aria-label": "The selected passage" }, close, this.inner);
  }

  leave() {
    clearTimeout(this.timer);
    this.fetching?.abort();
  }

  clear() {
    this.leave();
    this.hit = null;
    this.inner.hidden = true;
  }

  show(hit, answer) {
    const same = this.hit?.id === hit.id;
    this.hit = hit;
    this.inner.hidden = false;
    this.pane.dataset.id = hit.id;
    this.whyHere.show(hit, answer);
    if (same) return;
    this.headOf(hit);
    clearTimeout(this.timer);
    this.fetching?.abort();
    this.timer = setTimeout(() => this.fetch(hit), PAUSE_MS);
  }

  headOf(hit) {
    const links = [el("a", { class: "button", href: noteAt(hit.citation) }, "Open the note")];
    if (this.shell.writable) {
      for (const [action, label] of [["correct", "Correct"], ["forget", "Forget"]]) links.push(el("a", { class: "button", href: hash("change", { do: action, ref: hit.id }) }, label));
      for (const other of (hit.conflicts_with || []).slice(0, 1)) links.push(el("a", { class: "button", href: hash("change", { do: "settle", keep: hit.id, drop: other }) }, "Settle the contradiction"));
    }
    const facts = [citation(hit.citation), words.longDay(hit.date), words.source(hit.source), words.writer(hit.origin)].filter(Boolean);
    this.head.replaceChildren(el("h2", { dir: "auto" }, words.headed(hit)), el("p", { class: "meta" }, ...facts.map((fact) => el("span", { dir: "auto" }, fact))), el("p", { class: "row" }, ...links));
  }

  // The note itself; the passage is in view, and what came before and after is a short way up or down.
  async fetch(hit) {
    const own = (this.fetching = new AbortController());
    try {
      const note = await this.shell.ask("note", { path: hit.path, line: hit.start_line }, own.signal);
      if (this.hit?.id !== hit.id) return;
      this.note.replaceChildren(...reading(note));
      const end = (one, label) => (one ? el("a", { href: hash("note", {}, one.path), dir: "auto" }, el("span", { class: "quiet" }, label), one.title || one.path) : null);
      this.around.replaceChildren(...[end(note.before, "Before"), end(note.after, "After")].filter(Boolean));
      const found = target(this.note, hit.start_line, hit.end_line);
      const { text } = this;
      if (found) text.scrollTop += found.getBoundingClientRect().top - text.getBoundingClientRect().top - text.clientHeight / 4;
      this.pane.dataset.shown = hit.id;
    } catch (error) {
      if (!own.signal.aborted) this.note.replaceChildren(el("p", { class: "quiet" }, error.message));
    }
  }

  focus() {
    this.text.focus({ preventScroll: true });
    if (matchMedia("(max-width: 61.99rem)").matches) target(this.note, this.hit.start_line, this.hit.end_line)?.scrollIntoView({ block: "center" });
  }

  why() {
    this.whyHere.toggle();
  }

  page() {
    if (this.hit) this.shell.go(noteAt(this.hit.citation));
  }
}
