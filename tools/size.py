"""Prints how large each room of the source is: `make size`. It is a mirror; nothing fails by it.

Code is counted in tokens. Lines can be made longer, and modules can be cut in two, without anybody
having less to understand.
"""

from __future__ import annotations

import io
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src/notewell"
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


@dataclass(frozen=True)
class Size:
    """What somebody has to read: the tokens of code, the lines of text, and the modules."""

    tokens: int = 0
    lines: int = 0
    modules: int = 0

    def __add__(self, other: Size) -> Size:
        """Both together."""
        return Size(
            self.tokens + other.tokens,
            self.lines + other.lines,
            self.modules + other.modules,
        )


def size_of(text: str) -> Size:
    """Counts one module; its docstrings are tokens, its comments and layout are not."""
    found = tokenize.generate_tokens(io.StringIO(text).readline)
    return Size(sum(token.type not in _LAYOUT for token in found), text.count("\n"), 1)


def rooms(source: Path) -> dict[str, Size]:
    """The size of each folder with modules of its own, by its path; `.` is the front door."""
    found: dict[str, Size] = {}
    for path in sorted(source.rglob("*.py")):
        room = path.parent.relative_to(source).as_posix()
        found[room] = found.get(room, Size()) + size_of(path.read_text(encoding="utf-8"))
    return found


def table(source: Path) -> Iterator[str]:
    """A line for each room, and one for all of them."""
    found = rooms(source)
    yield f"{'room':<20} {'tokens':>9} {'lines':>8} {'modules':>8}"
    for room, size in (*found.items(), ("all", sum(found.values(), Size()))):
        yield f"{room:<20} {size.tokens:>9,} {size.lines:>8,} {size.modules:>8,}"


if __name__ == "__main__":
    lines = table(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE)
    sys.stdout.write("\n".join(lines) + "\n")
