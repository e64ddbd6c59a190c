"""Bandits with a small network: NeuralLinearTS (Riquelme et al. 2018) and NeuralGreedy.

Letters: L candidates in a session, K positions, d features, n samples: the examined positions of all sessions.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numba import objmode
from numpy.typing import ArrayLike, NDArray

from ..core.checks import probability
from ..core.kernels import inner, kernel
from ..core.state import Floats, Ints, joined
from .growing import FEW
from .hyperparameters import at_least, hyperparameter, one_of
from .kernels import FEEDBACK, examined_positions, show_any
from .linear import ALL_POSITIONS, cholesky, dot, show_largest, solve_lower, solve_upper
from .networks import NetworkAgent, NetworkState, evaluate, layers, outputs, train
from .position_based import check_examination
from .search_space import Range
from .streams import next_uniform

START = 100  # samples before which lists are random


class Samples(NamedTuple):
    samples: Floats  # (C, d + 2) features, κ and click of each sample; C grows
    n_samples: Annotated[Ints, "1"]  # n
    weights: Floats  # (K,) κ, or 1
    code: int  # which positions are samples: FIRST_CLICK, LAST_CLICK or ALL_POSITIONS


class Chance(NamedTuple):
    epsilon: float  # ε


class Regression(NamedTuple):
    gram: Floats  # (H, H) B
    moment: Annotated[Floats, "H"]  # b
    draw: Annotated[Floats, "H"]  # w of the last display
    factor: Annotated[Floats, "H H"]  # working memory: the Cholesky factor of B
    scale: float


GreedyState = joined("GreedyState", NetworkState, Samples, Chance)
LinearState = joined("LinearState", NetworkState, Samples, Regression)


def fit(state: Any, seed: int) -> None:
    """Train the network further, by the cross-entropy of κσ(f) and the clicks, with PyTorch."""
    import torch
    from torch.nn.functional import logsigmoid

    table = torch.from_numpy(state.samples[: state.n_samples[0]])
    features, examined, clicked = table[:, :-2], table[:, -2], table[:, -1]

    def loss(weights: Any, batch: NDArray[np.int64]) -> Any:
        scores, kappa, click = outputs(layers(weights, state.sizes), features[batch])[-1][:, 0], examined[batch], clicked[batch]
        no_click = torch.logaddexp(torch.log1p(-kappa), kappa.log() + logsigmoid(-scores))  # log(1 - κσ)
        return -(click * (kappa.log() + logsigmoid(scores)) + (1 - click) * no_click).mean()

    train(state.network, loss, len(table), np.random.default_rng(seed), state.training)


def phi_of(state: Any, features: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return φ of candidates ``(n, d)``: the last hidden layer and 1, ``(n, H)``."""
    return np.column_stack([outputs(layers(state.network, state.sizes), features)[-2], np.ones(len(features))])


def regress(state: Any) -> None:
    """Compute B and b anew, from all samples with the present φ."""
    samples = state.samples[: state.n_samples[0]]
    phi = phi_of(state, samples[:, :-2]) * samples[:, -2:-1]
    state.gram[...] = np.eye(len(state.moment)) + phi.T @ phi
    state.moment[...] = phi.T @ samples[:, -1]


# ------------------------------------------------------------------------------------------------------------ the kernels


@inner
def rank_randomly(state, rng, ranking):  # type: ignore[no-untyped-def]
    for a in range(len(state.order)):
        state.order[a] = a
    show_any(state.order, rng, ranking)


@kernel
def rank_greedily(state, rng, features, ranking):  # type: ignore[no-untyped-def]
    if state.n_fitted[0] == 0 or rng.random() < state.epsilon:
        rank_randomly(state, rng, ranking)
        return
    for a in range(len(features)):
        state.scores[a] = evaluate(state.network, state.sizes, features[a], state.units)
    show_largest(state.scores, state.order, rng, ranking)


@kernel
def rank_by_draw(state, rng, features, ranking):  # type: ignore[no-untyped-def]
    if state.n_fitted[0] == 0:
        rank_randomly(state, rng, ranking)
        return
    # With B = F Fᵀ and z of independent standard normals, F⁻ᵀ(F⁻¹b + scale z) has the mean B⁻¹b and the covariance scale² B⁻¹.
    draw, h = state.draw, len(state.draw) - 1
    cholesky(state.gram, 1.0, state.factor)
    for i in range(h + 1):
        draw[i] = state.moment[i]
    solve_lower(state.factor, draw)
    for i in range(h + 1):
        draw[i] += state.scale * rng.standard_normal()
    solve_upper(state.factor, draw)
    for a in range(len(features)):
        evaluate(state.network, state.sizes, features[a], state.units)
        state.units[len(state.units) - 1] = 1.0  # φ is the last hidden layer and 1
        state.scores[a] = dot(draw, state.units[len(state.units) - h - 1 :])
    show_largest(state.scores, state.order, rng, ranking)


