"""Interleaving: one list made of two rankings, and what clicks on it say about them; and the joint law of a list's clicks.

A ranking orders all items, the best one first; K of them are shown. Every method is a law over lists with a *note*: for each
position the probability that it belongs to ranking A, NaN where it belongs to neither. What a session says, the *outcome*, is a
function of note and clicks, and positive for A. So its expectation is a finite sum, if the joint law of the clicks is known.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln

from ..core.checks import Choices, check_between, check_choice, integers
from ..envs import (
    CascadeModel,
    ClickChainModel,
    ClickModel,
    DependentClickModel,
    DynamicBayesianModel,
    PositionBasedModel,
    TrustBiasModel,
    UserBrowsingModel,
)

CREDITS, COMMON = Choices(("sign", "clicks")), Choices(("none", "team"))
MOST_LISTS = 60_000
"""So many lists with their notes are enumerated at most."""
PART = 4096
"""Lists whose outcomes are in memory at once."""
PLANNED, LEAST_SESSIONS = 1000, 100
"""Of the normal mixture: the sessions after which it is tightest, and those before which it says nothing."""

NOTHING = 1e-12
"""What rounding may make of a credit or a difference of 0."""

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Choice = tuple[float, int, float]
"""How a position may be filled: the probability, the item, and the probability that the position is A's."""


# ------------------------------------------------------------------------------------------------------------------ lists


class Interleaving(ABC):
    """Base class of the ways to make one list of two rankings.

    A subclass says how the next position may be filled, which gives both the draw of a list and the law of all lists.
    """

    @abstractmethod
    def choices(self, a: Sequence[int], b: Sequence[int], shown: Sequence[int], notes: Sequence[float]) -> list[Choice]:
        """How the next position may be filled.

        Args:
            a, b: the rankings.
            shown: the items above it.
            notes: for each of them the probability that it is A's.
        """

    def draw(self, a: Sequence[int], b: Sequence[int], n_positions: int, rng: np.random.Generator) -> tuple[Indices, Floats]:
        """Draw a list: ``(K,)`` items, and for each position the probability that it is A's, NaN if it is nobody's.

        Args:
            a, b: rankings of the same items, at least K of them.
            n_positions: K.
            rng: one uniform number is drawn for each position that more than one item may fill, or more than one ranking.

        Example:
            >>> TeamDraft().draw([0, 1, 2], [0, 2, 1], 2, np.random.default_rng(0))
            (array([0, 2]), array([nan,  0.]))
        """
        shown: list[int] = []
        notes: list[float] = []
        for _ in range(n_positions):
            choices = self.choices(a, b, shown, notes)
            left = rng.random() if len(choices) > 1 else 0.0
            for choice in choices:
                left -= choice[0]
                if left < 0.0:
                    break
            shown.append(choice[1])
            notes.append(choice[2])
        return np.array(shown, np.int64), np.array(notes)

    def law(self, a: Sequence[int], b: Sequence[int], n_positions: int) -> tuple[Indices, Floats, Floats]:
        """All lists.

        Args:
            a, b: rankings of the same items.
            n_positions: K.

        Returns:
            ``(N, K)`` the lists, ``(N, K)`` their notes, and ``(N,)`` their probabilities.

        Raises:
            ValueError: there are more than `MOST_LISTS` lists.

        Example:
            >>> TeamDraft().law([0, 1], [1, 0], 2)[0]
            array([[0, 1],
                   [1, 0]])
        """
        lists: list[tuple[tuple[int, ...], tuple[float, ...], float]] = [((), (), 1.0)]
        for _ in range(n_positions):
            if len(lists) * len(a) > MOST_LISTS:
                raise ValueError(f"there are more than {MOST_LISTS:,} lists of {n_positions} out of {len(a)} items")
            lists = [
                ((*shown, item), (*notes, note), weight * probability)
                for shown, notes, weight in lists
                for probability, item, note in self.choices(a, b, shown, notes)
            ]
        items, notes, weights = zip(*lists, strict=True)
        return np.array(items, np.int64), np.array(notes), np.array(weights)


