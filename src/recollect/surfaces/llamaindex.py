"""A LlamaIndex retriever over a memory. Needs `recollect[llamaindex]`."""

from __future__ import annotations

from typing import Any

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from recollect.memory import Memory
from recollect.surfaces import view


class RecollectRetriever(BaseRetriever):
    """The hits of a search as scored nodes; everything `Memory.search` takes may be given."""

    def __init__(self, memory: Memory, *, limit: int = 6, **options: Any) -> None:
        super().__init__()
        self._memory = memory
        self._limit = limit
        self._options = options

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = self._memory.search(query_bundle.query_str, limit=self._limit, **self._options)
        return [
            NodeWithScore(node=TextNode(id_=h.chunk.id, text=h.chunk.text, metadata=view.hit(h)), score=h.score)
            for h in found.hits
        ]
