// The shell: which view is shown, the keys, the colours, and the day as of which everything is seen.

import { KEPT, Refusal, ask, listen, onTokenNeeded, unlock } from "./ask.js";
import { $, el } from "./dom.js";
import * as home from "./home.js";
import { failed } from "./parts.js";
import { hash, parse } from "./route.js";
import * as words from "./words.js";

const TITLES = { home: "", search: "Search", note: "Note", change: "Change", time: "Time", lab: "Laboratory" };
const MODULES = { home: () => home, search: () => import("./search.js"), note: () => import("./read.js"), change: () => import("./change.js"), time: () => import("./time.js"), lab: () => import("./lab.js") };

const DATED = new Set(["home", "note", "days", "search", "why"]);

let shown = null; // the view on the page: its route, and what it wants to hear of
let turn = 0;
let known = null; // what /api/home answered, until the memory changes

// What every view may ask of the page around it.
const shell = {
  asOf: "",
  writable: false,
  // A request, as of the chosen day where the call knows days.
  ask: (call, given = {}, signal) => ask(call, DATED.has(call) ? shell.dated(given) : given, signal),
  dated: (given) => (shell.asOf ? { ...given, as_of: shell.asOf } : given),
  home: () => (known ||= shell.ask("home").then(learned, forgotten)),
  go: (where) => {
    location.hash = where;
  },
  // The address of what is seen now, without a step back in the history.
  settle: (where) => history.replaceState(null, "", dated(where)),
  again: () => open(),
  // Something was written here: what Home said is out of date.
  changed: () => {
    known = null;
  },
  say: (text) => {
    $("state").textContent = text;
  },
  title: (text) => {
    document.title = text ? `${text} – notewell` : "notewell";
  },
};

function learned(answer) {
  // Notes without a date have the day of their file; a look back does not show days that were still to come.
  if (shell.asOf) answer.days = answer.days.filter((one) => one.day <= shell.asOf);
  shell.writable = answer.can_write && !shell.asOf;
  $("to-change").hidden = !shell.writable;
  for (const one of document.querySelectorAll(".writes")) one.hidden = !shell.writable;
  return answer;
}

function forgotten(error) {
  known = null;
  throw error;
}

const dated = (where) => {
  const { view, path, given } = parse(where);
  return hash(view, { ...given, as_of: shell.asOf }, path);
};

