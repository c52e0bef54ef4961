"""The benchmark runs, small, and says what it measured: the figures themselves are for `make
bench`.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from notewell.eval.sets import load
from tests.eval.made import write_set

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
@pytest.mark.slow
def test_a_small_bench_has_every_figure(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    done = subprocess.run(
        [sys.executable, RUN, "--quick", "--json", out],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    raw = json.loads(out.read_text(encoding="utf-8"))
    figures = {f["key"]: f for f in raw["figures"]}
    assert len(figures) == len(raw["figures"])
    assert raw["scale"]["notes"] == 60
    assert raw["machine"]["cores"] >= 1
    assert {key: figures[key]["target"] for key in TARGETS} == TARGETS
    for figure in figures.values():
        assert figure["value"] > 0 or figure["key"] in ("changed_wrong", "renamed_embedded")
        assert (
            figure["verdict"] == ""
            if figure["target"] is None
            else figure["verdict"] in ("ok", "missed")
        )
        assert figure["what"] in done.stdout
    assert figures["changed_wrong"]["value"] == figures["renamed_embedded"]["value"] == 0
    assert figures["changed_embedded"]["value"] >= 1
    head, blank, *table = done.stdout.splitlines()
    assert head.startswith("60 notes on ")
    assert not blank
    assert len(table) == len(figures) + 2
    assert len({len(line) for line in table}) == 1


def test_the_same_seed_writes_the_same_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        [sys.executable, RUN.with_name("scale.py"), "--sizes", "100", "--no-peers", "--out", out],
        check=True,
    )
    text = out.read_text(encoding="utf-8")
    for what in ("warm hybrid search", "recall@50", "bytes on disk", "sync, nothing changed"):
        assert what in text
    recall = next(line for line in text.splitlines() if "recall@50" in line)
    assert float(recall.split("|")[2]) >= 0.98


def test_the_same_seed_makes_the_same_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    small = [
        "--chunks",
        "300",
        "--spread",
        "200",
        "--questions",
        "10",
        "--workspaces",
        "1,4",
        "--workers",
        "1,2",
    ]
    subprocess.run(
        [sys.executable, RUN.with_name("postgres.py"), *small, "-o", page],
        check=True,
        capture_output=True,
    )
    text = page.read_text(encoding="utf-8")
    for what in (
        "keyword leg",
        "vector leg",
        "hybrid search",
        "insert with indexes live",
        "embedded twice",
    ):
        assert what in text


def test_the_figures_of_confidence_are_those_of_the_tables_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(RUN.parent))
    quality = importlib.import_module("quality")
    told = "\n".join(quality.confidence_left_out(quality.SURENESS))
    assert "These are in use." in told
    assert told in (RUN.parent / "QUALITY.md").read_text(encoding="utf-8")


def test_a_public_set_gets_its_section_and_the_others_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(RUN.parent))
    import public

    folder, page = write_set(tmp_path / "tiny"), tmp_path / "PUBLIC.md"
    page.write_text("# Sets\n\n## another\n\nkept\n\n## tiny, keywords\n\nold\n", encoding="utf-8")
    assert public.main([str(folder), "--model", "none", "--no-peers", "--out", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "## another\n\nkept\n" in text
    assert text.count("## tiny, keywords\n") == 1
    assert "old" not in text
    (own,) = [
        line for line in text.splitlines() if line.startswith("| notewell, keywords | lexical |")
    ]
    # Both notes about the port are evidence; only the newer one has the turn, and keywords find the
    # older one first.
    assert own.split(" | ")[2:8] == ["1.000", "1.000", "1.000", "0.000", "1.000", "1.000"]
    assert "3 questions" in text  # the one that nothing answers is left out


def test_a_sample_of_a_set_keeps_the_questions_of_its_workspaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(RUN.parent))
    import public

    some = public.sample(load(write_set(tmp_path / "tiny")), 1)
    assert list(some.corpora) == ["w1"]
    assert [q.id for q in some.questions] == ["q1", "q2"]


def test_planted_facts_are_the_same_each_time_and_counted_by_their_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(RUN.parent))
    import day0

    planted = day0.facts(12)
    assert planted == day0.facts(12)
    assert len({fact.code for fact in planted}) == len({fact.question for fact in planted}) == 12
    assert all(fact.code in fact.said and fact.code not in fact.question for fact in planted)
    answers = [[f"nothing {n}", fact.said] if n else [fact.said] for n, fact in enumerate(planted)]
    assert day0.hits(planted, [*answers[:11], []]) == {1: 1 / 12, 5: 11 / 12, 10: 11 / 12}


def test_the_first_day_is_measured_on_a_few_conversations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(RUN.parent))
    import conversations
    import day0

    home, root = tmp_path / "home", tmp_path / "work"
    root.mkdir()
    monkeypatch.setenv("HOME", str(home))
    planted = day0.facts(5)
    conversations.make(home, root, count=40, mb=0.3)
    day0.plant(home, planted)
    lines = day0.measured(root, planted, with_peers=False)
    assert lines[0].startswith("- first answer: ")
    assert lines[-1].startswith("| notewell, keywords | ")
    assert lines[-1].split(" | ")[3] == "1.000"  # all of them are among the first five
