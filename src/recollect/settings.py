"""Settings and where each came from: defaults ← user file ← workspace file ← `RECOLLECT_*` ← flags.

The workspace file may come with a cloned repository, so it may set only what cannot send or read anything
elsewhere: fields marked `private` are refused there.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path, PurePath
from typing import Any

from recollect.errors import SettingsError, UsageError

WORKSPACE_FILE = "recollect.toml"
_DEEPEST = 8  # tables in tables; no setting lies half as deep
# Models that read nothing but the installation and send nothing: even a stranger may name them.
SAFE_MODELS = (
    "auto", "local", "none", "hashed", "bge-small-en-v1.5", "granite-embedding-30m-english", "all-MiniLM-L6-v2",
)  # fmt: skip
ORIGINS = ("owner", "agent", "untrusted", "system")
REMOTE_PROVIDERS = ("openai", "gemini", "voyage", "mistral", "cohere", "jina", "ollama", "lmstudio", "http")
"""Model names that begin with one of these send notes elsewhere, so a workspace file may not choose them."""
OF_ONE_PROVIDER = ("url", "key", "headers", "dim")
"""Settings of `embed` that are for one provider and must never reach another."""


def _setting(default: Any, doc: str, *, private: bool = False, secret: bool = False, adds: bool = False) -> Any:
    """A setting; a workspace file may not set a `private` one, a `secret` one is never shown, and of those that `add`
    every place has its say.
    """
    metadata = {"doc": doc, "private": private or secret, "secret": secret, "adds": adds}
    return field(default=default, metadata=metadata, repr=not secret)


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """Where the index is."""

    path: str = _setting("", "index file; empty: .recollect/index.sqlite in the workspace", private=True)
    url: str = _setting("", "address of a PostgreSQL database that holds the index instead of a file", secret=True)
    workspace: str = _setting("", "name of the workspace in that database; empty: its real path", private=True)
    agent: str = _setting("", "whose memory of that workspace it is; agents do not see one another's", private=True)
    timeout_s: float = _setting(10.0, "longest wait for the database: to connect, or for one statement", private=True)


@dataclass(frozen=True, slots=True)
class ChunkSettings:
    """How notes are cut."""

    tokens: int = _setting(400, "longest chunk, in tokens")
    overlap: int = _setting(80, "how much of the chunk before it a chunk repeats, in tokens")


@dataclass(frozen=True, slots=True)
class EmbedSettings:
    """Which model gives vectors."""

    model: str = _setting(
        "auto",
        "auto, a packaged model by name, the path of a local one, fastembed/NAME, provider/model, hashed, or none",
    )
    budget_s: float = _setting(2.0, "how long a search may spend on vectors for notes that have none yet")
    threads: int = _setting(0, "threads of a local model; 0: as many as there are cores")
    chain: tuple[str, ...] = _setting(
        (), 'models to try in order while embed.model is auto, such as ["local", "openai"]; names as in embed.model'
    )
    deadline_s: float = _setting(3.0, "how long a question may wait for its vector; after that keywords answer")
    trial_s: float = _setting(30.0, "how long a model's first batch of a sync may take before the chain goes on")
    cache_mb: float = _setting(256.0, "most room for vectors of text that is in no note now; the oldest go first")
    url: str = _setting("", "base address of a remote model; empty: the provider's own", private=True)
    headers: tuple[str, ...] = _setting((), 'further headers of its requests, such as ["X-Team: notes"]', secret=True)
    dim: int = _setting(0, "numbers in a vector, for models that can shorten them; 0: all", private=True)
    key: str = _setting("", "key of the provider that embed.model names; its own variable comes first", secret=True)
    timeout_s: float = _setting(30.0, "longest wait for one answer of a remote model", private=True)
    max_tokens_per_request: int = _setting(8000, "most tokens in one request to a remote model", private=True)
    parallel: int = _setting(4, "requests to a remote model at once", private=True)
    batch: bool = _setting(
        False,  # noqa: FBT003
        "let OpenAI, Gemini and Voyage embed a first index overnight, for less money",
        private=True,
    )


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How a question is answered."""

    limit: int = _setting(6, "how many hits")
    profile: str = _setting("default", "named pipeline")
    min_score: float = _setting(-1.0, "least confidence of a hit; below 0: what the profile says")
    fusion: str = _setting("", 'fusion instead of the profile\'s, such as "rrf(vector=0.5, text=0.5)"')
    stages: tuple[str, ...] = _setting(
        (), 'stages instead of the profile\'s, such as ["decay(half_life_days=90)", "mmr"]'
    )
    pool: int = _setting(0, "candidates of each leg; 0: what the profile says")
    rerank: str = _setting("none", "none, local (the packaged cross-encoder) or http", private=True)
    rerank_url: str = _setting("", "address of an HTTP cross-encoder; its key is in RECOLLECT_RERANK_KEY", private=True)
    rerank_model: str = _setting("", "model name to ask it for", private=True)
    rerank_shape: str = _setting("jina", "jina (also Cohere) or tei", private=True)
    rerank_depth: int = _setting(20, "how many of the first are read again")
    rerank_weight: float = _setting(0.5, "share of the reranker in the mixed score")
    rerank_deadline_s: float = _setting(1.5, "after that the fused order stays")
    session_share: float = _setting(
        0.5, "most of the first hits that may come from sessions where notes also match; 1: no bound"
    )
    scan_s: float = _setting(
        2.0, "longest look at the files, with indexing, before a search; what is cut is said to be stale"
    )


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """How changes of the notes are noticed by `recollect watch`."""

    poll_s: float = _setting(0.0, "look every so many seconds; 0: wait for the system to tell of changes")
    debounce_s: float = _setting(0.3, "changes within this time are one sync")


