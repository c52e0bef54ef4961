"""Retrievers for two frameworks, run inside the real packages."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from recollect.memory import Memory
from tests.conftest import Write


@pytest.fixture
def memory(root: Path, write: Write) -> Iterator[Memory]:
    write("memory/2026-02-10.md", "# Standup\n\nThe staging port is 8081 now.\n")
    write("memory/2026-03-12.md", "# Deploy\n\nDeploys moved to Tuesday.\n")
    with Memory.open(root, embed__model="hashed") as one:
        yield one


def test_langchain(memory: Memory) -> None:
    from recollect.surfaces.langchain import RecollectRetriever

    retriever = RecollectRetriever(memory=memory, limit=1)
    (document,) = retriever.invoke("staging port")
    assert document.page_content == "The staging port is 8081 now."
    assert document.metadata["source"] == "memory/2026-02-10.md#L3"
    assert document.metadata["citation"] == "memory/2026-02-10.md#L3"
    assert 0 < document.metadata["score"] <= 1
    chain = retriever | (lambda found: found[0].metadata["path"])
    assert chain.invoke("staging port") == "memory/2026-02-10.md"
    assert RecollectRetriever(memory=memory, options={"profile": "lexical"}).invoke("Tuesday")


def test_llamaindex(memory: Memory) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own dependencies warn while they are imported
        from recollect.surfaces.llamaindex import RecollectRetriever
    nodes = RecollectRetriever(memory, limit=1, profile="lexical").retrieve("staging port")
    assert [n.node.get_content() for n in nodes] == ["The staging port is 8081 now."]
    assert nodes[0].node.metadata["path"] == "memory/2026-02-10.md"
    assert nodes[0].score is not None
