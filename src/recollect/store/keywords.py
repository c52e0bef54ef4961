"""Finding passages by their words: what is sought, from the keyword index, ranked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from recollect.ports import FieldTerms, Placed, Scored, Sought, TermCounts
from recollect.store.recent import AT_ONCE, Recent
from recollect.store.rows import in_parts
from recollect.store.sealed import GoneError, SegmentTables
from recollect.text.bm25 import EXACT_WEIGHT, HEAD_WEIGHT, idf
from recollect.text.words import index_terms
from recollect.types import Chunk, Filters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recollect.store.lexicon import Lexicon, Places
    from recollect.store.postings import Codes
    from recollect.store.ranking import Floats, Part, Phrase

    List = tuple[Places, Codes]

_TRIES = 5


class KeywordTables(SegmentTables):
    """The part of a SQLite store that finds passages by their words."""

    if TYPE_CHECKING:

        def _allowed(self, filters: Filters) -> Any: ...
        def _first(self, found: Sequence[Scored], limit: int) -> list[Scored]: ...
        def _recent(self) -> Recent | None: ...
        def chunks(self, rows: Sequence[int]) -> dict[int, Chunk]: ...  # noqa: D102

    def _asking(self, ask: Callable[[Lexicon], Any]) -> Any:
        """An answer of the lexicon as it is now; it is read again where a segment was replaced meanwhile."""
        for _ in range(_TRIES):
            try:
                return ask(self._lexicon())
            except GoneError:
                self._known = None
        raise self._damaged_words("pages are missing")

    def _numbers(self, words: Iterable[str], kept: Recent | None = None) -> dict[str, int]:
        self._flush_own()
        wanted = list(dict.fromkeys(words))
        kept = kept or self._recent()
        if kept is None or len(wanted) > AT_ONCE:
            return self._numbered(wanted)
        known = kept.words
        if todo := [word for word in wanted if word not in known]:
            found = self._numbered(todo)
            known.update((word, found.get(word)) for word in todo)
        return {word: number for word in wanted if (number := known[word]) is not None}

    def _numbered(self, words: Sequence[str]) -> dict[str, int]:
        out: dict[str, int] = {}
        for some in in_parts(words):
            marks = ",".join("?" * len(some))
            out.update(self._all(f"SELECT word, id FROM words WHERE word IN ({marks})", some))
        return out

    def lexical(self, sought: Sought, limit: int, filters: Filters) -> list[Scored]:
        """The best rows for what is sought by BM25, larger is better."""
        if not sought:
            return []
        allowed = self._allowed(filters)
        numbers = self._numbers([*sought.words, *sought.exact, *(w for pair in sought.phrases for w in pair)])
        begun = self._begun(sought.prefixes)

        def ask(lexicon: Lexicon) -> list[Scored]:
            return self._ranked(lexicon, sought, limit, numbers=numbers, begun=begun,
                                passes=None if allowed is None else lexicon.mask(filters, allowed.rows))  # fmt: skip

        found: list[Scored] = self._asking(ask)
        return self._first(found, limit)

    def _ranked(
        self,
        lexicon: Lexicon,
        sought: Sought,
        limit: int,
        *,
        numbers: Mapping[str, int],
        begun: Mapping[str, Sequence[int]],
        passes: NDArray[np.bool_] | None,
    ) -> list[Scored]:
        import numpy as np  # noqa: PLC0415

        from recollect.store.ranking import Lengths, all_of, best  # noqa: PLC0415

        keys = [2 * n for n in numbers.values()] + [2 * n for some in begun.values() for n in some]
        keys += [2 * numbers[w] + 1 for w in sought.exact if w in numbers]
        lists = lexicon.lists(keys)
        parts = _parts_of(lexicon, sought, lists, numbers=numbers, begun=begun)
        phrases = _phrases_of(lexicon, sought, lists, numbers=numbers)
        lengths = Lengths(lexicon.lengths, lexicon.mean_length)

        def neighbours(places: Places) -> Callable[[int, int], Floats]:
            return self._neighbours(lexicon.rows[places].tolist(), in_head=sought.in_head)

        if sought.every:
            places, scores = all_of(parts, phrases, lengths=lengths, neighbours=neighbours, passes=passes)
        else:
            places, scores = best(parts, phrases, limit, lengths=lengths, neighbours=neighbours, passes=passes)
        rows = lexicon.rows[places]
        order = np.lexsort((rows, -scores))
        return [Scored(row, score) for row, score in zip(rows[order].tolist(), scores[order].tolist(), strict=True)]

    def _neighbours(self, rows: Sequence[int], *, in_head: bool) -> Callable[[int, int], Floats]:
        """Says of rows how often two words stand side by side in them."""
        import numpy as np  # noqa: PLC0415

        found = self._fields_of(rows)
        numbers, counts = self._decoded([blob for row in rows for blob in found.get(row, (b"", b"", b""))[:2]])
        # A number that no word has ends each field, so that no phrase reaches into the next.
        flat = np.insert(numbers, np.cumsum(counts), -1)
        owner = np.repeat(np.arange(len(counts)), counts + 1)

        def count(one: int, other: int) -> Floats:
            at = owner[np.flatnonzero((flat[:-1] == one) & (flat[1:] == other))]
            by_field = np.bincount(at, minlength=len(counts)).reshape(-1, 2)
            out: Floats = by_field[:, 1].astype(np.float64)
            return out + HEAD_WEIGHT * (by_field[:, 0] > 0) if in_head else out

        return count

    def _fields_of(self, rows: Sequence[int]) -> dict[int, tuple[bytes, bytes, bytes]]:
        out: dict[int, tuple[bytes, bytes, bytes]] = {}
        for some in in_parts(rows):
            marks = ",".join("?" * len(some))
            found = self._all(f"SELECT row, head, body, exact FROM fields WHERE row IN ({marks})", some)
            out.update((r[0], (r[1], r[2], r[3])) for r in found)
        return out

    def chunk_terms(self, rows: Sequence[int]) -> dict[int, FieldTerms]:
        """The indexed terms of chunks by row."""
        found = self._fields_of(rows)
        numbers, counts = self._decoded([blob for fields in found.values() for blob in fields])
        known = self._words(rows, set(numbers.tolist()))
        words = [known[n] for n in numbers.tolist()]
        out: dict[int, FieldTerms] = {}
        texts = []
        end = 0
        for count in counts.tolist():
            texts.append(" ".join(words[end : end + count]))
            end += count
        for i, row in enumerate(found):
            out[row] = FieldTerms(*texts[3 * i : 3 * i + 3])
        return out

    def _words(self, rows: Sequence[int], numbers: set[int]) -> dict[int, str]:
        """Words by number: most likely those that the rows have now, else whichever it is."""
        said = {word for c in self.chunks(rows).values() for text in texts_of(c)
                for field in index_terms(text) for word in field.split()}  # fmt: skip
        known = {number: word for word, number in self._numbers(said).items()}
        if not numbers <= known.keys():
            known = {number: word for word, number in self._all("SELECT word, id FROM words") if number in numbers}
        if not numbers <= known.keys():
            raise self._damaged_words("a passage has a word that is not there")
        return known

    def term_places(self, rows: Sequence[int], sought: Sought) -> Placed:
        """Where the words, prefixes and exact forms that are sought stand in those chunks that are there."""
        import numpy as np  # noqa: PLC0415

        kept = self._recent()
        numbers = self._numbers([*sought.words, *sought.exact], kept)
        terms = [(numbers[word], n) for n, word in enumerate(sought.words) if word in numbers]
        begun = self._begun(sought.prefixes)
        for n, prefix in enumerate(sought.prefixes, start=len(sought.words)):
            terms += [(number, n) for number in begun[prefix]]
        many = len(sought.words) + len(sought.prefixes)  # exact forms have the names after those
        exact = {numbers[word] for word in sought.exact if word in numbers}
        terms += [(number, many + n) for n, number in enumerate(exact)]
        found = self._terms_at(rows, kept)
        flat = np.concatenate([one[0] for one in found.values()]) if found else np.zeros(0, dtype=np.int32)
        counts = np.asarray([count for one in found.values() for count in one[1:]], dtype=np.int64)
        wanted = np.zeros(int(flat.max(initial=0)) + 1, dtype=bool)
        wanted[[number for number, _ in terms if number < len(wanted)]] = True
        hits = np.flatnonzero(wanted[flat])
        ends = np.cumsum(counts)
        field = np.searchsorted(ends, hits, side="right")
        inside = hits - (ends - counts)[field]
        at, term = _terms_of(flat[hits], terms)
        chunk, kind, place = field[at] // 3, field[at] % 3, inside[at]
        head, body, form = kind == 0, (kind == 1) & (term < many), (kind == 2) & (term >= many)
        once = np.unique(chunk[form] * (many + len(exact)) + term[form]) // max(1, many + len(exact))
        return Placed(
            list(found),
            counts[1::3],
            np.stack((chunk[body], term[body], place[body])),
            np.stack((chunk[head], term[head]))[:, term[head] < many],
            np.bincount(once, minlength=len(found)),
        )

    def _terms_at(self, rows: Sequence[int], kept: Recent | None) -> dict[int, tuple[NDArray[Any], int, int, int]]:
        """The numbers of the terms of rows, and how many are of the head, of the body and exact forms."""
        known = {} if kept is None or len(rows) > AT_ONCE else kept.terms
        if todo := [row for row in rows if row not in known]:
            found = self._fields_of(todo)
            numbers, counts = self._decoded([blob for fields in found.values() for blob in fields])
            numbers, sizes, end = numbers.astype("i4"), counts.tolist(), 0
            for n, row in enumerate(found):
                head, body, exact = sizes[3 * n : 3 * n + 3]
                size = head + body + exact
                known[row] = (numbers[end : end + size], head, body, exact)
                end += size
        return {row: known[row] for row in rows if row in known}

    def _begun(self, prefixes: Sequence[str]) -> dict[str, list[int]]:
        """The numbers of the words that begin with each prefix."""
        self._flush_own()
        sql = "SELECT id FROM words WHERE word >= ? AND word < ?"
        return {p: [r[0] for r in self._all(sql, (p, p + "\U0010ffff"))] for p in dict.fromkeys(prefixes)}

    def term_counts(self, terms: Iterable[str]) -> TermCounts:
        """Chunk count, mean length and, for each term, in how many chunks it stands."""
        wanted = list(dict.fromkeys(terms))
        numbers = self._numbers(wanted)

        def ask(lexicon: Lexicon) -> TermCounts:
            found = dict(zip(numbers, lexicon.found_in([2 * n for n in numbers.values()]), strict=True))
            return TermCounts(lexicon.count, lexicon.mean_length, {word: found.get(word, 0) for word in wanted})

        counts: TermCounts = self._asking(ask)
        return counts

    def paths_with(self, terms: Sequence[str]) -> set[str]:
        """Documents that have the rarest of some terms: all that could hold a text which has them."""
        counts = {term: count for term, count in self.term_counts(terms).found_in.items() if count}
        if not counts:
            return set()
        rarest = min(counts, key=lambda term: (counts[term], term))
        key = 2 * self._numbers([rarest])[rarest]
        rows: list[int] = self._asking(lambda lexicon: lexicon.rows[lexicon.lists([key])[key][0]].tolist())
        paths: set[str] = set()
        for some in in_parts(rows):
            marks = ",".join("?" * len(some))
            sql = f"SELECT DISTINCT d.path FROM chunks c JOIN documents d ON d.id = c.document WHERE c.row IN ({marks})"
            paths.update(r[0] for r in self._all(sql, some))
        return paths


def _terms_of(numbers: NDArray[Any], terms: Sequence[tuple[int, int]]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Which of some numbers are of terms, and of which; one that begins with a prefix may be of several."""
    import numpy as np  # noqa: PLC0415

    known, names = np.asarray(sorted(terms), dtype=np.int64).reshape(-1, 2).T
    first = np.searchsorted(known, numbers)
    often = np.searchsorted(known, numbers, side="right") - first
    nth = np.arange(int(often.sum())) - np.repeat(np.cumsum(often) - often, often)
    return np.repeat(np.arange(len(numbers)), often), names[np.repeat(first, often) + nth]


