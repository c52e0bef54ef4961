// The page: a question, its hits, and beside them how the ranking came about.

import { Refusal, ask, latest, listen, onTokenNeeded } from "./ask.js";
import { $, el, flowing, marked, percent, svg } from "./dom.js";
import { columns, slopes, strip, sum, table } from "./drawing.js";
import * as knobs from "./knobs.js";

const DEBOUNCE_MS = 30;
const FEW = 2;
const search = latest();
const searchBeside = latest();
const state = { profiles: [], answer: null, chosen: null, at: -1, days: null };

const profile = (name) => state.profiles.find((p) => p.name === name) || state.profiles[0];

function question() {
  const given = { query: $("query").value, limit: 10, explain: true };
  if (state.days) {
    given.since = state.days;
    given.until = state.days;
  }
  return given;
}

async function run() {
  const asked = question();
  if (!asked.query.trim()) {
    clear();
    return;
  }
  const begun = performance.now();
  try {
    const own = profile($("profile").value);
    const answer = await search("search", { ...asked, profile: own.name, ...knobs.overrides(own) });
    if (!answer) return;
    state.answer = answer;
    show(answer, begun);
    if (!$("other").hidden) await runBeside(asked);
  } catch (error) {
    fail(error);
  }
}

async function runBeside(asked) {
  const answer = await searchBeside("search", { ...asked, profile: $("beside").value, explain: false });
  if (!answer) return;
  const ranks = new Map(state.answer.results.map((hit, i) => [hit.id, i + 1]));
  $("other-hits").replaceChildren(...answer.results.map((hit, i) => card(hit, i, { beside: ranks })));
}

function clear() {
  state.answer = null;
  for (const id of ["hits", "other-hits", "notices", "slopes", "chosen", "table", "story"]) $(id).replaceChildren();
  $("strip").setAttribute("hidden", "");
  $("state").textContent = "Type a question. Nothing leaves this machine.";
}

function fail(error) {
  const hint = error instanceof Refusal ? error.hint : "is the server still running?";
  $("state").textContent = `${error.message}${hint ? ` – ${hint}` : ""}`;
}

function show(answer, begun) {
  const hits = answer.results;
  $("hits").replaceChildren(...hits.map((hit, i) => card(hit, i)));
  $("notices").replaceChildren(...answer.notices.map((n) => el("p", {}, n.hint ? `${n.message} – ${n.hint}` : n.message)));
  state.at = -1;
  if (!hits.some((hit) => hit.id === state.chosen)) state.chosen = hits[0]?.id || null;
  draw();
  const pool = Object.keys(answer.trace.candidates).length;
  const took = Math.round(performance.now() - begun);
  $("state").textContent = `${hits.length} of ${pool} candidates, ${answer.mode}${answer.stale ? ", not up to date" : ""}, ${answer.took_ms.toFixed(0)} ms (${took} ms here)`;
  $("state").dataset.tookMs = String(took);
}

function card(hit, i, { beside } = {}) {
  const asked = $("query").value;
  const bars = el("div", { class: "bars" }, ...bar("score", hit.score), ...bar("confidence", hit.confidence));
  const badges = [];
  const others = hit.conflicts_with || [];
  for (const id of others.slice(0, FEW)) badges.push(leading(`conflicts with ${named(id)}`, id));
  if (others.length > FEW) badges.push(el("span", { class: "badge", title: others.slice(FEW).map(named).join("\n") }, `and ${others.length - FEW} more`));
  if (hit.superseded_by) badges.push(leading(`superseded by ${named(hit.superseded_by)}`, hit.superseded_by));
  if (hit.origin && hit.origin !== "owner") badges.push(el("span", { class: "badge" }, hit.origin));
  if (beside) badges.push(moved(beside.get(hit.id), i + 1));
  const made = el(
    "li",
    { tabindex: 0, "data-id": hit.id, "aria-current": hit.id === state.chosen && !beside ? "true" : null },
    el("div", { class: "place" }, el("b", {}, String(i + 1)), el("span", { dir: "auto" }, hit.citation), el("span", {}, hit.date || "")),
    hit.heading.length ? el("div", { class: "heading", dir: "auto" }, hit.heading.join(" › ")) : null,
    el("p", { class: "snippet", dir: "auto" }, ...marked(flowing(hit.snippet), asked)),
    bars,
    el("p", { class: "why" }, ...badges, hit.why),
  );
  made.addEventListener("click", () => open(null, hit.citation));
  made.addEventListener("focus", () => choose(hit.id));
  return made;
}

