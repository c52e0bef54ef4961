"""The two tools that ChatGPT's connectors look for, by their names and in their shapes: `search`
and `fetch`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from notewell.memory import Memory
from notewell.surfaces import arguments
from notewell.surfaces.server import texts
from notewell.surfaces.server.calls import QUERY, Call, Param
from notewell.surfaces.server.texts import Answer
from notewell.surfaces.shapes import Shape
from notewell.text.fence import shown
from notewell.types import Chunk

SCHEME = "memory://"
_LIMIT = 10
_RESULT = Shape("", id=str, title=str, url=str)
_RESULTS = Shape("", results=[_RESULT])
_ITEM = Shape("", id=str, title=str, text=str, url=str, metadata=dict[str, str])


def address(path: str) -> str:
    """The resource of a note."""
    return SCHEME + quote(path)


def _title(chunk: Chunk) -> str:
    return " › ".join(shown(h) for h in (chunk.path, *chunk.heading) if h)


def _search(memory: Memory, given: Mapping[str, Any]) -> Answer:
    found = memory.search(given["query"], limit=_LIMIT, now=arguments.local_now())
    return {
        "results": [
            {"id": hit.chunk.id, "title": _title(hit.chunk), "url": address(hit.chunk.path)}
            for hit in found.hits
        ]
    }


def _fetch(memory: Memory, given: Mapping[str, Any]) -> Answer:
    read = memory.get(given["id"])
    lines = f"{read.start_line}-{read.end_line}"
    about = {"path": read.path, "lines": lines, "origin": read.origin}
    if read.chunk and read.chunk.day:
        about["date"] = read.chunk.day.isoformat()
    title = _title(read.chunk) if read.chunk else read.path
    return {
        "id": given["id"],
        "title": title,
        "text": read.text,
        "url": address(read.path),
        "metadata": about,
    }


def _text(answer: Answer) -> str:
    """Connectors read the JSON of an answer from its text."""
    return json.dumps(texts.safe(answer), ensure_ascii=False)


CONNECTORS: Mapping[str, Call] = {
    call.name: call
    for call in (
        Call(
            "search",
            "Search",
            "Find passages; fetch reads them.",
            (QUERY,),
            _search,
            _RESULTS,
            _text,
            brief="query -> results",
        ),
        Call(
            "fetch",
            "Fetch",
            "Read a passage by its id.",
            (Param("id", str, "of a result", required=True),),
            _fetch,
            _ITEM,
            _text,
            brief="id -> text url",
        ),
    )
}
