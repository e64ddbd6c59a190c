"""Native vector environments as the `VecEnv` of stable-baselines3."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from stable_baselines3.common.vec_env import VecEnv, VecMonitor

from ...core.checks import check_kind
from ...core.specs import parse_spec
from ...envs.wrappers.regret import RecordVectorRegret

OF_MAKE_VEC_ENV = (
    *("env_kwargs", "wrapper_class", "wrapper_kwargs", "start_index"),
    *("monitor_dir", "monitor_kwargs", "vec_env_cls", "vec_env_kwargs"),
)
"""Arguments of the library's ``make_vec_env`` that `vec_env` does not take."""


def vec_env(env: str, n_envs: int, *, seed: int | None = None, **arguments: Any) -> VecMonitor:
    """Return parallel streams for stable-baselines3, as its ``make_vec_env`` does, but stepped
    together in compiled code.

    The log of the library has ``rollout/ep_rew_mean``, and `RecordVectorRegret` measures the
    training: ``envs.result("mine")`` is what `clickgym.run` returns, for `clickgym.Results`. All
    streams are one run.

    Args:
        env: an id, such as ``"PBMRank-v0"``, with arguments if any, as `clickgym.run` takes it:
            ``"PBMRank-v0:reward=any_click"``.
        n_envs: B, the number of streams.
        seed: of the users; a model with a seed gives its own.
        **arguments: of the environment, such as ``instance`` and ``max_episode_steps``.

    Returns:
        A vector environment of the library with B environments.

    Raises:
        TypeError: ``env`` is no id; or an argument is one of ``make_vec_env`` that this function
            does not take.

    Example:
        >>> import clickgym
        >>> from clickgym.agents import PlackettLuceActorCritic, vec_env
        >>> from stable_baselines3 import PPO
        >>> envs = vec_env("PBMRank-v0", 8)
        >>> model = PPO(PlackettLuceActorCritic, envs, n_steps=32, gamma=0.0, seed=0, device="cpu")
        >>> model = model.learn(256)
        >>> envs.result("mine")  # doctest: +ELLIPSIS
        <Result of mine in PBMRank-v0, yandex-9982: sessions=256, regret=..., engine=own loop, ...>
    """
    expected = "an id, such as 'PBMRank-v0'; as_vec_env adapts what gym.make_vec returned"
    check_kind("env", env, str, expected)
    for name in arguments:
        if name in OF_MAKE_VEC_ENV:
            raise TypeError(
                f"vec_env takes no {name}: arguments of the environment stand by themselves, as in "
                "vec_env(id, 8, instance=...); regret is measured already, for envs.result(name); "
                "other wrappers and processes need make_vec_env of stable-baselines3"
            )
    env_id, described = parse_spec(env)
    arguments = described | arguments
    streams = gym.make_vec(env_id, num_envs=n_envs, autoreset_mode="SameStep", **arguments)
    envs = StableBaselinesVecEnv(RecordVectorRegret(streams))
    envs.seed(seed)
    return _Monitor(envs)


def as_vec_env(envs: VectorEnv) -> VecEnv:
    """Adapt a Gymnasium vector environment to stable-baselines3, which cannot use it directly; for
    an id without wrappers, `vec_env` is shorter.

    Args:
        envs: a vector environment of B streams with ``autoreset_mode="SameStep"``: the library
            resets a finished stream in the same step.

    Returns:
        A vector environment of the library with B environments; its attribute ``infos`` holds the
        infos of the last step.

    Raises:
        TypeError: ``envs`` is not a Gymnasium vector environment.
        ValueError: ``envs`` has another autoreset mode.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> from clickgym.agents import PlackettLuceActorCritic, as_vec_env
        >>> from stable_baselines3 import PPO
        >>> envs = as_vec_env(gym.make_vec("PBMRank-v0", num_envs=8, autoreset_mode="SameStep"))
        >>> model = PPO(PlackettLuceActorCritic, envs, n_steps=32, gamma=0.0, seed=0, device="cpu")
        >>> model.learn(256).num_timesteps
        256
    """
    return StableBaselinesVecEnv(envs)


class _Monitor(VecMonitor):
    """A monitor that can be sent to processes, with the model that it trains. That of the library
    keeps the attributes of its class, which cannot be pickled.
    """

    def __getstate__(self) -> dict[str, Any]:
        return {name: it for name, it in vars(self).items() if name != "class_attributes"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, class_attributes=dict(inspect.getmembers(type(self))))


