"""The schema of the PostgreSQL index, and its numbered migrations: append one, and never edit one
that was released.

A row of `workspaces` is one workspace of one agent; its number is in every other row. Row-level
security is bound to the connected role: it sees the rows of workspaces that it owns or was admitted
to, whatever SQL it runs. Of those, a connection sees one at a time, the one that it names in
`notewell.workspace`; naming another role's shows nothing. The large tables are partitioned by that
number.

A policy alone hides rows, not everything about them. The server lets comparisons that it calls
leakproof, such as those of text, run before a policy, look things up in an index and use the
statistics of a column, and EXPLAIN shows what came of it. So every index begins with the workspace,
and names of workspaces are jsonb, whose comparisons are not leakproof; and as soon as several roles
use the tables, see `keep_apart`, the policies begin with a test that no comparison can precede, and
what notes say has no statistics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from notewell.errors import StoreError, StoreVersionError

if TYPE_CHECKING:
    from psycopg import Connection

SCHEMA = "notewell"
SETTING = "notewell.workspace"
# "note": the class of our advisory locks; 0 is the schema, else the number of a workspace
LOCKS = 0x6E6F7465
PARTITIONS = 16
LEAST_SERVER = 170_000  # identity columns of partitioned tables

_TEXT = 'text COLLATE "C"'
_PARTITIONED = {
    "documents": f"""
        id bigint GENERATED ALWAYS AS IDENTITY,
        path {_TEXT} NOT NULL, source {_TEXT} NOT NULL, digest {_TEXT} NOT NULL,
        size bigint NOT NULL, mtime_ns bigint NOT NULL,
        changed {_TEXT} NOT NULL, synced_ns bigint NOT NULL,
        name {_TEXT} NOT NULL, title text NOT NULL, date {_TEXT}, evergreen boolean NOT NULL,
        importance double precision NOT NULL, pinned boolean NOT NULL,
        supersedes text NOT NULL, tail text NOT NULL,
        PRIMARY KEY (workspace, id), UNIQUE (workspace, path)""",
    "chunks": f"""
        row bigint GENERATED ALWAYS AS IDENTITY,
        id {_TEXT} NOT NULL, document bigint NOT NULL,
        start_line integer NOT NULL, end_line integer NOT NULL,
        heading text NOT NULL, text text NOT NULL,
        content_hash {_TEXT} NOT NULL, length integer NOT NULL,
        time {_TEXT}, origin {_TEXT} NOT NULL,
        head text NOT NULL, body text NOT NULL, exact text NOT NULL,
        PRIMARY KEY (workspace, row), UNIQUE (workspace, id),
        FOREIGN KEY (workspace, document) REFERENCES documents ON DELETE CASCADE""",
    # Every posting has the length of its chunk, so that a search reads this index alone.
    "postings": f"""
        term {_TEXT} NOT NULL, row bigint NOT NULL, body smallint NOT NULL, head smallint NOT NULL,
        length integer NOT NULL, PRIMARY KEY (workspace, term, row) INCLUDE (body, head, length)""",
    "terms": f"""
        term {_TEXT} NOT NULL, found_in integer NOT NULL, PRIMARY KEY (workspace, term)""",
    "vectors": f"""
        model integer NOT NULL, content_hash {_TEXT} NOT NULL,
        number bigint GENERATED ALWAYS AS IDENTITY,
        vector vector NOT NULL, PRIMARY KEY (workspace, model, content_hash)""",
}
_PLAIN = {
    # The change counters, and the statistics of the keyword leg.
    "state": """
        generation bigint NOT NULL DEFAULT 0, moved bigint NOT NULL DEFAULT 0,
        chunks bigint NOT NULL DEFAULT 0, length bigint NOT NULL DEFAULT 0,
        PRIMARY KEY (workspace)""",
    "meta": f"""
        key {_TEXT} NOT NULL, value text NOT NULL, PRIMARY KEY (workspace, key)""",
    "models": f"""
        id integer GENERATED ALWAYS AS IDENTITY,
        name {_TEXT} NOT NULL, dim integer NOT NULL, changed bigint NOT NULL DEFAULT 0,
        PRIMARY KEY (workspace, id), UNIQUE (workspace, name)""",
    "refused": f"""
        model integer NOT NULL, content_hash {_TEXT} NOT NULL, reason text NOT NULL,
        PRIMARY KEY (workspace, model, content_hash)""",
    "pending": f"""
        model integer NOT NULL, content_hash {_TEXT} NOT NULL, position bigint NOT NULL,
        leased_until timestamptz NOT NULL DEFAULT '-infinity',
        PRIMARY KEY (workspace, model, content_hash)""",
    "edges": f"""
        number bigint GENERATED ALWAYS AS IDENTITY, document bigint NOT NULL, kind {_TEXT} NOT NULL,
        start_name text NOT NULL, start_anchor text NOT NULL, start_key {_TEXT} NOT NULL,
        end_name text NOT NULL, end_anchor text NOT NULL, end_key {_TEXT} NOT NULL,
        PRIMARY KEY (workspace, number),
        FOREIGN KEY (workspace, document) REFERENCES documents ON DELETE CASCADE""",
    "unjudged": """
        row bigint NOT NULL, PRIMARY KEY (workspace, row),
        FOREIGN KEY (workspace, row) REFERENCES chunks ON DELETE CASCADE""",
    "copies": f"""
        row bigint NOT NULL, form bytea NOT NULL, group_form bytea NOT NULL,
        standing {_TEXT} NOT NULL, id {_TEXT} NOT NULL, PRIMARY KEY (workspace, row),
        FOREIGN KEY (workspace, row) REFERENCES chunks ON DELETE CASCADE""",
    "traits": """
        trait bigint NOT NULL, since bigint NOT NULL, form bytea NOT NULL,
        PRIMARY KEY (workspace, trait, since, form)""",
    "conflicts": """
        one bytea NOT NULL, other bytea NOT NULL, PRIMARY KEY (workspace, one, other)""",
    "replaced": f"""
        target {_TEXT} NOT NULL, part {_TEXT} NOT NULL, row bigint NOT NULL,
        PRIMARY KEY (workspace, target, part, row),
        FOREIGN KEY (workspace, row) REFERENCES chunks ON DELETE CASCADE""",
}
_WINDOWS = f"""
    model integer NOT NULL, content_hash {_TEXT} NOT NULL, codes bytea NOT NULL,
    PRIMARY KEY (workspace, model, content_hash),
    FOREIGN KEY (workspace, model, content_hash) REFERENCES vectors ON DELETE CASCADE"""
# The chunks that have a term, many to a row. `entries` has three int32 for each of `n` chunks: its
# row less `first`, how often the term is in the body (the low 15 bits) and in the head, and its
# length. The rows of a pack begin at `first` and end before the next pack of the term. `n` is in
# the index too, so that counting reads nothing else.
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


_MEANT = f"FROM workspaces w WHERE w.id = nullif(current_setting('{SETTING}', true), '')::integer"
_OWN = f"workspace = (SELECT w.id {_MEANT})"
# An array with one element, at the number of the workspace. To look into an array costs nothing in
# the server's eyes, so it does that before any test of the caller. Really it costs 0.1 µs a row, so
# a role that is alone is spared it.
_APART = (
    f"(SELECT format('[%1$s:%1$s]={{t}}', w.id)::boolean[] {_MEANT})[workspace] IS NOT NULL "
    f"AND {_OWN}"
)


def _secured(table: str) -> str:
    """Row-level security that applies even to the owner of a table.

    The policy of `workspaces` decides who may see one. The setting only names it, so that it is
    looked up once for a statement, however many workspaces a role has.
    """
    return f"""
        ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
        CREATE POLICY own ON {table} USING ({_OWN});"""


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
        # Postings and vectors come with a chunk, which is checked: a check of each of them would
        # double the work.
        own = "workspace integer NOT NULL" if table in ("postings", "terms", "vectors") else number
        sql.append(_in_partitions(table, f"{own}, {columns}"))
        for n in range(PARTITIONS):
            # inline while a page holds it: a scan that follows pointers is slow
            if table == "vectors":
                sql.append(f"ALTER TABLE {table}_{n} SET (toast_tuple_target = 8160);")
                # A model belongs to one workspace: the planner must not multiply the two
                # conditions.
                sql.append(
                    f"CREATE STATISTICS {table}_{n}_of (dependencies) ON workspace, model FROM "
                    f"{table}_{n};"
                )
            if table == "terms":  # counts change all the time, in place if the page has room
                sql.append(f"ALTER TABLE {table}_{n} SET (fillfactor = 80);")
    sql += [f"CREATE TABLE {table} ({number}, {columns});" for table, columns in _PLAIN.items()]
    sql += [
        f"CREATE INDEX ON {table} {columns};"
        for table, indexes in _INDEXES.items()
        for columns in indexes
    ]
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
                SELECT replace(c.relname, 'vectors', '{table}') AS name,
                    a.grantee::regrole::text AS role,
                    string_agg(a.privilege_type, ', ') AS rights
                FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
                WHERE c.relnamespace = 'notewell'::regnamespace AND c.relkind IN ('r', 'p')
                    AND c.relname ~ '^vectors(_[0-9]+)?$' AND a.grantee NOT IN (0, c.relowner)
                GROUP BY 1, 2
            LOOP
                EXECUTE format('GRANT %s ON %I TO %s', given.rights, given.name, given.role);
            END LOOP;
        END $$;"""


