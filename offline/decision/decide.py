"""The way from a click log to a decision.

1. Click models are fitted to a part of the sessions and scored on those of the query that were held out; the best of them
   becomes the users.
2. Agents that learn to rank meet these users. The one that loses least has a list to propose.
3. The held-out sessions of the query, which neither models nor agents have seen, say what this list would have earned, and the
   one in production. Where the log does not say with which probability it showed what, that is counted in it.
4. Lists that the log shows often are taken out, estimated from the other sessions, and compared with what they did earn. The
   estimators that come near are believed; where there are no such lists, those that assume no click model.

The verdict follows from the differences between the two lists by the estimators that are believed:

| verdict | each of them says | advice |
|---|---|---|
| ``better`` | a gain whose interval lies above 0, and which is larger than its own error in step 4 | the list |
| ``likely better`` | a gain, of which one interval at least lies above 0 | the list, as an experiment |
| ``not better`` | anything else | what is in production |
| ``unknown`` | nothing: there are none | nothing |
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import gymnasium as gym
import numpy as np
import polars
from numpy.typing import NDArray

from ...agents import Agent
from ...core.checks import check_count, check_horizon, check_labels, check_seed, unknown
from ...core.files import make_folder
from ...envs import REWARDS, ClickModel
from ...envs.instances import Instance
from ...runner.callback import Callback
from ...runner.make import make_agent, make_env
from ...runner.run import run
from ...runner.sweep import sweep
from ..comparison import read_sessions
from ..estimation.cascading import CMEstimator
from ..estimation.estimator import MODEL_ESTIMATORS, Estimator
from ..estimation.settings import CONVERGED, QUICK
from ..doubly_robust import DOUBLY_ROBUST
from ..evaluation import CAN_ESTIMATE, LEAST_SESSIONS, Evaluation, evaluate, logged_reward
from ..fitting import hold_out, query_instance
from ..log import ClickLog
from ..model_weights import MODEL_BASED
from ..policies import FixedPolicy, empirical_policies
from ..tables import MAX_MEMORY
from .words import advice, objections

__all__ = ["AGENTS", "Candidate", "Check", "Decision", "Score", "decide"]

AGENTS = ("BatchRank", "TopRank", "BubbleRank", "CascadeKLUCB", "EpsilonGreedy")
"""The agents that are compared unless others are asked for."""

ASKED = ("pbm", "ubm", "dcm", "dbn", "ips", "cascade", "item-position", "dr", "cascade-dr", "item-position-dr")
"""The estimators that judge a list, as far as they can tell the reward."""
CHECKED = ("pbm", "ubm", "dcm", "dbn", "cascade", "item-position")
"""Those that are tried on logged lists: `ips` knows nothing of a list that was taken out."""

HELD_OUT = 0.3
MOST_LISTS = 10
LEAST_LISTS = 3
"""With fewer logged lists to try the estimators on, none of them is told from the others."""
LEAST_SHOWN = 30
"""Sessions of a list that is tried: of fewer nobody knows what it earned."""
NEAR = 1.5
"""Believed are the estimators whose mean error is at most so many times the least."""

Verdict = Literal["better", "likely better", "not better", "unknown"]


@dataclass(frozen=True)
class Score:
    """How well a click model predicts the held-out sessions of the query.

    Attributes:
        model: its name, with ``by query`` where its examination belongs to the query.
        log_likelihood: per session.
        perplexity_by_rank: of the clicks at each position; 1 is perfect.
    """

    model: str
    log_likelihood: float
    perplexity_by_rank: tuple[float, ...]


@dataclass(frozen=True)
class Candidate:
    """A list, and what it would earn per session.

    Attributes:
        name: what it is.
        labels: of its items, from the top, as far as positions count.
        predicted: by the users of the simulation.
        truth: by the users of a simulated log; None for a real one.
        estimates: from the held-out sessions, by estimator; differences are to the list in production.
        refused: by estimator, why there is no estimate.
    """

    name: str
    labels: tuple[str, ...]
    predicted: float
    truth: float | None
    estimates: dict[str, Evaluation]
    refused: dict[str, str]


@dataclass(frozen=True)
class Check:
    """An estimator, tried on lists that were logged.

    Attributes:
        estimator: its name.
        estimated: of each list of `Decision.earned`, from the sessions that showed another one; NaN where it is refused.
        error: the mean distance to what the lists earned.
        correlation: with what they earned; NaN for fewer than three lists.
        n_lists: how many could be estimated.
    """

    estimator: str
    estimated: tuple[float, ...]
    error: float
    correlation: float
    n_lists: int


@dataclass(frozen=True)
class Decision:
    """What to show for a query, and how that was found.

    Attributes:
        log: the name of the log's file, or what stands for it.
        query, reward, cutoff, horizon, runs, seed: as asked for.
        n_sessions, n_queries: of the log.
        n_of_query, n_held_out: sessions of the query, and those of them that were held out.
        scores: of the click models, best first; the first became the users.
        instance: the users, as a ranking problem.
        regret: of each agent at the end, mean over runs, least first.
        curves: columns ``agent``, ``step``, ``regret``, mean over runs.
        candidates: the list in production, the proposed one, and others to compare with: the best under the model, also of
            the logged lists, if that is not in production.
        logged: what the held-out sessions of the query earned per session; None for satisfaction.
        earned: what the logged lists earned on which the estimators were tried, and
        noise: the standard errors of that.
        checks: the estimators that were tried; empty where too few lists were logged often.
        believed: the estimators that the verdict rests on.
        verdict: see the module's docstring.
        recommended: labels of the list to show; None if none can be recommended.
        headline, summary, against: the decision in words, what it rests on, and what speaks against it.
    """

    log: str
    query: str
    reward: str
    cutoff: int | None
    horizon: int
    runs: int
    seed: int
    n_sessions: int
    n_queries: int
    n_of_query: int
    n_held_out: int
    scores: tuple[Score, ...]
    instance: Instance
    regret: dict[str, float]
    curves: polars.DataFrame
    candidates: tuple[Candidate, ...]
    logged: float | None
    earned: tuple[float, ...]
    noise: tuple[float, ...]
    checks: tuple[Check, ...]
    believed: tuple[str, ...]
    verdict: Verdict
    recommended: tuple[str, ...] | None
    headline: str = ""
    summary: tuple[str, ...] = ()
    against: dict[str, str] = field(default_factory=dict)

    @property
    def production(self) -> Candidate:
        """The list that the log shows most, as far as its items are among those of the instance."""
        return self.candidates[0]

    @property
    def proposal(self) -> Candidate:
        """The list of the agent that lost least."""
        return self.candidates[1]

    @property
    def gains(self) -> dict[str, Evaluation]:
        """The estimates of the proposal by the estimators that are believed."""
        return {name: self.proposal.estimates[name] for name in self.believed}


def decide(
    log: str | os.PathLike[str] | ClickLog,
    query: str | None = None,
    *,
    agents: Sequence[str] = AGENTS,
    horizon: int = 100_000,
    runs: int = 5,
    reward: str = "clicks",
    cutoff: int | None = None,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    log_format: str = "auto",
    columns: Mapping[str, str] | None = None,
    duplicates: str = "refuse",
    max_memory: int | str = MAX_MEMORY,
    truth: ClickModel | None = None,
    callback: Callback | None = None,
    on_step: Callable[[str], object] = lambda text: None,
) -> Decision:
    """Decide from a click log which list to show for a query.

    Args:
        log: a log, or its file.
        query: its label; None takes the most frequent one.
        agents: names or specs of the agents to compare.
        horizon, runs: sessions per run of an agent, and runs per agent.
        reward, cutoff: what a list earns, as in `ClickModel.expected_reward`.
        seed: of the held-out sessions, the agents and the bootstrap.
        out: folder of ``instance.json`` and the agents' results; made if need be. None leaves no files. The page is written by
            `write_decision`.
        log_format, columns, duplicates, max_memory: of a file, as for `read_log`.
        truth: the users of a simulated log, over its item indices.
        callback: is told of the agents' progress.
        on_step: is told what was done, in a line.

    Returns:
        The decision with all figures that it rests on.

    Raises:
        ValueError, TypeError, OSError: on wrong input, before any model is fitted.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> env = gym.make("PBMRank-v0", attraction=[0.1, 0.3, 0.6], examination=[0.9, 0.5])
        >>> log = clickgym.record(clickgym.make_agent("Random", env, seed=0), env, 3000, seed=0)
        >>> decision = decide(log, agents=["TopRank"], horizon=1000, runs=1)
        >>> decision.verdict, decision.recommended
        ('better', ('2', '1'))
    """
    agents = check_labels("agents", agents)
    if not agents:
        raise ValueError("agents is empty; expected at least one")
    horizon, runs, seed = check_horizon(horizon), check_count("runs", runs), check_seed(seed)
    if not isinstance(reward, str) or reward not in REWARDS:
        raise ValueError(unknown("reward", reward, REWARDS))
    name = "a log in memory" if isinstance(log, ClickLog) else Path(log).name
    logged = read_sessions(log, log_format, columns=columns, duplicates=duplicates, max_memory=max_memory)
    if not isinstance(logged, ClickLog):
        raise ValueError("the log holds single items, not lists; expected one that fit reads")
    if not len(logged):
        raise ValueError("the log has no sessions")
    if cutoff is not None and check_count("cutoff", cutoff) > logged.n_positions:
        raise ValueError(f"cutoff is {cutoff}, but the log has {logged.n_positions} positions")
    probe = gym.make("PBMRank-v0", attraction=[0.5] * logged.n_positions, examination=[1.0] * logged.n_positions)
    for agent in agents:
        if not isinstance(make_agent(agent, probe, horizon=horizon), Agent):
            raise ValueError(f"agents has {agent}, which plays by itself; expected agents that rank")
    query = logged.query_labels[int(np.bincount(logged.queries).argmax())] if query is None else query
    train, test = hold_out(logged, HELD_OUT, seed)
    n_items = max(10, logged.n_positions)
    query_instance(train, query, {"CM": CMEstimator().fit(train)}, n_items)  # what is wrong with the query is said before
    own_train, own_test, own = (part[part.queries == part.query_labels.index(query)] for part in (train, test, logged))
    if not len(own_test):
        raise ValueError(f"the query {query!r} has {len(own)} sessions, of which none was held out; expected more")
    for note in logged.notes:
        on_step(note)
    on_step(f"{len(logged):,} sessions in {name}, {len(own):,} of query {query}")

    estimators = _fit(train, own_train, reward)
    scores = sorted((_score(model, fitted, own_test) for model, fitted in estimators.items()), key=lambda s: -s.log_likelihood)
    users = scores[0].model
    instance = query_instance(train, query, {users: estimators[users]}, n_items, origin=f"estimated by clickgym from {name}")
    (model,) = instance.models.values()
    assert isinstance(model, ClickModel)
    on_step(f"{users} predicts the {len(own_test):,} held-out sessions of the query best: it becomes the users")

    where: Any = instance
    if out is not None:
        make_folder(Path(out))
        where = str(Path(out) / "instance.json")
        instance.save(where)
    options = [f"reward={reward}"] * (reward != "clicks") + [f"cutoff={cutoff}"] * (cutoff is not None)
    env = ":".join([f"{model.short}Rank-v0", ",".join(options)]).rstrip(":")
    table = sweep(
        [env], [*dict.fromkeys(("Fixed", *agents))], horizon, runs, seed=seed, instances=[where],
        out=None if out is None else Path(out) / "agents", callback=callback,
    )  # fmt: skip
    curves = table.group_by("agent", "step").agg(polars.col("regret").mean()).sort("step", "agent")
    regret = dict(curves.filter(step=horizon).sort("regret", "agent").select("agent", "regret").rows())
    winner = next(agent for agent in regret if agent in agents)
    on_step(f"{winner} loses least to them in {horizon:,} sessions")

    lists = _lists(instance, own_train, winner, env, where, horizon, seed, reward, cutoff)
    candidates = _candidates(lists, instance, own_test, estimators, truth, reward, cutoff, seed)
    on_step(f"{len(candidates)} lists estimated from the held-out sessions")
    earned, noise, checks = _check(own, reward, cutoff)
    on_step(f"{len(checks)} estimators tried on {len(earned)} logged lists")
    believed = _believed(candidates[1], checks)
    verdict = _verdict(candidates[0], candidates[1], believed, checks)
    decision = Decision(
        log=name,
        query=query,
        reward=reward,
        cutoff=cutoff,
        horizon=horizon,
        runs=runs,
        seed=seed,
        n_sessions=len(logged),
        n_queries=len(np.unique(logged.queries)),
        n_of_query=len(own),
        n_held_out=len(own_test),
        scores=tuple(scores),
        instance=instance,
        regret=regret,
        curves=curves,
        candidates=candidates,
        logged=logged_reward(own_test, reward, cutoff),
        earned=earned,
        noise=noise,
        checks=checks,
        believed=believed,
        verdict=verdict,
        recommended={"unknown": None, "not better": candidates[0].labels}.get(verdict, candidates[1].labels),
    )
    headline, summary = advice(decision)
    return replace(decision, headline=headline, summary=summary, against=objections(decision, own))


# ------------------------------------------------------------------------------------------------- models, agents, lists


def _fit(train: ClickLog, own: ClickLog, reward: str) -> dict[str, Estimator]:
    """Every click model that knows the reward, fitted; ``by query`` to the sessions of the query alone."""
    models = {name: train for name in SHARED} | {f"{name} by query": own for name in ALONE}
    return {
        name: CONVERGED.fit(MODEL_ESTIMATORS[name.partition(" ")[0]], log)
        for name, log in models.items()
        if reward in MODEL_ESTIMATORS[name.partition(" ")[0]].model_class.rewards
    }


def _score(name: str, estimator: Estimator, log: ClickLog) -> Score:
    return Score(name, estimator.score(log), tuple(estimator.perplexity_by_rank(log).tolist()))


def _lists(
    instance: Instance,
    log: ClickLog,
    winner: str,
    env: str,
    where: Any,
    horizon: int,
    seed: int,
    reward: str,
    cutoff: int | None,
) -> dict[str, NDArray[np.int64]]:
    """The lists to be judged, of the instance's items: that in production, that of the best agent, and what to compare with."""
    (model,) = instance.models.values()
    assert isinstance(model, ClickModel)
    assert instance.initial_ranking is not None
    arena = make_env(env, where)
    agent = make_agent(winner, arena, horizon=horizon, seed=seed)
    assert isinstance(agent, Agent)
    run(agent, arena, horizon, seed=seed)
    observation, _ = arena.reset(seed=seed)
    lists = {
        "in production": instance.initial_ranking[: instance.n_positions],
        f"learned by {winner}": np.array(agent.rank(observation)),
        "best under the model": model.optimal_ranking(reward, cutoff),
    }
    number = {log.item_labels.index(label): item for item, label in enumerate(instance.estimation["items"])}
    shown, counts = np.unique(log.items, axis=0, return_counts=True)
    logged = [
        np.array([number[item] for item in ranking])
        for ranking in shown[counts >= LEAST_SHOWN].tolist()
        if all(item in number for item in ranking)
    ]
    if logged:
        best = max(logged, key=lambda ranking: model.expected_reward(ranking, reward, cutoff))
        if (best != lists["in production"]).any():
            lists["best of the logged lists"] = best
    return lists


