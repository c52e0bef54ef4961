"""`make bench`: measures notewell on this machine and prints a table of what, how much, the target
and the verdict.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

# as the `notewell` command does, before numpy is loaded
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from measure import FULL, QUICK, Figure, SearchContext, machine, number


def line(figure: Figure) -> list[str]:
    """A figure as cells: what, figure, target, verdict, how."""
    target = ""
    if figure.target is not None:
        sign = {"less": "≤", "more": "≥", "equal": "="}[figure.better]
        target = f"{sign} {number(figure.target)} {figure.unit}"
    return [
        figure.what,
        f"{number(figure.value)} {figure.unit}",
        target,
        figure.verdict,
        figure.how,
    ]


def table(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with even columns."""
    rows = [["what", "figure", "target", "verdict", "how"], *rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])


def about(host: dict[str, Any], notes: int) -> str:
    """The machine and the size in a sentence."""
    return (
        f"{notes:,} notes on {host['processor']}, {host['cores']} cores"
        f" of which {host['free_cores']:g} were to be had, {host['memory_gb']:g} GB,"
        f" {host['system']}, Python {host['python']}, SQLite {host['sqlite']},"
        f" load {host['load']:g} at the start"
    )


def main(arguments: Sequence[str]) -> int:
    """Measures, shows, and writes the raw figures where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="a small workspace, to see that everything works"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the raw figures to a file")
    asked = parser.parse_args(arguments)
    scale = QUICK if asked.quick else FULL
    host = machine()
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="notewell-bench-") as folder:
        for figure in SearchContext(Path(folder), scale).figures():
            figures.append(figure)
            if sys.stderr.isatty():
                print(f"\r\x1b[K{figure.what}", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    print(about(host, scale.notes))
    print()
    print(table([line(f) for f in figures]))
    if asked.json:
        raw = {
            "machine": host,
            "scale": asdict(scale),
            "figures": [asdict(f) | {"verdict": f.verdict} for f in figures],
        }
        asked.json.write_text(json.dumps(raw, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
