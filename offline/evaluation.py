"""Off-policy evaluation: what a ranking policy would have earned, from a log of another policy.

The value of a policy is its expected reward per list, by default the number of clicks. Every estimator here weighs the
logged clicks,

    V = mean over sessions of Σ_k weight(n, k) c(n, k),

and they differ in what the weight compares between the target policy Φ and the logging policy π, hence in what they
assume about users, and in variance:

| estimator | weight of a click on the item a_k at position k | unbiased if |
|---|---|---|
| `ips` | Φ(list) / π(list) | always |
| `cascade` | Φ(first k items) / π(first k items) | what is below does not influence a click: every model below |
| `item-position` | Φ(a_k at k) / π(a_k at k) | a click depends on the item and its position: PBM |
| `pbm`, `cm`, `dcm`, `ubm`, `sdbn`, `dbn` | examinations of a_k per list under Φ / under π | that click model |

| `dr` | that of `ips`, of what the click is above a click model's prediction | always |
| `cascade-dr` | that of `cascade`, likewise | as `cascade` |
| `item-position-dr` | that of `item-position`, likewise | as `item-position` |

*Doubly robust estimators* predict with a click model what the target policy earns (the direct method), and weigh only what
the logged sessions earned beyond its prediction for them. With q(list) the prediction, ``dr`` is the mean of

    Σ_list Φ(list) q(list) + Φ(list) / π(list) (r - q(list)).

``cascade-dr`` is the cascade doubly robust estimator of Kiyohara et al. 2022. With w(k) the weight of the first k items and
Q(k) the predicted reward from position k on, given the first k items and that Φ continues,

    Σ_k w(k) (r(k) - Q(k)) + w(k - 1) E[Q(k) | first k - 1 items, k-th drawn by Φ].

``item-position-dr`` predicts ``χ_k α(a)`` for each item at each position. The weights alone make these unbiased, whatever the
click model predicts, as long as it has not seen the clicks that it is to predict; the better the predictions, the less the
estimate varies. So a model that is not given is cross-fitted: the log is split into two halves at random (always the same
ones), and the sessions of each are predicted by the model that was fitted to the other, by its estimator's defaults; an item
that a half never showed is attractive with probability 0.5 there. The default is the UBM, for `item-position-dr` the PBM. In a
log of single displays no click model can be fitted: there an item's click rate at a position is that of the position times
``(1 + clicks) / (1 + expected clicks)`` of the item.

*Click-model estimators.* In each of these models a click is an examination times an attraction α(a), whatever the
list. So the value is ``Σ_a α(a) X_Φ(a)`` with X(a) the expected number of examinations of item a per list, and clicks
weighed by ``X_Φ(a) / X_π(a)`` estimate it. For the PBM ``X_Φ(a) = Σ_k χ_k Φ(a at k)``; for the UBM ``X_Φ(a) =
Σ_{k,k'} γ_{k,k'} Φ(a, k, k')``, which makes this the inner product ``<W, Φ(a,·,·)>`` of He et al. 2020, equation 10.

1. Equation 10 sums k' from 0 to k; the last click above position k is at most at k - 1, as the paper's own W says.
2. Φ(a, k, k') and π(a, k, k') depend on the users' clicks, so outside the PBM a policy alone does not determine X. With
   a ``logging`` policy, both are computed from the click model (unbiased if its parameters are right). Without one,
   X_π is that of the log's own lists.
3. `ubm` without a ``logging`` policy is the paper's procedure (its equation 11 and what follows): π(a, k, k') is
   counted in the log, the attraction of an item is its clicks over the sum of its examination weights, and Φ(a, k, k')
   follows from these attractions. The paper draws the clicks under Φ one position after the other; here their
   expectation is taken, which has the same mean and no noise. An estimated attraction above 1 counts as 1 in
   Φ(a, k, k'); the paper cuts its product with the weight off at 1.

*Self-normalised* estimates divide by the weights' sum instead of their expectation: Σ of the weights for `ips`, the
same at each position for `cascade` and `item-position` (each term of the doubly robust ones by its own weights), and for
a click model the weighted examinations, ``Σ_k χ_k weight / Σ_a X_Φ(a)``. They are biased by O(1/N) and usually vary less.

*Other rewards.* With a ``cutoff`` m only the first m positions count. ``any_click`` is 1 for a list with a click; `ips`,
`cascade` and their doubly robust forms count the first click alone (for the others it is not a sum over clicks).
``satisfaction`` is 1 for a user who left satisfied, which no log tells: `dcm`, `sdbn` and `dbn` multiply the examinations
under Φ by the model's probability of leaving after a click.

*Lists of unequal length.* How many results there are belongs to the session, as the query does, and every policy shows so
many of its list. Nothing below the end is examined: a whole list, or a prefix, is then as long as the session's, an
item-position below has the weight 1, and X counts the positions by the share of the query's sessions that have them.

*Infinite weights*, and those above 1e100, are refused: a list (prefix, item at a position, examined item) that the target
shows and the logging policy never does, or with unknown probability; and a log in which no session has a positive weight.
Recorded propensities tell only of what was logged: a ``mean_weight`` far below 1 shows that something was not.

Sources: Li, Abbasi-Yadkori, Kveton, Muthukrishnan, Vinay and Wen, KDD 2018 (lists, item-positions, PBM); McInerney et
al., KDD 2020 (prefixes); He et al., RecSys 2020 (UBM); Dudík, Langford and Li, ICML 2011 (doubly robust); Kiyohara, Saito,
Matsuhiro, Narita, Shimizu and Yamamoto, *Doubly robust off-policy evaluation for ranking policies under the cascade behavior
model*, WSDM 2022.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..core.checks import LARGEST, check_between, check_count, check_seed, unknown
from ..envs import ClickModel, PositionBasedModel, UserBrowsingModel
from .estimation import Estimator
from .estimation.estimator import MODEL_ESTIMATORS, Floats
from .log import ClickLog, ItemPositionLog
from .policies import (
    Integers,
    ListPolicy,
    PlackettLucePolicy,
    Policy,
    empirical_policies,
    given_length,
    sessions_by_query,
    sums_by_beginning,
)

__all__ = ["ESTIMATORS", "LEAST_SESSIONS", "Evaluation", "check_estimator", "contributions", "evaluate", "logged_reward"]

CLICK_MODELS = {name.lower(): estimator for name, estimator in MODEL_ESTIMATORS.items()}
"""The estimators of click models. Where none is given, one is fitted with its defaults: EM takes 50 steps and judges
nothing, where ``clickgym fit`` goes on until it converges."""

DOUBLY_ROBUST = {"dr": "UBM", "cascade-dr": "UBM", "item-position-dr": "PBM"}
"""The doubly robust estimators, and the click model that each fits where none is given."""

ESTIMATORS = ("ips", "cascade", "item-position", *DOUBLY_ROBUST, *CLICK_MODELS)
"""The names of the estimators."""

SATISFYING = tuple(name for name, found in CLICK_MODELS.items() if "satisfaction" in found.model_class.rewards)
CAN_ESTIMATE = {"clicks": ESTIMATORS, "any_click": ("ips", "cascade", "dr", "cascade-dr"), "satisfaction": SATISFYING}

LEAST_SESSIONS = 100
"""An effective sample size below it is worth a caution: the interval of so few is itself uncertain."""
MOST_OFF = 0.1
"""A mean weight that is farther than this from 1 is worth a caution."""

INFINITE = "the target policy shows it, the logging policy never, which makes its weight infinite"

Policies: TypeAlias = Policy | Mapping[str, Policy]
Contributions: TypeAlias = tuple[Floats, Floats]
Weigh: TypeAlias = Callable[[ClickLog, str, Integers, Policy, Policy | None, NDArray[np.int8]], Contributions]


@dataclass(frozen=True)
class Evaluation:
    """An off-policy estimate.

    Attributes:
        estimator: its name.
        value: the estimated expected reward per session (per row of an `ItemPositionLog`).
        standard_error: of ``value``, from the variance between sessions; NaN for a single session, which has none.
        interval: bootstrap confidence interval of ``value``; NaN for a single session.
        self_normalised, self_normalised_interval: the same with self-normalised weights.
        on_policy: the reward per session that was logged, which is the value of the logging policy; None for satisfaction, for
            which nobody was asked.
        on_policy_interval: bootstrap confidence interval of ``on_policy``.
        difference: ``value`` less what it is compared with: ``on_policy``, or the value of the other policy by the same
            estimator. None where there is neither.
        difference_interval: its bootstrap confidence interval. Sessions are resampled as a whole, with both sides of the
            difference, so that what they share cancels.
        probability_better: the share of these resamplings in which the difference is positive (0 counts half).
        n_sessions: N.
        effective_sample_size: ``(Σw)²/Σw²``, how many sessions of equal weight would vary as much (at the worst position,
            where weights are normalised by position).
        mean_weight: 1 in expectation; far below it, the log hardly shows what the target would.
        max_weight: the largest weight of a session.
    """

    estimator: str
    value: float
    standard_error: float
    interval: tuple[float, float]
    self_normalised: float
    self_normalised_interval: tuple[float, float]
    on_policy: float | None
    on_policy_interval: tuple[float, float] | None
    difference: float | None
    difference_interval: tuple[float, float] | None
    probability_better: float | None
    n_sessions: int
    effective_sample_size: float
    mean_weight: float
    max_weight: float

    @property
    def cautions(self) -> tuple[str, ...]:
        """What speaks against trusting the estimate, a sentence each: a mean weight off 1 by more than 0.1, and an effective
        sample size below 100 sessions."""
        found = []
        if abs(self.mean_weight - 1.0) > MOST_OFF:
            found.append(
                f"the mean weight of {self.estimator} is {self.mean_weight:.3f}, where 1 is expected: the log is "
                f"too short for this policy, or lacks what it shows."
            )
        if self.effective_sample_size < LEAST_SESSIONS:
            found.append(
                f"the effective size of {self.estimator} is {self.effective_sample_size:.0f}, below {LEAST_SESSIONS}: little "
                f"of the log ({self.n_sessions:,}) tells of this policy, and the intervals of so few are rough."
            )
        return tuple(found)


def evaluate(
    log: ClickLog | ItemPositionLog,
    target: Policies,
    estimator: str = "ips",
    *,
    logging: Policies | None = None,
    model: ClickModel | Estimator | None = None,
    against: Policies | None = None,
    reward: str = "clicks",
    cutoff: int | None = None,
    bootstrap: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Evaluation:
    """Estimate the value of a policy from the log of another.

    Args:
        log, target, estimator, logging, model, reward, cutoff: as in `contributions`.
        against: the policy that the target is to be compared with, in the same form; None compares with what was logged.
        bootstrap: resamplings of the sessions. Estimated parameters are held fixed: their uncertainty is not in the
            intervals.
        level: confidence level of the percentile intervals.
        seed: of the bootstrap.

    Returns:
        The estimate, plain and self-normalised, with intervals, the difference that the target makes, and diagnostics.

    Raises:
        ValueError: as `contributions`; on a bad number; if no session has a positive weight.

    Example:
        >>> from clickgym.offline import ClickLog, FixedPolicy, UniformPolicy
        >>> log = ClickLog([[0, 1], [1, 0]], [[1, 0], [0, 0]], [0, 0], ("a", "b"), ("q",))
        >>> result = evaluate(log, FixedPolicy([0, 1]), "ips", logging=UniformPolicy(2, n_positions=2))
        >>> result.value, result.on_policy, result.difference
        (1.0, 0.5, 0.5)
    """
    check_count("bootstrap", bootstrap)
    check_between("level", level, 0.0, 1.0)
    check_seed(seed)
    how: dict[str, Any] = {"logging": logging, "model": model, "reward": reward, "cutoff": cutoff}
    values, weights = contributions(log, target, estimator, **how)
    compared = _per_session(log, reward, cutoff) if against is None else contributions(log, against, estimator, **how)[0]
    per_session = values.sum(axis=1)
    differences = None if compared is None else per_session - compared.sum(axis=1)
    drawn = weights[:, _direct_columns(estimator, weights.shape[1]) :]
    sums = drawn.sum(axis=0)
    if not (sums > 0).all():
        where = f" at position {np.argmin(sums > 0) + 1}" if len(sums) > 1 else ""
        raise ValueError(f"no session of the log shows what the target policy would{where}: there is nothing to estimate from")
    plain, normalised = _bootstrap(values, weights, bootstrap, np.random.default_rng(seed))
    small, unit = _in_units(drawn)
    spread, unit_of_values = _in_units(per_session)

    def interval(estimates: Floats) -> tuple[float, float]:
        return _percentiles(estimates, level) if len(log) > 1 else (np.nan, np.nan)

    logged, gains = (
        None if each is None else _resampled_means(each, bootstrap, np.random.default_rng(seed))
        for each in (_per_session(log, reward, cutoff), differences)
    )
    return Evaluation(
        estimator=estimator,
        value=float(per_session.mean()),
        standard_error=float(spread.std() / np.sqrt(len(log)) * unit_of_values) if len(log) > 1 else np.nan,
        interval=interval(plain),
        self_normalised=float((values.sum(axis=0) / weights.sum(axis=0)).sum()),
        self_normalised_interval=interval(normalised),
        on_policy=logged_reward(log, reward, cutoff),
        on_policy_interval=None if logged is None else interval(logged),
        difference=None if differences is None else float(differences.mean()),
        difference_interval=None if gains is None else interval(gains),
        probability_better=None if gains is None else float((gains > 0).mean() + 0.5 * (gains == 0).mean()),
        n_sessions=len(log),
        effective_sample_size=float(((sums / unit) ** 2 / (small**2).sum(axis=0)).min()),
        mean_weight=float(sums.min() / len(log)),
        max_weight=float(drawn.max()),
    )


def contributions(
    log: ClickLog | ItemPositionLog,
    target: Policies,
    estimator: str = "ips",
    *,
    logging: Policies | None = None,
    model: ClickModel | Estimator | None = None,
    reward: str = "clicks",
    cutoff: int | None = None,
) -> Contributions:
    """What each session adds to an estimate.

    Args:
        log: the logged sessions.
        target: the policy to evaluate, over the log's item indices; or one for each query label.
        estimator: one of `ESTIMATORS`.
        logging: the policy that made the log, in the same form. None: `ips` and `item-position` use the propensities that
            the log recorded, the click-model estimators the log's own lists (`empirical_policies`), and `cascade` refuses.
        model: the click model of a click-model estimator: a `ClickModel` over the log's item indices, a fitted `Estimator`,
            or None to fit one to this log. Of a doubly robust estimator any click model (`item-position-dr`: any with
            examination by position alone), which should not have been fitted to this log; None cross-fits the UBM (the PBM).
        reward: ``"clicks"`` (their number), ``"any_click"`` (1 if there is one) or ``"satisfaction"`` (1 if the user left
            satisfied); see the module's docstring for which estimators can tell.
        cutoff: count only the first ``cutoff`` positions, in ``1..K``; None counts all.

    Returns:
        Values and weights, each ``(N, G)``; G is 1, or K (the cutoff) where weights are normalised at each position, and more
        for the doubly robust ones, whose first columns are the direct method. The estimate is the mean over sessions of the
        values' sum, the self-normalised one the sum of ``values.sum(0) / weights.sum(0)``; the expectation of every weight
        is 1.

    Raises:
        ValueError: on what does not fit together, and where a weight would be infinite, naming the session or the item.
    """
    check_estimator(estimator, reward)
    if not len(log):
        raise ValueError("the log has no sessions")
    if isinstance(log, ItemPositionLog):
        if cutoff is not None:
            raise ValueError(f"cutoff is {cutoff}, but the log holds single items, not lists")
        return _display_weights(log, target, estimator, logging, model)
    if cutoff is not None and check_count("cutoff", cutoff) > log.n_positions:
        raise ValueError(f"cutoff is {cutoff}, but the log has {log.n_positions} positions")
    earned = _earned(log.clicks, reward, cutoff)
    weigh: Weigh
    if estimator in CLICK_MODELS:
        weigh = _click_model_weights(log, estimator, model, reward, counted=logging is None)
        logging = empirical_policies(log) if logging is None else logging
    elif estimator in DOUBLY_ROBUST:
        weigh = _doubly_robust_weights(log, estimator, model, reward)
    else:
        weigh = _WEIGHTS[estimator]
    parts = []
    for query, sessions in sessions_by_query(log):
        policy = _policy("target", target, query, log)
        logged = None if logging is None else _policy("logging", logging, query, log)
        parts.append((sessions, *weigh(log, query, sessions, policy, logged, earned[sessions])))
    values, weights = np.empty((2, len(log), parts[0][1].shape[1]))
    for sessions, *found in parts:
        values[sessions], weights[sessions] = found
    return values, weights


def check_estimator(estimator: str, reward: str = "clicks") -> None:
    """Refuse an estimator or a reward that there is not, and one that cannot tell the other."""
    if not isinstance(estimator, str) or estimator not in ESTIMATORS:
        raise ValueError(unknown("estimator", estimator, ESTIMATORS))
    if not isinstance(reward, str) or reward not in CAN_ESTIMATE:
        raise ValueError(unknown("reward", reward, CAN_ESTIMATE))
    if estimator not in CAN_ESTIMATE[reward]:
        raise ValueError(f"the estimator {estimator!r} cannot tell {reward!r}; {', '.join(CAN_ESTIMATE[reward])} can")


def logged_reward(log: ClickLog | ItemPositionLog, reward: str = "clicks", cutoff: int | None = None) -> float | None:
    """The reward per session (row) that was logged; None for satisfaction, which no log tells."""
    return None if reward == "satisfaction" else float(_earned(log.clicks, reward, cutoff).sum() / len(log))


def _per_session(log: ClickLog | ItemPositionLog, reward: str, cutoff: int | None) -> Floats | None:
    """``(N, ...)`` what each session was logged to earn; None for satisfaction."""
    return None if reward == "satisfaction" else _earned(log.clicks.reshape(len(log), -1), reward, cutoff).astype(np.float64)


def _earned(clicks: NDArray[np.int8], reward: str, cutoff: int | None) -> NDArray[np.int8]:
    """What each logged click counts, ``(N, cutoff)``: itself, or for ``any_click`` only the first of its list."""
    counted = clicks[..., :cutoff]
    return counted * (counted.cumsum(axis=1) == 1) if reward == "any_click" else counted


def _policy(name: str, policies: Policies, query: str, log: ClickLog) -> Policy:
    """The policy of one query."""
    if isinstance(policies, Mapping):
        if query not in policies:
            raise ValueError(f"no {name} policy for query {query!r}")
        policies = policies[query]
    if policies.n_positions != log.n_positions:
        raise ValueError(f"the {name} policy fills {policies.n_positions} positions; the log has {log.n_positions}")
    if not 0 <= policies.items[0] <= policies.items[-1] < len(log.item_labels):
        raise ValueError(
            f"the {name} policy has items from {policies.items[0]} to {policies.items[-1]}; those of the log are numbered 0 to "
            f"{len(log.item_labels) - 1}"
        )
    return policies


# ------------------------------------------------------------------------------------------------ weights of one query
# Each takes the log, the label and sessions of one query, the policies, and what the sessions earned at each counted position;
# and returns its rows of `contributions`.


def _list_weights(
    log: ClickLog, query: str, sessions: Integers, target: Policy, logging: Policy | None, earned: NDArray[np.int8]
) -> Contributions:
    lists = log.items[sessions]
    if logging is None:
        recorded = _recorded("list_propensities", log.list_propensities)[sessions]
    else:
        _check_lists(log, query, target, logging, _longest(lists))
        recorded = _begins(logging, lists)[:, -1]
    weights = _ratio(_begins(target, lists)[:, -1:], recorded[:, None], sessions)
    return weights * earned.sum(axis=1, keepdims=True), weights


def _prefix_weights(
    log: ClickLog, query: str, sessions: Integers, target: Policy, logging: Policy | None, earned: NDArray[np.int8]
) -> Contributions:
    if logging is None:
        raise ValueError("the estimator 'cascade' needs the probability of each list's beginnings; give the logging policy")
    cutoff = earned.shape[1]
    lists = log.items[sessions]
    _check_lists(log, query, target, logging, min(cutoff, _longest(lists)))
    targeted, logged = (_begins(policy, lists)[:, :cutoff] for policy in (target, logging))
    weights = _ratio(targeted, logged, sessions)
    return weights * earned, weights


def _item_position_weights(
    log: ClickLog, query: str, sessions: Integers, target: Policy, logging: Policy | None, earned: NDArray[np.int8]
) -> Contributions:
    positions = np.arange(earned.shape[1])
    lists = log.items[sessions][:, positions]
    if logging is None:
        recorded = _recorded("propensities", log.propensities)[sessions][:, positions]
    else:
        shown = positions[: _longest(lists)]
        _check_item_positions(target, logging, shown, lambda item: f"item {log.item_labels[item]!r}{_of(log, query)}")
        recorded = np.where(lists < 0, 1.0, logging.item_position_probabilities(lists, positions))
    targeted = np.where(lists < 0, 1.0, target.item_position_probabilities(lists, positions))
    weights = _ratio(targeted, recorded, sessions)
    return weights * earned, weights


def _longest(lists: NDArray[np.integer]) -> int:
    """The length of the longest list."""
    return int((lists >= 0).any(axis=0).sum())


def _begins(policy: Policy, lists: NDArray[np.int32]) -> Floats:
    """The probability that the policy's list begins as given, below the end of a list that of the whole."""
    last = (lists >= 0).sum(axis=1) - 1
    return np.take_along_axis(policy.prefix_probabilities(lists), np.minimum(np.arange(lists.shape[1]), last[:, None]), axis=1)


