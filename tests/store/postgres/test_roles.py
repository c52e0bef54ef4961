"""Whom the tables belong to, who may use them, and that `doctor` names who can see everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import psycopg
import pytest
from click.testing import CliRunner

from notewell.errors import StoreError, UsageError
from notewell.store.postgres import schema
from notewell.store.postgres import shared as shared_
from notewell.store.postgres.roles import OWNER, set_up
from notewell.store.postgres.store import PostgresStore
from notewell.store.values import Finding
from notewell.surfaces.cli.commands import cli
from tests.postgres import Server
from tests.store.postgres.test_security import NO_FILTERS, SECRET, VECTOR, fill

Roles = Callable[..., None]
SOME = "EXECUTE FUNCTION suppress_redundant_updates_trigger()"


@pytest.fixture
def role(postgres: Server) -> Iterator[Roles]:
    """Makes roles for one test."""
    made: list[str] = []

    def make(*names: str, options: str = "LOGIN") -> None:
        for name in names:
            postgres.execute(f"CREATE ROLE {name} {options}")
            made.append(name)

    yield make
    postgres.execute("DROP DATABASE IF EXISTS team WITH (FORCE)")  # which one of them may own
    for name in reversed(made):
        for (database,) in postgres.execute("SELECT datname FROM pg_database WHERE datallowconn"):
            postgres.execute(f"DROP OWNED BY {name}", database)
        postgres.execute(f"DROP ROLE {name}")


@pytest.fixture
def team(postgres: Server) -> str:
    """A database that an administrator set up for alice and bob."""
    postgres.execute("CREATE DATABASE team TEMPLATE empty")
    set_up(postgres.url("team"), ["alice", "bob"], timeout_s=30.0)
    return "team"


@pytest.fixture(autouse=True)
def no_team(postgres: Server) -> Iterator[None]:
    yield
    postgres.execute("DROP DATABASE IF EXISTS team WITH (FORCE)")


def findings(store: PostgresStore) -> dict[str, Finding]:
    return {one.what: one for one in store.shared.health()}


def owners(postgres: Server, database: str) -> set[str]:
    sql = (
        "SELECT pg_get_userbyid(relowner)::text FROM pg_class"
        " WHERE relnamespace = 'notewell'::regnamespace"
        " UNION SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'notewell'"
        " UNION SELECT pg_get_userbyid(stxowner) FROM pg_statistic_ext"
    )
    return {who for (who,) in postgres.execute(sql, database)}


UNDOING = (
    "ALTER TABLE chunks DISABLE ROW LEVEL SECURITY",
    "ALTER TABLE chunks_0 DISABLE ROW LEVEL SECURITY",
    "ALTER TABLE chunks NO FORCE ROW LEVEL SECURITY",
    "ALTER TABLE chunks OWNER TO CURRENT_USER",
    "DROP POLICY own ON chunks",
    "ALTER POLICY own ON chunks USING (true)",
    "CREATE POLICY all_mine ON chunks USING (true)",
    f"CREATE TRIGGER mine BEFORE INSERT ON chunks {SOME}",
    "CREATE RULE mine AS ON INSERT TO chunks DO ALSO NOTHING",
    "CREATE INDEX ON chunks (text)",
    "CREATE STATISTICS notewell.mine ON text, heading FROM chunks",
    "ALTER TABLE chunks ALTER text SET STATISTICS 100",
    "CREATE FUNCTION notewell.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION public.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "ALTER SCHEMA notewell OWNER TO CURRENT_USER",
    "DROP SCHEMA notewell CASCADE",
    f"SET ROLE {OWNER}",
    f"GRANT {OWNER} TO CURRENT_USER",
    f"ALTER ROLE {OWNER} LOGIN",
    f"REASSIGN OWNED BY {OWNER} TO CURRENT_USER",
    "CREATE PUBLICATION mine FOR TABLE chunks",
    "SET session_replication_role = replica",
    "SELECT stavalues1 FROM pg_statistic",
    "SELECT * FROM chunks_0",
    "COPY chunks_0 TO STDOUT",
)


def test_the_first_user_of_a_team_cannot_switch_row_security_off(
    team: str, postgres: Server
) -> None:
    with (
        closing(PostgresStore(postgres.url(team, "alice"), workspace="first")),
        closing(PostgresStore(postgres.url(team, "bob"), workspace="notes")) as bob,
    ):
        fill(bob)
        assert owners(postgres, team) == {OWNER}
        assert postgres.execute(f"SELECT rolcanlogin FROM pg_roles WHERE rolname = '{OWNER}'") == [
            (False,)
        ]
        with psycopg.connect(postgres.url(team, "alice"), autocommit=True) as db:
            db.execute("SET search_path TO notewell, public")
            for sql in UNDOING:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    db.execute(sql)
            assert db.execute("SELECT count(*) FROM chunks").fetchone() == (0,)
        told = findings(bob)
        assert {
            told[what].verdict for what in ("row security", "role", "owner", "who sees everything")
        } == {"ok"}
        assert told["role"].detail == "row security applies to bob"
        assert told["owner"].detail == "nobody who can log in owns the tables"
        assert told["who sees everything"].detail == "admin (superuser)"


def test_tables_of_the_first_user_go_to_a_role_without_login(postgres: Server) -> None:
    """A database that the first user made for all: she could see everything, which `doctor` says
    and `admit` ends.
    """
    postgres.execute("CREATE DATABASE team TEMPLATE empty")
    postgres.execute("GRANT CREATE ON DATABASE team TO alice")
    off = "ALTER TABLE notewell.chunks DISABLE ROW LEVEL SECURITY"
    alice, bob = (postgres.url("team", who) for who in ("alice", "bob"))
    with closing(PostgresStore(alice, workspace="hers")) as hers:
        fill(hers)
        alone = findings(hers)
        hers.shared.admit("bob", here=False)
    with closing(PostgresStore(bob, workspace="his")) as his:
        fill(his)
        before = findings(his)
    with psycopg.connect(alice) as db:
        db.execute(off)  # not committed
    told = {one.what: one for one in set_up(postgres.url("team"), (), timeout_s=30.0)}
    assert owners(postgres, "team") == {OWNER}
    with (
        psycopg.connect(alice, autocommit=True) as db,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        db.execute(off)
    for url, workspace in ((alice, "hers"), (bob, "his")):
        with closing(PostgresStore(url, workspace=workspace)) as store:
            assert store.documents.says(SECRET)
            store.documents.drop(["memory/a.md"])
            fill(store)
            assert store.audit() == []
            assert store.scrub()[1], "it may vacuum"
            assert findings(store)["owner"].verdict == "ok"
    assert (alone["owner"].verdict, before["owner"].verdict, told["owner"].verdict) == (
        "ok",
        "warn",
        "ok",
    )
    assert (
        alone["owner"].detail
        == "alice owns the tables, and would see what roles have that are admitted"
    )
    assert (
        before["owner"].detail == "alice owns the tables, and could switch row security off for bob"
    )
    assert "notewell doctor --admit ROLE --index postgresql://bob@" in before["owner"].fix
    assert before["who sees everything"].detail == "admin (superuser), alice (owns the tables)"


def test_who_can_see_everything_is_named_with_the_reason(
    team: str, postgres: Server, role: Roles
) -> None:
    role("bypasser", options="LOGIN BYPASSRLS")
    role("copier", options="LOGIN REPLICATION")
    role("reader", "maker", "member", "keeper", "planter", "friend")
    for sql in (
        f"GRANT pg_read_all_data TO reader; GRANT {OWNER} TO member",
        f"GRANT {OWNER} TO keeper WITH ADMIN TRUE, INHERIT FALSE, SET FALSE",
        "GRANT CREATE ON SCHEMA public TO planter; GRANT bob TO friend",
        "ALTER DATABASE team OWNER TO maker",
    ):
        postgres.execute(sql, team)
    with closing(PostgresStore(postgres.url(team, "bob"), workspace="notes")) as bob:
        told = findings(bob)["who sees everything"]
        assert told.verdict == "ok"
        assert told.detail.endswith(" and 1 more")
        named = told.detail.removesuffix(" and 1 more").split(", ")
        assert (
            dict(one.rstrip(")").split(" (") for one in named).items()
            <= {
                "admin": "superuser",
                "bypasser": "BYPASSRLS",
                "copier": "REPLICATION",
                "maker": "owns the database",
                "planter": "may create in the schema public",
                "reader": "member of pg_read_all_data",
                "keeper": f"member of {OWNER}",
                "member": f"member of {OWNER}",
                "friend": "member of bob",
            }.items()
        )
        postgres.execute("GRANT CREATE ON SCHEMA public TO alice", team)
        told = findings(bob)["who sees everything"]
        assert (told.verdict, "alice" in told.fix) == ("warn", True), (
            "who uses the index should not see all of it"
        )
        postgres.execute("GRANT CREATE ON SCHEMA public TO PUBLIC", team)
        assert (
            findings(bob)["who sees everything"].fix
            == "REVOKE CREATE ON SCHEMA public FROM PUBLIC;"
        )


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("CREATE POLICY more ON notewell.chunks USING (true)", "policy more on chunks"),
        ("ALTER POLICY own ON notewell.meta USING (true)", "policy own on meta"),
        ("CREATE POLICY own ON notewell.workspaces USING (true)", "policy own on workspaces"),
        ("CREATE RULE more AS ON INSERT TO notewell.meta DO ALSO NOTHING", "rule more on meta"),
        (
            f"CREATE TRIGGER more BEFORE UPDATE ON notewell.meta FOR EACH ROW {SOME}",
            "trigger more on meta",
        ),
    ],
)
def test_what_weakens_row_security_is_named(
    team: str, postgres: Server, sql: str, told: str
) -> None:
    postgres.execute(sql, team)
    with closing(PostgresStore(postgres.url(team, "bob"), workspace="notes")) as bob:
        found = findings(bob)["row security"]
        assert (found.verdict, found.detail) == ("fail", f"notewell did not make {told}")


def test_a_role_that_was_let_in_with_sql_alone_is_named(postgres: Server) -> None:
    with closing(PostgresStore(postgres.database("empty"), workspace="w")) as store:
        assert findings(store)["row security"].verdict == "ok"
        postgres.execute("GRANT USAGE ON SCHEMA notewell TO bob", store.name.rpartition("/")[2])
        found = findings(store)["row security"]
        assert (found.verdict, "EXPLAIN" in found.detail) == ("fail", True)
        store.shared.admit("bob", here=False)
        assert findings(store)["row security"].verdict == "ok"


def test_an_upgrade_is_for_an_administrator_where_no_user_owns_the_tables(
    postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.execute("CREATE DATABASE team TEMPLATE empty")
    whole = schema.MIGRATIONS
    admin, alice = postgres.url("team"), postgres.url("team", "alice")
    set_up(admin, ["alice"], timeout_s=30.0)
    with closing(PostgresStore(alice, workspace="notes")) as store:
        fill(store)
    monkeypatch.setattr(
        schema, "MIGRATIONS", (*whole, lambda: "CREATE TABLE notewell.more (x int)")
    )
    with pytest.raises(StoreError, match=f"belong to {OWNER}, and only an administrator") as caught:
        PostgresStore(alice, workspace="notes")
    assert "notewell doctor --admit" in caught.value.hint
    set_up(admin, (), timeout_s=30.0)
    assert owners(postgres, "team") == {OWNER}
    with closing(PostgresStore(alice, workspace="notes")) as store:
        assert store.documents.says(SECRET)


def test_an_administrator_who_is_no_superuser_can_set_it_up(postgres: Server, role: Roles) -> None:
    """As on hosted servers: who made the owner may let itself in again, so it is named, but it is
    no user.
    """
    postgres.execute(f"DROP ROLE IF EXISTS {OWNER}")
    role("hosted", options="LOGIN CREATEROLE")
    postgres.execute("CREATE DATABASE team OWNER hosted TEMPLATE empty")
    told = {
        one.what: one for one in set_up(postgres.url("team", "hosted"), ["alice"], timeout_s=30.0)
    }
    assert owners(postgres, "team") == {OWNER}
    assert told["owner"].verdict == "ok"
    assert told["who sees everything"].detail == "admin (superuser), hosted (owns the database)"
    with closing(PostgresStore(postgres.url("team", "alice"), workspace="notes")) as store:
        fill(store)
    sets = "SELECT set_option FROM pg_auth_members WHERE roleid = %s::regrole AND set_option"
    assert postgres.execute(sets.replace("%s", f"'{OWNER}'")) == [], (
        "it can act as the owner only while it sets up"
    )
    set_up(postgres.url("team", "hosted"), ["bob"], timeout_s=30.0)
    postgres.execute("DROP DATABASE team WITH (FORCE)")
    postgres.execute(f"DROP ROLE {OWNER}")


def test_who_may_not_set_it_up_is_told_so(team: str, postgres: Server) -> None:
    with pytest.raises(StoreError, match="may not set up") as caught:
        set_up(postgres.url(team, "alice"), ["alice"], timeout_s=30.0)
    assert "administrator" in caught.value.hint
    with pytest.raises(StoreError, match="no role 'nobody'") as caught:
        set_up(postgres.url(team), ["nobody"], timeout_s=30.0)
    assert caught.value.hint == 'CREATE ROLE "nobody" LOGIN'
    assert owners(postgres, team) == {OWNER}


def test_a_user_shares_a_workspace_but_lets_nobody_into_the_database(
    team: str, postgres: Server, role: Roles
) -> None:
    role("carol")
    with closing(PostgresStore(postgres.url(team, "alice"), workspace="ours")) as hers:
        fill(hers)
        hers.shared.admit("bob")
        with closing(
            PostgresStore(postgres.url(team, "bob"), workspace="ours", owner="alice")
        ) as his:
            assert his.documents.says(SECRET)
        for here in (True, False):
            with pytest.raises(StoreError, match="only an administrator"):
                hers.shared.admit("carol", here=here)
        members = "SELECT members::text FROM notewell.workspaces"
        assert postgres.execute(members, team) == [("{bob}",)]


def test_only_the_owner_of_the_tables_builds_an_index_and_others_are_told_how(
    team: str, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_, "EXACT_UP_TO", 0)
    with closing(PostgresStore(postgres.url(team, "bob"), workspace="notes")) as bob:
        fill(bob)
        assert not bob.shared.settle("other"), "nothing fails, and searches read all vectors"
        told = findings(bob)["index type"]
        assert (
            told.verdict,
            told.detail.startswith("the vectors of other have no HNSW index"),
        ) == ("warn", True)
        postgres.execute(told.fix.partition("run: ")[2], team)
        assert bob.vectors.indexed() == ["other"]
        assert bob.vectors.nearest("other", VECTOR, 5, NO_FILTERS).rows
        assert findings(bob)["index type"].detail == "HNSW for other"


def test_admit_says_what_it_did_and_needs_a_database(team: str, postgres: Server) -> None:
    done = CliRunner().invoke(cli, ["doctor", "--admit", "alice", "--index", postgres.url(team)])
    assert done.exit_code == 0, done.output
    assert "nobody who can log in owns the tables" in done.output
    refused = CliRunner().invoke(cli, ["doctor", "--admit", "alice"])
    assert isinstance(refused.exception, UsageError)
    assert "there is no database" in str(refused.exception)
