"""A LangChain retriever over a memory. Needs `notewell[langchain]`."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field

from notewell.memory import Memory
from notewell.surfaces import view
from notewell.text.fence import neutral


class NotewellRetriever(BaseRetriever):
    """Returns the hits of a search as documents, harmless; `options` takes the other arguments of
    `Memory.search`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    memory: Memory
    limit: int = 6
    options: dict[str, Any] = Field(default_factory=dict)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 - the name is LangChain's
    ) -> list[Document]:
        found = self.memory.search(query, limit=self.limit, **self.options)
        return [
            Document(
                id=h.chunk.id,
                page_content=neutral(h.chunk.text),
                metadata={**view.hit(h), "source": h.chunk.citation},
            )
            for h in found.hits
        ]
