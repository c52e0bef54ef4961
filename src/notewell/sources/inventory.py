"""What there is to read for a workspace: every source with what it holds, read or not."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from notewell.settings import AGENTS, Settings
from notewell.sources.agents import AgentMemory
from notewell.sources.source import NoteFiles

# kinds of documents, and where their notes go
_IMPORTED = {"PDF": "pdf", "Word file": "docx", "web page": "html"}
_ABOUT = {
    "memory": "MEMORY.md, USER.md and memory/",
    "folder": "the other notes of this folder",
    "claude-memory": "what Claude Code remembers about this project",
    "codex-memory": "what Codex remembers about work in this folder",
    "gemini-memory": "what Gemini CLI remembers about this project",
    "openclaw-memory": "OpenClaw's own files in its workspace",
    "documents": "documents, which are not notes",
    "ignored": "notes that .gitignore or .notewellignore lists",
}
_READ_IGNORED = "echo '!*' >> .notewellignore"


@dataclass(frozen=True, slots=True)
class SourceState:
    """One source: whether it is read, how many documents it has, what they are called, and what
    changes that.
    """

    name: str
    about: str
    read: bool
    documents: int
    what: str = "notes"
    command: str = ""

    @property
    def amount(self) -> str:
        """How many documents there are, in words."""
        return (
            f"{self.documents:,} "
            f"{self.what.removesuffix('s') if self.documents == 1 else self.what}"
        )


def inventory(
    root: Path,
    settings: Settings,
    files: NoteFiles,
    spoken: Mapping[str, int],
    *,
    env: Mapping[str, str],
    within_s: float,
) -> Iterator[SourceState]:
    """Every source that is read or could be, with what there is of it, as far as it can be counted
    in time.
    """
    deadline = time.monotonic() + within_s
    yield from _notes(settings, files, deadline)
    yield from _agents(
        [AgentMemory(name, root, settings.max_file_bytes, env) for name in AGENTS],
        settings,
        deadline,
    )
    yield _sessions(settings, spoken)


def _notes(settings: Settings, files: NoteFiles, deadline: float) -> Iterator[SourceState]:
    """The notes that are written for people, in the folder itself."""
    own = "memory" in settings.sources
    mode = files.mode
    found = files.scan(deadline=deadline).documents if own else ()
    extra = sum(d.source == "extra" for d in found)
    if not own:
        yield SourceState(
            "memory", _ABOUT["memory"], read=False, documents=0, command=_add("memory")
        )
    elif mode == "never":
        yield SourceState(
            "memory",
            _ABOUT["memory"],
            read=True,
            documents=len(found) - extra,
            command=_drop("memory"),
        )
    others, documents = (0, files.unread) if mode != "never" else files.beyond(deadline=deadline)
    if own and mode != "never":
        yield SourceState(
            "folder",
            "the notes of this folder",
            read=True,
            documents=len(found) - extra,
            command=_drop("folder"),
        )
    elif own and others:
        yield SourceState(
            "folder", _ABOUT["folder"], read=False, documents=others, command=_add("folder")
        )
    if own and not found and (count := files.ignored(deadline=deadline)):
        yield SourceState(
            "ignored", _ABOUT["ignored"], read=False, documents=count, command=_READ_IGNORED
        )
    if settings.extra_paths:
        about = f"extra_paths: {', '.join(settings.extra_paths)}"
        yield SourceState("extra", about, read=True, documents=extra)
    if paths := settings.documents.paths:
        from notewell.sources.paged_files import PagedSource  # noqa: PLC0415 - few workspaces have documents

        about = f"documents.paths: {', '.join(paths)}"
        count = len(PagedSource(files.root, paths=paths).scan(deadline=deadline).documents)
        yield SourceState("documents", about, read=True, documents=count, what="documents")
    else:
        yield from _documents(documents, [d.path for d in found])


def _documents(seen: Mapping[str, int], notes: Sequence[str]) -> Iterator[SourceState]:
    """Documents of the folder that were not imported."""
    about = _ABOUT["documents"]
    for kind, name in _IMPORTED.items():
        count = seen.get(kind, 0) - sum(f"imported/{name}/" in path for path in notes)
        if count > 0:
            command = "notewell import ."
            yield SourceState(
                "documents", about, read=False, documents=count, what=f"{kind}s", command=command
            )


def _agents(
    agents: Sequence[AgentMemory], settings: Settings, deadline: float
) -> Iterator[SourceState]:
    """The memory files of agents that have some."""
    for agent in agents:
        name, read = agent.name, agent.name in settings.sources
        count = len(agent.scan(deadline=deadline).documents)
        if count or not read:
            yield SourceState(
                name,
                _ABOUT[name],
                read=read,
                documents=count,
                command=(_drop if read else _add)(name),
            )


def _sessions(settings: Settings, spoken: Mapping[str, int]) -> SourceState:
    """Conversations, which the user adds; `spoken` counts those about this folder by program."""
    read = "sessions" in settings.sources
    names = f"with {', '.join(sorted(spoken))}" if spoken else "with agents"
    count, command = sum(spoken.values()), (_drop if read else _add)("sessions")
    about = f"{names}, about this folder"
    return SourceState(
        "sessions", about, read=read, documents=count, what="conversations", command=command
    )


def _add(name: str) -> str:
    return f"notewell sources add {name}"


def _drop(name: str) -> str:
    return f"notewell sources drop {name}"
