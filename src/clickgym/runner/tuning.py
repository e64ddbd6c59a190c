"""Tuning: an Optuna study whose trials are sweeps of an agent with other hyper-parameters."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np
import polars

from ..agents import Range
from ..agents.search_space import SearchSpace, check_search_space
from ..core.checks import check_count, check_horizon, check_path, check_seed
from ..core.files import make_folder, write_whole
from .identity import identities, loaded
from .labels import AgentLike, EnvLike, by_label, own_label
from .make import agent_maker, env_maker, make_env, maker_name
from .sweep import resumable, sweep
from .warm_start import Pasts, past_sessions

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.trial import BaseTrial

STUDY, TRIALS = "study.db", "trials.csv"


@dataclass(frozen=True)
class Tuning:
    """The result of `tune`.

    Attributes:
        agent: the best agent as a spec that you can type: ``"CascadeKLUCB:c=0.3"``; if it has none,
            its name.
        hyperparameters: the values of the searched hyper-parameters of this agent.
        score: its regret divided by that of random lists, in runs that the search did not use.
        default_score: the same of the agent as it was given.
        trials: a row for each trial: trial, state (COMPLETE or PRUNED), score, and a column for
            each hyper-parameter.
        study: Optuna's, whose functions draw and explain it.
    """

    agent: str
    hyperparameters: dict[str, Any]
    score: float
    default_score: float
    trials: polars.DataFrame
    study: Study


def tune(
    agent: AgentLike,
    envs: Iterable[EnvLike] | Mapping[str, EnvLike],
    trials: int = 40,
    *,
    horizon: float = 10_000,
    runs: int = 4,
    instances: Sequence[Any] | None = None,
    search_space: SearchSpace | None = None,
    seed: int = 0,
    start: Any = None,
    out: str | os.PathLike[str] | None = None,
    n_jobs: int = -1,
) -> Tuning:
    """Search for the hyper-parameters with which an agent has the lowest regret, by Optuna.

    The score of a trial is its mean regret at the horizon divided by that of random lists; over
    several environments and instances it is the geometric mean. Optuna's tree-structured Parzen
    estimator proposes the trials, and its log on stderr is the progress. A run of a trial plays all
    environments and instances once; after each run, Optuna's median pruner may stop the trial. At
    the end the best trial and the agent as it was given play again with other seeds, because the
    lowest of many scores is too low by chance.

    The result depends on the arguments and on ``seed``, not on ``n_jobs`` or on interruptions.

    Args:
        agent: what `sweep` takes as one; hyper-parameters that it has a value of are not searched.
        envs: as in `sweep`.
        trials: the number of trials.
        horizon: T, sessions per run. The best hyper-parameters depend on it, so take the one of
            your later runs.
        runs: of each trial, in each environment and instance.
        instances: as in `sweep`. Compare agents later on other instances than these.
        search_space: a `Range` or the values of each hyper-parameter; None takes the
            ``search_space`` of the agent's class.
        seed: of the proposals and of all runs.
        start: a click log, as in `sweep`; random lists, with which scores compare, learn nothing.
        out: the folder of Optuna's storage, an SQLite file, and of the table of trials. A second
            call with the same arguments resumes; with more trials it continues the search; with
            others, or if the agent, an environment, an instance or the log has changed, it begins
            another study in the same file. None leaves no files.
        n_jobs: as in `sweep`; the environments and instances of a run are played in parallel.

    Raises:
        ValueError, TypeError: on bad arguments, on an agent with nothing to tune, and as in
            `sweep`.
        ImportError: Optuna is not installed.

    Example:
        >>> import clickgym
        >>> tuning = clickgym.tune("EpsilonGreedy", ["PBMRank-v0"], 8, horizon=500, runs=2)
        >>> tuning.agent.startswith("EpsilonGreedy:epsilon=")
        True
        >>> tuning.score < tuning.default_score < 1
        True
        >>> tuning.trials.columns
        ['trial', 'state', 'score', 'epsilon']
    """
    if find_spec("optuna") is None:
        raise ImportError('tuning needs Optuna; install it: pip install "clickgym[tune]"')
    import optuna

    trials, runs, seed = check_count("trials", trials), check_count("runs", runs), check_seed(seed)
    horizon, envs = check_horizon(horizon), by_label("environment", envs)
    folder = None if out is None else check_path("out", out)
    maker, given = agent_maker(agent)
    name, space = maker_name(maker), _space_of(maker, given, search_space)
    settings = [version("clickgym"), list(envs), horizon, runs, seed, space]
    known: dict[str, str | None] = {}
    if folder is not None:
        known |= identities("agent", {name: (maker, given)})
        known |= identities("env", {label: env_maker(env) for label, env in envs.items()})
        numbered = enumerate(map(loaded, instances or ()))
        known |= identities("instance", {str(number): instance for number, instance in numbered})
    if start is not None:  # the sessions of the log are selected once for all trials
        pasts = Pasts()
        for label, env in envs.items():
            for instance in instances or (None,):
                made = make_env(env, instance)
                name_there = getattr(made.unwrapped, "instance", "custom")
                pasts[label, name_there] = past_sessions(start, made)
        start = pasts
    if folder is not None and start is not None:
        known |= {f"start {number}": past.identity for number, past in enumerate(start.values())}
    study = _study(folder, name, settings, known)

    def play(label: str, agent: AgentLike, runs: int, seed: int) -> polars.DataFrame:
        return sweep(
            envs,
            {label: agent},
            horizon,
            runs,
            seed=seed,
            instances=instances,
            start=start,
            checkpoints=[horizon],
            n_jobs=n_jobs,
            progress=False,
        ).frame

    at_random = cache(partial(play, "Random", "Random"))  # the same for every trial

    def score(values: Mapping[str, Any], runs: int, seed: int) -> float:
        tuned = play("tuned", (maker, {**given, **values}), runs, seed)
        return _score(polars.concat([tuned, at_random(runs, seed)]))

    def objective(trial: Trial) -> float:
        values, scores = _suggested(trial, space), []
        for run in range(runs):
            scores.append(score(values, 1, seed + run))
            trial.report(float(np.mean(scores)), run)
            if run < runs - 1 and trial.should_prune():
                raise optuna.TrialPruned
        return float(np.mean(scores))

    with resumable(folder, lambda: f"{len(_finished(study))} of {trials} trials"):
        default_score = score({}, runs, seed + runs)
        while (done := len(_finished(study))) < trials:
            # A sampler for each trial: a resumed study proposes what an uninterrupted one does.
            study.sampler = optuna.samplers.TPESampler(seed=(seed + done) % 2**32)
            study.optimize(objective, n_trials=1)
        found = _suggested(optuna.trial.FixedTrial(study.best_params), space)
        scores = score(found, runs, seed + runs), default_score
    rows = [
        {"trial": number, "state": trial.state.name, "score": trial.value, **trial.params}
        for number, trial in enumerate(_finished(study))
    ]
    table = polars.DataFrame(rows, infer_schema_length=None)
    table = table.select("trial", "state", "score", *space)
    if folder is not None:
        write_whole(folder / TRIALS, table.write_csv())
    best: AgentLike = (agent, found)  # type: ignore[assignment]
    return Tuning(own_label(best) or name, found, *scores, table, study)


def _space_of(
    maker: Callable[..., Any], given: Mapping[str, Any], space: SearchSpace | None
) -> dict[str, Any]:
    """What is searched: a space, or that of the agent's class without what was given a value."""
    space = getattr(maker, "search_space", {}) if space is None else space
    wanted = check_search_space(maker_name(maker), space)
    free = {key: values for key, values in wanted.items() if key not in given}
    if not free:
        raise ValueError(
            f"{maker_name(maker)} has nothing to tune: no search_space, or a value of all that is "
            "in it"
        )
    return free


