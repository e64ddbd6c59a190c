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
from typing import Any, Literal, NamedTuple

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
from ..doubly_robust import DOUBLY_ROBUST
from ..estimation.cascading import CMEstimator
from ..estimation.estimator import MODEL_ESTIMATORS, Estimator
from ..estimation.settings import CONVERGED, QUICK
from ..evaluation import CAN_ESTIMATE, LEAST_SESSIONS, Evaluation, check_cutoff, evaluate, logged_reward
from ..fitting import hold_out, query_instance
from ..log import ClickLog, ItemPositionLog
from ..model_weights import MODEL_BASED
from ..policies import FixedPolicy, empirical_policies
from ..tables import MAX_MEMORY
from .words import advice, objections

__all__ = ["AGENTS", "Candidate", "Check", "Decision", "Score", "decide"]

AGENTS = ("BatchRank", "TopRank", "BubbleRank", "CascadeKLUCB", "EpsilonGreedy")
"""The agents that are compared unless others are asked for."""

JUDGES = ("pbm", "ubm", "dcm", "dbn", "ips", "cascade", "item-position", "dr", "cascade-dr", "item-position-dr")
"""The estimators that judge a list, as far as they can tell the reward."""
CHECKED = ("pbm", "ubm", "dcm", "dbn", "cascade", "item-position")
"""Those that are tried on logged lists: `ips` knows nothing of a list that was taken out."""

SHARED = ("CM", "DCM", "SDBN", "PBM", "UBM", "DBN")
"""The click models that are fitted to all sessions."""
ALONE = ("PBM", "UBM")
"""Those that are fitted to the sessions of the query, too."""

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
    settings = _Settings(horizon, runs, seed, reward, cutoff)
    name = "a log in memory" if isinstance(log, ClickLog) else Path(log).name
    logged = read_sessions(log, log_format, columns=columns, duplicates=duplicates, max_memory=max_memory)
    logged = _check_log(logged, cutoff)
    _check_agents(agents, logged.n_positions, horizon)
    sessions = _parts(logged, query, seed)
    for note in logged.notes:
        on_step(note)
    on_step(f"{len(logged):,} sessions in {name}, {len(sessions.own):,} of query {sessions.query}")

    estimators = _fit(sessions, reward)
    scores = sorted((_score(*item, sessions.own_test) for item in estimators.items()), key=lambda s: -s.log_likelihood)
    users = {scores[0].model: estimators[scores[0].model]}
    instance = query_instance(
        sessions.train, sessions.query, users, sessions.n_items, origin=f"estimated by clickgym from {name}"
    )
    on_step(
        f"{scores[0].model} predicts the {len(sessions.own_test):,} held-out sessions of the query best: it becomes the users"
    )
    arena = _Arena(instance, settings, None if out is None else Path(out))
    curves = arena.curves(agents, callback)
    regret = dict(curves.filter(step=horizon).sort("regret", "agent").select("agent", "regret").rows())
    winner = next(agent for agent in regret if agent in agents)
    on_step(f"{winner} loses least to them in {horizon:,} sessions")

    lists = arena.lists(winner, sessions.own_train)
    candidates = _candidates(lists, instance, sessions.own_test, estimators, truth, settings)
    on_step(f"{len(candidates)} lists estimated from the held-out sessions")
    earned, noise, checks = _check(sessions.own, reward, cutoff)
    on_step(f"{len(checks)} estimators tried on {len(earned)} logged lists")
    believed = _believed(candidates[1], checks)
    verdict = _verdict(candidates[0], candidates[1], believed, checks)
    decision = Decision(
        log=name,
        query=sessions.query,
        n_sessions=len(logged),
        n_queries=len(np.unique(logged.queries)),
        n_of_query=len(sessions.own),
        n_held_out=len(sessions.own_test),
        scores=tuple(scores),
        instance=instance,
        regret=regret,
        curves=curves,
        candidates=candidates,
        logged=logged_reward(sessions.own_test, reward, cutoff),
        earned=earned,
        noise=noise,
        checks=checks,
        believed=believed,
        verdict=verdict,
        recommended={"unknown": None, "not better": candidates[0].labels}.get(verdict, candidates[1].labels),
        **settings._asdict(),
    )
    headline, summary = advice(decision)
    return replace(decision, headline=headline, summary=summary, against=objections(decision, sessions.own))