def _pack_postings() -> str:
    """Postings in packs, with many chunks to a row, in place of a row for each; the packs also
    count the chunks.
    """
    entry = "int4send((row - first)::integer) || int4send(body + head * 32768) || int4send(length)"
    return f"""
        ALTER TABLE postings NO FORCE ROW LEVEL SECURITY;
        CREATE TEMPORARY TABLE packed ON COMMIT DROP AS
            SELECT workspace, term, first, count(*)::integer AS n,
                string_agg({entry}, '' ORDER BY row) AS entries
            FROM (
                SELECT *, min(row) OVER (PARTITION BY workspace, term, pack) AS first
                FROM (
                    SELECT *, row_number() OVER
                        (PARTITION BY workspace, term ORDER BY row) / {PACK} AS pack
                    FROM postings
                ) numbered
            ) firsts
            GROUP BY workspace, term, first;
        DROP TABLE postings, terms;
        {_in_partitions("postings", f"workspace integer NOT NULL, {_POSTINGS}")}
        INSERT INTO postings SELECT * FROM packed ORDER BY workspace, term, first;
        {_secured("postings")}
        {_as_admitted("postings")}"""


def _hide_names() -> str:
    """Names of workspaces that are unique for each role, and that others can neither look up nor
    take first.
    """
    return f"""
        ALTER TABLE workspaces DROP CONSTRAINT workspaces_name_agent_key,
            ALTER name TYPE jsonb USING to_jsonb(name),
            ALTER agent TYPE jsonb USING to_jsonb(agent);
        ALTER TABLE workspaces ADD UNIQUE (owner, name, agent);
        DROP INDEX workspaces_owner_idx;
        DO $$ DECLARE given record; BEGIN
            FOR given IN SELECT DISTINCT a.grantee::regrole AS role
                FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
                WHERE c.oid = 'workspaces'::regclass AND a.grantee NOT IN (0, c.relowner)
            LOOP
                EXECUTE format('REVOKE INSERT, UPDATE ON workspaces FROM %s', given.role);
                EXECUTE format('GRANT {USED_OF_WORKSPACES} ON workspaces TO %s', given.role);
            END LOOP;
        END $$;"""