@dataclass(frozen=True, slots=True)
class MultimodalSettings:
    """Images and sound, through a model that can see and hear."""

    paths: tuple[str, ...] = _setting((), "files, folders and globs with images and sound to index", private=True)
    max_bytes: int = _setting(10_000_000, "larger ones are skipped", private=True)


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Which conversations with agents are read, when `sources` names sessions."""

    paths: tuple[str, ...] = _setting(
        (), "transcripts, folders and globs instead of where each agent keeps its own", private=True
    )
    all_projects: bool = _setting(
        default=False, doc="also conversations held in other folders than this one", private=True
    )
    max_file_bytes: int = _setting(500_000_000, "larger transcripts are skipped", private=True)


@dataclass(frozen=True, slots=True)
class RedactSettings:
    """What is kept out of the index."""

    enabled: bool = _setting(
        default=True, doc="keep keys, tokens, passwords and <private> blocks out of the index", private=True
    )
    patterns: tuple[str, ...] = _setting(
        (), "further regular expressions to keep out; every settings file adds its own", adds=True
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings; see `recollect config`."""

    sources: tuple[str, ...] = _setting(("memory",), "what is searched: memory, sessions, or both", private=True)
    extra_paths: tuple[str, ...] = _setting((), "further files, folders and globs; in a workspace file only inside it")
    extra_origin: str = _setting("owner", "who wrote the files of extra_paths: owner, agent, system or untrusted")
    consolidate: bool = _setting(
        True,  # noqa: FBT003 - the value of a setting
        "find copies and contradictions among notes; copies are shown once",
    )
    max_file_bytes: int = _setting(5_000_000, "larger files are skipped")
    index: IndexSettings = IndexSettings()
    chunk: ChunkSettings = ChunkSettings()
    embed: EmbedSettings = EmbedSettings()
    search: SearchSettings = SearchSettings()
    multimodal: MultimodalSettings = MultimodalSettings()
    sessions: SessionSettings = SessionSettings()
    redact: RedactSettings = RedactSettings()
    watch: WatchSettings = WatchSettings()
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)

    def items(self) -> Iterator[tuple[str, Any, str, str]]:
        """Every setting as (key, value, origin, what it is for); secrets only by whether they are set."""
        for key, one in _known().items():
            value = _get(self, key)
            yield (
                key,
                _masked(value) if one.metadata["secret"] else value,
                self.origins.get(key, "default"),
                one.metadata["doc"],
            )


def is_remote(model: str) -> bool:
    """Whether a model name is one that sends text to another program or machine."""
    return model.strip().casefold().partition("/")[0] in REMOTE_PROVIDERS


def _masked(value: Any) -> Any:
    """A secret as it may be shown: whether there is one, and the names of headers."""
    if isinstance(value, tuple):
        return tuple(f"{header.partition(':')[0]}: (hidden)" for header in value)
    return without_password(value) if is_database(value) else "(hidden)" if value else ""


def is_database(place: str) -> bool:
    """Whether an index is named by the address of a PostgreSQL database, and not by the path of a file."""
    return place.casefold().startswith(("postgresql://", "postgres://"))


