"""From a click log to a decision, in five steps.

1. Click models are fitted to a part of the sessions. They are scored on the held-out sessions of the query, and tested: does
   chance explain their errors? The best model simulates the users.
2. The verdict (`evidence.settle`): a logged list that earned more at the same times, or a list for which all models that fit
   predict a gain after a correction by their errors on logged lists. Agents have no influence on it.
3. Agents learn to rank for the simulated users: how fast do they learn such a list?
4. Off-policy estimators estimate from the held-out sessions of the query, which neither models nor agents have seen, what the
   lists would earn. If the log has no propensities, they are estimated from frequencies.
5. Each list that the log shows often is estimated from the sessions that showed other lists, and the estimate is compared with
   what the list earned: which estimators can be trusted?
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Unpack

import gymnasium as gym
import numpy as np
import polars
from numpy.typing import NDArray

from ...agents import Agent
from ...core.checks import check_callable, check_kind, check_path
from ...core.files import make_folder
from ...envs import ClickModel
from ...envs.instances import Instance
from ...runner.callback import Callback
from ...runner.make import make_agent, make_env
from ...runner.run import run
from ...runner.sweep import sweep
from ..comparison import read_sessions
from ..counts import Counts, read_counts
from ..doubly_robust import DOUBLY_ROBUST
from ..estimation.settings import QUICK
from ..evaluation import CAN_ESTIMATE, Evaluation, check_cutoff, check_valued, contributions, evaluate, logged_reward
from ..fitting import query_instance
from ..log import ClickLog
from ..model_weights import MODEL_BASED
from ..policies import FixedPolicy, empirical_policies
from ..readers import read_log
from ..reading import Reading
from ..several import Paths, log_name
from .evidence import Evidence, Ground, Inquiry, larger_step, settle
from .lists import LEAST_SHOWN, DistinctLists
from .models import Models
from .records import Candidate, Check, Decision, Play, Subject, Trial
from .settings import LEVEL, Settings
from .words import advice, objections

RECOMMENDED, FALLBACK = "MixTS", "CascadeTS"
"""The agent of the first board of the scorecard with the highest score, and the best published one that takes little time."""

AGENTS = (RECOMMENDED, FALLBACK, "CascadeKLUCB")
"""The agents that are compared unless others are asked for: these two, and the agent with which all are compared."""

JUDGES = ("pbm", "ubm", "dcm", "dbn", "ips", "cascade", "item-position", "dr", "cascade-dr", "item-position-dr")
"""The estimators that are applied to a list, if they can estimate the reward."""
CHECKED = ("pbm", "ubm", "dcm", "dbn", "cascade", "item-position")
"""The estimators that are tested on logged lists; `ips` cannot estimate a list that was left out."""

GROUNDS = {"measured": "logged", "models": "proposed by the models that fit"}
"""What a list is called, by its ground."""
MOST_LISTS = 10
LEAST_LISTS = 3
"""The fewest logged lists with which the estimators can be tested."""


def decide(
    log: Paths | ClickLog,
    query: str | None = None,
    *,
    agents: Sequence[str] = AGENTS,
    horizon: int = 100_000,
    runs: int = 5,
    reward: str = "clicks",
    cutoff: int | None = None,
    level: float = LEVEL,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    counts: str | os.PathLike[str] | Counts | None = None,
    log_format: str = "auto",
    truth: ClickModel | None = None,
    callback: Callback | None = None,
    on_step: Callable[[str], object] = lambda text: None,
    **reading: Unpack[Reading],
) -> Decision:
    """Decide from a click log which list to show for a query.

    Args:
        log: a log, or its file or files; see `read_log`.
        query: the label of the query; None takes the most frequent one.
        agents: names or specs of the agents to compare.
        horizon, runs: sessions per run of an agent, and runs per agent.
        reward, cutoff: how the reward of a list is counted, as in `ClickModel.expected_reward`. If the log has values (a file:
            ``columns={"value": "price"}``), ``clicks`` are what the clicks are worth.
        level: the highest probability, of each of the two grounds, of recommending a list that is no better; below 0.5.
        seed: of the split into held-out sessions, of the agents and of the bootstrap.
        out: the folder for ``instance.json`` and the agents' results; created if missing. None leaves no files.
            `write_decision` writes the page.
        counts: of the log, as `count_log` makes them, or their file: then only the sessions of the query are read, from tidy
            tables. Examination of PBM and UBM and continuation of the DCM come from the counts of the most frequent other
            queries, and all parameters of the other models from the query.
        log_format: of a file, as for `read_log`.
        truth: the true users of a simulated log, over its item indices.
        callback: receives the progress of the agents.
        on_step: is called with one line for each finished step.
        reading: columns, duplicates, bad_rows, repeated and max_memory, of a file, as for `read_log`.

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
    settings = Settings.check(agents, horizon, runs, seed, reward, cutoff, level)
    folder = None if out is None else check_path("out", out)
    check_kind("truth", truth, ClickModel | None, "a click model")
    check_callable("on_step", on_step)
    if counts is not None and query is None:
        raise ValueError("counts are given, and no query; expected the query to decide")
    known = counts if isinstance(counts, Counts | None) else read_counts(counts)
    name, logged = open_log(log, settings, log_format, reading, None if known is None else query)
    models = Models(logged, reward, settings.seed, known)
    sessions = models.sessions(logged.query_labels[int(np.bincount(logged.queries).argmax())] if query is None else query)
    sessions.check()
    for note in logged.notes:
        on_step(note)
    on_step(f"{models.n_sessions:,} sessions in {name}, {len(sessions.own):,} of query {sessions.query}")
    source = "" if known is None else "counts in memory" if counts is known else str(counts)
    task = Task(name, settings.level, out=folder, truth=truth, callback=callback, on_step=on_step, counts=source)
    return conclude(Inquiry(models, sessions, settings), task)


