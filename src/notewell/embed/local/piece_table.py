"""The vocabulary of our own model as a table that is enough for one question.

What sentencepiece builds to look words up takes a process that asks once longer, and more memory,
than all else about its question. The table lies next to the prepared model, and is kept where it
cuts odd texts as the library does.
"""

from __future__ import annotations

from array import array
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from notewell.embed.local import prepared

LONGEST = 500  # characters of a text; for a longer one the library is faster
_FILE, _SPACE, _NORMAL = "pieces-1", "\u2581", 1  # the number is that of the layout
_PENALTY = np.float32(10.0)  # of a character that is in no piece, as in the library
_KIND = np.dtype([("key", "<u8"), ("score", "<f4"), ("id", "<u4")])
_ODD = (
    "query: what did we decide?",
    "  Ａ\u00a0Ⅷ ﬁn\u0301e\t▁x ▁",
    "検索はどこ？ 我们的决定",
    "\U0001f9ff\U0001f9ff \x00 ⁇",
)


class PieceTable:
    """Texts to the ids that sentencepiece gives for them; `marks` are the ids of beginning, end and
    unknown.
    """

    def __init__(self, kept: bytes) -> None:
        count, size, self._longest, *self.marks = np.frombuffer(kept, "<u4", 6).tolist()
        self._rows = np.frombuffer(kept, _KIND, count, 24)
        self._keys = np.ascontiguousarray(self._rows["key"])
        self._worst = float(self._rows["score"].min() - _PENALTY)
        # a double array, as in Darts
        self._trie = np.frombuffer(kept, "<u4", size // 4, 28 + self._rows.nbytes)
        self._forms = kept[28 + self._rows.nbytes + size :]

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without marks."""
        text, unknown = self._normal(text.encode()), self.marks[2]
        many = len(text)
        ends = [range(i + 1, min(many, i + self._longest) + 1) for i in range(many)]
        known = self._found(list({text[i:j] for i in range(many) for j in ends[i]}))
        # which round as the library's numbers do
        scores, cell = (array("f", bytes(4 * many + 4)), array("f", [0.0]))
        # from where the best way to a place comes, and its id
        best: list[tuple[int, int] | None] = [None] * (many + 1)
        for i in range(many):
            some = [(j, *known[text[i:j]]) for j in ends[i] if text[i:j] in known]
            if not some or some[0][0] > i + 1:
                some.append((i + 1, self._worst, unknown))
            for j, score, number in some:
                cell[0] = scores[i] + score
                if best[j] is None or cell[0] > scores[j]:
                    scores[j], best[j] = cell[0], (i, number)
        ids: list[int] = []
        while step := best[many]:
            many, number = step
            # unknown characters in a row are one piece
            if number != unknown or ids[-1:] != [number]:
                ids.append(number)
        return ids[::-1]

    def _found(self, texts: list[str]) -> dict[str, tuple[float, int]]:
        """The score and the id of those texts that are pieces."""
        wanted = np.array(list(map(_key, texts)), np.uint64)
        rows = self._rows.take(np.searchsorted(self._keys, wanted), mode="clip")
        there = np.flatnonzero(rows["key"] == wanted).tolist()
        return {texts[n]: rows[n].item()[1:] for n in there}

    def _normal(self, text: bytes) -> str:
        """The text with every character in its usual form, and one mark before every word."""
        out, at, spaced = bytearray(), 0, True
        while at < len(text):
            form, at = self._form(text, at)
            form = form.lstrip(b" ") if spaced else form
            spaced = form.endswith(b" ") if form else spaced
            out += form
        return (_SPACE + out.decode().replace(" ", _SPACE)).rstrip(_SPACE)

    def _form(self, text: bytes, at: int) -> tuple[bytes, int]:
        """The usual form of the longest known characters from a place on, and where they end."""
        node, end, form = _offset(int(self._trie[0])), at, b""
        for n in range(at, len(text)):
            unit = int(self._trie[node := node ^ text[n]])
            if unit & 0x800000FF != text[n]:
                break
            node ^= _offset(unit)
            if unit >> 8 & 1:  # a form ends here
                start = int(self._trie[node]) & 0x7FFFFFFF
                end, form = n + 1, self._forms[start : self._forms.index(b"\0", start)]
        if end > at:
            return form, end
        size = next(n for n in (1, 2, 3, 4) if at + n >= len(text) or text[at + n] & 0xC0 != 0x80)
        return text[at : at + size], at + size


def _offset(unit: int) -> int:
    return unit >> 10 << ((unit & 1 << 9) >> 6)


def _key(piece: str) -> int:
    return int.from_bytes(blake2b(piece.encode(), digest_size=8).digest(), "little")


def load(vocabulary: Path, folder: Path) -> PieceTable | None:
    """The table of a vocabulary, if it is in the folder and sound."""
    try:
        place = folder / f"{vocabulary.stem}-{prepared.sum_of((vocabulary,))}"
        return PieceTable((place / _FILE).read_bytes()) if prepared.is_sound(place) else None
    except (OSError, ValueError):
        return None


def keep(vocabulary: Path, folder: Path, library: Any) -> None:
    """Writes the table of a vocabulary that the library has loaded."""
    from sentencepiece import sentencepiece_model_pb2  # noqa: PLC0415 - once for a vocabulary

    shapes: Any = sentencepiece_model_pb2
    held = shapes.ModelProto.FromString(vocabulary.read_bytes())
    normal = [
        (_key(one.piece), one.score, n) for n, one in enumerate(held.pieces) if one.type == _NORMAL
    ]
    rows, forms = (
        np.sort(np.array(normal, _KIND), order="key"),
        held.normalizer_spec.precompiled_charsmap,
    )
    longest, size = max(len(one.piece) for one in held.pieces), int.from_bytes(forms[:4], "little")
    head = np.array(
        [len(rows), size, longest, library.bos_id(), library.eos_id(), library.unk_id()], "<u4"
    )
    kept = head.tobytes() + rows.tobytes() + forms
    if all(PieceTable(kept).encode(text) == library.encode(text) for text in _ODD):
        place = folder / f"{vocabulary.stem}-{prepared.sum_of((vocabulary,))}"
        prepared.keep(place, lambda new: (new / _FILE).write_bytes(kept))
