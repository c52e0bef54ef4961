"""No role sees, changes or guesses another's rows, whatever SQL it runs and whatever text it is
given.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.sql import quote
from psycopg.types.json import Jsonb

from notewell.errors import StoreError
from notewell.store.postgres.schema import PARTITIONED, TABLES
from notewell.store.postgres.store import PostgresStore
from notewell.store.values import Copy, Moment, Sought
from notewell.text.words import clean
from notewell.types import Chunk, Document, Edge, End, Facts, Filters
from tests.postgres import Server
from tests.store.made import extend_document, put_document

MODEL = "model@4"
VECTOR = np.asarray([1, 0, 0, 0], dtype=np.float32)
SECRET = "Alices secret port is 8443"
NO_FILTERS = Filters()


@pytest.fixture(scope="module")
def shared(postgres: Server) -> str:
    """A database whose tables are the owner's, with alice and bob as guests who see nothing of one
    another.
    """
    url = postgres.database("empty")
    with closing(PostgresStore(url, workspace="of the owner")) as store:
        for role in ("alice", "bob"):
            store.shared.admit(role, here=False)
    return Server.name_in(url)


@pytest.fixture(scope="module")
def alice(shared: str, postgres: Server) -> Iterator[PostgresStore]:
    store = PostgresStore(postgres.url(shared, "alice"), workspace="alice's")
    fill(store)
    yield store
    store.close()


@pytest.fixture
def bob(shared: str, postgres: Server) -> Iterator[PostgresStore]:
    store = PostgresStore(postgres.url(shared, "bob"), workspace="bob's")
    yield store
    store.close()


def fill(store: PostgresStore) -> None:
    """Something in every table."""
    texts = (SECRET, "another thing", "not judged yet")
    chunks = [
        Chunk(f"id{n}", "memory/a.md", "memory", n, n, ("Head",), t, f"hash{n}")
        for n, t in enumerate(texts)
    ]
    put_document(
        store,
        Document("memory/a.md", "memory", 1, 1, ""),
        "digest",
        Facts(date=dt.date(2026, 3, 1)),
        chunks,
    )
    store.shared.claim(MODEL, 5, 60.0)
    store.vectors.put_vectors("other", {"hash0": VECTOR}, windows={"hash0": b"codes"})
    store.vectors.refuse("third", {"hash0": "no"})
    store.set_meta("key", SECRET)
    store.history.put_edges("memory/a.md", [Edge("references", End("memory/a.md"), End("b"))])
    for n, row in enumerate(store.documents.chunks_of("memory/a.md")[:2]):
        conflicts = [b"form0"] if n else []
        store.relations.put_copies(
            [Copy(row, b"form%d" % n, b"group", "1", [("memory/b.md", "")], [1], conflicts)]
        )


READS: dict[str, Callable[[PostgresStore, str], Any]] = {
    "documents": lambda s, x: s.documents.stored(),
    "lexical": lambda s, x: s.keywords.lexical(
        Sought((x, "secret"), ((x, x), ("secret", "port")), (x, "s")), 9, NO_FILTERS
    ),
    "exact": lambda s, x: s.keywords.lexical(Sought(exact=(x, "alices")), 9, NO_FILTERS),
    "filtered": lambda s, x: s.keywords.lexical(
        Sought(("port",)), 9, Filters(path=x or "*", source=x, origin=x)
    ),
    "nearest": lambda s, x: tuple(
        s.vectors.nearest(m, VECTOR, 5, NO_FILTERS).rows for m in ("other", x)
    ),
    "cosines": lambda s, x: tuple(s.vectors.cosines(m, VECTOR, range(3000)) for m in (x, "other")),
    "by_name_or_date": lambda s, x: s.documents.by_name_or_date(
        [x, "a"], [("2026-03-01", "2026-03-02")], 9, NO_FILTERS
    ),
    "chunks": lambda s, x: s.documents.chunks(range(3000)),
    "chunks_by_id": lambda s, x: (s.documents.chunks_by_id(x), s.documents.chunks_by_id("id")),
    "chunks_of": lambda s, x: (s.documents.chunks_of(x), s.documents.chunks_of("memory/a.md")),
    "chunk_terms": lambda s, x: s.keywords.chunk_terms(range(3000)),
    "term_places": lambda s, x: s.keywords.term_places(range(3000), Sought((x, "secret"))).rows,
    "term_counts": lambda s, x: [
        n for n in s.keywords.term_counts([x, "secret"]).found_in.values() if n
    ],
    "paths_with": lambda s, x: s.keywords.paths_with([x, "secret"]),
    "says": lambda s, x: s.documents.says("secret port"),
    "missing": lambda s, x: (s.vectors.missing(x), s.vectors.missing("other")),
    "dims": lambda s, x: s.vectors.dims(),
    "models": lambda s, x: s.vectors.models(),
    "refused": lambda s, x: (s.vectors.refused(x), s.vectors.refused("third")),
    "remembered": lambda s, x: s.remembered(),
    "get_meta": lambda s, x: [v for v in (s.get_meta(x), s.get_meta("key")) if v],
    "unjudged": lambda s, x: s.relations.unjudged(9),
    "group_of": lambda s, x: [
        group
        for form in (x.encode("utf-8", "replace"), b"form0")
        if (group := s.relations.group_of(form))
    ],
    "forms_of": lambda s, x: s.relations.forms_of(b"group", 9),
    "forms_like": lambda s, x: s.relations.forms_like([1], 9),
    "vectors_of": lambda s, x: (s.vectors.by_hash(x, [x]), s.vectors.by_hash("other", ["hash0"])),
    "windows": lambda s, x: (
        s.vectors.windows(x, range(3000)),
        s.vectors.windows("other", range(3000)),
    ),
    "judgements": lambda s, x: s.relations.judgements(range(3000)),
    "edges": lambda s, x: (
        s.history.edges_from([x, "a"]),
        s.history.edges_to([x, "b"]),
        s.history.edges_of(x),
        s.history.edges_of("memory/a.md"),
    ),
    "paths_named": lambda s, x: (s.documents.paths_named(x), s.documents.paths_named("a")),
    "path_with": lambda s, x: [
        p for p in (s.documents.path_with(x), s.documents.path_with("hash0")) if p
    ],
    "changed_ns": lambda s, x: s.documents.changed_ns([x, "memory/a.md"]),
    "moments": lambda s, x: s.history.moments(NO_FILTERS, limit=9, before=Moment("9", x, 1, x)),
    "sources": lambda s, x: s.documents.sources(),
}


def nothing(found: Any) -> bool:
    return not any(map(bool, found)) if isinstance(found, tuple) else not found


@pytest.mark.parametrize("name", READS)
def test_a_faulty_read_finds_nothing_of_another_role(
    name: str, alice: PostgresStore, bob: PostgresStore
) -> None:
    """Bob's connection uses alice's number, as after a bug of ours, and then names her workspace as
    well.
    """
    if name not in ("missing", "filtered"):
        assert not nothing(READS[name](alice, "x")), "there is something to find"
    bob.connection.workspace = alice.connection.workspace
    assert nothing(READS[name](bob, "x"))
    bob.connection.all(
        "SELECT set_config('notewell.workspace', %s, false)", (str(alice.connection.workspace),)
    )
    assert nothing(READS[name](bob, "x"))


def test_a_faulty_write_changes_nothing_of_another_role(
    alice: PostgresStore, bob: PostgresStore
) -> None:
    before = {table: rows_of(alice, table) for table in TABLES}
    assert all(before.values()), "every table holds something"
    bob.connection.workspace = alice.connection.workspace
    with closing(bob.connection.pool.connect()) as db:
        bob.connection.pool.enter(db, alice.connection.workspace)
    bob.connection.pool.drop_idle()
    one = Chunk("id1", "memory/a.md", "memory", 1, 1, (), "mine now", "hash0", Facts(), row=1)
    copy = Copy(one, b"form0", b"group", "9", (), [1], [b"x"])
    for write in (
        lambda: put_document(bob, Document("memory/a.md", "memory", 1, 1, ""), "d", Facts(), [one]),
        lambda: extend_document(
            bob, Document("memory/a.md", "memory", 1, 1, ""), "d", Facts(), [one], drop=["id1"]
        ),
        lambda: bob.set_meta("key", "mine"),
        lambda: bob.vectors.put_vectors("other", {"hash0": VECTOR}, windows={"hash0": b"mine"}),
        lambda: bob.vectors.refuse("third", {"x": "y"}),
        lambda: bob.relations.put_copies([copy]),
        lambda: bob.shared.claim("other", 5, 60.0),
    ):
        with pytest.raises(StoreError):
            write()
    bob.documents.drop(["memory/a.md"])
    bob.documents.touch([Document("memory/a.md", "memory", 9, 9, "")])
    bob.vectors.forgive("third")
    bob.relations.join(b"form0", b"other")
    bob.relations.reset_judgements()
    bob.vectors.trim(0)
    bob.vectors.prune([])
    bob.history.put_edges("memory/a.md", [])
    with pytest.raises(StoreError, match="owner"):
        bob.shared.admit("bob")
    assert {table: rows_of(alice, table) for table in TABLES} == before
    assert alice.audit() == []


def rows_of(store: PostgresStore, table: str) -> list[tuple[Any, ...]]:
    return sorted(store.connection.all(f"SELECT t::text FROM {table} t WHERE workspace = $w"))


def test_hostile_sql_reads_and_changes_nothing(
    alice: PostgresStore, bob: PostgresStore, postgres: Server
) -> None:
    url, w = postgres.url(bob.name.rpartition("/")[2], "bob"), alice.connection.workspace
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("SET search_path TO notewell, public")
        assert db.execute("SELECT count(*) FROM state").fetchone() == (0,), (
            "a connection that names no workspace sees none"
        )
        own = bob.connection.workspace
        for setting in (w, own):  # whichever he names
            db.execute(f"SET notewell.workspace = {setting}")
            for table in TABLES:
                assert db.execute(
                    f"SELECT count(*) FROM {table} WHERE workspace = {w}"
                ).fetchone() == (0,)
                assert db.execute(f"DELETE FROM {table} WHERE workspace = {w}").rowcount == 0
                assert (
                    db.execute(
                        f"UPDATE {table} SET workspace = {own} WHERE workspace = {w}"
                    ).rowcount
                    == 0
                )
        assert db.execute("SELECT name FROM workspaces").fetchall() == [("bob's",)]
        assert db.execute("UPDATE workspaces SET members = '{bob}'").rowcount == 1, "his own alone"
        assert db.execute("DELETE FROM workspaces WHERE id = %s", (w,)).rowcount == 0
        assert db.execute(
            "SELECT count(*) FROM pg_stats WHERE schemaname = 'notewell'"
        ).fetchone() == (0,)
        heard: list[str] = []
        db.add_notice_handler(lambda notice: heard.append(str(notice.message_primary)))
        db.execute(
            "CREATE FUNCTION pg_temp.leak(t text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001"
            " AS $$ BEGIN RAISE NOTICE '%', t; RETURN true; END $$"
        )
        db.execute("SELECT count(*) FROM chunks WHERE pg_temp.leak(text)")
        assert not any("secret" in one for one in heard), (
            "no function sees a row before the policy does"
        )
        for refused in (
            f"INSERT INTO meta VALUES ({w}, 'key', 'mine')",
            f"INSERT INTO state (workspace) VALUES ({w})",
            f"INSERT INTO postings VALUES ({w}, 'port', 1, 1, '')",
            f"UPDATE meta SET workspace = {w}",
            "INSERT INTO workspaces (name, agent, owner) VALUES ('1', '1', 'alice')",
            "INSERT INTO workspaces (name, agent, members) VALUES ('1', '1', '{alice}')",
            (
                "INSERT INTO workspaces (id, name, agent) OVERRIDING SYSTEM VALUE VALUES (99, '1', "
                "'1')"
            ),
            "UPDATE workspaces SET id = DEFAULT",
            "SELECT nextval('workspaces_id_seq')",
            "UPDATE workspaces SET owner = 'alice'",
            "SET row_security = off; SELECT * FROM chunks",
            "SET ROLE alice",
            "SET SESSION AUTHORIZATION alice",
            "ALTER TABLE chunks DISABLE ROW LEVEL SECURITY",
            "DROP POLICY own ON chunks",
            "CREATE POLICY all_mine ON chunks USING (true)",
            "TRUNCATE chunks CASCADE",
            "CREATE TABLE notewell.mine (x int)",
            *(f"SELECT * FROM {table}_0" for table in PARTITIONED),
        ):
            if "UPDATE meta" in refused:
                bob.set_meta("mine", "mine")
            with pytest.raises(
                (psycopg.errors.InsufficientPrivilege, psycopg.errors.FeatureNotSupported)
            ):
                db.execute(refused)
    assert alice.audit() == []


def test_an_admitted_role_sees_the_workspace_until_it_is_expelled(
    shared: str, postgres: Server
) -> None:
    owner = PostgresStore(postgres.url(shared, "owner"), workspace="ours")
    fill(owner)
    with pytest.raises(StoreError, match="no workspace 'ours' of owner that this role may use"):
        PostgresStore(postgres.url(shared, "bob"), workspace="ours", owner="owner")
    owner.shared.admit("bob")
    guest = PostgresStore(postgres.url(shared, "bob"), workspace="ours", owner="owner")
    assert guest.documents.says(SECRET)
    put_document(guest, Document("b.md", "memory", 1, 1, ""), "d", Facts(), [])
    assert set(owner.documents.stored()) == {"memory/a.md", "b.md"}
    with pytest.raises(StoreError, match="owner"):
        guest.shared.admit("alice")
    owner.shared.expel("bob")
    assert guest.documents.stored() == {}
    for one in (owner, guest):
        one.close()


def test_a_name_tells_others_nothing_and_cannot_be_taken_first(
    shared: str, alice: PostgresStore, bob: PostgresStore, postgres: Server
) -> None:
    """By an error, or by the work that the server says a statement took."""
    names = (alice.workspace, "alice has none of this name")
    constants = [f"{quote(json.dumps(name))}::jsonb" for name in names]
    with psycopg.connect(postgres.url(shared, "bob"), autocommit=True) as db:
        db.execute("SET search_path TO notewell, public")
        for tables in ("on", "off"):
            db.execute(f"SET enable_seqscan = {tables}")
            for how in (
                "name = {}",
                "name < {}",
                "owner = 'alice' AND name = {}",
                "name = ANY (ARRAY[{}])",
            ):
                told = [
                    explained(db, f"SELECT FROM workspaces WHERE {how.format(one)}")
                    for one in constants
                ]
                assert told[0] == told[1]
        for one in constants:
            db.execute(f"INSERT INTO workspaces (name, agent) VALUES ({one}, to_jsonb(''::text))")
        db.execute(
            "DELETE FROM workspaces WHERE name = ANY (%s)", ([Jsonb(name) for name in names],)
        )
    assert bob.workspace not in names
    with closing(PostgresStore(postgres.url(shared, "alice"), workspace=alice.workspace)) as again:
        assert again.connection.workspace == alice.connection.workspace


def test_nobody_writes_to_anothers_workspace_unawares(shared: str, postgres: Server) -> None:
    """Alice takes the name that bob will use and lets him in; his notes go to his own all the
    same.
    """
    with (
        closing(PostgresStore(postgres.url(shared, "alice"), workspace="/home/bob/notes")) as trap,
        closing(PostgresStore(postgres.url(shared, "owner"), workspace="any")) as any_,
    ):
        any_.shared.admit("bob", here=False)
        trap.shared.admit("bob")
        with closing(
            PostgresStore(postgres.url(shared, "bob"), workspace="/home/bob/notes")
        ) as own:
            fill(own)
            assert own.connection.workspace != trap.connection.workspace
        assert trap.documents.stored() == {}


def explained(db: psycopg.Connection[Any], sql: str, *, estimates: bool = True) -> str:
    """What EXPLAIN tells of a statement, with its estimates and what was done, but without its
    constants.
    """
    told = f"ANALYZE, TIMING OFF, SUMMARY OFF, BUFFERS OFF, COSTS {estimates}"
    rows = db.execute(f"EXPLAIN ({told}) {sql}").fetchall()
    return re.sub(r"'(?:[^']|'')*'::(?:text|bytea|jsonb)", "?", "\n".join(row for (row,) in rows))


HASH = "content_hash"  # the planner must know how many there are, and so it knows three of them
PLANS = {
    "as it likes": (),
    "whole tables": ("partition_pruning", "indexscan", "indexonlyscan", "bitmapscan"),
    "indexes": ("seqscan", "partition_pruning"),
    "bitmaps": ("seqscan", "indexscan", "indexonlyscan"),
}


@pytest.mark.parametrize("plan", PLANS)
def test_the_work_of_a_statement_tells_nothing_of_what_others_have(
    plan: str, shared: str, alice: PostgresStore, postgres: Server
) -> None:
    """Comparisons that the server calls leakproof may run before a policy; what follows from them
    must not be seen.
    """
    name = shared
    postgres.execute("ANALYZE", name)
    with closing(PostgresStore(postgres.url(name, "bob"), workspace="an empty one")) as empty:
        w, own = alice.connection.workspace, empty.connection.workspace
    texts = postgres.execute(
        "SELECT c.relname, a.attname, format_type(a.atttypid, NULL) FROM pg_class c"
        " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0"
        " AND a.atttypid::regtype::text IN ('text', 'bytea')"
        " WHERE c.relnamespace = 'notewell'::regnamespace AND c.relkind IN ('r', 'p')"
        " AND NOT c.relispartition",
        name,
    )
    assert len(texts) > 40
    with psycopg.connect(postgres.url(name, "bob"), autocommit=True) as db:
        db.execute("SET search_path TO notewell, public")
        for kind in PLANS[plan]:
            db.execute(f"SET enable_{kind} = off")
        for table, column, kind in texts:
            greatest = f"SELECT max({column})::text FROM notewell.{table} WHERE workspace = {w}"
            there = postgres.execute(greatest, name)[0][0]
            # estimates may choose another plan
            if not there or (column == HASH and plan != "whole tables"):
                continue
            none = "\\x00ff" if kind == "bytea" else "~none"
            values = [f"'{one}'::{kind}" for one in (there.replace("'", "''"), none)]
            for also in (
                "",
                f" AND workspace = {w}",
                f" AND workspace >= (SELECT {own})",
            ):
                for how in ("= {}", "< {}", "= ANY (ARRAY[{}])"):
                    for setting in (w, own):
                        db.execute(f"SET notewell.workspace = {setting}")
                        asked = [
                            f"SELECT FROM {table} WHERE {column} {how.format(one)}{also}"
                            for one in values
                        ]
                        told = [explained(db, sql, estimates=column != HASH) for sql in asked]
                        assert told[0] == told[1], asked[0]


def test_what_any_role_can_notify_disturbs_nobody(
    alice: PostgresStore, bob: PostgresStore, postgres: Server
) -> None:
    name, heard = bob.name.rpartition("/")[2], []
    listening = threading.Thread(target=lambda: heard.append(alice.shared.listen(20.0)))
    listening.start()
    with psycopg.connect(postgres.url(name, "bob"), autocommit=True) as db:
        for _ in range(20):
            db.execute(
                "SELECT pg_notify(%s, 'nonsense')", (f"notewell_{alice.connection.workspace}",)
            )
    put_document(alice, Document("memory/new.md", "memory", 1, 1, ""), "digest", Facts(), [])
    listening.join(60)
    alice.documents.drop(["memory/new.md"])
    assert heard == [alice.generation - 1]


HOSTILE = st.one_of(
    st.sampled_from(
        [
            "'; DROP TABLE notewell.chunks; --",
            '"; DELETE FROM notewell.documents; --',
            "%s %(x)s %%",
            "$1",
            "\\'",
            "\x00",
            "\ud800",
            "' OR '1'='1",
            "{}",
            "a\u0000b",
            "=alices",
            "E'\\x00'",
            "[1,2]",
            "*",
            "?",
            "[",
            "\n",
        ]
    ),
    st.text(max_size=40),
)


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=HOSTILE, other=HOSTILE)
def test_any_text_goes_through_every_call_as_data(
    alice: PostgresStore, bob: PostgresStore, text: str, other: str
) -> None:
    for name, read in READS.items():
        try:
            read(bob, text)
        except StoreError as error:
            raise AssertionError(name) from error
    path = f"x/{text}.md"
    one = Chunk(
        f"id {text}",
        path,
        other,
        1,
        1,
        (text, other),
        text + other,
        f"hash {other}",
        Facts(title=text),
    )
    put_document(
        bob,
        Document(path, other, 1, 1, ""),
        other,
        Facts(title=text, supersedes=(other,)),
        [one],
        tail=text,
    )
    (back,) = bob.documents.chunks_of(path)
    assert (back.text, back.facts.supersedes) == (clean(text + other), (other,))
    bob.vectors.put_vectors(f"m {text}", {one.content_hash: VECTOR})
    bob.vectors.refuse(f"r {text}", {text: other})
    bob.set_meta(text, other)
    assert bob.get_meta(text) == other
    bob.history.put_edges(path, [Edge(text, End(text, other), End(other, text))])
    form, against = text.encode("utf-8", "replace"), other.encode("utf-8", "replace")
    bob.relations.put_copies([Copy(back, form, b"group", other, [(text, other)], [1], [against])])
    assert isinstance(bob.relations.related([back], Filters(path=path)), dict)
    bob.shared.claim(f"c {text}", 2, 1.0)
    bob.shared.release(f"c {text}", [text])
    bob.documents.drop([path])
    assert bob.documents.chunks_of(path) == []
    assert alice.documents.says(SECRET)
    assert len(alice.documents.stored()) == 1
