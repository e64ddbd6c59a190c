"""Tuning: an Optuna study whose trials are sweeps of an agent with other hyper-parameters."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars

from ..agents import Range
from ..agents.search_space import SearchSpace, check_search_space
from ..core.checks import check_count, check_horizon, check_path, check_seed
from ..core.files import make_folder
from .callback import Callback
from .labels import AgentLike, EnvLike, by_label, written
from .make import Player, player_of
from .progress import listener_of
from .sweep import listed, sweep

if TYPE_CHECKING:
    from optuna import Study, Trial

STUDY, TRIALS = "study.db", "trials.csv"
BATCH = 8
"""Trials that are proposed at once: a fixed number, so that results do not depend on that of
workers.
"""


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
    horizon: int = 10_000,
    runs: int = 4,
    instances: Sequence[Any] | None = None,
    search_space: SearchSpace | None = None,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    n_jobs: int = -1,
    callback: Callback | None = None,
    progress: bool | None = None,
) -> Tuning:
    """Search for the hyper-parameters with which an agent has the lowest regret, by Optuna.

    The score of a trial is its mean regret at the horizon divided by that of random lists; over
    several environments and instances it is the geometric mean. Optuna's tree-structured Parzen
    estimator proposes the trials, in batches of `BATCH`. A run of a trial plays all environments
    and instances once; after each run, Optuna's median pruner may stop the trial. At the end the
    best trial and the agent as it was given play again with other seeds, because the lowest of many
    scores is too low by chance.

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
        out: the folder of Optuna's storage, an SQLite file, and of the table of trials. A second
            call with the same arguments resumes; with more trials it continues the search. None
            leaves no files.
        n_jobs, callback, progress: as in `sweep`.

    Raises:
        ValueError, TypeError: on bad arguments, on an agent with nothing to tune, and as in
            `sweep`.
        ImportError: Optuna is not installed.

    Example:
        >>> import clickgym
        >>> tuning = clickgym.tune("EpsilonGreedy", ["PBMRank-v0"], 8, horizon=500, runs=2, progress=False)
        >>> tuning.agent.startswith("EpsilonGreedy:epsilon="), tuning.score < tuning.default_score < 1
        (True, True)
        >>> tuning.trials.columns
        ['trial', 'state', 'score', 'epsilon']
    """
    if find_spec("optuna") is None:
        raise ImportError(
            'tuning needs Optuna, which is not installed; install it: pip install "clickgym[tune]"'
        )
    trials, runs, seed = check_count("trials", trials), check_count("runs", runs), check_seed(seed)
    player = player_of(agent)
    space = _space_of(player, search_space)
    folder = None if out is None else check_path("out", out)
    horizon = check_horizon(horizon)
    envs = by_label("environment", envs)
    sessions = horizon * len(envs) * len(listed(instances))  # of a run of an agent everywhere

    def score(players: Mapping[str, Any], runs: int, seed: int) -> dict[str, float]:
        """The score of each player, by its label."""
        all_players = {"Random": "Random", **players}
        results = sweep(
            envs,
            all_players,
            horizon,
            runs,
            seed=seed,
            instances=instances,
            n_jobs=n_jobs,
            checkpoints=[horizon],
            progress=False,
        )
        listener.sessions(sessions * runs * len(all_players))
        return _scores(results.frame)

    identity = {
        "agent": player.label or player.name,
        "horizon": horizon,
        "runs": runs,
        "seed": seed,
    }
    identity["space"] = {key: repr(values) for key, values in space.items()}
    identity["envs"], identity["instances"] = list(envs), str(instances)
    study = _study(folder, identity)
    with listener_of(progress, callback) as listener:
        most = (
            trials + -(-trials // BATCH) + 3
        )  # players, random lists of each batch, and the last comparison
        listener.whole(f"{trials} trials", sessions * runs * most)
        while (done := len(_finished(study))) < trials:
            study.sampler = _sampler(seed + done)
            batch = {}
            for number in range(done, min(done + BATCH, trials)):
                trial = study.ask()
                batch[f"trial {number}"] = trial, player.but(**_proposed(space, trial))
            _play(study, batch, runs, lambda players, run: score(players, 1, seed + run))
        best = _values(space, study.best_trial.params)
        chosen = player.but(**best)
        final = score({"best": chosen, "default": player}, runs, seed + runs)
    table = _table(study, space)
    if folder is not None:
        table.write_csv(folder / TRIALS)
    return Tuning(chosen.label or chosen.name, best, final["best"], final["default"], table, study)


def _space_of(player: Player, space: SearchSpace | None) -> dict[str, Any]:
    """What is searched: the given space, or that of the agent's class without what it has a value
    of.
    """
    asked = check_search_space(player.name, player.search_space if space is None else space)
    free = {key: values for key, values in asked.items() if key not in player.hyperparameters}
    if not free:
        raise ValueError(
            f"{player.name} has nothing to tune: no search_space, or a value of all that is in it"
        )
    return free


def _study(folder: Path | None, identity: Mapping[str, Any]) -> Study:
    """The study in a folder, or a new one; trials that were interrupted are given up."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = None
    if folder is not None:
        make_folder(folder)
        storage = f"sqlite:///{(folder / STUDY).resolve()}"
    pruner = optuna.pruners.MedianPruner()
    study = optuna.create_study(
        storage=storage, study_name="clickgym", pruner=pruner, load_if_exists=True
    )
    if study.user_attrs and study.user_attrs != identity:
        differ = [key for key, value in identity.items() if study.user_attrs.get(key) != value]
        raise ValueError(
            f"{folder} holds another tuning, with another {', '.join(differ)}; choose another folder for --out"
        )
    for key, value in identity.items():
        study.set_user_attr(key, value)
    for trial in study.get_trials(states=[optuna.trial.TrialState.RUNNING]):
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
    return study


