"""Numbers in few bytes come back as they were."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.store.numbers import code, decoded, packed, unpacked


@given(st.lists(st.lists(st.integers(0, 2**31))))
def test_words_come_back(lists: list[list[int]]) -> None:
    numbers, counts = decoded([b"".join(map(code, numbers)) for numbers in lists])
    assert numbers.tolist() == [n for numbers in lists for n in numbers]
    assert counts.tolist() == list(map(len, lists))


@given(st.lists(st.one_of(st.integers(0, 300), st.integers(0, 2**62))))
def test_lists_come_back(values: list[int]) -> None:
    blob = packed(np.asarray(values, dtype=np.int64))
    assert unpacked(blob).tolist() == values
    assert len(blob) == 4 + len(values) + 8 * sum(value >= 255 for value in values)


def test_a_list_that_lacks_some_is_none() -> None:
    blob = packed(np.asarray([1, 255, 3, 256]))
    with pytest.raises(ValueError, match="lacks"):
        unpacked(blob[:-8])
    with pytest.raises(ValueError):  # noqa: PT011 - numpy's own words
        unpacked(blob[:5])
