"""BERT's uncased WordPiece, read from a vocabulary file: text to token ids.

Sixty lines instead of a dependency tree that reaches for a model hub; an oracle test compares it with the
reference implementation on every script.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path

from recollect.errors import EmbedderError

_MAX_WORD = 100
_CACHE_SIZE = 100_000
_CACHED_WORD = 40
# Python splits at these, the reference drops them.
_CONTROL_SPACE = re.compile("[\x0b\x0c\x1c-\x1f\x85]+")


def _is_cjk(char: str) -> bool:
    code = ord(char)
    return (
        0x4E00 <= code <= 0x9FFF
        or 0x3400 <= code <= 0x4DBF
        or 0xF900 <= code <= 0xFAFF
        or 0x20000 <= code <= 0x2A6DF
        or 0x2A700 <= code <= 0x2B81F
        or 0x2B920 <= code <= 0x2CEAF
        or 0x2F800 <= code <= 0x2FA1F
    )


def _is_punctuation(char: str) -> bool:
    code = ord(char)
    if 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126:
        return True
    return unicodedata.category(char).startswith("P")


class WordPiece:
    """Greedy longest-match tokeniser over a fixed vocabulary."""

    def __init__(self, vocabulary: Path | Mapping[str, int]) -> None:
        if isinstance(vocabulary, Path):
            with vocabulary.open(encoding="utf-8") as file:
                self.ids = {line.rstrip("\n"): i for i, line in enumerate(file)}
        else:
            self.ids = dict(vocabulary)
        if "[UNK]" not in self.ids:
            raise EmbedderError("the vocabulary has no [UNK]: it is not one of BERT", hint="get the model's files anew")
        self.unknown = self.ids["[UNK]"]
        self._seen: dict[str, tuple[int, ...]] = {}

    def encode(self, text: str, limit: int) -> list[int]:
        """Ids between [CLS] and [SEP], at most `limit` with both."""
        return [self.cls, *self.plain(text, limit - 2), self.sep]

    def plain(self, text: str, limit: int) -> list[int]:
        """Ids of the text alone, at most `limit`."""
        ids: list[int] = []
        for word in _CONTROL_SPACE.sub("", text).split():
            ids.extend(self._word(word))
            if len(ids) >= limit:
                break
        return ids[:limit]

    @property
    def cls(self) -> int:
        """What stands before a text."""
        return self._special("[CLS]")

    @property
    def sep(self) -> int:
        """What stands after a text."""
        return self._special("[SEP]")

    def _special(self, name: str) -> int:
        found = self.ids.get(name)
        if found is None:  # a static model has no use for it
            raise EmbedderError(f"the vocabulary has no {name}", hint="get the model's files anew")
        return found

    def _word(self, word: str) -> tuple[int, ...]:
        found = self._seen.get(word)
        if found is None:
            found = tuple(i for piece in self._split(word) for i in self._pieces(piece))
            if len(word) <= _CACHED_WORD:
                if len(self._seen) >= _CACHE_SIZE:
                    self._seen.clear()
                self._seen[word] = found
        return found

    def _split(self, word: str) -> list[str]:
        """Lower case, no accents, no control characters; punctuation and Han characters stand alone."""
        if not (word.isascii() and word.isprintable()):
            kept = (c for c in word if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co") and c != "\ufffd")
            word = "".join(f" {c} " if _is_cjk(c) else c for c in kept)
        word = word.replace("Σ", "σ").lower()  # letter by letter, without the final sigma of `str.lower`
        if not word.isascii():
            word = "".join(c for c in unicodedata.normalize("NFD", word) if unicodedata.category(c) != "Mn")
        pieces: list[str] = []
        for part in word.split():
            start = 0
            for i, char in enumerate(part):
                if _is_punctuation(char):
                    pieces.extend(p for p in (part[start:i], char) if p)
                    start = i + 1
            if start < len(part):
                pieces.append(part[start:])
        return pieces

    def _pieces(self, word: str) -> list[int]:
        if len(word) > _MAX_WORD:
            return [self.unknown]
        ids: list[int] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                found = self.ids.get(word[start:end] if not start else "##" + word[start:end])
                if found is not None:
                    ids.append(found)
                    start = end
                    break
            else:
                return [self.unknown]
        return ids
