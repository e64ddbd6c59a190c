"""Tiny logs at the edges, for the estimators of click models and of policies: what
`logs/tests/test_log_edges.py` checks against `reference_estimators`.

A log is a function of what is checked and of a seed: one session or a few, one position, one item,
one query, all clicked, never clicked, one item always clicked; with held-out sessions that show
queries and items which the others lack, and with policies that hardly ever show a list.
"""

from __future__ import annotations

import math
import warnings
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from reference_estimators import BruteForce, all_lists, weights_of

from clickgym.envs import (
    CascadeModel,
    ClickChainModel,
    ClickModel,
    DependentClickModel,
    DynamicBayesianModel,
    PositionBasedModel,
    UserBrowsingModel,
)
from clickgym_logs import ClickLog, ListPolicy, UniformPolicy, evaluate
from clickgym_logs.estimation.estimator import MODEL_ESTIMATORS, EMEstimator, Estimator
from clickgym_logs.evaluation import ESTIMATORS, contributions
from clickgym_logs.policies import Policy

PROBABILITIES = (0.0, 1.0, 1e-300, 1e-12, 0.5, 1 - 1e-12, 1 - 2**-53)


def draw(name: str, seed: int) -> ClickLog:
    """The log of a check and a seed."""
    rng = _rng(name, seed)
    n_items, n_queries = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    if name.startswith("evaluate"):
        n_queries = 1
    n_positions = int(rng.integers(1, min(n_items, 3) + 1))
    return _log(n_items, n_queries, n_positions, int(rng.choice([1, 2, 3, 8])), rng)


def _rng(name: str, seed: int) -> np.random.Generator:
    return np.random.default_rng([zlib.crc32(name.encode()), seed])


def _log(
    n_items: int, n_queries: int, n_positions: int, n_sessions: int, rng: np.random.Generator
) -> ClickLog:
    shape = (n_sessions, n_positions)
    items = rng.permuted(np.tile(np.arange(n_items), (n_sessions, 1)), axis=1)[:, :n_positions]
    how = rng.integers(5)
    clicks = (
        np.full(shape, how == 0)
        if how < 2
        else items == 0
        if how == 2
        else rng.random(shape) < rng.choice([0.1, 0.5, 0.9])
    )
    return ClickLog(
        items,
        clicks,
        rng.integers(0, n_queries, n_sessions),
        tuple("abcde"[:n_items]),
        tuple("pqr"[:n_queries]),
    )


# ------------------------------------------------------------------------------------------------
# ----------- estimation

PARAMETERS = (
    "attraction_",
    "examination_",
    "termination_",
    "satisfaction_",
    "perseverance_",
    "continue_after_skip_",
    "continue_after_click_",
    "continue_after_relevant_",
)


def _close(have: object, want: object) -> bool:
    return np.allclose(have, want, rtol=1e-9, atol=1e-12)


def _estimate(name: str, log: ClickLog, seed: int) -> str:
    rng = _rng(f"{name} again", seed)
    iterations = int(rng.integers(1, 6))
    uniform = (1.0, 1.0)
    kind = MODEL_ESTIMATORS[name.removesuffix(" EM")]
    settings: dict[str, Any] = {"prior": uniform}
    if name == "DCM":
        settings["method"] = "last_click"
    elif issubclass(kind, EMEstimator):
        settings |= {"iterations": iterations, "tol": None}
    estimator: Estimator = kind(**settings).fit(log)
    reference = BruteForce(name, iterations).fit(log)
    for parameter in PARAMETERS:
        values = np.asarray(getattr(estimator, parameter, 0.5))
        if not np.all((values >= 0) & (values <= 1)):
            return f"{parameter} is {values}"
    of_pairs = estimator.attraction_
    for (query, item), attraction in (
        zip(estimator.pairs_, of_pairs, strict=False) if len(of_pairs) > 1 else ()
    ):
        if not _close(attraction, reference.p(("α", query, item))):
            exact = reference.p(("α", query, item))
            return f"the attraction of {query}, {item} is {attraction}, by brute force {exact}"
    if of_pairs[-1] != 0.5:
        return f"the attraction of what was never shown is {of_pairs[-1]}"
    if isinstance(estimator, EMEstimator) and name != "DCM":
        gains = np.diff(estimator.log_posterior_)
        if not (np.isfinite(estimator.log_posterior_).all() and (gains > -1e-9).all()):
            return f"the penalised likelihood goes {estimator.log_posterior_}"
    for scored in (log, _log(5, 3, log.n_positions, 3, rng), log[:1]):
        likelihood, wanted = estimator.log_likelihood(scored), reference.log_likelihood(scored)
        excluded = np.isneginf(wanted)
        if not np.array_equal(np.isneginf(likelihood), excluded) or (
            excluded.any() and name != "CM"
        ):
            return f"the likelihoods are {likelihood}, by brute force {wanted}"
        if not _close(likelihood[~excluded], np.array(wanted)[~excluded]):
            return f"the likelihoods are {likelihood}, by brute force {wanted}"
        perplexity, wanted = (
            estimator.perplexity_by_rank(scored),
            reference.perplexity_by_rank(scored),
        )
        if not np.isfinite(perplexity).all() or not _close(perplexity, wanted):
            return f"the perplexities are {perplexity}, by brute force {wanted}"
    return ""


# ------------------------------------------------------------------------------------------------
# ----------- evaluation


def _probabilities(size: int, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(size) < 0.5, rng.choice(PROBABILITIES, size), rng.random(size))


