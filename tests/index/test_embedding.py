"""A model fills in beside the one that answers: level by level, resumable, and the pin moves at the
end.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from notewell.embed.chain import Chain
from notewell.embed.embedder import Embedder, PassageVectors
from notewell.embed.vector_sets import pinned
from notewell.errors import EmbedderError, RejectedError
from notewell.index.embedding import fill
from notewell.index.filling import SyncOptions, embed
from notewell.index.walk import Walk
from notewell.sources.files import FileSource
from notewell.store.sqlite.store import SqliteStore
from notewell.types import Estimate
from tests.conftest import Write
from tests.embed.models import Flapping, Hanging, Named, Refusing, Windowed
from tests.store.made import nearest

NOTES = 20


@pytest.fixture
def engine(root: Path, write: Write) -> Walk:
    for n in range(NOTES):
        write(f"memory/{n:02}.md", f"# Head\n\nnote number {n} about subject{n}\n")
    made = Walk([FileSource(root)], SqliteStore(None))
    made.sync()
    return made


def chain(*models: Embedder) -> Chain:
    return Chain([f"m{n}" for n in range(len(models))], lambda name: models[int(name[1:])])


def test_the_first_model_is_pinned_with_its_first_vector(engine: Walk) -> None:
    report = fill(engine, chain(Named("first")), trial_s=30)
    assert (report.embedded, report.pending, report.model, report.notices) == (
        NOTES,
        0,
        "first",
        (),
    )
    assert pinned(engine.store) == "first"
    assert engine.store.get_meta("name:first") == "m0"


def test_another_model_fills_in_and_the_pin_moves_when_all_is_there(engine: Walk) -> None:
    fill(engine, chain(Named("old")), trial_s=30)
    new = Flapping("new")
    one = chain(new)
    half = embed(engine, new, SyncOptions(deadline=None, batch=4))
    assert half.pending == 0, "the engine alone moves nothing"
    assert pinned(engine.store) == "old"
    report = fill(engine, one, trial_s=30)
    assert [n.code for n in report.notices] == ["model_switched"]
    assert "the vectors of old are kept" in report.notices[0].message
    assert pinned(engine.store) == "new"
    assert {
        name: engine.store.vectors.coverage(name)[0] for name in engine.store.vectors.dims()
    } == {
        "old": NOTES,
        "new": NOTES,
    }


def test_an_interrupted_filling_goes_on_where_it_stopped(engine: Walk) -> None:
    fill(engine, chain(Named("old")), trial_s=30)

    class Dying(Named):
        def embed(self, texts, role):  # type: ignore[no-untyped-def]
            if self.documents >= 8:
                raise EmbedderError("gone away", hint="later")
            return super().embed(texts, role)

    report = fill(engine, chain(Dying("new")), trial_s=30)
    assert (report.embedded, report.pending) == (8, NOTES - 8)
    assert [(n.code, n.hint) for n in report.notices] == [("embedder_failed", "later")]
    assert pinned(engine.store) == "old"
    again = Named("new")
    assert fill(engine, chain(again), trial_s=30).embedded == again.documents == NOTES - 8
    assert pinned(engine.store) == "new"


def test_in_a_new_index_the_chain_goes_on_to_the_first_that_answers(engine: Walk) -> None:
    dead, alive = Flapping("dead", dead=True), Named("alive")
    report = fill(engine, chain(dead, alive), trial_s=30)
    assert (report.embedded, report.model, pinned(engine.store)) == (NOTES, "alive", "alive")
    (notice,) = report.notices
    assert notice.code == "model_fallback"
    assert notice.message == "dead: connection refused; alive makes the vectors instead"
    assert notice.hint == "start the server"
    assert len(dead.calls) == 1, "each level is tried once"


def test_a_later_round_of_the_same_sync_does_not_ask_a_dead_level_again(
    engine: Walk, write: Write
) -> None:
    dead, alive = Flapping("dead", dead=True), Named("alive")
    both = chain(dead, alive)
    fill(engine, both, trial_s=30)
    for n in range(3):
        write(f"memory/late{n}.md", f"it came late, for the time {n}")
        engine.sync()
        assert fill(engine, both, SyncOptions(later=True), trial_s=30).embedded == 1
    assert len(dead.calls) == 1
    fill(engine, both, trial_s=30)
    assert len(dead.calls) == 2, "another `index` asks it"


def test_a_level_that_hangs_is_given_up_after_its_trial(engine: Walk) -> None:
    hanging, alive = Hanging(), Named("alive")
    report = fill(engine, chain(hanging, alive), trial_s=0.05)
    hanging.go.set()
    assert report.model == "alive"
    assert "hanging did not answer within 0.05 s" in report.notices[0].message


def test_when_the_pinned_model_fails_no_other_embeds_everything_again(
    engine: Walk, write: Write
) -> None:
    one, other = Flapping("one"), Named("other")
    fill(engine, chain(one, other), trial_s=30)
    write("memory/new.md", "a new note")
    engine.sync()
    one.dead = True
    report = fill(engine, chain(one, other), trial_s=30)
    assert (report.pending, other.documents) == (1, 0)
    assert [(n.code, n.message) for n in report.notices] == [
        ("embedder_failed", "one: connection refused")
    ]


def test_the_preferred_model_takes_over_when_it_is_back(engine: Walk) -> None:
    preferred, other = Flapping("preferred", dead=True), Named("other")
    fill(engine, chain(preferred, other), trial_s=30)
    preferred.dead = False
    fill(engine, chain(preferred, other), trial_s=30)
    assert pinned(engine.store) == "preferred"


def test_with_every_level_dead_there_is_one_notice(engine: Walk) -> None:
    report = fill(engine, chain(*(Flapping(f"m{n}", dead=True) for n in range(3))), trial_s=30)
    (notice,) = report.notices
    assert notice.code == "embedder_failed"
    assert notice.message == "; ".join(f"m{n}: connection refused" for n in range(3))
    assert (report.embedded, report.pending) == (0, NOTES)


def test_a_model_that_changed_its_size_under_its_name_becomes_another_generation(
    engine: Walk, write: Write
) -> None:
    fill(engine, chain(Named("same", dim=64)), trial_s=30)
    write("memory/new.md", "a new note")
    engine.sync()
    report = fill(engine, chain(Named("same", dim=32)), trial_s=30)
    assert (report.model, report.pending) == ("same@32", 0)
    assert pinned(engine.store) == "same@32"
    assert engine.store.vectors.dims() == {"same": 64, "same@32": 32}
    assert [engine.store.vectors.coverage(name)[0] for name in ("same", "same@32")] == [
        NOTES,
        NOTES + 1,
    ]


def test_refused_texts_are_reported_by_file_and_line_and_not_asked_again(
    engine: Walk, write: Write
) -> None:
    fill(engine, chain(Named("old")), trial_s=30)
    model = Refusing("subject7", "new")
    report = fill(engine, chain(model), trial_s=30)
    assert (report.embedded, report.pending) == (NOTES - 1, 0)
    (skipped,) = report.skipped
    assert (skipped.path, skipped.reason) == (
        "memory/07.md:3",
        "no vector: the word subject7 is not allowed",
    )
    assert pinned(engine.store) == "new", "one refused text does not hold everything back"
    assert engine.store.vectors.refused("new") == [
        ("memory/07.md", 3, "the word subject7 is not allowed")
    ]
    asked = model.documents
    assert fill(engine, chain(model), trial_s=30).skipped == ()
    assert model.documents == asked
    mended = Named("new")
    assert fill(engine, chain(mended), trial_s=30, options=SyncOptions(force=True)).embedded == 1
    assert engine.store.vectors.refused("new") == []


def test_a_batch_that_is_refused_as_a_whole_ends_nothing(engine: Walk) -> None:
    report = fill(engine, chain(Refusing("note")), trial_s=30)
    assert (report.embedded, report.pending, len(report.skipped)) == (0, 0, NOTES)


def test_the_estimate_comes_before_the_first_call_and_then_with_the_time(
    engine: Walk, write: Write
) -> None:
    for n in range(100):
        write(f"memory/more/{n}.md", f"further note {n} " + "word " * 50)
    engine.sync()

    class Paid(Named):
        usd_per_million = 0.02

    model = Paid("paid")
    told: list[tuple[Estimate, int]] = []
    report = fill(
        engine,
        chain(model),
        options=SyncOptions(estimate=lambda e: told.append((e, model.documents))),
        trial_s=30,
    )
    (first, before), (second, after) = told
    assert (first.model, first.passages, first.seconds, before) == ("paid", NOTES + 100, None, 0)
    assert first.usd == pytest.approx(first.tokens * 0.02 / 1e6)
    assert 100 * 50 < first.tokens < 100 * 80
    assert (second.tokens, after) == (first.tokens, 8 + 64)
    assert second.seconds is not None
    assert second.seconds > 0
    assert report.estimate == second


def test_notes_that_come_in_while_a_model_fills_in_are_not_left_out(
    engine: Walk, write: Write
) -> None:
    class Busy(Named):
        def embed(self, texts, role):  # type: ignore[no-untyped-def]
            if self.documents == 8:
                write("memory/late.md", "it came late")
                engine.sync()
            return super().embed(texts, role)

    report = fill(engine, chain(Busy("busy")), trial_s=30)
    assert (report.embedded, report.pending) == (NOTES + 1, 0)


def test_a_slice_of_work_ends_by_its_deadline(engine: Walk) -> None:
    report = fill(engine, chain(Named("one")), trial_s=30, options=SyncOptions(deadline=0.0))
    assert (report.embedded, report.pending, report.notices) == (0, NOTES, ())


def test_whoever_runs_index_wakes_a_model_that_rests(engine: Walk) -> None:
    model = Flapping("m")
    one = chain(model)
    fill(engine, one, trial_s=30)
    (level,) = one.levels(engine.store)
    assert level.model is not None
    model.dead = True
    with pytest.raises(EmbedderError):
        level.model.embed(["x"], "query")
    assert level.model.breaker.left_s > 0
    assert [n.code for n in fill(engine, one, trial_s=30).notices] == ["embedder_failed"]
    model.dead = False
    assert (
        fill(engine, one, trial_s=30, options=SyncOptions(deadline=time.monotonic() + 600)).notices
        == ()
    )
    assert level.model.breaker.left_s > 0, "the background lets it rest"
    assert fill(engine, one, trial_s=30).notices == ()
    assert level.model.breaker.left_s == 0


def test_the_background_does_not_ask_a_model_that_rests(engine: Walk) -> None:
    model = Flapping("m", dead=True)
    one = chain(model)
    for _ in range(5):
        report = fill(engine, one, trial_s=30, options=SyncOptions(deadline=time.monotonic() + 600))
        assert report.pending == NOTES
    assert len(model.calls) == 1


def test_windows_are_kept_beside_the_vector_with_their_place_in_the_text(
    root: Path, write: Write
) -> None:
    write(
        "memory/a.md",
        "# About boats\n\na red boat\nthe green harbour\na yellow lamp\n\n# One\n\na single line\n",
    )
    walk = Walk([FileSource(root)], SqliteStore(None))
    walk.sync()
    model = Windowed()
    assert fill(walk, chain(model), trial_s=30).embedded == model.passages == 2
    assert model.documents == 0, "one run makes the vector and its windows"
    chunk, short = walk.store.documents.chunks_of("memory/a.md")
    codes = walk.store.vectors.windows(model.id, [chunk.row, short.row])
    given = f"About boats\n{chunk.text}"
    for line in chunk.text.split("\n"):
        best = nearest(codes, model.embed([line], "query")[0])[chunk.row]
        assert given[best.start : best.end] == line
    headings = nearest(codes, model.embed(["About boats"], "query")[0])[chunk.row]
    assert headings.cosine < 0.9, "a window over nothing but headings is not kept"
    assert nearest(codes, model.embed(["One"], "query")[0])[short.row].start == 4


def test_windows_of_what_a_model_did_not_refuse_are_kept(engine: Walk) -> None:
    class Choosy(Windowed):
        def embed_passages(self, texts: Sequence[str]) -> Sequence[PassageVectors]:
            rows = dict(enumerate(super().embed_passages(texts)))
            bad = {n: "too odd" for n, text in enumerate(texts) if "subject7" in text}
            if bad:
                raise RejectedError(
                    "some", reasons=bad, rows={n: row for n, row in rows.items() if n not in bad}
                )
            return list(rows.values())

    report = fill(engine, chain(Choosy()), trial_s=30)
    assert (report.embedded, len(report.skipped)) == (NOTES - 1, 1)
    rows = [
        c.row for n in range(NOTES) for c in engine.store.documents.chunks_of(f"memory/{n:02}.md")
    ]
    assert len(engine.store.vectors.windows("windowed", rows)) == NOTES - 1
