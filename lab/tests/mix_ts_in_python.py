"""MixTS in plain Python, one function per step of its specification; it draws from a copy of the
agent's generator.

Five click models ("hypotheses") learn side by side from each list. Each session one of them is
drawn by its share, its parameters and the attraction of each item are drawn around their estimates,
and the list that is best for them is shown.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from reference_agents.reference import CLOSE, Reference

from clickgym.envs.scan import best_scan

PBM, UBM, DBN, DCM, TPBM = HYPOTHESES = range(5)
SCANNING = (DBN, DCM)
FIRST = (0.75, 1.5)  # clicks and examinations that every item begins with
WEIGHT = 2.0  # of what a parameter is drawn to before there are data
FLAT = 20.0  # the same of a TPBM base, and of the noise of attractions
LEAST = 1e-4
FOLLOWED = 300  # items with a continuation of their own
FIRST_CHANGE = 3e-4  # changes per display, before any was seen
SAME_NAMES = (
    *(
        "clicks",
        "displays",
        "total",
        "exposure",
        "offset",
        "part",
        "owner",
        "base",
        "slope",
        "middle",
        "base_error",
    ),
    *(
        "slope_error",
        "evidence",
        "likelihood",
        "share",
        "recent_total",
        "recent_exposure",
        "recent_offset",
        "change",
    ),
    *("began", "seen"),
)
"""What is called here as in the agent's state."""
GOLDEN = (math.sqrt(5) - 1) / 2


def bounded(p: float) -> float:
    return min(max(p, LEAST), 1 - LEAST)


def step(score: float, info: float, longest: float) -> float:
    """The factor of a parameter: a Newton step of its logarithm."""
    return math.exp(min(max(score / info, -longest), longest))


def vary(p: float, d: float) -> float:
    """A probability that goes d standard deviations up, reflected at 0 and at 1."""
    q = 1 - p
    r = (p + 2 * d * math.sqrt(max(p * q, 0.0)) + q * d * d) / (1 + d * d)
    if d < 0:
        return -r if q * d * d > p else r
    return 2 - r if p * d * d > q else r


class Parameters(NamedTuple):
    """How users examine, as drawn or as estimated; only those of the hypothesis matter."""

    examination: list[list[float]]  # [k][j]: PBM, UBM
    phi: list[float]  # by how much a draw of it differs from the estimate: PBM, UBM
    stay: dict[int, float]  # by item: DBN; by position: DCM
    base: list[float]
    slope: list[float]