@lru_cache(maxsize=1024)
def stem_of(path: str) -> str:
    """The name of a file without its ending."""
    name = path.rpartition("/")[2]
    dot = name.rfind(".")
    return name[:dot] if 0 < dot < len(name) - 1 else name


def texts_of(chunk: Chunk) -> tuple[str, str]:
    """What is indexed of a chunk: what stands above it, and what it says."""
    return f"{' '.join(chunk.heading)} {stem_of(chunk.path)}", chunk.text


def _parts_of(
    lexicon: Lexicon,
    sought: Sought,
    lists: Mapping[int, List],
    *,
    numbers: Mapping[str, int],
    begun: Mapping[str, Sequence[int]],
) -> list[Part]:
    """What is sought but for phrases, the heaviest first."""
    from recollect.store.ranking import Part  # noqa: PLC0415

    often = _in_text if sought.in_head else _in_body
    none = _none()
    found: list[tuple[str, str, List, Callable[[Codes], Floats]]] = [
        ("", word, lists[2 * numbers[word]] if word in numbers else none, often) for word in dict.fromkeys(sought.words)
    ]
    found += [("prefix", prefix, _any_of([lists[2 * n] for n in some]), often) for prefix, some in begun.items()]
    found += [
        ("exact", word, lists[2 * numbers[word] + 1] if word in numbers else none, _in_exact)
        for word in dict.fromkeys(sought.exact)
    ]
    if not sought.in_head:
        found = [(kind, term, _of_body(some) if count is often else some, count) for kind, term, some, count in found]
    weighed = [(-idf(lexicon.count, len(some[0])), kind, term, some, count) for kind, term, some, count in found]
    weighed.sort(key=lambda w: w[:3])
    return [
        Part(-weight, *some, count, 0 if kind else numbers.get(term, 0)) for weight, kind, term, some, count in weighed
    ]


