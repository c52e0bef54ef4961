// The laboratory: how a ranking is made, with knobs to try, and what the index holds.

import { newest } from "./ask.js";
import { $, el, flowing, marked, percent, svg } from "./dom.js";
import { columns, slopes, strip, sum, table } from "./drawing.js";
import { check, health, progress } from "./health.js";
import * as knobs from "./knobs.js";
import { noteAt } from "./route.js";

const FEW = 2;
let shell = null;
let search = null;
let searchBeside = null;
let state = null;

const profile = (name) => state.profiles.find((p) => p.name === name) || state.profiles[0];

export async function show(main, route, around) {
  shell = around;
  search = newest();
  searchBeside = newest();
  state = { profiles: [], answer: null, chosen: null, days: null };
  main.replaceChildren($("laboratory").content.cloneNode(true));
  wire();
  clear();
  state.profiles = (await shell.ask("profiles")).profiles;
  for (const id of ["profile", "beside-profile"]) $(id).replaceChildren(...state.profiles.map((p) => el("option", { value: p.name }, p.name)));
  $("beside-profile").value = "openclaw";
  knobs.reset(profile("default"));
  $("lab-query").value = route.given.q || "";
  await Promise.all([health(shell).catch(fail), run()]);
  const again = () => requestAnimationFrame(draw);
  addEventListener("resize", again);
  return { leave: () => removeEventListener("resize", again), key, progress, heard: () => health(shell).catch(fail), changed: run };
}

function question() {
  const given = { query: $("lab-query").value, limit: 10, explain: true };
  if (state.days) Object.assign(given, { since: state.days, until: state.days });
  return shell.dated(given);
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
    if (!answer || !$("lab-hits")) return;
    state.answer = answer;
    fill(answer, begun);
    if (!$("other").hidden) await runBeside(asked);
  } catch (error) {
    fail(error);
  }
}

async function runBeside(asked) {
  const answer = await searchBeside("search", { ...asked, profile: $("beside-profile").value, explain: false });
  if (!answer || !state.answer) return;
  const ranks = new Map(state.answer.results.map((hit, i) => [hit.id, i + 1]));
  $("other-hits").replaceChildren(...answer.results.map((hit, i) => card(hit, i, { beside: ranks })));
}

function clear() {
  state.answer = null;
  for (const id of ["lab-hits", "other-hits", "notices", "slopes", "chosen", "table", "story"]) $(id).replaceChildren();
  $("strip").setAttribute("hidden", "");
  $("slopes").closest("figure").hidden = true;
  $("as-table").hidden = true;
  $("lab-state").textContent = "Type a question to see how its hits were ranked.";
}

function fail(error) {
  if ($("lab-state")) $("lab-state").textContent = `${error.message}${error.hint ? ` – ${error.hint}` : ""}`;
}

function fill(answer, begun) {
  const hits = answer.results;
  // Until a hit is chosen by hand, the first one is.
  if (!hits.some((hit) => hit.id === state.chosen) || !state.picked) state.chosen = hits[0]?.id || null;
  $("lab-hits").replaceChildren(...hits.map((hit, i) => card(hit, i)));
  $("notices").replaceChildren(...answer.notices.map((n) => el("p", { class: "notice" }, n.hint ? `${n.message} – ${n.hint}` : n.message)));
  $("slopes").closest("figure").hidden = false;
  $("as-table").hidden = false;
  draw();
  const pool = Object.keys(answer.trace.candidates).length;
  const took = Math.round(performance.now() - begun);
  $("lab-state").textContent = `${hits.length} of ${pool} candidates, ${answer.mode}${answer.stale ? ", index not up to date" : ""}, ${answer.took_ms.toFixed(0)} ms (${took} ms here)`;
}

function card(hit, i, { beside } = {}) {
  const badges = [];
  const others = hit.conflicts_with || [];
  for (const id of others.slice(0, FEW)) badges.push(leading(`conflicts with ${named(id)}`, id));
  if (others.length > FEW) badges.push(el("span", { class: "badge", title: others.slice(FEW).map(named).join("\n") }, `and ${others.length - FEW} more`));
  if (hit.superseded_by) badges.push(leading(`superseded by ${named(hit.superseded_by)}`, hit.superseded_by));
  if (hit.origin && hit.origin !== "owner") badges.push(el("span", { class: "badge" }, hit.origin));
  if (beside) badges.push(moved(beside.get(hit.id), i + 1));
  const made = el(
    "li",
    { "data-id": hit.id, "aria-current": hit.id === state.chosen && !beside ? "true" : null },
    el("div", { class: "place" }, el("b", {}, String(i + 1)), el("a", { href: noteAt(hit.citation), "data-row": true, dir: "auto" }, hit.citation), el("span", {}, hit.date || "")),
    hit.heading.length ? el("div", { class: "heading", dir: "auto" }, hit.heading.join(" › ")) : null,
    el("p", { class: "snippet", dir: "auto" }, ...marked(flowing(hit.snippet), state.answer.query)),
    el("div", { class: "bars" }, ...bar("confidence", hit.confidence, hit.certainty || "score")),
    el("p", { class: "because" }, ...badges, hit.why),
  );
  made.addEventListener("click", () => choose(hit.id));
  made.addEventListener("focusin", () => choose(hit.id));
  return made;
}

