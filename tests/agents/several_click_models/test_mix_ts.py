"""Tests of MixTS: its reference in plain Python, its draws, its handling of changes, and the lists
it finds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest, kstest

import clickgym
from clickgym.agents import MixTS
from clickgym.agents.several_click_models.mix_ts import DBN, DCM, PBM, UBM
from clickgym.envs import ClickEnv, DynamicBayesianModel, PositionBasedModel
from tests.helpers.slow import slow
from tests.reference_agents.following import follow
from tests.reference_agents.models import MODELS
from tests.reference_agents.reference import Reference

pytestmark = pytest.mark.uncompiled

SCANS = DBN, DCM


def clip(p):
    return np.clip(p, 1e-4, 1 - 1e-4)


class MixTSReference(Reference):
    """MixTS, written from the pseudo-code: it works with whole lists of (position, context, item,
    click), and with arrays by context and item that serve as one table per model.
    """

    def __init__(self, L: int, K: int) -> None:
        self.L, self.K, self.t, self.next_fit = L, K, 0, 0
        self.sizes = {PBM: K, UBM: K * (K + 1) // 2, DBN: L + 1, DCM: K + 1}
        self.c = {h: np.ones(n) for h, n in self.sizes.items()}
        self.information = {h: np.full(n, 2.0) for h, n in self.sizes.items()}
        self.go_on, self.score, self.about_g = np.full(4, 0.95), np.zeros(4), np.full(4, 2.0)
        self.power, self.power_weight = np.zeros((2, 4, L))
        self.evidence, self.share, self.leader = np.zeros(4), np.full(4, 0.25), PBM
        self.forget()

    def forget(self) -> None:
        self.t = self.next_fit = 0
        self.total, self.exposure = np.zeros(self.L), np.zeros((4, self.L))
        self.clicks = {h: np.zeros(n) for h, n in self.sizes.items()}
        self.displays = {h: np.zeros((n, self.L)) for h, n in self.sizes.items()}
        self.recent_clicks, self.recent_exposure = np.zeros((2, self.L))
        self.odds, self.calm = np.ones(self.L), np.zeros(self.L)

    def context(self, h: int, k: int, j: int, item: int) -> int:
        """The context of position k, after a click on an item at position j, counted from 1 (0: no
        click).
        """
        return {PBM: k, UBM: k * (k + 1) // 2 + j, DBN: 1 + item if j else 0, DCM: j}[h]

    # ----------------------------------------------------------------------------------- the list

    def allows(self, ranking, drawn: Any = None, features: Any = None) -> bool:
        """Check whether the list fits what was drawn, or differs from the fitting list by one
        exchange of two positions.
        """
        h, a = drawn.model[0], drawn.drawn_attraction
        begin = sum(self.sizes[other] for other in range(h))
        c = drawn.drawn_examination[begin : begin + self.sizes[h]]
        row = self.best_row(h, a, c)
        differ = [k for k in range(self.K) if ranking[k] != row[k]]
        return len(differ) in (0, 2) and set(ranking) == set(row)

    def best_row(self, h: int, a, c) -> list[int]:
        """The list for these attractions and c, after all exchanges that gain clicks."""
        row = np.argsort(-a, kind="stable")[: 2 * self.K if h in SCANS else self.K].tolist()
        a, c = clip(a).tolist(), c.tolist()  # Python computes with single floats faster than NumPy
        best = self.expected_clicks(h, row[: self.K], a, c)
        pairs = [(x, y) for x in range(self.K) for y in range(x + 1, len(row))]
        for x, y in 2 * pairs:
            other = row.copy()
            other[x], other[y] = row[y], row[x]
            value = self.expected_clicks(h, other[: self.K], a, c)
            if value > best + 1e-9:
                row, best = other, value
        return row[: self.K]

    def lists(self, rng, n, agent, features) -> list[list[int]]:
        return [self.draw(rng) for _ in range(n)]

    def draw(self, rng) -> list[int]:
        h = rng.choice(4, p=self.share)
        s, size = self.total, np.maximum(self.total, self.exposure[h])
        if h == self.leader:
            odds = 1e-3 * (1 - self.calm / (self.t + 1)) * np.maximum(self.odds, 1)
            has_changed = rng.random(self.L) < odds / (1 + odds)
            recent = np.where(self.odds > 1, [self.recent_clicks, self.recent_exposure], 0)
            s = np.where(has_changed, recent[0], s)
            size = np.where(has_changed, np.maximum(*recent), size)
        sharp = (size + 1.5) * (1 + s / (s + 20))
        angle = np.arcsin(np.sqrt((s + 0.75) / (size + 1.5)))
        angle += np.arctan(rng.standard_normal(self.L) / 2 / np.sqrt(sharp))
        c = self.c[h] * np.exp(
            rng.standard_normal(self.sizes[h]) / 2 / np.sqrt(self.information[h])
        )
        c = np.append(1.0, np.minimum(c, 1.0)[1:])
        row = self.best_row(h, np.sin(np.clip(angle, 0, np.pi / 2)) ** 2, c)
        if rng.random() < self.exploration():
            x, y = rng.choice(self.K, 2, replace=False)
            row[x], row[y] = row[y], row[x]
        return row

    def expected_clicks(self, h: int, row, a, c) -> float:
        if h == PBM:
            return sum(c[k] * a[i] for k, i in enumerate(row))
        if h in SCANS:
            value = 0.0
            for k in reversed(range(self.K)):
                i = row[k]
                onward = a[i] * c[self.context(h, k, k + 1, i)] + (1 - a[i]) * self.go_on[h]
                value = a[i] + onward * value
            return value
        last, total = {0: 1.0}, 0.0  # the probabilities of the last click
        for k, i in enumerate(row):
            clicked = {j: p * a[i] * c[self.context(UBM, k, j, 0)] for j, p in last.items()}
            last = {j: p - clicked[j] for j, p in last.items()} | {k + 1: sum(clicked.values())}
            total += last[k + 1]
        return total

    # -------------------------------------------------------------------------------- the session

    def learn(self, ranking, clicks) -> None:
        shown = [(k, i, c) for k, (i, c) in enumerate(zip(ranking, clicks, strict=True)) if c >= 0]
        self.t += 1
        examined = np.zeros((4, self.K))
        for h in self.sizes:
            self.follow_user(h, shown, examined[h])
        changed = self.compare(shown, examined[self.leader])
        for _, i, click in shown:
            self.total[i] += click
        if changed:
            self.forget()
        elif self.t >= self.next_fit:
            for h in self.sizes:
                self.fit(h)
            self.weigh()
            self.next_fit = self.t + 1 + int(0.005 * self.t)

    def follow_user(self, h: int, shown, examined) -> None:
        j, last, f, power, likelihood = 0, -1, 1.0, 0.0, 1.0
        for k, i, click in shown:
            x = self.context(h, k, j, last)
            size = max(self.total[i], self.exposure[h, i])
            a = (self.total[i] + 0.75) / (size + 1.5)
            examined[k] = self.c[h][x] * f
            p = clip(examined[k] * a)
            likelihood *= p if click else 1 - p
            self.exposure[h, i] += examined[k]
            self.displays[h][x, i] += f
            self.clicks[h][x] += click
            if h in SCANS:
                more = power - self.power[h, i] / max(self.power_weight[h, i], 1e-4)
                self.score[h] += (click - p) * more
                self.about_g[h] += p * more**2
                self.power[h, i] += examined[k] * power
                self.power_weight[h, i] += examined[k]
            if click:
                j, last, f, power = k + 1, i, 1.0, 0.0
            elif h in SCANS:
                f *= self.go_on[h] * (1 - a) / (1 - p)
                power = min(1 + power / (1 - p), 8)
        self.evidence[h] += math.log(likelihood)

    def compare(self, shown, examined) -> bool:
        changed = False
        for k, i, click in shown:
            exposure = self.exposure[self.leader, i]
            if self.odds[i] < 1 and self.t - self.calm[i] > 1 + self.recent_exposure[i]:
                self.recent_clicks[i], self.recent_exposure[i], self.odds[i] = 0, 0, 1
            recent = max(self.recent_clicks[i], self.recent_exposure[i])
            p = clip(examined[k] * (1 + self.total[i]) / (2 + max(self.total[i], exposure)))
            q = clip(examined[k] * (1 + self.recent_clicks[i]) / (2 + recent))
            self.odds[i] *= q / p if click else (1 - q) / (1 - p)
            self.recent_clicks[i] += click
            self.recent_exposure[i] += examined[k]
            changed |= self.odds[i] > 1e8
            if self.odds[i] < 1:
                self.calm[i] = self.t
            if self.odds[i] < 0.05 or self.recent_exposure[i] > 0.5005 * exposure:
                self.recent_clicks[i], self.recent_exposure[i], self.odds[i] = 0, 0, 1
        return changed

    # ------------------------------------------------------------------------------------ the fit

    def attractions(self, h: int) -> np.ndarray:
        return (self.total + 0.75) / (self.exposure[h] + 1.5)

    def fit(self, h: int) -> None:
        before = np.maximum(self.exposure[h], 1e-4)
        c, displays, clicks = self.c[h], self.displays[h], self.clicks[h]
        self.exposure[h] = c @ displays
        expected = 2 + (displays[1:] @ self.attractions(h)).sum()
        prior = min((2 + clicks[1:].sum()) / expected, 1)
        for x in range(1, len(c)):
            if not displays[x].any():
                c[x], self.information[h][x] = prior, 2
                continue
            old, w = c[x], c[x] * displays[x] * self.attractions(h)
            own = w * np.maximum(1 - w / (self.total + 0.75), 0)
            self.information[h][x] = 2 * old + own.sum()
            score = clicks[x] + 2 * (prior - old) - w.sum()
            step = np.clip(score / self.information[h][x], -0.5, 0.5)
            c[x] = min(max(old * math.exp(step), 1e-4), 1)
            self.exposure[h] = np.maximum(self.exposure[h] + (c[x] - old) * displays[x], 0)
        if h in SCANS:
            step = math.exp(np.clip(self.score[h] / self.about_g[h], -0.2, 0.2))
            self.go_on[h], self.score[h] = min(max(self.go_on[h] * step, 0.05), 1 - 1e-4), 0.0
        if h == self.leader:
            self.recent_exposure = self.recent_exposure / before * self.exposure[h]

    def weigh(self) -> None:
        self.leader = int(np.argmax(self.evidence > self.evidence.max() - 1e-9))
        self.evidence -= self.evidence[self.leader]
        share = np.maximum(np.exp(self.evidence), self.exploration())
        self.share = share / share.sum()

    def exploration(self) -> float:
        return 0.3 * (self.t + 1) ** (-2 / 3)

    def holds(self) -> dict[str, Any]:
        names = ("total", "exposure", "share", "power", "power_weight")
        windows = ("recent_clicks", "recent_exposure", "odds", "calm")
        return {name: getattr(self, name) for name in (*names, *windows)} | {
            "t": [self.t, self.next_fit],
            "leader": [self.leader],
            "go_on": self.go_on,
            "slope": np.transpose([self.score, self.about_g]),
            "clicks": np.concatenate([*self.clicks.values()]),
            "displays": np.concatenate([*self.displays.values()]),
            "examination": np.concatenate([*self.c.values()]),
            "information": np.concatenate([*self.information.values()]),
        }


@pytest.mark.parametrize("kind", ["PBM", "DBN", "DCM"])
def test_in_models_that_it_weighs(kind):
    follow(MixTS(5, 3, seed=3), MixTSReference(5, 3), MODELS[kind], 300)


def test_chance_where_all_is_known():
    """Null: (1) two positions are exchanged in a fraction 0.3 (t + 1)^(-2/3) of the lists; (2)
    items that nobody saw for half of the time, and whose clicks make a change 30 times as likely as
    no change, are drawn as new with odds of 0.001 / 2 times 30; (3) log c is drawn with half the
    standard deviation of its posterior. The test plays 8 sessions and uses binomial and
    Kolmogorov-Smirnov tests with false-alarm rates of 1e-5.
    """
    agent, attraction = MixTS(5, 3, seed=4), np.array([0.9, 0.7, 0.5, 0.3, 0.1])
    state, n, n_new, n_same, n_exchanged = agent.state, 3000, 0, 0, 0
    state.t[0], state.calm[:], state.odds[:] = 7, 4, 30.0
    state.exposure[:], state.total[:], state.information[:] = 1e9, 1e9 * attraction, 400.0
    state.share[:], state.examination[:3] = [1, 0, 0, 0], [1.0, 0.6, 0.3]
    examinations = []
    for _ in range(n):
        ranking = agent.rank()
        examinations.append(state.drawn_examination[1:3].copy())
        is_new = np.abs(state.drawn_attraction - attraction) > 1e-3
        n_new += is_new.sum()
        if not is_new.any():
            n_same += 1
            n_exchanged += ranking.tolist() != [0, 1, 2]
    assert binomtest(n_exchanged, n_same, 0.3 * 8 ** (-2 / 3)).pvalue > 1e-5
    assert binomtest(n_new, 5 * n, 0.015 / 1.015).pvalue > 1e-5
    noise = np.log(np.array(examinations) / [0.6, 0.3]) / (0.5 / np.sqrt(400.0))
    assert kstest(noise.ravel(), "norm").pvalue > 1e-5


def test_users_who_change():
    """The clicks of users who change are forgotten once, after the change."""
    before = PositionBasedModel([0.05, 0.95, 0.1, 0.6, 0.3], [1.0, 0.6, 0.3])
    after = PositionBasedModel([0.95, 0.05, 0.9, 0.4, 0.7], [1.0, 0.6, 0.3])
    agent, reference = MixTS(5, 3, seed=3), MixTSReference(5, 3)
    follow(agent, reference, lambda session: after if session >= 300 else before, 600)
    assert 200 < agent.state.t[0] < 300


@pytest.mark.slow
@pytest.mark.compiled
def test_is_not_locked():
    """Where the most attractive items satisfy least, the final list still gets 98 % of the clicks
    of the best list. Fixed seeds.
    """
    a = np.array([0.9, 0.15, 0.7, 0.35, 0.55, 0.8, 0.25, 0.45, 0.6, 0.1])
    model = DynamicBayesianModel(a, 0.95 - 0.9 * a, 0.9, n_positions=5)
    most = model.expected_reward(model.optimal_ranking())
    for seed in range(3):
        agent = MixTS(model.n_items, model.n_positions, seed=seed)
        clickgym.run(agent, ClickEnv(model), 10_000, seed=seed)
        assert model.expected_reward(agent.best()) > 0.98 * most


@pytest.mark.compiled
@pytest.mark.parametrize("kind", ["PBM", *slow("UBM", "DBN", "DCM")])
def test_beliefs(kind):
    """The users' true model gets the largest weight, and nothing is forgotten as long as the users
    stay the same. Fixed seed.
    """
    agent = MixTS(10, 5, seed=2)
    clickgym.run(agent, f"{kind}Rank-v0", 10_000, seed=2)
    beliefs = agent.beliefs()
    assert agent.state.t[0] == 10_000
    assert sum(beliefs.values()) == pytest.approx(1.0)
    assert max(beliefs, key=beliefs.get) == kind
