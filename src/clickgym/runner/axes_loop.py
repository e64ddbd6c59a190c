"""What both loops do where clicks come late or from bots, or items change (see `clickgym.envs.axes`)."""

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
from .pairs import Pair

# Left open in the templates below; `specialise` binds them to the kernels of an agent and of the axes.
update: Callable[..., None]
replace: Callable[..., None]
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
def is_there(axes, ranking):  # type: ignore[no-untyped-def]
    """All items are available."""
    return True


@kernel
def is_available(axes, ranking):  # type: ignore[no-untyped-def]
    mask, absent = axes.available.mask[0], False
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
        for a in range(axes.features.shape[1]):
            for j in range(axes.features.shape[2]):
                axes.features[slot, a, j] = features[a, j]
    deliver(arrival, 0, number, axes.churn.last[0])
    for n in range(arrival.n_arrived[0]):
        for k in range(len(ranking)):
            axes.codes[k] = arrival.clicks[0, n, k] + VOID * arrival.void[0, n, k]
        slot = arrival.slots[0, n]
        bring_back(axes.records[slot], axes.remembered)
        update(state, axes.features[slot], arrival.rankings[0, n], axes.codes)


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


@kernel
def keep_list(axes, item, parameters, reward, cutoff, scratch):  # type: ignore[no-untyped-def]
    """The best list stays that of the task."""


def _change_list(axes, item, parameters, reward, cutoff, scratch):  # type: ignore[no-untyped-def]
    """Find the best list of the next session, if other items are there; ``item`` has been replaced, if it is an id."""
    if draw_mask(axes) or item >= 0:
        find(axes.choice, parameters, axes.available.mask[0], reward, cutoff, scratch)


class AxesState(NamedTuple):
    """What the loop knows of the axes, and of the displays that wait for their clicks."""

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


def kernels_of_axes(agent: Any, env: ClickEnv, update: Any) -> dict[str, Any]:
    """What the loop calls of the axes that there are; ``update(state, features, ranking, clicks)`` is the agent's."""
    kernels: dict[str, Any] = {
        "is_available": is_there,
        "report_clicks": report_true_clicks,
        "learn": specialise(_learn_at_once, update=update),
        "change_item": keep_items,
        "change_list": keep_list,
    }
    axes: Any = env.axes
    if axes.available is not None:
        kernels |= {"rank": agent.rank_available_kernel, "is_available": is_available}
    if axes.bots:
        kernels["report_clicks"] = report_with_bots
    if axes.arrival:
        kernels["learn"] = specialise(_learn_late, update=update)
    if axes.churn:
        kernels["change_item"] = specialise(_change_item, replace=agent.replace_kernel)
    if axes.changes_items:
        draw_mask = keep_mask if axes.available is None else draw_next_mask
        kernels["change_list"] = specialise(_change_list, draw_mask=draw_mask, find=env.task.find_kernel)
    return kernels


def state_of_axes(pair: Pair, before: AxesState | None) -> AxesState | None:
    """What the loop knows of the axes under the present task, ``before`` under the last; None where there are none."""
    env: ClickEnv = pair.place.core
    if env.axes is None:
        return None
    present: Any = env.task
    of_task = NO_ITEMS
    if env.axes.changes_items:
        of_task = {"new_items": present.new_items, "items": present.items, "choice": present.choice}
    return _first_state(pair, env.axes, of_task) if before is None else before._replace(**of_task)


def _first_state(pair: Pair, axes: Axes, of_task: Mapping[str, Any]) -> AxesState:
    """The axes at the start of a run."""
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


class Feedback:
    """The Python loop's view of an agent: what it is passed of each session, and when.

    Args:
        pair: the agent, whose displays begin behind those that it has made, and the environment, which has been reset.
    """

    def __init__(self, pair: Pair) -> None:
        self._agent, self._is_guest, self._is_compiled = pair.agent, pair.place.is_guest, issubclass(pair.kind, CompiledAgent)
        env = pair.place.core
        self._axes: Axes | None = None if self._is_guest else env.axes
        self._is_contextual = not self._is_guest and isinstance(env.model, ContextualModel)
        self._before = getattr(pair.agent, "display", 0)
        self._played = 0
        self._features: dict[int, Any] = {}  # what was observed of the candidates, by display

    def rank(self, observation: Any) -> NDArray[np.int64]:
        """The agent's list, made of the items that are available."""
        if self._axes is None or self._axes.available is None:
            return self._agent.rank(observation)
        return self._agent.rank(observation, candidates=self._axes.mask[0].copy())

    def learn(self, last: Any, ranking: Any, observation: Any, reward: float, info: Mapping[str, Any]) -> tuple[Any, float]:
        """Pass the feedback that has arrived to the agent, and name the item that was replaced.

        Args:
            last: what the agent saw when it ranked.
            ranking: what it showed.
            observation, reward, info: what came of it.

        Returns:
            The true clicks of the session, and the reward of its user.
        """
        agent, axes = self._agent, self._axes
        if axes is None:
            clicks = clicks_of(observation)
            if self._is_guest:
                clicks = np.array(clicks, np.int8)  # a copy: the environment may write into its own
            agent.update(last, ranking, clicks, reward)
            return clicks, reward
        self._played += 1
        if axes.arrival_state is None:
            agent.update(last, ranking, clicks_of(observation), reward)
        else:
            self._learn_arrived(axes, axes.arrival_state, last)
        if axes.churn and axes.churn_state.replaced[0] >= 0:
            agent.replace(int(axes.churn_state.replaced[0]))
        return info["true_clicks"], float(info["realised_reward"])

    def _learn_arrived(self, axes: Axes, arrived: ArrivalState, last: Any) -> None:
        """Keep what the agent saw for when its clicks arrive, and pass on what has arrived by now."""
        if self._is_contextual and not axes.is_lost:
            self._features[self._played] = {"features": last["features"]}
            if len(self._features) > arrived.due.shape[1]:  # the oldest was given up
                del self._features[next(iter(self._features))]
        for n in range(arrived.n_arrived[0]):
            number = int(arrived.displays[0, n])
            void = {"void": arrived.void[0, n].copy()} if axes.churn else {}
            self._agent.update(
                self._features.pop(number, None), arrived.rankings[0, n].copy(), arrived.clicks[0, n].copy(),
                float(arrived.rewards[0, n]), display=self._before + number, **void,
            )  # fmt: skip

    def close(self) -> None:
        """End the run: feedback that has not arrived by now never will."""
        if self._axes is not None and self._is_compiled:
            self._agent.close_displays()
