"""Qwen Code: a folder a project, a JSONL file a conversation."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator

from notewell.sources.sessions.keeper import Files, Where


def _home(where: Where) -> str:
    return where.env.get("QWEN_RUNTIME_DIR") or where.home("QWEN_HOME", ".qwen")


def _globs(where: Where) -> Iterator[str]:
    project = "*" if where.everyone else glob.escape(where.slug)
    yield os.path.join(glob.escape(_home(where)), "projects", project, "chats", "*.jsonl")


QWEN_CODE = Files(
    "Qwen Code", "0.6 to 0.15", homes=lambda where: [_home(where)], globs=_globs, by_project=True
)
