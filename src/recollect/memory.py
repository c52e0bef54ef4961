"""Memory, the front door: open, search, get, why, remember, forget, over a workspace that is kept up."""

from __future__ import annotations

import datetime as dt
import os
import re
import time
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from recollect import settings as settings_
from recollect.embed import registry
from recollect.embed.generations import pinned
from recollect.errors import (
    NotFoundError,
    StoreDamagedError,
    StoreError,
    UsageError,
    WorkspaceError,
)
from recollect.keeping import Kept, Status
from recollect.ports import Conversations, Embedder
from recollect.search import explain, profiles, timeline, trail
from recollect.search.evidence import ask
from recollect.search.merge import merged
from recollect.search.pack import CONSIDERED, DEFAULT_BUDGET, Context, pack
from recollect.search.pipeline import Bench, Profile, Ranked, run
from recollect.search.rerank import Rerank
from recollect.search.stages import Abstain, Cut, Decay
from recollect.settings import SearchSettings, Settings
from recollect.sources.links import add_link, read_links, remove_links
from recollect.store.lock import locked
from recollect.store.place import find_workspace, open_index
from recollect.sync.forget import Act, Piece, Receipt, Selection, backups_of, forget, undo
from recollect.sync.notes import Notes
from recollect.sync.remember import Desk, Remembered, Wish, remember
from recollect.text.chunk import Passage
from recollect.text.dates import spans_in
from recollect.text.intent import asks_for_now
from recollect.text.markdown import split_lines
from recollect.text.snippet import snippet
from recollect.text.words import clean, query_terms
from recollect.types import (
    Candidate,
    Chunk,
    Edge,
    End,
    Filters,
    Found,
    Hit,
    Notice,
    Query,
)

MAX_QUERY = 20_000
_LEAST_WAIT_S = 0.25
_MEASURED_WAIT_S = 60.0  # a busy machine must not turn a measurement into one of keywords
ANSWERS = 128
_MODEL_FAULTS = ("vector_failed", "vector_late", "model_fallback", "no_embedder")
_RECENCY = Decay(half_life_days=30.0)
_TRIES, _STEADY_WAIT_S = 3, 5.0
_LINES = re.compile(r"(?P<path>.+?)(?::(?P<a>\d{1,9})(?:-(?P<b>\d{1,9}))?|#L?(?P<c>\d{1,9})(?:-L?(?P<d>\d{1,9}))?)\Z")


@dataclass(frozen=True, slots=True)
class Text:
    """What `get` returns: lines of a note, or the turns on some lines of a transcript."""

    path: str
    start_line: int
    end_line: int
    text: str
    chunk: Chunk | None = None


