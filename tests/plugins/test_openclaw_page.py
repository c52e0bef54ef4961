"""The figures on the page about OpenClaw are those that were measured."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]


def rows(text: str) -> list[list[str]]:
    return [
        [c.strip().strip("*") for c in line.strip("|").split("|")]
        for line in text.splitlines()
        if line[:1] == "|"
    ]


def test_the_figures_are_those_of_the_report() -> None:
    report = (
        (ROOT / "benchmarks/QUALITY.md")
        .read_text(encoding="utf-8")
        .partition("## nDCG@10")[2]
        .partition("\n## ")[0]
    )
    head, _, *measured = rows(report)
    ours, theirs = head.index("default"), head.index("openclaw")
    page = (
        (ROOT / "docs/openclaw.md")
        .read_text(encoding="utf-8")
        .partition("## Figures")[2]
        .partition("\n## ")[0]
    )
    assert rows(page)[2:] == [[row[0], row[ours], row[theirs]] for row in measured]
    assert len(measured) > 10
