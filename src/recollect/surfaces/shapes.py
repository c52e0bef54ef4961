"""JSON schemas of the answers of `view.py`: the output schemas of MCP tools and the responses of the HTTP API."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]
STRING: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean"}


def maybe(schema: Schema) -> Schema:
    """The schema, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def several(schema: Schema) -> Schema:
    """A list of it."""
    return {"type": "array", "items": schema}


def record(optional: Schema | None = None, /, **fields: Schema) -> Schema:
    """An object with these keys; more may come in later versions."""
    return {"type": "object", "properties": {**fields, **(optional or {})}, "required": list(fields)}


def table(schema: Schema) -> Schema:
    """An object of any keys with such values."""
    return {"type": "object", "additionalProperties": schema}


SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
NOTICE = record(code=STRING, message=STRING, hint=STRING)
NOTICES = several(NOTICE)
RANKS = table(record(rank=COUNT, score=NUMBER))
HIT = record(
    id=STRING, path=STRING, start_line=COUNT, end_line=COUNT, heading=several(STRING), source=STRING,
    date=maybe(STRING), score=SHARE, confidence=SHARE, vector_score=maybe(NUMBER), text_score=NUMBER, ranks=RANKS,
    recency=SHARE, snippet=STRING, citation=STRING, why=STRING, time=maybe(STRING), origin=STRING,
    superseded_by=maybe(STRING), conflicts_with=several(STRING),
)  # fmt: skip
STEP = record(
    name=STRING, order=several(record(id=STRING, rank=COUNT, score=NUMBER)), dropped=several(STRING), took_ms=NUMBER
)
TRACE = record(
    legs=several(STEP),
    stages=several(STEP),
    candidates=table(
        record(
            citation=STRING,
            date=maybe(STRING),
            ranks=RANKS,
            signals=table(NUMBER),
            parts=table(NUMBER),
            superseded_by=maybe(STRING),
            conflicts_with=several(STRING),
        )
    ),
)
PACKED = record(
    id=STRING, citation=STRING, date=maybe(STRING), origin=STRING, cut=FLAG, also=several(STRING), conflict=STRING
)
FOUND = record(
    {"trace": TRACE, "context": STRING, "tokens": COUNT, "passages": several(PACKED), "left_out": COUNT},
    query=STRING, profile=STRING, mode={"enum": ["hybrid", "lexical", "vector"]}, results=several(HIT), notices=NOTICES,
    embedder=STRING, stale=FLAG, took_ms=NUMBER,
)  # fmt: skip
TEXT = record(path=STRING, start_line=COUNT, end_line=COUNT, id=maybe(STRING), text=STRING)
WHY = record(
    query=STRING, profile=STRING, mode=STRING, id=STRING, citation=STRING, verdict=STRING, rank=maybe(COUNT),
    story=several(STRING), notices=NOTICES,
)  # fmt: skip
STATUS = record(
    version=STRING, workspace=STRING, index=STRING, fresh=FLAG, documents=COUNT, on_disk=COUNT, to_add=COUNT,
    to_change=COUNT, to_drop=COUNT, chunks=COUNT, bytes=COUNT, embedder=STRING, embedded=COUNT, pending=COUNT,
    models=several(record(name=STRING, dim=COUNT, vectors=COUNT)),
    skipped=several(record(path=STRING, reason=STRING)), notices=NOTICES,
)  # fmt: skip
REMEMBERED = record(
    written=FLAG, path=STRING, start_line=COUNT, end_line=COUNT, citation=STRING, id=STRING, created=FLAG,
    notices=NOTICES,
)  # fmt: skip
RECEIPT = record(
    receipt=maybe(STRING),
    dry_run=FLAG,
    passages=several(
        record(
            path=STRING,
            start_line=COUNT,
            end_line=COUNT,
            citation=STRING,
            id=maybe(STRING),
            source=STRING,
            text=maybe(STRING),
        )
    ),
    files=several(record(path=STRING, deleted=FLAG, backup=maybe(STRING))),
    files_left_alone=several(STRING),
    removed=record(passages=COUNT, vectors=COUNT),
    tombstones=COUNT,
    proof=record(proved=FLAG, searched=COUNT, still_found=several(STRING), lingering=several(STRING)),
)
ENTRY = record(
    id=STRING, citation=STRING, path=STRING, start_line=COUNT, end_line=COUNT, heading=several(STRING), source=STRING,
    origin=STRING, date=maybe(STRING), first_line=STRING, when=STRING, by=STRING, here=FLAG,
)  # fmt: skip
TIMELINE = record(entries=several(ENTRY), notices=NOTICES)
PROFILES = record(profiles=several(record(name=STRING, fusion=STRING, stages=several(STRING), pool=COUNT, limit=COUNT)))
ERROR = record(error=record(code=STRING, message=STRING, hint=STRING))