class Memory(Kept):
    """A workspace that can be searched. Thread-safe for searches; close it, or use it as a context."""

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        settings: Settings | None = None,
        env: Mapping[str, str] | None = None,
        embedder: Embedder | None = None,
        index: str | os.PathLike[str] | None = None,
        **flags: Any,
    ) -> Memory:
        """Opens a workspace, making its index if there is none; flags are settings, with `__` for their dot.

        `index` is a file, or the address of a PostgreSQL database.
        """
        env = os.environ if env is None else env
        root = Path(path) if path is not None else find_workspace(Path.cwd(), env)
        if not root.exists():
            raise WorkspaceError(
                f"the workspace {root} does not exist", hint="make the folder, or name another with -w"
            )
        if not root.is_dir():
            raise WorkspaceError(f"{root} is not a folder", hint="name the folder that holds MEMORY.md or memory/")
        root = Path(os.path.realpath(root))
        dotted = {key.replace("__", "."): value for key, value in flags.items() if value is not None}
        if index is not None:
            dotted |= settings_.index_flags(index)
        settings = settings_.changed(settings, dotted) if settings else settings_.load(root, env=env, flags=dotted)
        store, beside, notices = open_index(root, settings, env)
        return cls(root, settings, store, notices, embedder=embedder, env=env, beside=beside)

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
        query, chosen, notices = self._query(
            text, limit=limit, profile=profile, filters=filters or Filters(), min_score=min_score,
            budget_tokens=budget_tokens, now=now,
        )  # fmt: skip
        query = replace(query, include_superseded=include_superseded)
        store = self.store
        with self._count:
            self._asking += 1
            self._asked_at = time.monotonic()
        try:
            found = self._answer(query, chosen, sync=sync)
        except StoreError as error:
            if isinstance(error, StoreDamagedError):
                self._rebuild(store)
            elif self.store is store:
                raise
            found = self._answer(query, chosen, sync=True)
        finally:
            with self._count:
                self._asking -= 1
        return replace(found, notices=(*notices, *found.notices), took_ms=(time.perf_counter() - begun) * 1000)

    def _answer(self, query: Query, chosen: Profile, *, sync: bool) -> Found:
        if self._closed:
            raise StoreError("the memory is closed", hint="open it again")
        if not sync and any(n.code == "index_rebuilt" for n in self._notices):
            sync = not self.store.documents()  # a damaged index is no reason for an empty answer
        stale, notices = self._refresh() if sync else (False, [])
        key = self._memo_key(query, chosen) if not notices and not stale else None
        if key is not None and (known := self._known_answer(key)):
            return known
        left_s = self.settings.embed.deadline_s - (self._topped_s if sync else 0.0)
        ranked = self._steady(query, chosen, deadline_s=max(_LEAST_WAIT_S, left_s))
        self._check(ranked.candidates)
        notices = [*self._notices, *self._told(notices, ranked)]
        shown = merged(ranked.candidates) if query.budget_tokens else ranked.candidates
        hits = tuple(self._hit(c, query) for c in shown)
        if any("rerank_failed" in c.signals for c in ranked.trace.candidates.values()):
            message = "the reranker failed or was late, so the order is the one before it"
            notices.append(Notice("rerank_failed", message, "look at search.rerank and search.rerank_deadline_s"))
        if not hits and ranked.trace.candidates:
            message = "nothing here seems to answer this; the nearest misses are in the trace"
            notices.append(Notice("no_relevant_memory", message, "add --explain"))
        notices += self._rewritten(hits, query.filters.as_of)
        found = Found(
            query,
            chosen.name,
            ranked.mode,
            hits,
            tuple(notices),
            ranked.trace,
            ranked.model or self._answering(),
            stale,
            0.0,
        )
        if key is not None and not notices and self._answers is not None:
            with self._count:
                self._answers[key] = found
                if len(self._answers) > ANSWERS:
                    self._answers.popitem(last=False)
        return found

    def _memo_key(self, query: Query, chosen: Profile) -> tuple[object, ...] | None:
        """What an answer depends on: the question, the day, the profile, and all that the index holds."""
        if self._answers is None or any(isinstance(s, Rerank) for s in chosen.stages):
            return None
        if self.settings.consolidate and self.store.unjudged(1):
            return None  # what passages are to each other is still being found out
        day = query.now.replace(hour=0, minute=0, second=0, microsecond=0)  # no stage looks at the hour
        return replace(query, now=day), repr(chosen), self.store.generation, pinned(self.store)

    def _known_answer(self, key: tuple[object, ...]) -> Found | None:
        with self._count:
            if self._answers is not None and key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key]
        return None

    def _told(self, refreshed: Sequence[Notice], ranked: Ranked) -> list[Notice]:
        """A model that is away is said once, however many parts of a search have met it."""
        own = [*self._chain.notices(self.store), *ranked.notices]
        fault = any(n.code in _MODEL_FAULTS for n in own)
        early = [n for n in refreshed if not (fault and n.code == "embedder_failed")]
        fault = fault or any(n.code == "embedder_failed" for n in early)
        return [*early, *([] if fault else self._pending()), *own]

    def _pending(self) -> list[Notice]:
        """What has no vector yet, and where it is."""
        found = self._chain.pending(self.store)
        count = self._in_batch() if found else 0
        return [
            replace(n, hint=f"{count} are in a batch: {n.hint} later fetches them") for n in found if count
        ] or found

    def _query(
        self, text: str, *, limit: int | None, profile: str | Profile | None, filters: Filters,
        min_score: float | None, budget_tokens: int, now: dt.datetime | None,
    ) -> tuple[Query, Profile, list[Notice]]:  # fmt: skip
        notices: list[Notice] = []
        name = profile or self.settings.search.profile
        chosen = name if isinstance(name, Profile) else self._profile(name, mixed=not filters.source)
        if limit is not None and limit < 1:
            raise UsageError(f"the limit is {limit}", hint="ask for at least one hit")
        text = clean(text)
        if len(text) > MAX_QUERY:
            notices.append(Notice("query_cut", f"the question was cut to its first {MAX_QUERY:,} characters"))
            text = text[:MAX_QUERY]
        if not query_terms(text):
            notices.append(Notice("empty_query", "the question has no word to look for", "type some words"))
        least = self.settings.search.min_score if min_score is None else min_score
        if filters.as_of:
            now = dt.datetime.combine(filters.as_of, dt.time.max)
        now = now or dt.datetime.now()  # noqa: DTZ005 - days in notes and questions are days of this place
        query = Query(
            text,
            now,
            limit or self.limit(chosen),
            filters,
            least,
            budget_tokens,
            spans_in(text, now),
            asks_for_now(text),
        )
        return query, chosen, notices

    def _profile(self, name: str, *, mixed: bool = True) -> Profile:
        """A profile by name with what the settings change about it; the legs and published ones stay as they are.

        Where sources are `mixed`, ours lets conversations fill no more than their share of the first hits.
        """
        own = self.settings.search
        chosen = profiles.profile(name)
        share = own.session_share if mixed and {"memory", "sessions"} <= set(self.settings.sources) else 1.0
        if name != own.profile:
            return profiles.adapted(chosen, session_share=share)
        stage = None
        if own.rerank != "none":
            if self._reranker is None:
                key = self._env.get("RECOLLECT_RERANK_KEY", "")
                self._reranker = registry.reranker(own, key=key, threads=self.settings.embed.threads)
            if self._reranker is not None:
                stage = Rerank(
                    self._reranker, depth=own.rerank_depth, weight=own.rerank_weight, deadline_s=own.rerank_deadline_s
                )
        return profiles.adapted(
            chosen, fusion=own.fusion, stages=own.stages, pool=own.pool, reranker=stage, session_share=share
        )

    def _steady(self, query: Query, chosen: Profile, *, deadline_s: float) -> Ranked:
        """A run during which no passage came or went: one that a leg found and that was replaced before it could be
        read would be missing under its new row as well. Where others write all the time they wait for the last try.
        """
        for _ in range(_TRIES):
            before = self.store.get_meta("chunks")
            ranked = self._run(query, chosen, deadline_s=deadline_s)
            if self.store.get_meta("chunks") == before:
                return ranked
        with self.store.exclusive(_STEADY_WAIT_S):
            return self._run(query, chosen, deadline_s=deadline_s)

    def _run(self, query: Query, chosen: Profile, *, deadline_s: float | None = None) -> Ranked:
        if not query_terms(query.text):
            return run(replace(query, text=""), chosen, Bench(self.store, None, self._executor))
        wait_s = self.settings.embed.deadline_s if deadline_s is None else deadline_s
        store = self.store
        self._chain.levels(store)  # a wrong name in the settings is an error of the caller's, not a notice
        bench = Bench(
            store,
            None,
            self._executor,
            wait_s,
            question=lambda text: self._chain.question(store, text, deadline_s=wait_s),
            relations=self.settings.consolidate,
        )
        return run(query, chosen, bench)

    def _check(self, candidates: tuple[Candidate, ...]) -> None:
        """What is shown is what was stored: a flipped bit is damage, not an answer."""
        for c in candidates:
            if _content_hash(c.chunk) != c.chunk.content_hash:
                raise StoreDamagedError(
                    f"a passage of {c.chunk.path} in the index is damaged", hint="recollect index --force"
                )

    def _hit(self, c: Candidate, query: Query) -> Hit:
        return Hit(
            chunk=c.chunk,
            score=c.score,
            confidence=c.signals.get("confidence", c.score),
            vector_score=c.signals.get("cosine"),
            text_score=c.signals.get("text", 0.0),
            ranks=c.ranks,
            recency=_RECENCY.keeps(c.chunk, query),
            snippet=snippet(c.chunk.text, query.text),
            why=explain.one_line(c, query),
            signals=c.signals,
            superseded_by=c.relations.superseded_by,
            conflicts_with=c.relations.conflicts_with,
        )

    def rank(self, text: str, *, profile: str | Profile, limit: int, now: dt.datetime) -> Ranked:
        """The bare order for a question over the index as it is: no look at the files, no threshold, no snippets."""
        query, chosen, _ = self._query(
            text, limit=limit, profile=profile, filters=Filters(), min_score=0.0, budget_tokens=0, now=now
        )
        return self._run(query, chosen, deadline_s=_MEASURED_WAIT_S)

    def limit(self, profile: str | Profile) -> int:
        """How many hits a profile shows when nobody says: what the user has set, else what the profile says."""
        own = self.settings.search.limit
        untouched = "search.limit" not in self.settings.origins and own == SearchSettings().limit
        chosen = profile if isinstance(profile, Profile) else profiles.profile(profile)
        return chosen.limit if untouched else own

    def shown(self, candidates: Sequence[Candidate], profile: str) -> list[Candidate]:
        """What a user would see of an order that was made without thresholds."""
        own = self.settings.search.min_score
        query = Query("", dt.datetime.now(), self.limit(profile), min_score=own)  # noqa: DTZ005 - no stage here looks at it
        kept: Sequence[Candidate] = candidates
        for stage in self._profile(profile).stages:
            if isinstance(stage, Abstain | Cut):
                kept = stage(kept, query)
        return list(kept)

    def get(self, reference: str, *, raw: bool = False) -> Text:
        """Lines by id, `path`, `path:from-to` or a citation, read from the file on disk.

        Secrets are redacted as in the index, and a transcript is its turns; `raw` is the file as it is.
        """
        reference = unicodedata.normalize("NFC", clean(reference).strip())
        if re.fullmatch(r"[a-z2-7]{4,12}", reference):
            self._refresh(embed=False)  # lines move when a file is edited
            found = self.store.chunks_by_id(reference)
            if len(found) == 1:
                return self._lines(found[0].path, found[0].start_line, found[0].end_line, found[0], raw=raw)
            if found:
                raise NotFoundError(
                    f"{reference} begins more than one id: {', '.join(c.id for c in found)}", hint="give more of it"
                )
        match = _LINES.match(reference)
        if match and match["path"] not in self.store.documents() and reference in self.store.documents():
            match = None
        path = match["path"] if match else reference
        first = int(match["a"] or match["c"]) if match else 1
        last = int(match["b"] or match["d"] or first) if match else None
        return self._lines(path, first, last, None, raw=raw)

    def _lines(self, path: str, first: int, last: int | None, chunk: Chunk | None, *, raw: bool) -> Text:
        everywhere = ((s, d) for s in self._engine.sources for d in s.scan().documents)
        source, known = next(((s, d) for s, d in everywhere if d.path == path), (None, None))
        if source is None or known is None:
            raise NotFoundError(f"no note is called {path!r}", hint="give a path as recollect search prints it")
        redactor = None if raw else self._redactor
        try:
            if isinstance(source, Conversations) and not raw:
                from recollect.text.transcript import readable  # noqa: PLC0415

                turns, count = source.lines(known, max(first, 1), last)
                if 1 <= first <= count and (last is None or last >= first):
                    said = [replace(t, text=redactor(t.text).text) for t in turns] if redactor else turns
                    return Text(path, first, min(last or count, count), readable(said), chunk)
                lines = ["said"] * count  # only to be counted
            else:
                spoken = isinstance(source, Conversations)
                text = Path(known.location).read_text("utf-8", "replace") if spoken else source.read(known)
                lines = split_lines(redactor(clean(text)).text if redactor else clean(text))
        except (OSError, ValueError) as error:
            raise NotFoundError(f"{path} cannot be read: {error}", hint="recollect index reports each file") from error
        if len(lines) > 1 and not lines[-1]:
            lines.pop()  # the end of the last line begins no line
        last = len(lines) if last is None else last
        if first < 1 or first > len(lines) or last < first:
            raise NotFoundError(f"{path} has {len(lines)} lines, not {first}-{last}", hint="lines count from 1")
        last = min(last, len(lines))
        return Text(path, first, last, "\n".join(lines[first - 1 : last]), chunk)

    def why(self, text: str, reference: str, **options: Any) -> tuple[Found, explain.Why]:
        """Why a passage is where it is for a question, or why it is not there."""
        found = self.search(text, **options)
        chunk = self._chunk(reference, found)
        fields = self.store.chunk_terms([chunk.row]).get(chunk.row)
        asked = ask(found.query.text, self.store.term_counts)
        note = "" if found.mode != "lexical" else "meaning search did not take part"
        return found, explain.why(chunk, found.query, found.trace, asked=asked, fields=fields, vector_note=note)

    def _chunk(self, reference: str, found: Found) -> Chunk:
        """The chunk a reference means; of a whole file, the one that came furthest."""
        reference = unicodedata.normalize("NFC", clean(reference).strip())
        by_id = self.store.chunks_by_id(reference) if re.fullmatch(r"[a-z2-7]{4,12}", reference) else []
        if len(by_id) == 1:
            return by_id[0]
        match = _LINES.match(reference)
        whole = self.store.chunks_of(reference)
        if whole:
            order = {m.id: n for step in (*found.trace.legs, *found.trace.steps) for n, m in enumerate(step.marks)}
            return min(whole, key=lambda c: (order.get(c.id, 1 << 30), c.start_line))
        if match:
            first = int(match["a"] or match["c"])
            last = int(match["b"] or match["d"] or first)
            touching = [c for c in self.store.chunks_of(match["path"]) if c.start_line <= last and c.end_line >= first]
            if touching:
                return max(touching, key=lambda c: min(c.end_line, last) - max(c.start_line, first))
        raise NotFoundError(f"nothing indexed is called {reference!r}", hint="give an id, a path or path:from-to")

    def _rewritten(self, hits: Sequence[Hit], as_of: dt.date | None) -> list[Notice]:
        """Files keep no past: a note that changed after the day asked about is shown as it is now, and that is said."""
        if as_of is None or not hits:
            return []
        end = dt.datetime.combine(as_of, dt.time.max).timestamp() * 1e9
        paths = list(dict.fromkeys(h.chunk.path for h in hits))
        changed = self.store.changed_ns(paths)
        later = [path for path in paths if changed.get(path, 0) > end]
        if not later:
            return []
        names = ", ".join(later[:3]) + (", …" if len(later) > 3 else "")
        message = f"{len(later)} of these notes changed after {as_of} and are shown as they are now: {names}"
        return [Notice("changed_since", message)]

    def context(
        self, text: str, *, budget_tokens: int = DEFAULT_BUDGET, limit: int | None = None, **options: Any
    ) -> Context:
        """One block for a prompt that answers a question within a budget of tokens, with the answer it is made of.

        Without a `limit` the budget decides: over what a search would show, and further passages that are likely.
        """
        if budget_tokens < 1:
            raise UsageError(f"the budget is {budget_tokens} tokens", hint="give at least some hundred")
        found = self.search(text, limit=limit or CONSIDERED, **options)
        usual = limit or self.limit(found.profile)
        likely = tuple(h for n, h in enumerate(found.hits) if n < usual or h.confidence >= Abstain().least)
        links, notices = read_links(self.root)
        told = trail.conflicts(self.store, [h.chunk for h in likely], links)
        told |= {(h.chunk.id, other) for h in likely for other in h.conflicts_with}
        packed = pack(likely, found.query.text, budget_tokens=budget_tokens, conflicts=told)
        if likely and not packed.passages:
            message = f"no passage fits into {budget_tokens} tokens"
            notices.append(Notice("budget_too_small", message, "give a larger --budget-tokens"))
        return replace(packed, found=replace(found, hits=likely, notices=(*found.notices, *notices)))

    def trace(
        self, reference: str, *, depth: int = 4, kinds: Sequence[str] = (), direction: trail.Direction = "out"
    ) -> tuple[trail.Trail, list[Notice]]:
        """What a passage or note derives from, refers to and so on, step by step; its rank is `why`'s business."""
        for kind in kinds:
            trail.check_kind(kind)
        _, notices = self._refresh(embed=False)
        links, more = read_links(self.root)
        start = trail.node_of(self.store, clean(reference))
        found = trail.walk(
            self.store, start, links=links, depth=depth, kinds=kinds, direction=direction, further=self._judged
        )
        return found, [*self._notices, *notices, *more]

    def _judged(self, chunk: Chunk) -> list[Edge]:
        """What consolidation knows of a passage, as edges; what front matter says of whole notes is one already."""
        found = self.store.relations([chunk], Filters()).get(chunk.row)
        pairs = [(chunk, other) for other in self.store.stands_for(chunk)]
        if found and found.superseded_by:
            pairs += [(newer, chunk) for newer in self.store.chunks_by_id(found.superseded_by)]
        told = [Edge("supersedes", End(a.id), End(b.id)) for a, b in pairs if b.path not in a.facts.supersedes]
        against = found.conflicts_with if found else ()
        return [*told, *(Edge("conflicts_with", End(chunk.id), End(other)) for other in against)]

    def link(self, start: str, kind: str, end: str, *, remove: bool = False) -> tuple[Edge, bool]:
        """Writes a link into `links.jsonl` of the workspace, or takes it out; whether the file changed."""
        trail.check_kind(kind)
        self._refresh(embed=False)
        ends = [trail.node_of(self.store, clean(one), dangling=remove) for one in (start, end)]
        edge, same = trail.edge_between(self.store, kind, *ends)
        with locked(self._beside("links.lock"), wait_s=10.0) as mine:
            if not mine:
                raise StoreError("another process is writing links", hint="try again")
            if remove:
                return edge, bool(remove_links(self.root, same))
            if any(same(other) for other in read_links(self.root)[0]):
                return edge, False
            add_link(self.root, edge)
            return edge, True

    def timeline(
        self,
        reference: str = "",
        *,
        around: tuple[dt.date, dt.date] | None = None,
        window: int = 10,
        filters: Filters | None = None,
    ) -> tuple[list[timeline.Entry], list[Notice]]:
        """What came before and after a passage or some days, over all sources; without either, the latest."""
        if window < 1:
            raise UsageError(f"the window is {window}", hint="ask for at least one")
        if reference and around:
            raise UsageError("a reference and a day cannot both be the middle", hint="give one of them")
        _, notices = self._refresh(embed=False)
        chosen = filters or Filters()
        if around:
            entries = timeline.around_days(self.store, *around, window=window, filters=chosen)
        elif reference:
            node = trail.node_of(self.store, clean(reference))
            entries = timeline.around_passage(
                self.store, node.chunk, window=window, filters=chosen, whole=node.whole
            )  # fmt: skip
        else:
            entries = timeline.latest(self.store, window=window, filters=chosen)
        return entries, [*self._notices, *notices]

    @property
    def _notes(self) -> Notes:
        return Notes(self._files, self._beside("notes.lock"))

    def remember(
        self,
        text: str,
        *,
        file: str = "",
        heading: str = "",
        tags: Sequence[str] = (),
        day: dt.date | None = None,
        supersedes: str = "",
        force: bool = False,
        now: dt.datetime | None = None,
    ) -> Remembered:
        """Writes a text into today's note, or the named one, unless it is there already; the next search finds it."""
        now = now or dt.datetime.now()  # noqa: DTZ005 - the day of this place
        self._writable()
        self._refresh(embed=False)
        if supersedes:
            supersedes = self._by_id(supersedes).id
            if file:
                raise UsageError("a memory that supersedes another has a file of its own", hint="leave out --file")
        desk = Desk(self._notes, self._engine, self.store, lambda: self.embedder)
        return remember(desk, Wish(text, now, file, heading, tags, day, supersedes, force))

    def forget(
        self,
        reference: str = "",
        *,
        query: str = "",
        session: str = "",
        before: dt.date | None = None,
        yes: bool = False,
        from_files: bool = False,
        backup: bool = True,
        now: dt.datetime | None = None,
    ) -> Receipt:
        """Shows what would be forgotten; with `yes` forgets it for good, from the files too only when told."""
        if sum(map(bool, (reference, query, session, before))) != 1:
            raise UsageError(
                "say what to forget in one way", hint="an id, path or path:from-to, or --query, --session, --before"
            )
        if not yes:
            self._refresh(embed=False)
            return Receipt("", tuple(self._selected(reference, query, session, before)))
        self._writable()
        with self.store.exclusive(60.0) as mine:
            if not mine:
                raise StoreError("another process is indexing this workspace", hint="wait for it, then run this again")
            self._engine.sync()
            pieces = self._selected(reference, query, session, before)
            if not pieces:
                return Receipt("", ())
            return forget(self._act(now), pieces, from_files=from_files, backup=backup)

    def unforget(self, name: str) -> tuple[int, tuple[str, ...]]:
        """Lifts the tombstones of a receipt or an id: how many, and the backups that the receipt made."""
        self._writable()
        with self.store.exclusive(60.0) as mine:
            if not mine:
                raise StoreError("another process is indexing this workspace", hint="wait for it, then run this again")
            act = self._act(None)
            lifted = undo(act, name)
            self._engine.sync()
        return len(lifted), tuple(p for r in sorted({s.receipt for s in lifted}) for p in backups_of(act, r))

    def _act(self, now: dt.datetime | None) -> Act:
        clock = now or dt.datetime.now()  # noqa: DTZ005 - the day of this place
        return Act(self.store, self._engine, self._notes, self._beside("backup"), clock)

    def _selected(self, reference: str, query: str, session: str, before: dt.date | None) -> list[Piece]:
        select = Selection(self.store, self._engine)
        if query:
            return select.saying(clean(query))
        if session:
            return select.session(session)
        if before:
            return select.before(before)
        reference = unicodedata.normalize("NFC", clean(reference).strip())
        if re.fullmatch(r"[a-z2-7]{4,12}", reference) and self.store.chunks_by_id(reference):
            return select.chunk(self._by_id(reference))
        match = _LINES.match(reference)
        if match and reference not in self.store.documents():
            text = self.get(reference)
            return select.lines(text.path, text.start_line, text.end_line, text.text)
        return select.document(reference.removeprefix("./"))

    def _by_id(self, prefix: str) -> Chunk:
        found = self.store.chunks_by_id(prefix)
        if len(found) != 1:
            which = f"{prefix} begins more than one id" if found else f"no passage has the id {prefix!r}"
            raise NotFoundError(which, hint="give an id as recollect search prints it")
        return found[0]


def _content_hash(chunk: Chunk) -> str:
    return Passage(chunk.start_line, chunk.end_line, chunk.heading, chunk.text).content_hash


__all__ = ["Memory", "Status", "Text", "find_workspace"]