@dataclass(frozen=True)
class Task:
    """How a decision is completed once the evidence is there.

    Attributes:
        log: what the log is called.
        level, n_decided: see `Decision`.
        out, truth, callback, on_step: as for `decide`.
        n_jobs: workers that play the agents.
        counts: the file of counts that were used.
    """

    log: str
    level: float
    n_decided: int = 1
    out: Path | None = None
    truth: ClickModel | None = None
    callback: Callback | None = None
    on_step: Callable[[str], object] = lambda text: None
    n_jobs: int = -1
    counts: str = ""


def conclude(inquiry: Inquiry, task: Task) -> Decision:
    """Complete the decision from the evidence: agents, estimates of lists, and words.

    Args:
        inquiry: about the query.
        task: what is asked for.
    """
    models, sessions, settings = inquiry.models, inquiry.sessions, inquiry.settings
    evidence = replace(inquiry.evidence, level=task.level)
    result, ground = settle(evidence.grounds, evidence.enough, task.level)
    best = evidence.scores[0].model
    instance = _instance(inquiry, best, task.log)
    task.on_step(
        f"{best} predicts the {len(sessions.test):,} held-out sessions of the query best: it becomes the users; "
        f"{len(evidence.fitting)} of {len(evidence.fits)} models fit; the log says: {result}"
    )
    arena = _Arena(instance, settings, task.out)
    curves = arena.curves(task.callback, task.n_jobs)
    regret = dict(curves.filter(step=settings.horizon).sort("regret", "agent").select("agent", "regret").rows())
    winner = next(agent for agent in regret if agent in settings.agents)
    task.on_step(f"{winner} loses least to them in {settings.horizon:,} sessions")
    grounds = [each for each in (ground, larger_step(evidence.grounds, ground, task.level)) if each is not None]
    sizes, valued, truth = (len(sessions.own), len(sessions.test)), sessions.own.values is not None, task.truth
    if truth is not None and valued:
        truth = truth.with_item_values(sessions.own.values_of(sessions.query))
    subject = Subject(task.log, sessions.query, models.n_sessions, models.n_queries, *sizes, valued, task.counts)
    candidates = _candidates(arena.lists(winner, evidence, grounds), arena, inquiry, truth, subject.n_resamples)
    task.on_step(f"{len(candidates)} lists estimated from the held-out sessions")
    trial = _try_estimators(sessions.own, settings.reward, settings.cutoff)
    task.on_step(f"{len(trial.checks)} estimators tried on {len(trial.earned)} logged lists")
    logged = logged_reward(sessions.test, settings.reward, settings.cutoff)
    play = Play(instance, regret, curves)
    decision = Decision(settings, subject, evidence, task.n_decided, play, candidates, logged, trial)
    headline, summary = advice(decision)
    return replace(decision, headline=headline, summary=summary, against=objections(decision, sessions.own, models.n_repeated))


def open_log(
    log: Paths | ClickLog, settings: Settings, log_format: str, reading: Reading, query: str | None = None
) -> tuple[str, ClickLog]:
    """What to call the log, and its sessions, or those of a query; refused are one of which nothing can be decided, and agents
    that cannot rank its lists."""
    name = "a log in memory" if isinstance(log, ClickLog) else log_name(log)
    alone = query is not None and not isinstance(log, ClickLog)  # not even read are the others
    logged: Any = read_log if alone else read_sessions
    logged = logged(log, log_format, query=query, **reading)
    if not isinstance(logged, ClickLog):
        raise ValueError("the log holds single items, not lists; expected one that fit reads")
    if not len(logged):
        raise ValueError("the log has no sessions")
    check_cutoff(settings.cutoff, logged)
    check_valued(logged, settings.reward)
    probe = gym.make("PBMRank-v0", attraction=[0.5] * logged.n_positions, examination=[1.0] * logged.n_positions)
    for agent in settings.agents:
        if not isinstance(make_agent(agent, probe, horizon=settings.horizon), Agent):
            raise ValueError(f"agents has {agent}, which has its own loop; expected agents that rank one list at a time")
    return name, logged


