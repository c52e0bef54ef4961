"""What settings are refused: values that cannot work, and what a workspace file may not decide.

A workspace file may come with a cloned repository, so it may set only what cannot send or read
anything elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from notewell.errors import SettingsError
from notewell.model_names import is_remote, plain_model

if TYPE_CHECKING:
    from notewell.settings import Settings

ORIGINS = ("owner", "agent", "untrusted", "system")
AGENTS = ("claude-memory", "codex-memory", "gemini-memory", "openclaw-memory")
SOURCE_NAMES = ("memory", "sessions", *AGENTS)
DATABASES = ("postgresql://", "postgres://")
_LONGEST_S = 86_400  # a day; no clock or lock of any platform can wait for ever
_MOST = 1_000_000_000_000

# What a workspace file may decide of what is not the user's alone; a setting that is in none of
# these is refused. Only lowered: amounts of memory, time and disk, and of what a remote model is
# sent.
LOWERED = frozenset(
    (
        "folder_limit",
        "max_file_bytes",
        "chunk.overlap",
        "embed.budget_s",
        "embed.cache_mb",
        "search.rerank_depth",
        "search.rerank_deadline_s",
        "search.scan_s",
    )
)
# Up to a bound: with more, a search over many passages would take minutes, and an answer would hold
# entire notes.
BOUNDED = {
    "chunk.tokens": 1_000,
    "search.limit": 100,
    "search.pool": 1_000,
    "search.windows": 1_000,
}
# Not below this: passages repeat headings and the end of the one before, so shorter ones are more
# text to embed.
LEAST = {"chunk.tokens": 250}
# In part: see `refuse_unsafe`, and for patterns `text/redact.py`.
PARTLY = frozenset(("extra_paths", "extra_origin", "embed.model", "embed.chain", "redact.patterns"))
# As it likes: this changes only what is said of the workspace's own notes.
FREELY = frozenset(
    (
        "folder",
        "consolidate",
        "search.profile",
        "search.min_score",
        "search.fusion",
        "search.stages",
        "search.rerank_weight",
        "search.session_share",
    )
)
_MOST_STAGES = 32
_SOONEST_S = 0.1


def _is_whole(folder: str) -> bool:
    """Whether a folder is the same wherever somebody is; `*` is all of them."""
    return folder == "*" or os.path.isabs(os.path.expanduser(folder))


_BYTES = (
    "max_file_bytes",
    "sessions.max_file_bytes",
    "multimodal.max_bytes",
    "documents.max_bytes",
)
_FROM_0 = ("watch.debounce_s", "embed.cache_mb", "embed.threads", "sessions.keep_mb")
_WAITS = ("embed.deadline_s", "embed.trial_s", "embed.timeout_s", "search.rerank_deadline_s")
_Demand = tuple[Callable[[Any], bool], str, tuple[str, ...]]
_DEMANDS: tuple[_Demand, ...] = (
    (lambda v: v >= 0, "at least 0", _FROM_0),
    (lambda v: v >= 0, "at least 0", ("hook.tokens", "hook.brief_tokens", "hook.sync_s")),
    (lambda v: v > 0, "above 0", ("index.timeout_s", "hook.deadline_s", "engine.idle_s", *_WAITS)),
    (lambda v: v == 0 or v >= _SOONEST_S, f"at least {_SOONEST_S}, or 0", ("watch.poll_s",)),
    (lambda v: len(v) <= _MOST_STAGES, f"a list of at most {_MOST_STAGES}", ("search.stages",)),
    (
        lambda v: v >= 1,
        "at least 1",
        ("search.limit", "search.rerank_depth", "folder_limit", *_BYTES),
    ),
    (lambda v: v >= 40, "at least 40", ("chunk.tokens",)),
    (lambda v: v >= 100, "at least 100", ("embed.max_tokens_per_request",)),
    (lambda v: v >= 0, "at least 1, or 0 for the number in the profile", ("search.pool",)),
    (lambda v: v >= 0, "at least 1, or 0 for all that the model gives", ("embed.dim",)),
    (lambda v: 1 <= v <= 64, "from 1 to 64", ("embed.parallel",)),
    (
        lambda v: 0 <= v <= 1,
        "from 0 to 1",
        ("search.session_share", "search.rerank_weight", "hook.confidence"),
    ),
    (lambda v: v in ("none", "local", "http"), "none, local or http", ("search.rerank",)),
    (lambda v: v in ("jina", "tei"), "jina or tei", ("search.rerank_shape",)),
    (lambda v: v in ORIGINS, f"one of {', '.join(ORIGINS)}", ("extra_origin",)),
    (
        lambda v: v and set(v) <= set(SOURCE_NAMES),
        f"a list of some of: {', '.join(SOURCE_NAMES)}",
        ("sources",),
    ),
    (lambda v: v in ("auto", "always", "all", "never"), "auto, always, all or never", ("folder",)),
    (
        lambda v: not v or v.casefold().startswith(DATABASES),
        "postgresql://user@host/database",
        ("index.url",),
    ),
    (lambda v: all(map(_is_whole, v)), "written as a whole path, or from ~", ("trusted_folders",)),
    (lambda v: all(":" in header for header in v), 'written as "Name: value"', ("embed.headers",)),
)


def is_database(index: str) -> bool:
    """Whether an index is the address of a PostgreSQL database, and not the path of a file."""
    return index.casefold().startswith(DATABASES)


def without_password(url: str) -> str:
    """The address of a database as it may be shown: user, host and database only."""
    from urllib.parse import urlsplit, urlunsplit  # noqa: PLC0415

    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    return urlunsplit((parts.scheme, user.partition(":")[0] + at + host, parts.path, "", ""))


def check(settings: Settings) -> None:
    """Refuses the first value that cannot work, without showing it if it is secret."""
    for fits, wanted, keys in _DEMANDS:
        for key in keys:
            if not fits(settings.get(key)):
                shown = "(hidden)" if settings.is_secret(key) else repr(settings.get(key))
                raise SettingsError(f"{key} is {shown}", hint=f"it must be {wanted}")
    for key, value, _, _ in settings.items():
        if isinstance(value, int | float) and not abs(value) <= (
            most := _LONGEST_S if key.endswith("_s") else _MOST
        ):
            raise SettingsError(f"{key} is {value!r}", hint=f"it must be a number up to {most:,}")
    chunk, search = settings.chunk, settings.search
    if not 0 <= chunk.overlap < chunk.tokens // 2:
        wanted = f"from 0 to less than half of chunk.tokens, which is {chunk.tokens}"
        raise SettingsError(f"chunk.overlap is {chunk.overlap}", hint=f"it must be {wanted}")
    if search.rerank == "http" and not search.rerank_url:
        missing = "search.rerank is http, but search.rerank_url is empty"
        raise SettingsError(missing, hint="set the address of the reranker")


def refuse_unsafe(
    key: str, value: Any, *, before: Any, default: Any, private: bool, file: str
) -> None:
    """Refuses what a workspace file may not set, over a value `before`."""
    why = ": a workspace file can come from somebody else"
    name = f"NOTEWELL_{key.upper().replace('.', '_')}"
    hint = f"take it out of that file, and put it into your own settings file or into {name}"
    if private or key not in LOWERED | BOUNDED.keys() | PARTLY | FREELY:
        raise SettingsError(f"{file} may not set {key}{why}", hint=hint)
    if allowed := _exceeded(key, value, before, default):
        raise SettingsError(f"{file} may {allowed}{why}", hint=hint)
    if key == "extra_origin" and value != "untrusted":
        trust = f"not to {value!r}: only you decide whom to trust"
        raise SettingsError(f"{file} may only set extra_origin to untrusted, {trust}", hint=hint)
    if key in ("embed.model", "embed.chain"):
        why += ", and such a model would send your notes elsewhere or read other files"
        names = value if isinstance(value, tuple) else (value,)
        if odd := [name for name in names if not plain_model(name)]:
            raise SettingsError(f"{file} may not set {key} to {odd[0]!r}{why}", hint=hint)
    if key == "extra_paths" and (away := list(filter(_leads_out, value))):
        raise SettingsError(
            f"{file} may only name extra_paths inside the workspace, not {away[0]!r}", hint=hint
        )


def _exceeded(key: str, value: Any, before: Any, default: Any) -> str:
    """What a workspace file may do with an amount, if this value is not within it."""
    if key in LOWERED and value > max(before, default):
        return f"only lower {key} from {before:,}, not raise it to {value:,}"
    if key in BOUNDED and value > (most := max(before, BOUNDED[key])):
        return f"set {key} up to {most:,}, not to {value:,}"
    if key in LEAST and value < (least := min(before, LEAST[key])):
        return f"set {key} down to {least:,}, not to {value:,}"
    return ""


def _leads_out(path: str) -> bool:
    return PurePath(path).is_absolute() or ".." in PurePath(path).parts or path.startswith("~")


def refuse_senders(asked: Sequence[str], otherwise: Sequence[str], *, file: str) -> None:
    """Refuses the models that a workspace file leads to, if one sends notes elsewhere that would
    not be `otherwise`.
    """
    for name in asked:
        if is_remote(name) and name not in otherwise:
            message = (
                f"{file} may not set embed.model to 'auto': your embed.chain would send "
                f"these notes to {name!r}"
            )
            raise SettingsError(
                message,
                hint="take it out of that file, or set NOTEWELL_EMBED_MODEL to what you want",
            )
