"""Wrappers that add the history to the observation: which items were shown and clicked, and how often."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, MultiBinary
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from ...core.checks import A_VECTOR_ENV, AN_ENV, check_count, check_flag, check_horizon, check_kind
from ..codecs import order_of_items
from ..spaces import RankedList
from .actions import check_autoreset_mode, recorded


class _History:
    """The history of one stream of sessions, or of B; ``streams`` as in `order_of_items`."""

    def __init__(
        self,
        lists: gym.Space,
        clicks: gym.Space,
        items: ArrayLike | None,
        per_position: bool,
        last: int,
        horizon: float,
        streams: tuple[int, ...] = (),
    ) -> None:
        if not isinstance(lists, RankedList):
            raise TypeError(
                f"a history is kept of ranked lists, but the action space is {lists}; put wrappers of actions outside, as in "
                f"LehmerAction(HistoryObservation(env))"
            )
        n_items, n_positions = lists.n_items, lists.n_positions
        if clicks != MultiBinary(n_positions):
            why = "put wrappers of observations outside; and where each session has other candidates, an item has no history"
            if isinstance(clicks, Dict) and "state" in clicks.spaces:
                why = "users with a memory click otherwise in each state, so that an item has no single history"
            raise TypeError(f"a history is kept of clicks, MultiBinary({n_positions}), but observations are {clicks}: {why}")
        last = check_count("last", last, 0)
        self._numbers = np.argsort(order_of_items(items, n_items, streams), axis=-1)
        self._per_position = check_flag("per_position", per_position)
        self._scale = np.log1p(check_horizon(horizon))
        shape = (n_positions, n_items) if per_position else (n_items,)
        self.space = Dict(
            clicks=clicks,
            click_rate=Box(0, 1, shape, np.float32),
            displays=Box(0, 1, shape, np.float32),
            time=Box(0, 1, (1,), np.float32),
        )
        if last:
            self.space["last_lists"] = MultiBinary([last, n_positions, n_items])
            self.space["last_clicks"] = MultiBinary([last, n_positions])
        self._displays, self._clicks = np.zeros((2, *streams, *shape), np.int64)
        self._steps = np.zeros((*streams, 1), np.int64)
        self._last_lists = np.zeros((*streams, last, n_positions, n_items), np.int8)
        self._last_clicks = np.zeros((*streams, last, n_positions), np.int8)

    def forget(self, streams: Any = ...) -> None:
        """Begin anew, on all streams or those of a mask."""
        for kept in (self._displays, self._clicks, self._steps, self._last_lists, self._last_clicks):
            kept[streams] = 0

    def add(self, rankings: NDArray[np.int64], clicks: NDArray[np.int8]) -> None:
        """One more session of each stream: ``(*streams, K)`` lists and clicks."""
        numbers = np.take_along_axis(self._numbers, rankings, axis=-1)
        where, clicked = (numbers[..., None], clicks[..., None]) if self._per_position else (numbers, clicks)
        for total, more in ((self._displays, 1), (self._clicks, clicked)):
            np.put_along_axis(total, where, np.take_along_axis(total, where, axis=-1) + more, axis=-1)
        self._steps += 1
        if self._last_lists.size:
            self._last_lists[..., 1:, :, :] = self._last_lists[..., :-1, :, :].copy()
            self._last_lists[..., 0, :, :] = 0
            np.put_along_axis(self._last_lists[..., 0, :, :], numbers[..., None], 1, axis=-1)
            self._last_clicks[..., 1:, :] = self._last_clicks[..., :-1, :].copy()
            self._last_clicks[..., 0, :] = clicks

    def observe(self, clicks: NDArray[np.int8]) -> dict[str, NDArray[Any]]:
        observation: dict[str, NDArray[Any]] = {
            "clicks": clicks,
            "click_rate": (self._clicks / np.maximum(self._displays, 1)).astype(np.float32),
            "displays": self._on_log_scale(self._displays),
            "time": self._on_log_scale(self._steps),
        }
        if self._last_lists.size:
            observation |= {"last_lists": self._last_lists.copy(), "last_clicks": self._last_clicks.copy()}
        return observation

    def _on_log_scale(self, count: NDArray[np.int64]) -> NDArray[np.float32]:
        return np.minimum(np.log1p(count) / self._scale, 1).astype(np.float32)


class HistoryObservation(gym.Wrapper, RecordConstructorArgs):
    """Adds to the last clicks the history of all sessions so far: what was shown, and how often it was clicked.

    Without this wrapper a policy observes only the clicks on its last list, not even the list itself. It can then learn good
    lists only in its weights, during the sessions of training. With this wrapper a policy that was trained on many instances
    can learn to explore a new one. `reset` clears the history.

    The observation is a `Dict` of

    - `clicks`, ``MultiBinary(K)``: the observation of the environment, the clicks on the last list;
    - `click_rate`, ``Box(0, 1, (L,))``: clicks per display of each item; 0 where never shown;
    - `displays`, ``Box(0, 1, (L,))``: how often each was shown, n, as min(1, log(1 + n) / log(1 + horizon));
    - `time`, ``Box(0, 1, (1,))``: the sessions so far, on the same scale;
    - `last_lists`, ``MultiBinary([last, K, L])``: the last lists, the latest first: 1 where a position held an item;
    - `last_clicks`, ``MultiBinary([last, K])``: the clicks on them.

    On the logarithmic scale, 1 and 10 displays differ as clearly as 10⁵ and 10⁶. Click rates have position bias: an item that
    was shown only at low positions looks worse than it is. ``per_position=True`` keeps rates and displays for each position, as
    ``(K, L)``.

    It must see lists and clicks, so it goes directly around the environment (or around what measures it, as `RecordRegret`).
    Wrappers of actions and further ones of observations go around it, in either order:
    ``FlattenObservation(LehmerAction(HistoryObservation(env)))``.

    Args:
        env: an environment whose action space is a `RankedList` and whose observations are the clicks.
        items: ``(L,)`` all items: number j of the observation is ``items[j]``; None is ``0..L-1``. Give it and the wrapper
            of actions the same order.
        per_position: whether rates and displays are kept for each position by itself.
        last: how many lists are remembered.
        horizon: `time` reaches 1 after so many sessions, and `displays` after so many displays of an item; both then stay at 1.

    Raises:
        TypeError: lists or clicks cannot be seen from here.
        ValueError: on a bad argument, naming it.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> from clickgym.envs import HistoryObservation
        >>> env = HistoryObservation(gym.make("PBMRank-v0", attraction=[1.0, 0.0, 1.0], examination=[1.0, 1.0]), horizon=999)
        >>> observation, info = env.reset(seed=0)
        >>> for ranking in [0, 1], [1, 0], [0, 2]:
        ...     observation, reward, terminated, truncated, info = env.step(ranking)
        >>> observation["click_rate"], observation["displays"].round(2)
        (array([1., 0., 1.], dtype=float32), array([0.2 , 0.16, 0.1 ], dtype=float32))
    """

    def __init__(
        self, env: gym.Env, items: ArrayLike | None = None, *, per_position: bool = False, last: int = 0, horizon: float = 1e6
    ) -> None:
        check_kind("env", env, gym.Env, AN_ENV)
        self._history = _History(env.action_space, env.observation_space, items, per_position, last, horizon)
        RecordConstructorArgs.__init__(
            self, items=recorded(items), per_position=bool(per_position), last=int(last), horizon=float(horizon)
        )
        gym.Wrapper.__init__(self, env)
        self.observation_space = self._history.space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Reset the environment, and forget."""
        clicks, info = self.env.reset(seed=seed, options=options)
        self._history.forget()
        return self._history.observe(clicks), info

    def step(self, action: ArrayLike) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        """Show a list to the next user, and remember it."""
        clicks, reward, terminated, truncated, info = self.env.step(action)
        self._history.add(np.asarray(action, np.int64), clicks)
        return self._history.observe(clicks), reward, terminated, truncated, info


