"""The keyword index inside the SQLite file: words by number, the words of each passage, and segments of postings.

What was just written is looked up in the passages' own words; once enough of it has gathered it is sealed into a
segment, and small segments are merged, all in the transaction of the write. A row that is dropped stays in its segment,
is noted as dead, and goes when the segment is written again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from recollect.errors import StoreDamagedError
from recollect.store.numbers import code, decoded
from recollect.store.recent import Recent
from recollect.store.rows import in_parts
from recollect.text.words import analysed, pieces_of

if TYPE_CHECKING:
    import apsw
    import numpy as np
    from numpy.typing import NDArray

    from recollect.store.lexicon import Lexicon, Page
    from recollect.store.postings import Whole

    Read = Callable[..., list[tuple[Any, ...]]]

SEAL_ROWS = 4096
_SMALL_ROWS = 1 << 15
_MERGED = 16
_FRESH_PARTS = 4
_DEAD_SHARE = 20
_LOOK_EVERY = 512
_CODES = 300_000
_CODED = 200_000
_LONG_PIECE = 48
_PAGES = 4096
_BITS = 24  # of a page's number in its key


class GoneError(Exception):
    """A segment was replaced since the lexicon was read."""


class Coded(dict[str, bytes]):
    """What a piece of text between two spaces is in the index: the numbers of its terms, in order.

    Pieces are remembered, and in `forms` the numbers of their exact forms: the same ones come again and again, and for
    them a text need not be looked at word by word.
    """

    def __init__(self, code_of: Callable[[str], bytes]) -> None:
        super().__init__()
        self.forms: dict[str, bytes] = {}
        self._code_of = code_of
        self._passing: list[str] = []

    def clear(self) -> None:
        """Forgets all of it: the numbers may be others now."""
        super().clear()
        self.forms.clear()

    def __missing__(self, piece: str) -> bytes:
        stems, forms = analysed(piece)
        found = self._numbers_of(stems)
        self.forms[piece] = self._numbers_of(forms)
        self[piece] = found
        if len(piece) > _LONG_PIECE:
            self._passing.append(piece)
        return found

    def _numbers_of(self, terms: str) -> bytes:
        if " " in terms:
            return b"".join(map(self._code_of, terms.split()))
        return self._code_of(terms) if terms else b""

    def fields(self, text: str) -> tuple[bytes, bytes]:
        """The numbers of all terms of a text in order, and those of its exact forms."""
        pieces = pieces_of(text)
        if len(pieces) < 2:
            stems = self[pieces[0]] if pieces else b""
            found = stems, self.forms[pieces[0]] if pieces else b""
        else:
            pick = itemgetter(*pieces)  # faster than to ask for one after the other
            found = b"".join(pick(self)), b"".join(pick(self.forms))
        for piece in self._passing:  # an address, or a sentence of a script without spaces: once is all
            self.pop(piece, None)
            self.forms.pop(piece, None)
        self._passing = []
        if len(self) > _CODED:
            self.clear()
        return found


class SegmentTables:
    """The part of a SQLite store that keeps words and postings."""

    path: str
    _db: apsw.Connection
    _moved: bool

    if TYPE_CHECKING:

        def _all(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]: ...
        def _mine(self) -> bool: ...
        def _moment(self) -> Recent | None: ...
        def _sweep_traits(self, *, all_of_them: bool = False) -> None: ...
        def _snapshot(self) -> AbstractContextManager[Read]: ...

    def __init__(self) -> None:
        self._known: Lexicon | None = None
        self._pages: dict[tuple[int, int], Page] = {}
        self._codes: dict[str, bytes] = {}
        self._coded = Coded(self._code_of)
        self._counts: dict[str, int] | None = None
        self._new: list[tuple[str, int]] = []
        self._epoch: Any = None
        self._dropped = 0

    def _forget_words(self) -> None:
        """After a rollback or a scrub: numbers that were given out may not be what is in the file."""
        self._known = None
        self._pages = {}
        self._codes = {}
        self._coded.clear()
        self._counts = None
        self._new = []

    def _own(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """What the writing connection sees."""
        found: list[tuple[Any, ...]] = self._db.execute(sql, values).fetchall()
        return found

    # Writing

    def _take_rows(self, count: int) -> range:
        """Numbers for new rows; none is ever used again, so that what is known of a row stays true."""
        counts = self._counted()
        last = counts["rows"]
        counts["rows"] = last + count
        return range(last + 1, last + 1 + count)

    def _counted(self) -> dict[str, int]:
        """The numbers given out so far, read once a transaction and written at its end."""
        if self._counts is None:
            found = self._own("SELECT key, value FROM meta WHERE key IN ('rows', 'words', 'sealed', 'epoch')")
            self._counts = {key: int(value) for key, value in found}
            if self._counts["epoch"] != self._epoch:  # words were dropped, perhaps by another process
                self._codes, self._epoch = {}, self._counts["epoch"]
                self._coded.clear()
        return self._counts

    def _put_terms(self, rows: Sequence[int], texts: Sequence[tuple[str, str]]) -> None:
        """Keeps the words of new rows, given as what stands above each and what it says."""
        self._counted()
        if len(self._codes) > _CODES:
            self._flush_words()
            self._codes = {}
            self._coded.clear()
        coded = self._coded.fields
        self._db.executemany(
            "INSERT INTO fields (row, head, body, exact) VALUES (?, ?, ?, ?)",
            [(row, coded(head)[0], *coded(body)) for row, (head, body) in zip(rows, texts, strict=True)],
        )

    def _code_of(self, term: str) -> bytes:
        """The number of a term as it is kept; a new term gets one."""
        known = self._codes.get(term)
        if known is None:
            counts = self._counted()
            found: tuple[Any, ...] = ()  # where every word that there is is known, this one is new
            if len(self._codes) < counts["words"]:
                found = self._db.execute("SELECT id FROM words WHERE word = ?", (term,)).fetchone() or ()
            if not found:
                counts["words"] += 1
                found = (counts["words"],)
                self._new.append((term, found[0]))
            known = self._codes[term] = code(found[0])
        return known

    def _flush_own(self) -> None:
        """The same before a reading in the midst of a transaction, if it is this thread's own."""
        if self._mine():
            self._flush_words()

    def _flush_words(self) -> None:
        """Writes what got a number in this transaction; many words at once, in order, go to few pages."""
        if self._counts is not None and self._mine():
            self._new.sort()
            self._db.executemany("INSERT INTO words (word, id) VALUES (?, ?)", self._new)
            self._new = []
            self._db.executemany(
                "UPDATE meta SET value = ?1 WHERE key = ?2 AND value != ?1",
                [(self._counts[key], key) for key in ("rows", "words", "sealed")],
            )
            self._counts = None

    def _drop_terms(self, rows: Sequence[int]) -> None:
        """Takes rows out of the keyword index."""
        each = [(row,) for row in rows]
        self._db.executemany("INSERT OR IGNORE INTO dead (row) VALUES (?)", each)
        self._db.executemany("DELETE FROM fields WHERE row = ?", each)
        self._dropped += len(each)

    def _tend(self) -> None:
        """Seals what has gathered, merges what is small, and writes anew what is mostly dead; at the end of a write."""
        counts = self._counted()
        if counts["rows"] - counts["sealed"] >= SEAL_ROWS:
            self._seal(counts["sealed"])
            counts["sealed"] = counts["rows"]
            self._merge()
        if self._dropped >= _LOOK_EVERY:
            self._dropped = 0
            self._bury()
            self._sweep_traits()

    def _seal(self, after: int) -> None:
        from recollect.store.postings import MOST_ROWS  # noqa: PLC0415

        self._db.execute("DELETE FROM dead WHERE row > ?", (after,))
        sql = "SELECT row, head, body, exact FROM fields WHERE row > ? ORDER BY row LIMIT ?"
        while found := self._own(sql, (after, MOST_ROWS)):
            self._write_segment(self._built(found))
            after = found[-1][0]

    def _built(self, found: Sequence[tuple[Any, ...]]) -> Whole:
        """A segment of rows and their words as they are kept."""
        import numpy as np  # noqa: PLC0415

        from recollect.store.postings import built  # noqa: PLC0415

        numbers, counts = self._decoded([blob for row in found for blob in row[1:]])
        return built(np.asarray([row[0] for row in found], dtype=np.int64), numbers, counts)

    def _damaged_words(self, why: object) -> StoreDamagedError:
        return StoreDamagedError(
            f"the keywords of {self.path} are damaged: {why}", hint="recollect index --force builds it anew"
        )

    def _write_segment(self, whole: Whole) -> None:
        from recollect.store.postings import checksum, to_blobs, to_pages  # noqa: PLC0415

        if not len(whole.rows):
            return
        blobs = to_blobs(whole)
        width = whole.codes.dtype.itemsize
        self._db.execute(
            "INSERT INTO lists (first, count, width, checksum, rows, lengths, keys, ends) VALUES (?,?,?,?,?,?,?,?)",
            (int(whole.rows[0]), len(whole.rows), width, checksum(*blobs), *blobs),
        )
        number = self._db.last_insert_rowid()
        self._db.executemany(
            "INSERT INTO postings (id, checksum, page) VALUES (?, ?, ?)",
            [(number << _BITS | n, checksum(page), page) for n, page in enumerate(to_pages(whole))],
        )

    def _drop_segment(self, number: int) -> None:
        self._db.execute("DELETE FROM lists WHERE id = ?", (number,))
        self._db.execute("DELETE FROM postings WHERE id BETWEEN ? AND ?", _pages_of(number))

    def _whole(self, number: int, read: Read) -> Whole:
        """A segment with all of its postings."""
        import numpy as np  # noqa: PLC0415

        from recollect.store.postings import Whole, checksum, from_page  # noqa: PLC0415

        (held,) = self._held([number], read)
        pages = []
        for page, check in read("SELECT page, checksum FROM postings WHERE id BETWEEN ? AND ? ORDER BY id",
                                _pages_of(number)):  # fmt: skip
            if checksum(page) != check:
                raise self._damaged_words("a page is not what was written")
            pages.append(from_page(page, held.width))
        segment = held.segment
        places: Any = np.concatenate([p for p, _ in pages]) if pages else np.zeros(0, dtype=np.uint16)
        codes: Any = np.concatenate([c for _, c in pages]) if pages else np.zeros(0, dtype=np.uint8)
        if len(places) != (segment.ends[-1] if len(segment.ends) else 0):
            raise self._damaged_words("pages are missing")
        return Whole(segment.rows, segment.lengths, segment.keys, segment.ends, places, codes)

    def _merge(self) -> None:
        """Merges segments that lie side by side and are small, so that a search meets few."""
        from recollect.store.postings import MOST_ROWS  # noqa: PLC0415

        run: list[int] = []
        rows = 0
        for number, count in self._own("SELECT id, count FROM lists ORDER BY first"):
            if count >= _SMALL_ROWS:
                run, rows = [], 0
                continue
            run.append(number)
            rows += count
            if rows > MOST_ROWS:
                self._rewrite(run[:-1])
                run, rows = [number], count
            elif len(run) == _MERGED:
                self._rewrite(run)
                run, rows = [], 0

    def _rewrite(self, numbers: Sequence[int]) -> int:
        """Makes one segment of some, without the rows of them that are dead; says how many those were."""
        import numpy as np  # noqa: PLC0415

        from recollect.store.postings import merged  # noqa: PLC0415

        read = self._own
        dead = np.asarray([r[0] for r in read("SELECT row FROM dead")], dtype=np.int64)
        parts = []
        gone: list[int] = []
        for number in numbers:
            whole = self._whole(number, read)
            lost = np.isin(whole.rows, dead)
            gone += whole.rows[lost].tolist()
            parts.append((whole, ~lost))
            self._drop_segment(number)
        self._write_segment(merged(parts))
        self._db.executemany("DELETE FROM dead WHERE row = ?", [(row,) for row in gone])
        return len(gone)

    def _bury(self, *, all_of_it: bool = False) -> None:
        """Writes segments anew that have many dead rows, or `all_of_it`, until few of them are left."""
        import numpy as np  # noqa: PLC0415

        from recollect.store.postings import rows_of  # noqa: PLC0415

        read = self._own
        dead = np.asarray([r[0] for r in read("SELECT row FROM dead ORDER BY row")], dtype=np.int64)
        total = read("SELECT coalesce(sum(count), 0) FROM lists")[0][0]
        most = 0 if all_of_it else max(SEAL_ROWS, total // _DEAD_SHARE)
        if len(dead) <= most:
            return
        left = len(dead)
        shares = []
        for number, rows in read("SELECT id, rows FROM lists"):
            mine = rows_of(rows)
            lost = int(np.isin(mine, dead).sum())
            if lost:
                shares.append((lost / len(mine), number))
        for _, number in sorted(shares, reverse=True):
            left -= self._rewrite([number])
            if left <= most // 2:
                break

    def _scrub_words(self) -> None:
        """Leaves nothing of dropped rows: no posting, no word that no other row has."""
        from recollect.store.postings import keys_of  # noqa: PLC0415

        self._flush_words()
        self._forget_words()
        self._bury(all_of_it=True)
        self._db.execute("DELETE FROM dead")
        read = self._own
        used: set[int] = set()
        for (keys,) in read("SELECT keys FROM lists"):
            used.update((keys_of(keys) >> 1).tolist())
        fresh = read("SELECT head, body, exact FROM fields WHERE row > (SELECT value FROM meta WHERE key = 'sealed')")
        used.update(self._decoded([blob for row in fresh for blob in row])[0].tolist())
        idle = [(word,) for word, number in read("SELECT word, id FROM words") if number not in used]
        self._db.executemany("DELETE FROM words WHERE word = ?", idle)
        self._db.execute("UPDATE meta SET value = value + 1 WHERE key = 'epoch'")

    # Reading

    def _lexicon(self) -> Lexicon:
        """The keyword index as it is now; of a known one only what changed is read."""
        known = self._known
        if known is not None and not self._mine():
            moment = self._moment()
            found = moment.stamp if moment else self._all("SELECT key, value FROM meta WHERE key = 'chunks'")
            if ("chunks", known.stamp) in found:
                return known
        with self._snapshot() as read:
            self._flush_own()
            own = self._mine() and self._moved  # what this thread has not committed is for its eyes only
            stamp = read("SELECT value FROM meta WHERE key = 'chunks'")[0][0]
            known = self._known
            if known is not None and known.stamp == stamp and not own:
                return known
            if known is not None and known.stamp > stamp:  # another thread saw a later moment
                known = None
            made = self._read_lexicon(stamp, known, read)
            if not own:
                self._known = made
        return made

    def _read_lexicon(self, stamp: int, known: Lexicon | None, read: Read) -> Lexicon:
        import numpy as np  # noqa: PLC0415

        from recollect.store.lexicon import Held, Lexicon  # noqa: PLC0415
        from recollect.store.postings import MOST_ROWS, Whole, merged  # noqa: PLC0415

        found = _pairs(read("SELECT key, value FROM meta WHERE key IN ('rows', 'sealed')"))
        dead = np.asarray([r[0] for r in read("SELECT row FROM dead ORDER BY row")], dtype=np.int64)
        have = {one.number: one for one in known.held if one.number} if known else {}
        numbers = [r[0] for r in read("SELECT id FROM lists ORDER BY first")]
        have |= {one.number: one for one in self._held([n for n in numbers if n not in have], read)}
        held = [have[n] for n in numbers]
        fresh: list[Whole] = []
        after = found["sealed"]
        if known is not None and known.sealed == found["sealed"]:
            fresh = [one.segment for one in known.held if isinstance(one.segment, Whole)]
            after = known.last
        rows = read("SELECT row, head, body, exact FROM fields WHERE row > ? ORDER BY row", (after,))
        fresh += [self._built(rows[i : i + MOST_ROWS]) for i in range(0, len(rows), MOST_ROWS)]
        if len(fresh) > _FRESH_PARTS and sum(len(w.rows) for w in fresh) <= MOST_ROWS:
            fresh = [merged([(w, ~np.isin(w.rows, dead)) for w in fresh])]
        held += [Held(0, whole, whole.codes.dtype.itemsize) for whole in fresh]
        return Lexicon(stamp, held, dead=dead, last=found["rows"], sealed=found["sealed"], fetch=self._fetched)

    def _held(self, numbers: Sequence[int], read: Read) -> list[Any]:
        from recollect.store.lexicon import Held  # noqa: PLC0415
        from recollect.store.postings import checksum, from_blobs  # noqa: PLC0415

        out = []
        for number in numbers:
            width, check, *blobs = read(
                "SELECT width, checksum, rows, lengths, keys, ends FROM lists WHERE id = ?", (number,)
            )[0]
            if checksum(*blobs) != check or width not in (1, 2, 4):
                raise self._damaged_words("a segment is not what was written")
            try:
                out.append(Held(number, from_blobs(*blobs), width))
            except ValueError as error:
                raise self._damaged_words(error) from error
        return out

    def _fetched(self, wanted: Sequence[tuple[int, int, int]]) -> dict[tuple[int, int], Page]:
        """Pages of postings, from memory or from the file."""
        from recollect.store.postings import checksum, from_page  # noqa: PLC0415

        out: dict[tuple[int, int], Page] = {}
        widths: dict[tuple[int, int], int] = {}
        for number, page, width in wanted:
            known = self._pages.get((number, page))
            if known is not None:
                out[number, page] = known
            else:
                widths[number, page] = width
        made: dict[tuple[int, int], Page] = {}
        for some in in_parts([number << _BITS | page for number, page in widths]):
            marks = ",".join("?" * len(some))
            for key, check, blob in self._all(f"SELECT id, checksum, page FROM postings WHERE id IN ({marks})", some):
                where = key >> _BITS, key & (1 << _BITS) - 1
                if checksum(blob) != check:
                    raise self._damaged_words("a page is not what was written")
                made[where] = from_page(blob, widths[where])
        if len(made) < len(widths):
            raise GoneError
        if len(self._pages) + len(made) > _PAGES:
            self._pages = {}
        self._pages |= made
        return out | made

    def _decoded(self, blobs: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        try:
            return decoded(blobs)
        except ValueError as error:
            raise self._damaged_words(error) from error

    def _audit_words(self) -> list[str]:
        """What of the keyword index does not agree with the passages."""
        import numpy as np  # noqa: PLC0415

        from recollect.store.postings import merged  # noqa: PLC0415

        faults = []
        self._flush_own()
        with self._snapshot() as read:
            for sql, sentence in (
                ("chunks WHERE row NOT IN (SELECT row FROM fields)", "passages have no keywords"),
                ("fields WHERE row NOT IN (SELECT row FROM chunks)", "keyword rows have no passage"),
            ):
                if count := read(f"SELECT count(*) FROM {sql}")[0][0]:
                    faults.append(f"{count} {sentence}")
            for table, column in (("chunks", "row"), ("words", "id")):
                counter = "rows" if table == "chunks" else table
                last = f"SELECT (SELECT value FROM meta WHERE key = '{counter}') < (SELECT max({column}) FROM {table})"
                if read(last)[0][0]:
                    faults.append(f"the number of the last of the {table} is behind")
            dead = np.asarray([r[0] for r in read("SELECT row FROM dead")], dtype=np.int64)
            sealed = read("SELECT value FROM meta WHERE key = 'sealed'")[0][0]
            known = np.asarray([r[0] for r in read("SELECT id FROM words")], dtype=np.int64)
            covered = 0
            agree = True
            for (number,) in read("SELECT id FROM lists ORDER BY first"):
                whole = self._whole(number, read)
                alive = merged([(whole, ~np.isin(whole.rows, dead))])
                covered += len(alive.rows)
                sql = "SELECT row, head, body, exact FROM fields WHERE row BETWEEN ? AND ? ORDER BY row"
                found = read(sql, (int(whole.rows[0]), int(whole.rows[-1])))
                agree = agree and alive.same(self._built(found))
                agree = agree and bool(np.isin(whole.keys >> 1, known).all())
            fresh = read("SELECT head, body, exact FROM fields WHERE row > ?", (sealed,))
            agree = agree and bool(np.isin(self._decoded([b for row in fresh for b in row])[0], known).all())
            agree = agree and covered == read("SELECT count(*) FROM fields WHERE row <= ?", (sealed,))[0][0]
        return faults if agree else [*faults, "the keyword table does not agree with itself"]


def _pairs(rows: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    return {row[0]: row[1] for row in rows}


def _pages_of(number: int) -> tuple[int, int]:
    """The first and the last key that a page of a segment can have."""
    return number << _BITS, (number + 1 << _BITS) - 1
