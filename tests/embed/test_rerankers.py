"""Rerankers: the packaged one for real, one over HTTP against a server of ours, and a plain
function.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from notewell.embed.rerankers import CrossEncoder, HttpReranker
from notewell.errors import EmbedderError

QUESTION = "how do I reset the router password?"
PASSAGES = [
    "Green tea: three minutes at eighty degrees.",
    "To reset the password of the router, hold the button on its back for ten seconds.",
    "The router stands in the hall.",
]


@pytest.fixture(scope="module")
def encoder() -> CrossEncoder:
    return CrossEncoder(threads=2)


def test_the_packaged_model_puts_the_passage_that_answers_first(encoder: CrossEncoder) -> None:
    tea, answer, hall = encoder.score(QUESTION, PASSAGES, deadline_s=60)
    assert answer > 0.9
    assert 0.1 > hall > tea
    assert encoder.score(QUESTION, PASSAGES[::-1], deadline_s=60) == [hall, answer, tea], (
        "alone or in company, the same"
    )
    assert encoder.score(QUESTION, [], deadline_s=60) == []


def test_the_packaged_model_takes_texts_of_any_length_and_script(encoder: CrossEncoder) -> None:
    values = encoder.score("question " * 500, ["", "word " * 3000, "备份脚本", "\0"], deadline_s=60)
    assert len(values) == 4
    assert all(0.0 <= v <= 1.0 for v in values)


def test_the_packaged_model_gives_up_at_the_deadline(encoder: CrossEncoder) -> None:
    with pytest.raises(EmbedderError, match="was not done after -1 s") as caught:
        encoder.score(QUESTION, PASSAGES, deadline_s=-1)
    assert caught.value.hint == "rerank fewer passages, or allow more time"


class Endpoint(ThreadingHTTPServer):
    """A reranking server on the loopback that validates what it is asked and answers as a test
    says.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Asked)
        self.answer: Callable[[Asked, Any], None] = lambda asked, body: asked.json(
            ranked(body["documents"])
        )
        self.requests: list[tuple[str, dict[str, str], Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1/rerank"


class Asked(BaseHTTPRequestHandler):
    """One request."""

    server: Endpoint

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        body = json.loads(raw)
        self.server.requests.append((self.path, dict(self.headers.items()), body))
        if self.headers["Content-Type"] != "application/json" or not isinstance(
            body.get("query"), str
        ):
            self.send_error(422)
            return
        self.server.answer(self, body)

    def do_GET(self) -> None:
        self.server.requests.append((self.path, dict(self.headers.items()), None))
        self.json(ranked(["", ""]))

    def json(self, value: Any, *, status: int = 200) -> None:
        self.raw(json.dumps(value).encode(), status=status)

    def raw(
        self, data: bytes, *, status: int = 200, length: int | None = None, **headers: str
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data) if length is None else length))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Says nothing."""


def ranked(passages: Sequence[str]) -> dict[str, Any]:
    """The answer of Jina and Cohere: best first, each with its index."""
    rows = [{"index": i, "relevance_score": 0.5 / (i + 1)} for i in range(len(passages))]
    return {"model": "m", "usage": {"total_tokens": 9}, "results": rows}


@contextmanager
def served() -> Iterator[Endpoint]:
    with Endpoint() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with served() as server:
        yield server


def test_the_jina_and_cohere_shape(endpoint: Endpoint) -> None:
    reranker = HttpReranker(endpoint.url, model="rerank-v3", key="secret")
    rows = [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.2}]
    endpoint.answer = lambda asked, body: asked.json({"results": rows})
    assert reranker.score("q", ["a", "b"], deadline_s=60) == [0.2, 0.9]
    path, headers, body = endpoint.requests[0]
    assert path == "/v1/rerank"
    assert headers["Authorization"] == "Bearer secret"
    assert body == {"query": "q", "documents": ["a", "b"], "top_n": 2, "model": "rerank-v3"}


def test_the_tei_shape(endpoint: Endpoint) -> None:
    endpoint.answer = lambda asked, body: asked.json(
        [{"index": 1, "score": 0.9}, {"index": 0, "score": 0.2}]
    )
    assert HttpReranker(endpoint.url, shape="tei").score("q", ["a", "b\ud800"], deadline_s=60) == [
        0.2,
        0.9,
    ]
    _, headers, body = endpoint.requests[0]
    assert "Authorization" not in headers
    assert body == {"query": "q", "texts": ["a", "b\ud800"], "raw_scores": False}


def test_raw_scores_are_squeezed_into_0_to_1(endpoint: Endpoint) -> None:
    rows = [{"index": 0, "relevance_score": -3.0}, {"index": 1, "relevance_score": 4.0}]
    endpoint.answer = lambda asked, body: asked.json({"results": rows})
    values = HttpReranker(endpoint.url).score("q", ["a", "b"], deadline_s=60)
    assert values == pytest.approx([0.0474, 0.9820], abs=1e-4)


def test_neither_its_name_nor_its_repr_holds_the_key() -> None:
    reranker = HttpReranker("http://127.0.0.1/", model="m", key="secret")
    assert reranker.id == "http/m"
    assert HttpReranker("http://127.0.0.1/", shape="tei").id == "http/tei"
    assert "secret" not in repr(reranker)


def rows(*pairs: tuple[Any, Any]) -> dict[str, Any]:
    return {"results": [{"index": i, "relevance_score": s} for i, s in pairs]}


FAULTS: dict[str, tuple[Callable[[Asked, Any], None], str]] = {
    "server error": (
        lambda asked, body: asked.raw(b"oops", status=500),
        "500 Internal Server Error",
    ),
    "unauthorised": (lambda asked, body: asked.raw(b"{}", status=401), "401 Unauthorized"),
    "cut off": (lambda asked, body: asked.raw(b'{"results": [', length=4000), "cut off"),
    "no answer": (
        lambda asked, body: asked.connection.shutdown(socket.SHUT_RDWR),
        "did not rerank",
    ),
    "not JSON": (lambda asked, body: asked.raw(b"<html>"), "Expecting value"),
    "not UTF-8": (lambda asked, body: asked.raw(b"\xff\xfe\xff"), "did not rerank"),
    "nested": (lambda asked, body: asked.raw(b"[" * 100_000), "did not rerank"),
    "one left out": (lambda asked, body: asked.json(rows((0, 0.5))), "exactly the 2 passages"),
    "one too many": (
        lambda asked, body: asked.json(rows((0, 0.5), (1, 0.5), (2, 0.5))),
        "exactly the 2 passages",
    ),
    "one twice": (
        lambda asked, body: asked.json(rows((0, 0.5), (1, 0.4), (1, 0.3))),
        "exactly the 2 passages",
    ),
    "negative index": (
        lambda asked, body: asked.json(rows((-1, 0.5), (0, 0.5))),
        "exactly the 2 passages",
    ),
    "NaN": (
        lambda asked, body: asked.json(rows((0, 0.5), (1, float("nan")))),
        "a score is not a number",
    ),
    "null": (lambda asked, body: asked.json(rows((0, 0.5), (1, None))), "did not rerank"),
    "no results": (lambda asked, body: asked.json({"detail": "no"}), "results"),
    "a number": (lambda asked, body: asked.json(7), "did not rerank"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_goes_wrong_is_one_error_that_tells_no_secret(
    endpoint: Endpoint, fault: str
) -> None:
    endpoint.answer, message = FAULTS[fault]
    with pytest.raises(EmbedderError, match=message) as caught:
        HttpReranker(endpoint.url, model="m", key="secret").score("q", ["a", "b"], deadline_s=60)
    assert len(endpoint.requests) == 1
    assert str(caught.value).startswith("http/m did not rerank: ")
    assert caught.value.hint == "check its address, or switch it off"
    assert "secret" not in str(caught.value)


def test_nobody_at_the_address() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(EmbedderError, match="refused"):
        HttpReranker(f"http://127.0.0.1:{port}/").score("q", ["a"], deadline_s=60)


@pytest.mark.parametrize(
    "url", ["file:///etc/hostname", "rerank.example", "", "http://", "http://127.0.0.1:x/"]
)
def test_what_is_no_http_address_is_refused(url: str) -> None:
    with pytest.raises(EmbedderError):
        HttpReranker(url).score("q", ["a"], deadline_s=1)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_carries_neither_question_nor_key_to_another_host(
    endpoint: Endpoint, status: int
) -> None:
    with served() as other:
        endpoint.answer = lambda asked, body: asked.raw(b"", status=status, Location=other.url)
        with pytest.raises(EmbedderError, match=f"it answered {status}"):
            HttpReranker(endpoint.url, key="secret").score("q", ["a", "b"], deadline_s=60)
        assert other.requests == []


def test_an_endpoint_that_says_nothing_is_left_at_the_deadline(endpoint: Endpoint) -> None:
    go = threading.Event()

    def wait(asked: Asked, body: Any) -> None:
        go.wait()

    endpoint.answer = wait
    try:
        with pytest.raises(EmbedderError, match="timed out"):
            HttpReranker(endpoint.url).score("q", ["a"], deadline_s=0.1)
    finally:
        go.set()


def test_an_endpoint_that_answers_in_drops_is_left_at_the_deadline(endpoint: Endpoint) -> None:
    gone = threading.Event()

    def drip(asked: Asked, body: Any) -> None:
        data = json.dumps(ranked(["a"])).encode() + b" " * 2000
        asked.raw(b"", length=len(data))
        for byte in data:
            if gone.wait(0.005):
                return
            asked.wfile.write(bytes([byte]))

    endpoint.answer = drip
    try:
        with pytest.raises(EmbedderError, match="timed out"):
            HttpReranker(endpoint.url).score("q", ["a"], deadline_s=0.2)
    finally:
        gone.set()