# ------------------------------------------------------------------------------------------------------------ estimates


def _candidates(
    lists: dict[str, NDArray[np.int64]],
    instance: Instance,
    log: ClickLog,
    estimators: dict[str, Estimator],
    truth: ClickModel | None,
    reward: str,
    cutoff: int | None,
    seed: int,
) -> tuple[Candidate, ...]:
    """What each list would have earned in the held-out sessions of the query, and how much more than that in production."""
    (model,) = instance.models.values()
    assert isinstance(model, ClickModel)
    labels = instance.estimation["items"]
    number = {label: item for item, label in enumerate(log.item_labels)}
    items = np.array([number[label] for label in labels])
    production, counted = FixedPolicy(items[lists["in production"]]), empirical_policies(log)
    recorded = {"ips": log.list_propensities, "item-position": log.propensities}
    asked = [name for name in ASKED if name in CAN_ESTIMATE[reward]]
    fitted = {name: QUICK.fit(MODEL_BASED[name], log) for name in asked if name in MODEL_BASED}
    found = []
    for called, ranking in lists.items():
        estimates, refused = {}, {}
        for name in asked:
            plain = {"dr": "ips"}.get(name, name.removesuffix("-dr"))
            # What predicts for the doubly robust estimators has not seen the held-out sessions.
            known = fitted[name] if name in fitted else estimators.get(DOUBLY_ROBUST.get(name, ""))
            try:
                estimates[name] = evaluate(
                    log, FixedPolicy(items[ranking]), name, model=known, reward=reward, cutoff=cutoff, seed=seed,
                    logging=None if name in fitted or recorded.get(plain) is not None else counted,
                    against=None if called == "in production" else production,
                )  # fmt: skip
            except ValueError as error:
                refused[name] = str(error)
        found.append(
            Candidate(
                called,
                tuple(labels[item] for item in ranking[:cutoff].tolist()),
                model.expected_reward(ranking, reward, cutoff),
                None if truth is None else truth.expected_reward(items[ranking], reward, cutoff),
                estimates,
                refused,
            )
        )
    return tuple(found)


