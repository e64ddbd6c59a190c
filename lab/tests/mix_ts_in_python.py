"""MixTS in plain Python, written from its specification: what the compiled agent is tested against.

Arrays are by item, in the order of ids. The *last click* j of a position is 1 + the position of the
last click above, 0 if there is none. A session is a list of (position, last click, item, click).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from reference_agents.reference import Reference

from clickgym.agents.kernels import rank_by_draw
from clickgym.core.kernels import entry
from clickgym.envs.scan import best_scan
from clickgym_lab.mix_ts import MixTS

PBM, UBM, DBN, DCM, TABLE = range(5)
PLAIN = [PBM, UBM, DBN, DCM]
LEAST = 1e-4
GOLDEN = (math.sqrt(5) - 1) / 2


def clip(p):
    return np.clip(p, LEAST, 1 - LEAST)


def vary(p: float, d: float) -> float:
    """Return a probability d standard deviations above p, reflected at 0 and at 1."""
    q = 1 - p
    varied = (p + 2 * d * math.sqrt(p * q) + q * d * d) / (1 + d * d)
    if d < 0:
        return -varied if q * d * d > p else varied
    return 2 - varied if p * d * d > q else varied


def step(score: float, info: float, cap: float) -> float:
    """Return the factor of a parameter: a Newton step of its logarithm."""
    return math.exp(min(max(score / info, -cap), cap))


class Scan:
    """What the DBN or the DCM knows. Source 0 is no click above, source 1 + i a click on item i
    (DBN), 1 + k a click on position k (DCM).
    """

    def __init__(self, n_sources: int, n_items: int) -> None:
        self.below, self.slope = np.zeros((2, n_sources, n_items))
        self.clicks_below, self.click_slope = np.zeros(n_sources), np.zeros(n_items)
        self.continuation, self.go_on = np.ones(n_sources), 0.95


class MixTSReference(Reference):
    """Draws from a copy of the agent's generator: its list must be the agent's."""

    def __init__(self, agent: MixTS) -> None:
        L, K = self.n_items, self.n_positions = agent.n_items, agent.n_positions
        self.detect, self.rng = agent.hyperparameters["detect"], copy.deepcopy(agent.rng)
        self.clicks, self.displays = np.zeros((2, L, K, K))
        self.total, self.exposure = np.zeros(L), np.zeros((5, L))
        self.examination, self.information = np.tril(np.ones((2, K, K))), np.full((2, K), 2.0)
        self.law, (self.by_trust, self.by_attraction) = np.eye(5)[[1] * K], np.zeros((2, L))
        self.scans = {DBN: Scan(1 + L, L), DCM: Scan(1 + K, L)}
        self.evidence, self.likelihood = np.zeros((2, 5)), np.ones((2, 5))
        self.share, self.leader, self.t, self.due = np.full(5, 0.2), PBM, 0, 0
        self.recent_clicks, self.recent_exposure, self.began, self.seen = np.zeros((4, L))
        self.odds, self.now, self.n_changes, self.last_change = np.ones(L), 0.0, 0.0, -1.0

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        """Whether this is the list that follows from the state and the generator."""
        return ranking == self.rank()

    def agrees(self, state: Any) -> bool:
        """Whether fields of the agent's state that have a name here are equal."""
        scans = self.scans.values()
        held = vars(self) | {
            "t": [self.t, self.due],
            "changes": [self.now, self.n_changes, self.last_change],
            "click_slope": [scan.click_slope for scan in scans],
            "go_on": [scan.go_on for scan in scans],
        }
        for name in ("below", "slope", "clicks_below", "continuation"):
            held[name] = np.concatenate([getattr(scan, name) for scan in scans])
        found = state._asdict() | {"examination": np.tril(state.examination)}
        names = held.keys() & found.keys()
        return all(np.allclose(found[name], held[name], 1e-9, 1e-9) for name in names)

    def attractions(self) -> np.ndarray:
        """Return the estimates by hypothesis and item."""
        return (self.total + 0.75) / (np.maximum(self.total, self.exposure) + 1.5)

    def profile(self, h: int) -> np.ndarray:
        """Return the attractions that follow the parameters in a fit."""
        return (self.total + 0.75) / (self.exposure[h] + 1.5)

    def own(self, clicks: np.ndarray) -> np.ndarray:
        """Return what expected clicks tell of a parameter if attractions follow it."""
        return clicks * np.maximum(1 - clicks / (self.total + 0.75), 0)

    def law_attractions(self) -> np.ndarray:
        """Return the estimates without the clicks of trust in a position."""
        return (np.maximum(self.total - self.by_trust, 0) + 0.75) / (self.by_attraction + 1.5)

    def rates(self, a: np.ndarray, u: np.ndarray, v: np.ndarray, errors: float | np.ndarray = 0.0):
        """Return the rates of the table by item and position, near its law u + v a."""
        clicks, n = self.clicks.sum(axis=2), self.displays.sum(axis=2)
        return clip((clicks + 400 * (u + np.outer(a, v))) / (n + 400) + errors / np.sqrt(n + 401))

    def pace(self) -> float:
        """Return the expected changes in a session."""
        return (0.0003 + self.n_changes) / max(self.t, 1)

    # --------------------------------------------------------------------------- choice of the list

    def rank(self) -> list[int]:
        t, K, rng = self.t + 1, self.n_positions, self.rng
        calm = 1 / math.sqrt(1 + t / 5000)
        width = 1 / math.sqrt(1 + calm)
        h, u = PBM, rng.random()
        while h < TABLE and u >= self.share[h]:
            u -= self.share[h]
            h += 1
        self.draws = self.draw_attractions(h, calm)
        ranking = self.choose(h, self.draws, rng, lambda: width * rng.standard_normal())
        if K > 1 and rng.random() < 2 * (t + 10_000) ** (-2 / 3):
            x, y = int(K * rng.random()), int((K - 1) * rng.random())
            y += y >= x
            ranking[x], ranking[y] = ranking[y], ranking[x]
        return ranking

    def best(self) -> list[int]:
        """Return the list for the estimates. Draws come before those that break ties, but have no
        effect.
        """
        unseen = self.total + self.exposure[self.leader] == 0
        estimates = np.minimum(self.attractions()[self.leader], 1 - LEAST)
        estimates[unseen] = 0
        rng = np.random.default_rng(0)
        rng.random()
        rng.standard_normal(np.count_nonzero(~unseen))
        return self.choose(self.leader, estimates, rng, lambda: 0.0)

    def draw_attractions(self, h: int, calm: float) -> np.ndarray:
        draws, u = np.empty(self.n_items), self.rng.random()
        for i in range(self.n_items):
            clicks, n = self.total[i], self.exposure[h, i]
            if self.detect and h == self.leader:
                now = self.now + self.pace()
                unseen = now - self.seen[i]
                odds = unseen + (now - self.began[i]) * self.odds[i]
                u = (u + GOLDEN) % 1
                if u * (1 + odds) < unseen:  # changed since it was shown last
                    clicks = n = 0.0
                elif u * (1 + odds) < odds:  # changed when its window began
                    clicks, n = self.recent_clicks[i], self.recent_exposure[i]
            n = max(clicks, n) + 1.5
            sharpness = 1 + calm * clicks / (clicks + 20)
            if h == TABLE:
                left = max(self.total[i] - self.by_trust[i], 0) + 0.75
                sharpness *= (left / (self.total[i] + 0.75)) ** 2
            d = 0.5 * self.rng.standard_normal() / math.sqrt(n * sharpness)
            draws[i] = vary(min((clicks + 0.75) / n, 1 - LEAST), d)
        return draws

    def choose(self, h: int, draws: np.ndarray, rng: np.random.Generator, noise) -> list[int]:
        """Return the list with most expected clicks for these attractions, and parameters that are
        the estimates with `noise`.
        """
        L, K = self.n_items, self.n_positions
        n_candidates = min((4 if h == DBN else 2) * K, L)
        order = np.arange(L)
        entry(rank_by_draw)(draws, order, rng, n_candidates)
        row, a = order[:n_candidates].tolist(), clip(draws)
        if h in self.scans:
            scan = self.scans[h]
            stay = scan.continuation[[1 + x for x in (row if h == DBN else range(K))]]
            if h == DCM:
                return improve(row, K, lambda row: sum(clicks_of_scan(a[row], stay, scan.go_on)))
            onward = np.minimum(a[row] * stay + (1 - a[row]) * scan.go_on, 1)
            return [row[place] for place in best_scan(a[row], onward, K)]
        if h == TABLE:
            u, v, of_u, of_both, of_v = self.law.T
            x, y = np.array([[noise(), noise()] for _ in range(K)]).T
            errors = np.zeros((L, K))
            errors[row] = [[0.2 * noise() for _ in range(K)] for _ in row]
            rates = self.rates(a, u + of_u * x, v + of_both * x + of_v * y, errors)
            return improve(row, K, lambda row: rates[row, range(K)].sum())
        factors = [math.exp(0.5 * noise() / math.sqrt(info)) for info in self.information[h]]
        gamma = np.minimum(self.examination[h] * np.c_[factors], 1)
        if h == PBM:
            return improve(row[:K], K, lambda row: gamma[:, 0] @ a[row])
        return improve(row[:K], K, lambda row: sum(clicks_of_browsing(a[row], gamma)))

    # ---------------------------------------------------------------------- learning from a session

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        session, last_click = [], 0  # without positions that were not shown
        for k, (item, click) in enumerate(zip(ranking, clicks, strict=True)):
            if click < 0:
                break
            session.append((k, last_click, item, click))
            last_click = k + 1 if click else last_click
        self.t += 1
        self.now += self.pace()
        a = self.attractions()
        b = self.examine(session, a)
        self.predict(session, a, b)
        if self.detect:
            self.compare(session, b[self.leader])
        for k, j, i, click in session:
            self.exposure[:, i] += b[:, k]
            self.total[i] += click
            self.clicks[i, k, j] += click
            self.displays[i, k, j] += 1
        if self.detect:
            for _, _, i, _ in session:
                self.judge(i)
        if self.t >= self.due:
            self.recent_exposure /= np.maximum(self.exposure[self.leader], 1e-9)
            self.fit_examination()
            self.fit_continuation(DBN)
            self.fit_continuation(DCM)
            self.fit_table()
            self.weigh()
            self.recent_exposure *= self.exposure[self.leader]
            self.due = self.t + 1 + int(0.005 * self.t)

    def examine(self, session: list, a: np.ndarray) -> np.ndarray:
        """Return the probabilities of examination by hypothesis and position; count for the DBN and
        the DCM.
        """
        b = np.zeros((5, self.n_positions))
        b[PBM] = self.examination[PBM, :, 0]
        rates = self.rates(a[TABLE], *self.law.T[:2])
        for k, j, i, _ in session:
            b[UBM, k] = self.examination[UBM, k, j]
            b[TABLE, k] = rates[i, k] / a[TABLE, i]
        for h, scan in self.scans.items():
            source, factor, power = 0, 1.0, 0.0
            for k, _, i, click in session:
                b[h, k] = scan.continuation[source] * factor
                scan.below[source, i] += factor
                scan.slope[source, i] += factor * power
                if click:
                    scan.clicks_below[source] += 1
                    scan.click_slope[i] += power
                    source, factor, power = 1 + (i if h == DBN else k), 1.0, 0.0
                else:
                    rest = max(1 - b[h, k] * a[h, i], LEAST)
                    factor *= scan.go_on * (1 - a[h, i]) / rest
                    power = min(1 + power / rest, 8)
        return b

    def predict(self, session: list, a: np.ndarray, b: np.ndarray) -> None:
        """Multiply the likelihoods of the session and of single clicks by their probabilities."""
        items = [i for _, _, i, _ in session]
        single = {UBM: list(clicks_of_browsing(a[UBM, items], self.examination[UBM]))}
        for h, scan in self.scans.items():
            stay = scan.continuation[[1 + (i if h == DBN else k) for k, i in enumerate(items)]]
            single[h] = list(clicks_of_scan(a[h, items], stay, scan.go_on))
        for k, _, i, click in session:
            p = np.tile(b[:, k] * a[:, i], (2, 1))
            for h, probabilities in single.items():
                p[1, h] = probabilities[k]
            p = clip(p) if click else 1 - clip(p)
            p[0, TABLE] = 1
            self.likelihood *= p
            self.add_evidence(self.likelihood < 1e-100)

    def add_evidence(self, cells: np.ndarray) -> None:
        """Move likelihoods into the evidence. The first sessions count little."""
        self.evidence[cells] += self.t / (self.t + 300) * np.log(self.likelihood[cells])
        self.likelihood[cells] = 1

    # ----------------------------------------------------------------------------- users who change

    def compare(self, session: list, b: np.ndarray) -> None:
        """Update the odds that the clicks in the window of an item have another probability."""
        for k, _, i, click in session:
            patience = self.pace() * (1 + self.recent_exposure[i])
            if self.odds[i] < 1 and self.now - self.seen[i] > patience:
                self.close(i, self.seen[i])
            self.seen[i] = self.now
            exposure = max(self.total[i], self.exposure[self.leader, i])
            recent = max(self.recent_clicks[i], self.recent_exposure[i])
            p = min(b[k] * (1 + self.total[i]) / (2 + exposure), 1 - LEAST)
            q = min(b[k] * (1 + self.recent_clicks[i]) / (2 + recent), 1 - LEAST)
            self.odds[i] *= q / p if click else (1 - q) / (1 - p)
            self.recent_clicks[i] += click
            self.recent_exposure[i] += b[k]

    def close(self, i: int, began: float) -> None:
        """Begin a new window."""
        self.recent_clicks[i] = self.recent_exposure[i] = 0
        self.odds[i], self.began[i] = 1, began

    def judge(self, i: int) -> None:
        """Close the window of an item if it shows no change, else forget what was before."""
        exposure = self.exposure[self.leader, i]
        if self.odds[i] < 0.05 or self.recent_exposure[i] > (0.5 + 1e-9) * exposure:
            self.close(i, self.now)
        elif (self.now - self.began[i]) * self.odds[i] > 1000:
            clicks = self.recent_clicks[i] / self.total[i] if self.total[i] else 0.0
            self.keep(i, clicks, self.recent_exposure[i] / exposure)
            if self.began[i] > self.last_change:
                self.n_changes += 1
                self.last_change = self.now
                self.began -= 1
                self.seen -= 1
                self.seen[i] = self.now
            self.close(i, self.now)

    def keep(self, i: int, clicks: float, displays: float) -> None:
        """Keep only these shares of the clicks on an item and of its displays."""
        for h, scan in self.scans.items():
            lost = (1 - clicks) * scan.continuation * scan.below[:, i] * self.attractions()[h, i]
            scan.clicks_below = np.maximum(scan.clicks_below - lost, 0)
            scan.below[:, i] *= displays
            scan.slope[:, i] *= displays
            scan.click_slope[i] *= clicks
        scan = self.scans[DBN]
        scan.below[1 + i] = scan.slope[1 + i] = scan.clicks_below[1 + i] = 0
        self.clicks[i] *= clicks
        self.total[i] *= clicks
        self.displays[i] *= displays
        self.exposure[:, i] *= displays

    # -------------------------------------------------------------------------------------- the fit

    def fit_examination(self) -> None:
        K, gamma = self.n_positions, self.examination
        self.information[:] = 0
        for k in range(K):
            self.fit_cell(PBM, k, slice(k + 1), gamma[PBM, k - 1, 0] if k else 1.0)
            self.fit_cell(UBM, k, slice(1), gamma[UBM, k - 1, 0] if k else 1.0)
        displays = self.displays[:, :, 1:].sum(axis=2)
        expected = self.profile(UBM) @ displays @ gamma[UBM, :, 0]
        ratio = (2 + self.clicks[:, :, 1:].sum()) / (2 + expected)
        for k in range(K):
            for j in range(1, k + 1):
                self.fit_cell(UBM, k, slice(j, j + 1), gamma[UBM, k, 0] * ratio)
        for h in (PBM, UBM):
            gamma[h] /= gamma[h].max()
            self.exposure[h] = (gamma[h] * self.displays).sum(axis=(1, 2))

    def fit_cell(self, h: int, k: int, cells: slice, prior: float) -> None:
        displays, clicks = self.displays[:, k, cells].sum(axis=1), self.clicks[:, k, cells].sum()
        gamma = self.examination[h, k, cells][0]
        expected = gamma * displays * self.profile(h)
        score = clicks - expected.sum() - 2 * math.log(gamma / prior)
        info = 2 + self.own(expected).sum()
        fitted = max(gamma * step(score, info, 0.5), 1e-6)
        self.information[h, k] += info
        self.examination[h, k, cells] = fitted
        self.exposure[h] = np.maximum(self.exposure[h] + (fitted - gamma) * displays, 0)

    def fit_continuation(self, h: int) -> None:
        scan, exposure = self.scans[h], self.exposure
        c, g, n = scan.continuation, scan.go_on, scan.continuation @ scan.below
        exposure[h] = n
        powers = scan.slope / np.where(scan.below > 0, scan.below, 1)
        p, squares = c @ scan.slope, c @ (scan.slope * powers)
        mean = p / np.where(n > 0, n, 1)
        score = (scan.click_slope - mean * self.total)[n > 0].sum() - 2 * math.log(g)
        info = 2 + self.profile(h) @ np.maximum(squares - mean * p, 0)
        expected = self.profile(h) @ scan.below[1:].sum(axis=0)
        prior = min((2 + scan.clicks_below[1:].sum()) / (4 + expected), 1)
        scan.go_on = min(max(g * step(score, info, 0.2), 0.05), 0.9999)
        scan.below *= (scan.go_on / g) ** powers
        scan.slope *= (scan.go_on / g) ** powers
        exposure[h] = c @ scan.below
        for x in range(1, len(c)):
            old, expected = c[x], c[x] * scan.below[x] * self.profile(h)
            score = scan.clicks_below[x] + 2 * (prior - old) - expected.sum()
            info = 2 * old + self.own(expected).sum()
            c[x] = min(max(old * step(score, info, 0.5), LEAST), 1)
            exposure[h] = np.maximum(exposure[h] + (c[x] - old) * scan.below[x], 0)

    def fit_table(self) -> None:
        clicks, displays = self.clicks.sum(axis=2), self.displays.sum(axis=2)
        self.by_trust, self.by_attraction = (displays @ self.law[:, :2]).T
        for k, (u, v) in enumerate(self.law[:, :2].tolist()):
            n, a = displays[:, k], self.law_attractions()
            w = n * np.maximum(1 - v * n / (self.by_attraction + 1.5), 0)
            error = clicks[:, k] - n * (u + v * a)
            y, x = error.sum() - 3 * u, error @ a + 3 * (self.examination[PBM, k, 0] - v)
            uu, uv, vv = 3 + w.sum(), w @ a, 3 + w @ (a * a)
            det = uu * vv - uv * uv
            du, dv = np.clip([(y * vv - x * uv) / det, (x * uu - y * uv) / det], -0.2, 0.2)
            dv = max(v + dv, 0.02) - v
            of_u = math.sqrt(0.2 * vv / det)
            self.law[k] = u + du, v + dv, of_u, -uv / vv * of_u, math.sqrt(0.2 / vv)
            self.by_trust += n * du
            self.by_attraction += n * dv
        self.exposure[TABLE] = np.maximum((self.total + 0.75) / self.law_attractions() - 1.5, 0)

    def weigh(self) -> None:
        self.add_evidence(np.full((2, 5), True))
        session, single = self.evidence
        session[TABLE] = session[PLAIN].max() + (single[TABLE] - single[PLAIN].max()) - 1
        self.leader = int(session.argmax())
        self.evidence -= self.evidence.max(axis=1, keepdims=True)
        self.evidence *= 1 - 0.0015
        share = np.maximum(np.exp(self.evidence[0]), 0.1 * self.t ** (-2 / 3))
        self.share = share / share.sum()


