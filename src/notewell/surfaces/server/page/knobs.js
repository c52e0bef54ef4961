// Turns sliders into the fusion, stages and pool of a request, in the notation of the settings.

import { $ } from "./dom.js";

const KNOBS = ["text", "vector", "decay", "mmr", "pool"];
let touched = new Set();

const knob = (spec, name) => Number(spec.match(new RegExp(`\\b${name}=([0-9.]+)`, "u"))?.[1]);
const find = (profile, stage) => profile.stages.find((s) => s === stage || s.startsWith(`${stage}(`));

// Sets every slider to the value of the profile.
export function reset(profile) {
  touched = new Set();
  const decay = find(profile, "decay");
  const mmr = find(profile, "mmr");
  $("text").value = 1;
  $("vector").value = 1;
  $("decay").value = decay ? Math.min(365, knob(decay, "half_life_days") || 30) : 0;
  $("mmr").value = mmr ? knob(mmr, "lambda") || 0.7 : 1;
  $("pool").value = profile.pool;
  showValues();
}

function showValues() {
  for (const id of ["text", "vector", "pool"]) $(`${id}-out`).value = Number($(id).value);
  $("decay-out").value = $("decay").value === "0" ? "off" : `${$("decay").value} d`;
  $("mmr-out").value = $("mmr").value === "1" ? "off" : $("mmr").value;
}

export function onTurn(turned) {
  for (const id of KNOBS) {
    $(id).addEventListener("input", () => {
      touched.add(id);
      showValues();
      turned();
    });
  }
}

// What the request adds to the profile; nothing if no slider was moved.
export function overrides(profile) {
  const given = {};
  if (touched.has("text") || touched.has("vector")) {
    const times = (name, slider) => (spec) =>
      spec.replace(new RegExp(`\\b${name}=([0-9.]+)`, "u"), (_all, own) => `${name}=${(Number(own) * Number($(slider).value)).toFixed(4)}`);
    given.fusion = [times("vector", "vector"), times("text", "text"), times("lexical", "text")].reduce((spec, change) => change(spec), profile.fusion);
  }
  if (touched.has("decay") || touched.has("mmr")) {
    let stages = profile.stages.filter((s) => !(touched.has("decay") && s.startsWith("decay")) && !(touched.has("mmr") && s.startsWith("mmr")));
    const added = [];
    if (touched.has("decay") && $("decay").value !== "0") added.push(`decay(half_life_days=${$("decay").value})`);
    if (touched.has("mmr") && $("mmr").value !== "1") added.push(`mmr(lambda=${$("mmr").value})`);
    const end = stages.findIndex((s) => /^(abstain|cut)/u.test(s));
    stages = end < 0 ? [...stages, ...added] : [...stages.slice(0, end), ...added, ...stages.slice(end)];
    given.stages = stages;
  }
  if (touched.has("pool")) given.pool = Number($("pool").value);
  return given;
}
