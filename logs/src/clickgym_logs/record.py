"""Record the lists of an agent in an environment, and the clicks on them, as a click log."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np

from clickgym import run
from clickgym.agents import Agent, Random
from clickgym.core.checks import AN_ENV, check_count, check_kind
from clickgym.envs import ClickEnv
from clickgym.envs.any_env import checked_clicks, clicks_shown, sizes_of

from .log import ClickLog

RANKS = "an agent that ranks session by session; RL algorithms have a loop of their own"


def record(agent: Agent, env: gym.Env, sessions: int, *, seed: int | None = None) -> ClickLog:
    """Let an agent rank in an environment, and return its lists and clicks as a log.

    Args:
        agent: any `Agent`, in its present state; it learns while it ranks.
        env: an environment of this package, wrapped or not, or one of another origin, as in `run`.
            It is reset first.
        sessions: the number of sessions.
        seed: of ``env.reset``; the agent has its own.

    Returns:
        The log: the items labelled by their ids, the query by the environment's instance, the
        times by the sessions, from 0. In a
        contextual environment the context holds the features of the items shown, a query is a user,
        and users and items are labelled by their rows in the model. For `Random` the log holds the
        exact propensities, 1/L of every item at every position and (L - K)!/L! of every list, given
        the session's candidates; for other agents none.

    Raises:
        ValueError: on a number of sessions below 1, or an environment whose actions are no lists or
            observations no clicks.
        AgentError: the agent proposed a bad list, or failed; the message names the step and the
            fault.

    Example:
        >>> import gymnasium as gym, clickgym, clickgym_logs
        >>> env = gym.make("PBMRank-v0")
        >>> log = record(clickgym.make_agent("Random", env, seed=0), env, 20, seed=0)
        >>> log.items.shape, float(log.propensities[0, 0]), log.query_labels
        ((20, 5), 0.1, ('yandex-9982',))
    """
    check_count("sessions", sessions)
    check_kind("agent", agent, Agent, RANKS)
    check_kind("env", env, gym.Env, AN_ENV)
    n_items, n_positions, n_features, _ = sizes_of(env)
    core: Any = env.unwrapped
    users: Any = getattr(core, "model", None)
    contextual = "features" in getattr(users, "observes", ())
    recorder = _Recorder(env, sessions, n_positions, n_features if contextual else 0)
    run(agent, recorder, sessions, seed=seed, engine="python")
    query: str = getattr(core, "instance", "custom") or users.kind
    item_labels = _numbered(n_items)
    query_labels: tuple[str, ...] = (query,)
    facts: dict[str, Any] = {"times": np.arange(sessions)}
    if contextual:
        item_labels = _numbered(len(users.items))
        query_labels = _numbered(len(core.task.users.pool.users))
        facts["context"] = recorder.context
    if type(agent) is Random:
        facts["propensities"] = np.full(recorder.items.shape, 1 / n_items)
        facts["list_propensities"] = np.full(sessions, 1 / math.perm(n_items, n_positions))
    return ClickLog(
        recorder.items, recorder.clicks, recorder.queries, item_labels, query_labels, **facts
    )


def _numbered(size: int) -> tuple[str, ...]:
    return tuple(map(str, range(size)))


class _Recorder(gym.Wrapper[Any, Any, Any, Any]):
    """Keeps the list and the clicks of each session and, with features, its user and context."""

    def __init__(self, env: gym.Env, sessions: int, n_positions: int, n_features: int) -> None:
        super().__init__(env)
        self.items = np.empty((sessions, n_positions), np.int32)
        self.clicks = np.empty((sessions, n_positions), np.int8)
        self.queries = np.zeros(sessions, np.int32)
        self.context = np.empty((sessions * bool(n_features), n_positions, n_features))
        self.session = 0

    def step(self, action: Any) -> Any:
        session = self.session
        self.items[session] = action
        if len(self.context):
            state = self.unwrapped.state  # type: ignore[attr-defined]
            self.items[session] = state.items[0, action]
            self.queries[session] = state.user[0]
            self.context[session] = state.features[0, action]
        result = self.env.step(action)
        core, n_positions = self.unwrapped, self.clicks.shape[1]
        if isinstance(core, ClickEnv) and clicks_shown(self.observation_space) != n_positions:
            self.clicks[session] = core.last_session()[1]  # a wrapper shows none
        else:
            self.clicks[session] = checked_clicks(result[0], n_positions)
        self.session += 1
        return result
