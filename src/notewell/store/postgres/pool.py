"""A small pool of connections to one PostgreSQL server, and the server's errors as ours.

It is ours, so that a server that is down is reported at once with the reason it gives, and so that
a search, which needs one connection, starts no thread.
"""

from __future__ import annotations

import contextlib
import struct
import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from notewell.errors import StoreAwayError, StoreBusyError, StoreDamagedError, StoreError
from notewell.store.postgres.schema import SCHEMA, SETTING
from notewell.text.words import clean

if TYPE_CHECKING:
    import psycopg

    RawConnection = psycopg.Connection[Any]

CONNECTIONS = 8
BUSY_TIMEOUT_S = 10.0
_CONFLICTS = ("40001", "40P01")  # a serialization failure, a deadlock
_SHUT_DOWN = ("57P01", "57P02", "57P03")


def driver() -> Any:
    """psycopg, or an error that says how to install it."""
    try:
        import psycopg  # noqa: PLC0415
    except ImportError as error:
        raise StoreError(
            "an index on PostgreSQL needs psycopg", hint="pip install 'notewell[postgres]'"
        ) from error
    return psycopg


def display_name(url: str) -> str:
    """The address of a server for messages: without password and options."""
    psycopg = driver()
    try:
        parts = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        hint = "it looks like postgresql://user@host:5432/database, with %25 for a % in a password"
        message = "the address of the index is not one that PostgreSQL understands"
        # without the cause, which may quote the password
        raise StoreError(message, hint=hint) from None
    user = f"{parts['user']}@" if parts.get("user") else ""
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"postgresql://{user}{parts.get('host', '')}{port}/{parts.get('dbname', '')}"


class Pool:
    """Connections to one database as one role."""

    def __init__(self, url: str, *, read_only: bool, timeout_s: float) -> None:
        self._psycopg = driver()
        self.errors: type[Exception] = self._psycopg.Error
        self.name = display_name(url)
        self.timeout_s = timeout_s
        parts = self._psycopg.conninfo.conninfo_to_dict(url)
        settings = {
            "search_path": f"{SCHEMA},public",
            "statement_timeout": str(int(timeout_s * 1000)),
            "lock_timeout": str(int(min(timeout_s, BUSY_TIMEOUT_S) * 1000)),
            # a writer that hangs must not hold its lock for ever
            "idle_in_transaction_session_timeout": "600000",
            "default_transaction_read_only": "on" if read_only else "off",
            "jit": "off",
            # what a search reads at most, see `_quick`: more would be found in steps
            "hnsw.ef_search": "240",
            "hnsw.iterative_scan": "strict_order",
        }
        defaults = {"application_name": "notewell", "connect_timeout": str(max(2, int(timeout_s)))}
        if "," in str(parts.get("host", "")) and not read_only:
            defaults["target_session_attrs"] = (
                "read-write"  # after a failover, the server that took over
            )
        options = " ".join(
            [
                str(parts.get("options") or ""),
                *(f"-c {key}={value}" for key, value in settings.items()),
            ]
        )
        self._conninfo = {**defaults, **parts, "options": options.strip()}
        self._idle: list[RawConnection] = []
        self._free = threading.BoundedSemaphore(CONNECTIONS)
        self._lock = threading.Lock()
        self._closed = False
        self._vector: Any = None  # the type of the extension, once it is known to be there

    def connect(self) -> RawConnection:
        """A connection outside of the pool, for the caller to close."""
        raw = self._psycopg.connect(**self._conninfo, autocommit=True)
        raw.adapters.register_dumper(str, _clean_dumper())
        if self._vector:
            self._send_vectors(raw)
        return raw  # type: ignore[no-any-return]

    def enter(self, raw: RawConnection, workspace: int) -> None:
        """Makes this and all later connections see one workspace, and send arrays of numpy as
        vectors.
        """
        raw.execute("SELECT set_config(%s, %s, false)", (SETTING, str(workspace)))
        self._conninfo["options"] += f" -c {SETTING}={workspace}"
        self._vector = self._psycopg.types.TypeInfo.fetch(raw, "vector")
        self._send_vectors(raw)

    def _send_vectors(self, raw: RawConnection) -> None:
        self._vector.register(raw)
        raw.adapters.register_dumper("numpy.ndarray", _vector_dumper(self._vector.oid))

    @contextlib.contextmanager
    def use(self) -> Iterator[RawConnection]:
        """Lends a connection; one that broke, or that is left inside a transaction, does not return
        to the pool.
        """
        if not self._free.acquire(timeout=self.timeout_s):
            message = f"all {CONNECTIONS} connections to {self.name} are in use"
            raise StoreBusyError(message, hint="run fewer searches at once")
        try:
            with self._lock:
                if self._closed:
                    raise StoreError("the memory is closed", hint="open it again")
                raw = self._idle.pop() if self._idle else None
            raw = raw or self.connect()
            try:
                yield raw
            finally:
                idle = self._psycopg.pq.TransactionStatus.IDLE
                if raw.closed or raw.info.transaction_status != idle or not self._put_back(raw):
                    raw.close()
        finally:
            self._free.release()

    def _put_back(self, raw: RawConnection) -> bool:
        with self._lock:
            if not self._closed:
                self._idle.append(raw)
            return not self._closed

    def drop_idle(self) -> None:
        """Closes the idle connections: where one broke because the server was away, the others did
        too.
        """
        with self._lock:
            idle, self._idle = self._idle, []
        for raw in idle:
            raw.close()

    def close(self) -> None:
        """Closes every connection; those in use when they are given back."""
        with self._lock:
            self._closed = True
        self.drop_idle()

    def is_lost(self, error: BaseException) -> bool:
        """Whether an error means that the connection is gone, not that the statement was wrong."""
        if not isinstance(error, self._psycopg.OperationalError):
            return False
        return (
            error.sqlstate is None
            or error.sqlstate in _SHUT_DOWN
            or str(error.sqlstate).startswith("08")
        )

    def is_conflict(self, error: BaseException | None) -> bool:
        """Whether another try may work: others were writing the same rows."""
        return isinstance(error, self._psycopg.Error) and error.sqlstate in _CONFLICTS

    @contextlib.contextmanager
    def translated(self) -> Iterator[None]:
        """Turns errors of PostgreSQL into ours, each with a hint."""
        try:
            yield
        except self._psycopg.Error as error:
            raise self._translate(error) from error

    def _translate(self, error: Any) -> StoreError:
        state, name = error.sqlstate or "", self.name
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        for states, kind, message, hint in _MESSAGES:
            if state.startswith(states) or (
                not state and any(s in reason for s in states if " " in s)
            ):
                return kind(
                    message.format(name=name, reason=reason, seconds=f"{self.timeout_s:g}"),
                    hint=hint,
                )
        if not state and isinstance(error, self._psycopg.OperationalError):
            hint = "check that it runs, its address and the password"
            return StoreAwayError(f"the server of {name} cannot be reached: {reason}", hint=hint)
        return StoreError(
            f"the index {name} rejected a statement: {reason}", hint="please report it"
        )


