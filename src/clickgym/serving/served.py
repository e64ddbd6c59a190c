"""An agent in service: the items behind its ids, the displays that wait for clicks, and how it is built, saved and replayed.

What an agent is follows from the events of the store, in their order: lists that were shown, items that took a slot, clicks
that were learned. `Served` is changed by these events alone, whether they happen or are replayed.
"""

from __future__ import annotations

import copy
import io
import json
from collections import OrderedDict
from collections.abc import Callable
from operator import mul
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ..agents import ANY_LIST, LAST_DISPLAY, Agent, CompiledAgent
from ..agents.agent import class_by_value
from ..core.checks import short
from ..core.files import parse_json
from ..envs.spaces import check_ranking
from ..runner.labels import fingerprint
from ..runner.make import kind_of, player_of
from .confidence import PairedDifference
from .ids import Id

AGENT, BY_LOT, PRODUCTION, BY_GUARD, INTERLEAVED = 0, 1, 2, 3, 5
"""Who chose a list: the agent; by lot the agent, or production; production by the guard; somebody else (4, `LOGGED`); or the
agent and another together."""
FORMAT = 1
"""Of a snapshot."""
NEW_STORE = "make a new store of its log, by Ranker.from_log(clickgym.offline.read_log(store), ...)"
"""What helps where a store cannot be served as it is."""
NO_CURE = f"; other agents cannot learn from what is gone: return to the code that wrote it, or {NEW_STORE}"
"""Where a replay fails that cannot begin before impressions that have left."""


class ReplayError(ValueError):
    """The stored events do not reproduce the agent's lists: its code has changed, or it uses other random numbers.

    Args:
        text: what is said of it.
        query: that of the agent; None for the agent of all.
    """

    def __init__(self, text: str, query: Id | None) -> None:
        super().__init__(text)
        self.query = query


def refusal(agent: Any, sees_features: bool) -> str:
    """Why an agent cannot serve; nothing if it can.

    Args:
        agent: itself, or its class.
        sees_features: whether it ranks the documents of a query by their features.

    Example:
        >>> from clickgym.agents import BatchRank, TopRank
        >>> refusal(TopRank, False), refusal(BatchRank, False)
        ('', 'cannot choose from a subset of the items, and candidates differ in a service')
    """
    if agent.learns_from == LAST_DISPLAY:
        return (
            "learns from the last display only, and in a service clicks come late; expected an agent that learns from any "
            "list or from its displays"
        )
    if not sees_features and not agent.takes_candidates():
        return "cannot choose from a subset of the items, and candidates differ in a service"
    if not sees_features and not agent.can_replace():
        return "cannot replace an item, and items come and go in a service"
    return ""


class Worths(dict[int, float]):
    """What a click on each item earns, by its number; 0 for -1, which is no item.

    Args:
        find: returns that of an item that is asked for the first time.
    """

    def __init__(self, find: Callable[[int], float]) -> None:
        super().__init__({-1: 0.0})
        self._find = find

    def __missing__(self, number: int) -> float:
        value = self[number] = self._find(number)
        return value