def index_flags(index: str | os.PathLike[str]) -> dict[str, str]:
    """The settings that name an index: a file, relative to where one stands, or a database."""
    place = os.fspath(index)
    if not place.strip():  # a variable that is not set
        raise UsageError("the name of the index is empty", hint="name a file or postgresql://user@host/database")
    if "://" in place:
        return {"index.url": place, "index.path": ""}
    return {"index.path": os.path.abspath(place), "index.url": ""}


def without_password(url: str) -> str:
    """The address of a database as it may be shown: who and where, and nothing that opens it."""
    from urllib.parse import urlsplit, urlunsplit  # noqa: PLC0415

    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    return urlunsplit((parts.scheme, user.partition(":")[0] + at + host, parts.path, "", ""))


def _known() -> dict[str, Any]:
    """Dotted keys to their dataclass fields."""
    found: dict[str, Any] = {}
    for one in fields(Settings):
        if "doc" in one.metadata:
            found[one.name] = one
        elif one.name != "origins":
            found.update({f"{one.name}.{sub.name}": sub for sub in fields(one.default)})  # type: ignore[arg-type]
    return found


def _get(settings: Settings, key: str) -> Any:
    section, _, name = key.rpartition(".")
    return getattr(getattr(settings, section) if section else settings, name)


def load(workspace: Path, *, env: Mapping[str, str], flags: Mapping[str, Any] | None = None) -> Settings:
    """The settings of a workspace, from all five places."""
    layers: list[tuple[str, Mapping[str, Any]]] = []
    user = user_file(env)
    if user.is_file():
        layers.append((str(user), _flat(_toml(user), str(user))))
    own = workspace / WORKSPACE_FILE
    if own.is_file():
        safe = _flat(_toml(own), str(own))
        _refuse_unsafe(safe, str(own))
        layers.append((str(own), safe))
    layers += [(name, {key: env[name]}) for key in _known() if (name := env_name(key)) in env]
    layers.append(("flag", flags or {}))
    settings = Settings()
    for origin, values in layers:
        for one, other in (("index.path", "index.url"), ("index.url", "index.path")):
            if (
                one in values and other not in values and _get(settings, other)
            ):  # the place that was named last is the one
                settings = _with(settings, other, "", origin)
        if "embed.model" in values:
            settings = _for_model(settings, values["embed.model"])
        for key, value in values.items():
            settings = _with(settings, key, value, origin)
    _check(settings)
    return settings


def changed(settings: Settings, flags: Mapping[str, Any]) -> Settings:
    """Settings that were made before, with what flags change about them."""
    for key, value in flags.items():
        settings = _with(settings, key, value, "flag")
    _check(settings)
    return settings


def _for_model(settings: Settings, model: Any) -> Settings:
    """The settings without address, key, headers and size of another provider than the one now named."""
    before, after = (_provider(name) for name in (settings.embed.model, str(model)))
    if not before or not after or before == after:
        return settings
    default = EmbedSettings()
    own = replace(settings.embed, **{name: getattr(default, name) for name in OF_ONE_PROVIDER})
    origins = {k: v for k, v in settings.origins.items() if k.removeprefix("embed.") not in OF_ONE_PROVIDER}
    return replace(settings, embed=own, origins=origins)


def _provider(model: str) -> str:
    """The provider in a model's name, or nothing for a model of this machine."""
    return model.strip().casefold().partition("/")[0] if is_remote(model) else ""


def owner_of_address(embed: EmbedSettings) -> str:
    """The one provider that embed.url, key, headers and dim are for: in embed.model, else in the chain; none: empty.

    In a chain with `http` they are its own, since it has no others. SettingsError when several could be meant.
    """
    if embed.model != "auto":
        return _provider(embed.model)
    named = list(dict.fromkeys(p for p in map(_provider, embed.chain) if p))
    if len(named) < 2 or "http" in named:
        return "http" if "http" in named else "".join(named)
    default = EmbedSettings()
    given = [f"embed.{name}" for name in OF_ONE_PROVIDER if getattr(embed, name) != getattr(default, name)]
    if given:
        raise SettingsError(
            f"{' and '.join(given)} can be for one provider only, but embed.chain names {' and '.join(named)}",
            hint='keys go into each provider\'s variable; an endpoint of your own is "http/MODEL" in the chain',
        )
    return ""


