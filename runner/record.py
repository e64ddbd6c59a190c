"""Recording: what an agent showed in an environment, and what was clicked, as a click log."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np

from ..agents import Agent
from ..agents.baselines import Random
from ..envs import ClickEnv, check_ranking
from ..envs.checks import check_count
from ..offline import ClickLog
from .loop import AgentError

__all__ = ["record"]


def record(agent: Agent, env: gym.Env, sessions: int, *, seed: int | None = None) -> ClickLog:
    """Let an agent rank through ``env.step``, and keep every list and its clicks.

    Args:
        agent: any `Agent`; it learns as it goes on, from the state it is in.
        env: an environment of this package, wrapped or not, whose items are the same in every session. It is reset first.
        sessions: how many.
        seed: of ``env.reset``; the agent has its own.

    Returns:
        The log: the items labelled by their ids, the query by the environment's instance. For `Random` it holds the exact
        propensities, 1/L of every item at every position and (L - K)!/L! of every list; for other agents none.

    Raises:
        ValueError: on a number of sessions below 1, or an environment without fixed items.
        AgentError: the agent proposed a bad list; the message names the session and the fault.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> env = gym.make("PBMRank-v0")
        >>> log = record(clickgym.make_agent("Random", env, seed=0), env, 20, seed=0)
        >>> log.items.shape, float(log.propensities[0, 0]), log.query_labels
        ((20, 5), 0.1, ('yandex-9982',))
    """
    check_count("sessions", sessions)
    click_env: Any = env.unwrapped
    if not isinstance(click_env, ClickEnv) or isinstance(click_env.observation_space, gym.spaces.Dict):
        raise ValueError(f"env is {env}; expected an environment of clickgym with the same items in every session")
    space: Any = click_env.action_space
    n_items, n_positions = space.n_items, space.n_positions
    items = np.empty((sessions, n_positions), np.int32)
    clicks = np.empty((sessions, n_positions), np.int8)
    observation, _ = env.reset(seed=seed)
    for session in range(sessions):
        ranking = agent.rank(observation)
        try:
            check_ranking(ranking, n_items, n_positions)
        except (TypeError, ValueError) as error:
            raise AgentError(f"{type(agent).__name__}, session {session + 1}: {error}") from None
        items[session] = ranking
        seen, (observation, reward, terminated, truncated, _) = observation, env.step(ranking)
        clicks[session] = observation
        agent.update(seen, ranking, observation, float(reward))
        if terminated or truncated:
            observation, _ = env.reset()
    uniform = type(agent) is Random
    return ClickLog(
        items,
        clicks,
        np.zeros(sessions, np.int32),
        tuple(map(str, range(n_items))),
        (click_env.instance or click_env.model.kind,),
        propensities=np.full(items.shape, 1 / n_items) if uniform else None,
        list_propensities=np.full(sessions, 1 / math.perm(n_items, n_positions)) if uniform else None,
    )
