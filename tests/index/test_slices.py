"""Passages go to a remote model in full requests, several at once, whatever their length; a real
server counts.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from notewell.embed.chain import Chain
from notewell.embed.remote.remote_embedder import RemoteEmbedder, remote_embedder
from notewell.index import filling
from notewell.index.documents import embed_text
from notewell.index.embedding import fill
from notewell.index.filling import SyncOptions
from notewell.index.slices import PORTION, next_slice
from notewell.index.walk import Walk
from notewell.settings import EmbedSettings
from notewell.store.sqlite.store import SqliteStore
from notewell.text.words import count_tokens
from notewell.types import Chunk, Document, Estimate, Facts, SyncReport
from tests.embed.models import Named
from tests.embed.provider_server import KEY, ProviderServer, serving, status, vector
from tests.store.made import put_document

DIM = 8
TOKENS = 8000
SHORT, LONG = 20, 400


def walk(*texts: str) -> Walk:
    """An index of these passages, the first of which is embedded last."""
    store = SqliteStore(None)
    facts = Facts("t", None, evergreen=True)
    chunks = [
        Chunk(f"c{n}", "memory/a.md", "memory", n + 1, n + 1, (), t, f"h{n}", facts)
        for n, t in enumerate(texts)
    ]
    put_document(store, Document("memory/a.md", "memory", 0, 1, ""), "d", facts, chunks)
    return Walk([], store)


def passages(count: int, tokens: int) -> list[str]:
    return [f"passage {n} ".ljust(4 * tokens, "x") for n in range(count)]


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with serving(ProviderServer("openai", dim=DIM)) as server:
        yield server
        assert server.problems == []


@pytest.fixture
def model(server: ProviderServer) -> Iterator[RemoteEmbedder]:
    made = remote(server)
    yield made
    made.close()


def remote(server: ProviderServer, **own: Any) -> RemoteEmbedder:
    settings = EmbedSettings(model="openai", url=server.url, key=KEY, dim=DIM, **own)
    return remote_embedder("openai", "", settings, {})


def filled(index: Walk, model: RemoteEmbedder, **options: Any) -> SyncReport:
    return fill(index, Chain(["m"], lambda _: model), SyncOptions(**options), trial_s=30)


def together(server: ProviderServer, count: int, *, after: int = 1) -> None:
    """After some requests the server holds the next ones until so many are there."""
    seen = threading.Condition()
    held: list[int] = []

    def wait(asked: Any, body: Any) -> None:
        with seen:
            held.append(1)
            seen.notify_all()
            seen.wait_for(lambda: len(held) >= count, timeout=60)
        asked.json(asked._embeddings(body))

    server.faults.extend([None] * after)
    server.faults.extend([wait] * count)


def sizes(server: ProviderServer) -> list[int]:
    return [sum(map(count_tokens, texts)) for texts in server.texts()]


def right(index: Walk, model: RemoteEmbedder) -> bool:
    """Whether every passage has its own vector."""
    store = index.store
    chunks = store.documents.chunks_of("memory/a.md")
    rows = store.vectors.by_hash(model.id, [c.content_hash for c in chunks])
    own = {c.content_hash: np.asarray(vector(embed_text(c), DIM)) for c in chunks}
    return rows.keys() == own.keys() and all(float(rows[k] @ own[k]) > 2.9 for k in own)


@pytest.mark.parametrize(
    ("count", "tokens", "trial"),
    [(2400, SHORT, 1), (200, LONG, 1), (40, 3000, 4), (24, 7000, 8)],
    ids=["short", "long", "two in a request", "one in a request"],
)
def test_requests_are_full_and_four_run_at_once(
    server: ProviderServer, model: RemoteEmbedder, count: int, tokens: int, trial: int
) -> None:
    index = walk(*passages(count, tokens))
    together(server, 4, after=trial)
    report = filled(index, model)
    assert (report.embedded, report.pending, report.notices) == (count, 0, ())
    assert server.most_at_once == 4
    assert max(sizes(server)) <= TOKENS
    assert sum(size > TOKENS - tokens for size in sizes(server)) >= len(sizes(server)) - 2, (
        "but the trial and the last"
    )
    assert right(index, model)


def test_passages_of_all_lengths_leave_no_small_request_behind(
    server: ProviderServer, model: RemoteEmbedder
) -> None:
    index = walk(*(one for n in range(120) for one in passages(1, 10 + 37 * n % 900)))
    together(server, 4)
    assert filled(index, model).embedded == 120
    assert server.most_at_once == 4
    assert sum(size < TOKENS / 2 for size in sizes(server)) <= 2, (
        "the first, which is a trial, and the last"
    )


def test_a_passage_of_many_requests_goes_through(
    server: ProviderServer, model: RemoteEmbedder
) -> None:
    huge = " ".join(f"Sentence {n} about pelicans." for n in range(12_000))
    index = walk(*passages(20, SHORT), huge, *passages(20, LONG))
    assert filled(index, model).embedded == 41
    assert max(sizes(server)) <= TOKENS
    assert sum(sizes(server)) >= count_tokens(huge)


def test_refused_passages_are_found_among_full_requests(
    server: ProviderServer, model: RemoteEmbedder
) -> None:
    bad = {f"passage {n} " for n in (7, 900, 901, 1500)}
    server.refuses = lambda text: "not this one" if text[: text.index("x")] in bad else ""
    report = filled(walk(*passages(1600, SHORT)), model)
    server.problems.clear()
    assert (report.embedded, report.pending) == (1596, 0)
    assert sorted(s.path for s in report.skipped) == [
        f"memory/a.md:{n + 1}" for n in (1500, 7, 900, 901)
    ]


def test_a_limit_of_rate_is_waited_out_as_the_server_asks(
    server: ProviderServer, model: RemoteEmbedder
) -> None:
    pauses: list[float] = []

    def wait(_stop: threading.Event, pause_s: float) -> bool:
        pauses.append(pause_s)
        return False

    model.provider._wait = wait
    server.faults.extend(
        [None, status(429, Retry_After="7"), None, status(429, Retry_After="3"), None]
    )
    index = walk(*passages(200, LONG))
    report = filled(index, model)
    assert (report.embedded, report.notices, sorted(pauses)) == (200, (), [3.0, 7.0])
    assert right(index, model)


def test_what_was_paid_for_before_a_failure_is_kept(
    server: ProviderServer, model: RemoteEmbedder
) -> None:
    index = walk(*passages(200, LONG))
    model.parallel = 1
    server.faults.extend([None, None, None, status(402)])
    report = filled(index, model)
    assert (report.embedded, report.pending) == (48, 152)
    assert [n.code for n in report.notices] == ["embedder_failed"]
    again = filled(index, model)
    assert (again.embedded, again.pending) == (152, 0)
    refused = 20
    assert sum(map(len, server.texts())) == 200 + refused, "nothing is paid for twice"
    assert right(index, model)


def test_an_interrupt_ends_all_requests_at_once_and_the_rest_is_done_later(
    server: ProviderServer, model: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("notewell.embed.breaker._EXIT_WAIT_S", 3600.0)
    index = walk(*passages(200, LONG))
    main = threading.get_ident()
    seen: list[int] = []
    heard = threading.Event()

    def interrupt(*_: object) -> None:
        if not heard.is_set():
            heard.set()
            raise KeyboardInterrupt

    def interrupted(asked: Any, _body: Any) -> None:
        seen.append(1)
        # A signal that comes right before the main thread begins to wait is noticed by its next
        # one.
        while len(seen) == 4 and not heard.wait(0.2):
            signal.pthread_kill(main, signal.SIGINT)
        asked.server.released.wait()
        asked.close_connection = True

    before = signal.signal(signal.SIGINT, interrupt)
    server.faults.extend([None, *[interrupted] * 4])
    try:
        with pytest.raises(KeyboardInterrupt):  # and not after the wait for a model on this machine
            filled(index, model)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(server.requests) == 5
    report = filled(index, model)
    assert (report.embedded, report.pending) == (192, 0)
    assert right(index, model)


def test_the_cost_is_told_before_and_the_time_after_the_first_full_requests(
    server: ProviderServer, model: RemoteEmbedder
) -> None:
    told: list[tuple[Estimate, int]] = []
    filled(
        walk(*passages(3000, LONG)),
        model,
        estimate=lambda e: told.append((e, len(server.requests))),
    )
    (first, before), (second, after) = told
    assert (first.tokens, first.seconds, before) == (3000 * LONG, None, 0)
    assert first.usd == pytest.approx(3000 * LONG * 0.02 / 1e6)
    assert second.seconds is not None
    assert after == 1 + 4 * 4
    assert sum(sizes(server)) == first.tokens


def test_slow_requests_go_in_one_round_so_that_a_stop_loses_little(
    server: ProviderServer, model: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "_QUICK_S", 0.0)
    done: list[int] = []
    filled(walk(*passages(200, LONG)), model, progress=lambda _what, n, _all: done.append(n))
    assert done == [8, 88, 168, 200]


def test_a_model_on_this_machine_gets_as_many_as_before() -> None:
    model = Named("local")
    fill(walk(*passages(150, SHORT)), Chain(["m"], lambda _: model), trial_s=30)
    assert [count for _, count in model.calls] == [8, 64, 64, 14]


def test_of_very_many_passages_no_more_are_read_than_the_next_requests_take(
    model: RemoteEmbedder,
) -> None:
    facts = Facts("t", None, evergreen=True)
    asked: list[int] = []

    def read(rows: Sequence[int]) -> dict[int, Chunk]:
        asked.append(len(rows))
        text = "x" * 4 * SHORT
        return {
            n: Chunk(f"c{n}", "a.md", "memory", 1, 1, (), text, f"h{n}", facts, row=n) for n in rows
        }

    position, slices = 0, []
    while position < 100_000:
        portions = (
            range(at, min(at + PORTION, 100_000)) for at in range(position, 100_000, PORTION)
        )
        made = next_slice(
            portions, read, lambda chunks: {c.content_hash: c.text for c in chunks}, model.room(4)
        )
        assert made.rows == list(range(position, position + len(made.rows))), (
            "in order, none left out, none twice"
        )
        position += len(made.rows)
        slices.append(len(made.rows))
    assert set(slices[:-1]) == {4 * 4 * TOKENS // SHORT}
    assert sum(asked) <= 100_000 + len(slices) * PORTION
