// Plain words for people: days, places, who wrote it, and why a passage was found.

export const plural = (count, one, many = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

const SHORT = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
const LONG = new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "long", year: "numeric", timeZone: "UTC" });
const MONTH = new Intl.DateTimeFormat("en-GB", { month: "long", year: "numeric", timeZone: "UTC" });

const at = (day) => new Date(`${day.slice(0, 10)}T00:00:00Z`);
const known = (day) => /^\d{4}-\d\d-\d\d/u.test(day || "") && !Number.isNaN(at(day).getTime());

export const day = (text) => (known(text) ? SHORT.format(at(text)) : text || "");
export const longDay = (text) => (known(text) ? LONG.format(at(text)) : text || "");
export const month = (text) => (known(text) ? MONTH.format(at(text)) : text || "");

// Today in this browser's own zone, as 2026-05-06.
export function today() {
  const now = new Date();
  return new Date(now.getTime() - now.getTimezoneOffset() * 60_000).toISOString().slice(0, 10);
}

export function daysBefore(count, from) {
  return new Date(at(from).getTime() - count * 864e5).toISOString().slice(0, 10);
}

export const SOURCES = { memory: "notes", sessions: "conversations", documents: "documents", media: "media", extra: "extra folders" };
export const source = (name) => SOURCES[name] || (name || "").replaceAll(/[-_]/gu, " ");

export const PEOPLE = { owner: "you", agent: "an agent", untrusted: "someone else", system: "a program" };
export const writer = (origin) => (origin ? `by ${PEOPLE[origin] || origin}` : "");

// One line of a note without the marks of Markdown around words.
export const bare = (text) => (text || "").replaceAll(/\*\*|__|`/gu, "").replaceAll(/\[\[([^\]|]*\|)?([^\]]*)\]\]/gu, "$2").replaceAll(/\[([^\]]*)\]\([^)\s]*\)/gu, "$1");

// A hit by the headings above it; its note where it has none.
export const headed = (hit) => [hit.title, ...hit.heading].filter((part, n, all) => part && all.indexOf(part) === n).join(" › ") || hit.path;

// The server's reasons for a hit, as one sentence.
export function because(hit) {
  const parts = (hit.why || "").split(", ");
  const told = (start) => parts.find((p) => p.startsWith(start)) || "";
  const cover = Number(/covers (\d+)%/u.exec(hit.why)?.[1] || 0);
  const said = [];
  if (cover >= 99) said.push(parts.includes("words close together") ? "it has every word of your question, close together" : "it has every word of your question");
  else if (cover) said.push(`it has ${cover >= 50 ? "most" : "some"} of the words of your question`);
  else if (told("keywords")) said.push("it shares words with your question");
  if (told("in a heading")) said.push("some of them in its heading or file name");
  if (told("meaning #")) said.push(told("meaning #1") === "meaning #1" ? "no other passage is nearer in meaning" : "it is near in meaning");
  if (told("name or date")) said.push("your question names its file or its day");
  if (told("from the day")) said.push("it is from the day you asked for");
  if (told("the reply")) said.push("it replies to somebody who asked the same");
  if (told("a list of links")) said.push("it leads to other notes about this");
  if (!said.length) return "It was the nearest passage found.";
  const list = said.length > 1 ? `${said.slice(0, -1).join(", ")}, and ${said.at(-1)}` : said[0];
  return `${list[0].toUpperCase()}${list.slice(1)}.`;
}

// What a person can do about a notice; options of the command line mean nothing here.
export const notice = (one) => (one.hint && !/(^|\s)--[a-z]/u.test(one.hint) ? `${one.message}: ${one.hint}` : one.message);

// What became of a note that was expected, in a sentence without the builders' words.
export function verdict(answer) {
  if (answer.rank) return `It is here, at place ${answer.rank}: ${answer.citation}.`;
  const said = answer.verdict;
  if (/^left out|forgotten/u.test(said)) return `${answer.citation} is not among the hits: ${said}.`;
  if (/^no leg/u.test(said)) return `${answer.citation} was not found: it shares no telling word with the question, and others are nearer in meaning.`;
  if (/beyond the limit/u.test(said)) return `${answer.citation} was found, but enough others match better.`;
  if (/is below/u.test(said)) return `${answer.citation} was found, but it is too unlikely an answer to show.`;
  if (/says the same/u.test(said)) return `${answer.citation} was found, but another note says the same, and that one is shown.`;
  if (/supersedes it/u.test(said)) return `${answer.citation} was found, but a newer note replaces it.`;
  return `${answer.citation} was found, but others went before it.`;
}