class Recipe:
    """How the agents of a `Ranker` are made.

    Args:
        agent: what `clickgym.sweep` takes as one.
        n_positions: K.
        confidence: of the interval by which a query goes back to production.
        challenger: the recipe of an agent with which lists are interleaved, and which learns beside this one; None: there is
            none.
        valued: whether items have values, which an agent that can takes into its order.

    Attributes:
        by_value: whether the agent takes values into its order.
        worths: of each item by number, what a click on it earns; None where each earns 1.

    Raises:
        ValueError, TypeError: it is no agent, or one that cannot serve.
    """

    def __init__(
        self, agent: Any, n_positions: int, confidence: float, challenger: Recipe | None = None, valued: bool = False
    ) -> None:
        self.challenger = challenger
        self.player = player_of(agent)
        self.by_value = valued and class_by_value(self.player.maker) is not None
        self.worths = Worths(lambda number: 1.0) if valued else None  # until a store has others
        self.n_positions, self.confidence, self.name = n_positions, confidence, self.player.name
        self.label = self.player.label or f"{self.name} {fingerprint(agent)}"
        for key in ("n_items", "n_positions", "seed", "item_values"):
            if key in self.player.hyperparameters:
                raise ValueError(f"{self.name}: {key} is set by the Ranker; it is no hyper-parameter")
        for key in self.player.required:
            if key not in (*self.player.hyperparameters, "n_items", "n_positions", "n_features", "seed"):
                raise ValueError(f"{self.name} needs {key}, which no service knows: agent='{self.name}:{key}=...'")
        self.sees_features = "n_features" in self.player.observes
        sample = self.make(2 * n_positions, 1 if self.sees_features else None, np.random.SeedSequence(0))
        self.learns_from_any = sample.learns_from == ANY_LIST
        self.compiled = issubclass(kind_of(type(sample)), CompiledAgent)
        self._check(sample)

    def make(self, n_items: int, n_features: int | None, seed: np.random.SeedSequence) -> Agent:
        """An agent that has learned nothing.

        Raises:
            TypeError: what was passed makes no agents, or not with these hyper-parameters.
        """
        sizes: dict[str, Any] = {} if n_features is None else {"n_features": n_features}
        if self.by_value:
            sizes["item_values"] = np.ones(n_items) if n_features is None else True
        try:
            agent = self.player.maker(
                n_items=n_items, n_positions=self.n_positions, **sizes, **self.player.hyperparameters, seed=seed
            )
        except TypeError as error:
            raise TypeError(f"{self.name}: {error}") from None
        if not isinstance(agent, Agent):
            raise TypeError(f"{self.name} makes {short(agent)}; expected an agent that is asked for one list at a time")
        return agent

    @property
    def can_be_saved(self) -> bool:
        """Whether the agent, with its challenger, has snapshots."""
        return self.compiled and (self.challenger is None or self.challenger.compiled)

    def _check(self, agent: Agent) -> None:
        """Refuse an agent that cannot serve; another ranks and learns once, so that all is compiled before users come."""
        if reason := refusal(agent, self.sees_features):
            raise ValueError(f"{self.name} {reason}")
        n_items = 2 * self.n_positions
        served, mask, features = Served(0, None, agent, n_items, self), None, None
        if self.sees_features:
            features = np.zeros((n_items, 1 if self.worths is None else 2))
        else:
            mask = np.arange(n_items) < self.n_positions
            for slot in range(self.n_positions):
                served.place(slot, slot, 1)
        served.show(1, mask=mask, features=features)
        served.learn(Event(1, AGENT, features, [0] * self.n_positions))
        if not self.sees_features:
            served.place(0, n_items, 2)


class Event(NamedTuple):
    """One impression as an agent learns it.

    Attributes:
        number: of the impression.
        source: who chose its list.
        features: ``(L, d)`` what the agent saw; None where it sees none.
        clicks: 0 or 1 for each position that was seen.
        share: with which probability production would have chosen it; None without lot.
        worth: ``(K,)`` what a click on each position earns; None: 1.
    """

    number: int
    source: int
    features: NDArray[np.float64] | None
    clicks: list[int]
    share: float | None = None
    worth: list[float] | None = None

    def reward(self, n: int | None = None) -> float:
        """What the clicks earn, or those on the first n positions."""
        clicks = self.clicks[:n]
        return float(sum(clicks if self.worth is None else map(mul, clicks, self.worth)))


