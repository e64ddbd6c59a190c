"""The result of one run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_count
from ..core.forks import check_fork

if TYPE_CHECKING:
    import polars


@dataclass(frozen=True)
class Result:
    """The measurements of one run at its checkpoints.

    Attributes:
        env, instance, agent: their names; that of the environment with its arguments, as in
            ``"PBMRank-v0:reward=any_click"``.
        seed: of ``env.reset``, and of an agent made by its name: `run` with it repeats the run.
            None if it is unknown.
        steps: ``(n,)`` the checkpoints, in sessions.
        regret: ``(n,)`` cumulative expected regret of the lists shown; nan if an environment of
            another package does not report regret in every session, or a wrapper changes the reward
            and puts no ``regret`` of its own into ``info``.
        reward: ``(n,)`` cumulative realised reward.
        clicks: ``(n,)`` cumulative number of clicks.
        metrics: ``(n,)`` further metrics by name: cumulative sums, but for held-out queries.
        seconds: wall time of the sessions, without the compilation of kernels.
        engine: ``"compiled"``, ``"python"``, or the name of the library that ran the loop;
            ``"own loop"`` of your own program, ``"frozen policy"`` of a `FrozenPolicy`.
        query: the number of the query that was played, if the users have several; None if they have
            one, or several queries were played.
        trained: the sessions from which the agent had learned before the first one measured, as its
            user says; 0 if nothing was said.
        unrecorded: the sessions that the environment simulated before the last one measured, and
            that are not measured: before the record began, or inside other wrappers.
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
    trained: int = 0
    unrecorded: int = 0

    def __repr__(self) -> str:
        regret, reward = self.regret[-1], self.reward[-1]
        total = f"reward={reward:,.1f}" if np.isnan(regret) else f"regret={regret:z,.1f}"
        return (
            f"<Result of {self.agent} in {self.env}, {self.instance}: "
            f"sessions={self.steps[-1]:,}, {total}, engine={self.engine}, "
            f"seconds={self.seconds:.3g}, seed={self.seed}>"
        )

    def to_frame(self, run: int = 0) -> polars.DataFrame:
        """One row per checkpoint: env, instance, agent, run, seed, step, regret, reward, clicks,
        then further metrics.

        What is unknown is null.
        """
        import polars  # data frames are slow to load

        check_fork()
        n, run = len(self.steps), check_count("run", run, 0)
        # null where a seed does not fit, which no sweep has
        seeds = polars.Series([self.seed] * n, dtype=polars.Int64, strict=False)
        names = {"env": [self.env] * n, "instance": [self.instance] * n, "agent": [self.agent] * n}
        measured = {"regret": self.regret, "reward": self.reward, "clicks": self.clicks}
        numbers = {"run": [run] * n, "seed": seeds, "step": self.steps}
        frame = polars.DataFrame(names | numbers | measured | self.metrics)
        return frame.with_columns(polars.col("regret", *self.metrics).fill_nan(None))