_WEIGHTS: dict[str, Weigh] = {
    "ips": _list_weights,
    "cascade": _prefix_weights,
    "item-position": _item_position_weights,
}


# What a click model predicts. Each takes the model, the items that it numbers, some lists, the target, reward and cutoff, and
# the weights of these lists; and returns what the direct method adds, as `contributions`, and the predictions to be subtracted.


def _predict_lists(
    users: ClickModel, items: Integers, lists: NDArray[np.integer], target: Policy, reward: str, cutoff: int, weights: Floats
) -> tuple[Floats, Floats]:
    possible, probabilities = target.support()
    value = probabilities @ _earnings(users, items, possible, reward, cutoff).sum(axis=1)
    return np.full((len(lists), 1), value), _earnings(users, items, lists, reward, cutoff).sum(axis=1, keepdims=True)


def _predict_beginnings(
    users: ClickModel, items: Integers, lists: NDArray[np.integer], target: Policy, reward: str, cutoff: int, weights: Floats
) -> tuple[Floats, Floats]:
    possible, probabilities = target.support()
    earnings = probabilities[:, None] * _earnings(users, items, possible, reward, cutoff)
    left = earnings[:, ::-1].cumsum(axis=1)[:, ::-1]  # from each position on
    shown = target.prefix_probabilities(lists)[:, :cutoff]
    continued = sums_by_beginning(possible[:, :cutoff], left, lists[:, :cutoff])
    following = sums_by_beginning(possible[:, : cutoff - 1], left[:, 1:], lists[:, : cutoff - 1])

    def given(sums: Floats, beginning: Floats) -> Floats:  # where the target never begins so, the weight is 0
        return np.divide(sums, beginning, out=np.zeros(sums.shape), where=beginning > 0)

    expected = np.hstack([np.full((len(lists), 1), left[:, 0].sum()), given(following, shown[:, :-1])])
    return _above(weights) * expected, given(continued, shown)