# What the planner may count: numbers that the server gave out. All else may hold what notes say,
# but for hashes of passages: of those it keeps the first, the last and the commonest, since it must
# know how many there are.
_COUNTED = ("workspace", "model", "row", "document", "first", "n", "number")
_TARGET = "CASE a.attname WHEN 'content_hash' THEN 1 ELSE 0 END"


def keep_apart() -> str:
    """Where several roles use the tables, lets none see what others have by what a statement does
    or is expected to.
    """
    counted = ", ".join(f"'{name}'" for name in _COUNTED)
    return f"""
        DO $$ DECLARE one record; BEGIN
            IF NOT EXISTS (SELECT FROM pg_namespace CROSS JOIN aclexplode(nspacl) a
                WHERE nspname = '{SCHEMA}' AND a.grantee != nspowner) THEN RETURN; END IF;
            FOR one IN SELECT tablename FROM pg_policies
                WHERE schemaname = '{SCHEMA}' AND policyname = 'own' AND strpos(qual, '{GUARD}') = 0
            LOOP
                EXECUTE format('ALTER POLICY own ON %I USING (%s)',
                    one.tablename, $policy${_APART}$policy$);
            END LOOP;
            FOR one IN SELECT c.relname AS name,
                    string_agg(format('ALTER %I SET STATISTICS %s', a.attname, {_TARGET}), ', ')
                        AS silent,
                    -- The type stays what it is, which only removes the statistics that there are.
                    string_agg(format('ALTER %I TYPE %s%s',
                        a.attname, format_type(a.atttypid, a.atttypmod),
                        CASE WHEN a.attcollation = 'pg_catalog."C"'::regcollation
                            THEN ' COLLATE "C"' END), ', ')
                        FILTER (WHERE a.atttypid != 'vector'::regtype) AS again,
                    EXISTS (SELECT FROM pg_class o LEFT JOIN pg_inherits i ON i.inhrelid = o.oid
                        WHERE c.oid IN (o.oid, i.inhparent) AND o.reltuples >= 0) AS analyzed
                FROM pg_class c JOIN pg_attribute a
                    ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
                WHERE c.relnamespace = '{SCHEMA}'::regnamespace
                    AND c.relkind IN ('r', 'p') AND NOT c.relispartition
                    AND c.relname NOT IN ('versions', 'workspaces') AND a.attname NOT IN ({counted})
                    AND (a.attname, a.atttypid)
                        NOT IN (('id', 'bigint'::regtype), ('id', 'integer'::regtype))
                    AND a.attstattarget IS DISTINCT FROM {_TARGET}
                GROUP BY c.oid, c.relname
            LOOP
                IF one.analyzed THEN
                    EXECUTE format('ALTER TABLE %I %s', one.name, one.again);
                END IF;
                EXECUTE format('ALTER TABLE %I %s', one.name, one.silent);
            END LOOP;
        END $$;"""


