"""Changes of attractions: each item has a window of recent clicks, and the odds that its attraction
has changed since the window began.

Time is counted in expected changes: 0.0003, plus the changes seen, whenever t grows by e.
"""

from __future__ import annotations

from clickgym.core.kernels import kernel

from .hypotheses import LEAST, estimate
from .state import DBN, DCM

FIRST_CHANGE = 0.0003
"""Changes expected before the first one is seen, whenever t grows by e."""
FALLEN = 0.05
"""A window closes when its odds fall below this: a change is 20 times less likely than none."""
HALF = 0.5 + 1e-9
"""A window closes when it holds more than half of the exposure of its item, rounding apart."""
ALARM = 1000.0
"""Odds of a change above which what was learned before it is forgotten."""


@kernel
def rate_of_changes(state):  # type: ignore[no-untyped-def]
    """How many changes are expected in a session."""
    return (FIRST_CHANGE + state.changes[1]) / max(state.t[0], 1)


@kernel
def close_window(state, i, began):  # type: ignore[no-untyped-def]
    state.recent_clicks[i], state.recent_exposure[i] = 0.0, 0.0
    state.odds[i], state.began[i] = 1.0, began


@kernel
def look_for_changes(state, ranking, clicks, n):  # type: ignore[no-untyped-def]
    """Compare, before the clicks are counted, how well windows and all clicks predict them."""
    h, now = state.leader[0], state.changes[0]
    for k in range(n):
        i, b = ranking[k], state.examined[h, k]
        # An item that was away for longer than its window is old may have changed meanwhile.
        away = now - state.seen[i]
        if state.odds[i] < 1.0 and away > rate_of_changes(state) * (1.0 + state.recent_exposure[i]):
            close_window(state, i, state.seen[i])
        state.seen[i] = now
        s, recent = state.total[i], state.recent_clicks[i]
        p = min(b * (1.0 + s) / (2.0 + max(s, state.exposure[h, i])), 1.0 - LEAST)
        q = min(b * (1.0 + recent) / (2.0 + max(recent, state.recent_exposure[i])), 1.0 - LEAST)
        state.odds[i] *= q / p if clicks[k] else (1.0 - q) / (1.0 - p)
        state.recent_clicks[i] += clicks[k]
        state.recent_exposure[i] += b


@kernel
def judge_windows(state, ranking, n):  # type: ignore[no-untyped-def]
    """Close windows that tell of no change; forget what is older than those that tell of one."""
    h, now = state.leader[0], state.changes[0]
    for k in range(n):
        i = ranking[k]
        exposure = state.exposure[h, i]
        if state.odds[i] < FALLEN or state.recent_exposure[i] > HALF * exposure:
            close_window(state, i, now)
        elif (now - state.began[i]) * state.odds[i] > ALARM:
            clicks = state.recent_clicks[i] / state.total[i] if state.total[i] > 0.0 else 0.0
            keep(state, i, clicks, state.recent_exposure[i] / exposure)
            # The first item to change makes it as likely as not that the others have, too.
            if state.began[i] > state.changes[2]:
                state.changes[1] += 1.0
                state.changes[2] = now
                for other in range(len(state.total)):
                    state.began[other] -= 1.0
                    state.seen[other] -= 1.0
                state.seen[i] = now
            close_window(state, i, now)


@kernel
def keep(state, i, clicks, displays):  # type: ignore[no-untyped-def]
    """Keep of an item these shares of its clicks and displays, and nothing of what follows clicks
    on it.
    """
    for x in range(len(state.continuation)):
        a = estimate(state, DBN if x <= len(state.total) else DCM, i)
        expected = state.continuation[x] * state.below[x, i] * a
        state.clicks_below[x] = max(state.clicks_below[x] - (1.0 - clicks) * expected, 0.0)
        state.below[x, i] *= displays
        state.slope[x, i] *= displays
    state.below[1 + i, :] = 0.0
    state.slope[1 + i, :] = 0.0
    state.clicks_below[1 + i] = 0.0
    for s in range(2):
        state.click_slope[s, i] *= clicks
    for k in range(len(state.gamma)):
        for j in range(k + 1):
            state.clicks[i, k, j] *= clicks
            state.displays[i, k, j] *= displays
    for h in range(len(state.exposure)):
        state.exposure[h, i] *= displays
    state.total[i] *= clicks
