"""Which models fail is shared between processes; a broken file does no harm."""

from __future__ import annotations

from pathlib import Path

import pytest

from notewell.embed.breaker import Outages


def test_a_failure_is_remembered_until_all_is_well(tmp_path: Path) -> None:
    now = [1000.0]
    path = tmp_path / "index.models.json"
    one, other = (Outages(path, clock=lambda: now[0]) for _ in range(2))
    assert one.read("far") == (0, 0.0)
    one.write("far", 2, 10.0)
    now[0] = 1004.0
    assert other.read("far") == (2, 6.0)
    assert other.read("near") == (0, 0.0)
    other.write("far", 0, 0.0)
    assert one.read("far") == (0, 0.0)
    assert [p.name for p in tmp_path.iterdir()] == ["index.models.json"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_clock_that_is_set_back_lets_no_model_rest_for_years(tmp_path: Path) -> None:
    now = [4e9]
    outages = Outages(tmp_path / "a.json", clock=lambda: now[0])
    outages.write("far", 1, 5.0)
    now[0] = 1.8e9
    assert outages.read("far") == (0, 0.0)


def test_a_model_that_is_well_leaves_no_file(tmp_path: Path) -> None:
    Outages(tmp_path / "a.json").write("far", 0, 0.0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        '{"far": 3}',
        '{"far": []}',
        '{"far": ["a", 1]}',
        '{"far": [1e999, 1]}',
        '{"far": [1, NaN]}',
        '{"far": [-1, 9e9]}',
        '{"far": {}}',
        "[" * 100_000,
    ],
)
def test_a_file_that_makes_no_sense_is_as_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    assert Outages(path).read("far") == (0, 0.0)
    Outages(path).write("far", 1, 5.0)
    assert Outages(path).read("far")[0] == 1


def test_a_place_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    Outages(tmp_path / "no" / "a.json").write("far", 1, 5.0)
