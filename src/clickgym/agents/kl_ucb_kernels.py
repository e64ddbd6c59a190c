"""The state and the kernels of the agents with KL-UCB indices. The index U of an item with c clicks
in N examinations is the largest click rate q with N KL(c / N, q) ≤ b; `kl_indices` computes it.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from ..core.kernels import kernel
from ..core.state import Floats, Ints
from .kl_indices import sort_by_kl_index
from .shared_kernels import (
    examined_positions,
    exploration,
    log_likelihood,
    show_at,
    shuffle_ties,
)

C = 3.0  # c in the papers' confidence level, log t + c log log t


class KLUCBState(NamedTuple):
    clicks: Annotated[Ints, "L"]
    examined: Annotated[Ints, "L"]  # N, the examinations of each item
    peak: Annotated[Floats, "L"]  # c log(c/N) + (N-c) log((N-c)/N), the log-likelihood at ŵ
    indices: Annotated[Floats, "L", np.inf]  # U
    order: Annotated[Ints, "L", range]  # items, sorted by index
    t: Annotated[Ints, "1"]  # sessions so far
    positions: Annotated[Ints, "K", range]  # the position of the k-th largest index
    feedback: int
    c: float  # the constant of the confidence level


@kernel
def level_klucb(state):
    """Return b, the level of confidence in this session."""
    return exploration(state.t[0] + 1, state.c)


@kernel
def rank_klucb(state, rng, ranking):
    sort_by_kl_index(state, level_klucb(state), len(ranking))
    shuffle_ties(state.indices, state.order, rng, len(ranking))
    show_at(state.positions, state.order, ranking)


@kernel
def learn_klucb(state, item, click):
    state.clicks[item] += click
    state.examined[item] += 1
    state.peak[item] = log_likelihood(state.clicks[item], state.examined[item])


@kernel
def update_klucb(state, ranking, clicks):
    state.t[0] += 1
    for k in range(examined_positions(clicks, state.feedback)):
        learn_klucb(state, ranking[k], clicks[k])


@kernel
def forget_klucb(state, item):
    """Forget the clicks and examinations of an item."""
    state.clicks[item], state.examined[item], state.peak[item] = 0, 0, 0.0
    state.indices[item] = np.inf
