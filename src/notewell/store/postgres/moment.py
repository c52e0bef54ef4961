"""What a search keeps of what it has read: the workspace's own counters and values at one moment,
and what is ahead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

INDEXED = (  # whether the HNSW index of a model `m` is there and complete
    "coalesce((SELECT i.indisvalid FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid"
    " WHERE c.relnamespace = 'notewell'::regnamespace"
    " AND c.relname = 'vectors_hnsw_$w_' || m.id), false)"
)
_ANY = "EXISTS (SELECT 1 FROM {} WHERE workspace = $w)"
# A long value, such as the tombstones, is read only if it is asked for.
MOMENT = (
    "SELECT s.generation, s.moved, s.chunks,"
    f" {', '.join(map(_ANY.format, ('unjudged', 'conflicts', 'replaced')))},"
    " (SELECT json_object_agg(key, CASE WHEN length(value) < 1000 THEN value::json END)"
    " FROM meta WHERE workspace = $w),"
    f" (SELECT json_agg(json_build_array(m.name, m.id, m.dim, m.changed, {INDEXED}) ORDER BY m.id)"
    " FROM models m WHERE m.workspace = $w)"
    " FROM state s WHERE s.workspace = $w"
)


@dataclass(frozen=True, slots=True)
class Model:
    """A model in the database; `indexed` once its HNSW index is complete, `changed` counts changes
    of its vectors.

    `chunks` is how many chunks the workspace has.
    """

    number: int
    dim: int
    changed: int
    indexed: bool
    chunks: int


@dataclass(frozen=True, slots=True)
class Moment:
    """What a workspace knows of itself at one moment; long values are not in `meta` but in `long`,
    by key.
    """

    generation: int
    moved: int
    unjudged: bool
    disputed: bool
    replaced: bool
    meta: Mapping[str, Any]
    long: frozenset[str]
    models: Mapping[str, Model]


GONE = Moment(
    -1, -1, unjudged=False, disputed=False, replaced=False, meta={}, long=frozenset(), models={}
)


def moment_of(columns: tuple[Any, ...]) -> Moment:
    """The moment that a row of the statement `MOMENT` describes."""
    generation, moved, chunks, unjudged, disputed, replaced, meta, models = columns
    values = {key: value for key, value in (meta or {}).items() if value is not None}
    known = {
        name: Model(number, dim, changed, ok, chunks)
        for name, number, dim, changed, ok in models or ()
    }
    long = frozenset(meta or ()) - values.keys()
    return Moment(generation, moved, unjudged, disputed, replaced, values, long, known)


@dataclass(slots=True)
class Scope:
    """What one search or one `reading` has read; threads that work for it share it.

    `counted` is whether the counter of chunks was read since it was last asked for. `found` has
    what was read ahead of a question, `rows` what was read of rows, `asked_rows` which rows that
    were, `asked` for which model and vector.
    """

    owner: object
    moment: Moment | None = None
    moved: int = 0
    counted: bool = False
    found: dict[Any, Any] = field(default_factory=dict)
    rows: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    asked_rows: frozenset[int] = frozenset()
    asked: tuple[str, Any, bool] = ("", None, False)  # whether with windows

    def clear(self) -> None:
        """Forgets it all: something was or may have been changed."""
        self.moment, self.counted, self.found, self.rows, self.asked_rows = (
            None,
            False,
            {},
            {},
            frozenset(),
        )
