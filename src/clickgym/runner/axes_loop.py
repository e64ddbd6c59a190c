"""The compiled loop for sessions whose clicks come late or from bots, or whose items change (see `clickgym.envs.axes`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..agents import CompiledAgent, ContextualAgent
from ..agents.codes import VOID
from ..core.files import check_memory
from ..core.kernels import inner, kernel, specialise
from ..envs import ClickEnv, ContextualModel
from ..envs.arrival import Arrival, ArrivalState, deliver, schedule
from ..envs.available import AvailableState, draw_available
from ..envs.axes import Axes
from ..envs.bots import Bots, BotsState, paid, report
from ..envs.churn import ChurnState, NewItems
from ..envs.churn import replace as replace_item
from ..envs.click_env import refuse_absent
from ..envs.guests import clicks_of
from ..envs.present import forget
from ..envs.session import is_ranked_list, session
from .pairs import Pair

# Left open in the templates below; `specialise` binds them to the kernels of a model and an agent, and to what a run without an
# axis does in its place.
rank: Callable[..., None]
update: Callable[..., None]
replace: Callable[..., None]
play_session: Callable[..., tuple[float, float, int]]
measure: Callable[..., None]
sessions: Callable[..., tuple[int, float, int]]
next_round: Callable[..., None]
is_available: Callable[..., bool]
report_clicks: Callable[..., tuple[float, bool]]
learn: Callable[..., None]
copy_candidates: Callable[..., None]
update_late: Callable[..., None]
change_item: Callable[..., int]
draw_mask: Callable[..., bool]
find: Callable[..., None]


@inner
def copy_all(arrays, row):  # type: ignore[no-untyped-def]
    """Write bytes of some arrays into a row, one after the other."""
    place = 0
    for array in arrays:
        for i in range(len(array)):
            row[place] = array[i]
            place += 1


@inner
def bring_back(row, arrays):  # type: ignore[no-untyped-def]
    """Write a row that `copy_all` has written back into the arrays."""
    place = 0
    for array in arrays:
        for i in range(len(array)):
            array[i] = row[place]
            place += 1


@kernel
def find_nothing(choice, parameters, mask, reward, cutoff, scratch):  # type: ignore[no-untyped-def]
    pass


@kernel
def copy_features(features, kept, slot):  # type: ignore[no-untyped-def]
    for a in range(features.shape[0]):
        for j in range(features.shape[1]):
            kept[slot, a, j] = features[a, j]


@kernel
def copy_no_features(features, kept, slot):  # type: ignore[no-untyped-def]
    pass


def _update_late(state, kept, slot, ranking, clicks):  # type: ignore[no-untyped-def]
    update(state, ranking, clicks)


def _update_late_with_features(state, kept, slot, ranking, clicks):  # type: ignore[no-untyped-def]
    update(state, kept[slot], ranking, clicks)


def _rank_blindly(state, rng, features, available, ranking):  # type: ignore[no-untyped-def]
    rank(state, rng, ranking)


def _rank_available(state, rng, features, available, ranking):  # type: ignore[no-untyped-def]
    rank(state, rng, available, ranking)


def _rank_features(state, rng, features, available, ranking):  # type: ignore[no-untyped-def]
    rank(state, rng, features, ranking)


def update_blindly(state, features, ranking, clicks):  # type: ignore[no-untyped-def]
    """The update of an agent that sees no features."""
    update(state, ranking, clicks)


@kernel
def all_are_available(mask, ranking):  # type: ignore[no-untyped-def]
    return True


@kernel
def are_available(mask, ranking):  # type: ignore[no-untyped-def]
    absent = False
    for k in range(len(ranking)):
        absent |= not mask[ranking[k]]
    return not absent


@kernel
def report_true_clicks(axes, number, ranking, clicks, realised, reward, cutoff):  # type: ignore[no-untyped-def]
    """The clicks of session ``number`` are reported; returns their reward, and that they are of a user."""
    for k in range(len(ranking)):
        axes.reported[k] = clicks[k]
    return realised, False


@kernel
def report_with_bots(axes, number, ranking, clicks, realised, reward, cutoff):  # type: ignore[no-untyped-def]
    """Bots change what is reported; returns the reward of that, and whether nobody but a bot was there."""
    for k in range(len(ranking) + 1):
        axes.bots.uniforms[0, k] = axes.bots_rng.random()
    corrupted = report(axes.bots, 0, number, ranking, clicks, axes.reported)
    return paid(axes.reported, corrupted, realised, reward, cutoff), corrupted and not axes.bots.real


def _learn_at_once(state, features, ranking, number, paid_for, axes):  # type: ignore[no-untyped-def]
    update(state, features, ranking, axes.reported)


def _learn_late(state, features, ranking, number, paid_for, axes):  # type: ignore[no-untyped-def]
    """Keep what session ``number`` reports until it is due, and learn what is due after it."""
    arrival = axes.arrival
    arrival.uniforms[0, 0], arrival.uniforms[0, 1] = axes.arrival_rng.random(), axes.arrival_rng.random()
    schedule(arrival, 0, number, ranking, axes.reported, paid_for)
    slot = arrival.displayed[0, 1]
    if slot >= 0 and arrival.display[0, slot] == number:
        copy_all(axes.remembered, axes.records[slot])
        copy_candidates(features, axes.features, slot)
    deliver(arrival, 0, number, axes.churn.last[0])
    for n in range(arrival.n_arrived[0]):
        for k in range(len(ranking)):
            axes.codes[k] = arrival.clicks[0, n, k] + VOID * arrival.void[0, n, k]
        slot = arrival.slots[0, n]
        bring_back(axes.records[slot], axes.remembered)
        update_late(state, axes.features, slot, arrival.rankings[0, n], axes.codes)


@kernel
def keep_items(state, agent_rng, number, axes):  # type: ignore[no-untyped-def]
    return -1


def _change_item(state, agent_rng, number, axes):  # type: ignore[no-untyped-def]
    """Replace an item after session ``number``, or none; returns its id, or -1."""
    for p in range(3):
        axes.churn.uniforms[0, p] = axes.churn_rng.random()
    item = replace_item(axes.churn, 0, number, axes.new_items, axes.items)
    if item >= 0:
        forget(axes.choice)
        replace(state, agent_rng, item)
    return item


@kernel
def keep_mask(axes):  # type: ignore[no-untyped-def]
    return False


@kernel
def draw_next_mask(axes):  # type: ignore[no-untyped-def]
    """Draw which items are available in the next session."""
    for p in range(axes.available.mask.shape[1]):
        axes.available.uniforms[0, p] = axes.available_rng.random()
    draw_available(axes.available, 0)
    return True


def _sessions(  # type: ignore[no-untyped-def]
    parameters, env_rng, uniforms, clicks, examined, scratch, reward, cutoff, pool, drawn,
    state, agent_rng, ranking, seen, contexts, n_sessions, totals, axes,
):  # fmt: skip
    """As `_sessions` of `loop.py`; what happens in a session, and in which order, says `envs/axes.py`.

    Which axes there are is known as this is compiled, so that those which are not cost nothing.
    """
    n_positions = len(ranking)
    mask = axes.available.mask[0]
    regret, rewards, n_clicks = totals[0], totals[1], totals[2]
    before = axes.played[0]
    satisfied, realised, played = -1, 0.0, np.int64(0)
    while played < n_sessions:
        number = before + played + 1
        rank(state, agent_rng, drawn.features, mask, ranking)
        if not is_ranked_list(ranking, seen, played) or not is_available(mask, ranking):
            break
        for k in range(n_positions):
            uniforms[k] = env_rng.random()
        realised, expectation, satisfied = play_session(
            parameters, ranking, uniforms, clicks, examined, reward, cutoff, scratch
        )
        paid_for, is_bot = report_clicks(axes, number, ranking, clicks, realised, reward, cutoff)
        if is_bot:
            realised = 0.0
        else:
            regret += drawn.optimum[0] - expectation
            rewards += realised
            for k in range(n_positions):
                n_clicks += clicks[k]
            measure(contexts, ranking, clicks, expectation, totals, 3)
        learn(state, drawn.features, ranking, number, paid_for, axes)
        item = change_item(state, agent_rng, number, axes)
        next_round(pool, drawn, parameters, env_rng, reward, scratch)
        if draw_mask(axes) or item >= 0:
            find(axes.choice, parameters, mask, reward, cutoff, scratch)
        played += 1
    axes.played[0] = before + played
    totals[0], totals[1], totals[2] = regret, rewards, n_clicks
    return played, realised, satisfied


def _play(  # type: ignore[no-untyped-def]
    parameters, env_rng, uniforms, clicks, examined, scratch, reward, cutoff, pool, drawn,
    state, agent_rng, ranking, seen, contexts, n_sessions, totals, axes,
):  # fmt: skip
    return sessions(
        parameters, env_rng, uniforms, clicks, examined, scratch, reward, cutoff, pool, drawn,
        state, agent_rng, ranking, seen, contexts, n_sessions, totals, axes,
    )  # fmt: skip


class AxesState(NamedTuple):
    """What the loop knows of the axes, and of the displays that wait for their clicks."""

    played: NDArray[np.int64]  # (1,) sessions of the stream
    arrival: ArrivalState
    bots: BotsState
    churn: ChurnState
    available: AvailableState
    arrival_rng: np.random.Generator
    bots_rng: np.random.Generator
    churn_rng: np.random.Generator
    available_rng: np.random.Generator
    new_items: NewItems
    items: NDArray[np.float64]  # (P, L)
    choice: Any
    reported: NDArray[np.int8]  # (K,)
    codes: NDArray[np.int8]  # (K,)
    remembered: tuple[NDArray[np.uint8], ...]  # the bytes of what the agent remembers of a display
    records: NDArray[np.uint8]  # (C, n) of the displays in the slots of `arrival`
    features: NDArray[np.float64]  # (C, L, d) their candidates


NO_ITEMS: dict[str, Any] = {"new_items": NewItems(np.zeros((1, 1)), True), "items": np.zeros((1, 1)), "choice": 0}
"""Where items are those of every session."""


def loop_with_axes(pair: Pair, measure: Any, before: AxesState | None) -> tuple[Callable[..., Any], AxesState]:
    """The compiled loop of a pair under the present task, and its last argument; ``before`` is that under the last task."""
    env: ClickEnv = pair.place.core
    assert env.axes is not None
    kernels = _kernels(pair, env.axes) | {"measure": measure, "next_round": env.task.next_round}
    compiled = specialise(_play, sessions=specialise(_sessions, **kernels), counted=True)
    present: Any = env.task
    changes = env.axes.changes_items
    of_task = {"new_items": present.new_items, "items": present.items, "choice": present.choice} if changes else NO_ITEMS
    return compiled, _first_state(pair, env.axes, of_task) if before is None else before._replace(**of_task)


def _kernels(pair: Pair, axes: Axes) -> dict[str, Any]:
    """What the loop calls of an agent, and of the axes that there are."""
    agent, present, contextual = pair.agent, pair.place.core.task, pair.kind is ContextualAgent
    rank_template, update_kernel = _rank_features, agent.update_kernel
    if pair.kind is CompiledAgent:
        rank_template, update_kernel = _rank_blindly, specialise(update_blindly, update=update_kernel)
    kernels = {
        "rank": specialise(rank_template, rank=agent.rank_kernel),
        "play_session": session(present.model),
        "is_available": all_are_available,
        "report_clicks": report_with_bots if axes.bots else report_true_clicks,
        "learn": specialise(_learn_at_once, update=update_kernel),
        "change_item": keep_items,
        "draw_mask": keep_mask,
        "find": present.find_kernel if axes.changes_items else find_nothing,
    }
    if axes.available is not None:
        available = specialise(_rank_available, rank=agent.rank_available_kernel)
        kernels |= {"rank": available, "is_available": are_available, "draw_mask": draw_next_mask}
    if axes.arrival:
        template, copy = (_update_late_with_features, copy_features) if contextual else (_update_late, copy_no_features)
        update_late = specialise(template, update=agent.update_kernel)
        kernels["learn"] = specialise(_learn_late, copy_candidates=copy, update_late=update_late)
    if axes.churn:
        kernels["change_item"] = specialise(_change_item, replace=agent.replace_kernel)
    return kernels


def _first_state(pair: Pair, axes: Axes, of_task: Mapping[str, Any]) -> AxesState:
    """The last argument of the loop at the start of a run."""
    n_positions, contextual = pair.place.sizes.n_positions, pair.kind is ContextualAgent
    n_slots = 1 if axes.arrival_state is None else axes.arrival_state.due.shape[1]
    remembered = (
        [np.zeros(0, np.uint8)]
        if axes.arrival is None
        else [array.reshape(-1).view(np.uint8) for array in pair.agent.remembered_arrays() or [np.zeros(0, np.uint8)]]
    )
    shape = pair.place.core.task.round.features.shape if contextual and axes.arrival else (0, 0)
    check_memory(f"{n_slots:,} open displays with features", 8 * n_slots * shape[0] * shape[1])
    generators: Any = {f"{name}_rng": generator for name, generator in axes.generators.items()}
    return AxesState(
        played=np.zeros(1, np.int64),
        arrival=axes.arrival_state or Arrival("delay:1").state(1, n_positions),
        bots=axes.bots_state or Bots("random:share=0", 1).state(np.ones((1, 1)), n_positions, np.random.default_rng(0)),
        churn=axes.churn_state,
        available=axes.available_state,
        **generators,
        **of_task,
        reported=np.zeros(n_positions, np.int8),
        codes=np.zeros(n_positions, np.int8),
        remembered=tuple(remembered),
        records=np.empty((n_slots, sum(map(len, remembered))), np.uint8),
        features=np.empty((n_slots, *shape)),
    )


def absent_item(ranking: NDArray[np.int64], env: ClickEnv) -> Exception:
    """The error of a list with an item that is not available."""
    assert env.axes is not None
    try:
        refuse_absent(ranking, env.axes.mask[0])
    except ValueError as error:
        return error
    return RuntimeError("the loop ended at a good list")  # which cannot be


def feedback_of(pair: Pair) -> ClicksAtOnce | ClicksAsTheyCome:
    """How the Python loop passes the clicks of an environment to an agent."""
    if pair.place.is_guest or pair.place.core.axes is None:
        return ClicksAtOnce(pair)
    return ClicksAsTheyCome(pair)


class ClicksAtOnce:
    """The Python loop's view of clicks that are all true and come after each session: what it passes to an agent.

    Args:
        pair: the agent, and the environment, which has been reset.
    """

    def __init__(self, pair: Pair) -> None:
        self._agent, self._is_guest = pair.agent, pair.place.is_guest
        self.rank = pair.agent.rank

    def learn(self, last: Any, ranking: Any, observation: Any, reward: float, info: Mapping[str, Any]) -> tuple[Any, float]:
        """Let the agent learn from a session; returns its clicks and reward.

        Args:
            last: what the agent saw when it ranked.
            ranking: what it showed.
            observation, reward, info: what came of it.
        """
        clicks = clicks_of(observation)
        if self._is_guest:
            clicks = np.array(clicks, np.int8)  # a copy: the environment may write into its own
        self._agent.update(last, ranking, clicks, reward)
        return clicks, reward

    def close(self) -> None:
        """Nothing is left to learn."""


class ClicksAsTheyCome:
    """The Python loop's view of late clicks, bots and changing items: what it passes to an agent, session by session.

    Args:
        pair: the agent, whose displays begin behind those that it has made, and the environment, which has been reset.
    """

    def __init__(self, pair: Pair) -> None:
        env: ClickEnv = pair.place.core
        assert env.axes is not None
        self._agent, self._axes, self._is_compiled = pair.agent, env.axes, issubclass(pair.kind, CompiledAgent)
        self._before = getattr(pair.agent, "display", 0)
        self._played = 0
        self._features: dict[int, Any] = {}  # what was observed of the candidates, by display
        self._is_contextual = isinstance(env.model, ContextualModel)

    def rank(self, observation: Any) -> NDArray[np.int64]:
        """The agent's list, made of the items that are available."""
        if self._axes.available is None:
            return self._agent.rank(observation)
        return self._agent.rank(observation, candidates=self._axes.mask[0].copy())

    def learn(self, last: Any, ranking: Any, observation: Any, reward: float, info: Mapping[str, Any]) -> tuple[Any, float]:
        """Pass the feedback that has arrived to the agent, and name the item that was replaced.

        Returns:
            The true clicks of the session, and the reward of its user.
        """
        axes = self._axes
        self._played += 1
        agent = self._agent
        if axes.arrival_state is None:
            agent.update(last, ranking, clicks_of(observation), reward)
        else:
            arrived = axes.arrival_state
            if self._is_contextual and not axes.is_lost:
                self._features[self._played] = {"features": last["features"]}
                if len(self._features) > arrived.due.shape[1]:  # the oldest was given up
                    del self._features[next(iter(self._features))]
            for n in range(arrived.n_arrived[0]):
                number = int(arrived.displays[0, n])
                void = {"void": arrived.void[0, n].copy()} if axes.churn else {}
                agent.update(
                    self._features.pop(number, None), arrived.rankings[0, n].copy(), arrived.clicks[0, n].copy(),
                    float(arrived.rewards[0, n]), display=self._before + number, **void,
                )  # fmt: skip
        if axes.churn and axes.churn_state.replaced[0] >= 0:
            agent.replace(int(axes.churn_state.replaced[0]))
        return info["true_clicks"], float(info["realised_reward"])

    def close(self) -> None:
        """End the run: feedback that has not arrived by now never will."""
        if self._is_compiled:
            self._agent.close_displays()
