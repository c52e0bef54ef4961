"""Which model answers a question, and what is said when none does."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from notewell.embed import registry
from notewell.embed.breaker import Guarded
from notewell.embed.chain import Chain
from notewell.embed.embedder import Embedder
from notewell.embed.local.packaged import PACKAGED
from notewell.embed.vector_sets import pinned
from notewell.errors import EmbedderError, SettingsError
from notewell.model_names import SAFE_MODELS
from notewell.store.sqlite.store import SqliteStore
from notewell.types import Chunk, Document, Facts
from tests.embed.models import Flapping, Hanging, Mad, Named
from tests.store.made import put_document

TEXTS = ["the cat sat", "a dog ran", "tax returns"]


@pytest.fixture
def store() -> SqliteStore:
    made = SqliteStore(None)
    chunks = [
        Chunk(f"id{n}", "a.md", "memory", n, n, (), text, f"hash{n}")
        for n, text in enumerate(TEXTS)
    ]
    put_document(made, Document("a.md", "memory", 1, 1, ""), "d", Facts(), chunks)
    return made


def fill(
    store: SqliteStore, model: Embedder, count: int = 3, *, pin: bool = False, name: str = ""
) -> None:
    rows = model.embed(TEXTS[:count], "document")
    store.vectors.put_vectors(model.id, {f"hash{n}": row for n, row in enumerate(rows)})
    if pin:
        store.set_meta("model", model.id)
    if name:
        store.set_meta(f"name:{model.id}", name)


def chain(*models: Embedder | EmbedderError, deadline_s: float = 30.0) -> Chain:
    """A chain of these models, by the names m0, m1, …"""

    def load(name: str) -> Embedder | None:
        if not name.startswith("m"):
            return registry.embedder(name)
        found = models[int(name[1:])]
        if isinstance(found, EmbedderError):
            raise found
        return found

    return Chain([f"m{n}" for n in range(len(models))], load, deadline_s=deadline_s)


def named_chain(*names: str) -> Chain:
    return Chain(names, registry.embedder)


def test_the_pinned_model_answers_wherever_it_stands_in_the_chain(store: SqliteStore) -> None:
    first, second = Named("first"), Named("second")
    fill(store, first, 1)
    fill(store, second, pin=True)
    asked = chain(first, second).question(store, "cat")
    assert asked is not None
    assert (asked.model, asked.notices) == ("second", ())
    assert np.array_equal(asked.vector, second.embed(["cat"], "query")[0])


def test_a_dead_model_is_replaced_by_one_whose_vectors_are_all_there_and_it_is_said(
    store: SqliteStore,
) -> None:
    dead, other = Flapping("first", dead=False), Named("second", dim=32)
    fill(store, dead, pin=True)
    fill(store, other)
    dead.dead = True
    asked = chain(dead, other).question(store, "cat")
    assert asked is not None
    assert (asked.model, len(asked.vector)) == ("second", 32)
    (notice,) = asked.notices
    assert notice.code == "model_fallback"
    assert notice.message == "first: connection refused; second answered instead"
    assert notice.hint == "start the server"
    assert pinned(store) == "first", "a fault is not a switch"


def test_a_model_without_vectors_for_the_corpus_is_never_asked_instead(store: SqliteStore) -> None:
    dead, other = Flapping("first"), Named("second")
    fill(store, dead, pin=True)
    dead.dead = True
    with pytest.raises(EmbedderError, match="first: connection refused") as caught:
        chain(dead, other).question(store, "cat")
    assert caught.value.hint == "start the server"
    assert other.calls == []


def test_when_the_pinned_model_is_away_what_there_is_of_another_answers(store: SqliteStore) -> None:
    dead, other = Flapping("first"), Named("second", dim=32)
    fill(store, dead, pin=True)
    fill(store, other, 2)
    dead.dead = True
    asked = chain(dead, other).question(store, "cat")
    assert asked is not None
    assert asked.model == "second"


def test_with_every_model_dead_there_is_one_error_that_names_them_all(store: SqliteStore) -> None:
    models = [Flapping(f"model{n}") for n in range(3)]
    for n, model in enumerate(models):
        fill(store, model, pin=not n)
        model.dead = True
    with pytest.raises(EmbedderError) as caught:
        chain(*models).question(store, "cat")
    assert str(caught.value) == "; ".join(f"model{n}: connection refused" for n in range(3))


def test_without_any_vector_no_model_is_asked(store: SqliteStore) -> None:
    model = Named()
    assert chain(model).question(store, "cat") is None
    assert model.calls == []


def test_a_model_that_changed_its_size_is_found_out_and_never_compared(store: SqliteStore) -> None:
    fill(store, Named("same", dim=64), pin=True)
    one = chain(Named("same", dim=32))
    with pytest.raises(
        EmbedderError, match="same now gives 32 dimensions, the index holds 64 of it"
    ) as caught:
        one.question(store, "cat")
    assert caught.value.hint == "run: notewell index"
    assert store.get_meta("vector_set:same") == "same@32", "the next sync fills that one"


class CountingStore(SqliteStore):
    """Counts how often meta is read."""

    def __init__(self) -> None:
        super().__init__(None)
        self.reads = 0
        read = self.get_meta

        def counted(key: str) -> Any:
            self.reads += 1
            return read(key)

        self.get_meta = counted


def test_a_resolved_chain_is_read_once_and_used_by_every_part_of_a_search() -> None:
    store = CountingStore()
    model = registry.embedder("hashed")
    assert model is not None
    chunks = [
        Chunk(f"id{n}", "a.md", "memory", n, n, (), text, f"hash{n}")
        for n, text in enumerate(TEXTS)
    ]
    put_document(store, Document("a.md", "memory", 1, 1, ""), "d", Facts(), chunks)
    fill(store, model, pin=True, name="hashed")
    one = named_chain("auto")
    store.reads = 0
    now = one.resolve(store)
    assert store.reads == 2, "the pin, and the name of its model"
    assert now.answering is not None
    assert (now.pinned, now.answering[0], now.first) == (
        "hashed@256",
        "hashed@256",
        now.answering[1],
    )
    asked = one.question(store, "cat", resolved=now)
    assert asked is not None
    assert (asked.model, one.notices(store, now)) == ("hashed@256", [])
    assert store.reads == 2, "neither the question nor the notices read meta again"
    assert one.pending(store, now) == []


def test_auto_is_the_packaged_model_in_a_new_index(store: SqliteStore) -> None:
    (level,) = named_chain("auto").levels(store)
    assert level.id.startswith("local/")


def test_auto_keeps_to_the_pinned_model(store: SqliteStore) -> None:
    fill(store, registry.embedder("hashed@512"), pin=True, name="hashed@512")  # type: ignore[arg-type]
    assert [level.id for level in named_chain("auto").levels(store)] == ["hashed@512"]


@pytest.mark.parametrize(
    "name", ["openai", "ollama/nomic-embed-text", "/models/theirs", "fastembed/x", "none", "auto"]
)
def test_the_word_of_an_index_alone_loads_nothing_remote_and_no_path(
    store: SqliteStore, name: str
) -> None:
    loaded: list[str] = []

    def load(wanted: str) -> Embedder:
        loaded.append(wanted)
        return Named(wanted)

    model = Named("theirs")
    fill(store, model, pin=True, name=name)
    assert [level.name for level in Chain(["auto"], load).levels(store)] == ["local"]
    with pytest.raises(EmbedderError, match="which the settings do not name") as caught:
        Chain(["local"], load).question(store, "cat")
    assert "embed.chain" in caught.value.hint
    assert set(loaded) == {"local"}


def test_an_old_local_model_answers_although_the_settings_name_another(store: SqliteStore) -> None:
    old = registry.embedder("hashed")
    assert old is not None
    fill(store, old, pin=True, name="hashed")
    one = named_chain("hashed@512")
    asked = one.question(store, "cat")
    assert asked is not None
    assert asked.model == "hashed@256"
    (notice,) = one.pending(store)
    assert (
        notice.message
        == "3 of 3 passages have no vector of hashed@512 yet; hashed@256 answers until they do"
    )


def test_none_ends_the_chain_and_is_a_choice(store: SqliteStore) -> None:
    fill(store, Named("old"), pin=True)
    one = named_chain("none")
    assert (
        one.levels(store),
        one.question(store, "cat"),
        one.notices(store),
        one.pending(store),
    ) == ([], None, [], [])
    assert [level.id for level in named_chain("hashed", "none", "local").levels(store)] == [
        "hashed@256"
    ]


def test_a_level_that_cannot_be_loaded_is_passed_over(store: SqliteStore) -> None:
    error = EmbedderError("no key", hint="set OPENAI_API_KEY")
    one = chain(error, Named("second"))
    assert [(level.id, level.error) for level in one.levels(store)] == [
        ("m0", error),
        ("second", None),
    ]
    assert one.first(store).id == "second"  # type: ignore[union-attr]
    assert one.notices(store) == []


def test_when_none_can_be_loaded_it_is_said_once(store: SqliteStore) -> None:
    errors = [EmbedderError(f"no key {n}", hint=f"set {n}") for n in range(2)]
    (notice,) = chain(*errors).notices(store)
    assert (notice.code, notice.message, notice.hint) == (
        "no_embedder",
        "keywords only: no key 0; no key 1",
        "set 0",
    )


def test_a_wrong_name_is_the_callers_error(store: SqliteStore) -> None:
    with pytest.raises(SettingsError, match="'m'"):
        Chain(["m"], registry.embedder).levels(store)


def test_a_model_that_hangs_while_it_loads_is_waited_for_once(store: SqliteStore) -> None:
    go, loads = threading.Event(), []

    def load(name: str) -> Embedder:
        loads.append(name)
        go.wait()
        return Named("slow")

    one = Chain(["m0"], load, deadline_s=0.02)
    for _ in range(3):
        (level,) = one.levels(store)
        assert level.model is None
        assert "m0 is not ready yet" in str(level.error)
    go.set()
    (level,) = one.levels(store, wait_s=60.0)
    assert (level.id, loads) == ("slow", ["m0"])
    assert one.levels(store) == [level]


def test_a_model_that_could_not_be_loaded_is_tried_again_after_a_while(store: SqliteStore) -> None:
    now = [0.0]
    answers: list[Embedder | EmbedderError] = [EmbedderError("away"), Named("back")]

    def load(_name: str) -> Embedder:
        found = answers.pop(0)
        if isinstance(found, EmbedderError):
            raise found
        return found

    one = Chain(["m0"], load, clock=lambda: now[0])
    assert [level.model for _ in range(2) for level in one.levels(store)] == [None, None]
    now[0] = 31.0
    assert [level.id for level in one.levels(store)] == ["back"]


def test_a_probe_says_how_fast_how_large_and_how_sane(store: SqliteStore) -> None:
    hanging = Hanging()
    models: Sequence[Embedder | EmbedderError] = [
        Named("good"),
        Mad("mad"),
        Flapping("dead", dead=True),
        hanging,
        EmbedderError("no key", hint="set it"),
    ]
    one = chain(*models)
    good, mad, dead, absent = one.probe(store, ["m0", "m1", "m2", "m4"], deadline_s=30)
    (late,) = one.probe(store, ["m3"], deadline_s=0.2)
    hanging.go.set()
    assert (good.ok, good.dim, good.error) == (True, 64, "")
    assert good.alike > good.unlike
    assert good.latency_ms > 0
    assert (mad.ok, mad.hint) == (False, "choose another model with embed.model")
    assert "further apart" in mad.error
    assert (dead.ok, dead.error, dead.hint) == (False, "connection refused", "start the server")
    assert (late.ok, late.error) == (False, "hanging did not answer within 0.2 s")
    assert (absent.ok, absent.error, absent.hint) == (False, "no key", "set it")


def test_every_packaged_model_may_be_named_by_a_workspace_file() -> None:
    assert set(PACKAGED) <= set(SAFE_MODELS)


def test_the_deadline_holds_for_all_levels_together(store: SqliteStore) -> None:
    models = [Hanging(f"model{n}") for n in range(2)]
    for n, model in enumerate(models):
        model.go.set()
        fill(store, model, pin=not n)
        model.go.clear()
    seen: list[float] = []

    class Watched(Guarded):
        def embed(self, texts, role, *, deadline_s=None, anyway=False):  # type: ignore[no-untyped-def]
            seen.append(deadline_s)
            return super().embed(texts, role, deadline_s=deadline_s, anyway=anyway)

    one = Chain(["m0", "m1"], lambda name: models[int(name[1:])], deadline_s=0.2, guard=Watched)
    with pytest.raises(EmbedderError):
        one.question(store, "cat")
    for model in models:
        model.go.set()
    assert seen[0] <= 0.2
    assert seen[1] == 0.02, "the first has used up the time of both"


def test_a_question_asked_lately_is_at_hand_without_its_model(store: SqliteStore) -> None:
    model = Named("m")
    fill(store, model, pin=True)
    one = chain(model)
    now = one.resolve(store)
    assert one.at_hand("cat", now) is None
    made = one.question(store, "cat", resolved=now)
    found = one.at_hand("cat", now)
    assert made is not None
    assert found is not None
    assert (found.model, found.windows, found.notices) == (made.model, made.windows, ())
    assert np.array_equal(found.vector, made.vector)
    assert one.at_hand("dog", now) is None
    assert one.at_hand("cat", replace(now, answering=None)) is None


class Prepared(Named):
    """A model that notes when it is asked to load."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.loads: list[str] = []
        self.done = threading.Event()

    def prepare(self) -> None:
        self.loads.append(threading.current_thread().name)
        self.done.set()


def test_the_model_that_answers_begins_to_load_once_on_a_thread(store: SqliteStore) -> None:
    model = Prepared("m")
    one = chain(model)
    one.prepare(store)
    assert not model.loads, "without vectors of it nothing would be asked"
    fill(store, model, pin=True)
    other = chain(model)
    for _ in range(3):
        other.prepare(store)
    assert model.done.wait(60)
    assert model.loads == ["load weights"]
