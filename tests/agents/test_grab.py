"""GRAB and S-GRAB: the assignment problem against SciPy, the leader and its counts, indices, and
the reference.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from reference_agents import MODELS, follow, plain, reference_of
from scipy.optimize import linear_sum_assignment
from scipy.stats import chisquare
from slow import slow

import clickgym
from clickgym.agents import GRAB, grab
from clickgym.agents.assignment import ROUNDING, assign, lead
from clickgym.agents.kernels import kl_upper
from clickgym.agents.leaders import enter_all
from clickgym.envs import CascadeModel, ClickEnv, PositionBasedModel

# --------------------------------------------------------------------------- the assignment problem


def assigned(weight, order):
    n_items, n_positions = weight.shape
    chosen = np.full(n_positions, -1)
    assign(weight, order, chosen, np.empty((3, n_items + 1)), np.empty((3, n_items + 1), np.int64))
    return chosen


def matrices(n, seed, most=7):
    """Random weights, of which a half are quotients of small numbers, so that there are ties."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        n_items = int(rng.integers(1, most + 1))
        shape = n_items, int(rng.integers(1, n_items + 1))
        tied = rng.integers(0, 3, shape) / rng.integers(2, 4)
        yield (tied if rng.random() < 0.5 else rng.random(shape)), rng.permutation(n_items)


def test_assignments_are_as_good_as_those_of_scipy():
    for weight, order in matrices(10_000, 1):
        chosen = assigned(weight, order)
        assert len(set(chosen.tolist())) == len(chosen)
        assert weight[chosen, range(len(chosen))].sum() == pytest.approx(
            weight[linear_sum_assignment(weight, True)].sum()
        )


def test_large_assignments_are_as_good_as_those_of_scipy():
    rng = np.random.default_rng(2)
    for _ in range(30):
        weight = rng.integers(0, 20, (100, 10)) / 20
        chosen = assigned(weight, rng.permutation(100))
        assert weight[chosen, range(10)].sum() == pytest.approx(
            weight[linear_sum_assignment(weight, True)].sum()
        )


def test_which_of_several_best_assignments_does_not_depend_on_ids():
    for weight, order in matrices(300, 3):
        names = np.random.default_rng(4).permutation(len(order))
        renamed = np.empty_like(weight)
        renamed[names] = weight
        assert names[assigned(weight, order)].tolist() == assigned(renamed, names[order]).tolist()


@pytest.mark.parametrize(
    "weight", [[[0.1, 0.3], [0.0, 0.2]], [[0.3, 0.1], [0.2, 0.0]]], ids=["0.1 + 0.2", "0.2 + 0.1"]
)
def test_assignments_that_tie_but_for_rounding_are_drawn_with_equal_probability(weight):
    """Null: over random orders of the items each has probability 1/2; 2,000 orders, false alarm in
    one of 10⁵ cases.
    """
    rng = np.random.default_rng(18)
    counts = Counter(
        tuple(assigned(np.array(weight), rng.permutation(2)).tolist()) for _ in range(2000)
    )
    assert set(counts) == {(0, 1), (1, 0)}
    assert chisquare(list(counts.values())).pvalue > 1e-5


def test_an_item_that_two_positions_want_by_the_same_amount_goes_to_the_first():
    """If the sums are equal to the last bit."""
    weight = np.array([[0.25, 0.5], [0.0, 0.25]])
    assert [assigned(weight, np.array(order)).tolist() for order in permutations(range(2))] == [
        [0, 1],
        [0, 1],
    ]


def test_the_lead_of_a_list_is_measured_by_all_others():
    """Against the second best by brute force; of lists that are best and of others, which are
    behind.
    """
    rng = np.random.default_rng(5)
    for weight, order in matrices(600, 6, most=5):
        n_items, n_positions = weight.shape
        values = {
            r: weight[list(r), range(n_positions)].sum()
            for r in permutations(range(n_items), n_positions)
        }
        for chosen in (assigned(weight, order), rng.permutation(n_items)[:n_positions]):
            place_of = np.full(n_items, -1)
            place_of[chosen] = range(n_positions)
            ahead = lead(weight, chosen, place_of, np.empty((n_positions + 1, n_positions + 1)))
            own = values.pop(tuple(chosen.tolist()))
            expected = own - max(values.values(), default=-math.inf)
            values[tuple(chosen.tolist())] = own
            if expected > -ROUNDING:  # a tie, or ahead
                assert ahead == pytest.approx(expected, abs=1e-12)
            else:
                assert ahead < 0


# --------------------------------------------------------------------------------------- the leader


@pytest.mark.parametrize("horizon", [None, *slow(1000)])
def test_lists_are_the_same_without_the_certificate(horizon):
    """A leader that is never certain is solved for in each session, from the same random
    numbers.
    """
    certain = 0
    for model in (
        MODELS["PBM"],
        CascadeModel([0.5] * 6, 2),
        PositionBasedModel([0.0, 1.0, 1.0, 0.5], [1.0, 1.0, 0.5]),
    ):
        agent, other = (
            GRAB(model.n_items, model.n_positions, horizon=horizon, seed=7) for _ in range(2)
        )
        rng = np.random.default_rng(8)
        for _ in range(1500):
            certain += grab.is_certain(agent.state)
            other.state.ahead[0] = -np.inf
            ranking = agent.rank(None)
            np.testing.assert_array_equal(ranking, other.rank(None))
            clicks = model.sample(ranking, rng)
            agent.update(None, ranking, clicks)
            other.update(None, ranking, clicks)
        assert agent.rng.bit_generator.state == other.rng.bit_generator.state
    assert certain > 1000, "the certificate holds in many sessions"


