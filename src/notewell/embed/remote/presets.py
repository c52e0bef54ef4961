"""The table of remote providers. A new provider with a known wire format is one more row.

Prices are the published ones, in US dollars per million tokens; they are for estimates only.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from notewell.types import Role

Shape = Literal["openai", "gemini", "cohere", "ollama"]
BatchShape = Literal["", "openai", "voyage", "gemini"]


@dataclass(frozen=True, slots=True)
class Model:
    """A model's size, price and longest input, and how it tells questions from passages."""

    name: str
    dim: int = 0
    usd_per_million: float | None = None
    max_tokens: int = 8000
    shortens: bool = False
    prefixes: tuple[str, str] = ("", "")
    typed: bool = True
    media: bool = False

    def prefix(self, role: Role) -> str:
        """The prefix of a text in this role."""
        return self.prefixes[0] if role == "query" else self.prefixes[1]


@dataclass(frozen=True, slots=True)
class Preset:
    """A provider: its address, its wire format and its limits per request."""

    name: str
    url: str
    models: tuple[Model, ...] = ()
    shape: Shape = "openai"
    keys: tuple[str, ...] = ()
    key_needed: bool = True
    texts_per_request: int = 256
    tokens_per_request: int = 100_000
    # a field of the request, and its value for questions and passages
    types: tuple[str, str, str] = ("", "", "")
    dim_field: str = "dimensions"
    extra: Mapping[str, Any] = field(default_factory=dict)
    batch: BatchShape = ""
    batch_texts: int = 5000
    batch_price: float = 1.0

    @property
    def model(self) -> str:
        """The name of its default model: the first in its table."""
        return self.models[0].name if self.models else ""

    def known(self, name: str) -> Model:
        """The row of a model, or just its name if it has none. A tag such as `:latest` is
        ignored.
        """
        for model in self.models:
            if name in (model.name, f"models/{model.name}") or name.partition(":")[0] == model.name:
                return replace(model, name=name)
        return Model(name)

    def type_of(self, model: Model, role: Role) -> str:
        """The input type that tells a question from a passage, or an empty string."""
        _, query, document = self.types
        return "" if not model.typed else query if role == "query" else document

    def manner(self, model: Model) -> str:
        """A checksum of prefixes and types: vectors made with others must not be mixed with
        these.
        """
        parts = [*model.prefixes, *(self.types[1:] if model.typed else ())]
        return f"+{zlib.crc32(chr(0).join(parts).encode()):08x}" if any(parts) else ""


_NOMIC = ("search_query: ", "search_document: ")
_GEMMA = ("task: search result | query: ", "title: none | text: ")
_PASSAGES = ("Represent this sentence for searching relevant passages: ", "")
_QWEN = ("Instruct: Given a question, retrieve the notes that answer it\nQuery:", "")
_AS_NUMBERS = {"encoding_format": "float"}

