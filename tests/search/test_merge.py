from __future__ import annotations

from notewell.search.prompt_block import merged
from notewell.types import Candidate, Chunk

NOTE = [f"line {n}" for n in range(1, 21)]


def passage(start: int, end: int, *, path: str = "a.md", text: str | None = None) -> Candidate:
    text = "\n".join(NOTE[start - 1 : end]) if text is None else text
    return Candidate(
        Chunk(f"{path}{start}", path, "memory", start, end, ("H",), text, "hash"), score=1 / start
    )


def test_overlapping_passages_become_one_at_the_place_of_the_better() -> None:
    other = passage(1, 2, path="b.md")
    first, second = merged([passage(3, 6), other, passage(5, 9)])
    assert (first.chunk.start_line, first.chunk.end_line, first.chunk.text) == (
        3,
        9,
        "\n".join(NOTE[2:9]),
    )
    assert first.id == "a.md3"
    assert second == other


def test_passages_with_a_blank_line_between_them_touch() -> None:
    (one,) = merged([passage(8, 9), passage(5, 6)])
    assert one.chunk.text.split("\n") == ["line 5", "line 6", "", "line 8", "line 9"]


def test_passages_apart_or_under_other_headings_stay_apart() -> None:
    far = [passage(1, 2), passage(6, 7)]
    assert merged(far) == far


def test_a_piece_of_a_long_line_is_not_joined() -> None:
    pieces = [passage(4, 4, text="half of it"), passage(4, 6, text="other half")]
    assert merged(pieces) == pieces
