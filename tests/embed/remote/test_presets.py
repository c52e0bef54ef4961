"""The table of providers: complete, consistent, and with checksums that keep vectors of two kinds
apart.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from notewell.embed.remote.presets import PRESETS, Model, Preset
from notewell.model_names import REMOTE_PROVIDERS, is_remote

PAGE = (Path(__file__).parents[3] / "docs/models.md").read_text(encoding="utf-8")


def test_the_settings_know_every_provider_that_sends_notes_elsewhere() -> None:
    assert tuple(PRESETS) == REMOTE_PROVIDERS
    assert all(is_remote(name) and is_remote(f"{name}/some-model") for name in PRESETS)
    assert not any(
        map(is_remote, ("auto", "none", "hashed", "bge-small-en-v1.5", "./models/openai", ""))
    )


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS.keys())
def test_a_row_is_whole(preset: Preset) -> None:
    if preset.name == "http":
        assert not preset.url
        assert not preset.model
        return
    local = preset.url.startswith("http://localhost:")
    assert local or preset.url.startswith("https://")
    assert local != preset.key_needed
    assert preset.known(preset.model).dim
    assert all(preset.keys) == preset.key_needed or not preset.keys
    assert all(preset.types) == any(preset.types)
    assert len({model.name for model in preset.models}) == len(preset.models)
    assert all(
        model.usd_per_million is None or model.usd_per_million >= 0 for model in preset.models
    )


def test_a_tag_of_a_model_does_not_matter_and_an_unknown_one_is_only_a_name() -> None:
    ollama = PRESETS["ollama"]
    assert ollama.known("nomic-embed-text:v1.5").dim == 768
    assert ollama.known("nomic-embed-text:v1.5").name == "nomic-embed-text:v1.5"
    assert ollama.known("somebody/other") == Model("somebody/other")


def test_the_manner_changes_with_every_prefix_and_type() -> None:
    gemini, voyage = PRESETS["gemini"], PRESETS["voyage"]
    plain = Model("m", typed=False)
    models = [
        plain,
        Model("m", typed=False, prefixes=("a", "")),
        Model("m", typed=False, prefixes=("", "a")),
        Model("m", typed=False, prefixes=("a", "b")),
        Model("m"),
        Model("m", prefixes=("a", "b")),
    ]
    marks = [gemini.manner(model) for model in models]
    assert marks[0] == ""
    assert len(set(marks)) == len(models)
    assert gemini.manner(Model("m")) != voyage.manner(Model("m"))
    assert PRESETS["openai"].manner(PRESETS["openai"].known("text-embedding-3-small")) == ""


def test_the_page_has_the_same_table() -> None:
    section = PAGE.partition("\n## Remote models")[2].partition("\n## ")[0]
    rows = [
        [cell.strip() for cell in row.strip("|").split("|")]
        for row in section.splitlines()
        if row[:3] == "| `"
    ]
    shown = {row[0].strip("`"): row[1:] for row in rows}
    assert list(shown) == list(PRESETS)
    for name, (model, key, price) in shown.items():
        preset = PRESETS[name]
        assert re.findall(r"`([^`]+)`", model)[:1] == ([preset.model] if preset.model else []), name
        assert tuple(re.findall(r"`([A-Z_]+)`", key)) == preset.keys, name
        usd = preset.known(preset.model).usd_per_million if preset.model else None
        assert price == {None: "", 0.0: "free"}.get(usd, f"${usd:.2f}" if usd else ""), name
