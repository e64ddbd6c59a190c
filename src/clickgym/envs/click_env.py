"""The Gymnasium environment `ClickEnv`, in which each step shows a list to one simulated user."""

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
from .simulation.session import empty_buffers, make_step_kernel
from .simulation.user_model import UserModel
from .spaces import INT64, RankedList, check_items, without_repeats


class ClickEnv(BaseClickEnv, gym.Env[Any, NDArray[np.int64]]):
    """Gymnasium environment of simulated users: you show a ranked list, and observe the clicks.

    You usually create this environment with `gym.make` and one of the registered ids
    (``PBMRank-v0``, ...). Use the class if you already have a click model. The observation is a
    click vector. With a `ContextualModel`, the observation also contains the features of the
    candidates, and with a `CascadeMDP` it also contains the state of the user.

    Args:
        model: the simulated users, for example a click model; or the short name of a click model or
            ``"module:Class"``, together with an instance or the parameters of the model.
        reward: ``"clicks"``, ``"any_click"`` or ``"satisfaction"``; by default ``"any_click"`` if
            candidates change from session to session (as in He et al. 2020), otherwise
            ``"clicks"``.
        cutoff: the number of positions, from the top, whose clicks count, in ``1..K``; by default,
            all positions.
        instance: the name, path or dict of an instance, or an `Instance` (see `load_instance`); by
            default, the model's default instance.
        form: ``""``, ``"NonStationary"``, ``"Contextual"`` or ``"Queries"``; only for a ``model``
            that is given by its name.
        n_positions: K, the length of a list; by default, the length in the instance or in the
            parameters.
        reference: ``(K,)`` the list against which regret is measured; by default, the best list.
            Pass a list if the search for the best list would be too large (see
            `ClickModel.optimal_ranking`).
        render_mode: None, ``"ansi"`` (`render` returns text) or ``"rgb_array"`` (`render` returns a
            picture).
        **parameters: the parameters of a ``model`` that is given by its name, in place of an
            instance. Add ``name="my shop"`` to give the users a name for tables.

    Attributes:
        regret: the sum of the regrets of all sessions since the environment was last seeded.
        shown: the clicks and examinations ``(K,)`` of the last session, and the uniform random
            numbers from which they were drawn.

    Raises:
        ValueError, TypeError: the reward is unknown, the cutoff is outside ``1..K``, the reference
            list, the instance or a parameter is invalid, or the search for the best list would be
            too large.

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
    """The list, the reward, the position at which the user left satisfied (or -1) and the regret of
    the last session (after a compiled run, the regret of several); None before the first session.
    """

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
        self.shown = empty_buffers(self.model)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode. If a seed is given, or at the first reset, also start a new stream of
        sessions.

        Without a seed, the stream of sessions continues: the candidates, the users' behaviour and
        the regret stay as they are, and nothing is drawn. Environments in which users leave are the
        exception: each reset draws a new user or, with several queries, a new query.

        Args:
            seed: the seed of a new stream of sessions; None continues the current stream.
            options: None or empty, because the environment has no options.

        Returns:
            The observation, which is ``(K,)`` zeros, or a dict with ``clicks`` and ``features``
            ``(L, d)`` or ``state``; and an info with ``optimal_ranking`` ``(K,)`` and
            ``optimal_reward``. If candidates change, the info also has ``next_user`` and
            ``next_candidates`` (see `step`).

        Raises:
            ValueError: ``options`` is not empty.
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
            Five values, as in every Gymnasium environment. The observation is the clicks ``(K,)``,
            or a dict with the clicks and either the features of the next candidates or the next
            state of a user with memory. The reward is the realised reward. ``terminated`` is True
            if a user with memory has left, and ``truncated`` is always False. The info contains the
            list shown, ``ranking`` ``(K,)``, and this list's ``expected_reward``, ``regret`` and
            ``optimal_reward``; for users with memory, these three are Q* of the list, V* - Q*, and
            V* of the state in which the list was shown. If candidates change, the info also
            contains ``next_user``, the number of the next session's user, and ``next_candidates``,
            ``(L,)`` the item numbers of the next session's candidates, whose features are in the
            returned observation.

        Raises:
            ValueError, TypeError: the list is invalid; the message names the position and the
                fault.
            SessionError: the click model raised an error; the message names the environment, the
                step and the cause.
            gymnasium.error.ResetNeeded: `reset` has not been called yet, or the user has left.
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
        is_valid, reward, expectation, optimum, satisfied, has_left = self._play(
            make_step_kernel, self.shown
        )
        if not is_valid:  # the kernel rejected the list, and has drawn nothing
            distinct = without_repeats(check_items(ranking, *self._sizes), self._sizes[0])
            return ClickEnv.step(self, distinct)  # not self.step, which may be a subclass's
        regret = optimum - expectation  # `State` lists the other places where regret is computed
        self.finish_sessions(1, regret, ranking, reward, satisfied)
        self._is_open = not has_left
        info = {
            "ranking": ranking,
            "expected_reward": expectation,
            "regret": regret,
            "optimal_reward": optimum,
        }
        task, state = self.task, self.state  # of the next session, which the kernel has drawn
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
        """Count sessions that were simulated with ``task``, ``state`` and ``shown``; if the users
        change now, also draw the next session.

        Args:
            steps: the number of these sessions.
            regret: the sum of their regrets.
            ranking: ``(K,)`` the list of the last session, which is stored without a copy.
            reward: the realised reward of the last session.
            satisfied: the position at which the last session's user left satisfied, or -1.
        """
        self._last = ranking, reward, satisfied, regret
        self.regret += regret
        self._count(steps, steps)

    def last_session(self) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        """Return the list that the last user saw and the clicks on this list, both ``(K,)`` copies.

        Wrappers that change actions and observations do not affect these values.

        Raises:
            gymnasium.error.ResetNeeded: no list has been shown yet.
        """
        if self._last is None:
            raise gym.error.ResetNeeded("no list has been shown yet; call step() first")
        return self._last[0].copy(), self.shown.clicks.copy()

    def reward_is_own(self, reward: float) -> bool:
        """Return whether no wrapper changed the reward of the last session, given the reward that
        the outermost wrapper returned.
        """
        return self._last is None or reward == self._last[1]

    def regret_is_of(self, reward: float, info: Mapping[str, Any]) -> bool:
        """Return whether the regret in ``info`` belongs to ``reward``, given both values as the
        outermost wrapper returned them for the last session. The regret belongs to the reward if no
        wrapper changed the reward, or if a wrapper put its own regret into ``info``.
        """
        *_, own_regret = self._last or (None,)
        # `is not` and not `!=`: if a wrapper's own regret happens to be the same number, it still
        # belongs to the wrapper's reward
        return self.reward_is_own(reward) or info.get("regret") is not own_regret

    def knowledge(self, source: str) -> Any:
        """Return what a paper assumes that an agent knows about the users; None if the environment
        cannot provide this knowledge.

        Args:
            source: the kind of knowledge, one of the sources that `Agent.requires` lists.
        """
        if source not in ("optimal_ranking", "initial_ranking"):
            return self.model.knowledge(source, self.initial_ranking)
        if not self.model.iid_sessions:
            return None
        if source == "initial_ranking":
            return self.initial_ranking
        return self.task.optimal_ranking if self.reference is None else None

    def render(self) -> str | NDArray[np.uint8] | None:
        """Return the last session as a result page: as text if ``render_mode`` is ``"ansi"``, or as
        an ``(H, W, 3)`` uint8 picture if it is ``"rgb_array"``.
        """
        if self.render_mode is None:
            gym.logger.warn(f"render() requires a render_mode: pass one of {RENDER_MODES}")
            return None
        page = page_of(self)
        return "\n".join(page) if self.render_mode == "ansi" else picture_of(page)