// A passage that another is told to speak against or replace, by its place where the answer knows it.
const named = (id) => state.answer?.trace?.candidates[id]?.citation || `passage ${id}`;

const leading = (words, id) => el("button", { type: "button", class: "badge", dir: "auto", onclick: (e) => open(e, id) }, words);

function moved(before, now) {
  if (!before) return el("span", { class: "badge" }, "new here");
  if (before === now) return el("span", { class: "badge" }, `also ${now}`);
  return el("span", { class: `badge ${before > now ? "move-up" : "move-down"}` }, `${before} → ${now}`);
}

function bar(name, value) {
  const picture = svg("svg", { viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("rect", { class: "track", width: 100, height: 6, rx: 2 }), svg("rect", { class: name, width: Math.max(1, value * 100), height: 6, rx: 2 }));
  return [el("span", {}, name), picture, el("span", {}, percent(value))];
}

function draw() {
  const { answer, chosen } = state;
  if (!answer) return;
  const begun = performance.now();
  const hits = new Set(answer.results.map((hit) => hit.id));
  slopes($("slopes"), answer.trace, { hits, chosen, choose });
  $("slopes").dataset.drawMs = (performance.now() - begun).toFixed(1);
  strip($("strip"), answer.trace, { hits, pick: pickDays });
  if ($("table").closest("details").open) table($("table"), answer.trace);
  tell(chosen);
}

function choose(id) {
  if (id === state.chosen || !state.answer) return;
  state.chosen = id;
  for (const item of $("hits").children) {
    if (item.dataset.id === id) item.setAttribute("aria-current", "true");
    else item.removeAttribute("aria-current");
  }
  draw();
}

// One candidate's way: what made its score, then its rank after every step.
function tell(id) {
  const candidate = state.answer.trace.candidates[id];
  if (!candidate) {
    $("chosen").replaceChildren();
    return;
  }
  const steps = columns(state.answer.trace).map((step) => {
    const mark = step.places.get(id);
    const said = mark ? `#${mark.rank} (${mark.score.toFixed(3)})` : step.dropped.has(id) ? "dropped here" : "not found";
    return el("tr", {}, el("td", { title: step.title }, step.name), el("td", {}, said));
  });
  $("chosen").replaceChildren(
    el("h2", { dir: "auto" }, candidate.citation),
    Object.keys(candidate.parts || {}).length ? sum(candidate.parts) : "",
    el("details", {}, el("summary", {}, "Step by step"), el("table", {}, el("tbody", {}, ...steps))),
  );
}

function pickDays(days) {
  state.days = state.days === days ? null : days;
  const range = $("strip-range");
  range.hidden = !state.days;
  range.replaceChildren(...(state.days ? [`only ${state.days} `, el("button", { type: "button", onclick: () => pickDays(state.days) }, "all days")] : []));
  run();
}

async function open(event, reference) {
  event?.stopPropagation();
  try {
    const passage = await ask("get", { reference });
    const whole = await ask("get", { reference: passage.path });
    const target = (n) => n >= passage.start_line && n <= passage.end_line;
    const lines = whole.text.split("\n").map((text, i) => el("span", { class: target(i + 1) ? "row target" : "row", "data-line": i + 1 }, el("span", { dir: "auto" }, text || "\u200b")));
    $("note-title").textContent = passage.path;
    $("note-lines").replaceChildren(...lines);
    $("note").showModal();
    $("note-lines").querySelector(".target")?.scrollIntoView({ block: "center" });
  } catch (error) {
    fail(error);
  }
}

async function explain(event) {
  event.preventDefault();
  const own = profile($("profile").value);
  const { query } = question();
  try {
    const story = await ask("why", { query, reference: $("reference").value, profile: own.name, ...knobs.overrides(own) });
    $("story").replaceChildren(el("h2", { dir: "auto" }, `${story.citation}: ${story.verdict}`), el("ul", {}, ...story.story.map((line) => el("li", {}, line))));
    choose(story.id);
  } catch (error) {
    $("story").replaceChildren(el("p", {}, `${error.message} ${error.hint || ""}`));
  }
}

async function health() {
  const status = await ask("status", {});
  const covered = status.chunks ? status.embedded / status.chunks : 1;
  const kind = status.fresh && covered === 1 ? "good" : "warn";
  $("health-dot").className = `dot ${kind}`;
  $("health-word").textContent = `${status.documents} notes`;
  const facts = {
    "on disk": `${status.on_disk} notes`,
    "in the index": `${status.documents} notes, ${status.chunks} passages`,
    "to do": `${status.to_add} to add, ${status.to_change} changed, ${status.to_drop} gone`,
    model: status.embedder,
    "have a vector": `${status.embedded} of ${status.chunks}`,
    size: `${(status.bytes / 1e6).toFixed(1)} MB`,
    workspace: status.workspace,
    "passed over": String(status.skipped.length),
  };
  const rows = Object.entries(facts).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)));
  const bar = el("progress", { max: 1, value: covered, "aria-label": "passages with a vector" });
  $("health").replaceChildren(el("dl", {}, ...rows), bar, ...status.notices.map((n) => el("p", { class: "quiet" }, `${n.message} ${n.hint}`)));
}

