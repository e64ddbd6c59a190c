"""The sessions of one environment in turn, as a vector environment for learners: with late clicks, bots, other candidates."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, MultiBinary, flatdim
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from ...envs import ClickEnv
from ...envs.available import available_state, draw_all_available
from ...envs.guests import clicks_of, regret_of
from ...envs.present import deal_round
from ...envs.wrappers.delayed_credit import max_open, own_rewards
from ...envs.wrappers.regret import Meter
from ..metrics import Metrics


class InTurn(VectorEnv[Any, NDArray[np.int64], Any]):
    """Vector environment whose streams are the sessions of one environment in turn.

    A policy chooses n lists at once, and they are shown to the next n users, one after the other.

    So delays, shares of bots, rates of replacement and users are those of the environment, whatever n is. A stream observes
    what had arrived when its session ended, as one array of numbers between 0 and 1. If clicks arrive late, the array begins
    with three parts: how often each item was on each position, how often it was clicked there, and how many sessions arrived.
    The first two are shares of the sessions that arrived, and replaced items do not count. The third is a share of the most
    sessions that can arrive. If clicks arrive at once, the array begins with the clicks instead. The replaced item follows,
    one-hot. Where every session has other candidates, the array has the features of those of the stream's next session instead
    of all this, because the clicks were on others; a value is the last of these. At the end are the items that the next list
    can show.

    Args:
        env: that has been reset; users without a memory.
        num_envs: n.
        meter: counts the sessions, in their order.
        metrics: what is measured besides.
        apart: if candidates have features, or items can be unavailable, observe a `Dict` of ``features`` ``(L, d)``, or
            ``seen``, an array of the rest, and ``available`` ``(L,)``.
    """

    action_space: Any
    single_observation_space: Any
    arrivals: tuple[int, list[tuple[int, float]]] | None = None
    """None if clicks come at once; else the display of the first list of the last step, and the displays that arrived in this
    step, in the order of arrival, each with the reward of its own list."""
    max_open: int
    """How many displays can wait for their clicks, if these come late."""

    def __init__(self, env: ClickEnv, num_envs: int, meter: Meter, metrics: Metrics, apart: bool = False) -> None:
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.num_envs, self.meter = num_envs, meter
        self._env, self._metrics, self._contexts = env, metrics, metrics.contexts(env)
        self.single_action_space = env.action_space
        self.action_space = batch_space(env.action_space, num_envs)
        self._mask = (
            None if env.axes is None or env.axes.available is None else np.ones((num_envs, env.model.n_items), np.bool_)
        )
        self.action_space.available = self._mask
        space = env.observation_space
        self.single_observation_space = space
        if isinstance(space, Dict):
            self.single_observation_space = self._observed(space, apart)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        if env.axes is not None and env.axes.arrival is not None:
            self.arrivals, self.max_open = (0, []), max_open(env)

    def _observed(self, space: Dict, apart: bool) -> Any:
        """The space of what `_seen` returns."""
        n_items, n_positions = self._env.model.n_items, self._env.model.n_positions
        late = 2 * n_positions * n_items + 1 if "n_arrived" in space.spaces else flatdim(space["clicks"])
        seen: Any = Box(0, 1, (late + n_items * ("replaced" in space.spaces),))
        entries = {"features": _with_value(space)} if "features" in space.spaces else {"seen": seen}
        if self._mask is not None:
            entries["available"] = MultiBinary(n_items)
        self._apart = apart and entries.keys() != {"seen"}
        low, high = -1 if "features" in entries else 0, np.inf if "values" in space.spaces else 1
        return Dict(entries) if self._apart else Box(low, high, (sum(map(flatdim, entries.values())),))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, in which the environment goes on; with a seed it begins anew."""
        observation, _ = self._env.reset(seed=seed, options=options)
        self._draw_masks()
        return self._seen([observation] * self.num_envs), {}

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Show ``(n, K)`` lists to the next n users; the rewards ``(n,)`` are of what arrived as each session ended."""
        rewards, never = np.empty(self.num_envs), np.zeros(self.num_envs, np.bool_)
        observations = []
        arrived: list[tuple[int, float]] = []
        for b, ranking in enumerate(np.asarray(actions, np.int64)):
            contexts = self._metrics.as_shown(self._contexts)
            observation, rewards[b], _, _, info = self._env.step(ranking)
            observations.append(observation)
            if self.arrivals is not None:
                arrived += own_rewards(self._env, observation)
            clicks = info.get("true_clicks", clicks_of(observation))
            if info.get("bot", False):
                clicks = np.zeros_like(clicks)
            elif self._metrics.summed and self.meter.step < self.meter.horizon:
                self._metrics.kernel(contexts, ranking, clicks, info["expected_reward"], self.meter.totals, 3)
            self.meter.add(regret_of(info), info.get("realised_reward", rewards[b]), int(clicks.sum()))
        self._draw_masks()
        if self.arrivals is not None:
            self.arrivals = int(observations[0]["display"].item()), arrived
        return self._seen(observations), rewards, never, never.copy(), {}

    def _draw_masks(self) -> None:
        """Write which items the next n sessions can show: the environment will draw the same."""
        axes = self._env.axes
        if self._mask is None or axes is None:
            return
        coming = available_state(len(self._mask) - 1, self._mask.shape[1], axes.available_state.size)
        coming.uniforms[:] = deepcopy(axes.generators["available"]).random(coming.uniforms.shape)
        draw_all_available(coming)
        self._mask[0], self._mask[1:] = axes.mask[0], coming.mask

    def _seen(self, observations: list[Any]) -> Any:
        """The observations ``(n, ...)`` of the streams."""
        if not isinstance(self._env.observation_space, Dict):
            return np.array(observations)
        if "features" in observations[-1]:
            last = observations[-1]
            first = np.column_stack([last["features"], last["values"]]) if "values" in last else last["features"]
            entries = {"features": self._coming(first)}
        else:
            entries = {"seen": np.stack([self._flat(observation) for observation in observations])}
        if self._mask is not None:
            entries["available"] = self._mask.astype(np.int8)
        if self._apart:
            return entries
        return np.concatenate([part.reshape(self.num_envs, -1) for part in entries.values()], axis=1, dtype=np.float32)

    def _coming(self, first: NDArray[np.float64]) -> NDArray[np.float64]:
        """The features ``(n, L, d)`` of the next n sessions, from those of the first: the environment will draw the same."""
        task, coming = self._env.task, deepcopy(self._env.np_random)
        drawn, scratch = deepcopy(task.round), np.empty(0)
        features = np.tile(first, (self.num_envs, 1, 1))
        for b in range(1, self.num_envs):
            coming.random(self._env.model.n_positions)  # the clicks
            deal_round(task.pool, drawn, task.parameters, coming, task.code, scratch)
            if self._env.model.item_values is not None:
                drawn.features[:, -1] = drawn.others[-1]
            features[b] = drawn.features
        return features

    def _flat(self, observation: dict[str, Any]) -> NDArray[np.float32]:
        """One observation as one array, without the mask."""
        n_items, n_positions = self._env.model.n_items, self._env.model.n_positions
        parts = [observation["clicks"]]
        if "n_arrived" in observation:
            n_arrived, most = observation["n_arrived"], len(observation["displays"])
            rankings, clicks = observation["rankings"][:n_arrived], observation["clicks"][:n_arrived]
            is_same = ~observation["void"][:n_arrived] if "void" in observation else np.ones(rankings.shape, np.bool_)
            shown, clicked = np.zeros((2, n_positions, n_items))
            places = np.broadcast_to(np.arange(n_positions), rankings.shape)
            np.add.at(shown, (places, rankings), is_same / max(n_arrived, 1))
            np.add.at(clicked, (places, rankings), is_same * clicks / max(n_arrived, 1))
            parts = [shown, clicked, np.array([n_arrived / most])]
        if "replaced" in observation:
            parts.append(np.arange(n_items) == observation["replaced"])
        return np.concatenate([np.ravel(part) for part in parts], dtype=np.float32)


def _with_value(space: Dict) -> Any:
    """The space of the features of candidates, of which the last is the value, if candidates have values."""
    features: Any = space["features"]
    if "values" not in space.spaces:
        return features
    return Box(-1.0, np.inf, (features.shape[0], features.shape[1] + 1), np.float64)
