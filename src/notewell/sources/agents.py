"""Memory files that agents keep for this very workspace, in their own folders: found by fixed
rules, never by settings.

| name | what is read |
| --- | --- |
| claude-memory | Claude Code: `projects/<path of the repository>/memory/` in `~/.claude` |
| codex-memory | Codex: summaries and groups of `MEMORY.md` on this folder, in `~/.codex/memories` |
| gemini-memory | Gemini CLI: `tmp/<project>/memory/` and `memory/<project>/` in `~/.gemini` |
| openclaw-memory | OpenClaw: `SOUL.md` and the other files of its workspace, if this is one |
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from notewell.opener import ANYWHERE, MOST_SETTINGS_BYTES, Opener, inside, is_in
from notewell.sources.files import scan_paths
from notewell.sources.source import Scanned
from notewell.sources.trust import first_line
from notewell.text.note_files import decode
from notewell.text.reference_syntax import NOTES
from notewell.types import Document

_HEAD_BYTES = 4096
_MOST_SUMMARIES = 2_000
_CWD = re.compile(r"^cwd:[ \t]*(.+?)[ \t]*$", re.MULTILINE)
_GROUP = re.compile(r"(?=^# )", re.MULTILINE)
_APPLIES = re.compile(r"^applies_to:[^\n]*?\bcwd=([^;\n]+)", re.MULTILINE)
_OPENCLAW_FILES = (
    "AGENTS.md",
    "SOUL.md",
    "IDENTITY.md",
    "TOOLS.md",
    "HEARTBEAT.md",
    "DREAMS.md",
    "BOOTSTRAP.md",
)


def agent_folder(env: Mapping[str, str], variable: str, usual: str) -> str:
    """The folder of a program: the value of its variable, else the usual one; for a user without a
    home, none.
    """
    home = os.path.expanduser("~")
    return env.get(variable) or os.path.join(home if os.path.isabs(home) else os.devnull, usual)


@dataclass(eq=False)
class AgentMemory:
    """The memory files of one agent for one workspace; what it wrote is of origin `agent`."""

    name: str
    root: Path
    max_file_bytes: int = 50_000_000
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def __post_init__(self) -> None:
        self.root = Path(os.path.realpath(self.root))

    def trees(self) -> list[str]:
        """The folders and files that hold this memory, or will, if the agent is in use here."""
        return list(_PLACES[self.name](self))

    def scan(self, *, deadline: float | None = None) -> Scanned:
        places = [place for place in self.trees() if os.path.exists(place)]
        if not places:
            return Scanned(())
        found = scan_paths(
            self.root,
            [glob.escape(place) for place in places],
            kind=self.name,
            endings=NOTES,
            max_bytes=self.max_file_bytes,
            limit="max_file_bytes",
            deadline=deadline,
        )
        if self.name != "codex-memory":
            return found
        return replace(
            found, documents=tuple(d for d in found.documents[:_MOST_SUMMARIES] if self._is_ours(d))
        )

    def document(self, path: str) -> Document | None:
        return next((d for d in self.scan().documents if d.path == path), None)

    def read(self, document: Document) -> str:
        text = decode(self._opener().read(document.location, most=self.max_file_bytes))
        return (
            self._own_groups(text) if os.path.basename(document.location) == "MEMORY.md" else text
        )

    def _opener(self) -> Opener:
        """Opens what is in the agent's places for this workspace, and follows no link out of
        them.
        """
        return inside(
            self.root, *(place for place in self.trees() if not is_in(place, str(self.root)))
        )

    def _is_ours(self, document: Document) -> bool:
        """Whether a file that Codex keeps for all folders is of work in this one."""
        try:
            if os.path.basename(document.location) == "MEMORY.md":
                return bool(self.read(document).strip())
            head = (
                self._opener()
                .read(document.location, most=_HEAD_BYTES, cut=True)
                .decode("utf-8", "replace")
            )
        except (OSError, ValueError):
            return False
        cwd = _CWD.search(head)
        return cwd is not None and self._belongs(cwd[1])

    def _own_groups(self, text: str) -> str:
        """The groups of Codex's `MEMORY.md` that apply to this folder; other lines are empty, so
        that none moves.
        """
        if self.name != "codex-memory":
            return text
        made = []
        for group in _GROUP.split(text):
            scope = _APPLIES.search(group)
            ours = scope is not None and self._belongs(scope[1].strip())
            made.append(group if ours else "\n" * group.count("\n"))
        return "".join(made)

    def _belongs(self, folder: str) -> bool:
        """Whether a folder that an agent noted is this workspace or inside it."""
        return os.path.isabs(folder) and is_in(os.path.normpath(folder), str(self.root))

    def claude(self) -> Iterator[str]:
        """Claude Code has one folder for a repository and all its worktrees, else one for the
        folder.
        """
        base = agent_folder(self.env, "CLAUDE_CONFIG_DIR", ".claude")
        if not os.path.isdir(base):
            return
        for project in dict.fromkeys((str(self.root), repository_of(str(self.root)))):
            yield os.path.join(base, "projects", re.sub(r"[^A-Za-z0-9]", "-", project), "memory")

    def codex(self) -> Iterator[str]:
        """Codex has one folder for all projects, with the folder of the work in every file."""
        base = os.path.join(agent_folder(self.env, "CODEX_HOME", ".codex"), "memories")
        if os.path.isdir(os.path.dirname(base)):
            yield os.path.join(base, "rollout_summaries")
            yield os.path.join(base, "MEMORY.md")

    def gemini(self) -> Iterator[str]:
        """Gemini CLI names a project by the hash of its path, or by a short name in
        `projects.json`.
        """
        base = os.path.join(agent_folder(self.env, "GEMINI_CLI_HOME", ""), ".gemini")
        if not os.path.isdir(base):
            return
        listed = _json(os.path.join(base, "projects.json")).get("projects")
        short = listed.get(str(self.root)) if isinstance(listed, dict) else None
        names = [hashlib.sha256(str(self.root).encode("utf-8", "surrogateescape")).hexdigest()]
        if isinstance(short, str) and re.fullmatch(r"[\w.-]{1,200}", short) and short.strip("."):
            names.append(short)
        for name in names:
            yield os.path.join(base, "tmp", name, "memory")
            yield os.path.join(base, "memory", name)

    def openclaw(self) -> Iterator[str]:
        """OpenClaw's own files in a workspace of its; what is in `MEMORY.md` and `memory/` are the
        notes anyway.
        """
        base = os.path.realpath(agent_folder(self.env, "OPENCLAW_STATE_DIR", ".openclaw"))
        agents = _json(os.path.join(base, "openclaw.json")).get("agents")
        named = (
            [_workspace(agents, "defaults"), *_listed(agents)] if isinstance(agents, dict) else []
        )
        own = (
            os.path.basename(self.root).startswith("workspace")
            and os.path.dirname(self.root) == base
        )
        if own or str(self.root) in (
            os.path.realpath(os.path.expanduser(one)) for one in named if one
        ):
            yield from (os.path.join(self.root, name) for name in _OPENCLAW_FILES)


_PLACES = {
    "claude-memory": AgentMemory.claude,
    "codex-memory": AgentMemory.codex,
    "gemini-memory": AgentMemory.gemini,
    "openclaw-memory": AgentMemory.openclaw,
}


def _listed(agents: dict[str, Any]) -> Iterator[str]:
    several = agents.get("list")
    for number in range(len(several)) if isinstance(several, list) else ():
        yield _workspace(several, number)


def _workspace(values: Any, key: Any) -> str:
    found = values[key] if isinstance(values, list) else values.get(key)
    place = found.get("workspace") if isinstance(found, dict) else None
    return place if isinstance(place, str) else ""


def _json(location: str) -> dict[str, Any]:
    """An object in a settings file of an agent, which is the user's own; empty where there is
    none.
    """
    try:
        found = json.loads(ANYWHERE.read(location, most=MOST_SETTINGS_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def repository_of(root: str) -> str:
    """The folder of the repository that a folder is in: of a worktree, that of the main one; else
    the folder itself.
    """
    here = root
    while not os.path.lexists(os.path.join(here, ".git")):
        above = os.path.dirname(here)
        if above == here:
            return root
        here = above
    mark = os.path.join(here, ".git")
    return here if os.path.isdir(mark) else _main_of(here, mark) or here


def _main_of(here: str, mark: str) -> str:
    """The main folder of a worktree; a clone can bring any `.git` file, so the repository must name
    it in turn.
    """
    gitdir = first_line(mark).removeprefix("gitdir:").strip()
    gitdir = os.path.normpath(os.path.join(here, gitdir)) if gitdir else ""
    git, _, name = gitdir.partition(f"{os.sep}worktrees{os.sep}")
    if not name or os.sep in name or os.path.basename(git) != ".git":
        return ""
    back = first_line(os.path.join(gitdir, "gitdir"))
    return os.path.dirname(git) if back and os.path.realpath(back) == os.path.realpath(mark) else ""
