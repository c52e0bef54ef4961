"""A tiny evaluation set in the public format, whose figures can be worked by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CORPUS = [
    {
        "id": "d1",
        "workspace": "w1",
        "path": "memory/2026-01-10.md",
        "text": "# Ports\n\nThe staging port is 8443.\n",
    },
    {
        "id": "d2",
        "workspace": "w1",
        "path": "memory/2026-02-10.md",
        "text": "# Ports\n\nThe staging port moved: 9443.\n",
    },
    {
        "id": "d3",
        "workspace": "w1",
        "path": "memory/tea.md",
        "text": "# Tea\n\nGreen tea, three minutes.\n",
    },
    {
        "id": "d4",
        "workspace": "w2",
        "path": "memory/tea.md",
        "text": "# Tea\n\nBlack tea, five minutes.\n",
    },
]
QUERIES = [
    {"id": "q1", "workspace": "w1", "text": "staging port", "type": "fact", "date": "2026-03-12"},
    {"id": "q2", "workspace": "w1", "text": "green tea minutes", "type": "how"},
    {"id": "q3", "workspace": "w2", "text": "black tea minutes", "type": "how"},
    {"id": "q4", "workspace": "w2", "text": "zeppelin hangar", "type": "none"},
]
QRELS = ["q1\td2\t2", "q1\td1\t1", "q2\td3\t1", "q2\td1\t0", "q3\td4\t1"]


def jsonl(rows: Sequence[Any]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def write_set(folder: Path, **files: str) -> Path:
    """Writes the set; a keyword replaces the file of its name (`qrels_tsv` is qrels.tsv)."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "corpus_jsonl": jsonl(CORPUS),
        "queries_jsonl": jsonl(QUERIES),
        "qrels_tsv": "\n".join(QRELS) + "\n",
        "spans_jsonl": jsonl([{"id": "s1", "doc": "d2", "line_start": 3, "line_end": 3}]),
        "qrels_spans_tsv": "q1\ts1\t1\n",
        "newer_older_tsv": "q1\td2\td1\n",
        **files,
    }
    for name, text in texts.items():
        stem, _, end = name.rpartition("_")
        (folder / f"{stem}.{end}").write_text(text, encoding="utf-8")
    return folder
