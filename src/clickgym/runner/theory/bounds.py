"""Bounds on the regret: lower bounds of click models and upper bounds of agents, to draw beside measured curves.

Every bound is a function ``bound(model, steps, **hyperparameters)`` of a click model, or of an environment, and of horizons;
`BOUNDS` has them by name with the agents and click models they concern. They share these rules:

- Each of ``steps`` is a horizon of its own: the value at n is about an agent that is told the horizon n, where it is told one.
  Beside one run to T, the last point is what the theorem says, and bounds the regret at every earlier step too.
- Hyper-parameters have the agents' names and defaults, so that a call without any is about the agent as `make_agent` builds it.
- An upper bound is infinite wherever the theorem says nothing: between items that tie, at a hyper-parameter on the edge of its
  range, at a horizon that is too short. A click model or a reward outside the theorem is refused.
- Lower bounds are asymptotic: ``c · log n`` where the theorem says ``lim inf R(n) / log n ≥ c``. Compare slopes, not values.

Not here are bounds whose constants we have not checked: those of PBM-PIE, GRAB, UniRank and GLR-Cascade.

Notation as in the package: L items, K positions, α attraction, here sorted so that α_1 ≥ … ≥ α_L, χ examination.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeVar

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...agents.cascade_nonstationary import discounted_gamma, window_length
from ...agents.kernels import kl
from ...agents.top_rank import C
from ...core.checks import check_at_least, check_between
from ...envs.cascade import CascadeModel
from ...envs.click_env import ClickEnv
from ...envs.click_model import ClickModel
from ...envs.contextual.model import LinearModel
from ...envs.position_based import PositionBasedModel
from ...envs.spaces import check_ranking
from ...envs.user_browsing import UserBrowsingModel
from ...envs.users import Users
from ..metrics import wrong_pairs
from .assumptions import check_assumptions

CASCADE_REWARDS = ("clicks", "any_click")  # there is at most one click

Problem = ClickModel | LinearModel | gym.Env[Any, Any]
Values = NDArray[np.float64]
Function = TypeVar("Function", bound=Callable[..., NDArray[np.float64]])


class Bound(NamedTuple):
    """A bound on the cumulative regret.

    Attributes:
        source: who proved it, and the theorem's number.
        kind: ``"lower"`` or ``"upper"``.
        agents: names of the agents it is about; empty if it is about every agent that learns on all models of the kind.
        models: the ``kind`` of the click models it is about. Of other kinds, some may satisfy what an upper bound assumes.
        value: ``value(model or environment, steps, **hyperparameters) -> regret``; a ValueError says why it does not apply.
        remark: how to read it beside a curve, if it is not a plain bound on the regret.
    """

    source: str
    kind: Literal["lower", "upper"]
    agents: tuple[str, ...]
    models: tuple[str, ...]
    value: Callable[..., Values]
    remark: str = ""


BOUNDS: dict[str, Bound] = {}
"""The bounds by name."""

CHANGING = ("PiecewiseStationaryModel of CM", "CM")
LEARNABLE = ("CM", "PBM")


def _bound(
    source: str, kind: Literal["lower", "upper"], models: tuple[str, ...], agents: tuple[str, ...] = (), remark: str = ""
) -> Callable[[Function], Function]:
    """Decorator that takes a bound into `BOUNDS`."""

    def register(value: Function) -> Function:
        BOUNDS[value.__name__] = Bound(source, kind, agents, models, value, remark)
        return value

    return register


# --------------------------------------------------------------------------------------------------------- lower bounds


@_bound("Kveton et al. 2015, Theorem 4", "lower", ("CM",), remark="asymptotic")
def cascade_lower(model: Problem, steps: ArrayLike) -> Values:
    """The least regret of any consistent agent in a cascade model, to first order in log n.

    ``Π_{i<K} (1 - α_i) · Σ_{k>K} (α_K - α_k) / KL(α_k, α_K) · log n``

    ⚠ The paper states it for K items of attraction p and L - K of p - Δ: ``(1-p)^{K-1} (L-K) Δ / KL(p-Δ, p)``. This is the
    general form that its proof gives, and equals it there: a session in which item k > K is examined costs at least
    ``α_K - α_k`` times the probability that none of K - 1 better items attracts, and k must be examined
    ``log n / KL(α_k, α_K)`` times. Showing k first attains both, since the reward does not depend on the order.

    Args:
        model: a `CascadeModel` with α_K > α_{K+1}, or its environment with the reward ``"clicks"`` or ``"any_click"``.
        steps: horizons, a number or an array of any shape.

    Returns:
        The bound at each horizon, in the shape of ``steps``.

    Raises:
        ValueError: on another click model or reward, on items that tie for position K, or a step below 1.

    Source: Kveton, Szepesvári, Wen, Ashkan, *Cascading bandits: learning to rank in the cascade model*, ICML 2015, Theorem 4;
    also quoted in Li, de Rijke, *Cascading non-stationary bandits: online learning to rank in the non-stationary cascade
    model*, IJCAI 2019, section 4.2.

    Example:
        >>> from clickgym.envs import CascadeModel
        >>> float(cascade_lower(CascadeModel([0.5, 0.5, 0.25], n_positions=2), 1000).round(3))
        6.601
    """
    what = "the cascade lower bound"
    problem = _cascade(_problem(model, what, CASCADE_REWARDS), what)
    n_positions, attraction = problem.n_positions, _sorted(problem.attraction)
    _check_unique(attraction, n_positions, what)
    last = attraction[n_positions - 1]
    cost = sum(_ratio(last - worse, kl(worse, last)) for worse in attraction[n_positions:])
    return math.prod(1.0 - attraction[: n_positions - 1]) * cost * np.log(_horizons(steps))


@_bound("Li and de Rijke 2019, Theorem 3", "lower", ("PiecewiseStationaryModel of CM",), remark="of the worst changes")
def cascade_switching_lower(model: Problem, steps: ArrayLike) -> Values:
    """Cascading bandits whose users change twice: ``L Δ (1-p)^{K-1} sqrt(2n / (3 KL(p-Δ, p)))``.

    ⚠ The paper states it for any learning algorithm on these users. It cannot hold so: once the changes are over, a consistent
    agent loses ``O(log n)``. Its proof takes the times ``sqrt(2n / (3 KL))`` from Garivier and Moulines (2011), where they are
    about the worst moments of change for the agent at hand. So read it as the order that no agent can beat for all changes; on
    given users agents may have less.

    Args:
        model: a `PiecewiseStationaryModel` of `CascadeModel` with L = 2K items and two changes, in which always K items attract
            with p and the others with p - Δ; or its environment with the reward ``"clicks"`` or ``"any_click"``.
        steps: horizons, a number or an array of any shape.

    Returns:
        The bound at each horizon, in the shape of ``steps``.

    Raises:
        ValueError: on other users or another reward, or a step below 1.

    Source: Li, de Rijke, *Cascading non-stationary bandits: online learning to rank in the non-stationary cascade model*, IJCAI
    2019, Theorem 3.

    Example:
        >>> from clickgym.envs import CascadeModel, PiecewiseStationaryModel
        >>> epochs = [CascadeModel(attraction, n_positions=1) for attraction in ([0.5, 0.2], [0.2, 0.5], [0.5, 0.2])]
        >>> float(cascade_switching_lower(PiecewiseStationaryModel(epochs, [0, 100, 200]), 1000).round(2))
        35.29
    """
    what = "the lower bound of changing cascades"
    problem = _problem(model, what, CASCADE_REWARDS)
    attractions = np.array([_cascade(epoch, what).attraction for epoch in problem.epochs])
    n_positions, n_items = problem.n_positions, problem.n_items
    values = np.unique(attractions)
    if len(attractions) != 3 or n_items != 2 * n_positions or len(values) != 2:
        raise ValueError(
            f"{what} is about L = 2K items of two attractions and two changes; got L = {n_items}, K = {n_positions}, "
            f"{len(values)} attractions and {len(attractions) - 1} changes"
        )
    worse, p = values
    n_best = (attractions == p).sum(axis=1)
    if (n_best != n_positions).any():
        raise ValueError(f"{what} is about K = {n_positions} best items in every epoch, but there are {n_best.tolist()}")
    rate = n_items * (p - worse) * (1 - p) ** (n_positions - 1)
    return rate * np.sqrt(2 * _horizons(steps) * _ratio(1.0, 3 * kl(worse, p)))


@_bound("Lagrée et al. 2016, Theorem 6", "lower", ("PBM",), remark="asymptotic")
def pbm_lower(model: Problem, steps: ArrayLike) -> Values:
    """The least regret of any uniformly efficient agent that knows χ in a position-based model, to first order in log n.

    ``Σ_{k>K} min_l Δ_{k,l} / KL(χ_l α_k, χ_l α_K) · log n``, where ``Δ_{k,l}`` is the regret of the list
    ``(1, …, l-1, k, l, …, K-1)`` and l runs over the K positions. (In the paper's letters: K arms, L positions, θ, κ.)

    Args:
        model: a `PositionBasedModel` with χ > 0 and α_K > α_{K+1}, or its environment. The paper takes α and χ to decrease
            strictly; both are sorted here (a known χ may have any order), and other ties change nothing in its proof.
        steps: horizons, a number or an array of any shape.

    Returns:
        The bound at each horizon, in the shape of ``steps``.

    Raises:
        ValueError: on another click model or reward, a position that is never examined, items that tie for the last place
            in the list, or a step below 1.

    Source: Lagrée, Vernade, Cappé, *Multiple-play bandits in the position-based model*, NIPS 2016, Theorem 6.

    Example:
        >>> from clickgym.envs import PositionBasedModel
        >>> float(pbm_lower(PositionBasedModel([0.5, 0.25], [0.8]), 1000).round(3))
        15.096
    """
    problem = _pbm(model, "the PBM lower bound")
    n_positions, attraction = problem.n_positions, _sorted(problem.attraction)
    examination = _sorted(problem.examination)
    _check_unique(attraction, n_positions, "the PBM lower bound")
    last = attraction[n_positions - 1]
    coefficient = 0.0
    for worse in attraction[n_positions:]:
        ratios = []
        for place in range(n_positions):
            explored = np.insert(attraction[: n_positions - 1], place, worse)
            regret = float(examination @ (attraction[:n_positions] - explored))
            ratios.append(_ratio(regret, kl(examination[place] * worse, examination[place] * last)))
        coefficient += min(ratios)
    return coefficient * np.log(_horizons(steps))


# --------------------------------------------------------------------------------------------------------- upper bounds


@_bound("Zoghi et al. 2017, Theorem 1", "upper", LEARNABLE, agents=("BatchRank",))
def batch_rank_upper(model: Problem, steps: ArrayLike) -> Values:
    """BatchRank: ``192 K³L / ((1 - α_1) Δ_min) · log n + 4KL (3e + K)``, ``Δ_min = min_{k≤K} α_k - α_{k+1}``.

    Where K = L there is no α_{L+1}, and the least gap is that of the L items. Infinite below n = 5, where two items of the
    first K + 1 tie, and at α_1 = 1.

    Args:
        model: a click model that satisfies Zoghi et al.'s assumptions, or its environment with the reward ``"clicks"``: a
            `CascadeModel`, a `PositionBasedModel` whose χ does not increase, or any other that `check_assumptions` finds to.
        steps: horizons, a number or an array of any shape.

    Returns:
        The bound at each horizon, in the shape of ``steps``.

    Raises:
        ValueError: naming the assumption that fails; on another reward, a cutoff, or a step below 1.

    Source: Zoghi, Tunys, Ghavamzadeh, Kveton, Szepesvári, Wen, *Online learning to rank in stochastic click models*, ICML 2017,
    Theorem 1.

    Example:
        >>> from clickgym.envs import CascadeModel
        >>> float(batch_rank_upper(CascadeModel([0.5, 0.25], n_positions=1), np.e**5).round(1))
        15433.2
    """
    what = "BatchRank's regret bound"
    problem = _problem(model, what)
    _check_learnable(problem, "Zoghi 2017", what)
    n_positions, n_items, attraction = problem.n_positions, problem.n_items, _sorted(problem.attraction)
    gap = np.min(-np.diff(attraction[: n_positions + 1]), initial=np.inf)
    horizons = _horizons(steps)
    rate = _ratio(192.0 * n_positions**3 * n_items, (1.0 - attraction[0]) * gap)
    bound = _times(rate, np.log(horizons)) + 4 * n_positions * n_items * (3 * math.e + n_positions)
    return np.where(horizons < 5, np.inf, bound)


@_bound("Lattimore et al. 2018, Theorem 1", "upper", LEARNABLE, agents=("TopRank",))
def top_rank_upper(model: Problem, steps: ArrayLike, *, delta: float | None = None) -> Values:
    """TopRank: ``δ n K L² + Σ_j Σ_{i < j, i ≤ K} (1 + 6 (α_i + α_j) / (α_i - α_j) · log(c sqrt(n) / δ))``.

    ``c`` is the agent's constant. With the default of δ the first term is K L². Infinite where two items tie of which one
    belongs on the list, and below n = 2, where the default of δ is no probability.

    - ⚠ The theorem assumes of click probabilities what the paper shows for the CM and for a PBM whose χ does not increase (its
      assumptions 1 to 4). It is taken for these two only.
    - The constant 6 is safe. Of the sessions in which exactly one of a pair of one block is clicked, each drifts by at least
      ``(α_i - α_j) / (α_i + α_j)``; so the pair is decided when the drift exceeds twice the agent's threshold, and costs no
      more than that threshold, then ``4 (α_i + α_j) / (α_i - α_j) · log(c sqrt(n) / δ)``, but with probability δ L² at most.
    - It is loose: with yandex-9982 (CM) it is above the regret of random lists for 6·10⁴ sessions, and after 10⁵ it is 36 times
      the regret of TopRank.

    Args:
        model: a `CascadeModel` or a `PositionBasedModel` whose χ does not increase, or an environment of either with the reward
            ``"clicks"``.
        steps: horizons, a number or an array of any shape.
        delta: δ in ``(0, 1)``; None takes the agent's default, 1/n.

    Returns:
        The bound at each horizon, in the shape of ``steps``.

    Raises:
        ValueError: on another click model or reward, a cutoff, examination that increases, a bad delta, or a step below 1.

    Source: Lattimore, Kveton, Li, Szepesvári, *TopRank: a practical algorithm for online stochastic ranking*, NeurIPS 2018,
    Theorem 1.

    Example:
        >>> from clickgym.envs import CascadeModel
        >>> model = CascadeModel([0.5, 0.25], n_positions=1)  # 4 + 1 + 6 · 3 log(c sqrt(n) n)
        >>> float(top_rank_upper(model, 100).round(1))
        151.1
    """
    what = "TopRank's regret bound"
    problem = _problem(model, what)
    if not isinstance(problem, CascadeModel | PositionBasedModel):
        raise ValueError(f"{what} is about a CascadeModel or a PositionBasedModel; got {problem}")
    _check_learnable(problem, "", what)
    horizons = _horizons(steps)
    delta = 0.0 if delta is None else check_between("delta", delta, 0, 1)
    failure = np.where(horizons > 1, 1.0 / horizons, np.nan) if delta == 0 else np.full_like(horizons, delta)
    n_positions, n_items, attraction = problem.n_positions, problem.n_items, _sorted(problem.attraction)
    pairs = [(better, worse) for j, worse in enumerate(attraction) for better in attraction[: min(n_positions, j)]]
    rate = 6.0 * sum(_ratio(better + worse, better - worse) for better, worse in pairs)
    bound = failure * horizons * n_positions * n_items**2 + len(pairs) + _times(rate, np.log(C * np.sqrt(horizons) / failure))
    return np.where(np.isnan(failure), np.inf, bound)


@_bound("Li et al. 2019, Theorem 1", "upper", LEARNABLE, agents=("BubbleRank",))
def bubble_rank_upper(
    model: Problem, steps: ArrayLike, *, initial: ArrayLike | None = None, delta: float | None = None
) -> Values:
    """BubbleRank, K = L: ``180 K χ_max/χ_min · (K - 1 + 2|V_0|) / Δ_min · log(1/δ) + δ^½ K³ n²``.

    ``χ_max`` and ``χ_min`` are the examination of the first and of the last position of the sorted list, ``Δ_min`` the least
    gap between attractions, ``|V_0|`` the number of wrongly ordered pairs in the initial list. Infinite where two items tie or
    the last position is never examined.

    Args:
        model: a click model over K = L items that satisfies Li et al.'s A1-A5, or its environment with the reward
            ``"clicks"``: a `CascadeModel`, a `PositionBasedModel` whose χ does not increase, or any other that
            `check_assumptions` finds to.
        steps: horizons, a number or an array of any shape.
        initial: R_0, all items. None takes the environment's production list, and where there is none the worst, with
            ``K (K-1) / 2`` wrong pairs, which covers a random one.
        delta: δ in ``(0, 1)``; None takes ``n^{-4}``.

    Returns:
        The bound at each horizon, in the shape of ``steps``.

    Raises:
        ValueError: naming the assumption that fails; on K < L, another reward, a cutoff, a bad list or delta, a step below 1.

    Source: Li, Kveton, Lattimore, Markov, de Rijke, Szepesvári, Zoghi, *BubbleRank: safe online learning to re-rank via
    implicit click feedback*, UAI 2019, Theorem 1.

    Example:
        >>> from clickgym.envs import PositionBasedModel
        >>> model = PositionBasedModel([0.75, 0.5, 0.25], [1.0, 0.5, 0.5])
        >>> float(bubble_rank_upper(model, np.e, initial=[0, 1, 2]).round(6))  # 180·3·2·2/0.25·4 + 27
        34587.0
    """
    what = "BubbleRank's regret bound"
    problem = _problem(model, what)
    n_positions, attraction = problem.n_positions, problem.attraction
    if n_positions != problem.n_items:
        raise ValueError(f"{what} is about K = L items, all of them shown; got {problem}")
    _check_learnable(problem, "Li 2019a", what)
    if delta is not None and check_at_least("delta", delta, 0, strictly=True) >= 1:
        raise ValueError(f"delta is {delta!r}; expected a number in (0, 1)")
    if initial is None:
        initial = getattr(getattr(model, "unwrapped", model), "initial_ranking", None)
    if initial is None:
        wrong = n_positions * (n_positions - 1) // 2
    else:
        wrong = int(wrong_pairs(attraction, check_ranking(initial, n_positions, n_positions)))
    examination = problem.examination_probabilities(np.argsort(-attraction, kind="stable"))
    gap = np.min(-np.diff(_sorted(attraction)), initial=np.inf)
    horizons = _horizons(steps)
    log_delta = 4.0 * np.log(horizons) if delta is None else np.full_like(horizons, -math.log(delta))
    rate = _ratio(180.0 * n_positions * examination[0] * (n_positions - 1 + 2 * wrong), examination[-1] * gap)
    return _times(rate, log_delta) + np.exp(-0.5 * log_delta) * n_positions**3 * horizons**2


@_bound("Li and de Rijke 2019, Theorem 1", "upper", CHANGING, agents=("CascadeDUCB",))
def cascade_ducb_upper(model: Problem, steps: ArrayLike, *, gamma: float | None = None, epsilon: float = 0.5) -> Values:
    """CascadeDUCB: ``L Υ_n ln((1-γ) ε) / ln γ + ⌈n (1-γ)⌉ ln(1/(1-γ)) Σ_a C(γ, a)``.

    ``C(γ, a) = 4 / ((1 - 1/e) ln(1 + 4 sqrt(1 - 1/(2ε)))) + 32 ε / (Δ_a γ^{1/(1-γ)})``. ``Υ_n`` is how often the users have
    changed by step n; ``Δ_a`` is the least gap ``α_K - α_a`` over those epochs, up to n, in which a is not among the K best,
    and the second term is 0 for an item that always is.

    ⚠ The paper prints the first term of C as ``4 / (1 - 1/e) · ln(1 + ...)``. Its proof (eq. 23 of the appendix, after Garivier
    and Moulines) divides by the logarithm, as it must: the term grows without limit as ε falls to 1/2. We divide. So the bound
    is infinite at ε = 1/2, the agent's default.

    Args:
        model: a `CascadeModel`, a `PiecewiseStationaryModel` of them, or an environment of either with the reward
            ``"clicks"`` or ``"any_click"``.
        steps: horizons, a number or an array of any shape.
        gamma: γ in ``(1/2, 1)``; None takes the agent's default, ``1 - 1/(4 sqrt(n))``.
        epsilon: ε in ``[1/2, 1)``.

    Returns:
        The bound at each horizon, in the shape of ``steps``.

    Raises:
        ValueError: on another click model or reward, a gamma or epsilon out of range, or a step below 1.

    Source: Li, de Rijke, *Cascading non-stationary bandits: online learning to rank in the non-stationary cascade model*, IJCAI
    2019, Theorem 1.

    Example:
        >>> from clickgym.envs import CascadeModel
        >>> float(cascade_ducb_upper(CascadeModel([0.5, 0.25], n_positions=1), 100, gamma=0.75, epsilon=0.75).round(1))
        10881.8
    """
    until, horizons = _cascade_epochs(model, "CascadeDUCB's regret bound"), _horizons(steps)
    deviation = _deviation(epsilon)
    if gamma is not None and not 0.5 < check_at_least("gamma", gamma, 0) < 1:
        raise ValueError(f"gamma is {gamma!r}; the theorem is about numbers in (1/2, 1)")

    def bound(n: float) -> float:
        g = discounted_gamma(n) if gamma is None else gamma
        n_changes, gaps = until(n)
        biased = len(gaps) * n_changes * math.log((1 - g) * epsilon) / math.log(g)
        constants = 4 / (1 - 1 / math.e) * len(gaps) * _ratio(1.0, deviation)
        constants += sum(_ratio(32 * epsilon, gap * g ** (1 / (1 - g))) for gap in gaps)
        return biased + constants * math.ceil(n * (1 - g)) * math.log(1 / (1 - g))

    return np.vectorize(bound, otypes=[float])(horizons)


@_bound("Li and de Rijke 2019, Theorem 2", "upper", CHANGING, agents=("CascadeSWUCB",))
def cascade_swucb_upper(model: Problem, steps: ArrayLike, *, tau: int | None = None, epsilon: float = 0.5) -> Values:
    """CascadeSWUCB: ``L Υ_n τ + L ln² τ / c + Σ_a (2 ⌈ln τ / c⌉ n / τ + 8 ε ⌈n / τ⌉ ln τ / Δ_a)``.

    ``c = ln(1 + 4 sqrt(1 - 1/(2ε)))``; ``Υ_n`` and ``Δ_a`` are as in `cascade_ducb_upper`. (The paper's ``C(τ, a) n ln τ / τ``
    is multiplied out.) Infinite at ε = 1/2, the agent's default, and for τ = 1, where the formula would promise no regret.

    Args:
        model: as in `cascade_ducb_upper`.
        steps: horizons, a number or an array of any shape.
        tau: τ, at least 1; None takes the agent's default, ``⌈2 sqrt(n ln n)⌉``.
        epsilon: ε in ``[1/2, 1)``.

    Returns:
        The bound at each horizon, in the shape of ``steps``.

    Raises:
        ValueError: on another click model or reward, a tau or epsilon out of range, or a step below 1.

    Source: Li, de Rijke, *Cascading non-stationary bandits: online learning to rank in the non-stationary cascade model*, IJCAI
    2019, Theorem 2.

    Example:
        >>> from clickgym.envs import CascadeModel
        >>> float(cascade_swucb_upper(CascadeModel([0.5, 0.25], n_positions=1), 100, tau=20, epsilon=0.75).round(1))
        434.5
    """
    until, horizons = _cascade_epochs(model, "CascadeSWUCB's regret bound"), _horizons(steps)
    deviation = _deviation(epsilon)
    if tau is not None:
        tau = math.ceil(check_at_least("tau", tau, 1))  # as the agent

    def bound(n: float) -> float:
        window = window_length(n) if tau is None else tau
        if window < 2 or deviation == 0:
            return math.inf
        log_window = math.log(window)
        n_changes, gaps = until(n)
        result = len(gaps) * (n_changes * window + log_window**2 / deviation)
        result += 2 * len(gaps) * math.ceil(log_window / deviation) * n / window
        return result + sum(_ratio(8 * epsilon * math.ceil(n / window) * log_window, gap) for gap in gaps)

    return np.vectorize(bound, otypes=[float])(horizons)


@_bound("Lagrée et al. 2016, Theorem 9", "upper", ("PBM",), agents=("PBMUCB",), remark="up to a constant")
def pbm_ucb_upper(model: Problem, steps: ArrayLike, *, epsilon: float = 0.0) -> Values:
    """PBM-UCB: ``16 (1+ε) C(χ) (K / Δ + Σ_{k>K} 1 / (χ_K (α_K - α_k))) log n``, to first order in log n.

    ``C(χ) = min_{1≤l≤K} ((Σ_{j≤K} χ_j)² / l + (Σ_{j≤l} χ_j)²) / χ_K²`` with χ in decreasing order; Δ is the least
    regret among the other orders of the best list. (In the paper's letters: K arms, L positions, θ, κ.)

    - ⚠ The theorem adds a constant ``C_0(ε)`` that does not depend on the model and that the paper leaves unspecified. It is
      left out: the value bounds how fast the regret grows, and a curve may lie above it by a constant. The theorem is about any
      ε > 0; at ε = 0, the agent's default, the value is the limit of these rates, where no finite constant is promised.
    - Δ is the least ``(χ_l - χ_{l+1}) (α_l - α_{l+1})``, an exchange of neighbours: sorting any other order by exchanging
      neighbours never adds regret, and the last step starts from such a list. With K = 1 there is no other order, and no such
      term. Where neighbours tie, in α or in χ, the bound is infinite.

    Args:
        model: a `PositionBasedModel` with χ > 0, or its environment; χ may have any order.
        steps: horizons, a number or an array of any shape.
        epsilon: ε ≥ 0.

    Returns:
        The rate times log n at each horizon, in the shape of ``steps``.

    Raises:
        ValueError: on another click model or reward, a position that is never examined, a negative epsilon, or a step below 1.

    Source: Lagrée, Vernade, Cappé, *Multiple-play bandits in the position-based model*, NIPS 2016, Theorem 9.

    Example:
        >>> from clickgym.envs import PositionBasedModel
        >>> float(pbm_ucb_upper(PositionBasedModel([0.5, 0.25], [0.5]), np.e))  # 16 · (0.25 + 0.25)/0.25 · 1/(0.5 · 0.25)
        256.0
    """
    problem = _pbm(model, "PBM-UCB's regret bound")
    epsilon = check_at_least("epsilon", epsilon, 0)
    n_positions, attraction = problem.n_positions, _sorted(problem.attraction)
    examination = _sorted(problem.examination)
    best, worse = attraction[:n_positions], attraction[n_positions:]
    sums = np.cumsum(examination)
    spread = np.min(sums[-1] ** 2 / np.arange(1, n_positions + 1) + sums**2) / examination[-1] ** 2
    gap = np.min(np.diff(examination) * np.diff(best), initial=np.inf)
    difficulty = _ratio(n_positions, gap) + sum(_ratio(1.0, examination[-1] * (best[-1] - value)) for value in worse)
    return _times(16.0 * (1.0 + epsilon) * spread * difficulty, np.log(_horizons(steps)))


@_bound("Lagrée et al. 2016, Theorem 11", "upper", ("PBM",), agents=("PBMPIE",), remark="up to constants")
def pbm_pie_upper(model: Problem, steps: ArrayLike, *, epsilon: float = 0.0) -> Values:
    """PBM-PIE: ``(1+ε)² Σ_{k>K} χ_K (α_K - α_k) / KL(χ_K α_k, χ_K α_K) · log n``, to first order in log n.

    It explores at the last position only. Where the lower bound (`pbm_lower`) explores every item there, too, both are equal
    at ε = 0. (In the paper's letters: K arms, L positions, θ, κ.)

    - ⚠ The theorem has ``KL(χ_K α_k, χ_K (α_K - η))`` with any η > 0 below half of the least gap of the best items, and
      constants that depend on ε and η and that the paper leaves unspecified. The value is the limit of the rates as η falls to
      0; the constants are left out, so that a curve may lie above it by some.
    - Where two of the K best items tie, there is no such η, and the bound is infinite.

    Args:
        model: a `PositionBasedModel` with χ > 0 and α_K > α_{K+1}, or its environment; χ may have any order.
        steps: horizons, a number or an array of any shape.
        epsilon: ε ≥ 0.

    Returns:
        The rate times log n at each horizon, in the shape of ``steps``.

    Raises:
        ValueError: on another click model or reward, a position that is never examined, items that tie for the last place
            in the list, a negative epsilon, or a step below 1.

    Source: Lagrée, Vernade, Cappé, *Multiple-play bandits in the position-based model*, NIPS 2016, Theorem 11.

    Example:
        >>> from clickgym.envs import PositionBasedModel
        >>> float(pbm_pie_upper(PositionBasedModel([0.5, 0.25], [0.8]), 1000).round(3))  # of one position: the lower bound
        15.096
    """
    problem = _pbm(model, "PBM-PIE's regret bound")
    epsilon = check_at_least("epsilon", epsilon, 0)
    n_positions, attraction = problem.n_positions, _sorted(problem.attraction)
    least = _sorted(problem.examination)[-1]
    _check_unique(attraction, n_positions, "PBM-PIE's regret bound")
    best, worse = attraction[:n_positions], attraction[n_positions:]
    rate = sum(_ratio(least * (best[-1] - value), kl(least * value, least * best[-1])) for value in worse)
    rate = np.inf if (np.diff(best) == 0).any() else rate
    return _times((1.0 + epsilon) ** 2 * rate, np.log(_horizons(steps)))


@_bound("He et al. 2020, Theorem 3", "upper", ("LinearModel of UBM",), agents=("UBMLinUCB",))
def ubm_linucb_upper(model: Problem, steps: ArrayLike, *, alpha: float | None = None, ridge: float | None = None) -> Values:
    """UBM-LinUCB: ``2 α sqrt(2 n K d ln(1 + φ'n/(λd))) + 1``, ``φ' = Σ_k w_{k,k-1}²``.

    α is the agent's at session n, ``sqrt(d ln(1 + φ'n/(dλ)) + 2 ln(nK)) + sqrt(λd)``, or the given one. The theorem asks for as
    much with ``‖θ*‖²`` in place of the d under the last root: infinite where α is less, λ < φ' or φ' < 1.

    - ⚠ The paper assumes "without loss of generality" that no position is examined less after a click than without one,
      ``w_{k,k'} ≥ w_{k,0}``, which its proof needs, and that ``w_{k,0}`` does not increase with k. Users of real queries often
      examine less (``yandex-9982``: 0.31 of the third position after a click on the first, 0.40 without a click), and nothing
      can be renamed to mend that. Such users are refused.
    - A session loses at most 1, so that the bound says nothing while it is above n. With d = 10 and K = 6 it is up to about
      2·10⁶ sessions.

    Args:
        model: a `LinearModel` of a `UserBrowsingModel`, or its environment with the reward ``"any_click"``.
        steps: horizons, a number or an array of any shape.
        alpha: the agent's, α ≥ 0; None takes the theory's.
        ridge: λ; None takes ``max(1, φ')``.

    Returns:
        The bound at each horizon, in the shape of ``steps``.

    Raises:
        ValueError: on other users or another reward, examination as above, or a step below 1.

    Source: He, An, Li, Chen, Guo, Li, Wang, *Contextual user browsing bandits for large-scale online mobile recommendation*,
    RecSys 2020, Theorem 3.

    Example:
        >>> from clickgym.envs import LinearModel, UserBrowsingModel
        >>> users = UserBrowsingModel([0, 0], [[1.0]])
        >>> float(ubm_linucb_upper(LinearModel(users, theta=[0.5], items=[[1.0], [0.2]]), 1).round(2))
        5.32
    """
    what = "UBM-LinUCB's regret bound"
    problem = _users(model, what, ("any_click",))
    if not isinstance(problem, LinearModel) or not isinstance(problem.base, UserBrowsingModel):
        raise ValueError(f"{what} is about a LinearModel of a UserBrowsingModel; got {problem}")
    examination, horizons = problem.base.examination, _horizons(steps)
    _check_browsing(examination, what)
    n_positions, d = problem.n_positions, problem.n_features
    phi = float((np.diagonal(examination) ** 2).sum())
    ridge = max(1.0, phi) if ridge is None else check_at_least("ridge", ridge, 0, strictly=True)
    growth = d * np.log(1 + phi * horizons / (d * ridge))
    spread = np.sqrt(growth + 2 * np.log(horizons * n_positions))
    least = spread + math.sqrt(ridge * float(problem.theta @ problem.theta))
    width = spread + math.sqrt(ridge * d) if alpha is None else check_at_least("alpha", alpha, 0)
    bound = 2 * width * np.sqrt(2 * horizons * n_positions * growth) + 1
    return np.where((width >= least) & (ridge >= phi >= 1), bound, np.inf)


# ------------------------------------------------------------------------------------------------------ shared workings


def _problem(model: Problem, what: str, rewards: tuple[str, ...] = ("clicks",)) -> ClickModel:
    """The click model, of an environment too if its regret is the one that theorems are about."""
    users = _users(model, what, rewards)
    if not isinstance(users, ClickModel):
        raise ValueError(f"{what} is about a click model; got {users}")
    return users


def _users(model: Problem, what: str, rewards: tuple[str, ...]) -> Users:
    env = getattr(model, "unwrapped", model)
    if isinstance(env, Users):
        return env
    if not isinstance(env, ClickEnv):
        raise TypeError(f"model must be a click model or a clickgym environment, got {type(model).__name__}")
    if env.reward not in rewards:
        raise ValueError(f"{what} is about the reward {' or '.join(map(repr, rewards))}, not {env.reward!r}")
    if env.task.cutoff != env.model.n_positions:
        raise ValueError(f"{what} counts all {env.model.n_positions} positions, not the first {env.task.cutoff}")
    if env.reference is not None:
        raise ValueError(f"{what} is about regret against the best list, not against a given reference")
    return env.model


def _check_browsing(examination: Values, what: str) -> None:
    """Refuse users who look less at a position after a click than without one, or more at a position than at one above it."""
    first = examination[:, 0]
    rising = np.flatnonzero(np.diff(first) > 0)
    if len(rising):
        raise ValueError(
            f"{what} needs examination[k, 0] that does not increase with k, but examination[{rising[0] + 1}, 0] does"
        )
    less = np.argwhere(np.tril(examination < first[:, None]))
    if len(less):
        k, click = map(int, less[0])
        raise ValueError(
            f"{what} needs users who examine no less after a click, but examination[{k}, {click}] is "
            f"{examination[k, click]:g} and examination[{k}, 0] is {first[k]:g}"
        )


def _cascade(model: ClickModel, what: str) -> CascadeModel:
    if not isinstance(model, CascadeModel):
        raise ValueError(f"{what} is about a CascadeModel; got {model}")
    return model


def _pbm(model: Problem, what: str) -> PositionBasedModel:
    problem = _problem(model, what)
    if not isinstance(problem, PositionBasedModel):
        raise ValueError(f"{what} is about a PositionBasedModel; got {problem}")
    never = np.flatnonzero(problem.examination == 0)
    if len(never):
        raise ValueError(f"{what} needs examination > 0, but examination[{never[0]}] is 0")
    return problem


def _cascade_epochs(model: Problem, what: str) -> Callable[[float], tuple[int, Values]]:
    """How often the users have changed before the end of step n, and each item's least gap ``α_K - α_a`` so far, infinite for
    one that was always among the K best.
    """
    problem, gaps = _problem(model, what, CASCADE_REWARDS), []
    for epoch in problem.epochs:
        attraction = _cascade(epoch, what).attraction
        best = np.argsort(-attraction, kind="stable")[: problem.n_positions]
        gaps.append(attraction[best[-1]] - attraction)
        gaps[-1][best] = np.inf

    def until(n: float) -> tuple[int, Values]:
        n_epochs = int(np.searchsorted(problem.starts, n))
        return n_epochs - 1, np.min(gaps[:n_epochs], axis=0)

    return until


def _deviation(epsilon: float) -> float:
    """``ln(1 + 4 sqrt(1 - 1/(2ε)))``, 0 at ε = 1/2."""
    if not 0.5 <= check_at_least("epsilon", epsilon, 0) < 1:
        raise ValueError(f"epsilon is {epsilon!r}; the theorem is about numbers in (1/2, 1)")
    return math.log(1 + 4 * math.sqrt(1 - 1 / (2 * epsilon)))


def _check_learnable(model: ClickModel, paper: str, what: str) -> None:
    """Refuse a model that fails an assumption of a paper; that a CM and most PBMs do not fail any is proved there."""
    if isinstance(model, CascadeModel):
        return
    if isinstance(model, PositionBasedModel):
        rising = np.flatnonzero(np.diff(model.examination) > 0)
        if len(rising):
            raise ValueError(f"{what} needs examination that does not increase, but examination[{rising[0] + 1}] does")
        return
    for finding in check_assumptions(model):
        if finding.name.startswith(paper) and not finding.holds:
            raise ValueError(f"{what} does not hold for {model}: {finding.name} fails, {finding.counterexample}")


def _check_unique(attraction: Values, n_positions: int, what: str) -> None:
    if n_positions < len(attraction) and attraction[n_positions - 1] == attraction[n_positions]:
        raise ValueError(
            f"{what} needs one best set of items, but two of attraction {attraction[n_positions]:g} tie for its last place"
        )


def _horizons(steps: ArrayLike) -> Values:
    horizons = np.asarray(steps, dtype=float)
    if not np.all(horizons >= 1):  # also refuses NaN
        raise ValueError(f"steps is {steps!r}; expected numbers of at least 1")
    return horizons


def _sorted(values: Values) -> Values:
    return np.sort(values)[::-1]


def _ratio(numerator: float, denominator: float) -> float:
    return float(numerator / denominator) if denominator else math.inf


def _times(rate: float, growth: Values) -> Values:
    """``rate · growth``, infinite wherever the rate is."""
    return rate * growth if math.isfinite(rate) else np.full_like(growth, np.inf)
