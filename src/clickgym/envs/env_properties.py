"""Properties of any Gymnasium environment or vector environment, whether it comes from clickgym or
from another package: its sizes, its users, the clicks that it shows, what engines must know of it,
and its label.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Dict, Discrete
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv
from numpy.typing import NDArray

from ..core.checks import AN_ENV, check_kind, check_positions
from ..core.errors import Fault
from ..core.messages import short_repr
from ..core.specs import format_spec
from .base_env import BaseClickEnv, name_of
from .click_env import ClickEnv
from .registration import without_own_wrappers
from .resolve_model import ENV_ARGUMENTS
from .simulation.user_model import UserModel
from .spaces import list_sizes


class Sizes(NamedTuple):
    """The sizes of an environment that an agent needs when it is created."""

    n_items: int
    n_positions: int
    n_features: int
    """d, the number of features per candidate; 0 if observations contain no features."""
    n_states: int
    """S, the number of states of users with memory; 0 if users have no state."""


def sizes_of(env: gym.Env) -> Sizes:
    """Return the numbers of items, positions, features and states of an environment.

    The sizes are read from the environment's spaces, so wrappers may change the observations, but
    not the ranked lists that are the actions.

    Raises:
        TypeError: ``env`` is not an environment.
        ValueError: the actions are not ranked lists, or ``env`` comes from another package and its
            observations are not clicks; the message says what is expected.

    Example:
        >>> import clickgym
        >>> sizes_of(gym.make("PBMRank-v0"))
        Sizes(n_items=10, n_positions=5, n_features=0, n_states=0)
    """
    check_kind("env", env, gym.Env, AN_ENV)
    list_size = list_sizes(env.action_space)
    if list_size is None:
        raise action_space_error(env, env.action_space)
    n_items, n_positions = list_size
    if not isinstance(env.unwrapped, ClickEnv):
        check_positions(n_positions, n_items)
        check_shows_clicks(env, n_positions)
    spaces = env.observation_space if isinstance(env.observation_space, Dict) else {}
    state, shape = spaces.get("state"), tuple(getattr(spaces.get("features"), "shape", ()))
    n_features = shape[1] if len(shape) == 2 and shape[0] == n_items else 0
    return Sizes(
        n_items, n_positions, n_features, int(state.n) if isinstance(state, Discrete) else 0
    )


def action_space_error(env: Any, actions: gym.Space[Any]) -> ValueError:
    """Return the error to raise if the actions of an environment are not ranked lists."""
    return ValueError(
        f"the action space of {env} is {actions}; expected ranked lists: "
        "clickgym.envs.RankedList(n_items, n_positions) or MultiDiscrete([n_items] * n_positions), "
        "because clickgym plays only environments in which an action is a list of items"
    )


def check_shows_clicks(env: Any, n_positions: int | None = None) -> int:
    """Check that an environment from another package, or each stream of a vector environment,
    observes clicks, and return the number of clicks in an observation.

    Raises:
        ValueError: the observations are not clicks, and the actions may not be lists either; the
            message says what is expected.
    """
    space = getattr(env, "single_observation_space", env.observation_space)
    size = click_vector_size(space)
    if not size or size != (n_positions or size):
        actions = getattr(env, "single_action_space", env.action_space)
        if list_sizes(actions) is None:
            raise action_space_error(env, actions)
        cure = "; put wrappers that change observations around RecordVectorRegret"
        raise ValueError(
            f"the observation space of {env} is {space}; expected the clicks on "
            'the list: MultiBinary(n_positions), or a Dict that contains it as "clicks"'
            f"{cure * isinstance(env, VectorEnv)}"
        )
    return size


def click_vector_size(space: gym.Space[Any]) -> int:
    """Return the number of clicks in an observation from ``space``; 0 if an observation neither
    consists of clicks nor has an entry ``"clicks"``.
    """
    clicks = space.get("clicks", space) if isinstance(space, Dict) else space
    shape, dtype = clicks.shape or (), clicks.dtype
    return shape[0] if dtype is not None and dtype.kind in "biu" and len(shape) == 1 else 0


def click_env_of(env: gym.Env) -> ClickEnv | None:
    """Return the `ClickEnv` under an environment's wrappers; None if the environment comes from
    another package, or if its class overrides ``step``.
    """
    base_env = env.unwrapped
    if isinstance(base_env, ClickEnv) and type(base_env).step is ClickEnv.step:
        return base_env
    return None


def user_model_of(env: Any) -> UserModel | None:
    """Return the simulated users of an environment, wrapped or not; None if the environment comes
    from another package.
    """
    base_env = env.unwrapped
    return base_env.model if isinstance(base_env, BaseClickEnv) else None


def query_of(env: Any) -> int | None:
    """Return the number of an environment's current query; None unless its users have several
    queries.
    """
    model = user_model_of(env)
    return env.unwrapped.state.query.item(0) if model and model.n_queries > 1 else None


def clicks_of(observation: Any) -> Any:
    """Return the clicks in an observation, which is a click vector or a dict with ``clicks``."""
    return observation["clicks"] if isinstance(observation, dict) else observation


def read_clicks(observation: Any, n_positions: int) -> NDArray[np.int8]:
    """Check the clicks in an observation, and return a copy of them.

    The copy is needed because an environment from another package may reuse its array in the next
    step.

    Raises:
        Fault: the clicks are not an array ``(n_positions,)`` of the values 0 and 1.
    """
    entry = observation.get("clicks") if isinstance(observation, dict) else observation
    with suppress(ValueError):  # NumPy rejects rows of different lengths
        clicks = np.asarray(entry)
        if clicks.shape == (n_positions,) and {0, 1}.issuperset(clicks.tolist()):
            return clicks.astype(np.int8)
    raise Fault(
        f"the observation is {short_repr(observation)}; expected {n_positions} clicks, each 0 or 1"
    )


def changing_users_of(env: Any) -> str:
    """Return the name of the class of an environment's users if they change at fixed sessions;
    otherwise an empty text.
    """
    model = user_model_of(env)
    return type(model).__name__ if model and len(model.starts) > 1 else ""


class EnvTraits(NamedTuple):
    """Traits of an environment that determine which engine can run an agent in this environment."""

    name: str
    """The environment's name in error messages: the environment's id, or the class of an
    environment without an id.
    """
    layer: str
    """The class of the outermost wrapper that not every id has, or the environment's own class."""
    obstacle: str
    """The reason why only the environment's own method ``step`` can run a session; empty if
    compiled code can run sessions, too.
    """
    changing_users: str
    """The name of the class of users, if users change at fixed steps; otherwise empty."""
    observation_keys: tuple[str, ...]
    """The keys of the environment's observations, if observations are dicts, and the keys of
    `Task.fields`.
    """
    sizes: Mapping[str, int]
    """The environment's ``n_items``, ``n_positions``, ``n_features`` and ``n_states``; 0 if the
    environment has no features or no states.
    """
    n_queries: int = 1
    """The number of queries; each episode uses one of them."""
    observation_space: Any = None
    """The space of the environment's observations."""
    has_copies: bool = False
    """Whether ``gym.make`` can make more environments like an environment of another package, on
    which an agent can play several streams of sessions.
    """


