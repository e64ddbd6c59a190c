"""Contextual environments: every session brings other candidates, whose attraction is linear in their features.

A session needs its candidates before it starts, so `step` ends by drawing those of the next session, and its observation holds
their features. Click models stay as they are: the attractions of the candidates are written into the array that their kernels
read. Letters as in `contextual_model`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, MultiBinary
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from .checks import unknown
from .click_env import ClickEnv, ClickVectorEnv, session
from .click_model import MAX_SEARCH, ClickModel, _branch_and_bound
from .contextual_model import BASES, LinearModel
from .kernels import inner, kernel, specialise
from .rank_env import _from_arguments
from .spaces import RankedList, check_ranking

__all__ = ["CONTEXTUAL", "ContextualClickEnv", "ContextualClickVectorEnv"]

Observation = dict[str, NDArray[Any]]

# ------------------------------------------------------------------------------------------------------ a round, compiled


class Round(NamedTuple):
    """The candidates of one session and their best list; and the working memory to draw them."""

    features: NDArray[np.float64]  # (L, d)
    attraction: NDArray[np.float64]  # (L,)
    best: NDArray[np.int64]  # (K,) the best list
    optimum: NDArray[np.float64]  # (1,) its expected reward
    deck: NDArray[np.int64]  # (N,) the items in their order; dealt from and put back in every draw
    swaps: NDArray[np.int64]  # (L,)
    candidates: NDArray[np.int64]  # (L,) the candidates by decreasing attraction
    places: NDArray[np.int64]  # (m,) which of them stands at each counted position of the best list; -1: to be searched for
    bounds: NDArray[np.float64]  # (m, m) of the search: bounds on the examination of the positions k.., decreasing
    head: NDArray[np.int64]  # (m,) working memory of the search ...
    found: NDArray[np.int64]  # (m,)
    choice: NDArray[np.int64]  # (m,)
    used: NDArray[np.bool_]  # (L,)


@inner
def deal(pool, drawn, rng):  # type: ignore[no-untyped-def]
    """A user and L distinct items at random: their features, attractions and order."""
    n_items, n_user_features = len(drawn.attraction), pool.users.shape[1]
    user = int(rng.random() * len(pool.users))
    deck = drawn.deck
    for a in range(n_items):
        swap = a + int(rng.random() * (len(deck) - a))
        drawn.swaps[a] = swap
        deck[a], deck[swap] = deck[swap], deck[a]
        item = deck[a]
        for j in range(n_user_features):
            drawn.features[a, j] = pool.users[user, j]
        for j in range(pool.items.shape[1]):
            drawn.features[a, n_user_features + j] = pool.items[item, j]
        attraction = min(max(pool.user_attraction[user] + pool.item_attraction[item], 0.0), 1.0)
        drawn.attraction[a] = attraction
        place = a
        while place > 0 and drawn.attraction[drawn.candidates[place - 1]] < attraction:
            drawn.candidates[place] = drawn.candidates[place - 1]
            place -= 1
        drawn.candidates[place] = a
    for a in range(n_items - 1, -1, -1):  # so that a draw depends on nothing but the generator
        deck[a], deck[drawn.swaps[a]] = deck[drawn.swaps[a]], deck[a]


# Left open in the templates below; `specialise` binds them to a model's kernels.
expected: Callable[..., float]
search: Callable[..., None]
find_best: Callable[..., None]
play_session: Callable[..., tuple[float, float, int]]
next_round: Callable[..., None]


@kernel
def _match(drawn, parameters, reward, scratch):  # type: ignore[no-untyped-def]
    for k in range(len(drawn.places)):
        drawn.best[k] = drawn.candidates[drawn.places[k]]
    for k in range(len(drawn.places), len(drawn.best)):
        drawn.best[k] = drawn.candidates[k]


def _search(drawn, parameters, reward, scratch):  # type: ignore[no-untyped-def]
    search(parameters, drawn.candidates, drawn.bounds, reward, scratch, drawn.head, drawn.choice, drawn.used, drawn.found)
    for a in range(len(drawn.used)):
        drawn.used[a] = False
    for k in range(len(drawn.found)):
        drawn.best[k] = drawn.found[k]
        drawn.used[drawn.found[k]] = True
    next_best = 0
    for k in range(len(drawn.found), len(drawn.best)):
        while drawn.used[drawn.candidates[next_best]]:
            next_best += 1
        drawn.best[k] = drawn.candidates[next_best]
        next_best += 1
    for a in range(len(drawn.used)):
        drawn.used[a] = False


def _next_round(pool, drawn, parameters, rng, reward, scratch):  # type: ignore[no-untyped-def]
    deal(pool, drawn, rng)
    find_best(drawn, parameters, reward, scratch)
    drawn.optimum[0] = expected(parameters, drawn.best, reward, len(drawn.places), scratch)


def _draw(pool, drawn, parameters, rng, reward, scratch):  # type: ignore[no-untyped-def]
    next_round(pool, drawn, parameters, rng, reward, scratch)


def _batch(  # type: ignore[no-untyped-def]
    pool, drawn, parameters, rng, reward, scratch, features, attractions, best, optimum
):
    """The next round of every stream of a vector environment."""
    for b in range(len(optimum)):
        next_round(pool, drawn, parameters, rng, reward, scratch)
        for a in range(len(drawn.attraction)):
            attractions[b, a] = drawn.attraction[a]
            for j in range(drawn.features.shape[1]):
                features[b, a, j] = drawn.features[a, j]
        for k in range(len(drawn.best)):
            best[b, k] = drawn.best[k]
        optimum[b] = drawn.optimum[0]


def _batch_sessions(  # type: ignore[no-untyped-def]
    drawn, parameters, attractions, rankings, uniforms, clicks, examined, reward, cutoff, scratch, realised, expectation
):
    """A batch of sessions, each with attractions of its own."""
    for b in range(len(rankings)):
        for a in range(len(drawn.attraction)):
            drawn.attraction[a] = attractions[b, a]
        realised[b], expectation[b], _ = play_session(
            parameters, rankings[b], uniforms[b], clicks[b], examined[b], reward, cutoff, scratch
        )


class _RoundTask:
    """What is asked of the lists of a contextual environment, and the present round; as the tasks of `ClickEnv`.

    Attributes:
        model: the base model; its kernels read the attractions of the present round.
        parameters: the first argument of its kernels.
        code, cutoff: the kernels' reward and number of counted positions.
        pool, round: what candidates are drawn from, and those drawn last.
        next_round: the kernel that draws; `draw` calls it from Python.
    """

    def __init__(self, model: LinearModel, reward: str, cutoff: int | None) -> None:
        self.model = model.base
        self.reward = reward
        self.code, self.cutoff = model.base.check_reward(reward, cutoff)
        n_items, m = model.n_items, self.cutoff
        # Candidates by decreasing attraction: where the best list follows from their order, it is the same for all rounds.
        ordered = model._with_attraction(np.linspace(1.0, 0.0, n_items))
        places = ordered._optimal(self.code, m)
        bounds = np.zeros((m, m))
        if places is None:
            lists = math.perm(n_items, m)
            if lists > MAX_SEARCH:
                raise ValueError(
                    f"the best list for reward={reward!r} in a {model.kind} is known only by exact search in each session, and "
                    f"{lists:.3g} lists of {m} out of {n_items} candidates are more than the limit of {MAX_SEARCH:.0e}; choose "
                    f"another reward kind or a smaller cutoff"
                )
            for k in range(m):
                bounds[k, : m - k] = np.sort(ordered._examination_bounds()[k:m])[::-1]
        self.pool = model.pool
        self.round = Round(
            features=np.zeros((n_items, model.n_features)),
            attraction=np.zeros(n_items),
            best=np.arange(model.n_positions),
            optimum=np.zeros(1),
            deck=np.arange(len(model.items)),
            swaps=np.zeros(n_items, np.int64),
            candidates=np.zeros(n_items, np.int64),
            places=np.full(m, -1) if places is None else places,
            bounds=bounds,
            head=np.zeros(m, np.int64),
            found=np.zeros(m, np.int64),
            choice=np.full(m, -1),
            used=np.zeros(n_items, np.bool_),
        )
        self.parameters = model.base.parameters._replace(attraction=self.round.attraction)
        expected = model.base.expected_kernel
        find = _match if places is not None else specialise(_search, search=specialise(_branch_and_bound, expected=expected))
        self.next_round = specialise(_next_round, find_best=find, expected=expected)
        self._scratch = np.empty(model.n_positions + 1)

    @property
    def optimal_ranking(self) -> NDArray[np.int64]:
        return self.round.best

    @property
    def optimal_reward(self) -> float:
        return float(self.round.optimum[0])

    def draw(self, rng: np.random.Generator) -> None:
        """Draw the next round."""
        draw = specialise(_draw, next_round=self.next_round, counted=True)
        draw(self.pool, self.round, self.parameters, rng, self.code, self._scratch)


# ------------------------------------------------------------------------------------------------------- the environments


def _spaces(model: LinearModel) -> tuple[RankedList, Dict]:
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

    model: LinearModel
    observation_space: Dict  # type: ignore[assignment]

    def __init__(
        self,
        model: LinearModel,
        reward: str = "any_click",
        cutoff: int | None = None,
        *,
        render_mode: str | None = None,
    ) -> None:
        if not isinstance(model, LinearModel):
            raise TypeError(f"model must be a LinearModel, got {type(model).__name__}")
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(unknown("render_mode", render_mode, self.metadata["render_modes"]))
        self.model = model
        self.reference = None
        self.render_mode = render_mode
        self.task: Any = _RoundTask(model, reward, cutoff)
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

    model: LinearModel

    def __init__(
        self,
        model: LinearModel,
        num_envs: int = 1,
        reward: str = "any_click",
        cutoff: int | None = None,
        *,
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    ) -> None:
        if not isinstance(model, LinearModel):
            raise TypeError(f"model must be a LinearModel, got {type(model).__name__}")
        self.task: Any = _RoundTask(model, reward, cutoff)
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
        specialise(_batch, next_round=task.next_round, counted=True)(
            task.pool, task.round, task.parameters, self.np_random, task.code, self._scratch,
            self._features, self._attractions, self._best, self._optimum,
        )  # fmt: skip

    def _enter(self) -> None:
        self._next_change = sys.maxsize
        self._sessions = specialise(_batch_sessions, play_session=session(self.task.model))

    def _reset_infos(self) -> dict[str, Any]:
        return self._masked(optimal_ranking=self._best.copy(), optimal_reward=self._optimum.copy())


# ---------------------------------------------------------------------------------------------- the registered classes

_PAGE = """
    ## Description

    Rank candidates for users of the **{name}** with attraction linear in features. Every session brings another user and other
    candidates: a user with the features U(i) meets L of N items with the features V(j), and clicks an examined candidate with
    the probability θ*ᵀx, ``x = [U(i), V(j)]``, ``‖x‖₂ ≤ 1``; θ* is not told. Every step is one session; the stream of sessions
    never ends by itself.

    ## Action Space

    `RankedList(L, K)`: an integer array of K distinct candidates, the top of the list first; candidate i is the one with row
    i of the features last observed. A list with a duplicate, a number out of range, or a wrong shape or dtype raises an error
    that names the position.

    ## Observation Space

    `Dict(clicks=MultiBinary(K), features=Box(-1, 1, (L, d), float64))`

    | Key | Observation | Values |
    |---|---|---|
    | `clicks` | whether the item at each position was clicked in the session that has just ended; zeros after `reset` | 0, 1 |
    | `features` | the features x of the candidates to be ranked next, one row each | -1 to 1 |

    ## Rewards

    The realised reward of the session, by the kind that `reward` names: `any_click`, 1 if there was at least one click
    (CTR_set of He et al.); `clicks`, their number (CTR_sum); `satisfaction`, 1 if the user left satisfied (dependent click
    model only). With a `cutoff` only the first positions count. The agents of the paper show the k-th best candidate at
    position k; for `clicks` in the user browsing and the dependent click model that may be suboptimal, and regret then stays
    linear for all.

    ## Starting State

    The first user and candidates, drawn as all the others; sessions are independent of one another.

    ## Episode End

    Never: sessions are an endless stream. `max_episode_steps` in `gym.make` truncates it.

    ## Information

    `step` returns `expected_reward` (exact, of the list shown), `optimal_reward` (of the best list of the same candidates)
    and their difference `regret`; `reset` returns `optimal_ranking` and `optimal_reward` of the candidates to be ranked. They
    are for measuring; an agent that reads them cheats.

    ## Arguments

    ```python
    >>> import gymnasium as gym, clickgym
    >>> env = gym.make("{id}", instance="linear:n_items=6,n_positions=2,n_features=4,seed=1")
    >>> observation, info = env.reset(seed=0)
    >>> observation["features"].shape
    (6, 4)
    >>> observation, reward, terminated, truncated, info = env.step(info["optimal_ranking"])
    >>> info["regret"]
    0.0

    ```

    | Parameter | Type | Default | Description |
    |---|---|---|---|
    | `base` | click model or its `to_dict()` | of the instance | the {model}; its attractions are replaced in every session |
    | `theta` | `(d,)` floats | of the instance | θ* |
    | `items` | `(N, d_v)` floats | of the instance | the features of the items, N ≥ L |
    | `users` | `(M, d_u)` floats or None | of the instance | the features of the users; None: none |
    | `instance` | str | `"linear"` | name or file (`clickgym list instances`); not with parameters |
    | `n_positions` | int | of the instance | K, the length of a list |
    | `reward` | str | `"any_click"` | what a session pays |
    | `cutoff` | int | None | count only the first positions |
    | `render_mode` | str | None | `"ansi"` or `"rgb_array"` |

    ## Vectorized environment

    `gym.make_vec(id, num_envs=...)` builds the native vector environment: independent streams, all stepped in one compiled
    call, with the same arguments. `max_episode_steps` truncates all streams together; `autoreset_mode` is
    `AutoresetMode.NEXT_STEP`, or `SAME_STEP` on request.

    ## References

    - X. He et al. *Contextual user browsing bandits for large-scale online mobile recommendation.* RecSys 2020.
    - The click model itself: see `{stationary}`.

    ## Version History

    - v0: initial version.
    """


class _ContextualRankEnv(ContextualClickEnv):
    """Base of the registered environments: the model comes from an instance or from parameters."""

    model_class: ClassVar[type[ClickModel]] = LinearModel
    kind: ClassVar[str]

    def __init__(
        self,
        instance: str | None = None,
        *,
        n_positions: int | None = None,
        reward: str = "any_click",
        cutoff: int | None = None,
        render_mode: str | None = None,
        **parameters: Any,
    ) -> None:
        model, name, _ = _from_arguments(LinearModel, self.kind, instance, n_positions, parameters)
        assert isinstance(model, LinearModel)
        super().__init__(model, reward, cutoff, render_mode=render_mode)
        self.instance = name


class _ContextualRankVectorEnv(ContextualClickVectorEnv):
    """Base of the registered vector environments: the model comes from an instance or from parameters."""

    model_class: ClassVar[type[ClickModel]] = LinearModel
    kind: ClassVar[str]

    def __init__(
        self,
        num_envs: int = 1,
        instance: str | None = None,
        *,
        n_positions: int | None = None,
        reward: str = "any_click",
        cutoff: int | None = None,
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        **parameters: Any,
    ) -> None:
        model, name, _ = _from_arguments(LinearModel, self.kind, instance, n_positions, parameters)
        assert isinstance(model, LinearModel)
        super().__init__(
            model,
            num_envs,
            reward,
            cutoff,
            render_mode=render_mode,
            max_episode_steps=max_episode_steps,
            autoreset_mode=autoreset_mode,
        )
        self.instance = name


def _contextual(prefix: str, name: str) -> tuple[type[ContextualClickEnv], type[ContextualClickVectorEnv]]:
    """The scalar and the vector environment of one click model with candidates that change."""
    model = BASES[prefix].__name__
    page = _PAGE.format(id=f"Contextual{prefix}Rank-v0", name=name, model=model, stationary=f"{prefix}Rank-v0")
    shared = {"kind": f"LinearModel of {model}", "__module__": __name__}
    scalar = f"Contextual{prefix}RankEnv"
    return (
        type(scalar, (_ContextualRankEnv,), {**shared, "__doc__": page}),
        type(
            f"Contextual{prefix}RankVectorEnv",
            (_ContextualRankVectorEnv,),
            {**shared, "__doc__": f"Many independent streams of `{scalar}`, stepped together."},
        ),
    )


CONTEXTUAL: dict[str, tuple[type[ContextualClickEnv], type[ContextualClickVectorEnv]]] = {
    f"Contextual{prefix}Rank-v0": _contextual(prefix, name)
    for prefix, name in (
        ("UBM", "user browsing model"),
        ("PBM", "position-based model"),
        ("CM", "cascade model"),
        ("DCM", "dependent click model"),
    )
}
"""The contextual ids, each with its scalar and its vector environment."""

globals().update({env.__name__: env for pair in CONTEXTUAL.values() for env in pair})  # entry points name them here