MIGRATIONS = (_first_schema, _add_windows, _pack_postings, _hide_names)
# A role may make a workspace, but not choose its owner, nor its number: it could take those that
# others will get.
USED_OF_WORKSPACES = "SELECT, DELETE, INSERT (name, agent), UPDATE (members)"
GUARD = "::boolean[]"  # a policy that has it keeps roles apart


def migrate(db: Connection[Any], *, name: str, read_only: bool) -> None:
    """Brings the schema up to date, once, whoever comes first; a newer one is refused and left
    alone.

    Its tables belong to whom the schema belongs to, if there is one before them.
    """
    version = _version(db)
    if version > len(MIGRATIONS):
        raise StoreVersionError(
            (
                f"the index {name} was written by a newer notewell"
                f" (schema {version}, this one knows {len(MIGRATIONS)})"
            ),
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
            prepare(db, name)
        act_as_owner(db, name)
        if not version:
            versions = "versions (version integer PRIMARY KEY, at timestamptz DEFAULT now())"
            db.execute(f"CREATE TABLE IF NOT EXISTS {SCHEMA}.{versions}")
        for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
            db.execute(script())
            db.execute(f"INSERT INTO {SCHEMA}.versions (version) VALUES (%s)", (number,))
        db.execute(keep_apart())


def prepare(db: Connection[Any], name: str, *, owner: str | None = None) -> None:
    """Makes what the tables need: the extension, and the schema, for its owner to be or for whoever
    comes first.
    """
    from psycopg import sql  # noqa: PLC0415
    from psycopg.errors import InsufficientPrivilege  # noqa: PLC0415

    if db.info.server_version < LEAST_SERVER:
        found, hint = (
            db.info.server_version // 10_000,
            f"at least {LEAST_SERVER // 10_000} is needed",
        )
        raise StoreError(f"the server of {name} is PostgreSQL {found}", hint=hint)
    if not db.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'").fetchone():
        hint = "install pgvector for its version, then try again"
        raise StoreError(f"the server of {name} has no pgvector", hint=hint)
    if not db.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone():
        try:
            db.execute("CREATE EXTENSION vector SCHEMA public")
        except InsufficientPrivilege as error:
            hint = "let an administrator run once in that database: CREATE EXTENSION vector"
            raise StoreError(
                f"the database {name} lacks pgvector, and this role may not add it", hint=hint
            ) from error
    if owner_of_schema(db) is None:
        make = sql.SQL("CREATE SCHEMA {} AUTHORIZATION {}")
        whose = sql.Identifier(owner) if owner else sql.SQL("CURRENT_USER")
        db.execute(make.format(sql.Identifier(SCHEMA), whose))


def owner_of_schema(db: Connection[Any]) -> str | None:
    """The role that the schema belongs to, if there is one; its tables do too."""
    sql = "SELECT pg_get_userbyid(nspowner)::text FROM pg_namespace WHERE nspname = %s"
    found = db.execute(sql, (SCHEMA,)).fetchone()
    return str(found[0]) if found else None


def act_as_owner(db: Connection[Any], name: str) -> None:
    """Makes the rest of a transaction the work of whom the tables belong to, or says who can do
    it.
    """
    from psycopg import sql  # noqa: PLC0415
    from psycopg.errors import InsufficientPrivilege  # noqa: PLC0415

    owner = owner_of_schema(db) or ""
    try:
        db.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(owner)))
    except InsufficientPrivilege as error:
        message = (
            f"the tables of {name} belong to {owner}, and only an administrator can make or "
            "change them"
        )
        raise StoreError(
            message, hint=f"let one run: notewell doctor --admit ROLE --index {name}"
        ) from error


def _version(db: Connection[Any]) -> int:
    there = db.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.versions",)).fetchone()
    if not there or there[0] is None:
        return 0
    found = db.execute(f"SELECT coalesce(max(version), 0) FROM {SCHEMA}.versions").fetchone()
    return int(found[0]) if found else 0
