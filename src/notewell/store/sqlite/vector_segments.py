"""Vectors on disk: many together in segments, and which chunk has which of them.

A new vector is in its row of `vectors`. When enough of them wait they move into segments, which
load ten times as fast, and their rows keep the slot they went to. The slots of all chunks are kept
as one map for each model (`vector_maps`), and `vector_log` tells what changed after it, so that
nobody who has vectors in memory loads them all again.

    slot  (number of the segment) * (vectors in a segment) + (place in the segment)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from notewell.errors import StoreDamagedError
from notewell.store.lazy import LazyModule
from notewell.store.sqlite.connection import Connection
from notewell.store.sqlite.sizes import SMALL_DIM, SegmentSizes
from notewell.store.sqlite.varint import checksum, pack, unpack

if TYPE_CHECKING:
    import numpy as np

    from notewell.store.sqlite import vector_matrix
else:
    np, vector_matrix = LazyModule("numpy"), LazyModule("notewell.store.sqlite.vector_matrix")

TAIL_SHARE = (
    0.1  # after changes to more than this share of what is in segments everything is read again
)
_LIVE_SHARE = 0.75  # a segment of which less is still in use is dissolved


class VectorSegments:
    """Moves vectors into segments and back, and keeps the maps to them."""

    def __init__(self, connection: Connection, sizes: SegmentSizes) -> None:
        self._connection, self._db = connection, connection.db
        self._all = connection.all
        self._size, self.loose = sizes.vectors, sizes.loose_vectors

    def blobs(self, found: Sequence[tuple[Any, ...]], dim: int) -> list[bytes]:
        """The bytes of vectors that are given by slot, or by their own bytes where they have
        none.
        """
        codes = {
            n: self._segment(n)[0]
            for n in {slot // self._size for slot, _ in found if slot is not None}
        }
        out: list[bytes] = []
        for slot, own in found:
            at = 0 if slot is None else slot % self._size * dim
            out.append(own if slot is None else codes[slot // self._size][at : at + dim])
        return out

    def _segment(self, number: int) -> tuple[bytes, bytes]:
        """The codes and scales of a segment; StoreDamagedError where they do not match their
        checksum.
        """
        found = self._all(
            "SELECT codes, scales, checksum FROM vector_segments WHERE id = ?", (number,)
        )
        if not found or checksum(*found[0][:2]) != found[0][2]:
            message = f"a segment of vectors in {self._connection.name} is damaged"
            raise StoreDamagedError(message, hint="the index rebuilds itself")
        return found[0][0], found[0][1]

    def sizes_of(self, model: int) -> list[tuple[int, int]]:
        """The segments of a model with the number of vectors in each."""
        sql = "SELECT id, length(scales) / 4 FROM vector_segments WHERE model = ? ORDER BY id"
        return [(r[0], r[1]) for r in self._all(sql, (model,))]

    def load(
        self, sizes: Sequence[tuple[int, int]], dim: int, rows: Any, slots: Any
    ) -> vector_matrix.Part:
        """All of these segments as one part, with the rows that have a slot in them."""
        ids = np.array([n for n, _ in sizes])
        starts = np.concatenate([[0], np.cumsum([size for _, size in sizes])])
        codes = np.empty((starts[-1], dim), dtype=np.int8)
        scales = np.empty(starts[-1], dtype=np.float32)
        for n, start, end in zip(ids.tolist(), starts[:-1], starts[1:], strict=True):
            code, scale = self._segment(n)
            codes[start:end] = np.frombuffer(code, dtype=np.int8).reshape(-1, dim)
            scales[start:end] = np.frombuffer(scale, dtype="<f4")
        # From slots in the file to places in `codes`, where only the vectors that exist are.
        which = np.minimum(np.searchsorted(ids, slots // self._size), len(ids) - 1)
        places = starts[which] + slots % self._size
        there = (ids[which] == slots // self._size) & (places < starts[which + 1])
        rows, places = rows[there], places[there]
        straight = len(places) == len(codes) and bool((places == np.arange(len(places))).all())
        return vector_matrix.Part(rows, codes, scales, None if straight else places)

    def last_entry(self) -> int:
        """The last entry of the log, whether or not it is still there."""
        return max(
            int(self._all("SELECT coalesce(max(seq), 0) FROM vector_log")[0][0]), self._deleted()
        )

    def _deleted(self) -> int:
        """The last entry that was deleted from the log because every map has seen it."""
        return int(self._connection.values("vector_log")[0])

    def changed_since(self, seq: int) -> list[int] | None:
        """Rows whose vector may have changed after an entry of the log; None where that may be all
        of them.
        """
        if seq < self._deleted():
            return None
        rows = [
            r[0] for r in self._all("SELECT DISTINCT row FROM vector_log WHERE seq > ?", (seq,))
        ]
        return None if 0 in rows else rows

    def vectors_of(
        self, model: str, rows: Sequence[int]
    ) -> list[tuple[int, int, int | None, bytes]]:
        """Row, dimensions, slot and own bytes of the vectors of these chunks, in ascending order of
        rows.
        """
        sql = (  # CROSS keeps SQLite from reading all vectors for a few chunks
            "SELECT c.row, m.dim, v.slot, v.vector FROM chunks c CROSS JOIN models m ON m.name = ?"
            " CROSS JOIN vectors v ON v.model = m.id AND v.content_hash = c.content_hash"
            " WHERE c.row IN ({})"
        )
        found: list[Any] = self._connection.all_in(sql, rows, before=(model,))
        return sorted(found)

    def read_map(self, model: int) -> tuple[int, Any, Any] | None:
        """The map of a model: as of which entry of the log, rows and their slots; None where it is
        damaged.
        """
        found = self._all(
            "SELECT rows, slots, checksum, seq FROM vector_maps WHERE model = ?", (model,)
        )
        if not found or checksum(*found[0][:2]) != found[0][2]:
            return None
        steps = unpack(found[0][1])
        # Undo the zigzag code of `_write_map`: the lowest bit is the sign.
        return found[0][3], np.cumsum(unpack(found[0][0])), np.cumsum(steps >> 1 ^ -(steps & 1))

    def make_map(self, model: int) -> tuple[Any, Any]:
        """Rows and slots of a model from the tables, which takes long where there are many."""
        same = "v.model = ? AND v.content_hash = c.content_hash WHERE v.slot IS NOT NULL"
        sql = f"SELECT c.row, v.slot FROM chunks c CROSS JOIN vectors v ON {same} ORDER BY c.row"
        pairs = np.array(self._all(sql, (model,)), dtype=np.int64).reshape(-1, 2)
        return pairs[:, 0].copy(), pairs[:, 1].copy()

    def pack(self, model: int, name: str, dim: int, *, settled: bool = False) -> bool:
        """Moves waiting vectors into segments and writes a map that is far behind; inside a
        transaction.

        Where a sync has `settled`, all that fills a segment, because every process that starts
        reads what waits.
        """
        sealed = dim >= SMALL_DIM and self._seal(model, dim, self._size if settled else self.loose)
        known = self._all("SELECT seq, length(rows) FROM vector_maps WHERE model = ?", (model,))
        seq, rows = known[0] if known else (-1, 0)
        if known and self.last_entry() - seq <= (
            self._size if settled else max(2 * self.loose, TAIL_SHARE * rows)
        ):
            return sealed
        if not self._all("SELECT 1 FROM vector_segments WHERE model = ? LIMIT 1", (model,)):
            return sealed
        self._write_map(model, name)
        return True

    def _seal(self, model: int, dim: int, least: int) -> bool:
        """Moves waiting vectors, if there are so many, into segments; what does not fill one goes
        on waiting.
        """
        where = "FROM vectors WHERE model = ? AND slot IS NULL"
        if self._all(f"SELECT count(*) {where}", (model,))[0][0] < least:
            return False
        size = self._size
        sql = f"SELECT vector, row, content_hash {where} ORDER BY row LIMIT {size}"
        sealed = False
        while len(found := self._all(sql, (model,))) == size:
            codes = np.frombuffer(b"".join(r[0] for r in found), dtype=np.int8).reshape(size, dim)
            blobs = codes.tobytes(), vector_matrix.scales_of(codes).astype("<f4").tobytes()
            self._db.execute(
                "INSERT INTO vector_segments (model, codes, scales, checksum) VALUES (?, ?, ?, ?)",
                (model, *blobs, checksum(*blobs)),
            )
            first = self._db.last_insert_rowid() * size
            # Deleted and inserted: SQLite does not join pages of which an UPDATE leaves little.
            self._db.executemany(
                "DELETE FROM vectors WHERE row = ?", [(row,) for _, row, _ in found]
            )
            self._db.executemany(
                (
                    "INSERT INTO vectors (row, content_hash, model, vector, slot) VALUES (?, ?, ?, "
                    "x'', ?)"
                ),
                [(row, key, model, first + i) for i, (_, row, key) in enumerate(found)],
            )
            sealed = True
        return sealed

    def _write_map(self, model: int, name: str) -> None:
        """Writes the current map of a model: the old one with what changed since, or a new one."""
        last = self.last_entry()
        known = self.read_map(model)
        changed = self.changed_since(known[0]) if known is not None else None
        if known is None or changed is None or len(changed) > len(known[1]):
            rows, slots = self.make_map(model)
        else:
            keep = ~np.isin(known[1], np.asarray(changed, dtype=np.int64))
            found = [
                (row, slot)
                for row, _, slot, _ in self.vectors_of(name, changed)
                if slot is not None
            ]
            pairs = np.array(found, dtype=np.int64).reshape(-1, 2)
            rows, slots = (
                np.concatenate([known[1][keep], pairs[:, 0]]),
                np.concatenate([known[2][keep], pairs[:, 1]]),
            )
            order = np.argsort(rows, kind="stable")
            rows, slots = rows[order], slots[order]
        # Both mostly go up by one, so differences fit into a byte. A slot may also be lower than
        # the last one: the zigzag code puts the sign into the lowest bit (0, -1, 1, -2 become 0, 1,
        # 2, 3).
        steps = np.diff(slots, prepend=0)
        blobs = pack(np.diff(rows, prepend=0)), pack(steps << 1 ^ steps >> 63)
        values = model, last, checksum(*blobs), *blobs
        self._db.execute("INSERT OR REPLACE INTO vector_maps VALUES (?, ?, ?, ?, ?)", values)

    def trim_log(self) -> None:
        """Deletes entries of the log that every map has seen, or a long log where there is no
        map.
        """
        seen = self._all("SELECT min(seq) FROM vector_maps")[0][0]
        last = self.last_entry()
        if seen is None:
            seen = last if last - self._deleted() > 4 * self.loose else 0
        if seen > self._deleted():
            self._db.execute("DELETE FROM vector_log WHERE seq <= ?", (seen,))
            self._db.execute("UPDATE meta SET value = ? WHERE key = 'vector_log'", (seen,))

    def dissolve(self, live_share: float = _LIVE_SHARE) -> None:
        """Takes vectors out of segments of which less than this share is still in use; inside a
        transaction.
        """
        models = self._all(
            "SELECT DISTINCT m.id, m.dim FROM models m JOIN vector_segments s ON s.model = m.id"
        )
        for model, dim in models:
            sql = "SELECT row, slot FROM vectors WHERE model = ? AND slot IS NOT NULL ORDER BY slot"
            rows, slots = np.array(self._all(sql, (model,)), dtype=np.int64).reshape(-1, 2).T
            for n, size in self.sizes_of(model):
                start, end = np.searchsorted(slots, (n * self._size, (n + 1) * self._size))
                if end - start >= live_share * size:
                    continue
                blobs = self.blobs([(int(slot), b"") for slot in slots[start:end]], dim)
                self._db.executemany(
                    "UPDATE vectors SET slot = NULL, vector = ? WHERE row = ?",
                    list(zip(blobs, rows[start:end].tolist(), strict=True)),
                )
                self._db.execute("DELETE FROM vector_segments WHERE id = ?", (n,))
                self._db.execute("DELETE FROM vector_maps WHERE model = ?", (model,))

    def invalidate(self) -> None:
        """Makes everybody who has vectors in memory load them again; inside a transaction."""
        self._db.execute("DELETE FROM vector_maps")
        self._db.execute("INSERT INTO vector_log (row) VALUES (0)")

    def audit(self) -> list[str]:
        """Where the segments do not agree with the rest, a sentence each."""
        try:
            for (number,) in self._all("SELECT id FROM vector_segments"):
                self._segment(number)
        except StoreDamagedError as error:
            return [str(error)]
        count = self._all(
            "SELECT count(*) FROM vectors v"
            " LEFT JOIN vector_segments s ON s.id = v.slot / ?1 AND s.model = v.model"
            " WHERE v.slot IS NOT NULL AND v.slot % ?1 >= coalesce(length(s.scales) / 4, 0)",
            (self._size,),
        )[0][0]
        return [f"{count} vectors are in no segment"] if count else []
