"""Settings of OpenClaw carried over: what has a counterpart, and what is said of the rest."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from notewell.model_names import is_remote, plain_model
from notewell.settings import Settings, load
from notewell.surfaces.cli.commands import run

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def home(own_environment: Path) -> Path:
    return own_environment


OPENCLAW = """{
  // JSON5
  agents: { defaults: { memorySearch: {
    provider: "gemini", model: "gemini-embedding-001", fallback: "none",
    remote: { apiKey: "SECRET-KEY-VALUE", baseUrl: "https://example.org/v1" },
    extraPaths: ["../team-docs", "/srv/notes"],
    query: { maxResults: 8, minScore: 0.35,
      hybrid: { enabled: true, vectorWeight: 0.6, textWeight: 0.4,
        mmr: { enabled: true, lambda: 0.5 }, temporalDecay: { enabled: true, halfLifeDays: 45 } } },
    cache: { enabled: true, maxEntries: 50000 }, sync: { watch: true }, novelty: 7,
  } } },
}
"""


def test_settings_of_openclaw_become_ours_and_the_rest_is_said(
    home: Path, tmp_path: Path, capsys: Capture
) -> None:
    theirs = tmp_path / "openclaw.json"
    theirs.write_text(OPENCLAW, encoding="utf-8")
    assert run(["install", "--settings-from", str(theirs), "--yes"]) == 0
    shown = capsys.readouterr().err
    file = home / ".config/notewell/config.toml"
    ours = tomllib.loads(file.read_text(encoding="utf-8"))
    assert ours["embed"]["model"] == "gemini/gemini-embedding-001"
    assert ours["search"] == {"limit": 8}
    assert ours["extra_paths"] == ["../team-docs", "/srv/notes"]
    assert "SECRET" not in file.read_text(encoding="utf-8") + shown
    for words in (
        "minScore",
        "apiKey",
        "temporalDecay",
        "mmr",
        "weighted(vector=0.6, text=0.4)",
        "novelty",
    ):
        assert words in shown
    assert "enabled:" not in shown


def test_a_file_without_such_settings_is_refused(tmp_path: Path, capsys: Capture) -> None:
    theirs = tmp_path / "openclaw.json"
    theirs.write_text("{}", encoding="utf-8")
    assert run(["install", "--settings-from", str(theirs), "--yes"]) == 2
    assert "no memorySearch" in capsys.readouterr().err


def carried(home: Path, tmp_path: Path, **search: Any) -> Settings:
    theirs = tmp_path / "openclaw.json"
    theirs.write_text(json.dumps({"memorySearch": search}), encoding="utf-8")
    assert run(["install", "--settings-from", str(theirs), "--yes"]) == 0
    return load(tmp_path, env={"XDG_CONFIG_HOME": str(home / ".config")})


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ({"provider": "openai"}, ("openai", (), "", 0)),
        ({"provider": "local", "fallback": "openai"}, ("auto", ("local", "openai"), "", 0)),
        (
            {"provider": "openai", "model": "text-embedding-3-large", "fallback": "gemini"},
            ("auto", ("openai/text-embedding-3-large", "gemini"), "", 0),
        ),
        (
            {
                "provider": "gemini",
                "model": "gemini-embedding-001",
                "outputDimensionality": 768,
                "fallback": "local",
            },
            ("auto", ("gemini/gemini-embedding-001", "local"), "", 768),
        ),
        (
            {
                "provider": "openai",
                "fallback": "gemini",
                "remote": {"baseUrl": "https://example.org/v1"},
            },
            ("openai", (), "https://example.org/v1", 0),
        ),
        ({"provider": "bedrock", "model": "titan", "fallback": "none"}, ("auto", (), "", 0)),
        ({"provider": "openai", "fallback": "openai"}, ("openai", (), "", 0)),
        ({"provider": "none", "fallback": "openai"}, ("none", (), "", 0)),
    ],
)
def test_what_is_carried_over_can_be_loaded_and_means_the_same(
    home: Path, tmp_path: Path, search: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    own = carried(home, tmp_path, **search).embed
    assert (own.model, own.chain, own.url, own.dim) == expected
    for name in (own.model, *own.chain):
        assert is_remote(name) or plain_model(name)


def test_the_whole_file_of_openclaw_can_be_loaded(home: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "openclaw.json"
    theirs.write_text(OPENCLAW, encoding="utf-8")
    assert run(["install", "--settings-from", str(theirs), "--yes"]) == 0
    own = load(tmp_path, env={"XDG_CONFIG_HOME": str(home / ".config")})
    assert (own.embed.model, own.embed.url) == (
        "gemini/gemini-embedding-001",
        "https://example.org/v1",
    )
    assert own.search.limit == 8
