"""What rows about copies, contradictions and replacements mean, without any store."""

from __future__ import annotations

from notewell.store.resolve import RelationRows, is_part, names_of, resolve
from notewell.types import Chunk, Facts, Relations


def chunk(
    row: int, path: str = "", *, lines: tuple[int, int] = (1, 5), pinned: bool = False
) -> Chunk:
    facts = Facts(pinned=pinned)
    path = path or f"memory/{row}.md"
    return Chunk(
        f"id{row}",
        path,
        "memory",
        *lines,
        ("Plan", "Next Steps"),
        "text",
        "hash",
        facts=facts,
        row=row,
    )


def by(chunk: Chunk, *, copy: bool = False, against: tuple[str, ...] = ()) -> Relations:
    return Relations(chunk.id, chunk.citation, copy, against)


ONE, TWO, THREE, FOUR = (chunk(row) for row in (1, 2, 3, 4))
CHUNKS = {c.row: c for c in (ONE, TWO, THREE, FOUR)}


def test_a_copy_is_represented_by_the_head_of_its_group_and_the_head_by_nothing() -> None:
    assert resolve([1, 2], RelationRows(heads={1: 2}), CHUNKS) == {1: by(TWO, copy=True)}


def test_contradictions_are_listed_by_id_in_order() -> None:
    found = RelationRows(conflicts={1: [(3, "id3"), (2, "id2")]})
    assert resolve([1, 4], found, CHUNKS) == {1: Relations(conflicts_with=("id2", "id3"))}


def test_a_passage_is_replaced_by_id_by_path_and_by_part() -> None:
    for name, part in ((ONE.id, ""), (ONE.path, ""), (ONE.path, "L5-L9"), (ONE.path, "next-steps")):
        assert resolve([1], RelationRows(claims={name: [(part, 2)]}), CHUNKS) == {1: by(TWO)}
    assert resolve([1], RelationRows(claims={ONE.path: [("L6", 2)]}), CHUNKS) == {}


def test_the_first_claim_wins_and_one_whose_chunk_is_gone_is_passed_over() -> None:
    found = RelationRows(claims={ONE.id: [("", 9), ("", 3), ("", 4)]})
    assert resolve([1], found, CHUNKS) == {1: by(THREE)}


def test_a_document_that_names_itself_does_not_vanish_but_may_replace_a_part_of_itself() -> None:
    old, new = chunk(1, "memory/a.md"), chunk(2, "memory/a.md", lines=(6, 9))
    both = {1: old, 2: new}
    assert resolve([1, 2], RelationRows(claims={"memory/a.md": [("", 2)]}), both) == {}
    assert resolve([1, 2], RelationRows(claims={"memory/a.md": [("L1-L5", 2)]}), both) == {
        1: by(new)
    }


def test_two_that_claim_each_other_both_stay() -> None:
    found = RelationRows(
        claims={ONE.id: [("", 2)], TWO.path: [("", 1)]}, claimed={1: {TWO.path}, 2: {ONE.id}}
    )
    assert resolve([1, 2], found, CHUNKS) == {}


def test_an_older_copy_of_a_replaced_passage_is_replaced_too() -> None:
    found = RelationRows(heads={1: 2}, claims={TWO.id: [("", 3)]})
    assert resolve([1], found, CHUNKS) == {1: by(THREE)}
    assert resolve([1, 2], found, CHUNKS) == {1: by(THREE), 2: by(THREE)}


def test_the_successor_of_a_head_is_not_its_own_successor() -> None:
    found = RelationRows(heads={3: 2}, claims={TWO.id: [("", 3)]})
    assert resolve([3], found, CHUNKS) == {3: by(TWO, copy=True)}


def test_a_pinned_head_that_was_replaced_still_represents_its_copies() -> None:
    pinned = chunk(2, pinned=True)
    found = RelationRows(heads={1: 2}, claims={pinned.id: [("", 3)]})
    assert resolve([1], found, CHUNKS | {2: pinned}) == {1: by(pinned, copy=True)}


def test_a_contradiction_by_a_replaced_passage_is_not_reported() -> None:
    found = RelationRows(conflicts={1: [(2, "id2"), (4, "id4")]}, claims={TWO.id: [("", 3)]})
    assert resolve([1], found, CHUNKS) == {1: Relations(conflicts_with=("id4",))}


def test_rows_name_the_chunks_that_are_needed_to_resolve_them() -> None:
    found = RelationRows({1: 2}, {1: [(4, "id4")]}, {ONE.path: [("", 3), ("L1", 2)]})
    assert found.others([1, 2]) == [4]
    assert found.claimants() == [2, 3]
    assert set(names_of([ONE, TWO])) == {"id1", "id2", ONE.path, TWO.path}


def test_a_part_is_a_line_lines_or_a_heading() -> None:
    assert [
        is_part(part, ONE) for part in ("", "5", "L5-9", "Next steps", "NEXT_STEPS", "6", "steps")
    ] == [
        True,
        True,
        True,
        True,
        True,
        False,
        False,
    ]
