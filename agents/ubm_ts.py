"""UBM-TS: Thompson sampling for users who browse as in the UBM, whose examination it learns, and who may change.

It is told nothing but the numbers of items and positions. Six parts, all but the first of which an argument switches off:

1. *Attraction.* Each item has a Beta posterior over its attraction α from its clicks S and its exposure E, the sum of the
   examination probabilities of its displays. A draw is made on the scale on which the variance is the same everywhere:
   ``asin √α`` is nearly normal, with mean ``asin √((S + 3/4) / (E + 3/2))`` and variance ``1 / (4 E + 6)``.
2. *Examination.* γ(k, j) is the probability that position k is examined if the last click above it was on j (Dupret and
   Piwowarski 2008); it contains the CM, where it is 0 below a click, and the PBM, where it does not depend on j. Given the
   attractions, the clicks on (k, j) are nearly Poisson, with a Gamma posterior, whose mean is taken.
3. *Continuation.* Where users are satisfied by some items more than by others, as in the DBN, examination below a click depends
   on the item, too: γ(k, j) is multiplied by ρ(i), the clicks below those on i over those expected without it.
4. *Arrangement.* The items of the largest draws are shown on the positions on which they get most clicks. Where ρ differs,
   another item may take the place of one that ends many sessions.
5. *Change.* Each item has a window of recent clicks, and the odds that its attraction has changed since the window began or
   since it was last seen (Shiryaev 1963), with a rate of changes that is learned as well.
6. *Guard.* Where a production list is given, only lists are shown that are worse than it by K/2 wrongly ordered pairs at most,
   as far as confidence intervals tell: the constraint of BubbleRank (Li et al. 2019).
"""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.checks import check_at_least, check_flag
from ..core.kernels import inner, kernel
from .agent import ANY_LIST, CompiledAgent, Seed
from .bubble_rank import check_initial
from .kernels import choose_largest, rank_available, rank_by_draw
from .state import Flags, Floats, Ints

RIGHT_ANGLE = math.pi / 2  # the largest asin √α
UNKNOWN, UNKNOWN_SPREAD = math.pi / 4, 0.5 / math.sqrt(1.5)  # of an item without displays
GROWTH = 0.005
"""Examination is estimated anew when there are so many more sessions: as if in each one, for a hundredth of the cost."""
CATCH_UP = 30
"""Steps of the Gibbs sampler at most, after a log was learned."""
PRIOR_CLICKS = 2.0
"""The weight of the prior of an examination probability, in expected clicks: it matters in the first sessions alone."""
FIRST_CHANGE = 0.003
"""Changes expected before the first one is seen, whenever t grows by e: an item is then tried a dozen times in 10⁵ sessions."""
FALLEN = 0.05
"""A window whose evidence of a change falls below this is closed: a change is then 20 times less likely than none."""
HALF = 0.5 + 1e-9
"""A window is closed when it holds more than half of the exposure of its item, rounding apart."""
ALARM = 1000.0
"""Odds of a change above which what was learned before it is forgotten: 1 in 1,000 alarms would be false in the model."""
FEW = 5.0
"""Expected clicks below an item from which on the item counts when the variance of ρ is estimated, as usual for χ²."""
SURE_EXCESS = 4.0
"""Standard deviations by which χ² must exceed its mean before ρ is anything but 1."""
RESERVE = 2
"""Of so many times K items the list may be made where ρ differs."""
CERTAIN = 2.5
"""Standard deviations to each side within which an estimate is taken to be true by the guard."""
SURE_GAIN = 2.0
"""An arrangement replaces page order if it promises more clicks by so many standard errors of the number of clicks."""
QUANTILES = np.array([-1.645, -1.036, -0.674, -0.385, -0.126, 0.126, 0.385, 0.674, 1.036, 1.645])
"""Of the normal law, 5 % to 95 %."""
TINY = 1e-9
"""Rounding error of expected clicks."""
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


