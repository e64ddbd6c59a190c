"""Run of one agent in one environment, and its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import check_count, integers
from ...envs.click_env import name_of
from ...envs.meter import CLICKS, REGRET, REWARD, Meter
from .compiled import play_compiled
from .faults import first_observation
from .learner import play_learner
from .metrics import Metrics
from .pair import Run
from .python import play_python

if TYPE_CHECKING:
    import polars

LOOPS: dict[str, Callable[[Run], float]] = {"compiled": play_compiled, "python": play_python}
"""The loop of each engine; any other engine is the library of a learner."""


@dataclass(frozen=True)
class Result:
    """The measurements of one run at its checkpoints.

    Attributes:
        env, instance, agent: their names.
        seed: of ``env.reset``, and of an agent made by its name: `run` with it repeats the run.
        steps: ``(n,)`` the checkpoints, in sessions.
        regret: ``(n,)`` cumulative expected regret of the lists shown; nan if an environment of
            another package does not report regret in every session, or a wrapper changes the reward
            and puts no ``regret`` of its own into ``info``.
        reward: ``(n,)`` cumulative realised reward.
        clicks: ``(n,)`` cumulative number of clicks.
        metrics: ``(n,)`` further metrics by name: cumulative sums, except ``window_regret``.
        seconds: wall time of the sessions, without the compilation of kernels.
        engine: ``"compiled"``, ``"python"``, or the name of the library that ran the loop.
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

        n, run = len(self.steps), check_count("run", run, 0)
        # null where a seed does not fit, which no sweep has
        seeds = polars.Series([self.seed] * n, dtype=polars.Int64, strict=False)
        names = {"env": [self.env] * n, "instance": [self.instance] * n, "agent": [self.agent] * n}
        measured = {"regret": self.regret, "reward": self.reward, "clicks": self.clicks}
        numbers = {"run": [run] * n, "seed": seeds, "step": self.steps}
        frame = polars.DataFrame(names | numbers | measured | self.metrics)
        return frame.with_columns(polars.col("regret", *self.metrics).fill_nan(None))


def play(
    agent: Any,
    env: gym.Env,
    engine: str,
    steps: NDArray[np.int64],
    metrics: Metrics | None = None,
    seed: int | None = None,
    on_chunk: Callable[[int], object] | None = None,
) -> Result:
    """Let an agent play in an environment, and measure it; all was checked before.

    Args:
        agent, env: who plays where.
        engine: as `pair.engine_of` returns it.
        steps: the checkpoints, the last of which is the horizon.
        metrics: what is measured besides; of this run alone.
        seed: of ``env.reset``.
        on_chunk: as in `Run`.
    """
    metrics = metrics or Metrics()
    core: Any = env.unwrapped
    metrics.check_env(core)  # refused before anything is drawn
    metrics.check_agent(agent)
    meter = Meter(steps, len(metrics.summed))
    observation = first_observation(agent, env, seed)
    run = Run(agent, env, observation, meter, metrics, on_chunk)
    seconds = LOOPS.get(engine, play_learner)(run)
    return Result(
        env=name_of(env),
        instance=getattr(core, "instance", "custom"),
        agent=type(agent).__name__,
        seed=seed,
        steps=steps,
        regret=meter.at_checkpoints[:, REGRET],
        reward=meter.at_checkpoints[:, REWARD],
        clicks=meter.at_checkpoints[:, CLICKS].astype(np.int64),
        metrics=metrics.columns(meter) if metrics.names else {},
        seconds=seconds,
        engine=engine,
    )


def checkpoint_steps(horizon: int, checkpoints: ArrayLike | None = None) -> NDArray[np.int64]:
    """The steps at which totals are kept: increasing, in ``1..horizon``, the last of them
    ``horizon``.

    Args:
        horizon: T.
        checkpoints: steps in any order; None takes 60 in geometric and 100 in arithmetic
            progression.

    Raises:
        ValueError: on a checkpoint that is not an integer in ``1..horizon``.
    """
    if checkpoints is None:
        steps = (
            np.concatenate([np.geomspace(1, horizon, 60), np.linspace(0, horizon, 101)[1:]])
            .round()
            .astype(np.int64)
        )
        steps = np.maximum(steps, 1)
    else:
        values = [checkpoints] if np.isscalar(checkpoints) else checkpoints
        steps = integers("checkpoints", values, (None,), 1, horizon + 1, empty=True, whole=True)
    return np.unique(np.append(steps, horizon))
