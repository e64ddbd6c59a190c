"""Lists that click models propose to test: of one query, by the model that predicts it best; of the
queries of a whole log, by a position-based model with one examination for all.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist

import numpy as np

from clickgym.envs import ClickModel, Instance, PositionBasedModel

from .best_list import best_list
from .counting import by_query
from .estimation.estimator import MODEL_ESTIMATORS, ConvergenceWarning
from .estimation.query_instance import items_of, query_instance
from .fitting import train_test_split
from .lists import Floats, QueryLists, Ranking
from .log import BLOCKS, ClickLog
from .within_blocks import LEAST_SESSIONS, PASSED

HELD_OUT = 0.3
"""The share of sessions that choose the click model which proposes a list."""
MOST_SESSIONS = 100_000
"""The last sessions of a query, to which click models are fitted for a proposal; and those of a
whole log that tell the examination of its positions.
"""
LEAST_IN_TEST = 20
"""Sessions of each list in a block of time of an A/B test: fewer blocks would compare them."""
LEAST_GAIN = 5e-5
"""What a click model has to expect beyond the production list: less is shown as 0.0000."""
LEAST_ITEMS = 10
"""Items among which a click model proposes a list, at least: those that were shown most."""


@dataclass(frozen=True)
class Proposal:
    """The list that a click model expects most of: to be tested, without any promise.

    Attributes:
        model: its short name, that of the model that predicts held-out sessions best.
        labels: of the list's items, from the top.
        gain: what the model expects of it beyond the production list, per session.
        sessions: of the A/B test, both halves together, that proves such a gain with a probability
            of 80 %.
        exact: whether the model expects no more of any list; else a local search found it.
        rankings: the whole list, and the production list, as numbers of the items of ``instance``.
        instance: the fitted users, of `decide`; None for many queries.
    """

    model: str
    labels: tuple[str, ...]
    gain: float
    sessions: int
    exact: bool
    rankings: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    instance: Instance | None = field(default=None, repr=False, compare=False)


def experiment(gain: float, variance: float, level: float) -> int:
    """The sessions of an A/B test, both halves together, that proves a gain at a level with
    probability `POWER`; at least `LEAST_IN_TEST` of each list in each block of time.

    Example:
        >>> experiment(0.1, 0.8, 0.005)
        5460
    """
    z = NormalDist().inv_cdf(1 - level) + NormalDist().inv_cdf(PASSED)
    return 2 * max(BLOCKS * LEAST_IN_TEST, math.ceil(2 * variance * (z / gain) ** 2))


def propose(shown: QueryLists, production: Ranking, level: float, seed: int) -> Proposal | str:
    """What the click model proposes that predicts held-out sessions of a query best; or why none
    proposes a list.
    """
    log = shown.log[shown.sessions[-MOST_SESSIONS:]]
    if len(log) < LEAST_SESSIONS:
        return f"the query has fewer than {LEAST_SESSIONS} sessions"
    if len(np.setdiff1d(log.items, -1)) < log.n_positions or len(production) < log.n_positions:
        return "the production list, or all lists together, have fewer items than positions"
    items = items_of(log, shown.query, max(LEAST_ITEMS, log.n_positions))
    labels = shown.labels(production)
    if not set(labels) <= set(items):
        return "the production list has items that hardly any session shows"
    train, test = train_test_split(log, HELD_OUT, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = {name: kind().fit(train) for name, kind in MODEL_ESTIMATORS.items()}
        scores = {name: estimator.score(test) for name, estimator in fitted.items()}
        name = max(scores, key=scores.__getitem__)
        whole = MODEL_ESTIMATORS[name]().fit(log, start=fitted[name])
    instance = query_instance(log, shown.query, items, {name: whole})
    users = instance.model(whole.model_class.short)
    settings = shown.reward, shown.cutoff, level, float(shown.earned.var())
    proposed = _proposal(name, users, instance.estimation["items"], labels, *settings)
    return proposed if isinstance(proposed, str) else replace(proposed, instance=instance)


def propose_all(
    log: ClickLog,
    queries: Sequence[tuple[str, tuple[str, ...], float]],
    reward: str,
    cutoff: int | None,
    level: float,
) -> list[Proposal | str]:
    """What a position-based model proposes: examination is shared by all queries of a log, and
    attraction has a Beta prior that is fitted to all pairs of query and item.

    Args:
        log: the sessions.
        queries: the label of each, those of its production list, and the variance of what its
            sessions earned.
        reward, cutoff, level: as in `decide_all`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        part = log[:: 1 + len(log) // MOST_SESSIONS]
        pbm = MODEL_ESTIMATORS["PBM"]().fit(part)
    examination: Floats = pbm.examination_  # type: ignore[attr-defined]
    order, codes, pairs = by_query(log.queries, log.items, len(log.item_labels))
    exposure, clicks = np.zeros((2, len(codes)))
    for k, examined in enumerate(examination.tolist()):
        shown = pairs[:, k] >= 0
        pair, clicked = pairs[shown, k], log.clicks[order[shown], k]
        exposure += examined * np.bincount(pair, minlength=len(codes))
        clicks += np.bincount(pair, clicked, len(codes))
    attraction = shrunken_rates(clicks, exposure)
    shown_query, shown_item = np.divmod(codes, len(log.item_labels))
    number = {label: row for row, label in enumerate(log.query_labels)}
    proposals: list[Proposal | str] = []
    for query, production, variance in queries:
        rows = np.flatnonzero(shown_query == number[query])
        most = max(LEAST_ITEMS, len(production))
        labels = [log.item_labels[item] for item in shown_item[rows].tolist()]
        frequent = [labels[row] for row in np.argsort(-exposure[rows], kind="stable")[:most]]
        items = list(dict.fromkeys([*production, *frequent]))
        of_items = attraction[rows[[labels.index(item) for item in items]]]
        users = PositionBasedModel(of_items, examination[: len(production)])
        counted = None if cutoff is None else min(cutoff, len(production))
        settings = reward, counted, level, variance
        proposals.append(_proposal("PBM", users, items, production, *settings))
    return proposals


def shrunken_rates(clicks: Floats, exposure: Floats) -> Floats:
    """Clicks per examination of each pair: the mean under the Beta distribution whose mean and
    variance are those of all pairs (by moments, weighted by exposure).

    Example:
        >>> shrunken_rates(np.array([10.0, 30.0]), np.array([100.0, 100.0])).round(4)
        array([0.1071, 0.2929])
    """
    total = exposure.sum()
    mean = clicks.sum() / total
    within = mean * (1 - mean)
    spread = (exposure * (clicks / exposure - mean) ** 2).sum() - (len(clicks) - 1) * within
    between = max(spread / (total - (exposure**2).sum() / total), 0.0) if len(clicks) > 1 else 0.0
    if between == 0:
        return np.full(len(clicks), min(mean, 1.0))
    size = max(within / between - 1, 0.0)
    return np.minimum((clicks + size * mean) / (exposure + size), 1.0)


def _proposal(
    model: str,
    users: ClickModel,
    items: Sequence[str],
    production: Sequence[str],
    reward: str,
    cutoff: int | None,
    level: float,
    variance: float,
) -> Proposal | str:
    """The list of which a click model expects most, beside the production list; or why none."""
    best, exact = best_list(users, reward, cutoff)
    today = np.array([items.index(label) for label in production])
    expected = [users.expected_reward(ranking, reward, cutoff) for ranking in (best, today)]
    gain = expected[0] - expected[1]
    if gain < LEAST_GAIN:
        return f"the click model {model} expects most of the production list"
    labels = tuple(items[item] for item in best[:cutoff])
    rankings = tuple(best.tolist()), tuple(today.tolist())
    return Proposal(model, labels, gain, experiment(gain, variance, level), exact, rankings)
