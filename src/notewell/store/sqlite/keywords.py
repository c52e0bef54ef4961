"""Finding chunks by their words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

from notewell.store.lazy import LazyModule
from notewell.store.rows import in_parts
from notewell.store.sqlite.chunks import ChunkReader
from notewell.store.sqlite.connection import Connection
from notewell.store.sqlite.keyword_segments import KeywordSegments, SegmentGoneError
from notewell.store.sqlite.read_cache import AT_ONCE, ReadCache, Terms
from notewell.store.sqlite.sizes import SegmentSizes
from notewell.store.sqlite.varint import numbers_in
from notewell.store.values import FieldTerms, Placed, Scored, ScoredRows, Sought, TermCounts
from notewell.text.bm25 import HEAD_WEIGHT
from notewell.types import Filters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from notewell.store.sqlite import keyword_snapshot, postings, ranking
    from notewell.store.sqlite.keyword_snapshot import KeywordSnapshot
    from notewell.store.sqlite.postings import Page
    from notewell.store.sqlite.ranking import Floats, Places
else:
    np, postings = LazyModule("numpy"), LazyModule("notewell.store.sqlite.postings")
    keyword_snapshot = LazyModule("notewell.store.sqlite.keyword_snapshot")
    ranking = LazyModule("notewell.store.sqlite.ranking")

Answer = TypeVar("Answer")
_TRIES = 5
_FEW_WORDS = 2000
_MOST_PAGES = 4096
_BUILT = 1024  # rows of which a part is built; more at once take more memory and no less time


class Keywords:
    """The part of a SQLite store that finds chunks by their words."""

    def __init__(
        self,
        connection: Connection,
        chunks: ChunkReader,
        segments: KeywordSegments,
        sizes: SegmentSizes,
    ) -> None:
        self._connection = connection
        self._all, self._all_in = connection.all, connection.all_in
        self._chunks, self._segments, self._sizes = chunks, segments, sizes
        self._known: KeywordSnapshot | None = None
        self._pages: dict[tuple[int, int], Page] = {}
        self._spelled: tuple[object, Mapping[int, str]] = (None, {})
        self._asked: object = None  # the state of the index when words were last asked for
        connection.after_rollback.append(self.forget)
        self.audit = segments.audit

    def forget(self) -> None:
        """Forgets what is in memory; after a rollback or a scrub it may not be in the file."""
        self._known, self._pages = None, {}

    def scrub(self) -> None:
        """Leaves nothing of dropped rows, in memory or in the file; inside a transaction."""
        self.forget()
        self._segments.scrub()

    def lexical(self, sought: Sought, limit: int, filters: Filters) -> Sequence[Scored]:
        if not sought:
            return []
        return self._chunks.first(
            self._ask(lambda snapshot: self._ranked(snapshot, sought, limit, filters)), limit
        )

    def _ask(self, question: Callable[[KeywordSnapshot], Answer]) -> Answer:
        """An answer from the current snapshot, which is read again where a segment was replaced in
        between.
        """
        for _ in range(_TRIES):
            try:
                return question(self._snapshot())
            except SegmentGoneError:
                self._known = None
        raise self._segments.damaged("pages are missing")

    def _snapshot(self) -> KeywordSnapshot:
        """The keyword index as it is now; only what changed since the last one is read."""
        known, connection = self._known, self._connection
        if (
            known is not None
            and not connection.is_writing()
            and (known.stamp,) == connection.values("chunks")
        ):
            return known
        with connection.snapshot():
            self._segments.words.flush()
            # only this thread may see these
            uncommitted = connection.is_writing() and connection.chunks_changed
            (stamp,) = connection.values("chunks")
            known = self._known
            if known is not None and known.stamp == stamp and not uncommitted:
                return known
            if known is not None and known.stamp > stamp:  # another thread saw a later state
                known = None
            snapshot = self._read_snapshot(stamp, known)
            if not uncommitted:
                self._known = snapshot
        return snapshot

    def _read_snapshot(self, stamp: int, known: KeywordSnapshot | None) -> KeywordSnapshot:
        last, sealed = self._connection.values("rows", "sealed")
        dead = self._segments.dead()
        have = {one.number: one for one in known.segments if one.number} if known else {}
        numbers = [r[0] for r in self._all("SELECT id FROM keyword_segments ORDER BY first")]
        have |= {
            one.number: one for one in self._segments.load([n for n in numbers if n not in have])
        }
        unsealed: list[postings.FullSegment] = []
        after = sealed
        if known is not None and known.sealed == sealed:
            unsealed = [
                one.segment
                for one in known.segments
                if isinstance(one.segment, postings.FullSegment)
            ]
            after = known.last
        rows = self._all(
            "SELECT row, head, body, exact FROM fields WHERE row > ? ORDER BY row", (after,)
        )
        most = postings.MOST_ROWS
        unsealed += [
            self._segments.build(rows[i : i + _BUILT]) for i in range(0, len(rows), _BUILT)
        ]
        if (
            len(unsealed) > self._sizes.unsealed_parts
            and sum(len(s.rows) for s in unsealed) <= most
        ):
            unsealed = [postings.merge([(s, ~np.isin(s.rows, dead)) for s in unsealed])]
        segments = [have[n] for n in numbers]
        segments += [
            postings.StoredSegment(0, segment, segment.codes.dtype.itemsize) for segment in unsealed
        ]
        return keyword_snapshot.KeywordSnapshot(
            stamp, segments, dead=dead, last=last, sealed=sealed, fetch=self._fetch
        )

    def _fetch(self, wanted: Sequence[tuple[int, int, int]]) -> dict[tuple[int, int], Page]:
        """Pages of postings, from memory or from the file."""
        widths = {(number, page): width for number, page, width in wanted}
        pages = {where: self._pages[where] for where in widths if where in self._pages}
        widths = {where: width for where, width in widths.items() if where not in pages}
        loaded = self._segments.load_pages(widths) if widths else {}
        if len(self._pages) + len(loaded) > _MOST_PAGES:
            self._pages = {}
        self._pages |= loaded
        return pages | loaded

    def _numbers(self, words: Iterable[str], cache: ReadCache | None = None) -> dict[str, int]:
        """The numbers of those words that are in the index."""
        self._segments.words.flush()
        wanted = list(dict.fromkeys(words))
        sql = "SELECT word, id FROM words WHERE word IN ({})"
        cache = cache or self._connection.cache()
        if cache is None or len(wanted) > AT_ONCE:
            return dict(self._all_in(sql, wanted))
        known = cache.words
        if todo := [word for word in wanted if word not in known]:
            found: dict[str, int | None] = dict.fromkeys(todo)
            for part in in_parts(todo):
                found.update(self._all(sql.format(",".join("?" * len(part))), part))
            known |= found  # only when all are known: other threads read it too
        return {word: number for word in wanted if (number := known[word]) is not None}

    def _numbers_beginning(self, prefixes: Sequence[str]) -> dict[str, list[int]]:
        """The numbers of the words that begin with each prefix."""
        self._segments.words.flush()
        sql = "SELECT id FROM words WHERE word >= ? AND word < ?"
        return {
            p: [r[0] for r in self._all(sql, (p, p + "\U0010ffff"))]
            for p in dict.fromkeys(prefixes)
        }

    def _ranked(
        self, snapshot: KeywordSnapshot, sought: Sought, limit: int, filters: Filters
    ) -> ScoredRows:
        allowed = self._chunks.allowed(filters)
        passes = None if allowed is None else snapshot.mask(filters, allowed.rows)
        numbers = self._numbers(
            [*sought.words, *sought.exact, *(w for pair in sought.phrases for w in pair)]
        )
        begun = self._numbers_beginning(sought.prefixes)
        # A key is twice the number of a word, and one more for its exact form (see `postings`).
        keys = [2 * n for n in numbers.values()] + [2 * n for some in begun.values() for n in some]
        keys += [2 * numbers[w] + 1 for w in sought.exact if w in numbers]
        lists = snapshot.lists(keys)
        parts = ranking.parts_of(sought, lists, snapshot.count, numbers, begun)
        phrases = ranking.phrases_of(sought, lists, snapshot.count, numbers)

        def neighbours(places: Places) -> Callable[[int, int], Floats]:
            firsts = [phrase.words[0] for phrase in phrases]
            return self._neighbours(snapshot.rows[places].tolist(), firsts, in_head=sought.in_head)

        among = ranking.Among(snapshot.norms, neighbours, passes)
        if sought.every:
            places, scores = ranking.all_of(parts, phrases, among)
        else:
            places, scores = ranking.best(
                parts, phrases, limit, among, few=self._sizes.few_postings
            )
        rows = snapshot.rows[places]
        order = np.lexsort((rows, -scores))
        return ScoredRows(rows.take(order), scores.take(order))

    def _neighbours(
        self, rows: Sequence[int], firsts: Sequence[int], *, in_head: bool
    ) -> Callable[[int, int], Floats]:
        """A function that counts in these rows how often one word, of the first of all pairs, comes
        before another.
        """
        found = self._numbers_of(rows, self._connection.cache())
        none = np.zeros(0, dtype=np.int32)
        fields = [found.get(row, (none, 0, 0, 0)) for row in rows]
        flat = np.concatenate([none, *(one[0] for one in fields)])
        counts = np.array([one[1:] for one in fields], dtype=np.int64).ravel()
        field = np.repeat(np.arange(len(counts)), counts)
        begins = np.zeros(max(int(flat.max(initial=0)), *firsts) + 1, dtype=bool)
        begins[firsts] = True
        # no phrase reaches into the next field
        at = np.flatnonzero(begins.take(flat[:-1]) & (field[:-1] == field[1:]))
        before, after, owner = flat.take(at), flat.take(at + 1), field.take(at)

        def count(one: int, other: int) -> Floats:
            mine = owner[(before == one) & (after == other)]
            by_field = np.bincount(mine, minlength=len(counts)).reshape(-1, 3)
            out: Floats = by_field[:, 1].astype(np.float64)
            return out + HEAD_WEIGHT * (by_field[:, 0] > 0) if in_head else out

        return count

    def _fields_of(self, rows: Sequence[int]) -> dict[int, tuple[bytes, bytes, bytes]]:
        found = self._all_in("SELECT row, head, body, exact FROM fields WHERE row IN ({})", rows)
        return {r[0]: (r[1], r[2], r[3]) for r in found}

    def chunk_terms(self, rows: Sequence[int]) -> dict[int, FieldTerms]:
        found = self._fields_of(rows)
        # of a note that was edited; without numpy, which takes longer to load than all of it
        if len(found) == 1:
            ((row, blobs),) = found.items()
            try:
                lists = [numbers_in(blob) for blob in blobs]
            except ValueError as error:
                raise self._segments.damaged(error) from error
            return {row: FieldTerms(*map(tuple, self._spelled_out(lists)))}
        numbers, counts = self._segments.decode(
            [blob for fields in found.values() for blob in fields]
        )
        (flat,) = self._spelled_out([numbers.tolist()])
        ends = [0, *counts.cumsum().tolist()]
        fields = [tuple(flat[start:end]) for start, end in pairwise(ends)]
        return {row: FieldTerms(*fields[3 * i : 3 * i + 3]) for i, row in enumerate(found)}

    def _spelled_out(self, lists: Sequence[Sequence[int]]) -> list[list[str]]:
        words = self._words({number for one in lists for number in one})
        try:
            return [[words[number] for number in one] for one in lists]
        except KeyError as error:
            raise self._segments.damaged("a passage has a word that is not there") from error

    def _words(self, wanted: Set[int]) -> Mapping[int, str]:
        """Words by number: the few that are asked for, and all of them where more is asked of the
        same index.
        """
        self._segments.words.flush()
        stamp = self._all(
            "SELECT key, value FROM meta WHERE key IN ('words', 'epoch') ORDER BY key"
        )
        if self._spelled[0] == stamp:
            return self._spelled[1]
        first, self._asked = self._asked != stamp, stamp
        if first and len(wanted) <= _FEW_WORDS:
            sql = "SELECT id, word FROM words WHERE id IN (SELECT value FROM json_each(?))"
            return dict(self._all(sql, (json.dumps(sorted(wanted)),)))
        self._spelled = (
            stamp,
            {number: word for word, number in self._all("SELECT word, id FROM words")},
        )
        return self._spelled[1]

    def term_places(self, rows: Sequence[int], sought: Sought) -> Placed:
        cache = self._connection.cache()
        numbers = self._numbers([*sought.words, *sought.exact], cache)
        terms = [(numbers[word], n) for n, word in enumerate(sought.words) if word in numbers]
        begun = self._numbers_beginning(sought.prefixes)
        for n, prefix in enumerate(sought.prefixes, start=len(sought.words)):
            terms += [(number, n) for number in begun[prefix]]
        many = len(sought.words) + len(sought.prefixes)  # exact forms are numbered after those
        exact = {numbers[word] for word in sought.exact if word in numbers}
        terms += [(number, many + n) for n, number in enumerate(exact)]
        found = self._numbers_of(rows, cache)
        flat = (
            np.concatenate([one[0] for one in found.values()])
            if found
            else np.zeros(0, dtype=np.int32)
        )
        counts = np.array([one[1:] for one in found.values()], dtype=np.int64).ravel()
        wanted = np.zeros(int(flat.max(initial=0)) + 1, dtype=bool)
        wanted[[number for number, _ in terms if number < len(wanted)]] = True
        hits = np.flatnonzero(wanted.take(flat))
        ends = np.cumsum(counts)
        field = np.searchsorted(ends, hits, side="right")
        inside = hits - (ends - counts)[field]
        at, term = _terms_of(flat[hits], terms)
        # a chunk has three fields: head, body, exact
        chunk, kind, place = (field[at] // 3, field[at] % 3, inside[at])
        head, body, form = kind == 0, (kind == 1) & (term < many), (kind == 2) & (term >= many)
        each = np.sort(chunk[form] * (many + len(exact)) + term[form])
        first = np.ones(len(each), dtype=bool)  # np.unique would load numpy.ma
        first[1:] = each[1:] != each[:-1]
        once = each[first] // max(1, many + len(exact))
        in_body = np.array((chunk[body], term[body], place[body]))
        in_head = np.array((chunk[head], term[head]))[:, term[head] < many]
        return Placed(
            list(found), counts[1::3], in_body, in_head, np.bincount(once, minlength=len(found))
        )

    def _numbers_of(self, rows: Sequence[int], cache: ReadCache | None) -> dict[int, Terms]:
        known = {} if cache is None or len(rows) > AT_ONCE else cache.terms
        at_hand = {
            row: terms
            for row, terms in zip(rows, map(known.get, rows), strict=True)
            if terms is not None
        }
        if todo := [row for row in rows if row not in at_hand] if len(at_hand) < len(rows) else ():
            found = self._fields_of(todo)
            numbers, counts = self._segments.decode(
                [blob for fields in found.values() for blob in fields]
            )
            numbers, sizes, end = numbers.astype("i4"), counts.tolist(), 0
            for n, row in enumerate(found):
                head, body, exact = sizes[3 * n : 3 * n + 3]
                size = head + body + exact
                known[row] = (numbers[end : end + size], head, body, exact)
                end += size
            return {row: known[row] for row in rows if row in known}
        return at_hand

    def term_counts(self, terms: Iterable[str]) -> TermCounts:
        wanted = list(dict.fromkeys(terms))
        numbers = self._numbers(wanted)

        def count(snapshot: KeywordSnapshot) -> TermCounts:
            found = dict(
                zip(numbers, snapshot.found_in([2 * n for n in numbers.values()]), strict=True)
            )
            return TermCounts(
                snapshot.count, snapshot.mean_length, {word: found.get(word, 0) for word in wanted}
            )

        return self._ask(count)

    def paths_with(self, terms: Sequence[str]) -> set[str]:
        counts = {term: count for term, count in self.term_counts(terms).found_in.items() if count}
        if not counts:
            return set()
        rarest = min(counts, key=lambda term: (counts[term], term))
        key = 2 * self._numbers([rarest])[rarest]
        rows: list[int] = self._ask(
            lambda snapshot: snapshot.rows[snapshot.lists([key])[key][0]].tolist()
        )
        sql = (
            "SELECT DISTINCT d.path FROM chunks c JOIN documents d ON d.id = c.document WHERE "
            "c.row IN ({})"
        )
        return {r[0] for r in self._all_in(sql, rows)}


def _terms_of(
    numbers: NDArray[Any], terms: Sequence[tuple[int, int]]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Which of some numbers belong to terms, and to which; a word with a sought prefix may belong
    to several.
    """
    known, names = np.asarray(sorted(terms), dtype=np.int64).reshape(-1, 2).T
    first = np.searchsorted(known, numbers)
    often = np.searchsorted(known, numbers, side="right") - first
    nth = np.arange(int(often.sum())) - np.repeat(np.cumsum(often) - often, often)
    return np.repeat(np.arange(len(numbers)), often), names[np.repeat(first, often) + nth]