class TeamDraft(Interleaving):
    """Team draft: two teams pick in turn, each its highest item that is not on the list; a click counts for its team.

    The team with fewer items picks; where both have as many, a fair coin decides.

    Args:
        common: whose items are on which both rankings agree from the top on. ``"none"``: nobody's, so that they bring no noise.
            ``"team"``: the team's that picks them, as in the source.

    Source: Radlinski, Kurup, Joachims, *How does clickthrough data reflect retrieval quality?*, CIKM 2008.

    Deviations from the paper:
        1. ⚠ A coin is thrown whenever both teams have as many items: neither one coin for the list, nor one for each position.
        2. ⚠ ``common="none"`` is the default, as in the code that the authors of multileaving released.

    Example:
        >>> TeamDraft(common="team").law([0, 1, 2], [0, 2, 1], 2)[1]
        array([[1., 0.],
               [0., 1.]])
    """

    def __init__(self, common: str = "none") -> None:
        self.common = check_choice("common", common, COMMON)

    def choices(self, a: Sequence[int], b: Sequence[int], shown: Sequence[int], notes: Sequence[float]) -> list[Choice]:
        """As `Interleaving.choices`."""
        k = len(shown)
        if self.common == "none" and all(map(math.isnan, notes)) and a[k] == b[k]:
            return [(1.0, a[k], math.nan)]
        lead = notes.count(1.0) - notes.count(0.0)
        teams = [(ranking, note) for ranking, note, ahead in ((a, 1.0, lead), (b, 0.0, -lead)) if ahead <= 0]
        return [(1.0 / len(teams), next(item for item in ranking if item not in shown), note) for ranking, note in teams]


class Probabilistic(Interleaving):
    """Probabilistic interleaving: for each position a fair coin takes a ranking, which draws by rank; credit is marginalised.

    A ranking draws the item d with probability in proportion to ``rank(d)^-tau``, among the items that are left. Who drew it is
    summed out: a position is A's with probability ``s_A / (s_A + s_B)``, s their probabilities of its item when it was drawn.

    Args:
        tau: in ``(0, 50]``; how strongly items that a ranking ranks high are preferred.

    Source: Hofmann, Whiteson, de Rijke, *A probabilistic method for inferring preferences from clicks*, CIKM 2011.

    Deviations from the paper:
        1. None. ⚠ Probabilities of who drew which items are divided by their sum; another public implementation does not.

    Example:
        >>> rankings, notes, probabilities = Probabilistic().law([0, 1], [1, 0], 1)
        >>> rankings.tolist(), notes.round(3).tolist(), probabilities.tolist()
        ([[0], [1]], [[0.889], [0.111]], [0.5, 0.5])
    """

    def __init__(self, tau: float = 3.0) -> None:
        self.tau = check_between("tau", tau, 0, 50, closed=True)

    def choices(self, a: Sequence[int], b: Sequence[int], shown: Sequence[int], notes: Sequence[float]) -> list[Choice]:
        """As `Interleaving.choices`."""
        shares = []
        for ranking in (a, b):
            weights = {item: (place + 1.0) ** -self.tau for place, item in enumerate(ranking) if item not in shown}
            total = sum(weights.values())
            shares.append({item: weight / total for item, weight in weights.items()})
        of_a, of_b = shares
        return [((p + of_b[d]) / 2.0, d, p / (p + of_b[d])) for d, p in of_a.items()]


def check_ranking(name: str, ranking: ArrayLike, n_positions: int, n_items: int | None = None) -> list[int]:
    """Check a ranking of at least K distinct items; the error names what is wrong."""
    items = integers(name, ranking, (None,), below=n_items).tolist()
    if len(set(items)) < len(items):
        twice = next(item for item in items if items.count(item) > 1)
        raise ValueError(f"{name} ranks the item {twice} twice; expected each item once")
    if len(items) < n_positions:
        raise ValueError(f"{name} ranks {len(items)} items; expected at least the {n_positions} of a list")
    return items


def check_same(a: Sequence[int], b: Sequence[int]) -> None:
    """Refuse rankings of different items or lengths."""
    if len(a) != len(b):
        raise ValueError(f"a ranks {len(a)} items and b {len(b)}; expected rankings of the same items")
    if odd := set(a) - set(b):
        raise ValueError(f"a ranks the item {min(odd)} and b does not; expected rankings of the same items, shown or not")


def completed(a: Sequence[int], b: Sequence[int]) -> tuple[list[int], list[int]]:
    """Two lists as rankings of the same items: what only one of them shows stands below the other, in the order that it has.

    Example:
        >>> completed([0, 1], [2, 0])
        ([0, 1, 2], [2, 0, 1])
    """
    return list(dict.fromkeys([*a, *b])), list(dict.fromkeys([*b, *a]))


# --------------------------------------------------------------------------------------------------------------- outcomes