class State(NamedTuple):
    # Of each item: counts, by the position k and the position j of the last click above, from 1; 0: no click above.
    clicks: Annotated[Floats, "L K K"]  # S_ikj
    displays: Annotated[Floats, "L K K"]  # N_ikj
    total: Annotated[Floats, "L"]  # S_i
    exposure: Annotated[Floats, "L"]  # E_i = Σ γ_kj N_ikj
    centre: Annotated[Floats, "L", UNKNOWN]  # of the posterior of asin √α
    spread: Annotated[Floats, "L", UNKNOWN_SPREAD]  # its standard deviation
    # Of each item: its window, and the evidence that it has changed.
    recent_total: Annotated[Floats, "L"]
    recent_exposure: Annotated[Floats, "L"]
    recent_centre: Annotated[Floats, "L", UNKNOWN]
    recent_spread: Annotated[Floats, "L", UNKNOWN_SPREAD]
    evidence: Annotated[Floats, "L", 1.0]  # Bayes factor of the window's own attraction to that of all clicks
    began: Annotated[Floats, "L"]  # the expected number of changes when the window began
    seen: Annotated[Floats, "L"]  # that when the item was last observed
    # How many changes are expected by now; how many were seen; the first when the last was seen.
    changes: Annotated[Floats, "3", (0.0, 0.0, -1.0)]
    # Of each item: what its clicks do to the positions below.
    clicks_below: Annotated[Floats, "L K K"]  # B_ikj, clicks on position k while i was clicked last, on j
    displays_below: Annotated[Floats, "L K K"]  # D_ikj, the sum of the attractions that were shown there
    continuation: Annotated[Floats, "L", 1.0]  # ρ_i
    # Of the positions.
    examination: Annotated[Floats, "K K", 1.0]  # γ_kj
    clicked: Annotated[Floats, "K K"]  # Σ_i S_ikj
    expected: Annotated[Floats, "K K"]  # Σ_i α_i N_ikj
    positions: Annotated[Ints, "K", range]  # where the item of the k-th largest draw is shown
    t: Annotated[Ints, "2", (0, 20)]  # displays; the display before which examination is estimated again
    differs: Annotated[Flags, "1"]  # whether ρ is anything but 1
    # Scratch.
    draws: Annotated[Floats, "L"]
    order: Annotated[Ints, "L", range]
    attraction: Annotated[Floats, "L"]  # of those items that the list may be made of
    last: Annotated[Floats, "K+1"]  # the probability that the last click was on a position
    row: Annotated[Ints, "K"]  # a list
    trial: Annotated[Ints, "K"]  # another one
    everything: Annotated[Flags, "L", True]  # all true
    # The production list.
    production: Ints  # (K,)
    place: Ints  # (L,) of each item, K for those that are not in it
    # Hyper-parameters.
    width: float  # 1 over the root of the sharpness
    learns_examination: bool
    learns_continuation: bool
    arranges: bool
    detects: bool
    guards: bool


# ------------------------------------------------------------------------------------------------------------- 1. attraction


@inner
def estimate_item(state, i):  # type: ignore[no-untyped-def]
    """The posterior of asin √α, for all clicks and for those of the window."""
    n = max(state.total[i], state.exposure[i]) + 1.5
    state.centre[i] = math.asin(math.sqrt((state.total[i] + 0.75) / n))
    state.spread[i] = 0.5 / math.sqrt(n)
    n = max(state.recent_total[i], state.recent_exposure[i]) + 1.5
    state.recent_centre[i] = math.asin(math.sqrt((state.recent_total[i] + 0.75) / n))
    state.recent_spread[i] = 0.5 / math.sqrt(n)


@inner
def attraction_at(angle):  # type: ignore[no-untyped-def]
    root = math.sin(min(max(angle, 0.0), RIGHT_ANGLE))
    return root * root


