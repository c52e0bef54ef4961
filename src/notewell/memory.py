"""Memory, the front door: a workspace opened, with an index, a search and a notebook.

Concrete adapters are named here and nowhere else: the store, the sources and the models.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast

from notewell import settings as settings_
from notewell.embed import registry
from notewell.embed.embedder import Embedder, Reranker
from notewell.errors import WorkspaceError
from notewell.index.adapters import Adapters
from notewell.index.index import Index
from notewell.index.status import Status
from notewell.notes.notebook import Notebook, Text
from notewell.search.search import Search
from notewell.settings import Settings
from notewell.sources.agents import AgentMemory
from notewell.sources.files import FileSource
from notewell.sources.inventory import SourceState, inventory
from notewell.sources.source import Source
from notewell.sources.trust import trust_of
from notewell.store.locate import (
    folder_away,
    open_index,
    replace_store,
    starts_empty,
    temporary_store,
)
from notewell.store.nearest import find_workspace
from notewell.store.ports import Store
from notewell.types import Notice

_P = ParamSpec("_P")
_R = TypeVar("_R")


class _Delegate:
    """Looks a method up on a part of the memory, so that a call goes straight to it."""

    def __init__(self, part: str, method: Callable[..., Any]) -> None:
        self._part, self._method = part, method
        self.__doc__ = method.__doc__

    def __get__(self, memory: Memory | None, owner: type[Memory] | None = None) -> Any:
        return (
            self._method
            if memory is None
            else getattr(getattr(memory, self._part), self._method.__name__)
        )


def _of(
    part: str, method: Callable[Concatenate[Any, _P], _R]
) -> Callable[Concatenate[Memory, _P], _R]:
    """A method of Memory that one of its parts does, with the same signature and the same
    promise.
    """
    return cast("Callable[Concatenate[Memory, _P], _R]", _Delegate(part, method))


class Memory:
    """A workspace that can be searched. Thread-safe for searches; close it, or use it as a context.

    It has no state but its parts: `index` keeps the store up to the files, `searcher` answers
    questions, and `notebook` reads, explains, links, writes and forgets passages.
    """

    def __init__(
        self,
        root: Path,
        settings: Settings,
        store: Store,
        notices: Sequence[Notice] = (),
        *,
        embedder: Embedder | None = None,
        env: Mapping[str, str] | None = None,
        beside: Path | None = None,
        adapters: Adapters | None = None,
    ) -> None:
        """`beside` names a file, which need not exist, whose folder holds locks, backups and model
        outages.
        """
        env = os.environ if env is None else env
        adapters = adapters or _adapters(root, settings, env)
        away = folder_away(root, env)
        self.index = Index(
            root,
            settings,
            store,
            notices,
            adapters=adapters,
            embedder=embedder,
            beside=beside,
            away=away,
        )
        self.searcher = Search(self.index, functools.partial(_reranker, settings, env))
        self.notebook = Notebook(self.index, self.searcher)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        settings: Settings | None = None,
        env: Mapping[str, str] | None = None,
        embedder: Embedder | None = None,
        index: str | os.PathLike[str] | None = None,
        **flags: Any,
    ) -> Memory:
        """Opens a workspace; its index is made when there is a note to put in. Flags are settings,
        `__` for their dot.

        `index` is a file, or the address of a PostgreSQL database.
        """
        env = os.environ if env is None else env
        root = Path(path) if path is not None else find_workspace(None, env)
        if not root.exists():
            hint = "make the folder, or name another with -w"
            raise WorkspaceError(f"the workspace {root} does not exist", hint=hint)
        if not root.is_dir():
            raise WorkspaceError(f"{root} is not a folder", hint="name the folder of your notes")
        root = Path(os.path.realpath(root))
        dotted = {
            key.replace("__", "."): value for key, value in flags.items() if value is not None
        }
        if index is not None:
            dotted |= settings_.index_flags(index)
        settings = (
            settings_.changed(settings, dotted)
            if settings
            else settings_.load(root, env=env, flags=dotted)
        )
        adapters = _adapters(root, settings, env)
        if starts_empty(root, settings) and not adapters.any_document():
            later = replace(adapters, open_store=functools.partial(open_index, root, settings, env))
            return cls(
                root, settings, temporary_store(), embedder=embedder, env=env, adapters=later
            )
        store, beside, notices = open_index(root, settings, env)
        return cls(
            root,
            settings,
            store,
            notices,
            embedder=embedder,
            env=env,
            beside=beside,
            adapters=adapters,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Stops every watch and closes the index; does not wait for a model that hangs."""
        self.index.stop()
        self.searcher.close()
        self.index.close()

    @property
    def root(self) -> Path:
        """The folder of the workspace."""
        return self.index.root

    @property
    def settings(self) -> Settings:
        """The settings it was opened with."""
        return self.index.settings

    @property
    def store(self) -> Store:
        """The store of the index; another one after a damaged index was rebuilt."""
        return self.index.store

    @property
    def embedder(self) -> Embedder | None:
        """The model that makes new vectors, or None; `notices` say why there is none."""
        return self.index.embedder

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What every answer of this memory has to report."""
        return self.index.notices

    search = _of("searcher", Search.search)
    keep_warm = _of("searcher", Search.keep_warm)

    context = _of("notebook", Notebook.context)
    why = _of("notebook", Notebook.why)
    get = _of("notebook", Notebook.get)
    trace = _of("notebook", Notebook.trace)
    link = _of("notebook", Notebook.link)
    timeline = _of("notebook", Notebook.timeline)
    remember = _of("notebook", Notebook.remember)
    import_files = _of("notebook", Notebook.import_files)
    forget = _of("notebook", Notebook.forget)
    unforget = _of("notebook", Notebook.unforget)

    sync = _of("index", Index.sync)
    embed_some = _of("index", Index.embed_some)
    embed_shared = _of("index", Index.embed_shared)
    prune = _of("index", Index.prune)
    status = _of("index", Index.status)
    watch = _of("index", Index.watch)
    on_change = _of("index", Index.on_change)


def _adapters(root: Path, settings: Settings, env: Mapping[str, str]) -> Adapters:
    trust = trust_of(root, settings, env)
    files = FileSource(
        root,
        extra_paths=settings.extra_paths,
        max_file_bytes=settings.max_file_bytes,
        folder=settings.folder,
        folder_limit=settings.folder_limit,
        trust=trust,
    )
    sources: list[Source] = [files] if "memory" in settings.sources else []
    most = settings.max_file_bytes
    sources += [
        AgentMemory(name, root, most, env) for name in settings_.AGENTS if name in settings.sources
    ]
    if "sessions" in settings.sources:
        sources.append(_sessions(root, settings, env))
    if settings.multimodal.paths:
        from notewell.sources.media import MediaSource  # noqa: PLC0415 - few workspaces have images and sound

        sources.append(
            MediaSource(
                root, paths=settings.multimodal.paths, max_bytes=settings.multimodal.max_bytes
            )
        )
    if settings.documents.paths:
        from notewell.sources.paged_files import PagedSource  # noqa: PLC0415 - few workspaces have documents

        sources.append(
            PagedSource(
                root, paths=settings.documents.paths, max_bytes=settings.documents.max_bytes
            )
        )

    def load_model(name: str, known: Sequence[str]) -> Embedder | None:
        own = settings.embed
        return registry.embedder(name, threads=own.threads, settings=own, env=env, known=known)

    def look(within_s: float) -> Iterable[SourceState]:
        return inventory(
            root, settings, files, conversations_found(root, env), env=env, within_s=within_s
        )

    return Adapters(files, trust, sources, load_model, replace_store, look)


def _sessions(root: Path, settings: Settings, env: Mapping[str, str]) -> Source:
    from notewell.sources.sessions.kept import Kept  # noqa: PLC0415 - few workspaces have transcripts
    from notewell.sources.sessions.session_source import SessionSource  # noqa: PLC0415

    own, root = settings.sessions, Path(os.path.realpath(root))
    base = settings_.data_folder(env)
    nowhere = base.is_relative_to(os.devnull)  # a user without a home
    kept = (
        None
        if nowhere
        else Kept(base / "conversations", root, most_bytes=int(own.keep_mb * 1_000_000))
    )
    everyone, most = own.all_projects, own.max_file_bytes
    return SessionSource(
        root,
        paths=own.paths,
        all_projects=everyone,
        max_file_bytes=most,
        env=env,
        kept=kept,
        keeping=own.keep,
    )


def conversations_found(root: Path, env: Mapping[str, str] | None = None) -> dict[str, int]:
    """How many conversations of a workspace there are, by the name of their program; none of them
    is read.
    """
    from notewell.sources.sessions.counting import found  # noqa: PLC0415

    return found(root, env=env)


def deleted_after_days(root: Path, env: Mapping[str, str] | None = None) -> int | None:
    """After how many days Claude Code deletes its conversations; None if there are none of this
    workspace.
    """
    from notewell.sources.sessions import claude_code  # noqa: PLC0415
    from notewell.sources.sessions.keeper import Where  # noqa: PLC0415

    return claude_code.deleted_after_days(
        Where(os.path.realpath(root), os.environ if env is None else env)
    )


def _reranker(settings: Settings, env: Mapping[str, str]) -> Reranker | None:
    key = env.get("NOTEWELL_RERANK_KEY", "")
    return registry.reranker(settings.search, key=key, threads=settings.embed.threads)


__all__ = [
    "Memory",
    "Status",
    "Text",
    "conversations_found",
    "deleted_after_days",
    "find_workspace",
]
