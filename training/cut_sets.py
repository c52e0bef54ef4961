"""Cuts evaluation sets into passages as the index would, for measuring a model on a machine without
notewell.

python -m training.cut_sets FOLDER_OF_SETS OUT.json.xz
"""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path
from typing import Any

from notewell.eval import sets
from notewell.index.documents import chunks_of, embed_text, facts_of
from notewell.text.chunk import ChunkSize
from notewell.text.markdown import parse
from notewell.types import Document


def cut(folder: Path) -> dict[str, Any]:
    """One set: its passages with what a model is given for them, and its questions with their
    labels.
    """
    found = sets.load(folder)
    passages = []
    for workspace, documents in sorted(found.corpora.items()):
        for path, text in sorted(documents.items()):
            parsed, document = parse(text), Document(path, "memory", len(text), 0, path)
            for one in chunks_of(document, parsed, facts_of(document, parsed), ChunkSize()):
                given = embed_text(one)
                passages.append(
                    [
                        workspace,
                        path,
                        one.start_line,
                        one.end_line,
                        len(given) - len(one.text),
                        given,
                    ]
                )
    questions = [
        {
            "id": q.id,
            "text": q.text,
            "workspace": q.workspace,
            "grades": dict(q.grades),
            "spans": [[s.document, s.start_line, s.end_line] for s in q.spans],
        }
        for q in found.questions
        if q.answerable
    ]
    return {"name": found.name, "passages": passages, "questions": questions}


def main(folder: str, out: str) -> None:
    """Writes one line a set."""
    with lzma.open(out, "wt", encoding="utf-8", preset=6) as file:
        for one in sorted(p.parent for p in Path(folder).glob("*/corpus.jsonl")):
            made = cut(one)
            print(
                made["name"],
                len(made["passages"]),
                "passages",
                len(made["questions"]),
                "questions",
                flush=True,
            )
            file.write(json.dumps(made, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
