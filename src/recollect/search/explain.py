"""Why a passage is where it is, or is not: read off the trace, so that it can't disagree with the ranking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recollect.ports import FieldTerms
from recollect.search import spec
from recollect.search.combine import sum_in_words
from recollect.search.evidence import Ask, measure
from recollect.search.stages import Cut
from recollect.types import Candidate, Chunk, Query, Trace


@dataclass(frozen=True, slots=True)
class Why:
    """The story of one passage for one question."""

    chunk: Chunk
    verdict: str
    rank: int | None
    lines: tuple[str, ...]
    candidate: Candidate | None


def one_line(candidate: Candidate, query: Query) -> str:  # noqa: ARG001 - the words of a reason may come to need it
    """The reason in a line: which legs found it, what matched, what stood out."""
    parts = []
    for leg, word in (("lexical", "keywords"), ("vector", "meaning"), ("path", "name or date")):
        if leg in candidate.ranks:
            parts.append(f"{word} #{candidate.ranks[leg].rank}")
    signals = candidate.signals
    if signals.get("cover"):
        parts.append(f"covers {signals['cover']:.0%} of the question")
    if signals.get("near", 0.0) >= 0.5:
        parts.append("words side by side")
    if signals.get("head"):
        parts.append("in heading or file name")
    if signals.get("date"):
        parts.append("of the day asked for")
    if "cosine" in signals and "vector" not in candidate.ranks:
        parts.append(f"meaning {signals['cosine']:.2f}, beyond the pool")
    return ", ".join(parts) or "found by no leg"


def why(chunk: Chunk, query: Query, trace: Trace, *, asked: Ask, fields: FieldTerms | None, vector_note: str) -> Why:
    """The story of a passage, whether it was returned or not."""
    lines: list[str] = []
    for step in trace.legs:
        mark = next((m for m in step.marks if m.id == chunk.id), None)
        if mark:
            lines.append(f"{step.stage}: rank {mark.rank} of {len(step.marks)}, score {mark.score:.4f}")
        else:
            lines.append(
                f"{step.stage}: not among its {len(step.marks)} candidates{_absence(step.stage, asked, fields)}"
            )
    if vector_note and not any(step.stage == "vector" for step in trace.legs):
        lines.append(f"vector: {vector_note}")
    candidate = trace.candidates.get(chunk.id)
    if candidate is None:
        return Why(chunk, "no leg found it", None, tuple(lines), None)
    signals = ", ".join(f"{name} {value:.3f}" for name, value in sorted(candidate.signals.items()))
    lines.append(f"signals: {signals}")
    if "total" in candidate.signals:
        lines.append(sum_in_words(candidate))
    rank: int | None = None
    for step in trace.steps:
        mark = next((m for m in step.marks if m.id == chunk.id), None)
        if mark is None:
            if chunk.id in step.dropped:
                reason = _cut_reason(step.stage, candidate, query)
                return Why(chunk, f"dropped by {step.stage}{reason}", None, tuple(lines), candidate)
            break
        lines.append(f"{step.stage}: rank {mark.rank} of {len(step.marks)}, score {mark.score:.4f}")
        rank = mark.rank
    return Why(chunk, f"returned at rank {rank}", rank, tuple(lines), candidate)


def _cut_reason(stage: str, candidate: Candidate, query: Query) -> str:
    related = candidate.relations
    if related.superseded_by and stage.startswith(("Suppress(", "Collapse(")):
        what = "says the same" if related.copy else "supersedes it"
        return f": {related.successor} ({related.superseded_by}) {what}"
    if not stage.startswith("Cut("):
        return ""
    cut = spec.parse(stage, spec.STAGES)
    if isinstance(cut, Cut) and cut.value(candidate) < cut.least(query):
        return f": its {cut.on} {cut.value(candidate):.3f} is under {cut.least(query):g}"
    budget = f" or the budget of {query.budget_tokens} tokens" if query.budget_tokens else ""
    return f": beyond the limit {query.limit}{budget}"


def _absence(leg: str, asked: Ask, fields: FieldTerms | None) -> str:
    if leg == "lexical" and fields is not None:
        shared = _shared(asked, fields)
        if not shared:
            return ": it shares no word with the question"
        return f": it shares {', '.join(shared[:6])}, others matched better (BM25 {measure(asked, fields)['bm25']:.3f})"
    if leg == "vector":
        return ": others are nearer in meaning, or it has no vector yet"
    if leg == "path":
        return ": the question names neither its file nor its day"
    return ""


def _shared(asked: Ask, fields: FieldTerms) -> Sequence[str]:
    have = set(fields.body.split()) | set(fields.head.split())
    prefixes = asked.terms.prefixes
    return [w for w in asked.weights if w in have or (w in prefixes and any(h.startswith(w) for h in have))]