def _check(log: ClickLog, reward: str, cutoff: int | None) -> tuple[tuple[float, ...], tuple[float, ...], tuple[Check, ...]]:
    """What the most frequent lists of the query earned, the standard errors, and the estimators tried on them."""
    lists, index, counts = np.unique(log.items, axis=0, return_inverse=True, return_counts=True)
    frequent = [
        list_
        for list_ in np.argsort(-counts, kind="stable")[:MOST_LISTS]
        if counts[list_] >= LEAST_SHOWN and (lists[list_] >= 0).all()
    ]
    asked = [name for name in CHECKED if name in CAN_ESTIMATE[reward]]
    if len(frequent) < LEAST_LISTS or reward == "satisfaction":  # of which no log tells
        return (), (), ()
    clicks = log.clicks[:, :cutoff].sum(axis=1)
    per_session = np.minimum(clicks, 1) if reward == "any_click" else clicks
    earned = np.array([per_session[index == list_].mean() for list_ in frequent])
    noise = np.array([per_session[index == list_].std() / np.sqrt(counts[list_]) for list_ in frequent])
    checks = []
    for name in asked:
        values = np.array([_estimate_logged(log[index != i], lists[i], name, reward, cutoff) for i in frequent])
        known = np.isfinite(values)
        if known.sum() >= LEAST_LISTS:
            varies = known.sum() > 2 and np.ptp(values[known]) > 0 and np.ptp(earned[known]) > 0
            correlation = float(np.corrcoef(values[known], earned[known])[0, 1]) if varies else np.nan
            error = float(np.abs(values - earned)[known].mean())
            checks.append(Check(name, tuple(values.tolist()), error, correlation, int(known.sum())))
    return (tuple(earned.tolist()), tuple(noise.tolist()), tuple(checks)) if checks else ((), (), ())


