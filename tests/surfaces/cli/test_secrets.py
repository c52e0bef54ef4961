"""A key is in no output, notice, log or index, whatever is asked and whatever goes wrong."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from notewell.embed.remote.remote_embedder import RemoteEmbedder, remote_embedder
from notewell.memory import Memory
from notewell.settings import EmbedSettings, user_file
from notewell.surfaces import view
from notewell.surfaces.cli.commands import run
from tests.conftest import Write
from tests.embed.provider_server import KEY, ProviderServer, serving, status


@pytest.mark.parametrize("place", ["file", "variable"])
def test_config_shows_that_a_key_is_set_and_not_the_key(
    root: Path,
    own_environment: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    place: str,
) -> None:
    if place == "file":
        file = user_file({"XDG_CONFIG_HOME": str(own_environment / ".config")})
        file.parent.mkdir(parents=True)
        file.write_text(f'[embed]\nkey = "{KEY}"\nheaders = ["X-Key: {KEY}"]\n')
    else:
        monkeypatch.setenv("NOTEWELL_EMBED_KEY", KEY)
        monkeypatch.setenv("NOTEWELL_EMBED_HEADERS", f"X-Key: {KEY}")
    for form in ([], ["--json"]):
        assert run(["config", "-w", str(root), *form]) == 0
        printed = "".join(capsys.readouterr())
        assert printed.count("(hidden)") == 2
        assert "X-Key: (hidden)" in printed
        assert KEY not in printed


@pytest.fixture
def model() -> Iterator[tuple[RemoteEmbedder, ProviderServer]]:
    with serving(ProviderServer("openai", dim=64)) as server:
        own = EmbedSettings(model="openai", url=server.url, dim=64, timeout_s=5)
        made = remote_embedder("openai", "", own, {"OPENAI_API_KEY": KEY})
        yield made, server
        made.close()


def test_neither_index_nor_answers_nor_logs_hold_the_key(
    root: Path,
    write: Write,
    model: tuple[RemoteEmbedder, ProviderServer],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    embedder, server = model
    write("memory/a.md", "The backup runs at night.")
    with Memory.open(root, embedder=embedder) as memory:
        assert memory.sync().embedded == 1
        found = memory.search("when does the backup run")
        assert found.mode == "hybrid"
        assert found.embedder == "openai/text-embedding-3-small@64"
        server.always = status(401, {"error": {"message": f"bad key {KEY}"}})
        write("memory/b.md", "The port is 9443.")
        answer = memory.search("which port")
        assert [hit.chunk.path for hit in answer.hits] == ["memory/b.md"], "keywords still answer"
        said = (
            str(view.found(found))
            + str(view.found(answer))
            + repr(found)
            + repr(answer)
            + repr(memory.status())
        )
        assert "refused the key" in said
    stored = b"".join(file.read_bytes() for file in (root / ".notewell").iterdir())
    assert b"9443" in stored
    assert KEY.encode() not in stored
    assert KEY not in said + caplog.text
