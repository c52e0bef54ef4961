from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from notewell.index.plan import Plan, plan
from notewell.store.values import Stored
from notewell.types import Document

SETTLED_NS = 10_000_000_000

names = st.sampled_from([f"memory/{c}.md" for c in "abcdefgh"])
stats = st.tuples(st.integers(0, 3), st.integers(0, 3))


def document(path: str, size: int = 1, mtime_ns: int = 1, source: str = "memory") -> Document:
    return Document(path, source, size, mtime_ns, path)


def stored(
    path: str, size: int = 1, mtime_ns: int = 1, synced_ns: int = SETTLED_NS, source: str = "memory"
) -> Stored:
    return Stored(path, source, size, mtime_ns, synced_ns, "digest")


on_disk = st.dictionaries(names, stats).map(
    lambda found: [document(p, *s) for p, s in found.items()]
)
in_index = st.dictionaries(names, stats).map(
    lambda found: {p: stored(p, *s) for p, s in found.items()}
)


@given(on_disk, in_index, st.booleans())
def test_every_document_is_in_exactly_one_of_add_change_and_unchanged(
    found: list[Document], known: dict[str, Stored], complete: bool
) -> None:
    work = plan(found, known, complete=complete)
    touched = [*work.add, *work.change]
    assert len({d.path for d in touched}) == len(touched)
    assert len(touched) + work.unchanged == len(found)
    assert {d.path for d in work.add} == {d.path for d in found} - set(known)
    assert {d.path for d in work.change} <= set(known)


@given(on_disk, in_index)
def test_what_is_no_longer_there_is_dropped(
    found: list[Document], known: dict[str, Stored]
) -> None:
    assert set(plan(found, known).drop) == set(known) - {d.path for d in found}


@given(on_disk, in_index)
def test_an_incomplete_scan_drops_nothing(found: list[Document], known: dict[str, Stored]) -> None:
    assert plan(found, known, complete=False).drop == ()


@given(on_disk, in_index)
def test_a_plan_that_was_carried_out_leaves_nothing_to_do(
    found: list[Document], known: dict[str, Stored]
) -> None:
    work = plan(found, known)
    after = {p: s for p, s in known.items() if p not in work.drop}
    after |= {d.path: stored(d.path, d.size, d.mtime_ns) for d in (*work.add, *work.change)}
    assert plan(found, after) == Plan(unchanged=len(found))


def test_a_changed_size_time_or_source_means_reading_again() -> None:
    known = {"a.md": stored("a.md")}
    assert plan([document("a.md")], known).unchanged == 1
    for changed in (
        document("a.md", size=2),
        document("a.md", mtime_ns=2),
        document("a.md", source="extra"),
    ):
        assert plan([changed], known).change == (changed,)


def test_a_file_changed_within_two_seconds_of_its_sync_is_read_again() -> None:
    second = 1_000_000_000
    found = [document("a.md", mtime_ns=10 * second)]
    for synced, again in (
        (10 * second, True),
        (11 * second, True),
        (12 * second, False),
        (9 * second, True),
    ):
        known = {"a.md": stored("a.md", mtime_ns=10 * second, synced_ns=synced)}
        assert bool(plan(found, known).change) is again


@given(on_disk, in_index, st.booleans())
def test_a_scan_that_compares_leads_to_the_same_plan(
    found: list[Document], known: dict[str, Stored], complete: bool
) -> None:
    same = {
        d.path
        for d in found
        if d.path in known and known[d.path].same(d.source, d.size, d.mtime_ns)
    }
    rest = [d for d in found if d.path not in same]
    assert plan(rest, known, same=same, complete=complete) == plan(found, known, complete=complete)
