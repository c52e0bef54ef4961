"""Search: a question in, the passages that answer it out, each with its reason."""

from __future__ import annotations

import datetime as dt
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypedDict

from notewell.embed.chain import Resolved
from notewell.embed.embedder import QuestionVector, Reranker
from notewell.errors import EmbedderError, StoreDamagedError, StoreError, UsageError
from notewell.index.adapters import Freshness
from notewell.index.embedding import answering_id
from notewell.index.index import Index
from notewell.index.watch import load_numpy
from notewell.search import explain, profiles
from notewell.search.meaning import near_lines, near_text
from notewell.search.pipeline import Profile, Ranked, SearchContext, run
from notewell.search.prompt_block import merged
from notewell.search.shown import SHOWN_FILE, Shown, record
from notewell.search.stages import Abstain, Boost, Cut, Decay, Rerank
from notewell.search.unread import unread_notices
from notewell.settings import SearchSettings
from notewell.store.ports import Store
from notewell.text.chunk import Passage
from notewell.text.periods import time_asked
from notewell.text.snippet import snippet
from notewell.text.words import clean, query_terms, visible
from notewell.types import Candidate, Filters, Found, Hit, Notice, Query, Stage

MAX_QUERY = 20_000
ANSWERS = 128
_LEAST_WAIT_S = 0.25
_MEASURED_WAIT_S = 60.0  # a busy machine must not turn a measurement into one of keywords
_MODEL_FAULTS = ("vector_failed", "vector_late", "model_fallback", "no_embedder")
# the chain keeps the deadline and reports what went wrong; only a busy machine makes it late
_VERDICT_S = 5.0
_RECENCY = Decay(half_life_days=30.0)
_TRIES, _LOCK_S = 3, 5.0
_EPOCH = 1970
_CUT = ("sync_cut", "scan_cut")
# less likely hits, with and without a word of the question, make a poor answer
_POOR, _POOR_WORDLESS = (0.25, 0.5)
_WORDED = 0.5  # the share of a question from which on the words of a passage tell where it matches


class SearchOptions(TypedDict, total=False):
    """What `why` and `context` pass on to a search besides limit and budget; see
    `Search.search`.
    """

    profile: str | Profile | None
    filters: Filters | None
    min_score: float | None
    now: dt.datetime | None
    sync: bool
    include_superseded: bool


@dataclass(frozen=True, slots=True)
class _Question:
    """A question as it is asked of the pipeline; `worded` has no text if there is no word to look
    for.
    """

    query: Query
    worded: Query
    profile: Profile
    notices: tuple[Notice, ...]


@dataclass(frozen=True, slots=True)
class _Turn:
    """One attempt at an answer; `key` names all that it depends on, None if it must not be
    remembered.
    """

    fresh: Freshness
    resolved: Resolved
    context: SearchContext
    key: tuple[object, ...] | None
    remembered: Found | None


