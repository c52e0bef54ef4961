"""What every local model shares: prefixes and pooling by family, texts side by side, rows of length
one.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from notewell.errors import EmbedderError
from notewell.types import Role, Vectors

Made = TypeVar("Made")
DOWNLOAD_AGAIN = "download the model's files again; a large-file pointer is not the file"


@dataclass(frozen=True, slots=True)
class Family:
    """The prefixes of questions and passages, and how token rows become one row."""

    query: str = ""
    document: str = ""
    pooling: str = "mean"


_SEARCHING = "Represent this sentence for searching relevant passages: "
_INSTRUCT = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
)
# From the model cards. The first pattern found in the name counts.
_FAMILIES = (
    (r"bge-m3", Family(pooling="cls")),
    (r"bge-\w+-zh", Family(query="为这个句子生成表示以用于检索相关文章：", pooling="cls")),
    (r"bge-|mxbai-embed", Family(query=_SEARCHING, pooling="cls")),
    (r"arctic-embed-\w+-v2", Family(query="query: ", pooling="cls")),
    (r"arctic-embed", Family(query=_SEARCHING, pooling="cls")),
    (r"\be5-\w*-?instruct", Family(query=f"{_INSTRUCT} ")),
    (r"(^|[-_/ ])(e5|notewell)[-_]", Family(query="query: ", document="passage: ")),
    (r"nomic-embed-text", Family(query="search_query: ", document="search_document: ")),
    (
        r"embeddinggemma",
        Family(query="task: search result | query: ", document="title: none | text: "),
    ),
    (r"qwen3-embedding", Family(query=_INSTRUCT, pooling="last")),
    (r"gte-\w+-en-v1\.5|granite-embedding", Family(pooling="cls")),
)


def family(name: str) -> Family:
    """The family of a model's name; mean pooling and no prefixes for an unknown one."""
    return next(
        (found for pattern, found in _FAMILIES if re.search(pattern, name.lower())), Family()
    )


class LocalModel:
    """A model on this machine; a subclass says how it is loaded and how a text becomes a row."""

    id: str
    dim: int

    def __init__(self, name: str, *, threads: int = 1, query: str = "", document: str = "") -> None:
        """0 `threads` means one per core; `query` and `document` are the prefixes of questions and
        passages.
        """
        self.name = name
        self._threads = threads or os.cpu_count() or 1
        self._query, self._document = query, document
        self._loading = threading.Lock()

    @cached_property
    def _loaded(self) -> object:
        """Whatever `_row` needs and the first call loads."""
        return None

    def prepare(self) -> None:
        """Loads the model; what fails here fails again, and is reported, when it is used."""
        with contextlib.suppress(Exception), self._loading:
            self._loaded  # noqa: B018

    def _row(self, text: str) -> Any:
        raise NotImplementedError

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """One unit row per text. Each text runs alone: int8 activations are scaled per run, so in a
        batch a row would depend on the other texts, and padding would cost more than it saves.
        """
        prefix = self._query if role == "query" else self._document
        return self._unit(self._each(self._row, [prefix + text for text in texts]))

    def _each(self, make: Callable[[str], Made], texts: Sequence[str]) -> list[Made]:
        """What a function makes of every text, with as many threads as may be used."""
        with self._loading:  # once, before the threads start
            self._loaded  # noqa: B018
        if self._threads == 1 or len(texts) < 2:
            return [make(text) for text in texts]
        with ThreadPoolExecutor(max_workers=min(self._threads, len(texts))) as pool:
            return list(pool.map(make, texts))

    def _unit(self, rows: Sequence[Any]) -> Vectors:
        """Rows of length one; an all-zero row becomes a fixed unit row, a row of the wrong size is
        an error.
        """
        import numpy as np  # noqa: PLC0415

        out = np.zeros((len(rows), self.dim), dtype=np.float32)
        for i, row in enumerate(rows):
            found = np.asarray(row, dtype=np.float32)
            if found.shape != (self.dim,):
                message = (
                    f"{self.name} returned a vector of shape {found.shape} instead of "
                    f"{self.dim} numbers"
                )
                raise EmbedderError(
                    message, hint="its settings and its weights do not match: download both again"
                )
            length = math.sqrt(float(found @ found))
            if not math.isfinite(length):
                raise EmbedderError(
                    f"{self.name} returned a vector that is not a number", hint=DOWNLOAD_AGAIN
                )
            if length > 1e-12:
                out[i] = found / length
            else:
                out[i, 0] = 1.0
        return out


def pool(hidden: Any, how: str) -> Any:
    """One row from the rows of all tokens."""
    if how in ("cls", "last"):
        return hidden[0 if how == "cls" else -1]
    return hidden.max(axis=0) if how == "max" else hidden.mean(axis=0)