class StableBaselinesVecEnv(VecEnv):
    """The adapter that `as_vec_env` returns.

    All streams are one object, so attributes and methods are those of the vector environment, and
    the same for every stream. If a method returns an array with a row for each stream, each stream
    gets its row.

    `step_wait` returns the infos of single streams only if they end, because splitting all infos
    would take longer than the step. The arrays of all streams are in ``infos``.
    """

    def __init__(self, envs: VectorEnv) -> None:
        if not isinstance(envs, VectorEnv):
            raise TypeError(f"envs is a {type(envs).__name__}; expected a gymnasium VectorEnv")
        if envs.metadata.get("autoreset_mode") is not AutoresetMode.SAME_STEP:
            raise ValueError(
                "stable-baselines3 resets a finished stream in the same step: build the vector "
                'environment with autoreset_mode="SameStep"'
            )
        core: Any = envs.unwrapped
        if getattr(core, "needs_counts", False):
            warnings.warn(
                "an observation shows the clicks of one session, and a policy without memory "
                "learns no query from it: put clickgym.envs.EpisodeCountsVector around the queries",
                stacklevel=3,
            )
            core.needs_counts = False  # it was said
        self.envs = envs
        self.infos: dict[str, Any] = {}
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)

    def reset(self) -> Any:
        if any(options != self._options[0] for options in self._options):
            raise ValueError("reset options differ between streams; expected the same for all")
        observations, infos = self.envs.reset(seed=self._seeds[0], options=self._options[0] or None)
        self.reset_infos = [_of_stream(infos, b) for b in range(self.num_envs)]
        self._reset_seeds()
        self._reset_options()
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        observations, rewards, terminations, truncations, self.infos = self.envs.step(self._actions)
        dones = terminations | truncations
        by_stream: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for b in np.flatnonzero(dones):
            # SAME_STEP returns the infos of the new episode; the library expects those of the old.
            self.reset_infos[b] = _of_stream(self.infos, b)
            by_stream[b] = self.reset_infos[b].pop("final_info", {})
            by_stream[b]["terminal_observation"] = self.reset_infos[b].pop("final_obs")
            by_stream[b]["TimeLimit.truncated"] = bool(truncations[b] and not terminations[b])
        return observations, rewards.astype(np.float32), dones, by_stream

    def result(self, agent: str, horizon: int | None = None) -> Any:
        """Return what was measured so far, or of the first so many sessions: a `clickgym.Result`,
        as of `RecordRegret.result`. Each model needs new environments.

        Raises:
            AttributeError: there is no `RecordVectorRegret` around the environment.
        """
        return self._owner("result").result(agent, horizon)  # type: ignore[attr-defined]

    def close(self) -> None:
        self.envs.close()

    def get_images(self) -> Sequence[np.ndarray | None]:
        images: Any = self.envs.render()
        return images or [None] * self.num_envs

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self._owner(attr_name), attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        if len(set(self._get_indices(indices))) < self.num_envs:
            raise ValueError(
                f"{attr_name} cannot be set for some streams only, because all are one object"
            )
        setattr(self._owner(attr_name), attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any
    ) -> list[Any]:
        result = getattr(self._owner(method_name), method_name)(*method_args, **method_kwargs)
        # such as the masks of actions
        by_stream = isinstance(result, np.ndarray) and len(result) == self.num_envs
        return [result[b] if by_stream else result for b in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        wrapped = any(isinstance(layer, wrapper_class) for layer in self._layers())
        return [wrapped for _ in self._get_indices(indices)]

    def _layers(self) -> Iterator[VectorEnv]:
        """Yield the vector environment, from its outermost wrapper to its core."""
        layer = self.envs
        while isinstance(layer, VectorWrapper):
            yield layer
            layer = layer.env
        yield layer

    def _owner(self, name: str) -> VectorEnv:
        for layer in self._layers():
            if hasattr(layer, name):
                return layer
        raise AttributeError(f"{self.envs} has no attribute {name!r}")


def _of_stream(infos: dict[str, Any], b: Any) -> dict[str, Any]:
    """Return the entries of one stream in Gymnasium's dict of arrays; the mask ``_name`` marks the
    streams that have an entry.
    """
    return {
        name: _of_stream(values, b) if isinstance(values, dict) else values[b]
        for name, values in infos.items()
        if not name.startswith("_") and infos[f"_{name}"][b]
    }
