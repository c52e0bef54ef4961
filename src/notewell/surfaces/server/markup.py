"""Notes as HTML for the page: Markdown is rendered, everything else that a note holds stays text.

Raw HTML is escaped, a link leads to a note, to the web or to mail, and a picture is its alternative
text: nothing in a note can run in the page or make it load something.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from notewell.text.fence import visible
from notewell.text.markdown import front_matter, split_lines
from notewell.text.snippet import matches
from notewell.types import Turn

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

Resolve = Callable[[str], str]
_WIKI = re.compile(r"!?\[\[([^\[\]\n|]{1,300})(?:\|([^\[\]\n]{0,300}))?\]\]")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_WEB = re.compile(r"(?:https?://|mailto:)[!-~]+\Z", re.IGNORECASE)
_BREAKS = {0x85: " ", 0x2028: " ", 0x2029: " "}  # no line of an editor ends there
_LANGUAGE = re.compile(r"[A-Za-z0-9+#-]{1,30}")
_MOST_CHARACTERS = (
    400_000  # of a longer text the rest is shown as it is: rendering would take seconds
)
_SPEAKERS = {"owner": "user", "agent": "assistant"}


@dataclass(frozen=True, slots=True)
class Rendered:
    """The HTML of a note and its headings: level, text and line."""

    html: str
    outline: tuple[tuple[int, str, int], ...] = ()


def address(path: str, line: int | None = None) -> str:
    """The place of a note in the page."""
    place = quote(path, errors="replace")
    return f"#/note/{place}" + (f"?line={line}" if line else "")


def nowhere(_target: str) -> str:
    """Resolves no link, where there are no other notes."""
    return ""


def note_html(text: str, resolve: Resolve = nowhere) -> Rendered:
    """A note as HTML whose blocks carry their lines; `resolve` turns what a link names into a place
    in the page.
    """
    lines = split_lines(text.translate(_BREAKS))
    front, start = front_matter(lines)[1], 0
    parts = []
    if front:
        parts.append(_as_it_is("\n".join(lines[:front]), 1, "front"))
        start = front
    body, rest = _cut(lines[start:])
    tokens, env = _tokens("\n".join(body), resolve, start)
    parts.append(_render(tokens, env))
    if rest:
        parts.append(_as_it_is("\n".join(rest), start + len(body) + 1, "rest"))
    return Rendered("".join(parts), tuple(_outline(tokens)))


def turns_html(turns: Sequence[Turn], resolve: Resolve = nowhere) -> str:
    """The turns of a conversation as HTML, each with who spoke, when, and its line."""
    made, left = [], _MOST_CHARACTERS
    for turn in turns:
        who = _SPEAKERS.get(turn.origin, turn.origin)
        when = f" <time>{turn.time:%Y-%m-%d %H:%M}</time>" if turn.time else ""
        text = turn.text.translate(_BREAKS)
        left -= len(text)
        words = (
            _as_it_is(text, turn.line, "rest")
            if left < 0
            else _render(*_tokens(text, resolve, None))
        )
        head = f'<p class="who">{_plain(who)}{when}</p>'
        made.append(
            f'<section class="turn" data-line="{turn.line}-{turn.line}">{head}{words}</section>'
        )
    return "".join(made)


def snippet_html(text: str, query: str, resolve: Resolve = nowhere) -> str:
    """A few lines as HTML in which the words of a question are marked."""
    tokens, env = _tokens(text[:_MOST_CHARACTERS].translate(_BREAKS), resolve, None)
    return _render(tokens, {**env, "query": query})


def _cut(lines: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """The lines that are rendered, and those beyond the bound."""
    size = 0
    for number, line in enumerate(lines):
        size += len(line) + 1
        if size > _MOST_CHARACTERS:
            return lines[:number], lines[number:]
    return lines, ()


def _as_it_is(text: str, line: int, name: str) -> str:
    last = line + text.count("\n")
    return f'<pre class="{name}" data-line="{line}-{last}"><code>{_plain(text)}</code></pre>\n'


def _plain(text: str) -> str:
    return escape(visible(text))


def _tokens(text: str, resolve: Resolve, offset: int | None) -> tuple[list[Token], dict[str, Any]]:
    """The parsed text, with lines counted after so many others, or without any for None, and its
    links resolved.
    """
    env: dict[str, Any] = {"resolve": resolve}
    tokens = _parser().parse(text, env)
    lines = text.split("\n")
    for token in tokens:
        if token.map and token.nesting >= 0 and offset is not None:
            first, last = token.map
            while last > first + 1 and not lines[last - 1].strip():
                last -= 1  # the blank line after a list is not a part of it
            token.attrSet("data-line", f"{first + offset + 1}-{last + offset}")
        # of a cell; the page's policy allows no style in an element
        if style := token.attrs.pop("style", ""):
            token.attrSet("class", str(style).replace("text-align:", "align-"))
        _link(token.children or [], resolve)
    return tokens, env


def _link(children: Sequence[Token], resolve: Resolve) -> None:
    """Makes each link lead to the web, to mail or to a note; one that leads nowhere is only marked
    as such.
    """
    open_: list[Token] = []
    for child in children:
        if child.type == "link_open":
            target = str(child.attrs.get("href", ""))
            href = (
                target
                if _WEB.match(target)
                else ""
                if _SCHEME.match(target)
                else resolve(unquote(target))
            )
            child.tag, child.attrs = "a" if href else "span", _attributes(href)
            open_.append(child)
        elif child.type == "link_close" and open_:
            child.tag = open_.pop().tag
        elif child.type == "image":
            child.meta = {"inside": bool(open_)}


def _attributes(href: str) -> dict[str, str | int | float]:
    if not href:
        return {"class": "missing"}
    return (
        {"href": href}
        if href.startswith("#")
        else {"href": href, "rel": "noopener noreferrer", "target": "_blank"}
    )


def _render(tokens: Sequence[Token], env: MutableMapping[str, Any]) -> str:
    parser = _parser()
    # A character may also be written as an entity, so what is hidden is taken out of the result.
    return visible(str(parser.renderer.render(tokens, parser.options, env)))


def _outline(tokens: Sequence[Token]) -> Iterator[tuple[int, str, int]]:
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and inline.type == "inline":
            line = str(token.attrs.get("data-line", "1")).partition("-")[0]
            yield int(token.tag[1:]), visible(_words(inline.children or ())), int(line)


def _words(children: Sequence[Token]) -> str:
    """What a person reads of a heading."""
    breaks = ("softbreak", "hardbreak")
    return "".join(
        " " if c.type in breaks else _words(c.children) if c.children else c.content
        for c in children
    )


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    """The one parser: CommonMark with tables and strikethrough, without HTML."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - only the page renders

    made = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    made.validateLink = _may_link  # type: ignore[assignment, method-assign]
    made.inline.ruler.before("link", "wiki", _wiki)
    for name, rule in (
        ("text", _text),
        ("code_inline", _code),
        ("fence", _block),
        ("code_block", _block),
        ("image", _image),
        ("wiki", _wiki_link),
    ):
        made.add_render_rule(name, rule)
    return made


