"""Translates OpenClaw's `memorySearch` settings into ours, with a note on each that has no
counterpart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from notewell.errors import SettingsError
from notewell.model_names import is_remote
from notewell.surfaces.install import json5

_PROVIDERS = {"local": "auto", "auto": "auto", "none": "none"}
_SILENT = (
    "enabled",
    "query.hybrid.enabled",
    "sync.onSessionStart",
    "sync.onSearch",
    "cache.enabled",
)
_REASONS = {
    "remote.apiKey": "not copied; put keys into the environment or your user settings",
    "remote.batch": "see embed.batch",
    "store.driver": "the index is SQLite by default; for PostgreSQL set index.url",
    "store.path": "set index.path if the index should not be in the workspace",
    "store.vector": "vectors need no SQLite extension here",
    "store.fts": "words of every script are always indexed",
    "query.minScore": (
        "a threshold on fused scores drops true hits; search.min_score looks at confidence"
    ),
    "query.hybrid.candidateMultiplier": "the pool does not grow with the limit; see search.pool",
    "sync.watch": "run notewell watch, or rely on searches, which check the files themselves",
    "sync.watchDebounceMs": "see watch.debounce_s",
    "sync.intervalMinutes": "every search updates the index",
    "cache.maxEntries": "see embed.cache_mb",
    "fallback": "see embed.chain",
    "local.modelPath": "embed.model takes a path to a model",
}


def imported(text: str, before: str) -> tuple[str, list[str]]:
    """The user's settings text with OpenClaw's settings added, and notes on what has no
    counterpart.
    """
    import tomlkit  # noqa: PLC0415

    try:
        config = json5.loads(text)
        document = tomlkit.parse(before)
    except ValueError as error:
        raise SettingsError(
            f"the settings cannot be read: {error}", hint="fix the file first"
        ) from error
    found = _search_settings(config)
    if not found:
        hint = "it is under agents.defaults in openclaw.json"
        raise SettingsError("there is no memorySearch in that file", hint=hint)
    ours, notes = translated(found)
    for key, value in ours.items():
        section, _, name = key.rpartition(".")
        if section and section not in document:
            document[section] = tomlkit.table()
        table: Any = document[section] if section else document
        table[name] = value
    return tomlkit.dumps(document), notes


def _search_settings(config: Any) -> dict[str, Any]:
    for path in (("agents", "defaults", "memorySearch"), ("memorySearch",), ("memory", "search")):
        here = config
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
    """Our keys with their values, and a note for each of their keys without a counterpart."""
    left = _flat(search)
    ours: dict[str, Any] = {}
    notes: list[str] = []

    def take(key: str) -> Any:
        return left.pop(key, None)

    _models(
        take,
        ours,
        notes,
        own_address=bool(left.keys() & {"remote.baseUrl", "outputDimensionality"}),
    )
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
            reason = next(
                (r for k, r in _REASONS.items() if key == k or key.startswith(f"{k}.")),
                "no counterpart",
            )
            notes.append(f"memorySearch.{key}: {reason}")
    return ours, notes


def _models(take: Any, ours: dict[str, Any], notes: list[str], *, own_address: bool) -> None:
    """Provider, model and fallback; a chain is only used while embed.model is auto."""
    provider, model, fallback = take("provider"), take("model"), take("fallback")
    if not provider:
        if fallback not in (None, "none"):
            notes.append(f"memorySearch.fallback: {_REASONS['fallback']}")
        return
    first = _PROVIDERS.get(provider, f"{provider}/{model}" if model else provider)
    if provider not in _PROVIDERS and not is_remote(provider):
        notes.append(
            f"memorySearch.provider: {provider} is not supported; the packaged model is used"
        )
        first = "auto"
    second = _PROVIDERS.get(fallback, fallback)
    ours["embed.model"] = first
    if fallback in (None, "none", provider) or first == "none":
        return
    if fallback not in _PROVIDERS and not is_remote(fallback):
        notes.append(f"memorySearch.fallback: {fallback} is not supported")
    elif own_address and is_remote(first) and is_remote(second):
        notes.append(
            "memorySearch.fallback: embed.url and embed.dim apply to one provider only; see "
            "embed.chain"
        )
    elif "auto" in (first, second) or is_remote(first):
        ours["embed.model"] = "auto"
        ours["embed.chain"] = ["local" if name == "auto" else name for name in (first, second)]


def _pipeline(take: Any, ours: dict[str, Any], notes: list[str]) -> None:
    """Weights, decay and MMR; their pipeline is the profile `openclaw`, and ours measures
    better.
    """
    vector, text = take("query.hybrid.vectorWeight"), take("query.hybrid.textWeight")
    decays, half_life = (
        take("query.hybrid.temporalDecay.enabled"),
        take("query.hybrid.temporalDecay.halfLifeDays"),
    )
    mixes, lam = take("query.hybrid.mmr.enabled"), take("query.hybrid.mmr.lambda")
    if (vector, text) not in ((None, None), (0.7, 0.3)):
        notes.append(
            "memorySearch.query.hybrid weights: the default profile sets weights by the question;"
            f' to keep yours set search.fusion = "weighted(vector={vector}, text={text})"'
        )
    if decays:
        notes.append(
            "memorySearch.query.hybrid.temporalDecay: off in the default profile, because it loses"
            f" old but true facts; to use it, add"
            f' "decay(half_life_days={half_life or 30}, floor=0.3)" to search.stages'
        )
    if mixes:
        notes.append(
            "memorySearch.query.hybrid.mmr: the default profile already spreads hits over notes;"
            f' to use it, add "mmr(lambda={lam or 0.7})" to search.stages'
        )
    if ours.get("sources") == []:
        del ours["sources"]
