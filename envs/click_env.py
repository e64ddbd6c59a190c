"""The environment of any users, one session at a time (`ClickEnv`) and many at once
(`ClickVectorEnv`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, iterate
from numpy.typing import ArrayLike, NDArray

from ..core.checks import as_array, check_choice, check_count, check_seed, short, unknown
from .instances.instance import AnyInstance
from .problem import Asked, Problem
from .rendering import HUMAN, RENDER_MODES, ResultPage, render, show
from .session import first_bad_list
from .spaces import BatchedRankedList, RankedList, check_ranking
from .streams import Streams, name_of
from .users import Users

FOREIGN_OPTIONS = {"minari_autoseed"}
"""Options of ``reset`` that other people's wrappers read and hand on."""


def _checked_list(action: Any, lists: RankedList, wrapper: str) -> NDArray[np.int64]:
    """An action of ``step``; where an item is shown twice, the message names the wrapper by which
    that cannot be.
    """
    try:
        return check_ranking(action, lists.n_items, lists.n_positions)
    except ValueError as error:
        if " again, already at position " not in str(error):
            raise
        advice = f"a policy that chooses each position by itself needs the wrapper clickgym.envs.{wrapper}(env)"
        raise ValueError(f"{error}; {advice}, see docs/wrappers.md") from None


def _check_render_mode(render_mode: str | None, modes: Sequence[str]) -> None:
    if render_mode is not None and not (isinstance(render_mode, str) and render_mode in modes):
        raise ValueError(unknown("render_mode", render_mode, modes))


def _warn_of_no_mode(maker: str, modes: Sequence[str]) -> None:
    gym.logger.warn(
        f"render() needs a render_mode: {maker}(..., render_mode={modes[-1]!r}) (there is: {', '.join(modes)})"
    )


def _checked_seed(seed: Any, options: Any) -> int | None:
    """The seed of ``reset``, whose arguments are checked."""
    if options is not None and (
        not isinstance(options, Mapping) or options.keys() - FOREIGN_OPTIONS
    ):
        raise ValueError(
            f"options are {short(options)}; expected none, because reset has no options"
        )
    return None if seed is None else check_seed(seed)


