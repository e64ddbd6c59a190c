"""Plain kernels in place of those that only save time.

`PLAIN` names, for each shortcut, an agent, a function that the agent's kernels call, and a plain
kernel that computes the same from the counts in every session. ``tests/agents/test_shortcuts.py``
checks that both give the same lists; `measure.py` measures what the shortcut saves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clickgym.agents.common import kl_ucb_kernels
from clickgym.agents.common.kl_bounds import kl_upper
from clickgym.agents.common.kl_ucb_kernels import solve_index
from clickgym.agents.common.ranking import sort_by_index
from clickgym.agents.position_based import grab, pbm_ts
from clickgym.agents.position_based.assignment import ROUNDING, margin
from clickgym.agents.position_based.attraction_posterior import draw_posterior
from clickgym.agents.several_click_models import uni_rank
from clickgym.core.kernels import kernel


@kernel
def sort_by_solved_index(state, bound, count):
    for item in range(len(state.indices)):
        state.indices[item] = solve_index(state, item, bound)
    sort_by_index(state.indices, state.order)


@kernel
def has_margin(state):
    if state.leader[0] < 0:
        return False
    return margin(state.mean, state.leader, state.place_of, state.detour) > ROUNDING


@kernel
def solved_index(state, item, k, level):
    n = state.shown[item, k]
    return kl_upper(state.mean[item, k], level / n) if n > 0 and level < np.inf else 1.0


@kernel
def draw_with_new_hat(state, item, rng):
    state.stale[item] = True
    return draw_posterior(state, item, rng)


@kernel
def compute_relation(state):
    """Compute from the counts which items beat which, and let the partition be divided again."""
    threshold = uni_rank.log_log_t(state)
    for i in range(len(state.order)):
        for j in range(len(state.order)):
            difference = float(state.difference[i, j])
            wins = difference > 0 and difference * difference > threshold * state.compared[i, j]
            state.beats[i, j] = wins
    return True


PLAIN: dict[str, tuple[str, Any, str, Any]] = {
    "indices near the last ones": (
        "CascadeKLUCB",
        kl_ucb_kernels,
        "sort_by_kl_index",
        sort_by_solved_index,
    ),
    "margin of the leader": ("GRAB", grab, "confirm_only_leader", has_margin),
    "indices until a click": ("GRAB", grab, "kl_ucb_index", solved_index),
    "relation of the items": ("UniRank", uni_rank, "end_weak_relations", compute_relation),
    "hat of each item": ("PBMTS", pbm_ts, "draw_posterior", draw_with_new_hat),
}
