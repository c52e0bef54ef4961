"""Connections to one PostgreSQL server: opened when needed, kept, and given back; its errors as ours.

A pool of our own: what a caller sees when the server is down is the server's own reason at once, and no thread is
started for a search that needs one connection.
"""

from __future__ import annotations

import contextlib
import struct
import threading
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from recollect.errors import StoreAwayError, StoreBusyError, StoreDamagedError, StoreError
from recollect.store.postgres_schema import SCHEMA, SETTING
from recollect.text.words import clean

if TYPE_CHECKING:
    import psycopg

CONNECTIONS = 8
BUSY_TIMEOUT_S = 10.0
_RETRIED = ("40001", "40P01")
_GONE = ("57P01", "57P02", "57P03")


def driver() -> Any:
    """psycopg, or an error that says how to get it."""
    try:
        import psycopg  # noqa: PLC0415
    except ImportError as error:
        raise StoreError("an index on PostgreSQL needs psycopg", hint="pip install 'recollect[postgres]'") from error
    return psycopg


def shown(url: str) -> str:
    """A server's address for messages: no password, no options."""
    psycopg = driver()
    try:
        parts = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        raise StoreError(  # what the error says may quote the password
            "the address of the index is not one that PostgreSQL understands",
            hint="it looks like postgresql://user@host:5432/database, with %25 for a % in a password",
        ) from None
    user = f"{parts['user']}@" if parts.get("user") else ""
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"postgresql://{user}{parts.get('host', '')}{port}/{parts.get('dbname', '')}"


