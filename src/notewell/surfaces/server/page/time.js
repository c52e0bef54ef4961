// Time: day by day what was written, newest first, and any day as the day to look back from.

import { el } from "./dom.js";
import { calendar } from "./heat.js";
import { chip, more } from "./parts.js";
import { hash } from "./route.js";
import * as words from "./words.js";

export async function show(main, route, shell) {
  const view = new Time(main, route, shell);
  await view.begin();
  return { changed: () => shell.again() };
}

class Time {
  constructor(main, route, shell) {
    this.shell = shell;
    this.day = route.given.day || "";
    this.topic = route.given.topic || "";
    this.days = [];
    this.next = this.day;
    this.list = el("div", { class: "timeline" });
    this.chips = el("div", { class: "chips" });
    this.foot = el("p", {});
    main.replaceChildren(el("h1", {}, "Time"), el("div", { id: "strip-of-days" }), this.chips, this.list, this.foot);
  }

  async begin() {
    const [home] = await Promise.all([this.shell.home(), this.load()]);
    if (home.days.length) document.getElementById("strip-of-days")?.replaceWith(calendar(home.days, { end: this.shell.asOf }));
  }

  async load() {
    const asked = this.next ? { to: this.next } : {};
    const answer = await this.shell.ask("days", asked);
    const known = new Set(this.days.map((one) => one.day));
    this.days.push(...answer.days.filter((one) => !known.has(one.day) && !(this.shell.asOf && one.day > this.shell.asOf)));
    this.next = answer.more || "";
    this.draw();
  }

  topics() {
    const counts = new Map();
    for (const entry of this.days.flatMap((one) => one.entries)) for (const topic of entry.topics || []) counts.set(topic, (counts.get(topic) || 0) + 1);
    return [...counts].sort((a, b) => b[1] - a[1]).slice(0, 40);
  }

  draw() {
    const list = this.topics();
    const choose = (topic) => {
      this.topic = topic;
      this.shell.settle(hash("time", { day: this.day, topic }));
      this.draw();
    };
    const options = [["", "all"], ...list.map(([name, count]) => [name, `${name} (${count})`])];
    if (this.topic && !list.some(([name]) => name === this.topic)) options.push([this.topic, this.topic]);
    const whole = this.day ? el("a", { class: "chip on", href: hash("time") }, `up to ${words.day(this.day)} ✕`) : null;
    this.chips.replaceChildren(...[list.length || this.topic ? chip("Topic", options, this.topic, choose) : null, whole].filter(Boolean));
    const groups = [];
    for (const one of this.days) {
      const entries = one.entries.filter((entry) => !this.topic || entry.topics?.includes(this.topic));
      if (!entries.length) continue;
      const month = one.day.slice(0, 7);
      if (groups.at(-1)?.month !== month) groups.push({ month, days: [] });
      groups.at(-1).days.push(this.row(one.day, entries, this.topic ? 0 : one.more));
    }
    const made = groups.map((group) => el("section", { "aria-label": words.month(`${group.month}-01`) }, el("h2", {}, words.month(`${group.month}-01`)), ...group.days));
    this.list.replaceChildren(...(made.length ? made : [el("p", { class: "quiet" }, this.topic ? "No day that is loaded has this topic." : "There are no dated notes.")]));
    this.foot.replaceChildren(...(this.next ? [el("button", { type: "button", onclick: () => this.load().catch((error) => this.shell.say(error.message)) }, "Earlier days")] : []));
  }

  row(day, entries, left) {
    const back = el("a", { class: "look-back", href: hash("home", { as_of: day }), "aria-label": `Everything as of this day, ${words.day(day)}` }, "as of this day");
    const line = (entry) =>
      el("li", {}, el("a", { href: hash("note", { line: /#L(\d+)/u.exec(entry.citation || "")?.[1] }, entry.path), "data-row": true, dir: "auto" }, entry.title || entry.path), entry.first_line ? el("p", { class: "quiet", dir: "auto" }, words.bare(entry.first_line)) : null, this.tags(entry));
    return el("div", { class: "day", "data-day": day }, el("div", { class: "when" }, el("h3", {}, words.longDay(day).replace(/ \d{4}$/u, "")), back), el("div", {}, el("ul", { class: "rows" }, ...entries.map(line)), more(left)));
  }

  tags(entry) {
    const topics = (entry.topics || []).slice(0, 6).map((topic) => el("span", { dir: "auto" }, topic));
    const source = entry.source && entry.source !== "memory" ? [el("span", {}, words.source(entry.source))] : [];
    return topics.length || source.length ? el("p", { class: "meta" }, ...source, ...topics) : null;
  }
}
