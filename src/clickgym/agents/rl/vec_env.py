"""Vector environments of Gymnasium as a `VecEnv` of stable-baselines3. The module imports the
library.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv, VectorWrapper
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv, VecMonitor

from ...core.checks import check_choice, check_count, check_flag, check_kind
from ...core.messages import short_repr
from ...core.specs import parse_spec
from ...envs.click_vector_env import ClickVectorEnv
from ...envs.env_properties import action_space_error
from ...envs.wrappers.actions import NumberedLists, Scores
from ...envs.wrappers.item_by_item import (
    Choices,
    PartialLists,
    lists_are_episodes,
    space_of_partial_lists,
)
from ...measure.record_regret import RecordVectorRegret
from ...measure.session_reader import check_stream, observation_at

CLICK_VECTOR_ENV = f"{ClickVectorEnv.__module__}:{ClickVectorEnv.__qualname__}"
"""The name under which clickgym's ids are registered."""
ACTIONS = {"rankings": NumberedLists, "scores": Scores, "items": Choices}
"""The kinds of actions, with the classes of their action spaces."""
MISNAMED = {"n_env": "n_envs", "num_envs": "n_envs", "action": "actions"}
"""Names that users give to arguments of `vec_env`, which would go to the environment."""


def vec_env(
    env: str | Callable[..., gym.Env] | VectorEnv,
    n_envs: int | None = None,
    *,
    seed: int | None = None,
    actions: str = "rankings",
    minus_regret: bool = False,
    **arguments: Any,
) -> VecMonitor:
    """Return a vector environment for stable-baselines3. Parallel streams of clickgym's users are
    stepped together in compiled code; environments of other packages are stepped one after another.

    Use this function in place of ``make_vec_env`` from stable-baselines3. The training log contains
    ``rollout/ep_rew_mean``, and `RecordVectorRegret` measures the regret of training:
    ``envs.result("mine")`` returns a `clickgym.Result`, as `clickgym.run` does, with all streams
    counted as one run. Create a new vector environment for each model.

    Args:
        env: an environment id, such as ``"PBMRank-v0"`` or ``"PBMRank-v0:reward=any_click"``; or a
            class or function that returns an environment, for environments of other packages and
            for your own wrappers, because clickgym's are faster by their id; or a vector
            environment from ``gym.make_vec(id, ..., autoreset_mode="SameStep")``, or another
            one that `RecordVectorRegret` accepts, such as a ``SyncVectorEnv`` or ``AsyncVectorEnv``
            with ``autoreset_mode="SameStep"``. If you wrap the vector environment, put
            `RecordVectorRegret` inside all other wrappers.
        n_envs: the number of streams, B; pass this argument only together with an id.
        seed: the seed of the users' random generator. If you give the model a seed, that seed
            replaces this one, so give both the same seed. For several trainings, choose seeds that
            lie far apart, such as 0, 1000 and 2000: environments that are stepped one after
            another get the seeds ``seed``, ``seed + 1``, ...
        actions: the kind of actions: ``"rankings"`` for lists; ``"scores"`` for scores, which are
            turned into lists as in `ScoresAction`; or ``"items"`` for items that are chosen one by
            one, as in `ItemByItem`.
        minus_regret: whether a list's reward is minus its regret instead of its clicks. Regret does
            not depend on the chance of clicks, so pass True for streams on which ``EvalCallback``
            compares policies. Results still contain the users' own reward.
        **arguments: arguments for the environment, such as ``instance`` and ``max_episode_steps``;
            pass them only together with an id.

    Returns:
        A vector environment for stable-baselines3 with B streams, wrapped in ``VecMonitor``.

    Raises:
        TypeError: ``env`` is not an id, a class, a function or a vector environment; or ``n_envs``
            or other arguments are passed together with a vector environment; or an argument is
            unknown.
        ValueError: the vector environment has an autoreset mode other than ``SAME_STEP``; or the
            positions of a list have different numbers of items; or there are several streams, and
            their users change at fixed sessions, or the function ``env`` returned the same
            environment for two of them; or, in a step, ``minus_regret`` is True and ``info`` has no
            regret.

    Warns:
        UserWarning: a model's seed replaces another ``seed`` that was given here; or streams have
            the same users as those of another run in this process.

    Example:
        >>> import clickgym
        >>> from clickgym.agents import PlackettLuceActorCritic, vec_env
        >>> from stable_baselines3 import PPO
        >>> envs = vec_env("PBMRank-v0", 8)
        >>> model = PPO(PlackettLuceActorCritic, envs, n_steps=32, gamma=0.0, seed=0, device="cpu")
        >>> model = model.learn(256)
        >>> envs.result("mine")  # doctest: +ELLIPSIS
        <Result of mine in PBMRank-v0, yandex-9982: sessions=256, ..., engine=own loop, ...>
    """
    expected = "an id such as 'PBMRank-v0', a class or function that returns an environment, or a "
    check_kind("env", env, str | Callable | VectorEnv, expected + "vector environment")
    for name in MISNAMED.keys() & arguments.keys():
        raise TypeError(f"unexpected keyword argument {name!r}; did you mean {MISNAMED[name]!r}?")
    if n_envs is None and not isinstance(env, VectorEnv):
        raise ValueError("n_envs is missing; vec_env needs the number of streams, such as 64")
    if isinstance(env, str):
        env_id, spec_arguments = parse_spec(env)
        streams = _make_streams(
            env_id, check_count("n_envs", n_envs), {**spec_arguments, **arguments}
        )
    elif not isinstance(env, VectorEnv):
        makers = [partial(env, **arguments)] * check_count("n_envs", n_envs)
        streams = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)
        if len({*map(id, streams.envs)}) < streams.num_envs:
            raise ValueError(
                "env returned the same environment for several streams; expected a class or "
                "function that creates a new one at each call"
            )
    elif n_envs is None and not arguments:
        streams = env
    else:
        raise TypeError(
            "env is already a vector environment: leave out n_envs, and pass the other "
            "arguments to gym.make_vec when you create the environment"
        )
    stream = check_stream("vec_env steps", streams)
    space = stream.unwrapped.action_space
    if isinstance(space, MultiDiscrete) and np.ptp(space.nvec):  # a wrapper may have other actions
        raise action_space_error(stream, space)
    if not isinstance(env, VectorEnv):
        streams = RecordVectorRegret(streams)
    elif not isinstance(streams, VectorWrapper):
        with suppress(TypeError, ValueError):  # its observations or rewards cannot be measured
            streams = RecordVectorRegret(streams)
    is_negated = check_flag("minus_regret", minus_regret)
    adapter = StableBaselinesVecEnv(streams, actions, minus_regret=is_negated)
    adapter.seed(seed)
    adapter.given_seed = seed
    return PicklableVecMonitor(adapter)


