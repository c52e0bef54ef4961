"""The benchmark runs, small, and says what it measured: the figures themselves are for `make bench`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parent.parent / "benchmarks" / "run.py"
TARGETS = {
    "unchanged_process": 0.5,
    "unchanged": 0.5,
    "changed_wrong": 0,
    "search_hybrid_p50": 10,
    "cold_search": 1.0,
    "version_cpu": 0.1,
    "embed_400_600": 30,
    "embed_400_6000": 300,
    "embed_256_600": 30,
    "embed_256_6000": 300,
    "embed_query": 15,
    "embed_pieces_default": 15,
    "embed_pieces_minilm": 15,
    "embed_static": 2000,
    "search_hanging": 3.1,
    "renamed_embedded": 0,
}


@pytest.mark.skipif(sys.platform == "win32", reason="the bench reads the CPU time of its processes")
def test_a_small_bench_has_every_figure(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    done = subprocess.run(
        [sys.executable, RUN, "--quick", "--json", out], capture_output=True, text=True, encoding="utf-8", check=True
    )
    raw = json.loads(out.read_text(encoding="utf-8"))
    figures = {f["key"]: f for f in raw["figures"]}
    assert len(figures) == len(raw["figures"])
    assert raw["scale"]["notes"] == 60
    assert raw["machine"]["cores"] >= 1
    assert {key: figures[key]["target"] for key in TARGETS} == TARGETS
    for figure in figures.values():
        assert figure["value"] > 0 or figure["key"] in ("changed_wrong", "renamed_embedded")
        assert figure["verdict"] == "" if figure["target"] is None else figure["verdict"] in ("ok", "over")
        assert figure["what"] in done.stdout
    assert figures["changed_wrong"]["value"] == figures["renamed_embedded"]["value"] == 0
    assert figures["changed_embedded"]["value"] >= 1
    head, blank, *table = done.stdout.splitlines()
    assert head.startswith("60 notes on ")
    assert not blank
    assert len(table) == len(figures) + 2
    assert len({len(line) for line in table}) == 1


def test_the_same_seed_writes_the_same_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(RUN.parent))
    import notes

    for name in ("one", "two"):
        notes.write_workspace(tmp_path / name, 50)
    one, two = (
        {p.relative_to(tmp_path / name): p.read_bytes() for p in (tmp_path / name).rglob("*.md")}
        for name in ("one", "two")
    )
    assert len(one) == 50
    assert one == two


@pytest.mark.slow
def test_a_small_scale_writes_its_page(tmp_path: Path) -> None:
    out = tmp_path / "RESULTS.md"
    subprocess.run(
        [sys.executable, RUN.with_name("scale.py"), "--sizes", "100", "--no-peers", "--out", out], check=True
    )
    text = out.read_text(encoding="utf-8")
    for what in ("warm hybrid search", "recall@50", "bytes on disk", "sync, nothing changed"):
        assert what in text
    recall = next(line for line in text.splitlines() if "recall@50" in line)
    assert float(recall.split("|")[2]) >= 0.98


def test_the_same_seed_makes_the_same_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(RUN.parent))
    import corpus

    first, second = corpus.Corpus(seed=3), corpus.Corpus(seed=3)
    assert first.note("a") == second.note("a") != first.note("a")
    first.write(tmp_path, 40)
    assert len(list(tmp_path.rglob("*.md"))) == 4
    assert all(3 <= len(q.split()) <= 13 for q in first.questions(tmp_path, 20))


@pytest.mark.slow
def test_a_small_bench_of_both_stores_writes_its_page(tmp_path: Path) -> None:
    page = tmp_path / "POSTGRES.md"
    small = ["--chunks", "300", "--spread", "200", "--questions", "10", "--workspaces", "1,4", "--workers", "1,2"]
    subprocess.run([sys.executable, RUN.with_name("postgres.py"), *small, "-o", page], check=True, capture_output=True)
    text = page.read_text(encoding="utf-8")
    for what in ("keyword leg", "vector leg", "hybrid search", "insert with indexes live", "embedded twice"):
        assert what in text
