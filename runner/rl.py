"""Learners of stable-baselines3 in the native vector environments, measured like any agent.

Import this module only where stable-baselines3 is wanted: it comes with ``pip install "clickgym[rl]"`` and brings torch.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, MultiBinary, flatdim
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray
from stable_baselines3.common.vec_env import VecEnv

from ..agents.learner import Actions, Learner
from ..envs import REWARDS, ClickVectorEnv, RecordVectorRegret
from ..envs.action_wrappers import EnumeratedVectorAction, ItemByItemVector, LehmerVectorAction, ScoresVectorAction
from ..envs.history import HistoryVectorObservation
from ..envs.wrappers import Meter
from .loop import OnChunk, playable
from .meta import FamilyVectorEnv, family
from .metrics import Metrics

__all__ = ["ItemChoices", "StableBaselinesVecEnv", "expected_seconds", "play_learner", "train"]


class StableBaselinesVecEnv(VecEnv):
    """A Gymnasium vector environment as stable-baselines3 wants it; given as it is, the library fails in the middle of things.

    All streams are one object, stepped by one call, so attributes and methods are those of the vector environment, and are
    the same for every stream; of an array with a row per stream, which a method returns, each stream has its row.

    Infos come per stream only where one ends: to take them apart at every step would cost more than the step. The arrays of
    all streams are in ``infos``.

    Args:
        envs: a vector environment that resets a finished stream in the same step, as the library does: built with
            ``autoreset_mode=AutoresetMode.SAME_STEP``. For an algorithm that chooses lists, wrap it in
            `LehmerVectorAction` first.

    Attributes:
        infos: what the vector environment returned as infos with its last step.

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
        self.infos: dict[str, Any] = {}
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)

    def reset(self) -> Any:
        if any(options != self._options[0] for options in self._options):
            raise ValueError("the streams are reset by one call, with the same options for all")
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
            # What SAME_STEP returns is already about the new stream; the library wants the old one, and this set aside.
            self.reset_infos[b] = _of_stream(self.infos, b)
            by_stream[b] = self.reset_infos[b].pop("final_info", {})
            by_stream[b]["terminal_observation"] = self.reset_infos[b].pop("final_obs")
            by_stream[b]["TimeLimit.truncated"] = bool(truncations[b] and not terminations[b])
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
        by_stream = isinstance(result, np.ndarray) and len(result) == self.num_envs  # as the masks of actions are
        return [result[b] if by_stream else result for b in self._get_indices(indices)]

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


def _of_stream(infos: dict[str, Any], b: Any) -> dict[str, Any]:
    """The entries of one stream in Gymnasium's dict of arrays, each with a mask ``_name`` of the streams that have an entry."""
    return {
        name: _of_stream(values, b) if isinstance(values, dict) else values[b]
        for name, values in infos.items()
        if not name.startswith("_") and infos[f"_{name}"][b]
    }


class ItemChoices(VectorWrapper):
    """`ItemByItemVector` for policies that want one array, and know no masks.

    A forbidden choice is taken for the next item, in the order of ``items``, that is left. An observation tells which items are
    on the list and which position is next, then the last observation of ``env``.

    Args:
        env, items: as for `ItemByItemVector`; the observations of ``env`` are arrays.
    """

    def __init__(self, env: VectorEnv, items: ArrayLike | None = None) -> None:
        self._by_item = ItemByItemVector(env, items)
        super().__init__(self._by_item)
        last = env.single_observation_space
        lists: Any = env.single_action_space
        size = lists.n_items + lists.n_positions + flatdim(last)
        self.single_observation_space = Box(0, 1 if isinstance(last, MultiBinary) else np.inf, (size,))
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observations, infos = self.env.reset(seed=seed, options=options)
        return _flat(observations), infos

    def step(self, actions: NDArray[np.integer]) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        left = self._by_item.action_masks()
        cyclic = (actions[:, None] + np.arange(left.shape[1])) % left.shape[1]
        actions = cyclic[np.arange(len(left)), np.argmax(np.take_along_axis(left, cyclic, axis=1), axis=1)]
        observations, rewards, terminations, truncations, infos = self.env.step(actions)
        if "final_obs" in infos:
            infos["final_obs"][:] = [_flat(observation) for observation in infos["final_obs"]]
        return _flat(observations), rewards, terminations, truncations, infos


def _flat(observation: dict[str, Any]) -> NDArray[np.float32]:
    placed, last = observation["placed"], observation["observation"]
    position = placed.any(axis=-1)
    return np.concatenate([placed.any(axis=-2), position, last.reshape(*position.shape[:-1], -1)], axis=-1, dtype=np.float32)


WRAPPERS: dict[Actions, Callable[[VectorEnv, ArrayLike], VectorEnv]] = {
    "codes": LehmerVectorAction,
    "scores": ScoresVectorAction,
    "lists": EnumeratedVectorAction,
    "items": ItemChoices,
}