class _Settings(NamedTuple):
    """The arguments of `decide` that a `Decision` repeats."""

    horizon: int
    runs: int
    seed: int
    reward: str
    cutoff: int | None


# ----------------------------------------------------------------------------------------------------------- the log


class _Sessions(NamedTuple):
    """The sessions of a log, and those of the query.

    Attributes:
        query: its label.
        train: sessions of all queries to learn from.
        own_train, own_test, own: sessions of the query: to learn from, held out, all.
        n_items: the most items of the instance.
    """

    query: str
    train: ClickLog
    own_train: ClickLog
    own_test: ClickLog
    own: ClickLog
    n_items: int


def _check_log(log: ClickLog | ItemPositionLog, cutoff: int | None) -> ClickLog:
    if not isinstance(log, ClickLog):
        raise ValueError("the log holds single items, not lists; expected one that fit reads")
    if not len(log):
        raise ValueError("the log has no sessions")
    check_cutoff(cutoff, log)
    return log


def _check_agents(agents: Sequence[str], n_positions: int, horizon: int) -> None:
    """Refuse agents that cannot be built, or that do not rank."""
    probe = gym.make("PBMRank-v0", attraction=[0.5] * n_positions, examination=[1.0] * n_positions)
    for agent in agents:
        if not isinstance(make_agent(agent, probe, horizon=horizon), Agent):
            raise ValueError(f"agents has {agent}, which plays by itself; expected agents that rank")


def _parts(log: ClickLog, query: str | None, seed: int) -> _Sessions:
    """The log without the sessions that are held out; an error says what is wrong with the query."""
    query = log.query_labels[int(np.bincount(log.queries).argmax())] if query is None else query
    train, test = hold_out(log, HELD_OUT, seed)
    n_items = max(10, log.n_positions)
    query_instance(train, query, {"CM": CMEstimator().fit(train)}, n_items)
    own_train, own_test, own = (part[part.queries == part.query_labels.index(query)] for part in (train, test, log))
    if not len(own_test):
        raise ValueError(f"the query {query!r} has {len(own)} sessions, of which none was held out; expected more")
    return _Sessions(query, train, own_train, own_test, own, n_items)


# ------------------------------------------------------------------------------------------------- models, agents, lists


def _fit(sessions: _Sessions, reward: str) -> dict[str, Estimator]:
    """Every click model that knows the reward, fitted; ``by query`` to the sessions of the query alone."""
    logs = dict.fromkeys(SHARED, sessions.train) | {f"{name} by query": sessions.own_train for name in ALONE}
    kinds = {name: MODEL_ESTIMATORS[name.removesuffix(" by query")] for name in logs}
    return {name: CONVERGED.fit(kinds[name], log) for name, log in logs.items() if reward in kinds[name].model_class.rewards}


def _score(name: str, estimator: Estimator, log: ClickLog) -> Score:
    return Score(name, estimator.score(log), tuple(estimator.perplexity_by_rank(log).tolist()))


