"""Rewards of late clicks, each with the list that earned it, for training loops of one's own."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Space
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import ArrayLike, NDArray

from ...core.checks import AN_ENV, check_kind
from ..click_env import ClickEnv
from ..spaces import RankedList


def own_rewards(env: ClickEnv, observation: dict[str, Any]) -> list[tuple[int, float]]:
    """The displays that arrived with an observation of ``env``, ascending, each with the reward of its own list."""
    state: Any = env.axes and env.axes.arrival_state
    arrived = slice(int(observation["n_arrived"]))
    return sorted(zip(observation["displays"][arrived].tolist(), state.rewards[0, arrived].tolist(), strict=True))


def max_open(env: ClickEnv) -> int:
    """How many displays can wait for their clicks in ``env``, which has been reset."""
    state: Any = env.axes and env.axes.arrival_state
    return state.due.shape[1]


class Transition(NamedTuple):
    """A list whose clicks have arrived."""

    observation: Any
    """What was observed when the list was chosen."""
    ranking: NDArray[np.int64]
    """``(K,)`` the list."""
    reward: float
    """The reward of this list."""
    display: int
    """The number of its session, from 1."""


class ListsOfOwnLoops(Space[NDArray[np.int64]]):
    """The lists of a `RankedList` for loops that read ``info["transitions"]``; libraries that refuse it print the reason."""

    def __init__(self, lists: RankedList) -> None:
        self.lists = lists
        super().__init__(lists.shape, lists.dtype)

    def sample(self, mask: Any = None, probability: Any = None) -> NDArray[np.int64]:
        """As `RankedList.sample`."""
        return self.lists.sample(mask, probability)

    def contains(self, x: Any) -> bool:
        """As `RankedList.contains`."""
        return self.lists.contains(x)

    def seed(self, seed: Any = None) -> Any:
        """Seed `sample`."""
        return self.lists.seed(seed)

    def __repr__(self) -> str:
        return (
            f"{self.lists!r} of DelayedCredit (which is for loops of your own that read info['transitions']: a library stores "
            "the reward of a step with the list of that step, but clicks that arrive late belong to earlier lists; play "
            "PPO, A2C, MaskablePPO, DQN, SAC or TD3 by name, as in clickgym run PBMRank-v0:arrival=batch:64 --agents PPO)"
        )


class DelayedCredit(gym.Wrapper, RecordConstructorArgs):
    """Lists in ``info["transitions"]`` the lists whose clicks have arrived, each with its own observation and reward.

    If clicks arrive late (the argument ``arrival`` of an environment), the reward of a step is that of the clicks that arrive
    in it, which belong to earlier lists. A loop that stores the reward of a step with the list of that step credits the wrong
    lists. Use the transitions instead. They come in the order of arrival, and within a step in the order of displays. A list
    whose clicks are lost is in none of them, and neither is one whose clicks arrive after the last step. Each transition is an
    episode of its own: store it with ``done = True``.

    Observations and rewards of the steps stay as they are. If clicks arrive at once, every step has one transition, its own.

    This wrapper is for loops of your own. Algorithms of stable-baselines3 refuse its action space. Those that clickgym runs by
    name credit late clicks by themselves.

    Args:
        env: an environment of this package with ranked lists as actions; wrappers of actions cannot be around or inside it.

    Attributes:
        dropped: how many displays were given up. As many displays as the environment keeps (see ``max_open`` of `Arrival`) wait
            for their clicks; beyond this the oldest is given up.

    Raises:
        TypeError: ``env`` is another environment, or its actions are not ranked lists.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> from clickgym.envs import DelayedCredit
        >>> env = DelayedCredit(gym.make("PBMRank-v0", arrival="batch:3"))
        >>> observation, info = env.reset(seed=0)
        >>> for _ in range(6):
        ...     observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        ...     print([transition.display for transition in info["transitions"]])
        []
        []
        [1, 2, 3]
        []
        []
        [4, 5, 6]
    """

    def __init__(self, env: gym.Env) -> None:
        check_kind("env", env, gym.Env, AN_ENV)
        if not isinstance(env.unwrapped, ClickEnv) or not isinstance(env.action_space, RankedList):
            raise TypeError(f"DelayedCredit needs an environment of clickgym whose actions are ranked lists; got {env}")
        RecordConstructorArgs.__init__(self)
        gym.Wrapper.__init__(self, env)
        self.action_space = ListsOfOwnLoops(env.action_space)
        self._core = env.unwrapped
        self._is_late = self._core.axes is not None and self._core.axes.arrival is not None
        self._observation: Any = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode. With a seed, and the first time, a new stream of sessions begins, and no display is open."""
        observation, info = self.env.reset(seed=seed, options=options)
        if seed is not None or self._observation is None:
            self._display = self.dropped = 0
            self._open: dict[int, tuple[Any, NDArray[np.int64]]] = {}
            # Most observations of a batch have no arrivals, but rows for all of them: these share their rows.
            rows = ("displays", "rankings", "clicks", "void") if self._is_late else ()
            self._nothing = {name: observation[name].copy() for name in rows if name in observation}
        self._observation = observation
        return observation, info

    def step(self, action: ArrayLike) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Show a list; ``info["transitions"]`` has a `Transition` for each list whose clicks arrived."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._display = int(info.get("display", self._display + 1))
        self._open[self._display] = self._observation, np.array(action, np.int64)
        arrived = own_rewards(self._core, observation) if self._is_late else [(self._display, float(reward))]
        info["transitions"] = [
            Transition(*self._open.pop(display), own, display) for display, own in arrived if display in self._open
        ]
        while self._is_late and len(self._open) > max_open(self._core):
            del self._open[next(iter(self._open))]
            self.dropped += 1
        is_empty = self._is_late and not observation["n_arrived"]
        self._observation = {**observation, **self._nothing} if is_empty else observation
        return observation, float(reward), terminated, truncated, info
