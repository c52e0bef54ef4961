"""Content hashes are kept as bytes and read as they were given."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from notewell.store.rows import hash_kept, hash_of


@given(st.one_of(st.text(), st.text("0123456789abcdefABCDEF ", min_size=30, max_size=34)))
@example("0" * 32)
@example("AB" * 16)
@example("ab " * 16)
@example("hash0")
def test_whatever_is_kept_comes_back(content_hash: str) -> None:
    assert hash_of(hash_kept(content_hash)) == content_hash


def test_digits_take_half_the_room() -> None:
    assert hash_kept("0f" * 16) == b"\x0f" * 16
    assert hash_kept("0f" * 15) == "0f" * 15
