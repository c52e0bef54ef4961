"""The schema of the PostgreSQL index, and its numbered migrations: append one, and never edit one that was released.

A row of `workspaces` is one workspace of one agent; its number is in every other row. Row-level security is bound to
the connected role: it sees the rows of workspaces that it owns or was admitted to, whatever SQL it runs. Of those, a
connection sees one at a time, the one that it names in `notewell.workspace`; naming another role's shows nothing. The
large tables are partitioned by that number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from notewell.errors import StoreError, StoreVersionError

if TYPE_CHECKING:
    from psycopg import Connection

SCHEMA = "notewell"
SETTING = "notewell.workspace"
LOCKS = 0x6E6F7465  # "note": the class of our advisory locks; 0 is the schema, else the number of a workspace
PARTITIONS = 16
LEAST_SERVER = 170_000  # identity columns of partitioned tables

_TEXT = 'text COLLATE "C"'
_PARTITIONED = {
    "documents": f"""
        id bigint GENERATED ALWAYS AS IDENTITY,
        path {_TEXT} NOT NULL, source {_TEXT} NOT NULL, digest {_TEXT} NOT NULL,
        size bigint NOT NULL, mtime_ns bigint NOT NULL, changed {_TEXT} NOT NULL, synced_ns bigint NOT NULL,
        name {_TEXT} NOT NULL, title text NOT NULL, date {_TEXT}, evergreen boolean NOT NULL,
        importance double precision NOT NULL, pinned boolean NOT NULL, supersedes text NOT NULL, tail text NOT NULL,
        PRIMARY KEY (workspace, id), UNIQUE (workspace, path)""",
    "chunks": f"""
        row bigint GENERATED ALWAYS AS IDENTITY,
        id {_TEXT} NOT NULL, document bigint NOT NULL, start_line integer NOT NULL, end_line integer NOT NULL,
        heading text NOT NULL, text text NOT NULL, content_hash {_TEXT} NOT NULL, length integer NOT NULL,
        time {_TEXT}, origin {_TEXT} NOT NULL, head text NOT NULL, body text NOT NULL, exact text NOT NULL,
        PRIMARY KEY (workspace, row), UNIQUE (workspace, id),
        FOREIGN KEY (workspace, document) REFERENCES documents ON DELETE CASCADE""",
    # Every posting has the length of its chunk, so that a search reads this index alone.
    "postings": f"""
        term {_TEXT} NOT NULL, row bigint NOT NULL, body smallint NOT NULL, head smallint NOT NULL,
        length integer NOT NULL, PRIMARY KEY (workspace, term, row) INCLUDE (body, head, length)""",
    "terms": f"""
        term {_TEXT} NOT NULL, found_in integer NOT NULL, PRIMARY KEY (workspace, term)""",
    "vectors": f"""
        model integer NOT NULL, content_hash {_TEXT} NOT NULL, number bigint GENERATED ALWAYS AS IDENTITY,
        vector vector NOT NULL, PRIMARY KEY (workspace, model, content_hash)""",
}
_PLAIN = {
    # The change counters, and the statistics of the keyword leg.
    "state": """
        generation bigint NOT NULL DEFAULT 0, moved bigint NOT NULL DEFAULT 0,
        chunks bigint NOT NULL DEFAULT 0, length bigint NOT NULL DEFAULT 0, PRIMARY KEY (workspace)""",
    "meta": f"""
        key {_TEXT} NOT NULL, value text NOT NULL, PRIMARY KEY (workspace, key)""",
    "models": f"""
        id integer GENERATED ALWAYS AS IDENTITY,
        name {_TEXT} NOT NULL, dim integer NOT NULL, changed bigint NOT NULL DEFAULT 0, PRIMARY KEY (workspace, id),
        UNIQUE (workspace, name)""",
    "refused": f"""
        model integer NOT NULL, content_hash {_TEXT} NOT NULL, reason text NOT NULL,
        PRIMARY KEY (workspace, model, content_hash)""",
    "pending": f"""
        model integer NOT NULL, content_hash {_TEXT} NOT NULL, position bigint NOT NULL,
        leased_until timestamptz NOT NULL DEFAULT '-infinity', PRIMARY KEY (workspace, model, content_hash)""",
    "edges": f"""
        number bigint GENERATED ALWAYS AS IDENTITY, document bigint NOT NULL, kind {_TEXT} NOT NULL,
        start_name text NOT NULL, start_anchor text NOT NULL, start_key {_TEXT} NOT NULL,
        end_name text NOT NULL, end_anchor text NOT NULL, end_key {_TEXT} NOT NULL, PRIMARY KEY (workspace, number),
        FOREIGN KEY (workspace, document) REFERENCES documents ON DELETE CASCADE""",
    "unjudged": """
        row bigint NOT NULL, PRIMARY KEY (workspace, row),
        FOREIGN KEY (workspace, row) REFERENCES chunks ON DELETE CASCADE""",
    "copies": f"""
        row bigint NOT NULL, form bytea NOT NULL, group_form bytea NOT NULL, standing {_TEXT} NOT NULL,
        id {_TEXT} NOT NULL, PRIMARY KEY (workspace, row),
        FOREIGN KEY (workspace, row) REFERENCES chunks ON DELETE CASCADE""",
    "traits": """
        trait bigint NOT NULL, since bigint NOT NULL, form bytea NOT NULL,
        PRIMARY KEY (workspace, trait, since, form)""",
    "conflicts": """
        one bytea NOT NULL, other bytea NOT NULL, PRIMARY KEY (workspace, one, other)""",
    "replaced": f"""
        target {_TEXT} NOT NULL, part {_TEXT} NOT NULL, row bigint NOT NULL, PRIMARY KEY (workspace, target, part, row),
        FOREIGN KEY (workspace, row) REFERENCES chunks ON DELETE CASCADE""",
}
_WINDOWS = f"""
    model integer NOT NULL, content_hash {_TEXT} NOT NULL, codes bytea NOT NULL,
    PRIMARY KEY (workspace, model, content_hash),
    FOREIGN KEY (workspace, model, content_hash) REFERENCES vectors ON DELETE CASCADE"""
# The chunks that have a term, many to a row. `entries` has three int32 for each of `n` chunks: its row less `first`,
# how often the term is in the body (the low 15 bits) and in the head, and its length. The rows of a pack begin at
# `first` and end before the next pack of the term. `n` is in the index too, so that counting reads nothing else.
_POSTINGS = f"""
    term {_TEXT} NOT NULL, first bigint NOT NULL, n integer NOT NULL, entries bytea NOT NULL,
    PRIMARY KEY (workspace, term, first) INCLUDE (n)"""
PACK = 128  # entries to a pack at most: a row that fits into a page with others
PARTITIONED = (*(table for table in _PARTITIONED if table != "terms"), "windows")
TABLES = (*PARTITIONED, *_PLAIN)
_INDEXES = {
    "documents": ["(workspace, name)", "(workspace, date)"],
    "chunks": [
        "(workspace, document)",
        "(workspace, content_hash) INCLUDE (row)",
        "(workspace, time) WHERE time IS NOT NULL",
    ],
    "pending": ["(workspace, model, leased_until, position)"],
    "edges": ["(workspace, document)", "(workspace, start_key)", "(workspace, end_key)"],
    "copies": ["(workspace, form)", "(workspace, group_form, standing DESC, id)"],
    "traits": ["(workspace, form)"],
    "conflicts": ["(workspace, other)"],
    "replaced": ["(workspace, row)"],
}


def _secured(table: str) -> str:
    """Row-level security that applies even to the owner of a table.

    The policy of `workspaces` decides who may see one. The setting only names it, so that it is looked up once for a
    statement, however many workspaces a role has.
    """
    meant = f"nullif(current_setting('{SETTING}', true), '')::integer"
    return f"""
        ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
        CREATE POLICY own ON {table} USING (workspace = (SELECT w.id FROM workspaces w WHERE w.id = {meant}));"""


def _first_schema() -> str:
    """Who may see what, then every table with its partitions and its policy."""
    sql = [
        f"""
        CREATE TABLE workspaces (
            id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            name {_TEXT} NOT NULL, agent {_TEXT} NOT NULL, UNIQUE (name, agent),
            owner name NOT NULL DEFAULT current_user, members name[] NOT NULL DEFAULT '{{}}'
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
        # Postings and vectors come with a chunk, which is checked: a check of each of them would double the work.
        own = "workspace integer NOT NULL" if table in ("postings", "terms", "vectors") else number
        sql.append(_in_partitions(table, f"{own}, {columns}"))
        for n in range(PARTITIONS):
            if table == "vectors":  # inline while a page holds it: a scan that follows pointers is slow
                sql.append(f"ALTER TABLE {table}_{n} SET (toast_tuple_target = 8160);")
                # A model belongs to one workspace: the planner must not multiply the two conditions.
                sql.append(f"CREATE STATISTICS {table}_{n}_of (dependencies) ON workspace, model FROM {table}_{n};")
            if table == "terms":  # counts change all the time, in place if the page has room
                sql.append(f"ALTER TABLE {table}_{n} SET (fillfactor = 80);")
    sql += [f"CREATE TABLE {table} ({number}, {columns});" for table, columns in _PLAIN.items()]
    sql += [f"CREATE INDEX ON {table} {columns};" for table, indexes in _INDEXES.items() for columns in indexes]
    sql += [_secured(table) for table in (*_PARTITIONED, *_PLAIN)]
    return "\n".join(sql)


def _in_partitions(table: str, columns: str) -> str:
    """A table in partitions, each with its policy."""
    sql = [f"CREATE TABLE {table} ({columns}) PARTITION BY HASH (workspace);"]
    sql += [
        f"CREATE TABLE {table}_{n} PARTITION OF {table}"
        f" FOR VALUES WITH (MODULUS {PARTITIONS}, REMAINDER {n});{_secured(f'{table}_{n}')}"
        for n in range(PARTITIONS)
    ]
    return "\n".join(sql)


def _add_windows() -> str:
    """The windows of texts, next to their vectors."""
    return f"""
        {_in_partitions("windows", f"workspace integer NOT NULL, {_WINDOWS}")}
        {_secured("windows")}
        {_as_admitted("windows")}"""


def _as_admitted(table: str) -> str:
    """Gives a new table to every role that was admitted to vectors."""
    return f"""
        DO $$ DECLARE given record; BEGIN
            FOR given IN
                SELECT replace(c.relname, 'vectors', '{table}') AS name, a.grantee::regrole::text AS role,
                    string_agg(a.privilege_type, ', ') AS rights
                FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
                WHERE c.relnamespace = 'notewell'::regnamespace AND c.relkind IN ('r', 'p')
                    AND c.relname ~ '^vectors(_[0-9]+)?$' AND a.grantee NOT IN (0, c.relowner) GROUP BY 1, 2
            LOOP EXECUTE format('GRANT %s ON %I TO %s', given.rights, given.name, given.role); END LOOP;
        END $$;"""


def _pack_postings() -> str:
    """Postings in packs, with many chunks to a row, in place of a row for each; the packs also count the chunks."""
    entry = "int4send((row - first)::integer) || int4send(body + head * 32768) || int4send(length)"
    return f"""
        ALTER TABLE postings NO FORCE ROW LEVEL SECURITY;
        CREATE TEMPORARY TABLE packed ON COMMIT DROP AS
            SELECT workspace, term, first, count(*)::integer AS n, string_agg({entry}, '' ORDER BY row) AS entries FROM
                (SELECT *, min(row) OVER (PARTITION BY workspace, term, pack) AS first FROM (SELECT *, row_number() OVER
                    (PARTITION BY workspace, term ORDER BY row) / {PACK} AS pack FROM postings) numbered) firsts
            GROUP BY workspace, term, first;
        DROP TABLE postings, terms;
        {_in_partitions("postings", f"workspace integer NOT NULL, {_POSTINGS}")}
        INSERT INTO postings SELECT * FROM packed ORDER BY workspace, term, first;
        {_secured("postings")}
        {_as_admitted("postings")}"""


MIGRATIONS = (_first_schema, _add_windows, _pack_postings)


def migrate(db: Connection[Any], *, name: str, read_only: bool) -> None:
    """Brings the schema up to date, once, whoever comes first; a newer one is refused and left alone."""
    version = _version(db)
    if version > len(MIGRATIONS):
        raise StoreVersionError(
            f"the index {name} was written by a newer notewell (schema {version}, this one knows {len(MIGRATIONS)})",
            hint="upgrade notewell, or use another database",
        )
    if version == len(MIGRATIONS):
        return
    if read_only:
        hint = "open it once on the primary: notewell index"
        raise StoreVersionError(f"the index {name} is of an older version or empty", hint=hint)
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
            db.execute(script())
            db.execute(f"INSERT INTO {SCHEMA}.versions (version) VALUES (%s)", (number,))


def _prepare(db: Connection[Any], name: str) -> None:
    from psycopg.errors import InsufficientPrivilege  # noqa: PLC0415

    if db.info.server_version < LEAST_SERVER:
        found, hint = db.info.server_version // 10_000, f"at least {LEAST_SERVER // 10_000} is needed"
        raise StoreError(f"the server of {name} is PostgreSQL {found}", hint=hint)
    if not db.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'").fetchone():
        hint = "install pgvector for its version, then try again"
        raise StoreError(f"the server of {name} has no pgvector", hint=hint)
    if not db.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone():
        try:
            db.execute("CREATE EXTENSION vector SCHEMA public")
        except InsufficientPrivilege as error:
            hint = "let an administrator run once in that database: CREATE EXTENSION vector"
            raise StoreError(f"the database {name} lacks pgvector, and this role may not add it", hint=hint) from error
    db.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    versions = "versions (version integer PRIMARY KEY, at timestamptz DEFAULT now())"
    db.execute(f"CREATE TABLE IF NOT EXISTS {SCHEMA}.{versions}")


def _version(db: Connection[Any]) -> int:
    there = db.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.versions",)).fetchone()
    if not there or there[0] is None:
        return 0
    found = db.execute(f"SELECT coalesce(max(version), 0) FROM {SCHEMA}.versions").fetchone()
    return int(found[0]) if found else 0
