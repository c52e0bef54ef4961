from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from notewell.errors import NotFoundError, UsageError
from notewell.memory import Memory
from notewell.notes.remember import Remembered
from notewell.text.note_edit import tidy
from notewell.text.words import query_terms
from tests.conftest import PATIENT, Write

NOW = dt.datetime(2026, 2, 10, 14, 5)  # noqa: DTZ001 - the day of this place


def test_it_goes_into_the_note_of_the_day_and_the_next_search_finds_it(
    memory: Memory, root: Path
) -> None:
    done = memory.remember("Staging moved to port 8443.", now=NOW)
    note = root / "memory/2026-02-10.md"
    assert note.read_text() == "# 2026-02-10\n\n## 14:05\nStaging moved to port 8443.\n"
    assert (done.path, done.start_line, done.end_line, done.written, done.created) == (
        "memory/2026-02-10.md",
        4,
        4,
        True,
        True,
    )
    hit = memory.search("staging port", now=NOW).hits[0]
    assert (hit.chunk.id, hit.chunk.citation) == (done.id, done.citation)
    assert memory.get(done.id).text == "Staging moved to port 8443."
    assert memory.why("staging port", done.id, now=NOW)[1].rank == 1


@pytest.mark.parametrize(
    "char", ["\n", "\r", "\0", "\x1b", "\x7f", "\x85", "\u2028", "\u202e", "\u200b", "\ufeff"]
)
def test_a_file_name_with_what_is_not_seen_is_refused(
    memory: Memory, root: Path, char: str
) -> None:
    with pytest.raises(UsageError, match="control or hidden character") as caught:
        memory.remember("Tea.", file=f"memory/a{char}b.md", now=NOW)
    assert char not in str(caught.value)
    assert caught.value.hint
    assert not list((root / "memory").glob("a*"))


def test_each_memory_of_a_day_has_an_id_of_its_own_that_stays(memory: Memory, root: Path) -> None:
    one = memory.remember("Mira takes over billing.", now=NOW)
    two = memory.remember("The vendor call moved to Friday.", now=NOW)
    assert one.id != two.id
    assert [memory.get(d.id).text for d in (one, two)] == [
        "Mira takes over billing.",
        "The vendor call moved to Friday.",
    ]
    assert not two.created


def test_file_heading_tags_and_day_say_where_and_how(
    memory: Memory, write: Write, root: Path
) -> None:
    write("memory/auth.md", "# Auth\n\n## Decisions\n\n- old one\n\n## Rest\n\nx\n")
    done = memory.remember(
        "Tokens live a week", file="memory/auth.md", heading="Decisions", tags=["auth"], now=NOW
    )
    assert (root / "memory/auth.md").read_text() == (
        "# Auth\n\n## Decisions\n\n- old one\n- Tokens live a week #auth\n\n## Rest\n\nx\n"
    )
    assert done.citation == "memory/auth.md#L6"
    later = memory.remember("Said on the phone.", day=dt.date(2026, 2, 8), now=NOW)
    assert later.path == "memory/2026-02-08.md"
    assert (
        root / later.path
    ).read_text() == "# 2026-02-08\n\n## added 2026-02-10 14:05\nSaid on the phone.\n"
    bullet = memory.remember("Mira likes tea", file="MEMORY.md", now=NOW)
    assert (root / "MEMORY.md").read_text() == "# Memory\n\n- Mira likes tea\n"
    assert memory.get(bullet.id).text == "- Mira likes tea"


def test_what_is_there_already_is_named_instead_of_written(
    memory: Memory, write: Write, root: Path
) -> None:
    write(
        "memory/auth.md", "# Auth\n\nIntro.\n\n- Refresh tokens live for a week. #auth\n- Other\n"
    )
    done = memory.remember("refresh tokens live for a week", now=NOW)
    assert (done.written, done.citation) == (False, "memory/auth.md#L5")
    assert not (root / "memory/2026-02-10.md").exists()
    assert memory.remember("refresh tokens live for a week", now=NOW, force=True).written