# By the first characters of an SQLSTATE; a refused connection has none, and is known by words of
# its message.
_MESSAGES: tuple[tuple[tuple[str, ...], type[StoreError], str, str], ...] = (
    (
        ("53300", "too many clients", "remaining connection slots", "too many connections"),
        StoreBusyError,
        "{name} takes no more connections: {reason}",
        "wait, raise max_connections, or put a pooler in front of the server",
    ),
    (
        ("57014",),
        StoreBusyError,
        "{name} did not answer within {seconds} s",
        "it is busy: try again, or ask for less",
    ),
    (
        ("55P03",),
        StoreBusyError,
        "another process has been writing to {name} for too long",
        "wait, and try again",
    ),
    (
        _CONFLICTS,
        StoreBusyError,
        "others were writing the same rows of {name}: {reason}",
        "try again",
    ),
    (
        _SHUT_DOWN,
        StoreAwayError,
        "the server of {name} went away: {reason}",
        "wait until it is back; nothing is half written",
    ),
    (
        ("08",),
        StoreAwayError,
        "the connection to {name} was lost: {reason}",
        "try again; nothing is half written",
    ),
    (
        ("25006",),
        StoreError,
        "{name} takes no writes: it is a replica or was opened to read",
        "name the primary",
    ),
    (
        ("42501",),
        StoreError,
        "the role may not do this on {name}: {reason}",
        "ask its owner to admit the role",
    ),
    (
        ("53100",),
        StoreError,
        "the disk of {name} is full",
        "free some space on it; nothing is half written",
    ),
    (
        ("XX",),
        StoreDamagedError,
        "the index {name} is damaged: {reason}",
        "see the log of the server",
    ),
    (
        ("42P01", "42703", "42883", "42704", "3F000"),
        StoreDamagedError,
        "a part of the index {name} is missing: {reason}",
        "drop the schema notewell: the next command rebuilds it",
    ),
)


@lru_cache(maxsize=1)
def _clean_dumper() -> Any:
    """Sends text as PostgreSQL takes it: without NUL and lone surrogates."""
    from psycopg.types.string import StrDumper  # noqa: PLC0415

    class CleanDumper(StrDumper):
        def dump(self, obj: str) -> Any:
            return super().dump(clean(obj))

    return CleanDumper


@lru_cache(maxsize=4)
def _vector_dumper(type_oid: int) -> Any:
    """Sends an array in pgvector's binary form: its length and an unused zero as int16, then
    big-endian float32.
    """
    from psycopg.adapt import Dumper  # noqa: PLC0415
    from psycopg.pq import Format  # noqa: PLC0415

    class VectorDumper(Dumper):
        format = Format.BINARY
        oid = type_oid

        def dump(self, obj: Any) -> bytes:
            return struct.pack(">HH", len(obj), 0) + bytes(obj.astype(">f4").tobytes())

    return VectorDumper