def outcomes(notes: ArrayLike, clicks: ArrayLike, credit: str = "sign") -> Floats:
    """What sessions say about two rankings: positive for A, negative for B.

    Args:
        notes: ``(..., K)`` the probability that each position is A's; NaN where it is nobody's.
        clicks: ``(..., K)`` 1 where the position was clicked.
        credit: ``"clicks"``, expected clicks on A's positions less those on B's; or ``"sign"``, the probability that A has more
            of them less the probability that B has (where positions are A's or B's for certain: the sign of the difference).

    Returns:
        ``(...)``, as notes and clicks broadcast.

    Example:
        >>> outcomes([1.0, 0.0, 0.9], [[1, 0, 1], [1, 1, 1]], "clicks").round(2), outcomes([1.0, 0.0, 0.9], [1, 0, 1])
        (array([1.8, 0.8]), array(0.9))
    """
    belongs, clicked = np.asarray(notes, np.float64), np.asarray(clicks) == 1
    ours, theirs = np.nan_to_num(belongs) * clicked, np.nan_to_num(1.0 - belongs) * clicked
    if credit == "clicks":
        return (ours - theirs).sum(axis=-1)
    n_positions = ours.shape[-1]
    chances = np.zeros((*ours.shape[:-1], 2 * n_positions + 3))  # of each difference, from -K - 1 to K + 1
    chances[..., n_positions + 1] = 1.0
    for k in range(n_positions):
        up, down = ours[..., k, None], theirs[..., k, None]
        middle, below, above = chances[..., 1:-1], chances[..., :-2], chances[..., 2:]
        chances[..., 1:-1] = (1.0 - up - down) * middle + up * below + down * above
    return np.asarray(chances[..., n_positions + 2 :].sum(axis=-1) - chances[..., : n_positions + 1].sum(axis=-1))


# ----------------------------------------------------------------------------------------------------------------- clicks


INDEPENDENT = (PositionBasedModel, TrustBiasModel)
"""Click models in which positions are clicked independently."""
KNOWN = (*INDEPENDENT, UserBrowsingModel, CascadeModel, DependentClickModel, DynamicBayesianModel, ClickChainModel)
"""Click models whose joint law of clicks is known; others are simulated."""


def click_vectors(n_positions: int) -> NDArray[np.int64]:
    """All click vectors, ``(2^K, K)``: position k is bit k of the number of the row."""
    return (np.arange(2**n_positions)[:, None] >> np.arange(n_positions)) & 1


def click_law(model: ClickModel, rankings: ArrayLike) -> Floats:
    """The joint law of the clicks on lists.

    Args:
        model: one of `KNOWN`, itself and no subclass.
        rankings: ``(N, K)``.

    Returns:
        ``(N, 2^K)`` the probability of each click vector, in the order of `click_vectors`.

    Raises:
        ValueError: the law of the model is not known.

    Example:
        >>> from clickgym.envs import CascadeModel
        >>> click_law(CascadeModel([0.5, 0.2], 2), [[0, 1]])
        array([[0.4, 0.5, 0.1, 0. ]])
    """
    if type(model) not in KNOWN:
        raise ValueError(f"the joint law of clicks is not known for a {type(model).__name__}; it can only be simulated")
    lists = integers("rankings", rankings, (None, model.n_positions), below=model.n_items)
    of_position = np.array([model.click_probabilities(ranking) for ranking in lists]) if type(model) in INDEPENDENT else None
    total = looking = np.ones((len(lists), 1))  # probability of the clicks so far; and with it, of examining the next position
    last = np.zeros(1, np.int64)  # the position of the last click, from 1
    for k, items in enumerate(lists.T):
        if of_position is not None:
            clicked = total * of_position[:, k, None]
        elif isinstance(model, UserBrowsingModel):
            clicked = total * model.attraction[items, None] * model.examination[k, last]
            last = np.concatenate([last, np.full_like(last, k + 1)])
        else:
            clicked = looking * model.attraction[items, None]
            after_skip, after_click = _goes_on(model, items, k)
            looking = np.concatenate([(looking - clicked) * after_skip, clicked * np.reshape(after_click, (-1, 1))], axis=1)
        total = np.concatenate([total - clicked, clicked], axis=1)
    return total


def _goes_on(model: Any, items: Indices, k: int) -> tuple[float, Any]:
    """With what probability a user who reads from the top goes on after a skip, and after a click on each of some items."""
    match model:
        case DependentClickModel():
            return 1.0, 1.0 - model.termination[k]
        case DynamicBayesianModel():
            return model.perseverance, model.perseverance * (1.0 - model.satisfaction[items])
        case ClickChainModel():
            _, after_skip, after_click, after_relevant = model.parameters
            return after_skip, after_click + model.attraction[items] * (after_relevant - after_click)
    return 1.0, 0.0  # cascade model


