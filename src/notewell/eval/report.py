"""Tables, comparisons and gates for runs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from notewell.errors import UsageError
from notewell.eval import metrics
from notewell.eval.runner import Run

COLUMNS = (
    "ndcg@10",
    "recall@5",
    "recall@10",
    "hit@1",
    "hit@5",
    "hit@6",
    "hit@10",
    "mrr@10",
    "cov@5",
    "cov@10",
    "freshness",
    "auroc",
    "shown_hit",
    "ece",
    "tokens",
    "ms",
)


def as_dict(runs: Sequence[Run], *, by_type: bool = False, against: str = "") -> dict[str, Any]:
    """All figures as plain values, ready for JSON."""
    out: dict[str, Any] = {"sets": {}, "mean": means(runs)}
    for run in runs:
        row: dict[str, Any] = _clean(run.summary())
        if by_type:
            kinds = sorted({s.question.kind for s in run.scores})
            row["types"] = {kind: _clean(run.summary(kind)) for kind in kinds}
        row["reliability"] = [
            {
                "from": b.low,
                "hits": b.count,
                "promised": round(b.promised, 4),
                "true": round(b.true, 4),
            }
            for b in metrics.reliability([p for s in run.scores for p in s.calibration])[0]
        ]
        out["sets"].setdefault(run.set_name, {})[run.profile] = row
    if against:
        out["against"] = {
            f"{set_name}/{profile}": {
                name: round(getattr(p, name), 4) for name in ("difference", "low", "high", "p")
            }
            for set_name, profile, p in compared(runs, against)
        }
    return out


def _clean(values: Mapping[str, float]) -> dict[str, Any]:
    return {name: None if math.isnan(v) else round(v, 4) for name, v in values.items()}


def means(runs: Sequence[Run]) -> dict[str, float]:
    """The mean nDCG@10 over the sets, by profile."""
    found: dict[str, list[float]] = {}
    for run in runs:
        value = run.summary().get("ndcg@10")
        if value is not None:
            found.setdefault(run.profile, []).append(value)
    return {name: round(sum(v) / len(v), 4) for name, v in found.items()}


def compared(runs: Sequence[Run], against: str) -> Iterable[tuple[str, str, metrics.Paired]]:
    """Compares every other profile with one, question by question, on nDCG@10."""
    for run in runs:
        other = next((r for r in runs if r.set_name == run.set_name and r.profile == against), None)
        if other is None:
            raise UsageError(
                f"--against {against} is not among the profiles that ran",
                hint="add it to --profile",
            )
        if run is not other:
            mine, theirs = run.values("ndcg@10"), other.values("ndcg@10")
            ids = [i for i in mine if i in theirs]
            yield (
                run.set_name,
                run.profile,
                metrics.paired_bootstrap([mine[i] for i in ids], [theirs[i] for i in ids]),
            )


def table(runs: Sequence[Run], *, by_type: bool = False) -> str:
    """The figures, with a line for each set and profile, without empty columns."""
    rows: list[tuple[str, str, Mapping[str, float]]] = []
    for run in runs:
        rows.append((run.set_name, run.profile, run.summary()))
        if by_type:
            kinds = sorted({s.question.kind for s in run.scores})
            rows += [(f"  {kind}", run.profile, run.summary(kind)) for kind in kinds]
    columns = [c for c in COLUMNS if any(c in values for _, _, values in rows)]
    width = max((len(r[0]) for r in rows), default=3)
    second = max((len(r[1]) for r in rows), default=7)
    lines = [
        f"{'set':<{width}}  {'profile':<{second}}  {'n':>5}  "
        + "  ".join(f"{c:>9}" for c in columns)
    ]
    for name, profile, values in rows:
        cells = "  ".join(f"{_cell(values.get(c), c):>9}" for c in columns)
        lines.append(f"{name:<{width}}  {profile:<{second}}  {values['questions']:>5.0f}  {cells}")
    if len({r.set_name for r in runs}) > 1:
        lines += [
            f"{'mean':<{width}}  {name:<{second}}  {'':>5}  {value:>9.3f}"
            for name, value in means(runs).items()
        ]
    return "\n".join(lines)


def _cell(value: float | None, column: str) -> str:
    if value is None or math.isnan(value):
        return ""
    return f"{value:.1f}" if column in ("ms", "tokens") else f"{value:.3f}"


def comparison(runs: Sequence[Run], against: str) -> str:
    """The paired differences, a line for each set and profile."""
    lines = [f"nDCG@10 against {against}, paired bootstrap over questions"]
    for set_name, profile, p in compared(runs, against):
        verdict = "better" if p.low > 0 else "worse" if p.high < 0 else "no clear difference"
        interval = f"[{p.low:+.3f}, {p.high:+.3f}]"
        lines.append(
            f"{set_name}  {profile}  {p.difference:+.3f}  {interval}  p={p.p:.3f}  {verdict}"
        )
    return "\n".join(lines)


def reliability_table(runs: Sequence[Run], profile: str) -> str:
    """The confidence of one profile against how often it is right, over all sets."""
    pairs = [p for r in runs if r.profile == profile for s in r.scores for p in s.calibration]
    bins, error = metrics.reliability(pairs)
    lines = [
        f"confidence of {profile} over {len(pairs)} hits, expected calibration error {error:.3f}"
    ]
    lines.append("from  promised   true   hits")
    lines += [f"{b.low:.1f}   {b.promised:>7.3f}  {b.true:>5.3f}  {b.count:>5}" for b in bins]
    return "\n".join(lines)


def gate(runs: Sequence[Run], baseline: Path | None, fail_under: float | None) -> list[str]:
    """What a CI gate objects to: an nDCG@10 below `fail_under`, or below the baseline by more than
    that.
    """
    if baseline is None:
        if fail_under is None:
            return []
        return [
            f"{r.set_name} {r.profile}: nDCG@10 {value:.4f} is below {fail_under:g}"
            for r in runs
            if (value := r.summary().get("ndcg@10")) is not None and value < fail_under
        ]
    try:
        saved = json.loads(baseline.read_text(encoding="utf-8"))["sets"]
        before = {
            (name, p): row.get("ndcg@10") for name, rows in saved.items() for p, row in rows.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{baseline} is not a saved evaluation: {error}", hint="make one with --save"
        ) from error
    slack = fail_under or 0.0
    objections = []
    compared_any = False
    for run in runs:
        expected = before.get((run.set_name, run.profile))
        now = run.summary().get("ndcg@10")
        if expected is None or now is None:
            continue
        compared_any = True
        if now < expected - slack - 5e-5:
            objections.append(
                f"{run.set_name} {run.profile}: nDCG@10 {now:.4f}, the baseline has {expected:.4f}"
            )
    if not compared_any:
        raise UsageError(
            f"{baseline} has none of these sets and profiles", hint="save it from the same sets"
        )
    return objections
