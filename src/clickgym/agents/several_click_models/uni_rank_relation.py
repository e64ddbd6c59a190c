"""Which items certainly beat which, for UniRank: a relation that is kept from session to session,
because computing it from all pairs would take most of a session.

Item i beats item j if ``τ_ji + sqrt(log log(t + 3) / n_ji) < 0``. When `end_weak_relations` has
returned False, the leader partition in ``part``, ``order`` and ``start`` is that of
`topological_layers` for this relation.

A comparison changes the relation of one pair. Without a comparison, a relation can only end,
because log log(t + 3) grows. If each session computed the relation from the counts, it would take
1.6 times as long with 10 items, and 5 times with 100.

Fields of the state:

- ``beats``: whether item i beats item j.
- ``may_win``: False only if item i beats no other item.
- ``weakest``: a lower bound of difference² / n over the pairs in the relation; while it exceeds
  log log(t + 3), no relation ends.
- ``settled``: whether the leader partition is up to date with the relation.
"""

from __future__ import annotations

import math

import numpy as np

from ...core.kernels import kernel


@kernel
def log_log_t(state):
    return math.log(math.log(state.t[0] + 3.0))


@kernel
def strength(state, i, j):
    """Return τ² n for a pair of items. If τ > 0, item i beats item j when this number exceeds log
    log(t + 3).
    """
    d = float(state.difference[i, j])
    return d * d / state.compared[i, j]


@kernel
def set_relation(state, i, j, i_beats):
    """Record whether item i beats item j, and mark the leader partition as out of date if this may
    change the partition. A new relation changes nothing if i is already in a part above j. A
    relation that ends changes nothing if i is two or more parts above j; from the part directly
    above, i may have kept j out of that part.
    """
    if i_beats != (state.may_win[i] and state.beats[i, j]):
        state.beats[i, j] = i_beats
        state.may_win[i] = state.may_win[i] or i_beats
        if state.part[i] + (not i_beats) >= state.part[j]:
            state.settled[0] = False


@kernel
def note_comparison(state, i, j, threshold):
    """Update the relation of two items whose counts have changed. ``threshold`` is
    log log(t + 3).
    """
    certain = strength(state, i, j) > threshold
    if certain:
        state.weakest[0] = min(state.weakest[0], strength(state, i, j))
    set_relation(state, i, j, certain and state.difference[i, j] > 0)
    set_relation(state, j, i, certain and state.difference[i, j] < 0)


@kernel
def end_weak_wins(state, i):
    """End the relations in which an item beats another without enough evidence, and return whether
    the item still beats any other item.
    """
    remains = False
    for j in range(len(state.order)):
        if state.beats[i, j]:
            if strength(state, i, j) > log_log_t(state):
                state.weakest[0] = min(state.weakest[0], strength(state, i, j))
                remains = True
            else:
                set_relation(state, i, j, False)
    return remains


@kernel
def end_weak_relations(state):
    """End the relations without enough evidence in this session, and return whether the leader
    partition may have changed.
    """
    if state.weakest[0] <= log_log_t(state):  # some relations may have ended
        state.weakest[0] = np.inf
        for i in range(len(state.order)):
            if state.may_win[i]:
                state.may_win[i] = end_weak_wins(state, i)
    return not state.settled[0]