def _suggested(trial: BaseTrial, space: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the hyper-parameters that Optuna proposes. Its storage knows a sequence, such
    as sizes of layers, by its ``repr`` only.
    """
    values: dict[str, Any] = {}
    for key, choice in space.items():
        if not isinstance(choice, Range):
            plain = (str, int, float, NoneType)
            written = [value if isinstance(value, plain) else repr(value) for value in choice]
            values[key] = choice[written.index(trial.suggest_categorical(key, written))]
        elif choice.whole:
            values[key] = trial.suggest_int(key, int(choice.low), int(choice.high), log=choice.log)
        else:
            values[key] = trial.suggest_float(key, choice.low, choice.high, log=choice.log)
    return values


def _study(
    folder: Path | None, agent: str, settings: Any, known: Mapping[str, str | None]
) -> Study:
    """The study of an agent in a folder; a new one if settings or identities differ, or if an
    identity is not known.
    """
    import optuna

    is_known = all(known.values())
    storage, what = None, repr(known) if is_known else token_hex()
    start, end = (sha256(text.encode()).hexdigest()[:16] for text in (repr(settings), what))
    name = f"{agent} {start} {end}"
    if folder is not None:
        make_folder(folder)
        file = str((folder / STUDY).resolve())
        storage = f"sqlite:///{file.replace('{', '{{').replace('}', '}}')}"  # as Optuna reads it
        there = optuna.get_all_study_names(storage)
        is_changed = is_known and name not in there
        if is_changed and any(other.startswith(f"{agent} {start} ") for other in there):
            text = "the agent, an environment, an instance or the log has changed"
            since = f"since {folder / STUDY} was written: another study begins"
            warnings.warn(f"{text} {since}", stacklevel=3)
    pruner = optuna.pruners.MedianPruner()
    return optuna.create_study(storage=storage, study_name=name, pruner=pruner, load_if_exists=True)


def _finished(study: Study) -> list[Any]:
    """The trials that are complete or pruned."""
    return [trial for trial in study.trials if trial.state.name in ("COMPLETE", "PRUNED")]


def _score(frame: polars.DataFrame) -> float:
    """The regret of ``tuned`` divided by that of random lists: the geometric mean over environments
    and instances.
    """
    means = frame.group_by("env", "instance", "agent", maintain_order=True).agg(
        polars.col("regret").mean()
    )
    regrets = means.pivot("agent", index=["env", "instance"], values="regret")
    shares = (regrets["tuned"] / regrets["Random"]).clip(1e-9)
    return float(np.exp(shares.log().to_numpy().mean()))
