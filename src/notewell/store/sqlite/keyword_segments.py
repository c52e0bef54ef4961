"""The keyword index on disk: the words of each chunk, and segments of postings.

A new chunk is found by its own words. Once enough chunks have gathered they are sealed into a
segment, and small segments are merged, all in the transaction of the write. A row that is dropped
stays in its segment, is noted as dead, and goes when the segment is rewritten.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from notewell.errors import StoreDamagedError
from notewell.store.lazy import LazyModule
from notewell.store.sqlite.connection import Connection
from notewell.store.sqlite.error_translation import REBUILD
from notewell.store.sqlite.sizes import SegmentSizes
from notewell.store.sqlite.varint import checksum, decode
from notewell.store.sqlite.word_numbers import WordNumbers
from notewell.store.values import ChunkWords

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from notewell.store.sqlite import postings
else:
    np, postings = LazyModule("numpy"), LazyModule("notewell.store.sqlite.postings")

# the id of a page is the number of its segment, shifted by these, and the number of the page
_PAGE_BITS = 24


class SegmentGoneError(Exception):
    """A segment was replaced since the snapshot was read."""


class KeywordSegments:
    """Writes, merges and reads segments of postings."""

    def __init__(self, connection: Connection, sizes: SegmentSizes) -> None:
        self._connection, self._db = connection, connection.db
        self._all, self._own = connection.all, connection.own
        self._sizes = sizes
        self._dropped = self._put = 0
        connection.before_commit.append(self._seal_many)
        self.words = WordNumbers(connection)  # which writes its counters after that
        self.take_rows = self.words.take_rows

    def put(self, rows: Sequence[int], words: Sequence[ChunkWords]) -> None:
        """Writes the terms of new rows."""
        self.words.make_room()
        encode = self.words.encode
        self._put += len(rows)
        self._db.executemany(
            "INSERT INTO fields (row, head, body, exact) VALUES (?, ?, ?, ?)",
            [
                (row, encode(w.head, w.terms)[0], *encode(w.body, w.terms))
                for row, w in zip(rows, words, strict=True)
            ],
        )

    def drop(self, rows: Sequence[int]) -> None:
        """Takes rows out of the keyword index."""
        each = [(row,) for row in rows]
        self._db.executemany("INSERT OR IGNORE INTO dead (row) VALUES (?)", each)
        self._db.executemany("DELETE FROM fields WHERE row = ?", each)
        self._dropped += len(each)

    def maintain(self) -> bool:
        """Seals, merges and rewrites what is due at the end of a write; whether many rows were
        dropped since.
        """
        counters = self.words.counters()
        if counters["rows"] - counters["sealed"] >= self._sizes.seal_rows:
            self._seal_waiting(counters)
        if self._dropped < self._sizes.check_dropped:
            return False
        self._dropped = 0
        self._rewrite_dead()
        return True

    def _seal_many(self) -> None:
        """Seals what a transaction with many new rows has left, or every process would do so for
        its first search.
        """
        many, self._put = self._put >= self._sizes.seal_many, 0
        if many:
            self._seal_waiting(self.words.counters())

    def _seal_waiting(self, counters: dict[str, int]) -> None:
        self._seal(counters["sealed"])
        counters["sealed"] = counters["rows"]
        self._merge()

    def _seal(self, after: int) -> None:
        """Makes segments of the rows that are in none."""
        self._db.execute("DELETE FROM dead WHERE row > ?", (after,))
        sql = "SELECT row, head, body, exact FROM fields WHERE row > ? ORDER BY row LIMIT ?"
        while found := self._own(sql, (after, postings.MOST_ROWS)):
            self._write(self.build(found))
            after = found[-1][0]

    def build(self, found: Sequence[tuple[Any, ...]]) -> postings.FullSegment:
        """A segment from rows of `fields`."""
        numbers, counts = self.decode([blob for row in found for blob in row[1:]])
        return postings.build(
            np.asarray([row[0] for row in found], dtype=np.int64), numbers, counts
        )

    def decode(self, blobs: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The numbers of the words in all blobs, one after the other, and how many each blob
        has.
        """
        try:
            return decode(blobs)
        except ValueError as error:
            raise self.damaged(error) from error

    def damaged(self, reason: object) -> StoreDamagedError:
        """The error for a keyword index that cannot be read."""
        return StoreDamagedError(
            f"the keywords of {self._connection.name} are damaged: {reason}", hint=REBUILD
        )

    def _write(self, segment: postings.FullSegment) -> None:
        if not len(segment.rows):
            return
        blobs = postings.to_blobs(segment)
        width = segment.codes.dtype.itemsize
        values = int(segment.rows[0]), len(segment.rows), width, checksum(*blobs), *blobs
        self._db.execute("INSERT INTO keyword_segments VALUES (NULL,?,?,?,?,?,?,?,?)", values)
        number = self._db.last_insert_rowid()
        self._db.executemany(
            "INSERT INTO postings (id, checksum, page) VALUES (?, ?, ?)",
            [
                (number << _PAGE_BITS | n, checksum(page), page)
                for n, page in enumerate(postings.to_pages(segment))
            ],
        )

    def _delete(self, number: int) -> None:
        self._db.execute("DELETE FROM keyword_segments WHERE id = ?", (number,))
        self._db.execute("DELETE FROM postings WHERE id BETWEEN ? AND ?", _page_ids(number))

    def load(self, numbers: Sequence[int]) -> list[postings.StoredSegment]:
        """Segments without their postings."""
        out = []
        for number in numbers:
            sql = (
                "SELECT width, checksum, rows, lengths, keys, ends FROM keyword_segments WHERE "
                "id = ?"
            )
            width, check, *blobs = self._all(sql, (number,))[0]
            if checksum(*blobs) != check or width not in (1, 2, 4):
                raise self.damaged("a segment does not match its checksum")
            try:
                out.append(postings.StoredSegment(number, postings.from_blobs(*blobs), width))
            except ValueError as error:
                raise self.damaged(error) from error
        return out

    def load_full(self, number: int) -> postings.FullSegment:
        """A segment with all of its postings."""
        (stored,) = self.load([number])
        pages = []
        sql = "SELECT page, checksum FROM postings WHERE id BETWEEN ? AND ? ORDER BY id"
        for page, check in self._all(sql, _page_ids(number)):
            if checksum(page) != check:
                raise self.damaged("a page does not match its checksum")
            pages.append(postings.from_page(page, stored.width))
        segment = stored.segment
        places: Any = (
            np.concatenate([p for p, _ in pages]) if pages else np.zeros(0, dtype=np.uint16)
        )
        codes: Any = np.concatenate([c for _, c in pages]) if pages else np.zeros(0, dtype=np.uint8)
        if len(places) != (segment.ends[-1] if len(segment.ends) else 0):
            raise self.damaged("pages are missing")
        return postings.FullSegment(
            segment.rows, segment.lengths, segment.keys, segment.ends, places, codes
        )

    def load_pages(
        self, widths: dict[tuple[int, int], int]
    ) -> dict[tuple[int, int], postings.Page]:
        """Pages of postings by segment and number, given with the bytes of a code in their
        segment.
        """
        pages: dict[tuple[int, int], postings.Page] = {}
        ids = [number << _PAGE_BITS | page for number, page in widths]
        sql = "SELECT id, checksum, page FROM postings WHERE id IN ({})"
        for key, check, blob in self._connection.all_in(sql, ids):
            where = key >> _PAGE_BITS, key & (1 << _PAGE_BITS) - 1
            if checksum(blob) != check:
                raise self.damaged("a page does not match its checksum")
            pages[where] = postings.from_page(blob, widths[where])
        if len(pages) < len(widths):
            raise SegmentGoneError
        return pages

    def _merge(self) -> None:
        """Merges small segments that are next to each other, so that a search reads few."""
        run: list[int] = []
        rows = 0
        for number, count in self._own("SELECT id, count FROM keyword_segments ORDER BY first"):
            if count >= self._sizes.small_rows:
                run, rows = [], 0
                continue
            run.append(number)
            rows += count
            if rows > postings.MOST_ROWS:
                self._rewrite(run[:-1])
                run, rows = [number], count
            elif len(run) == self._sizes.merged:
                self._rewrite(run)
                run, rows = [], 0

    def _rewrite(self, numbers: Sequence[int]) -> int:
        """Makes one segment of several, without their dead rows; returns how many those were."""
        dead = self.dead()
        parts = []
        gone: list[int] = []
        for number in numbers:
            segment = self.load_full(number)
            lost = np.isin(segment.rows, dead)
            gone += segment.rows[lost].tolist()
            parts.append((segment, ~lost))
            self._delete(number)
        self._write(postings.merge(parts))
        self._db.executemany("DELETE FROM dead WHERE row = ?", [(row,) for row in gone])
        return len(gone)

    def dead(self) -> NDArray[np.int64]:
        """The rows that are deleted but still in their segment, in ascending order."""
        return np.asarray(
            [r[0] for r in self._all("SELECT row FROM dead ORDER BY row")], dtype=np.int64
        )

    def _rewrite_dead(self, *, all_of_them: bool = False) -> None:
        """Rewrites the segments with most dead rows until few of those are left, or every segment
        that has any.
        """
        dead = self.dead()
        total = self._own("SELECT coalesce(sum(count), 0) FROM keyword_segments")[0][0]
        most = 0 if all_of_them else max(self._sizes.seal_rows, total // self._sizes.dead_share)
        if len(dead) <= most:
            return
        left = len(dead)
        shares = []
        for number, blob in self._own("SELECT id, rows FROM keyword_segments"):
            rows = postings.ascending(blob)
            if lost := int(np.isin(rows, dead).sum()):
                shares.append((lost / len(rows), number))
        for _, number in sorted(shares, reverse=True):
            left -= self._rewrite([number])
            if left <= most // 2:
                break

    def scrub(self) -> None:
        """Leaves nothing of dropped rows: no posting, and no word that no other row has; inside a
        transaction.
        """
        self.words.flush()
        self.words.forget()
        self._rewrite_dead(all_of_them=True)
        self._db.execute("DELETE FROM dead")
        used: set[int] = set()
        for (keys,) in self._own("SELECT keys FROM keyword_segments"):
            # a key is twice the number of a word, see `postings`
            used.update((postings.ascending(keys) >> 1).tolist())
        used.update(self._unsealed_words().tolist())
        unused = [
            (word,)
            for word, number in self._own("SELECT word, id FROM words")
            if number not in used
        ]
        self._db.executemany("DELETE FROM words WHERE word = ?", unused)
        self._connection.count_change("epoch")

    def _unsealed_words(self) -> NDArray[np.int64]:
        sql = (
            "SELECT head, body, exact FROM fields WHERE row > (SELECT value FROM meta WHERE key "
            "= 'sealed')"
        )
        return self.decode([blob for row in self._all(sql) for blob in row])[0]

    def audit(self) -> list[str]:
        """Where the keyword index does not agree with itself, a sentence each."""
        faults = []
        self.words.flush()
        with self._connection.snapshot():
            for counter, last in (
                ("rows", "max(row) FROM chunks"),
                ("words", "max(id) FROM words"),
            ):
                sql = f"SELECT (SELECT value FROM meta WHERE key = '{counter}') < (SELECT {last})"
                if self._all(sql)[0][0]:
                    faults.append(f"the counter of {counter} is behind")
            dead = self.dead()
            known = np.asarray([r[0] for r in self._all("SELECT id FROM words")], dtype=np.int64)
            covered, agree = 0, True
            for (number,) in self._all("SELECT id FROM keyword_segments ORDER BY first"):
                segment = self.load_full(number)
                alive = postings.merge([(segment, ~np.isin(segment.rows, dead))])
                covered += len(alive.rows)
                sql = (
                    "SELECT row, head, body, exact FROM fields WHERE row BETWEEN ? AND ? ORDER "
                    "BY row"
                )
                found = self._all(sql, (int(segment.rows[0]), int(segment.rows[-1])))
                agree = (
                    agree
                    and alive.same(self.build(found))
                    and bool(np.isin(segment.keys >> 1, known).all())
                )
            agree = agree and bool(np.isin(self._unsealed_words(), known).all())
            sql = (
                "SELECT count(*) FROM fields WHERE row <= (SELECT value FROM meta WHERE key = "
                "'sealed')"
            )
            agree = agree and covered == self._all(sql)[0][0]
        return faults if agree else [*faults, "the keyword table does not agree with itself"]


def _page_ids(number: int) -> tuple[int, int]:
    """The first and the last id that a page of a segment can have."""
    return number << _PAGE_BITS, (number + 1 << _PAGE_BITS) - 1