@inner
def add_samples(state, features, ranking, clicks):  # type: ignore[no-untyped-def]
    """Store a session's samples, and train the network if they have grown enough; returns whether it did."""
    state.n_learned[0] += 1
    before, d = state.n_samples[0], features.shape[1]
    examined = len(ranking) if state.code == ALL_POSITIONS else examined_positions(clicks, state.code)
    for k in range(examined):
        if clicks[k] <= 1:
            sample = state.samples[state.n_samples[0]]
            for j in range(d):
                sample[j] = features[ranking[k], j]
            sample[d], sample[d + 1] = state.weights[k], clicks[k]
            state.n_samples[0] += 1
    n = state.n_samples[0]
    if n == before or n < START or n < (1.0 + state.growth) * state.n_fitted[0]:
        return False
    seed = int(next_uniform(state.stream) * 2.0**53)
    with objmode():
        fit(state, seed)
    state.n_fitted[0] = n
    return True


@kernel
def update_network(state, features, ranking, clicks):  # type: ignore[no-untyped-def]
    add_samples(state, features, ranking, clicks)


@kernel
def update_regression(state, features, ranking, clicks):  # type: ignore[no-untyped-def]
    first, h = state.n_samples[0], len(state.moment) - 1
    if add_samples(state, features, ranking, clicks):
        with objmode():
            regress(state)
        return
    for number in range(first, state.n_samples[0]):
        sample = state.samples[number]
        evaluate(state.network, state.sizes, sample[: len(sample) - 2], state.units)
        state.units[len(state.units) - 1] = 1.0
        phi, kappa, click = state.units[len(state.units) - h - 1 :], sample[len(sample) - 2], sample[len(sample) - 1]
        for i in range(h + 1):
            for j in range(h + 1):
                state.gram[i, j] += kappa * kappa * phi[i] * phi[j]
            state.moment[i] += kappa * click * phi[i]


# ------------------------------------------------------------------------------------------------------------- the agents


class _NeuralBandit(NetworkAgent):
    """Base class of the two agents: the network, and the samples that it is trained with."""

    growing: ClassVar = frozenset({"samples"})
    counts: ClassVar = {"samples": "n_samples"}

    examination: ArrayLike | None = hyperparameter(
        default=None, check=check_examination, sizes=("n_positions",), told="examination"
    )
    feedback: str = hyperparameter(default="last_click", check=one_of(FEEDBACK))

    def _rows(self) -> dict[str, int]:
        return {"samples": self.n_positions}

    def _first_values(self) -> dict[str, Any]:
        examination, code = self.hyperparameters["examination"], FEEDBACK.index(self.hyperparameters["feedback"])
        weights, code = (np.ones(self.n_positions), code) if examination is None else (examination.copy(), ALL_POSITIONS)
        return super()._first_values() | {"samples": np.zeros((FEW, self.n_features + 2)), "weights": weights, "code": code}


class NeuralGreedy(_NeuralBandit):
    """NeuralGreedy: a network predicts clicks from features; random lists with probability ε.

    Idea:
        NeuralGreedy trains a small network to predict from features how attractive a candidate is. If the examination
        probability κ_k of each position is known, a click at position k is explained by κ_k times the attraction; otherwise the
        positions that users seem to have examined are the samples. It shows the candidates of largest prediction, and random
        lists with a small probability ε. The network needs no knowledge of which products of features matter, and its training
        continues from the last one. Random lists cost the same however much has been learned. It is sensible up to about 10⁵
        sessions: the samples are all kept, and all trainings together take about six times as long as the last.

    Algorithm:
        ::

            f: a network with random weights, one output;  σ(z) = 1 / (1 + e^{−z})
            κ_k: the examination probability of position k, or 1 if it is not known
            for session t = 1, 2, …:
                observe the features x_a of the L candidates
                if f was not trained yet, or with probability ε:
                    show K random candidates in random order
                otherwise:
                    show the K candidates with the largest f(x_a), the largest on top; ties at random
                observe the clicks c_1 … c_K
                for each examined position k (all, if κ is known), with x the features shown there:
                    keep the sample (x, κ_k, c_k)
                if there are at least 100 samples, and 1 + growth times as many as at the last training:
                    train f further, with all samples:
                        minimise −mean c log(κσ(f(x))) + (1 − c) log(1 − κσ(f(x)))

    Args:
        n_items: L, candidates in each session.
        n_positions: K.
        n_features: d; ``make_agent`` fills it in.
        examination: ``(K,)`` κ, the known examination probabilities, in ``(0, 1]``; None: not known. ``make_agent`` fills them
            in where the users follow a position-based model.
        feedback: which positions were examined if κ is not known, as in `CascadeUCB1`.
        hidden: the widths of the hidden layers.
        epsilon: ε, in ``[0, 1]``.
        learning_rate: > 0, of Adam.
        epochs: how often a training goes through the samples.
        batch_size: samples of a step.
        growth: trains further once the number of samples has grown by this share since the last training, 0 or more.
        seed: seeds the agent's own generator.

    Raises:
        ImportError: PyTorch is not installed.
        ValueError: on κ of a wrong shape or outside ``(0, 1]``, or another bad hyper-parameter.

    Source: a baseline: `EpsilonGreedy` with a network.

    Deviations from the paper:
        1. ⚠ Lists are random until 100 samples have arrived; then the network is trained for the first time.
        2. ⚠ Each training begins with the weights of the last one, and with fresh moments of Adam.
        3. ⚠ Scores closer than 1e-10 are ordered at random.

    Memory and time: ``8 (d + 2)`` bytes for each sample; each training takes ``O(n P epochs)``, P the number of weights.

    Example:
        >>> NeuralGreedy(5, 2, n_features=1, seed=0).rank({"features": [[0.1], [0.2], [0.3], [0.4], [0.5]]}).shape
        (2,)
    """

    paper = "a baseline"
    state_type = GreedyState
    rank_kernel = rank_greedily
    update_kernel = update_network

    epsilon: float = hyperparameter(default=0.05, check=probability, search=Range(0.001, 0.3, log=True))


