"""How common words are in writing of any kind, for collections too small to tell.

In forty passages every word looks rare, so "getting" would count as much as a name. `everyday.txt`
has the share of passages that a word is in, counted over chats, articles, notes and handbooks in
thirty languages: a line for each power of a half, with the words as the analyser writes them.
`training/everyday.py` counts such a table.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

_PASSAGES = 2000  # of this many passages the shares count as if they were in the collection


@lru_cache(maxsize=1)
def _shares() -> dict[str, float]:
    lines = Path(__file__).with_name("everyday.txt").read_text(encoding="utf-8").splitlines()
    rows = (line.split(" ") for line in lines)
    return {word: 0.5 ** int(power) for power, *words in rows for word in words}


def share_of(word: str) -> float:
    """The share of all passages that a word is in, 0 for one that is rare."""
    return _shares().get(word, 0.0)


def found_in_all(word: str, chunks: int, found_in: int) -> float:
    """In how many chunks a word would be if these were some of a much larger collection; never
    fewer than it is in.
    """
    share = share_of(word)
    return max(found_in, chunks * (found_in + _PASSAGES * share) / (chunks + _PASSAGES))
