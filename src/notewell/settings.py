"""Every setting, and where its value comes from: defaults ← user file ← workspace file ←
`NOTEWELL_*` ← flags.

`settings_checks.py` refuses values that cannot work, and what a workspace file may not decide.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from notewell.errors import SettingsError, UsageError
from notewell.model_names import provider_of
from notewell.opener import ANYWHERE, HINT, MOST_SETTINGS_BYTES, Opener, inside
from notewell.settings_checks import AGENTS as AGENTS  # noqa: PLC0414 - for those who read settings
from notewell.settings_checks import (
    LOWERED,
    check,
    is_database,
    refuse_senders,
    refuse_unsafe,
    without_password,
)
from notewell.settings_checks import ORIGINS as ORIGINS  # noqa: PLC0414 - for those who read settings

WORKSPACE_FILE = "notewell.toml"
# settings of `embed` that must never reach another provider
_OF_ONE_PROVIDER = ("url", "key", "headers", "dim")
# for a user without a home: nothing is there, and nothing can be made there
_NOWHERE = Path(os.devnull, "notewell")
_DEEPEST = 8  # tables in tables; no setting is half as deep
_SEPARATORS = {
    "paths": os.pathsep,
    "trusted_folders": os.pathsep,
    "stages": ";",
    "headers": ";",
    "patterns": "\n",
}
_FLAGS = {
    "true": True,
    "1": True,
    "yes": True,
    "on": True,
    "false": False,
    "0": False,
    "no": False,
    "off": False,
}
_WANTED = {
    tuple: "a list of texts",
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
}
# what could be read as a number, but is more likely a mistake
_REFUSED = {int: (bool, float), float: (bool,)}


def setting(
    default: Any, doc: str, *, private: bool = False, secret: bool = False, adds: bool = False
) -> Any:
    """A setting: a workspace file may not set a `private` one, a `secret` is never shown, layers
    join what `adds`.
    """
    metadata = {"doc": doc, "private": private or secret, "secret": secret, "adds": adds}
    return field(default=default, metadata=metadata, repr=not secret)


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """Where the index is."""

    path: str = setting(
        "", "index file; empty: .notewell/index.sqlite in the workspace", private=True
    )
    url: str = setting(
        "", "address of a PostgreSQL database that holds the index instead of a file", secret=True
    )
    workspace: str = setting(
        "", "name of the workspace in that database; empty: its real path", private=True
    )
    owner: str = setting(
        "", "role that made that workspace, if it is not yours and you share it", private=True
    )
    agent: str = setting(
        "", "whose memory it is; agents do not see each other's in that database", private=True
    )
    timeout_s: float = setting(
        10.0, "longest wait for a connection or a statement of the database", private=True
    )


@dataclass(frozen=True, slots=True)
class ChunkSettings:
    """How notes are cut."""

    tokens: int = setting(400, "longest chunk, in tokens")
    overlap: int = setting(80, "how much a chunk repeats of the one before it, in tokens")


@dataclass(frozen=True, slots=True)
class EmbedSettings:
    """Which model computes vectors."""

    model: str = setting(
        "auto",
        "auto, a packaged model, the path of a local one, fastembed/NAME, provider/model, or none",
    )
    budget_s: float = setting(
        2.0, "how long a search may spend on vectors for notes that do not have one yet"
    )
    threads: int = setting(0, "threads of a local model; 0: one per core", private=True)
    chain: tuple[str, ...] = setting(
        (), 'models to try in order if embed.model is auto, such as ["local", "openai"]'
    )
    deadline_s: float = setting(
        3.0, "how long a question waits for its vector before keywords answer alone", private=True
    )
    trial_s: float = setting(
        30.0,
        "how long the first batch of a sync may take before the next model is tried",
        private=True,
    )
    cache_mb: float = setting(
        256.0, "most space for vectors of text that no note has now; the oldest go first"
    )
    url: str = setting("", "base address of a remote model; empty: the provider's", private=True)
    headers: tuple[str, ...] = setting(
        (), 'more headers for its requests, such as ["X-Team: notes"]', secret=True
    )
    dim: int = setting(
        0, "numbers in a vector, for models that can shorten them; 0: all", private=True
    )
    key: str = setting(
        "", "key of the remote model; the provider's own variable comes first", secret=True
    )
    timeout_s: float = setting(30.0, "longest wait for one answer of a remote model", private=True)
    max_tokens_per_request: int = setting(
        8000, "most tokens in one request to a remote model", private=True
    )
    parallel: int = setting(4, "how many requests to a remote model run at once", private=True)
    batch: bool = setting(
        default=False, doc="embed a large index by cheaper batch jobs, where offered", private=True
    )

    @property
    def names(self) -> tuple[str, ...]:
        """The models that are asked, in order."""
        return (self.model,) if self.model != "auto" else self.chain or ("auto",)


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How a question is answered."""

    limit: int = setting(6, "how many hits")
    profile: str = setting("default", "name of the pipeline")
    min_score: float = setting(-1.0, "least confidence of a hit; below 0: as in the profile")
    fusion: str = setting(
        "", 'replaces the fusion of the profile, such as "rrf(vector=0.5, text=0.5)"'
    )
    stages: tuple[str, ...] = setting(
        (), 'replaces its stages, such as ["decay(half_life_days=90)", "mmr"]'
    )
    pool: int = setting(0, "candidates of each leg; 0: as in the profile")
    windows: int = setting(
        -1, "nearest passages scored again by their windows; 0: none; below 0: as in the profile"
    )
    rerank: str = setting("none", "none, local (the packaged cross-encoder) or http", private=True)
    rerank_url: str = setting(
        "", "address of an HTTP cross-encoder; its key is in NOTEWELL_RERANK_KEY", private=True
    )
    rerank_model: str = setting("", "name of its model", private=True)
    rerank_shape: str = setting(
        "jina", "format of its requests: jina (also for Cohere) or tei", private=True
    )
    rerank_depth: int = setting(20, "how many of the first hits it reads")
    rerank_weight: float = setting(0.5, "share of the reranker in the final score")
    rerank_deadline_s: float = setting(1.5, "how long it may take before the order stays as it was")
    session_share: float = setting(
        0.5, "largest share of sessions among the hits if notes match too; 1: no limit"
    )
    scan_s: float = setting(
        2.0, "how long a search may index changed files; an answer without them is marked stale"
    )


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """How `notewell watch` notices changes."""

    poll_s: float = setting(
        0.0, "look for changes every so many seconds; 0: let the system report them", private=True
    )
    debounce_s: float = setting(0.3, "changes within this time are one sync", private=True)