@inner
def draw_attractions(state, rng):  # type: ignore[no-untyped-def]
    """A draw for each item: from all of its clicks, or, with the odds of a change, from those since, or from the prior."""
    u, now = rng.random(), state.changes[0]
    for i in range(len(state.draws)):
        z = state.width * rng.standard_normal()
        if state.detects:
            unseen = now - state.seen[i]
            odds = unseen + (now - state.began[i]) * state.evidence[i]
            u += GOLDEN  # as good as a number of its own for each item
            u -= u >= 1.0
            if u * (1.0 + odds) < unseen:
                state.draws[i] = UNKNOWN + UNKNOWN_SPREAD * z
                continue
            if u * (1.0 + odds) < odds:
                state.draws[i] = state.recent_centre[i] + state.recent_spread[i] * z
                continue
        state.draws[i] = state.centre[i] + state.spread[i] * z


# ------------------------------------------------------------------------------------------------------------ 2. examination


@inner
def sum_over_items(state, rng):  # type: ignore[no-untyped-def]
    """What tells of γ_kj, for a draw of the attractions."""
    state.clicked[:] = 0.0
    state.expected[:] = 0.0
    for i in range(len(state.draws)):
        if state.exposure[i] == 0.0:
            continue
        alpha = attraction_at(state.centre[i] + state.width * state.spread[i] * rng.standard_normal())
        for k in range(len(state.positions)):
            for j in range(k + 1):
                state.clicked[k, j] += state.clicks[i, k, j]
                state.expected[k, j] += alpha * state.displays[i, k, j]


@inner
def draw_examination(state, rng):  # type: ignore[no-untyped-def]
    """A step of a Gibbs sampler: attractions given γ, γ given them; then the exposure of each item.

    The prior of γ_k0 is about γ_(k-1)0, that of γ_kj about γ_k0 times what clicks above cost on average. The largest γ is 1,
    for only the products with attractions can be known.
    """
    sum_over_items(state, rng)
    n, m = len(state.positions), PRIOR_CLICKS
    above, clicked, expected, largest = 1.0, m, m, 0.0
    for k in range(n):
        clicks, weight = state.clicked[k, 0] + m * above, state.expected[k, 0] + m
        state.examination[k, 0] = above = clicks / weight
        largest = max(largest, above)
        for j in range(1, k + 1):
            clicked += state.clicked[k, j]
            expected += state.expected[k, j] * above
    for k in range(n):
        for j in range(1, k + 1):
            clicks = state.clicked[k, j] + m * clicked / expected * state.examination[k, 0]
            weight = state.expected[k, j] + m
            state.examination[k, j] = clicks / weight
            largest = max(largest, state.examination[k, j])
    for k in range(n):
        for j in range(k + 1):
            state.examination[k, j] /= largest
    for i in range(len(state.draws)):
        if state.exposure[i] > 0.0:
            before, state.exposure[i] = state.exposure[i], 0.0
            for k in range(n):
                for j in range(k + 1):
                    state.exposure[i] += state.examination[k, j] * state.displays[i, k, j]
            state.recent_exposure[i] *= state.exposure[i] / before
            estimate_item(state, i)


# ----------------------------------------------------------------------------------------------------------- 3. continuation


@inner
def estimate_continuation(state):  # type: ignore[no-untyped-def]
    """ρ_i = B_i / X_i, where X_i are the clicks below i that were expected if all items were alike, as in a contingency table.

    It is shrunk to 1 by its variance over the items, and is 1 unless χ² tells that they differ.
    """
    expected, n, excess, weight = state.draws, 0, 0.0, 0.0
    expected[:] = 0.0
    for k in range(len(state.positions)):
        for j in range(1, k + 1):
            displays = state.displays_below[:, k, j].sum()
            if displays > 0.0:
                rate = state.clicks_below[:, k, j].sum() / displays
                for i in range(len(expected)):
                    expected[i] += rate * state.displays_below[i, k, j]
    for i in range(len(expected)):
        if expected[i] >= FEW:
            n += 1
            excess += (state.clicks_below[i].sum() - expected[i]) ** 2 / expected[i] - 1.0
            weight += expected[i]
    state.differs[0] = excess > SURE_EXCESS * math.sqrt(2.0 * n)
    for i in range(len(expected)):
        state.continuation[i] = 1.0
        if state.differs[0]:
            m = weight / excess
            state.continuation[i] = (state.clicks_below[i].sum() + m) / (expected[i] + m)