def _estimate_logged(log: ClickLog, ranking: NDArray[np.int32], name: str, reward: str, cutoff: int | None) -> float:
    """The value of a list by sessions that showed another; NaN where it is refused."""
    logging = None if name in MODEL_BASED else empirical_policies(log)
    try:
        return evaluate(log, FixedPolicy(ranking), name, logging=logging, reward=reward, cutoff=cutoff, bootstrap=1).value
    except ValueError:
        return np.nan


# -------------------------------------------------------------------------------------------------------------- verdict


def _believed(proposal: Candidate, checks: Sequence[Check]) -> tuple[str, ...]:
    """Of the estimators that can judge the proposal those that came near to what logged lists earned, and `dr`, which assumes
    nothing of users. Where none could be tried, a click model is not believed: its parameters need not be told by the log."""
    able = [name for name, estimate in proposal.estimates.items() if estimate.effective_sample_size >= LEAST_SESSIONS]
    errors = {check.estimator: check.error for check in checks if check.estimator in able}
    if not checks:
        return tuple(name for name in able if name not in MODEL_BASED)
    near = [name for name, error in errors.items() if error <= NEAR * min(errors.values())]
    return tuple(name for name in able if name in near or name == "dr")


def _verdict(production: Candidate, proposal: Candidate, believed: Sequence[str], checks: Sequence[Check]) -> Verdict:
    if not believed:
        return "unknown"
    errors = {check.estimator: check.error for check in checks}
    gains = [proposal.estimates[name] for name in believed]
    if proposal.labels == production.labels or not all(gain.difference > 0 for gain in gains):  # type: ignore[operator]
        return "not better"
    sure = [gain.difference_interval[0] > 0 for gain in gains]  # type: ignore[index]
    beyond = [gain.difference > errors.get(gain.estimator, 0.0) for gain in gains]  # type: ignore[operator]
    if checks and all(sure) and all(beyond):
        return "better"
    return "likely better" if any(sure) else "not better"