def _predict_item_positions(
    users: ClickModel, items: Integers, lists: NDArray[np.integer], target: Policy, reward: str, cutoff: int, weights: Floats
) -> tuple[Floats, Floats]:
    if not isinstance(users, PositionBasedModel):
        raise ValueError(f"model is a {type(users).__name__}; the estimator 'item-position-dr' takes a PositionBasedModel")
    predicted = np.outer(users.attraction, users.examination[:cutoff])
    value = (target.item_positions[:, :cutoff] * predicted[np.searchsorted(items, target.items)]).sum()
    return np.full((len(lists), 1), value), predicted[np.searchsorted(items, lists[:, :cutoff]), np.arange(cutoff)]


def _above(weights: Floats) -> Floats:
    """The weight of what stands above each position."""
    return np.hstack([np.ones((len(weights), 1)), weights[:, :-1]])


def _earnings(users: ClickModel, items: Integers, lists: NDArray[np.integer], reward: str, cutoff: int) -> Floats:
    """``(N, cutoff)`` what a click model expects each position of each list to earn; no list ends above the cutoff."""
    distinct, index = np.unique(np.where(lists >= 0, np.searchsorted(items, lists), -1), axis=0, return_inverse=True)
    for ranking in distinct:  # filled up to the end, for what stands below the cutoff changes nothing above
        others = np.setdiff1d(np.arange(len(items)), ranking)
        ended = ranking < 0
        if len(others) < ended.sum():
            raise ValueError(f"a click model of {len(items)} items has no lists of {len(ranking)} positions")
        ranking[ended] = others[: ended.sum()]
    if reward == "clicks":
        return np.array([users.click_probabilities(ranking)[:cutoff] for ranking in distinct])[index]
    earned = [[users.expected_reward(ranking, reward, k + 1) for k in range(cutoff)] for ranking in distinct]
    return np.diff(earned, axis=1, prepend=0.0)[index]


