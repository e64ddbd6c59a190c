"""Families of instances of stateful users."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...core.checks import check_count, check_positions, check_seed
from ..memory.model import CascadeMDP
from .instance import Instance, family, instance_of, load_instance

Floats: TypeAlias = NDArray[np.float64]

BORED = 0.25
"""What is left of the attraction in the last state of the families of stateful users."""

Chances: TypeAlias = Callable[[Floats, Floats, np.random.Generator], tuple[Floats, Floats]]
"""Attraction ``(S, L)`` and transition ``(S, L + 1, S)`` by attraction in the best state, and how
much of it is left in each.
"""


def _stateful(name: str) -> Callable[[Chances], Chances]:
    """Register a family of stateful users, who begin in the first state."""

    def register(chances: Chances) -> Chances:
        def make(
            n_states: int = 4,
            n_items: int = 12,
            n_positions: int = 4,
            mean_sessions: float = 30.0,
            query: str = "",
            seed: int = 0,
        ) -> Instance:
            check_count("n_states", n_states)
            check_seed(seed)
            rng, origin = np.random.default_rng(seed), "drawn at random"
            if query:
                source = load_instance(query)
                attraction, origin = source.model("CM").attraction, source.origin
                check_positions(n_positions, len(attraction))
            else:
                check_positions(n_positions, check_count("n_items", n_items))
                attraction = rng.uniform(0.05, 0.5, n_items)
            users = CascadeMDP(
                *chances(attraction, np.linspace(1.0, BORED, n_states), rng),
                n_positions=n_positions,
                first=np.eye(n_states)[0],
                mean_sessions=mean_sessions,
            )
            return instance_of([users], origin)

        make.__doc__ = chances.__doc__
        family(name)(make)
        return chances

    return register


@_stateful("independent")
def _independent(
    attraction: Floats, decay: Floats, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Users who come back in another state, whatever they clicked: to look at one session alone is
    optimal (with a memory)
    """
    n_states, n_items = len(decay), len(attraction)
    # Each state has its own favourites.
    order = rng.permuted(np.tile(np.arange(n_items), (n_states, 1)), axis=1)
    moves = rng.dirichlet(np.ones(n_states), n_states)
    return decay[:, None] * attraction[order], np.repeat(moves[:, None], n_items + 1, axis=1)


@_stateful("clickbait")
def _clickbait(
    attraction: Floats, decay: Floats, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Users whom the more attractive half of the items disappoints: after a click on bait they
    click less (with a memory)
    """
    bait, stays = attraction > np.median(attraction), np.eye(len(decay))
    better, worse = _neighbours(len(decay))
    spoils, heals = 0.8 * worse + 0.2 * stays, 0.5 * better + 0.5 * stays
    after = np.where(bait[None, :, None], spoils[:, None], heals[:, None])
    return decay[:, None] * attraction, np.concatenate([after, stays[:, None]], axis=1)


@_stateful("habit")
def _habit(attraction: Floats, decay: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Users who make a habit of it: clicks on items that satisfy let them click more from then on
    (with a memory)
    """
    satisfies = np.where(rng.random(len(attraction)) < 0.5, 0.05, 0.6)[None, :, None]
    (less, more), stays = _neighbours(len(decay)), np.eye(len(decay))
    disappoints = 0.3 * less + 0.7 * stays
    after = satisfies * more[:, None] + (1.0 - satisfies) * disappoints[:, None]
    none = 0.1 * less + 0.9 * stays
    return decay[::-1, None] * attraction, np.concatenate([after, none[:, None]], axis=1)


def _neighbours(n_states: int) -> tuple[Floats, Floats]:
    """The moves from each state to the one before and to the one after; there is no state beyond
    the ends.
    """
    before, after = np.eye(n_states, k=-1), np.eye(n_states, k=1)
    before[0, 0] = after[-1, -1] = 1.0
    return before, after
