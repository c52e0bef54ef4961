"""The index in PostgreSQL, for many workspaces, agents and writers: the same port as the SQLite store.

Every statement names its workspace by number, and row-level security holds that number to the role that is connected.
Documents are replaced under one lock a workspace, taken at the begin of the transaction; vectors come in beside it.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from recollect.errors import StoreDamagedError, StoreError
from recollect.store.postgres_claims import ClaimTables
from recollect.store.postgres_documents import DocumentTables
from recollect.store.postgres_history import PostgresHistory
from recollect.store.postgres_kin import PostgresKin
from recollect.store.postgres_lexical import LexicalTables
from recollect.store.postgres_ops import OperatedTables
from recollect.store.postgres_pool import Pool, pause
from recollect.store.postgres_reads import ChunkTables
from recollect.store.postgres_schema import LOCKS, PARTITIONED, PARTITIONS, SETTING, TABLES, migrate
from recollect.store.postgres_upkeep import UpkeepTables
from recollect.store.postgres_vectors import VectorTables

if TYPE_CHECKING:
    import psycopg

TIMEOUT_S = 30.0
WRITE_TIMEOUT_S = 300  # nobody waits for an answer; how long it waits for others is bounded by itself
TRIES = 4
Result = TypeVar("Result")


class PostgresStore(
    DocumentTables, ChunkTables, LexicalTables, VectorTables, PostgresKin, PostgresHistory, ClaimTables, UpkeepTables,
    OperatedTables,
):  # fmt: skip
    """One workspace of one agent in a database that others share."""

    def __init__(
        self, url: str, *, workspace: str, agent: str = "", read_only: bool = False, timeout_s: float = TIMEOUT_S
    ) -> None:
        self._pool = Pool(url, read_only=read_only, timeout_s=timeout_s)
        self.name = self._pool.name
        self.file = None
        self.read_only = read_only
        self.workspace, self.agent = workspace, agent
        self._local = threading.local()
        self._missed = {}
        self._grown: dict[str, int] = {}
        self._look_at: dict[str, int] = {}
        self._reset()
        try:
            with self._pool.translated(), self._pool.use() as db:
                migrate(db, name=self.name, read_only=read_only)
                self._pool.learn_vectors(db)
                self._w = self._number(db)
                self._pool.enter(db, self._w)
        except BaseException:
            self._pool.close()
            raise

    def _number(self, db: psycopg.Connection[Any]) -> int:
        """The number of this workspace, made where it is new; the role that makes it owns it."""
        find = "SELECT id FROM workspaces WHERE name = %s AND agent = %s"
        found = db.execute(find, (self.workspace, self.agent)).fetchone()
        if not found and self.read_only:
            raise StoreError(f"{self.name} has no workspace {self.workspace!r} for this role", hint="recollect index")
        if not found:
            with db.transaction():
                made = db.execute(
                    "INSERT INTO workspaces (name, agent) VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING id",
                    (self.workspace, self.agent),
                ).fetchone()
                if made:
                    db.execute("SELECT set_config(%s, %s, true)", (SETTING, str(made[0])))
                    db.execute("INSERT INTO state (workspace) VALUES (%s)", made)
            found = made or db.execute(find, (self.workspace, self.agent)).fetchone()
        if not found:
            raise StoreError(
                f"the workspace {self.workspace!r} of {self.name} belongs to another role",
                hint="ask its owner to admit this role, or choose another name",
            )
        return int(found[0])

    def admit(self, role: str, *, here: bool = True) -> None:
        """Lets another role read and write this workspace, or else only make workspaces of its own; its owner may."""
        from psycopg import sql  # noqa: PLC0415

        with self._pool.translated(), self._pool.use() as db, db.transaction():
            if here:
                members = "array_append(array_remove(members, %s::name), %s::name)"
                done = db.execute(f"UPDATE workspaces SET members = {members} WHERE id = %s", (role, role, self._w))
                if not done.rowcount:
                    raise StoreError(f"only the owner of {self.workspace!r} can admit a role", hint="ask the owner")
            owns = "SELECT pg_has_role(nspowner, 'MEMBER') FROM pg_namespace WHERE nspname = 'recollect'"
            if not (found := db.execute(owns).fetchone()) or not found[0]:
                return  # the tables are somebody else's, who has to let the role in too
            who = sql.Identifier(role)
            db.execute(sql.SQL("GRANT USAGE ON SCHEMA recollect TO {}").format(who))
            db.execute(sql.SQL("GRANT SELECT ON versions TO {}").format(who))
            for table in (*TABLES, "workspaces"):
                grant = "GRANT SELECT, INSERT, UPDATE, DELETE ON {} TO {}"
                db.execute(sql.SQL(grant).format(sql.Identifier(table), who))
            if db.info.server_version >= 170000:  # to have the server look at tables that grew
                for table in PARTITIONED:
                    for name in (table, *(f"{table}_{n}" for n in range(PARTITIONS))):
                        db.execute(sql.SQL("GRANT MAINTAIN ON {} TO {}").format(sql.Identifier(name), who))

    def expel(self, role: str) -> None:
        """Takes this workspace from a role again."""
        sql = "UPDATE workspaces SET members = array_remove(members, %s::name) WHERE id = %s"
        with self._pool.translated(), self._pool.use() as db:
            if not db.execute(sql, (role, self._w)).rowcount:
                raise StoreError(f"only the owner of {self.workspace!r} can expel a role", hint="ask the owner")

    def swapped(self) -> bool:
        """A server is never another one under its name."""
        return False

    def close(self) -> None:
        """Gives every connection back."""
        self._pool.close()

    def abandon(self) -> None:
        """The same as close: there is no file that could be left behind."""
        self.close()

    def _reset(self) -> None:
        self._local.db = None
        self._local.changed = self._local.moved = False

    @property
    def _now(self) -> psycopg.Connection[Any] | None:
        """The connection that this thread's transaction is on."""
        return getattr(self._local, "db", None)

    @contextlib.contextmanager
    def writing(self, *, shared: bool = False) -> Iterator[None]:
        """One transaction that takes the workspace's write lock at once; nested uses join it."""
        if self._now is not None:
            yield
            return
        with self._pool.translated(), contextlib.ExitStack() as stack:
            db = self._begun(stack, "_shared" if shared else "")
            self._local.db, self._local.changed, self._local.moved = db, False, False
            try:
                yield
                self._commit(db)
            except BaseException:
                with contextlib.suppress(Exception):
                    db.execute("ROLLBACK")
                raise
            finally:
                self._reset()
        self._freshen()

    def _begun(self, stack: contextlib.ExitStack, mode: str) -> psycopg.Connection[Any]:
        """A connection with a transaction and the lock; one that broke while it lay idle is no reason to fail."""
        for last in (False, True):
            db = stack.enter_context(self._pool.use())
            try:
                with db.pipeline():
                    db.execute("BEGIN")
                    db.execute(f"SET LOCAL statement_timeout = {WRITE_TIMEOUT_S * 1000}")
                    db.execute(f"SELECT pg_advisory_xact_lock{mode}({LOCKS}, {self._w})")
                break
            except self._pool.errors as error:
                if last or not self._pool.lost(error):
                    raise
                stack.pop_all().close()
                self._pool.forget_idle()
        return db

    def _commit(self, db: psycopg.Connection[Any]) -> None:
        """Counts the change as the last thing before the commit: that row is held by nobody for long."""
        with db.pipeline():
            if self._local.changed or self._local.moved:
                db.execute(
                    "WITH now AS (UPDATE state SET generation = generation + 1,"
                    f" moved = moved + {int(self._local.moved)} WHERE workspace = {self._w} RETURNING generation)"
                    f" SELECT pg_notify('recollect_{self._w}', generation::text) FROM now"
                )
            db.execute("COMMIT")

    @contextlib.contextmanager
    def _patient(self) -> Iterator[None]:
        """Reads that may take long, as those that look at everything do."""
        if self._now is not None:
            yield
            return
        with self._pool.translated(), self._pool.use() as db, db.transaction():
            db.execute("SET LOCAL statement_timeout = 0")
            self._local.db = db
            try:
                yield
            finally:
                self._reset()

    def _written(self, work: Callable[[], Result], *, shared: bool = False) -> Result:
        """Does a piece of writing in a transaction, again where others were at the same rows."""
        if self._now is not None:
            return work()
        for attempt in range(TRIES):
            try:
                with self.writing(shared=shared):
                    return work()
            except StoreError as error:
                if attempt == TRIES - 1 or error.__cause__ is None or not self._pool.retried(error.__cause__):
                    raise
                pause(attempt)
        raise AssertionError  # the last attempt returns or raises

    def _run(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> int:
        """Changes rows inside a transaction and says how many."""
        db = self._now
        if db is None:
            raise AssertionError("a write outside of writing()")
        return db.execute(sql, values or None).rowcount

    def _all(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a question."""
        return self._read(lambda db: self._fetch(db, sql, values))

    def _read(self, work: Callable[[psycopg.Connection[Any]], Result]) -> Result:
        """What is asked on a connection; where that was lost, it is asked once more on a new one."""
        if self._now is not None:
            return work(self._now)
        with self._pool.translated():
            try:
                with self._pool.use() as db:
                    return work(db)
            except self._pool.errors as error:
                if not self._pool.lost(error) and not self._pool.retried(error):
                    raise
                self._pool.forget_idle()
            with self._pool.use() as db:
                return work(db)

    def _together(self, *asked: tuple[str, Mapping[str, Any]]) -> list[list[tuple[Any, ...]]]:
        """Several questions that do not hang on one another, in one round trip."""

        def work(db: psycopg.Connection[Any]) -> list[list[tuple[Any, ...]]]:
            with db.pipeline():
                cursors = [db.execute(sql, values) for sql, values in asked]
                return [cursor.fetchall() for cursor in cursors]

        return self._read(work)

    @staticmethod
    def _fetch(db: psycopg.Connection[Any], sql: str, values: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
        cursor = db.execute(sql, values or None)
        return cursor.fetchall() if cursor.description else []

    def reading(self) -> contextlib.AbstractContextManager[None]:
        """Every statement has its own moment: a transaction would cost two more ways to the server and back."""
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def exclusive(self, wait_s: float) -> Iterator[bool]:
        """Yields whether the index lock of the workspace was taken within `wait_s`; it goes with its connection."""
        lock, key = "advisory_lock", f"({LOCKS + 1}, {self._w})"
        self._all("SELECT 1")  # what broke while it lay idle is thrown away by this, and does not cost the lock
        with self._pool.translated(), self._pool.use() as db:
            with self._pool.translated():
                taken = bool(self._fetch(db, f"SELECT pg_try_{lock}{key}", ())[0][0])
                until, delay_s = time.monotonic() + wait_s, 0.002
                while not taken and time.monotonic() < until:
                    time.sleep(min(delay_s, max(0.0, until - time.monotonic())))
                    delay_s = min(0.05, delay_s * 2)
                    taken = bool(self._fetch(db, f"SELECT pg_try_{lock}{key}", ())[0][0])
            try:
                yield taken
            finally:
                if taken:
                    try:
                        self._fetch(db, f"SELECT pg_advisory_unlock{key}", ())
                    except self._pool.errors:
                        db.close()  # the lock goes with its connection

    @contextlib.contextmanager
    def embedding(self, wait_s: float) -> Iterator[bool]:  # noqa: ARG002 - others wait, here nobody has to
        """Vectors may be made by many at once: texts are claimed."""
        yield True

    @property
    def generation(self) -> int:
        """A number that grows with every committed change of chunks or vectors, by whichever process."""
        return int(self._state("generation"))

    def _state(self, column: str) -> Any:
        found = self._all(f"SELECT {column} FROM state WHERE workspace = {self._w}")
        if not found:
            raise StoreDamagedError(f"the workspace is gone from {self.name}", hint="open it again, it is made anew")
        return found[0][0]

    def get_meta(self, key: str) -> Any:
        """A remembered value, or None."""
        if key in ("generation", "chunks"):
            return self._state("generation" if key == "generation" else "moved")
        found = self._all(f"SELECT value FROM meta WHERE workspace = {self._w} AND key = %s", (key,))
        return json.loads(found[0][0]) if found else None

    def remembered(self) -> dict[str, Any]:
        """All values that `set_meta` was given, by key."""
        rows = self._all(f"SELECT key, value FROM meta WHERE workspace = {self._w} ORDER BY key")
        return {key: json.loads(value) for key, value in rows}

    def set_meta(self, key: str, value: str | int) -> None:
        """Remembers a value."""
        sql = (
            f"INSERT INTO meta VALUES ({self._w}, %s, %s)"
            " ON CONFLICT (workspace, key) DO UPDATE SET value = excluded.value"
        )
        self._written(lambda: self._run(sql, (key, json.dumps(value))))
