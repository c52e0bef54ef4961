"""A LlamaIndex retriever over a memory. Needs `notewell[llamaindex]`."""

from __future__ import annotations

from typing import Any

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from notewell.memory import Memory
from notewell.surfaces import view
from notewell.text.fence import neutral


class NotewellRetriever(BaseRetriever):
    """Returns the hits of a search as scored nodes, harmless; `options` are the other arguments of
    `Memory.search`.
    """

    def __init__(self, memory: Memory, *, limit: int = 6, **options: Any) -> None:
        super().__init__()
        self._memory = memory
        self._limit = limit
        self._options = options

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = self._memory.search(query_bundle.query_str, limit=self._limit, **self._options)
        return [
            NodeWithScore(
                node=TextNode(id_=h.chunk.id, text=neutral(h.chunk.text), metadata=view.hit(h)),
                score=h.score,
            )
            for h in found.hits
        ]
