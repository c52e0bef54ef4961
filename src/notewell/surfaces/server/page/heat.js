// The days of a memory as a strip of weeks: the more was written, the deeper the colour.

import { el, svg } from "./dom.js";
import { hash } from "./route.js";
import * as words from "./words.js";

const CELL = 13;
const STEP = 16;
const DAY_MS = 864e5;
const time = (day) => Date.parse(`${day}T00:00:00Z`);
const name = (ms) => new Date(ms).toISOString().slice(0, 10);

// A Monday first week; `end` is the last day shown and as many weeks as fit the width go before it.
export function strip(days, { end = "", width = 900 } = {}) {
  const counts = new Map(days.map((d) => [d.day, d]));
  const last = end || days.at(-1)?.day || words.today();
  const weeks = Math.max(8, Math.min(106, Math.floor((width - 34) / STEP)));
  const monday = time(last) - ((new Date(time(last)).getUTCDay() + 6) % 7) * DAY_MS;
  const first = monday - (weeks - 1) * 7 * DAY_MS;
  const step = steps(days);
  const cells = [];
  const months = [];
  for (let week = 0; week < weeks; week++) {
    for (let row = 0; row < 7; row++) {
      const ms = first + (week * 7 + row) * DAY_MS;
      if (ms > time(last)) break;
      const day = name(ms);
      if (day.endsWith("-01") || (week === 0 && row === 0)) months.push({ x: 34 + week * STEP, day });
      cells.push(cell(day, counts.get(day), { x: 34 + week * STEP, y: 20 + row * STEP, step }));
    }
  }
  const labels = spaced(months).map((m) => svg("text", { x: m.x, y: 12 }, words.month(m.day).slice(0, 3) + (m.day.slice(5, 7) === "01" ? ` ${m.day.slice(0, 4)}` : "")));
  const rows = ["Mon", "Wed", "Fri"].map((label, i) => svg("text", { x: 0, y: 31 + i * 2 * STEP }, label));
  const wide = 34 + weeks * STEP;
  const picture = svg("svg", { class: "heat", viewBox: `0 0 ${wide} 134`, width: wide, height: 134, role: "group", "aria-label": `Days with notes up to ${words.day(last)}. Arrow keys go from day to day.` }, ...labels, ...rows, ...cells);
  picture.addEventListener("keydown", walk);
  const links = picture.querySelectorAll("a");
  links[links.length - 1]?.setAttribute("tabindex", "0");
  return { picture, first: name(first), last, before: days.some((d) => d.day < name(first)), after: days.some((d) => d.day > last) };
}

// Labels that would touch the one before are left out.
function spaced(months) {
  const shown = [];
  for (const one of months) {
    if (shown.length && one.x - shown.at(-1).x < 44) {
      if (one.day.endsWith("-01") && !shown.at(-1).day.endsWith("-01")) shown.pop();
      else continue;
    }
    shown.push(one);
  }
  return shown;
}

// The counts above which a day looks fuller: measured by a usual day, so that one busy day does not make all others pale.
function steps(days) {
  const sorted = days.map((d) => d.passages || d.notes).sort((a, b) => a - b);
  const usual = sorted[Math.floor(sorted.length / 2)] || 1;
  return [usual * 0.7, usual * 1.4, usual * 3];
}

function cell(day, count, { x, y, step }) {
  const amount = count?.passages || count?.notes || 0;
  const level = amount ? 1 + step.filter((least) => amount > least).length : 0;
  const square = svg("rect", { x, y, width: CELL, height: CELL, rx: 3, class: `level-${level}` });
  if (!amount) return square;
  const label = `${words.day(day)}: ${words.plural(count.notes, "note")}, ${words.plural(count.passages, "passage")}`;
  return svg("a", { href: hash("time", { day }), tabindex: -1, "data-day": day, "aria-label": label }, svg("title", {}, label), square);
}

// From day to day by arrow keys; days without notes are passed over.
function walk(event) {
  const links = [...event.currentTarget.querySelectorAll("a")];
  const here = links.indexOf(document.activeElement);
  const by = { ArrowLeft: -7, ArrowRight: 7, ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (here < 0 || !by) return;
  event.preventDefault();
  event.stopPropagation();
  const wanted = time(links[here].dataset.day) + by * DAY_MS;
  const ahead = by > 0 ? links.slice(here + 1) : links.slice(0, here).reverse();
  const next = ahead.find((link) => (by > 0 ? time(link.dataset.day) >= wanted : time(link.dataset.day) <= wanted)) || ahead.at(-1);
  if (!next) return;
  links[here].setAttribute("tabindex", "-1");
  next.setAttribute("tabindex", "0");
  next.focus();
}

// The strip with its buttons for earlier and later, drawn to fit; it is drawn again when the width changes.
export function calendar(days, { end = "" } = {}) {
  const frame = el("div", { class: "calendar" });
  const draw = (until) => {
    const shown = strip(days, { end: until, width: frame.clientWidth || 900 });
    const go = (label, where, there) => el("button", { type: "button", class: "plain", disabled: !there, onclick: () => draw(where) }, label);
    const later = name(Math.min(time(shown.last) + 26 * 7 * DAY_MS, Math.max(time(end || days.at(-1).day), time(shown.last))));
    const turns = shown.before || shown.after ? el("p", { class: "turns" }, go("← Earlier", name(time(shown.first) - DAY_MS), shown.before), go("Later →", later, shown.after)) : null;
    frame.replaceChildren(...[shown.picture, turns].filter(Boolean));
  };
  let wide = 0;
  new ResizeObserver(() => {
    if (Math.abs(frame.clientWidth - wide) < STEP) return;
    wide = frame.clientWidth;
    draw(end);
  }).observe(frame);
  return frame;
}