class _Arena:
    """The fitted users as an environment, where agents learn.

    Args:
        instance: with the users' click model.
        settings: as `decide`.
        folder: of the instance's file and the results; None for none.
    """

    def __init__(self, instance: Instance, settings: _Settings, folder: Path | None) -> None:
        self.instance, self.settings = instance, settings
        self.where: Any = instance
        self.results = None if folder is None else folder / "agents"
        if folder is not None:
            make_folder(folder)
            self.where = str(folder / "instance.json")
            instance.save(self.where)
        reward, cutoff = settings.reward, settings.cutoff
        options = [f"reward={reward}"] * (reward != "clicks") + [f"cutoff={cutoff}"] * (cutoff is not None)
        self.env = ":".join([f"{_users(instance).short}Rank-v0", ",".join(options)]).rstrip(":")

    def curves(self, agents: Sequence[str], callback: Callback | None) -> polars.DataFrame:
        """Regret by agent and step, mean over runs."""
        _, runs, seed, *_ = self.settings
        agents = [*dict.fromkeys(("Fixed", *agents))]
        table = sweep(
            [self.env], agents, self.settings.horizon, runs, seed=seed, instances=[self.where], out=self.results,
            callback=callback,
        )  # fmt: skip
        return table.group_by("agent", "step").agg(polars.col("regret").mean()).sort("step", "agent")

    def lists(self, winner: str, log: ClickLog) -> dict[str, NDArray[np.int64]]:
        """The lists to be judged, of the instance's items: in production, of the best agent, and others to compare with.

        Args:
            winner: the agent.
            log: the sessions of the query to learn from.
        """
        horizon, _, seed, reward, cutoff = self.settings
        users, initial_ranking = _users(self.instance), self.instance.initial_ranking
        assert initial_ranking is not None
        env = make_env(self.env, self.where)
        agent = make_agent(winner, env, horizon=horizon, seed=seed)
        assert isinstance(agent, Agent)
        run(agent, env, horizon, seed=seed)
        observation, _ = env.reset(seed=seed)
        lists = {
            "in production": initial_ranking[: self.instance.n_positions],
            f"learned by {winner}": np.array(agent.rank(observation)),
            "best under the model": users.optimal_ranking(reward, cutoff),
        }
        logged = _logged_lists(log, self.instance.estimation["items"])
        if logged:
            best = max(logged, key=lambda ranking: users.expected_reward(ranking, reward, cutoff))
            if (best != lists["in production"]).any():
                lists["best of the logged lists"] = best
        return lists


def _users(instance: Instance) -> ClickModel:
    (model,) = instance.models.values()
    assert isinstance(model, ClickModel)
    return model


def _logged_lists(log: ClickLog, labels: Sequence[str]) -> list[NDArray[np.int64]]:
    """Lists of the items with these labels, by their numbers among them, that the log shows often."""
    number = {log.item_labels.index(label): item for item, label in enumerate(labels)}
    lists, counts = np.unique(log.items, axis=0, return_counts=True)
    frequent = lists[counts >= LEAST_SHOWN].tolist()
    return [np.array([number[item] for item in ranking]) for ranking in frequent if set(ranking) <= number.keys()]


# ------------------------------------------------------------------------------------------------------------ estimates


def _candidates(
    lists: dict[str, NDArray[np.int64]],
    instance: Instance,
    log: ClickLog,
    estimators: dict[str, Estimator],
    truth: ClickModel | None,
    settings: _Settings,
) -> tuple[Candidate, ...]:
    """What each list would have earned in the held-out sessions of the query, and how much more than that in production."""
    labels, (*_, reward, cutoff) = instance.estimation["items"], settings
    number = {label: item for item, label in enumerate(log.item_labels)}
    items = np.array([number[label] for label in labels])
    estimate = _Estimates(log, estimators, FixedPolicy(items[lists["in production"]]), settings)
    return tuple(
        Candidate(
            name,
            tuple(labels[item] for item in ranking[:cutoff].tolist()),
            _users(instance).expected_reward(ranking, reward, cutoff),
            None if truth is None else truth.expected_reward(items[ranking], reward, cutoff),
            *estimate(FixedPolicy(items[ranking]), compare=name != "in production"),
        )
        for name, ranking in lists.items()
    )


