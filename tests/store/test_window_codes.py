"""Windows as bytes: near what floats would give, and never an error, whatever the bytes are."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.store import window_codes
from notewell.store.window_codes import KnownWindows, pack
from notewell.types import Vectors
from tests.store.made import Window, nearest

DIM, KEPT = 384, 192


def units(count: int, *, seed: int = 0, dim: int = DIM, spread: float = 1.0) -> Vectors:
    """Random unit rows; with a `spread` of more than 1 a few dimensions are many times larger than
    the rest.
    """
    rows = np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)
    rows[:, :4] *= spread
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)  # type: ignore[no-any-return]


def spans(count: int) -> list[tuple[int, int]]:
    return [(10 * n, 10 * n + 12) for n in range(count)]


def cosines(rows: Vectors, question: Vectors, dims: int = KEPT) -> Vectors:
    """The oracle: the cosines of the first dimensions in floats."""
    rows, question = rows[:, :dims], question[:dims]
    return rows @ question / np.linalg.norm(rows, axis=1) / np.linalg.norm(question)  # type: ignore[no-any-return]


@pytest.mark.parametrize("spread", [1.0, 8.0])
@pytest.mark.parametrize("dims", [64, 128, 192, 256, 384])
def test_cosines_are_near_those_of_floats(dims: int, spread: float) -> None:
    rows = units(600, spread=spread)
    question = units(1, seed=1, spread=spread)[0] + rows[3]
    found = nearest({n: pack(rows[n : n + 1], spans(1), dims) for n in range(len(rows))}, question)
    error = np.array([found[n].cosine for n in range(len(rows))]) - cosines(rows, question, dims)
    assert np.sqrt((error**2).mean()) < 0.16 / dims**0.5 * spread**0.3
    assert abs(error.mean()) < 0.003


@given(st.integers(1, 12), st.integers(0, 2**32), st.integers(1, 48))
def test_the_best_window_of_each_passage_is_found_with_its_span(
    count: int, seed: int, half: int
) -> None:
    rows = units(3 * count, seed=seed, dim=96)
    passages = {
        n: pack(rows[n * count : (n + 1) * count], spans(count), 2 * half) for n in range(3)
    }
    for n in range(len(rows)):
        found = nearest(passages, rows[n])
        assert found.keys() == passages.keys()
        own = found[n // count]
        assert own.cosine == pytest.approx(1.0, abs=0.002)
        if half > 20:
            assert (own.start, own.end) == spans(count)[n % count]
        assert all(-1.0 <= one.cosine <= 1.0 for one in found.values())


def test_what_a_passage_gets_does_not_depend_on_the_others() -> None:
    rows, question = units(80), units(1, seed=9)[0]
    passages = {n: pack(rows[8 * n : 8 * n + 8], spans(8), KEPT) for n in range(10)}
    together = nearest(passages, question)
    assert together == {n: nearest({n: codes}, question)[n] for n, codes in passages.items()}
    for n, one in together.items():
        best = cosines(rows[8 * n : 8 * n + 8], question)
        assert best[one.start // 10] > best.max() - 0.05


def test_of_equal_windows_the_first_is_taken() -> None:
    rows = np.repeat(units(1), 3, axis=0)
    first = Window(pytest.approx(1.0, abs=0.001), 0, 12)  # type: ignore[arg-type]
    assert nearest({5: pack(rows, spans(3), KEPT)}, rows[0]) == {5: first}


def test_a_passage_of_four_hundred_tokens_stays_in_its_budget() -> None:
    codes = pack(units(8), spans(8), KEPT)
    assert len(codes) == 3 + 8 * (4 + 2 + 96)
    assert len(codes) + DIM + 4 <= 1300


def test_windows_of_several_sizes_are_read_side_by_side() -> None:
    rows = units(4)
    sizes = {1: 64, 2: 128, 3: 384, 4: 500}
    found = nearest({key: pack(rows, spans(4), dims) for key, dims in sizes.items()}, rows[2])
    assert {key: one.start for key, one in found.items()} == dict.fromkeys(sizes, 20)
    assert nearest({1: pack(rows, spans(4), 384)}, rows[2][:100]) == {}, (
        "a question with fewer dimensions than they have"
    )


def test_spans_beyond_what_fits_are_cut_and_no_direction_is_no_window() -> None:
    rows = units(3)
    rows[1] = 0
    codes = pack(rows, [(-5, 70_000), (1, 2), (3, 4)], KEPT)
    assert nearest({1: codes}, rows[0])[1][1:] == (0, 65_535)
    assert nearest({1: codes}, rows[2])[1][1:] == (3, 4)
    assert pack(rows[1:2], [(0, 1)], KEPT) == pack(rows[:0], [], KEPT) == b""
    assert nearest({}, rows[0]) == nearest({1: b""}, rows[0]) == {}
    assert nearest({1: codes}, np.zeros(DIM, dtype=np.float32))[1].cosine == 0.0


@given(st.binary(max_size=700), st.integers(0, 700), st.integers(0, 255))
def test_any_bytes_are_some_windows_or_none(noise: bytes, at: int, value: int) -> None:
    question = units(1, seed=3)[0]
    sound = pack(units(6), spans(6), KEPT)
    damaged = bytearray(sound)
    damaged[at % len(sound)] = value
    for codes in (noise, sound[:3] + noise, sound[:at], bytes(damaged)):
        found = nearest({1: codes, 2: sound}, question)
        assert found[2] == nearest({2: sound}, question)[2]
        assert all(-1.0 <= one.cosine <= 1.0 for one in found.values())


def test_a_scale_that_is_no_number_is_never_the_best() -> None:
    rows = units(2)
    codes = bytearray(pack(rows, spans(2), KEPT))
    codes[7:9] = np.array([np.nan], dtype="<f2").tobytes()
    assert nearest({1: bytes(codes)}, rows[0])[1].start == 10


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 4), st.sampled_from([32, 64])), max_size=40
    ),
    st.integers(),
)
def test_windows_that_were_added_in_any_steps_are_found_as_if_at_once(
    wanted: list[tuple[int, int, int]], seed: int
) -> None:
    rows, question = units(5, seed=abs(seed) % 1000), units(1, seed=1)[0]
    known, have = KnownWindows(), dict[int, bytes]()
    for key, count, dims in wanted:
        assert known.lacks([key, 99]) == [k for k in (key, 99) if k not in have]
        if key not in have:
            have[key] = pack(rows[:count], spans(count), dims) if count else b""
            known.add([key], [have[key]])
    keys = sorted(have, reverse=True)
    one, other = (
        known.nearest(keys, question),
        window_codes.nearest([have[key] for key in keys], question),
    )
    assert len(known) == len(have)
    for mine, theirs in zip(one, other, strict=True):
        assert sorted(mine.tolist()) == pytest.approx(sorted(theirs.tolist()), abs=2e-6)


def test_threads_that_add_windows_find_each_their_own() -> None:
    rows, question = units(3), units(1, seed=1)[0]
    codes, known = pack(rows, spans(3), KEPT), KnownWindows()
    expected = window_codes.nearest([codes], question).cosines.tolist()

    def ask(first: int) -> list[float]:
        found: list[float] = []
        for key in range(first, first + 300, 3):
            known.add([key], [codes])
            assert not known.lacks([key])
            found += known.nearest([key, first], question).cosines.tolist()
        return found

    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(ask, range(8)):
            assert found == expected * 200
