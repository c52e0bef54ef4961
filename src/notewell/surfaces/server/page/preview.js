// What a change would write, shown before it is written; and what happened after.

import { ask } from "./ask.js";
import { el } from "./dom.js";
import { diff, failed } from "./parts.js";
import { hash } from "./route.js";

export class Preview {
  constructor(shell) {
    this.shell = shell;
    this.part = el("section", { class: "preview", "aria-label": "Preview", "aria-live": "polite", tabindex: -1 });
  }

  async ask(asked, before = null) {
    this.part.setAttribute("aria-busy", "true");
    try {
      const shown = await ask("preview", asked);
      this.draw(asked, shown, before);
    } catch (error) {
      this.part.replaceChildren(failed(error));
    }
    this.part.removeAttribute("aria-busy");
    this.part.scrollIntoView({ block: "nearest" });
  }

  // With `before`, the file has changed since a preview was shown: that one is shown too.
  draw(asked, shown, before) {
    const write = el("button", { type: "button", class: asked.action === "forget" ? "main danger" : "main", onclick: () => this.write(asked, shown, write) }, asked.action === "forget" ? "Forget it" : "Write it");
    const away = el("button", { type: "button", onclick: () => this.part.replaceChildren() }, "Leave it");
    const warned = before ? [el("div", { class: "failed", role: "alert" }, el("p", {}, "The note has changed meanwhile, so nothing was written. Look at both and decide."))] : [];
    const old = before ? [el("h3", {}, "What you saw"), ...files(before)] : [];
    this.part.replaceChildren(
      ...warned,
      el("h2", {}, before ? "What would be written now" : "Before it is written"),
      el("p", { dir: "auto" }, shown.summary),
      ...(shown.warnings || []).map((text) => el("p", { class: "notice" }, typeof text === "string" ? text : text.message)),
      ...files(shown),
      ...old,
      el("p", { class: "row" }, ...(shown.diffs.length || asked.action === "forget" ? [write] : []), away),
    );
    write.focus({ preventScroll: true });
  }

  async write(asked, shown, button) {
    button.disabled = true;
    try {
      const done = await ask("apply", { token: shown.token });
      this.done(done);
    } catch (error) {
      if (error.code === "changed") await this.ask(asked, shown);
      else this.part.replaceChildren(failed(error));
    }
  }

  done(done) {
    this.shell.changed?.();
    const back = el("button", { type: "button", onclick: () => this.undo(done, back) }, "Undo");
    const links = (done.paths || []).map((path) => el("a", { class: "button", href: hash("note", {}, path), dir: "auto" }, `Open ${path}`));
    this.part.replaceChildren(el("h2", {}, "Done"), el("p", { class: "receipt", dir: "auto" }, done.receipt), el("p", { class: "row" }, ...(done.undo ? [back] : []), ...links));
    this.part.focus({ preventScroll: true });
  }

  async undo(done, button) {
    button.disabled = true;
    try {
      const answer = await ask("undo", { undo: done.undo });
      this.part.replaceChildren(el("h2", {}, "Taken back"), el("p", { dir: "auto" }, answer.receipt || "It is as it was before."));
      this.shell.changed?.();
    } catch (error) {
      this.part.replaceChildren(failed(error));
    }
  }
}

const files = (shown) => shown.diffs.flatMap((one) => [el("h3", { dir: "auto" }, one.path), diff(one.diff)]);
