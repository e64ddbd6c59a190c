"""Agents for the cascade model: CascadeUCB1 (Kveton et al. 2015), CascadeUCBV (Vial et al. 2022), and Thompson sampling."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.kernels import inner, kernel
from ..core.state import Floats, Ints, joined
from .agent import ANY_LIST, CompiledAgent, TakesValues, rates
from .hyperparameters import at_least, hyperparameter, one_of
from .kernels import (
    FEEDBACK,
    count_session,
    rank_by_draw,
    rank_by_tied_draw,
)
from .search_space import Range
from .templates import from_examined, largest


class CascadeAgent(CompiledAgent):
    """Base class of the cascade agents: the argument ``feedback`` says which positions count as examined."""

    click_models = "CM; others by the feedback rule"
    learns_from = ANY_LIST

    feedback: str = hyperparameter(default="last_click", check=one_of(FEEDBACK), search=FEEDBACK)

    def _first_values(self) -> dict[str, Any]:
        return {"feedback": FEEDBACK.index(self.hyperparameters["feedback"])}

    def best(self) -> NDArray[np.int64]:
        return self._best_by(rates(self.state.clicks, self.state.examined))


# ----------------------------------------------------------------------------------------------------------- CascadeUCB1


class Bounds(NamedTuple):
    """State of agents whose index is a mean and the width of an interval."""

    clicks: Annotated[Ints, "L"]
    examined: Annotated[Ints, "L"]  # N
    mean: Annotated[Floats, "L", np.inf]  # ŵ + C / N, infinite before the first examination
    width: Annotated[Floats, "L"]  # 1 / sqrt(N), 0 before it
    indices: Annotated[Floats, "L", np.inf]
    order: Annotated[Ints, "L", range]  # items by index
    t: Annotated[Ints, "1"]  # displays
    feedback: int


class Corruption(NamedTuple):
    corruption: float  # C


UCB1State = joined("UCB1State", Bounds, Corruption)


@inner
def bound_means(state, rng):  # type: ignore[no-untyped-def]
    count_session(state)
    radius = math.sqrt(1.5 * math.log(state.t[0]))
    for item in range(len(state.indices)):
        state.indices[item] = state.mean[item] + radius * state.width[item]
    return state.indices, state.order


@inner
def learn_ucb1(state, item, click):  # type: ignore[no-untyped-def]
    state.clicks[item] += click
    state.examined[item] += 1
    state.mean[item] = (state.clicks[item] + state.corruption) / state.examined[item]
    state.width[item] = 1.0 / math.sqrt(state.examined[item])


@kernel
def replace_ucb1(state, rng, item):  # type: ignore[no-untyped-def]
    state.clicks[item], state.examined[item] = 0, 0
    state.mean[item], state.width[item] = np.inf, 0.0


class CascadeUCB1(CascadeAgent, TakesValues):
    """CascadeUCB1: show the K items of largest ``ŵ + sqrt(1.5 log t / N)``, in decreasing order.

    Idea:
        In the cascade model, a user scans the list from the top, clicks the first attractive item, and leaves. Items above the
        click were examined and not attractive, and the session says nothing about items below it. For each item, CascadeUCB1
        counts the examinations, N, and keeps the share ŵ of them with a click. It shows the K items with the largest upper
        confidence bounds of UCB1: ŵ plus a bonus that shrinks as N grows. Each session tests several items at once without
        position bias, because only examined items count, and regret in this model grows with log t only. Its intervals are too
        wide for rare clicks (`CascadeKLUCB` explores less), and where users skip positions, unexamined items count as not
        attractive.

    Algorithm:
        ::

            N(e) ← 0, the examinations, and ŵ(e) ← 0, the share of them with a click, for each item e
            C ← 0, or the argument corruption: the number of sessions that may have false clicks
            for t = 1, 2, ...:
                for each item e:
                    U_t(e) ← ŵ(e) + sqrt(1.5 log t / N(e)) + C / N(e), its upper bound, and ∞ where N(e) = 0
                A_t ← the list of the K items of largest U_t, in decreasing order, ties at random
                show A_t and observe the clicks c(1), ..., c(K), each 0 or 1
                k' ← the position of the last click (with feedback="first_click": the first), or K without a click
                for k = 1, ..., k', the examined positions:
                    ŵ(A_t(k)) ← (N(A_t(k)) ŵ(A_t(k)) + c(k)) / (N(A_t(k)) + 1)
                    N(A_t(k)) ← N(A_t(k)) + 1

    Args:
        n_items: L.
        n_positions: K.
        feedback: what counts as examined: ``"last_click"``, positions down to the last click, each with its own click, or
            ``"first_click"``, positions down to the first click; all K without a click.
        corruption: C ≥ 0, the number of sessions whose clicks may be false, such as those of bots. The index grows by
            ``C / N``, because a false click or a false skip moves the mean of N observations by at most 1/N.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on an unknown feedback rule, or a bad corruption.

    Source: Kveton, Szepesvári, Wen, Ashkan, *Cascading bandits: learning to rank in the cascade model*, ICML 2015, Algorithm 1
    with eq. 5; corruption after Lykouris, Mirrokni, Paes Leme, *Stochastic bandits robust to adversarial corruptions*, STOC
    2018, where the number of corrupted sessions is known.

    Deviations from the paper:
        1. ⚠ Ties, and items not examined yet (which rank first), are ordered uniformly at random, so there is no separate
           initialisation.
        2. ⚠ The paper knows one click per list. With several, ``last_click`` is the default: it is what implementations of the
           authors' school do and makes the stronger baseline in a PBM; ``first_click`` is the exact rule in a DCM.
        3. ⚠ Lykouris et al. have other algorithms; that the interval of a known C is wider by C/N is our reading. The index is
           not cut. With ``corruption=0`` the agent is that of Kveton et al.

    Example:
        >>> CascadeUCB1(4, 2, seed=0).rank(None).shape
        (2,)
    """

    paper = "Kveton et al. 2015, Algorithm 1"
    stands: ClassVar = {"bots": "robust, with corruption="}
    state_type = UCB1State
    rank_kernel, rank_available_kernel = largest(bound_means)
    update_kernel = from_examined(learn_ucb1)
    count_kernel = count_session
    replace_kernel = replace_ucb1

    corruption: float = hyperparameter(default=0.0, check=at_least(0))


# ----------------------------------------------------------------------------------------------------------- CascadeUCBV


class UCBVState(NamedTuple):
    clicks: Annotated[Ints, "L"]
    examined: Annotated[Ints, "L"]  # N
    mean: Annotated[Floats, "L", np.inf]  # ŵ + C / N, infinite before the first examination
    deviation: Annotated[Floats, "L"]  # sqrt(v / N) with v = ŵ (1 - ŵ), 0 before it
    share: Annotated[Floats, "L"]  # 1 / N, 0 before it
    indices: Annotated[Floats, "L", np.inf]
    order: Annotated[Ints, "L", range]  # items by index
    t: Annotated[Ints, "1"]  # displays
    feedback: int
    corruption: float  # C
    variance: float
    bias: float


@inner
def bound_means_by_variance(state, rng):  # type: ignore[no-untyped-def]
    count_session(state)
    log_t = math.log(state.t[0])
    radius, shift = math.sqrt(state.variance * log_t), state.bias * log_t
    for item in range(len(state.indices)):
        state.indices[item] = state.mean[item] + radius * state.deviation[item] + shift * state.share[item]
    return state.indices, state.order


@inner
def learn_ucbv(state, item, click):  # type: ignore[no-untyped-def]
    state.clicks[item] += click
    state.examined[item] += 1
    rate = state.clicks[item] / state.examined[item]
    state.mean[item] = (state.clicks[item] + state.corruption) / state.examined[item]
    state.deviation[item] = math.sqrt(rate * (1.0 - rate) / state.examined[item])
    state.share[item] = 1.0 / state.examined[item]


@kernel
def replace_ucbv(state, rng, item):  # type: ignore[no-untyped-def]
    state.clicks[item], state.examined[item] = 0, 0
    state.mean[item], state.deviation[item], state.share[item] = np.inf, 0.0, 0.0


class CascadeUCBV(CascadeAgent):
    """CascadeUCB-V: `CascadeUCB1` with confidence intervals that follow the variance of the clicks.

    Idea:
        CascadeUCB-V assumes the cascade model, as `CascadeUCB1` does: users scan from the top, click one item and leave. It
        keeps the number of examinations N of each item and the share ŵ of them with a click, and shows the K largest indices.
        The index is ŵ plus a width that follows the variance ŵ (1 - ŵ) and shrinks, for rare clicks, with 1/N instead of
        1/sqrt(N). The paper derives it from Bernstein's inequality, and proves it optimal up to logarithms where clicks are
        rare, the hardest case. With the published constants, the width is below that of `CascadeUCB1` only after 24 log t
        examinations without clicks, or 713 log t if ŵ = 1/2. So it explores too long in short runs unless you tune `variance`
        and `bias`, and it takes items at positions that users skip for unattractive.

    Algorithm:
        ::

            N(e) ← 0, the examinations, and ŵ(e) ← 0, the share of them with a click, for each item e
            C ← 0, or the argument corruption: the number of sessions that may have false clicks
            for t = 1, 2, ...:
                for each item e:
                    v(e) ← ŵ(e) (1 - ŵ(e)), the variance of its clicks
                    U_t(e) ← ŵ(e) + sqrt(4 v(e) log t / N(e)) + (6 log t + C) / N(e), and ∞ where N(e) = 0
                        (4 is the argument variance, 6 the argument bias)
                A_t ← the list of the K items of largest U_t, in decreasing order, ties at random
                show A_t and observe the clicks c(1), ..., c(K), each 0 or 1
                k' ← the position of the last click (with feedback="first_click": the first), or K without a click
                for k = 1, ..., k', the examined positions:
                    ŵ(A_t(k)) ← (N(A_t(k)) ŵ(A_t(k)) + c(k)) / (N(A_t(k)) + 1)
                    N(A_t(k)) ← N(A_t(k)) + 1

    Args:
        n_items: L.
        n_positions: K.
        variance: ≥ 0, the constant under the root; the paper has 4.
        bias: ≥ 0, the constant of the last term; the paper has 6.
        feedback, corruption: as in `CascadeUCB1`.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on an unknown feedback rule, or a bad variance, bias or corruption.

    Source: Vial, Sanghavi, Shakkottai, Srikant, *Minimax regret for cascading bandits*, NeurIPS 2022, CascadeUCB-V.

    Deviations from the paper:
        1. ⚠ The index is not cut to ``[0, 1]``; released code cuts it. Cut, the indices of all items are equal until N is some
           hundreds.
        2. ⚠ Ties, items not examined yet, several clicks and corruption: as in `CascadeUCB1`.

    Example:
        >>> agent = CascadeUCBV(4, 2, seed=0)
        >>> ranking = agent.rank()
        >>> agent.update(None, ranking, [0, 1])
        >>> sorted(agent.rank()) == sorted({0, 1, 2, 3} - set(ranking))
        True
    """

    paper = "Vial et al. 2022, CascadeUCB-V"
    stands: ClassVar = {"bots": "robust, with corruption="}
    state_type = UCBVState
    rank_kernel, rank_available_kernel = largest(bound_means_by_variance)
    update_kernel = from_examined(learn_ucbv)
    count_kernel = count_session
    replace_kernel = replace_ucbv

    variance: float = hyperparameter(default=4.0, check=at_least(0), search=Range(0.01, 10.0, log=True))
    bias: float = hyperparameter(default=6.0, check=at_least(0), search=Range(0.01, 10.0, log=True))
    corruption: float = hyperparameter(default=0.0, check=at_least(0))


# ------------------------------------------------------------------------------------------------------------- CascadeTS


class TSState(NamedTuple):
    clicks: Annotated[Ints, "L"]
    examined: Annotated[Ints, "L"]
    draws: Annotated[Floats, "L"]  # this session's draw from each posterior
    order: Annotated[Ints, "L", range]  # the K items of largest draws, then others
    feedback: int


@inner
def draw_means(state, rng):  # type: ignore[no-untyped-def]
    for item in range(len(state.draws)):
        clicks = state.clicks[item]
        state.draws[item] = rng.beta(1.0 + clicks, 1.0 + state.examined[item] - clicks)
    return state.draws, state.order


@inner
def learn_ts(state, item, click):  # type: ignore[no-untyped-def]
    state.clicks[item] += click
    state.examined[item] += 1


@kernel
def replace_ts(state, rng, item):  # type: ignore[no-untyped-def]
    state.clicks[item], state.examined[item] = 0, 0


class CascadeTS(CascadeAgent, TakesValues):
    """CascadeTS: draw the attraction of each item from its Beta posterior, and show the K largest in decreasing order.

    Idea:
        CascadeTS assumes the cascade model: a user scans the list from the top, clicks the first attractive item, and leaves.
        It keeps a Beta posterior of the attraction of each item, which starts as the uniform distribution. Positions down to
        the last click count as examined, or all positions if there is no click. In each session it draws one attraction from
        each posterior and shows the K largest draws, which explores less than upper confidence bounds do. It tries an item
        about as often as the item is likely to be in the best list, and its regret grows with log t only. Where users skip low
        positions, as in a position-based model, it underestimates the items there, and false clicks at the start mislead it for
        many sessions.

    Algorithm:
        ::

            S(i) ← 0, the clicks, and F(i) ← 0, the examinations without a click, for each item i
            for t = 1, 2, ...:
                for each item i:
                    draw an attraction θ(i) from its posterior Beta(1 + S(i), 1 + F(i))
                R_t ← the list of the K items of largest θ, in decreasing order
                show R_t and observe the clicks c(1), ..., c(K), each 0 or 1
                k' ← the position of the last click (with feedback="first_click": the first), or K without a click
                for k = 1, ..., k', the examined positions:
                    S(R_t(k)) ← S(R_t(k)) + c(k)
                    F(R_t(k)) ← F(R_t(k)) + 1 - c(k)

    Args:
        n_items: L.
        n_positions: K.
        feedback: as in `CascadeUCB1`.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on an unknown feedback rule.

    Source: Hüyük, Tekin, *Analysis of Thompson sampling for combinatorial multi-armed bandit with probabilistically triggered
    arms*, AISTATS 2019, Algorithm 1 (CTS); Zhong, Cheung, Tan, *Thompson sampling algorithms for cascading bandits*, JMLR 2021,
    section 3, which bounds its regret in cascades.

    Deviations from the paper:
        1. ⚠ Several clicks: as in `CascadeUCB1`.

    Example:
        >>> CascadeTS(4, 2, seed=0).rank(None).shape
        (2,)
    """

    paper = "Hüyük and Tekin 2019, Algorithm 1; Zhong et al. 2021, section 3"
    state_type = TSState
    rank_kernel, rank_available_kernel = largest(draw_means, rank_by_draw)
    update_kernel = from_examined(learn_ts)
    replace_kernel = replace_ts


# ------------------------------------------------------------------------------------------------------------- TSCascade


class OneDrawState(NamedTuple):
    clicks: Annotated[Ints, "L"]
    examined: Annotated[Ints, "L"]  # N
    mean: Annotated[Floats, "L"]  # ŵ = clicks / N, 0 before the first examination
    deviation: Annotated[Floats, "L"]  # sqrt(v / (N + 1)) with v = ŵ (1 - ŵ)
    share: Annotated[Floats, "L", 1.0]  # 1 / (N + 1)
    draws: Annotated[Floats, "L"]  # θ of this session
    order: Annotated[Ints, "L", range]  # the K items of largest draws, then others
    t: Annotated[Ints, "1"]  # displays
    feedback: int


@inner
def draw_together(state, rng):  # type: ignore[no-untyped-def]
    count_session(state)
    log_t, z = math.log(state.t[0] + 1), rng.standard_normal()
    root = math.sqrt(log_t)
    for item in range(len(state.draws)):
        state.draws[item] = state.mean[item] + z * max(root * state.deviation[item], log_t * state.share[item])
    return state.draws, state.order


@inner
def learn_one_draw(state, item, click):  # type: ignore[no-untyped-def]
    state.clicks[item] += click
    state.examined[item] += 1
    rate = state.clicks[item] / state.examined[item]
    state.mean[item], state.share[item] = rate, 1.0 / (state.examined[item] + 1)
    state.deviation[item] = math.sqrt(rate * (1.0 - rate) * state.share[item])


@kernel
def replace_one_draw(state, rng, item):  # type: ignore[no-untyped-def]
    state.clicks[item], state.examined[item] = 0, 0
    state.mean[item], state.deviation[item], state.share[item] = 0.0, 0.0, 1.0


class TSCascade(CascadeAgent):
    """TS-Cascade: Thompson sampling with one Gaussian draw per session, which all items share.

    Idea:
        TS-Cascade assumes the cascade model: a user scans the list from the top, clicks the first attractive item, and leaves.
        For each item it counts the examinations, N, and keeps the share ŵ of them with a click. In each session it draws one
        standard normal number Z, and moves each ŵ by Z times a width that follows the variance of the clicks. It shows the K
        items with the largest results, which lie all above their ŵ or all below. This common draw lets the paper bound the
        regret without strong assumptions, while `CascadeTS` draws for each item. If Z is negative, little-known items rank
        last, so only half of the sessions explore, and items at positions that users skip count as not attractive.

    Algorithm:
        ::

            N(i) ← 0, the examinations, and ŵ(i) ← 0, the share of them with a click, for each item i
            for t = 1, 2, ...:
                draw Z from the standard normal distribution N(0, 1)
                for each item i:
                    v ← ŵ(i) (1 - ŵ(i)), the variance of its clicks
                    σ(i) ← max(sqrt(v log(t + 1) / (N(i) + 1)), log(t + 1) / (N(i) + 1)), the width
                    θ(i) ← ŵ(i) + Z σ(i)
                S_t ← the list of the K items of largest θ, in decreasing order, ties at random
                show S_t and observe the clicks c(1), ..., c(K), each 0 or 1
                k' ← the position of the last click (with feedback="first_click": the first), or K without a click
                for k = 1, ..., k', the examined positions:
                    ŵ(S_t(k)) ← (N(S_t(k)) ŵ(S_t(k)) + c(k)) / (N(S_t(k)) + 1)
                    N(S_t(k)) ← N(S_t(k)) + 1

    Args:
        n_items: L.
        n_positions: K.
        feedback: as in `CascadeUCB1`.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on an unknown feedback rule.

    Source: Cheung, Tan, Zhong, *A Thompson sampling algorithm for cascading bandits*, AISTATS 2019, Algorithm 1; Zhong, Cheung,
    Tan, *Thompson sampling algorithms for cascading bandits*, JMLR 2021.

    Deviations from the paper:
        1. ⚠ Items not examined yet do not rank first: where Z is negative they rank last.
        2. ⚠ The number of the session counts from 1 in ``log(t + 1)``; from 0, the first list would be drawn without spread.
        3. ⚠ Ties, as of all items in the first session, and several clicks: as in `CascadeUCB1`. θ is not cut to ``[0, 1]``.

    Example:
        >>> TSCascade(4, 2, seed=0).rank(None).shape
        (2,)
    """

    paper = "Cheung et al. 2019, Algorithm 1; Zhong et al. 2021"
    state_type = OneDrawState
    rank_kernel, rank_available_kernel = largest(draw_together, rank_by_tied_draw)
    update_kernel = from_examined(learn_one_draw)
    count_kernel = count_session
    replace_kernel = replace_one_draw
