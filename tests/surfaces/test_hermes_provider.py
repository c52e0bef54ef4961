"""The memory provider of Hermes, called as Hermes calls it."""

from __future__ import annotations

import abc
import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from notewell.surfaces import hermes_provider as hermes
from notewell.surfaces.hermes_provider import NotewellProvider


class MemoryProvider(abc.ABC):
    """Hermes's class, as far as it has abstract parts."""

    @property
    @abc.abstractmethod
    def name(self) -> str: ...

    @abc.abstractmethod
    def is_available(self) -> bool: ...

    @abc.abstractmethod
    def initialize(self, session_id: str, **given: Any) -> None: ...

    @abc.abstractmethod
    def get_tool_schemas(self) -> list[dict[str, Any]]: ...


class Collector:
    provider: Any = None

    def register_memory_provider(self, provider: Any) -> None:
        self.provider = provider


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    module = types.ModuleType("agent.memory_provider")
    module.MemoryProvider = MemoryProvider  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "agent", types.ModuleType("agent"))
    monkeypatch.setitem(sys.modules, "agent.memory_provider", module)
    monkeypatch.setenv("NOTEWELL_EMBED_MODEL", "hashed")
    monkeypatch.setenv("NOTEWELL_HOOK_CONFIDENCE", "0.5")  # the usual bar is for a real model
    notes = tmp_path / "memories"
    notes.mkdir()
    (notes / "MEMORY.md").write_text(
        "# Facts\n\n- The staging port is 8081 since May.\n", encoding="utf-8"
    )
    return tmp_path


@pytest.fixture
def provider(home: Path) -> Iterator[NotewellProvider]:
    collector = Collector()
    hermes.register(collector)
    assert isinstance(collector.provider, MemoryProvider)  # Hermes takes nothing else
    made: Any = collector.provider
    made.initialize("s1", hermes_home=str(home), platform="cli")
    made._memory.sync()  # so that the vectors are there
    yield made
    made.shutdown()


def test_it_recalls_once_and_is_silent_otherwise(provider: NotewellProvider) -> None:
    assert provider.name == "notewell"
    assert provider.is_available()
    block = provider.prefetch("which staging port is it", session_id="s1")
    assert "8081" in block
    assert "MEMORY.md#L3" in block
    assert provider.prefetch("which staging port is it", session_id="s1") == ""  # not twice
    assert provider.on_pre_compress([]) == ""
    assert "8081" in provider.prefetch("which staging port is it", session_id="s1")
    for nothing in ("", "  ", "zebra quantum volcano"):
        assert provider.prefetch(nothing) == ""
    provider.sync_turn("a", "b", session_id="s1", messages=[])
    assert "memory_search" in provider.system_prompt_block()


def test_its_tools_answer_in_json(provider: NotewellProvider) -> None:
    schemas = {one["name"]: one for one in provider.get_tool_schemas()}
    assert list(schemas) == [
        "memory_search",
        "memory_get",
        "memory_timeline",
        "memory_remember",
        "memory_forget",
    ]
    assert schemas["memory_search"]["parameters"]["required"] == ["query"]
    found = json.loads(
        provider.handle_tool_call("memory_search", {"query": "staging port", "limit": None})
    )
    assert "8081" in found["result"]
    assert "written" not in json.loads(
        provider.handle_tool_call("memory_remember", {"text": "Sam is back."})
    )
    assert (
        "Sam"
        in json.loads(provider.handle_tool_call("memory_search", {"query": "Sam back"}))["result"]
    )
    for name, given in (
        ("memory_search", {}),
        ("memory_get", {"reference": "../x"}),
        ("memory_burn", {}),
        ("rm", {}),
    ):
        assert json.loads(provider.handle_tool_call(name, given))["error"]


def test_a_job_may_read_and_not_write(home: Path) -> None:
    made = NotewellProvider()
    made.initialize("s2", hermes_home=str(home), agent_context="cron")
    try:
        assert "memory_remember" not in {one["name"] for one in made.get_tool_schemas()}
        assert json.loads(made.handle_tool_call("memory_remember", {"text": "x"}))["error"]
    finally:
        made.shutdown()
    made.shutdown()
    assert made.prefetch("staging") == ""


def test_the_workspace_is_the_one_that_was_set_up(home: Path) -> None:
    made = NotewellProvider()
    assert [one["key"] for one in made.get_config_schema()] == ["workspace"]
    assert hermes.workspace(home, {}) == home / "memories"
    assert hermes.workspace(home, {"NOTEWELL_WORKSPACE": "/n"}) == Path("/n")
    made.save_config({"workspace": "/mine"}, str(home))
    assert hermes.workspace(home, {"NOTEWELL_WORKSPACE": "/n"}) == Path("/mine")
    for broken in ("{", "[]", '{"workspace": 5}', ""):
        (home / hermes.SETTINGS).write_text(broken, encoding="utf-8")
        assert hermes.workspace(home, {}) == home / "memories"
