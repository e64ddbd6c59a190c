"""Learners of stable-baselines3 in the native vector environments, measured like any agent.

Import this module only where stable-baselines3 is wanted: it comes with ``pip install "clickgym[rl]"`` and brings torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from ..agents.generic_rl import Learner
from ..envs import REWARDS, ClickEnv, ClickVectorEnv, RecordVectorRegret
from ..envs.action_wrappers import LehmerVectorAction
from ..envs.wrappers import Meter
from .loop import OnChunk
from .metrics import Metrics

__all__ = ["StableBaselinesVecEnv", "play_learner"]


class StableBaselinesVecEnv(VecEnv):
    """A Gymnasium vector environment as stable-baselines3 wants it; given as it is, the library fails in the middle of things.

    All streams are one object, stepped by one call, so attributes and methods are those of the vector environment, and are
    the same for every stream.

    Args:
        envs: a vector environment that resets a finished stream in the same step, as the library does: built with
            ``autoreset_mode=AutoresetMode.SAME_STEP``. For an algorithm that chooses lists, wrap it in
            `LehmerVectorAction` first.

    Raises:
        TypeError: ``envs`` is not a Gymnasium vector environment.
        ValueError: it has another autoreset mode.

    Example:
        >>> import clickgym, gymnasium as gym
        >>> from clickgym.envs import LehmerVectorAction
        >>> from stable_baselines3 import PPO
        >>> envs = gym.make_vec("PBMRank-v0", num_envs=8, autoreset_mode="SameStep")
        >>> model = PPO("MlpPolicy", StableBaselinesVecEnv(LehmerVectorAction(envs)), n_steps=32, gamma=0.0, seed=0)
        >>> model.learn(256).num_timesteps
        256
    """

    def __init__(self, envs: VectorEnv) -> None:
        if not isinstance(envs, VectorEnv):
            raise TypeError(f"expected a gymnasium.vector.VectorEnv, got {type(envs).__name__}")
        if envs.metadata.get("autoreset_mode") is not AutoresetMode.SAME_STEP:
            raise ValueError(
                "stable-baselines3 wants the first observation of a new stream in the step that ended the old one: "
                "build the vector environment with autoreset_mode=AutoresetMode.SAME_STEP"
            )
        self.envs = envs
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)

    def reset(self) -> Any:
        if any(options != self._options[0] for options in self._options):
            raise ValueError("the streams are reset by one call, with the same options for all")
        observations, infos = self.envs.reset(seed=self._seeds[0], options=self._options[0] or None)
        self.reset_infos = _by_stream(infos, self.num_envs)
        self._reset_seeds()
        self._reset_options()
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        observations, rewards, terminations, truncations, infos = self.envs.step(self._actions)
        dones = terminations | truncations
        by_stream = _by_stream(infos, self.num_envs)
        for b in np.flatnonzero(dones):
            # What SAME_STEP returns is already about the new stream; the library wants the old one, and this set aside.
            self.reset_infos[b] = by_stream[b]
            by_stream[b] = self.reset_infos[b].pop("final_info")
            by_stream[b]["terminal_observation"] = self.reset_infos[b].pop("final_obs")
        for info, limit in zip(by_stream, truncations & ~terminations, strict=True):
            info["TimeLimit.truncated"] = bool(limit)
        return observations, rewards.astype(np.float32), dones, by_stream

    def close(self) -> None:
        self.envs.close()

    def get_images(self) -> Sequence[np.ndarray | None]:
        images: Any = self.envs.render()
        return images or [None] * self.num_envs

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self._owner(attr_name), attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        if len(set(self._get_indices(indices))) < self.num_envs:
            raise ValueError(f"{attr_name} cannot be set for some streams only: they are one object")
        setattr(self._owner(attr_name), attr_name, value)

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        result = getattr(self._owner(method_name), method_name)(*method_args, **method_kwargs)
        return [result for _ in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        wrapped = any(isinstance(layer, wrapper_class) for layer in self._layers())
        return [wrapped for _ in self._get_indices(indices)]

    def _layers(self) -> Iterator[VectorEnv]:
        """The vector environment from its outermost wrapper to its core."""
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


def _by_stream(infos: dict[str, Any], n_envs: int) -> list[dict[str, Any]]:
    """Gymnasium's dict of arrays, each with a mask ``_name`` of the streams that have an entry, as one dict per stream."""
    by_stream: list[dict[str, Any]] = [{} for _ in range(n_envs)]
    for name, values in infos.items():
        if not name.startswith("_"):
            rows = _by_stream(values, n_envs) if isinstance(values, dict) else values
            for info, row, there in zip(by_stream, rows, infos[f"_{name}"], strict=True):
                if there:
                    info[name] = row
    return by_stream


def play_learner(agent: Learner, env: gym.Env, meter: Meter, metrics: Metrics, on_chunk: OnChunk | None = None) -> None:
    """Let a learner learn up to the meter's horizon; the environment has been reset.

    It learns on streams of its own: a `ClickVectorEnv` of the environment's click model, seeded from the environment's
    generator. The sessions are counted in the order of the steps, and in a step in the order of the streams; the last step
    may play up to ``n_envs - 1`` sessions beyond the horizon, which are not counted.

    Args:
        agent: goes on from what it has learned.
        env: an environment of this package, without wrappers (the streams would bypass them).
        meter: receives the totals.
        metrics: what is measured besides.
        on_chunk: called after each step with the number of its sessions; what it raises ends the run.

    Raises:
        ValueError: the environment has wrappers or a step of its own, or its users change with time.
    """
    layer = env
    while type(layer) in (OrderEnforcing, PassiveEnvChecker):
        layer = layer.env  # type: ignore[attr-defined]
    if not isinstance(layer, ClickEnv) or type(layer).step is not ClickEnv.step:
        raise ValueError(f"{type(agent).__name__} learns on streams of its own, which would bypass {type(layer).__name__}")
    task = layer.task
    if task.model is not layer.model:
        raise ValueError(
            f"{type(agent).__name__} learns on parallel streams, each with a clock of its own, so that it cannot face users "
            f"who change at given steps ({type(layer.model).__name__})"
        )
    recorded = RecordVectorRegret(
        ClickVectorEnv(
            task.model,
            agent.n_envs,
            REWARDS[task.code],
            task.cutoff,
            reference=task.optimal_ranking,
            autoreset_mode=AutoresetMode.SAME_STEP,
        )
    )
    recorded.meter = meter
    contexts = metrics.contexts(layer)

    def on_session(ranking: NDArray[np.int64], clicks: NDArray[np.int8], expectation: float) -> None:
        metrics.kernel(contexts, ranking, clicks, expectation, meter.totals, 3)

    recorded.on_session = on_session if metrics.summed else None
    envs = StableBaselinesVecEnv(LehmerVectorAction(recorded, agent.items))
    envs.seed(int(layer.np_random.integers(2**31)))
    reported = 0

    def on_step() -> bool:
        nonlocal reported
        if on_chunk is not None:
            on_chunk(meter.step - reported)
        reported = meter.step
        return meter.step < meter.horizon

    agent.learn(envs, meter.horizon, on_step)
