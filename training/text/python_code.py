"""Docstring → function, from the Python packages that are listed for it."""

from __future__ import annotations

import ast
import random
import re
import textwrap
from collections.abc import Iterator

from training.fetch import Package, fetched, listed, members
from training.text.common import Group, clean, clean_lines, group, keywords, sentences, words

MOST = 450
_SKIP = re.compile(
    r"(?:^|/)(?:tests?|testing|_vendor|vendor|vendored|extern|externals|migrations|locale|conftest)[/.]|/test_"
)
_DULL = re.compile(
    (
        r"^(?:deprecated|todo|see |\.\.|:|>>>|test|same "
        r"as|alias|args?:|\*|parameters|returns?:|@|-|warning|note)"
    ),
    re.IGNORECASE,
)


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def first_sentence(docstring: str) -> str:
    """What a docstring says first."""
    opening = clean(docstring.strip().split("\n\n")[0])
    opening = re.sub(r":\w+:`~?([^`]+)`", r"\1", opening).replace("``", "`")
    return (sentences(opening) or [""])[0]


def without_docstring(node: ast.FunctionDef | ast.AsyncFunctionDef, lines: list[str]) -> str:
    """A function's source without its docstring."""
    doc = node.body[0]
    start = min([node.lineno, *(each.lineno for each in node.decorator_list)]) - 1
    kept = lines[start : doc.lineno - 1] + lines[doc.end_lineno : node.end_lineno]
    return textwrap.dedent(clean_lines("\n".join(kept)))


def query_of(sentence: str, name: str, chance: random.Random) -> str:
    """A docstring's sentence, or what one would type to find such a function."""
    roll = chance.random()
    low = sentence.rstrip(".")
    low = low[0].lower() + low[1:]
    bare = re.sub(r"^(returns?|gets?|computes?|calculates?) (the |a |an )?", r"\1 ", low)
    if roll < 0.3:
        return sentence
    if roll < 0.5:
        return low
    if roll < 0.65:
        return f"python {keywords(low, 7)}"
    if roll < 0.75:
        return f"{keywords(low, 7)} in python"
    if roll < 0.85:
        return (
            f"how to {bare}"
            if re.match(r"[a-z]+[^s] ", bare) and len(words(bare)) < 12
            else keywords(low, 8)
        )
    return f"python {bare}" if len(bare) < 100 else keywords(low + " " + name.replace("_", " "), 9)


def _of_file(text: str, chance: random.Random) -> Iterator[Group]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    lines = text.split("\n")
    found: list[tuple[str, str, str, str]] = []
    for node in _functions(tree):
        doc = ast.get_docstring(node)
        if not doc or len(node.body) < 2 or not node.end_lineno:
            continue
        sentence = first_sentence(doc)
        if not 15 <= len(sentence) <= 200 or len(words(sentence)) < 4 or _DULL.match(sentence):
            continue
        source = without_docstring(node, lines)
        if 60 <= len(source) <= 1500 and source.count("\n") > 1 and "NotImplemented" not in source:
            whole = textwrap.dedent(
                clean_lines("\n".join(lines[node.lineno - 1 : node.end_lineno]))
            )
            found.append((sentence, node.name, source, whole))
    for at, (sentence, name, source, whole) in enumerate(found):
        shown = whole if len(whole) < 1400 and chance.random() < 0.3 else source
        if chance.random() < 0.4:
            shown = f"```python\n{shown}\n```"
        near = [found[(at + 1) % len(found)][2]] if len(found) > 1 and chance.random() < 0.4 else []
        query = query_of(sentence, name, chance)
        if shown != source and whole in shown:
            query = query if query != sentence else keywords(sentence, 8)
        made = group("python", query, [shown, *near])
        if made:
            yield made


def _of_package(package: Package, chance: random.Random) -> Iterator[Group]:
    for name, content in members(fetched(package.name)):
        if name.endswith(".py") and not _SKIP.search(name) and len(content) < 400_000:
            yield from _of_file(content.decode("utf-8", "replace"), chance)


def python() -> Iterator[Group]:
    """Every package listed for its functions, none with too large a share."""
    for package in listed().values():
        if package.registry == "pypi" and package.use == "functions with docstrings":
            chance = random.Random(package.name)
            held = list(_of_package(package, chance))
            yield from held if len(held) <= MOST else chance.sample(held, MOST)