def test_leaders_that_tie_take_turns_at_random():
    agent, leaders = GRAB(4, 2, seed=0), Counter()
    for _ in range(600):
        agent.update(None, agent.rank(None), [0, 0])
        leaders[tuple(agent.state.leader.tolist())] += 1
    assert len(leaders) == 12
    assert min(leaders.values()) > 20


def test_leaders_that_tie_but_for_rounding_take_turns_at_random():
    """Means .1 .3 / 0 .2, of which the sums .1 + .2 and .3 + 0 differ by 6e-17. Null: each leads
    with probability 1/2; 400 agents, false alarm in one of 10⁵ cases.
    """
    counts = Counter()
    for seed in range(400):
        agent = GRAB(2, 2, horizon=100, seed=seed)
        agent.state.shown[...], agent.state.clicks[...] = 10, [[1, 3], [0, 2]]
        agent.state.mean[...] = agent.state.clicks / 10
        agent.rank(None)
        counts[tuple(agent.state.leader.tolist())] += 1
    assert set(counts) == {(0, 1), (1, 0)}
    assert chisquare(list(counts.values())).pvalue > 1e-5


@pytest.mark.parametrize("engine", ["compiled", "python"])
def test_counts_of_leaders_survive_growth(engine):
    """Clicks that tell nothing, so that far more lists lead than there is room for at first; in
    chunks and one by one.
    """
    model = PositionBasedModel([0.02] * 7, [1.0] * 5)
    whole = GRAB(7, 5, horizon=10, seed=9)
    clickgym.run(whole, ClickEnv(model), 1500, seed=10, engine=engine)
    counts = Counter()

    class Counting(GRAB):
        def update(self, *session):
            counts[tuple(self.state.leader.tolist())] += 1
            super().update(*session)

    counting = Counting(7, 5, horizon=10, seed=9)
    clickgym.run(counting, ClickEnv(model), 1500, seed=10)
    for agent in (whole, counting):
        n, state = agent.state.n_leaders[0], agent.state
        found = dict(
            zip(map(tuple, state.leaders[:n].tolist()), state.led[:n].tolist(), strict=True)
        )
        assert {leader: led for leader, led in found.items() if led} == counts
        assert 64 < n <= len(state.led)
        assert sorted(state.slots[state.slots >= 0].tolist()) == list(range(n))
    assert plain(whole.state) == plain(counting.state)


def test_leaders_in_a_crowded_table_are_told_apart():
    """All of one number, or all that differ in one, in half of the slots, so that many meet."""
    for size in (1, 3):
        leaders = np.zeros((64, size), np.int32)
        for place in range(size):
            leaders[place::size, place] = range(1, len(leaders[place::size]) + 1)
        slots = np.full(128, -1, np.int32)
        enter_all(slots, leaders, 64)
        assert sorted(slots[slots >= 0].tolist()) == list(range(64))


def test_lists_of_equal_indices_are_drawn_at_random_the_leader_among_them():
    """Null: the second time that a leader leads, without a horizon, all indices are 1: three lists
    of one; 3,000 sessions.
    """
    agent = GRAB(3, 1, gamma=2, seed=17)
    agent.state.clicks[...], agent.state.shown[...], agent.state.mean[...] = (
        [[0], [1], [0]],
        1,
        [[0], [1], [0]],
    )
    agent.rank(None)
    counts = Counter()
    for _ in range(3000):
        agent.state.led[agent.state.leading[0]] = 1
        counts[int(agent.rank(None)[0])] += 1
    assert agent.state.leader.tolist() == [1]
    assert len(counts) == 3
    assert chisquare(list(counts.values())).pvalue > 1e-5


def test_gamma_counts_the_neighbours():
    assert [GRAB(n, 1, seed=0).state.gamma for n in (1, 2, 10)] == [1, 1, 9]


# -------------------------------------------------------------------------------------- the indices


def test_indices_from_a_value_near_them_are_exact():
    rng = np.random.default_rng(13)
    cases = [
        (2 / 3, math.log(1e7) / 6, 1 - 1e-8),
        (0.5, 1e-6, 0.5 + 1e-12),
        (0.999, 5.0, 0.9991),
        (1e-9, 1e-3, 0.5),
    ]
    cases += [
        (p, b, p + (1 - p) * q)
        for p, b, q in zip(
            rng.random(3000), rng.exponential(0.1, 3000), rng.random(3000), strict=True
        )
    ]
    for p, bound, q in cases:
        near = (
            kl_upper(p, bound * rng.choice([0.999999, 1.0, 1.01])) if q < p + 0.5 * (1 - p) else q
        )
        minus_entropy = p * math.log(p) + (1 - p) * math.log1p(-p)
        assert grab.kl_upper_near(p, minus_entropy, bound, near) == pytest.approx(
            kl_upper(p, bound), rel=0, abs=1e-11
        )


# ------------------------------------------------------------------------------------ the reference


@pytest.mark.parametrize("horizon", [None, *slow(1000)])
def test_it_follows_the_reference(horizon):
    agent = GRAB(5, 3, horizon=horizon, seed=14)
    follow(agent, reference_of(agent), MODELS["PBM"], 1200)


def test_without_a_horizon_a_leader_that_has_led_twice_allows_everything():
    agent = GRAB(5, 3, gamma=2, seed=15)
    follow(agent, reference_of(agent), MODELS["CM"], 300)


def test_gamma_of_the_authors_runs_follows_the_reference():
    agent = GRAB(5, 2, gamma=10, seed=16)
    follow(
        agent, reference_of(agent), PositionBasedModel([0.2, 0.7, 0.1, 0.5, 0.3], [0.4, 0.9]), 500
    )
