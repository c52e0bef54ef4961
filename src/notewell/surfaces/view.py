"""The one wire shape: what `--json`, HTTP and MCP return, as plain values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from notewell import __version__
from notewell.embed.chain import Probe
from notewell.memory import Status, Text
from notewell.search import spec
from notewell.search.combine import addends
from notewell.search.explain import Why
from notewell.search.pipeline import Profile
from notewell.search.prompt_block import Context, Packed
from notewell.settings import Settings
from notewell.sources.inventory import SourceState
from notewell.surfaces.shapes import Shape, Share, plain
from notewell.types import Candidate, Chunk, Found, Hit, Notice, Query, Relations, Step, SyncReport

HIT = Shape(
    "id path start_line end_line heading source date=day score confidence"
    " certainty vector_score text_score ranks recency snippet citation"
    " why time origin superseded_by conflicts_with near_lines kept hidden",
    Hit,
    Chunk,
    score=Share,
    confidence=Share,
    recency=Share,
    certainty=str | None,
    superseded_by=str | None,
    hidden=int,
    html=str,
    pinned=bool,
    optional="html pinned",
)
STEP = Shape("name=stage order=marks dropped took_ms", Step)
CANDIDATE = Shape(
    "citation date=day ranks signals parts superseded_by conflicts_with",
    Chunk,
    Candidate,
    Relations,
    parts=dict[str, float],
    signals=dict[str, float],
    superseded_by=str | None,
)
QUOTED = Shape("id citation date=day origin cut also conflict", Chunk, Packed)
BLOCK = Shape("context=text tokens passages left_out", Context)
FOUND = Shape(
    "query=text profile mode results=hits notices embedder stale took_ms",
    Query,
    Found,
    mode=Literal["hybrid", "lexical", "vector"],
    results=[HIT],
    trace=Shape("", legs=[STEP], stages=[STEP], candidates={str: CANDIDATE}),
    context=str,
    tokens=int,
    passages=[QUOTED],
    left_out=int,
    optional="trace context tokens passages left_out",
)
WHY = Shape(
    "query=text profile mode id citation verdict rank story=lines notices", Query, Found, Chunk, Why
)
TEXT = Shape("path start_line end_line id text origin hidden", Text, id=str | None, hidden=int)
REPORT = Shape("added changed dropped unchanged chunks embedded pending complete *", SyncReport)
STATUS = Shape(
    "version workspace index fresh documents on_disk to_add to_change"
    " to_drop chunks bytes embedder embedded pending models skipped"
    " notices answering refused cache * -cached -cache_bytes -database",
    Status,
    version=str,
    models=[Shape("", name=str, dim=int, vectors=int)],
    cache=Shape("", vectors=int, bytes=int),
    levels=list[dict[str, Any]],
    sources=[Shape("", name=str, documents=int, chunks=int)],
    chain=[Shape("", name=str, error=str)],
    database=dict[str, Any],
    optional="database",
)
SOURCE = Shape("name about read documents what command", SourceState)
PROBE = Shape("name model=id * -id", Probe)
PROFILE = Shape("name fusion stages pool limit", Profile, fusion=str, stages=list[str])
PROFILES = Shape("", profiles=[PROFILE])
ERROR = Shape("", error=Notice)
_LINE = 100


def hit(one: Hit) -> dict[str, Any]:
    """A hit, as every surface shows it."""
    return HIT.fill(one, one.chunk)


def found(one: Found, *, explain: bool = False) -> dict[str, Any]:
    """The answer to a search."""
    answer = FOUND.fill(one.query, one, results=[hit(h) for h in one.hits])
    if explain:
        answer["trace"] = {
            "legs": [STEP.fill(s) for s in one.trace.legs],
            "stages": [STEP.fill(s) for s in one.trace.steps],
            "candidates": {key: _candidate(c) for key, c in sorted(one.trace.candidates.items())},
        }
    return answer


def _candidate(one: Candidate) -> dict[str, Any]:
    return CANDIDATE.fill(
        one.chunk,
        one,
        one.relations,
        parts={name: plain(value) for name, value in addends(one).items()},
        signals={name: plain(value) for name, value in sorted(one.signals.as_dict().items())},
    )


def why(answer: Found, one: Why) -> dict[str, Any]:
    """Why a passage ranks where it does."""
    return WHY.fill(answer.query, answer, one.chunk, one)


def text(one: Text) -> dict[str, Any]:
    """Lines of a note."""
    return TEXT.fill(one, id=one.chunk.id if one.chunk else None)


report = REPORT.fill


def status(one: Status) -> dict[str, Any]:
    """The files compared with the index."""
    answer = STATUS.fill(
        one,
        version=__version__,
        models=[{"name": name, "dim": dim, "vectors": count} for name, dim, count in one.models],
        cache={"vectors": one.cached, "bytes": one.cache_bytes},
        levels=[PROBE.fill(p) for p in one.levels],
        sources=[
            {"name": name, "documents": count, "chunks": chunks}
            for name, count, chunks in one.sources
        ],
        chain=[{"name": name, "error": error} for name, error in one.chain],
    )
    if one.database:
        replicas = [{"name": name, "lag_s": round(lag, 3)} for name, lag in one.database.replicas]
        answer["database"] = plain(one.database) | {"replicas": replicas}
    return answer


def profiles(several: Iterable[Profile]) -> dict[str, Any]:
    """Named pipelines, in the notation that settings take."""
    shown = (
        (p, spec.text(p.fusion, whole=True), [spec.text(s) for s in p.stages]) for p in several
    )
    return {
        "profiles": [
            PROFILE.fill(p, fusion=f, stages=s, pool=p.pool_for(p.limit)) for p, f, s in shown
        ]
    }


def first_line(chunk: Chunk | None) -> str:
    """The first words of a passage, on one line."""
    return shortened(
        next((line.strip() for line in chunk.text.splitlines() if line.strip()), "")
        if chunk
        else ""
    )


def shortened(text: str) -> str:
    """The text, cut to 100 characters."""
    return text if len(text) <= _LINE else text[: _LINE - 1] + "…"


def context(packed: Context, *, explain: bool = False) -> dict[str, Any]:
    """The answer to a search with the prompt block and the passages in it."""
    quoted = [QUOTED.fill(one.chunk, one) for one in packed.passages]
    block = BLOCK.fill(packed, passages=quoted)
    return (found(packed.found, explain=explain) if packed.found else {}) | block


def config(one: Settings) -> dict[str, Any]:
    """Every setting with where its value came from."""
    rows = one.items()
    return {
        "settings": {
            key: {"value": plain(v), "origin": origin, "about": doc} for key, v, origin, doc in rows
        }
    }
