"""How far a client can prove that deleted text is gone from a database, and that it says so where
it cannot.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from notewell.store.postgres.store import PostgresStore
from notewell.types import Chunk, Document, Facts
from tests.postgres import Server
from tests.store.made import put_document

SECRET = "The heron of the northern pond is called Agatha"


def forgotten(store: PostgresStore, *, scrub: bool = True) -> None:
    """A note that was written and dropped, next to one that stays."""
    for path, text in (("b.md", "Something else that stays"), ("a.md", SECRET)):
        one = Chunk(f"id {path}", path, "memory", 1, 1, (), text, f"hash {path}")
        put_document(store, Document(path, "memory", 1, 1, ""), path, Facts(), [one])
    store.documents.drop(["a.md"])
    if scrub:
        assert store.scrub()[1]


def test_rows_dead_rows_and_indexes_are_checked(database: str, tmp_path: Path) -> None:
    with closing(PostgresStore(database, workspace=str(tmp_path))) as store:
        forgotten(store)
        found = store.shared.remains([SECRET])
        assert [line.split(":")[0] for line in found.checked] == [
            "rows",
            "dead rows and their entries in indexes",
        ]
        assert any("WAL" in line and "backups" in line for line in found.left)
        assert any("pageinspect" in line for line in found.left)
        assert store.audit() == []


def test_the_last_note_of_a_workspace_is_vacuumed_too(database: str, tmp_path: Path) -> None:
    with closing(PostgresStore(database, workspace=str(tmp_path))) as store:
        forgotten(store, scrub=False)
        store.documents.drop(["b.md"])
        store.scrub()
        assert len(store.shared.remains([SECRET]).checked) == 2


def test_a_row_that_still_has_it_is_named(database: str, tmp_path: Path) -> None:
    with closing(PostgresStore(database, workspace=str(tmp_path))) as store:
        forgotten(store)
        store.set_meta("last question", f"Is it true? {SECRET}")
        found = store.shared.remains([SECRET])
        assert "a row of meta still has it" in found.left
        assert not any(line.startswith("rows") for line in found.checked)


def test_a_transaction_that_may_still_read_it_is_reported(database: str, tmp_path: Path) -> None:
    with closing(PostgresStore(database, workspace=str(tmp_path))) as store:
        with psycopg.connect(database) as reader:
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            reader.execute("SELECT 1")
            forgotten(store)
            found = store.shared.remains([SECRET])
            assert any("a transaction that began before" in line for line in found.left)
            assert not any(line.startswith("dead rows") for line in found.checked)
        store.scrub()
        assert any(line.startswith("dead rows") for line in store.shared.remains([SECRET]).checked)


def test_a_superuser_looks_at_the_bytes_of_the_pages(postgres: Server) -> None:
    url = postgres.database("empty")
    name = Server.name_in(url)
    try:
        postgres.execute("CREATE EXTENSION pageinspect", name)
    except psycopg.Error:
        pytest.skip("this server has no pageinspect")
    with closing(PostgresStore(postgres.url(name, "admin"), workspace="w")) as store:
        forgotten(store, scrub=False)
        before = store.shared.remains([SECRET])
        assert any(
            "has bytes of it until it is used again: VACUUM FULL" in line for line in before.left
        )
        fix = next(line.partition(": ")[2] for line in before.left if "VACUUM FULL" in line)
        postgres.execute(fix, name)
        assert any(line.startswith("pages: ") for line in store.shared.remains([SECRET]).checked)


def test_an_admitted_role_can_prove_as_much_as_the_owner(postgres: Server) -> None:
    url = postgres.database("empty")
    with closing(PostgresStore(url, workspace="w")) as owner:
        owner.shared.admit("bob")
        with closing(PostgresStore(postgres.url(Server.name_in(url), "bob"), workspace="w")) as bob:
            forgotten(bob)
            assert len(bob.shared.remains([SECRET]).checked) == 2
            assert owner.shared.remains([SECRET]).checked == bob.shared.remains([SECRET]).checked