# ------------------------------------------------------------------------------------------------------- agents and lists


def _instance(inquiry: Inquiry, model: str, name: str) -> Instance:
    """The query as a ranking problem, whose initial ranking is the list in production; items that it lacks follow."""
    sessions, evidence = inquiry.sessions, inquiry.evidence
    users, origin = {model: inquiry.estimators[model]}, f"estimated by clickgym from {name}"
    instance = query_instance(sessions.train, sessions.query, users, evidence.n_items, origin=origin)
    number = _numbers(instance.estimation["items"])
    if sessions.own.values is not None:
        values = sessions.own.values_of(sessions.query)[[sessions.own.item_labels.index(label) for label in number]]
        instance = replace(instance, models={kind: each.with_item_values(values) for kind, each in instance.models.items()})
    assert instance.initial_ranking is not None
    production = [number[label] for label in evidence.production if label in number]
    return replace(instance, initial_ranking=np.array([*dict.fromkeys([*production, *instance.initial_ranking.tolist()])]))


def _numbers(labels: Sequence[str]) -> dict[str, int]:
    """By label the number of each item."""
    return {label: number for number, label in enumerate(labels)}


class _Arena:
    """The fitted users as an environment, where agents learn.

    Args:
        instance: with the users' click model.
        settings: as `decide`.
        folder: of the instance's file and the results; None for none.
    """

    def __init__(self, instance: Instance, settings: Settings, folder: Path | None) -> None:
        (users,) = instance.models.values()
        assert isinstance(users, ClickModel)
        self.instance, self.settings, self.users = instance, settings, users
        self.where: Any = instance
        self.results = None if folder is None else folder / "agents"
        if folder is not None:
            make_folder(folder)
            self.where = str(folder / "instance.json")
            instance.save(self.where)
        reward, cutoff = settings.reward, settings.cutoff
        options = [f"reward={reward}"] * (reward != "clicks") + [f"cutoff={cutoff}"] * (cutoff is not None)
        self.env = ":".join([f"{self.users.short}Rank-v0", ",".join(options)]).rstrip(":")

    def curves(self, callback: Callback | None, n_jobs: int) -> polars.DataFrame:
        """Regret by agent and step, mean over runs."""
        settings = self.settings
        agents = [*dict.fromkeys(("Fixed", *settings.agents))]
        results = sweep(
            [self.env], agents, settings.horizon, settings.runs, seed=settings.seed, instances=[self.where], out=self.results,
            callback=callback, n_jobs=n_jobs,
        )  # fmt: skip
        return results.frame.group_by("agent", "step").agg(polars.col("regret").mean()).sort("step", "agent")

    def lists(self, winner: str, evidence: Evidence, grounds: Sequence[Ground]) -> dict[str, NDArray[np.int64]]:
        """The lists to be estimated, of the instance's items: in production, the proposed ones, and others to compare with.

        Args:
            winner: the agent that loses least.
            evidence: with the logged lists.
            grounds: the list of the verdict, and the larger step, as far as there are any.
        """
        settings, users, initial_ranking = self.settings, self.users, self.instance.initial_ranking
        assert initial_ranking is not None
        env = make_env(self.env, self.where)
        agent = make_agent(winner, env, horizon=settings.horizon, seed=settings.seed)
        assert isinstance(agent, Agent)
        run(agent, env, settings.horizon, seed=settings.seed)
        observation, _ = env.reset(seed=settings.seed)
        number = _numbers(self.instance.estimation["items"])
        lists = {"in production": initial_ranking[: self.instance.n_positions]}
        for ground in grounds:
            lists[GROUNDS[ground.name]] = np.array([number[label] for label in ground.labels])
        lists[f"learned by {winner}"] = np.array(agent.rank(observation))
        lists["best under the model"] = users.optimal_ranking(settings.reward, settings.cutoff)
        logged = [np.array([number[label] for label in each.labels]) for each in evidence.measured]
        best = max(logged, key=partial(users.expected_reward, reward=settings.reward, cutoff=settings.cutoff), default=None)
        if best is not None and (best != lists["in production"]).any():
            lists["best of the logged lists, under the model"] = best
        return lists


# ------------------------------------------------------------------------------------------------------------ estimates


