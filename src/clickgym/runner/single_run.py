"""`clickgym.run`: what is passed is made and checked, and then played."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike

from ..agents.agent import BaseAgent
from ..core.checks import check_horizon, check_seed
from ..core.kernels import compilation_note
from ..envs.any_env import own_step_of
from ..envs.base_env import name_of
from ..envs.meter import checkpoint_steps
from ..envs.result import Result
from .make import AgentLike, EnvLike, make_agent, make_env
from .play.metrics import Metrics
from .play.play_run import Engine, check_episode, engine_of, play, warn_of_features


def run(
    agent: BaseAgent | AgentLike,
    env: gym.Env | EnvLike,
    horizon: int,
    *,
    seed: int | None = None,
    checkpoints: ArrayLike | None = None,
    metrics: Sequence[str] = (),
    engine: Engine = "auto",
) -> Result:
    """Let an agent play ``horizon`` sessions in an environment, and measure regret, reward and
    clicks.

    Args:
        agent: a name or class as in `make_agent`, such as ``"TopRank"``, of which an agent is made
            with ``seed``; or an agent, which continues from its present state and keeps the new one
            (a second run is called ``"TopRank, continued"``).
        env: what `sweep` takes, such as ``"PBMRank-v0"`` or a click model; or an environment, which
            is reset first. It may come from another package, if actions are ranked lists
            (`RankedList` or ``MultiDiscrete([L] * K)``) and observations are the clicks or a
            mapping with ``clicks``. Its regret is known if ``info`` has ``regret``, or
            ``expected_reward`` and ``optimal_reward``.
        horizon: T, the number of sessions; ``1e6`` is accepted.
        seed: the seed of the users (an agent object has its own). With None the environment goes on
            with its generator. To repeat a run of a sweep, pass its ``seed``.
        checkpoints: the steps at which totals are kept, in ``1..T``; by default about 150, dense at
            the start. The last is always T.
        engine: ``"compiled"``, ``"python"`` (one ``env.step`` at a time), or ``"auto"``, the
            compiled engine if possible. Both give the same lists, clicks and regret, bit for bit.
            A `Learner` takes only ``"auto"``.
        metrics: names of further metrics, keys of `clickgym.runner.METRICS`. Those that need one
            best or production list are refused if candidates or states change.

    Returns:
        The measured run. ``result.engine`` says which engine ran.

    Raises:
        ValueError: a bad horizon, checkpoint or engine; ``engine="compiled"`` cannot play this
            pair; a query ends before the horizon; and as `clickgym.make_agent`.
        AgentError: the agent proposed a bad list, or failed; the message names the step and the
            cause.
        SessionError: the environment failed, or lists were better than its best list; the message
            names it, the step and the cause.

    Warns:
        UserWarning: regret is unknown, with the reason.

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
        env = env if isinstance(env, gym.Env) else make_env(env)
        if not isinstance(agent, BaseAgent):
            agent = make_agent(agent, env, horizon=horizon, seed=seed)
        played_by = engine_of(agent, env, engine)
        check_episode(env, horizon)
        warn_of_features(agent, env)
        result = play(agent, env, played_by, steps, measured, seed)
    if np.isnan(result.regret[-1]):
        cause = "info has neither regret, nor expected_reward and optimal_reward"
        if own_step_of(env) is not None:
            cause = "a wrapper changes the reward and does not put its own regret into info"
        warnings.warn(f"the regret in {name_of(env)} is unknown (nan): {cause}", stacklevel=2)
    return result