// Shows the view that the address names. The day stays while one goes from view to view.
async function open() {
  const own = ++turn;
  const route = parse(location.hash);
  if (route.given.as_of === undefined && shell.asOf) history.replaceState(null, "", dated(location.hash));
  else setDay(route.given.as_of || "");
  const main = $("view");
  const same = shown?.route.view === route.view;
  const moved = Boolean(shown) && !same;
  shown?.leave?.();
  shown = { route };
  document.body.dataset.view = route.view;
  for (const link of $("views").children) {
    if (link.dataset.view === route.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  shell.title(TITLES[route.view]);
  shell.say("");
  if (route.view !== "search") $("query").value = "";
  try {
    const view = await MODULES[route.view]();
    if (route.view !== "home") await shell.home().catch(() => null); // what may be written is known before it is offered
    if (own !== turn) return;
    if (!same) main.replaceChildren();
    const made = await view.show(main, route, shell);
    if (own !== turn) made?.leave?.();
    else shown = { route, ...made };
  } catch (error) {
    if (own === turn) main.replaceChildren(el("h1", {}, "That did not work"), failed(error instanceof Refusal ? error : { message: "The server did not answer.", hint: "Check that notewell serve is still running." }));
  }
  if (own !== turn) return;
  main.dataset.ready = location.hash;
  if (!same) scrollTo(0, 0);
  // What had the focus has gone with the view before: the next key goes on in this one, not at the top of the page.
  if (moved && document.activeElement === document.body) main.focus({ preventScroll: true });
}

function setDay(day) {
  const value = /^\d{4}-\d\d-\d\d$/u.test(day) ? day : "";
  if (value !== shell.asOf) known = null;
  shell.asOf = value;
  $("as-of").textContent = value ? `As of ${words.day(value)}` : "As of today";
  $("as-of").classList.toggle("on", Boolean(value));
  $("past").hidden = !value;
  const back = el("button", { type: "button", class: "plain", onclick: () => asOf("") }, "Back to today");
  $("past").replaceChildren(...(value ? [`You see the memory as of ${words.longDay(value)}. Nothing can be changed there. `, back] : []));
}

function asOf(day) {
  const { view, path, given } = parse(location.hash);
  shell.asOf = "";
  const where = hash(view, { ...given, as_of: day }, path);
  known = null;
  if (where === location.hash) open();
  else location.hash = where;
}

function chooseDay() {
  $("day-value").value = shell.asOf || words.today();
  $("day").showModal();
}

// The rows of a view that arrow keys go through.
const rows = () => [...$("view").querySelectorAll("[data-row]")].filter((row) => row.checkVisibility());

function step(event) {
  const list = rows();
  const here = list.indexOf(document.activeElement);
  const next = here + (event.key === "ArrowDown" ? 1 : -1);
  if (!list.length) return;
  event.preventDefault();
  if (next < 0) $("query").focus();
  else list[Math.min(next, list.length - 1)].focus();
}

const LETTERS = {
  "/": () => $("query").select(),
  "?": () => $("keys").showModal(),
  h: () => shell.go(hash("home")),
  t: () => shell.go(hash("time")),
  l: () => shell.go(hash("lab")),
  n: () => shell.writable && shell.go(hash("change", { do: "remember" })),
  d: chooseDay,
};

function keys(event) {
  if (event.defaultPrevented || document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = /^(input|select|textarea)$/iu.test(event.target.tagName);
  if (shown?.key?.(event, typing)) event.preventDefault();
  else if (!typing && LETTERS[event.key]) {
    event.preventDefault();
    LETTERS[event.key]();
  } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && (!typing || event.target === $("query"))) step(event);
  else if (event.key === "Escape" && event.target !== $("query")) $("query").select();
}

function theme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("notewell-theme", root.dataset.theme);
}

// Typing anywhere leads to the search; there the view itself listens.
function typed() {
  const where = hash("search", { q: $("query").value });
  if (shown?.typed) shown.typed();
  else if (shown?.route.view === "search") shell.settle(where); // the view is on its way, and will read the box
  else if ($("query").value.trim()) shell.go(where);
}

function received(event) {
  if (event.event === "progress") {
    shown?.progress?.(event);
    return;
  }
  shown?.heard?.(event);
  if (!event.changed) return;
  known = null;
  shown?.changed?.();
}

function wire() {
  $("query").addEventListener("input", typed);
  $("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    if (!shown?.typed) shell.go(hash("search", { q: $("query").value }));
  });
  $("skip").addEventListener("click", (event) => {
    event.preventDefault();
    $("view").focus();
  });
  $("theme").addEventListener("click", theme);
  $("as-of").addEventListener("click", chooseDay);
  $("keys-button").addEventListener("click", () => $("keys").showModal());
  for (const close of document.querySelectorAll("[data-close]")) close.addEventListener("click", () => close.closest("dialog").close());
  $("day").addEventListener("close", () => {
    if ($("day").returnValue === "set") asOf($("day-value").value);
    else if ($("day").returnValue === "now") asOf("");
    $("day").returnValue = "";
  });
  document.addEventListener("keydown", keys);
  addEventListener("hashchange", follow);
  addEventListener("storage", (event) => event.key === KEPT && $("token").close()); // from another tab
  $("token-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const wrong = await unlock($("token-value").value);
    $("token-wrong").textContent = wrong;
    if (!wrong) $("token").close();
  });
  onTokenNeeded(
    () =>
      new Promise((given) => {
        $("token").addEventListener("close", given, { once: true });
        $("token-value").value = "";
        $("token").showModal();
      }),
  );
}

async function follow() {
  await useToken();
  if (location.hash.startsWith("#/") || !location.hash) open();
}

// The address that `notewell serve` prints has its token behind the #, which no browser sends.
async function useToken() {
  const given = location.hash;
  if (!given.startsWith("#token=")) return;
  history.replaceState(null, "", location.pathname + location.search);
  if (!(await unlock(given))) $("token").close();
}

async function start() {
  const chosen = localStorage.getItem("notewell-theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
  wire();
  await useToken();
  const asked = new URLSearchParams(location.search).get("q");
  if (asked && !location.hash) history.replaceState(null, "", `/${hash("search", { q: asked })}`);
  await open();
  listen(received);
}

start();
