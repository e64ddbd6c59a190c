"""Streams of sessions for training on many instances: a new instance of a family in every episode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.spaces import MultiBinary
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from ...envs import ClickModel, RankedList, load_instance
from ...envs.session import session

Draw = Callable[[np.random.Generator], ClickModel]


def family(name: str, like: ClickModel) -> Draw:
    """Make a function that draws instances of a random family, with the kind and the size of a click model.

    Seeds are at least 2³², which evaluations do not use. The model itself is never drawn.

    Args:
        name: ``"uniform"`` or ``"yandex-like"``.
        like: the click model on which the policy will be evaluated.

    Example:
        >>> from clickgym.envs import PositionBasedModel
        >>> family("uniform", PositionBasedModel([0.5, 0.4, 0.3], [1.0, 0.5]))(np.random.default_rng(0))
        PositionBasedModel(n_items=3, n_positions=2)
    """

    def draw(rng: np.random.Generator) -> ClickModel:
        while True:
            seed = rng.integers(2**32, 2**62)
            instance = load_instance(f"{name}:n_items={like.n_items},n_positions={like.n_positions},seed={seed}")
            model = instance.model(like.kind)
            if model.to_dict() != like.to_dict():
                return model

    return draw


class FamilyVectorEnv(VectorEnv[NDArray[np.int8], NDArray[np.int64], Any]):
    """Vector environment for training: each stream has users and items of its own, and new ones in every episode.

    In every episode the items are also renumbered at random, so that a policy can learn about them only from their clicks.

    Args:
        draw: makes the click models, all of one kind and size.
        num_envs: B, the number of streams.
        episode: sessions of an episode, after which all streams are truncated, in autoreset mode ``SAME_STEP``.
        reward, cutoff: as in `ClickEnv`.

    Example:
        >>> from clickgym.envs import PositionBasedModel
        >>> envs = FamilyVectorEnv(family("uniform", PositionBasedModel([0.5, 0.4, 0.3], [1.0, 0.5])), 4, 100)
        >>> clicks, infos = envs.reset(seed=0)
        >>> clicks, rewards, terminations, truncations, infos = envs.step(envs.action_space.sample())
        >>> clicks.shape, len({model.attraction[0] for model in envs.models})
        ((4, 2), 4)
    """

    def __init__(self, draw: Draw, num_envs: int, episode: int, reward: str = "clicks", cutoff: int | None = None) -> None:
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.num_envs, self._draw, self._episode = num_envs, draw, episode
        first = draw(np.random.default_rng(0))
        self._code, self._cutoff = first.check_reward(reward, cutoff)
        self._session = session(first)
        self.n_items, self.n_positions = first.n_items, first.n_positions
        self.single_action_space = RankedList(first.n_items, first.n_positions)
        self.single_observation_space = MultiBinary(first.n_positions)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._scratch = np.empty(first.n_positions + 1)
        self._examined = np.empty(first.n_positions, np.int8)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.int8], dict[str, Any]]:
        """Begin an episode of each stream."""
        super().reset(seed=seed)
        self.models = [self._draw(self.np_random) for _ in range(self.num_envs)]
        self._labels = self.np_random.permuted(np.tile(np.arange(self.n_items), (self.num_envs, 1)), axis=1)
        self._steps = 0
        return np.zeros((self.num_envs, self.n_positions), np.int8), {}

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[NDArray[np.int8], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Show one list on each stream: ``(B, K)`` items, each row distinct."""
        rankings = np.take_along_axis(self._labels, np.asarray(actions), axis=1)
        clicks, rewards = np.empty(rankings.shape, np.int8), np.empty(self.num_envs)
        uniforms = self.np_random.random(rankings.shape)
        for b, model in enumerate(self.models):
            rewards[b], _, _ = self._session(
                model.parameters, rankings[b], uniforms[b], clicks[b], self._examined, self._code, self._cutoff, self._scratch
            )
        self._steps += 1
        ended = self._steps == self._episode
        infos: dict[str, Any] = {}
        if ended:
            final = np.empty(self.num_envs, object)
            final[:] = list(clicks)
            infos = {"final_obs": final, "_final_obs": np.ones(self.num_envs, np.bool_)}
            clicks, _ = self.reset()
        return clicks, rewards, np.zeros(self.num_envs, np.bool_), np.full(self.num_envs, ended), infos
