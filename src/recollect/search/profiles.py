"""Profiles by name: ours, the legs alone, and the published pipelines that ours is measured against."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace

from recollect.errors import UsageError
from recollect.ports import Stage
from recollect.search import spec
from recollect.search.combine import Combine
from recollect.search.fusion import MaxNorm, Rrf, Single, Weighted
from recollect.search.pipeline import Profile
from recollect.search.rerank import Rerank
from recollect.search.stages import Abstain, Boost, Collapse, Cut, Decay, Mmr, Newer, Quota, Settle, Spread, Suppress

_TWO_LEGS = ("lexical", "vector")
_FIRST_HITS = 6  # as many as are shown when nobody says; fixed, so that the order does not follow the limit

PROFILES = {
    p.name: p
    for p in (
        Profile(
            "default",
            Combine(),
            (Boost(), Suppress(), Collapse(), Spread(), Newer(), Settle(), Abstain(), Cut()),
            pool=50,  # with 70 or 100, nDCG@10 differs for one of 4,099 questions of twelve sets
        ),
        Profile("lexical", Single("lexical"), (Cut(on="score"),), legs=("lexical",)),
        Profile("vector", Single("vector"), (Cut(on="score"),), legs=("vector",)),
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
    chosen: Profile, *, fusion: str = "", stages: Sequence[str] = (), pool: int = 0, reranker: Rerank | None = None,
    session_share: float = 1.0,
) -> Profile:  # fmt: skip
    """A profile with what settings or flags change about it; a reranker goes right before the cut.

    A share of less than 1 bounds what conversations may take of the first hits of the default profile.
    """
    if fusion:
        chosen = replace(chosen, fusion=spec.fusion(fusion), name=f"{chosen.name}*")
    if stages:
        chosen = replace(chosen, stages=spec.stages(stages), name=f"{chosen.name.rstrip('*')}*")
    if pool:
        chosen = replace(chosen, pool=pool, pool_per_limit=0)
    last: list[Stage] = [] if reranker is None else [reranker]
    if session_share < 1.0 and chosen.name.startswith("default") and not stages:
        last.append(Quota((("sessions", round(_FIRST_HITS * session_share)),), window=_FIRST_HITS))
    if last:
        at = next((i for i, s in enumerate(chosen.stages) if isinstance(s, Cut)), len(chosen.stages))
        chosen = replace(chosen, stages=(*chosen.stages[:at], *last, *chosen.stages[at:]))
    return chosen


def profile(name: str) -> Profile:
    """The profile of a name, or an error that offers the nearest one."""
    if name in PROFILES:
        return PROFILES[name]
    close = difflib.get_close_matches(name, PROFILES, n=1)
    raise UsageError(
        f"no profile is called {name!r}",
        hint=f"did you mean {close[0]}?" if close else f"known: {', '.join(PROFILES)}",
    )