def _make_streams(env_id: str, n_envs: int, arguments: dict[str, Any]) -> VectorEnv:
    """Make a vector environment whose streams are reset in the step that ends their episode. Unless
    the arguments choose the ``vectorization_mode``, clickgym's streams are stepped in compiled code
    and other environments one after another.
    """
    module, _, name = env_id.rpartition(":")
    if module:
        import_module(module)  # registers the environment
    spec = gym.registry.get(name)
    is_compiled = spec is not None and spec.vector_entry_point == CLICK_VECTOR_ENV
    if is_compiled and arguments.get("vectorization_mode") in (None, "vector_entry_point"):
        arguments = {"autoreset_mode": "SameStep", **arguments}
    else:
        arguments = {"vectorization_mode": "sync", **arguments}
        given = arguments.pop("vector_kwargs", {})
        arguments["vector_kwargs"] = {"autoreset_mode": AutoresetMode.SAME_STEP, **given}
    return gym.make_vec(env_id, num_envs=n_envs, **arguments)


class PicklableVecMonitor(VecMonitor):
    """A `VecMonitor` that can be pickled, for example as a part of the model that trains on it."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "class_attributes"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.class_attributes = dict(inspect.getmembers(type(self)))  # as VecEnvWrapper sets it


class StableBaselinesVecEnv(VecEnv):
    """A vector environment for stable-baselines3 that wraps a vector environment of Gymnasium.

    All streams belong to a single object, so reading an attribute of any stream returns the
    attribute of the vector environment. After each session, the info of a stream contains the
    session's ``regret``.

    Args:
        envs: the vector environment from Gymnasium. Its actions are lists, unless your own wrapper
            changes actions.
        actions: the kind of actions, as in `vec_env`.
        items: ``(L,)`` the order in which actions number the items; by default, ``0..L-1``.
        is_flat: whether observations that are a `Dict` are flattened to one array, a
            `FlatObservation`.
        minus_regret: whether the reward of a list is minus its regret.
    """

    given_seed: int | None = None
    """The seed that the user chose; None if the user chose none."""

    def __init__(
        self,
        envs: VectorEnv,
        actions: str = "rankings",
        items: NDArray[np.int64] | None = None,
        is_flat: bool = False,
        minus_regret: bool = False,
    ) -> None:
        if envs.metadata.get("autoreset_mode") is not AutoresetMode.SAME_STEP:
            raise ValueError(
                "stable-baselines3 requires that a stream is reset in the step that ends its "
                "episode: create the vector environment with gym.make_vec(..., "
                'autoreset_mode="SameStep") or, for an environment of another package, '
                'gym.vector.SyncVectorEnv(..., autoreset_mode="SameStep")'
            )
        space: Any = envs.single_action_space
        observation_space = envs.single_observation_space
        check_choice("actions", actions, ACTIONS)
        self._makes_lists = actions != "rankings" or items is not None
        if self._makes_lists:
            space = ACTIONS[actions](space, observation_space, items)
        self._partial_lists: PartialLists | None = None
        if isinstance(space, Choices):
            self._partial_lists = PartialLists(space, (envs.num_envs,))
            observation_space = space_of_partial_lists(space)
        self._ends_with_list = self._partial_lists is not None and lists_are_episodes(envs)
        self._flat = (
            FlatObservation(observation_space)
            if is_flat and isinstance(observation_space, Dict)
            else None
        )
        self.envs, self._observations, self._minus_regret = envs, None, minus_regret
        super().__init__(envs.num_envs, self._flat or observation_space, space)

    def reset(self) -> Any:
        options = self._options[0]
        if self._options != [options] * self.num_envs:
            raise ValueError(
                f"set_options got {short_repr(self._options)}; expected the same options for all "
                "streams, which are reset together"
            )
        seed = self._seeds[0]
        if seed is not None and self.given_seed not in (None, seed):
            # only here, because the user may call `seed` after the model's constructor did
            warnings.warn(
                f"the seed {seed} replaces the seed {self.given_seed} that vec_env got, because "
                "stable-baselines3 seeds environments with the model's seed; give vec_env and the "
                f"model the same seed, or call envs.seed({self.given_seed}) before model.learn",
                stacklevel=6,
            )
            self.given_seed = None  # warn once
        self._observations, _ = self.envs.reset(seed=seed, options=options or None)
        self._reset_seeds()
        self._reset_options()
        if self._partial_lists is not None:
            self._partial_lists.clear()
        return self._observe(self._observations)

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        lists: Any = self._actions
        by_stream: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        if self._partial_lists is not None:
            self._partial_lists.place(lists)
            if not self._partial_lists.is_complete:
                no_reward = np.zeros(self.num_envs, np.float32)
                return self._observe(self._observations), no_reward, no_reward > 0, by_stream
            lists = self._partial_lists.rankings
        elif self._makes_lists:
            space: Any = self.action_space
            lists = space.lists(lists, self._observations)
        observations, rewards, terminated, truncated, infos = self.envs.step(lists)
        for sessions in (infos, infos.get("final_info", {})):
            for b in np.flatnonzero(sessions.get("_regret", ())):
                by_stream[b]["regret"] = float(sessions["regret"][b])
        if self._minus_regret:
            if not all("regret" in info for info in by_stream):
                raise ValueError("minus_regret is True, but the environment's info has no regret")
            rewards = -np.array([info["regret"] for info in by_stream])
        ended = terminated | truncated
        dones = np.ones_like(ended) if self._ends_with_list else ended
        for b in np.flatnonzero(dones):
            last = infos["final_obs"][b] if ended[b] else observation_at(observations, int(b))
            is_cut = truncated[b] and not terminated[b] and not self._ends_with_list
            by_stream[b]["terminal_observation"] = self._observe(last, b)
            by_stream[b]["TimeLimit.truncated"] = bool(is_cut)
        self._observations = observations
        if self._partial_lists is not None:
            self._partial_lists.clear()
        return self._observe(observations), rewards.astype(np.float32), dones, by_stream

    def _observe(self, observations: Any, streams: Any = ...) -> Any:
        """Return the observations of all streams, or of the given stream, in the form that a policy
        sees.
        """
        if self._partial_lists is not None:
            observations = self._partial_lists.observe(observations, streams)
        return observations if self._flat is None else self._flat.flatten(observations)

    @property
    def meter(self) -> Any:
        """The measurements of `RecordVectorRegret`."""
        return self._find_attribute("meter")

    def result(self, agent: str, horizon: int | None = None, *, trained: int | None = None) -> Any:
        """Return the results so far as a `clickgym.Result`. The arguments are those of
        `RecordRegret.result`.
        """
        return self._find_attribute("result")(agent, horizon, trained=trained)

    def close(self) -> None:
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [self._find_attribute(attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        setattr(self.envs, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        result = self._find_attribute(method_name)(*method_args, **method_kwargs)
        has_rows = method_name == "action_masks"
        return [result[b] if has_rows else result for b in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        return [False for _ in self._get_indices(indices)]  # no stream is a single environment

    def _find_attribute(self, name: str) -> Any:
        """Return an attribute of the vector environment, from its outermost wrapper that has this
        attribute.
        """
        if name == "action_masks" and self._partial_lists is not None:
            return lambda: self._partial_lists.available
        layer: Any = self.envs
        while not hasattr(layer, name) and isinstance(layer, VectorWrapper):
            layer = layer.env
        return getattr(layer, name)


class FlatObservation(Box):
    """Space of `Dict` observations that are flattened to one array. If lists are chosen item by
    item, the array begins with the items in the unfinished list and the next position. Then come
    the features of all candidates, one candidate after another; or, without features, the last
    clicks, followed by the user's state and the sessions left, both one-hot encoded.

    Args:
        space: the `Dict` space whose observations are flattened.
    """

    def __init__(self, space: Dict) -> None:
        self._one_hot = {
            name: np.eye(int(part.n), dtype=np.int8)
            for name, part in space.spaces.items()
            if isinstance(part, Discrete)
        }
        empty: Any = {name: np.zeros(part.shape, part.dtype) for name, part in space.items()}
        super().__init__(-1, 1, (len(self.flatten(empty)),), np.float32)

    def flatten(self, observation: Any) -> NDArray[np.float32]:
        """Return the observations of all streams, or of one stream, flattened to one array."""
        placed, parts = observation.get("placed"), []
        if placed is not None:
            parts = [placed.any(axis=-2), placed.any(axis=-1)]
        if "features" in observation:
            rows = observation["features"]
            parts.append(rows.reshape(*rows.shape[:-2], -1))
        else:
            parts.append(observation["observation" if "observation" in observation else "clicks"])
            parts += [rows[observation[name]] for name, rows in self._one_hot.items()]
        return np.concatenate(parts, axis=-1, dtype=np.float32)
