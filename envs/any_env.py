"""Sizes, sessions and labels of any environment, including those of other packages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Dict, Discrete, MultiDiscrete
from numpy.typing import NDArray

from ..core.checks import AN_ENV, check_kind, check_positions, short_repr
from ..core.errors import Fault
from ..core.specs import format_spec
from .base_env import BaseClickEnv, name_of
from .click_env import ClickEnv
from .resolve_model import OF_ENVIRONMENT
from .user_model import UserModel


class Sizes(NamedTuple):
    """The sizes from which an agent is made."""

    n_items: int
    n_positions: int
    n_features: int
    """d, the number of features of a candidate; 0 if features are not observed."""
    n_states: int
    """S, the number of states of stateful users; 0 for other users."""


def sizes_of(env: gym.Env) -> Sizes:
    """Return the sizes of an environment, from its spaces. Wrappers may change what is observed,
    but not the lists.

    Raises:
        TypeError: ``env`` is not an environment.
        ValueError: actions are not ranked lists, or the observations of an environment of another
            package are not clicks; the message says what is expected.

    Example:
        >>> import clickgym
        >>> sizes_of(gym.make("PBMRank-v0"))
        Sizes(n_items=10, n_positions=5, n_features=0, n_states=0)
    """
    check_kind("env", env, gym.Env, AN_ENV)
    lists = env.action_space
    if not isinstance(lists, MultiDiscrete) or lists.nvec.ndim != 1 or np.ptp(lists.nvec):
        raise ValueError(
            f"the action space of {env} is {lists}; expected ranked lists: clickgym.envs.RankedList"
            "(n_items, n_positions) or MultiDiscrete([n_items] * n_positions)"
        )
    n_items, n_positions = int(lists.nvec[0]), len(lists.nvec)
    if not isinstance(env.unwrapped, ClickEnv):
        check_positions(n_positions, n_items)
        check_shows_clicks(env, n_positions)
    spaces = env.observation_space if isinstance(env.observation_space, Dict) else {}
    state, shape = spaces.get("state"), tuple(getattr(spaces.get("features"), "shape", ()))
    n_features = shape[1] if len(shape) == 2 and shape[0] == n_items else 0
    return Sizes(
        n_items, n_positions, n_features, int(state.n) if isinstance(state, Discrete) else 0
    )


def check_shows_clicks(env: gym.Env, n_positions: int | None = None) -> int:
    """Check that the observations of an environment of another package are clicks; return their
    number.

    Raises:
        ValueError: the observations are not clicks; the message says what is expected.
    """
    size = clicks_shown(env.observation_space)
    if not size or size != (n_positions or size):
        raise ValueError(
            f"the observation space of {env} is {env.observation_space}; expected the clicks on "
            'the list: MultiBinary(n_positions), or a Dict that has them as "clicks"'
        )
    return size


def clicks_shown(space: gym.Space[Any]) -> int:
    """Return how many clicks an observation of a space shows; 0 if the observation neither consists
    of clicks nor has an entry ``"clicks"``.
    """
    clicks = space.get("clicks", space) if isinstance(space, Dict) else space
    shape, dtype = clicks.shape or (), clicks.dtype
    return shape[0] if dtype is not None and dtype.kind in "biu" and len(shape) == 1 else 0


def click_env_of(env: gym.Env) -> ClickEnv | None:
    """Return the `ClickEnv` under the wrappers of an environment; None if the environment is of
    another package, or its class has its own ``step``.
    """
    base_env = env.unwrapped
    if isinstance(base_env, ClickEnv) and type(base_env).step is ClickEnv.step:
        return base_env
    return None


def user_model_of(env: Any) -> UserModel | None:
    """Return the users of an environment, wrapped or not; None for an environment of another
    package.
    """
    base_env = env.unwrapped
    return base_env.model if isinstance(base_env, BaseClickEnv) else None


def query_of(env: Any) -> int | None:
    """Return the query that an environment plays if its users have several; None otherwise."""
    model = user_model_of(env)
    return env.unwrapped.state.query.item(0) if model and model.n_queries > 1 else None


def clicks_of(observation: Any) -> Any:
    """Return the clicks in an observation."""
    return observation["clicks"] if isinstance(observation, dict) else observation


def read_clicks(observation: Any, n_positions: int) -> NDArray[np.int8]:
    """Return a copy of the clicks in an observation of an environment of another package, which
    may write into its own array.

    Raises:
        Fault: the clicks are not ``(n_positions,)`` values 0 or 1.
    """
    entry = observation.get("clicks") if isinstance(observation, dict) else observation
    with suppress(ValueError):  # rows of different lengths
        clicks = np.asarray(entry)
        if clicks.shape == (n_positions,) and {0, 1}.issuperset(clicks.tolist()):
            return clicks.astype(np.int8)
    raise Fault(
        f"the observation is {short_repr(observation)}; expected {n_positions} clicks, each 0 or 1"
    )


def as_finite(name: str, value: Any) -> float:
    """Return a reward or a regret as a float.

    Raises:
        Fault: the value is not a finite number.
    """
    try:
        if not isinstance(value, str | bytes) and math.isfinite(number := float(value)):
            return number
    except (TypeError, ValueError, OverflowError):
        pass
    raise Fault(f"{name} is {short_repr(value)}; expected a finite number")


def regret_of(info: Mapping[str, Any]) -> float:
    """Return the regret of a session from its info: ``regret``, or ``optimal_reward -
    expected_reward``; nan if both are missing.

    Raises:
        Fault: one of them is not a finite number.

    Example:
        >>> regret_of({"expected_reward": 0.5, "optimal_reward": 0.75})
        0.25
        >>> regret_of({"expected_reward": 0.5})
        nan
    """
    regret = info.get("regret")
    if regret is not None:
        return as_finite("regret", regret)
    expected, optimum = info.get("expected_reward"), info.get("optimal_reward")
    if expected is None or optimum is None:
        return math.nan
    return as_finite("optimal_reward", optimum) - as_finite("expected_reward", expected)


class Measure:
    """Measures sessions by what ``step`` returns, for any environment: wrapped or not, of this
    package or another.

    The clicks are those observed; if an observation shows none, because it is stacked or flattened,
    they are the users' own clicks. The regret comes from ``info``; it is nan if it is missing
    there, or if a wrapper changes the reward without putting its own regret into ``info``.

    Args:
        env: the environment.

    Raises:
        ValueError: the observations of an environment of another package are not clicks.
    """

    def __init__(self, env: gym.Env) -> None:
        click_env: Any = click_env_of(env)
        self.click_env, self.has_clicks = click_env, True
        if click_env is None:
            self.n_positions = check_shows_clicks(env)
        else:
            self.n_positions = click_env.model.n_positions
            self.has_clicks = clicks_shown(env.observation_space) == self.n_positions

    def __call__(
        self, observation: Any, reward: Any, info: Mapping[str, Any]
    ) -> tuple[NDArray[np.int8], float, float]:
        """Return clicks, reward and regret of the last session.

        Raises:
            Fault: a click is not 0 or 1, or the reward or the regret is not finite.
        """
        reward, regret = as_finite("reward", reward), regret_of(info)
        if self.click_env is not None and not self.click_env.regret_is_of(reward, info):
            regret = math.nan
        if self.has_clicks:
            return read_clicks(observation, self.n_positions), reward, regret
        return self.click_env.last_session()[1], reward, regret


NOT_IN_LABELS = (
    *("instance", "name", "render_mode", "max_episode_steps"),
    *("num_envs", "vectorization_mode", "vector_kwargs", "wrappers", "autoreset_mode"),
)
"""Arguments of ``gym.make`` and ``gym.make_vec`` that labels leave out: results show them
elsewhere, or they do not change the users.
"""


def label_of(env: Any) -> str:
    """Return the label of an environment in results, as a sweep writes it: its id with its
    arguments, without the instance and without the parameters of users who have a name. If the
    environment has no id, or if its arguments cannot be written, the label is its name with the
    `BaseClickEnv.mark` of its users.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> label_of(gym.make("PBMRank-v0", reward="any_click"))
        'PBMRank-v0:reward=any_click'
    """
    base_env = env.unwrapped
    if spec := env.spec:
        registered = gym.registry.get(spec.id, spec)
        is_named = spec.kwargs.get("name") is not None
        arguments = {
            key: value.tolist() if isinstance(value, np.ndarray | np.generic) else value
            for key, value in spec.kwargs.items()
            if value is not None and key not in (*NOT_IN_LABELS, *registered.kwargs)
            if key in OF_ENVIRONMENT or not is_named
        }
        limit = spec.kwargs.get("max_episode_steps", spec.max_episode_steps)
        if limit != registered.max_episode_steps and getattr(
            user_model_of(env), "may_leave", False
        ):
            arguments["max_episode_steps"] = limit  # another limit means other users
        if label := format_spec(spec.id, arguments):
            return label
    if not isinstance(base_env, BaseClickEnv):
        return name_of(env)
    return f"{name_of(env).replace('ClickVectorEnv', 'ClickEnv')} {base_env.mark}"
