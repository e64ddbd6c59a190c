"""RecurRank in plain NumPy, from section 9.3 of the specification; estimates by pseudo-inverses of the features themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .reference import Clicks, Reference

TIE = 1e-10
DEPENDENT = 1e-10  # of the largest norm: what is left of a candidate below it is no dimension


class Part:
    """Candidates in order, on positions from ``first`` on, in one phase."""

    def __init__(self, first: int, length: int, items: Sequence[int], phase: int) -> None:
        self.first, self.length, self.items, self.phase = first, length, list(items), phase
        self.targets: dict[int, float] = {}  # of the candidates of the design; none: nothing is learned
        self.arrived = dict.fromkeys(self.items, 0)
        self.clicks = dict.fromkeys(self.items, 0)
        self.displays = dict.fromkeys(self.items, 0)

    @property
    def has_ended(self) -> bool:
        return bool(self.targets) and all(self.arrived[i] >= target for i, target in self.targets.items())


class RecurRankReference(Reference):
    """A design is taken from the agent's state, if it is G-optimal; all else is computed."""

    def __init__(self, n_items: int, n_positions: int, n_features: int, horizon: int, scale: float = 1.0) -> None:
        super().__init__(n_items, n_positions)
        self.horizon, self.scale = horizon, scale
        self.items = np.zeros((0, n_features))  # in the agent's numbers
        self.parts: list[Part] = []
        self.memory: Any = None
        self.n_cuts = self.n_dropped = 0

    # ------------------------------------------------------------------------------------------------------------ phases

    def rows(self, part: Part) -> np.ndarray:
        """The features of a part, the largest entry 1."""
        rows = self.items[part.items]
        return rows / (np.abs(rows).max() or 1.0)

    def rank_of(self, part: Part) -> int:
        rows = self.rows(part)
        return int(np.linalg.matrix_rank(rows, tol=DEPENDENT * np.linalg.norm(rows, axis=1).max()))

    def budget(self, part: Part) -> float:
        logarithm = math.log(2 * len(part.items) * self.n_positions * part.phase * (part.phase + 1) * math.sqrt(self.horizon))
        return 4**part.phase * self.rank_of(part) * logarithm

    def begin(self, part: Part, state: Any) -> bool:
        """Take over the agent's design; whether it is one."""
        weights = state.weights[part.items]
        rank = self.rank_of(part)
        if len(part.items) == 1 or rank == 0:
            return not weights.any()
        coordinates = np.linalg.svd(self.rows(part), full_matrices=False)[0][:, :rank]  # any basis of the span
        spread = coordinates.T @ (weights[:, None] * coordinates)
        norms = np.einsum("ai,ij,aj->a", coordinates, np.linalg.inv(spread), coordinates)
        dropped = 1e-4 * 1.001 * rank  # what dropping weights below 1e-4/n may make of 1.001 r
        chosen = [tuple(self.items[i]) for i, weight in zip(part.items, weights, strict=True) if weight > 0]
        good = (
            (weights >= 0).all()
            and math.isclose(weights.sum(), 1, rel_tol=1e-9)
            and norms.max() <= 1.001 * rank / (1 - dropped) + 1e-6
            and weights[weights > 0].min() >= 1e-4 / len(part.items)
            and len(set(chosen)) == len(chosen)
        )
        part.targets = {i: float(state.targets[i]) for i in part.items if state.targets[i] > 0}
        for i, weight in zip(part.items, weights, strict=True):
            exact = self.scale * self.budget(part) * weight
            slack = 1 if abs(exact - round(exact)) < 1e-9 * exact else 0
            good = good and abs(part.targets.get(i, 0) - math.ceil(exact)) <= slack + 1e-12 * exact
        return bool(good)

    def estimates(self, part: Part) -> dict[int, float]:
        """θᵀa of each candidate, θ by least squares."""
        entries = [(i, part.clicks[i], part.arrived[i]) for i in part.items if part.arrived[i]]
        size = np.abs(self.items[part.items]).max()
        x = self.items[[i for i, _, _ in entries]] / size
        clicks, n = np.array([[clicked, n] for _, clicked, n in entries], float).T
        root = np.sqrt(n)
        theta = np.linalg.pinv(root[:, None] * x, rcond=1e-12) @ (clicks / root)
        return {i: float(self.items[i] / size @ theta) for i in part.items}

    def pieces(self, part: Part, order: list[int]) -> list[Part] | None:
        """The parts that a part becomes at the end of its phase, None if the agent's order of it is wrong."""
        score = self.estimates(part)
        slack = TIE + 1e-9 * max(map(abs, score.values()))
        if set(order) != set(part.items) or any(score[a] < score[b] - slack for a, b in pairwise(order)):
            return None
        gap = 2.0 ** (1 - part.phase) - TIE
        last = order[part.length - 1]
        kept = [i for place, i in enumerate(order) if place < part.length or score[last] - score[i] < gap]
        cuts = [k for k in range(1, part.length) if score[order[k - 1]] - score[order[k]] >= gap]
        self.n_cuts, self.n_dropped = self.n_cuts + len(cuts), self.n_dropped + len(order) - len(kept)
        begins = [0, *cuts, len(kept)]
        parts = []
        for piece, (begin, stop) in enumerate(pairwise(begins)):
            items = kept[begin:stop]
            length = len(items) if piece < len(cuts) else part.length - begin
            parts.append(Part(part.first + begin, length, items, part.phase + 1))
        return parts

    # ---------------------------------------------------------------------------------------------------------- sessions

    def show(self, ranking: Sequence[int], state: Any, features: Any) -> Any:
        """What is remembered of a list, None if the agent may not show it."""
        features, number = np.asarray(features, np.float64), state.number.tolist()
        order = state.order.tolist()
        fresh: list[Part] = []
        if not self.parts:
            self.items = np.array(state.items)
            fresh = self.parts = [Part(0, self.n_positions, order, 1)]
        if sorted(number) != list(range(self.n_items)) or not np.array_equal(self.items[number], features):
            return None
        parts = []
        for part in self.parts:
            pieces: list[Part] | None = [part]
            if part.has_ended:
                pieces = self.pieces(part, order[part.first : part.first + len(part.items)])
                if pieces is None:
                    return None
                fresh += pieces
            parts += pieces or []
        self.parts = parts
        if not all(self.begin(part, state) for part in fresh) or not self.alike(state):
            return None
        memory = []
        shown = [number[row] for row in ranking]
        for part in self.parts:
            top, *rest = shown[part.first : part.first + part.length]
            if part.targets:
                missing = {i: target - part.displays[i] for i, target in part.targets.items()}
                if max(missing.values()) <= 0:
                    missing = {i: target - part.arrived[i] for i, target in part.targets.items()}
                if missing.get(top) != max(missing.values()):
                    return None
                part.displays[top] += 1
            elif top != part.items[0]:
                return None
            if rest != [i for i in part.items if i != top][: part.length - 1]:
                return None
            memory.append((part, [top, *rest]))
        return memory

    def arrive(self, memory: Any, arrived: Clicks) -> None:
        for part, items in memory:
            i, click = items[0], arrived.clicks[part.first]
            learns = part in self.parts and not part.has_ended and i in part.targets
            if learns and click >= 0 and not arrived.void[part.first]:
                part.arrived[i] += 1
                part.clicks[i] += click

    def alike(self, state: Any) -> bool:
        n = len(self.parts)
        return (
            state.n_parts[0] == n
            and state.first[: n + 1].tolist() == [*(part.first for part in self.parts), self.n_positions]
            and state.size[:n].tolist() == [len(part.items) for part in self.parts]
            and state.phase[:n].tolist() == [part.phase for part in self.parts]
            and all(state.order[part.first : part.first + len(part.items)].tolist() == part.items for part in self.parts)
        )

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        if not super().allows(ranking):
            return False
        self.memory = self.show(ranking, drawn, features)
        return self.memory is not None

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        self.arrive(self.memory, Clicks(list(ranking), list(clicks), [False] * self.n_positions))
        super().learn(ranking, clicks)

    def agrees(self, state: Any) -> bool:
        counts = ((state.arrived, "arrived"), (state.clicks, "clicks"), (state.displays, "displays"))
        learning = [part for part in self.parts if part.targets]
        return all(have[i] == getattr(part, name)[i] for part in learning for have, name in counts for i in part.items)
