"""Sizes, clicks and regret of any environment, those of other packages included."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium as gym
from gymnasium.spaces import Dict, Discrete, MultiDiscrete

from .base_env import BaseClickEnv
from .click_env import ClickEnv
from .users import Users


class Sizes(NamedTuple):
    """The sizes from which an agent is made."""

    n_items: int
    n_positions: int
    n_features: int
    """d, the number of features of a candidate; 0 if features are not observed."""
    n_states: int
    """S, the number of states of stateful users; 0 for other users."""


def sizes_of(env: gym.Env) -> Sizes:
    """Return the sizes of an environment, from its spaces; for a wrapped `ClickEnv`, from the
    unwrapped one.

    Raises:
        ValueError: actions are not ranked lists, or observations are not clicks; the message says
            what is expected.

    Example:
        >>> import clickgym
        >>> sizes_of(gym.make("PBMRank-v0"))
        Sizes(n_items=10, n_positions=5, n_features=0, n_states=0)
    """
    if isinstance(env.unwrapped, ClickEnv):
        env = env.unwrapped
    lists = env.action_space
    if not (
        isinstance(lists, MultiDiscrete)
        and lists.nvec.ndim == 1
        and set(lists.nvec) == {lists.nvec[0]}  # every position can show every item
        and not lists.start.any()
    ):
        raise ValueError(
            f"the action space of {env} is {lists}; expected an environment of clickgym, or "
            "another whose actions are ranked lists: RankedList(n_items, n_positions) of "
            "clickgym.envs or MultiDiscrete([n_items] * n_positions)"
        )
    n_items, n_positions = int(lists.nvec[0]), len(lists.nvec)
    if n_positions > n_items:
        raise ValueError(
            f"the action space of {env} is {lists}: lists of {n_positions} distinct items out of "
            f"{n_items}"
        )
    if not isinstance(env, ClickEnv):
        check_shows_clicks(env, n_positions)
    seen = env.observation_space if isinstance(env.observation_space, Dict) else {}
    features, state = seen.get("features"), seen.get("state")
    n_features = 0 if features is None or features.shape is None else features.shape[-1]
    return Sizes(
        n_items, n_positions, n_features, int(state.n) if isinstance(state, Discrete) else 0
    )


def check_shows_clicks(env: gym.Env, n_positions: int | None = None) -> None:
    """Check that the observations of an environment of another package are clicks.

    Raises:
        ValueError: they are not; the message says what is expected.
    """
    space: gym.Space[Any] = env.observation_space
    clicks = space.get("clicks", space) if isinstance(space, Dict) else space
    shape, dtype = clicks.shape or (), clicks.dtype
    if (
        dtype is None
        or dtype.kind not in "biu"
        or len(shape) != 1
        or shape[0] != (n_positions or shape[0])
    ):
        size = "n_positions" if n_positions is None else n_positions
        raise ValueError(
            f"the observation space of {env} is {space}; expected the clicks on the list: "
            f'MultiBinary({size}), integers of that shape, or a Dict that has them as "clicks"'
        )


def users_of(env: Any) -> Users | None:
    """Return the users of an environment, wrapped or not; None of those of another package."""
    core = env.unwrapped
    return core.model if isinstance(core, BaseClickEnv) else None


def clicks_of(observation: Any) -> Any:
    """Return the clicks in an observation."""
    return observation["clicks"] if isinstance(observation, dict) else observation


def regret_of(info: Mapping[str, Any]) -> float:
    """Return the regret of a session from its info: ``regret``, or ``optimal_reward -
    expected_reward``; nan if both are missing.

    Example:
        >>> regret_of({"expected_reward": 0.5, "optimal_reward": 0.75})
        0.25
        >>> regret_of({"expected_reward": 0.5})
        nan
    """
    regret = info.get("regret")
    if regret is not None:
        return regret
    expected, optimum = info.get("expected_reward"), info.get("optimal_reward")
    return math.nan if expected is None or optimum is None else optimum - expected
