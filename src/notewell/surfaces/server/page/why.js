// "Why is this here?": one sentence, then the numbers, then the drawing of all steps.

import { el, percent, svg } from "./dom.js";
import { columns, slopes, sum } from "./drawing.js";
import * as words from "./words.js";

export class Why {
  constructor(shell, asked) {
    this.shell = shell;
    this.asked = asked;
    this.sentence = el("p", { "aria-live": "polite" });
    this.numbers = el("div", {});
    this.picture = svg("svg", { class: "slopes", role: "img", "aria-label": "The place of every candidate after every step" });
    this.first = this.fold("The numbers", this.numbers);
    this.second = this.fold("All steps as a drawing", el("figure", {}, this.picture, el("figcaption", {}, "Each line is a passage that came into question; the thick one is this one. Higher is better.")));
    this.part = el("details", { class: "why" }, el("summary", {}, "Why is this here?"), this.sentence, this.first, this.second);
  }

  fold(title, body) {
    const made = el("details", {}, el("summary", {}, title), body);
    made.addEventListener("toggle", async () => {
      await this.draw();
      if (made.open) made.scrollIntoView({ block: "nearest" });
    });
    return made;
  }

  toggle() {
    this.part.open = !this.part.open;
  }

  // Always about the selected hit: what was asked before is dropped with the answer it belonged to.
  show(hit, answer) {
    if (answer !== this.answer) this.trace = null;
    this.hit = hit;
    this.answer = answer;
    this.part.dataset.id = hit.id;
    const sure = hit.certainty ? ` That makes it ${hit.certainty === "weak" ? "a weak match" : `${hit.certainty === "likely" ? "a likely" : "a possible"} answer`} (${percent(hit.confidence)}).` : "";
    this.sentence.textContent = words.because(hit) + sure;
    this.draw();
  }

  async draw() {
    if (!this.part.open || !(this.first.open || this.second.open)) return;
    const { answer, hit } = this;
    this.trace ||= this.shell.ask("search", { ...this.asked(), query: answer.query, explain: true }).then((full) => full.trace);
    try {
      const trace = await this.trace;
      if (this.hit !== hit || !trace) return;
      const one = trace.candidates[hit.id];
      this.numbers.replaceChildren(...(one ? numbers(trace, hit.id) : [el("p", {}, "The notes have changed; search again.")]));
      if (!this.second.open) return;
      slopes(this.picture, trace, { hits: new Set(answer.results.map((h) => h.id)), chosen: hit.id, choose: () => null, names: STEPS });
      this.picture.dataset.id = hit.id;
    } catch (error) {
      this.trace = null;
      this.numbers.replaceChildren(el("p", {}, error.message));
    }
  }
}

// What the steps do, for people; the laboratory has the builders' names.
const STEPS = { keywords: "words", meaning: "meaning", name: "name", combine: "together", boost: "pinned", suppress: "replaced", collapse: "copies", spread: "variety", listing: "lists", newer: "newer", settle: "disagree", replies: "replies", decay: "age", mmr: "unlike", quota: "share", rerank: "reread", abstain: "unsure", cut: "shown" };
const PARTS = { keywords: "its words", meaning: "its meaning", cover: "share of words", near: "words close", window: "nearest part", head: "in its heading", date: "its day", exact: "exact words", total: "altogether" };
const LEGS = { keywords: "by its words", meaning: "by its meaning", name: "by its name or day" };

// The places of a passage in each way of looking, and what its score is made of.
export function numbers(trace, id) {
  const steps = columns(trace).filter((step) => step.leg);
  const rows = steps.map((step) => {
    const mark = step.places.get(id);
    return el("tr", {}, el("th", { scope: "row" }, LEGS[step.name] || step.name), el("td", {}, mark ? `place ${mark.rank} of ${step.places.size}` : step.places.size ? "not among the first" : "nothing was found this way"));
  });
  const made = trace.candidates[id]?.parts || {};
  const parts = Object.keys(made).length ? [el("p", { class: "quiet" }, "What adds up to its score:"), sum(made, PARTS)] : [];
  return [el("table", {}, el("tbody", {}, ...rows)), ...parts];
}
