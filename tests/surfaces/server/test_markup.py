"""Notes as HTML: what is Markdown is rendered, and whatever a note holds besides stays text."""

from __future__ import annotations

import datetime as dt
import html
import re
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notewell.surfaces.server.markup import address, note_html, snippet_html, turns_html
from notewell.types import Turn

TAGS = re.compile(
    r"(a|blockquote|br|code|em|h[1-6]|hr|li|mark|ol|p|pre|s|section|span|strong|table|t(body|d|h|head|r)|time|ul)\Z"
)
ATTRIBUTES = {"href", "rel", "target", "class", "data-line", "start"}
CLASSES = re.compile(
    r"(align-(?:left|right|center)|front|rest|missing|image|who|turn|language-[A-Za-z0-9+#-]{1,30})\Z"
)
HREF = re.compile(r"(https?://|mailto:|#/note/)[!-~]*\Z", re.IGNORECASE)
HIDDEN = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u00ad\u200b\ufeff"


class Page(HTMLParser):
    """Reads HTML as a browser would, and refuses what the page must never get from a note."""

    def __init__(self, made: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(made)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert TAGS.match(tag)
        for name, value in attrs:
            assert name in ATTRIBUTES
            assert value is not None
            assert name != "class" or CLASSES.match(value)
            assert name != "data-line" or re.fullmatch(r"\d+-\d+", value)
            if name == "href":
                assert HREF.match(value)
                self.links.append(value)
        if tag not in ("br", "hr"):
            assert tag != "a" or "a" not in self.open
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ("br", "hr")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)


def known(target: str) -> str:
    """A resolver for which every name is a note."""
    return address(target) if target else ""


def read(text: str) -> Page:
    """A note as a page, with every link resolved; the same without any note must be safe too."""
    Page(note_html(text).html)
    return Page(note_html(text, known).html)


HOSTILE = {
    "script": "<script>alert(1)</script>",
    "script in capitals": "<ScRiPt src=//evil.example/x></sCrIpT>",
    "event handler": '<img src=x onerror="alert(1)">',
    "svg": "<svg/onload=alert(1)>",
    "frame": '<iframe srcdoc="&lt;script&gt;alert(1)&lt;/script&gt;"></iframe>',
    "style": "<style>*{background:url(//evil.example)}</style>",
    "comment": "<!-- --!> <img src=x onerror=alert(1)> -->",
    "cdata": "<![CDATA[<script>alert(1)</script>]]>",
    "processing": "<?xml version='1.0'?><script>alert(1)</script>",
    "broken tag": '<a href="javascript:alert(1)"',
    "link": "[x](javascript:alert(1))",
    "link in capitals": "[x](JaVaScRiPt:alert(1))",
    "link with entities": "[x](&#106;avascript&colon;alert(1))",
    "link with a line break": "[x](java&#10;script:alert(1))",
    "link with a tab": "[x](<java\tscript:alert(1)>)",
    "link with a hidden character": "[x](java\u200bscript:alert(1))",
    "data link": "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "vbscript": "[x](vbscript:msgbox(1))",
    "file": "[x](file:///etc/passwd)",
    "blob": "[x](blob:https://a.example/1)",
    "angle link": "<javascript:alert(1)>",
    "reference link": "[x][y]\n\n[y]: javascript:alert(1)",
    "title of a link": '[x](http://a.example "\\" onmouseover=alert(1) x=\\"")',
    "quotes in a link": '[x](http://a.example/"onmouseover="alert(1))',
    "protocol-relative": "[x](//evil.example/x)",
    "picture": "![x](javascript:alert(1))",
    "picture as data": "![x](data:image/svg+xml;base64,PHN2Zz4=)",
    "alternative text": '![" onerror="alert(1)](http://a.example/x.png)',
    "picture in a link": "[![x](http://a.example/x.png)](javascript:alert(1))",
    "heading": "# <img src=x onerror=alert(1)>\n\n<b>Setext</b>\n===",
    "code": "`<script>alert(1)</script>`",
    "fence": "```<script>alert(1)</script>\n</code></pre><script>alert(1)</script>\n```",
    "fence language": '```x" onclick="alert(1)\ncode\n```',
    "indented code": "    </pre><script>alert(1)</script>",
    "table": (
        "| <b>a</b> | b |\n|---|:-:|\n| <script>alert(1)</script> | [x](javascript:alert(1)) |"
    ),
    "front matter": "---\ntitle: </code></pre><script>alert(1)</script>\n---\n\ntext",
    "wiki link": '[[a" onclick="alert(1)|<script>alert(1)</script>]]',
    "wiki link to a script": "[[javascript:alert(1)]]",
    "wiki link in a link": "[a [[b]] c](http://a.example)",
    "embedded note": "![[<img src=x onerror=alert(1)>]]",
    "mixed entities": "&lt;script&gt;alert(1)&lt;/script&gt; &#60;script&#62; &#x3c;script&#x3E;",
    "bidi": "safe \u202egnp.exe\u202c [\u2066x](http://a.example/\u202e)",
    "bidi as an entity": "safe &#x202e;txt &#8238;",
    "null": "a\x00b <scr\x00ipt>alert(1)</script>",
    "line separators": "a\u2028<script>\u2029alert(1)\x85</script>",
    "half a character": "\ud83d <b>",
    "list": "- <input autofocus onfocus=alert(1)>\n  1. [x](javascript:1)\n> <b onclick=alert(1)>",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_a_hostile_note_holds_stays_text(name: str) -> None:
    read(HOSTILE[name])
    Page(snippet_html(HOSTILE[name], "script alert", known))
    Page(turns_html([Turn(3, "<b>", HOSTILE[name])], known))


@pytest.mark.parametrize(
    "name", [n for n in HOSTILE if "link" in n or n in ("vbscript", "file", "blob", "picture")]
)
def test_no_link_leads_to_a_script(name: str) -> None:
    for link in read(HOSTILE[name]).links:
        # What follows #/note/ is a name that the page looks up, never an address that it opens.
        assert link.startswith(("http://a.example", "#/note/"))


MARKS = (
    "\n|\n\n| |`|``|```\n|*|**|_|~~|# |> |- |1. |---\n"
    "|[|]|(|)|[[|]]|![|<|>|\"|'|&|\\|&#60;|javascript:|http://a.example/|\t|\x00"
)
PIECES = st.sampled_from([*HOSTILE.values(), *MARKS.split("|"), "|", "\u2028", *HIDDEN])


@given(
    st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=14).map("".join), st.text(max_size=20)
)
@settings(max_examples=300, deadline=None)
def test_no_text_at_all_becomes_more_than_safe_html(text: str, query: str) -> None:
    page = read(text)
    assert not set(page.text) & set(HIDDEN)
    Page(snippet_html(text, query or "alert", known))
    Page(turns_html([Turn(1, "owner", text, dt.datetime(2026, 5, 6, 9, 30, tzinfo=dt.UTC))], known))


