"""How well-known families of models want to be asked, for files that do not say it themselves."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Family:
    """What stands before a question and before a passage, and how tokens become one row."""

    query: str = ""
    document: str = ""
    pooling: str = "mean"


_SEARCHING = "Represent this sentence for searching relevant passages: "
# From the model cards. The first that is found in the name counts.
_FAMILIES = (
    (r"bge-m3", Family(pooling="cls")),
    (r"bge-\w+-zh", Family(query="为这个句子生成表示以用于检索相关文章：", pooling="cls")),
    (r"bge-|mxbai-embed", Family(query=_SEARCHING, pooling="cls")),
    (r"arctic-embed-\w+-v2", Family(query="query: ", pooling="cls")),
    (r"arctic-embed", Family(query=_SEARCHING, pooling="cls")),
    (r"\be5-\w*-?instruct", Family(
        query="Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: ")),
    (r"(^|[-_/ ])e5[-_]", Family(query="query: ", document="passage: ")),
    (r"nomic-embed-text", Family(query="search_query: ", document="search_document: ")),
    (r"embeddinggemma", Family(query="task: search result | query: ", document="title: none | text: ")),
    (r"qwen3-embedding", Family(
        query="Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:",
        pooling="last")),
    (r"gte-\w+-en-v1\.5|granite-embedding", Family(pooling="cls")),
)  # fmt: skip


def family(name: str) -> Family:
    """The family of a model's name; mean pooling and no words before the text when it is not known."""
    for pattern, found in _FAMILIES:
        if re.search(pattern, name.lower()):
            return found
    return Family()
