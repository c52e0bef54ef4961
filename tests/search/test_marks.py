"""Marks are made once, when somebody looks at them."""

from __future__ import annotations

from recollect.search.marks import Marks
from recollect.types import Mark


def test_marks_are_a_sequence_that_is_made_once_and_when_read() -> None:
    made: list[int] = []
    whole = (Mark("a", 1, 0.5), Mark("b", 2, 0.25))

    def make() -> tuple[Mark, ...]:
        made.append(1)
        return whole

    marks = Marks(2, make)
    assert len(marks) == 2
    assert not made, "how many there are is known without making them"
    assert marks[1].id == "b"
    assert list(marks) == list(whole)
    assert tuple(marks[:1]) == whole[:1]
    assert marks == whole
    assert marks == Marks(2, lambda: whole)
    assert hash(marks) == hash(whole)
    assert repr(marks) == repr(whole)
    assert made == [1]
    assert Marks(0, tuple) == ()
