"""What a caller meets when models are dead, slow, changed or picky: an answer, in time, with one
notice.
"""

from __future__ import annotations

import datetime as dt
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from notewell import Memory
from notewell.embed import registry
from notewell.embed.embedder import Embedder
from notewell.embed.remote import remote_embedder
from notewell.embed.remote.provider import Provider
from notewell.embed.vector_sets import pinned
from notewell.errors import EmbedderError, StoreError
from notewell.surfaces import view
from notewell.types import Found
from tests.conftest import CountingEmbedder, Write
from tests.embed.models import Flapping, Hanging, Named, Refusing
from tests.embed.provider_server import ProviderServer, hang, serving, status

NOW = dt.datetime(2026, 6, 1, 9, 0)  # noqa: DTZ001 - a morning of this place


@pytest.fixture(autouse=True)
def notes(write: Write) -> None:
    write(
        "MEMORY.md", "# Memory\n\n- Mira owns the billing service.\n- The staging port is 8080.\n"
    )
    for n in range(30):
        write(
            f"memory/topic-{n:02}.md",
            f"# Topic {n}\n\nA staging note about subject{n} and port{n}.\n",
        )


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> dict[str, Embedder | EmbedderError]:
    """Models that settings can name, beside the packaged ones."""
    models: dict[str, Embedder | EmbedderError] = {}
    real = registry.embedder

    def embedder(name: str, **_options: Any) -> Embedder | None:
        found = models.get(name)
        if isinstance(found, EmbedderError):
            raise found
        return found or real(name)

    monkeypatch.setattr(registry, "embedder", embedder)
    return models


def codes(found: Any) -> list[str]:
    return [n.code for n in found.notices]


def ask(memory: Memory, text: str = "billing service", **rest: Any) -> Found:
    return memory.search(text, now=NOW, **rest)


def test_a_switch_of_models_is_not_noticed_but_for_a_note(root: Path) -> None:
    with Memory.open(root, embed__model="hashed") as memory:
        memory.sync()
        before = [(h.chunk.id, h.score) for h in ask(memory).hits]
    with Memory.open(root, embed__model="hashed@512") as memory:
        found = ask(memory)
        assert [(h.chunk.id, h.score) for h in found.hits] == before
        assert (found.mode, found.embedder) == ("hybrid", "hashed@256")
        assert codes(found) == ["vectors_pending"]
        assert "hashed@256 answers until they do" in found.notices[0].message
        assert memory.store.vectors.coverage("hashed@512") == (0, 32), (
            "a search begins nothing that large"
        )
        assert codes(memory.sync()) == ["model_switched"]
        found = ask(memory)
        assert (found.mode, found.embedder, found.notices) == ("hybrid", "hashed@512", ())
        assert [name for name, _, _ in memory.status().models] == ["hashed@256", "hashed@512"]
        assert memory.prune() == 32
        assert [name for name, _, _ in memory.status().models] == ["hashed@512"]


def test_auto_stays_with_the_model_that_the_index_has(root: Path) -> None:
    with Memory.open(root, embed__model="hashed@512") as memory:
        memory.sync()
    with Memory.open(root) as memory:
        assert (ask(memory).embedder, memory.sync().embedded) == ("hashed@512", 0)


def test_slices_in_the_background_end_in_the_same_switch(root: Path) -> None:
    with Memory.open(root, embed__model="hashed") as memory:
        memory.sync()
    with Memory.open(root, embed__model="hashed@512") as memory:
        slices = 0
        while memory.embed_some(budget_s=0.001).pending:
            slices += 1
            assert ask(memory, sync=False).mode == "hybrid"
            assert slices < 100
        assert pinned(memory.store) == "hashed@512"


def test_while_another_process_makes_vectors_notes_are_still_read(root: Path, write: Write) -> None:
    with Memory.open(root, embed__model="hashed") as memory:
        memory.sync()
        write("memory/new.md", "zeppelin")
        with memory.store.embedding(0.0):
            found = ask(memory, "zeppelin")
            report = memory.sync(wait_s=0.0)
        assert found.hits[0].chunk.path == "memory/new.md"
        assert not found.stale
        assert codes(report) == ["embedding"]
        assert report.pending == 1


def test_with_every_provider_dead_keywords_answer_at_once_with_one_notice(
    root: Path, remote: dict[str, Embedder | EmbedderError], write: Write
) -> None:
    models = [Flapping(f"model{n}") for n in range(2)]
    remote |= {
        "openai": models[0],
        "gemini": models[1],
        "voyage": EmbedderError("no key", hint="set it"),
    }
    names = ("openai", "gemini", "voyage")
    with Memory.open(root, embed__chain=names) as memory:
        memory.sync()
        for model in models:
            model.dead = True
        write("memory/new.md", "a new note that has no vector")
        asked = [len(m.calls) for m in models]
        for _ in range(5):
            found = ask(memory)
            assert found.hits[0].chunk.path == "MEMORY.md"
            assert found.mode == "lexical"
            (notice,) = found.notices
            assert notice.code == "vector_failed"
            assert "model0" in notice.message
            assert "connection refused" in notice.message
            assert notice.hint == "start the server"
        assert [len(m.calls) for m in models] == [asked[0] + 1, asked[1]], (
            "and nobody is asked again and again"
        )


