"""OLRankNet and OLLambdaRank (Jia and Wang 2022): PairRank with a network, whose gradients measure certainty.

Letters: L candidates in a session, K positions, d features, P weights of the network, n pairs so far.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numba import objmode
from numpy.typing import ArrayLike, NDArray

from ..core.checks import Choices, check_flag
from ..core.kernels import inner, kernel
from ..core.state import Flags, Floats, Ints, joined
from .agent import MAX_OPEN
from .growing import FEW
from .hyperparameters import above, at_least, count, hyperparameter, one_of
from .linear import LEAST_RIDGE
from .networks import NetworkAgent, NetworkState, check_widths, evaluate, first_network, layers, outputs, train
from .pair_rank import INSIDE, add_square, count_pairs, find_certain, find_pairs, pair_of, scale_by_factor, show_blocks
from .search_space import Range
from .streams import next_uniform

COVARIANCE = Choices(("diagonal", "full"))
MOST_WEIGHTS = 2000  # with a full covariance
MEMORY = 2**30  # bytes of the weights that displays remember
DECAY = 0.99999977  # of the learning rate, per epoch


class Pairs(NamedTuple):
    shown: Annotated[Floats, "P"]  # the weights of the display
    documents: Floats  # (C, d + 2) of each compared candidate the features, the number of its session, and of clicks in it
    n_documents: Annotated[Ints, "1"]
    pairs: Ints  # (C, 2) the documents of each pair, the clicked one first
    n_pairs: Annotated[Ints, "1"]  # n
    diagonal: Floats  # (P,) A
    factor: Floats  # (P, P) the upper triangle U with UᵀU = A; (0, 0) if A is diagonal
    # Of the last display, as in PairRank.
    scaled: Annotated[Floats, "L P"]  # the gradients, of which A⁻¹ measures distances, divided by the root of A
    certain: Annotated[Flags, "L L"]
    blocks: Annotated[Ints, "L"]
    # Working memory.
    clicked: Annotated[Ints, "K"]
    unclicked: Annotated[Ints, "K"]
    slopes: Annotated[Floats, "U"]
    step: Annotated[Floats, "P"]
    alpha: float
    l2: float
    is_full: bool
    is_disjoint: bool
    is_one_below: bool
    is_random: bool
    is_weighted: bool  # the pairs, by what their exchange changes: OLLambdaRank
    max_batches: int  # 0: all


State = joined("State", NetworkState, Pairs)


def fit(state: Any, seed: int) -> None:
    """Train a network anew with all pairs, with PyTorch."""
    import torch
    from torch.nn.functional import softplus

    rng, network, sizes = np.random.default_rng(seed), state.network, state.sizes
    network[...] = first_network(sizes, rng)
    documents, pairs = state.documents[: state.n_documents[0]], state.pairs[: state.n_pairs[0]]
    features = torch.from_numpy(documents[:, :-2])

    def loss(weights: Any, batch: NDArray[np.int64]) -> Any:
        now = layers(weights, sizes)
        clicked, unclicked = (outputs(now, features[pairs[batch, side]])[-1][:, 0] for side in (0, 1))
        losses = softplus(unclicked - clicked)
        if state.is_weighted:
            present = outputs(layers(network, sizes), documents[:, :-2])[-1][:, 0]
            losses = losses * torch.from_numpy(gains(present, documents, pairs[batch]))
        return losses.mean()

    train(network, loss, len(pairs), rng, state.training, state.l2 / len(pairs), DECAY, state.max_batches or None, drop=True)


def gains(scores: NDArray[np.float64], documents: NDArray[np.float64], pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """How much the exchange of two documents changes the NDCG of their session, in the order of the scores.

    Args:
        scores: ``(C,)`` of all documents, whose sessions lie one behind the other.
        documents: ``(C, d + 2)`` as in the state.
        pairs: ``(n, 2)`` documents.
    """
    session, n_clicks = documents[:, -2], documents[pairs[:, 0], -1].astype(np.int64)
    order = np.lexsort((-np.round(scores, 10), session))  # documents with equal features differ by rounding
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order)) - np.searchsorted(session, session)
    discounts = 1 / np.log2(np.arange(len(order) + n_clicks.max()) + 2)
    ideal = np.concatenate([[0.0], np.cumsum(discounts)])
    upper, lower = discounts[places[pairs]].T
    return np.abs(upper - lower) / ideal[n_clicks]


# ------------------------------------------------------------------------------------------------------------ the kernels


@inner
def differentiate(network, sizes, units, slopes, gradient):  # type: ignore[no-untyped-def]
    """Write the gradient of the score that `evaluate` computed last, in the weights; a unit at 0 has slope 0."""
    begin, place = len(units) - 1, len(network)  # of the layer's outputs; behind its weights
    slopes[begin] = 1.0
    for layer in range(len(sizes) - 1, 0, -1):
        n, m = sizes[layer - 1], sizes[layer]
        place -= (n + 1) * m
        for i in range(n):
            value, slope = units[begin - n + i], 0.0
            for j in range(m):
                gradient[place + i * m + j] = value * slopes[begin + j]
                slope += network[place + i * m + j] * slopes[begin + j]
            slopes[begin - n + i] = slope if value > 0.0 else 0.0
        for j in range(m):
            gradient[place + n * m + j] = slopes[begin + j]
        begin -= n


@kernel
def note_weights(state):  # type: ignore[no-untyped-def]
    for p in range(len(state.network)):
        state.shown[p] = state.network[p]


@kernel
def rank(state, rng, features, ranking):  # type: ignore[no-untyped-def]
    note_weights(state)
    for a in range(len(features)):
        state.scores[a] = evaluate(state.network, state.sizes, features[a], state.units)
        gradient = state.scaled[a]
        differentiate(state.network, state.sizes, state.units, state.slopes, gradient)
        if state.is_full:
            scale_by_factor(state.factor, gradient)
        else:
            for p in range(len(gradient)):
                gradient[p] /= np.sqrt(state.diagonal[p])
    find_certain(state)
    show_blocks(state, rng, ranking)


@kernel
def update(state, features, ranking, clicks):  # type: ignore[no-untyped-def]
    state.n_learned[0] += 1
    n_clicked, n_unclicked = find_pairs(state, clicks)
    n_new, first = count_pairs(state, n_clicked, n_unclicked), state.n_documents[0]
    if n_new == 0:
        return
    for place in range(n_clicked + n_unclicked):
        k = state.clicked[place] if place < n_clicked else state.unclicked[place - n_clicked]
        x, d, document = features[ranking[k]], features.shape[1], state.documents[first + place]
        for j in range(d):
            document[j] = x[j]
        document[d], document[d + 1] = state.n_learned[0], n_clicked
        evaluate(state.shown, state.sizes, x, state.units)
        differentiate(state.shown, state.sizes, state.units, state.slopes, state.scaled[place])
    state.n_documents[0] += n_clicked + n_unclicked
    for number in range(n_new):
        p, q = pair_of(state, number, n_unclicked)
        for j in range(len(state.step)):
            state.step[j] = state.scaled[p, j] - state.scaled[n_clicked + q, j]
            if not state.is_full:
                state.diagonal[j] += state.step[j] * state.step[j]
        if state.is_full:
            add_square(state.factor, state.step)
        pair = state.pairs[state.n_pairs[0]]
        pair[0], pair[1] = first + p, first + n_clicked + q
        state.n_pairs[0] += 1
    if state.n_pairs[0] >= (1.0 + state.growth) * state.n_fitted[0]:
        seed = int(next_uniform(state.stream) * 2.0**53)
        with objmode():
            fit(state, seed)
        state.n_fitted[0] = state.n_pairs[0]


# ------------------------------------------------------------------------------------------------------------- the agents


class OLRankNet(NetworkAgent):
    """OLRankNet: sorts candidates by a network trained with click pairs, and shuffles blocks whose order is uncertain.

    Idea:
        OLRankNet is `PairRank` with a network in place of a linear score. How certain the network is about two candidates
        follows from its gradients in all weights: two candidates with similar gradients are scored alike, and pairs that were
        learned make differences in the same direction certain. Candidates that are connected by uncertain pairs form a block,
        and each block is shown in random order, so that position bias cancels within an uncertain pair. From the clicks it
        takes pairs of a clicked candidate and an unclicked one above the last click, and trains the network anew with all pairs
        so far. The paper trains after every session with a pair, which is slow: ``growth=0.1`` trains when the pairs have grown
        by a tenth, and is sensible up to about 10,000 sessions, ``growth=0`` up to a few hundred.

    Algorithm:
        ::

            f: the network, with random weights;  g(x): its gradient in the P weights at x;  σ(z) = 1 / (1 + e^{−z})
            A = l2 (one number for each weight),  no pairs
            for session t = 1, 2, …:
                observe the features x_i of the L candidates
                for each two candidates i and j, with δ = g(x_i) − g(x_j):
                    i is certainly before j if σ(f(x_i) − f(x_j)) − alpha sqrt(Σ_p δ_p² / A_p) > ½
                if i is certainly before j and j before k, then i is certainly before k
                blocks = candidates connected by uncertain pairs; their order is certain
                show the blocks in this order, cut at K, each shuffled
                    (inside="certain": as far as certain pairs allow)
                observe the clicks
                for each pair of a clicked candidate c and an unclicked one u above the last click:
                    A_p += (g(x_c) − g(x_u))_p² for each weight p;  keep the pair
                if there are new pairs, at least 1 + growth times as many as at the last training:
                    draw new weights, and train f with all pairs:
                        minimise mean log(1 + e^{f(x_u) − f(x_c)}) + l2/(2n) Σ_p w_p²        (n: the number of pairs)

    Args:
        n_items: L, candidates in each session.
        n_positions: K.
        n_features: d; ``make_agent`` fills it in.
        hidden: the widths of the hidden layers.
        alpha: the width of the bound, 0 or more; 0 sorts by score.
        l2: ≥ 1e-6, the weight of the regularisation, and the first value of A.
        covariance: ``"diagonal"``; or ``"full"``: A is a matrix, ``l2 I + Σ δδᵀ``, for at most 2,000 weights.
        learning_rate: > 0, of Adam.
        epochs: how often a training goes through the pairs.
        batch_size: pairs of a step.
        max_batches: steps of an epoch at most; None: all. The authors' code has 10 with ``disjoint=False``.
        disjoint, inside, one_below: as in `PairRank`.
        growth: trains anew once the number of pairs has grown by this share since the last training; 0: in every session with
            a pair, as in the paper.
        seed: seeds the agent's own generator.

    Raises:
        ImportError: PyTorch is not installed.
        ValueError: on a bad hyper-parameter, or a full covariance of more than 2,000 weights.

    Source: Jia, Wang, *Learning neural ranking models online from implicit user feedback*, WWW 2022, Algorithm 1.

    Deviations from the paper:
        1. ⚠ `growth`, with which fewer trainings are enough. The default 0 is the paper's.
        2. ⚠ Certain pairs, blocks and pairs of clicks as in `PairRank`: the closure is transitive, and the position right below
           the last click is compared only with ``one_below=True``; the authors' code always does so.
        3. ⚠ A gets the gradients by the weights of the display, also if the clicks come late: each open display remembers its
           weights, 8 P bytes. At most 1 GiB is kept (the attribute ``max_open``); then the oldest displays are dropped.
        4. Adam with ``l2 / n`` times the weights added to the gradient; the rate is multiplied by 0.99999977 after each epoch.
           A last batch of less than half the size is left out, if there are others, as in the authors' code.
        5. ⚠ A session with clicks but without a pair changes nothing, and none trains twice; in the authors' code it may.

    Memory and time: ``O(L P + L² P)`` a list (full covariance: ``O(L P²)``); each training takes ``O(n P epochs)``.

    Example:
        >>> OLRankNet(5, 2, n_features=1, hidden=[4], seed=0).rank({"features": [[0.1], [0.2], [0.3], [0.4], [0.5]]}).shape
        (2,)
    """

    paper = "Jia and Wang 2022, Algorithm 1"
    judged_documents = True
    state_type = State
    rank_kernel = rank
    update_kernel = update
    count_kernel = note_weights
    remembered = ("shown",)
    growing: ClassVar[frozenset[str]] = frozenset({"documents", "pairs"})
    counts: ClassVar = {"documents": "n_documents", "pairs": "n_pairs"}
    is_weighted: ClassVar[bool] = False

    alpha: float = hyperparameter(default=0.1, check=at_least(0), search=Range(0.003, 3.0, log=True))
    l2: float = hyperparameter(default=0.1, check=at_least(LEAST_RIDGE), search=Range(1e-4, 10.0, log=True))
    covariance: str = hyperparameter(default="diagonal", check=one_of(COVARIANCE))
    max_batches: int | None = hyperparameter(default=None, check=count())
    disjoint: bool = hyperparameter(default=False, check=check_flag)
    inside: str = hyperparameter(default="random", check=one_of(INSIDE))
    one_below: bool = hyperparameter(default=False, check=check_flag)
    hidden: ArrayLike = hyperparameter(default=(100,), check=check_widths)
    learning_rate: float = hyperparameter(default=0.1, check=above(0), search=Range(1e-3, 0.3, log=True))
    epochs: int = hyperparameter(default=20, check=count())
    batch_size: int = hyperparameter(default=1024, check=count())
    growth: float = hyperparameter(default=0.0, check=at_least(0))

    def _initial_state(self) -> Any:
        state = super()._initial_state()
        self.max_open = min(MAX_OPEN, MEMORY // state.shown.nbytes)
        return state

    def _rows(self) -> dict[str, int]:
        return {"documents": self.n_positions, "pairs": self.n_positions**2 // 4}

    def _first_values(self) -> dict[str, Any]:
        hyperparameters, n_weights = self.hyperparameters, self._state_sizes()["P"]
        is_full = hyperparameters["covariance"] == "full"
        if is_full and n_weights > MOST_WEIGHTS:
            raise ValueError(
                f"covariance is 'full', and the network has {n_weights:,} weights; expected {MOST_WEIGHTS:,} at most"
            )
        return super()._first_values() | {
            "documents": np.zeros((FEW, self.n_features + 2)),
            "pairs": np.zeros((FEW, 2), np.int64),
            "diagonal": np.full(n_weights, hyperparameters["l2"]),
            "factor": np.sqrt(hyperparameters["l2"]) * np.eye(n_weights if is_full else 0),
            "max_batches": hyperparameters["max_batches"] or 0,
            "is_full": is_full,
            "is_disjoint": hyperparameters["disjoint"],
            "is_one_below": hyperparameters["one_below"],
            "is_random": hyperparameters["inside"] == "random",
            "is_weighted": self.is_weighted,
        }


class OLLambdaRank(OLRankNet):
    """OLLambdaRank: OLRankNet, whose network is trained most with the pairs that matter for the top of a list.

    Idea:
        OLLambdaRank ranks and learns as `OLRankNet`, with one difference. In the training, the loss of each pair of a clicked
        and an unclicked candidate is multiplied by the change of the NDCG (a measure that counts the top of a list most) if the
        two exchanged their places. These places are those by the network's present scores among the candidates of the session
        down to the last click. They are computed anew before every step of the training, from the scores of all candidates
        that were compared so far, so the time of a session grows with their number. It is sensible up to about 3,000 sessions
        with ``growth=0.1``, and up to a few hundred with ``growth=0``.

    Algorithm:
        ::

            as OLRankNet; but where f is trained, before each step:
                for each session, and each candidate i of it down to the last click:
                    r_i = the number of those candidates with a larger f
                for each pair of a clicked candidate c and an unclicked one u:
                    w = |1 / log₂(r_c + 2) − 1 / log₂(r_u + 2)| / Σ_{m < number of clicks} 1 / log₂(m + 2)
                    its loss is w log(1 + e^{f(x_u) − f(x_c)})
                minimise the mean of these losses,
                    not divided by the sum of w

    Args:
        n_items, n_positions, n_features, hidden, alpha, l2, covariance, learning_rate, epochs, batch_size, max_batches: as in
            `OLRankNet`.
        disjoint, inside, one_below, growth, seed: as in `OLRankNet`.

    Raises:
        ImportError: PyTorch is not installed.
        ValueError: on a bad hyper-parameter, or a full covariance of more than 2,000 weights.

    Source: as for `OLRankNet`.

    Deviations from the paper:
        1. ⚠ Those of `OLRankNet`.
        2. ⚠ Of candidates whose scores are equal to ten decimals, the clicked one comes first.
        3. ⚠ With ``one_below=True`` the position right below the last click counts among the candidates of the session.

    Example:
        >>> OLLambdaRank(5, 2, n_features=1, hidden=[4], seed=0).rank({"features": [[0.1], [0.2], [0.3], [0.4], [0.5]]}).shape
        (2,)
    """

    is_weighted = True
