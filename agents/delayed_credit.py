"""Algorithms of stable-baselines3 that give late rewards to the lists that earned them. Imports torch."""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium.spaces import Discrete, flatdim
from numpy.typing import NDArray
from stable_baselines3 import A2C
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv

MAX_BYTES = 500_000_000
"""Of the observations of open lists, about."""
Choice = dict[str, Any]
"""What belongs to one choice of a list, by name."""


class OpenLists:
    """The lists that an environment has shown, until their rewards arrive.

    Args:
        envs: has the attributes ``arrivals`` and ``max_open`` of `InTurn`.
        choices: how many steps choose a list.

    Attributes:
        completed: transitions that no rollout has yet.
    """

    def __init__(self, envs: VecEnv, choices: int) -> None:
        self.envs, self.completed = envs, deque[Choice]()
        self._choices, self._draft = choices, list[Choice]()
        self._open: dict[int, list[Choice]] = {}  # by display
        self._most = min(envs.get_attr("max_open", 0)[0], MAX_BYTES // (24 * choices * flatdim(envs.observation_space)))

    def show(self, choice: Choice) -> list[tuple[list[Choice], float]]:
        """Keep what was chosen on all streams in a step; with the last choice of their lists, return what arrived.

        Args:
            choice: arrays with one row for each stream.

        Returns:
            The choices of each list that arrived, and its reward, in the order of arrival.
        """
        self._draft.append(choice)
        if len(self._draft) < self._choices:
            return []
        first, arrivals = self.envs.get_attr("arrivals", 0)[0]
        for stream in range(self.envs.num_envs):
            rows = [{name: array[stream].copy() for name, array in choice.items()} for choice in self._draft]
            self._open[first + stream] = rows
        self._draft = []
        arrived = [(self._open.pop(display), reward) for display, reward in arrivals if display in self._open]
        while len(self._open) > self._most:
            del self._open[next(iter(self._open))]
        return arrived


class _DelayedCredit:
    """What both kinds of algorithms have in common."""

    choices: ClassVar[int]
    """How many steps choose a list."""
    open_lists: OpenLists | None = None

    def lists_of(self, envs: VecEnv) -> OpenLists:
        """Return the open lists of the streams; those of other streams never arrive here."""
        if self.open_lists is None or self.open_lists.envs is not envs:
            self.open_lists = OpenLists(envs, self.choices)
        return self.open_lists

    def _excluded_save_params(self) -> list[str]:
        return [*super()._excluded_save_params(), "open_lists"]  # type: ignore[misc]


class DelayedRollouts(_DelayedCredit, OnPolicyAlgorithm):
    """Mixin for PPO and its like: rollouts of completed transitions, in the order of arrival.

    A transition is completed when the reward of its list arrives. It has the observation, the log-probability and the value
    of the moment when the list was shown, and a list is an episode of its own. A rollout is complete when ``n_steps * n_envs``
    transitions have arrived, in whatever number of sessions. Lists whose clicks are open or lost are in none. PPO's ratio is
    therefore that of the present policy to the policy that drew the list.
    """

    def collect_rollouts(
        self, env: VecEnv, callback: Any, rollout_buffer: Any, n_rollout_steps: int, *args: Any, **options: Any
    ) -> bool:
        """Play until a rollout is complete. The library writes each step into its buffer, and the rows are taken from there."""
        lists, size = self.lists_of(env), n_rollout_steps * env.num_envs
        while len(lists.completed) < size:
            if not super().collect_rollouts(env, callback, rollout_buffer, 1, *args, **options):
                return False
            for choices, reward in lists.show({name: array[0] for name, array in _arrays(rollout_buffer).items()}):
                lists.completed.extend(self._transitions(choices, reward))
        rollout_buffer.reset()
        rows = [lists.completed.popleft() for _ in range(size)]
        for name, array in _arrays(rollout_buffer).items():
            in_order = np.array([row[name] for row in rows]).reshape(env.num_envs, n_rollout_steps, *array.shape[2:])
            array[:] = in_order.swapaxes(0, 1)
        rollout_buffer.full = True
        return True

    def _transitions(self, choices: list[Choice], reward: float) -> list[Choice]:
        """Return the transitions of a list, whose advantages are smoothed over its choices (GAE) as in an episode."""
        target, advantage = reward, 0.0
        for row in reversed(choices):
            advantage = target - row["values"] + self.gamma * self.gae_lambda * advantage
            row |= {"rewards": reward, "advantages": advantage, "returns": advantage + row["values"]}
            target, reward = self.gamma * row["values"], 0.0
        return choices


def _arrays(buffer: Any) -> dict[str, NDArray]:
    """Return the arrays ``(n_steps, n_envs, ...)`` of a buffer of rollouts."""
    arrays = dict(vars(buffer))
    if isinstance(buffer.observations, dict):
        arrays |= {f"observations/{name}": array for name, array in buffer.observations.items()}
    return {name: array for name, array in arrays.items() if isinstance(array, np.ndarray)}


class DelayedA2C(DelayedRollouts):
    """Mixin for A2C, whose gradient is that of the policy that drew the lists.

    ⚠ Late lists were drawn by an earlier policy, so each advantage is multiplied by min(1, π_now / π_display), the ratio of the
    list's probabilities under the present policy and when it was shown. This is a choice of this package. If advantages are
    normalised, that follows.
    """

    def train(self) -> None:
        """Take a gradient step."""
        buffer = self.rollout_buffer
        next(buffer.get())  # makes one row of each transition
        rollout = buffer._get_samples(np.arange(len(buffer.advantages)))
        actions = rollout.actions.long().flatten() if isinstance(self.action_space, Discrete) else rollout.actions
        with torch.no_grad():
            _, now, _ = self.policy.evaluate_actions(rollout.observations, actions)
        buffer.advantages *= (now - rollout.old_log_prob).exp().clamp(max=1).numpy()[:, None]
        super().train()


class DelayedReplay(_DelayedCredit, OffPolicyAlgorithm):
    """Mixin for DQN, SAC and TD3: a list goes into the memory when its reward arrives, as an episode of its own.

    Gradient steps begin when ``learning_starts`` choices have arrived, not when so many were made.
    """

    def _setup_model(self) -> None:
        n_envs, self.n_envs = self.n_envs, 1  # for the memory, into which lists come one by one
        super()._setup_model()
        self.n_envs = n_envs

    def _store_transition(self, replay_buffer: Any, *transition: Any) -> None:
        shown: Any = _Shown()
        super()._store_transition(shown, *transition)
        envs: Any = self.env
        for choices, reward in self.lists_of(envs).show(shown.choice):
            for number, row in enumerate(choices, 1):
                last = number == len(choices)
                batch = {name: values[None] for name, values in row.items()}
                replay_buffer.add(**batch, reward=np.array([reward * last]), done=np.array([last]), infos=[{}])

    def train(self, gradient_steps: int, batch_size: int) -> None:
        """Take gradient steps, if enough has arrived."""
        memory: Any = self.replay_buffer
        if memory.size() >= min(max(self.learning_starts, 1), memory.buffer_size):
            super().train(gradient_steps, batch_size)


class _Shown:
    """Takes the place of a memory, and has what the library puts there."""

    choice: Choice

    def add(self, obs: Any, next_obs: Any, action: Any, *_: Any) -> None:
        self.choice = {"obs": obs, "next_obs": next_obs, "action": action}


def with_delayed_credit(algorithm: type, choices: int) -> type:
    """Return an algorithm of stable-baselines3 or sb3-contrib that gives late rewards to the lists that earned them.

    Args:
        algorithm: the library's class.
        choices: how many steps choose a list.
    """
    mixin: type = DelayedA2C if issubclass(algorithm, A2C) else DelayedRollouts
    if issubclass(algorithm, OffPolicyAlgorithm):
        mixin = DelayedReplay
    return type(algorithm.__name__, (mixin, algorithm), {"choices": choices, "__module__": algorithm.__module__})
