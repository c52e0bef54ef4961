"""Writes benchmarks/QUALITY.md: every set × profile × leg, in one command.

python benchmarks/quality.py SETS_FOLDER [--cache DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from recollect import __version__
from recollect.embed.cached import CachedEmbedder
from recollect.embed.registry import embedder
from recollect.eval import metrics, report, runner, sets
from recollect.search.combine import CONFIDENCE, CONFIDENCE_WORDS, WEIGHTS

PROFILES = ("default", "lexical", "vector", "rrf", "maxnorm", "openclaw", "openclaw-2026.2.13", "siftcoder")
OUTPUT = Path(__file__).with_name("QUALITY.md")
TUNING = Path(__file__).with_name("tuning.json")
MEASURES = (
    "ndcg@10",
    "recall@5",
    "recall@10",
    "hit@1",
    "hit@6",
    "mrr@10",
    "cov@5",
    "freshness",
    "auroc",
    "shown_hit",
    "ece",
)


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _head(cells: list[str]) -> list[str]:
    return [_row(cells), _row(["---"] * len(cells))]


def page(runs: list[runner.Run], model: str, took_s: float, *, most: int) -> str:
    """The whole page."""
    names = list(dict.fromkeys(r.set_name for r in runs))
    by = {(r.set_name, r.profile): r for r in runs}
    lines = [
        "# Quality",
        "",
        (
            f"recollect {__version__}, {model}, Python {platform.python_version()}; {took_s / 60:.0f} minutes. "
            "Produced by `make quality SETS=folder`; the sets are public and are not part of this repository."
        ),
        "File level: a file's rank is that of its first passage. The 50 first hits count, no threshold.",
        f"Of sets with more than {most:,} questions every n-th was asked.",
        "The default's weights and stages were chosen on these sets: its figures are fitted ones.",
        "How the same weights do on a set they never saw is under *Left out*.",
        "",
        "## nDCG@10",
        "",
        *_head(["set", "questions", *PROFILES]),
    ]
    for name in names:
        best = max(by[name, p].summary()["ndcg@10"] for p in PROFILES)
        cells = [f"{by[name, p].summary()['ndcg@10']:.3f}" for p in PROFILES]
        cells = [f"**{c}**" if c == f"{best:.3f}" else c for c in cells]
        lines.append(_row([name, f"{by[name, 'default'].summary()['questions']:.0f}", *cells]))
    means = report.means(runs)
    lines += [_row(["mean", "", *(f"{means[p]:.3f}" for p in PROFILES)]), ""]
    lines += ["## The default against each other profile", ""]
    lines += ["Difference of nDCG@10 with its 95 % interval, paired bootstrap over questions; bold where p < 0.05.", ""]
    lines += _head(["set", *PROFILES[1:]])
    wins = dict.fromkeys(PROFILES[1:], 0)
    for name in names:
        cells = []
        for other in PROFILES[1:]:
            mine, theirs = by[name, "default"].values("ndcg@10"), by[name, other].values("ndcg@10")
            p = metrics.paired_bootstrap([mine[i] for i in mine], [theirs[i] for i in mine])
            wins[other] += p.difference > 0 and p.p < 0.05
            text = f"{p.difference:+.3f} [{p.low:+.3f}, {p.high:+.3f}]"
            cells.append(f"**{text}**" if p.p < 0.05 else text)
        lines.append(_row([name, *cells]))
    lines += [_row(["sets won clearly", *(str(wins[o]) for o in PROFILES[1:])]), ""]
    lines += left_out(TUNING)
    lines += ["## All measures of the default and its legs", ""]
    lines += _head(["set", "profile", *MEASURES])
    for name in names:
        for profile in PROFILES[:3]:
            values = by[name, profile].summary()
            lines.append(_row([name, profile, *(f"{values[m]:.3f}" if m in values else "" for m in MEASURES)]))
    lines += ["", "## Confidence", "", "```", report.reliability_table(runs, "default"), "```", ""]
    return "\n".join(lines)


def left_out(saved: Path) -> list[str]:
    """What `make tune` said of sets that its weights never saw, and whether its tables are those in use."""
    if not saved.is_file():
        return []
    tuned = json.loads(saved.read_text(encoding="utf-8"))
    used = {"WEIGHTS": dict(WEIGHTS), "CONFIDENCE": dict(CONFIDENCE), "CONFIDENCE_WORDS": dict(CONFIDENCE_WORDS)}
    same = "These are the tables in use." if tuned["tables"] == used else "**The tables in use are others.**"
    lines = [
        "## Left out",
        "",
        (
            "nDCG@10 of the weights of `make tune`: fitted on all sets, and fitted anew without the set in question; "
            f"{tuned['questions']} questions of each set at most, before the stages. "
            f"ECE: calibration error of the confidence. {same}"
        ),
        "",
        *_head(["set", "fitted", "left out", "better leg", "ECE fitted", "ECE left out"]),
    ]
    keys = ("fitted", "left_out", "better_leg", "calibration", "calibration_left_out")
    rows = tuned["sets"]
    lines += [_row([name, *(f"{figures[key]:.3f}" for key in keys)]) for name, figures in rows.items()]
    return [*lines, _row(["mean", *(f"{sum(f[k] for f in rows.values()) / len(rows):.3f}" for k in keys)]), ""]


def _measure(path: Path, cache: Path, most: int) -> list[runner.Run]:
    model = embedder("auto", threads=1)
    cached = CachedEmbedder(model, cache / "vectors.sqlite") if model else None
    one = sets.load(path)
    step = max(1, -(-len(one.questions) // most))
    return runner.evaluate(replace(one, questions=one.questions[::step]), PROFILES, embedder=cached)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure all sets and write QUALITY.md.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "recollect" / "eval")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--questions", type=int, default=1500, help="of a larger set, every n-th question")
    options = parser.parse_args()
    begun = time.monotonic()
    paths = sorted((p.parent for p in options.folder.glob("*/corpus.jsonl")), key=lambda p: p.name)
    found: dict[Path, list[runner.Run]] = {}
    with ProcessPoolExecutor(max_workers=options.jobs) as pool:
        done = pool.map(_measure, paths, [options.cache] * len(paths), [options.questions] * len(paths))
        for path, runs in zip(paths, done, strict=True):
            found[path] = runs
            sys.stderr.write(f"{path.name} done, {time.monotonic() - begun:.0f} s\n")
    model = embedder("auto")
    name = model.id if model else "no model"
    text = page([r for p in paths for r in found[p]], name, time.monotonic() - begun, most=options.questions)
    OUTPUT.write_text(text, encoding="utf-8")
    sys.stdout.write(f"wrote {OUTPUT.name}\n")


if __name__ == "__main__":
    main()
