"""Tuning: search for the hyper-parameters with the lowest regret, by Optuna, within a budget of sessions.

A folder holds ``tuning.json``, what is tuned and what came of it; ``trials.parquet``, a row for each trial; and, while some are
played, their runs, the results folder of sweeps.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars
from polars import col

from ..agents import Range
from ..agents.search_space import SearchSpace
from ..core.checks import MOST_SESSIONS, check_choice, check_count, check_horizon, check_path, check_seed, short
from ..core.files import FORMAT, check_format, is_draft, make_folder, read_json, reading, remove_drafts, write_whole
from ..core.notebook import html_table
from ..core.statistics import half_width
from ..core.workers import check_workers
from .callback import Callback
from .labels import AgentLike, EnvLike, by_label, in_braces, written
from .make import Place, Player, player_of
from .progress import TuningProgress, listener_of
from .results import other_versions, read_table, write_table
from .run import checkpoint_steps
from .sampler import Sampler
from .search import Space, check_fit, combinations, contains, search_space_of
from .sweep import Job, Work, folder_or_temporary, listed, places_of, play_into, prepare

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONFIG, TRIALS, RUNS = "tuning.json", "trials.parquet", "runs-"
BATCH = 8
"""Trials that are proposed at once: a fixed number, so that results do not depend on that of workers."""
MOST_COMBINATIONS = 64
"""A search space of sets with at most so many combinations is searched whole."""
SEARCHED = 0.75
"""The share of the budget that is spent on the search; the rest is for the final."""
FINALISTS = 4
"""The trials with the lowest scores that play again, with the default."""
MOST_FINAL_RUNS = 100
ATTEMPTS = 50
"""Proposals for each trial of a batch, of which one must be new and suit the agent's constructor."""
RANDOM = {"Random": player_of("Random")}
"""Random lists, to whose regret that of trials is compared."""
CURE = "restore it from a backup, or choose another folder"
IDENTITY = ("agent", "search_space", "envs", "instances", "horizon", "runs", "by", "seed", "models", "sources")
"""What a folder can hold only one of."""
COMPLETE, PRUNED = "complete", "pruned"
MEAN, WORSE_HALF = "mean", "worse_half"
FINAL_COLUMNS = ("final_score", "final_ci95", "final_runs")

Row = dict[str, Any]
Values = dict[str, Any]
_Score = tuple[float, float | None]
"""Of runs, and half of its 95 % interval."""


@dataclass(frozen=True)
class Tuning:
    """The result of `tune`.

    Attributes:
        agent: the best agent as a spec that you can type: ``"CascadeKLUCB:c=0.3"``.
        hyperparameters: the values of the searched hyper-parameters of this agent.
        score: the score of the best agent in the final: its regret divided by that of random lists, see `tune`.
        default_score: the score of the agent with its defaults in the final; None if it has no defaults.
        trials: a row for each: trial, batch, agent, ``param_...`` for each hyper-parameter, state (complete or pruned), score,
            ci95 (half the 95 % interval over runs), sessions; of finalists final_score, final_ci95 and final_runs; and
            ``after_1`` and so on, the score in the search after so many runs.
        search_space: the ranges and sets that were searched.
        config: the settings of the tuning: envs, instances, horizon, runs, seed, versions, ...
        sessions: the number of all sessions played, also those of stopped trials and of random lists.
    """

    agent: str
    hyperparameters: dict[str, Any]
    score: float
    default_score: float | None
    trials: polars.DataFrame
    search_space: Space
    config: dict[str, Any]
    sessions: int

    def plot(self) -> Figure:
        """Draw the score against each hyper-parameter.

        Example:
            >>> import clickgym
            >>> tuning = clickgym.tune("EpsilonGreedy:epsilon={0.1,0.5}", ["PBMRank-v0"], 900, horizon=50, progress=False)
            >>> len(tuning.plot().axes)
            1
        """
        from .reports.trials import trials_figure  # matplotlib is slow to load

        return trials_figure(self.trials, self.search_space, self.config)

    def best(self, n: int = 10) -> polars.DataFrame:
        """The finalists, followed by the other complete trials with the lowest scores.

        Args:
            n: how many rows.
        """
        complete = self.trials.filter(col("state") == COMPLETE)
        return complete.sort("final_score", "score", nulls_last=True, maintain_order=True).head(check_count("n", n, 0))

    def importances(self) -> dict[str, float]:
        """How much each hyper-parameter matters: shares that sum to 1, the largest first.

        The question is which hyper-parameters decide whether a trial is among the best quarter.

        The method is PED-ANOVA (Watanabe and others 2023), as in Optuna. Of stopped trials it takes the score so far. With a
        few dozen trials the result separates the most important from the least important, and no more.

        Example:
            >>> import clickgym
            >>> spec = "CascadeKLUCB:c={0.0..3.0},feedback={first_click,last_click}"
            >>> tuning = clickgym.tune(spec, ["CMRank-v0"], 20_000, horizon=500, runs=2, progress=False)
            >>> sorted(tuning.importances()), round(sum(tuning.importances().values()), 6)
            (['c', 'feedback'], 1.0)
        """
        sampler = Sampler(self.search_space, seed=0)
        for row in self.trials.iter_rows(named=True):
            sampler.tell(_values(self.search_space, row), [row["score"]], complete=True)
        return sampler.importances()

    def __repr__(self) -> str:
        default = "" if self.default_score is None else f", default {self.default_score:.3g}"
        return f"<Tuning: {self.agent}, score {self.score:.3g}{default}, {len(self.trials)} trials, {self.sessions:,} sessions>"

    def _repr_html_(self) -> str:
        rows = self.best().select("agent", "final_score", "final_ci95", "score", "ci95").rows()
        return html_table(repr(self)[1:-1], rows, ["agent", "score in the final", "± (95 %)", "in the search", "± (95 %)"])