def plain_model(name: str) -> bool:
    """Whether a model's name leads to no network and to no path of the user's."""
    head, mark, size = name.partition("@")
    return name in SAFE_MODELS or (head == "hashed" and bool(mark) and size.isdecimal())


def env_name(key: str) -> str:
    """The environment variable of a key: `embed.model` is `RECOLLECT_EMBED_MODEL`."""
    return "RECOLLECT_" + key.upper().replace(".", "_")


def user_file(env: Mapping[str, str]) -> Path:
    """The user's own settings file."""
    base = env.get("XDG_CONFIG_HOME") or (env.get("APPDATA") if os.name == "nt" else "") or "~/.config"
    return Path(base).expanduser() / "recollect" / "config.toml"


def data_folder(env: Mapping[str, str]) -> Path:
    """Where indexes go that cannot stand in their workspace."""
    base = env.get("XDG_DATA_HOME") or (env.get("LOCALAPPDATA") if os.name == "nt" else "") or "~/.local/share"
    return Path(base).expanduser() / "recollect"


def cache_folder(env: Mapping[str, str]) -> Path:
    """Where things go that can be made again."""
    base = env.get("XDG_CACHE_HOME") or (env.get("LOCALAPPDATA") if os.name == "nt" else "") or "~/.cache"
    return Path(base).expanduser() / "recollect"


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits, and tables without end
        raise SettingsError(f"{path} is not valid TOML: {error}", hint="mend it, or move it away") from error
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}", hint="check its permissions") from error


