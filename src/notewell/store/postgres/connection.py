"""The connection that the parts of a store share: the statements, transactions and locks of one
workspace.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from notewell.errors import StoreDamagedError, StoreError
from notewell.store.postgres.moment import GONE, MOMENT, Moment, Scope, moment_of
from notewell.store.postgres.pool import Pool
from notewell.store.postgres.schema import LOCKS, PARTITIONED, PARTITIONS

if TYPE_CHECKING:
    import psycopg

    from notewell.store.postgres.pool import RawConnection

# nobody waits for the answer of a write, and lock_timeout bounds its wait for other writers
WRITE_TIMEOUT_S = 300
TRIES = 4
FIRST_ANALYZE = 200
# The tables that grow together with chunks, and with vectors.
_GROWING = {"chunks": ("documents", "chunks", "postings"), "vectors": ("vectors", "windows")}

Values = Sequence[Any] | Mapping[str, Any]
Rows = list[tuple[Any, ...]]
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


@dataclass(slots=True)
class _Transaction:
    """The open transaction of a thread, and what changed in it."""

    raw: RawConnection
    changed: bool = False  # chunks or vectors
    moved: bool = False  # chunks, too
    # documents that are written together, by path
    waiting: dict[str, Any] = field(default_factory=dict)
    write: Callable[[dict[str, Any]], None] | None = None


_scope: ContextVar[Scope | None] = ContextVar("scope", default=None)


class Connection:
    """The statements, transactions and locks of one workspace; every part of the store holds it.

    `$w` in a statement becomes the number of the workspace. It is a literal, not a parameter, so
    that the server plans for one partition.
    """

    def __init__(self, pool: Pool, *, read_only: bool) -> None:
        self.pool = pool
        self.name = pool.name
        self.close = pool.close
        self.read_only = read_only
        self.workspace = 0
        self._thread = threading.local()
        self._grown: dict[str, int] = {}
        self._analyze_at: dict[str, int] = {}

    @property
    def _open(self) -> _Transaction | None:
        return getattr(self._thread, "open", None)

    def is_writing(self) -> bool:
        """Whether this thread is inside `writing()`."""
        return self._open is not None

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """What is read ahead or of the workspace itself is kept until it ends; a scope inside
        another one joins it.

        Statements see a moment each: a transaction would cost two more round trips.
        """
        outer = _scope.get()
        if outer is not None and outer.owner is self:
            yield
            return
        token = _scope.set(Scope(self))
        try:
            yield
        finally:
            _scope.reset(token)

    def scope(self) -> Scope | None:
        """What is kept for this search, unless it is writing: then all is read again."""
        scope = _scope.get()
        return scope if scope is not None and scope.owner is self and self._open is None else None

    def moment(self) -> Moment:
        """What the workspace knows of itself, read once for a search."""
        scope = self.scope()
        if scope is not None and scope.moment is not None:
            return scope.moment
        found = self.all(MOMENT)
        moment = moment_of(found[0]) if found else GONE
        if scope is not None:
            scope.moment, scope.moved, scope.counted = moment, moment.moved, True
        return moment

    def _changed(self) -> None:
        scope = _scope.get()
        if scope is not None and scope.owner is self:
            scope.clear()

    def all(self, sql: str, values: Values = (), *, binary: bool = False) -> Rows:
        """The rows that a statement returns, `binary` if they hold many bytes."""
        return self._read(
            lambda raw: _rows(raw.execute(self._numbered(sql), values or None, binary=binary))
        )

    def all_of_each(self, *statements: tuple[str, Mapping[str, Any]]) -> list[Rows]:
        """The rows of several statements, in one round trip, as `binary` ones."""

        def read(raw: RawConnection) -> list[Rows]:
            with raw.pipeline():
                cursors = [
                    raw.execute(self._numbered(sql), values, binary=True)
                    for sql, values in statements
                ]
                return [cursor.fetchall() for cursor in cursors]

        return self._read(read)

    def run(self, sql: str, values: Values = ()) -> int:
        """Changes rows inside a transaction, and returns how many."""
        return self._writer().execute(self._numbered(sql), values or None).rowcount

    def copy(self, name: str, columns: Mapping[str, str], rows: Iterable[tuple[Any, ...]]) -> str:
        """Sends rows by COPY to a table of this connection alone, which is emptied first; returns
        its name.

        The server refuses COPY into a table with row-level security, so they are inserted from
        there.
        """
        raw, table = self._writer(), f"incoming_{name}"
        made = ", ".join(f"{column} {kind}" for column, kind in columns.items())
        raw.execute(
            f"CREATE TEMPORARY TABLE IF NOT EXISTS {table} ({made}) ON COMMIT DELETE ROWS; "
            f"TRUNCATE {table}"
        )
        with raw.cursor().copy(f"COPY {table} FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(list(columns.values()))
            for row in rows:
                copy.write_row(row)
        return table

    def _writer(self) -> RawConnection:
        if self._open is None:
            raise AssertionError("a write outside of writing()")
        self._write_waiting(self._open)
        return self._open.raw

    def put_off(self, path: str, change: Any, write: Callable[[dict[str, Any]], None]) -> None:
        """Keeps a document that others may join, inside a transaction; any read, other write or the
        commit ends it.
        """
        if self._open is None:
            raise AssertionError("a write outside of writing()")
        self._open.waiting[path] = change
        self._open.write = write

    def waiting(self) -> Mapping[str, Any]:
        """The documents of this thread's transaction that are not written yet, by path."""
        return self._open.waiting if self._open is not None else {}

    def _write_waiting(self, done: _Transaction) -> None:
        if done.waiting and done.write is not None:
            waiting, done.waiting = done.waiting, {}
            done.write(waiting)

    def _numbered(self, sql: str) -> str:
        return sql.replace("$w", str(self.workspace))

    def _read(self, work: Callable[[RawConnection], Result]) -> Result:
        """Reads on this thread's transaction or a lent connection; if that was lost, once more on a
        new one.
        """
        if self._open is not None:
            self._write_waiting(self._open)
            return work(self._open.raw)
        with self.pool.translated():
            try:
                with self.pool.use() as raw:
                    return work(raw)
            except self.pool.errors as error:
                if not self.pool.is_lost(error) and not self.pool.is_conflict(error):
                    raise
                self.pool.drop_idle()
            with self.pool.use() as raw:
                return work(raw)

    @contextlib.contextmanager
    def writing(self, *, shared: bool = False) -> Iterator[None]:
        """Locks the workspace; `shared` transactions run side by side, and wait only for those that
        are not.
        """
        if self._open is not None:
            yield
            return
        with self.pool.translated(), contextlib.ExitStack() as stack:
            raw = self._begin(stack, "_shared" if shared else "")
            self._thread.open = _Transaction(raw)
            try:
                yield
                self._commit(self._thread.open)
            except BaseException:
                with contextlib.suppress(Exception):
                    raw.execute("ROLLBACK")
                raise
            finally:
                self._thread.open = None
                self._changed()
        self._analyze_what_grew()

    def _begin(self, stack: contextlib.ExitStack, mode: str) -> RawConnection:
        """A connection inside a transaction that has the lock; an idle one that broke is replaced
        by a new one.
        """
        for last in (False, True):
            raw = stack.enter_context(self.pool.use())
            try:
                with raw.pipeline():
                    raw.execute("BEGIN")
                    raw.execute(f"SET LOCAL statement_timeout = {WRITE_TIMEOUT_S * 1000}")
                    raw.execute(f"SELECT pg_advisory_xact_lock{mode}({LOCKS}, {self.workspace})")
                break
            except self.pool.errors as error:
                if last or not self.pool.is_lost(error):
                    raise
                stack.pop_all().close()
                self.pool.drop_idle()
        return raw

    def _commit(self, done: _Transaction) -> None:
        """Counts the change last, right before the commit, so that nobody holds that row for
        long.
        """
        self._write_waiting(done)
        with done.raw.pipeline():
            if done.changed:
                done.raw.execute(
                    "WITH now AS (UPDATE state SET generation = generation + 1,"
                    f" moved = moved + {int(done.moved)}"
                    f" WHERE workspace = {self.workspace} RETURNING 1)"
                    f" SELECT pg_notify('notewell_{self.workspace}', '') FROM now"
                )
            done.raw.execute("COMMIT")

    def count_change(self, *, chunks: bool = False) -> None:
        """Notes that the open transaction changed vectors, or `chunks`; the commit counts it and
        notifies listeners.
        """
        if self._open is not None:
            self._open.changed = True
            self._open.moved = self._open.moved or chunks

    def write(self, work: Callable[[], Result], *, shared: bool = False) -> Result:
        """Does a piece of writing as one transaction, again if others were writing the same
        rows.
        """
        if self._open is not None:
            return work()
        for attempt in range(TRIES):
            try:
                with self.writing(shared=shared):
                    return work()
            except StoreError as error:
                if attempt == TRIES - 1 or not self.pool.is_conflict(error.__cause__):
                    raise
                time.sleep(0.01 * 2**attempt)
        raise AssertionError  # the last attempt returns or raises

    @contextlib.contextmanager
    def borrowed(self) -> Iterator[RawConnection]:
        """A connection outside of this thread's transaction."""
        with self.pool.translated(), self.pool.use() as raw:
            yield raw

    def lag_s(self) -> float | None:
        """A replica that has replayed all it received is up to date only as long as it still
        receives.
        """
        found = self.all(
            "SELECT CASE WHEN NOT pg_is_in_recovery() THEN NULL"
            " WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn()"
            " AND EXISTS (SELECT 1 FROM pg_stat_wal_receiver) THEN 0"
            " ELSE extract(epoch FROM now()"
            " - coalesce(pg_last_xact_replay_timestamp(), pg_postmaster_start_time())) END::float8"
        )
        return None if found[0][0] is None else float(found[0][0])

    def state(self, column: str) -> int:
        """A counter of the workspace: `generation` of chunks and vectors, `moved` of chunks
        alone.
        """
        found = self.all(f"SELECT {column} FROM state WHERE workspace = $w")
        if not found:
            raise StoreDamagedError(
                f"the workspace is gone from {self.name}", hint="open it again to rebuild it"
            )
        return int(found[0][0])

    @contextlib.contextmanager
    def reading_all(self) -> Iterator[None]:
        """One transaction without a time limit, for reads that look at every row."""
        if self._open is not None:
            yield
            return
        with self.borrowed() as raw, raw.transaction():
            raw.execute("SET LOCAL statement_timeout = 0")
            self._thread.open = _Transaction(raw)
            try:
                yield
            finally:
                self._thread.open = None

    @contextlib.contextmanager
    def locked(self, number: int, wait_s: float) -> Iterator[bool]:
        """Yields whether an advisory lock of the workspace was taken in time; it goes with its
        connection.
        """
        lock = f"lock({LOCKS + number}, {self.workspace})"
        self._changed()  # what was read before the lock may have been changed by whoever had it
        self.all("SELECT 1")  # drops connections that broke while idle, which would cost the lock
        with self.borrowed() as raw:
            with self.pool.translated():
                until, delay_s = time.monotonic() + wait_s, 0.002
                while not (
                    taken := bool(_rows(raw.execute(f"SELECT pg_try_advisory_{lock}"))[0][0])
                ):
                    if (left_s := until - time.monotonic()) <= 0:
                        break
                    time.sleep(min(delay_s, left_s))
                    delay_s = min(0.05, delay_s * 2)
            try:
                yield taken
            finally:
                if taken:
                    try:
                        raw.execute(f"SELECT pg_advisory_un{lock}")
                    except self.pool.errors:
                        raw.close()  # which frees the lock

    @contextlib.contextmanager
    def maintenance(self) -> Iterator[RawConnection]:
        """A connection for VACUUM and for building indexes: outside of a transaction, with time and
        memory.
        """
        with self.borrowed() as raw:
            raw.execute("SET statement_timeout = 0; SET maintenance_work_mem = '1GB'")
            try:
                yield raw
            finally:
                raw.execute("RESET statement_timeout; RESET maintenance_work_mem")

    def maintain(
        self, verb: str, tables: Sequence[str], *, heard: Callable[[str], object] | None = None
    ) -> bool:
        """Runs VACUUM or ANALYZE on the workspace's partitions of tables; returns False if the role
        may not.

        `heard` gets what the server reports of each table.
        """
        may = "SELECT pg_has_role(relowner, 'MEMBER') OR has_table_privilege(oid, 'MAINTAIN')"
        if not self.all(f"{may} FROM pg_class WHERE oid = 'vectors'::regclass")[0][0]:
            return False
        partitions = list(map(self.partition, tables))
        with self.maintenance() as raw:

            def hear(notice: psycopg.errors.Diagnostic) -> None:
                if heard is not None:
                    heard(f"{notice.message_primary}")

            raw.add_notice_handler(hear)
            try:
                for partition in partitions:
                    raw.execute(f"{verb} {partition}")
            finally:
                raw.remove_notice_handler(hear)
        return True

    def vacuum(
        self, tables: Sequence[str] = PARTITIONED, *, options: str = "ANALYZE, SKIP_LOCKED"
    ) -> bool:
        """Frees the space of deleted rows and updates the statistics; returns False if the role may
        not.
        """
        return self.maintain(f"VACUUM ({options})", tables)

    def partition(self, table: str) -> str:
        """The partition of a table that is for this workspace; the table where it has none."""
        if table not in PARTITIONED:
            return table
        own = f"satisfies_hash_partition('{table}'::regclass, {PARTITIONS}, n, $w)"
        found = self.all(f"SELECT n FROM generate_series(0, {PARTITIONS - 1}) n WHERE {own}")
        return f"{table}_{found[0][0]}"

    def grew(self, table: str, rows: int) -> None:
        """Notes that rows were added to `chunks` or `vectors`."""
        self._grown[table] = self._grown.get(table, 0) + rows

    def _analyze_what_grew(self) -> None:
        """Analyzes tables that grew a lot: the server does so too late, and plans as if a new
        workspace were empty.
        """
        for grown, tables in _GROWING.items():
            rows = self._grown.get(grown, 0)
            if rows >= self._analyze_at.get(grown, FIRST_ANALYZE):
                self._analyze_at[grown] = 4 * rows
                with contextlib.suppress(StoreError):
                    self.maintain("ANALYZE (SKIP_LOCKED)", tables)


class Part(Protocol):
    """A part of the store."""

    _db: Connection


PartType = TypeVar("PartType", bound=Part)
Method = Callable[Concatenate[PartType, Arguments], Result]


def writes(method: Method[PartType, Arguments, Result]) -> Method[PartType, Arguments, Result]:
    """Makes a method one transaction, tried again if others were writing the same rows."""

    @functools.wraps(method)
    def wrapped(self: PartType, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        return self._db.write(lambda: method(self, *args, **kwargs))

    return wrapped


def unnest(types: str, rows: Sequence[tuple[Any, ...]]) -> tuple[str, list[list[Any]]]:
    """Rows as a source in SQL, with one array parameter for each of the column types."""
    columns = types.split()
    sql = f"unnest({', '.join(f'%s::{name}[]' for name in columns)})"
    return sql, [[row[n] for row in rows] for n in range(len(columns))]


def _rows(cursor: psycopg.Cursor[Any]) -> Rows:
    return cursor.fetchall() if cursor.description else []
