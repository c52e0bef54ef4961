"""The memory files that agents keep for a workspace: what is found, and that nothing else is."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

import pytest

from notewell.errors import SettingsError
from notewell.memory import Memory
from notewell.settings import AGENTS, load
from notewell.sources.agents import AgentMemory, repository_of
from tests.conftest import Write


def put(place: Path, text: str) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")
    return place


def names(name: str, root: Path) -> list[str]:
    return [Path(d.path).name for d in AgentMemory(name, root).scan().documents]


def claude(home: Path, project: Path) -> Path:
    return home / ".claude/projects" / re.sub(r"[^A-Za-z0-9]", "-", str(project)) / "memory"


@pytest.fixture
def kept(root: Path, own_environment: Path) -> Path:
    """Something of every agent, for this folder and for another one."""
    home, other = own_environment, root.parent / "other"
    for place, fact in ((root, "ours"), (other, "theirs")):
        put(claude(home, place) / "MEMORY.md", f"- The kiln is {fact}, says Claude.\n")
        put(
            home / f".codex/memories/rollout_summaries/{fact}.md",
            f"thread_id: 1\ncwd: {place}\n\nkiln {fact} codex\n",
        )
        short = hashlib.sha256(str(place).encode()).hexdigest()
        put(
            home / ".gemini/tmp" / short / "memory/GEMINI.md",
            f"- The kiln is {fact}, says Gemini.\n",
        )
    groups = [
        f"# Task Group: {p.name}\napplies_to: cwd={p}; x\n\n- group of {p.name}\n"
        for p in (other, root)
    ]
    put(home / ".codex/memories/MEMORY.md", "\n".join(groups))
    put(
        home / ".gemini/projects.json",
        json.dumps({"projects": {str(root): "short", str(other): "../../x"}}),
    )
    put(home / ".gemini/memory/short/GEMINI.md", "- kiln ours short\n")
    put(
        home / ".openclaw/openclaw.json",
        json.dumps({"agents": {"defaults": {"workspace": str(other)}, "list": [3, {}]}}),
    )
    put(root / "SOUL.md", "kiln soul\n")
    put(root / "MEMORY.md", "- A note.\n")
    return home


def test_only_what_is_kept_for_this_folder_is_read(root: Path, kept: Path) -> None:
    assert names("claude-memory", root) == ["MEMORY.md"]
    assert names("codex-memory", root) == ["MEMORY.md", "ours.md"]
    assert names("gemini-memory", root) == ["GEMINI.md", "GEMINI.md"]
    assert names("openclaw-memory", root) == []
    with Memory.open(root, embed__model="none") as memory:
        found = memory.search("kiln", limit=20)
        assert {h.chunk.origin for h in found.hits} == {"agent"}
        assert len(found.hits) == 4
        assert not any("theirs" in h.chunk.text for h in found.hits)
        group = memory.search("group of workspace").hits[0].chunk
        assert (group.source, group.start_line) == ("codex-memory", 7), (
            "lines are those of the file"
        )
        assert "group of other" not in memory.get(group.path).text
        assert {name for name, _, _ in memory.status().sources} == {"memory", *AGENTS[:3]}
        assert memory.search("kiln", filters=None).hits


def test_each_is_switched_by_one_setting(root: Path, kept: Path) -> None:
    with Memory.open(root, embed__model="none", sources="memory") as memory:
        assert memory.search("kiln").hits == ()
        told = {n.code for n in memory.search("kiln").notices}
        assert {"claude_memory_not_read", "codex_memory_not_read", "gemini_memory_not_read"} <= told


def test_openclaws_files_are_read_in_a_workspace_of_its(root: Path, kept: Path) -> None:
    put(
        kept / ".openclaw/openclaw.json",
        json.dumps({"agents": {"list": [{"workspace": str(root)}]}}),
    )
    assert names("openclaw-memory", root) == ["SOUL.md"]
    own = kept / ".openclaw/workspace"
    put(own / "SOUL.md", "kiln soul\n")
    put(own / "notes.md", "x")
    assert names("openclaw-memory", own) == ["SOUL.md"]
    with Memory.open(own, embed__model="none") as memory:
        assert memory.sync().added == 2, "a file that two sources find is one document"
        assert memory.sync().changed == 0


def test_an_agent_that_is_not_in_use_has_no_places(root: Path) -> None:
    assert [AgentMemory(name, root).trees() for name in AGENTS] == [[], [], [], []]


def test_a_repository_and_its_worktrees_share_claudes_memory(
    root: Path, own_environment: Path, tmp_path: Path
) -> None:
    main, tree = tmp_path / "main", tmp_path / "tree"
    put(claude(own_environment, main) / "MEMORY.md", "- shared\n")
    put(tree / ".git", f"gitdir: {main}/.git/worktrees/tree\n")
    put(main / ".git/worktrees/tree/gitdir", f"{tree}/.git\n")
    (main / "deep").mkdir()
    assert repository_of(str(tree)) == str(main)
    for place in (main, main / "deep", tree):
        assert names("claude-memory", place) == ["MEMORY.md"]


@pytest.mark.parametrize("back", ["", "/somewhere/else/.git\n", None])
def test_a_git_file_that_points_at_another_repository_is_not_believed(
    root: Path, own_environment: Path, tmp_path: Path, back: str | None
) -> None:
    main = tmp_path / "main"
    put(claude(own_environment, main) / "MEMORY.md", "- secret\n")
    put(main / ".git/HEAD", "x")
    if back is not None:
        put(main / ".git/worktrees/x/gitdir", back)
    put(root / ".git", f"gitdir: {main}/.git/worktrees/x\n")
    assert repository_of(str(root)) == str(root)
    assert names("claude-memory", root) == []


def test_a_link_in_an_agents_folder_is_not_followed_out_of_it(
    root: Path, own_environment: Path, tmp_path: Path
) -> None:
    secret = put(tmp_path / "secret.md", "x")
    place = claude(own_environment, root)
    put(place / "a.md", "x")
    os.symlink(secret, place / "b.md")
    assert names("claude-memory", root) == ["a.md"]
    own = own_environment / ".openclaw/workspace"
    own.mkdir(parents=True)
    os.symlink(secret, own / "SOUL.md")
    source = AgentMemory("openclaw-memory", own)
    assert source.scan().documents == ()


def test_a_workspace_file_may_not_choose_agents(root: Path, write: Write) -> None:
    write("notewell.toml", 'sources = ["claude-memory"]\n')
    with pytest.raises(SettingsError, match="may not set sources"):
        load(root, env={})


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"projects": 3}', '{"agents": [1]}', '{"agents": {"list": 4}}', "\udcff"],
)
def test_odd_settings_of_agents_are_none(root: Path, own_environment: Path, text: str) -> None:
    data = text.encode("utf-8", "surrogateescape")
    for name in (".gemini/projects.json", ".openclaw/openclaw.json"):
        (own_environment / name).parent.mkdir(exist_ok=True)
        (own_environment / name).write_bytes(data)
    assert names("gemini-memory", root) == names("openclaw-memory", root) == []