def _flat(values: Mapping[str, Any], origin: str, prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    known = _known()
    for name, value in values.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and key.count(".") < _DEEPEST:
            found.update(_flat(value, origin, f"{key}."))
        elif key in known:
            found[key] = value
        else:
            raise SettingsError(f"{origin}: no setting is called {key!r}", hint=_nearest(key))
    return found


def _nearest(key: str) -> str:
    import difflib  # noqa: PLC0415

    close = difflib.get_close_matches(key, _known(), n=1)
    return f"did you mean {close[0]}?" if close else "recollect config lists all settings"


def _refuse_unsafe(values: Mapping[str, Any], origin: str) -> None:
    known = _known()
    for key, value in values.items():
        if known[key].metadata["private"]:
            raise SettingsError(
                f"{origin} may not set {key}: a workspace file can come from somebody else",
                hint=f"put it into your own settings file or into {env_name(key)}",
            )
        if key == "extra_origin" and value != "untrusted":
            raise SettingsError(
                f"{origin} may only set extra_origin to untrusted, not to {value!r}: trust is yours to give",
                hint=f"put it into your own settings file or into {env_name(key)}",
            )
        if key in ("embed.model", "embed.chain"):
            default = known[key].default
            names = _as(default, value, key, origin)
            for name in names if isinstance(default, tuple) else (names,):
                if not plain_model(name):
                    raise SettingsError(
                        f"{origin} may not set {key} to {name!r}: a workspace file can come from somebody else,"
                        " and such a model would send your notes elsewhere or read other files",
                        hint=f"put it into your own settings file or into {env_name(key)}",
                    )
        if key == "extra_paths":
            for path in _as((), value, key, origin):
                if PurePath(path).is_absolute() or ".." in PurePath(path).parts or path.startswith("~"):
                    raise SettingsError(
                        f"{origin} may only name extra_paths inside the workspace, not {path!r}",
                        hint="put it into your own settings file",
                    )


def _with(settings: Settings, key: str, value: Any, origin: str) -> Settings:
    one = _known().get(key)
    if one is None:
        raise SettingsError(f"no setting is called {key!r}", hint=_nearest(key))
    value = _as(one.default, value, key, origin)
    if one.metadata.get("adds"):
        value = tuple(dict.fromkeys((*_get(settings, key), *value)))
    origins = {**settings.origins, key: origin}
    section, _, name = key.rpartition(".")
    if section:
        return replace(settings, **{section: replace(getattr(settings, section), **{name: value})}, origins=origins)
    return replace(settings, **{name: value}, origins=origins)


def _as(default: Any, value: Any, key: str, origin: str) -> Any:
    """A value as the type of its default; text from the environment is read as that type."""
    kind = type(default)
    try:
        if kind is tuple:
            marks = {"paths": os.pathsep, "stages": ";", "headers": ";", "patterns": "\n"}
            mark = next((m for name, m in marks.items() if name in key), ",")
            parts = value.split(mark) if isinstance(value, str) else value
            if not all(isinstance(p, str) for p in parts):
                raise TypeError
            return tuple(p.strip() for p in parts if p.strip())
        if kind is bool and isinstance(value, str):
            if value.lower() not in ("true", "false", "1", "0", "yes", "no", "on", "off"):
                raise ValueError
            return value.lower() in ("true", "1", "yes", "on")
        if isinstance(value, bool) and kind is not bool:
            raise TypeError
        if kind is int and isinstance(value, float):
            raise TypeError
        if kind in (int, float) and isinstance(value, str | int | float):
            return kind(value)
        if isinstance(value, kind):
            return value
        raise TypeError
    except (TypeError, ValueError):
        wanted = {
            tuple: "a list of texts",
            int: "a whole number",
            float: "a number",
            str: "a text",
            bool: "true or false",
        }
        hint = f"{key} is: {_known()[key].metadata['doc']}"
        shown = "(hidden)" if _known()[key].metadata["secret"] else repr(value)
        raise SettingsError(f"{origin}: {key} must be {wanted[kind]}, not {shown}", hint=hint) from None


def _check(settings: Settings) -> None:
    if settings.chunk.tokens < 40 or not 0 <= settings.chunk.overlap < settings.chunk.tokens // 2:
        raise SettingsError(
            f"chunk.tokens is {settings.chunk.tokens} and chunk.overlap {settings.chunk.overlap}",
            hint="tokens must be at least 40 and the overlap less than half of it",
        )
    for source in settings.sources:
        if source not in ("memory", "sessions"):
            raise SettingsError(f"no source is called {source!r}", hint='known: "memory", "sessions"')
    if not settings.sources:
        raise SettingsError("sources names nothing to search", hint='known: "memory", "sessions"')
    if settings.extra_origin not in ORIGINS:
        raise SettingsError(
            f"extra_origin is {settings.extra_origin!r}", hint=f"it must be one of {', '.join(ORIGINS)}"
        )
    own = settings.search
    _demand(
        "search",
        own,
        ("limit", own.limit >= 1, "at least 1"),
        ("pool", own.pool >= 0, "at least 1, or 0 for what the profile says"),
        ("rerank", own.rerank in ("none", "local", "http"), "none, local or http"),
        ("rerank_shape", own.rerank_shape in ("jina", "tei"), "jina or tei"),
        ("rerank_depth", own.rerank_depth >= 1, "at least 1"),
        ("session_share", 0.0 <= own.session_share <= 1.0, "from 0 to 1"),
        ("rerank_weight", 0.0 <= own.rerank_weight <= 1.0, "from 0 to 1"),
    )
    if settings.watch.poll_s < 0 or settings.watch.debounce_s < 0:
        raise SettingsError("a time of watch is below 0", hint="watch.poll_s and watch.debounce_s are seconds")
    if own.rerank == "http" and not own.rerank_url:
        raise SettingsError(
            "search.rerank is http, but search.rerank_url is empty", hint="set the address of the reranker"
        )
    _demand("index", settings.index,
            ("url", not settings.index.url or is_database(settings.index.url), "postgresql://user@host/database"),
            ("timeout_s", settings.index.timeout_s > 0, "more than 0"))  # fmt: skip
    given = settings.embed
    _demand(
        "embed",
        given,
        ("deadline_s", given.deadline_s > 0, "above 0"),
        ("trial_s", given.trial_s > 0, "above 0"),
        ("cache_mb", given.cache_mb >= 0, "at least 0"),
        ("dim", given.dim >= 0, "at least 1, or 0 for all that the model gives"),
        ("timeout_s", given.timeout_s > 0, "more than 0"),
        ("max_tokens_per_request", given.max_tokens_per_request >= 100, "at least 100"),
        ("parallel", 1 <= given.parallel <= 64, "from 1 to 64"),
        ("headers", all(":" in header for header in given.headers), 'written as "Name: value"'),
    )
    owner_of_address(given)


def _demand(section: str, own: Any, *demands: tuple[str, bool, str]) -> None:
    """Refuses the first value that does not fit, without showing it where it is secret."""
    for name, fits, wanted in demands:
        if not fits:
            shown = "(hidden)" if _known()[f"{section}.{name}"].metadata["secret"] else repr(getattr(own, name))
            raise SettingsError(f"{section}.{name} is {shown}", hint=f"it must be {wanted}")
