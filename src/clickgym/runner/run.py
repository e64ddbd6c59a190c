"""Run of one agent in one environment, and its result."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..agents.agent import BaseAgent
from ..core.checks import check_count, check_horizon, check_seed, integers
from ..core.compiling import compilation_note
from ..envs.click_env import name_of
from ..envs.meter import Meter
from .delay import Delay, check_learns_late
from .engines import Engine, engine_of
from .labels import AgentLike, EnvLike
from .loop import OnChunk, play_compiled, play_python, start_of
from .make import make_agent, make_env
from .metrics import Metrics
from .warm_start import cautions, past_sessions

if TYPE_CHECKING:
    import polars


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
        from .results import Trial, rows_of  # data frames are slow to load
        from .store import Row
        from .summaries import TIMED

        trial = Trial(self.env, self.instance, self.agent, check_count("run", run, 0))
        return rows_of(
            [(trial, self.seed, Row.of(self))], self.steps.tolist(), list(self.metrics)
        ).drop(TIMED)


def run(
    agent: BaseAgent | AgentLike,
    env: gym.Env | EnvLike,
    horizon: int,
    *,
    seed: int | None = None,
    checkpoints: ArrayLike | None = None,
    metrics: Sequence[str] = (),
    delay: str | None = None,
    start: Any = None,
    engine: Engine = "auto",
) -> Result:
    """Let an agent rank for ``horizon`` sessions in an environment, and measure regret, reward and
    clicks.

    Args:
        agent: any `Agent` or `Learner`; it continues from its present state and keeps its new state
            afterwards. Or a name or class as in `make_agent`, such as ``"TopRank"``: then an agent
            is made with ``seed``.
        env: an environment, which is reset first; or what `sweep` takes, such as ``"PBMRank-v0"``
            or a click model: then one is made. An environment of another package must have ranked
            lists as actions (`RankedList`, or ``MultiDiscrete([L] * K)``), and the clicks, or a
            mapping with ``clicks``, as observation. Its regret is known if each ``info`` has
            ``regret``, or ``expected_reward`` and ``optimal_reward``.
        horizon: T, the number of sessions; ``1e6`` is accepted.
        seed: the seed of ``env.reset`` (an agent object has its own). None continues with the
            environment's generator. The column ``seed`` of a sweep has that of each of its runs.
        checkpoints: the steps at which totals are kept, in ``1..T``; None takes about 150, dense at
            the start and later at equal distances. The last is always T.
        delay: when the agent learns of clicks: None, at the end of each session; or
            ``"batch:B"``, ``"fixed:D"``, ``"geometric:m"``, as `clickgym.runner.delay.Delay`
            says, for agents with ``learns_from_any_list``.
        start: a click log from which an agent given by name learns before the first session, as
            `clickgym.make_agent` says of ``log``. Metrics start at session 1.
        engine: ``"compiled"``, ``"python"`` (one ``env.step`` at a time), or ``"auto"``, which
            takes the compiled engine if the pair allows it. Both engines give the same lists,
            clicks and regret, bit for bit. A `Learner` has its own loop, and takes only ``"auto"``.
        metrics: names of further metrics, keys of `clickgym.runner.metrics.METRICS`. Those that
            need a best or a production list are refused where candidates or states change from
            session to session.

    Returns:
        The measured run; ``result.engine`` says which engine ran.

    Raises:
        ValueError: on a bad horizon, checkpoint or engine, and if ``engine="compiled"`` cannot
            serve the pair; as `clickgym.make_agent`.
        AgentError: the agent proposed a bad list, or failed; the message names the step and the
            fault.
        SessionError: the environment failed; the message names it, the step and the fault.

    Warns:
        UserWarning: the log of ``start`` may mislead the agent.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> env = gym.make("PBMRank-v0")
        >>> agent = clickgym.agents.TopRank(10, 5, horizon=1000, seed=0)
        >>> result = clickgym.run(agent, env, 1000, seed=0)
        >>> int(result.steps[-1]), result.engine
        (1000, 'compiled')
        >>> named = clickgym.run("TopRank", "PBMRank-v0", 1000, seed=0)
        >>> bool(named.regret[-1] == result.regret[-1])
        True
    """
    horizon, seed = check_horizon(horizon), None if seed is None else check_seed(seed)
    steps, measured = checkpoint_steps(horizon, checkpoints), Metrics(metrics)
    with compilation_note():
        env = make_env(env)
        past = None
        if not isinstance(agent, BaseAgent):
            past = None if start is None else past_sessions(start, env)
            agent = make_agent(agent, env, horizon=horizon, seed=seed, log=past)
        elif start is not None:
            raise ValueError("start is for agents given by name; an object has its own state")
        played_by = engine_of(agent, env, engine)
        if delay is not None:
            Delay(delay, seed)  # refuses a bad one
            check_learns_late(agent, env)
        if past is not None:
            for caution in cautions([past.facts], {type(agent).__name__: type(agent)}, bool(delay)):
                warnings.warn(caution, stacklevel=2)
        return play(agent, env, played_by, steps, measured, seed, delay=delay)


def play(
    agent: Any,
    env: gym.Env,
    engine: str,
    steps: NDArray[np.int64],
    metrics: Metrics,
    seed: int | None,
    on_chunk: OnChunk | None = None,
    delay: str | None = None,
) -> Result:
    """Let an agent play in an environment, and measure it; arguments are checked, and otherwise
    those of `run`.

    Args:
        agent, env: who plays where.
        engine: as `engine_of` returns it.
        steps: the checkpoints, the last of which is the horizon.
        metrics, seed: as in `run`.
        on_chunk: called from time to time with the number of sessions since its last call; what it
            raises ends the run.
        delay: as in `run`.
    """
    late = None
    if delay is not None:
        late = Delay(delay, seed)
        check_learns_late(agent, env)
    core: Any = env.unwrapped
    meter = Meter(steps, len(metrics.summed))
    observation = start_of(agent, env, seed)
    if engine == "compiled":
        seconds = play_compiled(agent, core, meter, metrics, late, on_chunk)
    elif engine == "python":
        seconds = play_python(agent, env, meter, metrics, observation, late, on_chunk)
    else:
        from .learners.play import play_learner  # with torch, for those who need it

        seconds = play_learner(agent, core, meter, metrics, on_chunk)
    return Result(
        env=name_of(env),
        instance=getattr(core, "instance", "custom"),
        agent=type(agent).__name__,
        seed=seed,
        steps=steps,
        regret=meter.regret,
        reward=meter.reward,
        clicks=meter.clicks,
        metrics=metrics.columns(meter),
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