def play_learner(
    agent: Learner,
    env: gym.Env,
    meter: Meter,
    metrics: Metrics,
    on_chunk: OnChunk | None = None,
    log: Path | None = None,
) -> None:
    """Let a learner play up to the meter's horizon; the environment has been reset.

    It plays on streams of its own: a `ClickVectorEnv` of the environment's click model, seeded from the environment's
    generator. The sessions are counted in the order of the steps, and in a step in the order of the streams; the last step
    may play up to ``n_envs - 1`` sessions beyond the horizon, which are not counted. A learner that was trained before
    (`train`) plays one stream, with frozen weights.

    Args:
        agent: goes on from what it has learned.
        env: an environment of this package, without wrappers (the streams would bypass them).
        meter: receives the totals.
        metrics: what is measured besides.
        on_chunk: called after each step with the number of its sessions; what it raises ends the run.
        log: a folder for TensorBoard; with frozen weights there is nothing to log.

    Raises:
        RuntimeError: the learner ended before the horizon.
        ValueError: the environment has wrappers or a step of its own, or its users change with time.
    """
    click_env = playable(agent, env)
    task = click_env.task
    recorded = RecordVectorRegret(
        ClickVectorEnv(
            task.model,
            agent.n_envs if agent.training is None else 1,
            REWARDS[task.code],
            task.cutoff,
            reference=task.optimal_ranking,
            autoreset_mode=AutoresetMode.SAME_STEP,
        )
    )
    recorded.meter = meter
    contexts = metrics.contexts(click_env)

    def on_session(ranking: NDArray[np.int64], clicks: NDArray[np.int8], expectation: float) -> None:
        metrics.kernel(contexts, ranking, clicks, expectation, meter.totals, 3)

    recorded.on_session = on_session if metrics.summed else None
    envs = _streams(agent, recorded)
    envs.seed(int(click_env.np_random.integers(2**31)))
    reported = 0

    def on_step() -> bool:
        nonlocal reported
        if on_chunk is not None and meter.step > reported:
            on_chunk(meter.step - reported)
        reported = meter.step
        return meter.step < meter.horizon

    if agent.training is None:
        agent.learn(envs, meter.horizon, on_step, log)
        if meter.step < meter.horizon:  # its regret would pass for that of the whole horizon
            raise RuntimeError(f"{type(agent).__name__} ended after {meter.step} of {meter.horizon} sessions")
    else:
        observations = envs.reset()
        while on_step():
            observations, *_ = envs.step(agent.act(observations))


def train(agent: Learner, env: gym.Env, on_chunk: OnChunk | None = None, log: Path | None = None) -> None:
    """Train a learner on the family of instances that its ``training`` names, before it faces the environment.

    Args:
        agent: one with a ``training``, that has not learned yet.
        env: tells size, click model and reward; it is not played.
        on_chunk: called after each step with 0, for no session counts; what it raises ends the training.
        log: a folder for TensorBoard.
    """
    assert agent.training is not None
    task = playable(agent, env).task
    draw = family(agent.training.family, task.model)
    envs = _streams(agent, FamilyVectorEnv(draw, agent.n_envs, agent.training.episode, REWARDS[task.code], task.cutoff))
    envs.seed(int(agent.rng.integers(2**31)))

    def on_step() -> bool:
        if on_chunk is not None:
            on_chunk(0)
        return True

    agent.learn(envs, agent.training.sessions, on_step, log)


def _streams(agent: Learner, envs: VectorEnv) -> StableBaselinesVecEnv:
    """What the library plays on: with actions of the learner's kind, and histories where it was trained to read them."""
    if agent.training is not None:
        envs = HistoryVectorObservation(envs, agent.items, per_position=True, horizon=agent.training.episode)
    return StableBaselinesVecEnv(WRAPPERS[agent.actions](envs, agent.items))


def expected_seconds(agent: Learner, env: gym.Env, horizon: int, seconds: float = 1.5) -> float:
    """What a run of a learner costs on this machine, by a trial; the learner is of no use afterwards.

    Args:
        agent, env: as for `play_learner`; the environment is reset.
        horizon: T, the sessions of a run.
        seconds: how long to play, apart from the first step. The rate is of the second half: an algorithm may gather sessions
            before it learns from them.
    """
    env.reset(seed=0)
    meter = Meter([horizon])
    total = 0.0
    if agent.training is not None:
        per_step, _ = _seconds_per_step(lambda on_chunk: train(agent, env, on_chunk), seconds)
        total += per_step * agent.training.sessions / agent.n_envs
    per_step, steps = _seconds_per_step(lambda on_chunk: play_learner(agent, env, meter, Metrics(), on_chunk), seconds)
    return total + per_step * steps / max(meter.step, 1) * horizon


def _seconds_per_step(play: Callable[[OnChunk], None], seconds: float) -> tuple[float, int]:
    """Seconds of a step in the second half of a trial, and how many steps there were."""
    times: list[float] = []

    def on_chunk(_: int) -> None:
        times.append(time.perf_counter())
        if times[-1] - times[0] > seconds:
            raise TimeoutError

    with contextlib.suppress(TimeoutError):
        play(on_chunk)
    half = len(times) // 2
    return (times[-1] - times[half]) / max(len(times) - 1 - half, 1), len(times)