@given(
    st.text(
        alphabet=st.characters(codec="utf-8", exclude_categories=("Cc", "Cf", "Zl", "Zp")),
        max_size=60,
    )
)
@settings(max_examples=100, deadline=None)
def test_code_is_shown_as_it_was_written(text: str) -> None:
    body = text.replace("~", "")
    assert html.unescape(Page(note_html(f"~~~\n{body}\n~~~").html).text) == html.unescape(
        f"{body}\n\n"
    )


def test_blocks_carry_the_lines_of_the_note() -> None:
    made = note_html(
        "---\ndate: 2026-05-06\n---\n# Day\n\nOne\ntwo.\n\n- a\n- b\n\n```sh\nls\n```\n"
    ).html
    places = re.findall(r'<(\w+)(?: class="front")? data-line="([\d-]+)"', made)
    assert places == [
        ("pre", "1-3"),
        ("h1", "4-4"),
        ("p", "6-7"),
        ("ul", "9-10"),
        ("li", "9-9"),
        ("li", "10-10"),
        ("pre", "12-14"),
    ]


def test_lines_are_counted_as_editors_do() -> None:
    made = note_html("a\u2028b\r\n\r\n# Head\r\rlast")
    assert made.outline == ((1, "Head", 3),)
    assert '<p data-line="5-5">last</p>' in made.html


def test_an_outline_has_the_words_of_headings() -> None:
    made = note_html("# A *big* `port`\n\n## [[b|See b]] ![pic](x.png)\n\nSetext\n---\n")
    assert made.outline == ((1, "A big port", 1), (2, "See b pic", 3), (2, "Setext", 5))


def test_links_lead_to_notes_to_the_web_or_nowhere() -> None:
    def resolve(target: str) -> str:
        return address("memory/auth.md", 7) if target == "auth" else ""

    made = note_html(
        "[[auth|log in]] [[gone]] [a](auth) [b](gone%20note.md) <http://a.example/?q=1&r=2>",
        resolve,
    ).html
    assert made.count('<a href="#/note/memory/auth.md?line=7">') == 2
    assert made.count('<span class="missing">') == 2
    assert 'href="http://a.example/?q=1&amp;r=2" rel="noopener noreferrer" target="_blank"' in made


def test_an_address_keeps_folders_and_hides_nothing() -> None:
    assert address("memory/a b#c?.md", 3) == "#/note/memory/a%20b%23c%3F.md?line=3"
    assert unquote(address("memory/日.md")) == "#/note/memory/日.md"


def test_a_cell_is_aligned_by_a_class() -> None:
    made = note_html("| a | b |\n|:--|--:|\n| 1 | 2 |").html
    assert '<th class="align-left">a</th>' in made
    assert '<td class="align-right">2</td>' in made


def test_a_picture_is_its_words_and_a_link() -> None:
    made = note_html("![the plan](http://a.example/p.png) ![](local.png)").html
    assert (
        '<a class="image" href="http://a.example/p.png" rel="noopener noreferrer" '
        'target="_blank">the plan</a>'
    ) in made
    assert '<span class="image">local.png</span>' in made
    assert "<img" not in made


def test_matches_are_marked_in_text_and_in_code_but_never_in_a_tag() -> None:
    made = snippet_html(
        "The **staging port** is `port 9600`, see [port](port.md)", "ports of staging", known
    )
    assert made.count("<mark>") == 4
    assert '<a href="#/note/port.md"><mark>port</mark></a>' in made


def test_turns_say_who_spoke_and_when() -> None:
    turns = [
        Turn(4, "owner", "Which *port*?", dt.datetime(2026, 5, 6, 9, 30, tzinfo=dt.UTC)),
        Turn(9, "agent", "9600"),
    ]
    made = turns_html(turns)
    assert (
        '<section class="turn" data-line="4-4"><p class="who">user <time>2026-05-06 '
        "09:30</time></p>"
    ) in made
    assert '<p class="who">assistant</p><p>9600</p>' in made


def test_a_very_long_note_is_shown_to_its_end() -> None:
    made = note_html("word " * 79_000 + "\n\n" + "tail\n" * 2_000 + "the *end*")
    assert made.html.rstrip().endswith("the *end*</code></pre>")
    assert 'class="rest" data-line="' in made.html


def test_a_link_to_a_name_that_no_url_can_hold_is_written_with_what_it_can() -> None:
    assert address("notes/\ud800.md") == "#/note/notes/%3F.md"
