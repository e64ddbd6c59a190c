"""Compare policies by several estimators; policies are named as on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

from clickgym.core.checks import check_between, check_kind, check_labels, check_seed
from clickgym.envs import CLICK_MODELS, load_instance

from .best_list import best_list
from .evaluation import Evaluation, check_estimator, evaluate
from .intervals import LEAST_CLICKS
from .log import ClickLog, item_numbers
from .names import csv_fields
from .policies import FixedPolicy, Policy, UniformPolicy, check_query, empirical_policy


@dataclass(frozen=True)
class Comparison:
    """Estimates of the rewards of several policies, by several estimators, from one log.

    Attributes:
        policies: the evaluated policies, by their specs.
        by_policy: the estimates of each policy, in the order of the estimators; refused estimates
            are left out.
        refused: the reason why there is no estimate, by policy and estimator; empty unless another
            estimate exists.
        contradictions: a sentence for each two estimates of a policy, of at least 10 effective
            clicks each, whose intervals do not overlap.
    """

    policies: dict[str, Policy]
    by_policy: dict[str, tuple[Evaluation, ...]]
    refused: dict[tuple[str, str], str]
    contradictions: tuple[str, ...]


def compare(
    log: ClickLog,
    policies: str | Sequence[str],
    estimators: Sequence[str],
    *,
    logging: str | None = None,
    reward: str = "clicks",
    cutoff: int | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """Estimate what several policies would have earned, and how much more than the logged policy.

    Args:
        log: the sessions of a single query, in which another policy made the lists.
        policies: one or several specs, as in `read_policy`.
        estimators: names of `ESTIMATORS`.
        logging: the policy that made the log, as a spec; None takes the probabilities that the log
            recorded.
        reward, cutoff, level, seed: as for `evaluate`.

    Raises:
        ValueError, OSError: on wrong input, or if no estimate can be made.

    Example:
        >>> log = ClickLog([[0, 1], [1, 0]] * 5, [[1, 0], [0, 1]] * 5, [0] * 10, ("a", "b"), ("q",))
        >>> compare(log, "fixed:a,b", ["ips"], logging="uniform").by_policy["fixed:a,b"][0].value
        1.0
    """
    check_query(log)
    policies = check_labels("policies", [policies] if isinstance(policies, str) else policies)
    estimators = check_labels("estimators", estimators)
    if not policies or not estimators:
        raise ValueError("expected at least one policy and one estimator")
    for name in estimators:
        check_estimator(name, reward)
    targets = {spec: read_policy(spec, log, reward, cutoff) for spec in policies}
    source = None if logging is None else read_policy(logging, log)
    check_between("level", level, 0.0, 1.0)
    check_seed(seed)
    settings: dict[str, Any] = {"reward": reward, "cutoff": cutoff, "level": level, "seed": seed}
    by_policy: dict[str, tuple[Evaluation, ...]] = dict.fromkeys(targets, ())
    refused = {}
    for spec, name in product(targets, estimators):
        try:
            by_policy[spec] += (evaluate(log, targets[spec], name, logging=source, **settings),)
        except ValueError as error:
            refused[spec, name] = str(error)
    if not any(by_policy.values()):
        raise ValueError(next(iter(refused.values())))
    contradictions = tuple(
        f"{first.estimator} ({first.interval[0]:.4g} to {first.interval[1]:.4g}) and "
        f"{second.estimator} ({second.interval[0]:.4g} to {second.interval[1]:.4g}) do not overlap "
        f"for {spec}: what one of them assumes is false, or one of the two is one of the "
        f"{100 * (1 - level):.3g} % of intervals that miss."
        for spec, results in by_policy.items()
        for first, second in combinations(results, 2)
        if max(first.interval[0], second.interval[0]) > min(first.interval[1], second.interval[1])
        and min(first.effective_clicks, second.effective_clicks) >= LEAST_CLICKS
    )
    return Comparison(targets, by_policy, refused, contradictions)


class SearchedPolicy(FixedPolicy):
    """The best list of a local search under a click model: another one may be better."""


def read_policy(
    spec: str, log: ClickLog, reward: str = "clicks", cutoff: int | None = None
) -> Policy:
    """The policy of a spec.

    Args:
        spec: ``uniform`` (every list of the logged items alike), ``empirical`` (as often as
            logged), ``fixed:<item>,<item>,...`` (the items by label); or ``<file>:<model>``, of a
            file that ``clickgym fit`` wrote: the best list under that click model (which need not
            be named where there is but one), or where no exact search is possible the best one of a
            local search (see `best_list`).
        log: the sessions of a single query, whose items the policy ranks.
        reward, cutoff: for which a list of a click model is best.

    Raises:
        ValueError: if nothing is called so, or if the file or an item does not fit.
    """
    check_kind("policy", spec, str, "words such as uniform or fixed:a,b, or a file")
    query = check_query(log)
    log[:0].earned(reward, cutoff)  # names a wrong one
    if spec == "empirical":
        return empirical_policy(log)
    if spec == "uniform":
        return UniformPolicy(np.setdiff1d(log.items, -1), log.n_positions)
    if spec.startswith("fixed:"):
        return FixedPolicy(item_numbers(log, csv_fields(spec.removeprefix("fixed:"))))
    is_path = ":" not in spec or Path(spec).exists()
    file, model = (spec, "") if is_path else spec.rsplit(":", 1)
    if not file.endswith(".json"):
        raise ValueError(
            f"unknown policy {spec!r}; expected uniform, empirical, fixed:<item>,... or a file "
            "that clickgym fit wrote"
        )
    instance = load_instance(file)
    items = instance.estimation.get("items")
    if not isinstance(items, list) or len(items) != instance.n_items:
        raise ValueError(f"{file} has no labels of items; expected a file that clickgym fit wrote")
    if instance.estimation.get("query") != query:
        raise ValueError(f"{file} has no list for the query {query!r} of the log")
    kinds = [kind for kind in instance.models if kind in CLICK_MODELS]
    matches = [kind for kind in kinds if model.upper() in ("", kind)]
    if len(matches) != 1:
        raise ValueError(
            f"{file} has the click models {', '.join(kinds) or 'none'}; choose one, as in "
            f"{file}:PBM"
        )
    users = instance.model(matches[0], log.n_positions)
    ranking, exact = best_list(users, reward, cutoff)
    kind = FixedPolicy if exact else SearchedPolicy
    return kind(np.array(item_numbers(log, items))[ranking])