def tune(
    agent: AgentLike | Mapping[str, AgentLike],
    envs: Iterable[EnvLike] | Mapping[str, EnvLike],
    budget: int,
    *,
    horizon: int = 10_000,
    runs: int = 4,
    instances: Sequence[Any] | None = None,
    search_space: SearchSpace | None = None,
    by: str = MEAN,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    n_jobs: int = -1,
    callback: Callback | None = None,
    progress: bool | None = None,
) -> Tuning:
    """Search for the hyper-parameters with which an agent has the lowest regret.

    The score of a trial is its mean regret at the horizon divided by that of random lists, so that 1 is as bad as random lists.
    Over several environments and instances it is the geometric mean, so that half the regret counts the same everywhere. (No
    regret counts as less than that of one session of random lists.)

    *Search*, three quarters of the budget. The first trial is the agent with its defaults. Optuna (TPE) proposes the others, in
    batches of `BATCH`. A search space with few combinations is searched completely. A run of a trial plays all environments and
    instances once. After each run, a trial is stopped if its score so far is worse than the median of the complete trials at
    that point.

    *Final*. The lowest of many scores is too low by chance. Therefore the best trials and the default play again, with other
    seeds. The rest of the budget determines the number of runs. This final decides which agent is the best, and gives its
    score.

    The result depends on the arguments and on ``seed``, not on ``n_jobs`` or on interruptions. A second call with the same
    arguments resumes, and with a larger budget it continues the search. The seeds of tuning differ from those of all sweeps.

    Args:
        agent: what `sweep` takes as one, or a mapping with one label. Sets and ranges in the braces of a spec are searched in
            place of the ``search_space`` of its class: ``"CascadeKLUCB:c={0.0..3.0}"``, ``"UBMLinUCB:alpha={0.01..10 log}"``.
        envs: as in `sweep`.
        budget: the number of sessions that may be played in total; ``1e6`` is accepted.
        horizon: T, sessions per run. The best hyper-parameters depend on the horizon, so take the one of your later runs.
        runs: of each trial in the search, in each environment and instance. With 1, no trial is stopped early.
        instances: as in `sweep`. Compare agents later on other instances than these.
        search_space: a `Range` or the values of each hyper-parameter; None takes that of the spec or the class.
        by: which runs of a trial count in each environment and instance: all of them, ``"mean"``, or the half with the most
            regret, ``"worse_half"``. The mean of few runs rewards values that are lucky most of the time; with the worse half
            take at least six runs. It tells no intervals.
        seed: of the proposals and of all runs.
        out: the folder; created if missing, resumed if it exists. None leaves no files.
        n_jobs: as in `sweep`.
        callback: receives the progress.
        progress: show a bar on stderr; None shows it in a terminal and in a notebook only, and where there is no ``callback``.

    Returns:
        The best agent, the table of trials, and a figure.

    Raises:
        ValueError, TypeError: before any session is played, on bad arguments: an agent with nothing to tune, a range that its
            constructor refuses, a budget that is too small for a batch; a folder that holds something else.
        ImportError: Optuna is not installed.
        AgentError, SessionError, WorkerError, FileError: as in `sweep`; what is finished is kept.

    Example:
        >>> import clickgym
        >>> tuning = clickgym.tune("EpsilonGreedy", ["PBMRank-v0"], 24_000, horizon=500, progress=False)
        >>> tuning.agent.startswith("EpsilonGreedy:epsilon="), tuning.score < tuning.default_score < 1
        (True, True)
        >>> tuning.trials["agent"][0], tuning.sessions <= 24_000
        ('EpsilonGreedy', True)
    """
    check_workers(n_jobs)
    budget = _checked_budget(budget)
    horizon, runs, seed = check_horizon(horizon), check_count("runs", runs), check_seed(seed)
    out = None if out is None else check_path("out", out)
    if find_spec("optuna") is None:
        raise ImportError('tuning needs Optuna, which is not installed; install it: pip install "clickgym[tune]"')
    job = _prepare(agent, envs, horizon, runs, instances, search_space, check_choice("by", by, (MEAN, WORSE_HALF)), seed)
    _check_least(budget, job)
    with listener_of(progress, callback, TuningProgress) as listener, folder_or_temporary(out) as folder:
        return _play(_Stage(Path(folder), job, n_jobs, listener), budget)


