"""The roles of a PostgreSQL index: whom its tables belong to, who may use them, and who can see
everything.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from notewell.errors import StoreError
from notewell.store.postgres.pool import Pool
from notewell.store.postgres.schema import (
    GUARD,
    PARTITIONED,
    PARTITIONS,
    SCHEMA,
    TABLES,
    USED_OF_WORKSPACES,
    act_as_owner,
    keep_apart,
    migrate,
    owner_of_schema,
    prepare,
)
from notewell.store.values import Finding

if TYPE_CHECKING:
    import psycopg

    RawConnection = psycopg.Connection[Any]
    Ask = Callable[[str], list[tuple[Any, ...]]]

OWNER = "notewell_owner"
_OWNS, _EVERYBODY = "owns the tables", "every role"
_ADMITTED = (
    "SELECT DISTINCT pg_get_userbyid(a.grantee)::text"
    " FROM pg_namespace CROSS JOIN aclexplode(nspacl) a"
    f" WHERE nspname = '{SCHEMA}' AND a.grantee != nspowner ORDER BY 1"
)
_UNPROTECTED = (
    "SELECT relname FROM pg_class"
    f" WHERE relnamespace = '{SCHEMA}'::regnamespace AND relkind IN ('r', 'p')"
    " AND relname != 'versions' AND NOT (relrowsecurity AND relforcerowsecurity) ORDER BY 1"
)
_NOT_APART = (
    f"SELECT 1 FROM pg_policies WHERE schemaname = '{SCHEMA}' AND policyname = 'own' AND "
    f"strpos(qual, '{GUARD}') = 0"
)
# Who can read what others have: by a power of the server, as owner, or with functions that others
# would run unawares. A role can do what those can do that it is a member of, if only because it may
# let itself in.
_WHO_SEES = f"""
    WITH RECURSIVE ours AS (
        SELECT n.nspname, n.nspowner, n.nspacl
            FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
            WHERE e.extname = 'vector'
        UNION SELECT nspname, nspowner, nspacl FROM pg_namespace WHERE nspname = 'public'
    ), sees (role, step, why) AS (
        SELECT oid, 1, 'superuser' FROM pg_roles WHERE rolsuper
        UNION ALL SELECT oid, 2, 'BYPASSRLS' FROM pg_roles WHERE rolbypassrls
        UNION ALL SELECT oid, 3, 'REPLICATION' FROM pg_roles WHERE rolreplication
        UNION ALL SELECT oid, 4, '' FROM pg_roles WHERE rolname IN ('pg_read_all_data',
            'pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program')
        UNION ALL SELECT relowner, 5, '{_OWNS}'
            FROM pg_class WHERE relnamespace = '{SCHEMA}'::regnamespace
        UNION ALL SELECT nspowner, 5, '{_OWNS}' FROM pg_namespace WHERE nspname = '{SCHEMA}'
        UNION ALL SELECT datdba, 6, 'owns the database'
            FROM pg_database WHERE datname = current_database()
        UNION ALL SELECT nspowner, 7, 'owns the schema ' || nspname FROM ours
        UNION ALL SELECT a.grantee, 8, 'may create in the schema ' || nspname
            FROM ours CROSS JOIN aclexplode(nspacl) a WHERE a.privilege_type = 'CREATE'
        UNION ALL SELECT oid, 9, '' FROM pg_roles WHERE rolname = current_user
    ), all_who (role, step, why) AS (
        SELECT * FROM sees
        UNION SELECT m.member, a.step + 10, 'member of ' || m.roleid::regrole
            FROM pg_auth_members m JOIN all_who a ON m.roleid = a.role
            WHERE m.admin_option OR m.inherit_option OR m.set_option
    ), first AS (
        SELECT DISTINCT ON (a.role) coalesce(r.rolname, '{_EVERYBODY}') AS name, a.step, a.why
        FROM all_who a LEFT JOIN pg_roles r ON r.oid = a.role
        WHERE a.why != '' AND coalesce(r.rolcanlogin, true) ORDER BY a.role, a.step
    )
    SELECT name::text, why FROM first ORDER BY step, name"""
_MADE_BY_OTHERS = f"""
    SELECT tablename::text, 'policy ' || policyname FROM pg_policies WHERE schemaname = '{SCHEMA}'
        AND policyname != ALL (CASE tablename
            WHEN 'workspaces' THEN '{{seen,made,changed,dropped}}'::name[]
            ELSE '{{own}}'::name[] END)
    UNION ALL SELECT tablename, 'policy own' FROM pg_policies p WHERE schemaname = '{SCHEMA}'
        AND tablename != 'workspaces' AND policyname = 'own'
        AND qual != (SELECT qual FROM pg_policies o
            WHERE o.schemaname = '{SCHEMA}' AND policyname = 'own'
            GROUP BY qual ORDER BY count(*) DESC LIMIT 1)
    UNION ALL SELECT c.relname, 'trigger ' || t.tgname
        FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
        WHERE c.relnamespace = '{SCHEMA}'::regnamespace AND NOT t.tgisinternal
    UNION ALL SELECT tablename, 'rule ' || rulename FROM pg_rules WHERE schemaname = '{SCHEMA}'
    ORDER BY 1, 2"""


def set_up(url: str, roles: Sequence[str], *, timeout_s: float) -> list[Finding]:
    """Gives the tables to a role without login, makes what is missing, lets roles use them, and
    says who sees what.

    Who owned the tables may go on using them. It takes an administrator of the server.
    """
    from psycopg.errors import InsufficientPrivilege  # noqa: PLC0415

    pool = Pool(url, read_only=False, timeout_s=timeout_s)
    with contextlib.closing(pool), pool.translated(), pool.use() as raw:
        try:
            former = owner_of_schema(raw)
            owner = former if former and not _may_log_in(raw, former) else OWNER
            with _member(raw, owner):
                with raw.transaction():
                    prepare(raw, pool.name, owner=owner)
                    _hand_over(raw, owner)
                migrate(raw, name=pool.name, read_only=False)
                for role in ([former] if former and former != owner else []) + [*roles]:
                    let_in(raw, role, pool.name)
        except InsufficientPrivilege as error:
            reason = str(error).splitlines()[0]
            hint = (
                "connect as an administrator of the server, who may act as the owner of the tables"
            )
            raise StoreError(
                f"this role may not set up {pool.name}: {reason}", hint=hint
            ) from error
        return list(security(lambda sql: raw.execute(sql).fetchall(), pool.name))


def _may_log_in(raw: RawConnection, role: str) -> bool:
    found = raw.execute("SELECT rolcanlogin FROM pg_roles WHERE rolname = %s", (role,)).fetchone()
    return bool(found and found[0])


@contextlib.contextmanager
def _member(raw: RawConnection, owner: str) -> Iterator[None]:
    """Makes the owner to be, and lets this role act as it until the end, if it may not anyway."""
    from psycopg import sql  # noqa: PLC0415

    role = sql.Identifier(owner)
    if not raw.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (owner,)).fetchone():
        raw.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(role))
    may = "SELECT pg_has_role(%s, 'SET') AND pg_has_role(%s, 'USAGE')"
    if raw.execute(may, (owner, owner)).fetchone() == (True,):
        yield
        return
    raw.execute(sql.SQL("GRANT {} TO CURRENT_USER WITH INHERIT TRUE, SET TRUE").format(role))
    try:
        yield
    finally:
        raw.execute(sql.SQL("REVOKE {} FROM CURRENT_USER GRANTED BY CURRENT_USER").format(role))


def _hand_over(raw: RawConnection, owner: str) -> None:
    """Gives the schema and all in it to its owner to be."""
    from psycopg import sql  # noqa: PLC0415

    others = raw.execute(
        "SELECT 'TABLE', relname FROM pg_class WHERE relnamespace = %(schema)s::regnamespace"
        " AND relkind IN ('r', 'p') AND pg_get_userbyid(relowner) != %(owner)s UNION ALL"
        " SELECT 'STATISTICS', stxname FROM pg_statistic_ext"
        " WHERE stxnamespace = %(schema)s::regnamespace"
        " AND pg_get_userbyid(stxowner) != %(owner)s",
        {"schema": SCHEMA, "owner": owner},
    ).fetchall()
    change = sql.SQL("ALTER {kind} {name} OWNER TO {owner}")
    if owner_of_schema(raw) != owner:
        others.insert(0, ("SCHEMA", None))
    for kind, name in others:
        whole = sql.Identifier(SCHEMA, name) if name else sql.Identifier(SCHEMA)
        raw.execute(change.format(kind=sql.SQL(kind), name=whole, owner=sql.Identifier(owner)))


def let_in(raw: RawConnection, role: str, name: str) -> None:
    """Lets a role use the tables, if this one may act as their owner; without it, the role must
    have been let in.
    """
    from psycopg import sql  # noqa: PLC0415

    if not raw.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone():
        raise StoreError(
            f"the server of {name} has no role {role!r}", hint=f'CREATE ROLE "{role}" LOGIN'
        )
    used = "pg_has_role(nspowner, 'SET'), has_schema_privilege(%s, oid, 'USAGE')"
    sought = f"SELECT {used} FROM pg_namespace WHERE nspname = '{SCHEMA}'"
    can, was = raw.execute(sought, (role,)).fetchone() or (False, False)
    if was and not can:
        return
    partitions = [f"{table}_{n}" for table in PARTITIONED for n in range(PARTITIONS)]
    with raw.transaction():
        act_as_owner(raw, name)
        for grant, names in (
            ("USAGE ON SCHEMA {}", [SCHEMA]),
            ("SELECT ON {}", ["versions"]),
            ("SELECT, INSERT, UPDATE, DELETE ON {}", TABLES),
            (f"{USED_OF_WORKSPACES} ON {{}}", ["workspaces"]),
            # to analyze what grew, and to vacuum what was forgotten
            ("MAINTAIN ON {}", [*TABLES, *partitions]),
        ):
            for one in names:
                statement = sql.SQL(f"GRANT {grant} TO {{role}}")
                raw.execute(statement.format(sql.Identifier(one), role=sql.Identifier(role)))
        raw.execute("SET LOCAL statement_timeout = 0")
        raw.execute(keep_apart())
        raw.execute("RESET ROLE")


def security(ask: Ask, name: str) -> Iterator[Finding]:
    """Whether row security applies, whom the tables belong to, and who can see everything."""
    admitted = [who for (who,) in ask(_ADMITTED)]
    admit = f"let an administrator run: notewell doctor --admit ROLE --index {name}"
    yield _row_security(ask, admit if admitted else "")
    role, superuser, bypass = ask(
        "SELECT current_user::text, rolsuper, rolbypassrls FROM pg_roles WHERE rolname = "
        "current_user"
    )[0]
    if superuser or bypass:
        kind = "a superuser" if superuser else "a role with BYPASSRLS"
        fix = "CREATE ROLE agent LOGIN NOSUPERUSER NOBYPASSRLS; and connect as it"
        yield Finding("role", "warn", f"{role} is {kind}: row security does not apply to it", fix)
    else:
        yield Finding("role", "ok", f"row security applies to {role}")
    found: dict[str, str] = dict(ask(_WHO_SEES))
    owners = [who for who, why in found.items() if why == _OWNS]
    if not owners:
        yield Finding("owner", "ok", "nobody who can log in owns the tables")
    elif not admitted:
        yield Finding(
            "owner",
            "ok",
            f"{_named(owners)} owns the tables, and would see what roles have that are admitted",
        )
    else:
        could = (
            f"{_named(owners)} owns the tables, and could switch row security off for "
            f"{_named(admitted)}"
        )
        yield Finding("owner", "warn", could, admit)
    detail = _named([f"{who} ({why})" for who, why in found.items()]) or "nobody who can log in"
    if _EVERYBODY in found:
        yield Finding(
            "who sees everything", "warn", detail, "REVOKE CREATE ON SCHEMA public FROM PUBLIC;"
        )
    elif both := [who for who in found if who in admitted]:
        fix = f"take that from {_named(both)}, who should see only what is theirs"
        yield Finding("who sees everything", "warn", detail, fix)
    else:
        yield Finding("who sees everything", "ok", detail)


def _row_security(ask: Ask, admit: str) -> Finding:
    """Whether it is on, and as we made it; `admit` is what would keep roles apart, if there are
    several.
    """
    if unprotected := [table for (table,) in ask(_UNPROTECTED)]:
        fix = (
            f"ALTER TABLE {SCHEMA}.{unprotected[0]} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL "
            "SECURITY;"
        )
        return Finding(
            "row security",
            "fail",
            f"off for {_named(unprotected)}: agents can read one another's rows",
            fix,
        )
    if strange := [f"{what} on {table}" for table, what in ask(_MADE_BY_OTHERS)]:
        fix = "ask the owner of the tables what it is for"
        return Finding("row security", "fail", f"notewell did not make {_named(strange)}", fix)
    if admit and ask(_NOT_APART):
        detail = "roles that were let in with SQL alone can guess what others have: EXPLAIN tells"
        return Finding("row security", "fail", detail, admit)
    return Finding("row security", "ok", "on for every table")


def _named(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
