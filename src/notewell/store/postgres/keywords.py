"""The keyword leg: BM25 over packs of postings, with the statistics of one workspace.

Terms come from our own analyser; a term of the exact field has `=` before it. A word counts once
for each time that it is in the text, and one and a half times in a heading. The server sends the
packs of the words that are sought, and they are scored here: several times faster than a sum over
rows in SQL. It needs no extension.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from struct import pack
from typing import TYPE_CHECKING, Any

from notewell.store.lazy import LazyModule
from notewell.store.postgres.chunks import CHUNKS, ChunkReader
from notewell.store.postgres.connection import Connection, Rows, unnest
from notewell.store.postgres.moment import Scope
from notewell.store.postgres.schema import PACK
from notewell.store.term_places import places_in
from notewell.store.values import FieldTerms, Placed, Scored, Sought, TermCounts
from notewell.text.bm25 import EXACT_WEIGHT, HEAD_WEIGHT, K1, B
from notewell.text.words import clean
from notewell.types import Filters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[Any]
    Columns = tuple[Column, Column, Column, Column]
else:
    np = LazyModule("numpy")

_MOST = 32767  # of the fifteen bits that count how often a term is in a body, or in a head
_ENTRY = 12  # bytes
_COLUMNS = {"term": "text", "first": "bigint", "n": "integer", "entries": "bytea"}
_AUDITED = 20_000
_COMMON = 0.2  # a word in more of the chunks than this is not looked for, see `search/evidence.py`
_AHEAD = "words"
_TERMS_AT = slice(17, 20)  # where a row that was read ahead has its terms


def _times(column: str) -> str:
    """How often a pair of terms is in a column; every space is doubled, so that matches do not
    share one.
    """
    text = f"(' ' || replace({column}, ' ', '  ') || ' ')"
    return f"((length({text}) - length(replace({text}, u.pair, ''))) / length(u.pair))"


# The rows are (number, count, NULL) of each term that is sought, numbered 1, 2, …, and (number,
# first, entries) of its packs. The number 0 has the statistics of the workspace; prefixes have the
# numbers -1, -2, … Of words that are in too many chunks to be looked for, only the count is read
# ahead, unless all of them are.
_PACKS = (
    "WITH counted AS MATERIALIZED (SELECT u.term, u.n,"
    " (SELECT sum(p.n) FROM postings p WHERE p.workspace = $w AND p.term = u.term) AS found_in"
    " FROM unnest(%(terms)s::text[]) WITH ORDINALITY u (term, n)),"
    " chosen AS MATERIALIZED (SELECT c.* FROM counted c,"
    " (SELECT %(most)s::float8 * greatest(chunks, 1000) AS most FROM state WHERE workspace = $w) s"
    " WHERE starts_with(term, '=') OR found_in <= s.most OR s.most <"
    " (SELECT min(found_in) FROM counted WHERE NOT starts_with(term, '=')))"
    " SELECT 0, chunks, int8send(length) FROM state WHERE workspace = $w"
    " UNION ALL SELECT n::integer, found_in::bigint, NULL FROM counted WHERE found_in > 0"
    " UNION ALL SELECT u.n::integer, p.first, p.entries"
    " FROM chosen u JOIN postings p ON p.workspace = $w AND p.term = u.term"
)
_PREFIXES = (
    " UNION ALL SELECT -u.n::integer, p.first, p.entries"
    " FROM unnest(%(prefixes)s::text[]) WITH ORDINALITY u (term, n)"
    " JOIN postings p ON p.workspace = $w AND p.term >= u.term AND p.term < u.term || chr(1114111)"
)
# Two terms side by side: of the rows that have both, those whose text has the pair.
_PHRASES = (
    f"SELECT u.n, c.row, {_times('c.body')} + %(head)s::float8 * {_times('c.head')}, c.length"
    " FROM unnest(%(pairs)s::text[], %(numbers)s::integer[], %(rows)s::bigint[]) u (pair, n, row)"
    " JOIN chunks c ON c.workspace = $w AND c.row = u.row"
)


class Keywords:
    """The part of a PostgreSQL store that finds chunks by their words."""

    def __init__(self, connection: Connection, chunks: ChunkReader) -> None:
        self._db, self._chunks = connection, chunks

    def lexical(self, sought: Sought, limit: int, filters: Filters) -> list[Scored]:
        if not sought or limit <= 0:
            return []
        words = _terms_of(sought)
        phrases, prefixes = (
            list(dict.fromkeys(sought.phrases)),
            list(dict.fromkeys(sought.prefixes)),
        )
        terms = list(dict.fromkeys((*words, *(word for pair in phrases for word in pair))))
        chunks, mean, packs = self._packs(terms, prefixes)
        parts, rows, codes, lengths = _entries(packs)
        head = HEAD_WEIGHT if sought.in_head else 0.0
        worth = np.asarray(
            [EXACT_WEIGHT if term.startswith("=") else 1.0 for term in terms] + [1.0]
        )
        often = worth[np.clip(parts, 0, None) - 1] * (codes & _MOST) + head * (codes >> 15)
        found = [_chosen((parts, rows, often, lengths), (parts > 0) & (parts <= len(words)))]
        if prefixes:
            found.append(_summed(*_chosen((parts, rows, often, lengths), parts < 0)))
        if phrases:
            having = {term: rows[parts == n] for n, term in enumerate(terms, start=1)}
            both = [(np.intersect1d(having[a], having[b]), (a, b)) for a, b in phrases]
            found.append(self._phrases(both, len(terms) + 1, head))
        number, rows, often, lengths = (
            np.concatenate(columns) for columns in zip(*found, strict=True)
        )
        number, rows, often, lengths = _chosen((number, rows, often, lengths), often > 0)
        if not len(rows):
            return []
        number -= number.min()
        found_in = np.bincount(number)[number]
        weight = np.log(1.0 + (chunks - found_in + 0.5) / (found_in + 0.5))
        norm = K1 * (1 - B + B * lengths / max(mean, 1e-9))
        rows, place = np.unique(rows, return_inverse=True)
        # To six places: which rows tie must not depend on the order in which the parts of a sum are
        # added.
        scores = np.bincount(place, weights=weight * often * (K1 + 1) / (often + norm)).round(6)
        if sought.every:
            all_of_it = np.bincount(place) == len(words) + len(phrases) + len(prefixes)
            rows, scores = rows[all_of_it], scores[all_of_it]
        return self._chunks.first(rows, scores, limit, filters)

    def _packs(self, terms: Sequence[str], prefixes: Sequence[str]) -> tuple[int, float, Rows]:
        """How many chunks there are, their mean length, and the packs of terms and prefixes."""
        kept = self._kept()
        if kept is None or not kept.has(terms, prefixes):
            kept = _Read(
                terms, prefixes, self._db.all(*_asking(terms, prefixes, most=1.0), binary=True)
            )
        return kept.chunks, kept.mean, kept.packs_of(terms, prefixes)

    def _kept(self) -> _Read | None:
        scope = self._db.scope()
        return scope.found.get(_AHEAD) if scope else None

    def ahead(self, sought: Sought) -> tuple[str, dict[str, Any]]:
        """The statement that reads what `term_counts` and `lexical` will ask for."""
        return _asking(_terms_of(sought), sought.prefixes, most=_COMMON)

    def keep(self, scope: Scope, sought: Sought, found: Rows) -> None:
        """Keeps what that statement returned for the calls that follow."""
        scope.found[_AHEAD] = _Read(_terms_of(sought), sought.prefixes, found)

    def _phrases(
        self, both: Sequence[tuple[Column, tuple[str, str]]], number: int, head: float
    ) -> Columns:
        """How often each pair of terms is side by side in the rows that have both, the pairs
        numbered from `number`.
        """
        wanted = [
            (f" {a}  {b} ", number + n, row)
            for n, (rows, (a, b)) in enumerate(both)
            for row in rows.tolist()
        ]
        pairs, numbers, rows = ([w[n] for w in wanted] for n in range(3))
        values = {"pairs": pairs, "numbers": numbers, "rows": rows, "head": head}
        found = self._db.all(_PHRASES, values) if wanted else []
        kinds = (np.int64, np.int64, np.float64, np.int64)
        n, row, often, length = (
            np.asarray([f[i] for f in found], dtype=kind) for i, kind in enumerate(kinds)
        )
        return n, row, often, length

    def chunk_terms(self, rows: Sequence[int]) -> dict[int, FieldTerms]:
        return {row: _fields(*texts) for row, texts in self._texts(rows).items()}

    def _texts(self, rows: Sequence[int]) -> dict[int, tuple[str, str, str]]:
        """The terms of chunks as they are kept: head, body and exact, each joined by spaces."""
        if (scope := self._db.scope()) and scope.asked_rows.issuperset(rows):
            found = [(row, *scope.rows[row][_TERMS_AT]) for row in rows if row in scope.rows]
        else:
            sql = (
                "SELECT row, head, body, exact FROM chunks WHERE workspace = $w AND row = "
                "ANY(%s::bigint[])"
            )
            found = self._db.all(sql, (list(rows),)) if rows else []
        return {row: (head, body, exact) for row, head, body, exact in found}

    def term_places(self, rows: Sequence[int], sought: Sought) -> Placed:
        words = (*sought.words, *sought.prefixes, *sought.exact)
        near: dict[int, FieldTerms] = {}
        lengths: dict[int, int] = {}
        for row, texts in self._texts(rows).items():
            joined = " ".join(texts)
            # What the vectors found often has none of the words, and is not split into terms.
            if any(word in joined for word in words):
                near[row] = _fields(*texts)
            else:
                lengths[row] = texts[1].count(" ") + bool(texts[1])
        places = places_in(near, sought)
        others = np.asarray(list(lengths.values()), dtype=np.int64)
        return Placed(
            [*places.rows, *lengths],
            np.concatenate((places.lengths, others)),
            places.body,
            places.head,
            np.concatenate((places.exact, np.zeros_like(others))),
        )

    def term_counts(self, terms: Iterable[str]) -> TermCounts:
        wanted = list(dict.fromkeys(terms))
        kept = self._kept()
        if kept is not None and kept.numbers.keys() >= set(wanted):
            return TermCounts(
                kept.chunks,
                kept.mean,
                {word: kept.counts.get(kept.numbers[word], 0) for word in wanted},
            )
        rows = self._db.all(
            "SELECT NULL, chunks, length FROM state WHERE workspace = $w"
            " UNION ALL SELECT term, sum(n), 0 FROM postings"
            " WHERE workspace = $w AND term = ANY(%s::text[]) GROUP BY term",
            (wanted,),
        )
        chunks, length = next(((r[1], r[2]) for r in rows if r[0] is None), (0, 0))
        found_in = dict.fromkeys(wanted, 0) | {
            term: int(count) for term, count, _ in rows if term is not None
        }
        return TermCounts(int(chunks), float(length) / int(chunks) if chunks else 0.0, found_in)

    def paths_with(self, terms: Sequence[str]) -> set[str]:
        counts = {term: count for term, count in self.term_counts(terms).found_in.items() if count}
        if not counts:
            return set()
        rarest = min(counts, key=lambda term: (counts[term], term))
        packs = self._db.all(
            "SELECT 1, first, entries FROM postings WHERE workspace = $w AND term = %s", (rarest,)
        )
        found = self._db.all(
            f"SELECT DISTINCT d.path FROM {CHUNKS} WHERE c.row = ANY(%s::bigint[])",
            (_entries(packs)[1].tolist(),),
        )
        return {path for (path,) in found}

    def put(self, chunks: Sequence[tuple[int, FieldTerms, int]]) -> None:
        """Adds the terms of new chunks (row, terms, length), whose rows come after all others of
        the workspace.
        """
        made = self._db.copy("postings", _COLUMNS, _packs(sorted(chunks, key=lambda one: one[0])))
        self._db.run(f"INSERT INTO postings SELECT $w, * FROM {made}")
        self._count(len(chunks), sum(length for _, _, length in chunks))

    def drop(self, chunks: Sequence[tuple[Any, ...]]) -> None:
        """Takes away the terms of chunks (row, head, body, exact, length); a term in no chunk
        leaves no trace.
        """
        fields = [(row, _fields(*texts)) for row, *texts, _ in chunks]
        source, values = unnest(
            "text bigint", [(term, row) for row, terms in fields for term in _codes(terms)]
        )
        found = self._db.all(
            f"SELECT DISTINCT p.term, p.first, p.entries FROM {source} u (term, row)"
            " CROSS JOIN LATERAL (SELECT * FROM postings p"
            " WHERE p.workspace = $w AND p.term = u.term AND p.first <= u.row"
            " ORDER BY p.first DESC LIMIT 1) p",
            values,
            binary=True,
        )
        gone = {row for row, _ in fields}
        left = [(term, first, _without(first, entries, gone)) for term, first, entries in found]
        same = "p.workspace = $w AND p.term = u.term AND p.first = u.first"
        source, values = unnest("text bigint", [one[:2] for one in left if not one[2]])
        self._db.run(f"DELETE FROM postings p USING {source} u (term, first) WHERE {same}", values)
        source, values = unnest("text bigint bytea", [one for one in left if one[2]])
        self._db.run(
            f"UPDATE postings p SET entries = u.entries, n = length(u.entries) / {_ENTRY}"
            f" FROM {source} u (term, first, entries) WHERE {same}",
            values,
        )
        self._count(-len(chunks), -sum(c[-1] for c in chunks))

    def _count(self, chunks: int, length: int) -> None:
        sql = "UPDATE state SET chunks = chunks + %s, length = length + %s WHERE workspace = $w"
        self._db.run(sql, (chunks, length))

    def audit(self) -> list[str]:
        """Where the packs do not agree with themselves or with the chunks, a sentence each; reads
        all of both.
        """
        wrong = self._db.all(
            f"SELECT count(*) FROM postings WHERE workspace = $w AND n * {_ENTRY} != "
            "length(entries)"
        )
        if wrong[0][0]:
            return [f"{wrong[0][0]} words are counted wrong"]
        indexed: Counter[int] = Counter()
        for packs in self._pages(
            "1, first, entries, term", "postings", "term", "first", start=("", 0)
        ):
            rows, counts = np.unique(_entries(packs)[1], return_counts=True)
            indexed.update(dict(zip(rows.tolist(), counts.tolist(), strict=True)))
        lacking = 0
        for chunks in self._pages("head, body, exact, row", "chunks", "row", start=(0,)):
            for *texts, row in chunks:
                lacking += indexed.pop(row, 0) != len(_codes(_fields(*texts)))
        faults = {"keyword rows have no passage": len(indexed), "passages lack keywords": lacking}
        return [f"{count} {fault}" for fault, count in faults.items() if count]

    def _pages(self, columns: str, table: str, *key: str, start: tuple[Any, ...]) -> Iterator[Rows]:
        """All rows of a table in order of a key whose columns are the last, some at a time."""
        names, after = ", ".join(key), ", ".join(["%s"] * len(key))
        sql = (
            f"SELECT {columns} FROM {table} WHERE workspace = $w AND ({names}) > ({after})"
            f" ORDER BY {names} LIMIT {_AUDITED}"
        )
        while rows := self._db.all(sql, start, binary=True):
            yield rows
            start = (rows[-1][-1], rows[-1][1]) if len(key) > 1 else (rows[-1][-1],)


def _fields(head: str, body: str, exact: str) -> FieldTerms:
    return FieldTerms(tuple(head.split()), tuple(body.split()), tuple(exact.split()))


def _terms_of(sought: Sought) -> list[str]:
    """The words and the exact forms that are sought, as terms of the table."""
    return list(dict.fromkeys((*sought.words, *("=" + word for word in sought.exact))))


def _asking(
    terms: Sequence[str], prefixes: Sequence[str], *, most: float
) -> tuple[str, dict[str, Any]]:
    sql = _PACKS + (_PREFIXES if prefixes else "")
    return sql, {"terms": list(terms), "prefixes": list(prefixes), "most": most}


class _Read:
    """What was read of terms and prefixes: the statistics of the workspace, the counts and the
    packs.
    """

    def __init__(self, terms: Sequence[str], prefixes: Sequence[str], found: Rows) -> None:
        self.numbers = {term: n for n, term in enumerate(terms, start=1)}
        self.prefixes = {prefix: -n for n, prefix in enumerate(prefixes, start=1)}
        self.counts = {n: count for n, count, entries in found if entries is None}
        self.packs: dict[int, Rows] = defaultdict(list)
        for one in found:
            if one[2] is not None:
                self.packs[one[0]].append(one)
        state = self.packs.pop(0, [(0, 0, bytes(8))])[0]
        self.chunks, self.mean = state[1], int.from_bytes(state[2], "big") / max(1, state[1])

    def has(self, terms: Sequence[str], prefixes: Sequence[str]) -> bool:
        """Whether it has all packs of these."""
        numbers = [self.numbers.get(term, 0) for term in terms]
        return self.prefixes.keys() >= set(prefixes) and all(
            n and (n in self.packs or not self.counts.get(n)) for n in numbers
        )

    def packs_of(self, terms: Sequence[str], prefixes: Sequence[str]) -> Rows:
        """The packs of these, numbered by their order."""
        found = [
            (n, self.packs.get(self.numbers[term], ())) for n, term in enumerate(terms, start=1)
        ]
        found += [
            (-n, self.packs.get(self.prefixes[prefix], ()))
            for n, prefix in enumerate(prefixes, start=1)
        ]
        return [(n, first, entries) for n, packs in found for _, first, entries in packs]


def _entries(packs: Rows) -> Columns:
    """The entries of packs (number, first, entries) as columns: number, row, count and length."""
    data = np.frombuffer(b"".join(p[2] for p in packs), dtype=">i4").reshape(-1, 3).astype(np.int64)
    sizes = [len(p[2]) // _ENTRY for p in packs]
    number, first = (
        np.repeat(np.asarray([p[n] for p in packs], dtype=np.int64), sizes) for n in (0, 1)
    )
    return number, first + data[:, 0], data[:, 1], data[:, 2]


def _chosen(columns: Columns, there: Column) -> Columns:
    number, rows, often, lengths = columns
    return number[there], rows[there], often[there], lengths[there]


def _summed(number: Column, rows: Column, often: Column, lengths: Column) -> Columns:
    """Entries of the same number and row as one: the words that begin in one way count as one
    word.
    """
    order = np.lexsort((rows, number))
    number, rows, often, lengths = number[order], rows[order], often[order], lengths[order]
    new = np.flatnonzero(np.diff(number, prepend=1) | np.diff(rows, prepend=-1))
    total = np.add.reduceat(often, new) if len(new) else often
    return number[new], rows[new], total, lengths[new]


def _packs(chunks: Sequence[tuple[int, FieldTerms, int]]) -> Iterator[tuple[str, int, int, bytes]]:
    """The packs of new chunks in ascending order of rows, as rows of the table."""
    base = chunks[0][0]
    made: defaultdict[str, list[int]] = defaultdict(list)
    for row, terms, length in chunks:
        offset = row - base
        for term, code in _codes(terms).items():
            made[term] += (offset, code, length)
    for term in sorted(made):
        entries, name = made[term], clean(term)
        for start in range(0, len(entries), 3 * PACK):
            part = entries[start : start + 3 * PACK]
            if start:
                part[::3] = [offset - entries[start] for offset in part[::3]]
            yield (
                name,
                base + (entries[start] if start else 0),
                len(part) // 3,
                pack(f">{len(part)}i", *part),
            )


def _codes(terms: FieldTerms) -> dict[str, int]:
    """How often each term of a chunk is in its text and, fifteen bits higher, in its heading."""
    found = {term: min(n, _MOST) for term, n in Counter(terms.body).items()}
    for term, n in Counter(terms.head).items():
        found[term] = found.get(term, 0) + (min(n, _MOST) << 15)
    for term, n in Counter(terms.exact).items():
        found["=" + term] = min(n, _MOST)
    return found


def _without(first: int, entries: bytes, gone: set[int]) -> bytes:
    """A pack without the entries of some rows."""
    data = np.frombuffer(entries, dtype=">i4").reshape(-1, 3)
    left = [first + offset not in gone for offset in data[:, 0].tolist()]
    return bytes(data[left].tobytes())
