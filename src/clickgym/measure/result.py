"""The class `Result`, which holds the measurements of one run, and the function that makes table
rows from results.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..core.text import counted

if TYPE_CHECKING:
    import polars

    from ..envs.simulation.user_model import UserModel

RESET_IS_NO_SESSION = (
    "with AutoresetMode.NEXT_STEP, the step after the end of an episode only resets the stream and "
    "shows no list; make the vector environment with AutoresetMode.SAME_STEP, or loop while "
    "envs.meter.step is too small"
)
"""The reason why a loop on a vector environment may have fewer sessions than it has steps."""


def same_users_message(first: int, second: int, n_streams: int) -> str:
    """Return the message about two seeds that lie so close together that streams of Gymnasium's
    vector environments have the same users.

    Args:
        first, second: the two seeds.
        n_streams: the number of streams of the run with the seed ``first``.
    """
    gap = max(n_streams, 1000)
    return (
        f"streams of the runs with the seeds {first} and {second} have the same users, because "
        "Gymnasium gives the streams of a run the seeds seed, seed + 1, ...; choose seeds that lie "
        f"further apart, such as 0, {gap} and {2 * gap}"
    )


def warn_of_negative_regret(env: str, regret: float) -> None:
    """Warn, in the program that called the caller, if an environment from another package reported
    a negative total regret.
    """
    if regret < -1e-6:
        warnings.warn(
            f"{env}: the total regret is negative, {regret:,.1f}; info['regret'] should be the "
            "best list's expected reward minus the expected reward of the list shown, which is at "
            "least 0",
            stacklevel=3,
        )


MIN_USERS = 10
"""The least number of users with memory on each of several parallel streams, on average: every
stream begins with a new user, so with fewer of them, users are in their first states too often.
"""


def few_users_message(agent: str, n_users: float, n_streams: int, sessions: int) -> str:
    """Return the warning for a run with fewer than `MIN_USERS` users on each stream.

    Args:
        agent: the name of the agent or program that chose the lists.
        n_users: the expected number of users on each stream.
        n_streams: the number of streams, B.
        sessions: the number of sessions of the run.
    """
    return (
        f"{agent} has only about {n_users:.1f} users on each of {n_streams} streams in "
        f"{sessions:,} sessions; for at least {MIN_USERS}, use a horizon of "
        f"{round(sessions / n_users * MIN_USERS):,}, or fewer streams (n_envs)"
    )


def users_per_stream(
    model: UserModel | None, sessions: int, n_streams: int, limit: int | None = None
) -> float | None:
    """Return the expected number of users on each of several parallel streams; None if there is
    only one stream, or users have no memory.

    Args:
        model: the users; None in environments from other packages.
        sessions: the number of sessions on all streams together.
        n_streams: the number of streams, B.
        limit: the number of sessions after which an episode ends, even if its user would stay; by
            default, there is none.
    """
    stay = None if model is None else model.knowledge("mean_sessions")
    if model is None or stay is None or n_streams == 1:
        return None
    if limit is not None:
        has_fixed_stay = model.n_sessions is not None
        stay = min(stay, limit) if has_fixed_stay else stay * (1.0 - model.discount**limit)
    return float(sessions / n_streams / stay)


RUN_COLUMNS = {
    "env": str,
    "instance": str,
    "query": int,
    "agent": str,
    "sweep_seed": int,
    "run": int,
    "seed": int,
    "last_seed": int,
    "trained": int,
    "unrecorded": int,
    "reseeded": int,
    "users_per_stream": float,
}
"""The columns of result tables that identify a run. A value that is unknown or does not apply is
null.
"""
TOTALS = {"step": int, "regret": float, "reward": float, "clicks": int}
"""The columns of result tables with the totals at a checkpoint; the columns of additional metrics
follow.
"""
HOW_PLAYED = {"engine": str, "seconds": float}
"""The columns of result tables whose values may differ when a run is repeated."""


OWN_LOOP = "own loop"
"""The value of ``engine`` if the user's own program stepped the environment."""