class _Estimates:
    """Estimates lists by all estimators that can tell the reward, from the held-out sessions."""

    def __init__(
        self, log: ClickLog, estimators: Mapping[str, Estimator], production: FixedPolicy, settings: _Settings
    ) -> None:
        self.log, self.estimators, self.production, self.settings = log, estimators, production, settings
        self.names = [name for name in JUDGES if name in CAN_ESTIMATE[settings.reward]]
        self.models = {name: QUICK.fit(MODEL_BASED[name], log) for name in self.names if name in MODEL_BASED}
        self.counted = empirical_policies(log)
        self.recorded = {"ips": log.list_propensities, "item-position": log.propensities}

    def __call__(self, policy: FixedPolicy, compare: bool) -> tuple[dict[str, Evaluation], dict[str, str]]:
        """The estimates, to be compared with the list in production or not; and why there is none, by estimator."""
        estimates, refused = {}, {}
        _, _, seed, reward, cutoff = self.settings
        for name in self.names:
            plain = {"dr": "ips"}.get(name, name.removesuffix("-dr"))
            # What predicts for the doubly robust estimators has not seen the held-out sessions.
            model = self.models.get(name, self.estimators.get(DOUBLY_ROBUST.get(name, "")))
            try:
                estimates[name] = evaluate(
                    self.log, policy, name, model=model, reward=reward, cutoff=cutoff, seed=seed,
                    logging=None if name in self.models or self.recorded.get(plain) is not None else self.counted,
                    against=self.production if compare else None,
                )  # fmt: skip
            except ValueError as error:
                refused[name] = str(error)
        return estimates, refused


def _check(log: ClickLog, reward: str, cutoff: int | None) -> tuple[tuple[float, ...], tuple[float, ...], tuple[Check, ...]]:
    """What the most frequent lists of the query earned, the standard errors, and the estimators tried on them."""
    lists, index, counts = np.unique(log.items, axis=0, return_inverse=True, return_counts=True)
    most_frequent = np.argsort(-counts, kind="stable")[:MOST_LISTS]
    whole = (lists[most_frequent] >= 0).all(axis=1)
    frequent = most_frequent[(counts[most_frequent] >= LEAST_SHOWN) & whole]
    if len(frequent) < LEAST_LISTS or reward == "satisfaction":  # of which no log tells
        return (), (), ()
    clicks = log.clicks[:, :cutoff].sum(axis=1)
    per_session = np.minimum(clicks, 1) if reward == "any_click" else clicks
    earned = np.array([per_session[index == i].mean() for i in frequent])
    noise = np.array([per_session[index == i].std() / np.sqrt(counts[i]) for i in frequent])
    checks = []
    for name in filter(CAN_ESTIMATE[reward].__contains__, CHECKED):
        values = np.array([_estimate_logged(log[index != i], lists[i], name, reward, cutoff) for i in frequent])
        if np.isfinite(values).sum() >= LEAST_LISTS:
            checks.append(_compared(name, values, earned))
    return (tuple(earned.tolist()), tuple(noise.tolist()), tuple(checks)) if checks else ((), (), ())


def _compared(name: str, values: NDArray[np.float64], earned: NDArray[np.float64]) -> Check:
    """An estimator's values of logged lists beside what these earned."""
    finite = np.isfinite(values)
    varies = finite.sum() > 2 and np.ptp(values[finite]) > 0 and np.ptp(earned[finite]) > 0
    correlation = float(np.corrcoef(values[finite], earned[finite])[0, 1]) if varies else np.nan
    error = float(np.abs(values - earned)[finite].mean())
    return Check(name, tuple(values.tolist()), error, correlation, int(finite.sum()))


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
    if not checks:
        return tuple(name for name in able if name not in MODEL_BASED)
    errors = _errors(checks)
    least = min(map(errors.__getitem__, errors.keys() & able), default=0.0)
    return tuple(name for name in able if name == "dr" or errors.get(name, np.inf) <= NEAR * least)


def _errors(checks: Sequence[Check]) -> dict[str, float]:
    return {check.estimator: check.error for check in checks}


def _verdict(production: Candidate, proposal: Candidate, believed: Sequence[str], checks: Sequence[Check]) -> Verdict:
    if not believed:
        return "unknown"
    gains = map(proposal.estimates.__getitem__, believed)
    differences, lows = np.array([(gain.difference, gain.difference_interval[0]) for gain in gains]).T  # type: ignore[index]
    if proposal.labels == production.labels or not (differences > 0).all():
        return "not better"
    beyond = differences > [_errors(checks).get(name, 0.0) for name in believed]
    if checks and (lows > 0).all() and beyond.all():
        return "better"
    return "likely better" if (lows > 0).any() else "not better"
