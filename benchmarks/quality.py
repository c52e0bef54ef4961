"""Writes benchmarks/QUALITY.md: every set under every profile, in one command.

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

from notewell import __version__
from notewell.embed.cached import CachedEmbedder
from notewell.embed.registry import embedder
from notewell.eval import metrics, report, runner, sets
from notewell.search import confidence
from notewell.search.combine import WEIGHTS

PROFILES = (
    "default",
    "lexical",
    "vector",
    "rrf",
    "maxnorm",
    "openclaw",
    "openclaw-2026.2.13",
    "siftcoder",
)
OUTPUT = Path(__file__).with_name("QUALITY.md")
TUNING = Path(__file__).with_name("tuning.json")
SURENESS = TUNING.with_name("confidence.json")
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
    """The text of the page."""
    names = list(dict.fromkeys(r.set_name for r in runs))
    by = {(r.set_name, r.profile): r for r in runs}
    lines = [
        "# Quality",
        "",
        (
            f"notewell {__version__}, {model}, Python {platform.python_version()}; "
            f"{took_s / 60:.0f} minutes. Produced by `make quality SETS=folder`; the sets are "
            "public and are not part of this repository."
        ),
        (
            "File level: a file has the rank of its first passage. The first 50 hits count, "
            "without a threshold."
        ),
        f"Of sets with more than {most:,} questions, every n-th was asked.",
        (
            "The weights and stages of the default were chosen on these sets, so its figures are "
            "fitted."
        ),
        "*Left out* shows how such weights do on a set they were not fitted on.",
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
    lines += [
        (
            "Difference of nDCG@10 with its 95 % interval, paired bootstrap over questions; bold "
            "where p < 0.05."
        ),
        "",
    ]
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
            lines.append(
                _row(
                    [name, profile, *(f"{values[m]:.3f}" if m in values else "" for m in MEASURES)]
                )
            )
    lines += [
        "",
        *confidence_left_out(SURENESS),
        "## Confidence",
        "",
        "```",
        report.reliability_table(runs, "default"),
        "```",
        "",
    ]
    return "\n".join(lines)


def left_out(saved: Path) -> list[str]:
    """How the weights of `make tune` do on sets that they were not fitted on, and whether its
    tables are in use.
    """
    if not saved.is_file():
        return []
    tuned = json.loads(saved.read_text(encoding="utf-8"))
    same = (
        "These are in use."
        if tuned["tables"] == {"WEIGHTS": dict(WEIGHTS)}
        else "**These are not in use.**"
    )
    lines = [
        "## Left out",
        "",
        (
            "nDCG@10 of the weights of `make tune`: fitted on all sets, and fitted again without "
            f"the set in question; {tuned['questions']} questions of each set at most, before the "
            f"stages. {same}"
        ),
        "",
        *_head(["set", "fitted", "left out", "better leg"]),
    ]
    keys = ("fitted", "left_out", "better_leg")
    rows = tuned["sets"]
    lines += [
        _row([name, *(f"{figures[key]:.3f}" for key in keys)]) for name, figures in rows.items()
    ]
    return [
        *lines,
        _row(["mean", *(f"{sum(f[k] for f in rows.values()) / len(rows):.3f}" for k in keys)]),
        "",
    ]


def confidence_left_out(saved: Path) -> list[str]:
    """How the confidence does on sets that it was not fitted on, and whether its tables are in
    use.
    """
    if not saved.is_file():
        return []
    tuned = json.loads(saved.read_text(encoding="utf-8"))
    used = {name: dict(getattr(confidence, name)) for name in tuned["tables"]}
    same = "These are in use." if tuned["tables"] == used else "**These are not in use.**"
    sides = ("CONFIDENCE", "CONFIDENCE_WORDS")
    keys = ("calibration", "none", "other")
    head = [f"{key}{more}" for more in ("", ", words alone") for key in keys]
    cells = [
        [
            name,
            *(f"{one[t][key]:.3f}" if key in one.get(t, {}) else "" for t in sides for key in keys),
        ]
        for name, one in tuned["sets"].items()
    ]
    text = (
        "Confidence fitted without the set in question: the calibration error of the first six "
        "hits, and how often the best hit of a question with an answer is surer than that of one "
        "without (none) or of another set (other). "
    )
    return [
        "## Confidence, left out",
        "",
        text + same,
        "",
        *_head(["set", *head]),
        *map(_row, cells),
        "",
    ]


def _measure(path: Path, cache: Path, most: int) -> list[runner.Run]:
    model = embedder("auto", threads=1)
    cached = CachedEmbedder(model, cache / "vectors.sqlite") if model else None
    one = sets.load(path)
    step = max(1, -(-len(one.questions) // most))
    return runner.evaluate(replace(one, questions=one.questions[::step]), PROFILES, embedder=cached)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure all sets and write QUALITY.md.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "notewell" / "eval")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument(
        "--questions",
        type=int,
        default=1500,
        help="ask at most so many questions of a set, evenly spaced",
    )
    options = parser.parse_args()
    begun = time.monotonic()
    paths = sorted((p.parent for p in options.folder.glob("*/corpus.jsonl")), key=lambda p: p.name)
    found: dict[Path, list[runner.Run]] = {}
    with ProcessPoolExecutor(max_workers=options.jobs) as pool:
        done = pool.map(
            _measure, paths, [options.cache] * len(paths), [options.questions] * len(paths)
        )
        for path, runs in zip(paths, done, strict=True):
            found[path] = runs
            sys.stderr.write(f"{path.name} done, {time.monotonic() - begun:.0f} s\n")
    model = embedder("auto")
    name = model.id if model else "no model"
    text = page(
        [r for p in paths for r in found[p]], name, time.monotonic() - begun, most=options.questions
    )
    OUTPUT.write_text(text, encoding="utf-8")
    sys.stdout.write(f"wrote {OUTPUT.name}\n")


if __name__ == "__main__":
    main()
