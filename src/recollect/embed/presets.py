"""The one table of remote providers. A further one that speaks a known shape is a row here.

Prices are those that the providers publish, in US dollars for a million tokens; they serve estimates, not bills.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from recollect.ports import Role

Shape = Literal["openai", "gemini", "cohere", "ollama"]
BatchShape = Literal["", "openai", "voyage", "gemini"]


@dataclass(frozen=True, slots=True)
class Model:
    """What is known of a model: its size, price, longest input and how it tells questions from passages."""

    name: str
    dim: int = 0
    usd_per_million: float | None = None
    max_tokens: int = 8000
    shortens: bool = False
    prefixes: tuple[str, str] = ("", "")
    typed: bool = True
    media: bool = False

    def prefix(self, role: Role) -> str:
        """What stands before a text of this role."""
        return self.prefixes[0] if role == "query" else self.prefixes[1]


@dataclass(frozen=True, slots=True)
class Preset:
    """A provider: where it is, how it is spoken to, and what it takes at once."""

    name: str
    url: str
    model: str
    models: tuple[Model, ...]
    shape: Shape = "openai"
    path: str = "/embeddings"
    keys: tuple[str, ...] = ()
    key_needed: bool = True
    texts_per_request: int = 256
    tokens_per_request: int = 100_000
    type_field: str = ""
    types: tuple[str, str] = ("", "")
    dim_field: str = "dimensions"
    extra: Mapping[str, Any] = field(default_factory=dict)
    batch: BatchShape = ""
    batch_texts: int = 5000
    batch_price: float = 1.0

    def known(self, name: str) -> Model:
        """What the table knows of a model; of others only the name. A tag such as `:latest` does not matter."""
        for model in self.models:
            if name in (model.name, f"models/{model.name}") or name.partition(":")[0] == model.name:
                return replace(model, name=name)
        return Model(name)

    def type_of(self, model: Model, role: Role) -> str:
        """The input type that tells a question from a passage, or nothing."""
        if not model.typed:
            return ""
        return self.types[0] if role == "query" else self.types[1]

    def manner(self, model: Model) -> str:
        """A mark of prefixes and types: vectors made in another manner must not be mixed with these."""
        parts = [*model.prefixes, *(self.types if model.typed else ())]
        return f"+{zlib.crc32(chr(0).join(parts).encode()):08x}" if any(parts) else ""


_NOMIC = ("search_query: ", "search_document: ")
_GEMMA = ("task: search result | query: ", "title: none | text: ")
_PASSAGES = ("Represent this sentence for searching relevant passages: ", "")
_QWEN = ("Instruct: Given a question, retrieve the notes that answer it\nQuery:", "")

PRESETS: Mapping[str, Preset] = {
    row.name: row
    for row in (
        Preset(
            name="openai",
            url="https://api.openai.com/v1",
            model="text-embedding-3-small",
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
            name="gemini",
            url="https://generativelanguage.googleapis.com/v1beta",
            model="gemini-embedding-2",
            models=(
                # The second model reads its task from the text; the first has a field for it.
                Model("gemini-embedding-2", 3072, 0.20, shortens=True, prefixes=_GEMMA, typed=False, media=True),
                Model("gemini-embedding-001", 3072, 0.15, max_tokens=2000, shortens=True),
            ),
            shape="gemini",
            path=":batchEmbedContents",
            keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
            texts_per_request=100,
            type_field="taskType",
            types=("RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT"),
            dim_field="outputDimensionality",
            batch="gemini",
            batch_texts=1000,
            batch_price=0.5,
        ),
        Preset(
            name="voyage",
            url="https://api.voyageai.com/v1",
            model="voyage-4",
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
            type_field="input_type",
            types=("query", "document"),
            dim_field="output_dimension",
            extra={"encoding_format": "base64", "truncation": False},
            batch="voyage",
            batch_price=0.67,
        ),
        Preset(
            name="mistral",
            url="https://api.mistral.ai/v1",
            model="mistral-embed",
            models=(Model("mistral-embed", 1024, 0.10), Model("codestral-embed", 1536, 0.15, shortens=True)),
            keys=("MISTRAL_API_KEY",),
            tokens_per_request=16_000,
            dim_field="output_dimension",
            extra={"encoding_format": "float"},
        ),
        Preset(
            name="cohere",
            url="https://api.cohere.com",
            model="embed-v4.0",
            models=(
                Model("embed-v4.0", 1536, 0.12, max_tokens=100_000, shortens=True),
                Model("embed-multilingual-v3.0", 1024, 0.10, max_tokens=500),
                Model("embed-english-v3.0", 1024, 0.10, max_tokens=500),
            ),
            shape="cohere",
            path="/v2/embed",
            keys=("COHERE_API_KEY", "CO_API_KEY"),
            texts_per_request=96,
            type_field="input_type",
            types=("search_query", "search_document"),
            dim_field="output_dimension",
            extra={"embedding_types": ["float"], "truncate": "NONE"},
        ),
        Preset(
            name="jina",
            url="https://api.jina.ai/v1",
            model="jina-embeddings-v4",
            models=(
                Model("jina-embeddings-v4", 2048, max_tokens=32_000, shortens=True),
                Model("jina-embeddings-v3", 1024, shortens=True),
            ),
            keys=("JINA_API_KEY",),
            texts_per_request=512,
            tokens_per_request=32_000,
            type_field="task",
            types=("retrieval.query", "retrieval.passage"),
            extra={"embedding_type": "float", "truncate": False},
        ),
        Preset(
            name="ollama",
            url="http://localhost:11434",
            model="nomic-embed-text",
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
            path="/api/embed",
            key_needed=False,
            texts_per_request=64,
            extra={"truncate": False},
        ),
        Preset(
            name="lmstudio",
            url="http://localhost:1234/v1",
            model="text-embedding-nomic-embed-text-v1.5",
            models=(Model("text-embedding-nomic-embed-text-v1.5", 768, 0.0, max_tokens=2000, prefixes=_NOMIC),),
            key_needed=False,
            texts_per_request=64,
            extra={"encoding_format": "float"},
        ),
        Preset(
            name="http",
            url="",
            model="",
            models=(),
            keys=("RECOLLECT_EMBED_KEY",),
            key_needed=False,
            texts_per_request=64,
            extra={"encoding_format": "float"},
        ),
    )
}

__all__ = ["PRESETS", "Model", "Preset"]
