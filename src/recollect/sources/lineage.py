"""Which sessions a transcript continues, from the head of its own file: no turn is needed for that."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from recollect.text.links import lineage, link_key
from recollect.types import Document, Edge

_HEAD_BYTES = 1 << 20
_HEAD_RECORDS = 200


def session_edges(document: Document, *, known: Mapping[str, str] | None = None) -> list[Edge]:
    """`derives_from` edges of a transcript; none when its file is gone or says nothing of others.

    A session's id is its file's name or the uuid that ends it. `known` is where messages stand, by uuid.
    """
    try:
        with Path(document.location).open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return []
    return lineage(document.path, _records(head), own=link_key(document.path), known=known)


def _records(head: bytes) -> Iterator[dict[str, Any]]:
    """The JSON objects on the first lines; a torn or broken line is passed over."""
    for line in head.splitlines()[:_HEAD_RECORDS]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            yield record