class Pool:
    """Connections to one database as one role."""

    def __init__(self, url: str, *, read_only: bool, timeout_s: float) -> None:
        self._psycopg = driver()
        self.errors: type[Exception] = self._psycopg.Error
        self.name = shown(url)
        self.timeout_s = timeout_s
        parts = self._psycopg.conninfo.conninfo_to_dict(url)
        settings = {
            "search_path": f"{SCHEMA},public",
            "statement_timeout": str(int(timeout_s * 1000)),
            "lock_timeout": str(int(min(timeout_s, BUSY_TIMEOUT_S) * 1000)),
            "idle_in_transaction_session_timeout": "600000",  # a writer that hangs must not hold its lock for ever
            "default_transaction_read_only": "on" if read_only else "off",
            "jit": "off",
            "hnsw.ef_search": "200",
            "hnsw.iterative_scan": "strict_order",
        }
        own = {"application_name": "recollect", "connect_timeout": str(max(2, int(timeout_s)))}
        if "," in str(parts.get("host", "")) and not read_only:
            own["target_session_attrs"] = "read-write"  # after a failover, the server that took over
        options = " ".join([str(parts.get("options") or ""), *(f"-c {key}={value}" for key, value in settings.items())])
        self._conninfo = {**own, **parts, "options": options.strip()}
        self._idle: list[psycopg.Connection[Any]] = []
        self._places = threading.BoundedSemaphore(CONNECTIONS)
        self._lock = threading.Lock()
        self._closed = False
        self._vector: Any = None

    def connect(self) -> psycopg.Connection[Any]:
        """A connection of its own, that the caller closes."""
        db = self._psycopg.connect(**self._conninfo, autocommit=True)
        db.adapters.register_dumper(str, _clean_dumper())
        if self._vector:
            self._teach(db)
        return db  # type: ignore[no-any-return]

    def enter(self, db: psycopg.Connection[Any], workspace: int) -> None:
        """Has every connection from now on see one workspace, where its role may."""
        db.execute("SELECT set_config(%s, %s, false)", (SETTING, str(workspace)))
        self._conninfo["options"] += f" -c {SETTING}={workspace}"

    def learn_vectors(self, db: psycopg.Connection[Any]) -> None:
        """Has arrays of numpy sent as vectors from now on; once the extension is there."""
        self._vector = self._psycopg.types.TypeInfo.fetch(db, "vector")
        self._teach(db)

    def _teach(self, db: psycopg.Connection[Any]) -> None:
        self._vector.register(db)
        db.adapters.register_dumper("numpy.ndarray", _vector_dumper(self._vector.oid))

    @contextlib.contextmanager
    def use(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection for a moment; one that broke, or that is left in the middle of something, is not kept."""
        if not self._places.acquire(timeout=self.timeout_s):
            raise StoreBusyError(
                f"all {CONNECTIONS} connections to {self.name} are in use", hint="ask fewer questions at once"
            )
        try:
            with self._lock:
                if self._closed:
                    raise StoreError("the memory is closed", hint="open it again")
                db = self._idle.pop() if self._idle else None
            db = db or self.connect()
            try:
                yield db
            finally:
                idle = self._psycopg.pq.TransactionStatus.IDLE
                if db.closed or db.info.transaction_status != idle or not self._kept(db):
                    db.close()
        finally:
            self._places.release()

    def _kept(self, db: psycopg.Connection[Any]) -> bool:
        with self._lock:
            if not self._closed:
                self._idle.append(db)
            return not self._closed

    def forget_idle(self) -> None:
        """Closes what lies idle: when one connection broke, the server was away and so are the others."""
        with self._lock:
            idle, self._idle = self._idle, []
        for db in idle:
            db.close()

    def close(self) -> None:
        """Closes every connection; those in use when they are given back."""
        with self._lock:
            self._closed = True
        self.forget_idle()

    def lost(self, error: BaseException) -> bool:
        """Whether an error means that the connection is gone, not that the question was wrong."""
        if not isinstance(error, self._psycopg.OperationalError):
            return False
        return error.sqlstate is None or error.sqlstate in _GONE or str(error.sqlstate).startswith("08")

    def retried(self, error: BaseException) -> bool:
        """Whether the same may be tried again: others were at the same rows."""
        return isinstance(error, self._psycopg.Error) and error.sqlstate in _RETRIED

    @contextlib.contextmanager
    def translated(self) -> Iterator[None]:
        """PostgreSQL's errors as ours, each with the sentence that helps."""
        try:
            yield
        except self._psycopg.Error as error:
            raise self._ours(error) from error

    def _ours(self, error: Any) -> StoreError:
        state, said, name = error.sqlstate or "", _first_line(error), self.name
        for states, kind, message, hint in _SENTENCES:
            if state.startswith(states) or (not state and any(s in said for s in states if " " in s)):
                return kind(message.format(name=name, said=said, seconds=f"{self.timeout_s:g}"), hint=hint)
        if not state and isinstance(error, self._psycopg.OperationalError):
            return StoreAwayError(
                f"the server of {name} cannot be reached: {said}",
                hint="check that it runs, its address and the password",
            )
        return StoreError(f"the index {name} did not understand a question: {said}", hint="please report it")


_SENTENCES: tuple[tuple[tuple[str, ...], type[StoreError], str, str], ...] = (
    (
        ("53300", "too many clients", "remaining connection slots", "too many connections"),
        StoreBusyError, "{name} takes no more connections: {said}",
        "wait, raise max_connections, or put a pooler before the server",
    ),
    (("57014",), StoreBusyError, "{name} did not answer within {seconds} s", "it is busy: ask again, or ask for less"),
    (("55P03",), StoreBusyError, "another process has been writing to {name} for too long", "wait, and try again"),
    (_RETRIED, StoreBusyError, "others were writing the same rows of {name}: {said}", "try again"),
    (_GONE, StoreAwayError, "the server of {name} went away: {said}", "wait until it is back; nothing is half written"),
    (("08",), StoreAwayError, "the connection to {name} was lost: {said}", "try again; nothing is half written"),
    (("25006",), StoreError, "{name} takes no writes: it is a replica or was opened to read", "name the primary"),
    (("42501",), StoreError, "the role may not do this on {name}: {said}", "ask its owner to admit the role"),
    (("53100",), StoreError, "the disk of {name} is full", "free some space on it; nothing was half written"),
    (("XX",), StoreDamagedError, "the index {name} is damaged: {said}", "see the log of the server"),
    (
        ("42P01", "42703", "42883", "42704", "3F000"),
        StoreDamagedError, "the index {name} lacks a part: {said}", "drop the schema recollect: it comes back by itself"
    ),
)  # fmt: skip


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


@lru_cache(maxsize=1)
def _clean_dumper() -> Any:
    """Text as PostgreSQL takes it: no NUL, no lone surrogate."""
    from psycopg.types.string import StrDumper  # noqa: PLC0415

    class CleanDumper(StrDumper):
        def dump(self, obj: str) -> Any:
            return super().dump(clean(obj))

    return CleanDumper


@lru_cache(maxsize=4)
def _vector_dumper(number: int) -> Any:
    """A row of numbers as pgvector reads it: how many, two bytes of nothing, and single precision, big end first."""
    from psycopg.adapt import Dumper  # noqa: PLC0415
    from psycopg.pq import Format  # noqa: PLC0415

    class VectorDumper(Dumper):
        format = Format.BINARY
        oid = number

        def dump(self, obj: Any) -> bytes:
            return struct.pack(">HH", len(obj), 0) + bytes(obj.astype(">f4").tobytes())

    return VectorDumper


def pause(attempt: int) -> None:
    """Waits a little longer with every attempt."""
    time.sleep(0.01 * 2**attempt)
