"""Work that several processes share: texts to embed are claimed for a while, and changes are heard of."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recollect.store.postgres_pool import Pool

POLL_S = 0.2


class ClaimTables:
    """The part of a PostgreSQL store that hands out embedding work and tells of changes."""

    _w: int
    _pool: Pool
    read_only: bool

    if TYPE_CHECKING:

        def _all(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]: ...
        def _run(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> int: ...
        def _written(self, work: Callable[[], Any], *, shared: bool = False) -> Any: ...
        def _number_of(self, name: str, dim: int) -> tuple[int, int]: ...
        def _missing_sql(self) -> str: ...
        @property
        def generation(self) -> int: ...  # noqa: D102

    def claim(self, model: str, limit: int, lease_s: float) -> list[int]:
        """Rows of texts that lack a vector of this model, for this caller alone until the lease runs out.

        A vector that is put, or a refusal, ends a claim; so does `release`. Nothing is left to do when none come.
        """
        rows: list[int] = self._written(lambda: self._take(model, limit, lease_s), shared=True)
        if len(rows) < limit and self._written(lambda: self._fill(model)):
            rows += self._written(lambda: self._take(model, limit - len(rows), lease_s), shared=True)
        return rows

    def _take(self, model: str, limit: int, lease_s: float) -> list[int]:
        number, _ = self._number_of(model, 0)
        mine = f"workspace = {self._w} AND model = {number}"
        found = self._all(
            f"WITH free AS (SELECT content_hash FROM pending WHERE {mine} AND leased_until < clock_timestamp()"
            " ORDER BY position LIMIT %s FOR UPDATE SKIP LOCKED)"
            " UPDATE pending p SET leased_until = clock_timestamp() + make_interval(secs => %s)"
            f" FROM free WHERE p.workspace = {self._w} AND p.model = {number} AND p.content_hash = free.content_hash"
            " RETURNING p.position, p.content_hash,"
            f" (SELECT max(c.row) FROM chunks c WHERE c.workspace = {self._w} AND c.content_hash = p.content_hash)",
            (limit, lease_s),
        )
        gone = [key for _, key, row in found if row is None]
        if gone:
            self._run(f"DELETE FROM pending WHERE {mine} AND content_hash = ANY(%s::text[])", (gone,))
        return [row for _, _, row in sorted(r for r in found if r[2] is not None)]

    def _fill(self, model: str) -> int:
        """Puts what lacks a vector on the list; under the write lock, so that two do not do so at once."""
        number, _ = self._number_of(model, 0)
        return self._run(
            "INSERT INTO pending (workspace, model, content_hash, position)"
            f" SELECT {self._w}, {number}, m.content_hash, row_number() OVER ()"
            f" FROM ({self._missing_sql()}) m ON CONFLICT DO NOTHING",
            {"model": model},
        )

    def release(self, model: str, hashes: Sequence[str]) -> None:
        """Gives claimed texts back before their lease runs out."""

        def work() -> None:
            number, _ = self._number_of(model, 0)
            self._run(
                f"UPDATE pending SET leased_until = '-infinity' WHERE workspace = {self._w} AND model = {number}"
                " AND content_hash = ANY(%s::text[])",
                (list(hashes),),
            )

        self._written(work, shared=True)

    def listen(self, timeout_s: float, *, since: int | None = None) -> int | None:
        """The generation after the next change by anybody, or since that one; None when none came in time.

        A replica cannot listen: there it is looked at from time to time.
        """
        before = self.generation if since is None else since
        if self.read_only:
            return self._watch(before, timeout_s)
        with self._pool.translated():
            db = self._pool.connect()
            try:
                db.execute(f"LISTEN recollect_{self._w}")
                now = self.generation  # what came between the two is not missed
                if now > before:
                    return now
                heard = [int(one.payload) for one in db.notifies(timeout=timeout_s, stop_after=1)]
                return max(heard, default=None)
            finally:
                db.close()

    def _watch(self, before: int, timeout_s: float) -> int | None:
        until = time.monotonic() + timeout_s
        while (now := self.generation) <= before:
            left_s = until - time.monotonic()
            if left_s <= 0:
                return None
            time.sleep(min(POLL_S, left_s))
        return now
