"""Tuning: an Optuna study whose trials are sweeps of an agent with other hyper-parameters."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
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
from .sweep import sweep

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
    horizon: float = 10_000,
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
            call with the same arguments resumes; with more trials it continues the search; with
            others it begins another study in the same file. None leaves no files.
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
    identity = [player.label or player.name, list(envs), instances, horizon, runs, seed, space]
    study = _study(folder, f"{player.name} {sha256(repr(identity).encode()).hexdigest()[:16]}")

    with listener_of(progress, callback) as listener:

        def score(players: Mapping[str, Player], runs: int, seed: int) -> dict[str, float]:
            agents: dict[str, Any] = {"Random": "Random", **players}
            results = sweep(
                envs,
                agents,
                horizon,
                runs,
                seed=seed,
                instances=instances,
                checkpoints=[horizon],
                n_jobs=n_jobs,
                callback=listener,
            )
            return _scores(results.frame)

        distributions = {key: _distribution(choice) for key, choice in space.items()}
        while (done := len(_finished(study))) < trials:
            # A sampler for each batch: a resumed study proposes what an uninterrupted one does.
            study.sampler = optuna.samplers.TPESampler(seed=seed + done, constant_liar=True)
            numbers = range(done, min(done + BATCH, trials))
            batch = {f"trial {number}": study.ask(distributions) for number in numbers}
            _play(study, batch, player, lambda players, run: score(players, 1, seed + run), runs)
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


def _distribution(choice: Range | Sequence[Any]) -> Any:
    """The values of a hyper-parameter, for Optuna."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if not isinstance(choice, Range):
        return CategoricalDistribution(choice)
    kind: Any = IntDistribution if choice.whole else FloatDistribution
    return kind(choice.low, choice.high, log=choice.log)


def _study(folder: Path | None, name: str) -> Study:
    """The study of a name in a folder, or a new one; trials that were interrupted are given up."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = None
    if folder is not None:
        make_folder(folder)
        storage = f"sqlite:///{(folder / STUDY).resolve()}"
    study = optuna.create_study(
        storage=storage,
        study_name=name,
        pruner=optuna.pruners.MedianPruner(),
        load_if_exists=True,
    )
    for trial in study.get_trials(states=[optuna.trial.TrialState.RUNNING]):
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
    return study


def _finished(study: Study) -> list[Any]:
    """The trials that are complete or pruned."""
    return [trial for trial in study.trials if trial.state.name in ("COMPLETE", "PRUNED")]


def _play(study: Study, trials: Mapping[str, Trial], player: Player, score: Any, runs: int) -> None:
    """Play a batch of trials run by run, without those that Optuna has pruned. The study receives
    the scores at the end.

    Args:
        study: of the trials.
        trials: by label.
        player: the agent.
        score: a function of players by label and the number of a run.
        runs: of each trial.
    """
    from optuna.trial import TrialState

    players = {label: player.but(**trial.params) for label, trial in trials.items()}
    scores: dict[str, list[float]] = {label: [] for label in trials}
    for run in range(runs):
        for label, value in score(players, run).items():
            scores[label].append(value)
            trials[label].report(float(np.mean(scores[label])), run)
        if run < runs - 1:
            players = {
                label: player
                for label, player in players.items()
                if not trials[label].should_prune()
            }
        if not players:
            break
    for label, trial in trials.items():
        if label in players:
            study.tell(trial, float(np.mean(scores[label])))
        else:
            study.tell(trial, state=TrialState.PRUNED)


def _scores(frame: polars.DataFrame) -> dict[str, float]:
    """The regret of each agent divided by that of random lists: the geometric mean over
    environments and instances.
    """
    regret, agent, place = polars.col("regret"), polars.col("agent"), ("env", "instance")
    means = frame.group_by(*place, "agent", maintain_order=True).agg(regret.mean())
    random = regret.filter(agent == "Random").first().over(place)
    shares = means.with_columns(share=(regret / random).clip(1e-9)).filter(agent != "Random")
    score = polars.col("share").log().mean().exp()
    return dict(shares.group_by("agent", maintain_order=True).agg(score).iter_rows())
