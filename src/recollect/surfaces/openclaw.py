"""OpenClaw's `memorySearch` settings as ours, with a word about each that has no counterpart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recollect.errors import SettingsError
from recollect.settings import is_remote
from recollect.text import json5

_PROVIDERS = {"local": "auto", "auto": "auto", "none": "none"}
_SILENT = ("enabled", "query.hybrid.enabled", "sync.onSessionStart", "sync.onSearch", "cache.enabled")
_REASONS = {
    "remote.apiKey": "keys are read from the environment or your own settings; it was not copied",
    "remote.batch": "see embed.batch",
    "store.driver": "there is one store, SQLite",
    "store.path": "set index.path yourself if the index should not lie in the workspace",
    "store.vector": "vectors need no extension here",
    "store.fts": "the words of every script are indexed without a choice",
    "query.minScore": "a threshold on fused scores drops true hits; search.min_score looks at confidence",
    "query.hybrid.candidateMultiplier": "the pool does not grow with the limit; see search.pool",
    "sync.watch": "run recollect watch, or let the search look for itself",
    "sync.watchDebounceMs": "see watch.debounce_s",
    "sync.intervalMinutes": "every search brings the index up to date",
    "cache.maxEntries": "see embed.cache_mb",
    "fallback": "see embed.chain",
    "local.modelPath": "a model by path can be named in embed.model",
}


def imported(text: str, before: str) -> tuple[str, list[str]]:
    """The user's settings text with what OpenClaw's file says, and what could not be carried over."""
    import tomlkit  # noqa: PLC0415

    try:
        whole = json5.loads(text)
        document = tomlkit.parse(before)
    except ValueError as error:
        raise SettingsError(f"the settings cannot be read: {error}", hint="mend the file first") from error
    found = _search_settings(whole)
    if not found:
        raise SettingsError(
            "there is no memorySearch in that file", hint="it stands under agents.defaults in openclaw.json"
        )
    ours, notes = translated(found)
    for key, value in ours.items():
        section, _, name = key.rpartition(".")
        if section and section not in document:
            document[section] = tomlkit.table()
        place: Any = document[section] if section else document
        place[name] = value
    return tomlkit.dumps(document), notes


def _search_settings(whole: Any) -> dict[str, Any]:
    for path in (("agents", "defaults", "memorySearch"), ("memorySearch",), ("memory", "search")):
        here = whole
        for key in path:
            here = here.get(key) if isinstance(here, dict) else None
        if isinstance(here, dict):
            return here
    return {}


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict) and f"{prefix}{key}" not in _REASONS:
            found |= _flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found


def translated(search: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Our keys with their values, and a note for each of theirs that has none."""
    left = _flat(search)
    ours: dict[str, Any] = {}
    notes: list[str] = []

    def take(key: str) -> Any:
        return left.pop(key, None)

    _models(take, ours, notes, own_address=bool(left.keys() & {"remote.baseUrl", "outputDimensionality"}))
    for theirs, key in (
        ("remote.baseUrl", "embed.url"),
        ("outputDimensionality", "embed.dim"),
        ("query.maxResults", "search.limit"),
        ("chunking.tokens", "chunk.tokens"),
        ("chunking.overlap", "chunk.overlap"),
        ("extraPaths", "extra_paths"),
        ("sources", "sources"),
    ):
        if theirs in left:
            ours[key] = take(theirs)
    _pipeline(take, ours, notes)
    for key in left:
        if key not in _SILENT:
            reason = next((r for k, r in _REASONS.items() if key == k or key.startswith(f"{k}.")), "no counterpart")
            notes.append(f"memorySearch.{key}: {reason}")
    return ours, notes


def _models(take: Any, ours: dict[str, Any], notes: list[str], *, own_address: bool) -> None:
    """Provider, model and fallback; a chain is only looked at while embed.model is auto."""
    provider, model, fallback = take("provider"), take("model"), take("fallback")
    if not provider:
        if fallback not in (None, "none"):
            notes.append(f"memorySearch.fallback: {_REASONS['fallback']}")
        return
    first = _PROVIDERS.get(provider, f"{provider}/{model}" if model else provider)
    if provider not in _PROVIDERS and not is_remote(provider):
        notes.append(f"memorySearch.provider: {provider} is not known here; the packaged model is used")
        first = "auto"
    second = _PROVIDERS.get(fallback, fallback)
    ours["embed.model"] = first
    if fallback in (None, "none", provider) or first == "none":
        return
    if fallback not in _PROVIDERS and not is_remote(fallback):
        notes.append(f"memorySearch.fallback: {fallback} is not known here")
    elif own_address and is_remote(first) and is_remote(second):
        notes.append("memorySearch.fallback: embed.url and embed.dim can be for one provider only; see embed.chain")
    elif "auto" in (first, second) or is_remote(first):
        ours["embed.model"] = "auto"
        ours["embed.chain"] = ["local" if name == "auto" else name for name in (first, second)]


def _pipeline(take: Any, ours: dict[str, Any], notes: list[str]) -> None:
    """Weights, decay and MMR: their pipeline runs here as the profile `openclaw`; ours is measured to be better."""
    vector, text = take("query.hybrid.vectorWeight"), take("query.hybrid.textWeight")
    decays, half_life = take("query.hybrid.temporalDecay.enabled"), take("query.hybrid.temporalDecay.halfLifeDays")
    mixes, lam = take("query.hybrid.mmr.enabled"), take("query.hybrid.mmr.lambda")
    if (vector, text) not in ((None, None), (0.7, 0.3)):
        notes.append(
            "memorySearch.query.hybrid weights: the default profile weighs by the question; to keep yours set"
            f' search.fusion = "weighted(vector={vector}, text={text})"'
        )
    if decays:
        notes.append(
            "memorySearch.query.hybrid.temporalDecay: off in the default profile, where it loses old true facts; to"
            f' have it, add "decay(half_life_days={half_life or 30}, floor=0.3)" to search.stages'
        )
    if mixes:
        notes.append(
            f'memorySearch.query.hybrid.mmr: the default profile spreads notes; "mmr(lambda={lam or 0.7})" is a stage'
        )
    if ours.get("sources") == []:
        del ours["sources"]