class NeuralLinearTS(_NeuralBandit):
    """NeuralLinearTS: Thompson sampling by a Bayesian linear regression on the last hidden layer of a network.

    Idea:
        NeuralLinearTS lets a small network find what matters in the features, and measures its uncertainty by a linear
        regression. The network is trained to predict clicks, as in `NeuralGreedy`. Its last hidden layer gives new features of
        each candidate, on which a Bayesian linear regression explains the clicks; it learns from every session, also between
        two trainings of the network. In every session one weight vector is drawn from the posterior of this regression, and the
        candidates with the largest scores by it are shown, so the agent explores less and less. It is sensible up to about 10⁵
        sessions, because the samples are all kept, and all trainings together take about six times as long as the last. No
        bound of its regret is known.

    Algorithm:
        ::

            f: a network with random weights;  φ(x) = [its last hidden layer, 1];  I: the identity matrix
            κ_k: the examination probability of position k, or 1 if it is not known
            B = I,  b = 0
            for session t = 1, 2, …:
                observe the features x_a of the L candidates
                if f was not trained yet:
                    show K random candidates in random order
                otherwise:
                    draw one w from N(B⁻¹b, scale² B⁻¹)
                    show the K candidates with the largest wᵀφ(x_a), the largest on top; ties at random
                observe the clicks c_1 … c_K
                for each examined position k (all, if κ is known), with x the features shown there:
                    keep the sample (x, κ_k, c_k);  B += κ_k² φ(x)φ(x)ᵀ;  b += κ_k c_k φ(x)
                if there are at least 100 samples, and 1 + growth times as many as at the last training:
                    train f further, as NeuralGreedy
                    B = I + Σ κ² φ(x)φ(x)ᵀ,  b = Σ κ c φ(x), over all samples with the new φ

    Args:
        n_items: L, candidates in each session.
        n_positions: K.
        n_features: d; ``make_agent`` fills it in.
        examination: ``(K,)`` κ, the known examination probabilities, in ``(0, 1]``; None: not known. ``make_agent`` fills them
            in where the users follow a position-based model.
        feedback: which positions were examined if κ is not known, as in `CascadeUCB1`.
        hidden: the widths of the hidden layers.
        scale: ≥ 0, the standard deviation of a click that the posterior assumes; 0 explores nothing.
        learning_rate: > 0, of Adam.
        epochs: how often a training goes through the samples.
        batch_size: samples of a step.
        growth: trains further once the number of samples has grown by this share since the last training, 0 or more.
        seed: seeds the agent's own generator.

    Raises:
        ImportError: PyTorch is not installed.
        ValueError: on κ of a wrong shape or outside ``(0, 1]``, or another bad hyper-parameter.

    Source: Riquelme, Tucker, Snoek, *Deep Bayesian bandits showdown: an empirical comparison of Bayesian deep networks for
    Thompson sampling*, ICLR 2018, Neural Linear.

    Deviations from the paper:
        1. ⚠ Lists, with one draw for all candidates, and samples weighted by κ as in `PBMLinTS`; the paper has single actions,
           whose rewards are observed.
        2. ⚠ The noise of clicks is the constant `scale`; the paper gives it a prior, too.
        3. ⚠ The network is trained by cross-entropy, and whenever the samples have grown by `growth`: a schedule of our own.
        4. ⚠ Random first lists, warm starts and ties as in `NeuralGreedy`.

    Memory and time: as `NeuralGreedy`, and ``O(H³)`` a list, H the width of the last hidden layer.

    Example:
        >>> NeuralLinearTS(5, 2, n_features=1, seed=0).rank({"features": [[0.1], [0.2], [0.3], [0.4], [0.5]]}).shape
        (2,)
    """

    paper = "after Riquelme et al. 2018, Neural Linear"
    state_type = LinearState
    rank_kernel = rank_by_draw
    update_kernel = update_regression

    scale: float = hyperparameter(default=0.5, check=at_least(0), search=Range(0.01, 5.0, log=True))

    def _first_values(self) -> dict[str, Any]:
        return super()._first_values() | {"gram": np.eye(self.sizes[-2] + 1)}

    def _scores(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        return phi_of(self.state, features) @ np.linalg.solve(self.state.gram, self.state.moment)
