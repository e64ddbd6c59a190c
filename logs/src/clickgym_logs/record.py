"""Record the lists of an agent in an environment, and the clicks on them, as a click log."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from clickgym.agents import Agent
from clickgym.agents.baselines import Random
from clickgym.core.checks import AN_ENV, check_count, check_kind, check_seed
from clickgym.envs import ContextualModel
from clickgym.envs.guests import clicks_of
from clickgym.envs.registration import endless
from clickgym.runner.loop import check_list, session_error
from clickgym.runner.make import Place, place_of

from .log import ClickLog


def record(agent: Agent, env: gym.Env, sessions: int, *, seed: int | None = None) -> ClickLog:
    """Let an agent rank in an environment, and return its lists and clicks as a log.

    Args:
        agent: any `Agent`, in its present state; it learns while it ranks.
        env: an environment of this package, wrapped or not, or one of another origin, as in `run`.
            It is reset first.
        sessions: the number of sessions.
        seed: of ``env.reset``; the agent has its own.

    Returns:
        The log: the items labelled by their ids, the query by the environment's instance. In a
        contextual environment the context holds the features of the items shown, a query is a user,
        and users and items are labelled by their rows in the model. For `Random` the log holds the
        exact propensities, 1/L of every item at every position and (L - K)!/L! of every list, given
        the session's candidates; for other agents none.

    Raises:
        ValueError: on a number of sessions below 1, or an environment whose actions are no lists or
            observations no clicks.
        AgentError: the agent proposed a bad list, or failed; the message names the session and the
            fault.

    Example:
        >>> import gymnasium as gym, clickgym, clickgym_logs
        >>> env = gym.make("PBMRank-v0")
        >>> log = record(clickgym.make_agent("Random", env, seed=0), env, 20, seed=0)
        >>> log.items.shape, float(log.propensities[0, 0]), log.query_labels
        ((20, 5), 0.1, ('yandex-9982',))
    """
    sessions, seed = check_count("sessions", sessions), None if seed is None else check_seed(seed)
    check_kind("agent", agent, Agent, "an agent, as make_agent returns it")
    check_kind("env", env, gym.Env, AN_ENV)
    with endless(env) as stream:
        return _record(agent, stream, sessions, seed)


def _record(agent: Agent, env: gym.Env, sessions: int, seed: int | None) -> ClickLog:
    place = place_of(env)
    click_env, guest = place.core, place.is_guest
    contextual = not guest and isinstance(click_env.model, ContextualModel)
    n_items, n_positions, *_ = place.sizes
    n_features = click_env.model.n_features if contextual else 0
    items = np.empty((sessions, n_positions), np.int32)
    clicks = np.empty((sessions, n_positions), np.int8)
    queries = np.zeros(sessions, np.int32)
    context = np.empty((sessions * contextual, n_positions, n_features))
    observation, _ = env.reset(seed=seed)
    for session in range(sessions):
        try:
            ranking = agent.rank(observation)
            check_list(agent, ranking, n_items, n_positions, "session", session + 1)
            if contextual:
                task_round = click_env.task.round
                items[session], queries[session] = task_round.items[ranking], task_round.user[0]
                # behind them are values
                context[session] = task_round.features[ranking, :n_features]
            else:
                items[session] = ranking
            before, (observation, reward, terminated, truncated, _) = observation, env.step(ranking)
            # Of an environment of ours not the observation, which a wrapper may have changed.
            clicks[session] = clicks_of(observation) if guest else click_env._clicks
            agent.update(before, ranking, clicks[session], float(reward))
        except Exception as error:
            raise session_error(agent, env, f"session {session + 1}", error) from error
        if terminated or truncated:
            observation, _ = env.reset()
    facts = _facts(agent, place, items)
    if contextual:
        facts |= {
            "item_labels": tuple(map(str, range(len(click_env.model.items)))),
            "query_labels": tuple(map(str, range(len(click_env.task.pool.users)))),
            "context": context,
        }
    return ClickLog(items, clicks, queries, **facts)


def _facts(agent: Agent, place: Place, items: NDArray[np.int32]) -> dict[str, Any]:
    """What is known of recorded lists: labels and exact propensities."""
    n_items, n_positions, *_ = place.sizes
    query = place.instance or place.core.model.kind
    facts: dict[str, Any] = {
        "item_labels": tuple(map(str, range(n_items))),
        "query_labels": (query,),
    }
    if type(agent) is Random:
        facts["propensities"] = np.full(items.shape, 1 / n_items)
        facts["list_propensities"] = np.full(len(items), 1 / math.perm(n_items, n_positions))
    return facts
