"""Algorithms of stable-baselines3 that give late rewards to the lists that earned them."""

from __future__ import annotations

from collections import deque
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from gymnasium.spaces import Discrete, flatdim
from numpy.typing import NDArray
from stable_baselines3 import A2C
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv

MAX_BYTES = 500_000_000
"""Of the observations of open lists."""


class OpenLists:
    """What the streams of an environment were shown, until the rewards arrive.

    Args:
        envs: its attribute ``arrivals`` has what arrived with the last step, and ``max_open`` how many lists can wait for it.
        choices: how many steps choose a list.

    Attributes:
        completed: transitions that no rollout has yet.
    """

    def __init__(self, envs: VecEnv, choices: int) -> None:
        self.envs, self.completed = envs, deque[Any]()
        self._choices = choices
        self._draft: list[Any] = []
        self._open: dict[int, list[Any]] = {}  # by step: the choices, and how many lists wait
        most = min(envs.get_attr("max_open", 0)[0], MAX_BYTES // (8 * choices * flatdim(envs.observation_space)))
        self._most_steps = -(-most // envs.num_envs) + 1  # so many steps can have parts of that many lists in a row

    def show(self, choice: Any) -> list[tuple[list[Any], int, float]]:
        """Keep what was chosen on all streams in a step. With the last choice of the lists, return the lists that arrived.

        Returns:
            The choices of each list (they are those of all streams), its stream and its reward, in the order of arrival.
        """
        self._draft.append(choice)
        if len(self._draft) < self._choices:
            return []
        now, arrivals = self.envs.get_attr("arrivals", 0)[0]
        self._open[now], self._draft = [self._draft, self.envs.num_envs], []
        arrived = []
        for step, stream, reward in arrivals:
            if step in self._open:  # else it was given up
                list_of_step = self._open[step]
                arrived.append((list_of_step[0], stream, reward))
                list_of_step[1] -= 1
                if list_of_step[1] == 0:
                    del self._open[step]
        if len(self._open) > self._most_steps:
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
    transitions have arrived, in whatever number of sessions. Lists whose clicks are open or lost are in none.
    """

    def collect_rollouts(
        self, env: VecEnv, callback: Any, rollout_buffer: Any, n_rollout_steps: int, *args: Any, **options: Any
    ) -> bool:
        """Play until a rollout is complete; the library writes each step, and its rows are taken from there."""
        lists = self.lists_of(env)
        while len(lists.completed) < n_rollout_steps * env.num_envs:
            if not super().collect_rollouts(env, callback, rollout_buffer, 1, *args, **options):
                return False
            shown = {name: array[0].copy() for name, array in _arrays(rollout_buffer).items()}
            for arrived in lists.show(shown):
                lists.completed.extend(self._transitions(*arrived))
        rows = [lists.completed.popleft() for _ in range(n_rollout_steps * env.num_envs)]
        for name, array in _arrays(rollout_buffer).items():
            in_order = np.array([row[name] for row in rows]).reshape(env.num_envs, n_rollout_steps, *array.shape[2:])
            array[:] = in_order.swapaxes(0, 1)
        rollout_buffer.full = True
        return True

    def _transitions(self, choices: list[dict[str, NDArray]], stream: int, reward: float) -> list[dict[str, Any]]:
        """Return the rows of a list's choices; advantages are smoothed over them, as the library does in an episode."""
        rows = [{name: array[stream] for name, array in choice.items()} for choice in choices]
        target, advantage = reward, 0.0
        for row in reversed(rows):
            advantage = target - row["values"] + self.gamma * self.gae_lambda * advantage
            row |= {"rewards": reward, "advantages": advantage, "returns": advantage + row["values"]}
            target, reward = self.gamma * row["values"], 0.0
        return rows


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
        next(buffer.get())  # makes a row of each transition
        rollout = buffer._get_samples(np.arange(len(buffer.advantages)))
        actions = rollout.actions.long().flatten() if isinstance(self.action_space, Discrete) else rollout.actions
        with torch.no_grad():
            _, log_probabilities, _ = self.policy.evaluate_actions(rollout.observations, actions)
        buffer.advantages *= (log_probabilities - rollout.old_log_prob).exp().clamp(max=1).cpu().numpy()[:, None]
        super().train()


class DelayedReplay(_DelayedCredit, OffPolicyAlgorithm):
    """Mixin for DQN, SAC and TD3: a transition goes into the memory when its reward arrives, as an episode of its own.

    Gradient steps begin when ``learning_starts`` transitions have arrived, not when so many were shown.
    """

    def _setup_model(self) -> None:
        n_envs, self.n_envs = self.n_envs, 1  # lists arrive one by one
        super()._setup_model()
        self.n_envs = n_envs

    def _store_transition(
        self, replay_buffer: Any, buffer_action: Any, new_obs: Any, reward: Any, dones: Any, infos: Any
    ) -> None:
        shown = _Shown()
        super()._store_transition(shown, buffer_action, new_obs, reward, dones, infos)
        for choices, b, own in self.lists_of(self.env).show(shown.row):
            for number, row in enumerate(choices, 1):
                last = number == len(choices)
                replay_buffer.add(*(_row(part, b) for part in row), np.array([own * last]), np.array([last]), [{}])

    def train(self, gradient_steps: int, batch_size: int) -> None:
        """Take gradient steps, if enough has arrived."""
        if self.replay_buffer.size() >= min(max(self.learning_starts, 1), self.replay_buffer.buffer_size):
            super().train(gradient_steps, batch_size)


class _Shown:
    """Takes the place of a memory, and has what the library would have put there."""

    row: tuple[Any, Any, Any]

    def add(self, obs: Any, next_obs: Any, action: Any, *_: Any) -> None:
        self.row = deepcopy((obs, next_obs, action))


def _row(values: Any, stream: int) -> Any:
    """Return the part of one stream, as a batch of one."""
    if isinstance(values, dict):
        return {name: array[stream : stream + 1] for name, array in values.items()}
    return values[stream : stream + 1]


def with_delayed_credit(algorithm: type, choices: int) -> type:
    """Return an algorithm of stable-baselines3 or sb3-contrib that gives late rewards to the lists that earned them.

    Args:
        algorithm: the library's class.
        choices: how many steps choose a list.
    """
    if issubclass(algorithm, OffPolicyAlgorithm):
        mixin: type = DelayedReplay
    else:
        mixin = DelayedA2C if issubclass(algorithm, A2C) else DelayedRollouts
    return type(algorithm.__name__, (mixin, algorithm), {"choices": choices})
