"""Parsers of the text in other languages, on made-up samples."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from training.text.aligned import Pair, align, both, html_blocks, joined, sections
from training.text.books import place
from training.text.catalogues import catalogue, message, prose
from training.text.common import Group
from training.text.descriptions_xx import beside, described
from training.text.gnome import mallard_blocks
from training.text.languages import code, translated, written_in
from training.text.manuals import roff_blocks, without_credits
from training.text.select_xx import Budget, choose, gather

ENGLISH = """<html><head><title>x</title></head><body><h1 id="a">Keeping bees in winter</h1>
<p id="p1">Bees form a tight cluster in the hive when it gets cold, and they take turns on the \
outside of it.</p>
<p id="p2">Leave them at least fifteen kilograms of honey, and do not open the hive before \
the first warm days.</p>
<pre>code here</pre><h2 id="b">When to feed</h2>
<p id="p3">Feed them sugar only if their own stores run out in early spring.</p>
</body></html>"""
GERMAN = """<body><h1 id="a">Bienen im Winter halten</h1>
<p id="p1">Bei Kälte bilden Bienen im Stock eine dichte Traube und wechseln sich an \
deren Außenseite ab.</p>
<p id="p2">Lassen Sie ihnen mindestens fünfzehn Kilo Honig
und öffnen Sie den Stock nicht vor den ersten warmen Tagen.</p>
<h2 id="b">Wann man füttert</h2>
<p id="p3">Feed them sugar only if their own stores run out in early spring.</p></body>"""


def test_locales() -> None:
    assert [code(name) for name in ("pt_BR", "zh-Hant", "nb", "sr@latin", "xx", "en-US", "C")] == [
        "pt",
        "zh",
        "no",
        "sr",
        "",
        "en",
        "",
    ]


def test_translated() -> None:
    assert translated("de", "Bees make honey in summer", "Bienen machen im Sommer Honig")
    assert not translated("de", "Bees make honey in summer", "Bees make honey in summer!")
    assert not translated("ja", "Bees make honey", "Bees make honey, yes")
    assert translated("ja", "Bees make honey", "蜂は蜂蜜を作る")
    assert not written_in("zh", "蜂は蜂蜜を作る")


def test_page_is_aligned_without_what_is_left_in_english() -> None:
    found = list(
        both(
            "bees", "de", align("de", sections(html_blocks(ENGLISH)), sections(html_blocks(GERMAN)))
        )
    )
    pairs = [each for each in found if isinstance(each, Pair)]
    assert ("Keeping bees in winter", "Bienen im Winter halten") in [
        (pair.english, pair.text) for pair in pairs
    ]
    passages = [pair for pair in pairs if pair.role == "p"]
    assert any(
        pair.english.startswith("Bees form") and pair.text.endswith("warmen Tagen.")
        for pair in passages
    )
    assert not any("sugar" in pair.text or "code here" in pair.english for pair in pairs)
    groups = [each for each in found if isinstance(each, Group)]
    assert groups[0].texts[0] == ("q", "Bienen im Winter halten")


def test_pages_without_ids_need_the_same_outline() -> None:
    plain = [page.replace(' id="', ' class="') for page in (ENGLISH, GERMAN)]
    ours, theirs = (sections(html_blocks(page)) for page in plain)
    assert align("de", ours, theirs)[1].blocks[0][1].startswith("Bei Kälte")
    assert align("de", ours, theirs[:-1]) == []


def test_passages_keep_to_the_bounds() -> None:
    blocks = [("word " * 40, "Wort " * 40)] * 12
    assert all(180 <= len(one) <= 1200 for one, _ in joined("de", blocks, "seed"))


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("usr/share/doc/book/html/ja-JP/intro.html", ("ja", "html/intro.html")),
        ("usr/share/doc/book/html/en-US/intro.html", ("en", "html/intro.html")),
        ("usr/share/book/ch01.zh-cn.html", ("zh", "book/ch01.html")),
        ("usr/share/book/tools.html", ("en", "book/tools.html")),
    ],
)
def test_places(path: str, found: tuple[str, str]) -> None:
    assert place(path) == found


def _compiled(entries: dict[str, str]) -> bytes:
    ours, theirs = (
        [text.encode() for text in texts] for texts in (entries.keys(), entries.values())
    )
    at = 28 + 16 * len(ours)
    tables: list[bytes] = []
    for texts in (ours, theirs):
        for text in texts:
            tables.append(struct.pack("<II", len(text), at))
            at += len(text) + 1
    head = struct.pack("<IIIIIII", 0x950412DE, 0, len(ours), 28, 28 + 8 * len(ours), 0, 0)
    return head + b"".join(tables) + b"".join(text + b"\0" for text in [*ours, *theirs])


def test_catalogue() -> None:
    held = _compiled(
        {"menu\4_Open the old file": "Öffne die _alte Datei", "one\0many": "eins\0viele"}
    )
    assert [(message(one), message(other)) for one, other in catalogue(held)] == [
        ("Open the old file", "Öffne die alte Datei"),
        ("one", "eins"),
    ]
    assert list(catalogue(b"no catalogue")) == []


def test_messages_that_say_something() -> None:
    assert prose("The file could not be saved to the disk")
    assert not prose("Saved %s")
    assert not prose("%s: %d of %d (%s) %s %s done here")


def test_descriptions() -> None:
    head = "Package: bee\nDescription-md5: 1\nDescription-"
    long = (
        " It counts the honey in all your hives.\n  list\n .\n Second paragraph is here for you.\n"
    )
    english = f"{head}en: honey counter\n{long}"
    long = " Er zählt den Honig in allen Ihren Stöcken.\n .\n Hier ist der zweite Absatz für Sie.\n"
    german = f"{head}de: Honigzähler\n{long}"
    found = list(beside("de", described(english), described(german)))
    assert found[0].heading == ("honey counter", "Honigzähler")
    assert [one for one, _ in found[0].blocks] == [
        "It counts the honey in all your hives.",
        "Second paragraph is here for you.",
    ]


def test_mallard() -> None:
    page = (
        "<page id='a'><info><desc>no</desc></info><title>Screen</title><p>Text of it.</p>"
        "<section id='s'><title>Lock</title><list><item>"
        "<p>Press it.</p></item></list></section></page>"
    )
    assert [(block.kind, block.text) for block in mallard_blocks(page)] == [
        ("h1", "Screen"),
        ("p", "Text of it."),
        ("h2", "Lock"),
        ("p", "Press it."),
    ]


def test_manual_page() -> None:
    page = '.TH X 1\n.SH "NAME"\nx \\- do \\fIit\\fP\n.SH OPTIONS\n.TP\n'
    page += '.BR \\-a ", " \\-b\nAll of it.\n.nf\ncode\n.fi\n.PP\nMore.\n'
    blocks = roff_blocks(page)
    assert [block.text for block in blocks] == [
        "NAME",
        "x - do it",
        "OPTIONS",
        "-a, -b All of it.",
        "More.",
    ]
    cut = sections(blocks)
    assert without_credits(cut, [*cut, cut[-1]]) == cut


def test_choice_keeps_to_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTEWELL_TRAINING", str(tmp_path))
    long = [Pair("s", "de", "p", f"{at} english " * 20, f"{at} deutsch " * 20) for at in range(100)]
    gather(
        "s", lambda: iter([*long, *long, Group("s", "de", (("q", "Frage"), ("p", "Antwort " * 9)))])
    )
    counts = choose(Budget(pairs=(0, 0.01, 0), groups=(0, 0.01, 0)))
    lines = (tmp_path / "text" / "xx-pairs-s.jsonl").read_text(encoding="utf-8").splitlines()
    assert 10 <= counts["pairs de"] == len(lines) < 40
    assert len({json.loads(line)["en"] for line in lines}) == len(lines)
    assert counts["mono de"] == 1
