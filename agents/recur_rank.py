"""RecurRank (Li, Lattimore and Szepesvári 2019): a list that splits recursively, for fixed candidates with features."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.kernels import inner, kernel
from ..core.state import Flags, Floats, Ints
from .agent import ITS_DISPLAYS, ContextualAgent, checked_features
from .hyperparameters import above, hyperparameter, sessions
from .kernels import shuffle_front
from .linear import TIE, cholesky, dot, invert, multiply, show_largest, solve_lower, solve_upper
from .search_space import Range

DEPENDENT = 1e-10  # what is left of a row below this part of the largest one is rounding: it is in the span of the others
OPTIMAL = 1.001  # a design is good if no candidate's norm is larger than this times the rank
NEGLIGIBLE = 1e-4  # a weight below this part of the uniform one is dropped
MOST_STEPS = 100_000  # of a design, for each dimension; 1,000 are enough but for rounding
REFRESH = 100  # of them between two factorisations
LEAST_PIVOT = 1e-30  # of a factorisation; rounding makes none as small in a span of which every dimension was seen
NOTHING_LEFT, NOT_BEGUN = -1, -2  # of a part: to be learned; its phase


class State(NamedTuple):
    known: Annotated[Flags, "1"]  # whether the candidates have been seen
    # The candidates in lexicographic order, which is their number here; in a session they stand in any order.
    items: Annotated[Floats, "L d"]
    point: Annotated[Ints, "L"]  # the first candidate with these features
    number: Annotated[Ints, "L", range]  # which candidate stands in each row of the session
    row: Annotated[Ints, "L", range]  # in which row each candidate stands
    # Part p has the positions from first[p] to below first[p + 1], and as many candidates of `order` from first[p] on as `size`
    # says: as many as positions, but for the last part. Behind them stand those that were dropped.
    order: Annotated[Ints, "L", range]
    n_parts: Annotated[Ints, "1", 1]
    first: Ints  # (K + 1,)
    size: Ints  # (K,)
    phase: Annotated[Ints, "K", 1]  # ℓ
    part: Annotated[Ints, "K"]  # its number, another one in each phase
    rank: Annotated[Ints, "K"]  # r
    waiting: Ints  # (K,) candidates of which samples are missing; 0 ends the phase
    n_numbers: Annotated[Ints, "1"]  # how many were given
    # The samples of each candidate in the phase of its part.
    weights: Annotated[Floats, "L"]  # π
    targets: Annotated[Floats, "L"]  # T(a), in whole numbers
    displays: Annotated[Ints, "L"]  # on the first position of the part
    arrived: Annotated[Ints, "L"]  # of them with their click
    clicks: Annotated[Ints, "L"]
    # What is remembered of a display, by the first position of each part.
    shown_part: Annotated[Ints, "K", -1]  # its number, -1 where none begins or nothing is learned
    shown_item: Annotated[Ints, "K"]
    place: Annotated[Floats, "L q"]  # the coordinates of each candidate in the span of its part; q = min(L, d)
    # Working memory.
    rest: Annotated[Floats, "L d"]  # what the span so far leaves of each candidate
    spread: Annotated[Floats, "q q"]  # V
    inverse: Annotated[Floats, "q q"]  # V⁻¹
    factor: Annotated[Floats, "q q"]
    vector: Annotated[Floats, "q"]
    norms: Annotated[Floats, "L"]  # ``aᵀV⁻¹a`` of each candidate; or their estimates, from the first of a part on
    chosen: Annotated[Ints, "L"]  # which candidate stands for each point
    positions: Annotated[Ints, "L"]
    sorted: Annotated[Ints, "L"]
    scale: float
    root_horizon: float  # sqrt(T)


# -------------------------------------------------------------------------------------------------------------- candidates


@inner
def compare(x, y):  # type: ignore[no-untyped-def]
    """Return -1, 0 or 1: the lexicographic order of two rows."""
    for j in range(len(x)):
        if x[j] != y[j]:
            return -1 if x[j] < y[j] else 1
    return 0


@inner
def meet(state, features):  # type: ignore[no-untyped-def]
    """Number the candidates of the first session."""
    n_items, order = len(features), state.sorted
    for a in range(n_items):
        place = a
        while place > 0 and compare(features[order[place - 1]], features[a]) > 0:
            order[place] = order[place - 1]
            place -= 1
        order[place] = a
    for i in range(n_items):
        for j in range(features.shape[1]):
            state.items[i, j] = features[order[i], j] + 0.0  # no -0.0
        state.number[order[i]] = i
        alike = i > 0 and compare(state.items[i - 1], state.items[i]) == 0
        state.point[i] = state.point[i - 1] if alike else i
    state.known[0] = True


@inner
def find(state, x):  # type: ignore[no-untyped-def]
    """The first candidate with features x that stands in no row yet, -1 if there is none."""
    low, high = 0, len(state.items)
    while low < high:
        middle = (low + high) // 2
        if compare(state.items[middle], x) < 0:
            low = middle + 1
        else:
            high = middle
    while low < len(state.items) and state.row[low] >= 0:
        low += 1
    return low if low < len(state.items) and compare(state.items[low], x) == 0 else -1


@inner
def recognise(state, features):  # type: ignore[no-untyped-def]
    """Which candidate stands in each row of a session; most likely the one that stood there before."""
    for i in range(len(features)):
        state.row[i] = -1
    for a in range(len(features)):
        i = state.number[a]
        if state.row[i] >= 0 or compare(state.items[i], features[a]) != 0:
            i = find(state, features[a])
            if i < 0:
                raise ValueError(
                    "the candidates have changed since the first session; expected the same features in each, in any order"
                )
        state.number[a] = i
        state.row[i] = a


# ------------------------------------------------------------------------------------------------------------------ design


@inner
def span(state, items):  # type: ignore[no-untyped-def]
    """Coordinates of candidates in their span, by elimination with the largest rest as pivot; returns its dimension.

    Norms by ``V⁺`` and estimates do not depend on the basis. This one is triangular with ones where the rest was largest and
    nothing larger elsewhere, so that no rescaling of the features matters.
    """
    largest = 0.0
    for i in items:
        for entry in state.items[i]:
            largest = max(largest, abs(entry))
    if largest == 0.0:
        return 0
    for i in items:
        for j in range(state.items.shape[1]):
            state.rest[i, j] = state.items[i, j] / largest
    rank, least = 0, 0.0
    while rank < state.place.shape[1]:
        pivot, square = -1, least
        for i in items:
            length = dot(state.rest[i], state.rest[i])
            if length > square:
                pivot, square = i, length
        if pivot < 0:
            break
        if rank == 0:
            least = DEPENDENT**2 * square
        eliminate(state, items, pivot, square, rank)
        rank += 1
    return rank


@inner
def eliminate(state, items, pivot, square, rank):  # type: ignore[no-untyped-def]
    """The coordinate along the rest of a candidate, which is taken from the rests of all."""
    for i in items:
        if i != pivot:
            state.place[i, rank] = dot(state.rest[i], state.rest[pivot]) / square
            for j in range(state.rest.shape[1]):
                state.rest[i, j] -= state.place[i, rank] * state.rest[pivot, j]
    state.place[pivot, rank] = 1.0
    state.rest[pivot, :] = 0.0


@inner
def add_point(spread, z, weight):  # type: ignore[no-untyped-def]
    for i in range(len(z)):
        for j in range(len(z)):
            spread[i, j] += weight * z[i] * z[j]


@inner
def measure_norms(state, points, rank):  # type: ignore[no-untyped-def]
    """``V`` of the weights, its inverse, and the norm ``aᵀV⁻¹a`` of every point."""
    spread, inverse, product = state.spread[:rank, :rank], state.inverse[:rank, :rank], state.vector[:rank]
    spread[:, :] = 0.0
    for i in points:
        if state.weights[i] > 0.0:
            add_point(spread, state.place[i, :rank], state.weights[i])
    invert(spread, LEAST_PIVOT, state.factor[:rank, :rank], inverse)
    for i in points:
        multiply(inverse, state.place[i, :rank], product)
        state.norms[i] = dot(product, state.place[i, :rank])


@inner
def design(state, points, rank):  # type: ignore[no-untyped-def]
    """Weights of a G-optimal design: no norm is larger than the rank, but for a thousandth.

    Steps of Frank and Wolfe to the point of largest norm, or away from that of smallest norm among those with weight, each as
    long as makes det V largest.
    """
    if rank == 1:  # the longest one
        best = points[0]
        for i in points:
            state.weights[i] = 0.0
            best = i if abs(state.place[i, 0]) > abs(state.place[best, 0]) else best
        state.weights[best] = 1.0
        return
    for i in points:
        state.weights[i] = 1.0 / len(points)
    exact, good = False, False
    for step in range(MOST_STEPS * rank):
        if good or step % REFRESH == 0:  # without the rounding errors of the steps
            measure_norms(state, points, rank)
            exact = True
        far, near = extremes(state, points)
        good = state.norms[far] <= OPTIMAL * rank
        if good and exact:
            break
        if not good:
            exact = False
            if state.norms[far] - rank >= rank - state.norms[near]:
                move(state, points, rank, far, -np.inf)
            else:
                move(state, points, rank, near, -state.weights[near] / (1.0 - state.weights[near]))


@inner
def extremes(state, points):  # type: ignore[no-untyped-def]
    """The point of largest norm, and that of smallest norm among those with weight."""
    far, near = points[0], -1
    for i in points:
        if state.norms[i] > state.norms[far]:
            far = i
        if state.weights[i] > 0.0 and (near < 0 or state.norms[i] < state.norms[near]):
            near = i
    return far, near


@inner
def move(state, points, rank, chosen, least):  # type: ignore[no-untyped-def]
    """Move weight to a point, or away from it: as makes det V largest, but no more than all of its weight."""
    inverse, product, norm = state.inverse[:rank, :rank], state.vector[:rank], state.norms[chosen]
    length = max(least, (norm - rank) / (rank * (norm - 1.0))) if norm > 1.0 else least
    multiply(inverse, state.place[chosen, :rank], product)
    ratio = length / (1.0 - length)
    shrink = ratio / (1.0 + ratio * norm)
    for i in points:
        state.norms[i] = (state.norms[i] - shrink * dot(product, state.place[i, :rank]) ** 2) / (1.0 - length)
        state.weights[i] *= 1.0 - length
    state.weights[chosen] = max(state.weights[chosen] + length, 0.0)
    for i in range(rank):
        for j in range(rank):
            inverse[i, j] = (inverse[i, j] - shrink * product[i] * product[j]) / (1.0 - length)


# ------------------------------------------------------------------------------------------------------------------ phases


@inner
def begin_phase(state, rng, p):  # type: ignore[no-untyped-def]
    """Design the phase of a part: how often each of its candidates has to be seen on its first position."""
    items = state.order[state.first[p] : state.first[p] + state.size[p]]
    state.n_numbers[0] += 1
    state.part[p] = state.n_numbers[0]
    state.waiting[p] = NOTHING_LEFT
    for i in items:
        state.weights[i] = state.targets[i] = 0.0
        state.displays[i] = state.arrived[i] = state.clicks[i] = 0
        state.chosen[state.point[i]] = -1
    if len(items) == 1:
        return
    state.rank[p] = span(state, items)
    if state.rank[p] > 0:
        points = state.positions[: choose_points(state, rng, items)]
        design(state, points, state.rank[p])
        set_targets(state, points, p)


@inner
def choose_points(state, rng, items):  # type: ignore[no-untyped-def]
    """Write the candidates of the design into `positions`: of those with the same features a random one; returns how many."""
    n_points = 0
    for i in items:
        point = state.point[i]
        state.norms[point] = state.norms[point] + 1.0 if state.chosen[point] >= 0 else 1.0
        if state.chosen[point] < 0 or rng.random() * state.norms[point] < 1.0:
            state.chosen[point] = i
    for i in items:
        if state.chosen[state.point[i]] == i:
            state.positions[n_points] = i
            n_points += 1
    return n_points


@inner
def set_targets(state, points, p):  # type: ignore[no-untyped-def]
    """How many samples the phase of a part needs of each point, by the weights of the design."""
    n, total = state.size[p], 0.0
    for i in points:
        if state.weights[i] < NEGLIGIBLE / n:
            state.weights[i] = 0.0
        total += state.weights[i]
    phase = float(state.phase[p])
    log_term = math.log(2.0 * n * len(state.size) * phase * (phase + 1.0) * state.root_horizon)
    budget = math.pow(4.0, phase) * state.rank[p] * log_term
    state.waiting[p] = 0
    for i in points:
        state.weights[i] /= total
        if state.weights[i] > 0.0:
            state.targets[i] = np.ceil(state.scale * budget * state.weights[i])
            state.waiting[p] += 1


@inner
def estimate(state, items, rank):  # type: ignore[no-untyped-def]
    """``θᵀa`` of each candidate of a part, ``θ = V⁺ Σ c a`` by the samples of its phase, into `norms` in their order."""
    spread, theta = state.spread[:rank, :rank], state.vector[:rank]
    spread[:, :] = 0.0
    theta[:] = 0.0
    for i in items:
        if state.arrived[i] > 0:
            add_point(spread, state.place[i, :rank], float(state.arrived[i]))
            for j in range(rank):
                theta[j] += state.clicks[i] * state.place[i, j]
    factor = state.factor[:rank, :rank]
    cholesky(spread, LEAST_PIVOT, factor)
    solve_lower(factor, theta)
    solve_upper(factor, theta)
    for a in range(len(items)):
        state.norms[a] = dot(theta, state.place[items[a], :rank])


@inner
def end_phase(state, rng, p):  # type: ignore[no-untyped-def]
    """Sort a part, drop what is surely below it, and cut it where the candidates above are surely better."""
    begin, length, n = state.first[p], state.first[p + 1] - state.first[p], state.size[p]
    items = state.order[begin : begin + n]
    estimate(state, items, state.rank[p])
    scores, ranks = state.norms[:n], state.sorted[:n]
    show_largest(scores, state.positions[:n], rng, ranks)
    for a in range(n):
        state.positions[a] = items[ranks[a]]
    for a in range(n):
        items[a] = state.positions[a]
    gap = math.pow(2.0, 1.0 - state.phase[p]) - TIE
    kept = length
    while kept < n and scores[ranks[length - 1]] - scores[ranks[kept]] < gap:
        kept += 1
    state.size[p] = kept
    state.phase[p] += 1
    state.waiting[p] = NOT_BEGUN
    for k in range(length - 1, 0, -1):  # from below: what is cut off moves no further
        if scores[ranks[k - 1]] - scores[ranks[k]] >= gap:
            for other in range(state.n_parts[0], p + 1, -1):
                state.first[other] = state.first[other - 1]
                state.size[other] = state.size[other - 1]
                state.phase[other] = state.phase[other - 1]
                state.part[other] = state.part[other - 1]
                state.rank[other] = state.rank[other - 1]
                state.waiting[other] = state.waiting[other - 1]
            state.n_parts[0] += 1
            state.first[state.n_parts[0]] = len(state.size)
            state.first[p + 1] = begin + k
            state.size[p + 1] = state.size[p] - k
            state.phase[p + 1] = state.phase[p]
            state.waiting[p + 1] = NOT_BEGUN
            state.size[p] = k


@kernel
def rank(state, rng, features, ranking):  # type: ignore[no-untyped-def]
    n_items, n_positions = len(features), len(ranking)
    if not state.known[0]:
        meet(state, features)
        shuffle_front(rng, state.order, 0, n_items, n_items)
    recognise(state, features)
    for p in range(state.n_parts[0] - 1, -1, -1):  # from below, so that new parts move only parts already done
        if state.waiting[p] == 0:
            end_phase(state, rng, p)
    for p in range(state.n_parts[0]):
        if state.waiting[p] == NOT_BEGUN:
            begin_phase(state, rng, p)
    for k in range(n_positions):
        state.shown_part[k] = -1
    for p in range(state.n_parts[0]):
        show_part(state, rng, p, ranking)


@inner
def show_part(state, rng, p, ranking):  # type: ignore[no-untyped-def]
    """Show at the first position of a part the candidate that lacks most samples, then the others in their order."""
    k, stop = state.first[p], state.first[p + 1]
    items = state.order[k : k + state.size[p]]
    shown = items[0]
    if state.waiting[p] > 0:
        shown = choose(state, rng, items)
        state.displays[shown] += 1
        state.shown_part[k] = state.part[p]
        state.shown_item[k] = shown
    ranking[k] = state.row[shown]
    for i in items:
        if i != shown and k + 1 < stop:
            k += 1
            ranking[k] = state.row[i]


@inner
def choose(state, rng, items):  # type: ignore[no-untyped-def]
    """The candidate of the design that lacks most samples, counted by displays; if none lacks a display, by arrived clicks."""
    underway, best, n_best, chosen = True, 0.0, 0, items[0]
    while n_best == 0:
        for i in items:
            missing = state.targets[i] - (state.displays[i] if underway else state.arrived[i])
            if missing <= 0.0 or missing < best:
                continue
            n_best = n_best + 1 if missing == best else 1
            best = missing
            if n_best == 1 or rng.random() * n_best < 1.0:
                chosen = i
        underway = False
    return chosen


@kernel
def update(state, features, ranking, clicks):  # type: ignore[no-untyped-def]
    for p in range(state.n_parts[0]):
        begin = state.first[p]
        if state.shown_part[begin] != state.part[p] or state.waiting[p] <= 0 or clicks[begin] > 1:
            continue
        i = state.shown_item[begin]
        state.arrived[i] += 1
        state.clicks[i] += clicks[begin]
        if state.arrived[i] == state.targets[i]:
            state.waiting[p] -= 1


class RecurRank(ContextualAgent):
    """RecurRank: compares candidates only at the first position of each part of the list, and splits parts at sure differences.

    Idea:
        As long as nobody knows how users examine lists, only clicks at the same position can be compared. RecurRank cuts the
        list into parts, and learns only from the first position of each part, where the candidates of the part take turns.
        Attraction is assumed linear in the features, so a few well-chosen candidates (an experimental design) are enough for
        least squares to estimate all others. After each phase a part drops candidates that are surely too bad for it, and
        splits wherever one candidate is surely better than the next. Each phase is about four times as long as the one before,
        with half the tolerated error, and the method holds for many click models. It forgets the samples of earlier phases,
        needs the horizon, and refuses candidates that change between sessions.

    Algorithm:
        ::

            one part: positions 1 … K, all L candidates in random order, phase ℓ = 1
            for each session:
                for each part: positions k … k+m−1, candidates a_1 … a_n (n ≥ m), phase ℓ:
                    at the start of its phase:
                        r = the rank of the candidates' features;  forget all samples
                        V(π) = Σ_a π(a) a aᵀ, with a the features of a candidate and π weights of sum 1
                        π = a G-optimal design: weights with the least max_a aᵀV(π)⁺a, which is r
                        n_ℓ = 4^ℓ r log(2 n K ℓ(ℓ+1) √T);  T(a) = ⌈scale n_ℓ π(a)⌉ samples for each a
                    show at position k the candidate that lacks most samples of its T(a)
                    show below it the first m−1 other candidates, in the order of the part
                observe the clicks;  candidate a and click c at the first position of a part are a sample
                for each part whose candidates all have their T(a) samples:
                    V = Σ a aᵀ,  θ = V⁺ Σ c a over its samples (⁺: pseudo-inverse);  sort the candidates by θᵀa
                    drop every candidate a below the m-th with θᵀ(a_m − a) ≥ 2^{1−ℓ}
                    cut between a_j and a_{j+1} for every j < m with θᵀ(a_j − a_{j+1}) ≥ 2^{1−ℓ}
                    each piece is a part in phase ℓ + 1; the last one keeps all further candidates

    Args:
        n_items: L, candidates in each session.
        n_positions: K.
        n_features: d; ``make_agent`` fills it in.
        horizon: T, which determines the lengths of the phases.
        scale: > 0, the factor of the lengths of the phases; 0.5 gives those of the paper, as far as we know.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on a bad horizon, or a scale that is not positive; when candidates change.

    Source: Li, Lattimore, Szepesvári, *Online learning to rank with features*, ICML 2019, Algorithm 1.

    Deviations from the paper:
        1. ⚠ Phase ℓ takes ``⌈scale n_ℓ π(a)⌉`` samples of each candidate, ``n_ℓ = 4^ℓ r log(2 M K ℓ(ℓ + 1) sqrt(T))``, M being
           the candidates of the part and r the rank of their features. The paper has a factor ½ and ``log(M/δ_ℓ)``.
        2. ⚠ Cuts are between a candidate and the next one below; code of others compares with the one above, so that it never
           cuts, and draws the candidates of the design at random.
        3. The design has no norm above 1.001 r: Frank-Wolfe steps from the uniform law, to and away from points. Weights below
           1e-4 over the number of candidates are dropped. Of candidates with the same features a random one stands for all.
        4. ⚠ The candidates may stand in another order in each session, for those of contextual environments do.
        5. ⚠ Gaps smaller than ``2^{1-ℓ}`` by less than 1e-10 count, and estimates closer than that are ordered at random;
           features in the span of others up to 1e-10 of the largest norm have no dimension of their own.
        6. A part with one candidate on one position, or without features other than 0, has nothing to learn.

    Late clicks count if the phase of their part has not ended since. While clicks are late, displays count as samples in the
    choice of the next candidate of the design, also if their clicks have not arrived.

    Example:
        >>> agent = RecurRank(3, 2, n_features=1, horizon=1000, seed=0)
        >>> agent.rank({"features": [[0.1], [0.5], [0.9]]}).shape
        (2,)
        >>> agent.rank({"features": [[0.1], [0.5], [0.8]]})
        Traceback (most recent call last):
            ...
        ValueError: the candidates have changed since the first session; expected the same features in each, in any order
    """

    paper = "Li et al. 2019, RecurRank, Algorithm 1"
    click_models = "PBM, CM and alike, with linear attraction and the same candidates in every session"
    learns_from = ITS_DISPLAYS
    same_candidates = True
    remembered = ("shown_part", "shown_item")
    state_type = State
    rank_kernel = rank
    update_kernel = update

    horizon: int = hyperparameter(check=sessions())
    scale: float = hyperparameter(default=1.0, check=above(0), search=Range(0.001, 2.0, log=True))

    def best(self, features: ArrayLike) -> NDArray[np.int64]:  # type: ignore[override]  # as ContextualAgent has it
        """The order of candidates by what was learned so far, without exploration; the agent stays as it is.

        Args:
            features: ``(n, d)`` of any number of its candidates.

        Returns:
            ``(n,)`` their rows, by the order of the parts; equal ones in their order.

        Raises:
            ValueError: on a candidate that is not one of the sessions before.
        """
        candidates = checked_features(features, (None, self.n_features))
        state: Any = self.state
        if not state.known[0]:
            return np.arange(len(candidates))
        places = {state.items[i].tobytes(): place for place, i in reversed([*enumerate(state.order)])}
        rows = [places.get(x.tobytes(), -1) for x in candidates + 0.0]  # no -0.0
        if -1 in rows:
            raise ValueError(f"features[{rows.index(-1)}] is none of the candidates; RecurRank ranks those that it has met")
        return np.argsort(rows, kind="stable")

    def _state_sizes(self) -> dict[str, int]:
        return super()._state_sizes() | {"q": min(self.n_items, self.n_features)}

    def _first_values(self) -> dict[str, Any]:
        n, k = self.n_items, self.n_positions
        return {
            "first": np.array([0, k] + [k] * (k - 1), np.int64),
            "size": np.array([n] + [0] * (k - 1), np.int64),
            "waiting": np.array([NOT_BEGUN] + [NOTHING_LEFT] * (k - 1), np.int64),
            "root_horizon": math.sqrt(self.hyperparameters["horizon"]),
        }