@dataclass(frozen=True, slots=True)
class MultimodalSettings:
    """Images and sound, for models that can read them."""

    paths: tuple[str, ...] = setting(
        (), "files, folders and globs of images and sound to index", private=True
    )
    max_bytes: int = setting(10_000_000, "larger ones are skipped", private=True)


@dataclass(frozen=True, slots=True)
class DocumentSettings:
    """PDF, Word and HTML, read in place."""

    paths: tuple[str, ...] = setting(
        (), "files, folders and globs of PDF, Word and HTML to index", private=True
    )
    max_bytes: int = setting(50_000_000, "larger ones are skipped", private=True)


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Which conversations with agents are read, if `sources` includes sessions."""

    paths: tuple[str, ...] = setting(
        (), "transcripts, folders and globs instead of the usual folders", private=True
    )
    all_projects: bool = setting(
        default=False, doc="also read conversations from other folders", private=True
    )
    max_file_bytes: int = setting(500_000_000, "larger transcripts are skipped", private=True)
    ask: bool = setting(
        default=True, doc="ask once, on a terminal, whether to read what was found", private=True
    )
    keep: bool = setting(
        default=True, doc="keep what was read when its program deletes it", private=True
    )
    keep_mb: float = setting(
        1000.0, "most MB of kept conversations, of all workspaces; the oldest go", private=True
    )


@dataclass(frozen=True, slots=True)
class RedactSettings:
    """What is kept out of the index."""

    enabled: bool = setting(
        default=True, doc="keep keys, passwords and <private> blocks out of the index", private=True
    )
    patterns: tuple[str, ...] = setting(
        (), "more regular expressions to keep out; every layer adds its own", adds=True
    )


@dataclass(frozen=True, slots=True)
class HookSettings:
    """What the hooks of agents give to a model by themselves."""

    confidence: float = setting(
        0.6, "least confidence of a passage that a prompt gets by itself", private=True
    )
    tokens: int = setting(400, "most tokens for a prompt; 0: nothing is given", private=True)
    brief_tokens: int = setting(
        800, "most tokens for the start of a session; 0: nothing is given", private=True
    )
    sync_s: float = setting(
        0.3, "how long a hook may index changed files; the rest is done later", private=True
    )
    deadline_s: float = setting(
        3.0, "a hook that takes longer is ended, and says nothing", private=True
    )


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The process that stays in the background and answers for all windows of a workspace."""

    enabled: bool = setting(
        default=True, doc="let one process in the background answer, once it is warm", private=True
    )
    idle_s: float = setting(600.0, "it ends when nobody has used it for so long", private=True)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings; `notewell config` lists them."""

    sources: tuple[str, ...] = setting(
        ("memory", *AGENTS),
        "what is searched: memory, sessions, and the memory files of agents",
        private=True,
    )
    folder: str = setting(
        "auto",
        (
            "notes of the folder itself: always, never, all (of code too); auto: without MEMORY.md "
            "and memory/"
        ),
    )
    folder_limit: int = setting(20_000, "most notes that are read of the folder itself")
    extra_paths: tuple[str, ...] = setting(
        (), "more files, folders and globs; in a workspace file only inside it"
    )
    extra_origin: str = setting(
        "owner", "who wrote the files of extra_paths: owner, agent, system or untrusted"
    )
    trusted_folders: tuple[str, ...] = setting(
        (),
        "folders of others, and clones, whose notes count as yours; with /* also all below",
        private=True,
    )
    consolidate: bool = setting(
        default=True, doc="find copies and contradictions; copies are shown once"
    )
    max_file_bytes: int = setting(
        50_000_000, "of a larger note, only the first so many bytes are indexed"
    )
    index: IndexSettings = IndexSettings()
    chunk: ChunkSettings = ChunkSettings()
    embed: EmbedSettings = EmbedSettings()
    search: SearchSettings = SearchSettings()
    multimodal: MultimodalSettings = MultimodalSettings()
    documents: DocumentSettings = DocumentSettings()
    sessions: SessionSettings = SessionSettings()
    redact: RedactSettings = RedactSettings()
    watch: WatchSettings = WatchSettings()
    hook: HookSettings = HookSettings()
    engine: EngineSettings = EngineSettings()
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)
    # `redact.patterns` of the workspace file: they may be somebody else's
    workspace_patterns: tuple[str, ...] = ()

    def get(self, key: str) -> Any:
        """The value of a dotted key."""
        section, _, name = key.rpartition(".")
        return getattr(getattr(self, section) if section else self, name)

    @staticmethod
    def is_secret(key: str) -> bool:
        """Whether the value of a key must not be shown."""
        return bool(FIELDS[key].metadata["secret"])

    def items(self) -> Iterator[tuple[str, Any, str, str]]:
        """Every setting as (key, value, origin, what it is for); of secrets, only whether they are
        set.
        """
        for key, one in FIELDS.items():
            value = _masked(self.get(key)) if self.is_secret(key) else self.get(key)
            if key == "redact.patterns":
                value = tuple(dict.fromkeys((*value, *self.workspace_patterns)))
            yield key, value, self.origins.get(key, "default"), one.metadata["doc"]


FIELDS: dict[str, Field[Any]] = {}  # dotted keys to their dataclass fields
for _one in fields(Settings):
    if _one.metadata:
        FIELDS[_one.name] = _one
    elif _one.name not in ("origins", "workspace_patterns"):
        FIELDS |= {f"{_one.name}.{inner.name}": inner for inner in fields(_one.default)}  # type: ignore[arg-type]


def _masked(value: Any) -> Any:
    """A secret as it may be shown: whether it is set, and the names of headers."""
    if isinstance(value, tuple):
        return tuple(f"{header.partition(':')[0]}: (hidden)" for header in value)
    return without_password(value) if is_database(value) else "(hidden)" if value else ""


def load(
    workspace: Path, *, env: Mapping[str, str], flags: Mapping[str, Any] | None = None
) -> Settings:
    """The settings of a workspace, from all five layers."""
    settings = Settings()
    user, own = user_file(env), workspace / WORKSPACE_FILE
    if values := _toml(user, ANYWHERE):
        settings = _on_top(settings, values, str(user))
    theirs = _of_workspace(_toml(own, inside(workspace)), settings, str(own))

    def layered(theirs: Mapping[str, Any]) -> Settings:
        made = _with_theirs(settings, theirs, str(own))
        for key in FIELDS:
            if (name := env_name(key)) in env:
                made = _on_top(made, {key: env[name]}, name)
        return _on_top(made, flags or {}, "flag")

    done = layered(theirs)
    if "embed.model" in theirs:
        otherwise = layered({key: value for key, value in theirs.items() if key != "embed.model"})
        refuse_senders(done.embed.names, otherwise.embed.names, file=str(own))
    return _checked(done)


def _of_workspace(values: Mapping[str, Any], settings: Settings, file: str) -> dict[str, Any]:
    """What a workspace's file, which may be somebody else's, decides over these settings."""
    found = {}
    for key, value in values.items():
        private, default = FIELDS[key].metadata["private"], FIELDS[key].default
        typed = None if private else _typed(key, value, file)
        before = settings.get(key)
        refuse_unsafe(key, typed, before=before, default=default, private=private, file=file)
        if key not in LOWERED or not typed > before:
            found[key] = typed
    return found


def _with_theirs(settings: Settings, values: Mapping[str, Any], file: str) -> Settings:
    """Settings with those of a workspace's file, whose patterns stay apart."""
    if (patterns := values.get("redact.patterns")) is not None:
        origins = {**settings.origins, "redact.patterns": file}
        settings = replace(settings, workspace_patterns=patterns, origins=origins)
    return _on_top(
        settings, {key: value for key, value in values.items() if key != "redact.patterns"}, file
    )