# ------------------------------------------------------------------------------------------------------------ 4. arrangement


@inner
def expected_clicks(state, items, n):  # type: ignore[no-untyped-def]
    """On the list of the first n items, if attractions are ``attraction``."""
    total = 0.0
    state.last[0] = 1.0
    for k in range(n):
        clicks = 0.0
        for j in range(k + 1):
            rho = state.continuation[items[j - 1]] if j > 0 else 1.0
            p = state.last[j] * state.attraction[items[k]] * min(state.examination[k, j] * rho, 1.0)
            state.last[j] -= p
            clicks += p
        state.last[k + 1] = clicks
        total += clicks
    return total


@inner
def swap(array, i, j):  # type: ignore[no-untyped-def]
    array[i], array[j] = array[j], array[i]


@inner
def improve(state, items, n, least, at_once):  # type: ignore[no-untyped-def]
    """Exchange two of the first n items, or one of them and a later one, as long as this brings more than ``least`` clicks.

    Each exchange is the best one, or, in half of the time, the next one that is found.
    """
    clicks = expected_clicks(state, items, n)
    for _ in range(2 * n):
        gain, first, second = least, -1, -1
        for x in range(n):
            for y in range(x + 1, len(items)):
                swap(items, x, y)
                more = expected_clicks(state, items, n) - clicks
                if more > gain:
                    first, second = x, y
                    if at_once:
                        clicks += more
                        continue
                    gain = more
                swap(items, x, y)
        if first < 0:
            return
        if not at_once:
            swap(items, first, second)
            clicks += gain


@inner
def arrange(state):  # type: ignore[no-untyped-def]
    """The positions of the best items: those in page order, but for exchanges that surely bring clicks."""
    n = len(state.positions)
    choose_largest(state.centre, state.order, n)
    for k in range(n):
        state.attraction[state.order[k]] = attraction_at(state.centre[state.order[k]])
        state.row[k] = state.order[k]
    clicks = expected_clicks(state, state.row, n)
    improve(state, state.row, n, SURE_GAIN * math.sqrt(clicks / state.t[0]), False)
    for k in range(n):
        for place in range(n):
            if state.row[place] == state.order[k]:
                state.positions[k] = place


@inner
def arrange_draws(state, n_available):  # type: ignore[no-untyped-def]
    """The list that gets most clicks if attractions are as drawn, as far as exchanges find it."""
    n = len(state.positions)
    items = state.order[: min(RESERVE * n, n_available)]
    choose_largest(state.draws, state.order, len(items))
    for k in range(len(items)):
        state.attraction[items[k]] = attraction_at(state.draws[items[k]])
    improve(state, items, n, TINY, True)


# ----------------------------------------------------------------------------------------------------------------- 5. change


@inner
def rate_of_changes(state):  # type: ignore[no-untyped-def]
    """How many changes are expected in the next session."""
    return (FIRST_CHANGE + state.changes[1]) / max(state.t[0], 1)


@inner
def close_window(state, i, began):  # type: ignore[no-untyped-def]
    state.recent_total[i], state.recent_exposure[i], state.evidence[i], state.began[i] = 0.0, 0.0, 1.0, began


