"""A first index through a provider's batches: handed in by one `index`, fetched by a later one,
never paid twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from notewell import Memory
from notewell.embed.remote import batches
from notewell.embed.vector_sets import pinned
from notewell.surfaces import view
from notewell.surfaces.cli.commands import run
from notewell.types import Estimate
from tests.conftest import PATIENT, Write
from tests.embed.provider_server import KEY, ProviderServer, serving, status

DIM = 256
NOTES = 12
Open = Callable[..., Memory]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def notes(write: Write) -> None:
    for n in range(NOTES):
        write(f"memory/{n:02}.md", f"note number {n} about subject{n}\n")


@pytest.fixture(params=["openai", "voyage", "gemini"])
def server(request: pytest.FixtureRequest) -> Iterator[ProviderServer]:
    with serving(ProviderServer(request.param, dim=DIM)) as server:
        yield server
        assert server.problems == []


@pytest.fixture
def flags(server: ProviderServer) -> dict[str, Any]:
    return {
        "embed.model": server.provider,
        "embed.url": server.url,
        "embed.key": KEY,
        "embed.dim": DIM,
        "embed.batch": True,
        "embed.timeout_s": 5.0,
    }


@pytest.fixture
def open_it(root: Path, flags: dict[str, Any]) -> Open:
    return lambda **more: Memory.open(
        root, env=PATIENT, **{k.replace(".", "__"): v for k, v in flags.items()} | more
    )


def submitted(server: ProviderServer) -> int:
    ends = ("/batches", ":asyncBatchEmbedContent")
    return sum(method == "POST" and path.endswith(ends) for method, path, *_ in server.requests)


def test_one_index_hands_in_and_a_later_one_fetches(server: ProviderServer, open_it: Open) -> None:
    server.ready = False
    guesses: list[Estimate] = []
    with open_it() as memory:
        report = memory.sync(estimate=guesses.append)
    assert (report.embedded, report.pending, report.waiting) == (0, NOTES, NOTES)
    (notice,) = report.notices
    assert notice.code == "batch_pending"
    assert f"{NOTES} passages are in a batch at {server.provider}" in notice.message
    assert "notewell index" in notice.hint
    assert guesses[0].passages == NOTES
    assert view.report(report)["waiting"] == NOTES
    with open_it() as memory:
        assert memory.sync().waiting == NOTES
        assert memory.status().waiting == NOTES
        server.ready = True
        done = memory.sync()
        assert (done.embedded, done.pending, done.waiting, done.notices) == (NOTES, 0, 0, ())
        assert pinned(memory.store) == done.model
        found = memory.search("note number 3 about subject3")
        assert (found.mode, found.hits[0].chunk.path) == ("hybrid", "memory/03.md")
        assert memory.status().waiting == 0
    assert submitted(server) == 1
    assert server.texts()[1:] == [], "only the question was asked for directly"


def test_a_search_pays_for_nothing_that_is_for_a_batch(
    server: ProviderServer, open_it: Open, write: Write
) -> None:
    server.ready = False
    with open_it() as memory:
        found = memory.search("subject3")
        assert found.hits
        assert server.requests == [], (
            "nothing is handed in yet, and nothing is embedded for more money"
        )
        memory.sync()
        write("memory/new.md", "a note that came meanwhile")
        found = memory.search("note that came meanwhile")
        assert found.hits[0].chunk.path == "memory/new.md"
        pending = next(n for n in found.notices if n.code == "vectors_pending")
        assert f"{NOTES} are in a batch" in pending.hint
        sent = [text for texts in server.texts() for text in texts]
        assert len(sent) == 2, "the new note and the question, and none of the batch"
        server.ready = True
        assert memory.sync().pending == 0
    assert submitted(server) == 1


def test_a_change_in_a_finished_index_does_not_wait_a_night(
    server: ProviderServer, open_it: Open, write: Write
) -> None:
    with open_it() as memory:
        memory.sync()
        assert memory.sync().pending == 0
        write("memory/new.md", "one more note")
        report = memory.sync()
        assert (report.embedded, report.pending, report.waiting) == (1, 0, 0)
    assert submitted(server) == 1


def test_a_refused_text_is_remembered_and_tried_again_by_force(
    server: ProviderServer, open_it: Open
) -> None:
    server.ready = False
    with open_it() as memory:
        memory.sync()
        server.ready = True
        server.refuses = lambda text: "unsafe" if "subject7" in text else ""
        report = memory.sync()
        assert (report.embedded, report.pending) == (NOTES - 1, 0)
        assert [(s.path, s.reason) for s in report.skipped] == [
            ("memory/07.md:1", "no vector: unsafe")
        ]
        assert memory.status().refused == 1
        assert memory.sync().skipped == ()
        server.refuses = lambda _text: ""
        assert memory.sync(force=True).embedded == 1
        assert memory.status().refused == 0


def test_what_does_not_fit_goes_directly(
    server: ProviderServer, open_it: Open, write: Write
) -> None:
    write("memory/long.md", "word " * 400)
    server.ready = False
    with open_it(embed__max_tokens_per_request=150) as memory:
        report = memory.sync()
        assert report.waiting == NOTES
        assert report.embedded == report.chunks - NOTES
        server.ready = True
        assert memory.sync().pending == 0


def test_a_process_that_dies_after_handing_in_is_no_second_payment(
    server: ProviderServer, open_it: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.ready = False

    class Died(BaseException):
        """The process is no more."""

    with monkeypatch.context() as patch, open_it() as memory:
        real = batches._Book.save

        def dies(book: batches._Book) -> None:
            if any(job.id for job in book.jobs):
                raise Died
            real(book)

        patch.setattr(batches._Book, "save", dies)
        with pytest.raises(Died):
            memory.sync()
    assert submitted(server) == 1
    with open_it() as memory:
        assert memory.sync().waiting == NOTES
        server.ready = True
        assert memory.sync().embedded == NOTES
    assert submitted(server) == 1


def test_a_batch_that_cannot_be_handed_in_is_said_and_searches_go_on(
    server: ProviderServer, open_it: Open
) -> None:
    server.always = status(400, {"error": {"message": "too many enqueued tokens"}})
    with open_it() as memory:
        report = memory.sync()
        assert (report.embedded, report.pending, report.waiting) == (0, NOTES, 0)
        assert [n.code for n in report.notices] == ["embedder_failed"]
        assert memory.status().waiting == 0
        assert "too many enqueued tokens" in report.notices[0].message
        assert memory.search("subject3").hits
        server.always = None
        assert memory.sync().waiting == NOTES
        assert memory.sync().pending == 0


def test_an_answer_that_makes_no_sense_is_one_notice(server: ProviderServer, open_it: Open) -> None:
    server.always = status(200, {"surprise": True})
    with open_it() as memory:
        report = memory.sync()
    assert "unexpected answer" in report.notices[0].message
    assert "embed.batch" in report.notices[0].hint


def test_the_background_does_not_ask_all_the_time(server: ProviderServer, open_it: Open) -> None:
    server.ready = False
    with open_it() as memory:
        memory.sync(embed=False)
        assert memory.embed_some(budget_s=1).waiting == NOTES
        before = len(server.requests)
        for _ in range(5):
            assert memory.embed_some(budget_s=1).waiting == NOTES
        assert len(server.requests) == before
        server.ready = True
        assert memory.sync().embedded == NOTES, "who asks for it gets it at once"


def test_the_old_model_answers_until_the_batch_is_there(
    server: ProviderServer, open_it: Open, root: Path
) -> None:
    with Memory.open(root, embed__model="hashed") as memory:
        memory.sync()
    server.ready = False
    with open_it() as memory:
        memory.sync()
        found = memory.search("subject3")
        assert (found.mode, found.embedder) == ("hybrid", "hashed@256")
        server.ready = True
        assert [n.code for n in memory.sync().notices] == ["model_switched"]
        assert memory.search("subject3").embedder.startswith(server.provider)


def test_the_command_says_in_plain_words_what_is_pending(
    server: ProviderServer, flags: dict[str, Any], root: Path, capsys: Capture
) -> None:
    server.ready = False
    place = ["-w", str(root), *(arg for k, v in flags.items() for arg in ("--setting", f"{k}={v}"))]
    assert run(["index", *place]) == 0
    out, err = capsys.readouterr()
    assert f"0 passages embedded, {NOTES} to go ({NOTES} in a batch)" in out
    assert f"{NOTES} passages are in a batch at {server.provider}" in err
    assert "run notewell index later" in err
    assert run(["status", *place]) == 0
    assert f"{NOTES} passages at the provider" in capsys.readouterr().out
    assert run(["doctor", *place]) == 0
    assert f"{NOTES} in a batch at the provider" in capsys.readouterr().out
    server.ready = True
    assert run(["index", "--json", *place]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["embedded"], answer["waiting"], answer["notices"]) == (NOTES, 0, [])
    assert run(["status", "--json", *place]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["waiting"], answer["chain"]) == (0, [{"name": server.provider, "error": ""}])