function heard(event) {
  if (event.event === "progress") {
    $("health-dot").className = "dot warn";
    $("health-word").textContent = `${event.what} ${event.done} of ${event.total}`;
    const bar = $("health").querySelector("progress");
    if (bar && event.what === "vectors") bar.value = event.done / event.total;
  } else {
    health().catch(fail);
    if (event.event === "synced" && event.changed) run();
  }
}

function keys(event) {
  if (document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = /^(input|select|textarea)$/iu.test(event.target.tagName);
  const items = [...$("hits").children];
  const current = items.indexOf(document.activeElement);
  if (event.key === "/" && !typing) {
    event.preventDefault();
    $("query").select();
  } else if (event.key === "Escape") {
    $("query").select();
  } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && (event.target === $("query") || current >= 0)) {
    event.preventDefault();
    const next = current + (event.key === "ArrowDown" ? 1 : -1);
    if (next < 0) $("query").focus();
    else items[Math.min(next, items.length - 1)]?.focus();
  } else if (event.key === "Enter" && current >= 0) {
    items[current].click();
  } else if (event.key === "e" && current >= 0) {
    $("chosen").scrollIntoView({ block: "nearest" });
    const more = $("chosen").querySelector("details");
    if (more) more.open = true;
  } else if (event.key === "c" && !typing) $("compare").click();
  else if (event.key === "?" && !typing) $("keys").showModal();
}

function theme() {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("recollect-theme", document.documentElement.dataset.theme);
}

function compare() {
  const on = $("other").hidden;
  $("other").hidden = !on;
  $("compare").setAttribute("aria-pressed", String(on));
  if (on && state.answer) runBeside(question()).catch(fail);
}

function wire() {
  let timer = 0;
  $("query").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(run, DEBOUNCE_MS);
  });
  $("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    run();
  });
  $("profile").addEventListener("change", () => {
    knobs.reset(profile($("profile").value));
    run();
  });
  $("beside").addEventListener("change", () => runBeside(question()).catch(fail));
  $("reset").addEventListener("click", () => {
    knobs.reset(profile($("profile").value));
    run();
  });
  $("compare").addEventListener("click", compare);
  $("missing").addEventListener("submit", explain);
  $("theme").addEventListener("click", theme);
  $("keys-button").addEventListener("click", () => $("keys").showModal());
  for (const id of ["note", "keys"]) $(`${id}-close`).addEventListener("click", () => $(id).close());
  $("health-button").addEventListener("click", () => {
    $("health").hidden = !$("health").hidden;
    $("health-button").setAttribute("aria-expanded", String(!$("health").hidden));
    if (!$("health").hidden) health().catch(fail);
  });
  $("table").closest("details").addEventListener("toggle", draw);
  document.addEventListener("keydown", keys);
  addEventListener("resize", () => requestAnimationFrame(draw));
  // One request for many movements: the last one counts.
  let waiting = false;
  knobs.onTurn(() => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      run();
    });
  });
  onTokenNeeded(
    () =>
      new Promise((given) => {
        $("token").addEventListener("close", () => given($("token-value").value.trim()), { once: true });
        $("token").showModal();
      }),
  );
}

async function start() {
  const chosen = localStorage.getItem("recollect-theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
  wire();
  clear();
  state.profiles = (await ask("profiles", {})).profiles;
  for (const id of ["profile", "beside"]) $(id).replaceChildren(...state.profiles.map((p) => el("option", { value: p.name }, p.name)));
  $("beside").value = "openclaw";
  knobs.reset(profile("default"));
  const asked = new URLSearchParams(location.search).get("q");
  if (asked) $("query").value = asked;
  await Promise.all([health(), asked ? run() : null]);
  listen(heard);
}

start().catch(fail);
