"""Which model answers: the one the index is pinned to, else another whose vectors are all there, else keywords."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as LateError
from dataclasses import dataclass

from recollect.embed.breaker import MOST_PAUSE_S, PAUSE_S, Breaker, Guarded
from recollect.embed.generations import belongs, complete, generation_of, note_generation, pinned
from recollect.embed.memo import Memo
from recollect.errors import EmbedderError, StoreError
from recollect.ports import Asked, Embedder, Store, Vectors
from recollect.settings import plain_model
from recollect.types import Notice

Load = Callable[[str], Embedder | None]
_LOAD = "load "
_AGAIN_S = 30.0  # a model that could not be loaded is tried again after that
QUESTIONS = 256  # vectors of questions that are kept: a slider on a page asks the same one many times
SANITY = ("The cat sat on the mat.", "A cat is sitting on a mat.", "Quarterly tax returns are due in April.")


@dataclass(frozen=True, slots=True)
class Level:
    """One model of the chain, loaded, or the reason why it could not be."""

    name: str
    model: Guarded | None
    error: EmbedderError | None = None
    again_at: float = 0.0

    @property
    def id(self) -> str:
        """The id of the model, or its name where it could not be loaded."""
        return self.model.id if self.model else self.name


@dataclass(frozen=True, slots=True)
class Probe:
    """What a level said when it was asked."""

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
    """The models that settings name, in order; the first that answers gives the vectors."""

    def __init__(
        self,
        names: Sequence[str],
        load: Load,
        *,
        deadline_s: float = 3.0,
        given: Embedder | None = None,
        guard: Callable[[Embedder], Guarded] | None = None,
        clock: Callable[[], float] = time.monotonic,
        memo: Memo | None = None,
    ) -> None:
        self._memo = memo
        self._names = tuple(names)
        self._load = load
        self._guard = guard or (lambda model: Guarded(model, deadline_s=deadline_s))
        self._deadline_s = deadline_s
        self._lock = threading.Lock()
        self._clock = clock
        self._known: dict[str, Level] = {}
        self._loading: dict[str, Future[Embedder | None]] = {}
        self._recent: OrderedDict[tuple[str, str, str], Vectors] = OrderedDict()
        self._given = Level(given.id, self._guard(given)) if given is not None else None

    def levels(self, store: Store, *, wait_s: float | None = None) -> list[Level]:
        """Every level in order, loaded; `none` ends the list. One that is slow to load is waited for once."""
        if self._given is not None:
            return [self._given]
        found: dict[str, Level] = {}
        for name in self._names:
            if name == "none":
                break
            level = self._auto(store) if name == "auto" else self._level(name, wait_s=wait_s)
            found.setdefault(level.id, level)
        return list(found.values())

    def _auto(self, store: Store) -> Level:
        """The pinned model if it is one that may be loaded unasked, else the packaged one."""
        return self._pinned(store) or self._level("local")

    def _pinned(self, store: Store) -> Level | None:
        """The pinned model by the name it had in the settings; a remote one or a path must be named there still.

        The index may have come with a cloned repository, so its word alone sends nothing and reads no path.
        """
        pin = pinned(store)
        name = str(store.get_meta(f"name:{pin}") or pin)
        if not pin or not plain_model(name) or name in ("auto", "none"):
            return None
        try:
            level = self._level(name)
        except EmbedderError:
            return None
        return level if level.model is not None and belongs(pin, level.id) else None

    def _level(self, name: str, *, wait_s: float | None = None) -> Level:
        """A model by name. A remote or large one is loaded on a thread of its own: that too may hang."""
        with self._lock:
            known = self._known.get(name)
            if known is not None and (known.error is None or self._clock() < known.again_at) and not _outdated(known):
                return known
            loading = self._loading.get(name)
            if loading is None:
                if wait_s is None and (resting := self._resting(name)):
                    return resting
                wait_s = self._deadline_s if wait_s is None else wait_s
                loading = self._loading[name] = _started(self._load, name)
        try:
            model = loading.result(timeout=wait_s or 0.0)
        except LateError:
            if self._memo is not None and wait_s:
                failures = self._memo.read(_LOAD + name)[0] + 1
                self._memo.write(_LOAD + name, failures, min(MOST_PAUSE_S, PAUSE_S * 2 ** min(failures, 10)))
            return Level(name, None, EmbedderError(f"{name} is not ready yet", hint="wait, or choose another model"))
        except EmbedderError as error:
            level = Level(name, None, error, self._clock() + _AGAIN_S)
        else:
            level = Level(name, self._guarded(name, model) if model is not None else None)
            if self._memo is not None and not plain_model(name):
                self._memo.write(_LOAD + name, 0, 0.0)
        with self._lock:
            if self._loading.pop(name, None) is not None:
                self._known[name] = level
            return self._known.get(name, level)

    def _resting(self, name: str) -> Level | None:
        """A model that took too long to load a moment ago, in this process or in another."""
        left_s = self._memo.read(_LOAD + name)[1] if self._memo is not None and not plain_model(name) else 0.0
        if left_s <= 0:
            return None
        message = f"{name} did not answer a moment ago; it is asked again in {min(left_s, MOST_PAUSE_S):.0f} s"
        return Level(name, None, EmbedderError(message, hint="recollect doctor --deep asks each model"))

    def renew(self) -> list[str]:
        """Forgets the models whose size is only remembered, and names all that may be so when they are next loaded."""
        with self._lock:
            for name in [n for n, level in self._known.items() if level.model and _remembered(level.model.inner)]:
                del self._known[name]
            return [name for name in self._names if name not in self._known]

    def _guarded(self, name: str, model: Embedder) -> Guarded:
        """A model behind its breaker; of one that is not on this machine other processes are told, and tell."""
        found = self._guard(model)
        if self._memo is not None and not plain_model(name):
            told = functools.partial(self._memo.write, model.id)
            found.breaker = Breaker(before=self._memo.read(model.id), told=told)
        return found

    @property
    def wanted(self) -> bool:
        """Whether any model was asked for; keywords alone may be a choice."""
        return self._given is not None or (bool(self._names) and self._names[0] != "none")

    def first(self, store: Store) -> Guarded | None:
        """The model that new vectors are made with: the first that could be loaded."""
        return next((level.model for level in self.levels(store) if level.model), None)

    def note_names(self, store: Store, generation: str, model: str) -> None:
        """Remembers by which name a generation's model is found, so that it answers after the setting changed."""
        level = next((one for one in self._known.values() if one.id == model), None)
        if level is not None and store.get_meta(f"name:{generation}") != level.name:
            store.set_meta(f"name:{generation}", level.name)

    def answering(self, store: Store) -> tuple[str, Guarded] | None:
        """The generation a search would use and its model, without asking any."""
        return next(self._candidates(store), None)

    def _candidates(self, store: Store) -> Iterator[tuple[str, Guarded]]:
        """Generations to ask a question of: the pinned one, then any that is complete, then what there is."""
        pin = pinned(store)
        loaded = [level.model for level in self.levels(store) if level.model]
        own = next((m for m in loaded if belongs(pin, m.id)), None)
        if own is None and self.wanted:
            level = self._pinned(store)
            own = level.model if level else None
        if own is not None:
            yield pin, own
        others = [(generation_of(store, m.id), m) for m in loaded]
        others = [(g, m) for g, m in others if g != pin]
        whole = [one for one in others if complete(store, one[0])]
        yield from whole
        known = store.dims()
        yield from (one for one in others if one not in whole and one[0] in known)

    def question(self, store: Store, text: str, *, deadline_s: float | None = None) -> Asked | None:
        """The question's vector with the generation it may be compared with; None when no vector is there at all."""
        until = time.monotonic() + (self._deadline_s if deadline_s is None else deadline_s)
        failures: list[EmbedderError] = []
        asked = False
        for generation, model in self._candidates(store):
            asked = True
            try:
                row = self._row(store, generation, model, text, until)
            except EmbedderError as error:
                failures.append(named(model.id, error))
                continue
            notices: tuple[Notice, ...] = ()
            if failures:
                message = f"{_reasons(failures)}; {generation} answered in its place"
                notices = (Notice("model_fallback", message, failures[0].hint),)
            return Asked(generation, row, notices)
        if failures:
            raise EmbedderError(_reasons(failures), hint=failures[0].hint)
        if not asked and pinned(store) and self.wanted:
            self._unreachable(store)
        return None

    def _row(self, store: Store, generation: str, model: Guarded, text: str, until: float) -> Vectors:
        """A question's vector; one that was asked lately is not embedded again."""
        key = (generation, model.id, text)
        with self._lock:
            known = self._recent.pop(key, None)
            if known is not None:
                self._recent[key] = known
                return known
        row: Vectors = model.embed([text], "query", deadline_s=max(0.02, until - time.monotonic()))[0]
        self._same_size(store, generation, model.id, len(row))
        with self._lock:
            self._recent[key] = row
            if len(self._recent) > QUESTIONS:
                self._recent.popitem(last=False)
        return row

    def _same_size(self, store: Store, generation: str, model: str, dim: int) -> None:
        """A model that changed its dimensions under its name must not be compared with what it gave before."""
        known = store.dims().get(generation)
        if known in (None, dim):
            return
        with contextlib.suppress(StoreError):  # a search does not fail over a note to the next sync
            note_generation(store, model, dim)
        raise EmbedderError(
            f"{model} now gives {dim} dimensions, the index holds {known} of it", hint="run: recollect index"
        )

    def _unreachable(self, store: Store) -> None:
        errors = [level.error for level in self.levels(store) if level.error]
        if not errors:
            pin = pinned(store)
            name = str(store.get_meta(f"name:{pin}") or pin)
            raise EmbedderError(
                f"the vectors in the index are of {pin}, which the settings do not name",
                hint=f'run: recollect index, or add "{name}" at the end of embed.chain until that is done',
            )

    def pending(self, store: Store) -> list[Notice]:
        """How much of the index the model to come, or the one that answers, has not seen yet."""
        coming = self.first(store)
        if coming is None:
            return []
        generation = generation_of(store, coming.id)
        pin = pinned(store)
        missing = store.missing(generation)
        if not missing:
            return []
        have, total = store.coverage(generation)
        left = total - have - len(store.refused(generation))
        now = self.answering(store)
        if now is None or now[0] == generation or not pin:
            message = f"{left} of {total} passages have no vector yet; meaning search covers the rest"
        else:
            message = f"{left} of {total} passages have no vector of {generation} yet; {now[0]} answers until they do"
        return [Notice("vectors_pending", message, "run: recollect index")]

    def notices(self, store: Store) -> list[Notice]:
        """Why there is no model at all, when there is none and one was wanted."""
        levels = self.levels(store)
        errors = [level.error for level in levels if level.error]
        if not errors or any(level.model for level in levels):
            return []
        now = self.answering(store)
        what = f"{now[0]} answers, but nothing new gets a vector" if now else "keywords only"
        return [Notice("no_embedder", f"{what}: {_reasons(errors)}", errors[0].hint)]

    def probe(self, store: Store, names: Sequence[str] | None = None, *, deadline_s: float) -> list[Probe]:
        """Asks levels: how fast, how many dimensions, and whether alike texts come out nearer than unlike ones."""
        wanted = [level for level in self.levels(store, wait_s=deadline_s) if names is None or level.name in names]
        return [self._probe(level, deadline_s) for level in wanted]

    @staticmethod
    def _probe(level: Level, deadline_s: float) -> Probe:
        if level.model is None:
            error = level.error or EmbedderError("it gives no vectors")
            return Probe(level.name, level.id, ok=False, error=str(error), hint=error.hint)
        begun = time.perf_counter()
        try:
            level.model.embed(SANITY[:1], "query", deadline_s=deadline_s, anyway=True)
            begun_warm = time.perf_counter()  # a local model is loaded by the first call
            rows = level.model.embed(SANITY, "document", deadline_s=deadline_s, anyway=True)
        except EmbedderError as error:
            spent = (time.perf_counter() - begun) * 1000
            return Probe(level.name, level.id, ok=False, latency_ms=spent, error=str(error), hint=error.hint)
        spent = (time.perf_counter() - begun_warm) * 1000
        alike, unlike = float(rows[0] @ rows[1]), float(rows[0] @ rows[2])
        sane = alike > unlike
        return Probe(
            level.name, level.id, ok=sane, latency_ms=spent, dim=rows.shape[1], alike=alike, unlike=unlike,
            error="" if sane else "two texts that mean the same are further apart than two that do not",
            hint="" if sane else "choose another model with embed.model",
        )  # fmt: skip

    def close(self) -> None:
        """Ends every wait for a model at once; one that is still being loaded is closed when it is there."""
        with self._lock:
            levels, coming = [self._given, *self._known.values()], list(self._loading.values())
        for level in levels:
            if level is not None and level.model is not None:
                level.model.close()
        for future in coming:
            future.add_done_callback(_shut)


def _started(load: Load, name: str) -> Future[Embedder | None]:
    """A model on its way; the packaged ones are there at once."""
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


def _remembered(model: Embedder) -> bool:
    return bool(getattr(model, "remembered", False))


def _outdated(level: Level) -> bool:
    """Whether a model has another size than was remembered, so that it must be loaded anew."""
    return level.model is not None and bool(getattr(level.model.inner, "outdated", False))


def _shut(future: Future[Embedder | None]) -> None:
    """Closes a model that came too late for anybody."""
    end = getattr(future.result(), "close", None) if future.exception() is None else None
    if callable(end):
        end()


def named(model: str, error: EmbedderError) -> EmbedderError:
    """An error that says which model it is about."""
    return error if model in str(error) else EmbedderError(f"{model}: {error}", hint=error.hint)


def _reasons(errors: Sequence[EmbedderError]) -> str:
    return "; ".join(dict.fromkeys(str(error) for error in errors))
