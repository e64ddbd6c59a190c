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
from ..core.files import make_folder, write_whole
from .labels import AgentLike, EnvLike, by_label
from .make import Player, player_of
from .progress import Callback, listener_of
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
        >>> short = {"horizon": 500, "runs": 2, "progress": False}
        >>> tuning = clickgym.tune("EpsilonGreedy", ["PBMRank-v0"], 8, **short)
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
    horizon, player, envs = check_horizon(horizon), player_of(agent), by_label("environment", envs)
    folder = None if out is None else check_path("out", out)
    space = _space_of(player, search_space)
    study = _study(
        folder,
        {
            "agent": player.label or player.name,
            "envs": list(envs),
            "instances": str(instances),
            "horizon": horizon,
            "runs": runs,
            "seed": seed,
            "space": {key: repr(values) for key, values in space.items()},
        },
    )

    def score(players: Mapping[str, Player], runs: int, seed: int) -> dict[str, float]:
        """The score of each player, by its label."""
        agents: dict[str, Any] = {"Random": "Random", **players}
        results = sweep(
            envs,
            agents,
            horizon,
            runs,
            seed=seed,
            instances=instances,
            n_jobs=n_jobs,
            checkpoints=[horizon],
            progress=False,
        )
        listener.sessions(len(results.frame) * horizon)
        return _scores(results.frame)

    with listener_of(progress, callback) as listener:
        n_batches = -(-trials // BATCH)
        n_plays = trials + n_batches + 3  # random lists in each batch, and the last comparison
        sessions = horizon * len(envs) * len(listed(instances)) * runs
        listener.whole(f"{trials} trials", sessions * n_plays)
        while (done := len(_finished(study))) < trials:
            # A sampler for each batch: a resumed study proposes what an uninterrupted one does.
            study.sampler = optuna.samplers.TPESampler(seed=seed + done, constant_liar=True)
            batch = {}
            for number in range(done, min(done + BATCH, trials)):
                trial = study.ask()
                batch[f"trial {number}"] = trial, player.but(**_proposed(space, trial))
            _play(study, batch, runs, lambda players, run: score(players, 1, seed + run))
        best = study.best_params
        chosen = player.but(**best)
        final = score({"best": chosen, "default": player}, runs, seed + runs)
    rows = [
        {"trial": number, "state": trial.state.name, "score": trial.value, **trial.params}
        for number, trial in enumerate(_finished(study))
    ]
    frame = polars.DataFrame(rows, infer_schema_length=None)
    table = frame.select("trial", "state", "score", *space)
    if folder is not None:
        write_whole(folder / TRIALS, table.write_csv())
    return Tuning(chosen.label or chosen.name, best, final["best"], final["default"], table, study)


def _space_of(player: Player, space: SearchSpace | None) -> dict[str, Any]:
    """What is searched: the given space, or that of the agent's class without what has a value."""
    wanted = check_search_space(player.name, player.search_space if space is None else space)
    free = {key: values for key, values in wanted.items() if key not in player.hyperparameters}
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
    there = study.user_attrs or identity
    if differ := [key for key, value in identity.items() if there.get(key) != value]:
        raise ValueError(
            f"{folder} holds another tuning, with another {', '.join(differ)}; choose another "
            "folder (--out)"
        )
    for key, value in identity.items():
        study.set_user_attr(key, value)
    for trial in study.get_trials(states=[optuna.trial.TrialState.RUNNING]):
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
    return study


def _finished(study: Study) -> list[Any]:
    """The trials that are complete or pruned."""
    return [trial for trial in study.trials if trial.state.name in ("COMPLETE", "PRUNED")]


def _play(study: Study, players: Mapping[str, tuple[Trial, Player]], runs: int, score: Any) -> None:
    """Play a batch of trials run by run, without those that Optuna has pruned. The study receives
    the scores at the end.
    """
    from optuna.trial import TrialState

    scores: dict[str, list[float]] = {label: [] for label in players}
    remaining = list(players)
    for run in range(runs):
        values = score({label: players[label][1] for label in remaining}, run)
        for label, value in values.items():
            scores[label].append(value)
            players[label][0].report(float(np.mean(scores[label])), run)
        if run < runs - 1:
            remaining = [label for label in remaining if not players[label][0].should_prune()]
        if not remaining:
            break
    for label, (trial, _) in players.items():
        if label in remaining:
            study.tell(trial, float(np.mean(scores[label])))
        else:
            study.tell(trial, state=TrialState.PRUNED)


def _proposed(space: Mapping[str, Any], trial: Trial) -> dict[str, Any]:
    """A value of each hyper-parameter, by Optuna."""
    values: dict[str, Any] = {}
    for key, choice in space.items():
        if not isinstance(choice, Range):
            values[key] = trial.suggest_categorical(key, list(choice))
        elif choice.whole:
            values[key] = trial.suggest_int(key, int(choice.low), int(choice.high), log=choice.log)
        else:
            low, high = float(choice.low), float(choice.high)
            values[key] = trial.suggest_float(key, low, high, log=choice.log)
    return values


def _scores(frame: polars.DataFrame) -> dict[str, float]:
    """The regret of each agent divided by that of random lists: the geometric mean over
    environments and instances.
    """
    place = ["env", "instance"]
    means = frame.group_by(*place, "agent", maintain_order=True).agg(polars.col("regret").mean())
    random = means.filter(agent="Random").select(*place, random="regret")
    ratios = means.filter(polars.col("agent") != "Random").join(
        random, place, maintain_order="left"
    )
    share = (polars.col("regret") / polars.col("random")).clip(1e-9)
    scores = ratios.group_by("agent", maintain_order=True).agg(share.log().mean().exp())
    return dict(scores.iter_rows())
