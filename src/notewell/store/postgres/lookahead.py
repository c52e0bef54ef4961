"""What a search will ask for, read in as few statements as can be: all about its question, then all
about its rows.

The parts of the store look here first. What was read stays in the scope of one search, see
`Connection.asking`.
"""

from __future__ import annotations

from collections.abc import Sequence

from notewell.store.ports import Asked
from notewell.store.postgres.connection import Connection
from notewell.store.postgres.documents import Documents
from notewell.store.postgres.keywords import Keywords
from notewell.store.postgres.relations import Relations
from notewell.store.postgres.vectors import COSINE, Vectors
from notewell.store.rows import CHUNK
from notewell.store.values import Sought
from notewell.types import Filters

_NAMED = (
    1_000_000  # added to the numbers of documents that are named, to tell them from those of words
)
MOST_TERMS = 128  # of a longer question only some words are looked for, and nobody knows yet which
_OF_TEXT = "FROM {0} t WHERE t.workspace = $w AND t.model = {1} AND t.content_hash = c.content_hash"


class Lookahead:
    """The part of a PostgreSQL store that reads ahead."""

    def __init__(
        self,
        connection: Connection,
        documents: Documents,
        keywords: Keywords,
        vectors: Vectors,
        relations: Relations,
    ) -> None:
        self._db, self._documents, self._keywords = connection, documents, keywords
        self._vectors, self._relations = vectors, relations

    def question(
        self,
        sought: Sought,
        names: Sequence[str],
        days: Sequence[tuple[str, str]],
        *,
        limit: int,
        filters: Filters,
    ) -> None:
        """Reads the words and the documents that are named, in one statement."""
        scope = self._db.scope()
        if scope is None or len(sought.words) + len(sought.exact) > MOST_TERMS:
            return
        sql, values = self._keywords.ahead(sought)
        if named := self._documents.named(names, days, limit, filters):
            sql += f" UNION ALL SELECT {_NAMED} + n, row, NULL FROM ({named[0]}) named (n, row)"
            values |= named[1]
        found = self._db.all(sql, values, binary=True)
        self._keywords.keep(scope, sought, [one for one in found if one[0] < _NAMED])
        key = "named", tuple(names), tuple(days), limit, filters
        scope.found[key] = [(n - _NAMED, row) for n, row, _ in found if n >= _NAMED]

    def rows(
        self,
        rows: Sequence[int],
        asked: Asked | None,
        *,
        windows: bool,
        related_to: Filters | None = None,
    ) -> None:
        """Reads all about rows in one round trip: chunks, terms, how near they are to a vector, and
        relations.
        """
        scope = self._db.scope()
        if scope is None or not rows:
            return
        known = self._vectors.asked(asked.model, asked.vector) if asked is not None else None
        cosine = codes = "NULL"
        if known is not None:
            cosine = (
                f"(SELECT {COSINE.replace('v.', 't.')} {_OF_TEXT.format('vectors', known.number)})"
            )
            codes = (
                f"(SELECT t.codes {_OF_TEXT.format('windows', known.number)})" if windows else codes
            )
        values = {
            "rows": [int(row) for row in dict.fromkeys(rows)],
            "vector": asked.vector if asked else None,
        }
        sql = (
            f"SELECT {CHUNK}, c.head, c.body, c.exact, {cosine}, {codes},"
            " CASE d.source WHEN 'sessions' THEN d.tail END,"
            " (SELECT moved FROM state WHERE workspace = $w) FROM chunks c CROSS JOIN LATERAL"
            # One by one: a join would read all documents where the planner expects many rows.
            " (SELECT * FROM documents d WHERE d.workspace = $w AND d.id = c.document OFFSET 0) d"
            " WHERE c.workspace = $w AND c.row = ANY(%(rows)s::bigint[])"
        )
        statements = [(sql, values)]
        if related_to is not None:
            relating, given = self._relations.relating(related_to)
            statements.append((relating, {**given, **values}))
        found, *related = self._db.all_of_each(*statements)
        if related:
            scope.found["related", related_to] = related[0]
        scope.rows, scope.asked_rows = {r[0]: r for r in found}, frozenset(rows)
        scope.asked = (
            (asked.model, asked.vector, windows) if asked is not None else ("", None, False)
        )
        if found:
            scope.moved, scope.counted = found[0][-1], True
