"""Words by number: every word of the index has one, and a text is kept as the numbers of its
terms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from notewell.store.sqlite.connection import Connection
from notewell.store.sqlite.varint import encode

# each of them twice: the newer and the older half
_MOST_WORDS, _MOST_PIECES, _LONG_PIECE = (150_000, 100_000, 48)
_Codes = tuple[bytes, bytes]


class PieceCodes(dict[str, _Codes]):
    """The term numbers of each piece of text seen so far, as varints, and those of its exact forms.

    When it is full, the half that was not used lately goes.
    """

    def __init__(self, code_of: Callable[[str], bytes]) -> None:
        super().__init__()
        self._older: dict[str, _Codes] = {}
        self._terms: Mapping[str, tuple[str, str]] = {}
        self._code_of = code_of

    def clear(self) -> None:
        super().clear()
        self._older = {}

    def __missing__(self, piece: str) -> _Codes:
        codes = self._older.get(piece)
        if codes is None:
            stems, forms = self._terms[piece]
            codes = self._codes(stems), self._codes(forms)
            if len(piece) > _LONG_PIECE:
                return codes  # it will not come again
        self[piece] = codes
        return codes

    def _codes(self, words: str) -> bytes:
        if " " in words:
            return b"".join(map(self._code_of, words.split()))
        return self._code_of(words) if words else b""

    def encode(self, pieces: Sequence[str], terms: Mapping[str, tuple[str, str]]) -> _Codes:
        if not pieces:
            return b"", b""
        if len(self) > _MOST_PIECES:
            older = dict(self)
            self.clear()
            self._older = older
        self._terms = terms
        codes, forms = zip(*map(self.__getitem__, pieces), strict=True)
        return b"".join(codes), b"".join(forms)


class WordNumbers:
    """Gives out the numbers of words and rows; they are written at the end of the transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection, self._db = connection, connection.db
        self._codes: dict[str, bytes] = {}
        self._older: dict[str, bytes] = {}
        self._pieces = PieceCodes(self._code_of)
        self.encode = self._pieces.encode
        self._counters: dict[str, int] | None = None
        self._new: list[tuple[str, int]] = []
        self._epoch = -1
        connection.before_commit.append(self.flush)
        connection.after_rollback.append(self.forget)

    def forget(self) -> None:
        """After a rollback or a scrub: numbers that were given out may not be in the file."""
        self._forget_words()
        self._counters = None
        self._new = []

    def _forget_words(self) -> None:
        self._codes, self._older = {}, {}
        self._pieces.clear()

    def counters(self) -> dict[str, int]:
        """The last numbers that were given out, read once a transaction and written at its end."""
        if self._counters is None:
            sql = "SELECT key, value FROM meta WHERE key IN ('rows', 'words', 'sealed', 'epoch')"
            self._counters = {key: int(value) for key, value in self._connection.own(sql)}
            # words were deleted, perhaps by another process
            if self._counters["epoch"] != self._epoch:
                self._forget_words()
                self._epoch = self._counters["epoch"]
        return self._counters

    def take_rows(self, count: int) -> range:
        """Numbers for new rows; none is ever used again, so that what is known of a row stays
        true.
        """
        counters = self.counters()
        counters["rows"] += count
        return range(counters["rows"] - count + 1, counters["rows"] + 1)

    def make_room(self) -> None:
        """Forgets words that were not used lately, where too many are in memory; before texts get
        numbers.
        """
        self.counters()
        if len(self._codes) > _MOST_WORDS:
            self.flush()
            self._codes, self._older = {}, self._codes

    def _code_of(self, word: str) -> bytes:
        """The number of a word as a varint; a new word gets one."""
        known = self._codes.get(word)
        if known is None and (known := self._older.pop(word, None)) is not None:
            self._codes[word] = known
        if known is None:
            counters = self._counters or self.counters()
            found: tuple[Any, ...] = ()
            # else every word is known, and this one is new
            if len(self._codes) + len(self._older) < counters["words"]:
                found = (
                    self._db.execute("SELECT id FROM words WHERE word = ?", (word,)).fetchone()
                    or ()
                )
            if not found:
                counters["words"] += 1
                found = (counters["words"],)
                self._new.append((word, found[0]))
            known = self._codes[word] = encode(found[0])
        return known

    def flush(self) -> None:
        """Writes what this thread's transaction gave out; many words at once, in order, go to few
        pages.
        """
        if self._counters is not None and self._connection.is_writing():
            self._new.sort()
            self._db.executemany("INSERT INTO words (word, id) VALUES (?, ?)", self._new)
            self._new = []
            self._db.executemany(
                "UPDATE meta SET value = ?1 WHERE key = ?2 AND value != ?1",
                [(self._counters[key], key) for key in ("rows", "words", "sealed")],
            )
            self._counters = None