# ------------------------------------------------------------------------------------------------- before any work starts


class _Candidate(NamedTuple):
    """What is tried: what results call it, the values of all that is searched, and the sessions of one run everywhere."""

    label: str
    values: Values
    sessions: int


@dataclass(frozen=True)
class _Job:
    """A tuning whose arguments are checked."""

    label: str
    player: Player
    space: Space
    defaults: Values
    """Of what is searched; None where the default follows from something else."""
    has_default: bool
    """Whether the agent can be made without a value of what is searched."""
    envs: dict[str, Place]
    instances: Sequence[Any] | None
    places: list[Place]
    """One for each environment and instance."""
    horizon: int
    runs: int
    by: str
    seed: int

    def root(self, phase: str) -> int:
        """The seed of the sweeps of a phase: it derives from a name, so that it is that of no sweep that somebody asks for."""
        return int.from_bytes(hashlib.sha256(f"clickgym.tune {phase} {self.seed}".encode()).digest()[:8])

    def seed_of(self, batch: int) -> int:
        """The seed of the proposals of a batch."""
        return int(np.random.SeedSequence([self.root("proposals"), batch]).generate_state(1)[0])

    def make(self, **hyperparameters: Any) -> Any:
        """The agent, once in each environment; the last is returned."""
        player = self.player.but(**hyperparameters)
        return [player.make(place, self.horizon, 0) for place in self.places][-1]

    def sweep(self, players: Mapping[str, Player], runs: int, seed: int) -> Job:
        """A sweep of players, by label, wherever is played."""
        work = Work(self.horizon, seed, checkpoint_steps(self.horizon, [self.horizon]))
        return prepare(self.envs, players, runs, self.instances, work)

    def own(self, values: Values) -> Values:
        """Those values that are not the default."""
        return {key: value for key, value in values.items() if not contains((self.defaults[key],), value)}

    def candidate(self, values: Values) -> _Candidate:
        """A candidate, if the agent can be made with these values, else a ValueError."""
        own = self.own(values)
        training = getattr(self.make(**own), "training", None)
        sessions = self.horizon + (training.sessions if training is not None else 0)
        return _Candidate(self.label_of(own), values, len(self.places) * sessions)

    def label_of(self, own: Values) -> str:
        """What results call the agent with values that are not the default: the spec that can be typed, if it has one."""
        if not own:
            return self.label
        spec = self.player.but(**own).label if self.label == self.player.label else None
        return spec or f"{self.label} {', '.join(f'{key}={written(value)}' for key, value in own.items())}"


