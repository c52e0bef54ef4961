// Makes elements without markup: text from a note is never parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

export const $ = (id) => document.getElementById(id);

export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((c) => c !== null && c !== undefined));
  return made;
}

const COMMON = new Set("the and are was were did does has have had for with from that this what which who when where why how our you your not its".split(" "));
const WIDE = /[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]/u;

// The words of a question as they may occur in a text; for scripts without spaces, pairs of characters.
function words(question) {
  const found = new Set();
  for (const word of question.toLowerCase().match(/[\p{L}\p{N}_]+/gu) || []) {
    if (!WIDE.test(word)) {
      if (word.length > 2 && !COMMON.has(word)) found.add(word.length > 5 ? word.replace(/(ing|ed|es|s)$/u, "") : word);
      continue;
    }
    const letters = [...word];
    for (let i = 0; i + 1 < letters.length; i++) found.add(letters[i] + letters[i + 1]);
    if (letters.length === 1) found.add(word);
  }
  return [...found].sort((a, b) => b.length - a.length);
}

// Joins lines that were only broken to fit a column; lists, tables and code keep their lines.
export const flowing = (text) => text.replace(/(?<=[^\s|])\n(?=[^\s\-*+|>#`\d])/gu, " ");

// Soft hyphens and characters without width, which pages leave inside words.
const UNSEEN = "\\u00ad\\u200b-\\u200f\\u2060\\ufeff";
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

// The text, with the words of the question marked.
export function marked(text, question) {
  const wanted = words(question.replace(new RegExp(`[${UNSEEN}]`, "gu"), ""));
  if (!wanted.length) return [text];
  const spelled = (w) => [...w].map(escaped).join(`[${UNSEEN}]*`);
  const pattern = wanted.map((w) => (WIDE.test(w) ? spelled(w) : `(?<![\\p{L}\\p{N}])${spelled(w)}[\\p{L}\\p{N}${UNSEEN}]*`));
  const parts = [];
  let last = 0;
  for (const match of text.matchAll(new RegExp(pattern.join("|"), "giu"))) {
    parts.push(text.slice(last, match.index), el("mark", {}, match[0]));
    last = match.index + match[0].length;
  }
  parts.push(text.slice(last));
  return parts.filter((p) => p !== "");
}

export const percent = (value) => `${Math.round(value * 100)} %`;
