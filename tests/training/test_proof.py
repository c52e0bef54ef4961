"""The proof that no evaluation text is in the training text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from training import proof

RUN = "the quick brown fox jumps over the lazy dog while seven grey cats look"
CHINESE = "今天我们在图书馆里看到了一本很有意思的旧书"


def sets(folder: Path) -> Path:
    held = folder / "eval" / "one"
    held.mkdir(parents=True)
    corpus = [
        {"id": "1", "text": f"before {RUN}, after"},
        {"id": "2", "title": "Title", "text": CHINESE},
    ]
    queries = [
        {
            "id": "q",
            "text": "where do the seven cats look?",
            "answer": "a secret answer of no account here at all ok",
        }
    ]
    (held / "corpus.jsonl").write_text("".join(json.dumps(item) + "\n" for item in corpus))
    (held / "queries.jsonl").write_text("".join(json.dumps(item) + "\n" for item in queries))
    return folder / "eval"


def training(folder: Path, *texts: str) -> Path:
    path = folder / "en-x.jsonl"
    lines = [
        {"source": "x", "lang": "en", "texts": [["p", "nothing to see"], ["p", text]]}
        for text in texts
    ]
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    return path


@pytest.mark.parametrize(
    "planted",
    [
        f"I wrote: {RUN.upper()}!",
        RUN.replace(" ", " - "),
        f"然后{CHINESE[2:17]}吗",
        "Where do the seven cats look",
    ],
)
def test_a_planted_run_is_found_and_dropped(
    tmp_path: Path, planted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    against = sets(tmp_path)
    path = training(
        tmp_path, "a harmless text about other things", planted, "one more harmless text"
    )
    assert proof.main([str(path), "--against", str(against)]) == 1
    assert "1 with a hit" in capsys.readouterr().out
    assert proof.main([str(path), "--against", str(against), "--drop"]) == 0
    assert planted not in path.read_text()
    assert len(path.read_text().splitlines()) == 2
    assert proof.main([str(path), "--against", str(against)]) == 0
    assert "2 groups of training text, 0 with" in capsys.readouterr().out


def test_twelve_tokens_and_runs_over_a_border_are_no_hit(tmp_path: Path) -> None:
    against = sets(tmp_path)
    words = RUN.split()
    path = training(tmp_path, " ".join([*words[:12], "other"]), " ".join(words[12:] + words[:12]))
    assert proof.main([str(path), "--against", str(against)]) == 0


def test_answers_are_no_evaluation_text(tmp_path: Path) -> None:
    against = sets(tmp_path)
    path = training(tmp_path, "a secret answer of no account here at all ok")
    assert proof.main([str(path), "--against", str(against)]) == 0


def test_a_folder_without_sets_proves_nothing(tmp_path: Path) -> None:
    assert proof.main([str(training(tmp_path, "text")), "--against", str(tmp_path / "none")]) == 2
