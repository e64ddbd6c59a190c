"""Replay: estimate from a logged contextual data set what a learning agent would have earned.

An agent is taken through the log, session by session, and ranks what was there to be shown. A log
tells nothing of what it does not hold, so a session counts only as far as the log shows what the
agent would have shown: it is accepted if the agent ranks as the log did, and only then the agent
learns from it. The accepted sessions have the law of as many sessions online: the agent goes
through the same states, and the mean of their clicks is an unbiased estimate of what it earns in
its first sessions (Li, Chu, Langford and Wang, WSDM 2011).

This assumes that users and candidates of the sessions are drawn independently, and that what stands
below a result does not influence its click, as in every click model of this package.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clickgym import AgentError
from clickgym.agents import Agent
from clickgym.core.checks import check_flag, check_kind, check_seed
from clickgym.envs import check_ranking

from .log import ClickLog
from .record import RANKS


@dataclass(frozen=True)
class Replay:
    """The estimate of a replay.

    Attributes:
        n_sessions: of the log.
        rewards: clicks in each accepted session, in their order: the agent's learning curve.
        value, standard_error: mean clicks per accepted session; NaN if there are none.
        on_policy: clicks per session that were logged, at as many positions as the agent fills.
    """

    n_sessions: int
    rewards: NDArray[np.int64]
    value: float
    standard_error: float
    on_policy: float


def replay(agent: Agent, log: ClickLog, *, learn: bool = True, seed: int = 0) -> Replay:
    """Let an agent rank the sessions of a log, and estimate its reward without bias.

    Args:
        agent: any `Agent`, in its present state. It chooses among the K items of each session,
            which must have a context, and sees them in random order. Build it with ``n_items`` = K,
            as many positions or fewer, and ``n_features`` as in the log. An
            agent of your own has the attribute ``n_positions`` if it ranks fewer than all.
        log: a log of lists in random order, as `record` makes them with `Random`. So all its list
            propensities are the same.
        learn: whether the agent learns; False evaluates the agent as it is, for example after
            training elsewhere.
        seed: of the order in which items are presented.

    Returns:
        The estimate, and the agent's clicks.

    Raises:
        ValueError: on a log that cannot be replayed, or sizes that do not fit.
        AgentError: the agent proposed a bad list.

    Example:
        >>> import gymnasium as gym, clickgym, clickgym_logs
        >>> instance = "linear:n_items=4,n_positions=4,n_features=5,seed=1"
        >>> env = gym.make("ContextualUBMRank-v0", instance=instance)
        >>> agent = clickgym.make_agent("Random", env, seed=0)
        >>> log = clickgym_logs.record(agent, env, 2000, seed=0)
        >>> result = replay(clickgym.agents.C2UCB(4, 2, n_features=5, seed=0), log)
        >>> 0.05 < len(result.rewards) / len(log) < 0.12  # by chance one in 4 * 3 = 12 lists
        True
    """
    rng, learn = np.random.default_rng(check_seed(seed)), check_flag("learn", learn)
    check_kind("agent", agent, Agent, RANKS)
    check_kind("log", log, ClickLog, "a ClickLog")
    n_items = getattr(agent, "n_items", log.n_positions)
    n_positions = getattr(agent, "n_positions", n_items)
    context = _checked_context(log, n_items)
    accepted = []
    sessions = zip(context, log.clicks[:, :n_positions], strict=True)
    for session, (features, clicks) in enumerate(sessions):
        # In another order, or the agent might learn from the place where the log showed an item.
        order = rng.permutation(n_items)
        observation = {"clicks": np.zeros(n_positions, np.int8), "features": features[order]}
        ranking = agent.rank(observation)
        try:
            check_ranking(ranking, n_items, n_positions)
        except (TypeError, ValueError) as error:
            name = type(agent).__name__
            raise AgentError(f"{name}, session {session + 1}: {error}") from None
        logged = np.argsort(order)[:n_positions]
        if np.array_equal(ranking, logged):
            accepted.append(int(clicks.sum()))
            if learn:
                agent.update(observation, ranking, clicks, float(clicks.sum()))
    rewards = np.array(accepted, np.int64)
    on_policy = float(log.clicks[:, :n_positions].sum(axis=1).mean())
    value = float(rewards.mean()) if len(rewards) else np.nan
    spread = float(rewards.std(ddof=1) / np.sqrt(len(rewards))) if len(rewards) > 1 else np.nan
    return Replay(len(log), rewards, value, spread, on_policy)


def _checked_context(log: ClickLog, n_items: int) -> NDArray[np.float64]:
    """The context of a log; other lists than those of n items in random order are refused."""
    if log.context is None:
        raise ValueError("the log has no context: an agent could not observe the items")
    if n_items != log.n_positions or (log.items < 0).any():
        raise ValueError(
            f"the agent ranks {n_items} items; expected logged lists of so many, not up to "
            f"{log.n_positions}"
        )
    values, most = log.list_propensities, 1 / math.factorial(n_items)
    if values is None or np.ptp(values) > 1e-9 * most or values.max(initial=0) > most * (1 + 1e-9):
        known = "unknown" if values is None else f"{values.min():g} to {values.max():g}"
        raise ValueError(
            f"the list propensities are {known}; expected the same for all sessions, at most "
            f"1/{n_items}! = {most:g}, for lists must be in random order"
        )
    return log.context