// A related passage by its citation if the answer has it, else by its id.
const named = (id) => state.answer?.trace?.candidates[id]?.citation || `passage ${id}`;

function leading(words, id) {
  const found = state.answer?.trace?.candidates[id]?.citation;
  return found ? el("a", { class: "badge", dir: "auto", href: noteAt(found) }, words) : el("span", { class: "badge", dir: "auto" }, words);
}

function moved(before, now) {
  if (!before) return el("span", { class: "badge" }, "only here");
  if (before === now) return el("span", { class: "badge" }, `also #${now}`);
  return el("span", { class: `badge ${before > now ? "move-up" : "move-down"}` }, `${before} → ${now}`);
}

// All bars begin at the same place and have the same scale, so that two lists can be compared.
function bar(name, value, word) {
  const picture = svg("svg", { viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("rect", { class: "track", width: 100, height: 6, rx: 2 }), svg("rect", { class: name, width: Math.max(1, value * 100), height: 6, rx: 2 }));
  return [el("span", {}, word), picture, el("span", {}, percent(value))];
}

function draw() {
  const { answer, chosen } = state;
  if (!answer || !$("slopes")) return;
  const begun = performance.now();
  const hits = new Set(answer.results.map((hit) => hit.id));
  slopes($("slopes"), answer.trace, { hits, chosen, choose });
  $("slopes").dataset.drawMs = (performance.now() - begun).toFixed(1);
  strip($("strip"), answer.trace, { hits, pick: pickDays });
  if ($("as-table").open) table($("table"), answer.trace);
  tell(chosen);
}

function choose(id) {
  if (id === state.chosen || !state.answer) return;
  state.chosen = id;
  state.picked = true;
  for (const item of $("lab-hits").children) {
    if (item.dataset.id === id) item.setAttribute("aria-current", "true");
    else item.removeAttribute("aria-current");
  }
  draw();
}

// One candidate: the parts of its score, then its rank after every step.
function tell(id) {
  const candidate = state.answer.trace.candidates[id];
  if (!candidate) {
    $("chosen").replaceChildren();
    return;
  }
  const steps = columns(state.answer.trace).map((step) => {
    const mark = step.places.get(id);
    const text = mark ? `#${mark.rank} (${mark.score.toFixed(3)})` : step.dropped.has(id) ? "dropped here" : "not found";
    return el("tr", {}, el("td", { title: step.title }, step.name), el("td", {}, text));
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
  range.replaceChildren(...(state.days ? [`Only ${state.days} `, el("button", { type: "button", onclick: () => pickDays(state.days) }, "show all days")] : []));
  run();
}

async function explain(event) {
  event.preventDefault();
  const own = profile($("profile").value);
  const { query } = question();
  try {
    const story = await shell.ask("why", { query, reference: $("reference").value, profile: own.name, ...knobs.overrides(own) });
    $("story").replaceChildren(el("h2", { dir: "auto" }, `${story.citation}: ${story.verdict}`), el("ul", {}, ...story.story.map((line) => el("li", {}, line))));
    choose(story.id);
  } catch (error) {
    $("story").replaceChildren(el("p", {}, `${error.message} ${error.hint || ""}`));
  }
}

function key(event, typing) {
  if (event.key === "c" && !typing) $("compare").click();
  else if (event.key === "Escape" && event.target !== $("lab-query")) $("lab-query").select();
  else if (event.key === "ArrowDown" && event.target === $("lab-query")) $("lab-hits").querySelector("a")?.focus();
  else return false;
  return true;
}

function compare() {
  const on = $("other").hidden;
  $("other").hidden = !on;
  $("compare").setAttribute("aria-pressed", String(on));
  if (on && state.answer) runBeside(question()).catch(fail);
}

function wire() {
  const fromProfile = () => {
    knobs.reset(profile($("profile").value));
    run();
  };
  $("lab-query").addEventListener("input", run);
  $("lab-ask").addEventListener("submit", (event) => event.preventDefault());
  $("profile").addEventListener("change", fromProfile);
  $("reset").addEventListener("click", fromProfile);
  $("beside-profile").addEventListener("change", () => runBeside(question()).catch(fail));
  $("compare").addEventListener("click", compare);
  $("missing").addEventListener("submit", explain);
  $("run-checks").addEventListener("click", () => check(shell));
  $("as-table").addEventListener("toggle", draw);
  // Many movements make one request, with the last values.
  let waiting = false;
  knobs.onTurn(() => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      run();
    });
  });
}
