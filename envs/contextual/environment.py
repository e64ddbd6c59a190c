"""Contextual environments: every session brings other candidates, and the observation tells their features.

A session needs its candidates before it starts, so `step` ends by drawing those of the next session, and its observation holds
their features. Letters as in `contextual_model`.
"""

from __future__ import annotations

import sys
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, MultiBinary
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from ..checks import unknown
from ..click_env import ClickEnv, ClickVectorEnv, session
from ..kernels import specialise
from ..spaces import RankedList, check_ranking
from .model import ContextualModel
from .round import RoundTask, batch, batch_sessions

__all__ = ["ContextualClickEnv", "ContextualClickVectorEnv"]

Observation = dict[str, NDArray[Any]]


def _spaces(model: ContextualModel) -> tuple[RankedList, Dict]:
    features = Box(-1.0, 1.0, (model.n_items, model.n_features), np.float64)
    return RankedList(model.n_items, model.n_positions), Dict(clicks=MultiBinary(model.n_positions), features=features)


class ContextualClickEnv(ClickEnv):
    """The environment of users who meet other candidates in every session: the observation tells the features of the next ones.

    The registered ids (``ContextualUBMRank-v0``, ...) construct it from an instance or from a model's parameters.

    Args:
        model: the users and the pool of candidates.
        reward: ``"any_click"`` (the reward of He et al. 2020, the default), ``"clicks"`` or, in the dependent click model,
            ``"satisfaction"``. For ``"clicks"`` in the user browsing and the dependent click model the best list is searched
            for in every session, which costs milliseconds where the session itself costs microseconds (L = 20, K = 5).
        cutoff: count only the first ``cutoff`` positions, in ``1..K``; None counts all.
        render_mode: None, ``"ansi"`` or ``"rgb_array"``.

    Raises:
        ValueError: as `ClickEnv`; also where the search for the best list would be too large.

    Example:
        >>> from clickgym.envs import ContextualClickEnv, LinearModel, PositionBasedModel
        >>> model = LinearModel(PositionBasedModel([0, 0], [1.0, 0.5]), theta=[0.9, 0.1], items=[[1, 0], [0, 1], [0.5, 0.5]])
        >>> env = ContextualClickEnv(model)
        >>> observation, info = env.reset(seed=0)
        >>> observation["features"].shape
        (2, 2)
        >>> observation, reward, terminated, truncated, info = env.step([0, 1])
        >>> info["regret"] >= 0
        True
    """

    model: ContextualModel
    observation_space: Dict  # type: ignore[assignment]

    def __init__(
        self,
        model: ContextualModel,
        reward: str = "any_click",
        cutoff: int | None = None,
        *,
        render_mode: str | None = None,
    ) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(unknown("render_mode", render_mode, self.metadata["render_modes"]))
        self.task: Any = RoundTask(model, reward, cutoff)
        self.model = model
        self.reference = None
        self.render_mode = render_mode
        self.action_space, self.observation_space = _spaces(model)
        self._scratch = np.empty(model.n_positions + 1)
        self._drawn = False
        self._forget()

    @property
    def n_features(self) -> int:
        """d, the number of features of a candidate."""
        return self.model.n_features

    def reset(  # type: ignore[override]
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start a new stream of sessions.

        Args:
            seed: reseeds the stream; None goes on with the present generator.
            options: unused.

        Returns:
            ``clicks`` ``(K,)`` zeros and the ``features`` ``(L, d)`` of the first candidates; and an info with their
            ``optimal_ranking`` and ``optimal_reward``.
        """
        super().reset(seed=seed)
        self.task.draw(self.np_random)
        self._drawn = True
        return self._observation(), {
            "optimal_ranking": self.task.optimal_ranking.copy(),
            "optimal_reward": self.task.optimal_reward,
        }

    def step(self, action: ArrayLike) -> tuple[Observation, float, bool, bool, dict[str, Any]]:  # type: ignore[override]
        """Show a list of the candidates whose features were observed last to their user.

        Args:
            action: K distinct candidates, the top of the list first; candidate i has row i of the features.

        Returns:
            The ``clicks`` ``(K,)`` and the ``features`` ``(L, d)`` of the next candidates; the realised reward, False, False,
            and an info with ``expected_reward``, ``regret`` and ``optimal_reward`` of the list shown.

        Raises:
            ValueError, TypeError: on a bad list, naming the position and the fault.
            gymnasium.error.ResetNeeded: before the first `reset` there are no candidates.
        """
        if not self._drawn:
            raise gym.error.ResetNeeded("call reset() first: it draws the candidates of the first session")
        task, k = self.task, self.model.n_positions
        ranking = check_ranking(action, self.model.n_items, k)
        clicks, examined = np.empty(k, np.int8), np.empty(k, np.int8)
        realised, expectation, satisfied = self._session(
            task.parameters, ranking, self.np_random.random(k), clicks, examined, task.code, task.cutoff, self._scratch
        )
        optimum = task.optimal_reward
        self._record(1, optimum - expectation, ranking, clicks, examined, satisfied, realised)
        task.draw(self.np_random)
        return self._observation(), realised, False, False, {
            "expected_reward": expectation,
            "regret": optimum - expectation,
            "optimal_reward": optimum,
        }  # fmt: skip

    def _observation(self) -> Observation:
        return {"clicks": self._clicks.copy(), "features": self.task.round.features.copy()}

    def _enter(self) -> None:
        self._next_change = sys.maxsize
        self._session = session(self.task.model)


class ContextualClickVectorEnv(ClickVectorEnv):
    """``num_envs`` independent streams of `ContextualClickEnv`, stepped together in compiled code.

    The law of each stream is that of `ContextualClickEnv`; the draws are not the same numbers. All streams share one clock,
    so they are truncated together.

    Args:
        model, reward, cutoff, render_mode: as in `ContextualClickEnv`.
        num_envs, max_episode_steps, autoreset_mode: as in `ClickVectorEnv`.

    Raises:
        ValueError: as `ContextualClickEnv` and `ClickVectorEnv`.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> envs = gym.make_vec("ContextualUBMRank-v0", num_envs=4)
        >>> observations, infos = envs.reset(seed=0)
        >>> observations["features"].shape
        (4, 20, 10)
    """

    model: ContextualModel

    def __init__(
        self,
        model: ContextualModel,
        num_envs: int = 1,
        reward: str = "any_click",
        cutoff: int | None = None,
        *,
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    ) -> None:
        self.task: Any = RoundTask(model, reward, cutoff)
        # What the streams share is that of the base model, whose optimum nobody asks for: any list will do.
        super().__init__(
            model.base,
            num_envs,
            reward,
            cutoff,
            reference=range(model.n_positions),
            render_mode=render_mode,
            max_episode_steps=max_episode_steps,
            autoreset_mode=autoreset_mode,
        )
        self.model = model
        self.single_action_space, self.single_observation_space = _spaces(model)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._features = np.zeros((num_envs, model.n_items, model.n_features))
        self._attractions = np.zeros((num_envs, model.n_items))
        self._best = np.zeros((num_envs, model.n_positions), np.int64)
        self._optimum = np.zeros(num_envs)
        self._drawn = False

    def reset(  # type: ignore[override]
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start all streams anew.

        Args:
            seed: one integer that seeds all streams; None goes on with the present generator.
            options: unused.

        Returns:
            ``clicks`` ``(B, K)`` zeros and ``features`` ``(B, L, d)``; and infos with ``optimal_ranking`` ``(B, K)`` and
            ``optimal_reward`` ``(B,)``.
        """
        super().reset(seed=seed)
        self._draw()
        self._drawn = True
        return self._observations(self._clicks), self._reset_infos()

    def step(  # type: ignore[override]
        self, actions: NDArray[np.int64]
    ) -> tuple[Observation, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Show one list on each stream.

        Args:
            actions: ``(B, K)`` integers, each row K distinct candidates of that stream.

        Returns:
            ``clicks`` ``(B, K)`` and the next ``features`` ``(B, L, d)``, rewards ``(B,)``, terminations, truncations, and
            infos with ``expected_reward``, ``regret`` and ``optimal_reward``.

        Raises:
            ValueError, TypeError: on a bad list, naming the stream, the position and the fault.
            gymnasium.error.ResetNeeded: before the first `reset`.
        """
        if not self._drawn:
            raise gym.error.ResetNeeded("call reset() first: it draws the candidates of the first sessions")
        size, task = self.num_envs, self.task
        nobody = np.zeros(size, np.bool_)
        if self._truncated:  # NEXT_STEP: this call is the reset
            self._forget()
            self._draw()
            return self._observations(self._clicks), np.zeros(size), nobody, nobody.copy(), self._reset_infos()
        rankings = self._checked(actions)
        clicks = np.empty(rankings.shape, np.int8)
        rewards, expectation = np.empty(size), np.empty(size)
        self._sessions(
            task.round, task.parameters, self._attractions, rankings, self.np_random.random(out=self._uniforms), clicks,
            self._examined, task.code, task.cutoff, self._scratch, rewards, expectation,
        )  # fmt: skip
        optimum = self._optimum.copy()
        regret = optimum - expectation
        self._steps += 1
        self._regret += regret
        if self.render_mode is not None:  # copies, since the caller may write into what it gave and got
            self._rankings, self._clicks, self._rewards = rankings.copy(), clicks.copy(), rewards.copy()
        infos = self._masked(expected_reward=expectation, regret=regret, optimal_reward=optimum)
        self._draw()
        observations = self._observations(clicks)
        truncated = self._steps == self.max_episode_steps
        if truncated and self.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP:
            final = np.empty(size, object)
            final[:] = [{name: values[b] for name, values in observations.items()} for b in range(size)]
            self._forget()
            self._draw()
            infos = self._masked(final_obs=final, final_info=infos) | self._reset_infos()
            observations = self._observations(self._clicks)
        else:
            self._truncated = truncated
        return observations, rewards, nobody, np.full(size, truncated), infos

    def _observations(self, clicks: NDArray[np.int8]) -> Observation:
        return {"clicks": clicks.copy(), "features": self._features.copy()}

    def _draw(self) -> None:
        task = self.task
        specialise(batch, next_round=task.next_round, counted=True)(
            task.pool, task.round, task.parameters, self.np_random, task.code, self._scratch,
            self._features, self._attractions, self._best, self._optimum,
        )  # fmt: skip

    def _enter(self) -> None:
        self._next_change = sys.maxsize
        self._sessions = specialise(batch_sessions, play_session=session(self.task.model))

    def _reset_infos(self) -> dict[str, Any]:
        return self._masked(optimal_ranking=self._best.copy(), optimal_reward=self._optimum.copy())
