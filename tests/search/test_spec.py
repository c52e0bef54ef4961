"""Stages from text, in the words that a stage shows in the trace."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notewell.errors import SettingsError
from notewell.search import spec
from notewell.search.combine import Combine
from notewell.search.fusion import MaxNorm, Rrf, Single, Weighted
from notewell.search.stages import Boost, Cut, Decay, Mmr, Quota, Suppress
from notewell.types import Stage


@pytest.mark.parametrize(
    ("text", "stage"),
    [
        ("decay", Decay()),
        ("decay(half_life_days=14, floor=0.5)", Decay(14.0, floor=0.5)),
        ("decay(tau_days=7)", Decay(tau_days=7.0)),
        (" Mmr(lambda=0.5) ", Mmr(0.5)),
        ("mmr(lambda_=0.5, depth=10)", Mmr(0.5, depth=10)),
        ("boost(paths=[('memory/work', 1.5)], pin=0)", Boost(paths=(("memory/work", 1.5),), pin=0)),
        ("suppress()", Suppress()),
        ("quota(most=[('memory', 3)])", Quota((("memory", 3),))),
        ("cut(min_score=0.3, on='score')", Cut(0.3, on="score")),
    ],
)
def test_a_stage_is_its_name_with_its_knobs(text: str, stage: Stage) -> None:
    assert spec.parse(text, spec.STAGES) == stage


@pytest.mark.parametrize(
    ("text", "fusion"),
    [
        ("default", Combine()),
        ("weighted(vector=0.5, text=0.5)", Weighted(0.5, 0.5)),
        ("rrf(normalised=False)", Rrf(normalised=False)),
        ("maxnorm", MaxNorm()),
        ("single(leg='vector')", Single("vector")),
    ],
)
def test_a_fusion_is_written_the_same_way(text: str, fusion: Stage) -> None:
    assert spec.fusion(text) == fusion


@pytest.mark.parametrize(
    "stage",
    [Decay(tau_days=7.0), Mmr(0.3), Suppress(), Quota((("memory", 2),)), Cut(0.35, on="score")],
)
def test_what_the_trace_shows_can_be_read_back(stage: Stage) -> None:
    assert spec.parse(repr(stage), spec.STAGES) == stage


def test_a_cut_is_added_where_none_is_named() -> None:
    assert spec.stages(["decay", "mmr"]) == (Decay(), Mmr(), Cut())
    assert spec.stages(["cut(min_score=0.2)", "mmr"]) == (Cut(0.2), Mmr())
    assert spec.stages([]) == (Cut(),)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("decy", "no stage is called 'decy'", "did you mean decay?"),
        ("xyzzy", "no stage is called 'xyzzy'", "known: decay, mmr, "),
        (
            "decay(halflife=3)",
            "decay has no knob 'halflife'",
            "it has: half_life_days, tau_days, floor, spare_evergreen",
        ),
        ("mmr(lamda=3)", "mmr has no knob 'lamda'", "it has: lambda, depth"),
        ("suppress(x=1)", "suppress has no knob 'x'", "it has: none"),
        (
            "boost(factor='len')",
            "boost has no knob 'factor'",
            "it has: sources, paths, importance, pin",
        ),
        ("mmr(**{})", "mmr has no knob None", "it has: lambda, depth"),
        ("decay(7)", "'decay(7)' is not a stage", "write name or name(knob=value)"),
        ("decay(", "'decay(' is not a stage", "write name or name(knob=value)"),
        ("", "'' is not a stage", "write name or name(knob=value)"),
        ("a.b()", "'a.b()' is not a stage", "write name or name(knob=value)"),
        (
            "mmr(depth=open('x'))",
            "mmr: depth must be a number, text or list",
            "write name or name(knob=value)",
        ),
        (
            "mmr(depth={[]: 1})",
            "mmr: depth must be a number, text or list",
            "write name or name(knob=value)",
        ),
        (
            "mmr(depth=1.5)",
            "mmr: depth must be a whole number, not 1.5",
            "write name or name(knob=value)",
        ),
        (
            "mmr(lambda='x')",
            "mmr: lambda must be a number, not 'x'",
            "write name or name(knob=value)",
        ),
        ("cut(on=3)", "cut: on must be text in quotes, not 3", "write name or name(knob=value)"),
        (
            "cut(min_score=True)",
            "cut: min_score must be a number, not True",
            "write name or name(knob=value)",
        ),
        (
            "decay(spare_evergreen=1)",
            "spare_evergreen must be True or False, not 1",
            "write name or name(knob=value)",
        ),
        ("boost(paths=3)", "boost: paths must be a list of pairs", 'such as [("memory", 2)]'),
        ("quota", "quota needs most", "it has: most, window"),
        ("decay(half_life_days=30, tau_days=7)", "different curves", "set one of them"),
    ],
)
def test_every_mistake_names_what_would_be_right(text: str, message: str, hint: str) -> None:
    with pytest.raises(SettingsError) as caught:
        spec.parse(text, spec.STAGES)
    assert message in str(caught.value)
    assert hint in caught.value.hint


@given(st.text(max_size=30) | st.text("decaymu(=)1.,'[] ", max_size=20))
def test_any_text_is_a_stage_or_a_settings_error(text: str) -> None:
    with contextlib.suppress(SettingsError):
        spec.parse(text, spec.STAGES)


def test_a_monstrous_text_is_no_stage() -> None:
    with pytest.raises(SettingsError):
        spec.parse("(" * 100_000, spec.STAGES)
