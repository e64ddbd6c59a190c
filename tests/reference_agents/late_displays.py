"""Agents whose clicks come late: the references of `comparisons`, `unimodal` and `draws`, with what they remember of a display.

`follow_late` plays an agent: displays whose clicks come later, in another order, cut off, void or never; items that are
replaced, and some that cannot be shown. A reference of this module has three methods more than others: ``show``, which returns
what is remembered of a list, None if it is not allowed; ``arrive``; and ``replace``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from clickgym.agents import CompiledAgent
from clickgym.envs import ClickModel

from .comparisons import BatchRankReference, BubbleRankReference, MergeRankReference, TopRankReference
from .draws import RankedExp3Reference, RankedKLUCBReference, RankedReference, RankedUCB1Reference
from .reference import is_close
from .unimodal import GRABReference, SGRABReference, UniRankReference, parts_of


class Clicks(NamedTuple):
    """What arrives of a display."""

    ranking: list[int]
    clicks: list[int]  # -1 where the list was cut off
    void: list[bool]

    def samples(self) -> dict[int, int]:
        """The click on each item that tells something."""
        entries = zip(self.ranking, self.clicks, self.void, strict=True)
        return {item: click for item, click, void in entries if click >= 0 and not void}

    @property
    def is_cut(self) -> bool:
        return self.clicks[-1] < 0


class LateTopRank(TopRankReference):
    """Pairs that were in one block of the display."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.age = [0] * self.n_items

    def show(self, ranking: list[int], state: Any, available: set[int]) -> Any:
        blocks, start = [block & available for block in self.blocks()], 0
        for block in blocks:
            if not set(ranking[start : start + len(block)]) <= block:
                return None
            start += len(block)
        return blocks, list(self.age)

    def arrive(self, memory: Any, arrived: Clicks) -> None:
        blocks, age = memory
        samples = arrived.samples()
        for block in blocks:
            for i, j in permutations(block, 2):
                # What the list left out, unless it was cut off, is not clicked.
                hidden = [item for item in (i, j) if item not in samples]
                if any(arrived.is_cut or item in arrived.ranking or age[item] != self.age[item] for item in hidden):
                    continue
                difference = samples.get(i, 0) - samples.get(j, 0)
                self.s[i, j] += difference
                self.n[i, j] += abs(difference)
                n = self.n[i, j]
                if n > 0 and self.s[i, j] >= math.sqrt(2 * n * math.log(self.c * math.sqrt(n) / self.delta)):
                    self.better.add((i, j))

    def replace(self, item: int) -> None:
        self.age[item] += 1
        self.s[item, :] = self.s[:, item] = self.n[item, :] = self.n[:, item] = 0
        self.better = {pair for pair in self.better if item not in pair}


