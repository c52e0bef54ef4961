"""The numbered migrations of the PostgreSQL index. Append, never edit, and only add: older readers go on beside them.

A row of `workspaces` is one workspace of one agent; its number stands in every other row. Row-level security is bound
to the role that is connected: it sees the rows of workspaces that it owns or was admitted to, whatever SQL it runs. Of
those, a connection sees one at a time, the one that it names in `recollect.workspace`: naming another's shows nothing.
The large tables are partitioned by that number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recollect.errors import StoreError, StoreVersionError

if TYPE_CHECKING:
    from psycopg import Connection

SCHEMA = "recollect"
SETTING = "recollect.workspace"
LOCKS = 0x7265636F  # "reco": the class of our advisory locks; 0 is the schema, else the number of a workspace
PARTITIONS = 16
LEAST_SERVER = 170_000  # identity columns of partitioned tables

_TEXT = 'text COLLATE "C"'
_PARTITIONED = {
    "documents": f"""
        id bigint GENERATED ALWAYS AS IDENTITY,
        path {_TEXT} NOT NULL,
        source {_TEXT} NOT NULL,
        size bigint NOT NULL,
        mtime_ns bigint NOT NULL,
        changed {_TEXT} NOT NULL,
        synced_ns bigint NOT NULL,
        digest {_TEXT} NOT NULL,
        name {_TEXT} NOT NULL,
        title text NOT NULL,
        date {_TEXT},
        evergreen boolean NOT NULL,
        importance double precision NOT NULL,
        pinned boolean NOT NULL,
        supersedes text NOT NULL,
        tail text NOT NULL,
        PRIMARY KEY (workspace, id),
        UNIQUE (workspace, path)""",
    "chunks": f"""
        row bigint GENERATED ALWAYS AS IDENTITY,
        id {_TEXT} NOT NULL,
        document bigint NOT NULL,
        start_line integer NOT NULL,
        end_line integer NOT NULL,
        heading text NOT NULL,
        text text NOT NULL,
        content_hash {_TEXT} NOT NULL,
        length integer NOT NULL,
        time {_TEXT},
        origin {_TEXT} NOT NULL,
        head text NOT NULL,
        body text NOT NULL,
        exact text NOT NULL,
        PRIMARY KEY (workspace, row),
        UNIQUE (workspace, id),
        FOREIGN KEY (workspace, document) REFERENCES documents ON DELETE CASCADE""",
    # The length of its chunk stands beside every term, so that a search reads this index alone.
    "postings": f"""
        term {_TEXT} NOT NULL,
        row bigint NOT NULL,
        body smallint NOT NULL,
        head smallint NOT NULL,
        length integer NOT NULL,
        PRIMARY KEY (workspace, term, row) INCLUDE (body, head, length)""",
    "terms": f"""
        term {_TEXT} NOT NULL,
        found_in integer NOT NULL,
        PRIMARY KEY (workspace, term)""",
    "vectors": f"""
        model integer NOT NULL,
        content_hash {_TEXT} NOT NULL,
        number bigint GENERATED ALWAYS AS IDENTITY,
        vector vector NOT NULL,
        PRIMARY KEY (workspace, model, content_hash)""",
}
_PLAIN = {
    "state": """
        generation bigint NOT NULL DEFAULT 0,
        moved bigint NOT NULL DEFAULT 0,
        chunks bigint NOT NULL DEFAULT 0,
        length bigint NOT NULL DEFAULT 0,
        PRIMARY KEY (workspace)""",
    "meta": f"""
        key {_TEXT} NOT NULL,
        value text NOT NULL,
        PRIMARY KEY (workspace, key)""",
    "models": f"""
        id integer GENERATED ALWAYS AS IDENTITY,
        name {_TEXT} NOT NULL,
        dim integer NOT NULL,
        changed bigint NOT NULL DEFAULT 0,
        PRIMARY KEY (workspace, id),
        UNIQUE (workspace, name)""",
    "refused": f"""
        model integer NOT NULL,
        content_hash {_TEXT} NOT NULL,
        reason text NOT NULL,
        PRIMARY KEY (workspace, model, content_hash)""",
    "pending": f"""
        model integer NOT NULL,
        content_hash {_TEXT} NOT NULL,
        position bigint NOT NULL,
        leased_until timestamptz NOT NULL DEFAULT '-infinity',
        PRIMARY KEY (workspace, model, content_hash)""",
    "edges": f"""
        number bigint GENERATED ALWAYS AS IDENTITY,
        document bigint NOT NULL,
        kind {_TEXT} NOT NULL,
        start_name text NOT NULL,
        start_anchor text NOT NULL,
        start_key {_TEXT} NOT NULL,
        end_name text NOT NULL,
        end_anchor text NOT NULL,
        end_key {_TEXT} NOT NULL,
        PRIMARY KEY (workspace, number),
        FOREIGN KEY (workspace, document) REFERENCES documents ON DELETE CASCADE""",
    "unjudged": """
        row bigint NOT NULL,
        PRIMARY KEY (workspace, row),
        FOREIGN KEY (workspace, row) REFERENCES chunks ON DELETE CASCADE""",
    "copies": f"""
        row bigint NOT NULL,
        form bytea NOT NULL,
        kin bytea NOT NULL,
        standing {_TEXT} NOT NULL,
        id {_TEXT} NOT NULL,
        PRIMARY KEY (workspace, row),
        FOREIGN KEY (workspace, row) REFERENCES chunks ON DELETE CASCADE""",
    "traits": """
        trait bigint NOT NULL,
        since bigint NOT NULL,
        form bytea NOT NULL,
        PRIMARY KEY (workspace, trait, since, form)""",
    "conflicts": """
        one bytea NOT NULL,
        other bytea NOT NULL,
        PRIMARY KEY (workspace, one, other)""",
    "replaced": f"""
        target {_TEXT} NOT NULL,
        part {_TEXT} NOT NULL,
        row bigint NOT NULL,
        PRIMARY KEY (workspace, target, part, row),
        FOREIGN KEY (workspace, row) REFERENCES chunks ON DELETE CASCADE""",
}
PARTITIONED = tuple(_PARTITIONED)
TABLES = (*_PARTITIONED, *_PLAIN)
_INDEXES = (
    "documents (workspace, name)",
    "documents (workspace, date)",
    "chunks (workspace, document)",
    "chunks (workspace, content_hash) INCLUDE (row)",
    "chunks (workspace, time) WHERE time IS NOT NULL",
    "pending (workspace, model, leased_until, position)",
    "edges (workspace, document)",
    "edges (workspace, start_key)",
    "edges (workspace, end_key)",
    "copies (workspace, form)",
    "copies (workspace, kin, standing DESC, id)",
    "traits (workspace, form)",
    "conflicts (workspace, other)",
    "replaced (workspace, row)",
)


def _secured(table: str) -> str:
    """Row-level security that even the owner of a table is under.

    The policy of `workspaces` decides who may; the setting only says which of them is meant, so that it is looked up
    once for a statement, however many workspaces a role has.
    """
    meant = f"nullif(current_setting('{SETTING}', true), '')::integer"
    return f"""
        ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
        CREATE POLICY own ON {table} USING (workspace = (SELECT w.id FROM workspaces w WHERE w.id = {meant}));"""


def _first() -> str:
    """The first migration: who may see what, then every table, its partitions and its policy."""
    sql = [
        f"""
        CREATE TABLE workspaces (
            id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            name {_TEXT} NOT NULL,
            agent {_TEXT} NOT NULL,
            owner name NOT NULL DEFAULT current_user,
            members name[] NOT NULL DEFAULT '{{}}',
            UNIQUE (name, agent)
        );
        CREATE INDEX ON workspaces (owner);
        CREATE INDEX ON workspaces USING gin (members);
        ALTER TABLE workspaces ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
        CREATE POLICY seen ON workspaces FOR SELECT
            USING (owner = current_user OR members @> ARRAY[current_user::name]);
        CREATE POLICY made ON workspaces FOR INSERT WITH CHECK (owner = current_user);
        CREATE POLICY changed ON workspaces FOR UPDATE USING (owner = current_user);
        CREATE POLICY dropped ON workspaces FOR DELETE USING (owner = current_user);"""
    ]
    number = "workspace integer NOT NULL REFERENCES workspaces (id)"
    for table, columns in _PARTITIONED.items():
        # A posting or a vector is checked by the row it is made for: a second look at each would double the work.
        own = "workspace integer NOT NULL" if table in ("postings", "terms", "vectors") else number
        sql.append(f"CREATE TABLE {table} ({own}, {columns}) PARTITION BY HASH (workspace);")
        for n in range(PARTITIONS):
            sql.append(
                f"CREATE TABLE {table}_{n} PARTITION OF {table}"
                f" FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {n});{_secured(f'{table}_{n}')}"
            )
            if table == "vectors":  # inline as long as a page holds it: a scan that follows pointers is slow
                sql.append(f"ALTER TABLE {table}_{n} SET (toast_tuple_target = 8160);")
                # A model belongs to one workspace: two conditions that say the same must not count twice.
                sql.append(f"CREATE STATISTICS {table}_{n}_of (dependencies) ON workspace, model FROM {table}_{n};")
            if table == "terms":  # counts change all the time, in place where a page has room
                sql.append(f"ALTER TABLE {table}_{n} SET (fillfactor = 80);")
    sql += [f"CREATE TABLE {table} ({number}, {columns});" for table, columns in _PLAIN.items()]
    sql += [f"CREATE INDEX ON {index};" for index in _INDEXES]
    sql += [_secured(table) for table in TABLES]
    return "\n".join(sql)


MIGRATIONS = (_first(),)


def migrate(db: Connection[Any], *, name: str, read_only: bool) -> None:
    """Brings the schema up to date, once, whoever comes first; a newer one is left alone and refused."""
    version = _version(db)
    if version > len(MIGRATIONS):
        raise StoreVersionError(
            f"the index {name} was written by a newer recollect (schema {version}, this one knows {len(MIGRATIONS)})",
            hint="upgrade recollect, or use another database",
        )
    if version == len(MIGRATIONS):
        return
    if read_only:
        raise StoreVersionError(
            f"the index {name} is of an older version or empty",
            hint="open it once on the primary, with: recollect index",
        )
    with db.transaction():
        db.execute("SET LOCAL statement_timeout = 0")
        db.execute("SET LOCAL client_min_messages = warning")
        db.execute("SELECT pg_advisory_xact_lock(%s, 0)", (LOCKS,))
        version = _version(db)  # another process may have been faster
        if version >= len(MIGRATIONS):
            return
        if not version:
            _prepare(db, name)
        for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
            db.execute(script)
            db.execute(f"INSERT INTO {SCHEMA}.versions (version) VALUES (%s)", (number,))


def _prepare(db: Connection[Any], name: str) -> None:
    from psycopg.errors import InsufficientPrivilege  # noqa: PLC0415

    if db.info.server_version < LEAST_SERVER:
        raise StoreError(
            f"the server of {name} is PostgreSQL {db.info.server_version // 10_000}",
            hint=f"{LEAST_SERVER // 10_000} is the least",
        )
    if not db.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'").fetchone():
        raise StoreError(
            f"the server of {name} has no pgvector", hint="install the package of pgvector for its version, then again"
        )
    if not db.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone():
        try:
            db.execute("CREATE EXTENSION vector SCHEMA public")
        except InsufficientPrivilege as error:
            raise StoreError(
                f"the database {name} lacks pgvector, and this role may not add it",
                hint="an administrator runs once in that database: CREATE EXTENSION vector",
            ) from error
    db.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    db.execute(
        f"CREATE TABLE IF NOT EXISTS {SCHEMA}.versions (version integer PRIMARY KEY, at timestamptz DEFAULT now())"
    )


def _version(db: Connection[Any]) -> int:
    there = db.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.versions",)).fetchone()
    if not there or there[0] is None:
        return 0
    found = db.execute(f"SELECT coalesce(max(version), 0) FROM {SCHEMA}.versions").fetchone()
    return int(found[0]) if found else 0