def _sampler(seed: int) -> Any:
    """The sampler of a batch: a resumed study proposes what an uninterrupted one does."""
    import optuna

    return optuna.samplers.TPESampler(seed=seed, constant_liar=True)


def _finished(study: Study) -> list[Any]:
    """The trials that are complete or pruned."""
    return [trial for trial in study.trials if trial.state.name in ("COMPLETE", "PRUNED")]


def _play(study: Study, players: Mapping[str, tuple[Trial, Player]], runs: int, score: Any) -> None:
    """Play a batch of trials run by run; what Optuna gives up is not played on. The study is told
    of all at the end.
    """
    import optuna

    going = dict(players)
    scores: dict[str, list[float]] = {label: [] for label in players}
    for run in range(runs):
        for label, value in score(
            {label: player for label, (_, player) in going.items()}, run
        ).items():
            scores[label].append(value)
            going[label][0].report(float(np.mean(scores[label])), run)
        going = {
            label: each
            for label, each in going.items()
            if run == runs - 1 or not each[0].should_prune()
        }
        if not going:
            break
    for label, (trial, _) in players.items():
        if label in going:
            study.tell(trial, float(np.mean(scores[label])))
        else:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)


def _proposed(space: Mapping[str, Any], trial: Trial) -> dict[str, Any]:
    """A value of each hyper-parameter, by Optuna."""
    params: dict[str, Any] = {}
    for key, values in space.items():
        if not isinstance(values, Range):
            params[key] = trial.suggest_categorical(key, [written(value) for value in values])
        elif values.whole:
            params[key] = trial.suggest_int(key, int(values.low), int(values.high), log=values.log)
        else:
            params[key] = trial.suggest_float(
                key, float(values.low), float(values.high), log=values.log
            )
    return _values(space, params)


def _values(space: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Hyper-parameters as the agent takes them: Optuna keeps the values of a set as text."""
    values = dict(params)
    for key, entries in space.items():
        if not isinstance(entries, Range):
            values[key] = next(entry for entry in entries if written(entry) == params[key])
    return values


def _scores(frame: polars.DataFrame) -> dict[str, float]:
    """The regret of each agent divided by that of random lists: the geometric mean over
    environments and instances.
    """
    means = frame.group_by("env", "instance", "agent", maintain_order=True).agg(
        polars.col("regret").mean()
    )
    random = means.filter(agent="Random").select("env", "instance", random="regret")
    ratios = means.filter(polars.col("agent") != "Random").join(
        random, ["env", "instance"], maintain_order="left"
    )
    share = (polars.col("regret") / polars.col("random")).clip(1e-9)
    return dict(
        ratios.group_by("agent", maintain_order=True).agg(share.log().mean().exp()).iter_rows()
    )


def _table(study: Study, space: Mapping[str, Any]) -> polars.DataFrame:
    """A row for each trial."""
    rows = [
        {"trial": number, "state": trial.state.name, "score": trial.value, **trial.params}
        for number, trial in enumerate(_finished(study))
    ]
    return polars.DataFrame(rows, infer_schema_length=None).select(
        "trial", "state", "score", *space
    )