def moments(
    model: ClickModel, rankings: Indices, probabilities: Floats, outcome: Callable[[slice], Floats]
) -> tuple[float, float]:
    """The exact mean and standard deviation of the outcome of a session.

    Args:
        model: of the users, whose `click_law` is known.
        rankings: ``(N, K)`` the lists that may be shown.
        probabilities: ``(N,)``.
        outcome: of some of the lists the outcome with each of `click_vectors`, ``(n, 2^K)``.

    Example:
        >>> from clickgym.envs import PositionBasedModel
        >>> lists, notes, chances = TeamDraft().law([0, 1], [1, 0], 2)
        >>> model = PositionBasedModel([0.5, 0.2], [1.0, 0.5])
        >>> mean, deviation = moments(model, lists, chances, lambda some: outcomes(notes[some, None], click_vectors(2)))
        >>> round(mean, 3), round(deviation, 3)
        (0.225, 0.612)
    """
    first = second = 0.0
    for begin in range(0, len(rankings), PART):
        some = slice(begin, begin + PART)
        weights = probabilities[some, None] * click_law(model, rankings[some])
        values = outcome(some)
        first += float((weights * values).sum())
        second += float((weights * values**2).sum())
    return first, math.sqrt(max(second - first**2, 0.0))


# --------------------------------------------------------------------------------------------------------- any-time tests


def sign_test(wins: ArrayLike, losses: ArrayLike) -> Floats:
    """The logarithm of the evidence E against a fair coin, which may be looked at after every session.

    ``E = 2^(W + l) B(1 + W, 1 + l)``, a fair coin against a uniform prior: an exact martingale where a win and a loss are
    equally probable in each session given the past. So E ever reaches 1 / α with probability α at most, and 1 / max E is a
    p-value.

    Args:
        wins, losses: W and l so far; ties are left out.

    Example:
        >>> np.exp(sign_test([0, 10, 20], [0, 0, 10])).round(3)
        array([ 1.   , 93.091,  1.153])
    """
    won, lost = np.asarray(wins, np.float64), np.asarray(losses, np.float64)
    return (won + lost) * math.log(2.0) + betaln(1.0 + won, 1.0 + lost)


def normal_mixture(n: ArrayLike, mean: ArrayLike, deviation: ArrayLike, level: float = 0.05) -> tuple[Floats, Floats]:
    """The logarithm of the evidence against a mean of 0, and half the width of an interval that holds at all times.

    A mixture of normal likelihood ratios; an approximation for large n, which says nothing before `LEAST_SESSIONS`.

    Args:
        n: sessions so far.
        mean, deviation: of their outcomes.
        level: α, of the interval and of the n for which it is tightest (`PLANNED`).

    Source: Robbins, *Statistical methods related to the law of the iterated logarithm*, The Annals of Mathematical Statistics
    1970; Johari, Koomen, Pekelis, Walsh, *Always valid inference*, Operations Research 2022.

    Example:
        >>> evidence, half = normal_mixture(1000, 0.1, 1.0)
        >>> round(float(np.exp(evidence)), 2), round(float(half), 4)
        (28.37, 0.096)
    """
    n, mean, deviation = (np.asarray(values, np.float64) for values in (n, mean, deviation))
    rho2 = (-2.0 * math.log(level) + math.log(1.0 - 2.0 * math.log(level))) / PLANNED
    said = n >= LEAST_SESSIONS
    size, spread = np.where(said, n, 1.0), np.where(deviation > 0.0, deviation, 1.0)
    square = np.where(said & (deviation > 0.0), size * (mean / spread) ** 2, 0.0)  # z²
    evidence = np.where(square > 0.0, size * rho2 * square / (2.0 * (1.0 + size * rho2)) - 0.5 * np.log1p(size * rho2), 0.0)
    width = np.sqrt(2.0 * (size * rho2 + 1.0) / (size**2 * rho2) * np.log(np.sqrt(size * rho2 + 1.0) / level))
    return evidence, np.where(said, deviation * width, math.inf)


def running(values: Floats) -> tuple[Floats, Floats]:
    """After each value the mean so far, and the standard deviation."""
    n = np.arange(1, len(values) + 1)
    means = np.cumsum(values) / n
    return means, np.sqrt(np.maximum(np.cumsum(values**2) / n - means**2, 0.0))


def running_difference(values: NDArray[Any], of_a: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """After each session of an A/B test the difference of both means, and ``sqrt(n)`` times its standard error."""
    means, variances = [], []
    for group in (of_a, ~of_a):
        size = np.maximum(np.cumsum(group), 1)
        means.append(np.cumsum(np.where(group, values, 0)) / size)
        variances.append((np.cumsum(np.where(group, values**2, 0)) / size - means[-1] ** 2) / size)
    return means[0] - means[1], np.sqrt(np.maximum(variances[0] + variances[1], 0.0) * np.arange(1, len(values) + 1))
