"""Takes the text of all sources together: shares by source and language, no text twice, shuffled,
packed.

    python -m training.gather [--groups-mb 190] [--pairs-mb 150]

Reads WORK/text/*.jsonl and writes WORK/train/{texts,groups,pairs}.jsonl.xz with a report of what is
in them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from training.fetch import work

_SEED = 7
_MOST_OF_SOURCE = 110_000  # groups or pairs of one language
_MOST_OF_LANGUAGE = {"pairs": 40_000, "groups": 30_000}
_PRIORITY = ("zh", "ja", "ko", "de", "fr", "es", "pt", "it", "ru")


def _read(paths: Iterable[Path]) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(paths) for line in path.open(encoding="utf-8")]


def _key(text: str) -> bytes:
    return hashlib.blake2b(" ".join(text.lower().split()).encode(), digest_size=8).digest()


def chosen(rows: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Rows in random order, at most so many of a source and, other than English, of a language."""
    random.Random(_SEED).shuffle(rows)
    of_source: Counter[str] = Counter()
    of_language: Counter[str] = Counter()
    seen: set[bytes] = set()
    out = []
    for row in rows:
        language, source = row["lang"], f"{row['source']}/{row['lang']}"
        most = _MOST_OF_LANGUAGE[kind] * (2 if language in _PRIORITY else 1)
        key = _key(row["text"] if kind == "pairs" else row["texts"][-1][1] + row["texts"][0][1])
        if (
            of_source[source] >= _MOST_OF_SOURCE
            or (language != "en" and of_language[language] >= most)
            or key in seen
        ):
            continue
        seen.add(key)
        of_source[source] += 1
        of_language[language] += 1
        out.append(row)
    return out


def packed(rows: Iterable[Any], path: Path) -> None:
    """Writes rows as packed lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with lzma.open(path, "wt", encoding="utf-8", preset=4) as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def within(rows: Iterable[dict[str, Any]], most_bytes: int) -> list[dict[str, Any]]:
    """As many rows as have so many bytes of different texts."""
    seen: set[int] = set()
    out, size = [], 0
    for row in rows:
        for text in [t for _, t in row["texts"]] if "texts" in row else [row["en"], row["text"]]:
            if hash(text) not in seen:
                seen.add(hash(text))
                size += len(text.encode()) + 8
        if size > most_bytes:
            break
        out.append(row)
    return out


def report_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """How many there are of what."""
    return {
        name: dict(Counter(row[name] for row in rows).most_common()) for name in ("lang", "source")
    }


def main() -> None:
    """Writes the files and the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups-mb", type=int, default=190)
    parser.add_argument("--pairs-mb", type=int, default=150)
    asked = parser.parse_args()
    text, out = work() / "text", work() / "train"
    groups = chosen(_read([*text.glob("en-*.jsonl"), *text.glob("xx-mono-*.jsonl")]), "groups")
    groups = within(groups, asked.groups_mb << 20)
    pairs = within(chosen(_read(text.glob("xx-pairs-*.jsonl")), "pairs"), asked.pairs_mb << 20)
    places: dict[str, int] = {}
    packed(
        (
            row
            | {"texts": [[role, places.setdefault(one, len(places))] for role, one in row["texts"]]}
            for row in groups
        ),
        out / "groups.jsonl.xz",
    )
    packed(places, out / "texts.jsonl.xz")
    packed(pairs, out / "pairs.jsonl.xz")
    report = {"texts": len(places), "groups": report_of(groups), "pairs": report_of(pairs)}
    (out / "report.json").write_text(
        json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    print(json.dumps(report, indent=1, ensure_ascii=False))
    for path in sorted(out.glob("*.xz")):
        print(path.name, round(path.stat().st_size / 2**20, 1), "MiB")


if __name__ == "__main__":
    main()