def test_with_a_provider_dead_from_the_start_it_is_said_each_time(
    root: Path, remote: dict[str, Embedder | EmbedderError]
) -> None:
    remote["openai"] = Flapping("model", dead=True)
    with Memory.open(root, embed__model="openai") as memory:
        for _ in range(3):
            found = ask(memory)
            assert found.hits
            (notice,) = found.notices
            assert notice.code == "embedder_failed"
            assert "connection refused" in notice.message


@pytest.mark.parametrize("model", ["ollama", "http"], ids=["size known", "size asked for"])
@pytest.mark.parametrize("dead", ["out of order", "nobody there", "no connection"])
def test_a_dead_provider_at_the_head_of_a_chain_costs_a_sync_its_patience_once(
    root: Path, monkeypatch: pytest.MonkeyPatch, model: str, dead: str
) -> None:
    monkeypatch.setattr(remote_embedder, "QUERY_S", 0.1)
    own: Any = {
        "embed__chain": (model, "hashed@64"),
        "embed__deadline_s": 0.1,
        "embed__timeout_s": 3600.0,
    }
    asked: list[str] = []
    once = Provider._once

    def counted(self: Provider, method: str, url: str, **request: Any) -> Any:
        asked.append(url)
        return once(self, method, url, **request)

    monkeypatch.setattr(Provider, "_once", counted)
    with serving(ProviderServer(model)) as server, socket.socket() as place:
        server.always = status(503)
        place.bind(("127.0.0.1", 0))
        if dead == "no connection":
            place.listen(0)
            waiting = socket.create_connection(place.getsockname())  # and with it the queue is full
        url = server.url if dead == "out of order" else f"http://127.0.0.1:{place.getsockname()[1]}"
        with Memory.open(root, env={}, embed__url=url, **own) as memory:
            report = memory.sync()
            assert report.pending == 0
            assert report.model == "hashed@64"
            assert [n.code for n in report.notices] == ["model_fallback"]
            assert memory.sync().pending == 0
        assert len(asked) <= 2, "once for each sync"
        assert {"out of order": "503", "nobody there": "refused"}.get(dead, dead) in report.notices[
            0
        ].message
        if dead == "no connection":
            waiting.close()


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    model = Hanging()
    yield model
    model.go.set()


def test_a_hanging_provider_costs_the_deadline_once_and_close_waits_for_nobody(
    root: Path, hanging: Hanging
) -> None:
    hanging.go.set()
    memory = Memory.open(root, embedder=hanging, embed__deadline_s=1.0)
    memory.sync()
    hanging.go.clear()
    found = ask(memory)
    assert found.hits[0].chunk.path == "MEMORY.md"
    (notice,) = found.notices
    assert notice.message == "meaning search failed: hanging did not answer within 1 s"
    asked = len(hanging.calls)
    assert ask(memory).notices[0].code == "vector_failed"
    assert len(hanging.calls) == asked, "it is not asked, so nobody waits for it"
    memory.close()


@pytest.mark.parametrize("flags", [{}, {"embed__budget_s": 0.2}])
def test_a_provider_that_hangs_over_new_notes_costs_no_more(
    root: Path, hanging: Hanging, flags: Any
) -> None:
    with Memory.open(root, embedder=hanging, embed__deadline_s=0.5, **flags) as memory:
        found = ask(memory)
        assert len(hanging.calls) <= 1, "the deadline is paid once"
        assert found.hits[0].chunk.path == "MEMORY.md"
        assert len(found.notices) == 1


def test_close_ends_a_search_that_waits_for_a_model(root: Path, hanging: Hanging) -> None:
    hanging.go.set()
    memory = Memory.open(root, embedder=hanging, embed__deadline_s=3600.0)
    memory.sync()
    hanging.go.clear()
    asked = len(hanging.calls)
    done: list[object] = []

    def search() -> None:
        try:
            done.append(ask(memory))
        except Exception as error:  # noqa: BLE001 - either is an end
            done.append(error)

    thread = threading.Thread(target=search)
    thread.start()
    while len(hanging.calls) == asked:
        thread.join(0.005)
    memory.close()
    thread.join(60)
    assert len(done) == 1


