"""Recording of click logs: an agent ranks in an environment, and its lists and their clicks are
saved.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from ..agents import Agent
from ..core.checks import AN_ENV, check_count, check_kind
from ..envs.env_properties import sizes_of
from ..measure.session_reader import SessionReader
from ..runner.play.run import run
from .log import ClickLog

RANKING_AGENT = (
    "an agent that ranks session by session; RL algorithms have their own training loop, so "
    "train the model first and wrap it in clickgym.agents.FrozenPolicy"
)


def record(agent: Agent, env: gym.Env, sessions: int, *, seed: int | None = None) -> ClickLog:
    """Run an agent in an environment, and return the agent's lists and the clicks on these lists as
    a log.

    Args:
        agent: any `Agent`. The agent continues from its present state, and learns while it ranks.
        env: an environment whose items have no features: one of clickgym's environments, wrapped or
            not, or another package's environment that `clickgym.run` accepts. The environment is
            reset first.
        sessions: the number of sessions.
        seed: the seed for ``env.reset``; the agent has its own seed.

    Returns:
        The log. Item labels are the numbers of the items, and the query's label is the name of the
        environment's instance.

    Raises:
        ValueError: ``sessions`` is below 1; or the environment's items have features, its actions
            are not lists, or its observations are not clicks.
        AgentError: the agent returned an invalid list, or failed; the message names the step and
            the fault.

    Example:
        >>> import gymnasium as gym, clickgym, clickgym.logs
        >>> env = gym.make("PBMRank-v0")
        >>> log = record(clickgym.make_agent("Random", env, seed=0), env, 20, seed=0)
        >>> log.items.shape, log.query_labels
        ((20, 5), ('yandex-9982',))
    """
    check_count("sessions", sessions)
    check_kind("agent", agent, Agent, RANKING_AGENT)
    check_kind("env", env, gym.Env, AN_ENV)
    n_items, n_positions, n_features, _ = sizes_of(env)
    if n_features:
        raise ValueError(
            "this environment's items have features, which a click log cannot hold; use an "
            "environment whose items have no features"
        )
    core: Any = env.unwrapped
    recorder = _ListsAndClicks(env, sessions, n_positions)
    run(agent, recorder, sessions, seed=seed, engine="python")
    query: str = getattr(core, "instance", "custom") or core.model.kind
    return ClickLog(
        recorder.items,
        recorder.clicks,
        np.zeros(sessions, np.int32),
        tuple(map(str, range(n_items))),
        (query,),
    )


class _ListsAndClicks(gym.Wrapper[Any, Any, Any, Any]):
    """A wrapper that stores the list and the clicks of each session."""

    def __init__(self, env: gym.Env, sessions: int, n_positions: int) -> None:
        super().__init__(env)
        self.items = np.empty((sessions, n_positions), np.int32)
        self.clicks = np.empty((sessions, n_positions), np.int8)
        self.session, self._read_session = 0, SessionReader(env)

    def step(self, action: Any) -> Any:
        result = observation, reward, _, _, info = self.env.step(action)
        clicks, *_ = self._read_session(observation, reward, info)
        self.items[self.session], self.clicks[self.session] = action, clicks
        self.session += 1
        return result
