"""The index in PostgreSQL, for many workspaces, agents and writers: the same ports as the SQLite
store.

Every statement names its workspace by number, and row-level security ties that number to the
connected role. Documents are replaced under one lock for each workspace, taken when the transaction
begins; vectors are added next to it.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from notewell.errors import StoreBusyError, StoreError
from notewell.store.postgres.chunks import ChunkReader
from notewell.store.postgres.connection import Connection
from notewell.store.postgres.documents import Documents
from notewell.store.postgres.history import History
from notewell.store.postgres.keywords import Keywords
from notewell.store.postgres.lookahead import Lookahead
from notewell.store.postgres.pool import Pool
from notewell.store.postgres.relations import Relations
from notewell.store.postgres.schema import SETTING, migrate
from notewell.store.postgres.session import Session
from notewell.store.postgres.shared import Shared
from notewell.store.postgres.vectors import Vectors

if TYPE_CHECKING:
    import psycopg

TIMEOUT_S = 30.0
_INDEX_LOCK = 1


class PostgresStore:
    """One workspace of one agent in a database that others share."""

    def __init__(
        self,
        url: str,
        *,
        workspace: str,
        owner: str = "",
        agent: str = "",
        read_only: bool = False,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self.workspace, self.owner, self.agent = workspace, owner, agent
        self.file = None
        pool = Pool(url, read_only=read_only, timeout_s=timeout_s)
        self.connection = connection = Connection(pool, read_only=read_only)
        self.name = connection.name
        chunks = ChunkReader(connection)
        self.keywords = Keywords(connection, chunks)
        self.relations = Relations(connection, chunks)
        self.history = History(connection, chunks)
        self.documents = Documents(connection, chunks, self.keywords, self.relations, self.history)
        self.vectors = Vectors(connection, chunks)
        self.shared = Shared(connection, self.vectors, workspace=workspace)
        self.ahead = Lookahead(
            connection, self.documents, self.keywords, self.vectors, self.relations
        )
        session = Session(connection, self.keywords, self.vectors)
        self.writing, self.lag_s, self.close = (
            connection.writing,
            connection.lag_s,
            connection.close,
        )
        self.asking = self.reading = connection.asking
        self.get_meta, self.set_meta = session.get_meta, session.set_meta
        self.meta, self.remembered = session.meta, session.remembered
        self.counts, self.check, self.audit, self.scrub = (
            session.counts,
            session.check,
            session.audit,
            session.scrub,
        )
        try:
            with connection.borrowed() as raw:
                migrate(raw, name=self.name, read_only=read_only)
                connection.workspace = self._number(raw)
                connection.pool.enter(raw, connection.workspace)
            connection.read_only = read_only or self.lag_s() is not None
        except BaseException:
            self.close()
            raise

    def _number(self, raw: psycopg.Connection[Any]) -> int:
        """The number of this workspace; a new one belongs to the role that makes it.

        Another role's is used only if that role is named: who is let into one must not write to it
        unawares.
        """
        find = (
            "SELECT id FROM workspaces WHERE owner = coalesce(nullif(%s, ''), current_user)::name"
            " AND name = to_jsonb(%s::text) AND agent = to_jsonb(%s::text)"
        )
        named = (self.owner, self.workspace, self.agent)
        found = raw.execute(find, named).fetchone()
        if found:
            return int(found[0])
        if self.owner and raw.execute("SELECT current_user").fetchone() != (self.owner,):
            message = (
                f"{self.name} has no workspace {self.workspace!r} of {self.owner} that this "
                "role may use"
            )
            raise StoreError(
                message, hint=f"ask {self.owner} to admit it, or leave index.owner empty"
            )
        if self.read_only:
            raise StoreError(
                f"{self.name} has no workspace {self.workspace!r} for this role",
                hint="notewell index",
            )
        with raw.transaction():
            make = (
                "INSERT INTO workspaces (name, agent)"
                " VALUES (to_jsonb(%s::text), to_jsonb(%s::text))"
                " ON CONFLICT DO NOTHING RETURNING id"
            )
            made = raw.execute(make, named[1:]).fetchone()
            if made:
                raw.execute("SELECT set_config(%s, %s, true)", (SETTING, str(made[0])))
                raw.execute("INSERT INTO state (workspace) VALUES (%s)", made)
        made = made or raw.execute(find, named).fetchone()  # another process was faster
        if not made:
            raise StoreBusyError(
                f"the workspace {self.workspace!r} is being made or deleted", hint="try again"
            )
        return int(made[0])

    @property
    def read_only(self) -> bool:
        return self.connection.read_only

    def exclusive(self, wait_s: float) -> contextlib.AbstractContextManager[bool]:
        """Yields whether the index lock of the workspace was taken within `wait_s`; it goes with
        its connection.
        """
        return self.connection.locked(_INDEX_LOCK, wait_s)

    def embedding(self, wait_s: float) -> contextlib.AbstractContextManager[bool]:  # noqa: ARG002 - nobody has to wait
        """Vectors may be made by many at once, since texts are claimed."""
        return contextlib.nullcontext(True)  # noqa: FBT003

    @property
    def generation(self) -> int:
        return int(self.get_meta("generation"))