_PREDICTIONS = {"dr": _predict_lists, "cascade-dr": _predict_beginnings, "item-position-dr": _predict_item_positions}


def _direct_columns(estimator: str, columns: int) -> int:
    """How many of the columns of contributions are the direct method."""
    return {"dr": 1, "cascade-dr": columns // 2, "item-position-dr": 1}.get(estimator, 0)


def _doubly_robust_weights(log: ClickLog, estimator: str, model: ClickModel | Estimator | None, reward: str) -> Weigh:
    """The contributions of the estimator without a click model, with that of its predictions taken out.

    Args:
        log, estimator, model, reward: as in `contributions`.
    """
    if not isinstance(model, (ClickModel, Estimator, type(None))):
        raise ValueError(f"model is a {type(model).__name__}; the estimator {estimator!r} takes a click model")
    weigh_plainly = _WEIGHTS["ips" if estimator == "dr" else estimator.removesuffix("-dr")]
    predict = _PREDICTIONS[estimator]
    sources: list[tuple[NDArray[np.bool_], ClickModel | Estimator]] = []

    def weigh(
        log: ClickLog, query: str, sessions: Integers, target: Policy, logging: Policy | None, earned: NDArray[np.int8]
    ) -> Contributions:
        values, weights = weigh_plainly(log, query, sessions, target, logging, earned)
        if not sources:  # what the weights refuse is refused before a model is fitted
            sources.extend(_sources(log, DOUBLY_ROBUST[estimator]) if model is None else [(np.ones(len(log), np.bool_), model)])
        if isinstance(target, ListPolicy) and (target.support()[0] < 0).any():
            raise ValueError(f"the policy's own lists are of unequal length, of which {estimator!r} knows nothing")
        lists = log.items[sessions]
        lengths = (lists >= 0).sum(axis=1)
        items = np.union1d(target.items, lists[lists >= 0])  # the model's items are numbered in this order
        above = _above(weights) if estimator == "cascade-dr" else np.ones((len(lists), 1))
        direct, beyond = np.zeros(above.shape), values.copy()
        for predicted_here, source in sources:
            users = _users(source, log, query, items, unseen=True)
            if users.n_positions != log.n_positions:
                raise ValueError(f"the click model has {users.n_positions} positions; the log has {log.n_positions}")
            for length in np.unique(lengths):
                rows = np.flatnonzero(predicted_here[sessions] & (lengths == length))
                cutoff = min(int(length), earned.shape[1])
                of = weights[rows, :cutoff]
                expected, predicted = predict(users, items, lists[rows], target, reward, cutoff, of)
                direct[rows, : expected.shape[1]] = expected
                beyond[rows, :cutoff] -= of * predicted
        return np.hstack([direct, beyond]), np.hstack([above, weights])

    return weigh


def _sources(log: ClickLog, kind: str) -> list[tuple[NDArray[np.bool_], ClickModel | Estimator]]:
    """Two halves of a log, as masks, and the estimator that was fitted to the other half."""
    return [(half, MODEL_ESTIMATORS[kind].create().fit(log[~half])) for half in _halves(len(log))]


def _halves(n: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which of n sessions are predicted from which others: by chance, but always the same."""
    if n < 2:
        raise ValueError("a log of one session has no other half to predict it from; give the click model (model)")
    first = np.random.default_rng(0).permutation(n) % 2 == 0
    return first, ~first


def _click_model_weights(
    log: ClickLog, estimator: str, model: ClickModel | Estimator | None, reward: str, counted: bool
) -> Weigh:
    """The weights ``X_Φ(a) / X_π(a)`` of a click model.

    Every logged click tells of an item's attraction; cutoff and reward only enter X_Φ.

    Args:
        log, estimator, model, reward: as in `contributions`.
        counted: whether X_π is that of the log's own lists; then the UBM is that of He et al. 2020.
    """
    kind = CLICK_MODELS[estimator].model_class
    if not isinstance(model, (kind, Estimator, type(None))):
        raise ValueError(f"model is a {type(model).__name__}; the estimator {estimator!r} takes a {kind.__name__}")
    source = CLICK_MODELS[estimator].create().fit(log) if model is None else model

    def weigh(
        log: ClickLog, query: str, sessions: Integers, target: Policy, logging: Policy | None, earned: NDArray[np.int8]
    ) -> Contributions:
        assert logging is not None
        _check_items(log, query, target, logging)
        lists, clicks = log.items[sessions], log.clicks[sessions]
        shown = lists >= 0
        items = np.union1d(logging.items, lists[shown])  # the model's items are numbered in this order
        users = _users(source, log, query, items)
        if not isinstance(users, kind):
            raise ValueError(
                f"model is fitted as a {type(users).__name__}; the estimator {estimator!r} takes a {kind.__name__}"
            )
        if users.n_positions != log.n_positions:
            raise ValueError(f"the click model has {users.n_positions} positions; the log has {log.n_positions}")
        index, reached = np.where(shown, np.searchsorted(items, lists), -1), shown.mean(axis=0)
        if counted and isinstance(users, UserBrowsingModel):
            examined = users.examination[np.arange(log.n_positions), _last_click_above(clicks)] * shown
            weighed = _sums(index, examined, len(items))
            clicked = _sums(index, clicks, len(items))
            attraction = np.divide(clicked, weighed, out=np.zeros(len(items)), where=weighed > 0).clip(max=1.0)
            users, logged = UserBrowsingModel(attraction, users.examination), weighed / len(sessions)
        else:
            examined = _examinations(users, index)
            logged = _examinations_of_items(users, logging, items, reached)
        targeted = _examinations_of_items(users, target, items, reached, reward, earned.shape[1])
        infinite = np.flatnonzero(targeted > LARGEST * logged)
        if len(infinite):
            what = INFINITE if logged[infinite[0]] <= 0 else f"a weight above {LARGEST:g}, so rarely it is examined in the log"
            raise ValueError(f"item {log.item_labels[items[infinite[0]]]!r}{_of(log, query)}: {what}")
        ratio = np.divide(targeted, logged, out=np.zeros(len(items)), where=logged > 0)
        weights = ratio[index]
        weighted = (weights * examined).sum(axis=1, keepdims=True)
        return (weights * clicks).sum(axis=1, keepdims=True), weighted / (targeted.sum() or 1.0)

    return weigh


def _users(source: ClickModel | Estimator, log: ClickLog, query: str, items: Integers, unseen: bool = False) -> ClickModel:
    """The click model of a query whose item i is ``items[i]``; ``unseen`` as for `Estimator.click_model`."""
    if isinstance(source, Estimator):
        labels = [log.item_labels[item] for item in items.tolist()]
        try:
            return source.click_model(query, labels, unseen=unseen)
        except KeyError as error:
            raise ValueError(f"the click model was not fitted to the query and item {error}") from None
    if items[-1] >= source.n_items:
        raise ValueError(f"the click model has {source.n_items} items; log or policy show item {items[-1]} (counted from 0)")
    return source.with_items(**{name: getattr(source.parameters, name)[items] for name in source.item_parameters()})


def _examinations(users: ClickModel, lists: Integers) -> Floats:
    """``(N, K)`` probabilities that each position of each list is examined; 0 below its end."""
    distinct, index = np.unique(lists, axis=0, return_inverse=True)
    shown = distinct >= 0
    if not shown.all():  # what a list would show below its end changes nothing above
        for ranking in distinct:
            ended = ranking < 0
            ranking[ended] = np.setdiff1d(np.arange(users.n_items), ranking)[: ended.sum()]
    return (np.array([users.examination_probabilities(ranking) for ranking in distinct]) * shown)[index]


def _examinations_of_items(
    users: ClickModel, policy: Policy, items: Integers, reached: Floats, reward: str = "clicks", cutoff: int | None = None
) -> Floats:
    """X: the expected number of examinations of each item per list under a policy, ``(len(items),)``.

    Each position counts by the share ``reached`` of the lists that have it. Those below the cutoff do not count, and for
    satisfaction each counts as much as a click there would satisfy.
    """
    weights = users.position_weights()
    if weights is not None:  # only here is it enough to know how often an item is at each position
        result = np.zeros(len(items))
        shown = policy.item_positions[:, :cutoff] @ (weights * reached)[:cutoff]
        result[np.searchsorted(items, policy.items)] = shown
        return result
    lists, probabilities = policy.support()
    index = np.where(lists >= 0, np.searchsorted(items, lists), -1)
    examined = given_length(lists, probabilities) * _examinations(users, index) * reached
    if reward == "satisfaction":
        examined *= users.click_satisfies(index)
    return _sums(index[:, :cutoff], examined[:, :cutoff], len(items))


def _sums(index: Integers, weights: NDArray[Any], size: int) -> Floats:
    """The sum of the weights that fall on each index; on -1 fall none."""
    return np.bincount(index.ravel() + 1, weights.ravel(), size + 1)[1:].astype(np.float64, copy=False)


def _last_click_above(clicks: NDArray[np.int8]) -> Integers:
    """The position, from 1, of the last click above each position; 0 where there is none."""
    clicked = np.where(clicks == 1, np.arange(1, clicks.shape[1] + 1), 0)
    return np.pad(np.maximum.accumulate(clicked, axis=1)[:, :-1], ((0, 0), (1, 0)))


def _display_weights(
    log: ItemPositionLog, target: Policies, estimator: str, logging: Policies | None, model: ClickModel | Estimator | None
) -> Contributions:
    """`contributions` of a log of single displays."""
    if not estimator.startswith("item-position"):
        raise ValueError(
            f"the log holds single items, not lists: the estimators 'item-position' and 'item-position-dr' apply, "
            f"not {estimator!r}"
        )
    if isinstance(target, Mapping) or isinstance(logging, Mapping):
        raise ValueError("the log holds no queries: give one policy, not one for each query")
    if log.n_positions > target.n_positions:
        raise ValueError(f"the target policy fills {target.n_positions} positions; the log has {log.n_positions}")
    recorded = log.propensities
    if logging is not None:
        if log.n_positions > logging.n_positions:
            raise ValueError(f"the logging policy fills {logging.n_positions} positions; the log has {log.n_positions}")
        positions = np.arange(min(target.n_positions, logging.n_positions))
        _check_item_positions(target, logging, positions, lambda item: f"item {item}")
        recorded = logging.item_position_probabilities(log.items, log.positions)
    shown = target.item_position_probabilities(log.items, log.positions)
    weights = _ratio(shown[:, None], recorded[:, None], np.arange(len(log)))
    if estimator == "item-position":
        return weights * log.clicks[:, None], weights
    direct, predicted = np.empty((2, len(log)))
    for half, rates in _display_rates(log, 1 + max(log.n_items - 1, target.items[-1]), model):
        earned = (target.item_positions[:, : log.n_positions] * rates[target.items]).sum(axis=0)
        direct[half], predicted[half] = earned[log.positions[half]], rates[log.items[half], log.positions[half]]
    values = np.column_stack([direct, weights[:, 0] * (log.clicks - predicted)])
    return values, np.column_stack([np.ones(len(log)), weights])


def _display_rates(
    log: ItemPositionLog, n_items: int, model: ClickModel | Estimator | None
) -> list[tuple[NDArray[np.bool_], Floats]]:
    """Some displays of a log, as masks, and the ``(n_items, K)`` predicted click rates for them."""
    if model is not None:
        if not isinstance(model, PositionBasedModel):
            raise ValueError(f"model is a {type(model).__name__}; the estimator 'item-position-dr' takes a PositionBasedModel")
        if model.n_items < n_items or model.n_positions < log.n_positions:
            raise ValueError(
                f"the click model has {model.n_items} items and {model.n_positions} positions; "
                f"log and policy have {n_items} and {log.n_positions}"
            )
        return [(np.ones(len(log), np.bool_), np.outer(model.attraction, model.examination[: log.n_positions]))]
    result = []
    for half in _halves(len(log)):
        other = log[~half]
        clicks, shown = (np.bincount(other.positions, each, log.n_positions) for each in (other.clicks, None))
        by_position = np.divide(clicks, shown, out=np.zeros(log.n_positions), where=shown > 0)
        clicked = np.bincount(other.items, other.clicks, n_items)
        expected = np.bincount(other.items, by_position[other.positions], n_items)
        result.append((half, np.outer((1.0 + clicked) / (1.0 + expected), by_position).clip(max=1.0)))
    return result


# ----------------------------------------------------------------------------------------------------- infinite weights


def _ratio(target: Floats, logging: Floats, sessions: Integers) -> Floats:
    """``target / logging``, 0 where the target never shows what was logged."""
    infinite = np.argwhere(~(target <= LARGEST * logging))
    if len(infinite):
        row, column = infinite[0].tolist()
        position = f", position {column + 1}" if target.shape[1] > 1 else ""
        size = f"a weight above {LARGEST:g}" if logging[row, column] > 0 else "an infinite weight"
        raise ValueError(
            f"session {sessions[row]} (counted from 0){position}: the logging policy shows what was logged with "
            f"probability {logging[row, column]:g}, the target policy with {target[row, column]:.3g}: {size}"
        )
    return np.divide(target, logging, out=np.zeros(target.shape), where=target > 0)


def _recorded(name: str, propensities: Floats | None) -> Floats:
    if propensities is None:
        raise ValueError(f"the log has no {name}; give the policy that made it (logging), or use a click-model estimator")
    return propensities


def _check_item_positions(target: Policy, logging: Policy, positions: Integers, name: Callable[[int], str]) -> None:
    """Refuse a target that puts items where the logging policy never does: no log would show what they earn there."""
    logged = logging.item_position_probabilities(target.items[:, None], positions)
    infinite = np.argwhere((target.item_positions[:, positions] > 0) & (logged <= 0))
    if len(infinite):
        row, k = infinite[0].tolist()
        raise ValueError(f"{name(target.items[row])} at position {k + 1}: {INFINITE}")


def _check_items(log: ClickLog, query: str, target: Policy, logging: Policy) -> None:
    """Refuse a target that shows items which the logging policy never does."""
    missing = np.setdiff1d(target.items, logging.items)
    if len(missing):
        raise ValueError(f"item {log.item_labels[missing[0]]!r}{_of(log, query)}: {INFINITE}")


def _check_lists(log: ClickLog, query: str, target: Policy, logging: Policy, cutoff: int) -> None:
    """Refuse a target that shows lists which the logging policy never does: no log would show what they earn.

    Of the lists only the first ``cutoff`` positions matter.
    """
    if isinstance(logging, PlackettLucePolicy):
        return _check_items(log, query, target, logging)  # for it shows every list of its items
    lists, _ = target.support()
    infinite = np.flatnonzero(logging.prefix_probabilities(lists)[:, cutoff - 1] <= 0)
    if len(infinite):
        labels = [log.item_labels[item] for item in lists[infinite[0], :cutoff].tolist()]
        raise ValueError(f"list {', '.join(labels)}{_of(log, query)}: {INFINITE}")


def _of(log: ClickLog, query: str) -> str:
    return f" of query {query!r}" if len(log.query_labels) > 1 else ""


# ------------------------------------------------------------------------------------------------------------ bootstrap


def _bootstrap(values: Floats, weights: Floats, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """``n`` plain and self-normalised estimates from sessions drawn with replacement.

    Sessions that contribute the same are drawn together: how often each kind comes up in N draws is multinomial.
    """
    columns = values.shape[1]
    kinds, counts = np.unique(np.hstack([values, weights]), axis=0, return_counts=True)
    plain, normalised = np.empty((2, n))
    block = 1 + 2**22 // len(kinds)  # bounds the memory; the numbers drawn do not depend on it
    for start in range(0, n, block):
        part = slice(start, min(start + block, n))
        sums = rng.multinomial(len(values), counts / len(values), part.stop - start) @ kinds
        plain[part] = sums[:, :columns].sum(axis=1) / len(values)
        with np.errstate(invalid="ignore"):
            normalised[part] = (sums[:, :columns] / sums[:, columns:]).sum(axis=1)
    return plain, normalised


def _resampled_means(values: Floats, n: int, rng: np.random.Generator) -> Floats:
    """``n`` means over sessions drawn with replacement, of what each session adds."""
    per_session = values.reshape(len(values), -1).sum(axis=1, keepdims=True)
    return _bootstrap(per_session, np.ones(per_session.shape), n, rng)[0]


def _percentiles(estimates: Floats, level: float) -> tuple[float, float]:
    """The middle part of the estimates; a resampling without positive weights has no self-normalised one (NaN)."""
    known = estimates[~np.isnan(estimates)]
    if not len(known):
        return np.nan, np.nan
    low, high = np.percentile(known, [50.0 * (1.0 - level), 50.0 * (1.0 + level)]).tolist()
    return low, high


def _in_units(values: Floats) -> tuple[Floats, Floats]:
    """The numbers of each column in units of a power of two near its largest, so that squares stay in range; and these units.

    To divide by a power of two rounds nothing.
    """
    units = np.ldexp(1.0, np.frexp(np.abs(values).max(axis=0))[1])
    return values / units, units
