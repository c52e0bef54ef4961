"""JSDoc comment → function, from the npm packages that ship readable source."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from training.fetch import Package, fetched, listed, members
from training.text.common import Group, clean, clean_lines, group, keywords, sentences, words
from training.text.python_code import _DULL

MOST = 25
_DOC = re.compile(
    r"/\*\*((?:(?!\*/).){20,2000}?)\*/\s*\n([ \t]*)"
    r"((?:export |default |async |static |public |private )*"
    r"(?:function\b|const \w+ = |[\w$.]+ = function|[\w$]+\s*\([^)]*\)\s*\{)[^\n]*)",
    re.DOTALL,
)


def body(text: str, start: int) -> str:
    """Source from a function's first line to the end of its braces."""
    opened = text.find("{", start)
    depth = 0
    for at in range(opened, min(len(text), start + 2000)):
        depth += (text[at] == "{") - (text[at] == "}")
        if depth == 0:
            return text[start : at + 1]
    return ""


def _said(comment: str) -> str:
    lines = [re.sub(r"^\s*\* ?", "", line) for line in comment.split("\n")]
    told = "\n".join(lines).split("\n@")[0].strip()
    return (sentences(clean(told.split("\n\n")[0])) or [""])[0]


def _of_file(text: str, chance: random.Random) -> Iterator[Group]:
    for match in _DOC.finditer(text):
        said = _said(match[1])
        source = clean_lines(body(text, match.start(3)))
        if (
            not 15 <= len(said) <= 200
            or said.startswith("@")
            or len(words(said)) < 4
            or _DULL.match(said)
        ):
            continue
        if not 60 <= len(source) <= 1500 or source.count("\n") < 2 or "cov_" in source:
            continue
        low = said.rstrip(".")
        forms = (said, low[0].lower() + low[1:], f"javascript {keywords(low, 7)}", keywords(low, 8))
        shown = f"```js\n{source}\n```" if chance.random() < 0.4 else source
        found = group("javascript", chance.choice(forms), [shown])
        if found:
            yield found


def _of_package(package: Package, chance: random.Random) -> Iterator[Group]:
    for name, content in members(fetched(package.name)):
        if (
            name.endswith((".js", ".mjs", ".ts", ".cjs"))
            and ".min." not in name
            and len(content) < 200_000
        ):
            yield from _of_file(content.decode("utf-8", "replace"), chance)


def javascript() -> Iterator[Group]:
    """Every npm package, none with too large a share."""
    seen: set[str] = set()
    for package in listed().values():
        if package.registry == "npm":
            chance = random.Random(package.name)
            held = [
                each
                for each in _of_package(package, chance)
                if each.texts[1][1].strip("`") not in seen
            ]
            seen.update(each.texts[1][1].strip("`") for each in held)
            yield from held if len(held) <= MOST else chance.sample(held, MOST)