class Served:
    """The agent of a query, or of all queries where it ranks by features.

    Attributes:
        number: of the query in the store; 0 for the agent of all.
        id: the user's own.
        items: ``(L,)`` the number of the item in each slot, -1 for a free one.
        open: of each impression that waits for clicks the agent's display, None where the agent did not choose the list, and
            the list as the agent's own ids, -1 below its end.
        tick: the last event.
        version: what the journal wants to see again with the next one.
        events: how many there were since the last snapshot.
        guarded: whether the guard gave the query back to production.
        is_pruned: whether impressions have left, so that it cannot be replayed from its first event.
        trial: the difference between agent and production.
        challenger: the agent that learns beside this one, and with whose lists its lists are interleaved; None: there is none.
        candidates: those of the last call as the caller passed them, for who passes the same; their numbers, mask and bits.
    """

    def __init__(self, number: int, identity: Id | None, agent: Agent, capacity: int, recipe: Recipe) -> None:
        self.number, self.id, self.agent, self.recipe = number, identity, agent, recipe
        self.challenger: Agent | None = None
        self.items = [-1] * capacity
        self.slot_of: dict[int, int] = {}
        self.last = np.full(capacity, -1, np.int64)  # when the item of a slot could be shown last
        self.replaced = np.full(capacity, -1, np.int64)  # when a slot was given to another item
        self.open: dict[int, tuple[int | None, list[int]]] = {}
        self.tick, self.version, self.events, self.displays = -1, 0, 0, 0
        self.guarded = self.is_pruned = False
        self.trial = PairedDifference(recipe.n_positions if recipe.worths is None else 0.0, recipe.confidence)
        self._trials: OrderedDict[int, list[Any]] = OrderedDict()  # source, share, reward once it is known
        self.candidates: tuple[Id, ...] = ()
        self.present: tuple[list[int], NDArray[np.bool_], bytes] = ([], np.zeros(capacity, np.bool_), b"")

    def _agents(self) -> list[tuple[Any, Recipe]]:
        """The agent and its challenger, if there is one, each with its recipe."""
        pairs = (self.agent, self.recipe), (self.challenger, self.recipe.challenger)
        return [(agent, recipe) for agent, recipe in pairs if agent is not None and recipe is not None]

    # ------------------------------------------------------------------------------------------------------------ events

    def admit(self, items: list[int], candidates: tuple[Id, ...], tick: int) -> list[tuple[int, int]]:
        """Set the items that can be shown from an impression on.

        Args:
            items, candidates: their numbers and ids.
            tick: of the impression.

        Returns:
            Slots and the items that have taken them: free ones, then those of the items that could be shown longest ago.
        """
        placed: list[tuple[int, int]] = []
        if new := [item for item in items if item not in self.slot_of]:
            kept = {self.slot_of[item] for item in items if item in self.slot_of}
            slots = [slot for slot in range(len(self.items)) if slot not in kept]
            slots.sort(key=lambda slot: (self.items[slot] >= 0, self.last[slot], slot))
            placed = list(zip(slots, new, strict=False))
        for slot, item in placed:
            self.place(slot, item, tick)
        self.set_present(items, candidates)
        return placed

    def place(self, slot: int, item: int, tick: int) -> None:
        """Put an item into a slot; the agent forgets the item that was there."""
        old, self.items[slot] = self.items[slot], item
        if old >= 0:
            del self.slot_of[old]
            self.replaced[slot] = tick
        self.slot_of[item] = slot
        self.tick = tick
        for agent, _ in self._agents():
            if old >= 0:
                agent.replace(slot)
            if self.recipe.worths is not None and hasattr(agent, "set_item_value"):
                agent.set_item_value(slot, self.recipe.worths[item])

    def set_present(self, items: list[int], candidates: tuple[Id, ...] = ()) -> None:
        """Set the items that can be shown from now on, by their numbers, and the candidates as the caller passed them."""
        mask = np.zeros(len(self.items), np.bool_)
        mask[[self.slot_of[item] for item in items]] = True
        self.candidates, self.present = candidates, (items, mask, np.packbits(mask).tobytes())

    def recall_present(self) -> None:
        """After a replay: the items can be shown that could be in the last impression, unless the agent ranks by features."""
        if (last := self.last.max()) >= 0:
            self.set_present([self.items[slot] for slot in np.flatnonzero(self.last == last).tolist()])

    def show(
        self,
        number: int,
        source: int = AGENT,
        share: float | None = None,
        *,
        mask: NDArray[np.bool_] | None = None,
        features: NDArray[np.float64] | None = None,
        ranking: list[int] | None = None,
    ) -> list[int]:
        """Record that a list is shown; the agent chooses it unless ``ranking`` is given.

        Args:
            number: of the impression.
            source, share: who chooses it, and with which probability production would.
            mask: ``(L,)`` which slots could be shown.
            features: ``(L, d)`` what the agent sees.
            ranking: the list as the agent's own ids, if another has chosen it.

        Returns:
            The list as the agent's own ids.
        """
        self.tick = number
        self.events += 1
        if mask is not None:
            self.last[mask] = number
        if source in (BY_LOT, PRODUCTION):
            self._trials[number] = [source, share, None]
            if (worths := self.recipe.worths) is not None:
                there = [] if features is None else features[:, -1].tolist()
                if mask is not None:
                    there = [worths[self.items[slot]] for slot in np.flatnonzero(mask).tolist()]
                self.trial.most = max(self.trial.most, sum(sorted(there)[-self.recipe.n_positions :]))
        if ranking is not None:
            self.open[number] = None, ranking
            return ranking
        self.displays += 1
        ids = _ranked(self.agent, self.recipe, features, mask)
        self.open[number] = getattr(self.agent, "display", self.displays), ids
        return ids

    def propose(self, mask: NDArray[np.bool_] | None, features: NDArray[np.float64] | None) -> list[list[int]]:
        """The lists of the agent and of its challenger, if there is one, for a list that is interleaved: foreign to both."""
        lists = []
        for agent, recipe in self._agents():
            lists.append(_ranked(agent, recipe, features, mask))
            agent.withdraw()
        return lists

    def learn(self, event: Event, tick: int = -1) -> None:
        """Learn from the clicks of an impression: the agent, if it can, and the comparison with production."""
        self.tick = max(self.tick, tick)
        self.events += 1
        display, ids = self.open.pop(event.number)
        ranking = np.array(ids, np.int64)
        for agent, recipe in self._agents():
            if display is not None and agent is self.agent:
                self._learn_own(event, ranking, display)
            elif recipe.learns_from_any:
                self._learn_others(event, ranking, agent, recipe)
        if event.number in self._trials:
            self._trials[event.number][2] = event.reward()
            self._count_trials()

    def replaced_since(self, event: Event) -> list[int]:
        """The positions of an open impression, from 0, whose item was replaced since it was shown."""
        return np.flatnonzero(self._is_gone(np.array(self.open[event.number][1]), event)).tolist()

    def _is_gone(self, ranking: NDArray[np.int64], event: Event) -> NDArray[np.bool_]:
        """Where the items of a list that was shown were replaced since."""
        return self.replaced[ranking] > event.number if event.features is None else np.zeros(len(ranking), np.bool_)

    def _learn_own(self, event: Event, ranking: NDArray[np.int64], display: int) -> None:
        clicks = np.full(self.recipe.n_positions, -1, np.int8)
        clicks[: len(event.clicks)] = event.clicks
        agent: Any = self.agent
        observation = _observation(agent, event.features)
        if self.recipe.compiled:
            agent.update(observation, ranking, clicks, display=display)  # it knows itself what was replaced since
        else:
            void = self._is_gone(ranking, event)
            agent.update(observation, ranking, clicks, event.reward(), display=display, void=void)

    def _learn_others(self, event: Event, whole: NDArray[np.int64], agent: Any, recipe: Recipe) -> None:
        """Let an agent learn a list that somebody else has chosen, as far as its first item that was replaced since."""
        seen = len(event.clicks)
        ranking = whole[:seen]
        gone = (ranking < 0) | self._is_gone(ranking, event)
        seen = int(np.argmax(gone)) if gone.any() else seen
        if not seen:
            return
        clicks = np.full(len(whole), -1, np.int8)
        clicks[:seen] = event.clicks[:seen]
        if not recipe.compiled:
            agent.update(_observation(agent, event.features), whole, clicks, event.reward(seen))
        elif event.features is None:
            agent.learn(SimpleNamespace(rankings=whole[None, :seen], clicks=clicks[None, :seen], context=None))
        else:
            context = np.zeros((1, recipe.n_positions, agent.n_features))
            context[0, :seen] = event.features[whole[:seen], : agent.n_features]
            agent.learn(SimpleNamespace(rankings=whole[None], clicks=clicks[None], context=context))

    def _count_trials(self) -> None:
        """Count what is known, in the order in which lists were shown: the order of clicks depends on the lists."""
        while self._trials:
            number, (source, share, reward) = next(iter(self._trials.items()))
            if reward is None:
                return
            self.trial.add(reward, by_agent=source == BY_LOT, share=share)
            del self._trials[number]

    # --------------------------------------------------------------------------------------------------------- questions

    def best(self) -> list[int]:
        """The numbers of the items that the agent would show among the present ones if it stopped exploring.

        Raises:
            ValueError: the agent has no such list.
        """
        present = set(self.present[0])
        agent: Any = copy.deepcopy(self.agent)
        if not hasattr(agent, "best"):
            raise ValueError(f"{self.recipe.name} has no method best")
        for slot, item in enumerate(self.items):
            if item not in present:
                agent.replace(slot)  # what is not there shall not stand above what is
        slots = [slot for slot in agent.best().tolist() if self.items[slot] in present]
        slots += [self.slot_of[item] for item in self.present[0] if self.slot_of[item] not in slots]
        return [self.items[slot] for slot in slots[: self.recipe.n_positions]]

    # ---------------------------------------------------------------------------------------------------------- snapshot

    def to_bytes(self) -> bytes | None:
        """The state for `restore`; None for an agent that cannot be saved, which is replayed from its first event."""
        challenger = self.recipe.challenger
        if not self.recipe.can_be_saved:
            return None
        head: dict[str, Any] = {
            "format": FORMAT,
            "items": self.items,
            "last": self.last.tolist(),
            "replaced": self.replaced.tolist(),
            "open": [[number, *values] for number, values in self.open.items()],
            "displays": self.displays,
            "trial": self.trial.to_list(),
            "trials": [[number, *values] for number, values in self._trials.items()],
        }
        archives = []
        for agent, _ in self._agents():
            file = io.BytesIO()
            agent.save(file)
            archives.append(file.getvalue())
        if challenger is not None:
            head |= {"challenger": challenger.label, "length": len(archives[0])}
        return json.dumps(head).encode() + b"\n" + b"".join(archives)

    def restore(self, tick: int, version: int, content: bytes) -> str:
        """Continue from a state that `to_bytes` returned; returns why it does not fit, nothing if it does."""
        head, archive = _split(content)
        challenger, length = self.recipe.challenger, head.get("length", len(archive))
        if head["format"] != FORMAT:
            return f"its state has format {head['format']}; this clickgym reads {FORMAT}{NO_CURE}"
        if (was := head.get("challenger")) != (challenger and challenger.label):
            return f"its state was written {f'with challenger={was!r}' if was else 'without challenger='}: pass the same"
        try:
            self.agent = cast(Any, type(self.agent)).load(io.BytesIO(archive[:length]))  # a `CompiledAgent`
            if self.challenger is not None:
                self.challenger = cast(Any, type(self.challenger)).load(io.BytesIO(archive[length:]))
        except ValueError as error:  # the arrays of its state are other ones
            return f"its state cannot be read: the code of {self.recipe.name} has changed ({error}){NO_CURE}"
        self.items = head["items"]
        self.slot_of = {item: slot for slot, item in enumerate(self.items) if item >= 0}
        self.last[:], self.replaced[:] = head["last"], head["replaced"]
        self.open = {number: (display, ranking) for number, display, ranking in head["open"]}
        self.displays = head["displays"]
        self.trial.restore(head["trial"])
        self._trials = OrderedDict((number, values) for number, *values in head["trials"])
        self.tick, self.version, self.events = tick, version, 0
        return ""