@inner
def weigh(state, i, click, gamma):  # type: ignore[no-untyped-def]
    """Evidence of an observation: how much better the window foretells it than all clicks do."""
    now = state.changes[0]
    # An item that was away for longer than its window is old may have changed in between: the window begins there.
    if state.evidence[i] < 1.0 and now - state.seen[i] > rate_of_changes(state) * (1.0 + state.recent_exposure[i]):
        close_window(state, i, state.seen[i])
    state.seen[i] = now
    p = (1.0 + state.total[i]) / (2.0 + max(state.total[i], state.exposure[i]))
    q = (1.0 + state.recent_total[i]) / (2.0 + max(state.recent_total[i], state.recent_exposure[i]))
    state.evidence[i] *= q / p if click else (1.0 - gamma * q) / (1.0 - gamma * p)
    state.recent_total[i] += click
    state.recent_exposure[i] += gamma


@inner
def forget(state, i):  # type: ignore[no-untyped-def]
    """Keep of an item what its window holds; the first item to change makes it as likely as not that the others have, too."""
    clicks = state.recent_total[i] / state.total[i] if state.total[i] > 0.0 else 0.0
    displays = state.recent_exposure[i] / state.exposure[i]
    state.clicks_below[i, :, :] = 0.0
    state.displays_below[i, :, :] = 0.0
    state.continuation[i] = 1.0
    for k in range(len(state.positions)):
        for j in range(k + 1):
            state.clicks[i, k, j] *= clicks
            state.displays[i, k, j] *= displays
    state.total[i], state.exposure[i] = state.recent_total[i], state.recent_exposure[i]
    if state.began[i] > state.changes[2]:
        state.changes[1] += 1.0
        state.changes[2] = state.changes[0]
        for other in range(len(state.draws)):
            state.began[other] -= 1.0
            state.seen[other] -= 1.0
        state.seen[i] = state.changes[0]
    close_window(state, i, state.changes[0])


@inner
def judge_window(state, i):  # type: ignore[no-untyped-def]
    now = state.changes[0]
    if state.evidence[i] < FALLEN or state.recent_exposure[i] > HALF * state.exposure[i]:
        close_window(state, i, now)
    elif (now - state.began[i]) * state.evidence[i] > ALARM:
        forget(state, i)


# ------------------------------------------------------------------------------------------------------------------ 6. guard


@inner
def is_better(state, x, y):  # type: ignore[no-untyped-def]
    """Whether an item is certainly more attractive than another."""
    return state.centre[x] - state.centre[y] > CERTAIN * (state.spread[x] + state.spread[y])


@inner
def wrong_with(state, row, place):  # type: ignore[no-untyped-def]
    """In how many pairs an item is ordered wrongly at most, whatever its attraction may be."""
    x, most = row[place], 0
    for z in QUANTILES:
        angle = min(max(state.centre[x] + z * state.spread[x], 0.0), RIGHT_ANGLE)
        wrong = 0
        for k in range(len(row)):
            y = row[k]
            if k < place:
                wrong += angle > state.centre[y] - CERTAIN * state.spread[y]
            elif k > place:
                wrong += angle < state.centre[y] + CERTAIN * state.spread[y]
        most = max(most, wrong)
    return most


@inner
def wrong_pairs(state, row):  # type: ignore[no-untyped-def]
    """How many more pairs than in production are ordered wrongly, at most.

    Of two items of production that have exchanged their order, the pair is wrong, unless it certainly was before; other items
    may be wrong in all of their pairs.
    """
    n, wrong = len(row), 0
    for k in range(n):
        if state.place[row[k]] == n:
            wrong += wrong_with(state, row, k)
            continue
        for below in range(k + 1, n):
            if state.place[row[below]] < state.place[row[k]]:
                wrong += -1 if is_better(state, row[k], row[below]) else 1
    return wrong