@dataclass(frozen=True, eq=False)
class Result:
    """The measurements of one run at its checkpoints.

    Attributes:
        env, instance, agent: the names of the environment (with its arguments, such as
            ``"PBMRank-v0:reward=any_click"``), of the instance and of the agent.
        seed: the seed of the users, and also of the agent if `run` created the agent from a name;
            None if there was no seed, or if `sweep` found that the environment ignores seeds; the
            first stream's seed if you gave a vector environment a list. To repeat a run of `run`
            or `sweep`, pass this seed to `run`.
        steps: ``(n,)`` the checkpoints, as numbers of sessions.
        regret: ``(n,)`` cumulative expected regret of the lists shown; nan if an environment from
            another package does not report regret, or if a wrapper changes the reward without
            putting its own ``regret`` into ``info``.
        reward: ``(n,)`` cumulative realised reward; nan if `RecordVectorRegret` measured the regret
            of streams whose rewards a wrapper changed.
        clicks: ``(n,)`` cumulative number of clicks.
        metrics: ``(n,)`` the values of additional metrics, keyed by name; cumulative, except for
            metrics on held-out queries.
        seconds: the wall time of the sessions in seconds, without the compilation of kernels.
        engine: ``"compiled"``, ``"python"``, the name of the library that ran the loop, ``"own
            loop"`` if your own program ran the loop, or ``"frozen policy"`` for a `FrozenPolicy`.
        query: the number of the run's query, if the users have several queries; None if they have
            only one, or if the run covers several queries.
        trained: the number of sessions from which the agent had learned before the first measured
            session, or before a `FrozenPolicy` was frozen, as you reported it; None if you did not
            report it.
        unrecorded: the number of sessions before the last measured session that the environment
            simulated but nothing measured; None if your own loop stepped an environment that does
            not tell: one from another package, or one in another process.
        reseeded: the number of times that a seed was used again, which brings the same users back.
        last_seed: the seed of the last stream, if your own loop stepped a vector environment of
            Gymnasium, which gives its streams the seeds ``seed``, ``seed + 1``, ...; otherwise
            None.
        users_per_stream: the expected number of users on each of several parallel streams, if users
            have a memory; otherwise None.

    Example:
        >>> import clickgym
        >>> result = clickgym.run("CascadeTS", "PBMRank-v0", 100, seed=0)
        >>> result.agent, result.env, result.seed, int(result.steps[-1])
        ('CascadeTS', 'PBMRank-v0', 0, 100)
        >>> result.steps.shape == result.regret.shape == result.clicks.shape
        True
    """

    env: str
    instance: str
    agent: str
    seed: int | None
    steps: NDArray[np.int64]
    regret: NDArray[np.float64]
    reward: NDArray[np.float64]
    clicks: NDArray[np.int64]
    metrics: dict[str, NDArray[np.float64]]
    seconds: float
    engine: str
    query: int | None = None
    trained: int | None = None
    unrecorded: int | None = 0
    reseeded: int = 0
    last_seed: int | None = None
    users_per_stream: float | None = None

    def __repr__(self) -> str:
        regret, reward = self.regret[-1], self.reward[-1]
        total = f"reward={reward:,.1f}" if np.isnan(regret) else f"regret={regret:z,.1f}"
        notes = [
            f"after {counted(self.trained, 'session')} of training" if self.trained else "",
            f"{counted(self.unrecorded, 'session')} not recorded" if self.unrecorded else "",
            f"a seed was used again {counted(self.reseeded, 'time')}" if self.reseeded else "",
        ]
        return (
            f"<Result of {self.agent} in {self.env}, {self.instance}: "
            f"sessions={self.steps[-1]:,}, {total}, engine={self.engine}, "
            f"seconds={self.seconds:.3g}, seed={self.seed}{''.join(f', {n}' for n in notes if n)}>"
        )

    def to_frame(self) -> polars.DataFrame:
        """Return a data frame with one row per checkpoint, and with the columns of
        `clickgym.Results.rows`.
        """
        return rows_of_runs([(None, 0, self)])


def rows_of_runs(runs: Sequence[tuple[int | None, int, Result]]) -> polars.DataFrame:
    """Return a data frame with one row for each run and checkpoint.

    Args:
        runs: at least one triple of a sweep's seed (None without a sweep), the run's number in the
            sweep, and the run's result; all results have the same checkpoints and metrics.
    """
    import polars  # only here, because importing polars is slow

    records = [vars(result) | {"sweep_seed": seed, "run": number} for seed, number, result in runs]
    for record in records:
        for name in ("seed", "last_seed"):
            if (record[name] or 0) >= 2**63:  # too large for the column's 64-bit integers
                record[name] = None
    facts = [[record[name] for name in (*RUN_COLUMNS, *HOW_PLAYED)] for record in records]
    totals = [
        [result.regret, result.reward, result.clicks, *result.metrics.values()]
        for *_, result in runs
    ]
    values_at_checkpoints = np.array(totals, np.float64).swapaxes(0, 1)
    steps, metrics = runs[0][-1].steps, [*runs[0][-1].metrics]
    facts_table = polars.DataFrame(facts, {**RUN_COLUMNS, **HOW_PLAYED}, orient="row")
    columns = zip(["regret", "reward", "clicks", *metrics], values_at_checkpoints, strict=True)
    return (
        facts_table[np.repeat(np.arange(len(runs)), len(steps))]
        .with_columns(polars.Series("step", np.tile(steps, len(runs)), polars.Int64))
        .with_columns(polars.Series(name, values.reshape(-1)) for name, values in columns)
        .with_columns(
            polars.col("regret", "reward", *metrics).fill_nan(None),
            polars.col("clicks").cast(polars.Int64),
        )
        .select(*RUN_COLUMNS, *TOTALS, *metrics, *HOW_PLAYED)
    )