def test_a_flapping_provider_is_used_again_when_it_is_back(root: Path) -> None:
    model = Flapping("flapping")
    with Memory.open(root, embedder=model) as memory:
        memory.sync()
        model.dead = True
        assert ask(memory).mode == "lexical"
        model.dead = False
        guarded = memory.index.chain.first(memory.store)
        assert guarded is not None
        guarded.breaker._until = 0.0  # the pause is over
        assert (ask(memory).mode, ask(memory).notices) == ("hybrid", ())


def test_a_model_that_changed_its_size_is_found_out_and_made_good(root: Path) -> None:
    with Memory.open(root, embedder=Named("same", dim=64)) as memory:
        memory.sync()
    with Memory.open(root, embedder=Named("same", dim=32), embed__budget_s=-1.0) as memory:
        found = ask(memory)
        assert (found.mode, found.hits[0].chunk.path) == ("lexical", "MEMORY.md")
        (notice,) = found.notices
        assert "same now gives 32 dimensions, the index holds 64 of it" in notice.message
        assert notice.hint == "run: notewell index"
        report = memory.sync()
        assert (report.embedded, report.model) == (32, "same@32")
        assert (ask(memory).mode, ask(memory).notices) == ("hybrid", ())


def test_searches_alone_make_a_resized_model_good_too(root: Path) -> None:
    with Memory.open(root, embedder=Named("same", dim=64)) as memory:
        memory.sync()
    with Memory.open(root, embedder=Named("same", dim=32)) as memory:
        ask(memory)
        ask(memory)
        assert (ask(memory).mode, ask(memory).notices, ask(memory).embedder) == (
            "hybrid",
            (),
            "same@32",
        )


def test_a_refused_text_is_named_once_and_is_no_reason_to_wait(root: Path) -> None:
    with Memory.open(root, embedder=Refusing("subject7 ")) as memory:
        report = memory.sync()
        assert [s.path for s in report.skipped] == ["memory/topic-07.md:3"]
        assert (report.embedded, report.pending) == (31, 0)
        found = ask(memory, "subject7")
        assert found.hits[0].chunk.path == "memory/topic-07.md", "keywords have it"
        assert ask(memory).notices == ()
        status = memory.status()
        assert (status.embedded, status.pending, status.refused) == (31, 0, 1)


def test_renaming_a_folder_of_500_notes_embeds_nothing(
    root: Path, embedder: CountingEmbedder, write: Write
) -> None:
    for n in range(500):
        write(f"memory/old/{n}.md", f"Note {n} of the archive.")
    with Memory.open(root, embedder=embedder) as memory:
        assert memory.sync().embedded == 532
        embedder.documents.clear()
        (root / "memory/old").rename(root / "memory/new")
        report = memory.sync()
        assert (report.added, report.dropped, report.embedded, report.pending) == (500, 500, 0, 0)
        assert embedder.documents == []
        assert memory.status().cached == 0


def test_the_cache_of_text_that_is_gone_is_bounded(root: Path, embedder: CountingEmbedder) -> None:
    with Memory.open(root, embedder=embedder, embed__cache_mb=0.0025) as memory:
        memory.sync()
        for place in (root / "memory").glob("*.md"):
            place.unlink()
        memory.sync()
        status = memory.status()
        assert (status.cached, status.cache_bytes) == (9, 9 * 256)


def test_the_report_carries_its_estimate(root: Path, write: Write) -> None:
    for n in range(100):
        write(f"memory/more/{n}.md", f"further note {n}")
    with Memory.open(root, embed__model="hashed") as memory:
        shown = json.loads(json.dumps(view.report(memory.sync(estimate=lambda _: None))))
    assert shown["model"] == "hashed@256"
    assert shown["estimate"]["passages"] == 132
    assert shown["estimate"]["usd"] is None
    assert shown["estimate"]["seconds"] >= 0


def test_a_search_prefers_the_packaged_model_over_a_remote_one_that_nobody_names(
    root: Path, remote: dict[str, Embedder | EmbedderError]
) -> None:
    far = Named("far")
    remote["openai"] = far
    with Memory.open(root, embed__model="openai") as memory:
        memory.sync()
    asked = len(far.calls)
    with Memory.open(root, embed__model="hashed", embed__budget_s=-1.0) as memory:
        found = ask(memory)
        assert found.mode == "lexical"
        (notice,) = found.notices
        assert (
            "the vectors in the index are from far, which the settings do not name"
            in notice.message
        )
        assert '"openai"' in notice.hint
    with Memory.open(root, embed__chain=("hashed", "openai"), embed__budget_s=-1.0) as memory:
        assert (ask(memory).mode, ask(memory).embedder) == ("hybrid", "far"), (
            "named, it answers until the switch"
        )
        memory.sync()
        assert ask(memory).embedder == "hashed@256"
    assert len(far.calls) > asked