def _split(state: bytes) -> tuple[dict[str, Any], bytes]:
    """The head of what `Served.to_bytes` has returned, and the archives of agents behind it."""
    line, _, archive = state.partition(b"\n")
    return parse_json(line.decode()), archive


def ticks_of(state: bytes) -> set[int]:
    """The ticks that stand in what `Served.to_bytes` has returned."""
    head, _ = _split(state)
    if head["format"] != FORMAT:
        raise ValueError(f"a state of an agent whose impressions have left has format {head['format']}{NO_CURE}")
    return {*head["last"], *head["replaced"], *(row[0] for name in ("open", "trials") for row in head[name])} - {-1}


def renumbered(state: bytes, tick_of: Callable[[int], int]) -> bytes | None:
    """What `Served.to_bytes` has returned, with other ticks; None if it is of another format, and so ignored."""
    head, archive = _split(state)
    if head["format"] != FORMAT:
        return None
    for name in ("last", "replaced"):
        head[name] = [tick_of(tick) for tick in head[name]]
    for name in ("open", "trials"):
        head[name] = [[tick_of(tick), *values] for tick, *values in head[name]]
    return json.dumps(head).encode() + b"\n" + archive


def _observation(agent: Any, features: NDArray[np.float64] | None) -> dict[str, NDArray[np.float64]] | None:
    """What an agent sees; a column more than it has features are the values."""
    if features is None or features.shape[1] == agent.n_features:
        return None if features is None else {"features": features}
    return {"features": features[:, :-1], "values": features[:, -1]}


def _ranked(agent: Any, recipe: Recipe, features: NDArray[np.float64] | None, mask: NDArray[np.bool_] | None) -> list[int]:
    """The list that an agent chooses, checked if it is a user's own."""
    observation = _observation(agent, features)
    choice = agent.rank(observation) if mask is None else agent.rank(observation, mask)
    if not recipe.compiled:
        n_items = len(mask if mask is not None else observation["features"])  # type: ignore[index]
        choice = check_ranking(choice, n_items, recipe.n_positions)
        if mask is not None and not mask[choice].all():
            raise ValueError(f"{recipe.name} has shown an item that is no candidate: {choice.tolist()}")
    ids: list[int] = choice.tolist()
    return ids