class MixTSReference(Reference):
    """The agent's list must be the one drawn here, and its state must be this one up to
    rounding.
    """

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        initial: Sequence[int] | None,
        safe: bool,
        tolerance: float,
        detect: bool,
        rng: Any,
    ) -> None:
        super().__init__(n_items, n_positions)
        L, K, self.rng, self.detect, self.tolerance = n_items, n_positions, rng, detect, tolerance
        self.production = None if initial is None or not safe else [int(i) for i in initial][:K]
        self.items = range(L)
        self.clicks = [[[0.0] * K for _ in range(K)] for _ in range(L)]  # [i][k][j]
        self.displays = [[[0.0] * K for _ in range(K)] for _ in range(L)]
        self.total, self.offset = [0.0] * L, [0.0] * L
        self.exposure = [[0.0] * L for _ in HYPOTHESES]
        self.examination = [[[1.0] * K for _ in range(K)] for _ in (PBM, UBM)]
        self.precision = [[[1.0] * K for _ in range(K)] for _ in (PBM, UBM)]
        self.part = [[[0.0] * K for _ in range(L)] for _ in (PBM, UBM)]
        self.followed = min(L, FOLLOWED)
        self.owner = list(range(self.followed))
        n_sources = {DBN: self.followed + 2, DCM: K + 1}
        # displays, [h][x][i]
        self.F = {h: [[0.0] * L for _ in range(n)] for h, n in n_sources.items()}
        # their powers of g
        self.P = {h: [[0.0] * L for _ in range(n)] for h, n in n_sources.items()}
        self.S = {h: [0.0] * n for h, n in n_sources.items()}  # clicks
        self.c = {h: [1.0] * n for h, n in n_sources.items()}  # continuation
        self.n = {h: [WEIGHT] * n for h, n in n_sources.items()}  # how well it is known
        self.Q = {h: [0.0] * L for h in SCANNING}  # powers of g at clicks
        self.g = dict.fromkeys(SCANNING, 0.95)
        self.base, self.slope = [0.0] * K, [1.0] * K
        self.middle, self.base_error, self.slope_error = [0.0] * K, [0.0] * K, [0.0] * K
        self.evidence, self.likelihood, self.share, self.leader = (
            [0.0] * 5,
            [1.0] * 5,
            [0.2] * 5,
            PBM,
        )
        self.t = self.learned = self.due = 0
        self.recent_total, self.recent_exposure, self.recent_offset = (
            [0.0] * L,
            [0.0] * L,
            [0.0] * L,
        )
        self.change, self.began, self.seen = [1.0] * L, [0.0] * L, [0.0] * L
        self.n_expected, self.n_changes, self.last_change = 0.0, 0.0, -1.0

    # ------------------------------------------------------------------------------------ estimates

    def clicks_on(self, h: int, i: int) -> float:
        return max(self.total[i] - self.offset[i], 0.0) if h == TPBM else self.total[i]

    def estimate(self, h: int, i: int) -> float:
        s = self.clicks_on(h, i)
        return (s + FIRST[0]) / (max(s, self.exposure[h][i]) + FIRST[1])

    def profile(self, h: int, i: int) -> float:
        return (self.total[i] + FIRST[0]) / (self.exposure[h][i] + FIRST[1])

    def own(self, w: float, i: int) -> float:
        """What w expected clicks tell of a parameter beside the item's attraction."""
        return w * max(1 - w / (self.total[i] + FIRST[0]), 0.0)

    def source(self, i: int) -> int:
        m = i % self.followed
        return m + 1 if self.owner[m] == i else self.followed + 1

    def estimated(self, h: int) -> Parameters:
        stay = {i: self.c[DBN][self.source(i)] for i in self.items}
        if h == DCM:
            stay = dict(enumerate(self.c[DCM][1:]))
        return Parameters(
            self.examination[h % 2], [1.0] * self.n_positions, stay, self.base, self.slope
        )

    def estimates(self, h: int) -> list[float]:
        seen = [self.total[i] + self.exposure[h][i] > 0 for i in self.items]
        return [self.estimate(h, i) if seen[i] else 0.0 for i in self.items]

    # ----------------------------------------------------------------------------------------- rank

    def rate(self) -> float:
        return (FIRST_CHANGE + self.n_changes) / max(self.t, 1)

    def count_display(self) -> None:
        self.t += 1
        self.n_expected += self.rate()

    def rank(self, available: Collection[int]) -> list[int]:
        self.count_display()
        self.calm = 1 / math.sqrt(1 + self.t / 5000)
        self.width = 1 / math.sqrt(1 + self.calm)
        h = self.draw_hypothesis()
        parameters = self.draw_parameters(h)
        self.draws = self.draw_attractions(h, parameters)
        attraction = [bounded(draw) for draw in self.draws]
        row = self.arrange(h, self.draws, attraction, parameters, available, self.drawn_stay)
        if self.n_positions > 1:
            self.exchange_at_random(row)
        return self.guarded(row, available) if self.production else row

    def draw_hypothesis(self) -> int:
        u, cumulated = self.rng.random(), 0.0
        for h in HYPOTHESES:
            cumulated += self.share[h]
            if cumulated > u:
                return h
        return TPBM

    def draw_parameters(self, h: int) -> Parameters:
        K, estimated = self.n_positions, self.estimated(h)
        if h == DBN:  # whose draws come later, for a few items
            return estimated
        if h == TPBM:
            base, slope = [], []
            for k in range(K):
                move = self.slope_error[k] * (self.width * self.rng.standard_normal())
                slope.append(max(self.slope[k] + move, 0.02))
                noise = self.width * self.base_error[k] * self.rng.standard_normal()
                base.append(self.base[k] + noise - self.middle[k] * move)
            return estimated._replace(base=base, slope=slope)
        z = [self.width * self.rng.standard_normal() for _ in range(K)]
        if h == DCM:
            deviation = [0.5 * z[k] / math.sqrt(self.n[DCM][k + 1]) for k in range(K)]
            return estimated._replace(
                stay={k: bounded(vary(self.c[DCM][k + 1], deviation[k])) for k in range(K)}
            )
        x = self.solve(self.precision[h], [self.width**2 * z_k for z_k in z])
        mean = sum(x) / K
        phi = [math.exp(x_k - mean) for x_k in x]
        return estimated._replace(
            examination=[[min(e * phi[k], 1.0) for e in self.examination[h][k]] for k in range(K)],
            phi=phi,
        )

    def solve(self, R: list[list[float]], y: list[float]) -> list[float]:
        """x with Rᵀx = y, R lower triangular."""
        x = list(y)
        for k in range(len(y) - 1, -1, -1):
            for other in range(k + 1, len(y)):
                x[k] -= R[other][k] * x[other]
            x[k] /= R[k][k]
        return x

    def draw_attractions(self, h: int, parameters: Parameters) -> list[float]:
        u, draws = self.rng.random(), []
        for i in self.items:
            s, n, noise = self.clicks_on(h, i), self.exposure[h][i], self.total[i] + FIRST[0]
            if self.detect and h == self.leader:
                unseen = self.n_expected - self.seen[i]
                odds = unseen + (self.n_expected - self.began[i]) * self.change[i]
                u += GOLDEN
                u -= 1 if u >= 1 else 0
                v = u * (1 + odds)
                if v < unseen:
                    s, n, noise = 0.0, 0.0, FIRST[0]
                elif v < odds:
                    s, n = (
                        max(self.recent_total[i] - self.recent_offset[i], 0.0),
                        self.recent_exposure[i],
                    )
                    noise = self.recent_total[i] + FIRST[0]
            n = max(s, n) + FIRST[1]
            if h in (PBM, UBM):
                n *= 1 + sum(
                    (phi - 1) * part
                    for phi, part in zip(parameters.phi, self.part[h][i], strict=True)
                )
            p = min((s + FIRST[0]) / n, 1 - LEAST)
            spread = noise * (s + FLAT) / (n * n * p * (s + FLAT + self.calm * s))
            draws.append(vary(p, 0.5 * math.sqrt(spread) * self.rng.standard_normal()))
        return draws

    def drawn_stay(self, i: int) -> float:
        x = self.source(i)
        return bounded(
            vary(
                self.c[DBN][x],
                0.5 * self.width * self.rng.standard_normal() / math.sqrt(self.n[DBN][x]),
            )
        )

    def arrange(
        self,
        h: int,
        merit: list[float],
        attraction: list[float],
        parameters: Parameters,
        available: Collection[int],
        stay: Any,
    ) -> list[int]:
        """The best list of the items of largest merit. Draws do not tie, so that no tie is broken
        at random.
        """
        K, by_merit = self.n_positions, sorted(available, key=lambda i: (-merit[i], i))
        if h != DBN:
            return self.improved(h, by_merit[:K], merit, attraction, parameters, available)
        items, g = by_merit[: 4 * K], self.g[DBN]
        gain = [attraction[i] for i in items]
        onward = [min(attraction[i] * stay(i) + (1 - attraction[i]) * g, 1.0) for i in items]
        return [items[place] for place in best_scan(gain, onward, K)]

    def value(self, h: int, row: Sequence[int], attraction: Any, p: Parameters) -> float:
        """The clicks that a hypothesis expects of a list."""
        a = [attraction[i] for i in row[: self.n_positions]]
        if h == PBM:
            return sum(p.examination[k][0] * a_k for k, a_k in enumerate(a))
        if h == TPBM:
            return sum(p.base[k] + p.slope[k] * a_k for k, a_k in enumerate(a))
        clicks = 0.0
        if h == UBM:
            last = [1.0] + [0.0] * len(a)
            for k, a_k in enumerate(a):
                for j in range(k + 1):
                    click = last[j] * a_k * p.examination[k][j]
                    last[j] -= click
                    last[k + 1] += click
                    clicks += click
            return clicks
        for k in range(len(a) - 1, -1, -1):
            clicks = (
                a[k] + (a[k] * p.stay[k if h == DCM else row[k]] + (1 - a[k]) * self.g[h]) * clicks
            )
        return clicks

    def improved(
        self,
        h: int,
        row: list[int],
        merit: list[float],
        attraction: list[float],
        p: Parameters,
        available: Collection[int],
    ) -> list[int]:
        """Exchanges of two items while the list gets better."""
        K = self.n_positions
        others = sorted((i for i in available if i not in row), key=lambda i: (merit[i], i))
        row = row + others[: self.n_entering(row, attraction, p, len(available)) if h == DCM else 0]
        best = self.value(h, row, attraction, p)
        for _ in range(2):
            before = best
            for x in range(K):
                for y in range(x + 1, len(row)):
                    row[x], row[y] = row[y], row[x]
                    value = self.value(h, row, attraction, p)
                    if value > best + 1e-9:
                        best = value
                    else:
                        row[x], row[y] = row[y], row[x]
            if best == before:
                break
        return row[:K]

    def n_entering(
        self, row: list[int], attraction: list[float], p: Parameters, n_available: int
    ) -> int:
        """At how many positions a DCM user should rather find nothing than stop."""
        w, below, g = 0, 0.0, self.g[DCM]
        for k in range(self.n_positions - 1, -1, -1):
            a = attraction[row[k]]
            if (g - p.stay[k]) * below > 0.7 and self.n_positions + w < n_available:
                w, a = w + 1, 0.0
            below = a + (a * p.stay[k] + (1 - a) * g) * below
        return w

    def exchange_at_random(self, row: list[int]) -> None:
        if self.rng.random() < 2 * (self.t + 10000) ** (-2 / 3):
            x = int(self.n_positions * self.rng.random())
            y = int((self.n_positions - 1) * self.rng.random())
            y += y >= x
            row[x], row[y] = row[y], row[x]

    def best(self) -> list[int]:
        estimates, p = self.estimates(self.leader), self.estimated(self.leader)
        return self.arrange(self.leader, estimates, estimates, p, self.items, lambda i: p.stay[i])

    # ---------------------------------------------------------------------------------------- guard

    def surplus(self, h: int, row: list[int]) -> float:
        """By how much a list is better than production's may get, less three standard errors."""
        assert self.production is not None
        a, p = dict(enumerate(self.estimates(h))), self.estimated(h)

        def difference(a: Any, p: Parameters) -> float:
            return self.value(h, row, a, p) - (1 - self.tolerance) * self.value(
                h, self.production or [], a, p
            )

        wanted, variance = difference(a, p), 0.0
        for i in [*row, *(i for i in self.production if i not in row)]:
            error = math.sqrt(a[i] * (1 - a[i]) / (self.exposure[h][i] + FIRST[1]))
            variance += (difference(a | {i: a[i] + error}, p) - wanted) ** 2
            if h == DBN:
                c = p.stay[i]
                error = math.sqrt(c * (1 - c) / self.n[DBN][self.source(i)])
                variance += (difference(a, p._replace(stay=p.stay | {i: c + error})) - wanted) ** 2
        return wanted - 3 * math.sqrt(variance)

    def is_safe(self, row: list[int]) -> bool:
        return all(self.surplus(h, row) > 0 for h in HYPOTHESES if self.share[h] >= 0.01)

    def guarded(self, wanted: list[int], available: Collection[int]) -> list[int]:
        """The wanted list if it is safe, else production's with what of it is safe."""
        if self.is_safe(wanted):
            return wanted
        K, row = self.n_positions, list(self.production or [])
        for k in range(K):
            if row[k] not in available:
                row[k] = next(i for i in wanted if i not in row)
        for i in wanted:
            if i not in row:
                k = max(k for k in range(K) if row[k] not in wanted)
                given_up, row[k] = row[k], i
                if not self.is_safe(row):
                    row[k] = given_up
        place = {i: wanted.index(i) if i in wanted else K for i in row}
        for x in range(1, K):
            for y in range(x, 0, -1):
                if place[row[y - 1]] <= place[row[y]]:
                    break
                row[y - 1], row[y] = row[y], row[y - 1]
                if not self.is_safe(row):
                    row[y - 1], row[y] = row[y], row[y - 1]
                    break
        return row

    # ---------------------------------------------------------------------------------------- learn

    def update(self, ranking: Sequence[int], clicks: Sequence[int], void: Sequence[bool]) -> None:
        j = 0
        source, factor, power = (
            dict.fromkeys(SCANNING, 0),
            dict.fromkeys(SCANNING, 1.0),
            dict.fromkeys(SCANNING, 0.0),
        )
        b = [0.0] * 5  # how surely users examine
        for k, i in enumerate(ranking):
            click = clicks[k]
            if click < 0:
                break
            for h in SCANNING:
                x, f = source[h], factor[h]
                a, b[h] = self.estimate(h, i), self.c[h][x] * f
                if not void[k]:
                    self.F[h][x][i] += f
                    self.P[h][x][i] += f * power[h]
                    self.S[h][x] += click
                    self.Q[h][i] += click * power[h]
                left = max(1 - b[h] * a, LEAST)
                factor[h] = f * (self.g[h] * (1 - a) / left)
                power[h] = min(1 + power[h] / left, 8.0)
            if not void[k]:
                b[PBM], b[UBM], b[TPBM] = (
                    self.examination[PBM][k][j],
                    self.examination[UBM][k][j],
                    self.slope[k],
                )
                self.count(i, k, j, click, b)
            if click:
                j = k + 1
                if not void[k]:
                    self.take(i)
                source = {DBN: self.followed + 1 if void[k] else self.source(i), DCM: j}
                factor, power = dict.fromkeys(SCANNING, 1.0), dict.fromkeys(SCANNING, 0.0)
        self.learned += 1
        if self.learned >= self.due:
            self.fit()
            self.due = self.learned + 1 + int(0.005 * self.learned)

    def count(self, i: int, k: int, j: int, click: int, b: list[float]) -> None:
        for h in HYPOTHESES:
            p = bounded(b[h] * self.estimate(h, i) + (self.base[k] if h == TPBM else 0.0))
            self.likelihood[h] *= p if click else 1 - p
            if self.likelihood[h] < 1e-100:
                self.evidence[h] += math.log(self.likelihood[h])
                self.likelihood[h] = 1.0
        if self.detect:
            self.look(i, k, click, b[self.leader])
        for h in HYPOTHESES:
            self.exposure[h][i] += b[h]
        self.offset[i] += self.base[k]
        self.total[i] += click
        self.clicks[i][k][j] += click
        self.displays[i][k][j] += 1
        if self.detect:
            self.judge(i)

    def take(self, i: int) -> None:
        """A clicked item gets the continuation of its own from one with fewer clicks."""
        m = i % self.followed
        if self.total[self.owner[m]] < self.total[i]:
            self.release(m + 1)
            self.owner[m] = i

    def release(self, x: int) -> None:
        common = self.followed + 1
        for counts in (self.F[DBN], self.P[DBN]):
            counts[common] = [a + b for a, b in zip(counts[common], counts[x], strict=True)]
            counts[x] = [0.0] * self.n_items
        self.S[DBN][common] += self.S[DBN][x]
        self.S[DBN][x], self.c[DBN][x], self.n[DBN][x] = 0.0, self.c[DBN][common], WEIGHT

    # ------------------------------------------------------------------------------------------ fit

    def fit(self) -> None:
        self.add_likelihoods()
        recent = [
            self.recent_exposure[i] / max(self.exposure[self.leader][i], 1e-9) for i in self.items
        ]
        for h in (PBM, UBM):
            self.fit_examination(h)
        for h in SCANNING:
            self.fit_go_on(h)
        self.fit_trust()
        self.weigh_trust()
        self.share_out()
        self.recent_offset = [
            recent[i] * self.offset[i] if self.leader == TPBM else 0.0 for i in self.items
        ]
        self.recent_exposure = [recent[i] * self.exposure[self.leader][i] for i in self.items]

    def add_likelihoods(self) -> None:
        self.evidence = [
            e + math.log(p) for e, p in zip(self.evidence, self.likelihood, strict=True)
        ]
        self.likelihood = [1.0] * 5

    def fit_cell(self, h: int, k: int, cells: range, prior: float) -> None:
        gamma, score, info = self.examination[h][k][cells[0]], 0.0, WEIGHT
        shown = {i: sum(self.displays[i][k][j] for j in cells) for i in self.items}
        for i in self.items:
            if shown[i] > 0:
                w = gamma * shown[i] * self.profile(h, i)
                score += sum(self.clicks[i][k][j] for j in cells) - w
                info += self.own(w, i)
        new = max(gamma * step(score - WEIGHT * math.log(gamma / prior), info, 0.5), 1e-6)
        for j in cells:
            self.examination[h][k][j] = new
        for i in self.items:
            self.exposure[h][i] = max(self.exposure[h][i] + (new - gamma) * shown[i], 0.0)

    def fit_examination(self, h: int) -> None:
        K, cells = self.n_positions, self.examination[h]
        for k in range(K):
            self.fit_cell(
                h, k, range(k + 1) if h == PBM else range(1), cells[k - 1][0] if k else 1.0
            )
        lower = [(k, j) for k in range(1, K) for j in range(1, k + 1)]
        if h == UBM:
            clicked = WEIGHT + sum(self.clicks[i][k][j] for i in self.items for k, j in lower)
            expected = WEIGHT + sum(
                cells[k][0] * self.displays[i][k][j] * self.profile(h, i)
                for i in self.items
                for k, j in lower
            )
            for k, j in lower:
                self.fit_cell(h, k, range(j, j + 1), cells[k][0] * clicked / expected)
        largest = max(cells[k][j] for k in range(K) for j in range(k + 1))
        for k in range(K):
            cells[k][: k + 1] = [gamma / largest for gamma in cells[k][: k + 1]]
        self.fit_precision(h)

    def fit_precision(self, h: int) -> None:
        """Cholesky's factor of what is known of the logarithms of examination."""
        K, cells = self.n_positions, self.examination[h]
        known = [[WEIGHT * (k == other) for other in range(K)] for k in range(K)]
        for i in self.items:
            w = [sum(cells[k][j] * self.displays[i][k][j] for j in range(k + 1)) for k in range(K)]
            self.exposure[h][i] = sum(w)
            n = self.exposure[h][i] + FIRST[1]
            self.part[h][i] = [w_k / n for w_k in w]
            for k in range(K):
                for other in range(k + 1):
                    known[k][other] += self.profile(h, i) * (
                        w[k] * (k == other) - w[k] * w[other] / n
                    )
        R = self.precision[h]
        for k in range(K):
            for other in range(k):
                R[k][other] = (
                    known[k][other] - sum(R[k][m] * R[other][m] for m in range(other))
                ) / R[other][other]
            R[k][k] = math.sqrt(max(known[k][k] - sum(R[k][m] ** 2 for m in range(k)), 1e-9))

    def fit_go_on(self, h: int) -> None:
        F, P, c = self.F[h], self.P[h], self.c[h]
        expected, score, info = 2 * WEIGHT, -WEIGHT * math.log(self.g[h]), WEIGHT
        for i in self.items:
            n, p = (sum(c[x] * counts[x][i] for x in range(len(c))) for counts in (F, P))
            q = sum(c[x] * P[x][i] ** 2 / F[x][i] for x in range(len(c)) if F[x][i] > 0)
            self.exposure[h][i] = n
            expected += sum(F[x][i] for x in range(1, len(c))) * self.profile(h, i)
            if n > 0:
                score += self.Q[h][i] - p / n * self.total[i]
                info += self.profile(h, i) * max(q - p * p / n, 0.0)
        mean = min((WEIGHT + sum(self.S[h][1:])) / expected, 1.0)
        new = min(max(self.g[h] * step(score, info, 0.2), 0.05), 0.9999)
        self.move_weights(h, math.log(new / self.g[h]))
        self.g[h] = new
        self.fit_continuation(h, mean)

    def move_weights(self, h: int, log_ratio: float) -> None:
        """What was examined with a power of the old g now has that of the new one."""
        for displays, powers in zip(self.F[h], self.P[h], strict=True):
            for i in self.items:
                if displays[i] > 0:
                    factor = math.exp(powers[i] / displays[i] * log_ratio)
                    displays[i], powers[i] = displays[i] * factor, powers[i] * factor
        self.exposure[h] = [
            sum(c * F[i] for c, F in zip(self.c[h], self.F[h], strict=True)) for i in self.items
        ]

    def fit_continuation(self, h: int, mean: float) -> None:
        for x in range(1, len(self.c[h])):
            F, c = self.F[h][x], self.c[h][x]
            w = {i: c * F[i] * self.profile(h, i) for i in self.items if F[i] > 0}
            info = WEIGHT * c + sum(self.own(w_i, i) for i, w_i in w.items())
            score = self.S[h][x] + WEIGHT * (mean - c) - sum(w.values())
            new = self.c[h][x] = min(max(c * step(score, info, 0.5), LEAST), 1.0)
            self.n[h][x] = WEIGHT + info / new
            for i in self.items:
                self.exposure[h][i] = max(self.exposure[h][i] + (new - c) * F[i], 0.0)

    def on_position(self, k: int) -> list[tuple[int, float, float]]:
        """Items with their displays and clicks on a position."""
        return [(i, sum(self.displays[i][k]), sum(self.clicks[i][k])) for i in self.items]

    def fit_trust(self) -> None:
        offset, exposure = self.offset, self.exposure[TPBM]
        for k in range(self.n_positions):
            u, v = self.base[k], self.slope[k]
            W, A, B, r, r_a = FLAT, 0.0, WEIGHT, -FLAT * u, 0.0
            for i, N, S in self.on_position(k):
                e = exposure[i] + FIRST[1]
                a = max(self.total[i] - offset[i] + FIRST[0], 0.0) / e
                o, missing = N * max(1 - v * N / e, 0.0), S - (u + v * a) * N
                W, A, B = W + o, A + o * a, B + o * a * a
                r, r_a = r + missing, r_a + missing * a
            D = W * B - A * A
            self.middle[k], self.base_error[k], self.slope_error[k] = (
                A / W,
                math.sqrt(0.2 / W),
                math.sqrt(0.2 * W / D),
            )
            self.base[k] = min(max(u + (B * r - A * r_a) / D, 0.0), 0.95)
            self.slope[k] = min(max(v + (W * r_a - A * r) / D, 0.02), 2.0)
            for i, N, _ in self.on_position(k):
                offset[i] += (self.base[k] - u) * N
                exposure[i] = max(exposure[i] + (self.slope[k] - v) * N, 0.0)
        m = min(u / v for u, v in zip(self.base, self.slope, strict=True))
        largest = max(self.slope)
        self.base = [u - m * v for u, v in zip(self.base, self.slope, strict=True)]
        self.slope = [max(v / largest, 0.02) for v in self.slope]
        self.offset, self.exposure[TPBM] = [0.0 for _ in self.items], [0.0 for _ in self.items]
        for k in range(self.n_positions):
            for i, N, _ in self.on_position(k):
                self.offset[i] += self.base[k] * N
                self.exposure[TPBM][i] += self.slope[k] * N

    def weigh_trust(self) -> None:
        """The evidence of the TPBM is that of the PBM, with the ratio of both likelihoods of all
        that was seen.
        """
        ratio = 0.0
        for k in range(self.n_positions):
            for i, N, S in self.on_position(k):
                if N > 0:
                    p = bounded(self.examination[PBM][k][0] * self.estimate(PBM, i))
                    q = bounded(self.base[k] + self.slope[k] * self.estimate(TPBM, i))
                    ratio += S * math.log(q / p) + (N - S) * math.log((1 - q) / (1 - p))
        self.evidence[TPBM] = self.evidence[PBM] - 1.5 * self.n_positions + ratio

    def share_out(self) -> None:
        largest = max(self.evidence)
        self.leader = self.evidence.index(largest)
        self.evidence = [(1 - 0.0005) * (e - largest) for e in self.evidence]
        least = 0.1 * max(self.t, 1) ** (-2 / 3)
        shares = [max(math.exp(e), least) for e in self.evidence]
        self.share = [share / sum(shares) for share in shares]

    # --------------------------------------------------------------------------------------- change

    def look(self, i: int, k: int, click: int, b: float) -> None:
        """How much less likely the item's latest clicks are by all of its clicks than by
        themselves.
        """
        h, now = self.leader, self.n_expected
        if self.change[i] < 1 and now - self.seen[i] > self.rate() * (1 + self.recent_exposure[i]):
            self.close(i, self.seen[i])
        self.seen[i] = now
        u = self.base[k] if h == TPBM else 0.0

        def chance(s: float, n: float) -> float:
            return min(u + b * (1 + s) / (2 + max(s, n)), 1 - LEAST)

        p = chance(self.clicks_on(h, i), self.exposure[h][i])
        q = chance(max(self.recent_total[i] - self.recent_offset[i], 0.0), self.recent_exposure[i])
        self.change[i] *= q / p if click else (1 - q) / (1 - p)
        self.recent_total[i] += click
        self.recent_exposure[i] += b
        self.recent_offset[i] += u

    def close(self, i: int, began: float) -> None:
        self.recent_total[i] = self.recent_exposure[i] = self.recent_offset[i] = 0.0
        self.change[i], self.began[i] = 1.0, began

    def judge(self, i: int) -> None:
        now, exposure = self.n_expected, self.exposure[self.leader][i]
        if self.change[i] < 0.05 or self.recent_exposure[i] > (0.5 + 1e-9) * exposure:
            self.close(i, now)
        elif (now - self.began[i]) * self.change[i] > 1000:
            clicks = self.recent_total[i] / self.total[i] if self.total[i] else 0.0
            self.keep(i, clicks, self.recent_exposure[i] / exposure)
            if self.began[i] > self.last_change:
                self.n_changes, self.last_change = self.n_changes + 1, now
                self.began, self.seen = (
                    [at - 1 for at in times] for times in (self.began, self.seen)
                )
                self.seen[i] = now
            self.close(i, now)

    def keep(self, i: int, rc: float, rd: float) -> None:
        """Forget all of an item but shares of its clicks and displays."""
        for h in SCANNING:
            a = self.estimate(h, i)
            for x in range(len(self.c[h])):
                self.S[h][x] = max(
                    self.S[h][x] - (1 - rc) * self.c[h][x] * self.F[h][x][i] * a, 0.0
                )
                self.F[h][x][i] *= rd
                self.P[h][x][i] *= rd
            self.Q[h][i] *= rc
        if self.source(i) <= self.followed:
            self.release(self.source(i))
        self.clicks[i] = [[rc * n for n in row] for row in self.clicks[i]]
        self.displays[i] = [[rd * n for n in row] for row in self.displays[i]]
        for exposure in self.exposure:
            exposure[i] *= rd
        self.total[i] *= rc
        self.offset[i] *= rd

    def replace(self, i: int) -> None:
        self.keep(i, 0.0, 0.0)
        self.close(i, self.n_expected)
        self.seen[i] = self.n_expected

    # -------------------------------------------------------------------- comparison with the agent

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        return list(ranking) == self.rank(range(self.n_items))

    def learn_from_another(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        """The clicks on a list of somebody else."""
        self.count_display()
        self.learn(ranking, clicks)

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        self.update(ranking, clicks, [False] * len(ranking))

    def holds(self) -> dict[str, Any]:
        both: Callable[[Any], list[Any]] = lambda counts: counts[DBN] + counts[DCM]  # noqa: E731
        return {name: getattr(self, name) for name in SAME_NAMES} | {
            "examination": np.tril(self.examination),
            "precision": np.tril(self.precision),
            "displays_after": both(self.F),
            "powers_after": both(self.P),
            "clicks_after": both(self.S),
            "continuation": both(self.c),
            "weight": both(self.n),
            "click_powers": [self.Q[DBN], self.Q[DCM]],
            "go_on": [self.g[DBN], self.g[DCM]],
            "leader": [self.leader],
            "t": [self.t, self.learned, self.due],
            "changes": [self.n_expected, self.n_changes, self.last_change],
        }

    def differences(self, state: Any) -> dict[str, float]:
        """By how much the agent's state departs, by the names of its fields."""
        departs = {}
        for name, want in self.holds().items():
            have, want = np.asarray(getattr(state, name)), np.asarray(want)
            have = np.tril(have) if name in ("examination", "precision") else have
            error = np.abs(have - want) / np.maximum(1.0, np.abs(want))
            if not error.max() <= CLOSE:
                departs[name] = float(error.max())
        return departs

    def agrees(self, state: Any) -> bool:
        return not self.differences(state)


def reference_of(agent: Any) -> MixTSReference:
    """The reference of an agent that has not played yet, with a copy of its generator."""
    return MixTSReference(
        agent.n_items, agent.n_positions, rng=copy.deepcopy(agent.rng), **agent.hyperparameters
    )