def _users(estimator: str, n_items: int, n_positions: int, rng: np.random.Generator) -> ClickModel:
    attraction, positions = _probabilities(n_items, rng), _probabilities(n_positions, rng)
    of_pairs = _probabilities(n_positions**2, rng).reshape(n_positions, n_positions)
    satisfaction = _probabilities(n_items, rng)
    makers: dict[str, Callable[[], ClickModel]] = {
        "pbm": lambda: PositionBasedModel(attraction, positions),
        "cm": lambda: CascadeModel(attraction, n_positions),
        "dcm": lambda: DependentClickModel(attraction, positions),
        "ubm": lambda: UserBrowsingModel(attraction, of_pairs),
        "sdbn": lambda: DynamicBayesianModel(
            attraction, satisfaction, 1.0, n_positions=n_positions
        ),
        "dbn": lambda: DynamicBayesianModel(
            attraction, _probabilities(n_items, rng), float(rng.random()), n_positions=n_positions
        ),
        "ccm": lambda: ClickChainModel(attraction, *_probabilities(3, rng).tolist(), n_positions),
    }
    return makers[estimator]()


def _policy(n_items: int, n_positions: int, rng: np.random.Generator) -> Policy:
    """All lists, some of them hardly ever; or a few."""
    lists = all_lists(n_items, n_positions)
    how = rng.integers(4)
    if how == 0:
        return UniformPolicy(n_items, n_positions)
    weights = rng.random(len(lists))
    if how > 1:
        weights = np.where(
            rng.random(len(lists)) < 0.5,
            rng.choice([5e-324, 1e-300, 1e-200, 1e-90, 1e-9], len(lists)),
            weights,
        )
    if how == 3:
        weights *= rng.random(len(lists)) < 0.8
    weights[rng.integers(len(lists))] = 1.0
    return ListPolicy(lists, weights / weights.sum())


MOST = 1e100  # weights beyond which are refused


def _refusal(error: ValueError) -> str:
    said = str(error)
    known = ("infinite" in said, "a weight above" in said, "nothing to estimate from" in said)
    return (
        f"refused: {said}" if any(known) and "\n" not in said else f"refuses in other words: {said}"
    )


def _evaluate_alone(log: ClickLog, target: Policy, estimator: str) -> str:
    try:
        result = evaluate(log, target, estimator)
    except ValueError as error:
        known = (
            "was not fitted to the query",
            "give the policy that made it",
            "give the logging policy",
        )
        return (
            "refused: not in the log"
            if any(words in str(error) for words in known)
            else _refusal(error)
        )
    numbers = (result.value, result.mean_weight, result.effective_sample_size)
    return "" if np.isfinite(numbers).all() else f"{result}"


def _evaluate(name: str, log: ClickLog, seed: int) -> str:
    rng = _rng(f"{name} again", seed)
    estimator, n_items = name.removeprefix("evaluate "), len(log.item_labels)
    target, logging = (_policy(n_items, log.n_positions, rng) for _ in range(2))
    model = (
        None
        if estimator in ("ips", "cascade", "item-position")
        else _users(estimator, n_items, log.n_positions, rng)
    )
    if model is not None and rng.random() < 0.2:  # of the log's own lists, by a model fitted to it
        return _evaluate_alone(log, target, estimator)
    weights = np.array(weights_of(log, estimator, target, logging, model))
    try:
        result = evaluate(log, target, estimator, logging=logging, model=model, seed=seed)
        values, *_ = contributions(log, target, estimator, logging=logging, model=model)
    except ValueError as error:
        return _refusal(error)
    if weights.max() > MOST * (1 + 1e-9):
        return f"a weight of {weights.max()} is taken"
    small = 1e-300
    wanted = (weights * log.clicks).sum(axis=1)
    if not np.allclose(values.sum(axis=1), wanted, rtol=1e-9, atol=small):
        return f"the values are {values.sum(axis=1)}, by hand {wanted}"
    if not math.isclose(result.value, wanted.mean(), rel_tol=1e-9, abs_tol=small):
        return f"the value is {result.value}, by hand {wanted.mean()}"
    numbers = [result.value, result.mean_weight]
    if not np.isfinite(numbers).all() or result.mean_weight <= 0:
        return f"{result}"
    if not 1 - 1e-9 <= result.effective_sample_size <= len(log) * (1 + 1e-9):
        return f"the effective sample size is {result.effective_sample_size} of {len(log)}"
    spread = [result.standard_error, *result.interval]
    if len(log) == 1:
        return "" if np.isnan(spread).all() else f"a single session has the spread {spread}"
    low, high = result.interval
    if not np.isfinite(spread).all() or not 0 <= low <= result.value * (1 + 1e-9) + small < high:
        return f"the spread is {spread} of values {wanted}"
    scale = float(np.abs(wanted).max()) or 1.0
    by_hand = float(np.std(wanted / scale)) * scale / math.sqrt(len(log))
    if not math.isclose(
        result.standard_error, by_hand, rel_tol=1e-6, abs_tol=1e-12 * scale + small
    ):
        return f"the standard error is {result.standard_error}, by hand {by_hand}"
    return ""


CHECKS: dict[str, Callable[[str, ClickLog, int], str]] = {
    **dict.fromkeys([*MODEL_ESTIMATORS, "DCM EM"], _estimate),
    **dict.fromkeys([f"evaluate {name}" for name in ESTIMATORS], _evaluate),
}
"""What is checked, by name."""


def check(name: str, log: ClickLog, seed: int) -> str:
    """What is at fault with an estimator on a log; ``""`` if nothing is, or ``"refused: ..."``."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return CHECKS[name](name, log, seed)
        except Exception as error:
            return repr(error)
