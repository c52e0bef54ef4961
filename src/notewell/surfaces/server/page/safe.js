// Puts rendered Markdown into the page. The server has made it safe; here only known elements come through a second time.

import { el } from "./dom.js";

const KEPT = new Set("a blockquote br code dd del div dl dt em h1 h2 h3 h4 h5 h6 hr li mark ol p pre s section span strong sub sup table tbody td th thead time tr ul".split(" "));
const DROPPED = new Set("script style iframe object embed template noscript svg math link meta base form".split(" "));
const CLASSES = new Set("align-center align-left align-right front image missing turn who".split(" "));
const BLOCKS = new Set("p li h1 h2 h3 h4 h5 h6 td th blockquote pre dd dt".split(" "));

// The nodes of a rendered text. Without `links` they are plain words, as in a list of choices; headings begin at `top`.
export function rendered(html, { links = true, top = 2 } = {}) {
  const parsed = new DOMParser().parseFromString(html, "text/html");
  return [...parsed.body.childNodes].flatMap((node) => copied(node, { links, top }));
}

function copied(node, how) {
  if (node.nodeType === Node.TEXT_NODE) return [node.data];
  if (node.nodeType !== Node.ELEMENT_NODE) return [];
  const name = node.localName;
  if (DROPPED.has(name)) return [];
  const inner = [...node.childNodes].flatMap((child) => copied(child, how));
  if (!KEPT.has(name) || (name === "a" && !how.links)) return inner;
  return [el(renamed(name, how), attributes(node, name), ...inner)];
}

// A note's own headings go below the heading of the page; in a list they are only bold lines.
function renamed(name, how) {
  if (!/^h[1-6]$/u.test(name)) return name;
  return how.links ? `h${Math.min(6, Number(name[1]) + how.top - 1)}` : "p";
}

function attributes(node, name) {
  const made = {};
  if (/^\d+-\d+$/u.test(node.dataset.line || "")) made["data-line"] = node.dataset.line;
  if (/^h[1-6]$/u.test(name)) made.class = "head";
  else if (CLASSES.has(node.className)) made.class = node.className;
  if (BLOCKS.has(name)) made.dir = "auto";
  if (name === "ol" && /^\d{1,9}$/u.test(node.getAttribute("start") || "")) made.start = node.getAttribute("start");
  const href = name === "a" ? node.getAttribute("href") || "" : "";
  if (href.startsWith("#/")) made.href = href;
  else if (/^(https?:\/\/|mailto:)/iu.test(href)) Object.assign(made, { href, rel: "noopener noreferrer", target: "_blank" });
  return made;
}

// The lines of a block, from the mark that the server gave it.
export function linesOf(block) {
  const [first, last] = block.dataset.line.split("-").map(Number);
  return { first, last };
}
