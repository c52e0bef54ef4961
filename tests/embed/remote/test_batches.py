"""Batch jobs at OpenAI, Voyage and Gemini: cheaper, later, and never paid for twice whatever
crashes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from notewell.embed.embedder import BatchRound as Round
from notewell.embed.embedder import BatchState as State
from notewell.embed.embedder import batches_of
from notewell.embed.local.hashed import HashedEmbedder
from notewell.embed.remote import batches
from notewell.embed.remote.presets import PRESETS
from notewell.embed.remote.remote_embedder import RemoteEmbedder, remote_embedder
from notewell.errors import EmbedderError
from notewell.settings import EmbedSettings
from notewell.store.sqlite.store import SqliteStore
from tests.embed.provider_server import KEY, ProviderServer, hang_up, serving, status, vector

DIM = 256


class Index(dict[str, Any]):
    """A dictionary as a state."""

    def get_meta(self, key: str) -> Any:
        return self.get(key)

    def set_meta(self, key: str, value: str | int) -> None:
        self[key] = value


class Crash(BaseException):
    """The process dies here."""


class Mortal:
    """A state that nothing is written to any more once the process has died, whatever still
    unwinds.
    """

    alive = True

    def __init__(self, state: State) -> None:
        self.state = state

    def get_meta(self, key: str) -> Any:
        return self.state.get_meta(key)

    def set_meta(self, key: str, value: str | int) -> None:
        if self.alive:
            self.state.set_meta(key, value)


@pytest.fixture(params=["dictionary", "store"])
def state(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[State]:
    if request.param == "dictionary":
        yield Index()
        return
    store = SqliteStore(tmp_path / "index.sqlite")
    yield store
    store.close()


@pytest.fixture(params=["openai", "voyage", "gemini"])
def server(request: pytest.FixtureRequest) -> Iterator[ProviderServer]:
    with serving(ProviderServer(request.param, dim=DIM)) as server:
        yield server
        assert server.problems == []


@pytest.fixture
def model(server: ProviderServer) -> Iterator[RemoteEmbedder]:
    made = open_model(server)
    yield made
    made.close()


def open_model(server: ProviderServer) -> RemoteEmbedder:
    own = EmbedSettings(model=server.provider, url=server.url, key=KEY, dim=DIM, timeout_s=5)
    return remote_embedder(server.provider, "", own, {})


def advance(model: RemoteEmbedder, *args: Any, **options: Any) -> Round:
    assert model.batches is not None
    return model.batches.advance(*args, **options)


def notes(count: int) -> dict[str, str]:
    return {f"hash{i:04}": f"note number {i}" for i in range(count)}


class Shelf(dict[str, Any]):
    """Where rows go, with what was still missing."""

    def keep(self, rows: Mapping[str, Any]) -> None:
        self.update(rows)

    def missing(self, texts: Mapping[str, str]) -> dict[str, str]:
        return {h: t for h, t in texts.items() if h not in self}


def submitted(server: ProviderServer) -> int:
    ends = ("/batches", ":asyncBatchEmbedContent")
    return sum(method == "POST" and path.endswith(ends) for method, path, *_ in server.requests)


def test_a_first_index_comes_back_later_with_the_same_rows(
    server: ProviderServer, model: RemoteEmbedder, state: State
) -> None:
    texts, shelf = notes(25), Shelf()
    server.ready = False
    assert advance(model, texts, state, shelf.keep) == Round(0, 25)
    assert advance(model, texts, state, shelf.keep) == Round(0, 25), "nothing is submitted twice"
    assert submitted(server) == 1
    server.ready = True
    assert advance(model, shelf.missing(texts), state, shelf.keep) == Round(25, 0)
    direct = model.embed(list(texts.values()), "document")
    assert np.array_equal(np.stack([shelf[h] for h in texts]), direct)
    prefix = model.model.prefix("document")
    row = np.asarray(vector(prefix + texts["hash0007"], DIM))
    assert np.allclose(shelf["hash0007"], row / np.linalg.norm(row), atol=1e-6)
    assert advance(model, shelf.missing(texts), state, shelf.keep) == Round(0, 0)
    assert submitted(server) == 1


def test_new_texts_go_into_a_second_job(
    server: ProviderServer, model: RemoteEmbedder, state: State
) -> None:
    shelf = Shelf()
    server.ready = False
    advance(model, notes(3), state, shelf.keep)
    assert advance(model, notes(5), state, shelf.keep) == Round(0, 5)
    assert submitted(server) == 2
    server.ready = True
    assert advance(model, notes(5), state, shelf.keep) == Round(5, 0)
    assert sorted(shelf) == sorted(notes(5))


def test_many_texts_make_several_jobs(
    server: ProviderServer, model: RemoteEmbedder, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "_INPUT_BYTES", 1000)
    shelf = Shelf()
    assert advance(model, notes(10), state, shelf.keep).waiting == 10
    assert submitted(server) == 4
    assert advance(model, notes(10), state, shelf.keep) == Round(10, 0)


CRASHES: dict[str, Callable[[pytest.MonkeyPatch, Mortal], None]] = {}


def dies(name: str, method: str, *, after: bool) -> None:
    def arrange(patch: pytest.MonkeyPatch, mortal: Mortal) -> None:
        for desk in (batches._Files, batches._Inline):
            real = getattr(desk, method)

            def dying(*args: Any, real: Any = real) -> Any:
                if after:
                    real(*args)
                mortal.alive = False
                raise Crash

            patch.setattr(desk, method, dying)

    CRASHES[name] = arrange


dies("before it was submitted", "submit", after=False)
dies("after it was submitted, before that was noted", "submit", after=True)
dies("while the rows were fetched", "results", after=False)


@pytest.mark.parametrize("crash", CRASHES)
def test_a_crash_is_resumed_and_nothing_is_paid_for_twice(
    server: ProviderServer, state: State, monkeypatch: pytest.MonkeyPatch, crash: str
) -> None:
    texts, shelf = notes(8), Shelf()
    first = open_model(server)
    with monkeypatch.context() as patch:
        mortal = Mortal(state)
        CRASHES[crash](patch, mortal)
        with suppress(Crash):
            advance(first, texts, mortal, shelf.keep)
            advance(first, texts, mortal, shelf.keep)
            pytest.fail("it did not crash")
    first.close()
    second = open_model(server)
    for _ in range(2):
        advance(second, shelf.missing(texts), state, shelf.keep)
    second.close()
    assert sorted(shelf) == sorted(texts)
    assert submitted(server) == 1


def test_a_crash_while_rows_are_kept_fetches_them_again(
    server: ProviderServer, model: RemoteEmbedder, state: State
) -> None:
    texts, shelf = notes(4), Shelf()

    mortal = Mortal(state)

    def full(_rows: Any) -> None:
        mortal.alive = False
        raise Crash

    advance(model, texts, state, shelf.keep)
    with pytest.raises(Crash):
        advance(model, texts, mortal, full)
    assert advance(model, texts, state, shelf.keep) == Round(4, 0)
    assert submitted(server) == 1


def test_an_answer_that_is_lost_on_its_way_is_no_second_job(
    server: ProviderServer, model: RemoteEmbedder, state: State
) -> None:
    texts, shelf = notes(4), Shelf()

    def lose(asked: Any, body: Any) -> None:
        asked._answer("POST", "application/json", body)
        hang_up(asked, body)

    server.faults.extend([None, lose] if server.provider != "gemini" else [lose])
    with pytest.raises(EmbedderError):
        advance(model, texts, state, shelf.keep)
    advance(model, texts, state, shelf.keep)
    assert advance(model, shelf.missing(texts), state, shelf.keep).waiting == 0
    assert sorted(shelf) == sorted(texts)
    assert submitted(server) == 1


def test_a_refused_text_is_named_and_not_submitted_again(
    server: ProviderServer, model: RemoteEmbedder, state: State
) -> None:
    texts, shelf = notes(6), Shelf()
    server.ready = False
    advance(model, texts, state, shelf.keep)
    server.ready = True
    server.refuses = lambda t: "unsafe" if t.endswith("number 3") else ""
    assert advance(model, texts, state, shelf.keep) == Round(5, 0, {"hash0003": "unsafe"})
    assert advance(model, shelf.missing(texts), state, shelf.keep) == Round(
        0, 0, {"hash0003": "unsafe"}
    )
    assert submitted(server) == 1
    assert advance(model, {"changed": "note, changed"}, state, shelf.keep) == Round(0, 1)


def test_texts_that_do_not_fit_are_left_to_the_ordinary_way(
    server: ProviderServer, model: RemoteEmbedder, state: State
) -> None:
    texts = {"short": "a note", "long": "word " * 40_000, "blank": " "}
    shelf = Shelf()
    assert advance(model, texts, state, shelf.keep).waiting == 1
    advance(model, texts, state, shelf.keep)
    assert list(shelf) == ["short"]


def test_a_failed_job_is_reported_once_and_submitted_again(
    server: ProviderServer, model: RemoteEmbedder, state: State
) -> None:
    texts, shelf = notes(2), Shelf()
    server.ready = False
    advance(model, texts, state, shelf.keep)
    if server.provider == "gemini":
        failed: Any = {
            "name": "batches/0",
            "metadata": {"state": "BATCH_STATE_FAILED"},
            "error": {"message": "too big"},
        }
    else:
        failed = {"id": "batch_0", "status": "failed", "errors": {"data": [{"message": "too big"}]}}
    server.faults.append(status(200, failed))
    with pytest.raises(EmbedderError, match=r"the batch \S+ failed: too big") as caught:
        advance(model, texts, state, shelf.keep)
    assert "embed.batch" in caught.value.hint
    server.ready = True
    advance(model, texts, state, shelf.keep)
    assert advance(model, texts, state, shelf.keep) == Round(2, 0)


def test_a_row_of_the_wrong_size_is_an_error_and_keeps_nothing(
    server: ProviderServer, state: State
) -> None:
    shelf = Shelf()
    model = open_model(server)
    advance(model, notes(2), state, shelf.keep)
    model.dim = 7
    with pytest.raises(EmbedderError, match="256 numbers instead of 7"):
        advance(model, notes(2), state, shelf.keep)
    assert not shelf
    model.close()


def test_a_state_that_is_no_state_starts_afresh(
    server: ProviderServer, model: RemoteEmbedder
) -> None:
    for value in ("not json", "[1]", '{"jobs": [{"id": 1}]}', "null"):
        kept, shelf = Index({f"embed_batches:{model.id}": value}), Shelf()
        advance(model, notes(1), kept, shelf.keep)
        assert advance(model, notes(1), kept, shelf.keep) == Round(1, 0)


def test_what_is_remembered_holds_hashes_and_no_text_or_key(
    server: ProviderServer, model: RemoteEmbedder
) -> None:
    kept = Index()
    server.ready = False
    advance(model, notes(3), kept, Shelf().keep)
    (value,) = kept.values()
    assert [job["hashes"] for job in json.loads(value)["jobs"]] == [list(notes(3))]
    assert "note number" not in value
    assert KEY not in value
    assert math.isclose(len(value), 200, abs_tol=150)


def test_only_three_providers_have_batches(model: RemoteEmbedder) -> None:
    assert batches_of(model) is not None
    assert batches_of(HashedEmbedder()) is None
    assert {name for name, preset in PRESETS.items() if preset.batch} == {
        "openai",
        "voyage",
        "gemini",
    }
