"""Why a passage is ranked where it is, or is missing: read from the trace, so it cannot disagree
with the ranking.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from notewell.search import spec
from notewell.search.combine import sum_in_words
from notewell.search.evidence import WeightedQuestion, measures
from notewell.search.meaning import near_lines
from notewell.search.stages import Cut
from notewell.store.rows import path_matcher
from notewell.store.values import Placed
from notewell.types import Candidate, Chunk, Filters, Query, Step, Trace


@dataclass(frozen=True, slots=True)
class Why:
    """What happened to one passage for one question, line by line."""

    chunk: Chunk
    verdict: str
    rank: int | None
    lines: tuple[str, ...]
    candidate: Candidate | None


def one_line(candidate: Candidate, lines: tuple[int, int] | None = None) -> str:
    """The reason in one line: which legs found it and what matched; `lines` are those nearest in
    meaning.
    """
    names = (("lexical", "keywords"), ("vector", "meaning"), ("path", "name or date"))
    parts = [
        f"{name} #{candidate.ranks[leg].rank}" for leg, name in names if leg in candidate.ranks
    ]
    signals = candidate.signals
    parts += [f"covers {signals.cover:.0%} of the question"] if signals.cover else []
    parts += ["words close together"] if signals.near >= 0.5 else []
    parts += ["in a heading or the file name"] if signals.head else []
    parts += ["a list of links"] if signals.links else []
    parts += ["the reply to a turn that asks the same"] if signals.reply else []
    parts += ["a turn that only asks, or found nothing"] if signals.is_empty else []
    parts += ["from the day asked for"] if signals.date else []
    parts += [_nearest_part(candidate.chunk, lines)] if "vector" in candidate.ranks else []
    if signals.cosine is not None and "vector" not in candidate.ranks:
        parts.append(f"meaning {signals.cosine:.2f} but not among the nearest")
    return ", ".join(filter(None, parts)) or "found by no leg"


def _nearest_part(chunk: Chunk, lines: tuple[int, int] | None) -> str:
    """Which lines are nearest in meaning, if it is known and not all of them."""
    if lines is None or lines == (chunk.start_line, chunk.end_line):
        return ""
    first, last = lines
    return (
        f"line {first} is nearest in meaning"
        if first == last
        else f"lines {first}–{last} are nearest in meaning"
    )


def why(
    chunk: Chunk,
    query: Query,
    trace: Trace,
    *,
    asked: WeightedQuestion,
    places: Placed,
    vector_note: str,
    changed: dt.date | None = None,
) -> Why:
    """What happened to a passage, whether it was returned or not; an undated one counts as of the
    day it `changed`.
    """
    lines: list[str] = []
    for step in trace.legs:
        absent = f"not among its {len(step.marks)} candidates{_absence(step.stage, asked, places)}"
        lines.append(f"{step.stage}: {_rank(step, chunk.id) or absent}")
    if vector_note and not any(step.stage == "vector" for step in trace.legs):
        lines.append(f"vector: {vector_note}")
    candidate = trace.candidates.get(chunk.id)
    if candidate is None and (reason := _left_out(chunk, query.filters, changed)):
        return Why(chunk, f"left out by a filter: {reason}", None, (), None)
    if candidate is None:
        return Why(chunk, "no leg found it", None, tuple(lines), None)
    signals = ", ".join(
        f"{name} {value:.3f}" for name, value in sorted(candidate.signals.as_dict().items())
    )
    lines.append(f"signals: {signals}")
    own = candidate.signals
    if own.part is not None:
        half = (
            f"meaning: {own.cosine:.4f} = ({own.whole:.4f} whole + {own.part:.4f} nearest part) / 2"
        )
        lines.append(
            "; ".join(filter(None, (half, _nearest_part(candidate.chunk, near_lines(candidate)))))
        )
    if own.links is not None:
        lines.append(
            f"links: {own.links:.0%} of its lines are, so it goes behind the best note that it "
            "links to"
        )
    if candidate.signals.total is not None:
        lines.append(sum_in_words(candidate))
    for step in trace.steps:
        if chunk.id in step.dropped:
            reason = _drop_reason(step.stage, candidate, query)
            return Why(chunk, f"dropped by {step.stage}{reason}", None, tuple(lines), candidate)
        lines.append(f"{step.stage}: {_rank(step, chunk.id)}")
    rank = next((m.rank for step in trace.steps[-1:] for m in step.marks if m.id == chunk.id), None)
    return Why(chunk, f"returned at rank {rank}", rank, tuple(lines), candidate)


def _left_out(chunk: Chunk, asked: Filters, changed: dt.date | None) -> str:
    """Which filter a passage does not pass; a look back shows what is undated, since nobody knows
    when it came.
    """
    day = chunk.day or changed
    reasons = {
        f"it is from {chunk.source}, not {asked.source}": asked.source
        and chunk.source != asked.source,
        f"it is by {chunk.origin}, not {asked.origin}": asked.origin
        and chunk.origin != asked.origin,
        f"it is not in {asked.path}": asked.path and not path_matcher(asked.path)(chunk.path),
        f"it is from {day}, before {asked.since}": asked.since and day and day < asked.since,
        f"it is from {day}, after {asked.until}": asked.until and day and day > asked.until,
        f"it is from {day}, later than {asked.as_of}": asked.as_of
        and chunk.day
        and chunk.day > asked.as_of,
    }
    return next((reason for reason, applies in reasons.items() if applies), "")


def _rank(step: Step, chunk_id: str) -> str:
    mark = next((m for m in step.marks if m.id == chunk_id), None)
    return f"rank {mark.rank} of {len(step.marks)}, score {mark.score:.4f}" if mark else ""


def _drop_reason(stage: str, candidate: Candidate, query: Query) -> str:
    related = candidate.relations
    if related.superseded_by and stage.startswith(("Suppress(", "Collapse(")):
        what = "says the same" if related.copy else "supersedes it"
        return f": {related.successor} ({related.superseded_by}) {what}"
    if not stage.startswith("Cut("):
        return ""
    cut = spec.parse(stage, spec.STAGES)
    if isinstance(cut, Cut) and cut.drops(candidate, query):
        return f": its {cut.on} {cut.value(candidate):.3f} is below {cut.least(query):g}"
    budget = f" or the budget of {query.budget_tokens} tokens" if query.budget_tokens else ""
    return f": beyond the limit of {query.limit}{budget}"


def _absence(leg: str, asked: WeightedQuestion, places: Placed) -> str:
    if leg == "lexical" and len(places.rows):
        sought = (*asked.measured.words, *asked.measured.prefixes)
        have = {sought[term] for term in {*places.body[1].tolist(), *places.head[1].tolist()}}
        shared = [word for word in asked.weights if word in have]
        if not shared:
            return ": it shares no word with the question"
        bm25 = measures(asked, places)[places.rows[0]].bm25
        return f": it shares {', '.join(shared[:6])}, but others match better (BM25 {bm25:.3f})"
    vector = ": others are closer in meaning, or it has no vector yet"
    return {"vector": vector, "path": ": the question names neither its file nor its day"}.get(
        leg, ""
    )
