"""Families of instances of users with memory, who click less or more after certain clicks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ...core.state import Floats
from ..users.memory import CascadeMDP
from .instance import Count, Instance, Seed, family, instance_of, load_instance

BOREDOM_FACTOR = 0.25
"""The factor by which all attractions are multiplied in the state in which users click least."""

Probabilities: TypeAlias = Callable[[Floats, Floats, np.random.Generator], tuple[Floats, Floats]]
"""A function that returns attraction ``(S, L)`` and transition ``(S, L + 1, S)``, given the
attraction in the best state ``(L,)``, the factor on the attraction in each state ``(S,)``, and a
random generator.
"""


def _from_probabilities(probabilities: Probabilities) -> Callable[..., Instance]:
    """Return a function that creates instances of users with memory from `Probabilities`, who
    all start in the first state. The function has the name of ``probabilities``, for `family`.
    """

    def make(
        n_states: Count = 4,
        n_items: Count = 12,
        n_positions: Count = 4,
        mean_sessions: float = 30.0,
        query: str = "",
        seed: Seed = 0,
    ) -> Instance:
        rng, origin = np.random.default_rng(seed), "drawn at random"
        if query:
            source = load_instance(query)
            attraction, origin = source.model("CM").attraction, source.origin
        else:
            attraction = rng.uniform(0.05, 0.5, n_items)
        users = CascadeMDP(
            *probabilities(attraction, np.linspace(1.0, BOREDOM_FACTOR, n_states), rng),
            n_positions=n_positions,
            first=np.eye(n_states)[0],
            mean_sessions=mean_sessions,
        )
        return instance_of([users], origin)

    make.__name__ = probabilities.__name__
    return make


@family("The next state does not depend on clicks, so myopic lists are optimal (users with memory)")
@_from_probabilities
def _independent(
    attraction: Floats, decay: Floats, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    n_states, n_items = len(decay), len(attraction)
    # Each state has the attractions in a different order, so its best items differ.
    order = rng.permuted(np.tile(np.arange(n_items), (n_states, 1)), axis=1)
    moves = rng.dirichlet(np.ones(n_states), n_states)
    return decay[:, None] * attraction[order], np.repeat(moves[:, None], n_items + 1, axis=1)


@family(
    "The more attractive half of the items is bait: after clicking such an item, users click less "
    "(users with memory)"
)
@_from_probabilities
def _clickbait(
    attraction: Floats, decay: Floats, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    bait, identity = attraction > np.median(attraction), np.eye(len(decay))
    better, worse = _neighbours(len(decay))
    spoils, heals = 0.8 * worse + 0.2 * identity, 0.5 * better + 0.5 * identity
    after_click = np.where(bait[None, :, None], spoils[:, None], heals[:, None])
    return decay[:, None] * attraction, np.concatenate([after_click, identity[:, None]], axis=1)


@family("Clicks on one half of the items make users click more from then on (users with memory)")
@_from_probabilities
def _habit(attraction: Floats, decay: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    satisfies = np.where(rng.random(len(attraction)) < 0.5, 0.05, 0.6)[None, :, None]
    (less, more), identity = _neighbours(len(decay)), np.eye(len(decay))
    disappoints = 0.3 * less + 0.7 * identity
    after_click = satisfies * more[:, None] + (1.0 - satisfies) * disappoints[:, None]
    without_click = 0.1 * less + 0.9 * identity
    return decay[::-1, None] * attraction, np.concatenate(
        [after_click, without_click[:, None]], axis=1
    )


@family(
    "Each state has its own items that lead to the next state, in which users click more; the most "
    "tempting items lead back (users with memory)"
)
@_from_probabilities
def _journey(attraction: Floats, decay: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    n_states, n_items = len(decay), len(attraction)
    states, identity = np.arange(n_states)[:, None], np.eye(n_states)
    # Each item leads on in one state. The items are dealt to the states from the most to the least
    # attractive, so the items that lead on are about equally attractive in all states.
    state_of = np.empty(n_items, np.int64)
    state_of[np.argsort(-attraction, kind="stable")] = np.arange(n_items) % n_states
    leads_on = state_of == states
    # What led users to a state tempts them there. In the first state, the items that lead on in the
    # last state tempt.
    tempts = state_of == (states - 1) % n_states
    appeal = np.where(tempts, 1.0, 0.7)
    previous, following = _neighbours(n_states)
    after_click = np.select(
        [leads_on[:, :, None], tempts[:, :, None]],
        [following[:, None], previous[:, None]],
        identity[:, None],
    )
    return decay[::-1, None] * appeal * attraction, np.concatenate(
        [after_click, identity[:, None]], axis=1
    )


def _neighbours(n_states: int) -> tuple[Floats, Floats]:
    """Return the transition matrices ``(S, S)`` to the previous state and to the next state. A user
    in the first or the last state stays there if no such state exists.
    """
    previous, following = np.eye(n_states, k=-1), np.eye(n_states, k=1)
    previous[0, 0] = following[-1, -1] = 1.0
    return previous, following