def test_the_next_process_does_not_pay_for_a_hanging_provider_again(
    root: Path, remote: dict[str, Embedder | EmbedderError], hanging: Hanging
) -> None:
    remote["openai"] = hanging
    hanging.go.set()
    with Memory.open(root, embed__model="openai") as memory:
        memory.sync()
    hanging.go.clear()
    asked = len(hanging.calls)
    for _ in range(3):
        with Memory.open(root, embed__model="openai", embed__deadline_s=1.0) as memory:
            found = ask(memory)
            assert found.hits
            (notice,) = found.notices
            assert "hanging did not answer" in notice.message
    assert len(hanging.calls) == asked + 1
    hanging.go.set()
    with Memory.open(root, embed__model="openai") as memory:
        assert memory.status(deep=True).levels[0].ok, "asked on purpose, it may speak"
    with Memory.open(root, embed__model="openai") as memory:
        assert (ask(memory).mode, ask(memory).notices) == ("hybrid", ())


@pytest.mark.parametrize("moment", ["while it is loaded", "in a request", "in a pause"])
def test_close_ends_a_remote_model_wherever_it_is(root: Path, moment: str) -> None:
    arrived, gone = threading.Event(), threading.Event()

    def stuck(asked: Any, _body: Any) -> None:
        arrived.set()
        if moment == "in a pause":
            asked.json({}, status=503, Retry_After="8")
            return
        if moment == "while it is loaded":
            hang(asked, _body)
            return
        asked.connection.settimeout(60)
        with suppress(OSError):
            if asked.connection.recv(1) == b"":
                gone.set()
        asked.close_connection = True

    with serving(ProviderServer("http", key="", dim=64)) as server:
        dim = 0 if moment == "while it is loaded" else 64
        memory = Memory.open(
            root,
            env={},
            embed__model="http/m",
            embed__url=server.url,
            embed__dim=dim,
            embed__timeout_s=3600,
            embed__trial_s=3600,
        )
        server.always = stuck

        def sync() -> None:
            with suppress(StoreError):  # the index is closed too
                memory.sync()

        thread = threading.Thread(target=sync)
        thread.start()
        assert arrived.wait(60)
        asked = len(server.requests)
        memory.close()
        if moment == "in a request":
            assert gone.wait(60), "the socket is cut"
        if moment == "while it is loaded":
            server.released.set()  # only now: nobody waited for it
        thread.join(60)
        assert not thread.is_alive()
        if moment == "in a pause":
            assert len(server.requests) == asked, "nobody asks again after it"


def test_an_endpoint_of_unknown_size_is_asked_for_it_by_index_alone(
    root: Path, write: Write
) -> None:
    with serving(ProviderServer("http", key="", dim=64)) as server:
        own: Any = {
            "embed__model": "http/m",
            "embed__url": server.url,
            "embed__timeout_s": 60,
            "embed__deadline_s": 60,
        }
        short = {**own, "embed__timeout_s": 3, "embed__deadline_s": 1.5}
        with Memory.open(root, env={}, **own) as memory:
            memory.sync()
        before = len(server.requests)
        with Memory.open(root, env={}, **own) as memory:
            assert ask(memory).mode == "hybrid"
        assert len(server.requests) == before + 1, "the question alone"
        server.always = hang
        for _ in range(3):
            with Memory.open(root, env={}, **short) as memory:
                found = ask(memory)
            assert (found.mode, codes(found)) == ("lexical", ["vector_failed"])
            assert len(server.requests) == before + 2, (
                "the deadline is paid once, by the first process"
            )
        write("memory/new.md", "one more")
        with Memory.open(root, env={}, **short, embed__trial_s=1) as memory:
            assert memory.sync().pending == 1, "what is to go is known without the model"
        server.always, server.dim = None, 32
        with Memory.open(root, env={}, **own) as memory:
            assert memory.sync().model == "http/m@32"
            server.dim = 64
            assert "64 numbers for a text, and 32 before" in ask(memory, "port3").notices[0].message
            memory.sync()
            found = ask(memory, "port3")
            assert (found.mode, found.embedder) == ("hybrid", "http/m@64")


def test_an_endpoint_that_hangs_from_the_start_costs_the_deadline_once(root: Path) -> None:
    with serving(ProviderServer("http", key="", dim=64)) as server:
        server.always = hang
        own: Any = {
            "embed__model": "http/m",
            "embed__url": server.url,
            "embed__timeout_s": 3,
            "embed__deadline_s": 1.5,
        }
        asked = []
        for _ in range(3):
            with Memory.open(root, env={}, **own) as memory:
                found = ask(memory)
            asked.append(len(server.requests))
            assert (found.mode, codes(found), bool(found.hits)) == (
                "lexical",
                ["no_embedder"],
                True,
            )
        assert asked[1:] == asked[:1] * 2, "it is asked once, so nobody else waits for it"