def changed(settings: Settings, flags: Mapping[str, Any]) -> Settings:
    """Existing settings with the values of flags."""
    for key, value in flags.items():
        settings = _with(settings, key, value, "flag")
    return _checked(settings)


def _checked(settings: Settings) -> Settings:
    check(settings)
    owner_of_address(settings.embed)
    return settings


def _on_top(settings: Settings, values: Mapping[str, Any], origin: str) -> Settings:
    for key, other in (("index.path", "index.url"), ("index.url", "index.path")):
        if key in values and other not in values and settings.get(other):
            # a file and a database exclude each other; the last one wins
            settings = _with(settings, other, "", origin)
    if "embed.model" in values:
        settings = _for_model(settings, str(values["embed.model"]))
    for key, value in values.items():
        settings = _with(settings, key, value, origin)
    return settings


def _for_model(settings: Settings, model: str) -> Settings:
    """The settings without the address, key, headers and size of a provider, if `model` is of
    another one.
    """
    before, after = provider_of(settings.embed.model), provider_of(model)
    if not before or not after or before == after:
        return settings
    default = EmbedSettings()
    embed = replace(settings.embed, **{name: getattr(default, name) for name in _OF_ONE_PROVIDER})
    origins = {
        k: v
        for k, v in settings.origins.items()
        if k.removeprefix("embed.") not in _OF_ONE_PROVIDER
    }
    return replace(settings, embed=embed, origins=origins)


