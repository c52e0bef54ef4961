"""Which model answers: the one the index is pinned to, else another with a complete vector set,
else keywords only.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

from notewell.embed.breaker import MOST_PAUSE_S, PAUSE_S, Breaker, Guarded, Outages, close_model
from notewell.embed.embedder import Embedder, QuestionVector
from notewell.embed.vector_sets import belongs, complete, note_vector_set, pinned, vector_set_of
from notewell.errors import EmbedderError, StoreError
from notewell.model_names import plain_model
from notewell.store.ports import Store
from notewell.types import Notice, Vectors

Load = Callable[[str], Embedder | None]
_LOAD = "load "  # outages of loading are recorded under this prefix
_AGAIN_S = 30.0  # a model that could not be loaded is tried again after this time
QUESTIONS = 256  # cached question vectors: a slider on a page asks the same question many times
SANITY = (
    "The cat sat on the mat.",
    "A cat is sitting on a mat.",
    "Quarterly tax returns are due in April.",
)


@dataclass(frozen=True, slots=True)
class Level:
    """One model of the chain, or the reason why it could not be loaded."""

    name: str
    model: Guarded | None
    error: EmbedderError | None = None
    again_at: float = 0.0

    @property
    def id(self) -> str:
        """The id of the model, or its name where it could not be loaded."""
        return self.model.id if self.model else self.name


@dataclass(frozen=True, slots=True)
class Resolved:
    """The chain as one search sees it: its levels, the pinned vector set, and the set and model
    that answer first.
    """

    levels: tuple[Level, ...]
    pinned: str
    answering: tuple[str, Guarded] | None

    @property
    def first(self) -> Guarded | None:
        """The model that makes new vectors: the first that could be loaded."""
        return next((level.model for level in self.levels if level.model), None)


@dataclass(frozen=True, slots=True)
class Probe:
    """The result of testing one level."""

    name: str
    id: str
    ok: bool
    latency_ms: float = 0.0
    dim: int = 0
    alike: float = 0.0
    unlike: float = 0.0
    error: str = ""
    hint: str = ""


class Chain:
    """The models that the settings name, in order; the first that answers gives the vectors."""

    def __init__(
        self,
        names: Sequence[str],
        load: Load,
        *,
        deadline_s: float = 3.0,
        given: Embedder | None = None,
        guard: Callable[[Embedder], Guarded] | None = None,
        clock: Callable[[], float] = time.monotonic,
        outages: Outages | None = None,
    ) -> None:
        """`given` is a model from the caller, which replaces those of the settings."""
        self._names = tuple(names)
        self._load = load
        self._guard = guard or (lambda model: Guarded(model, deadline_s=deadline_s))
        self._deadline_s = deadline_s
        self._outages = outages
        self._clock = clock
        self._lock = threading.Lock()
        self._loaded: dict[str, Level] = {}
        self._loading: dict[str, Future[Embedder | None]] = {}
        self._questions: OrderedDict[tuple[str, str, str], Vectors] = OrderedDict()
        self._prepared = False
        self._given = Level(given.id, self._guard(given)) if given is not None else None

    @property
    def wanted(self) -> bool:
        """Whether any model was asked for; keywords alone may be a choice."""
        return self._given is not None or (bool(self._names) and self._names[0] != "none")

    def resolve(self, store: Store) -> Resolved:
        """Loads the models and finds out which vector set answers, without calling any model."""
        pin = pinned(store)
        levels = tuple(self.levels(store, pin=pin))
        own = next(
            (level.model for level in levels if level.model and belongs(pin, level.id)), None
        )
        if own is None and self.wanted:
            level = self._pinned_level(store, pin)
            own = level.model if level else None
        answering = (pin, own) if own else next(_others(store, levels, pin), None)
        return Resolved(levels, pin, answering)

    def prepare(self, store: Store) -> None:
        """Begins once to load what the model that answers needs, so that it is there when a
        question is embedded.
        """
        if self._prepared:
            return
        self._prepared = True
        answering = self.resolve(store).answering
        prepare = getattr(answering[1].inner, "prepare", None) if answering else None
        if prepare is not None:
            threading.Thread(target=prepare, name="load weights", daemon=True).start()

    def levels(
        self, store: Store, *, wait_s: float | None = None, pin: str | None = None
    ) -> list[Level]:
        """Every level in order, loaded; `none` ends the list. A level that is slow to load is
        waited for once.
        """
        if self._given is not None:
            return [self._given]
        by_id: dict[str, Level] = {}
        for name in self._names:
            if name == "none":
                break
            if name == "auto":
                level = self._pinned_level(
                    store, pinned(store) if pin is None else pin
                ) or self._level("local")
            else:
                level = self._level(name, wait_s=wait_s)
            by_id.setdefault(level.id, level)
        return list(by_id.values())

    def _pinned_level(self, store: Store, pin: str) -> Level | None:
        """The pinned model, if it may be loaded although the settings do not name it.

        The index may have come with a cloned repository, so it alone must not make us send anything
        or read a path.
        """
        name = str(store.get_meta(f"name:{pin}") or pin) if pin else ""
        if not name or not plain_model(name) or name in ("auto", "none"):
            return None
        level = self._level(name)
        return level if level.model is not None and belongs(pin, level.id) else None

    def _level(self, name: str, *, wait_s: float | None = None) -> Level:
        """A model by name. A remote or large one is loaded on its own thread, because that may
        hang.
        """
        with self._lock:
            level = self._loaded.get(name)
            if (
                level is not None
                and (level.error is None or self._clock() < level.again_at)
                and not _outdated(level)
            ):
                return level
            loading = self._loading.get(name)
            if loading is None:
                if wait_s is None and (paused := self._paused(name)):
                    return paused
                wait_s = self._deadline_s if wait_s is None else wait_s
                loading = self._loading[name] = _start_loading(self._load, name)
        try:
            model = loading.result(timeout=wait_s or 0.0)
        except TimeoutError:
            if self._outages is not None and wait_s:
                failures = self._outages.read(_LOAD + name)[0] + 1
                self._outages.write(
                    _LOAD + name, failures, min(MOST_PAUSE_S, PAUSE_S * 2 ** min(failures, 10))
                )
            return Level(
                name,
                None,
                EmbedderError(f"{name} is not ready yet", hint="wait, or choose another model"),
            )
        except EmbedderError as error:
            level = Level(name, None, error, self._clock() + _AGAIN_S)
        else:
            level = Level(name, self._guarded(name, model) if model is not None else None)
            if self._outages is not None and not plain_model(name):
                self._outages.write(_LOAD + name, 0, 0.0)
        with self._lock:
            if self._loading.pop(name, None) is not None:
                self._loaded[name] = level
            return self._loaded.get(name, level)

    def _paused(self, name: str) -> Level | None:
        """The level of a model that took too long to load a moment ago, in this process or in
        another.
        """
        left_s = (
            self._outages.read(_LOAD + name)[1]
            if self._outages is not None and not plain_model(name)
            else 0.0
        )
        if left_s <= 0:
            return None
        message = (
            f"{name} did not answer a moment ago; it is asked again in "
            f"{min(left_s, MOST_PAUSE_S):.0f} s"
        )
        return Level(
            name, None, EmbedderError(message, hint="notewell doctor --deep tests each model")
        )

    def _guarded(self, name: str, model: Embedder) -> Guarded:
        """A model behind its breaker; the state of one that is not on this machine is shared with
        other processes.
        """
        guarded = self._guard(model)
        if self._outages is not None and not plain_model(name):
            changed = functools.partial(self._outages.write, model.id)
            guarded.breaker = Breaker(before=self._outages.read(model.id), changed=changed)
        return guarded

    def renew(self) -> list[str]:
        """Unloads the models whose size was taken from the index; returns the names of all that are
        not loaded.
        """
        with self._lock:
            for name, level in list(self._loaded.items()):
                if level.model and getattr(level.model.inner, "remembered", False):
                    del self._loaded[name]
            return [name for name in self._names if name not in self._loaded]

    def first(self, store: Store) -> Guarded | None:
        """The model that makes new vectors: the first that could be loaded."""
        return next((level.model for level in self.levels(store) if level.model), None)

    def note_names(self, store: Store, vector_set: str, model: str) -> None:
        """Records the name of a vector set's model, so that it still answers after the setting has
        changed.
        """
        level = next((level for level in self._loaded.values() if level.id == model), None)
        if level is not None and store.get_meta(f"name:{vector_set}") != level.name:
            store.set_meta(f"name:{vector_set}", level.name)

    def question(
        self,
        store: Store,
        text: str,
        *,
        deadline_s: float | None = None,
        resolved: Resolved | None = None,
    ) -> QuestionVector | None:
        """The question's vector and the vector set it may be compared with; None when there are no
        vectors at all.
        """
        until = time.monotonic() + (self._deadline_s if deadline_s is None else deadline_s)
        now = resolved or self.resolve(store)
        failures: list[EmbedderError] = []
        for vector_set, model in _candidates(store, now):
            try:
                row = self._row(store, vector_set, model, text, until)
            except EmbedderError as error:
                failures.append(named(model.id, error))
                continue
            notices: tuple[Notice, ...] = ()
            if failures:
                message = f"{_reasons(failures)}; {vector_set} answered instead"
                notices = (Notice("model_fallback", message, failures[0].hint),)
            return _vector_of(model, vector_set, row, notices)
        if failures:
            raise EmbedderError(_reasons(failures), hint=failures[0].hint)
        if (
            now.pinned
            and now.answering is None
            and self.wanted
            and not any(level.error for level in now.levels)
        ):
            name = str(store.get_meta(f"name:{now.pinned}") or now.pinned)
            message = (
                f"the vectors in the index are from {now.pinned}, which the settings do not name"
            )
            hint = (
                f'run: notewell index, or add "{name}" at the end of embed.chain until that is done'
            )
            raise EmbedderError(message, hint=hint)
        return None

    def at_hand(self, text: str, resolved: Resolved) -> QuestionVector | None:
        """What `question` would return without asking a model, if the question was asked lately."""
        if resolved.answering is None:
            return None
        vector_set, model = resolved.answering
        row = self._cached((vector_set, model.id, text))
        return None if row is None else _vector_of(model, vector_set, row)

    def _cached(self, key: tuple[str, str, str]) -> Vectors | None:
        with self._lock:
            row = self._questions.pop(key, None)
            if row is not None:
                self._questions[key] = row
            return row

    def _row(
        self, store: Store, vector_set: str, model: Guarded, text: str, until: float
    ) -> Vectors:
        """A question's vector, from the cache where it was asked lately."""
        key = (vector_set, model.id, text)
        cached = self._cached(key)
        if cached is not None:
            return cached
        row: Vectors = model.embed([text], "query", deadline_s=max(0.02, until - time.monotonic()))[
            0
        ]
        dim, before = len(row), store.vectors.dims().get(vector_set)
        # a model that changed its size must not be compared with its old vectors
        if before not in (None, dim):
            # a search does not fail over a note to the next sync
            with contextlib.suppress(StoreError):
                note_vector_set(store, model.id, dim)
            message = f"{model.id} now gives {dim} dimensions, the index holds {before} of it"
            raise EmbedderError(message, hint="run: notewell index")
        with self._lock:
            self._questions[key] = row
            if len(self._questions) > QUESTIONS:
                self._questions.popitem(last=False)
        return row

    def pending(self, store: Store, resolved: Resolved | None = None) -> list[Notice]:
        """How many passages have no vector of the model that makes new ones."""
        now = resolved or self.resolve(store)
        if now.first is None:
            return []
        vector_set = vector_set_of(store, now.first.id)
        if not store.vectors.missing(vector_set):
            return []
        have, total = store.vectors.coverage(vector_set)
        left = (
            f"{total - have - len(store.vectors.refused(vector_set)):,} of {total:,} passages "
            "have no vector"
        )
        answering = now.answering[0] if now.answering and now.pinned else vector_set
        if answering == vector_set:
            message = (
                f"{left} yet; "
                f"{'meaning search covers the rest' if have else 'keywords answer alone'}"
            )
        else:
            message = f"{left} of {vector_set} yet; {answering} answers until they do"
        return [Notice("vectors_pending", message, "run: notewell index")]

    def notices(self, store: Store, resolved: Resolved | None = None) -> list[Notice]:
        """Why there is no model at all, when one was wanted and none could be loaded."""
        now = resolved or self.resolve(store)
        errors = [level.error for level in now.levels if level.error]
        if not errors or now.first is not None:
            return []
        what = (
            f"{now.answering[0]} answers, but nothing new gets a vector"
            if now.answering
            else "keywords only"
        )
        return [Notice("no_embedder", f"{what}: {_reasons(errors)}", errors[0].hint)]

    def probe(
        self, store: Store, names: Sequence[str] | None = None, *, deadline_s: float
    ) -> list[Probe]:
        """Tests levels: how fast, how many dimensions, and whether similar texts are closer than
        different ones.
        """
        levels = self.levels(store, wait_s=deadline_s)
        return [
            _probe(level, deadline_s) for level in levels if names is None or level.name in names
        ]

    def close(self) -> None:
        """Ends every wait for a model at once; a model that is still loading is closed when it is
        ready.
        """
        with self._lock:
            levels, loading = [self._given, *self._loaded.values()], list(self._loading.values())
        for level in levels:
            if level is not None and level.model is not None:
                level.model.close()
        for future in loading:
            future.add_done_callback(_close_loaded)