class Search:
    """Answers questions over an index; safe to use from several threads."""

    def __init__(self, index: Index, load_reranker: Callable[[], Reranker | None]) -> None:
        self.index = index
        self._load_reranker = load_reranker
        self._reranker: Reranker | None = None
        self._executor = ThreadPoolExecutor(max_workers=2, thread_name_prefix="notewell")
        self._answers: OrderedDict[tuple[object, ...], Found] | None = None
        self._lock = threading.Lock()
        self.paths_shown: set[str] = set()  # paths of what was in an answer

    def record_shown(self) -> Shown:
        """Writes down which documents were shown; not for each search, but when a server is idle or
        ends.
        """
        today = dt.datetime.now().date()  # noqa: DTZ005 - a day of this place
        return record(self.index.beside(SHOWN_FILE), sorted(self.paths_shown), today=today)

    def keep_warm(self) -> None:
        """For a process that stays, such as a server: remembers answers, and looks at the files
        only if it must.
        """
        self.index.keep_warm()
        self._answers = OrderedDict()

    def close(self) -> None:
        """Ends the threads that embed questions."""
        self._executor.shutdown(wait=True, cancel_futures=True)

    def search(
        self,
        text: str,
        *,
        limit: int | None = None,
        profile: str | Profile | None = None,
        filters: Filters | None = None,
        min_score: float | None = None,
        budget_tokens: int = 0,
        now: dt.datetime | None = None,
        sync: bool = True,
        include_superseded: bool = False,
    ) -> Found:
        """The passages that answer a question, best first, each with its reason."""
        begun = time.perf_counter()
        asked = self._question(
            text,
            limit=limit,
            profile=profile,
            filters=filters or Filters(),
            min_score=min_score,
            budget_tokens=budget_tokens,
            now=now,
            include_superseded=include_superseded,
        )
        with self.index.turns.searching():
            for last_try in (False, True):
                store = self.index.store
                try:
                    with store.asking():
                        turn = self._turn(asked, sync=sync or last_try)
                        if turn.remembered is None:
                            for settled in _until_steady(turn.context.store):
                                ranked = run(asked.worded, asked.profile, turn.context)
                                settled.append(ranked.steady)
                        found = turn.remembered or self._found(asked, turn, ranked)
                        lacking = self._lacking(asked, found)
                    break
                except StoreError as error:
                    if last_try or not self.index.recovered(error, store):
                        raise
        took_ms = (time.perf_counter() - begun) * 1000
        paths = [hit.chunk.path for hit in found.hits]
        unread = unread_notices(self.index.looks.unread, asked.query.filters, paths)
        notices = (*asked.notices, *found.notices, *unread, *lacking)
        self.paths_shown.update(paths)
        return replace(found, notices=notices, took_ms=took_ms)

    def _lacking(self, asked: _Question, found: Found) -> list[Notice]:
        """What may be missing from an answer that is empty or poor."""
        good = any(
            hit.confidence >= (_POOR if hit.text_score else _POOR_WORDLESS) for hit in found.hits
        )
        if good or any(n.code in _CUT for n in found.notices):
            # or it is known to lack what is not indexed yet, and no time is left for a look
            return []
        notices = self.index.lacking()
        if asked.worded.text and not found.trace.candidates and not self.index.is_empty:
            chosen = found.query.filters != Filters()
            message = (
                f"no note{' that the filters let through' if chosen else ''} has any of these words"
            )
            notices.append(
                Notice(
                    "no_match", message, "try other words" + (" or other filters" if chosen else "")
                )
            )
        return notices

    def rank(self, text: str, *, profile: str | Profile, limit: int, now: dt.datetime) -> Ranked:
        """The bare order for a question over the index as it is: no look at the files, no
        threshold, no snippets.
        """
        asked = self._question(
            text, limit=limit, profile=profile, filters=Filters(), min_score=0.0, now=now
        )
        resolved = self.index.chain.resolve(self.index.store)
        return run(asked.worded, asked.profile, self._context(asked, resolved, _MEASURED_WAIT_S))

    def _question(
        self,
        text: str,
        *,
        limit: int | None,
        profile: str | Profile | None,
        filters: Filters,
        min_score: float | None,
        now: dt.datetime | None,
        budget_tokens: int = 0,
        include_superseded: bool = False,
    ) -> _Question:
        notices: list[Notice] = []
        chosen = (
            profile
            if isinstance(profile, Profile)
            else self.profile(profile, mixed=not filters.source)
        )
        if limit is not None and limit < 1:
            raise UsageError(f"the limit is {limit}", hint="ask for at least one hit")
        text = clean(text)
        if len(text) > MAX_QUERY:
            notices.append(
                Notice("query_cut", f"the question was cut to its first {MAX_QUERY:,} characters")
            )
            text = text[:MAX_QUERY]
        blank = not query_terms(text)
        if blank:
            notices.append(
                Notice("empty_query", "the question has no word to look for", "type some words")
            )
        if filters.as_of:
            now = dt.datetime.combine(filters.as_of, dt.time.max)
        now = now or dt.datetime.now()  # noqa: DTZ005 - days in notes and questions are days of this place
        least = self.index.settings.search.min_score if min_score is None else min_score
        if least >= 0:  # the trace shows what is in force
            own = (replace(s, min_score=least) if isinstance(s, Cut) else s for s in chosen.stages)
            chosen = replace(chosen, stages=tuple(own))
        about = time_asked(visible(text), now)
        query = Query(
            text,
            now,
            limit or self.limit(chosen),
            filters,
            least,
            budget_tokens,
            about.dates,
            about.tense,
            about.until,
            about.before,
            about.subject,
            include_superseded,
        )
        return _Question(query, replace(query, text="") if blank else query, chosen, tuple(notices))

    def profile(
        self,
        name: str | None = None,
        *,
        mixed: bool = True,
        fusion: str = "",
        stages: Sequence[str] = (),
        pool: int = 0,
    ) -> Profile:
        """A profile by name with the changes of the settings, or with those given instead.

        If sources are `mixed`, ours lets conversations fill no more than their share of the first
        hits.
        """
        settings = self.index.settings
        own = settings.search
        share = (
            own.session_share if mixed and {"memory", "sessions"} <= set(settings.sources) else 1.0
        )
        return profiles.adapted(
            profiles.profile(name or own.profile),
            fusion=fusion or own.fusion,
            stages=stages or own.stages,
            pool=pool or own.pool,
            reranker=self._rerank(own),
            session_share=share,
            windows=own.windows,
        )

    def _rerank(self, own: SearchSettings) -> Rerank | None:
        """The stage that reranks, if the settings ask for one."""
        if own.rerank != "none" and self._reranker is None:
            try:
                self._reranker = self._load_reranker()
            except EmbedderError as error:
                self._reranker = _NoReranker(error)
        if self._reranker is None:
            return None
        depth, weight, deadline_s = own.rerank_depth, own.rerank_weight, own.rerank_deadline_s
        return Rerank(self._reranker, depth=depth, weight=weight, deadline_s=deadline_s)

    def limit(self, profile: str | Profile) -> int:
        """How many hits a profile shows by default: what the user has set, else what the profile
        has.
        """
        own = self.index.settings.search.limit
        untouched = (
            "search.limit" not in self.index.settings.origins and own == SearchSettings().limit
        )
        chosen = profile if isinstance(profile, Profile) else profiles.profile(profile)
        return chosen.limit if untouched else own

    def shown(self, candidates: Sequence[Candidate], profile: str) -> list[Candidate]:
        """What a user would see of an order that was made without thresholds."""
        own = self.index.settings.search.min_score
        query = Query("", dt.datetime.now(), self.limit(profile), min_score=own)  # noqa: DTZ005 - no stage here looks at it
        for stage in self.profile(profile).stages:
            if isinstance(stage, Abstain | Cut):
                candidates = stage(candidates, query)
        return list(candidates)

    def _turn(self, asked: _Question, *, sync: bool) -> _Turn:
        """Brings the index up to date and looks for an answer that is remembered."""
        index = self.index
        if index.closed:
            raise StoreError("the memory is closed", hint="open it again")
        if not sync and index.was_rebuilt:
            # a damaged index must not mean an empty answer
            sync = not index.store.documents.stored()
        if asked.worded.text and "vector" in asked.profile.legs:
            if index.chain.wanted:
                load_numpy()
            index.chain.prepare(index.store)  # while the files are looked at
        fresh = index.ensure_fresh() if sync else Freshness()
        resolved = fresh.resolved or index.chain.resolve(index.store)
        key = self._key(asked, resolved) if not fresh.notices and not fresh.stale else None
        wait_s = max(_LEAST_WAIT_S, index.settings.embed.deadline_s - fresh.embed_s)
        return _Turn(
            fresh, resolved, self._context(asked, resolved, wait_s), key, self._remembered(key)
        )

    def _context(self, asked: _Question, resolved: Resolved, wait_s: float) -> SearchContext:
        index, store = self.index, self.index.store
        if not asked.worded.text:
            return SearchContext(store, self._executor)

        def vector_of(text: str) -> QuestionVector | None:
            return index.chain.question(store, visible(text), deadline_s=wait_s, resolved=resolved)

        def at_hand(text: str) -> QuestionVector | None:
            return index.chain.at_hand(visible(text), resolved)

        return SearchContext(
            store,
            self._executor,
            wait_s,
            vector_of,
            index.settings.consolidate,
            _VERDICT_S,
            at_hand,
        )

    def _key(self, asked: _Question, resolved: Resolved) -> tuple[object, ...] | None:
        """What an answer depends on: the question, the day, the profile, and all that the index
        holds.
        """
        if self._answers is None or not all(
            map(_is_constant, (asked.profile.fusion, *asked.profile.stages))
        ):
            return None
        store = self.index.store
        if self.index.settings.consolidate and store.relations.unjudged(1):
            return None  # copies and contradictions are still being looked for
        query = asked.query
        # no stage looks at the hour
        day = query.now.replace(hour=0, minute=0, second=0, microsecond=0)
        return replace(query, now=day), repr(asked.profile), store.generation, resolved.pinned

    def _remembered(self, key: tuple[object, ...] | None) -> Found | None:
        if key is None or self._answers is None:
            return None
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
            return self._answers.get(key)

    def _remember(self, key: tuple[object, ...] | None, found: Found) -> None:
        if key is not None and not found.notices and self._answers is not None:
            with self._lock:
                self._answers[key] = found
                if len(self._answers) > ANSWERS:
                    self._answers.popitem(last=False)

    def _found(self, asked: _Question, turn: _Turn, ranked: Ranked) -> Found:
        """The answer that a ranking makes: hits with snippets and reasons, and all notices."""
        query = asked.query
        _check(ranked.candidates)
        shown = merged(ranked.candidates) if query.budget_tokens else ranked.candidates
        hits = self._with_kept([_hit(c, query) for c in shown])
        notices = [*self.index.store_notices, *self._model_notices(turn, ranked)]
        if any(c.signals.rerank_failed for c in ranked.trace.candidates.values()):
            missing = self._reranker.error if isinstance(self._reranker, _NoReranker) else None
            why = f"could not be loaded ({missing})" if missing else "failed or timed out"
            hint = missing.hint if missing else ""
            message = f"the reranker {why}; results keep their original order"
            notices.append(
                Notice(
                    "rerank_failed",
                    message,
                    hint or "check search.rerank and search.rerank_deadline_s",
                )
            )
        if not hits and ranked.trace.candidates:
            message = "nothing here seems to answer this"
            notices.append(
                Notice("no_relevant_memory", message, "add --all to see what is nearest")
            )
        notices += self._changed_since(hits, query.filters.as_of)
        model = ranked.model or answering_id(turn.resolved)
        found = Found(
            query,
            asked.profile.name,
            ranked.mode,
            hits,
            tuple(notices),
            ranked.trace,
            model,
            turn.fresh.stale,
            0.0,
        )
        self._remember(turn.key, found)
        return found

    def _with_kept(self, hits: Sequence[Hit]) -> tuple[Hit, ...]:
        """The hits, those marked whose conversation was deleted by its program."""
        spoken = {h.chunk.path for h in hits if h.chunk.source == "sessions"}
        if not spoken:
            return tuple(hits)
        from notewell.index.conversations import Tail  # noqa: PLC0415 - few workspaces have transcripts

        kept = {
            path
            for path, tail in self.index.store.documents.tails(sorted(spoken)).items()
            if Tail.load(tail).kept
        }
        return tuple(replace(h, kept=h.chunk.path in kept) for h in hits)

    def _model_notices(self, turn: _Turn, ranked: Ranked) -> list[Notice]:
        """A model that is away is reported once, however many parts of a search have met it."""
        index = self.index
        own = [*index.chain.notices(index.store, turn.resolved), *ranked.notices]
        fault = any(n.code in _MODEL_FAULTS for n in own)
        early = [n for n in turn.fresh.notices if not (fault and n.code == "embedder_failed")]
        fault = fault or any(n.code == "embedder_failed" for n in early)
        return [*early, *([] if fault else index.embedding.pending(turn.resolved)), *own]

    def _changed_since(self, hits: Sequence[Hit], as_of: dt.date | None) -> list[Notice]:
        """Files have no history: a note that changed after the day asked about is shown as it is
        now.
        """
        if as_of is None or not hits:
            return []
        try:
            end = dt.datetime.combine(as_of, dt.time.max).timestamp() * 1e9
        except (
            ValueError,
            OverflowError,
            OSError,
        ):  # the first or the last year of the calendar, or of the platform
            end = -math.inf if as_of.year < _EPOCH else math.inf
        paths = list(dict.fromkeys(h.chunk.path for h in hits))
        changed = self.index.store.documents.changed_ns(paths)
        if not (later := [path for path in paths if changed.get(path, 0) > end]):
            return []
        names = ", ".join(later[:3]) + (", …" if len(later) > 3 else "")
        message = (
            f"{len(later)} of these notes changed after {as_of} and are shown as they are "
            f"now: {names}"
        )
        return [Notice("changed_since", message)]


