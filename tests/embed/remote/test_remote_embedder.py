"""Remote embedders against a server that checks their requests and misbehaves on demand."""

from __future__ import annotations

import email.utils
import logging
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from notewell.embed.registry import embedder as named
from notewell.embed.remote.presets import PRESETS
from notewell.embed.remote.provider import Provider
from notewell.embed.remote.remote_embedder import RemoteEmbedder, pooled, remote_embedder
from notewell.errors import EmbedderError, QuotaError, RejectedError, SettingsError
from notewell.settings import EmbedSettings
from notewell.text.words import count_tokens
from notewell.types import Media
from tests.embed import provider_server as faults
from tests.embed.provider_server import KEY, ProviderServer, changed, serving, status, vector

Make = Callable[..., tuple[RemoteEmbedder, ProviderServer]]


class Time:
    """A clock that only moves when somebody waits."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.pauses: list[float] = []

    def clock(self) -> float:
        return self.now

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        self.pauses.append(seconds)
        self.now += seconds
        return stop.is_set()


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
def make(clock: Time) -> Iterator[Make]:
    """An embedder of a provider with the server it talks to."""
    open_: list[Any] = []

    def make(
        name: str = "openai", model: str = "", *, dim: int = 0, **own: Any
    ) -> tuple[RemoteEmbedder, ProviderServer]:
        preset = PRESETS[name]
        context = serving(
            ProviderServer(name, dim=dim or preset.known(model or preset.model).dim or 32)
        )
        server = context.__enter__()
        provider = Provider(
            preset,
            url=server.url,
            key=KEY,
            timeout_s=own.pop("timeout_s", 10),
            clock=clock.clock,
            wait=clock.wait,
            jitter=lambda: 0.5,
        )
        made = remote_embedder(
            name, model, EmbedSettings(model=name, dim=dim, **own), {}, provider=provider
        )
        open_.append((context, made))
        return made, server

    yield make
    for context, made in open_:
        made.close()
        context.__exit__(None, None, None)


def unit(text: str, dim: int) -> Any:
    row = np.asarray(vector(text, dim))
    return row / np.linalg.norm(row)


PROVIDERS = [name for name in PRESETS if name != "http"]


@pytest.mark.parametrize("name", PROVIDERS)
def test_the_right_rows_come_from_the_right_requests(make: Make, name: str) -> None:
    model, server = make(name)
    preset = PRESETS[name]
    texts = ["one note", "another note"]
    for role in ("document", "query"):
        rows = model.embed(texts, role)
        prefix = model.model.prefix(role)
        assert np.allclose(rows, [unit(prefix + text, model.dim) for text in texts], atol=1e-6)
        body = server.requests[-1][3]
        request = body["requests"][0] if name == "gemini" else body
        assert request.get(preset.types[0] or "-", "") == preset.type_of(model.model, role)
    assert server.problems == []
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("name", "field", "question", "passage"),
    [
        ("voyage", "input_type", "query", "document"),
        ("cohere", "input_type", "search_query", "search_document"),
        ("jina", "task", "retrieval.query", "retrieval.passage"),
    ],
)
def test_questions_and_passages_are_told_apart_by_type(
    make: Make, name: str, field: str, question: str, passage: str
) -> None:
    model, server = make(name)
    model.embed(["a"], "query")
    model.embed(["a"], "document")
    assert [body[field] for *_, body in server.requests] == [question, passage]


@pytest.mark.parametrize(
    ("name", "question", "passage"),
    [
        ("ollama/nomic-embed-text", "search_query: a", "search_document: a"),
        (
            "ollama/mxbai-embed-large:latest",
            "Represent this sentence for searching relevant passages: a",
            "a",
        ),
        ("ollama/all-minilm", "a", "a"),
        ("lmstudio", "search_query: a", "search_document: a"),
        ("gemini", "task: search result | query: a", "title: none | text: a"),
        ("gemini/gemini-embedding-001", "a", "a"),
        ("openai", "a", "a"),
        ("mistral", "a", "a"),
    ],
)
def test_questions_and_passages_are_told_apart_by_words(
    make: Make, name: str, question: str, passage: str
) -> None:
    provider, _, model_name = name.partition("/")
    model, server = make(provider, model_name)
    model.embed(["a"], "query")
    model.embed(["a"], "document")
    assert server.texts() == [[question], [passage]]


def test_gemini_s_first_model_is_asked_with_task_types_and_shortened_rows_are_unit_again(
    make: Make,
) -> None:
    model, server = make("gemini", "gemini-embedding-001", dim=256)
    (row,) = model.embed(["a note"], "query")
    assert np.linalg.norm(row) == pytest.approx(1.0, abs=1e-6)
    _, path, headers, body = server.requests[0]
    assert path == "/v1beta/models/gemini-embedding-001:batchEmbedContents"
    assert headers["x-goog-api-key"] == KEY
    assert "Authorization" not in headers
    assert body == {
        "requests": [
            {
                "model": "models/gemini-embedding-001",
                "content": {"parts": [{"text": "a note"}]},
                "taskType": "RETRIEVAL_QUERY",
                "outputDimensionality": 256,
            }
        ]
    }


@pytest.mark.parametrize(
    ("name", "dim", "field"),
    [
        ("openai", 256, "dimensions"),
        ("voyage", 512, "output_dimension"),
        ("cohere", 256, "output_dimension"),
    ],
)
def test_fewer_numbers_are_asked_for_and_named(make: Make, name: str, dim: int, field: str) -> None:
    model, server = make(name, dim=dim)
    assert model.embed(["a"], "document").shape == (1, dim)
    assert server.requests[0][3][field] == dim
    assert f"@{dim}" in model.id


def test_a_model_that_cannot_shorten_is_not_asked_to(make: Make) -> None:
    with pytest.raises(SettingsError, match="gives 1536 numbers and cannot give 256"):
        make("openai", "text-embedding-ada-002", dim=256)


def test_names_tell_models_sizes_and_manners_apart(make: Make) -> None:
    assert make("openai")[0].id == "openai/text-embedding-3-small@1536"
    ids = [
        make(name, model, dim=dim)[0].id
        for name, model, dim in (
            ("openai", "", 0),
            ("openai", "", 256),
            ("openai", "text-embedding-3-large", 0),
            ("voyage", "", 0),
            ("gemini", "", 0),
            ("gemini", "gemini-embedding-001", 0),
            ("ollama", "", 0),
        )
    ]
    assert len(set(ids)) == len(ids)
    assert ids[3].startswith("voyage/voyage-4@1024+")


def test_the_size_of_an_unknown_model_is_measured_once(make: Make) -> None:
    model, server = make("http", "some-model")
    assert (model.dim, model.id) == (32, "http/some-model@32")
    model.embed(["a"], "document")
    assert len(server.requests) == 2
    nameless, server = make("http")
    assert nameless.id == "http/127.0.0.1@32"
    assert "model" not in server.requests[0][3]


@pytest.mark.parametrize("name", ["openai", "voyage", "mistral", "jina", "lmstudio"])
@pytest.mark.parametrize("encoding", ["base64", "float"])
def test_both_encodings_are_read_whatever_was_asked_for(
    make: Make, name: str, encoding: str
) -> None:
    model, server = make(name)
    server.encoding = encoding
    expected = unit(model.model.prefix("document") + "a note", model.dim)
    assert np.allclose(model.embed(["a note"], "document")[0], expected, atol=1e-6)


def test_requests_are_filled_up_to_the_limits_and_no_further(make: Make) -> None:
    model, server = make("openai", dim=8, max_tokens_per_request=8000)
    texts = [f"{i} " + "word " * 300 for i in range(100)]
    rows = model.embed(texts, "document")
    assert np.allclose(rows, [unit(t, 8) for t in texts], atol=1e-6)
    sizes = [sum(map(count_tokens, request)) for request in server.texts()]
    assert max(sizes) <= 8000
    assert len(sizes) == math.ceil(100 / (8000 // count_tokens(texts[50])))
    assert 1 < server.most_at_once <= 4


def test_a_provider_s_own_limits_hold_too(make: Make) -> None:
    model, server = make("cohere", dim=256)
    model.embed([f"note {i}" for i in range(200)], "document")
    assert sorted(map(len, server.texts())) == [8, 96, 96]
    model, server = make("gemini", dim=8)
    model.embed([f"note {i}" for i in range(201)], "document")
    assert sorted(map(len, server.texts())) == [1, 100, 100]


def test_requests_run_side_by_side_but_never_more_than_allowed(make: Make) -> None:
    model, server = make("openai", dim=8, parallel=3, max_tokens_per_request=100)
    gate = threading.Barrier(3, timeout=60)

    def together(asked: Any, body: Any) -> None:
        gate.wait()
        asked.json(asked._embeddings(body))

    server.always = together
    model.embed([f"{i} " + "word " * 70 for i in range(9)], "document")
    assert server.most_at_once == 3


def test_the_rows_that_came_before_a_failure_are_kept(make: Make) -> None:
    model, server = make("openai", dim=8, parallel=1, max_tokens_per_request=100)
    server.faults.extend([None, None, status(402)])
    texts = [f"{i} " + "word " * 70 for i in range(9)]
    with pytest.raises(QuotaError) as caught:
        model.embed(texts, "document")
    assert {
        i: bool(np.allclose(row, unit(texts[i], 8), atol=1e-6))
        for i, row in caught.value.rows.items()
    } == {
        0: True,
        1: True,
    }


def test_room_is_what_fills_the_requests_that_run_at_once(make: Make) -> None:
    model, server = make("openai", dim=8, max_tokens_per_request=1000, parallel=3)
    texts = [
        f"{i} ".ljust(4 * size, "x")
        for i, size in enumerate([10, 300, 690, 20, 700, 890, 30, 600, 5] * 40)
    ]
    while texts:
        takes, before = model.room(2), len(server.requests)
        fit = next((n for n, text in enumerate(texts) if not takes(text)), len(texts))
        model.embed(texts[:fit], "document")
        assert len(server.requests) - before == 6 or fit == len(texts)
        texts = texts[fit:]


def test_equal_texts_are_sent_once(make: Make) -> None:
    model, server = make()
    model.embed(["a", "b", "a", "a"], "document")
    assert server.texts() == [["a", "b"]]


def test_blank_texts_are_never_sent(make: Make) -> None:
    model, server = make()
    rows = model.embed(["", " \n", "x"], "document")
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0)
    assert server.texts() == [["x"]]


def test_a_long_text_is_split_at_sentences_and_pooled_by_length(make: Make) -> None:
    model, server = make("ollama", "all-minilm")
    text = " ".join(f"Sentence number {i} says something of its own." for i in range(80))
    (row,) = model.embed([text], "document")
    parts = [part for request in server.texts() for part in request]
    assert "".join(parts) == text
    assert len(parts) > 2
    assert all(part.rstrip().endswith(".") for part in parts)
    assert max(map(count_tokens, parts)) <= 250
    mean = sum(count_tokens(p) * unit(p, 384) for p in parts)
    assert np.allclose(row, mean / np.linalg.norm(mean), atol=1e-5)


def test_a_text_that_turns_out_too_long_is_split_until_it_fits(make: Make) -> None:
    model, server = make("http", "small")
    server.refuses = lambda t: "the input length exceeds the context length" if len(t) > 300 else ""
    long = " ".join(f"Sentence number {i} says something." for i in range(40))
    rows = model.embed(["short", long, "also short"], "document")
    assert np.allclose(rows[[0, 2]], [unit("short", 32), unit("also short", 32)], atol=1e-6)
    assert np.linalg.norm(rows[1]) == pytest.approx(1.0, abs=1e-5)
    taken = [t for request in server.texts() for t in request if len(t) <= 300 and t in long]
    assert "".join(taken) == long


@given(st.lists(st.text(max_size=400), max_size=8))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_texts_get_their_unit_rows_alone_or_together(
    shared: RemoteEmbedder, texts: list[str]
) -> None:
    together = shared.embed(texts, "document")
    assert np.allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-5)
    for i, text in enumerate(texts):
        assert np.array_equal(together[i], shared.embed([text], "document")[0])


@pytest.fixture(scope="module")
def shared() -> Iterator[RemoteEmbedder]:
    with serving(ProviderServer("openai", dim=16)) as server:
        own = EmbedSettings(model="openai", url=server.url, dim=16, max_tokens_per_request=100)
        model = remote_embedder("openai", "", own, {"OPENAI_API_KEY": KEY})
        yield model
        model.close()


def test_one_refused_text_is_found_by_halving_and_the_others_go_on(make: Make) -> None:
    model, server = make("openai", dim=16)
    texts = [f"note {i}" for i in range(50)]
    server.refuses = lambda t: "content policy" if t == "note 37" else ""
    with pytest.raises(
        RejectedError, match="openai refused 1 of 50 texts: content policy"
    ) as caught:
        model.embed(texts, "document")
    assert caught.value.reasons == {37: "content policy"}
    assert sorted(caught.value.rows) == [i for i in range(50) if i != 37]
    assert np.allclose(caught.value.rows[36], unit("note 36", 16), atol=1e-6)
    assert len(server.requests) < 16, "halving, not one by one"


def test_how_many_texts_an_endpoint_takes_is_learnt_from_its_refusal(make: Make) -> None:
    model, server = make("http", dim=8)
    most = 32

    def limited(asked: Any, body: Any) -> None:
        if len(body["input"]) > most:
            message = f"batch size {len(body['input'])} > maximum allowed batch size {most}"
            asked.json({"error": message, "error_type": "Validation"}, status=413)
        else:
            asked.json(asked._embeddings(body))

    server.always = limited
    texts = [f"note {i}" for i in range(400)]
    assert np.allclose(model.embed(texts, "document"), [unit(t, 8) for t in texts], atol=1e-6)
    before = len(server.requests)
    model.embed([f"other {i}" for i in range(400)], "document")
    assert [len(t) for t in server.texts()[before:] if len(t) > most] == []
    assert before < 2 * (len(server.requests) - before), (
        "and then at once, not by halving every request"
    )


def test_when_every_request_is_refused_no_text_is_blamed(make: Make) -> None:
    model, server = make()
    server.always = status(400, {"error": {"message": "dimensions is not supported"}})
    with pytest.raises(
        EmbedderError, match=r"refused the request.*dimensions is not supported"
    ) as caught:
        model.embed([f"note {i}" for i in range(50)], "document")
    assert not isinstance(caught.value, RejectedError)
    assert len(server.requests) == 2


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0])
def test_a_row_that_is_no_row_is_that_text_s_fault_alone(make: Make, bad: float) -> None:
    model, server = make()
    server.faults.append(changed(lambda rows: [rows[0], [bad] * 1536]))
    with pytest.raises(RejectedError, match="no usable numbers") as caught:
        model.embed(["a", "b"], "document")
    assert list(caught.value.reasons) == [1]
    assert np.allclose(caught.value.rows[0], unit("a", 1536), atol=1e-6)


WRONG = {
    "too few": (changed(lambda rows: rows[:-1]), "1 rows for 2 texts"),
    "too many": (changed(lambda rows: [*rows, rows[0]]), "3 rows for 2 texts"),
    "none": (changed(lambda rows: []), "0 rows for 2 texts"),
    "too short": (changed(lambda rows: [row[:7] for row in rows]), "returned 7 numbers instead of"),
    "words": (changed(lambda rows: [["a", "b"], ["c", "d"]]), "does not hold rows as expected"),
    "not JSON": (faults.garbage, "not valid JSON: it begins with '<html>"),
    "null": (lambda asked, _: asked.json(None), "does not hold rows as expected"),
    "other": (lambda asked, _: asked.json({"ok": True}), "does not hold rows as expected"),
    "nested": (lambda asked, _: asked.raw(b"[" * 100_000), "not valid JSON"),
    "a redirect": (
        status(302, {}, Location="http://elsewhere.test/x"),
        "a redirect to elsewhere.test, which is not",
    ),
    "forbidden": (status(403), "it answered 403 Forbidden: no"),
    "not there": (status(404), "it answered 404 Not Found: no"),
    "strange": (status(418), "it answered 418"),
}


@pytest.mark.parametrize("name", ["openai", "gemini", "cohere", "ollama"])
@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_answer_is_one_clear_error_and_not_asked_for_again(
    make: Make, name: str, fault: str
) -> None:
    model, server = make(name)
    server.always, message = WRONG[fault]
    with pytest.raises(EmbedderError, match=message) as caught:
        model.embed(["a", "b"], "document")
    assert caught.value.hint
    assert str(caught.value).startswith(f"{name} at 127.0.0.1: ")
    assert len(server.requests) == 1


PASSING = {
    "429": status(429),
    "500": status(500),
    "503": status(503),
    "529": status(529),
    "cut off": faults.cut_off,
    "hung up": faults.hang_up,
}


@pytest.mark.parametrize("fault", PASSING)
def test_what_may_pass_is_asked_again_with_growing_pauses(
    make: Make, clock: Time, fault: str
) -> None:
    model, server = make(timeout_s=100)
    model.embed(["once it was well"], "document")
    server.faults.extend([PASSING[fault]] * 4)
    assert np.allclose(model.embed(["a"], "document")[0], unit("a", 1536), atol=1e-6)
    assert clock.pauses == [0.5, 1.0, 2.0, 4.0]
    assert len(server.requests) == 1 + 5


@pytest.mark.parametrize("fault", PASSING)
def test_what_is_out_of_order_from_the_start_is_taken_for_dead_in_three_seconds(
    make: Make, clock: Time, fault: str
) -> None:
    model, server = make(timeout_s=100)
    server.always = PASSING[fault]
    with pytest.raises(EmbedderError, match=r"gave up after \d attempts"):
        model.embed(["a"], "document")
    limited = fault == "429"  # whoever limits the rate is alive
    assert len(server.requests) == (6 if limited else 3)
    assert (sum(clock.pauses) < 3) is not limited


def test_a_server_that_says_when_it_will_be_ready_is_waited_for(make: Make, clock: Time) -> None:
    model, server = make(timeout_s=100)
    server.faults.append(status(503, Retry_After="20"))
    assert len(model.embed(["a"], "document")) == 1
    assert clock.pauses == [20.0]


def test_the_pauses_differ_by_chance(make: Make, clock: Time) -> None:
    model, server = make()
    chances = iter([0.0, 1.0])
    model.provider._jitter = lambda: next(chances)
    server.faults.extend([status(500)] * 2)
    model.embed(["a"], "document")
    assert clock.pauses == [0.25, 1.5]


def test_after_some_attempts_it_gives_up_and_says_what_to_do(make: Make, clock: Time) -> None:
    model, server = make(timeout_s=100)
    model.embed(["once it was well"], "document")
    server.always = status(503, {"error": {"message": "overloaded"}})
    with pytest.raises(
        EmbedderError, match="503 Service Unavailable: overloaded; gave up after 6 attempts"
    ) as caught:
        model.embed(["a"], "document")
    assert "another model" in caught.value.hint
    assert len(server.requests) == 1 + 6


@pytest.mark.parametrize(
    ("headers", "body", "pause"),
    [
        ({"Retry_After": "7"}, None, 7.0),
        ({"Retry_After": "0.25"}, None, 0.25),
        ({"Retry_After": "0"}, None, 0.0),
        ({"Retry_After_Ms": "1500"}, None, 1.5),
        ({"Retry_After": "soon"}, None, 0.5),
        ({"Retry_After": "-4"}, None, 0.0),
        *(({"Retry_After": odd}, None, 0.5) for odd in ("inf", "nan", "1e999")),
        *(({"Retry_After_Ms": odd}, None, 0.5) for odd in ("9" * 400, "\xb2")),
        (
            {},
            {
                "error": {
                    "status": "RESOURCE_EXHAUSTED",
                    "details": [{"retryDelay": "9" * 400 + "s"}],
                }
            },
            0.5,
        ),
        (
            {},
            {"error": {"status": "RESOURCE_EXHAUSTED", "details": [{"retryDelay": "17.5s"}]}},
            17.5,
        ),
    ],
)
def test_the_server_s_own_wish_for_a_pause_is_honoured(
    make: Make, clock: Time, headers: dict[str, str], body: Any, pause: float
) -> None:
    model, server = make(timeout_s=100)
    server.faults.append(status(429, body, **headers))
    model.embed(["a"], "document")
    assert clock.pauses == [pytest.approx(pause)]


def test_a_date_to_come_back_at_is_honoured(make: Make, clock: Time) -> None:
    model, server = make(timeout_s=100)
    server.faults.append(
        status(503, Retry_After=email.utils.formatdate(time.time() + 60, usegmt=True))
    )
    model.embed(["a"], "document")
    assert clock.pauses == [pytest.approx(60, abs=2)]
    clock.pauses.clear()
    server.faults.append(
        status(503, Retry_After=email.utils.formatdate(time.time() - 60, usegmt=True))
    )
    model.embed(["a"], "document")
    assert clock.pauses == [0.0]


def test_a_pause_beyond_the_deadline_is_not_waited_for(make: Make, clock: Time) -> None:
    model, server = make()
    server.always = status(429, Retry_After="3600")
    with pytest.raises(EmbedderError, match="it would take another 3600 s"):
        model.embed(["a"], "document")
    assert clock.pauses == []
    assert len(server.requests) == 1


def test_a_question_has_three_seconds_in_all(make: Make, clock: Time) -> None:
    model, server = make()
    model.embed(["once it was well"], "document")
    server.always = status(503)
    with pytest.raises(EmbedderError, match="it would take another"):
        model.embed(["a"], "query")
    assert sum(clock.pauses) < 3
    assert len(server.requests) == 1 + 3
    clock.pauses.clear()
    with pytest.raises(EmbedderError, match="it would take another"):
        model.embed(["a"], "document", deadline_s=1)
    assert sum(clock.pauses) < 1


SPENT = {
    "openai": status(
        429, {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
    ),
    "gemini": status(
        429,
        {
            "error": {
                "code": 429,
                "status": "RESOURCE_EXHAUSTED",
                "message": "You exceeded your current quota",
                "details": [
                    {
                        "violations": [
                            {"quotaId": "EmbedContentRequestsPerDayPerProjectPerModel-FreeTier"}
                        ]
                    }
                ],
            }
        },
    ),
    "cohere": status(
        429, {"message": "You are using a Trial key, which is limited to 1000 API calls / month."}
    ),
    "voyage": status(403, {"detail": "insufficient credits on this account"}),
    "jina": status(402, {"detail": "Insufficient balance"}),
    "mistral": status(402, {"message": "Payment required"}),
}


@pytest.mark.parametrize("name", SPENT)
def test_a_used_up_quota_is_recognised_and_not_hammered(make: Make, clock: Time, name: str) -> None:
    model, server = make(name)
    server.always = SPENT[name]
    with pytest.raises(QuotaError, match=f"{name} at 127.0.0.1: the quota is used up") as caught:
        model.embed(["a"], "document")
    assert "embed.model" in caught.value.hint
    assert len(server.requests) == 1
    assert clock.pauses == []


def test_gemini_s_limit_per_minute_is_no_used_up_quota(make: Make, clock: Time) -> None:
    model, server = make("gemini")
    error = {
        "status": "RESOURCE_EXHAUSTED",
        "message": "You exceeded your current quota, please check your plan and billing details.",
        "details": [
            {"violations": [{"quotaId": "EmbedContentRequestsPerMinutePerProjectPerModel"}]}
        ],
    }
    server.faults.append(status(429, {"error": error}))
    model.embed(["a"], "document")
    assert len(clock.pauses) == 1


@pytest.mark.parametrize("name", ["openai", "gemini", "voyage", "mistral", "cohere", "jina"])
def test_a_refused_key_names_the_variable_to_set_and_not_the_key(make: Make, name: str) -> None:
    model, server = make(name)
    server.key = "another"
    with pytest.raises(EmbedderError, match=r"refused the key \(401\)") as caught:
        model.embed(["a"], "document")
    assert PRESETS[name].keys[0] in caught.value.hint
    assert KEY not in str(caught.value)
    assert len(server.requests) == 1


def test_gemini_says_400_for_a_bad_key(make: Make) -> None:
    model, server = make("gemini")
    details = [{"reason": "API_KEY_INVALID"}]
    server.always = status(
        400, {"error": {"message": f"API key not valid: {KEY}", "details": details}}
    )
    with pytest.raises(EmbedderError, match=r"refused the key \(400\)") as caught:
        model.embed(["a"], "document")
    assert "GEMINI_API_KEY" in caught.value.hint


def test_a_missing_key_is_said_before_anything_is_sent() -> None:
    with pytest.raises(EmbedderError, match="gemini needs a key") as caught:
        remote_embedder("gemini", "", EmbedSettings(model="gemini"), {})
    assert "GEMINI_API_KEY or GOOGLE_API_KEY" in caught.value.hint


def test_the_key_is_in_no_error_repr_or_log(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    model, server = make()
    seen = [
        repr(model),
        repr(model.provider),
        str(vars(model)),
        repr(EmbedSettings(key=KEY, headers=(f"X: {KEY}",))),
    ]
    echo = {"error": {"message": f"bad key {KEY} or sk-test-5ecr3t%2FKey%2B42"}}
    for code in (302, 400, 401, 402, 403, 404, 413, 418, 422, 429, 500):
        server.always = status(code, echo, Location=f"http://{KEY}.test/{KEY}", X_Echo=KEY)
        with pytest.raises(EmbedderError) as caught:
            model.embed(["a"], "document")
        error: BaseException | None = caught.value
        while error is not None:
            seen += [str(error), repr(error), str(getattr(error, "hint", ""))]
            error = error.__cause__
    text = "\n".join([*seen, caplog.text])
    assert len(seen) > 30
    assert KEY not in text
    assert "5ecr3t" not in text


def test_further_headers_are_sent_and_kept_secret_too() -> None:
    with serving(ProviderServer("http", key="", dim=8)) as server:
        own = EmbedSettings(
            model="http/m", url=server.url + "/", headers=("X-Api-Key: hush-hush", "X-Team:notes")
        )
        model = remote_embedder("http", "m", own, {})
        headers = server.requests[0][2]
        assert (headers["X-Api-Key"], headers["X-Team"]) == ("hush-hush", "notes")
        assert "Authorization" not in headers
        server.always = status(418, {"error": "hush-hush is wrong"})
        with pytest.raises(EmbedderError, match=r"\(hidden\) is wrong"):
            model.embed(["a"], "document")
        model.close()


def test_address_and_key_of_the_settings_are_only_for_the_provider_they_are_meant_for() -> None:
    with serving(ProviderServer("http", dim=8)) as server:
        own = EmbedSettings(model="http/m", url=server.url, key=KEY)
        with pytest.raises(EmbedderError, match="openai needs a key"):
            remote_embedder("openai", "", own, {})
        other = remote_embedder("openai", "", own, {"OPENAI_API_KEY": "other"})
        assert isinstance(other, RemoteEmbedder)
        assert other.provider.url == "https://api.openai.com/v1"
        assert KEY not in str(vars(other.provider))
        assert server.requests == []
        chained = remote_embedder(
            "http", "m", EmbedSettings(model="auto", url=server.url), {"NOTEWELL_EMBED_KEY": KEY}
        )
        assert chained.dim == 8
        chained.close()


def test_the_only_provider_of_a_chain_is_asked_at_the_address_of_the_settings() -> None:
    with serving(ProviderServer("openai", dim=1536)) as server:
        own = EmbedSettings(chain=("local", "openai"), url=server.url, key=KEY)
        model = remote_embedder("openai", "", own, {})
        assert model.embed(["a"], "query").shape == (1, 1536)
        model.close()
        assert len(server.requests) == 1
        assert server.problems == []


def test_the_provider_s_own_variable_comes_before_the_setting() -> None:
    with serving(ProviderServer("gemini", key="from-google", dim=3072)) as server:
        own = EmbedSettings(model="gemini", url=server.url, key="from-settings")
        model = remote_embedder("gemini", "", own, {"GOOGLE_API_KEY": "from-google"})
        assert model.embed(["a"], "query").shape == (1, 3072)
        model.close()


@pytest.mark.parametrize("url", ["ftp://x", "nonsense", "http://"])
def test_a_wrong_address_is_a_wrong_setting(url: str) -> None:
    with pytest.raises(SettingsError, match=r"embed\.url"):
        remote_embedder("http", "m", EmbedSettings(model="http/m", url=url), {})


def test_http_without_an_address_says_so() -> None:
    with pytest.raises(SettingsError, match=r"embed\.url is empty"):
        remote_embedder("http", "m", EmbedSettings(model="http/m"), {})


def test_a_key_that_is_none_is_refused_without_being_shown() -> None:
    with pytest.raises(SettingsError) as caught:
        remote_embedder("openai", "", EmbedSettings(model="openai"), {"OPENAI_API_KEY": "abc\ndef"})
    assert "abc" not in str(caught.value)


def test_names_with_a_provider_lead_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    ids = [
        getattr(named(name), "id", "")
        for name in ("openai", "openai/text-embedding-3-large", "OpenAI")
    ]
    assert ids == [
        "openai/text-embedding-3-small@1536",
        "openai/text-embedding-3-large@3072",
        "openai/text-embedding-3-small@1536",
    ]
    found = named(
        "ollama/nomic-embed-text", settings=EmbedSettings(model="ollama/nomic-embed-text")
    )
    assert getattr(found, "id", "").startswith("ollama/nomic-embed-text@768+")


def test_nobody_at_the_address_says_what_to_start(clock: Time) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    provider = Provider(
        PRESETS["ollama"], url=url, clock=clock.clock, wait=clock.wait, jitter=lambda: 0.5
    )
    model = remote_embedder("ollama", "", EmbedSettings(), {}, provider=provider)
    with pytest.raises(
        EmbedderError, match=r"Connection refused; gave up after 3 attempts"
    ) as caught:
        model.embed(["a"], "document")
    assert caught.value.hint.startswith("start ollama")
    assert sum(clock.pauses) < 3


def test_a_model_that_is_not_pulled_is_told(make: Make) -> None:
    model, server = make("ollama")
    server.always = status(
        404, {"error": 'model "nomic-embed-text" not found, try pulling it first'}
    )
    with pytest.raises(EmbedderError, match="try pulling it first") as caught:
        model.embed(["a"], "document")
    assert caught.value.hint.startswith("ollama pull nomic-embed-text")


def test_a_hanging_server_is_left_at_the_deadline(make: Make) -> None:
    model, server = make(timeout_s=0.2)
    server.always = faults.hang
    model.provider.clock = time.monotonic
    with pytest.raises(EmbedderError, match="timed out"):
        model.embed(["a"], "query", deadline_s=0.3)


@pytest.mark.parametrize("moment", ["in a request", "in a pause"])
def test_closing_ends_everything_under_way_at_once(moment: str) -> None:
    with serving(ProviderServer("openai")) as server:
        arrived = threading.Event()

        def stuck(asked: Any, body: Any) -> None:
            if moment == "in a request":
                arrived.set()
                faults.hang(asked, body)
            else:
                asked.json({}, status=503, Retry_After="9")

        server.always = stuck
        own = EmbedSettings(
            model="openai", url=server.url, max_tokens_per_request=100, timeout_s=60
        )
        model = remote_embedder("openai", "", own, {"OPENAI_API_KEY": KEY})
        failed: list[EmbedderError] = []

        def pause(stop: threading.Event, _seconds: float) -> bool:
            arrived.set()
            return stop.wait()

        model.provider._wait = pause

        def run() -> None:
            with pytest.raises(EmbedderError) as caught:
                model.embed(
                    [f"{i} " + "word " * 70 for i in range(12 if moment == "in a request" else 1)],
                    "document",
                )
            failed.append(caught.value)

        thread = threading.Thread(target=run)
        thread.start()
        assert arrived.wait(60)
        model.close()
        thread.join(60)
        assert "cancelled" in str(failed[0])
        with pytest.raises(EmbedderError, match="cancelled"):
            model.embed(["a"], "document")
        assert len(server.requests) <= 5


def test_a_failure_does_not_wait_for_the_pauses_of_others() -> None:
    with serving(ProviderServer("openai")) as server:
        slow = threading.Event()

        def mixed(asked: Any, body: Any) -> None:
            if body["input"][0].startswith("0 "):
                slow.set()
                asked.json({}, status=503, Retry_After="8")
            else:
                slow.wait(60)
                asked.json({"error": {"code": "insufficient_quota"}}, status=429)

        server.always = mixed
        own = EmbedSettings(model="openai", url=server.url, max_tokens_per_request=100)
        model = remote_embedder("openai", "", own, {"OPENAI_API_KEY": KEY})
        model.provider._wait = lambda stop, _seconds: stop.wait()
        with pytest.raises(QuotaError):
            model.embed([f"{i} " + "word " * 70 for i in range(2)], "document")
        workers = [t for t in threading.enumerate() if t.name.startswith("ThreadPoolExecutor")]
        for worker in workers:
            worker.join(60)
        waits = any(worker.is_alive() for worker in workers)
        model.close()  # also ends what should not be waiting, so that a failure here hangs nobody
        assert not waits, "nor does anybody go on waiting"


def test_a_file_goes_along_with_its_label_to_a_model_that_can_see(
    make: Make, tmp_path: Path
) -> None:
    place = tmp_path / "cat.png"
    place.write_bytes(b"\x89PNG not really")
    media = Media("Image cat.png", location=str(place), mime="image/png")
    model, server = make("gemini", dim=8)
    rows = model.embed(["a note", media, "Image cat.png"], "document")
    assert not np.allclose(rows[1], rows[2])
    bodies = [body for *_, body in server.requests]
    (sent,) = [
        body["requests"] for body in bodies if len(body["requests"][0]["content"]["parts"]) == 2
    ]
    assert len(sent) == 1
    assert sent[0]["content"]["parts"] == [
        {"text": "title: none | text: Image cat.png"},
        {"inlineData": {"mimeType": "image/png", "data": b64(place)}},
    ]
    assert server.problems == []


def b64(place: Path) -> str:
    import base64

    return base64.b64encode(place.read_bytes()).decode()


def test_a_file_that_has_gone_is_refused_alone(make: Make, tmp_path: Path) -> None:
    model, _ = make("gemini", dim=8)
    gone = Media("Image gone.png", location=str(tmp_path / "gone.png"), mime="image/png")
    with pytest.raises(RejectedError, match="its file cannot be read: No such file") as caught:
        model.embed(["a note", gone], "document")
    assert list(caught.value.rows) == [0]


def test_other_models_read_the_label(make: Make) -> None:
    model, server = make("openai")
    model.embed([Media("Image cat.png", location="/nowhere", mime="image/png")], "document")
    assert server.texts() == [["Image cat.png"]]


def test_pooling_is_the_mean_by_length() -> None:
    a, b = np.asarray([1.0, 0.0], dtype=np.float32), np.asarray([0.0, 1.0], dtype=np.float32)
    assert np.allclose(pooled([a, b], [3, 4]), [0.6, 0.8])
    assert np.array_equal(pooled([a], [7]), a)
    assert np.array_equal(pooled([a, -a], [1, 1]), a), "two that cancel out still give a row"