@inner
def sort_production(state, row):  # type: ignore[no-untyped-def]
    """Sort by draws, as far as it is allowed."""
    wrong = 0
    for k in range(1, len(row)):
        x, place = row[k], k
        while place > 0 and state.draws[row[place - 1]] < state.draws[x]:
            worse = -1 if is_better(state, x, row[place - 1]) else 1
            if 2 * (wrong + worse) > len(row):
                break
            wrong += worse
            row[place] = row[place - 1]
            place -= 1
        row[place] = x


@inner
def best_outside(state, row, available):  # type: ignore[no-untyped-def]
    """The item of the largest draw that is not in the list; -1 if there is none."""
    best = -1
    for i in range(len(state.draws)):
        if available[i] and (best < 0 or state.draws[i] > state.draws[best]):
            inside = False
            for k in range(len(row)):
                inside = inside or row[k] == i
            if not inside:
                best = i
    return best


@inner
def try_in(state, row, x, leaving, place):  # type: ignore[no-untyped-def]
    """Put an item on a place of the list, and take another one out, if that is allowed."""
    trial, n, k = state.trial, len(row), 0
    for y in range(n):
        if y != leaving:
            trial[k + (k >= place)] = row[y]
            k += 1
    trial[place] = x
    if 2 * wrong_pairs(state, trial) > n:
        return False
    for k in range(n):
        row[k] = trial[k]
    return True