_PRESETS = (
    Preset(
        "openai",
        "https://api.openai.com/v1",
        models=(
            Model("text-embedding-3-small", 1536, 0.02, shortens=True),
            Model("text-embedding-3-large", 3072, 0.13, shortens=True),
            Model("text-embedding-ada-002", 1536, 0.10),
        ),
        keys=("OPENAI_API_KEY",),
        texts_per_request=2048,
        tokens_per_request=300_000,
        extra={"encoding_format": "base64"},
        batch="openai",
        batch_price=0.5,
    ),
    Preset(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta",
        models=(
            # The newer model reads its task from the text; the older one has a field for it.
            Model(
                "gemini-embedding-2",
                3072,
                0.20,
                shortens=True,
                prefixes=_GEMMA,
                typed=False,
                media=True,
            ),
            Model("gemini-embedding-001", 3072, 0.15, max_tokens=2000, shortens=True),
        ),
        shape="gemini",
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        texts_per_request=100,
        types=("taskType", "RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT"),
        dim_field="outputDimensionality",
        batch="gemini",
        batch_texts=1000,
        batch_price=0.5,
    ),
    Preset(
        "voyage",
        "https://api.voyageai.com/v1",
        models=(
            Model("voyage-4", 1024, 0.06, max_tokens=32_000, shortens=True),
            Model("voyage-4-large", 1024, 0.12, max_tokens=32_000, shortens=True),
            Model("voyage-4-lite", 1024, 0.02, max_tokens=32_000, shortens=True),
            Model("voyage-3.5", 1024, 0.06, max_tokens=32_000, shortens=True),
            Model("voyage-3.5-lite", 1024, 0.02, max_tokens=32_000, shortens=True),
            Model("voyage-code-3", 1024, 0.18, max_tokens=32_000, shortens=True),
        ),
        keys=("VOYAGE_API_KEY",),
        texts_per_request=1000,
        tokens_per_request=120_000,
        types=("input_type", "query", "document"),
        dim_field="output_dimension",
        extra={"encoding_format": "base64", "truncation": False},
        batch="voyage",
        batch_price=0.67,
    ),
    Preset(
        "mistral",
        "https://api.mistral.ai/v1",
        models=(
            Model("mistral-embed", 1024, 0.10),
            Model("codestral-embed", 1536, 0.15, shortens=True),
        ),
        keys=("MISTRAL_API_KEY",),
        tokens_per_request=16_000,
        dim_field="output_dimension",
        extra=_AS_NUMBERS,
    ),
    Preset(
        "cohere",
        "https://api.cohere.com",
        models=(
            Model("embed-v4.0", 1536, 0.12, max_tokens=100_000, shortens=True),
            Model("embed-multilingual-v3.0", 1024, 0.10, max_tokens=500),
            Model("embed-english-v3.0", 1024, 0.10, max_tokens=500),
        ),
        shape="cohere",
        keys=("COHERE_API_KEY", "CO_API_KEY"),
        texts_per_request=96,
        types=("input_type", "search_query", "search_document"),
        dim_field="output_dimension",
        extra={"embedding_types": ["float"], "truncate": "NONE"},
    ),
    Preset(
        "jina",
        "https://api.jina.ai/v1",
        models=(
            Model("jina-embeddings-v4", 2048, max_tokens=32_000, shortens=True),
            Model("jina-embeddings-v3", 1024, shortens=True),
        ),
        keys=("JINA_API_KEY",),
        texts_per_request=512,
        tokens_per_request=32_000,
        types=("task", "retrieval.query", "retrieval.passage"),
        extra={"embedding_type": "float", "truncate": False},
    ),
    Preset(
        "ollama",
        "http://localhost:11434",
        models=(
            Model("nomic-embed-text", 768, 0.0, max_tokens=2000, prefixes=_NOMIC),
            Model("embeddinggemma", 768, 0.0, max_tokens=2000, prefixes=_GEMMA),
            Model("mxbai-embed-large", 1024, 0.0, max_tokens=500, prefixes=_PASSAGES),
            Model("snowflake-arctic-embed", 1024, 0.0, max_tokens=500, prefixes=_PASSAGES),
            Model("all-minilm", 384, 0.0, max_tokens=250),
            Model("bge-m3", 1024, 0.0),
            Model("qwen3-embedding", 0, 0.0, prefixes=_QWEN),
        ),
        shape="ollama",
        key_needed=False,
        texts_per_request=2048,
        extra={"truncate": False},
    ),
    Preset(
        "lmstudio",
        "http://localhost:1234/v1",
        models=(
            Model(
                "text-embedding-nomic-embed-text-v1.5", 768, 0.0, max_tokens=2000, prefixes=_NOMIC
            ),
        ),
        key_needed=False,
        texts_per_request=2048,
        extra=_AS_NUMBERS,
    ),
    Preset(
        "http",
        "",
        keys=("NOTEWELL_EMBED_KEY",),
        key_needed=False,
        texts_per_request=2048,
        extra=_AS_NUMBERS,
    ),
)
PRESETS: Mapping[str, Preset] = {row.name: row for row in _PRESETS}
