"""PairRank (Jia et al. 2021): ranks blocks of candidates by a logistic model of click pairs, where their order is certain.

The model is fitted to all pairs of all sessions, exactly, whenever there is a new one. That is Newton's method with a Hessian
of an earlier fit, as long as each step takes nine tenths of the gradient away: a step is a sum over the pairs then,
``O(N d)``, and the Hessian, ``O(N d²)``, is computed about as often as the number of pairs N grows by a tenth.

Letters: L candidates in a session, K positions, d features, N pairs so far.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.checks import Choices, check_flag
from ..core.kernels import inner, kernel
from ..core.state import Flags, Floats, Ints
from .agent import ANY_LIST
from .growing import FEW, GrowingAgent
from .hyperparameters import at_least, hyperparameter, one_of
from .kernels import show, shuffle_front, sort_by_index
from .linear import LEAST_RIDGE, TIE, cholesky, dot, solve_lower, solve_upper
from .search_space import Range
from .streams import new_stream, shuffle

LOSS, INSIDE = Choices(("mean", "sum")), Choices(("random", "certain"))
PRECISION = 1e-8  # the norm of the gradient at which the model is fitted
MOST_STEPS = 1000


class State(NamedTuple):
    weights: Annotated[Floats, "d"]  # w
    factor: Floats  # (d, d) the upper triangle U with UᵀU = A = l2 I + Σ δδᵀ
    pairs: Floats  # (C, d) δ = x_clicked - x_unclicked of each pair; C grows
    n_pairs: Annotated[Ints, "1"]  # N
    n_fitted: Annotated[Ints, "1"]  # N at the last fit
    n_learned: Annotated[Ints, "1"]  # sessions
    stream: NDArray[np.uint64]  # (1,) by which pairs are drawn
    # Of the last display.
    scores: Annotated[Floats, "L"]  # wᵀx
    scaled: Annotated[Floats, "L d"]  # U⁻ᵀx: distances between them are those that A⁻¹ measures
    certain: Annotated[Flags, "L L"]  # which candidate precedes which
    blocks: Annotated[Ints, "L"]  # the number of each candidate's block, from the top
    order: Annotated[Ints, "L", range]
    # Working memory.
    clicked: Annotated[Ints, "K"]  # positions
    unclicked: Annotated[Ints, "K"]  # positions above the last click
    gradient: Annotated[Floats, "d"]
    step: Annotated[Floats, "d"]
    trial: Annotated[Floats, "d"]
    trial_gradient: Annotated[Floats, "d"]
    hessian: Floats  # (d, d) its lower triangle, where it was computed last
    hessian_factor: Floats  # (d, d) its Cholesky factor
    alpha: float
    ridge: float  # the loss has ½ ridge ‖w‖²
    is_mean: bool
    is_disjoint: bool
    is_one_below: bool  # whether the place right below the last click is compared, too
    is_random: bool  # inside of blocks
    growth: float


# ------------------------------------------------------------------------------------------------------------- the model


@inner
def sigmoid(x):  # type: ignore[no-untyped-def]
    if x >= 0.0:
        return 1.0 / (1.0 + math.exp(-x))
    return 1.0 - 1.0 / (1.0 + math.exp(x))


@inner
def inner_product(x, y):  # type: ignore[no-untyped-def]
    """As `dot`, in four sums: for vectors so long that a sum would wait for itself."""
    d = len(x)
    a, b, c, e = 0.0, 0.0, 0.0, 0.0
    for j in range(0, d - 3, 4):
        a += x[j] * y[j]
        b += x[j + 1] * y[j + 1]
        c += x[j + 2] * y[j + 2]
        e += x[j + 3] * y[j + 3]
    for j in range(d - d % 4, d):
        a += x[j] * y[j]
    return (a + b) + (c + e)


@inner
def slope(state, weights, gradient):  # type: ignore[no-untyped-def]
    """The gradient of the loss, and its norm."""
    n, d = state.n_pairs[0], len(weights)
    gradient[:] = 0.0
    for p in range(n):
        delta = state.pairs[p]
        wrong = sigmoid(-inner_product(weights, delta))
        for j in range(d):
            gradient[j] -= wrong * delta[j]
    for j in range(d):
        gradient[j] = (gradient[j] / n if state.is_mean else gradient[j]) + state.ridge * weights[j]
    return math.sqrt(dot(gradient, gradient))


@inner
def bend(state):  # type: ignore[no-untyped-def]
    """The Hessian of the loss at the weights, and its Cholesky factor."""
    n, d = state.n_pairs[0], len(state.weights)
    hessian = state.hessian
    hessian[:] = 0.0
    for p in range(n):
        delta = state.pairs[p]
        right = sigmoid(inner_product(state.weights, delta))
        share = right * (1.0 - right)
        for i in range(d):
            scaled = share * delta[i]
            row = hessian[i]
            for j in range(i + 1):
                row[j] += scaled * delta[j]
    for i in range(d):
        for j in range(i + 1):
            hessian[i, j] = (hessian[i, j] / n if state.is_mean else hessian[i, j]) + (state.ridge if i == j else 0.0)
    cholesky(hessian, state.ridge, state.hessian_factor)


@inner
def walk(state, length):  # type: ignore[no-untyped-def]
    """The norm of the gradient after a part of the step; the point and its gradient are ``trial`` and ``trial_gradient``."""
    for j in range(len(state.trial)):
        state.trial[j] = state.weights[j] - length * state.step[j]
    return slope(state, state.trial, state.trial_gradient)


@inner
def fit(state):  # type: ignore[no-untyped-def]
    """Newton's method until the gradient's norm is `PRECISION`, or rounding lets it fall no further."""
    norm = slope(state, state.weights, state.gradient)
    is_new = False  # whether the Hessian is that of these weights
    for _ in range(MOST_STEPS):
        if norm <= PRECISION:
            break
        for j in range(len(state.step)):
            state.step[j] = state.gradient[j]
        solve_lower(state.hessian_factor, state.step)
        solve_upper(state.hessian_factor, state.step)
        length = 1.0
        reached = walk(state, length)
        if not is_new and not reached <= 0.1 * norm:
            bend(state)
            is_new = True
            continue
        while not reached <= (1.0 - 0.25 * length) * norm:
            length *= 0.5
            if length < 1e-6:
                return
            reached = walk(state, length)
        norm, is_new = reached, False
        for j in range(len(state.step)):
            state.weights[j], state.gradient[j] = state.trial[j], state.trial_gradient[j]


@inner
def add_pair(state, x, y):  # type: ignore[no-untyped-def]
    """Store the pair ``δ = x - y``, and add ``δδᵀ`` to A."""
    delta, rest = state.pairs[state.n_pairs[0]], state.step
    for j in range(len(x)):
        delta[j] = x[j] - y[j]
        rest[j] = delta[j]
    state.n_pairs[0] += 1
    add_square(state.factor, rest)


@inner
def add_square(factor, rest):  # type: ignore[no-untyped-def]
    """Add ``δδᵀ`` to ``A = UᵀU`` by plane rotations of its factor U with δ, which is overwritten."""
    d = len(rest)
    for k in range(d):
        if rest[k] == 0.0:
            continue
        row = factor[k]
        length = math.sqrt(row[k] * row[k] + rest[k] * rest[k])
        cosine, sine = row[k] / length, rest[k] / length
        for j in range(k, d):
            kept = row[j]
            row[j] = cosine * kept + sine * rest[j]
            rest[j] = cosine * rest[j] - sine * kept


@inner
def find_pairs(state, clicks):  # type: ignore[no-untyped-def]
    """Write the clicked and the unclicked positions that are compared, and return how many there are of each."""
    n_considered = 0  # positions, down to the last click
    for k in range(len(clicks)):
        if clicks[k] & 1:
            n_considered = k + 1
    if state.is_one_below and n_considered > 0:
        n_considered = min(n_considered + 1, len(clicks))
    n_clicked, n_unclicked = 0, 0
    for k in range(n_considered):
        if clicks[k] == 1:
            state.clicked[n_clicked] = k
            n_clicked += 1
        elif clicks[k] == 0:
            state.unclicked[n_unclicked] = k
            n_unclicked += 1
    if state.is_disjoint and n_clicked > 0 and n_unclicked > 0:
        shuffle(state.stream, state.clicked, n_clicked)
        shuffle(state.stream, state.unclicked, n_unclicked)
    return n_clicked, n_unclicked


@inner
def count_pairs(state, n_clicked, n_unclicked):  # type: ignore[no-untyped-def]
    return min(n_clicked, n_unclicked) if state.is_disjoint else n_clicked * n_unclicked


@inner
def pair_of(state, number, n_unclicked):  # type: ignore[no-untyped-def]
    """The places in ``clicked`` and ``unclicked`` of a session's pair."""
    return (number, number) if state.is_disjoint else (number // n_unclicked, number % n_unclicked)


@kernel
def update(state, features, ranking, clicks):  # type: ignore[no-untyped-def]
    state.n_learned[0] += 1
    n_clicked, n_unclicked = find_pairs(state, clicks)
    n_new = count_pairs(state, n_clicked, n_unclicked)
    if n_new == 0:
        return
    for number in range(n_new):
        p, q = pair_of(state, number, n_unclicked)
        add_pair(state, features[ranking[state.clicked[p]]], features[ranking[state.unclicked[q]]])
    if state.n_pairs[0] >= (1.0 + state.growth) * state.n_fitted[0]:
        fit(state)
        state.n_fitted[0] = state.n_pairs[0]


# -------------------------------------------------------------------------------------------------------------- the list


@inner
def compare(state, features):  # type: ignore[no-untyped-def]
    """Score and scale the candidates, and find which certainly precede which."""
    n_items, d = features.shape
    for a in range(n_items):
        x = state.scaled[a]
        for j in range(d):
            x[j] = features[a, j]
        state.scores[a] = inner_product(state.weights, x)
        scale_by_factor(state.factor, x)
    find_certain(state)


@inner
def scale_by_factor(factor, x):  # type: ignore[no-untyped-def]
    """``x`` becomes U⁻ᵀx."""
    d = len(x)
    for k in range(d):
        row = factor[k]
        x[k] /= row[k]
        for j in range(k + 1, d):
            x[j] -= x[k] * row[j]


@inner
def find_certain(state):  # type: ignore[no-untyped-def]
    """Find from the scores and the scaled vectors which candidates certainly precede which, and the order of the scores."""
    n_items, d = state.scaled.shape
    for a in range(n_items):
        state.order[a] = a
    sort_by_index(state.scores, state.order)
    state.certain[:] = False
    for p in range(n_items):
        for q in range(p + 1, n_items):
            a, b, squared = state.order[p], state.order[q], 0.0
            for j in range(d):
                apart = state.scaled[a, j] - state.scaled[b, j]
                squared += apart * apart
            bound = sigmoid(state.scores[a] - state.scores[b]) - state.alpha * math.sqrt(squared)
            state.certain[a, b] = bound > 0.5 + TIE
    for q in range(n_items):  # the transitive closure: who certainly precedes somebody precedes whom he precedes
        b = state.order[q]
        for p in range(q):
            if state.certain[state.order[p], b]:
                above, below = state.certain[state.order[p]], state.certain[b]
                for c in range(n_items):
                    above[c] |= below[c]


@inner
def find_blocks(state):  # type: ignore[no-untyped-def]
    """Number the blocks: the candidates connected by pairs that are certain in neither direction.

    In the order of the scores they are neighbours: of two that are not certain, each one between them is uncertain with one.
    """
    n_items, number, last = len(state.order), 0, 0
    for p in range(n_items):
        if p > last:
            number, last = number + 1, p
        state.blocks[state.order[p]] = number
        for q in range(n_items - 1, last, -1):
            if not state.certain[state.order[p], state.order[q]]:
                last = q
                break


@inner
def is_preceded(state, p, start, stop):  # type: ignore[no-untyped-def]
    """Whether a candidate of ``order[start:stop]`` certainly precedes the one at the place p."""
    preceded = False
    for q in range(start, stop):
        preceded |= state.certain[state.order[q], state.order[p]]
    return preceded


@inner
def draw_sorted(state, rng, start, stop, count):  # type: ignore[no-untyped-def]
    """Order the front of a block: repeatedly take a random candidate that no other remaining one certainly precedes."""
    for k in range(start, start + count):
        n_free = 0
        for p in range(k, stop):
            n_free += not is_preceded(state, p, k, stop)
        chosen = int(rng.random() * n_free)
        for p in range(k, stop):
            if not is_preceded(state, p, k, stop):
                if chosen == 0:
                    state.order[k], state.order[p] = state.order[p], state.order[k]
                    break
                chosen -= 1


@inner
def show_blocks(state, rng, ranking):  # type: ignore[no-untyped-def]
    """Write the list: the blocks in their order, each in a random one."""
    n_items, n_positions = len(state.order), len(ranking)
    find_blocks(state)
    start = 0
    while start < n_positions:
        stop = start + 1
        while stop < n_items and state.blocks[state.order[stop]] == state.blocks[state.order[start]]:
            stop += 1
        count = min(stop, n_positions) - start
        if state.is_random:
            shuffle_front(rng, state.order, start, stop, count)
        else:
            draw_sorted(state, rng, start, stop, count)
        start = stop
    show(state.order, ranking)


@kernel
def rank(state, rng, features, ranking):  # type: ignore[no-untyped-def]
    compare(state, features)
    show_blocks(state, rng, ranking)


class PairRank(GrowingAgent):
    """PairRank: sorts candidates by a logistic model of click pairs, and shuffles blocks whose order is uncertain.

    Idea:
        A ranking follows from the decision, for each pair of candidates, which one users prefer. PairRank keeps a logistic
        model of these preferences, linear in the features, with a confidence width for each pair. Candidates that are connected
        by uncertain pairs form a block, the order of the blocks is certain, and each block is shown in random order. Random
        order removes the position bias within an uncertain pair, because both candidates have the same chance of each position,
        until the block splits. From the clicks it takes pairs of a clicked candidate and an unclicked one above the last click,
        and fits the model to all pairs so far. It stores all pairs, so long runs are slow, and it is misled if users did not
        examine an unclicked candidate above a click.

    Algorithm:
        ::

            I: the identity matrix;  σ(z) = 1 / (1 + e^{−z})
            A = l2 I,  w = 0 (the weights of the features),  no pairs
            for session t = 1, 2, …:
                observe the features x_i of the L candidates
                for each two candidates i and j:
                    δ = x_i − x_j;  i is certainly before j if σ(wᵀδ) − alpha sqrt(δᵀA⁻¹δ) > ½
                if i is certainly before j and j before k, then i is certainly before k
                blocks = candidates connected by uncertain pairs; their order is certain
                show the blocks in this order, cut at K, each shuffled
                    (inside="certain": as far as certain pairs allow)
                observe the clicks;  P = the clicked,  N = the unclicked above the last click
                    (one_below: and the one right below it)
                match P and N one to one at random (disjoint=False: each with each)
                for each match (p, n):
                    δ = x_p − x_n;  A += δδᵀ;  keep the pair δ
                if there are new pairs, at least 1 + growth times as many as at the last fit:
                    w = argmin mean_δ log(1 + e^{−wᵀδ}) + l2 ‖w‖²
                        (loss="sum": the sum over the pairs, and ½ l2 ‖w‖²)

    Args:
        n_items: L, candidates in each session.
        n_positions: K.
        n_features: d; ``make_agent`` fills it in.
        alpha: the width of the bound, 0 or more; 0 sorts by score.
        l2: ≥ 1e-6, the weight of the regularisation ``‖w‖²``.
        loss: ``"mean"`` over the pairs; or ``"sum"``: the sum over the pairs and ``½ l2 ‖w‖²``, whose regularisation
            matters less with more pairs.
        disjoint: whether the clicked and the unclicked candidates of a session are paired one to one, at random, so that pairs
            are independent; else each with each.
        inside: the order in a block: ``"random"``, or ``"certain"``: a random order that agrees with all certain pairs.
        one_below: whether the position right below the last click is compared, too, as by the authors' code.
        growth: fits the model anew once the number of pairs has grown by this share since the last fit. 0 fits it in every
            session with a pair, as in the paper; 0.01 makes long runs fast.
        seed: seeds the agent's own generator.

    Attributes:
        state: ``blocks``, the number of each candidate's block at the last display, from the top; ``certain (L, L)``.

    Raises:
        ValueError: on a negative alpha or growth, an l2 below 1e-6, or an unknown loss or order.

    Source: Jia, Wang, Guo, Wang, *PairRank: online pairwise learning to rank by divide-and-conquer*, WWW 2021, Algorithm 1.

    Deviations from the paper:
        1. ⚠ The loss of the authors' code: the mean over pairs, whose regularisation does not fade, so that w stays small and
           certainty grows through A alone. The usual theory, to which ``A_0 = l2 I`` belongs, has ``loss="sum"``.
        2. ⚠ Certain pairs are closed transitively, so that blocks always have one order; the authors' code does so by an
           option, and else merges the blocks of a circle.
        3. ⚠ Nothing below the last click is compared. The authors' code also takes the candidate right below it, as `PDGD`
           does: ``one_below=True``.
        4. ⚠ A bound counts as above ½ if it is by more than 1e-10: equal candidates are never certain, however A rounds.
        5. w is exact, to a gradient of norm 1e-8, not what an optimiser with a limit of steps returns.

    Memory and time: 8 d bytes for each pair, of which a session has at most K/2 (``disjoint=False``: K²/4). Without ``growth``,
    a run of N pairs takes ``O(N² d)``; a list takes ``O(L d² + L² d + L³)``.

    Example:
        >>> PairRank(5, 2, n_features=1, seed=0).rank({"features": [[0.1], [0.2], [0.3], [0.4], [0.5]]}).shape
        (2,)
    """

    paper = "Jia et al. 2021, Algorithm 1"
    judged_documents = True
    state_type = State
    rank_kernel = rank
    update_kernel = update
    weights = "weights"
    learns_from = ANY_LIST
    growing: ClassVar[frozenset[str]] = frozenset({"pairs"})
    counts: ClassVar = {"pairs": "n_pairs"}

    alpha: float = hyperparameter(default=0.1, check=at_least(0), search=Range(0.003, 3.0, log=True))
    l2: float = hyperparameter(default=0.1, check=at_least(LEAST_RIDGE), search=Range(1e-4, 10.0, log=True))
    loss: str = hyperparameter(default="mean", check=one_of(LOSS), search=LOSS)
    disjoint: bool = hyperparameter(default=True, check=check_flag, search=(True, False))
    inside: str = hyperparameter(default="random", check=one_of(INSIDE), search=INSIDE)
    one_below: bool = hyperparameter(default=False, check=check_flag)
    growth: float = hyperparameter(default=0.0, check=at_least(0))

    def _rows(self) -> dict[str, int]:
        return {"pairs": self.n_positions // 2 if self.state.is_disjoint else self.n_positions**2 // 4}

    def _first_values(self) -> dict[str, Any]:
        identity, hyperparameters = np.eye(self.n_features), self.hyperparameters
        l2 = hyperparameters["l2"]
        ridge = l2 * (2.0 if hyperparameters["loss"] == "mean" else 1.0)
        return {
            "factor": math.sqrt(l2) * identity,
            "pairs": np.zeros((FEW, self.n_features)),
            "stream": new_stream(self.rng),
            "hessian": ridge * identity,
            "hessian_factor": math.sqrt(ridge) * identity,
            "ridge": ridge,
            "is_mean": hyperparameters["loss"] == "mean",
            "is_disjoint": hyperparameters["disjoint"],
            "is_one_below": hyperparameters["one_below"],
            "is_random": hyperparameters["inside"] == "random",
        }