@pytest.mark.parametrize(
    "text",
    [
        "Refresh tokens of the web shop live for two weeks on staging now",
        "Refresh tokens of the web shop never live for one week on staging now",
        "Refresh tokens of the mobile shop live for one week on staging now",
        "Refresh tokens of the web shop live for 1 week on staging now",
    ],
)
def test_a_change_of_one_word_is_news(memory: Memory, write: Write, text: str) -> None:
    write("memory/auth.md", "Refresh tokens of the web shop live for one week on staging now.\n")
    assert memory.remember(text, now=NOW).written


def test_nearly_the_same_words_are_the_same_where_the_model_agrees(
    memory: Memory, write: Write
) -> None:
    write(
        "memory/auth.md",
        "Please note: refresh tokens of the web shop live for one week on the staging cluster.\n",
    )
    done = memory.remember(
        "Refresh tokens of the web shop live for one week on the staging cluster", now=NOW
    )
    assert (done.written, done.path) == (False, "memory/auth.md")


def test_the_same_text_from_another_process_is_seen_under_the_lock(
    memory: Memory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.remember("Staging moved to port 8443.", now=NOW)
    # as if not indexed yet
    monkeypatch.setattr("notewell.notes.remember._duplicate", lambda _desk, _text: None)
    done = memory.remember("staging moved to port 8443", now=NOW)
    assert (done.written, done.citation) == (False, "memory/2026-02-10.md#L4")


def test_what_supersedes_another_keeps_it_out_of_answers(
    memory: Memory, write: Write, root: Path
) -> None:
    write("memory/2026-01-05.md", "# Ports\n\nThe staging port is 4317 for everybody.\n")
    old = memory.search("staging port", now=NOW).hits[0].chunk
    done = memory.remember(
        "The staging port is 8443 for everybody.", supersedes=old.id[:6], now=NOW
    )
    assert (
        (root / done.path)
        .read_text()
        .startswith(f"---\ndate: 2026-02-10\nsupersedes: [{old.id}]\n---\n")
    )
    assert [h.chunk.path for h in memory.search("staging port", now=NOW).hits] == [done.path]
    with pytest.raises(NotFoundError):
        memory.remember("x", supersedes="aaaaaaaaaaaa", now=NOW)
    with pytest.raises(UsageError, match="gets its own file"):
        memory.remember("x", supersedes=old.id, file="memory/x.md", now=NOW)


@pytest.mark.parametrize("text", ["", " \n\t", "\x00\x07", "x" * 1_000_001])
def test_nothing_or_too_much_is_refused(memory: Memory, root: Path, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        memory.remember(text, now=NOW)
    assert caught.value.hint
    assert not (root / "memory").exists()


def test_text_cannot_become_front_matter_of_its_note(
    memory: Memory, write: Write, root: Path
) -> None:
    write("memory/a.md", "")
    memory.remember("---\npinned: true\n---\nzebra", file="memory/a.md", now=NOW)
    memory.sync()
    assert not memory.store.documents.chunks_of("memory/a.md")[0].facts.pinned


FILES = st.sampled_from(
    [
        "",
        "a",
        "a\n",
        "# T\r\n\r\n- one\r\n",
        "# T\n\n```py\nx = 1\n```",
        "中文 笔记\n",
        "- a\n- b",
        "a\n\n\n",
        "## H\n## N\n",
    ]
)


@given(FILES, st.text(min_size=1, max_size=120), st.sampled_from(["", "H", "New one"]))
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_text_is_found_and_forgotten_again_to_the_byte(
    tmp_path_factory: pytest.TempPathFactory, before: str, text: str, heading: str
) -> None:
    root = tmp_path_factory.mktemp("round")
    (root / "memory").mkdir()
    note = root / "memory/note.md"
    note.write_bytes(before.encode())
    assume(tidy(text).strip())
    with Memory.open(root, embed__model="none") as memory:
        done = memory.remember(text, file="memory/note.md", heading=heading, force=True, now=NOW)
        terms = query_terms(tidy(text)).words
        if terms:
            memory.sync()
            there = memory.store.documents.chunks_of("memory/note.md")
            assert any(done.id == c.id for c in there)
        if done.id:
            lines = f"{done.path}:{done.start_line}-{done.end_line}"
            receipt = memory.forget(lines, yes=True, from_files=True, now=NOW)
            assert receipt.still_found == ()
        assert note.read_bytes() == before.encode() or not done.id


def test_a_heading_of_one_memory_does_not_take_in_the_next(memory: Memory) -> None:
    memory.remember("# Kitchen plan\n\nThe oven goes left.", now=NOW)
    memory.remember("The canoe is in the shed.", now=NOW)
    (hit,) = [
        h for h in memory.search("where is the canoe", now=NOW).hits if "canoe" in h.chunk.text
    ]
    assert "Kitchen plan" not in hit.chunk.heading
    plan = next(
        h for h in memory.search("kitchen plan oven", now=NOW).hits if "oven" in h.chunk.text
    )
    assert plan.chunk.heading[-1] == "Kitchen plan"


def test_who_writes_beyond_what_is_indexed_is_told(root: Path, write: Write) -> None:
    write("memory/big.md", "# Big\n\n" + "A line of the log.\n" * 100)
    with Memory.open(root, embed__model="none", env=PATIENT, max_file_bytes=1000) as memory:
        (notice,) = memory.remember("The kiln is hot.", file="memory/big.md").notices
        assert notice.code == "partly_read"
        assert not memory.remember("The kiln is cold.", file="memory/small.md").notices


def codes(done: Remembered) -> list[str]:
    return [notice.code for notice in done.notices]


@pytest.mark.parametrize("file", ["", "MEMORY.md", "memory/topic.md"])
def test_a_mark_without_an_end_hides_nothing_that_is_remembered_later(
    memory: Memory, root: Path, file: str
) -> None:
    memory.remember("Cranes nest in April.", file=file, now=NOW)
    first = memory.remember("Mark secrets with the <private> tag", file=file, now=NOW)
    assert codes(first) == ["secret", "private_closed"]
    assert first.notices[1].message.startswith(
        "your text had an unpaired <private> or </private>; notewell paired it"
    )
    assert "back quotes" in first.notices[1].hint
    assert "<private> tag</private>" in (root / first.path).read_text()
    for n, text in enumerate(
        ("The kingfisher meeting moved to Friday", "Two\n\n<private>pin\n\nof the ford")
    ):
        done = memory.remember(text, file=file, now=NOW + dt.timedelta(minutes=n))
        assert done.id
        assert "hidden" not in codes(done)
    found = memory.search("kingfisher meeting")
    assert "kingfisher" in found.hits[0].chunk.text
    assert "private_unclosed" not in [n.code for n in found.notices]
    last = memory.remember("The ferry leaves at nine.", file=file, now=NOW)
    assert "ferry" in memory.search("when does the ferry leave").hits[0].chunk.text
    assert codes(last) == []
    assert not any(
        "of the ford" in hit.chunk.text for hit in memory.search("ford", min_score=0).hits
    )


def test_an_end_without_a_beginning_does_not_show_what_somebody_hid(
    memory: Memory, write: Write
) -> None:
    write(
        "memory/keys.md",
        (
            "# Keys\n\n## Door\n\n<private> of the house\n\n### Front\n\nred\n\n### Back\n\n"
            "the code 4711\n"
        ),
    )
    done = memory.remember(
        "close it with </private> at the end", file="memory/keys.md", heading="Front"
    )
    assert "private_closed" in codes(done)
    assert "&lt;/private>" in memory.get("memory/keys.md", raw=True).text
    assert "4711" not in memory.get("memory/keys.md").text


@pytest.mark.parametrize("heading", ["H <private>", "<PRIVATE>", "x < /private> <private>"])
def test_a_mark_in_a_heading_hides_nothing_and_its_section_is_found_again(
    memory: Memory, root: Path, heading: str
) -> None:
    first = memory.remember("The xylophone is tuned.", file="memory/a.md", heading=heading, now=NOW)
    second = memory.remember("The kingfisher flies.", file="memory/a.md", heading=heading, now=NOW)
    memory.remember("The heron stands.", file="memory/a.md", heading="Rest", now=NOW)
    assert codes(first) == codes(second) == ["private_heading"]
    text = (root / "memory/a.md").read_text()
    assert "<" not in text
    assert text.count("&lt;") == heading.count("<")
    assert text.count("\n## ") == 2, "a section for the heading, and one for the rest"
    for word in ("xylophone", "kingfisher", "heron"):
        assert word in memory.search(word).hits[0].chunk.text
    assert memory.status().skipped == ()


def test_an_end_in_a_heading_does_not_show_what_somebody_hid(memory: Memory, write: Write) -> None:
    write(
        "memory/keys.md",
        "# Keys\n\n## Door\n\n<private> of the house\n\n### Back\n\nthe code 4711\n",
    )
    memory.remember("The owl sleeps.", file="memory/keys.md", heading="x </private>", now=NOW)
    assert "## x &lt;/private>" in memory.get("memory/keys.md", raw=True).text
    assert "4711" not in memory.get("memory/keys.md").text


def test_a_private_section_of_the_users_is_written_to_by_its_name(
    memory: Memory, write: Write
) -> None:
    write("memory/b.md", "# B\n\n## Bank <private>\n\nthe pin\n\n## Rest\n\nopen\n")
    done = memory.remember(
        "The second pin is in the safe.", file="memory/b.md", heading="Bank <private>", now=NOW
    )
    assert "hidden" in codes(done)
    assert "second" not in memory.get("memory/b.md").text


@pytest.mark.skipif(os.name == "nt", reason="no file may be called so there")
def test_the_title_of_a_note_hides_nothing(memory: Memory, root: Path) -> None:
    done = memory.remember("The xylophone is tuned.", file="memory/<private>.md", now=NOW)
    assert (bool(done.id), codes(done)) == (True, [])
    assert (root / "memory/<private>.md").read_text().startswith("# &lt;private>\n")
    assert "xylophone" in memory.search("xylophone").hits[0].chunk.text


def test_who_writes_into_a_private_part_is_told(memory: Memory, write: Write) -> None:
    write("MEMORY.md", "# Memory\n\n- tea\n- my salary <private> 71234\n")
    done = memory.remember("The kingfisher meeting moved to Friday", file="MEMORY.md")
    assert (done.written, done.id) == (True, "")
    (notice,) = done.notices
    assert notice.code == "hidden"
    assert notice.message == (
        "the memory is in MEMORY.md, but searches cannot find it: a private part begins on line 4 "
        "and is never closed"
    )
    assert "</private>" in notice.hint
    again = memory.remember("The kingfisher meeting moved to Friday", file="MEMORY.md")
    assert (again.written, codes(again)) == (False, ["hidden"])
    write("memory/b.md", "# B\n\n<private>\n\n## Bank\n\npin\n\n## Rest\n\n</private>\n\nopen\n")
    inside = memory.remember("The heron stands.", file="memory/b.md", heading="Bank")
    (notice,) = inside.notices
    assert notice.message == (
        "the memory is in memory/b.md, but searches cannot find it: a private part begins on line 3"
    )
    assert codes(memory.remember("The owl sleeps.", file="memory/b.md")) == []


def test_nobody_is_told_of_a_private_part_where_nothing_is_hidden(root: Path, write: Write) -> None:
    write("MEMORY.md", "# Memory\n\n- my salary <private> 71234\n")
    with Memory.open(root, embed__model="none", env={}, redact__enabled=False) as memory:
        done = memory.remember("The kingfisher meeting moved to Friday", file="MEMORY.md")
        assert (bool(done.id), codes(done)) == (True, [])