class HistoryVectorObservation(VectorWrapper):
    """`HistoryObservation` for a vector environment, on all streams at once.

    A stream's history is forgotten when it ends, as the autoreset mode of ``env`` says: with ``SAME_STEP`` the last
    observation with it is in ``final_obs``.

    Args:
        env: a vector environment whose single action space is a `RankedList` and whose observations are the clicks, with
            autoreset mode ``SAME_STEP`` or ``NEXT_STEP``.
        items: ``(L,)`` as in `HistoryObservation`, the same for all streams; or ``(B, L)``, an order for each.
        per_position, last, horizon: as in `HistoryObservation`.

    Raises:
        TypeError, ValueError: as `HistoryObservation`; ValueError also on another autoreset mode.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> from clickgym.envs import HistoryVectorObservation
        >>> envs = HistoryVectorObservation(gym.make_vec("PBMRank-v0", num_envs=4), last=2)
        >>> observations, infos = envs.reset(seed=0)
        >>> {name: values.shape for name, values in sorted(observations.items())}
        {'click_rate': (4, 10), 'clicks': (4, 5), 'displays': (4, 10), 'last_clicks': (4, 2, 5), 'last_lists': (4, 2, 5, 10), \
'time': (4, 1)}
    """

    def __init__(
        self, env: VectorEnv, items: ArrayLike | None = None, *, per_position: bool = False, last: int = 0, horizon: float = 1e6
    ) -> None:
        check_kind("env", env, VectorEnv, A_VECTOR_ENV)
        super().__init__(env)
        check_autoreset_mode(env)
        self._history = _History(
            env.single_action_space, env.single_observation_space, items, per_position, last, horizon, (env.num_envs,)
        )
        self.single_observation_space = self._history.space
        self.observation_space = batch_space(self._history.space, env.num_envs)
        self._ended = np.zeros(env.num_envs, np.bool_)  # with NEXT_STEP: the next step is the reset

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Reset all streams, and forget."""
        clicks, infos = self.env.reset(seed=seed, options=options)
        self._history.forget()
        self._ended[:] = False
        return self._history.observe(clicks), infos

    def step(self, actions: ArrayLike) -> tuple[dict[str, Any], Any, Any, Any, dict[str, Any]]:
        """Show a list on each stream, and remember it."""
        clicks, rewards, terminations, truncations, infos = self.env.step(actions)
        ended = terminations | truncations
        begun = self._ended.copy()
        # What was ignored in the step that was a reset may be no list at all; counted as one, it is forgotten below.
        rankings = np.where(begun[:, None], np.arange(clicks.shape[1]), actions)
        if "final_obs" in infos:  # SAME_STEP: the clicks on these lists are there
            last_clicks = clicks.copy()
            last_clicks[ended] = np.stack(infos["final_obs"][ended])
            self._history.add(rankings, last_clicks)
            observations = self._history.observe(last_clicks)
            final = np.full(self.num_envs, None, object)
            for b in np.flatnonzero(ended):
                final[b] = {name: values[b] for name, values in observations.items()}
            infos = {**infos, "final_obs": final}
            self._history.forget(ended)
        else:
            self._history.add(rankings, clicks)
            self._history.forget(begun)
            self._ended = ended
        return self._history.observe(clicks), rewards, terminations, truncations, infos
