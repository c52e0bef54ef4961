"""Numbers in few bytes come back as they were."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.store.sqlite.varint import checksum, decode, encode, numbers_in, pack, unpack


@given(st.lists(st.lists(st.integers(0, 2**31))))
def test_words_come_back(lists: list[list[int]]) -> None:
    numbers, counts = decode([b"".join(map(encode, numbers)) for numbers in lists])
    assert numbers.tolist() == [n for numbers in lists for n in numbers]
    assert counts.tolist() == list(map(len, lists))
    assert [numbers_in(b"".join(map(encode, numbers))) for numbers in lists] == lists


@given(st.lists(st.one_of(st.integers(0, 300), st.integers(0, 2**62))))
def test_lists_come_back(values: list[int]) -> None:
    blob = pack(np.asarray(values, dtype=np.int64))
    assert unpack(blob).tolist() == values
    assert len(blob) == 4 + len(values) + 8 * sum(value >= 255 for value in values)


def test_an_incomplete_list_is_an_error() -> None:
    blob = pack(np.asarray([1, 255, 3, 256]))
    with pytest.raises(ValueError, match="incomplete"):
        unpack(blob[:-8])
    with pytest.raises(ValueError):  # noqa: PT011 - numpy's own words
        unpack(blob[:5])


@pytest.mark.parametrize("blob", [b"\x80", b"\xff\xff\xff\xff\xff\x01"])
def test_a_number_that_does_not_end_or_is_too_long_is_an_error(blob: bytes) -> None:
    with pytest.raises(ValueError, match="number"):
        decode([b"\x01", blob, b"\x01"])
    with pytest.raises(ValueError, match="number"):
        numbers_in(b"\x01" + blob)


def test_a_checksum_is_over_all_blobs_in_order() -> None:
    assert checksum(b"ab", b"c") == checksum(b"abc") != checksum(b"c", b"ab")