def improve(row: list[int], n_shown: int, value: Callable[[list[int]], float]) -> list[int]:
    """Return the first items of a row after exchanges that increase their value."""
    best = value(row[:n_shown])
    pairs = [(x, y) for x in range(n_shown) for y in range(x + 1, len(row))]
    for x, y in 2 * pairs:
        changed = row.copy()
        changed[x], changed[y] = row[y], row[x]
        if value(changed[:n_shown]) > best + 1e-9:
            row, best = changed, value(changed[:n_shown])
    return row[:n_shown]


def clicks_of_browsing(a: np.ndarray, gamma: np.ndarray):
    """Yield the probability of a click on every position in the UBM."""
    mass = np.zeros(len(a) + 1)  # by the last click
    mass[0] = 1
    for k, attraction in enumerate(a):
        clicked = mass[: k + 1] * attraction * gamma[k, : k + 1]
        mass[: k + 1] -= clicked
        mass[k + 1] = clicked.sum()
        yield mass[k + 1]


def clicks_of_scan(a: np.ndarray, stay: Sequence[float], go_on: float):
    """Yield the probability of a click on every position in the DBN or the DCM."""
    examined = 1.0
    for attraction, c in zip(a, stay, strict=True):
        yield examined * attraction
        examined *= attraction * c + (1 - attraction) * go_on