def _candidates(
    lists: dict[str, NDArray[np.int64]], arena: _Arena, inquiry: Inquiry, truth: ClickModel | None, n_resamples: int
) -> tuple[Candidate, ...]:
    """What each list would have earned in the held-out sessions of the query, and how much more than that in production."""
    labels, reward, cutoff = arena.instance.estimation["items"], inquiry.settings.reward, inquiry.settings.cutoff
    log, estimators = inquiry.sessions.test, inquiry.estimators
    number = _numbers(log.item_labels)
    items = np.array([number[label] for label in labels])
    production = items[lists["in production"]]
    names = [name for name in JUDGES if name in CAN_ESTIMATE[reward]]
    models = {name: QUICK.fit(MODEL_BASED[name], log) for name in names if name in MODEL_BASED}
    counted, recorded = empirical_policies(log), {"ips": log.list_propensities, "item-position": log.propensities}

    @cache  # several candidates may be one list
    def estimate(ranking: tuple[int, ...], compare: bool) -> tuple[dict[str, Evaluation], dict[str, str]]:
        """The estimates, to be compared with the list in production or not; and why there is none, by estimator."""
        estimates, refused = {}, {}
        for name in names:
            plain = {"dr": "ips"}.get(name, name.removesuffix("-dr"))
            # What predicts for the doubly robust estimators has not seen the held-out sessions.
            model = models.get(name, estimators.get(DOUBLY_ROBUST.get(name, "")))
            try:
                estimates[name] = evaluate(
                    log, FixedPolicy(ranking), name, model=model, reward=reward, cutoff=cutoff,
                    logging=None if name in models or recorded.get(plain) is not None else counted,
                    against=FixedPolicy(production) if compare else None, bootstrap=n_resamples, seed=inquiry.settings.seed,
                )  # fmt: skip
            except ValueError as error:
                refused[name] = str(error)
        return estimates, refused

    return tuple(
        Candidate(
            name,
            tuple(labels[item] for item in ranking[:cutoff].tolist()),
            arena.users.expected_reward(ranking, reward, cutoff),
            None if truth is None else truth.expected_reward(items[ranking], reward, cutoff),
            *estimate(tuple(items[ranking].tolist()), name != "in production"),
        )
        for name, ranking in lists.items()
    )


def _try_estimators(log: ClickLog, reward: str, cutoff: int | None) -> Trial:
    """What the most frequent lists of the query earned, the standard errors, and the estimators tried on them.

    A list is estimated from the sessions that showed another one of its length, so that only lists beside another one of their
    length stand to choose.
    """
    if reward == "satisfaction":  # of which no log tells
        return Trial()
    tally = DistinctLists(log, reward, cutoff)
    often = tally.counts >= LEAST_SHOWN
    often &= np.bincount(tally.lengths)[tally.lengths] > 1
    rows = np.flatnonzero(often)[np.argsort(-tally.counts[often], kind="stable")[:MOST_LISTS]]
    if len(rows) < LEAST_LISTS:
        return Trial()
    earned, noise = tally.means[rows], np.sqrt(tally.variances[rows] / tally.counts[rows])
    names = [name for name in CHECKED if name in CAN_ESTIMATE[reward]]
    values = np.array([_estimate_logged(tally, row, names) for row in rows.tolist()])
    enough = np.isfinite(values).sum(axis=0) >= LEAST_LISTS
    checks = [_compared(name, values[:, column], earned) for column, name in enumerate(names) if enough[column]]
    return Trial(tuple(earned.tolist()), tuple(noise.tolist()), tuple(checks)) if checks else Trial()


def _compared(name: str, values: NDArray[np.float64], earned: NDArray[np.float64]) -> Check:
    """An estimator's values of logged lists beside what these earned."""
    finite = np.isfinite(values)
    varies = finite.sum() > 2 and np.ptp(values[finite]) > 0 and np.ptp(earned[finite]) > 0
    correlation = float(np.corrcoef(values[finite], earned[finite])[0, 1]) if varies else np.nan
    error = float(np.abs(values - earned)[finite].mean())
    return Check(name, tuple(values.tolist()), error, correlation, int(finite.sum()))


def _estimate_logged(tally: DistinctLists, row: int, names: Sequence[str]) -> list[float]:
    """The value of a list by sessions that showed another one of its length, by each estimator; NaN where it is refused."""
    length = int(tally.lengths[row])
    others = tally.log[(tally.lengths[tally.index] == length) & (tally.index != row)]
    values = None if others.values is None else others.values[:, :length]
    others = replace(others, items=others.items[:, :length], clicks=others.clicks[:, :length], propensities=None, values=values)
    target, counted = FixedPolicy(tally.lists[row, :length]), empirical_policies(others)
    counts: dict[str, Any] = {"reward": tally.reward, "cutoff": tally.cutoff and min(tally.cutoff, length)}
    estimates = []
    for name in names:
        try:
            values, _ = contributions(others, target, name, logging=None if name in MODEL_BASED else counted, **counts)
            estimates.append(float(values.sum(axis=1).mean()))
        except ValueError:
            estimates.append(np.nan)
    return estimates
