"""What GRAB remembers from earlier sessions to save time: that no other list is as good as its
leader, and the indices.

Only `GRAB` uses this module: its kernel `rank` asks `confirm_only_leader` and `kl_ucb_index`, and
its kernel `update` calls `note_change`. Both answers could be computed from the counts in every
session, by `margin` and `kl_upper`. With ten items, a session would take five times as long without
the stored indices, and 1.2 to 1.4 times as long without the stored margin (``speed/measure.py``).
`confirm_only_leader` tells exactly what `margin` tells, and `kl_ucb_index` returns
``kl_upper(mean, level / n)`` with an error of about 1e-11.

Fields of the state:

- ``ahead``, ``before`` and ``won``: when the means were ``before``, the leader was ahead of all
  other lists by ``ahead``. Since then, the margin has shrunk by at most the decreases of the
  leader's means plus the increases of other items' means, ``won`` at each position.
- ``upper``: the last index of each item at each position; 1 if never shown.
- ``minus_entropy``: ρ̂ log ρ̂ + (1 - ρ̂) log(1 - ρ̂).
- ``known``: which of the last two are up to date: neither (`NOTHING`), the entropy (`ENTROPY`), or
  both (`INDEX`).
"""

from __future__ import annotations

import numpy as np

from ...core.kernels import kernel
from ..common.kl_bounds import kl_upper_near, log_likelihood
from .assignment import ROUNDING, margin

NOTHING, ENTROPY, INDEX = 0, 1, 2


@kernel
def note_change(state, item, k):
    """Note that the mean of an item at position k has changed."""
    state.known[item, k] = NOTHING
    if item != state.leader[k]:
        state.won[k] = max(state.won[k], state.mean[item, k] - state.before[item, k])


# ------------------------------------------------------------------------------------- the leader


@kernel
def is_still_ahead(state):
    """Return whether the leader is certainly the only best list, because the means have changed too
    little since its margin was measured.
    """
    nearer = ROUNDING
    for k in range(len(state.leader)):
        item = state.leader[k]
        nearer += state.won[k] + max(state.before[item, k] - state.mean[item, k], 0.0)
    return nearer < state.ahead[0]


@kernel
def measure_margin(state):
    """Measure by how much the leader is ahead of all other lists, and store the means."""
    state.ahead[0] = margin(state.mean, state.leader, state.place_of, state.detour)
    for k in range(len(state.leader)):
        state.won[k] = 0.0
        for item in range(len(state.place_of)):
            state.before[item, k] = state.mean[item, k]


@kernel
def confirm_only_leader(state):
    """Return whether there is a leader, and no other list has an equal or larger sum of means."""
    if state.leader[0] < 0:
        return False
    if is_still_ahead(state):
        return True
    measure_margin(state)
    return state.ahead[0] > ROUNDING


# ------------------------------------------------------------------------------------ the indices


@kernel
def kl_ucb_index(state, item, k, level):
    """Return the KL-UCB index u of an item at position k."""
    n = state.shown[item, k]
    if level == np.inf:
        return 1.0
    if n > 0 and state.known[item, k] < INDEX:
        if state.known[item, k] == NOTHING:
            state.minus_entropy[item, k] = log_likelihood(state.clicks[item, k], n) / n
        peak = n * state.minus_entropy[item, k]
        state.upper[item, k] = kl_upper_near(
            state.clicks[item, k], n, peak, level, state.upper[item, k]
        )
        # without a horizon, the level changes in every session
        state.known[item, k] = INDEX if state.log_horizon >= 0.0 else ENTROPY
    return state.upper[item, k]