def _checked_budget(budget: Any) -> int:
    """A budget as an int: of sessions; ``1e6`` is accepted."""
    try:
        return check_horizon(budget)
    except ValueError:
        raise ValueError(
            f"budget is {short(budget)}; expected a number of sessions from 1, at most {MOST_SESSIONS:,}"
        ) from None


def _prepare(
    agent: Any, envs: Any, horizon: int, runs: int, instances: Any, search_space: SearchSpace | None, by: str, seed: int
) -> _Job:
    """Check the arguments, and that the agent can be made with what is searched."""
    label, agent = _labelled(agent)
    player, space = search_space_of(agent, search_space)
    [label] = by_label("agent", [player.given] if label is None else {label: player.given})
    venues, values = places_of(envs), player.defaults
    of_space, has_default = {key: values.get(key) for key in space}, space.keys().isdisjoint(player.required)
    places = _places(venues, instances)
    job = _Job(label, player, space, of_space, has_default, venues, instances, places, horizon, runs, by, seed)
    if job.has_default:
        job.make()
    check_fit(job.make, space, label)
    return job


def _labelled(agent: Any) -> tuple[Any, Any]:
    """The label of the agent, None if it is given none, and the agent."""
    if not isinstance(agent, Mapping):
        return None, agent
    if len(agent) != 1:
        raise ValueError(f"one agent is tuned at a time, got {', '.join(map(str, agent)) or 'none'}")
    [pair] = agent.items()
    return pair


def _places(envs: Mapping[str, Place], instances: Any) -> list[Place]:
    """Each environment with each instance."""
    places = [env.at(instance) for env in envs.values() for instance in listed(instances)]
    if not places:
        raise ValueError("no instance was named")
    return places


def _check_least(budget: int, job: _Job) -> None:
    """Refuse a budget that is too small for random lists and the first batch, or for a final."""
    candidates = _candidates(job, [], _sampler(job, []))
    of_run = sorted(candidate.sessions for candidate in candidates)
    search, final = _random_sessions(job) + job.runs * sum(of_run), sum(of_run[-FINALISTS - 1 :])
    least = math.ceil(max(search / SEARCHED, final / (1 - SEARCHED)))
    if budget < least:
        places = f" in {len(job.places)} environments and instances" * (len(job.places) > 1)
        raise ValueError(
            f"budget is {budget:,} sessions; expected at least {least:,}: a batch is {len(candidates)} trials of {job.runs} "
            f"run{'s' * (job.runs > 1)} of {job.horizon:,} sessions{places}, and there are random lists, and a final"
        )


def _random_sessions(job: _Job) -> int:
    return job.runs * len(job.places) * job.horizon


# ----------------------------------------------------------------------------------------------------------- the folder


def _open(folder: Path, job: _Job) -> tuple[dict[str, Any], list[Row]]:
    """The configuration and the trials of a folder; it is made if need be.

    Raises:
        ValueError: it holds something else, or something damaged.
    """
    config = _config(job)
    make_folder(folder)
    remove_drafts(folder)
    if not (folder / CONFIG).exists():
        if others := sorted(path.name for path in folder.iterdir() if not is_draft(path)):
            raise ValueError(f"{folder} holds no tuning, but {others[0]}; choose another folder")
        return config, []
    before = _read_config(folder, config)
    if not (folder / TRIALS).exists():
        return before, []
    with reading(folder / TRIALS, "is damaged", CURE):
        trials = read_table(folder / TRIALS).select(list(_schema(job)))
        return before, polars.DataFrame(trials, _schema(job)).rows(named=True)