@inner
def guarded(state, available):  # type: ignore[no-untyped-def]
    """From production towards the list of the draws: first the order, then, one by one, the best items from outside.

    An item of which little is known enters in the middle, where it cannot be wrong with more than half of the others.
    """
    row, n, filled = state.row, len(state.row), 0
    for k in range(n):
        if available[state.production[k]]:
            row[filled] = state.production[k]
            filled += 1
    while filled < n:  # items of production that are not there
        row[filled] = -1
        row[filled] = best_outside(state, row[:filled], available)
        filled += 1
    sort_production(state, row)
    for _ in range(n):
        x, leaving, place = best_outside(state, row, available), n - 1, 0
        for k in range(n):
            if state.draws[row[k]] < state.draws[row[leaving]]:
                leaving = k
        if x < 0 or state.draws[x] <= state.draws[row[leaving]]:
            return
        for k in range(n):
            place += state.draws[row[k]] > state.draws[x]
        if not (try_in(state, row, x, leaving, place) or try_in(state, row, x, leaving, n // 2)):
            return


# -------------------------------------------------------------------------------------------------------------- the sessions


@kernel
def count_display(state):  # type: ignore[no-untyped-def]
    state.t[0] += 1
    state.changes[0] += rate_of_changes(state)


@inner
def begin_session(state, rng):  # type: ignore[no-untyped-def]
    t = state.t[0] + 1
    if t >= state.t[1]:
        if state.learns_examination:
            steps = 1 + int(math.log(t / max(state.t[1], 1)) / GROWTH)
            for _ in range(min(steps, CATCH_UP)):
                draw_examination(state, rng)
        if state.learns_continuation:
            estimate_continuation(state)
        if state.arranges and t > 1:
            arrange(state)
        state.t[1] = t + 1 + int(GROWTH * t)
    count_display(state)
    draw_attractions(state, rng)


@inner
def show(state, ranking, n_available):  # type: ignore[no-untyped-def]
    if state.differs[0] and state.arranges:
        arrange_draws(state, n_available)
    for k in range(len(ranking)):
        if state.guards:
            ranking[k] = state.row[k]
        elif state.differs[0] and state.arranges:
            ranking[k] = state.order[k]
        else:
            ranking[state.positions[k]] = state.order[k]


@kernel
def rank(state, rng, ranking):  # type: ignore[no-untyped-def]
    begin_session(state, rng)
    if state.guards:
        guarded(state, state.everything)
    else:
        rank_by_draw(state.draws, state.order, rng, len(ranking))
    show(state, ranking, len(state.draws))


@kernel
def rank_among(state, rng, available, ranking):  # type: ignore[no-untyped-def]
    begin_session(state, rng)
    if state.guards:
        guarded(state, available)
    else:
        rank_available(state.draws, state.order, rng, available, len(ranking))
    show(state, ranking, available.sum())


@kernel
def update(state, ranking, clicks):  # type: ignore[no-untyped-def]
    j, above = 0, 0
    for k in range(len(ranking)):
        if clicks[k] <= 1:
            i, gamma, rho = ranking[k], state.examination[k, j], 1.0
            if j > 0 and state.learns_continuation:
                above = ranking[j - 1]
                rho = state.continuation[above]
                if state.t[0] < state.t[1]:  # else a log is learned, whose examination is not known yet
                    state.clicks_below[above, k, j] += clicks[k]
                    state.displays_below[above, k, j] += (0.75 + state.total[i]) / (
                        1.5 + max(state.total[i], state.exposure[i])
                    )
                gamma = min(gamma * rho, 1.0)
            if state.detects:
                weigh(state, i, clicks[k], gamma)
            state.clicks[i, k, j] += clicks[k]
            state.displays[i, k, j] += rho
            state.total[i] += clicks[k]
            state.exposure[i] += gamma
            if state.detects:
                judge_window(state, i)
            estimate_item(state, i)
        if clicks[k] & 1:
            j = k + 1


@kernel
def replace(state, rng, item):  # type: ignore[no-untyped-def]
    state.clicks[item, :, :] = 0.0
    state.displays[item, :, :] = 0.0
    state.total[item], state.exposure[item], state.seen[item] = 0.0, 0.0, state.changes[0]
    state.clicks_below[item, :, :] = 0.0
    state.displays_below[item, :, :] = 0.0
    state.continuation[item] = 1.0
    close_window(state, item, state.changes[0])
    estimate_item(state, item)


class UBMTS(CompiledAgent):
    """UBM-TS: Thompson sampling that also learns how users examine the list, and detects when they change.

    Idea:
        Users examine some positions less than others, and UBM-TS learns how much less from the clicks that also tell it the
        attractions of the items. It estimates the probability that a position is examined, given the position of the last click
        above it and the item clicked there. So it need not know whether users follow the cascade model, the position-based
        model or the user browsing model. It draws an attraction of each item from its posterior (Thompson sampling), and shows
        the items of the largest draws in the order that promises most clicks. For each item it compares recent clicks with
        older ones, and forgets the older ones if the two contradict each other. It has no proven bound, it needs more memory
        than a cascade agent, and it stays close to a production list only with ``safe=True``.

    Algorithm:
        ::

            S_i, E_i ← 0 for each item i: its clicks, and its displays, each counted by the probability that i was examined
            s_i, e_i ← 0: the same for the window, the recent sessions of i; B_i ← 1, the evidence that i has changed
            γ(k, j) ← 1: probability that position k is examined if the last click above it is on position j (0: no click)
            ρ_i ← 1: factor by which a click on i changes γ of the positions below; α(S, E) = (1 + S) / (2 + E)
            for t = 1, 2, ...:
                whenever t has grown by 0.5 %:
                    draw an attraction of each item from Beta(S_i + 3/4, E_i - S_i + 3/4), the posterior for all sessions
                    γ(k, j) ← clicks on k if the last click was on j / sum of the attractions drawn for the items shown then
                    ρ_i ← clicks below a click on i / those expected if all ρ were equal; 1 if a χ² test finds no difference
                    E_i ← sum of γ(k, j) ρ over the displays that S_i counts, ρ of the item clicked last above
                    swap positions of the K best items while a swap promises more clicks, by two standard errors at least
                for each item i: δ_i, Δ_i ← expected numbers of changes since i was last seen, and since its window began
                    draw its attraction from the prior, the posterior for (s_i, e_i), or the posterior for all
                        sessions, with probabilities in proportion to δ_i, Δ_i B_i and 1
                show the items of the K largest draws on these positions; if ρ differs, swap while expected clicks grow
                if safe: undo swaps until at most K/2 more pairs than in the production list may be in the wrong order
                for each shown item i: add its click to S_i and s_i, γ ρ to E_i and e_i;
                    B_i ← B_i · P(click | α(s_i, e_i)) / P(click | α(S_i, E_i)), both before this session
                    if B_i < 0.05: begin a new window; if Δ_i B_i > 1000: S_i, E_i ← s_i, e_i, and begin a new window

    Args:
        n_items: L.
        n_positions: K.
        initial: the production list, of K or of all L items; ``make_agent`` fills in the instance's, where there is one. It
            matters to ``safe`` alone.
        safe: whether lists are kept from having more than K/2 wrongly ordered pairs more than the first K items of ``initial``,
            as far as it knows attractions; without a list it changes nothing. It costs regret at the beginning.
        sharpness: > 0, by what the posteriors' counts of clicks are multiplied. More is greedier.
        learn_examination: whether examination is learned; else every shown position counts as examined.
        learn_continuation: whether examination below a click may depend on the clicked item.
        arrange: whether items may be shown in another order than by attraction.
        detect: whether attractions may change.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on a bad list, number or flag.

    Source: ours. Examination is that of Dupret, Piwowarski, *A user browsing model to predict search engine click data from
    past observations*, SIGIR 2008; the correction of counts by it that of Komiyama, Honda, Nakagawa, *Optimal regret analysis
    of Thompson sampling in stochastic multi-armed bandit problem with multiple plays*, ICML 2015; the guard's constraint that
    of Li, Kveton, Lattimore, Markov, de Rijke, Szepesvári, Zoghi, *BubbleRank: safe online learning to re-rank via implicit
    click feedback*, UAI 2019.

    Late clicks count for the display that earned them, under the examination of today. A replaced item begins everything anew.

    Memory: 4 L K² + 15 L numbers.

    Example:
        >>> UBMTS(4, 2, seed=0).rank(None).shape
        (2,)
    """

    paper = "ours, 2026"
    told: ClassVar = {"initial": "initial_ranking"}
    learns_from = ANY_LIST
    state_type = State
    rank_kernel = rank
    rank_available_kernel = rank_among
    update_kernel = update
    count_kernel = count_display
    replace_kernel = replace

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        initial: ArrayLike | None = None,
        safe: bool = False,
        sharpness: float = 2.0,
        learn_examination: bool = True,
        learn_continuation: bool = True,
        arrange: bool = True,
        detect: bool = True,
        seed: Seed = None,
    ) -> None:
        initial = check_initial(initial, n_items, n_positions)
        super().__init__(
            n_items,
            n_positions,
            seed,
            initial=initial,
            safe=check_flag("safe", safe),
            sharpness=check_at_least("sharpness", sharpness, 0, strictly=True),
            learn_examination=check_flag("learn_examination", learn_examination),
            learn_continuation=check_flag("learn_continuation", learn_continuation),
            arrange=check_flag("arrange", arrange),
            detect=check_flag("detect", detect),
        )

    def best(self) -> NDArray[np.int64]:
        return self._best_by(self.state.centre)

    def _first_values(self) -> dict[str, Any]:
        n, k, hyperparameters = self.n_items, self.n_positions, self.hyperparameters
        initial = hyperparameters["initial"]
        production = np.arange(k) if initial is None else np.array(initial[:k], np.int64)
        place = np.full(n, k)
        place[production] = np.arange(k)
        guards = hyperparameters["safe"] and initial is not None
        return {
            "production": production,
            "place": place,
            "width": 1.0 / math.sqrt(hyperparameters["sharpness"]),
            "learns_examination": hyperparameters["learn_examination"],
            "learns_continuation": hyperparameters["learn_continuation"],
            "arranges": hyperparameters["arrange"] and not guards,
            "detects": hyperparameters["detect"],
            "guards": guards,
        }
