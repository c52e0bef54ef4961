"""The one wire shape: what `--json`, HTTP and MCP return, as plain values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from recollect import __version__
from recollect.embed.chain import Probe
from recollect.memory import Status, Text
from recollect.ports import Figures
from recollect.search import spec
from recollect.search.combine import addends
from recollect.search.explain import Why
from recollect.search.pack import Context
from recollect.search.pipeline import Profile
from recollect.search.timeline import Entry
from recollect.settings import Settings
from recollect.sync.forget import Receipt
from recollect.sync.remember import Remembered
from recollect.types import Candidate, Chunk, Estimate, Found, Hit, Notice, Step, SyncReport

_LINE = 100


def _number(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def notice(one: Notice) -> dict[str, str]:
    """A notice."""
    return {"code": one.code, "message": one.message, "hint": one.hint}


def hit(one: Hit) -> dict[str, Any]:
    """A hit, as every surface shows it."""
    chunk = one.chunk
    return {
        "id": chunk.id,
        "path": chunk.path,
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
        "heading": list(chunk.heading),
        "source": chunk.source,
        "date": chunk.day.isoformat() if chunk.day else None,
        "score": _number(one.score),
        "confidence": _number(one.confidence),
        "vector_score": _number(one.vector_score),
        "text_score": _number(one.text_score),
        "ranks": {leg: {"rank": r.rank, "score": _number(r.score)} for leg, r in sorted(one.ranks.items())},
        "recency": _number(one.recency),
        "snippet": one.snippet,
        "citation": chunk.citation,
        "why": one.why,
        "time": chunk.time.isoformat(timespec="seconds") if chunk.time else None,
        "origin": chunk.origin,
        "superseded_by": one.superseded_by or None,
        "conflicts_with": list(one.conflicts_with),
    }


def found(one: Found, *, explain: bool = False) -> dict[str, Any]:
    """The answer to a search."""
    answer: dict[str, Any] = {
        "query": one.query.text,
        "profile": one.profile,
        "mode": one.mode,
        "results": [hit(h) for h in one.hits],
        "notices": [notice(n) for n in one.notices],
        "embedder": one.embedder,
        "stale": one.stale,
        "took_ms": round(one.took_ms, 2),
    }
    if explain:
        answer["trace"] = {
            "legs": [_step(s) for s in one.trace.legs],
            "stages": [_step(s) for s in one.trace.steps],
            "candidates": {key: _candidate(c) for key, c in sorted(one.trace.candidates.items())},
        }
    return answer


def _step(step: Step) -> dict[str, Any]:
    return {
        "name": step.stage,
        "order": [{"id": m.id, "rank": m.rank, "score": _number(m.score)} for m in step.marks],
        "dropped": list(step.dropped),
        "took_ms": round(step.took_ms, 2),
    }


def _candidate(one: Candidate) -> dict[str, Any]:
    return {
        "citation": one.chunk.citation,
        "date": one.chunk.day.isoformat() if one.chunk.day else None,
        "ranks": {leg: {"rank": r.rank, "score": _number(r.score)} for leg, r in sorted(one.ranks.items())},
        "signals": {name: _number(value) for name, value in sorted(one.signals.items())},
        "parts": {name: _number(value) for name, value in addends(one).items()},
        "superseded_by": one.relations.superseded_by or None,
        "conflicts_with": list(one.relations.conflicts_with),
    }


def why(answer: Found, one: Why) -> dict[str, Any]:
    """Why a passage is where it is."""
    return {
        "query": answer.query.text,
        "profile": answer.profile,
        "mode": answer.mode,
        "id": one.chunk.id,
        "citation": one.chunk.citation,
        "verdict": one.verdict,
        "rank": one.rank,
        "story": list(one.lines),
        "notices": [notice(n) for n in answer.notices],
    }


def text(one: Text) -> dict[str, Any]:
    """Lines of a note."""
    return {
        "path": one.path,
        "start_line": one.start_line,
        "end_line": one.end_line,
        "id": one.chunk.id if one.chunk else None,
        "text": one.text,
    }


def report(one: SyncReport) -> dict[str, Any]:
    """What a sync did."""
    return {
        "added": one.added,
        "changed": one.changed,
        "dropped": one.dropped,
        "unchanged": one.unchanged,
        "chunks": one.chunks,
        "embedded": one.embedded,
        "pending": one.pending,
        "complete": one.complete,
        "skipped": [{"path": s.path, "reason": s.reason} for s in one.skipped],
        "notices": [notice(n) for n in one.notices],
        "took_ms": round(one.took_ms, 2),
        "model": one.model,
        "estimate": estimate(one.estimate) if one.estimate else None,
        "pruned": one.pruned,
        "forgotten": one.forgotten,
        "left": one.left,
        "redacted": dict(sorted(one.redacted.items())),
        "waiting": one.waiting,
    }


def estimate(one: Estimate) -> dict[str, Any]:
    """What embedding was expected to take."""
    return {
        "model": one.model,
        "passages": one.passages,
        "tokens": one.tokens,
        "usd": _number(one.usd),
        "seconds": None if one.seconds is None else round(one.seconds, 1),
    }


def status(one: Status) -> dict[str, Any]:
    """Disk against index."""
    return {
        "version": __version__,
        "workspace": one.workspace,
        "index": one.index,
        "fresh": one.fresh,
        "documents": one.documents,
        "on_disk": one.on_disk,
        "to_add": one.to_add,
        "to_change": one.to_change,
        "to_drop": one.to_drop,
        "chunks": one.chunks,
        "bytes": one.bytes,
        "embedder": one.embedder,
        "embedded": one.embedded,
        "pending": one.pending,
        "models": [{"name": name, "dim": dim, "vectors": count} for name, dim, count in one.models],
        "skipped": [{"path": s.path, "reason": s.reason} for s in one.skipped],
        "notices": [notice(n) for n in one.notices],
        "answering": one.answering,
        "refused": one.refused,
        "cache": {"vectors": one.cached, "bytes": one.cache_bytes},
        "levels": [probe(p) for p in one.levels],
        "sources": [{"name": name, "documents": count, "chunks": chunks} for name, count, chunks in one.sources],
        "waiting": one.waiting,
        "chain": [{"name": name, "error": error} for name, error in one.chain],
        **({"database": database(one.database)} if one.database else {}),
    }


def database(one: Figures) -> dict[str, Any]:
    """How a database stands, over all workspaces in it."""
    return {
        "tables": [
            {"name": t.name, "bytes": t.bytes, "index_bytes": t.index_bytes, "rows": t.rows, "dead_rows": t.dead_rows}
            for t in one.tables
        ],
        "approximate": list(one.approximate),
        "replicas": [{"name": name, "lag_s": round(lag, 3)} for name, lag in one.replicas],
        "lag_s": one.lag_s,
        "waiting": one.waiting,
        "claimed": one.claimed,
        "connections": one.connections,
        "most_connections": one.most_connections,
    }


def probe(one: Probe) -> dict[str, Any]:
    """What a model said when it was asked."""
    return {
        "name": one.name,
        "model": one.id,
        "ok": one.ok,
        "latency_ms": round(one.latency_ms, 1),
        "dim": one.dim,
        "alike": _number(one.alike),
        "unlike": _number(one.unlike),
        "error": one.error,
        "hint": one.hint,
    }


def profiles(several: Iterable[Profile]) -> dict[str, Any]:
    """Named pipelines in the words that settings take."""
    return {
        "profiles": [
            {
                "name": p.name,
                "fusion": spec.text(p.fusion, whole=True),
                "stages": [spec.text(s) for s in p.stages],
                "pool": p.pool_for(p.limit),
                "limit": p.limit,
            }
            for p in several
        ]
    }


def first_line(chunk: Chunk | None) -> str:
    """The first words of a passage, on one line."""
    text = next((line.strip() for line in chunk.text.splitlines() if line.strip()), "") if chunk else ""
    return text if len(text) <= _LINE else text[: _LINE - 1] + "…"


def timeline(entries: Iterable[Entry], notices: Iterable[Notice]) -> dict[str, Any]:
    """What came before and after."""
    return {"entries": [_entry(e) for e in entries], "notices": [notice(n) for n in notices]}


def _entry(entry: Entry) -> dict[str, Any]:
    return {**_passage(entry.chunk), "when": entry.when, "by": entry.by, "here": entry.here}


def _passage(chunk: Chunk) -> dict[str, Any]:
    return {
        "id": chunk.id,
        "citation": chunk.citation,
        "path": chunk.path,
        "start_line": chunk.start_line,
        "end_line": chunk.end_line,
        "heading": list(chunk.heading),
        "source": chunk.source,
        "origin": chunk.origin,
        "date": chunk.day.isoformat() if chunk.day else None,
        "first_line": first_line(chunk),
    }


def remembered(one: Remembered) -> dict[str, Any]:
    """Where a memory stands, as plain values."""
    return {
        "written": one.written,
        "path": one.path,
        "start_line": one.start_line,
        "end_line": one.end_line,
        "citation": one.citation,
        "id": one.id,
        "created": one.created,
        "notices": [notice(n) for n in one.notices],
    }


def receipt(one: Receipt) -> dict[str, Any]:
    """What was or would be forgotten, as plain values; the text stands in a preview alone."""
    return {
        "receipt": one.id or None,
        "dry_run": not one.id,
        "passages": [
            {"path": p.path, "start_line": p.start_line, "end_line": p.end_line, "citation": p.citation,
             "id": p.id or None, "source": p.source, "text": None if one.id else p.text}
            for p in one.pieces
        ],
        "files": [{"path": f.path, "deleted": f.deleted, "backup": f.backup or None} for f in one.files],
        "files_left_alone": list(one.kept_files),
        "removed": {"passages": one.chunks, "vectors": one.vectors},
        "tombstones": one.tombstones,
        "proof": {"proved": one.proved, "searched": one.searched, "still_found": list(one.still_found),
                  "lingering": list(one.lingering)},
    }  # fmt: skip


def lifted(count: int, backups: Iterable[str]) -> dict[str, Any]:
    """What lifting tombstones did."""
    return {"lifted": count, "backups": list(backups)}


def context(packed: Context, *, explain: bool = False) -> dict[str, Any]:
    """The answer of a search with the block and what stands in it."""
    passages = [
        {
            "id": one.chunk.id,
            "citation": one.chunk.citation,
            "date": one.chunk.day.isoformat() if one.chunk.day else None,
            "origin": one.chunk.origin,
            "cut": one.cut,
            "also": list(one.also),
            "conflict": one.conflict,
        }
        for one in packed.passages
    ]
    block = {"context": packed.text, "tokens": packed.tokens, "passages": passages, "left_out": packed.left_out}
    return (found(packed.found, explain=explain) if packed.found else {}) | block


def config(one: Settings) -> dict[str, Any]:
    """Every setting with where it came from."""
    return {
        "settings": {
            key: {"value": list(value) if isinstance(value, tuple) else value, "origin": origin, "about": doc}
            for key, value, origin, doc in one.items()
        }
    }