def _with(settings: Settings, key: str, value: Any, origin: str) -> Settings:
    if key not in FIELDS:
        raise SettingsError(f"no setting is called {key!r}", hint=_nearest(key))
    value = _typed(key, value, origin)
    if FIELDS[key].metadata["adds"]:
        value = tuple(dict.fromkeys((*settings.get(key), *value)))
    origins = {**settings.origins, key: origin}
    section, _, name = key.rpartition(".")
    if section:
        name, value = section, replace(getattr(settings, section), **{name: value})
    return replace(settings, **{name: value}, origins=origins)


def _toml(path: Path, opener: Opener) -> dict[str, Any]:
    """The values of a file by their dotted keys; none where there is no file."""
    try:
        text = opener.read(path, most=MOST_SETTINGS_BYTES).decode("utf-8")
        import tomllib  # noqa: PLC0415 - most have no such file

        values = tomllib.loads(text)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (
        ValueError,
        RecursionError,
    ) as error:  # a number may have too many digits, and tables no end
        raise SettingsError(
            f"{path} is not valid TOML: {error}", hint="fix it, or move it away"
        ) from error
    except OSError as error:
        hint = f"check its permissions; {HINT}"
        raise SettingsError(f"{path} cannot be read: {error.strerror}", hint=hint) from error
    return _flat(values, str(path))