class LateUniRank(UniRankReference):
    """Pairs that were in one displayed part."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.age = [0] * self.n_items

    def n_led(self, partition: Any) -> int:
        return self.led[self.partition] + 1  # of the leader, whatever of it can be shown

    def show(self, ranking: list[int], state: Any, available: set[int]) -> Any:
        self.partition = self.leader()
        self.displayed = self.cut(parts_of(state.shown_part.tolist()))
        start = 0
        for part in self.displayed:
            if not set(ranking[start : start + len(part)]) <= part:
                return None
            start += len(part)
        left = tuple(part & available for part in self.partition if part & available)
        if parts_of(state.part.tolist()) != self.partition or self.displayed not in self.explorations(left):
            return None
        self.led[self.partition] += 1
        self.t += 1
        return self.displayed, list(self.age)

    def arrive(self, memory: Any, arrived: Clicks) -> None:
        displayed, age = memory
        samples = arrived.samples()
        for part in displayed:
            for i, j in permutations(part, 2):
                hidden = [item for item in (i, j) if item not in samples]
                if any(arrived.is_cut or item in arrived.ranking or age[item] != self.age[item] for item in hidden):
                    continue
                difference = samples.get(i, 0) - samples.get(j, 0)
                self.difference[i, j] += difference
                self.compared[i, j] += abs(difference)

    def replace(self, item: int) -> None:
        self.age[item] += 1
        self.difference[item, :] = self.difference[:, item] = self.compared[item, :] = self.compared[:, item] = 0


class LateBatchRank(BatchRankReference):
    """Turns by displays, clicks of the same stage."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.displays: dict[tuple[int, int, int], int] = {}
        self.arrived: dict[tuple[int, int, int], int] = {}

    def show(self, ranking: list[int], state: Any, available: set[int]) -> Any:
        self.count = self.displays  # by which items take turns
        allowed = self.allows(ranking)
        memory = []
        for b in self.active:
            top, bottom = self.positions[b]
            stage, _, counts, least = self._items(b)
            for k in range(top - 1, bottom):
                memory.append((k, b, stage, counts[ranking[k]] > least))
                if counts[ranking[k]] == least:
                    key = b, stage, ranking[k]
                    self.displays[key] = self.displays.get(key, 0) + 1
        return memory if allowed else None

    def arrive(self, memory: Any, arrived: Clicks) -> None:
        self.count = self.arrived
        samples = arrived.samples()
        for k, b, stage, filler in memory:
            item = arrived.ranking[k]
            key = b, stage, item
            is_present = b in self.active and self.stage[b] == stage
            n = self.arrived.get(key, 0)
            if item in samples and is_present and not filler and n < self.length(stage):
                self.arrived[key] = n + 1
                self.clicked[key] = self.clicked.get(key, 0) + samples[item]
        for b in list(self.active):
            self._update_batch(b)

    def replace(self, item: int) -> None:
        self.b_max += 1
        self.active, self.positions[self.b_max], self.stage[self.b_max] = [self.b_max], (1, self.n_positions), 0
        self.remaining[self.b_max, 0] = set(range(self.n_items))

    def agrees(self, state: Any) -> bool:
        self.count = self.arrived
        return super().agrees(state)


class LateMergeRank(MergeRankReference):
    """Clicks for counts that were not cleared since."""

    def show(self, ranking: list[int], state: Any, available: set[int]) -> Any:
        self.t += 1
        at = {item: batch for batch in self.batches for item in batch.items}
        return [at[item].counts for item in ranking] if self.allows(ranking) else None

    def arrive(self, memory: Any, arrived: Clicks) -> None:
        samples, batches = arrived.samples(), []
        for batch in self.batches:
            for item, counts in zip(arrived.ranking, memory, strict=True):
                if item in samples and item in batch.counts and len(batch.items) > 1 and counts is batch.counts:
                    clicked, n = batch.counts[item]
                    batch.counts[item] = clicked + samples[item], n + 1
            batches += self._tested(batch, sum(len(other.items) for other in batches))
        self.batches = batches

    def replace(self, item: int) -> None:
        self.batches = [type(self.batches[0])(range(self.n_items))]

    def agrees(self, state: Any) -> bool:
        return super().agrees(state) and state.t[0] == self.t - 1


class LateBubbleRank(BubbleRankReference):
    """Pairs that were not decided since."""

    def __init__(self, *arguments: Any, **others: Any) -> None:
        super().__init__(*arguments, **others)
        self.age = [0] * self.n_items

    def is_decided(self, i: int, j: int) -> bool:
        return self.better(i, j) or self.better(j, i)

    def show(self, ranking: list[int], state: Any, available: set[int]) -> Any:
        if not self.allows(ranking, state):
            return None
        pairs = [(self.base[k], self.base[below]) for k, below in self.pairs()]
        if self.challenger is not None:
            pairs.append((self.base[self.n_positions - 1], self.challenger))
        self.t += 1
        return [(i, j, self.is_decided(i, j)) for i, j in pairs], self.challenger, list(self.age)

    def arrive(self, memory: Any, arrived: Clicks) -> None:
        pairs, challenger, age = memory
        samples = arrived.samples()
        for i, j, was_decided in pairs:
            hidden = [item for item in (i, j) if item not in arrived.ranking]  # of the challenger and who was challenged
            shown = {i, j} - set(hidden)
            if not shown <= set(samples) or any(age[item] != self.age[item] for item in hidden):
                continue
            if self.is_decided(i, j) and not was_decided:
                continue
            difference = samples.get(i, 0) - samples.get(j, 0)
            for a, b, sign in ((i, j, 1), (j, i, -1)):
                self.s[a, b] += sign * difference
                self.n[a, b] += abs(difference)
        base, last = self.base, self.n_positions - 1
        for k in range(last):
            if self.better(base[k + 1], base[k]):
                base[k], base[k + 1] = base[k + 1], base[k]
        for item in (challenger, pairs[-1][0]) if challenger is not None else ():
            place = base.index(item)
            if place > last and self.better(item, base[last]):
                base[last], base[place] = base[place], base[last]

    def replace(self, item: int) -> None:
        self.age[item] += 1
        for other in range(self.n_items):
            for pair in ((item, other), (other, item)):
                self.s[pair] = self.n[pair] = 0
        for order in (self.base, self.initial):
            order.remove(item)
            order.append(item)


