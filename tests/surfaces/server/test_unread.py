"""What cannot be read is named on every surface, not only by `status`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from notewell.surfaces.cli.commands import run
from notewell.surfaces.server import texts
from tests.conftest import Write
from tests.surfaces.server.served import serving

MESSAGE = "1 note cannot be read, so this answer may miss something: memory/b.md (a binary file)"


def test_every_surface_names_what_it_cannot_read(
    root: Path, write: Write, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("memory/a.md", "# Pond\n\nThe heron stands in the pond.\n")
    write("memory/b.md", b"\0\1\2\3")
    monkeypatch.chdir(root)
    monkeypatch.setenv("NOTEWELL_EMBED_MODEL", "hashed")
    assert run(["search", "heron"]) == 0
    assert f"note: {MESSAGE}" in capsys.readouterr().err
    assert run(["search", "nothing of this", "--format", "context"]) == 0
    assert f"note: {MESSAGE}" in capsys.readouterr().err
    assert run(["search", "heron", "--json"]) == 0
    by_command = json.loads(capsys.readouterr().out)["notices"]
    with serving(root) as served:
        answer = served.get("/api/search?query=heron").json
    assert [n for n in answer["notices"] if n["code"] == "unread_notes"] == by_command
    assert by_command[0]["message"] == MESSAGE
    assert any(MESSAGE in line for line in texts.search(answer).splitlines())
