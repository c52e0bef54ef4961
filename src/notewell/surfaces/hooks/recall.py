"""Recall: the few passages that are likely to help with a prompt, or nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from notewell.memory import Memory
from notewell.search.prompt_block import Context
from notewell.settings import HookSettings
from notewell.surfaces.hooks.journal import Passage
from notewell.types import Chunk, Hit

MOST_PASSAGES = 3
_CONSIDERED = 10
# characters of a prompt that are asked about; what is pasted is in the middle of longer ones
_LONGEST = 1200


def recall(
    memory: Memory,
    prompt: str,
    own: HookSettings,
    *,
    given: Collection[str] = (),
    useless: Collection[str] = (),
    sync: bool = True,
) -> tuple[Context, list[Hit]]:
    """A block for a prompt, with the hits in it; `given` and `useless` are hashes of texts that
    must not be in it.

    If the best passage is `given`, the model has the answer already, and the next best would be
    none. Text of strangers is left out, as nobody asked for it, and so are turns that only ask or
    found nothing, and every turn where a note is sure enough. Without `sync` the index is taken as
    it is.
    """
    taken: list[Hit] = []

    def chosen(hits: Sequence[Hit]) -> Sequence[Hit]:
        able = [
            hit
            for hit in hits
            if hit.chunk.origin != "untrusted"
            and not hit.signals.unanswered
            and hit.chunk.content_hash not in useless
        ]
        if notes := [hit for hit in able if hit.chunk.source != "sessions"]:
            able = notes  # somebody wrote them to be read again
        if able and able[0].chunk.content_hash in given:
            return taken
        # of one note the best passage: the others are as sure, and seldom what is asked for
        best: dict[str, Hit] = {}
        for hit in able:
            if hit.chunk.content_hash not in given:
                best.setdefault(hit.chunk.path, hit)
        taken.extend(list(best.values())[:MOST_PASSAGES])
        return taken

    block = memory.context(
        asked(prompt),
        budget_tokens=own.tokens,
        limit=_CONSIDERED,
        min_score=own.confidence,
        choose=chosen,
        sync=sync,
    )
    return block, [hit for hit in taken if any(_holds(p.chunk, hit.chunk) for p in block.passages)]


def asked(prompt: str) -> str:
    """What of a prompt is asked about: all of it, or its beginning and its end."""
    text = prompt.strip()
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST // 2]}\n{text[-_LONGEST // 2 :]}"


def passages(hits: Sequence[Hit]) -> list[Passage]:
    """The hits as they are written down."""
    return [Passage(h.chunk.citation, h.chunk.content_hash, round(h.confidence, 2)) for h in hits]


def _holds(whole: Chunk, part: Chunk) -> bool:
    """Whether a passage of a block was made of a chunk, or is a part of it."""
    return (
        whole.path == part.path
        and whole.start_line <= part.end_line
        and part.start_line <= whole.end_line
    )