def _may_link(target: str) -> bool:
    """Whether a link is one at all; any other is left as it was written."""
    return not _SCHEME.match(target) or _WEB.match(target) is not None


def _wiki(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the parser's form
    match = _WIKI.match(state.src, state.pos, state.posMax)
    if match is None or state.linkLevel:
        return False
    if not silent:
        token = state.push("wiki", "", 0)
        token.content = (match[2] or match[1]).strip()
        token.meta = {"target": match[1].strip()}
    state.pos = match.end()
    return True


def _marked(text: str, env: MutableMapping[str, Any]) -> str:
    """Text as HTML, with the words of the question marked."""
    query = env.get("query")
    if not query:
        return escape(text)
    made, at = [], 0
    for start, end, _ in matches(text, query):
        if start >= at:
            made += [escape(text[at:start]), "<mark>", escape(text[start:end]), "</mark>"]
            at = end
    return "".join((*made, escape(text[at:])))


def _text(
    _self: Any, tokens: Sequence[Token], at: int, _options: Any, env: MutableMapping[str, Any]
) -> str:
    return _marked(tokens[at].content, env)


def _code(
    _self: Any, tokens: Sequence[Token], at: int, _options: Any, env: MutableMapping[str, Any]
) -> str:
    return f"<code>{_marked(tokens[at].content, env)}</code>"


def _block(
    _self: Any, tokens: Sequence[Token], at: int, _options: Any, env: MutableMapping[str, Any]
) -> str:
    """A block of code with the language that it names."""
    token = tokens[at]
    named = _LANGUAGE.match(token.info.strip())
    language = f' class="language-{named[0]}"' if named else ""
    lines = token.attrs.get("data-line")
    place = f' data-line="{lines}"' if lines else ""
    return f"<pre{place}><code{language}>{_marked(token.content, env)}</code></pre>\n"


def _image(
    self: Any, tokens: Sequence[Token], at: int, options: Any, env: MutableMapping[str, Any]
) -> str:
    """The words for a picture, and a link to it if it is on the web: the page loads nothing from
    there.
    """
    token = tokens[at]
    source = str(token.attrs.get("src", ""))
    words = escape(self.renderInlineAsText(token.children or [], options, env) or source)
    if _WEB.match(source) and not token.meta.get("inside"):
        return (
            f'<a class="image" href="{escape(source)}" rel="noopener noreferrer" '
            f'target="_blank">{words}</a>'
        )
    return f'<span class="image">{words}</span>'


def _wiki_link(
    _self: Any, tokens: Sequence[Token], at: int, _options: Any, env: MutableMapping[str, Any]
) -> str:
    token = tokens[at]
    href, words = env["resolve"](token.meta["target"]), _marked(token.content, env)
    return (
        f'<a href="{escape(href)}">{words}</a>' if href else f'<span class="missing">{words}</span>'
    )
