"""Regret of CascadeUCB1 and CascadeKL-UCB on nine kinds of users.

Users of Kveton et al. 2015 (Cascading Bandits).

K of L items attract with 0.2, the others with 0.2 - Δ. Each run has 100,000 sessions, and there are
20 runs. The paper's own table was not at hand. So the numbers are ours alone, and this page tests
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .claims import Results, Values, estimate, ratio
from .plots import Figure, finish, grid, points
from .study import Sweep, Table

TABLE1, CM = "kveton-table1", "CMRank-v0"
UCB1, KL = "CascadeUCB1", "CascadeKLUCB"
SIZES = [(n_items, k, 0.15) for n_items in (16, 32) for k in (2, 4, 8)]
SIZES += [(16, k, 0.075) for k in (2, 4, 8)]
"""L, K and Δ."""
USERS = {
    size: "kveton2015:n_items={},n_positions={},p=0.2,delta={}".format(*size) for size in SIZES
}
SWEEPS = [
    Sweep(TABLE1, [CM], (UCB1, KL), 100_000, runs=20, instances=list(USERS.values()), scaled=False)
]
"""Nine kinds of users: K of L items attract with 0.2, the others with 0.2 - Δ."""


def regret(results: Results, size: tuple[int, int, float], agent: str) -> Values:
    """``(runs,)`` regret at the end."""
    curves = results[TABLE1]
    return curves.by_instance(CM, agent)[curves.instances.index(USERS[size])]


def table(results: Results) -> Table:
    """Regret of each size."""
    rows = [["L", "K", "Δ", UCB1, KL]]
    for size in SIZES:
        ends = [str(estimate(regret(results, size, agent))) for agent in (UCB1, KL)]
        rows.append([*map(str, size), *ends])
    return "Regret after 100,000 sessions, over 20 runs of each kind of users", rows


def seen(results: Results) -> Iterator[str]:
    """What the KL index is worth."""
    shares = [ratio(*(regret(results, size, agent) for agent in (KL, UCB1))).mean for size in SIZES]
    low, high = min(shares), max(shares)
    yield f"CascadeKL-UCB has {low:.2f} to {high:.2f} times the regret of CascadeUCB1."


def draw(results: Results) -> Figure:
    """Regret against the length of the list."""
    figure, panels = grid(3, labels=["regret after 100,000 sessions"])
    kinds = list(dict.fromkeys((n_items, gap) for n_items, _, gap in SIZES))
    for axes, (n_items, gap) in zip(panels, kinds, strict=True):
        lengths = [k for n, k, d in SIZES if (n, d) == (n_items, gap)]
        for agent in (UCB1, KL):
            values = [regret(results, (n_items, k, gap), agent) for k in lengths]
            points(axes, lengths, values, agent)
        axes.set(title=f"L = {n_items}, Δ = {gap:g}", xlabel="K", ylim=(0, None))
        axes.set_xticks(np.array(lengths))
    return finish(figure, panels[:1], results, "Regret in the cascade model")
