"""The environment of a click model, one session at a time (`ClickEnv`) and many at once (`ClickVectorEnv`)."""

from __future__ import annotations

import bisect
import sys
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import MultiBinary
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from .checks import check_count, unknown
from .click_model import ClickModel
from .kernels import inner, kernel, specialise
from .rendering import RENDER_MODES, ResultPage, render
from .spaces import RankedList, check_ranking

__all__ = ["ClickEnv", "ClickVectorEnv", "session"]

# ------------------------------------------------------------------------------------------------ one session, compiled

# Left open in the templates below; `specialise` binds them to a model's kernels.
sample: Callable[..., int]
expected: Callable[..., float]
play_session: Callable[..., tuple[float, float, int]]


def _session(parameters, ranking, uniforms, clicks, examined, reward, cutoff, scratch):  # type: ignore[no-untyped-def]
    """One user meets one list: writes clicks and examined, returns the realised and the expected reward, and where the
    user left satisfied (-1: nowhere)."""
    satisfied = sample(parameters, ranking, uniforms, clicks, examined)
    n_clicks = 0
    for k in range(cutoff):
        n_clicks += clicks[k]
    if reward == 0:  # clicks
        realised = n_clicks
    elif reward == 1:  # any_click
        realised = min(n_clicks, 1)
    else:  # satisfaction: leaving below the cutoff does not count
        realised = 1 if 0 <= satisfied < cutoff else 0
    return float(realised), expected(parameters, ranking, reward, cutoff, scratch), satisfied


def _sessions(  # type: ignore[no-untyped-def]
    parameters, rankings, uniforms, clicks, examined, reward, cutoff, scratch, realised, expectation
):
    """A batch of sessions."""
    for b in range(rankings.shape[0]):
        realised[b], expectation[b], _ = play_session(
            parameters, rankings[b], uniforms[b], clicks[b], examined[b], reward, cutoff, scratch
        )


@inner
def is_ranked_list(ranking, seen, mark):  # type: ignore[no-untyped-def]
    """Whether a list holds distinct items; ``seen`` is ``(L,)``, and nowhere ``mark`` at entry."""
    for k in range(len(ranking)):
        item = ranking[k]
        if item < 0 or item >= len(seen) or seen[item] == mark:
            return False
        seen[item] = mark
    return True


@kernel
def first_bad_list(rankings, seen):  # type: ignore[no-untyped-def]
    """The row of the first list that is not of distinct items, or -1. ``seen`` is ``(L,)`` and negative at entry."""
    for b in range(rankings.shape[0]):
        if not is_ranked_list(rankings[b], seen, b):
            return b
    return -1


def session(model: ClickModel) -> Callable[..., tuple[float, float, int]]:
    """The compiled session of a model's class; the scalar and vector environments and the runner all call it."""
    return specialise(_session, sample=model.sample_kernel, expected=model.expected_kernel)


# ------------------------------------------------------------------------------------------------ what both kinds share


class _Task:
    """A stationary click model together with what is asked of its lists: the reward, the cutoff, and the optimum."""

    def __init__(self, model: ClickModel, reward: str, cutoff: int | None, reference: ArrayLike | None) -> None:
        self.model = model
        self.reward = reward
        self.code, self.cutoff = model.check_reward(reward, cutoff)
        self.optimal_ranking = (
            model.optimal_ranking(reward, cutoff)
            if reference is None
            else check_ranking(reference, model.n_items, model.n_positions)
        )
        self.optimal_reward = model.expected_reward(self.optimal_ranking, reward, cutoff)


class _Schedule:
    """The tasks that follow one another as the users change; a single one unless the model is piecewise-stationary."""

    def __init__(self, model: ClickModel, reward: str, cutoff: int | None, reference: ArrayLike | None) -> None:
        if not isinstance(model, ClickModel):
            raise TypeError(f"model must be a ClickModel, got {type(model).__name__}")
        self._tasks = [_Task(epoch, reward, cutoff, reference) for epoch in model.epochs]
        self._ends = [*model.starts[1:], sys.maxsize]

    def at(self, step: int) -> tuple[_Task, int]:
        """The task of a step, and the first step after it that has another."""
        epoch = bisect.bisect_right(self._ends, step)
        return self._tasks[epoch], self._ends[epoch]


def _seeded(seed: int) -> np.random.Generator:
    # Agents and users often seed their own generator with the same small integer as the environment. Clicks must not be
    # functions of the very numbers that chose the list, so the environment's stream is a child of its seed.
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(0xC11C,))))


