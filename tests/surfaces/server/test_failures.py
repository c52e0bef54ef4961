"""What a client reads when a call fails for a reason that nobody expected: JSON or a tool error,
with an id.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import MCPError
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client

from notewell.memory import Memory
from notewell.settings import state_folder
from notewell.surfaces.failures import LOG
from tests.conftest import Write
from tests.surfaces.server.served import Served, serving

SECRET = "the safe opens with 4711"


def broken(*_args: Any, **_kwargs: Any) -> None:
    raise RuntimeError(SECRET)


@pytest.fixture
def served(root: Path, write: Write) -> Iterator[Served]:
    write("memory/a.md", "# Zoo\n\nThe jaguar sleeps.\n")
    with serving(root, warm=False) as one:
        yield one


@pytest.fixture
def failing(served: Served, monkeypatch: pytest.MonkeyPatch) -> Served:
    for name in ("search", "context", "get"):
        monkeypatch.setattr(Memory, name, broken)
    monkeypatch.setattr(type(served.memory.store.documents), "stored", broken)
    return served


def checked(error: dict[str, str]) -> None:
    assert set(error) == {"code", "message", "hint"}
    assert error["code"] == "unexpected"
    assert SECRET not in str(error)
    number = error["message"].rpartition("id ")[2].rstrip(")")
    assert number in (state_folder({}) / LOG).read_text(encoding="utf-8")


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
def test_the_ends_of_the_calendar_are_days_like_any_other(served: Served, day: str) -> None:
    reply = served.get(f"/api/search?query=jaguar&as_of={day}")
    assert (reply.status, len(reply.json["results"])) == (200, 1)
    assert served.get(f"/api/search?query=jaguar&as_of={day[:4]}").status == 400


def test_settings_and_arguments_change_a_profile_together(root: Path, write: Write) -> None:
    write("memory/a.md", "# Zoo\n\nThe jaguar sleeps.\n")
    write("notewell.toml", '[search]\nprofile = "rrf"\nstages = ["mmr"]\n')
    with serving(root, warm=False) as one:
        found = one.get("/api/search?query=jaguar&explain=true&fusion=maxnorm").json
        assert found["profile"] == "rrf*"
        assert [s["name"].partition("(")[0] for s in found["trace"]["stages"]] == [
            "MaxNorm",
            "Mmr",
            "Cut",
        ]
        reply = one.get("/api/search?query=jaguar", Accept="application/x-ndjson")
        assert [json.loads(line)["profile"] for line in reply.body.splitlines()] == [
            "lexical",
            "vector",
            "rrf*",
        ]


def test_http_tells_it_as_json(failing: Served) -> None:
    reply = failing.get("/api/search?query=jaguar")
    assert reply.status == 500
    assert reply.headers["content-type"] == "application/json"
    checked(reply.json["error"])


def test_every_phase_of_a_stream_tells_it(failing: Served) -> None:
    reply = failing.get("/api/search?query=jaguar", Accept="application/x-ndjson")
    lines = [json.loads(line) for line in reply.body.splitlines()]
    assert [line["phase"] for line in lines] == ["lexical", "vector", "final"]
    for line in lines:
        checked(line["error"])


def test_mcp_tells_it_as_an_error(failing: Served) -> None:
    async def main() -> None:
        async with (
            streamable_http_client(f"http://127.0.0.1:{failing.port}/mcp") as (read, write, *_),
            ClientSession(read, write) as one,
        ):
            await one.initialize()
            found = await one.call_tool("memory_search", {"query": "jaguar"})
            assert found.is_error
            assert SECRET not in str(found.content)
            assert found.structured_content is not None
            checked(found.structured_content["error"])
            for asking in (
                one.list_resources(),
                one.read_resource("memory://memory/a.md"),
                one.get_prompt("recall", {"topic": "jaguar"}),
            ):
                with pytest.raises(
                    MCPError, match="something went wrong inside notewell"
                ) as caught:
                    await asking
                assert SECRET not in str(caught.value)

    anyio.run(main)