class LateGRAB(GRABReference):
    """Any list counts."""

    def show(self, ranking: list[int], state: Any, available: set[int]) -> Any:
        if not self.allows(ranking, state):
            return None
        self.led[self.leader] += 1
        return self.leader

    def arrive(self, memory: Any, arrived: Clicks) -> None:
        samples = arrived.samples()
        for k, item in enumerate(arrived.ranking):
            if item in samples:
                self.shown[item, k] += 1
                self.clicks[item, k] += samples[item]

    def replace(self, item: int) -> None:
        self.shown[item] = self.clicks[item] = 0


class LateSGRAB(LateGRAB, SGRABReference):
    pass


class LateRanked(RankedReference):
    """The choice of the display is rewarded."""

    def show(self, ranking: list[int], state: Any, available: set[int]) -> Any:
        self.choice, self.available = state.choice.tolist(), available
        allowed = set(ranking) <= available and all(
            (ranking[k] == item) == (item not in ranking[:k]) and item in available and self.may_choose(k, item)
            for k, item in enumerate(self.choice)
        )
        self.t += 1
        return (list(self.choice), self.chances(self.choice)) if allowed else None

    def may_choose(self, k: int, item: int) -> bool:
        index = {
            other: self.index(self.rewards[k][other], self.pulls[k][other]) if self.pulls[k][other] else math.inf
            for other in self.available
        }
        return is_close(index[item], max(index.values()))

    def chances(self, choice: list[int]) -> list[float]:
        return []

    def arrive(self, memory: Any, arrived: Clicks) -> None:
        choice, chances = memory
        samples = arrived.samples()
        for k, item in enumerate(choice):
            # The item of the position counts, and the choice, which stands there or above.
            if arrived.ranking[k] in samples and (item in samples or item not in arrived.ranking):
                self.reward(k, item, samples[item] if arrived.ranking[k] == item else 0, *chances[k : k + 1])

    def reward(self, k: int, item: int, reward: int, chance: float = 1.0) -> None:
        super().reward(k, item, reward)

    def replace(self, item: int) -> None:
        for row in (*self.rewards, *self.pulls):
            row[item] = 0


class LateRankedUCB1(LateRanked, RankedUCB1Reference):
    pass


class LateRankedKLUCB(LateRanked, RankedKLUCBReference):
    pass


class LateRankedExp3(LateRanked, RankedExp3Reference):
    """Divided by the p of the display."""

    def may_choose(self, k: int, item: int) -> bool:
        return True

    def chances(self, choice: list[int]) -> list[float]:
        shares = self.shares()
        return [(1 - self.gamma) * float(shares[k, item]) + self.gamma / self.n_items for k, item in enumerate(choice)]

    def reward(self, k: int, item: int, reward: int, chance: float = 1.0) -> None:
        self.log_weight[k, item] += self.gamma * reward / chance / self.n_items

    def replace(self, item: int) -> None:
        largest = self.log_weight.max(axis=1)
        self.log_weight[:, item] = largest + np.log(np.exp(self.log_weight - largest[:, None]).mean(axis=1))