class ClickEnv(gym.Env[NDArray[np.int8], NDArray[np.int64]]):
    """The Gymnasium environment of any click model: an action is a ranked list, an observation the clicks on it.

    The registered ids (``PBMRank-v0``, ...) construct it from an instance or from a model's parameters; build it directly
    when you already have a model.

    Args:
        model: the click model of the users.
        reward: ``"clicks"``, ``"any_click"`` or ``"satisfaction"``; what a session pays.
        cutoff: count only the first ``cutoff`` positions, in ``1..K``; None counts all.
        reference: the list against which regret is measured; None takes the optimal list (see
            `ClickModel.optimal_ranking`, which refuses some large problems).
        render_mode: None, ``"ansi"`` or ``"rgb_array"``.

    Raises:
        ValueError: on an unknown reward, a cutoff outside ``1..K``, a bad reference list, or because the optimum is out
            of reach.

    Example:
        >>> from clickgym.envs import ClickEnv, PositionBasedModel
        >>> env = ClickEnv(PositionBasedModel([0.5, 0.4, 0.3], [1.0, 0.5]))
        >>> clicks, info = env.reset(seed=0)
        >>> clicks, reward, terminated, truncated, info = env.step([2, 0])
        >>> round(info["regret"], 12)
        0.15
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 4}  # noqa: RUF012 (Gymnasium's)

    initial_ranking: NDArray[np.int64] | None = None
    """All L items in the order of the production list, where the instance knows one."""
    instance: str = "custom"
    """The name of the instance."""

    def __init__(
        self,
        model: ClickModel,
        reward: str = "clicks",
        cutoff: int | None = None,
        *,
        reference: ArrayLike | None = None,
        render_mode: str | None = None,
    ) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(unknown("render_mode", render_mode, self.metadata["render_modes"]))
        self._schedule = _Schedule(model, reward, cutoff, reference)
        self.model = model
        self.reference = reference
        self.render_mode = render_mode
        self.action_space = RankedList(model.n_items, model.n_positions)
        self.observation_space = MultiBinary(model.n_positions)
        self._scratch = np.empty(model.n_positions + 1)
        self._forget()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.int8], dict[str, Any]]:
        """Start a new stream of sessions.

        Args:
            seed: reseeds the stream; None goes on with the present generator.
            options: unused.

        Returns:
            ``(K,)`` zeros, and an info with ``optimal_ranking`` and ``optimal_reward``.
        """
        super().reset(seed=seed)
        if seed is not None:
            self._np_random = _seeded(seed)
        self._forget()
        return self._clicks.copy(), {
            "optimal_ranking": self.task.optimal_ranking.copy(),
            "optimal_reward": self.task.optimal_reward,
        }

    def step(self, action: ArrayLike) -> tuple[NDArray[np.int8], float, bool, bool, dict[str, Any]]:
        """Show a list to the next user.

        Args:
            action: K distinct item ids, the top of the list first.

        Returns:
            The clicks ``(K,)``, the realised reward, False, False, and an info with ``expected_reward``, ``regret`` and
            ``optimal_reward`` of the list shown.

        Raises:
            ValueError, TypeError: on a bad list, naming the position and the fault.
        """
        task, k = self.task, self.model.n_positions
        ranking = check_ranking(action, self.model.n_items, k)
        clicks, examined = np.empty(k, np.int8), np.empty(k, np.int8)
        realised, expectation, satisfied = self._session(
            task.model.parameters, ranking, self.np_random.random(k), clicks, examined, task.code, task.cutoff,
            self._scratch,
        )  # fmt: skip
        regret = task.optimal_reward - expectation
        self._record(1, regret, ranking, clicks, examined, satisfied, realised)
        return clicks, realised, False, False, {
            "expected_reward": expectation,
            "regret": regret,
            "optimal_reward": task.optimal_reward,
        }  # fmt: skip

    def render(self) -> str | NDArray[np.uint8] | None:
        """The result page of the last session: text for ``"ansi"``, an ``(H, W, 3)`` picture for ``"rgb_array"``."""
        if self.render_mode is None:
            gym.logger.warn("render() was called without a render_mode; give one to gym.make(...)")
            return None
        page = ResultPage(
            title=f"{self.spec.id if self.spec else type(self.model).__name__} · {self.instance}",
            n_items=self.model.n_items,
            n_positions=self.model.n_positions,
            step=self._steps,
            regret=self._regret,
            ranking=None if self._ranking is None else tuple(self._ranking.tolist()),
            clicks=tuple(self._clicks.tolist()),
            examined=tuple(self._examined.tolist()),
            satisfied=self._satisfied >= 0 if "satisfaction" in self.model.rewards else None,
            reward=self._reward,
        )
        return render(page, self.render_mode)

    @property
    def sessions_to_change(self) -> int:
        """How many sessions are left before the users change."""
        return self._next_change - self._steps

    def _forget(self) -> None:
        k = self.model.n_positions
        self._steps, self._regret = 0, 0.0
        self._enter()
        self._ranking: NDArray[np.int64] | None = None
        self._clicks, self._examined = np.zeros(k, np.int8), np.zeros(k, np.int8)
        self._satisfied, self._reward = -1, 0.0

    def _enter(self) -> None:
        """Take up the task of the present step."""
        self.task, self._next_change = self._schedule.at(self._steps)
        self._session = session(self.task.model)

    def _record(
        self,
        steps: int,
        regret: float,
        ranking: NDArray[np.int64],
        clicks: NDArray[np.int8],
        examined: NDArray[np.int8],
        satisfied: int,
        reward: float,
    ) -> None:
        """Count ``steps`` sessions, which must not pass over a change, and remember the last for `render`."""
        self._steps += steps
        self._regret += regret
        if self._steps == self._next_change:
            self._enter()
        self._ranking, self._clicks, self._examined = ranking.copy(), clicks.copy(), examined
        self._satisfied, self._reward = satisfied, reward


class ClickVectorEnv(VectorEnv[NDArray[np.int8], NDArray[np.int64], Any]):
    """``num_envs`` independent streams of sessions of one click model, stepped together in compiled code.

    The law of each stream is that of `ClickEnv`; the draws are not the same numbers. All streams share one clock, so they
    are truncated together.

    Args:
        model, reward, cutoff, reference, render_mode: as in `ClickEnv`.
        num_envs: B, the number of streams.
        max_episode_steps: truncate all streams after so many sessions; None never does.
        autoreset_mode: what follows a truncation: ``AutoresetMode.NEXT_STEP`` (the next ``step`` ignores its actions and
            resets) or ``AutoresetMode.SAME_STEP`` (the same ``step`` returns the first observation of the new stream, and
            the last one as ``final_obs``).

    Raises:
        ValueError: as `ClickEnv`, and on a ``num_envs`` or ``max_episode_steps`` that is not a positive integer.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> envs = gym.make_vec("PBMRank-v0", num_envs=4)
        >>> clicks, infos = envs.reset(seed=0)
        >>> clicks, rewards, terminations, truncations, infos = envs.step(envs.action_space.sample())
        >>> clicks.shape, infos["regret"].shape
        ((4, 5), (4,))
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (Gymnasium's)
        "render_modes": list(RENDER_MODES),
        "render_fps": 4,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    initial_ranking: NDArray[np.int64] | None = None
    instance: str = "custom"

    def __init__(
        self,
        model: ClickModel,
        num_envs: int = 1,
        reward: str = "clicks",
        cutoff: int | None = None,
        *,
        reference: ArrayLike | None = None,
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    ) -> None:
        if max_episode_steps is not None:
            check_count("max_episode_steps", max_episode_steps)
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(unknown("render_mode", render_mode, self.metadata["render_modes"]))
        mode = AutoresetMode(autoreset_mode)
        if mode is AutoresetMode.DISABLED:
            raise ValueError("autoreset_mode must be NEXT_STEP or SAME_STEP: all streams share one clock")
        self.model = model
        self._schedule = _Schedule(model, reward, cutoff, reference)
        self.num_envs = check_count("num_envs", num_envs)
        self.render_mode = render_mode
        self.max_episode_steps = max_episode_steps
        self.metadata = {**type(self).metadata, "autoreset_mode": mode}
        self.single_action_space = RankedList(model.n_items, model.n_positions)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.single_observation_space = MultiBinary(model.n_positions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._uniforms = np.empty((num_envs, model.n_positions))
        self._examined = np.zeros((num_envs, model.n_positions), np.int8)
        self._scratch = np.empty(model.n_positions + 1)
        self._steps: int
        self._truncated: bool  # with NEXT_STEP: the next step is the reset
        self._rankings: NDArray[np.int64] | None
        self._clicks: NDArray[np.int8]
        self._regret: NDArray[np.float64]
        self._rewards: NDArray[np.float64]
        self._forget()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.int8], dict[str, Any]]:
        """Start all streams anew.

        Args:
            seed: one integer that seeds all streams; None goes on with the present generator.
            options: unused.

        Returns:
            ``(B, K)`` zeros, and infos with ``optimal_ranking`` ``(B, K)`` and ``optimal_reward`` ``(B,)``.
        """
        super().reset(seed=seed)
        if seed is not None:
            self._np_random = _seeded(seed)
        self._forget()
        return self._clicks.copy(), self._reset_infos()

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[NDArray[np.int8], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Show one list on each stream.

        Args:
            actions: ``(B, K)`` integers, each row K distinct item ids.

        Returns:
            Clicks ``(B, K)``, rewards ``(B,)``, terminations, truncations, and infos with the arrays ``expected_reward``,
            ``regret`` and ``optimal_reward`` (each with its mask, as Gymnasium's vector environments do).

        Raises:
            ValueError, TypeError: on a bad list, naming the stream, the position and the fault.
        """
        size, task = self.num_envs, self.task
        nobody = np.zeros(size, np.bool_)
        if self._truncated:  # NEXT_STEP: this call is the reset
            self._forget()
            return self._clicks.copy(), np.zeros(size), nobody, nobody.copy(), self._reset_infos()
        rankings = self._checked(actions)
        clicks = np.empty(rankings.shape, np.int8)
        rewards, expectation = np.empty(size), np.empty(size)
        self._sessions(
            task.model.parameters, rankings, self.np_random.random(out=self._uniforms), clicks, self._examined,
            task.code, task.cutoff, self._scratch, rewards, expectation,
        )  # fmt: skip
        regret = task.optimal_reward - expectation
        self._steps += 1
        if self._steps == self._next_change:
            self._enter()
        self._regret += regret
        if self.render_mode is not None:  # copies, since the caller may write into what it gave and got
            self._rankings, self._clicks, self._rewards = rankings.copy(), clicks.copy(), rewards.copy()
        infos = self._masked(expected_reward=expectation, regret=regret, optimal_reward=np.full(size, task.optimal_reward))
        truncated = self._steps == self.max_episode_steps
        if truncated and self.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP:
            final = np.empty(size, object)
            final[:] = list(clicks)
            infos = self._masked(final_obs=final, final_info=infos) | self._reset_infos()
            self._forget()
            clicks = self._clicks.copy()
        else:
            self._truncated = truncated
        return clicks, rewards, nobody, np.full(size, truncated), infos

    def render(self) -> tuple[Any, ...] | None:
        """The result page of every stream, as `ClickEnv.render` draws it."""
        if self.render_mode is None:
            gym.logger.warn("render() was called without a render_mode; give one to gym.make_vec(...)")
            return None
        name = self.spec.id if self.spec else type(self.model).__name__
        return tuple(
            render(
                ResultPage(
                    title=f"{name} · {self.instance} · {b}",
                    n_items=self.model.n_items,
                    n_positions=self.model.n_positions,
                    step=self._steps,
                    regret=float(self._regret[b]),
                    ranking=None if self._rankings is None else tuple(self._rankings[b].tolist()),
                    clicks=tuple(self._clicks[b].tolist()),
                    examined=tuple(self._examined[b].tolist()),
                    satisfied=None,
                    reward=float(self._rewards[b]),
                ),
                self.render_mode,
            )
            for b in range(self.num_envs)
        )

    def _checked(self, actions: Any) -> NDArray[np.int64]:
        rankings = np.asarray(actions)
        shape = (self.num_envs, self.model.n_positions)
        if rankings.shape != shape:
            raise ValueError(f"actions have shape {rankings.shape}; expected (num_envs, n_positions) = {shape}")
        if rankings.dtype.kind not in "iu":
            raise TypeError(f"actions have dtype {rankings.dtype}; expected integer item ids")
        rankings = np.ascontiguousarray(rankings, np.int64)
        bad = first_bad_list(rankings, np.full(self.model.n_items, -1))
        if bad >= 0:
            try:
                check_ranking(rankings[bad], self.model.n_items, self.model.n_positions)
            except ValueError as error:
                raise ValueError(f"environment {bad}: {error}") from None
        return rankings

    def _forget(self) -> None:
        shape = (self.num_envs, self.model.n_positions)
        self._steps = 0
        self._enter()
        self._truncated = False
        self._regret = np.zeros(self.num_envs)
        self._rewards = np.zeros(self.num_envs)
        self._rankings = None
        self._clicks = np.zeros(shape, np.int8)
        self._examined[:] = 0

    def _enter(self) -> None:
        """Take up the task of the present step."""
        self.task, self._next_change = self._schedule.at(self._steps)
        self._sessions = specialise(_sessions, play_session=session(self.task.model))

    def _reset_infos(self) -> dict[str, Any]:
        return self._masked(
            optimal_ranking=np.tile(self.task.optimal_ranking, (self.num_envs, 1)),
            optimal_reward=np.full(self.num_envs, self.task.optimal_reward),
        )

    def _masked(self, **infos: Any) -> dict[str, Any]:
        return infos | {f"_{name}": np.ones(self.num_envs, np.bool_) for name in infos}