class ClickEnv(Streams, gym.Env[Any, NDArray[np.int64]]):
    """Gymnasium environment of simulated users: an action is a ranked list, and the observation is
    the clicks on it.

    The argument ``model`` says who the users are. A click model describes users who stay the same.
    A `PiecewiseStationaryModel` describes users who change. With a `ContextualModel` every session
    has other candidates, and the observation also contains their features. With a `CascadeMDP`
    users have a memory, and the observation also contains their state. The registered ids
    (``PBMRank-v0``, ...) fix the model, and take the rest from an instance or from parameters.
    Build an environment directly if you already have a model.

    Args:
        model: the simulated users, for example a click model. Or the short name of a click model,
            or ``"module:Class"``: then pass an instance or the parameters of the model, too.
        reward: the reward of a session: ``"clicks"``, ``"any_click"`` or ``"satisfaction"``. None
            takes ``"any_click"`` where candidates change from session to session (as in He et al.
            2020), else ``"clicks"``.
        cutoff: count only the first ``cutoff`` positions, in ``1..K``; None counts all.
        instance: name, path or dict of an instance, or an `Instance` (see `load_instance`); None
            takes the model's default.
        form: only if ``model`` is a name: ``""``, ``"NonStationary"`` or ``"Contextual"``.
        n_positions: K, the length of a list; None takes that of the instance or of the parameters.
        reference: the list against which regret is measured; None takes the optimal list (see
            `ClickModel.optimal_ranking`, which refuses some large problems).
        render_mode: None, or what `render` returns: ``"ansi"`` (text) or ``"rgb_array"`` (a
            picture). With ``"human"`` every session is shown while it is played, in a notebook as a
            picture, in a terminal as text.
        **parameters: the parameters of the named model; they cannot be combined with an instance.

    Raises:
        ValueError, TypeError: on an unknown reward, a cutoff outside ``1..K``, a bad reference
            list, a bad instance or parameter, or because the optimum is out of reach.

    Example:
        >>> from clickgym.envs import ClickEnv, PositionBasedModel
        >>> env = ClickEnv(PositionBasedModel([0.5, 0.4, 0.3], [1.0, 0.5]))
        >>> clicks, info = env.reset(seed=0)
        >>> clicks, reward, terminated, truncated, info = env.step([2, 0])
        >>> round(info["regret"], 12)
        0.15
    """

    metadata: dict[str, Any] = {"render_modes": [HUMAN, *RENDER_MODES], "render_fps": 4}

    action_space: RankedList

    def __init__(
        self,
        model: Users | str,
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
        _check_render_mode(render_mode, self.metadata["render_modes"])
        problem = Problem.of(Asked(model, form, instance, n_positions, parameters))
        self.render_mode = render_mode
        self.observation_space = self._set_up([problem], 1, reward, cutoff, reference)
        self.action_space = RankedList(self.model.n_items, self.model.n_positions)
        self._forget()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode. With a seed, and the first time, a new stream of sessions begins;
        without a seed the same stream goes on.

        Without a seed candidates, changes and regret continue as they are, and nothing is drawn.
        Only users with a memory are replaced: another user comes.

        Args:
            seed: begins a new stream; None goes on with the present one.
            options: not used.

        Returns:
            ``(K,)`` zeros (with features of the first candidates, where they change: ``clicks`` and
            ``features`` ``(L, d)``), and an info with ``optimal_ranking`` and ``optimal_reward``.
        """
        seed = _checked_seed(seed, options)
        super().reset(seed=seed)
        self._restart(seed)
        nothing = np.zeros((1, self.model.n_positions), np.int8)
        return self._of_stream(self._batch.observe(nothing)), {
            "optimal_ranking": self._batch.optimal_ranking[0].copy(),
            "optimal_reward": float(self._batch.optimal_reward[0]),
        }

    def step(self, action: ArrayLike) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Show a list to the next user.

        Args:
            action: K distinct item ids, the top of the list first; where candidates change, the
                numbers of their rows in the features observed last.

        Returns:
            The clicks ``(K,)``; the realised reward; whether the user has left for good; False; and
            an info. Beside the clicks there are the features of the next candidates, if these
            change, or the state in which a user with a memory comes back. The info has
            ``expected_reward``, ``regret`` and ``optimal_reward`` of the list shown. For users with
            a memory these are Q* of the list, its exact loss, and V* of the state in which it was
            shown.

        Raises:
            ValueError, TypeError: on a bad list, naming the position and the fault.
            SessionError: the click model failed; its message names the environment, the step and
                the cause.
            gymnasium.error.ResetNeeded: before the first `reset`, and after the user has left.
        """
        ranking = _checked_list(action, self.action_space, "LehmerAction")
        if not self._begun or self._has_left:
            when = (
                "before the first step()"
                if not self._begun
                else "now that the user has left: the step before was the last"
            )
            raise gym.error.ResetNeeded(f"call reset() {when}")
        clicks, self._rewards, infos = self._play(ranking[None])
        self._rankings, self._clicks = ranking[None].copy(), clicks.copy()
        if self.render_mode == HUMAN:
            self.render()
        info = {name: values.item() for name, values in infos.items()}
        return (
            self._of_stream(self._batch.observe(clicks)),
            self._rewards.item(),
            self._has_left,
            False,
            info,
        )

    @property
    def _has_left(self) -> bool:
        """Whether the user has left for good, so that the environment must be reset."""
        return self._batch.ended is not None and bool(self._batch.ended[0])

    def _of_stream(self, observations: Any) -> Any:
        """The observation of the only stream."""
        if isinstance(observations, dict):
            return {name: entries[0] for name, entries in observations.items()}
        return observations[0]

    def render(self) -> str | NDArray[np.uint8] | None:
        """The result page of the last session: text for ``"ansi"``, an ``(H, W, 3)`` picture for
        ``"rgb_array"``.

        For ``"human"`` it shows the page and returns None; `step` does this by itself.
        """
        if self.render_mode is None:
            _warn_of_no_mode("gym.make", self.metadata["render_modes"])
            return None
        page = self.result_page()
        if self.render_mode == HUMAN:
            if self._rankings is not None:  # there is nothing to see before the first session
                show(page, 1 / self.metadata["render_fps"])
            return None
        return render(page, self.render_mode)

    def result_page(self) -> ResultPage:
        """The data that `render` draws: the last session, and the totals so far."""
        satisfied = bool(self._satisfied[0] >= 0) if "satisfaction" in self.model.rewards else None
        return self._page(0, self.instance, satisfied)

    def action_masks(self) -> NDArray[np.bool_]:
        """Not available here: MaskablePPO of sb3-contrib asks for masks, and lists have none. Use
        `ItemByItem` for masks of single items.

        Raises:
            TypeError: always, naming the wrapper to take.
        """
        raise TypeError(
            f"{name_of(self)} has no action masks, because an action is a whole list; MaskablePPO chooses the items one by one "
            "with the wrapper clickgym.envs.ItemByItem(env)"
        )

    @property
    def sessions_to_change(self) -> int:
        """How many sessions are left before the users change."""
        return self._next_change - self._steps

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
        """Count ``steps`` sessions of a compiled loop, which must not pass over a change, and
        remember the last.
        """
        self._count(steps, regret)
        self._rankings, self._clicks, self._examined[0] = (
            ranking[None].copy(),
            clicks[None].copy(),
            examined,
        )
        self._satisfied[0], self._rewards = satisfied, np.array([reward])


class ClickVectorEnv(Streams, VectorEnv[Any, NDArray[np.int64], Any]):
    """Vector environment: ``num_envs`` independent streams of sessions, stepped together in
    compiled code.

    The streams have the same users, or those of several instances.

    Each stream has the same probabilities as a `ClickEnv` with the same time limit, but not the
    same random numbers. As in `ClickEnv`, an episode continues its stream, unless `reset` gets a
    seed. All streams are truncated together. Users with a memory are the exception: each user's
    episode ends after that user's own sessions.

    Args:
        model, reward, cutoff, form, n_positions, reference, **parameters: as in `ClickEnv`.
        render_mode: None, ``"ansi"`` or ``"rgb_array"``.
        num_envs: B, the number of streams.
        instance: as in `ClickEnv`; or a list of n instances with the same L and K, dealt to the
            streams in turn: stream b has number b mod n, and an optimum of its own.
        max_episode_steps: truncate an episode after so many sessions; None and -1 never do.
        autoreset_mode: what follows the end of an episode: ``AutoresetMode.NEXT_STEP`` (the next
            ``step`` ignores the actions of these streams, and resets them) or
            ``AutoresetMode.SAME_STEP`` (the same ``step`` returns the first observation of the new
            stream, and the last one as ``final_obs``).

    Attributes:
        models, instances: the users and the names of the n instances; ``model`` and ``instance``
            are the first.

    Raises:
        ValueError, TypeError: as `ClickEnv`; on a ``num_envs`` or ``max_episode_steps`` that is not
            a positive integer; on instances of different sizes, or more of them than streams.

    Example:
        >>> import gymnasium as gym, clickgym
        >>> envs = gym.make_vec("PBMRank-v0", num_envs=4)
        >>> clicks, infos = envs.reset(seed=0)
        >>> clicks, rewards, terminations, truncations, infos = envs.step(envs.action_space.sample())
        >>> clicks.shape, infos["regret"].shape
        ((4, 5), (4,))
    """

    metadata: dict[str, Any] = {
        "render_modes": list(RENDER_MODES),
        "render_fps": 4,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    single_action_space: RankedList
    action_space: BatchedRankedList

    def __init__(
        self,
        model: Users | str,
        num_envs: int = 1,
        reward: str | None = None,
        cutoff: int | None = None,
        *,
        instance: AnyInstance | Sequence[AnyInstance] | None = None,
        form: str = "",
        n_positions: int | None = None,
        reference: ArrayLike | None = None,
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        **parameters: Any,
    ) -> None:
        if (
            isinstance(max_episode_steps, int) and max_episode_steps == -1
        ):  # as `gymnasium.make` has it
            max_episode_steps = None
        if max_episode_steps is not None:
            check_count("max_episode_steps", max_episode_steps)
        _check_render_mode(render_mode, RENDER_MODES)
        if not isinstance(autoreset_mode, AutoresetMode):
            check_choice("autoreset_mode", autoreset_mode, ("NextStep", "SameStep"))
        mode = AutoresetMode(autoreset_mode)
        if mode is AutoresetMode.DISABLED:
            raise ValueError(
                "autoreset_mode must be NEXT_STEP or SAME_STEP: all streams share one clock"
            )
        self.num_envs = check_count("num_envs", num_envs)
        problems = Problem.each(Asked(model, form, instance, n_positions, parameters))
        if len(problems) > self.num_envs:
            raise ValueError(
                f"{len(problems)} instances cannot be distributed over {num_envs} streams: num_envs must be at least as many"
            )
        self.single_observation_space = self._set_up(
            problems, self.num_envs, reward, cutoff, reference
        )
        self.render_mode = render_mode
        self.max_episode_steps = max_episode_steps
        self.metadata = {**type(self).metadata, "autoreset_mode": mode}
        self.single_action_space = RankedList(self.model.n_items, self.model.n_positions)
        self.action_space = BatchedRankedList(
            self.num_envs, self.model.n_items, self.model.n_positions
        )
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._seen = np.empty(self.model.n_items, np.int64)
        self._everybody = np.ones(self.num_envs, np.bool_)
        self._truncated = False  # with NEXT_STEP: the next step is the reset of all streams
        self._forget()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode on all streams: with a seed, and the first time, new streams; else the
        same streams go on.

        Args:
            seed: one integer that seeds all streams; None goes on with the present ones.
            options: not used.

        Returns:
            ``(B, K)`` zeros (with ``features`` ``(B, L, d)`` where candidates change), and infos
            with ``optimal_ranking`` ``(B, K)`` and ``optimal_reward`` ``(B,)``.
        """
        seed = _checked_seed(seed, options)
        super().reset(seed=seed)
        return self._begin_episode(seed)

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Show one list on each stream.

        Args:
            actions: ``(B, K)`` integers, each row K distinct item ids; with ``NEXT_STEP`` anything
                on streams that ended with the last step.

        Returns:
            Clicks ``(B, K)``, rewards ``(B,)``, terminations, truncations, and infos with the
            arrays ``expected_reward``, ``regret`` and ``optimal_reward`` (each with its mask, as
            Gymnasium's vector environments do).

        Raises:
            ValueError, TypeError: on a bad list, naming the stream, the position and the fault.
            SessionError: as in `ClickEnv.step`.
            gymnasium.error.ResetNeeded: before the first `reset`.
        """
        if self._truncated:  # NEXT_STEP: this call is the reset
            observations, infos = self._begin_episode()
            nobody = np.zeros(self.num_envs, np.bool_)
            return observations, np.zeros(self.num_envs), nobody, nobody.copy(), infos
        begins = self._beginning()
        rankings = self._checked(actions, begins)
        if not self._begun:
            raise gym.error.ResetNeeded("call reset() before the first step()")
        clicks, rewards, infos = self._play(rankings, begins)
        self._episode_steps += 1 if begins is None else ~begins
        if (
            self.render_mode is not None
        ):  # copies, since the caller may write into what it gave and got
            self._rankings, self._clicks, self._rewards = (
                rankings.copy(),
                clicks.copy(),
                rewards.copy(),
            )
        ended = (
            np.zeros(self.num_envs, np.bool_)
            if self._batch.ended is None
            else self._batch.ended.copy()
        )
        infos = self._infos(infos, begins)
        observations = self._batch.observe(clicks)
        truncated, some_over = self._cut_off()
        if self.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP or not some_over:
            self._truncated = self._batch.ended is None and some_over
        else:
            observations, infos = self._begin_next(ended | truncated, observations, clicks, infos)
        return observations, rewards, ended, truncated, infos

    def _beginning(self) -> NDArray[np.bool_] | None:
        """``(B,)`` the streams to which the next call of ``step`` brings a new user (NEXT_STEP);
        None if there are none.
        """
        ended = self._batch.ended
        return None if ended is None or not ended.any() else ended.copy()

    def _cut_off(self) -> tuple[NDArray[np.bool_], bool]:
        """End the episodes that reach the limit; ``(B,)`` on which streams, and whether any episode
        is over.
        """
        at_limit, ended = self._episode_steps == self.max_episode_steps, self._batch.ended
        truncated = np.zeros(self.num_envs, np.bool_)
        truncated[:] = at_limit
        if ended is None:
            return truncated, at_limit
        ended |= truncated  # the limit cuts each user off by himself, and another follows as after one who left
        self._episode_steps[ended] = 0
        return truncated, bool(ended.any())

    def _begin_next(
        self,
        over: NDArray[np.bool_],
        observations: Any,
        clicks: NDArray[np.int8],
        infos: dict[str, Any],
    ) -> tuple[Any, dict[str, Any]]:
        """SAME_STEP: begin the next episodes where one is over; the first observations, and infos
        that keep the last ones.
        """
        final = np.full(self.num_envs, None, object)
        for b, last in enumerate(iterate(self.observation_space, observations)):
            if over[b]:
                final[b] = last
        finals = self._masked(
            over, final_obs=final, final_info={**infos, **self._only(over, infos)}
        )
        if self._batch.ended is None:
            observations, firsts = self._begin_episode()
        else:
            self._batch.draw(self.np_random, only_ended=True)
            clicks = clicks.copy()
            clicks[over] = 0
            observations, firsts = self._batch.observe(clicks), self._firsts(over)
            firsts = self._both({**infos, **self._only(~over, infos)}, firsts)
        return observations, finals | firsts

    def render(self) -> tuple[Any, ...] | None:
        """The result page of every stream, as `ClickEnv.render` draws it."""
        if self.render_mode is None:
            _warn_of_no_mode("gym.make_vec", RENDER_MODES)
            return None
        titles = [f"{self.instances[b % len(self.instances)]} · {b}" for b in range(self.num_envs)]
        return tuple(
            render(self._page(b, title), self.render_mode) for b, title in enumerate(titles)
        )

    def _facts(self) -> dict[str, Any]:
        return {"num_envs": self.num_envs, **super()._facts()}

    def _checked(self, actions: Any, ignored: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
        """The actions as lists, each of them checked; in place of those that are ignored lists that
        nobody meets.
        """
        shape = (self.num_envs, self.model.n_positions)
        if ignored is not None and ignored.all():
            return np.tile(np.arange(self.model.n_positions), (self.num_envs, 1))
        rankings = as_array("actions", actions)
        if rankings.shape != shape:
            raise ValueError(
                f"actions have shape {rankings.shape}; expected (num_envs, n_positions) = {shape}"
            )
        if rankings.dtype.kind not in "iu":
            raise TypeError(f"actions have dtype {rankings.dtype}; expected integer item ids")
        if ignored is None:
            rankings = np.ascontiguousarray(rankings, np.int64)
        else:
            rankings = np.array(rankings, np.int64, order="C")
            rankings[ignored] = np.arange(self.model.n_positions)
        self._seen.fill(-1)
        bad = first_bad_list(rankings, self._seen)
        if bad >= 0:
            try:
                _checked_list(rankings[bad], self.single_action_space, "LehmerVectorAction")
            except ValueError as error:
                raise ValueError(f"environment {bad}: {error}") from None
        return rankings

    def _culprit(self) -> str:
        return f"a {type(self.model).__name__}, on one of {self.num_envs} streams"

    def _forget(self) -> None:
        super()._forget()
        self._begin_count()

    def _begin_episode(self, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, with a seed of new streams; what all streams observe first, and the
        infos.
        """
        self._restart(seed)
        self._begin_count()
        nothing = np.zeros((self.num_envs, self.model.n_positions), np.int8)
        return self._batch.observe(nothing), self._firsts(self._everybody)

    def _begin_count(self) -> None:
        """Count the sessions of the episodes from 0."""
        # A number; where users have a memory, one for each stream.
        self._episode_steps: Any = (
            0 if self._batch.ended is None else np.zeros(self.num_envs, np.int64)
        )
        self._truncated = False

    def _firsts(self, streams: NDArray[np.bool_]) -> dict[str, Any]:
        """The info of a reset, on some streams."""
        best, optimum = self._batch.optimal_ranking.copy(), self._batch.optimal_reward.copy()
        return self._masked(streams, optimal_ranking=best, optimal_reward=optimum)

    def _masked(self, streams: NDArray[np.bool_], **infos: Any) -> dict[str, Any]:
        return infos | {f"_{name}": streams.copy() for name in infos}

    def _infos(self, infos: dict[str, Any], begins: NDArray[np.bool_] | None) -> dict[str, Any]:
        """The infos of sessions, and those of resets on the streams where a user begins."""
        if begins is None:
            return self._masked(self._everybody, **infos)
        return self._both(self._masked(~begins, **infos), self._firsts(begins))

    def _only(self, streams: NDArray[np.bool_], infos: Mapping[str, Any]) -> dict[str, Any]:
        """The masks of infos that count on some streams only."""
        return {name: mask & streams for name, mask in infos.items() if name.startswith("_")}

    def _both(self, infos: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
        """Infos of some streams, and of others."""
        both = {**infos, **others}
        for name in infos.keys() & others.keys():
            first, second = infos[name], others[name]
            both[name] = (
                first | second
                if name.startswith("_")
                else np.where(others[f"_{name}"], second, first)
            )
        return both
