"""What the studies of Li and de Rijke 2019 share, cascading bandits where users change."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from .claims import LINEAR, Finding, Results, Values, estimate, number, ratio
from .study import Sweep

CM = "NonStationaryCMRank-v0"
ADAPTIVE = ("CascadeDUCB", "CascadeSWUCB")
LENGTH = 10_000
"""Sessions of an epoch in the paper."""
HORIZONS = (20_000, 80_000, 320_000, 1_280_000)
"""n of the runs with ten epochs of n / 10 sessions."""
GROWS = (
    "The n sessions have ten epochs. Regret per session at n = 1,280,000 is above 0.8 times (ours) "
    "that at a quarter of it."
)
FALLS = GROWS.replace("above", "below")


def switching(queries: Sequence[str], length: int = LENGTH) -> list[str]:
    """The paper's changes of each query, every so many sessions."""
    other = "" if length == LENGTH else f"length={length},"
    return [
        f"li2019-switching:query={query},{other}seed={seed}" for seed, query in enumerate(queries)
    ]


def growing(name: str, agents: Sequence[str]) -> list[Sweep]:
    """The same changes, ten epochs, in a longer and longer run: what the theorems are about."""
    return [
        Sweep(
            f"{name}-{n}",
            [CM],
            agents,
            horizon=n,
            runs=3,
            instances=partial(switching, length=n // 10),
            queries=100,
            windows=10,
            ends=(1.0,),
            scaled=False,
        )
        for n in HORIZONS
    ]


def per_session(results: Results, name: str, agent: str) -> list[Values]:
    """For each n ``(queries,)`` regret per session."""
    return [results[f"{name}-{n}"].rate(CM, agent, 0.0, 1.0) for n in HORIZONS]


def stays(results: Results, name: str, agent: str) -> Finding:
    """Whether regret grows linearly with n, at the longest runs."""
    rates = per_session(results, name, agent)
    return estimate(rates[-1] - LINEAR * rates[-2]).above(0.0, in_words(rates))


def falls(results: Results, name: str, agent: str) -> Finding:
    """Whether regret grows more slowly than n, at the longest runs."""
    rates = per_session(results, name, agent)
    return estimate(rates[-1] - LINEAR * rates[-2]).below(0.0, in_words(rates))


def in_words(rates: Sequence[Values]) -> str:
    """The means of each n, and by how much the last differs from the one before."""
    means = ", ".join(number(values.mean()) for values in rates)
    return f"{means} per session; the last is {ratio(rates[-1], rates[-2])} times the one before"
