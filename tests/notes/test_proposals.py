"""Changes in two steps: what is shown is what is written, or nothing is."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from notewell.errors import ChangedError, NotFoundError, UsageError
from notewell.memory import Memory
from notewell.notes.proposals import EXPIRES_S, MOST_PROPOSALS, Proposal, Proposals
from notewell.notes.undo_log import Change, FileChange, UndoLog, hash_of
from notewell.types import Filters
from tests.conftest import Write

NOW = dt.datetime(2026, 11, 18, 9, 30)  # noqa: DTZ001 - a morning of this place


@pytest.fixture
def memory(root: Path, write: Write) -> Iterator[Memory]:
    write("memory/2026-05-06.md", "# Standup\n\nThe staging port is 8081.\n")
    write("memory/2026-09-03.md", "# Standup\n\nThe staging port is 9443 now.\n")
    write(
        "memory/auth.md",
        "---\ntitle: Auth\n---\n# Auth\n\nTokens live 30 days.\n\n## More\n\nKeys live for ever.\n",
    )
    with Memory.open(root, embed__model="none") as memory:
        memory.sync()
        yield memory


@pytest.fixture
def proposals(memory: Memory) -> Proposals:
    return Proposals(memory.notebook)


def files(root: Path) -> dict[str, bytes]:
    return {
        p.relative_to(root).as_posix(): p.read_bytes() for p in sorted((root / "memory").iterdir())
    }


def all_of(proposals: Proposals) -> dict[str, Proposal]:
    return {
        "remember": proposals.remember("Coffee is at ten.", tags=["coffee"], now=NOW),
        "remember there": proposals.remember(
            "Coffee is at ten.", file="memory/auth.md", heading="More", now=NOW
        ),
        "correct": proposals.correct(
            "memory/2026-09-03.md#L3", "The staging port is 9600.", now=NOW
        ),
        "settle": proposals.settle("memory/2026-09-03.md#L3", "memory/2026-05-06.md#L3", now=NOW),
        "pin": proposals.pin("auth"),
        "forget": proposals.forget("memory/auth.md#L6"),
        "forget a note": proposals.forget("memory/2026-05-06.md"),
    }


KINDS = ("remember", "remember there", "correct", "settle", "pin", "forget", "forget a note")


def test_a_proposal_writes_nothing(memory: Memory, proposals: Proposals) -> None:
    before = files(memory.root)
    assert set(all_of(proposals)) == set(KINDS)
    assert files(memory.root) == before
    assert proposals.changes() == []


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_shown_is_written_and_taken_back_to_the_byte(
    memory: Memory, proposals: Proposals, kind: str
) -> None:
    before = files(memory.root)
    proposal = all_of(proposals)[kind]
    [draft] = proposal.drafts
    done = proposals.apply(proposal.token, now=NOW)
    assert done.paths == (draft.path,)
    assert files(memory.root).get(draft.path) == draft.after
    assert {k: v for k, v in files(memory.root).items() if k != draft.path} == {
        k: v for k, v in before.items() if k != draft.path
    }
    assert [one.id for one in proposals.changes()] == [done.undo]
    Proposals(memory.notebook).undo(done.undo)  # also after a restart
    assert files(memory.root) == before
    assert proposals.changes() == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_changed_after_it_was_shown_is_left_alone(
    memory: Memory, proposals: Proposals, kind: str
) -> None:
    proposal = all_of(proposals)[kind]
    place = memory.root / proposal.drafts[0].path
    place.write_text(
        f"{place.read_text() if place.exists() else ''}\nAn agent wrote this.\n", encoding="utf-8"
    )
    before = files(memory.root)
    with pytest.raises(ChangedError, match="changed after this was shown"):
        proposals.apply(proposal.token, now=NOW)
    assert files(memory.root) == before
    assert proposals.changes() == []
    assert memory.index.tombstones.known().stones == ()


@pytest.mark.parametrize("kind", KINDS)
def test_what_others_write_afterwards_is_never_lost_by_an_undo(
    memory: Memory, proposals: Proposals, kind: str
) -> None:
    proposal = all_of(proposals)[kind]
    done = proposals.apply(proposal.token, now=NOW)
    place = memory.root / proposal.drafts[0].path
    with place.open("a", encoding="utf-8") as file:
        file.write("\nAn agent wrote this.\n")
    try:
        proposals.undo(done.undo)
    except ChangedError:
        assert proposals.changes()  # it may be tried again
    assert "An agent wrote this." in place.read_text(encoding="utf-8")


def test_an_undo_needs_the_lines_as_they_were_written(memory: Memory, proposals: Proposals) -> None:
    done = proposals.apply(
        proposals.remember("Coffee is at ten.", file="memory/auth.md", now=NOW).token, now=NOW
    )
    place = memory.root / "memory/auth.md"
    place.write_text(
        place.read_text(encoding="utf-8").replace("at ten", "at eleven"), encoding="utf-8"
    )
    with pytest.raises(ChangedError, match="has changed since"):
        proposals.undo(done.undo)
    assert "at eleven" in place.read_text(encoding="utf-8")


def test_a_diff_has_the_lines_that_are_written(proposals: Proposals) -> None:
    shown = all_of(proposals)
    assert shown["remember there"].drafts[0].diff.splitlines()[-2:] == ["+", "+Coffee is at ten."]
    assert "+pinned: true" in shown["pin"].drafts[0].diff
    assert "-Tokens live 30 days." in shown["forget"].drafts[0].diff
    assert shown["correct"].drafts[0].diff.startswith("--- /dev/null\n+++ memory/2026-11-18-")


def test_settling_makes_the_other_passage_superseded(memory: Memory, proposals: Proposals) -> None:
    proposals.apply(
        proposals.settle("memory/2026-05-06.md#L3", "memory/2026-09-03.md#L3", now=NOW).token,
        now=NOW,
    )
    found = memory.search("staging port", now=NOW).hits
    assert [hit.chunk.path for hit in found] == ["memory/2026-05-06.md"]


def test_a_statement_in_code_is_marked_below_the_code(
    memory: Memory, proposals: Proposals, write: Write
) -> None:
    write("memory/conf.md", "# Conf\n\n```\nstaging port = 9700\n```")
    proposal = proposals.settle("memory/conf.md#L4", "memory/2026-05-06.md#L3", now=NOW)
    [draft] = proposal.drafts
    assert (draft.after or b"").startswith(
        b"# Conf\n\n```\nstaging port = 9700\n```\n<!-- supersedes: "
    )
    proposals.apply(proposal.token, now=NOW)
    memory.sync()
    chunks = memory.store.documents.chunks_of("memory/2026-05-06.md")
    assert memory.store.relations.related(chunks, Filters())[chunks[0].row].successor.startswith(
        "memory/conf.md"
    )


def test_whoever_replaces_several_statements_is_told(proposals: Proposals, write: Write) -> None:
    write("memory/list.md", "---\npinned: true\n---\n# List\n\n- the port is 1\n- the host is a\n")
    warnings = proposals.correct("memory/list.md", "The port is 2.", now=NOW).warnings
    assert any("say again what of it is still true" in one for one in warnings)
    assert any("is pinned" in one for one in warnings)


def test_pinning_twice_and_unpinning_what_is_not_pinned_writes_nothing(
    memory: Memory, proposals: Proposals
) -> None:
    before = files(memory.root)
    proposals.apply(proposals.pin("auth").token, now=NOW)
    again = proposals.pin("auth")
    assert (again.drafts, again.summary) == ((), "memory/auth.md is already pinned")
    assert proposals.apply(again.token, now=NOW).undo == ""
    proposals.apply(proposals.pin("auth", pinned=False).token, now=NOW)
    assert files(memory.root) == before
    assert proposals.pin("auth", pinned=False).drafts == ()


def test_what_is_there_already_is_not_written_again(proposals: Proposals) -> None:
    found = proposals.remember("The staging port is 8081.", now=NOW)
    assert found.drafts == ()
    assert "already remembered at memory/2026-05-06.md" in found.summary


def test_a_forgotten_text_is_found_nowhere_until_it_is_taken_back(
    memory: Memory, proposals: Proposals
) -> None:
    done = proposals.apply(proposals.forget("memory/2026-05-06.md").token, now=NOW)
    assert "8081" not in str(memory.search("staging port 8081", now=NOW).hits)
    changes = (memory.root / ".notewell/changes").iterdir()
    assert all("8081" not in one.read_text(encoding="utf-8") for one in changes)
    proposals.undo(done.undo)
    assert "8081" in str(memory.search("staging port 8081", now=NOW, include_superseded=True).hits)


def test_forgetting_removes_what_an_earlier_change_could_bring_back(
    memory: Memory, proposals: Proposals
) -> None:
    said = "The door code of the shed is four seven one one."
    proposals.apply(proposals.remember(said, file="memory/shed.md", now=NOW).token, now=NOW)
    memory.forget("memory/shed.md", yes=True, from_files=True, now=NOW)
    assert proposals.changes() == []


def test_a_token_is_good_once_and_for_a_while(memory: Memory) -> None:
    clock = [0.0]
    proposals = Proposals(memory.notebook, clock=lambda: clock[0])
    first = proposals.pin("auth")
    proposals.apply(first.token, now=NOW)
    with pytest.raises(NotFoundError, match="no such preview"):
        proposals.apply(first.token, now=NOW)
    late = proposals.pin("auth", pinned=False)
    clock[0] += EXPIRES_S + 1
    with pytest.raises(NotFoundError, match="no such preview"):
        proposals.apply(late.token, now=NOW)


def test_many_proposals_push_the_oldest_out(proposals: Proposals) -> None:
    first = proposals.pin("auth")
    for _ in range(MOST_PROPOSALS):
        last = proposals.pin("auth")
    with pytest.raises(NotFoundError):
        proposals.apply(first.token, now=NOW)
    assert proposals.apply(last.token, now=NOW).undo


def test_what_is_not_ours_to_write_is_refused(memory: Memory, proposals: Proposals) -> None:
    with pytest.raises(UsageError, match="has 2 passages"):
        proposals.correct("auth", "x", now=NOW)
    with pytest.raises(UsageError, match="cannot supersede itself"):
        proposals.settle("memory/2026-05-06.md", "memory/2026-05-06.md#L3", now=NOW)
    with pytest.raises(UsageError, match="cannot be written"):
        proposals.remember("x", file="../outside.md", now=NOW)
    with pytest.raises(NotFoundError):
        proposals.undo("none")


def test_a_log_that_a_clone_brought_opens_nothing_outside(
    memory: Memory, proposals: Proposals, tmp_path: Path
) -> None:
    (tmp_path / "secret.txt").write_text("a secret of another folder", encoding="utf-8")
    place = memory.root / "memory/auth.md"
    before = place.read_bytes()
    log = UndoLog(memory.root / ".notewell/changes")
    for path in ("memory/auth.md", "../outside.md", "/etc/passwd"):
        file = FileChange(
            path,
            created=False,
            after=hash_of(before),
            hunks=(),
            backup=str(tmp_path / "secret.txt"),
        )
        log.add(Change("evil", "2026-05-06", "forget", "x", (file,)))
        with pytest.raises((ChangedError, UsageError)):
            proposals.undo("evil")
    assert place.read_bytes() == before
    assert not (memory.root.parent / "outside.md").exists()


def test_two_tabs_and_an_agent_lose_no_line(memory: Memory, proposals: Proposals) -> None:
    """Each tab shows, applies and shows again on a conflict; an agent appends to the same note
    meanwhile.
    """

    def tab(name: str) -> None:
        for number in range(8):
            while True:
                shown = proposals.remember(
                    f"The {name} tab wrote number {number} here.", file="memory/log.md", now=NOW
                )
                try:
                    proposals.apply(shown.token, now=NOW)
                    break
                except ChangedError:
                    continue

    def agent() -> None:
        for number in range(8):
            memory.remember(
                f"The agent saw event {number} happen.", file="memory/log.md", now=NOW, force=True
            )

    threads = [threading.Thread(target=tab, args=(name,)) for name in ("red", "blue")] + [
        threading.Thread(target=agent)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    text = (memory.root / "memory/log.md").read_text(encoding="utf-8")
    for number in range(8):
        assert text.count(f"The red tab wrote number {number} here.") == 1
        assert text.count(f"The blue tab wrote number {number} here.") == 1
        assert text.count(f"The agent saw event {number} happen.") == 1


def test_what_would_be_written_into_a_private_part_is_said_before(
    proposals: Proposals, write: Write
) -> None:
    write("memory/keys.md", "# Keys\n\n<private> of the house\n\n## Door\n\n4711\n")
    shown = proposals.remember("The heron stands.", file="memory/keys.md", now=NOW)
    said = "searches cannot find it: a private part begins on line 3 and is never closed"
    assert any(said in one for one in shown.warnings)
    shown = proposals.remember("The <private> mark.", file="memory/auth.md", now=NOW)
    assert any("</private>" in one for one in shown.warnings)
    assert not any("searches cannot find it" in one for one in shown.warnings)