def _of_body(some: List) -> List:
    """Only the passages that have it in their body."""
    there = some[1] > 1
    return some[0][there], some[1][there]


def _phrases_of(
    lexicon: Lexicon, sought: Sought, lists: Mapping[int, List], *, numbers: Mapping[str, int]
) -> list[Phrase]:
    """The phrases that are sought, the heaviest first; one weighs as much as its two words in one passage do."""
    import numpy as np  # noqa: PLC0415

    from recollect.store.ranking import Phrase, find  # noqa: PLC0415

    out = []
    for pair in dict.fromkeys(sought.phrases):
        one, other = (lists[2 * numbers[w]] if w in numbers else _none() for w in pair)
        at, there = find(other[0], one[0])
        places, mine, theirs = one[0][there], one[1][there], other[1][at[there]]
        at_most = np.minimum(mine >> 1, theirs >> 1).astype(np.float64)
        if sought.in_head:
            at_most += HEAD_WEIGHT * (mine & theirs & 1)
        there = at_most > 0
        places, at_most = places[there], at_most[there]
        alone = not set(pair) <= set(sought.words)
        ids = numbers.get(pair[0], 0), numbers.get(pair[1], 0)
        out.append((-idf(lexicon.count, len(places)), pair, ids, places, at_most, alone))
    out.sort(key=lambda p: p[:2])
    return [Phrase(-weight, ids, places, at_most, alone) for weight, _, ids, places, at_most, alone in out]


def _none() -> List:
    import numpy as np  # noqa: PLC0415

    return np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.uint8)


def _any_of(lists: Sequence[List]) -> List:
    """The postings of several words as if they were one."""
    import numpy as np  # noqa: PLC0415

    if not lists:
        return _none()
    if len(lists) == 1:
        return lists[0]
    places, inverse = np.unique(np.concatenate([p for p, _ in lists]), return_inverse=True)
    codes = np.concatenate([c.astype(np.int64) for _, c in lists])
    body = np.bincount(inverse, weights=codes >> 1, minlength=len(places)).astype(np.int64)
    head = np.bincount(inverse, weights=codes & 1, minlength=len(places)) > 0
    return places, body * 2 + head


def _in_text(codes: Codes) -> Floats:
    out: Floats = (codes >> 1) + HEAD_WEIGHT * (codes & 1)
    return out


def _in_body(codes: Codes) -> Floats:
    import numpy as np  # noqa: PLC0415

    return (codes >> 1).astype(np.float64)


def _in_exact(codes: Codes) -> Floats:
    import numpy as np  # noqa: PLC0415

    return (codes >> 1).astype(np.float64) * EXACT_WEIGHT
