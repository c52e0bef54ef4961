"""The keyword leg in plain SQL: BM25 over a table of postings, with the statistics of one workspace.

Terms are those of our own analyser; a term of the exact field is kept with `=` before it. A word counts once for each
time it stands in the text and one and a half times in a heading. Works on every server; needs no extension.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recollect.ports import Scored, Sought, TermCounts
from recollect.types import Filters

K1, B = 1.2, 0.75
HEAD_WEIGHT, BODY_WEIGHT, EXACT_WEIGHT = 1.5, 1.0, 0.25
_MOST = 32767
# Scores to six places: which rows tie must not hang on the order in which parts of a sum were added.
_SCORE = "round(sum(weight) * 1e6) / 1e6"


def _idf(found_in: str) -> str:
    return f"ln(1 + ((SELECT chunks FROM whole) - {found_in} + 0.5::float8) / ({found_in} + 0.5::float8))"


def _weight(idf: str, tf: str, length: str) -> str:
    return (
        f"{idf} * {tf} * {K1 + 1}::float8 / ({tf} + {K1 * (1 - B):.6f}::float8 + (SELECT norm FROM whole) * {length})"
    )


class LexicalTables:
    """The part of a PostgreSQL store that knows which words stand where."""

    _w: int

    if TYPE_CHECKING:

        def _all(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]: ...
        def _run(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> int: ...
        def _passing(self, filters: Filters) -> tuple[str, dict[str, Any]] | None: ...
        @property
        def _join(self) -> str: ...
        def _best(self, sql: str, by: str, values: Mapping[str, Any], limit: int) -> list[Scored]: ...

    def lexical(self, sought: Sought, limit: int, filters: Filters) -> list[Scored]:
        """The best rows for what is sought by BM25, larger is better."""
        if not sought or limit <= 0:
            return []
        values: dict[str, Any] = {"head": HEAD_WEIGHT if sought.in_head else 0.0}
        wanted = list(dict.fromkeys((*sought.words, *("=" + word for word in sought.exact))))
        hits: list[str] = []
        values["words"] = wanted
        values["worth"] = [EXACT_WEIGHT if word.startswith("=") else BODY_WEIGHT for word in wanted]
        if wanted:
            hits.append(self._words())
        phrases = list(dict.fromkeys(sought.phrases))
        if phrases:
            hits.append(self._phrases())
            values["ones"], values["others"] = [a for a, _ in phrases], [b for _, b in phrases]
        prefixes = list(dict.fromkeys(sought.prefixes))
        if prefixes:
            hits.append(self._prefixes())
            values["prefixes"] = prefixes
        every = f" HAVING count(*) = {len(wanted) + len(phrases) + len(prefixes)}" if sought.every else ""
        sql = (
            f"WITH whole AS MATERIALIZED (SELECT chunks, {K1 * B}::float8 * chunks / greatest(length, 1) AS norm"
            f" FROM state WHERE workspace = {self._w}), asked AS MATERIALIZED (SELECT u.term, u.worth,"
            f" {_idf('t.found_in')} AS idf FROM unnest(%(words)s::text[], %(worth)s::float8[]) u (term, worth)"
            f" JOIN terms t ON t.workspace = {self._w} AND t.term = u.term)"
            f" SELECT h.row, h.score FROM (SELECT row, {_SCORE} AS score FROM ({' UNION ALL '.join(hits)}) hits"
            f" GROUP BY row{every}) h"
        )
        if passing := self._passing(filters):
            sql += f" JOIN ({self._join}) ON c.row = h.row WHERE {passing[0]}"
            values |= passing[1]
        return self._best(sql, "h.score", values, limit)

    def _words(self) -> str:
        tf = "(a.worth * p.body + %(head)s::float8 * p.head)"
        return (
            f"SELECT p.row, {_weight('a.idf', tf, 'p.length')} AS weight FROM asked a"
            f" JOIN postings p ON p.workspace = {self._w} AND p.term = a.term"
            " AND (p.body > 0 OR %(head)s::float8 > 0)"
        )

    def _phrases(self) -> str:
        """Two terms side by side: rows that have both, and of those the ones whose stored terms say so."""

        def times(column: str) -> str:
            text = f"(' ' || replace({column}, ' ', '  ') || ' ')"
            return f"((length({text}) - length(replace({text}, u.pair, ''))) / length(u.pair))"

        return (
            f"SELECT f.row, {_weight(_idf('f.found_in'), 'f.tf', 'f.length')} AS weight FROM ("
            " SELECT g.*, count(*) OVER (PARTITION BY g.n) AS found_in FROM ("
            f" SELECT u.n, c.row, c.length, ({times('c.body')} + %(head)s::float8 * {times('c.head')}) AS tf FROM"
            " (SELECT one, other, n, ' ' || one || '  ' || other || ' ' AS pair"
            " FROM unnest(%(ones)s::text[], %(others)s::text[]) WITH ORDINALITY w (one, other, n)) u"
            f" JOIN postings p ON p.workspace = {self._w} AND p.term = u.one"
            f" JOIN postings q ON q.workspace = {self._w} AND q.term = u.other AND q.row = p.row"
            f" JOIN chunks c ON c.workspace = {self._w} AND c.row = p.row) g WHERE g.tf > 0) f"
        )

    def _prefixes(self) -> str:
        return (
            f"SELECT f.row, {_weight(_idf('f.found_in'), 'f.tf', 'f.length')} AS weight FROM ("
            " SELECT g.*, count(*) OVER (PARTITION BY g.n) AS found_in FROM ("
            " SELECT u.n, p.row, p.length, sum(p.body + %(head)s::float8 * p.head) AS tf"
            " FROM unnest(%(prefixes)s::text[]) WITH ORDINALITY u (prefix, n) JOIN postings p"
            f" ON p.workspace = {self._w} AND p.term >= u.prefix AND p.term < u.prefix || chr(1114111)"
            " GROUP BY u.n, p.row, p.length) g WHERE g.tf > 0) f"
        )

    def term_counts(self, terms: Iterable[str]) -> TermCounts:
        """Chunk count, mean length and, for each term, in how many chunks it stands."""
        wanted = list(dict.fromkeys(terms))
        found: dict[str, int] = dict.fromkeys(wanted, 0)
        rows = self._all(
            f"SELECT NULL, chunks, length FROM state WHERE workspace = {self._w} UNION ALL SELECT term, found_in, 0"
            f" FROM terms WHERE workspace = {self._w} AND term = ANY(%s::text[])",
            (wanted,),
        )
        chunks, length = next(((r[1], r[2]) for r in rows if r[0] is None), (0, 0))
        found.update((term, count) for term, count, _ in rows if term is not None)
        return TermCounts(chunks, length / chunks if chunks else 0.0, found)

    def paths_with(self, terms: Sequence[str]) -> set[str]:
        """Documents that have the rarest of some terms: all that could hold a text which has them."""
        counts = {term: count for term, count in self.term_counts(terms).found_in.items() if count}
        if not counts:
            return set()
        rarest = min(counts, key=lambda term: (counts[term], term))
        rows = self._all(
            f"SELECT DISTINCT d.path FROM postings p JOIN chunks c ON c.workspace = {self._w} AND c.row = p.row"
            f" JOIN documents d ON d.workspace = {self._w} AND d.id = c.document"
            f" WHERE p.workspace = {self._w} AND p.term = %s",
            (rarest,),
        )
        return {r[0] for r in rows}

    def _put_terms(self, rows: Sequence[tuple[int, str, str, str]], lengths: Sequence[int]) -> None:
        """The terms of new chunks, and what they add to the workspace's statistics."""
        made: list[tuple[str, int, int, int, int]] = []
        for (row, *fields), length in zip(rows, lengths, strict=True):
            made += [(term, row, body, head, length) for term, (body, head) in _postings(*fields).items()]
        made.sort()
        self._run(
            f"INSERT INTO postings SELECT {self._w}, * FROM unnest(%s::text[], %s::bigint[], %s::smallint[],"
            " %s::smallint[], %s::int[])",
            tuple(list(column) for column in zip(*made, strict=True)) if made else ([],) * 5,
        )
        self._count(Counter(term for term, *_ in made), len(rows), sum(lengths))

    def _drop_terms(self, gone: Sequence[tuple[Any, ...]]) -> None:
        """Takes the terms of chunks away; a term that stands nowhere any more leaves no trace."""
        made = [(term, row) for row, *fields, _ in gone for term in _postings(*fields)]
        self._run(
            "DELETE FROM postings p USING unnest(%s::text[], %s::bigint[]) u (term, row)"
            f" WHERE p.workspace = {self._w} AND p.term = u.term AND p.row = u.row",
            ([term for term, _ in made], [row for _, row in made]),
        )
        counts = Counter(term for term, _ in made)
        self._count(Counter({term: -n for term, n in counts.items()}), -len(gone), -sum(r[-1] for r in gone))
        self._run(
            f"DELETE FROM terms WHERE workspace = {self._w} AND term = ANY(%s::text[]) AND found_in <= 0",
            (list(counts),),
        )

    def _count(self, terms: Counter[str], chunks: int, length: int) -> None:
        order = sorted(terms)
        self._run(
            f"INSERT INTO terms SELECT {self._w}, * FROM unnest(%s::text[], %s::int[])"
            " ON CONFLICT (workspace, term) DO UPDATE SET found_in = terms.found_in + excluded.found_in",
            (order, [terms[term] for term in order]),
        )
        self._run(
            f"UPDATE state SET chunks = chunks + %s, length = length + %s WHERE workspace = {self._w}", (chunks, length)
        )

    def _audit_terms(self) -> list[str]:
        """Where postings, statistics and chunks do not agree."""
        w = f"workspace = {self._w}"
        faults = []
        for sql, sentence in (
            (
                (
                    f"SELECT count(DISTINCT p.row) FROM postings p WHERE {w}"
                    f" AND NOT EXISTS (SELECT 1 FROM chunks c WHERE c.{w} AND c.row = p.row)"
                ),
                "keyword rows have no passage",
            ),
            (
                (
                    f"SELECT count(*) FROM chunks c WHERE {w} AND c.body != '' AND NOT EXISTS (SELECT 1 FROM postings p"
                    f" WHERE p.{w} AND p.row = c.row AND p.term = split_part(c.body, ' ', 1))"
                ),
                "passages have no keywords",
            ),
            (
                (
                    f"SELECT count(*) FROM (SELECT term, count(*) AS n FROM postings WHERE {w} GROUP BY term) p"
                    f" FULL JOIN (SELECT term, found_in FROM terms WHERE {w}) t USING (term)"
                    " WHERE p.n IS DISTINCT FROM t.found_in"
                ),
                "words are not counted as they stand",
            ),
            (
                (
                    f"SELECT count(*) FROM state s, (SELECT count(*) AS n, coalesce(sum(length), 0) AS long FROM chunks"
                    f" WHERE {w}) c WHERE s.{w} AND (s.chunks, s.length) IS DISTINCT FROM (c.n, c.long)"
                ),
                "counts of passages are wrong",
            ),
        ):
            if count := self._all(sql)[0][0]:
                faults.append(f"{count} {sentence}")
        return faults


def _postings(head: str, body: str, exact: str) -> dict[str, tuple[int, int]]:
    """How often each term of a chunk stands in its text and in its heading."""
    bodies, heads = Counter(body.split()), Counter(head.split())
    found = {term: (min(bodies[term], _MOST), min(heads[term], _MOST)) for term in bodies.keys() | heads.keys()}
    return found | {"=" + term: (min(n, _MOST), 0) for term, n in Counter(exact.split()).items()}
