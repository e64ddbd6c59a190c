"""The environment of simulated users, one session at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.checks import check_choice
from .base_env import BaseClickEnv
from .instances.instance import AnyInstance
from .rendering import RENDER_MODES, page_of, picture_of
from .resolve_model import resolve_model
from .session import nothing_shown, single_step
from .spaces import RankedList, check_items, without_repeats
from .user_model import UserModel

INT64 = np.dtype(np.int64)


class ClickEnv(BaseClickEnv, gym.Env[Any, NDArray[np.int64]]):
    """Simulated users as a Gymnasium environment: show a ranked list, and observe the clicks.

    You usually create this environment with `gym.make` and one of the registered ids
    (``PBMRank-v0``, ...). Use the class if you already have a click model. Users who change
    (`PiecewiseStationaryModel`) have the same interface. With a `ContextualModel`, the observation
    also contains the features of the candidates, and with a `CascadeMDP` the state of the user.

    Args:
        model: the simulated users, for example a click model; or the short name of a click model or
            ``"module:Class"``, together with an instance or the parameters of the model.
        reward: ``"clicks"``, ``"any_click"`` or ``"satisfaction"``. By default ``"any_click"`` if
            candidates change from session to session (as in He et al. 2020), otherwise
            ``"clicks"``.
        cutoff: count only the first ``cutoff`` positions, in ``1..K``; by default all.
        instance: name, path or dict of an instance, or an `Instance` (see `load_instance`); by
            default the model's default instance.
        form: ``""``, ``"NonStationary"``, ``"Contextual"`` or ``"Queries"``, if ``model`` is a
            name.
        n_positions: K, the length of a list; by default as in the instance or the parameters.
        reference: ``(K,)`` a list to measure regret against, in place of the best list (see
            `ClickModel.optimal_ranking`, which raises an error if the search for the best list
            would be too large).
        render_mode: None, ``"ansi"`` (`render` returns text) or ``"rgb_array"`` (a picture).
        **parameters: the parameters of the named model, if there is no instance. ``name="my shop"``
            names these users in tables.

    Attributes:
        regret: the regret of all sessions since the seed.
        shown: the clicks and examinations ``(K,)`` of the last session, and its uniform numbers.

    Raises:
        ValueError, TypeError: an unknown reward, a cutoff outside ``1..K``, a bad reference list,
            instance or parameter, or a search for the best list that would take too long.

    Example:
        >>> from clickgym.envs import ClickEnv, PositionBasedModel
        >>> env = ClickEnv(PositionBasedModel([0.5, 0.4, 0.3], [1.0, 0.5]))
        >>> clicks, info = env.reset(seed=0)
        >>> clicks, reward, terminated, truncated, info = env.step([2, 0])
        >>> round(info["regret"], 12)
        0.15
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 4}

    action_space: RankedList
    regret: float = 0.0
    _last: tuple[NDArray[np.int64], float, int, float] | None = None
    """The last list, its reward, the position at which the user left satisfied, and the regret."""

    def __init__(
        self,
        model: UserModel | str,
        reward: str | None = None,
        cutoff: int | None = None,
        *,
        instance: AnyInstance | None = None,
        form: str = "",
        n_positions: int | None = None,
        reference: ArrayLike | None = None,
        render_mode: str | None = None,
        **parameters: Any,
    ) -> None:
        resolved = resolve_model(model, form, instance, n_positions, **parameters)
        self.render_mode = None
        if render_mode is not None:
            self.render_mode = check_choice("render_mode", render_mode, RENDER_MODES)
        self.observation_space = self._set_up(resolved, 1, reward, cutoff, reference)
        self.action_space = self._lists
        self._sizes = self._lists.n_items, self._lists.n_positions
        self._shape = self._sizes[1:]
        self.shown = nothing_shown(self.model)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode. With a seed, or at the first reset, also start a new stream of
        sessions.

        Without a seed the stream continues: candidates, changes and regret stay as they are, and
        nothing is drawn. Only stateful users are replaced: a new user is drawn.

        Args:
            seed: starts a new stream; None continues the current one.
            options: None or empty; an environment has none.

        Returns:
            The observation: ``(K,)`` zeros, or a dict with ``clicks`` and ``features`` ``(L, d)``
            or ``state``. And an info with ``optimal_ranking`` ``(K,)`` and ``optimal_reward``; if
            candidates change also with ``next_user`` and ``next_candidates``, as in `step`.

        Raises:
            ValueError: there are options.
        """
        self._restart(seed, options)
        if seed is not None:
            self._last, self.regret = None, 0.0
        task, state = self.task, self.state
        info = {"optimal_ranking": task.best(state)[0], "optimal_reward": float(state.optimum[0])}
        info |= task.info(state, 0)
        return task.observe(state, 0, np.zeros(self._shape, np.int8)), info

    def step(self, action: ArrayLike) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Show a list to the next user.

        Args:
            action: ``(K,)`` item ids, the top of the list first. If candidates change, an id is the
                row of a candidate in the last observed features. A repeated item is shown once, at
                its first position; the positions that become free get the items that are not
                listed, in order of their ids.

        Returns:
            The observation (the clicks ``(K,)``, or a dict of the clicks with the features of the
            next candidates or the next state of a stateful user); the realised reward; whether a
            stateful user has left; False; and an info with the list shown, ``ranking`` ``(K,)``,
            and its ``expected_reward``, ``regret`` and ``optimal_reward``. For stateful users these
            are Q* of the list, V* - Q*, and V* of the state in which it was shown. If candidates
            change, the info also has ``next_user``, the number of the user of the next session, and
            ``next_candidates``, ``(L,)`` the item numbers of its candidates, whose features are in
            the returned observation.

        Raises:
            ValueError, TypeError: a bad list; the message names the position and the fault.
            SessionError: the click model failed; its message names the environment, the step and
                the cause.
            gymnasium.error.ResetNeeded: before the first `reset`, and after the user has left.
        """
        if not self._is_open:
            raise gym.error.ResetNeeded(
                "call reset() before the first step(), and again after a step that ended the "
                "episode"
            )
        if type(action) is np.ndarray and action.dtype == INT64 and action.shape == self._shape:
            ranking = action.copy()
        else:
            ranking = check_items(action, *self._sizes)
        self.shown.ranking[:] = ranking
        is_list, reward, expectation, optimum, satisfied, has_left = self._play(
            single_step, self.shown
        )
        if not is_list:  # nothing was drawn
            distinct = without_repeats(check_items(ranking, *self._sizes), self._sizes[0])
            return ClickEnv.step(self, distinct)  # a subclass may have called this step
        regret = optimum - expectation
        self.finish_sessions(1, regret, ranking, reward, satisfied)
        self._is_open = not has_left
        info = {
            "ranking": ranking,
            "expected_reward": expectation,
            "regret": regret,
            "optimal_reward": optimum,
        }
        task, state = self.task, self.state  # those of the next session
        info |= task.info(state, 0)
        observation = task.observe(state, 0, self.shown.clicks.copy())
        return observation, reward, has_left, False, info

    def finish_sessions(
        self,
        steps: int,
        regret: float,
        ranking: NDArray[np.int64],
        reward: float,
        satisfied: int,
    ) -> None:
        """Finish sessions that were simulated with ``task``, ``state`` and ``shown``: count them,
        and draw the next session if users change. Store the list of the last session (not a copy),
        its reward, and the position at which the user left satisfied.
        """
        self._last = ranking, reward, satisfied, regret
        self.regret += regret
        self._count(steps, steps)

    def last_session(self) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        """Return the list of the last session and the clicks on it, both ``(K,)`` copies: they are
        the list and clicks of the users, even if wrappers change actions and observations.

        Raises:
            gymnasium.error.ResetNeeded: there was no session yet.
        """
        if self._last is None:
            raise gym.error.ResetNeeded("no list was shown yet: call step() first")
        return self._last[0].copy(), self.shown.clicks.copy()

    def regret_is_of(self, reward: float, info: Mapping[str, Any]) -> bool:
        """Return whether the regret in an info belongs to a reward, both as wrappers returned them
        for the last session. The regret belongs to the reward if no wrapper changed the reward, or
        if a wrapper put its own regret into the info.
        """
        _, own_reward, _, own_regret = self._last or (None, reward, -1, None)
        return reward == own_reward or info.get("regret") is not own_regret

    def knowledge(self, source: str) -> Any:
        """Return knowledge that a paper assumes; None if the environment does not have it.

        Args:
            source: one of the sources that `Agent.requires` lists.
        """
        if source not in ("optimal_ranking", "initial_ranking"):
            return self.model.knowledge(source, self.initial_ranking)
        if not self.model.iid_sessions:
            return None
        if source == "initial_ranking":
            return self.initial_ranking
        return self.task.optimal_ranking if self.reference is None else None

    def render(self) -> str | NDArray[np.uint8] | None:
        """Return the page of the last session: text for ``"ansi"``, an ``(H, W, 3)`` uint8 picture
        for ``"rgb_array"``.
        """
        if self.render_mode is None:
            gym.logger.warn(f"render() requires a render_mode, one of {RENDER_MODES}")
            return None
        page = page_of(self)
        return "\n".join(page) if self.render_mode == "ansi" else picture_of(page)
