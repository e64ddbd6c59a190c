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
    """Let an agent rank for ``horizon`` sessions in an environment, and measure regret, reward and
    clicks.

    Args:
        agent: any `Agent` or `Learner`; it continues from its present state and keeps its new state
            afterwards. Its further runs are called ``"TopRank, continued"``. Or a name or class as
            in `make_agent`, such as ``"TopRank"``: then an agent is made with ``seed``.
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
        engine: ``"compiled"``, ``"python"`` (one ``env.step`` at a time), or ``"auto"``, which
            takes the compiled engine if the pair allows it. Both engines give the same lists,
            clicks and regret, bit for bit. A `Learner` takes only ``"auto"``.
        metrics: names of further metrics, keys of `clickgym.runner.METRICS`. If candidates or
            states change from session to session, metrics that need a best or a production list are
            an error.

    Returns:
        The measured run; ``result.engine`` says which engine ran. A warning says why, if its regret
        is unknown.

    Raises:
        ValueError: on a bad horizon, checkpoint or engine, if ``engine="compiled"`` cannot serve
            the pair, and if a query ends before the horizon; as `clickgym.make_agent`.
        AgentError: the agent proposed a bad list, or failed; the message names the step and the
            fault.
        SessionError: the environment failed, or lists were better than its best list; the message
            names it, the step and the fault.

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
            cause = "a wrapper changes the reward, and puts no regret of its own into info"
        warnings.warn(f"the regret in {name_of(env)} is unknown (nan): {cause}", stacklevel=2)
    return result
