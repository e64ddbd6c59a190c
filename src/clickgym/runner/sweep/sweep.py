"""`sweep`, which runs every agent in every environment several times: in parallel, resumable, and
with all results in one table.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from numpy.typing import ArrayLike

from ...core.checks import check_count, check_horizon, check_path, is_integer
from ...core.messages import value_error
from ...measure.meter import checkpoint_steps
from ...measure.result import warn_of_negative_regret
from ..make.agents import AgentLike
from ..make.environments import EnvLike
from ..make.labels import label_objects
from ..play.additional_metrics import AdditionalMetrics
from ..play.run import Engine
from ..results import Results
from ..results_folder import FinishedRuns, open_folder, rows_of_sweep
from .jobs import play_missing
from .plan import config_of, make_plans
from .progress import print_resumed, resumable


def sweep(
    envs: Iterable[EnvLike] | Mapping[str, EnvLike],
    agents: Iterable[AgentLike] | Mapping[str, AgentLike],
    horizon: float = 10_000,
    runs: int = 10,
    *,
    instances: Sequence[Any] | Literal["shipped"] | None = None,
    metrics: Sequence[str] | Mapping[str, str] = (),
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    n_jobs: int = -1,
    checkpoints: ArrayLike | None = None,
    engine: Engine = "auto",
    progress: bool = True,
    overwrite: bool = False,
) -> Results:
    """Run every agent in every environment several times, and return the results.

    All agents have the same users: the seed of a run depends only on ``seed``, the instance and the
    run's number. Results do not depend on the order of runs, on ``n_jobs`` or on the engine. To
    repeat a single run, pass the ``seed`` in its rows to `clickgym.run`. Each run gets its own
    copies of the arguments of its agent and its environment, except of a trained model in
    `FrozenPolicy`; a warning names arguments that cannot be copied.

    If you pass ``out``, each run is saved as soon as it is finished (short compiled runs are saved
    together, about every 20,000 sessions). A folder contains one sweep. If you repeat a call, only
    the missing runs are played. If you add agents, environments, instances or runs, the new runs
    are added to the folder, and only the results for this call are returned. An error is raised if
    the seed, the horizon, the metrics or the versions of NumPy, numba or RL libraries differ, or if
    a label no longer stands for the same thing, for example because you edited your class or a
    module that the class imports. Only finished runs count, so you can correct an agent that failed
    in its first run, and repeat the call. clickgym cannot compare the code of lambdas, or of
    classes defined in a notebook, so these require a new folder for each sweep.

    Args:
        envs: a list of environments: ids such as ``"PBMRank-v0"``,
            ``"PBMRank-v0:reward=any_click"`` or ``"my_module:MyRank-v0"``; ``(id, arguments)``;
            click models; functions that return a new environment, such as ``lambda:
            MyWrapper(gym.make("PBMRank-v0"))``; or a mapping from labels to these. An environment
            without a name, such as a click model, needs a label.
        agents: a list of agents: names such as ``"BatchRank"``,
            ``"CascadeKLUCB:feedback=first_click"`` or ``"my_module:MyAgent"``; classes or ``(class,
            arguments)``; or a mapping from labels to these. An agent without a name, such as a
            class with an array among its arguments, needs a label.
        horizon: T, the number of sessions in each run; floats such as ``1e6`` are accepted.
        runs: the number of runs for each pair of an agent and an environment.
        instances: names, files or `Instance` objects; every environment is run with each instance.
            ``"LABEL=FILE"`` chooses the name of a file's users in results. ``"shipped"``, alone or
            in the list, stands for all real queries in the package. By default, each id has its own
            default instance, which is the same query for most ids.
        metrics: the names of additional metrics: of `clickgym.runner.METRICS`, or
            ``"my_module:my_metric"`` for your own `clickgym.runner.Metric`, or
            ``"LABEL=my_module:my_metric"`` to choose the name of its column; or a mapping from
            labels to names. By default, none.
        seed: the seed of the whole sweep.
        out: the results folder, created if missing; by default, nothing is saved.
        n_jobs: the number of workers; by default, -1, which means one worker per processor.
            Compiled runs are played in threads, other runs in processes. To choose another joblib
            backend, put a ``joblib.parallel_config`` around the call.
        checkpoints: the numbers of sessions, from 1 to T, after which totals are recorded; by
            default, about 150 numbers, densest at the start.
        engine: ``"compiled"``, ``"python"``, or ``"auto"``, which uses the compiled engine if
            possible.
        progress: whether the progress of the sweep is shown on stderr: as a bar in a terminal, and
            elsewhere as a line after ten seconds and then one line a minute. The time left is
            shown, too, once each agent has finished a run in each environment.
        overwrite: whether the runs that are already in the folder are deleted first.

    Returns:
        The results. If you pass ``out``, the folder then contains ``results.parquet``,
        ``summary.csv``, ``regret.png``, ``regret.svg``, ``config.json`` and the folder ``runs``.

    Raises:
        ValueError, TypeError: an argument is invalid, which is checked before the first run; or
            the folder contains another sweep or other files.
        UnsuitedError: some agents do not suit the environments; the message names all of them.
        AgentError, SessionError: an agent or an environment failed. Runs that were already saved
            are kept.
        WorkerError, OSError: a worker process died, or a file cannot be written. Runs that were
            already saved are kept.

    Warns:
        UserWarning: an environment from another package ignores the seed of ``reset``, or reports
            a negative total regret.

    Example:
        >>> import clickgym
        >>> envs, agents = ["PBMRank-v0"], ["Random", "TopRank"]
        >>> results = clickgym.sweep(envs, agents, 1000, 2, checkpoints=[500])
        >>> results
        <Results: 2 agents, 1 environment, 1 instance, 2 runs, 1,000 sessions>
        >>> results.frame.shape
        (8, 16)
    """
    # The path is made absolute, because an agent may change the working folder.
    folder = None if out is None else check_path("out", out).absolute()
    horizon, runs = check_horizon(horizon), check_count("runs", runs)
    seed = check_count("seed", seed, 0, 2**63 - 1)  # a column of the results has 64 bits
    metrics = AdditionalMetrics(metrics).specs
    steps = checkpoint_steps(horizon, checkpoints).tolist()
    if n_jobs == 0 or not (n_jobs is None or is_integer(n_jobs)):
        raise value_error("n_jobs", n_jobs, "a number of workers, or -1 for all processors")
    envs, agents = label_objects("environment", envs), label_objects("agent", agents)
    plans = make_plans(envs, agents, instances, horizon, runs, metrics, engine)
    config = config_of(
        plans, envs, agents, horizon=horizon, checkpoints=steps, metrics=metrics, seed=seed
    )
    folder_config, finished_runs = config, FinishedRuns()
    if folder is not None:
        folder_config, finished_runs = open_folder(folder, config, out, overwrite=overwrite)
    keys = [*config.run_keys()]

    def count_finished() -> int:
        return sum(key in finished_runs for key in keys)

    if progress and (n_finished := count_finished()):
        print_resumed(out, f"{n_finished} of {len(keys)} runs")
    with resumable(out, count_finished, len(keys), "runs"):
        play_missing(plans, config, finished_runs, folder, n_jobs, progress=progress)
        results = Results.of_rows(rows_of_sweep(finished_runs, config), [config])
        if folder is not None:
            whole = results  # the report shows all runs in the folder
            if folder_config != config:
                rows = rows_of_sweep(finished_runs, folder_config)
                whole = Results.of_rows(rows, [folder_config])
            if not whole.are_in(folder):
                whole.write(folder)
    for env in dict.fromkeys(plan.cell.env for plan in plans if not plan.is_of_clickgym):
        totals = [run.regret[-1] for key, run in finished_runs.items() if key[0] == env]
        warn_of_negative_regret(env, min(totals))
    return results
