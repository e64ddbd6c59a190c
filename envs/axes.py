"""The arguments `arrival`, `bots`, `churn` and `available`: what they change in the sessions of an environment.

Sessions (displays) are numbered from 1 within a stream. In each of them, and in this order: the list is shown; the users click;
`bots` decide what is reported; `arrival` keeps the report and delivers what is due; `churn` replaces an item; `available` draws
the items of the next session; and `Present` finds their best list. Each axis has kernels in a file of its own, which a compiled
loop can call, too, and a generator of its own, a child of the environment's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Dict, MultiBinary
from numpy.typing import ArrayLike, NDArray

from ..core.checks import check_within, probability
from ..core.files import check_memory
from .arrival import Arrival, ArrivalState, arrive_all
from .available import available_state, draw_all_available
from .bots import Bots, BotsState, reports
from .churn import NewItems, churn_state
from .contextual.model import ContextualModel
from .instances.families import new_items_of
from .memory.model import CascadeMDP
from .present import Present
from .task import AnyTask, Sessions
from .users import Users

AXES = ("arrival", "bots", "churn", "available")


class AxesArguments(NamedTuple):
    """The arguments ``arrival``, ``bots``, ``churn`` and ``available`` of `ClickEnv`, as they were passed."""

    arrival: str
    bots: str | None
    churn: float
    available: int | None

    def beside_defaults(self) -> dict[str, Any]:
        """Those that are not at their defaults."""
        defaults = AxesArguments("immediate", None, 0.0, None)
        return {name: value for name, value in self._asdict().items() if value != getattr(defaults, name)}


class Axes:
    """Those of the arguments ``arrival``, ``bots``, ``churn`` and ``available`` that are not at their defaults, for S streams.

    Args:
        arguments: as in `ClickEnv`.
        model: the users.
        laws: for each instance that is dealt to the streams in turn the family by whose law new items are drawn, ``""`` where
            the users are given by numbers.
        reference: as in `ClickEnv`.
        n_streams: S.

    Attributes:
        arrival, bots: None at their defaults.
        churn: ρ; 0 by default.
        available: M; None by default.
        generators: of each axis.
        arrival_state, bots_state, churn_state, available_state: what their kernels read and write; the first two are None where
            the axis is at its default, and before the first reset.

    Raises:
        ValueError, TypeError: on a bad value, and on one that has no meaning before these users.
    """

    def __init__(
        self, arguments: AxesArguments, model: Users, laws: Sequence[str], reference: ArrayLike | None, n_streams: int
    ) -> None:
        arrival, bots, churn, available = arguments
        n_items, n_positions = model.n_items, model.n_positions
        check_memory(f"{n_streams:,} streams", 8 * n_streams * (n_items + 4))
        parsed = Arrival(arrival)
        self.arrival = None if parsed.is_immediate else parsed
        self.bots = None if bots is None else Bots(bots, n_items)
        self.churn = probability("churn", churn)
        size = n_items if available is None else check_within("available", available, n_positions, n_items, "n_items = ")
        self.available = None if size == n_items else size
        self._model, self._laws, self._reference, self._n_streams = model, laws, reference, n_streams
        for is_asked, fault in self._faults():
            if is_asked:
                raise ValueError(fault)
        self._presents: dict[int, Present] = {}
        self.generators: dict[str, np.random.Generator] = {}
        self.arrival_state: ArrivalState | None = None
        self.bots_state: BotsState | None = None
        self.churn_state = churn_state(n_streams, n_items, self.churn)
        self.available_state = available_state(n_streams, n_items, size)

    def _faults(self) -> Iterator[tuple[Any, str]]:
        """What has no meaning before these users: whether it was asked for, and what is said of it."""
        model, no_churn = self._model, f"churn must be 0 in environments of a {type(self._model).__name__}"
        refused: tuple[str, ...] = () if model.item_values is None else AXES[1:]
        if isinstance(model, CascadeMDP):
            yield self.arrival, "arrival must be 'immediate' for users with a memory: their next state reveals the clicks"
            yield self.available, "available cannot be given for users with a memory: their best lists use all items"
            unreal = self.bots and not self.bots.users_are_real
            yield unreal, "bots must be 'quit' or have 'users=real' for users with a memory, whose sessions continue"
            yield self.churn, f"{no_churn}, where users remember the items"
        if isinstance(model, ContextualModel):
            yield self.churn, f"{no_churn}, where candidates change anyway"
            why = "the candidates change in every session, so that an id cannot be a target"
            yield self.bots and self.bots.has_targets, f"bots must be 'random' in contextual environments: {why}"
            refused = AXES if refused else ()
        for name in refused:
            yield getattr(self, name), f"{name} cannot be given with item_values in environments of a {model.kind}"
        why = "some of its items are not available in every session"
        yield self.available and self._reference is not None, f"a reference list cannot be given with available: {why}"

    @property
    def are_default(self) -> bool:
        """Whether all four arguments are at their defaults."""
        return self.arrival is None and self.bots is None and not self.churn and self.available is None

    @property
    def changes_items(self) -> bool:
        """Whether the items can differ from session to session."""
        return bool(self.churn) or self.available is not None

    # ------------------------------------------------------------------------------------------------------------- tasks

    def reference_of_course(self) -> ArrayLike | None:
        """What a course is to be measured against: anything, where `Present` finds the best list, spares the search."""
        if self.available is not None and not isinstance(self._model, ContextualModel):
            return np.arange(self._model.n_positions)
        return self._reference

    def present(self, task: AnyTask, number: int = 0) -> Any:
        """The task of the items that are there at the start or since a change, or ``task`` itself where they are those of every
        session; ``number`` is that of the instance."""
        if not self.changes_items:
            return task
        if id(task) not in self._presents:
            law: NewItems | None = new_items_of(self._laws[number], task.model) if self.churn else None
            self._presents[id(task)] = Present(
                task, self.available_state.size, self._reference, law, keeps_sets=not self.churn or self._n_streams == 1
            )
        present = self._presents[id(task)]
        present.restore()
        return present

    # ------------------------------------------------------------------------------------------------------------ streams

    def begin(self, rng: np.random.Generator, attractions: NDArray[np.float64]) -> None:
        """Begin new streams.

        Args:
            rng: the environment's generator, of which those of the axes are children; it is not advanced.
            attractions: ``(S, L)`` of the items at the start.
        """
        parent: Any = rng.bit_generator.seed_seq
        for key, name in enumerate(AXES):
            child = np.random.SeedSequence(parent.entropy, spawn_key=(*parent.spawn_key, 0xA8E5, key))
            self.generators[name] = np.random.Generator(np.random.PCG64(child))
        n_items, n_positions = self._model.n_items, self._model.n_positions
        if self.arrival:
            n_features = n_items * self._model.n_features if isinstance(self._model, ContextualModel) else 0
            self.arrival_state = self.arrival.state(self._n_streams, n_positions, n_features)
        if self.bots:
            self.bots_state = self.bots.state(attractions, n_positions, self.generators["bots"])
        self.churn_state = churn_state(self._n_streams, n_items, self.churn)
        self.draw_available()

    def settle(
        self, task: AnyTask, displays: NDArray[np.int64], sessions: Sessions, optimum: NDArray[np.float64]
    ) -> tuple[NDArray[np.int8], NDArray[np.float64], dict[str, NDArray[Any]]]:
        """The clicks ``(S, K)`` that are reported, the rewards that arrive ``(S,)``, and further entries of the infos.

        The expectation and the optimum of bots become 0.
        """
        reported, rewards, of_bots = self._report(task, displays, sessions)
        realised = sessions.realised.copy()
        for values in (realised, sessions.expectation, optimum):
            values[of_bots] = 0
        beside: dict[str, NDArray[Any]] = {
            "display": displays.copy(),
            "realised_reward": realised,
            "true_clicks": sessions.clicks.copy(),
        }
        if self.bots is not None:
            beside["bot"] = of_bots
        return reported, self._arrive(displays, sessions.rankings, reported, rewards), beside

    def _report(
        self, task: AnyTask, displays: NDArray[np.int64], sessions: Sessions
    ) -> tuple[NDArray[np.int8], NDArray[np.float64], NDArray[np.bool_]]:
        """What is reported of sessions: clicks ``(S, K)``, rewards ``(S,)``, and which of them are no users'."""
        rankings, _, clicks, _, realised, *_ = sessions
        if self.bots_state is None or self.bots is None:
            return clicks, realised, np.zeros(len(clicks), np.bool_)
        self.generators["bots"].random(out=self.bots_state.uniforms)
        reported, rewards, corrupted = np.empty_like(clicks), np.empty_like(realised), np.empty(len(clicks), np.bool_)
        reports(self.bots_state, displays, rankings, clicks, realised, task.code, task.cutoff, reported, rewards, corrupted)
        return reported, rewards, corrupted & (not self.bots.users_are_real)

    def _arrive(
        self, displays: NDArray[np.int64], rankings: NDArray[np.int64], reported: NDArray[np.int8], rewards: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Keep the reports, and take out what is due; the rewards that arrived, ``(S,)``."""
        if self.arrival_state is None:
            return rewards
        self.generators["arrival"].random(out=self.arrival_state.uniforms)
        arrived = np.empty_like(rewards)
        arrive_all(self.arrival_state, displays, rankings, reported, rewards, self.churn_state.last, arrived)
        return arrived

    @property
    def is_lost(self) -> bool:
        """Whether the clicks of the single stream's last session never arrive."""
        state = self.arrival_state
        return state is not None and bool(state.uniforms[0, 1] < state.lost)

    def draw_available(self) -> None:
        """Draw the items of the next session."""
        if self.available is not None:
            self.generators["available"].random(out=self.available_state.uniforms)
            draw_all_available(self.available_state)

    def change_items(self, displays: NDArray[np.int64], batch: Any) -> NDArray[np.bool_]:
        """Replace items, perhaps, and draw those of the next session; ``(S,)`` where they can be others than in the last."""
        self.draw_available()
        changed = np.full(self._n_streams, self.available is not None)
        if self.churn:
            self.generators["churn"].random(out=self.churn_state.uniforms)
            changed |= batch.replace(self.churn_state, displays)
        return changed

    def find(self, batch: Any, streams: NDArray[np.bool_]) -> None:
        """Find the best lists of the next sessions of some streams, where items are not those of every session."""
        if self.changes_items:
            batch.find(self.mask, streams)

    @property
    def mask(self) -> NDArray[np.bool_]:
        """``(S, L)`` booleans: which items the next list can show."""
        return self.available_state.mask

    def notes(self, is_bot: bool) -> list[str]:
        """Notes on the single stream's last session for a rendered page."""
        notes = ["a bot"] if is_bot else []
        if self.arrival_state is not None:
            notes.append(f"arrived {self.arrival_state.n_arrived[0]}")
        if self.churn_state.replaced[0] >= 0:
            notes.append(f"item {self.churn_state.replaced[0]} replaced")
        return notes

    # -------------------------------------------------------------------------------------------------------- observations

    def observation_space(self, space: gym.Space[Any]) -> gym.Space[Any]:
        """The space of one stream, from that without the axes."""
        if self.arrival is None and not self.changes_items:
            return space
        n_items, n_positions = self._model.n_items, self._model.n_positions
        entries: dict[str, Any] = dict(space.spaces) if isinstance(space, Dict) else {"clicks": space}
        if self.arrival:
            entries |= self.arrival.spaces(n_items, n_positions, self._n_streams)
            if self.churn:
                entries["void"] = MultiBinary([self.arrival.max_arrivals, n_positions])
        if self.churn:
            entries["replaced"] = Box(-1, n_items - 1, (1,), np.int64)
        if self.available is not None:
            entries["available"] = MultiBinary(n_items)
        return Dict(entries)

    def observe(self, observation: Any, displays: NDArray[np.int64], first: bool) -> Any:
        """The observation with these arguments, from the observation without them.

        Args:
            observation: the clicks, or a dict with them.
            displays: ``(S,)`` the numbers of the sessions shown last.
            first: whether an episode begins, so that nothing has arrived.
        """
        if self.arrival is None and not self.changes_items:
            return observation
        entries = dict(observation) if isinstance(observation, dict) else {"clicks": observation}
        state = self.arrival_state
        if state is not None:
            n_arrived = np.zeros_like(state.n_arrived) if first else state.n_arrived.copy()
            rows = np.arange(state.displays.shape[1]) < n_arrived[:, None]
            entries |= {
                "display": displays[:, None].copy(),
                "n_arrived": n_arrived,
                "displays": np.where(rows, state.displays, -1),
                "rankings": np.where(rows[..., None], state.rankings, -1),
                "clicks": np.where(rows[..., None], state.clicks, np.int8(-1)),
            }
            if self.churn:
                entries["void"] = rows[..., None] & state.void
        if self.churn:
            replaced = self.churn_state.replaced[:, None]
            entries["replaced"] = np.full_like(replaced, -1) if first else replaced.copy()
        if self.available is not None:
            entries["available"] = self.mask.copy()
        return entries


def attractions_of(tasks: Sequence[AnyTask], n_streams: int) -> NDArray[np.float64]:
    """``(S, L)`` how attractive the items of the streams are, which the tasks are dealt to in turn."""
    each = []
    for task in tasks:
        values = getattr(task.parameters, "attraction", np.ones(task.model.n_items))
        each.append(np.atleast_2d(values).mean(axis=0))  # users with a memory have a row for each state
    return np.stack([each[stream % len(each)] for stream in range(n_streams)])