def _vector_of(
    model: Guarded, vector_set: str, row: Vectors, notices: tuple[Notice, ...] = ()
) -> QuestionVector:
    return QuestionVector(
        vector_set, row, notices, windows=bool(model.window_dims), every_script=model.every_script
    )


def _candidates(store: Store, now: Resolved) -> Iterator[tuple[str, Guarded]]:
    """The vector sets to try for a question, with their models; later ones are looked up only when
    needed.
    """
    if now.answering is not None:
        yield now.answering
    yield from (other for other in _others(store, now.levels, now.pinned) if other != now.answering)


def _others(store: Store, levels: Sequence[Level], pin: str) -> Iterator[tuple[str, Guarded]]:
    """The vector sets of loaded models besides the pinned one: complete ones, then those with some
    vectors.
    """
    models = [level.model for level in levels if level.model]
    sets = [(name, model) for model in models if (name := vector_set_of(store, model.id)) != pin]
    filled = [pair for pair in sets if complete(store, pair[0])]
    yield from filled
    dims = store.vectors.dims()
    yield from (pair for pair in sets if pair not in filled and pair[0] in dims)


def _probe(level: Level, deadline_s: float) -> Probe:
    begun = time.perf_counter()
    try:
        if level.model is None:
            raise level.error or EmbedderError("it gives no vectors")
        level.model.embed(SANITY[:1], "query", deadline_s=deadline_s, anyway=True)
        begun_warm = time.perf_counter()  # the first call loads a local model
        rows = level.model.embed(SANITY, "document", deadline_s=deadline_s, anyway=True)
    except EmbedderError as error:
        spent = (time.perf_counter() - begun) * 1000 if level.model else 0.0
        return Probe(
            level.name, level.id, ok=False, latency_ms=spent, error=str(error), hint=error.hint
        )
    spent = (time.perf_counter() - begun_warm) * 1000
    alike, unlike = float(rows[0] @ rows[1]), float(rows[0] @ rows[2])
    found = Probe(level.name, level.id, alike > unlike, spent, rows.shape[1], alike, unlike)
    if found.ok:
        return found
    fault = "two texts with the same meaning are further apart than two that differ"
    return replace(found, error=fault, hint="choose another model with embed.model")


def _start_loading(load: Load, name: str) -> Future[Embedder | None]:
    """Loads a model on a thread; a packaged one at once, since it cannot hang."""
    future: Future[Embedder | None] = Future()

    def work() -> None:
        try:
            future.set_result(load(name))
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it
            future.set_exception(error)

    if plain_model(name):
        work()
    else:
        threading.Thread(target=work, name=f"load {name}", daemon=True).start()
    return future


def _outdated(level: Level) -> bool:
    """Whether a model's size is not the one recorded in the index, so that it must be loaded
    again.
    """
    return level.model is not None and bool(getattr(level.model.inner, "outdated", False))


def _close_loaded(future: Future[Embedder | None]) -> None:
    if future.exception() is None:
        close_model(future.result())


def named(model: str, error: EmbedderError) -> EmbedderError:
    """An error whose message names the model."""
    return error if model in str(error) else EmbedderError(f"{model}: {error}", hint=error.hint)


def _reasons(errors: Sequence[EmbedderError]) -> str:
    return "; ".join(dict.fromkeys(str(error) for error in errors))
