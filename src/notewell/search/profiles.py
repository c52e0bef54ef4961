"""Profiles by name: ours, each leg alone, and the published pipelines that ours is compared
with.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace

from notewell.errors import UsageError
from notewell.search import spec
from notewell.search.combine import Combine
from notewell.search.current import Newer, Replies
from notewell.search.fusion import MaxNorm, Rrf, Single, Weighted
from notewell.search.pipeline import Profile
from notewell.search.stages import (
    Abstain,
    Boost,
    Collapse,
    Cut,
    Decay,
    Listing,
    Mmr,
    NotesFirst,
    Quota,
    Rerank,
    Settle,
    Spread,
    Suppress,
)
from notewell.types import Stage

_TWO_LEGS = ("lexical", "vector")
_WINDOWS = 200
_FIRST_HITS = 6  # the default limit; fixed, so that the order does not depend on the limit

PROFILES = {
    p.name: p
    for p in (
        Profile(
            "default",
            Combine(),
            (
                Boost(),
                Suppress(),
                Collapse(),
                Spread(),
                Listing(),
                NotesFirst(),
                Newer(),
                Settle(),
                Replies(),
                Abstain(),
                Cut(0.005),
            ),
            # with 70 or 100 and bge-small, nDCG@10 changed for one of 4,099 questions of twelve
            # sets
            pool=50,
            windows=_WINDOWS,
        ),
        Profile("lexical", Single("lexical"), (Cut(on="score"),), legs=("lexical",), pool=50),
        Profile(
            "vector",
            Single("vector"),
            (Cut(on="score"),),
            legs=("vector",),
            pool=50,
            windows=_WINDOWS,
        ),
        Profile("openclaw", Weighted(), (Cut(0.35, on="score"),), legs=_TWO_LEGS, pool_per_limit=4),
        Profile(
            "openclaw-2026.2.13",
            Weighted(silent_is_zero=True, clamped=True),
            (Cut(0.35, on="score"),),
            legs=_TWO_LEGS,
            pool_per_limit=4,
            join="AND",
        ),
        Profile("maxnorm", MaxNorm(), (Decay(30.0), Mmr(0.7), Cut(on="score")), legs=_TWO_LEGS),
        Profile("rrf", Rrf(0.7, 0.3), (Cut(on="score"),), legs=_TWO_LEGS),
        Profile(
            "siftcoder",
            Rrf(1.0, 1.0, normalised=False),
            (Decay(tau_days=7.0), Suppress(), Cut(on="score")),
            legs=_TWO_LEGS,
            pool=50,
            limit=5,
        ),
    )
}


def adapted(
    chosen: Profile,
    *,
    fusion: str = "",
    stages: Sequence[str] = (),
    pool: int = 0,
    reranker: Rerank | None = None,
    session_share: float = 1.0,
    windows: int = -1,
) -> Profile:
    """A profile with the changes that settings or flags ask for.

    A reranker goes before the stages that put the newer of two notes first, judge the answer as a
    whole or cut it: a model that reads one passage at a time does not know which of two is still
    true. A number of `windows` below 0 leaves it as it is in the profile. A `session_share` below 1
    limits how many of the first hits of the default profile may be conversations.
    """
    if fusion:
        chosen = replace(chosen, fusion=spec.fusion(fusion), name=f"{chosen.name}*")
    if stages:
        chosen = replace(chosen, stages=spec.stages(stages), name=f"{chosen.name.rstrip('*')}*")
    if pool:
        chosen = replace(chosen, pool=pool, pool_per_limit=0)
    if windows >= 0:
        chosen = replace(chosen, windows=windows)
    if reranker is not None:
        chosen = _with_stage(chosen, reranker, before=(Newer, Settle, Replies, Quota, Abstain, Cut))
    if session_share < 1.0 and chosen.name.startswith("default") and not stages:
        quota = Quota((("sessions", round(_FIRST_HITS * session_share)),), window=_FIRST_HITS)
        chosen = _with_stage(chosen, quota, before=(Cut,))
    return chosen


def _with_stage(chosen: Profile, stage: Stage, *, before: tuple[type, ...]) -> Profile:
    at = next((i for i, s in enumerate(chosen.stages) if isinstance(s, before)), len(chosen.stages))
    return replace(chosen, stages=(*chosen.stages[:at], stage, *chosen.stages[at:]))


def profile(name: str) -> Profile:
    """The profile with this name, or an error that suggests the nearest one."""
    if name in PROFILES:
        return PROFILES[name]
    close = difflib.get_close_matches(name, PROFILES, n=1)
    raise UsageError(
        f"no profile is called {name!r}",
        hint=f"did you mean {close[0]}?" if close else f"known: {', '.join(PROFILES)}",
    )
