"""Segments of postings come back from their bytes as they were."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.store.sqlite import postings
from notewell.store.sqlite.postings import (
    ascending,
    build,
    from_blobs,
    from_page,
    to_blobs,
    to_pages,
)

NUMBERS = st.lists(st.one_of(st.integers(1, 9), st.integers(1, 200_000)), max_size=12)


@given(
    st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), max_size=9),
    st.integers(1, 2**40),
    st.integers(1, 400),
)
def test_a_segment_comes_back(
    fields: list[tuple[list[int], list[int], list[int]]], first: int, often: int
) -> None:
    flat = [numbers * (often if n == 1 else 1) for row in fields for n, numbers in enumerate(row)]
    rows = np.asarray([first + 300 * n for n in range(len(fields))], dtype=np.int64)
    counts = np.asarray([len(numbers) for numbers in flat], dtype=np.int64)
    whole = build(
        rows, np.asarray([n for numbers in flat for n in numbers], dtype=np.int64), counts
    )
    blobs = to_blobs(whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postings, "PAGE", 5)
        pages = [from_page(page, whole.codes.dtype.itemsize) for page in to_pages(whole)]
    again = from_blobs(*blobs)
    assert again.rows.tolist() == ascending(blobs[0]).tolist() == rows.tolist()
    assert again.lengths.tolist() == whole.lengths.tolist()
    assert again.keys.tolist() == ascending(blobs[2]).tolist() == whole.keys.tolist()
    assert again.ends.tolist() == whole.ends.tolist()
    assert [place for places, _ in pages for place in places.tolist()] == whole.places.tolist()
    assert [code for _, codes in pages for code in codes.tolist()] == whole.codes.tolist()
    expected: dict[tuple[int, int], int] = {}
    for n, (head, body, exact) in enumerate(fields):
        for number in set(head) | set(body):
            expected[2 * number, n] = 2 * often * body.count(number) + (number in head)
        for number in set(exact):
            expected[2 * number + 1, n] = 2 * exact.count(number)
    owners = np.repeat(whole.keys, whole.counts).tolist()
    assert (
        dict(
            zip(zip(owners, whole.places.tolist(), strict=True), whole.codes.tolist(), strict=True)
        )
        == expected
    )
