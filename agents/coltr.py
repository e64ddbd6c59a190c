"""COLTR (Zhuang and Zuccon 2020): a linear ranker that judges other rankers by reweighting the clicks on its own lists."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.kernels import inner, kernel
from ..core.state import Flags, Floats, Ints
from .agent import ITS_DISPLAYS, ContextualAgent
from .hyperparameters import above, at_least, count, hyperparameter
from .linear import TIE, dot
from .pdgd import measure_rests, rank
from .search_space import Range
from .streams import draw_direction, new_stream


class State(NamedTuple):
    weights: Annotated[Floats, "d"]  # w
    n_steps: Annotated[Ints, "1"]  # how often the weights have changed
    stream: NDArray[np.uint64]  # (1,) by which directions are drawn
    # Of the display, as in PDGD.
    scores: Annotated[Floats, "L"]  # f = wᵀx of its candidates
    scored: Annotated[Ints, "1"]  # `n_steps` then
    draws: Annotated[Floats, "L"]
    order: Annotated[Ints, "L", range]
    # Working memory.
    log_rest: Annotated[Floats, "K+1"]  # of the model in hand, as in PDGD
    log_chance: Annotated[Floats, "K"]  # log-probability of each shown candidate among those not above it, at display
    ratio: Annotated[Floats, "K"]  # ρ, in proportion
    risk: Annotated[Floats, "K"]  # 1 or 0
    counts: Annotated[Flags, "K"]  # whether the position is a sample
    directions: Annotated[Floats, "n d"]  # u
    improves: Annotated[Flags, "n"]  # whether the candidate model does
    base: Annotated[Floats, "L"]  # scores of the present weights
    candidate: Annotated[Floats, "L"]  # scores of a candidate model
    gain: Annotated[Floats, "d"]  # the mean direction of those that improve
    learning_rate: float
    unit: float
    variance_weight: float


class Scored(NamedTuple):
    """What `measure_rests` reads and writes."""

    scores: NDArray[np.float64]
    draws: NDArray[np.float64]
    log_rest: NDArray[np.float64]


@inner
def measure_chances(state, scores, ranking):  # type: ignore[no-untyped-def]
    """``log_rest``: log of the sum of e^f over the candidates not above each position."""
    measure_rests(Scored(scores, state.draws, state.log_rest), ranking)


@inner
def bound_risk(state, scores, ranking):  # type: ignore[no-untyped-def]
    """``R + variance_weight V`` of a model by its scores: the risk that its own lists would have had, and its deviation."""
    measure_chances(state, scores, ranking)
    largest, n = -np.inf, 0
    for k in range(len(ranking)):
        if state.counts[k]:
            state.ratio[k] = scores[ranking[k]] - state.log_rest[k] - state.log_chance[k]
            largest = max(largest, state.ratio[k])
            n += 1
    total, risk = 0.0, 0.0
    for k in range(len(ranking)):
        if state.counts[k]:
            state.ratio[k] = math.exp(state.ratio[k] - largest)  # R and V are those of any multiple
            total += state.ratio[k]
            risk += state.ratio[k] * state.risk[k]
    risk /= total
    variance = 0.0
    for k in range(len(ranking)):
        if state.counts[k]:
            variance += (state.ratio[k] / total * (state.risk[k] - risk)) ** 2
    return risk + state.variance_weight * math.sqrt(variance / n)


@inner
def mark_risks(state, clicks):  # type: ignore[no-untyped-def]
    """Mark the samples and their risks, and return whether there are a click and a risk."""
    last = -1
    for k in range(len(clicks)):
        if clicks[k] & 1:
            last = k
    any_click, any_risk = False, False
    for k in range(len(clicks)):
        state.counts[k] = clicks[k] <= 1
        state.risk[k] = 1.0 if clicks[k] == 0 and k < last else 0.0
        any_click |= clicks[k] == 1
        any_risk |= state.risk[k] == 1.0
    return any_click and any_risk


@kernel
def update(state, features, ranking, clicks):  # type: ignore[no-untyped-def]
    if not mark_risks(state, clicks):
        return
    n_items, d = features.shape
    measure_chances(state, state.scores, ranking)
    for k in range(len(ranking)):
        state.log_chance[k] = state.scores[ranking[k]] - state.log_rest[k]
    for a in range(n_items):
        state.base[a] = state.scores[a]
        if state.scored[0] != state.n_steps[0]:
            state.base[a] = dot(state.weights, features[a])
    present, n_improving = bound_risk(state, state.base, ranking), 0
    state.gain[:] = 0.0
    for c in range(len(state.directions)):
        direction = state.directions[c]
        draw_direction(state.stream, direction)
        for a in range(n_items):
            state.candidate[a] = state.base[a] + state.unit * dot(direction, features[a])
        state.improves[c] = bound_risk(state, state.candidate, ranking) < present - TIE
        if state.improves[c]:
            n_improving += 1
            for j in range(d):
                state.gain[j] += direction[j]
    if n_improving == 0:
        return
    for j in range(d):
        state.weights[j] += state.learning_rate * state.unit * (state.gain[j] / n_improving)
    state.n_steps[0] += 1


class COLTR(ContextualAgent):
    """COLTR: draws lists by a linear score, and moves it towards scores that would have placed rejected candidates lower.

    Idea:
        Agents such as `MGD` must give every ranker that they try some positions of the list. COLTR (counterfactual online
        learning to rank) draws lists by one linear ranker, as `PDGD` does, and estimates afterwards how other rankers would
        have fared. An unclicked position above the last click is a risk, because the user examined the candidate there and did
        not want it. Importance weights estimate the risk of many other rankers, each a step away in a random direction, with a
        penalty for uncertain estimates. The weights move by the mean direction of the rankers with less risk, so one session
        judges many rankers without showing their lists. However, each estimate rests on one list, is poor for rankers whose
        lists differ much, and needs a session with a click and a risk.

    Algorithm:
        ::

            w = 0, the weights of the features
            for session t = 1, 2, …:
                draw the list from the top: the next candidate is a, with features x_a, with probability
                    e^{wᵀx_a} / Σ_b e^{wᵀx_b}, b over those left
                observe the clicks;  without an unclicked position above a click, learn nothing
                risk_k = 1 for each unclicked position k above the last click, else 0
                for c = 0, 1, …, n_candidates:
                    w_c = w + unit u_c, u_c drawn uniformly from the unit sphere; but w_0 = w
                    for each position k:
                        ρ_k = the probability of drawing its candidate there by w_c, divided by that by w
                    R_c = Σ_k ρ_k risk_k / Σ_k ρ_k, the estimated risk, and V_c its uncertainty:
                    V_c = sqrt(Σ_k ρ_k² (risk_k − R_c)² / (Σ_k ρ_k)² / K)
                C = the c > 0 with R_c + variance_weight V_c < R_0 + variance_weight V_0
                if C is not empty:
                    w += η unit mean_{c∈C} u_c        (η: learning_rate)

    Args:
        n_items: L, candidates in each session.
        n_positions: K.
        n_features: d; ``make_agent`` fills it in.
        learning_rate: η > 0.
        unit: > 0, the distance of the other rankers.
        n_candidates: the number of other rankers in each session.
        variance_weight: ≥ 0, the weight of V, the penalty for uncertain estimates.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on a learning rate or unit that is not positive, no candidates, or a negative weight.

    Source: Zhuang, Zuccon, *Counterfactual online learning to rank*, ECIR 2020, Algorithm 1.

    Deviations from the paper:
        1. ⚠ Probabilities under a model divide by the sums of that model, over all L candidates. Code by others that reproduces
           the paper takes those of w for the candidates that are not shown, by a slip.
        2. ⚠ V is added on both sides.
        3. ⚠ A model is better by more than 1e-10.
        4. ⚠ Of clicks that come late, the ρ are against the weights that drew the list, and models are compared with the
           present weights, which have a ρ of their own. Positions that were not shown, or whose item was replaced, are no
           samples.

    Time: a session with a risk takes ``O(n L d)`` for n models.

    Example:
        >>> COLTR(5, 2, n_features=1, seed=0).rank({"features": [[0.1], [0.2], [0.3], [0.4], [0.5]]}).shape
        (2,)
    """

    paper = "Zhuang and Zuccon 2020, Algorithm 1"
    stands: ClassVar = {"late clicks": "its rule"}
    judged_documents = True
    state_type = State
    rank_kernel = rank
    update_kernel = update
    weights = "weights"
    learns_from = ITS_DISPLAYS
    remembered = ("scores", "scored")

    learning_rate: float = hyperparameter(default=0.05, check=above(0), search=Range(0.001, 3.0, log=True))
    unit: float = hyperparameter(default=1.0, check=above(0), search=Range(0.03, 30.0, log=True))
    n_candidates: int = hyperparameter(default=50, check=count(), search=(10, 20, 50, 100))
    variance_weight: float = hyperparameter(default=1.0, check=at_least(0), search=Range(0.0, 3.0))

    def _state_sizes(self) -> dict[str, int]:
        return super()._state_sizes() | {"n": self.hyperparameters["n_candidates"]}

    def _first_values(self) -> dict[str, Any]:
        return {"stream": new_stream(self.rng)}
