// The figures of the index and the checks of `notewell doctor`.

import { $, el } from "./dom.js";

export async function health(shell) {
  const status = await shell.ask("status");
  if (!$("health")) return;
  const covered = status.chunks ? status.embedded / status.chunks : 1;
  const facts = {
    state: status.fresh && covered === 1 ? "up to date" : "work to do",
    "on disk": `${status.on_disk} notes`,
    "in the index": `${status.documents} notes, ${status.chunks} passages`,
    "to do": `${status.to_add} to add, ${status.to_change} changed, ${status.to_drop} deleted`,
    model: status.embedder,
    "with a vector": `${status.embedded} of ${status.chunks}`,
    size: `${(status.bytes / 1e6).toFixed(1)} MB`,
    workspace: status.workspace,
    skipped: String(status.skipped.length),
  };
  const rows = Object.entries(facts).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", { dir: "auto" }, value)));
  const bar = el("progress", { max: 1, value: covered, "aria-label": "passages with a vector" });
  $("health").replaceChildren(el("p", { id: "health-word", class: "quiet" }, `${status.documents} notes`), el("dl", {}, ...rows), bar, ...status.notices.map((n) => el("p", { class: "quiet" }, `${n.message} ${n.hint}`)));
}

// The checks take a moment, so they are made when somebody asks for them.
export async function check(shell) {
  $("run-checks").disabled = true;
  try {
    const { checks } = await shell.ask("doctor");
    const line = (one) => el("li", {}, el("b", { class: `check ${one.verdict}` }, one.verdict), ` ${one.what}: ${one.detail}${one.fix ? ` – ${one.fix}` : ""}`);
    $("checks").replaceChildren(...checks.map(line));
  } catch (error) {
    $("checks").replaceChildren(el("li", {}, error.message));
  }
  $("run-checks").disabled = false;
}

export function progress(event) {
  if ($("health-word")) $("health-word").textContent = `${event.what} ${event.done} of ${event.total}`;
  const bar = $("health")?.querySelector("progress");
  if (bar && event.what === "vectors") bar.value = event.done / event.total;
}