def follow_late(
    agent: CompiledAgent,
    reference: Any,
    model: ClickModel | Callable[[int], ClickModel],
    sessions: int,
    due: Callable[[int, np.random.Generator], int],
    *,
    lost: float = 0.1,
    cut: float = 0.0,
    void: float = 0.0,
    churn: float = 0.0,
    masked: float = 0.0,
    foreign: float = 0.0,
    seed: int = 1,
) -> None:
    """Play an agent, whose reference must allow each list and be in its state whenever clicks have come.

    Args:
        agent, reference, model, sessions, seed: as for `follow`.
        due: the session at whose end the clicks of a session come, from its number and a generator.
        lost, cut, void, churn, masked, foreign: probabilities: that clicks never come, that only a random front of the list was
            shown, that an item was replaced of which the agent is told by ``void`` alone, that one is replaced after a session,
            that a random set of items cannot be shown, and that somebody else's list comes beside.
    """
    rng = np.random.default_rng(seed)
    age, waiting = [0] * agent.n_items, dict[int, list[Any]]()
    for session in range(1, sessions + 1):
        available = np.ones(agent.n_items, bool)
        if rng.random() < masked:
            available = rng.permutation(agent.n_items) < rng.integers(agent.n_positions, agent.n_items + 1)
        ranking = last = agent.rank(None, available if masked else None)
        assert available[ranking].all()
        assert len(set(ranking.tolist())) == agent.n_positions
        shown = reference.show(ranking.tolist(), agent.state, set(np.flatnonzero(available).tolist()))
        assert shown is not None, f"session {session}: {ranking}"
        users = model(session) if callable(model) else model
        clicks = users.sample(ranking, rng).tolist()
        if rng.random() < cut:
            n_shown = int(rng.integers(agent.n_positions + 1))
            clicks[n_shown:] = [-1] * (agent.n_positions - n_shown)
        flags = [bool(flag) for flag in (rng.random(agent.n_positions) < 0.5) & (rng.random() < void)]
        if rng.random() >= lost:
            ages = [age[item] for item in ranking]
            waiting.setdefault(due(session, rng), []).append((agent.display, ranking, clicks, flags, ages, shown))
        if rng.random() < churn:
            replaced = int(rng.integers(agent.n_items))
            age[replaced] += 1
            agent.replace(replaced)
            reference.replace(replaced)
        for display, ranking, clicks, flags, ages, memory in waiting.pop(session, []):
            agent.update(None, ranking, clicks, display=display, void=np.array(flags) if any(flags) else None)
            now = [flag or age[item] != then for flag, item, then in zip(flags, ranking, ages, strict=True)]
            reference.arrive(memory, Clicks(ranking.tolist(), clicks, now))
            assert reference.agrees(agent.state), f"session {session}, display {display}"
        if rng.random() < foreign:
            ranking = rng.permutation(agent.n_items)[: agent.n_positions]
            clicks = users.sample(ranking, rng).tolist()
            if ranking.tolist() != last.tolist():  # which would be the agent's own
                agent.update(None, ranking, clicks)
                reference.arrive(None, Clicks(ranking.tolist(), clicks, [False] * agent.n_positions))
                assert reference.agrees(agent.state), f"session {session}, a list of somebody else"


def in_batches(size: int) -> Callable[[int, np.random.Generator], int]:
    """All clicks of ``size`` sessions at the end of the last of them."""
    return lambda session, rng: -(-session // size) * size


def at_random(mean: float) -> Callable[[int, np.random.Generator], int]:
    """After a geometric delay, which may be 0."""
    return lambda session, rng: session + int(rng.geometric(1 / (1 + mean))) - 1


def after(delay: int) -> Callable[[int, np.random.Generator], int]:
    return lambda session, rng: session + delay


def at_once(session: int, rng: np.random.Generator) -> int:
    return session


__all__ = [name for name in dir() if name.startswith("Late")] + ["after", "at_once", "at_random", "follow_late", "in_batches"]