class _NoReranker:
    """Stands for a reranker that cannot be loaded: the search goes on without it, and says so."""

    def __init__(self, error: EmbedderError) -> None:
        self.id, self.error = "none", error

    def score(
        self,
        question: str,  # noqa: ARG002
        passages: Sequence[str],  # noqa: ARG002
        *,
        deadline_s: float,  # noqa: ARG002
    ) -> Sequence[float]:
        """Fails as the loading did."""
        raise self.error


def _is_constant(stage: Stage) -> bool:
    """Whether a stage is ours and does the same again: a model or anybody's function need not."""
    own = type(stage).__module__.startswith("notewell.") and not isinstance(stage, Rerank)
    return own and not (isinstance(stage, Boost) and stage.factor is not None)


def _until_steady(store: Store) -> Iterator[list[bool]]:
    """Yields for each run of a search, to be told if it was steady, until one was; the last run
    holds the lock.
    """
    settled: list[bool] = []
    for _ in range(_TRIES):
        yield settled
        if settled[-1]:
            return
    with store.exclusive(_LOCK_S):
        yield settled


def _check(candidates: Sequence[Candidate]) -> None:
    """What is shown is what was stored: a flipped bit is damage, not an answer."""
    for c in candidates:
        passage = Passage(c.chunk.start_line, c.chunk.end_line, c.chunk.heading, c.chunk.text)
        if passage.content_hash != c.chunk.content_hash:
            message = f"a passage of {c.chunk.path} in the index is damaged"
            raise StoreDamagedError(message, hint="notewell index --force")


def _hit(c: Candidate, query: Query) -> Hit:
    # Where the words match well the excerpt is around them, else around what is nearest in meaning.
    around, lines = near_text(c) if c.signals.cover < _WORDED else None, near_lines(c)
    part = snippet(c.chunk.text, query.text, around=around)
    recency, why = _RECENCY.keeps(c.chunk, query), explain.one_line(c, lines)
    legs = c.signals.cosine, c.signals.text
    related = c.relations.superseded_by, c.relations.conflicts_with
    return Hit(
        c.chunk,
        c.score,
        c.confidence,
        *legs,
        c.ranks,
        recency,
        part,
        why,
        c.signals,
        *related,
        near_lines=lines,
    )
