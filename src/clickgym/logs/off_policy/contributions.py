"""Off-policy estimators: what each logged session contributes to the value of a ranking policy,
from a log of one query that another policy made.

The value of a policy is its expected reward per list, by default the number of clicks. Every
estimator here weighs the logged clicks,

    V = mean over sessions of Σ_k weight(n, k) c(n, k),

and they differ in what the weight compares between the target policy Φ and the logging policy π,
hence in what they assume about users, and in variance:

| estimator | weight of a click on the item a_k at position k | unbiased if |
|---|---|---|
| `ips` | Φ(list) / π(list) | always |
| `cascade` | Φ(first k items) / π(first k items) | nothing below influences a click |
| `item-position` | Φ(a_k at k) / π(a_k at k) | a click depends on the item and its position: PBM |
| `pbm`, `cm`, `dcm`, … | examinations of a_k per list under Φ / π | that click model |

*Click-model estimators.* In each of these models a click is an examination times an attraction
α(a), whatever the list. So the value is ``Σ_a α(a) X_Φ(a)`` with X(a) the expected number of
examinations of item a per list, and clicks weighed by ``X_Φ(a) / X_π(a)`` estimate it. For the PBM
``X_Φ(a) = Σ_k χ_k Φ(a at k)``; for the UBM ``X_Φ(a) = Σ_{k,k'} γ_{k,k'} Φ(a, k, k')``, which makes
this the inner product ``<W, Φ(a,·,·)>`` of He et al. 2020, equation 10.

1. Equation 10 sums k' from 0 to k; the last click above position k is at most at k - 1, as the
   paper's own W says.
2. Φ(a, k, k') and π(a, k, k') depend on the users' clicks, so outside the PBM a policy alone does
   not determine X. With a ``logging`` policy, which `contributions` takes, both are computed from
   the click model (unbiased if its parameters are right). Without one, as in `evaluate`, X_π is
   that of the log's own lists.
3. `ubm` without a ``logging`` policy is the paper's procedure (its equation 11 and what follows):
   π(a, k, k') is counted in the log, the attraction of an item is its clicks over the sum of its
   examination weights, and Φ(a, k, k') follows from these attractions. The paper draws the clicks
   under Φ one position after the other; here their expectation is taken, which has the same mean
   and no noise. An estimated attraction above 1 counts as 1 in Φ(a, k, k'); the paper cuts its
   product with the weight off at 1. Of a fitted model only products of attraction and examination
   are known: the largest examination counts as 1, so that few attractions are above 1.

*Other rewards.* With a ``cutoff`` m only the first m positions count. ``any_click`` is 1 for a list
with a click; `ips` and `cascade` count the first click alone (for the others it is not a sum over
clicks).

*Lists of unequal length.* How many results there are belongs to the session: a policy is a law over
lists given a length, and the propensities of a list, a prefix or an item-position are those among
the sessions of its length. Nothing below the end is examined: a whole list, or a prefix, is as long
as the session's, an item-position below has the weight 1, and X counts the positions by the share
of the sessions that have them.

*Infinite weights* are refused: a list (prefix, item at a position, examined
item) that the target shows and the logging policy never does, or with unknown probability; and a
log in which no session has a positive weight.
Recorded propensities tell only of what was logged: a ``mean_weight`` far below 1 shows that
something was not.
"""

from __future__ import annotations

import numpy as np

from ...core.checks import check_choice, check_kind, short
from ...envs import ClickModel
from ..distinct import grouped
from ..estimation.estimator import Estimator
from ..log import ClickLog
from .model_weights import MODEL_BASED, model_weights
from .policies import Policy, check_query, empirical_policy
from .weights import WEIGHTS, Contributions, Sessions

ESTIMATORS = (*WEIGHTS, *MODEL_BASED)
"""The names of the estimators."""

CAN_ESTIMATE = {"clicks": ESTIMATORS, "any_click": ("ips", "cascade")}
"""The estimators of each reward."""


def contributions(
    log: ClickLog,
    target: Policy,
    estimator: str = "ips",
    *,
    logging: Policy | None = None,
    model: ClickModel | Estimator | None = None,
    reward: str = "clicks",
    cutoff: int | None = None,
) -> Contributions:
    """The contribution of each session to an estimate.

    Args:
        log: the logged sessions, of a single query.
        target: the policy to evaluate, over the log's item indices.
        estimator: one of `ESTIMATORS`.
        logging: the policy that made the log. None: `ips` and `item-position` use the propensities
            that the log recorded, the click-model estimators the log's own lists
            (`empirical_policy`), and `cascade` refuses.
        model: the click model of a click-model estimator: a `ClickModel` over the log's item
            indices, a fitted `Estimator`, or None to fit one to this log.
        reward: ``"clicks"`` (their number) or ``"any_click"`` (1 if there is one); see the module's
            docstring for which estimators can tell.
        cutoff: count only the first ``cutoff`` positions, in ``1..K``; None counts all.

    Returns:
        Values, weights and the largest weight; G is 1, or K (the cutoff) where each position has
        its own weight.

    Raises:
        ValueError: on what does not fit together, and where a weight would be infinite, naming the
            session or the item.
    """
    check_query(log)
    check_estimator(estimator, reward)
    if model is not None and estimator in WEIGHTS:
        raise ValueError(f"model is {short(model)}, but {estimator} takes none")
    _check_policy("target", target, log)
    if logging is not None:
        _check_policy("logging", logging, log)
    earned = log.earned(reward, cutoff)
    if estimator in MODEL_BASED:
        made_by = empirical_policy(log) if logging is None else logging
        sessions = Sessions(log, np.arange(len(log)), target, made_by, earned)
        return model_weights(sessions, estimator, model, counted=logging is None)
    parts = []
    for length, rows in zip(*grouped(log.lengths), strict=True):
        laws = target.of_length(length), None if logging is None else logging.of_length(length)
        part = Sessions(log, rows, *laws, earned[rows])
        parts.append((rows, WEIGHTS[estimator](part)))
    values, weights = np.empty((2, len(log), parts[0][1].values.shape[1]))
    for rows, of_rows in parts:
        values[rows], weights[rows], _ = of_rows
    return Contributions(values, weights, max(part.largest for _, part in parts))


def check_estimator(estimator: str, reward: str = "clicks") -> None:
    """Check the names of an estimator and a reward, and that the estimator supports the reward."""
    check_choice("estimator", estimator, ESTIMATORS)
    check_choice("reward", reward, CAN_ESTIMATE)
    if estimator not in CAN_ESTIMATE[reward]:
        raise ValueError(
            f"the estimator {estimator!r} cannot tell {reward!r}; "
            f"{', '.join(CAN_ESTIMATE[reward])} can"
        )


def _check_policy(name: str, policy: Policy, log: ClickLog) -> None:
    check_kind(name, policy, Policy, "a policy")
    if policy.n_positions != log.n_positions:
        raise ValueError(
            f"the {name} policy fills {policy.n_positions} positions; the log has {log.n_positions}"
        )
    if not 0 <= policy.items[0] <= policy.items[-1] < len(log.item_labels):
        raise ValueError(
            f"the {name} policy has items from {policy.items[0]} to {policy.items[-1]}; those of "
            f"the log are numbered 0 to {len(log.item_labels) - 1}"
        )
