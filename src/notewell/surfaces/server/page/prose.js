// A note as rendered by the server, with the lines that are looked for.

import { el } from "./dom.js";
import { linesOf, rendered } from "./safe.js";

// The rendered note, without a first heading that only repeats the title above it; what is not Markdown comes as text.
export function reading(note) {
  if (note.html) {
    const nodes = rendered(note.html);
    const first = nodes.findIndex((node) => typeof node !== "string" || node.trim());
    return nodes.filter((node, i) => i !== first || !(node.tagName === "H2" && node.textContent.trim() === note.title));
  }
  return [el("pre", { class: "plain-text", dir: "auto" }, note.text || "")];
}

const blocks = (article) => [...article.querySelectorAll("[data-line]")];

// Marks the smallest blocks that hold the lines, and returns the first of them.
export function target(article, first, last = first) {
  for (const one of article.querySelectorAll(".target")) one.classList.remove("target");
  const within = blocks(article).filter((block) => {
    const lines = linesOf(block);
    return lines.first <= last && lines.last >= first;
  });
  const smallest = within.filter((block) => !within.some((other) => other !== block && block.contains(other)));
  for (const one of smallest) one.classList.add("target");
  return smallest[0] || null;
}

// The innermost block in which a passage begins.
export function blockAt(article, line) {
  const after = blocks(article).filter((block) => linesOf(block).last >= line && block.tagName !== "TR");
  return after.find((block) => !block.querySelector("[data-line]")) || null;
}