def _read_config(folder: Path, config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of a folder, which must be that of the same tuning."""
    with reading(folder / CONFIG, "cannot be read", CURE):
        before = read_json(folder / CONFIG)
    check_format(folder / CONFIG, before.get("format"))
    with reading(folder / CONFIG, "cannot be read", CURE):
        changed = [
            f"{key}: {short(before[key])} there, {short(config[key])} now" for key in IDENTITY if before[key] != config[key]
        ]
        differ = other_versions(before["versions"], config["versions"])
        before["random"] = [[str(env), str(name), float(regret)] for env, name, regret in before.get("random", [])]
        before["finals"] = int(before["finals"])
        if "result" in before:
            before["result"]["budget"] = int(before["result"]["budget"])
    if changed:
        raise ValueError(f"{folder} holds another tuning ({'; '.join(changed)}); choose another folder")
    if differ:
        warnings.warn(f"{folder} holds trials made with other versions ({'; '.join(differ)})", stacklevel=5)
    return before


def _config(job: _Job) -> dict[str, Any]:
    """What is tuned on, as it stands in the folder."""
    lowest = {key: values.low if isinstance(values, Range) else values[0] for key, values in job.space.items()}
    first = {} if job.has_default else lowest
    part = job.sweep({job.label_of(first): job.player.but(**first), **RANDOM}, job.runs, job.seed).part
    space = {key: in_braces(values) for key, values in job.space.items()}
    config = {"format": FORMAT, "agent": job.label, "search_space": space}
    config |= {key: part[key] for key in ("clickgym", "made", "envs", "instances", "given", "horizon", "runs", "seed")}
    config |= {"by": job.by, "models": part["models"], "sources": part["sources"]}
    config |= {"random": [], "finals": 0}  # the regret of random lists in each place; sessions that finals have taken
    return config | {"versions": part["versions"] | {"clickgym": part["clickgym"], "optuna": version("optuna")}}


def _schema(job: _Job) -> dict[str, Any]:
    """The columns of the table of trials."""
    kinds = {
        f"param_{key}": (polars.Int64 if values.whole else polars.Float64) if isinstance(values, Range) else polars.String
        for key, values in job.space.items()
    }
    each = dict.fromkeys(_steps(job), polars.Float64)
    names: dict[str, Any] = {"trial": polars.Int64, "batch": polars.Int64, "agent": polars.String, **kinds}
    names |= {"state": polars.String, "score": polars.Float64, "ci95": polars.Float64}
    names["sessions"] = polars.Int64
    return names | dict(zip(FINAL_COLUMNS, (polars.Float64, polars.Float64, polars.Int64), strict=True)) | each


def _steps(job: _Job) -> list[str]:
    """The columns of the score after each run."""
    return [f"after_{run + 1}" for run in range(job.runs)]


def _write_trials(folder: Path, job: _Job, rows: list[Row]) -> None:
    write_table(folder / TRIALS, polars.DataFrame(rows, _schema(job)))


def _write_config(folder: Path, config: dict[str, Any]) -> None:
    write_whole(folder / CONFIG, json.dumps(config, indent=1, default=str) + "\n")


def _tuning(job: _Job, config: dict[str, Any], rows: list[Row]) -> Tuning:
    """The result of a tuning that has had its final."""
    trials = polars.DataFrame(rows, _schema(job))
    best = trials.drop_nulls("final_score").sort("final_score", "trial").row(0, named=True)
    default = trials.filter(col("agent") == job.label)["final_score"].to_list()
    return Tuning(
        agent=best["agent"],
        hyperparameters=job.defaults | _own(job, best),
        score=best["final_score"],
        default_score=default[0] if default else None,
        trials=trials,
        search_space=job.space,
        config=config,
        sessions=_random_sessions(job) + int(trials["sessions"].sum()) + config["finals"],
    )


# ------------------------------------------------------------------------------------------------------- what is proposed


def _sampler(job: _Job, rows: Sequence[Row]) -> Sampler:
    """What proposes the next batch."""
    sampler = Sampler(job.space, job.seed_of(_next_batch(rows)))
    for row in rows:
        scores = [row[name] for name in _steps(job) if row[name] is not None]
        sampler.tell(_values(job.space, row), scores, row["state"] == COMPLETE)
    return sampler


def _next_batch(rows: Sequence[Row]) -> int:
    return rows[-1]["batch"] + 1 if rows else 1


def _candidates(job: _Job, rows: Sequence[Row], sampler: Sampler) -> list[_Candidate]:
    """The next batch: what was not tried before, and suits the agent; fewer or none where there is nothing else."""
    labels = {row["agent"] for row in rows}
    candidates: list[_Candidate] = []
    for values, reject in _proposals(job, rows, sampler):
        try:
            candidate = job.candidate(values)
        except (TypeError, ValueError):  # values that do not go together
            reject()
            continue
        if candidate.label in labels:
            reject()
            continue
        labels.add(candidate.label)
        candidates.append(candidate)
        if len(candidates) == BATCH:
            break
    return candidates


def _proposals(job: _Job, rows: Sequence[Row], sampler: Sampler) -> Iterator[tuple[Values, Callable[[], object]]]:
    """Values to try, each with what is called if they are not: the defaults, then all combinations or Optuna's proposals."""
    if not rows and job.has_default:
        yield dict(job.defaults), lambda: None
    every = combinations(job.space, MOST_COMBINATIONS)
    if every is None:
        yield from itertools.islice(sampler.ask(), ATTEMPTS * BATCH)
        return
    for place in np.random.default_rng(job.seed_of(0)).permutation(len(every)):
        yield every[place], lambda: None


# ---------------------------------------------------------------------------------------------------------------- playing


class _Stage(NamedTuple):
    """Where a tuning is played."""

    folder: Path
    job: _Job
    n_jobs: int
    callback: Callback

    def play(self, name: str, players: Mapping[str, Player], runs: int, phase: str) -> polars.DataFrame:
        """Play a sweep, or what is missing of it: its table."""
        sweep = self.job.sweep(players, runs, self.job.root(phase))
        return play_into(self.folder / f"{RUNS}{name}", sweep, self.n_jobs, self.callback).frame


def _play(stage: _Stage, budget: int) -> Tuning:
    """Play batch after batch, as long as the budget suffices, then the final; write each."""
    folder, job, _, callback = stage
    config, rows = _open(folder, job)
    result = config.pop("result", None)
    if result is not None and budget <= result["budget"]:
        return _tuning(job, config, rows)
    callback.whole("tuning", budget)
    rows = [row | dict.fromkeys(FINAL_COLUMNS) for row in rows]  # which a smaller budget may have filled
    if not config["random"]:
        _write_config(folder, config)
        config["random"] = _play_random(stage)
        _write_config(folder, config)
    while True:
        _remove_runs(folder, keep=(str(len(rows)), "final"))
        sessions = _random_sessions(job) + sum(map(itemgetter("sessions"), rows)) + config["finals"]
        if rows:
            callback.batch(polars.DataFrame(rows, _schema(job)), sessions)
        sampler = _sampler(job, rows)
        candidates = _candidates(job, rows, sampler)
        of_run = sum(candidate.sessions for candidate in candidates)
        if not candidates or sessions + job.runs * of_run > SEARCHED * budget:
            break
        rows += _play_batch(stage, candidates, sampler, rows, config["random"])
        _write_trials(folder, job, rows)
    config["finals"] += _play_final(stage, rows, budget - sessions, config["random"])
    _write_trials(folder, job, rows)
    tuning = _tuning(job, config, rows)
    best = {"agent": tuning.agent, "hyperparameters": tuning.hyperparameters, "score": tuning.score}
    best |= {"default_score": tuning.default_score, "trials": len(rows), "sessions": tuning.sessions, "budget": budget}
    _write_config(folder, config | {"result": best})
    _remove_runs(folder)
    return tuning


def _remove_runs(folder: Path, keep: Sequence[str] = ()) -> None:
    """Remove the runs of what is finished; those of a batch or a final that was stopped stay."""
    for path in folder.glob(f"{RUNS}*"):
        if path.name.removeprefix(RUNS) not in keep:
            shutil.rmtree(path)


def _play_final(stage: _Stage, rows: list[Row], sessions: int, random: list[list[Any]]) -> int:
    """Let the best trials and the default play again, and write into their rows what comes of it: the sessions of it all."""
    job = stage.job
    best = sorted((row for row in rows if row["state"] == COMPLETE), key=lambda row: row["score"])
    finalists = [row for row in best if row["agent"] != job.label][:FINALISTS]
    finalists += [row for row in rows if row["agent"] == job.label]
    of_run = sum(row["sessions"] for row in finalists) // job.runs
    runs = min(sessions // of_run, MOST_FINAL_RUNS)
    players = {row["agent"]: job.player.but(**_own(job, row)) for row in finalists}
    scores = _scores(stage.play("final", players, runs, "final"), random, job)
    for row in finalists:
        row |= dict(zip(FINAL_COLUMNS, (*scores[row["agent"]], runs), strict=True))
    return runs * of_run


def _play_random(stage: _Stage) -> list[list[Any]]:
    """The mean regret of random lists in each environment and instance."""
    table = stage.play("random", RANDOM, stage.job.runs, "search")
    means = table.group_by("env", "instance", maintain_order=True).agg(
        col("regret").mean(), col("regret").null_count().alias("n")
    )
    for env, instance, regret, missing in means.iter_rows():
        if missing:
            raise ValueError(f"{env} ({instance}) has no regret, by which trials are compared")
        if regret <= 0:
            raise ValueError(f"random lists have no regret in {env} ({instance}): nothing can be learned there")
    return [list(row) for row in means.drop("n").iter_rows()]


def _play_batch(
    stage: _Stage, candidates: Sequence[_Candidate], sampler: Sampler, before: Sequence[Row], random: list[list[Any]]
) -> list[Row]:
    """Play a run of every candidate, give some up, play the next run of the others, and so on: the rows of the table."""
    job = stage.job
    players = {candidate.label: job.player.but(**job.own(candidate.values)) for candidate in candidates}
    scores: dict[str, list[float]] = {label: [] for label in players}
    last: dict[str, _Score] = {}
    for run in range(job.runs):
        players = {label: player for label, player in players.items() if not run or not sampler.gives_up(scores[label])}
        if not players:
            break
        so_far = _scores(stage.play(str(len(before)), players, run + 1, "search"), random, job)
        last |= so_far
        for label in players:
            scores[label].append(so_far[label][0])
    of_batch = {"batch": _next_batch(before)}
    return [
        {"trial": number} | of_batch | _row(job, candidate, scores[candidate.label], last[candidate.label][1])
        for number, candidate in enumerate(candidates, start=len(before))
    ]


def _scores(table: polars.DataFrame, random: list[list[Any]], job: _Job) -> dict[str, _Score]:
    """The score of each agent, and half of its 95 % interval, which one run or the worse half does not tell: see `tune`."""
    place = ["agent", "env", "instance"]
    shares = (
        table.join(polars.DataFrame(random, ["env", "instance", "random"], orient="row"), on=["env", "instance"])
        .sort(*place, "run")  # sums are the same in the same order only
        .with_columns(share=col("regret") / col("random"))
        .with_columns(nth=col("share").rank("ordinal", descending=True).over(place), n=polars.len().over(place))
        .filter(job.by == MEAN or col("nth") <= (col("n") + 1) // 2)
        .with_columns(mean=col("share").mean().clip(lower_bound=1 / job.horizon).over(place))
    )
    estimates: dict[str, _Score] = {}
    for (agent,), rows in shares.group_by(["agent"], maintain_order=True):
        score = math.exp(np.log(rows.unique(place, maintain_order=True)["mean"].to_numpy()).mean())
        # To the first order, a run moves the logarithm of the score by its relative distance from the means.
        moves = rows.group_by("run", maintain_order=True).agg((col("share") / col("mean")).mean())["share"].to_numpy()
        n = len(moves)
        told = n > 1 and job.by == MEAN
        estimates[str(agent)] = score, score * float(moves.std(ddof=1)) * half_width(n) if told else None
    return estimates


def _row(job: _Job, candidate: _Candidate, scores: Sequence[float], ci95: float | None) -> Row:
    """A row of the table of trials, without its number and that of its batch."""
    n, row = len(scores), Row(agent=candidate.label)
    for key, values in job.space.items():
        value = candidate.values[key]
        is_number = isinstance(value, int | float)
        row[f"param_{key}"] = written(value) if not isinstance(values, Range) else value if is_number else None
    row |= {"state": COMPLETE if n == job.runs else PRUNED, "score": scores[-1], "ci95": ci95}
    row |= {"sessions": candidate.sessions * n, **dict.fromkeys(FINAL_COLUMNS)}
    return row | dict(itertools.zip_longest(_steps(job), scores))


def _values(space: Space, row: Row) -> Values:
    """The values that a row of the table tells; of a default that is no value of the search space, None."""
    values: Values = {}
    for key, entries in space.items():
        value = row[f"param_{key}"]
        values[key] = value if isinstance(entries, Range) else {written(entry): entry for entry in entries}.get(value)
    return values


def _own(job: _Job, row: Row) -> Values:
    """The values of a trial that are not the default."""
    return {} if row["agent"] == job.label else job.own(_values(job.space, row))