def traits_of(env: gym.Env) -> EnvTraits:
    """Return the traits of an environment that decide which engine can run agents there."""
    sizes = sizes_of(env)._asdict()
    layer: Any = without_own_wrappers(env)
    name, obstacle, changing_users = type(layer).__name__, "", ""
    if isinstance(layer, gym.Wrapper):
        obstacle = f"the wrapper {name} must see every step"
    elif not isinstance(layer, ClickEnv):
        obstacle = f"{name} is not a ClickEnv, so only its own method step can simulate its users"
    elif type(layer).step is not ClickEnv.step:
        obstacle = f"{name} overrides the method step"
    else:
        changing_users = changing_users_of(layer)
    space = env.observation_space
    observation_keys = tuple(space) if isinstance(space, Dict) else ()
    if not obstacle:
        observation_keys += tuple(layer.task.fields)
    model = user_model_of(env)
    n_queries = 1 if model is None else model.n_queries
    has_copies = model is None and env.spec is not None and not env.spec.additional_wrappers
    return EnvTraits(
        name=name_of(env),
        layer=name,
        obstacle=obstacle,
        changing_users=changing_users,
        observation_keys=observation_keys,
        sizes=sizes,
        n_queries=n_queries,
        observation_space=space,
        has_copies=has_copies,
    )


def stream_of(envs: VectorEnv) -> Any:
    """Return an environment that represents each stream of a vector environment: the first single
    environment of a ``SyncVectorEnv``, a new one for an ``AsyncVectorEnv``, whose environments are
    in other processes, and otherwise the vector environment itself, without its wrappers.
    """
    base_env = envs.unwrapped
    if isinstance(base_env, SyncVectorEnv):
        return base_env.envs[0]
    return base_env.env_fns[0]() if isinstance(base_env, AsyncVectorEnv) else base_env


NOT_IN_LABELS = (
    *("instance", "name", "render_mode", "max_episode_steps"),
    *("num_envs", "vectorization_mode", "vector_kwargs", "wrappers", "autoreset_mode"),
)
"""Arguments of ``gym.make`` and ``gym.make_vec`` that do not appear in an environment's label,
because results show them elsewhere or because they do not change the users.
"""


def label_of(env: Any) -> str:
    """Return the label of an environment in results, in the format that sweeps use.

    The label consists of the environment's id and arguments, without the instance. If the users
    have a name, the label also leaves out their parameters. If the environment has no id, or if its
    arguments cannot be written as text, the label is the environment's name followed by the
    `BaseClickEnv.fingerprint` of its users.

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
            if key in ENV_ARGUMENTS or not is_named
        }
        limit = spec.kwargs.get("max_episode_steps", spec.max_episode_steps)
        if limit != registered.max_episode_steps and getattr(
            user_model_of(env), "may_leave", False
        ):
            arguments["max_episode_steps"] = limit  # the limit decides how long users stay
        if label := format_spec(spec.id, arguments):
            return label
    if not isinstance(base_env, BaseClickEnv):
        return name_of(env)
    return f"{name_of(env).replace('ClickVectorEnv', 'ClickEnv')} {base_env.fingerprint}"
