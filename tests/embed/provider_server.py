"""A real HTTP server on loopback that speaks each provider's documented shape, checks every
request, and can misbehave.

What it demands is written here from the providers' documentation, not from the preset table: a
wrong row there is a refused request here.
"""

from __future__ import annotations

import base64
import email
import json
import re
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from notewell.embed.local.hashed import HashedEmbedder

KEY = "sk-test-5ecr3t/Key+42"
Fault = Callable[["QuestionVector", Any], None]


class BadRequestError(Exception):
    """The request breaks the provider's rules."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Spec:
    """What a provider demands of a request for embeddings."""

    path: str
    texts: str
    required: Mapping[str, Any]
    optional: Mapping[str, Any] = field(default_factory=dict)
    most_texts: int = 10_000
    auth: str = "bearer"
    context: int = 8192


def one_of(*values: Any) -> Callable[[Any], bool]:
    return lambda value: value in values


def number(low: int, high: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and low <= value <= high


def text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


ENCODING = {"encoding_format": one_of("float", "base64")}
SPECS: dict[str, Spec] = {
    "openai": Spec(
        "/v1/embeddings",
        "input",
        {"model": text},
        {**ENCODING, "dimensions": number(1, 3072), "user": text},
        2048,
    ),
    "voyage": Spec(
        "/v1/embeddings",
        "input",
        {"model": text},
        {
            "input_type": one_of(None, "query", "document"),
            "truncation": one_of(True, False),
            "output_dimension": one_of(256, 512, 1024, 2048, 32),
            "output_dtype": one_of("float"),
            "encoding_format": one_of(None, "base64"),
        },
        1000,
        context=32_000,
    ),
    "mistral": Spec(
        "/v1/embeddings",
        "input",
        {"model": text},
        {**ENCODING, "output_dimension": number(1, 3072)},
        256,
    ),
    "cohere": Spec(
        "/v2/embed",
        "texts",
        {
            "model": text,
            "input_type": one_of("search_query", "search_document"),
            "embedding_types": one_of(["float"]),
        },
        {
            "truncate": one_of("NONE", "START", "END"),
            "output_dimension": one_of(256, 512, 1024, 1536, 32),
        },
        96,
        context=128_000,
    ),
    "jina": Spec(
        "/v1/embeddings",
        "input",
        {"model": text},
        {
            "task": one_of("retrieval.query", "retrieval.passage"),
            "dimensions": number(1, 2048),
            "embedding_type": one_of("float", "base64"),
            "truncate": one_of(True, False),
            "normalized": one_of(True, False),
        },
        512,
    ),
    "ollama": Spec(
        "/api/embed",
        "input",
        {"model": text},
        {"truncate": one_of(True, False), "dimensions": number(1, 4096), "keep_alive": text},
        auth="none",
        context=2048,
    ),
    "lmstudio": Spec(
        "/v1/embeddings", "input", {"model": text}, ENCODING, auth="none", context=2048
    ),
    "http": Spec(
        "/v1/embeddings", "input", {}, {"model": text, **ENCODING, "dimensions": number(1, 4096)}
    ),
    "gemini": Spec("/v1beta/models/", "requests", {}, most_texts=100, auth="goog"),
}


def vector(words: str, dim: int) -> list[float]:
    """The row of a text: its own, and not of length one, so that the caller has to see to that."""
    row = HashedEmbedder(dim).embed([words], "document")[0]
    return [float(v) for v in row.astype(np.float32) * np.float32(3.0)]


class ProviderServer(ThreadingHTTPServer):
    """One provider on a port of its own; `faults` are taken one for each request, then `always`,
    then it behaves.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, provider: str, *, key: str = KEY, dim: int = 64, encoding: str = "") -> None:
        super().__init__(("127.0.0.1", 0), QuestionVector)
        self.provider = provider
        self.spec = SPECS[provider]
        self.key = key
        self.dim = dim
        self.encoding = encoding
        self.scheme = "http"
        self.requests: list[tuple[str, str, dict[str, str], Any]] = []
        self.problems: list[str] = []
        self.faults: deque[Fault | None] = deque()
        self.always: Fault | None = None
        self.refuses: Callable[[str], str] = lambda _text: ""
        self.released = threading.Event()
        self.under_way = 0
        self.most_at_once = 0
        self.lock = threading.Lock()
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.ready = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that hangs up is no news."""

    @property
    def origin(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}"

    @property
    def url(self) -> str:
        """The base address that a user would set."""
        base = {"cohere": "", "ollama": "", "gemini": "/v1beta"}
        return self.origin + base.get(self.provider, "/v1")

    def texts(self) -> list[list[str]]:
        """The texts of every request for embeddings, as they were sent."""
        return [
            texts_of(self.provider, body)
            for method, path, _, body in self.requests
            if is_embedding(path)
        ]


def is_embedding(path: str) -> bool:
    return path.endswith(("/embeddings", "/embed", ":batchEmbedContents"))


def texts_of(provider: str, body: Any) -> list[str]:
    if provider == "gemini":
        return [request["content"]["parts"][0]["text"] for request in body["requests"]]
    return list(body[SPECS[provider].texts])


class QuestionVector(BaseHTTPRequestHandler):
    """One connection."""

    server: ProviderServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        self._handle("POST")

    def do_GET(self) -> None:
        self._handle("GET")

    def _handle(self, method: str) -> None:
        server = self.server
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        kind = self.headers.get_content_type()
        body = json.loads(raw) if raw and kind == "application/json" else raw
        with server.lock:
            server.requests.append((method, self.path, dict(self.headers.items()), body))
            server.under_way += 1
            server.most_at_once = max(server.most_at_once, server.under_way)
            fault = server.faults.popleft() if server.faults else server.always
        try:
            if fault is not None:
                fault(self, body)
                return
            self._allowed()
            self.json(self._answer(method, kind, body))
        except BadRequestError as error:
            if error.status in (400, 422):
                server.problems.append(str(error))
            self.json(
                {"error": {"message": str(error), "type": "invalid_request_error"}},
                status=error.status,
            )
        finally:
            with server.lock:
                server.under_way -= 1

    def _allowed(self) -> None:
        auth = self.server.spec.auth
        given = (
            self.headers.get("x-goog-api-key")
            if auth == "goog"
            else self.headers.get("Authorization")
        )
        wanted = self.server.key if auth == "goog" else f"Bearer {self.server.key}"
        if auth != "none" and self.server.key and given != wanted:
            raise BadRequestError(f"Incorrect API key provided: {given}", 401)
        if self.server.key and self.server.key in self.path:
            raise BadRequestError("the key is part of the address")

    def _answer(self, method: str, kind: str, body: Any) -> Any:
        server = self.server
        if server.provider == "gemini":
            return self._gemini(method, body)
        if self.path == server.spec.path:
            if method != "POST" or kind != "application/json":
                raise BadRequestError("embeddings are asked for by POST of JSON")
            return self._embeddings(body)
        if server.provider in ("openai", "voyage"):
            return self._files_and_batches(method, body)
        raise BadRequestError(f"no such path: {self.path}", 404)

    def _embeddings(self, body: Any) -> Any:
        server, spec = self.server, self.server.spec
        check(body, {spec.texts: list, **spec.required}, spec.optional)
        texts = body[spec.texts]
        self._check_texts(texts)
        dim = body.get("dimensions") or body.get("output_dimension") or server.dim
        if server.provider == "cohere":
            return {
                "id": "1",
                "embeddings": {"float": [vector(t, dim) for t in texts]},
                "texts": texts,
            }
        if server.provider == "ollama":
            return {
                "model": body["model"],
                "embeddings": [vector(t, dim) for t in texts],
                "prompt_eval_count": 3,
            }
        wanted = server.encoding or body.get("encoding_format") or "float"
        rows = [encoded(vector(t, dim), wanted) for t in texts]
        data = [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(rows)]
        # The index counts, not the order.
        return {
            "object": "list",
            "data": data[::-1],
            "model": body.get("model"),
            "usage": {"total_tokens": 5},
        }

    def _check_texts(self, texts: Sequence[Any]) -> None:
        spec = self.server.spec
        if not texts or len(texts) > spec.most_texts:
            raise BadRequestError(f"{len(texts)} texts in one request")
        for one in texts:
            if not isinstance(one, str) or not one.strip():
                raise BadRequestError("'$.input' is invalid: an empty text")
            if len(one) / 4 > spec.context:
                raise BadRequestError(
                    f"this model's maximum context length is {spec.context} tokens"
                )
            if reason := self.server.refuses(one):
                raise BadRequestError(reason)

    def _gemini(self, method: str, body: Any) -> Any:
        server = self.server
        if method == "GET" and self.path.startswith("/v1beta/batches"):
            return self._gemini_batch()
        found = re.fullmatch(
            r"/v1beta/(models/[\w.-]+):(batchEmbedContents|asyncBatchEmbedContent)", self.path
        )
        if method != "POST" or not found:
            raise BadRequestError(f"no such path: {self.path}", 404)
        if found[2] == "batchEmbedContents":
            check(body, {"requests": list}, {})
            self._check_texts([self._gemini_text(one, found[1]) for one in body["requests"]])
            return {"embeddings": [{"values": self._gemini_row(one)} for one in body["requests"]]}
        check(body, {"batch": dict}, {})
        batch = body["batch"]
        check(batch, {"displayName": text, "inputConfig": dict}, {"model": text})
        check(batch["inputConfig"], {"requests": dict}, {})
        check(batch["inputConfig"]["requests"], {"requests": list}, {})
        for one in batch["inputConfig"]["requests"]["requests"]:
            check(one, {"request": dict, "metadata": dict}, {})
            self._check_texts([self._gemini_text(one["request"], found[1])])
        name = f"batches/{len(server.batches)}"
        server.batches[name] = {
            "display": batch["displayName"],
            "requests": batch["inputConfig"]["requests"]["requests"],
        }
        return self._operation(name)

    def _gemini_text(self, one: Any, model: str) -> str:
        check(
            one,
            {"content": dict},
            {
                "model": one_of(model),
                "taskType": one_of("RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT"),
                "outputDimensionality": number(1, 3072),
                "title": text,
            },
        )
        if model.endswith("-2") and "taskType" in one:
            raise BadRequestError("this model takes its task from the text")
        check(one["content"], {"parts": list}, {"role": text})
        first, *files = one["content"]["parts"]
        check(first, {"text": text}, {})
        for part in files:
            check(part, {"inlineData": dict}, {})
            check(part["inlineData"], {"mimeType": text, "data": text}, {})
            base64.b64decode(part["inlineData"]["data"], validate=True)
        return str(first["text"])

    def _gemini_row(self, one: Any) -> list[float]:
        parts = one["content"]["parts"]
        data = "".join(part["inlineData"]["data"] for part in parts[1:])
        return vector(parts[0]["text"] + data, one.get("outputDimensionality") or self.server.dim)

    def _gemini_batch(self) -> Any:
        if self.path.partition("?")[0] == "/v1beta/batches":
            return {"operations": [self._operation(name) for name in self.server.batches]}
        name = self.path.removeprefix("/v1beta/")
        if name not in self.server.batches:
            raise BadRequestError("no such batch", 404)
        return self._operation(name)

    def _operation(self, name: str) -> Any:
        batch = self.server.batches[name]
        if not self.server.ready:
            return {
                "name": name,
                "metadata": {"displayName": batch["display"], "state": "BATCH_STATE_RUNNING"},
            }
        done = [
            {"metadata": one["metadata"], "error": {"code": 3, "message": reason}}
            if (reason := self.server.refuses(one["request"]["content"]["parts"][0]["text"]))
            else {
                "metadata": one["metadata"],
                "response": {"embedding": {"values": self._gemini_row(one["request"])}},
            }
            for one in batch["requests"]
        ]
        return {
            "name": name,
            "done": True,
            "metadata": {"displayName": batch["display"], "state": "BATCH_STATE_SUCCEEDED"},
            "response": {"inlinedResponses": {"inlinedResponses": done}},
        }

    def _files_and_batches(self, method: str, body: Any) -> Any:
        server = self.server
        path = self.path.partition("?")[0]
        if (method, path) == ("POST", "/v1/files"):
            form = multipart(self.headers["Content-Type"], body)
            if form["purpose"] != b"batch" or not form["file"]:
                raise BadRequestError("a batch file has a purpose and lines")
            name = f"file-{len(server.files)}"
            server.files[name] = form["file"]
            return {"id": name, "object": "file", "bytes": len(form["file"]), "purpose": "batch"}
        if (method, path) == ("POST", "/v1/batches"):
            return self._made_batch(body)
        if (method, path) == ("GET", "/v1/batches"):
            return {"object": "list", "data": list(server.batches.values()), "has_more": False}
        found = re.fullmatch(r"/v1/batches/(batch_\d+)", path)
        if method == "GET" and found and found[1] in server.batches:
            batch = server.batches[found[1]]
            if server.ready and batch["status"] == "in_progress":
                self._finish(batch)
            return batch
        found = re.fullmatch(r"/v1/files/([\w-]+)/content", path)
        if method == "GET" and found and found[1] in server.files:
            self.raw(server.files[found[1]])
            raise _SentError
        raise BadRequestError(f"no such path: {self.path}", 404)

    def _made_batch(self, body: Any) -> Any:
        server = self.server
        voyage = server.provider == "voyage"
        needed: dict[str, Any] = {
            "input_file_id": one_of(*server.files),
            "endpoint": one_of("/v1/embeddings"),
            "completion_window": one_of("12h" if voyage else "24h"),
        }
        check(body, {**needed, **({"request_params": dict} if voyage else {})}, {"metadata": dict})
        lines = [json.loads(line) for line in server.files[body["input_file_id"]].splitlines()]
        shared = body.get("request_params", {})
        for line in lines:
            check(
                line,
                {"custom_id": text, "body": dict},
                {} if voyage else {"method": one_of("POST"), "url": text},
            )
            request = {**line["body"], **shared}
            check(request, {"input": list, "model": text}, self.server.spec.optional)
            self._check_size(request["input"])
        if len({line["custom_id"] for line in lines}) != len(lines):
            raise BadRequestError("a custom_id stands twice")
        name = f"batch_{len(server.batches)}"
        server.batches[name] = {
            "id": name,
            "object": "batch",
            "status": "in_progress",
            "input_file_id": body["input_file_id"],
            "output_file_id": None,
            "error_file_id": None,
            "metadata": body.get("metadata"),
            "params": shared,
        }
        return server.batches[name]

    def _check_size(self, texts: Sequence[Any]) -> None:
        if not texts or not all(isinstance(t, str) and t.strip() for t in texts):
            raise BadRequestError("an empty text")

    def _finish(self, batch: dict[str, Any]) -> None:
        server = self.server
        good, bad = [], []
        for line in map(json.loads, server.files[batch["input_file_id"]].splitlines()):
            request = {**line["body"], **batch["params"]}
            (words,) = request["input"]
            if reason := server.refuses(words):
                error = {"status_code": 400, "body": {"error": {"message": reason}}}
                bad.append({"custom_id": line["custom_id"], "response": error, "error": None})
                continue
            dim = request.get("dimensions") or request.get("output_dimension") or server.dim
            row = encoded(vector(words, dim), request.get("encoding_format") or "float")
            body = {"object": "list", "data": [{"index": 0, "embedding": row}]}
            good.append(
                {
                    "custom_id": line["custom_id"],
                    "response": {"status_code": 200, "body": body},
                    "error": None,
                }
            )
        for field_name, rows in (("output_file_id", good), ("error_file_id", bad)):
            if rows:
                name = f"out-{len(server.files)}"
                server.files[name] = "\n".join(json.dumps(row) for row in rows[::-1]).encode()
                batch[field_name] = name
        batch["status"] = "completed"

    def json(self, value: Any, *, status: int = 200, **headers: str) -> None:
        self.raw(json.dumps(value).encode(), status=status, length=None, **headers)

    def raw(
        self, data: bytes, *, status: int = 200, length: int | None = None, **headers: Any
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data) if length is None else length))
        self.end_headers()
        self.wfile.write(data)

    def handle_one_request(self) -> None:
        """A file's content has been sent already when `_SentError` comes."""
        with suppress(_SentError):
            super().handle_one_request()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Says nothing."""


class _SentError(Exception):
    """The answer is out."""


def encoded(row: Sequence[float], encoding: str) -> Any:
    return (
        base64.b64encode(np.asarray(row, dtype="<f4").tobytes()).decode()
        if encoding == "base64"
        else list(row)
    )


def multipart(kind: str, body: bytes) -> dict[str, bytes]:
    message = email.message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
    parts = message.get_payload()
    assert isinstance(parts, list)
    found = {}
    for part in parts:
        name = part.get_param("name", header="content-disposition")  # type: ignore[union-attr]
        found[str(name)] = part.get_payload(decode=True)  # type: ignore[union-attr]
    return found  # type: ignore[return-value]


def check(body: Any, required: Mapping[str, Any], optional: Mapping[str, Any]) -> None:
    """Every required field, no unknown one, each of its kind."""
    if not isinstance(body, dict):
        raise BadRequestError("not an object", 422)
    rules = {**optional, **required}
    for name in required:
        if name not in body:
            raise BadRequestError(f"{name} is missing", 422)
    for name, value in body.items():
        rule = rules.get(name)
        if rule is None:
            raise BadRequestError(f"extra fields not permitted: {name}", 422)
        if not (isinstance(value, rule) if isinstance(rule, type) else rule(value)):
            raise BadRequestError(f"{name} may not be {str(value)[:80]}", 422)


@contextmanager
def serving(
    server: ProviderServer, *, certificate: tuple[str, str] | None = None
) -> Iterator[ProviderServer]:
    """The server, running until the end of the block; with a certificate and its key over TLS."""
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        server.scheme = "https"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


def status(code: int, body: Any = None, **headers: str) -> Fault:
    """A fault: this status with this answer."""
    return lambda asked, _: asked.json(
        {"error": {"message": "no"}} if body is None else body, status=code, **headers
    )


def hang(asked: QuestionVector, _body: Any) -> None:
    """A fault: nothing, until the test is over."""
    asked.server.released.wait()
    asked.close_connection = True


def drip(asked: QuestionVector, _body: Any) -> None:
    """A fault: a header line a few milliseconds, without end."""
    asked.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while not asked.server.released.wait(0.005):
        asked.wfile.write(b"X-A: b\r\n")
    asked.close_connection = True


def drip_body(asked: QuestionVector, _body: Any) -> None:
    """A fault: a byte of the answer a few milliseconds."""
    asked.raw(b"", length=100_000)
    while not asked.server.released.wait(0.005):
        asked.wfile.write(b" ")
    asked.close_connection = True


def cut_off(asked: QuestionVector, _body: Any) -> None:
    """A fault: half an answer."""
    asked.raw(b'{"data": [', length=4000)
    asked.close_connection = True


def hang_up(asked: QuestionVector, _body: Any) -> None:
    """A fault: the connection ends without a word."""
    asked.close_connection = True


def garbage(asked: QuestionVector, _body: Any) -> None:
    """A fault: a page instead of JSON."""
    asked.raw(b"<html>Welcome to the hotel</html>")


def changed(change: Callable[[list[Any]], list[Any]]) -> Fault:
    """A fault: the right answer with its rows changed."""

    def fault(asked: QuestionVector, body: Any) -> None:
        server = asked.server
        rows = change([vector(t, server.dim) for t in texts_of(server.provider, body)])
        if server.provider == "gemini":
            asked.json({"embeddings": [{"values": row} for row in rows]})
        elif server.provider == "cohere":
            asked.json({"embeddings": {"float": rows}})
        elif server.provider == "ollama":
            asked.json({"embeddings": rows})
        else:
            asked.json({"data": [{"index": i, "embedding": row} for i, row in enumerate(rows)]})

    return fault