def _flat(values: Mapping[str, Any], origin: str, prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and key.count(".") < _DEEPEST:
            found.update(_flat(value, origin, f"{key}."))
        elif key in FIELDS:
            found[key] = value
        else:
            raise SettingsError(f"{origin}: no setting is called {key!r}", hint=_nearest(key))
    return found


def _nearest(key: str) -> str:
    import difflib  # noqa: PLC0415

    close = difflib.get_close_matches(key, FIELDS, n=1)
    return f"did you mean {close[0]}?" if close else "notewell config lists all settings"


def _typed(key: str, value: Any, origin: str) -> Any:
    """A value as the type of its setting; text, as in a variable, is read as that type."""
    try:
        return _read(type(FIELDS[key].default), value, key)
    except (TypeError, ValueError, OverflowError):
        wanted = _WANTED[type(FIELDS[key].default)]
        shown = "(hidden)" if Settings.is_secret(key) else repr(value)
        hint = f"{key} is: {FIELDS[key].metadata['doc']}"
        raise SettingsError(f"{origin}: {key} must be {wanted}, not {shown}", hint=hint) from None


def _read(kind: type, value: Any, key: str) -> Any:
    if kind is tuple:
        separator = next((mark for name, mark in _SEPARATORS.items() if name in key), ",")
        parts = _listed(value, separator) if isinstance(value, str) else value
        return tuple(part for part in (_read(str, part, key).strip() for part in parts) if part)
    if kind is bool and isinstance(value, str):
        value = _FLAGS.get(value.lower())
    if not isinstance(value, kind) if kind in (str, bool) else isinstance(value, _REFUSED[kind]):
        raise TypeError
    return kind(value)


def _listed(text: str, separator: str) -> list[Any]:
    """The parts of a list that is given as text: a list of TOML, or parts with a separator between
    them.
    """
    if text.strip()[:1] == "[":
        import tomllib  # noqa: PLC0415

        try:
            found = tomllib.loads(f"value = {text}")["value"]
            return found if isinstance(found, list) else [found]
        except (tomllib.TOMLDecodeError, RecursionError):
            pass  # such as the glob [a-z]*.md
    return text.split(separator)


def owner_of_address(embed: EmbedSettings) -> str:
    """The one provider that embed.url, key, headers and dim belong to, in embed.model or else in
    the chain; or nothing.

    In a chain with `http` they belong to that, since it has no default address. SettingsError if it
    is not clear.
    """
    if embed.model != "auto":
        return provider_of(embed.model)
    named = list(dict.fromkeys(p for p in map(provider_of, embed.chain) if p))
    if len(named) < 2 or "http" in named:
        return "http" if "http" in named else "".join(named)
    default = EmbedSettings()
    given = [
        f"embed.{name}"
        for name in _OF_ONE_PROVIDER
        if getattr(embed, name) != getattr(default, name)
    ]
    if given:
        raise SettingsError(
            (
                f"{' and '.join(given)} can be for one provider only, but embed.chain names "
                f"{' and '.join(named)}"
            ),
            hint=(
                "put keys into each provider's variable; in a chain, your own endpoint is "
                'called "http/MODEL"'
            ),
        )
    return ""


def env_name(key: str) -> str:
    """The environment variable of a key: `embed.model` is `NOTEWELL_EMBED_MODEL`."""
    return "NOTEWELL_" + key.upper().replace(".", "_")


def index_flags(index: str | os.PathLike[str]) -> dict[str, str]:
    """The settings for an index: a file, relative to the current folder, or the address of a
    database.
    """
    name = os.fspath(index)
    if not name.strip():  # a variable that is not set
        raise UsageError(
            "the name of the index is empty", hint="name a file or postgresql://user@host/database"
        )
    if "://" in name:
        return {"index.url": name, "index.path": ""}
    return {"index.path": os.path.abspath(name), "index.url": ""}


def in_home(path: str) -> Path:
    """A path with the home folder for its `~`."""
    found = os.path.expanduser(path)
    if found.startswith("~"):
        raise SettingsError(
            f"the home folder in {path} is not known", hint="write the entire path, or set HOME"
        )
    return Path(found)


def user_file(env: Mapping[str, str]) -> Path:
    """The user's own settings file."""
    return _folder(env, "config") / "config.toml"


def data_folder(env: Mapping[str, str]) -> Path:
    """The folder for indexes that cannot be in their workspace."""
    return _folder(env, "data")


def cache_folder(env: Mapping[str, str]) -> Path:
    """The folder for things that can be made again."""
    return _folder(env, "cache")


def state_folder(env: Mapping[str, str]) -> Path:
    """The folder for the log of errors."""
    return _folder(env, "state")


def _folder(env: Mapping[str, str], kind: str) -> Path:
    """A folder of the user: what the XDG variable in `env` says, else the usual one of the
    platform.
    """
    base = os.path.expanduser(env.get(f"XDG_{kind.upper()}_HOME", ""))
    # the XDG rules ignore any other; `~nobody/x` stays as it is and is not absolute
    if os.path.isabs(base):
        return Path(base, "notewell")
    from platformdirs import PlatformDirs  # noqa: PLC0415 - most starts need no folder but the workspace

    try:
        found = Path(
            getattr(
                PlatformDirs("notewell", appauthor=False, roaming=kind == "config"),
                f"user_{kind}_dir",
            )
        )
    except RuntimeError:
        return _NOWHERE
    return found if found.is_absolute() else _NOWHERE
