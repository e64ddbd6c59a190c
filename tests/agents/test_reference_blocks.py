"""The pieces of the slow references that can be checked by another formulation, by brute force or by what is known of them.

References play against themselves here: lists and draws are made from what the reference allows. Each other reading of an
algorithm must be told apart in such a play, or its keyword argument is none.
"""

from __future__ import annotations

import math
from itertools import pairwise, permutations, product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_agents import (
    GRADED_USERS,
    MODELS,
    CascadeReference,
    GLRReference,
    GRABReference,
    PBMHBReference,
    PDGDReference,
    SGRABReference,
    UniRankReference,
)
from reference_agents.detection import GLR_READINGS, glr_statistics
from reference_agents.posterior import PDGD_READINGS, log_probability
from reference_agents.unimodal import GRAB_READINGS, UNIRANK_READINGS, parts_of
from scipy.stats import binom, chisquare, ks_1samp

from clickgym.envs import CascadeModel, PositionBasedModel

FALSE_ALARM = 1e-5


long_play = pytest.mark.slow
"""Of references that play by themselves: what they test are the references, which an edit of the package does not change."""


def state_of(reference, **drawn):
    """What an agent's state would hold."""
    return SimpleNamespace(**{name: np.asarray(value) for name, value in (reference.holds() | drawn).items()})


def play(reference, draw, others, model, sessions, seed=1):
    """Play a reference by its own choices; the names of the others that were in its state all the time, and the lists."""
    rng = np.random.default_rng(seed)
    agreed, lists = set(others), []
    for _ in range(sessions):
        ranking, drawn, features = draw(reference, rng)
        clicks = (model(len(lists)) if callable(model) else model).sample(np.asarray(ranking), rng).tolist()
        state = state_of(reference, **drawn)
        assert reference.allows(ranking, state, features)
        agreed = {name for name in agreed if others[name].allows(ranking, state, features)}
        reference.learn(ranking, clicks)
        state = state_of(reference, **drawn)
        assert reference.agrees(state)
        for name in agreed:
            others[name].learn(ranking, clicks)
        agreed = {name for name in agreed if others[name].agrees(state)}
        lists.append(tuple(ranking))
    return agreed, lists


def one_of(values, rng):
    values = sorted(values)
    return values[rng.integers(len(values))]


# --------------------------------------------------------------------------------------------------------- GRAB, S-GRAB


def draw_grab(reference, rng):
    leader = one_of(reference.leaders(), rng)
    return one_of(reference.choices(leader), rng), {"leader": leader}, None


def counted(kind, rng, n_items, n_positions, most=4):
    reference = kind(n_items, n_positions)
    reference.shown = rng.integers(0, most, (n_items, n_positions))
    reference.clicks = rng.integers(0, reference.shown + 1)
    return reference


@pytest.mark.parametrize("seed", range(20))
def test_the_leaders_are_the_lists_of_largest_value(seed):
    rng = np.random.default_rng(seed)
    n_items = int(rng.integers(1, 6))
    reference = counted(GRABReference, rng, n_items, int(rng.integers(1, n_items + 1)))
    values = {ranking: reference.value(ranking) for ranking in permutations(range(n_items), reference.n_positions)}
    best = {ranking for ranking, value in values.items() if value > max(values.values()) - 1e-9}
    assert set(reference.leaders()) == best


def test_a_greedy_leader_is_not_the_best():
    """Means .9 .8 / .8 0: the largest mean first leaves 0 for the other item."""
    reference, greedy = GRABReference(2, 2), GRABReference(2, 2, greedy=True)
    for each in (reference, greedy):
        each.shown[...] = 10
        each.clicks[...] = [[9, 8], [8, 0]]
    assert reference.leaders() == [(1, 0)]
    assert greedy.leaders() == [(0, 1)]


@pytest.mark.parametrize("n_items", range(1, 7))
def test_how_many_neighbours_a_leader_has(n_items):
    for n_positions in range(1, n_items + 1):
        leader, order = tuple(range(n_positions)), tuple(range(n_positions))
        grab, s_grab = GRABReference(n_items, n_positions), SGRABReference(n_items, n_positions)
        one_apart = [
            ranking
            for ranking in permutations(range(n_items), n_positions)
            if (differ := [k for k in range(n_positions) if ranking[k] != leader[k]])
            and (len(differ) == 1 or (len(differ) == 2 and set(ranking) == set(leader)))
        ]
        assert set(s_grab.neighbours(leader, order)) == set(one_apart)
        assert set(grab.neighbours(leader, order)) <= set(one_apart)
        assert len(set(grab.neighbours(leader, order))) == n_items - 1
        assert (grab.gamma, s_grab.gamma) == (max(n_items - 1, 1), len(one_apart) + 1)


def climbs(reference):
    """Whether every list that may not lead has a better neighbour, whatever the order of positions with equal means."""
    for ranking in permutations(range(reference.n_items), reference.n_positions):
        for order in reference.orders(ranking):
            neighbours = reference.neighbours(ranking, order)
            best = max(map(reference.value, neighbours), default=-math.inf)
            if not reference.may_lead(ranking) and best <= reference.value(ranking) + 1e-9:
                return False
    return True


@pytest.mark.parametrize("kind", [GRABReference, SGRABReference])
def test_the_value_climbs_to_the_best_list_in_a_position_based_model(kind):
    """What makes the problem unimodal; the neighbours of a plain order of positions, or at the last one, are too few."""
    rng = np.random.default_rng(3)
    readings = [{}, {"by_mean": False}, {"weakest_replaced": False}]
    outcomes = []
    for reading in readings:
        found = []
        for _ in range(15):
            reference = kind(4, 3, **reading)
            reference.shown[...] = 10**9
            reference.clicks = np.outer(rng.permutation([0.9, 0.6, 0.3, 0.1]), rng.permutation([1.0, 0.7, 0.4])) * 1e9
            found.append(climbs(reference))
        outcomes.append(all(found))
    assert outcomes == ([True, False, False] if kind is GRABReference else [True, True, True])


def test_a_leader_is_shown_the_first_time_and_every_gamma_th():
    """No clicks, L = 4 and γ = 3: the leader's turn is its first, fourth, ... session, also where others led between."""
    reference, rng = GRABReference(4, 2), np.random.default_rng(4)
    times = {}
    for _ in range(60):
        ranking, drawn, _ = draw_grab(reference, rng)
        times.setdefault(drawn["leader"], []).append(ranking == drawn["leader"])
        assert reference.allows(ranking, state_of(reference, **drawn))
        reference.learn(ranking, [0, 0])
    assert len(times) == 12
    assert all(all(shown[::3]) for shown in times.values())
    assert not all(map(all, times.values()))


@long_play
@pytest.mark.parametrize("horizon", [None, 1000])
def test_each_other_reading_of_grab_is_told_apart(horizon):
    def references(kind, readings):
        return {name: kind(5, 3, **{"horizon": horizon, **arguments}) for name, arguments in readings.items()}

    readings = GRAB_READINGS | {"the other level": {"horizon": 1000 if horizon is None else None}}
    agreed, _ = play(GRABReference(5, 3, horizon), draw_grab, references(GRABReference, readings), MODELS["PBM"], 500)
    assert not agreed
    of_both = {name: reading for name, reading in readings.items() if not {"by_mean", "weakest_replaced"} & reading.keys()}
    others = references(SGRABReference, of_both) | {"GRAB": GRABReference(5, 3, horizon), "γ": SGRABReference(5, 3, horizon, 9)}
    agreed, _ = play(SGRABReference(5, 3, horizon), draw_grab, others, MODELS["PBM"], 700)
    assert not agreed


@long_play
@pytest.mark.parametrize("kind", [GRABReference, SGRABReference])
def test_grab_finds_the_best_list(kind):
    model = PositionBasedModel([0.1, 0.9, 0.5], [0.4, 1.0])
    _, lists = play(kind(3, 2, 1500), draw_grab, {}, model, 1500)
    assert lists[-300:].count((2, 1)) > 150


# --------------------------------------------------------------------------------------------------------------- UniRank


def draw_unirank(reference, rng):
    partition = reference.leader()
    displayed = one_of(map(by_size, reference.explorations(partition)), rng)
    shown = np.full(reference.n_items, len(displayed))
    for p, part in enumerate(displayed):
        shown[list(part)] = p
    ranking = [item for part in displayed for item in rng.permutation(part).tolist()][: reference.n_positions]
    leader = [next(p for p, part in enumerate(partition) if item in part) for item in range(reference.n_items)]
    return ranking, {"part": leader, "shown_part": shown}, None


def by_size(parts):
    return tuple(tuple(sorted(part)) for part in parts)


def sessions_of(reference, sums):
    """Fill in what was compared, of (i, j): (Σ c_i - c_j, n_ij)."""
    for (i, j), (difference, n) in sums.items():
        reference.difference[i, j], reference.difference[j, i] = difference, -difference
        reference.compared[i, j] = reference.compared[j, i] = n
    return reference


@given(st.integers(1, 6), st.integers(0, 2**32 - 1), st.integers(1, 5000))
def test_the_leader_partition_is_a_peeling_of_who_surely_loses(n_items, seed, t):
    """Second formulation: j surely beats i if D_ij < 0 and D_ij² > n log log(t + 3); layer by layer those beaten by nobody."""
    rng = np.random.default_rng(seed)
    reference = UniRankReference(n_items, n_items)
    reference.t = t
    n = np.triu(rng.integers(0, 30, (n_items, n_items)), 1)
    d = n - 2 * rng.binomial(n, rng.choice([0.1, 0.5, 0.9]))
    reference.compared, reference.difference = n + n.T, d - d.T
    beaten = (reference.difference < 0) & (reference.difference**2 > reference.compared * math.log(math.log(t + 2)))
    layers, left = [], np.ones(n_items, bool)
    while left.any():
        layer = left & ~(beaten & left).any(axis=1)
        layers.append(layer if layer.any() else left.copy())
        left &= ~layers[-1]
    assert [set(np.flatnonzero(layer)) for layer in layers] == [set(part) for part in reference.leader()]


def test_where_everybody_is_beaten_the_last_part_has_all_that_are_left():
    circle = {
        (0, 1): (90, 100),
        (1, 2): (90, 100),
        (2, 0): (90, 100),
        (0, 3): (-90, 100),
        (1, 3): (-90, 100),
        (2, 3): (-90, 100),
    }
    assert sessions_of(UniRankReference(4, 2), circle).leader() == (frozenset([3]), frozenset([0, 1, 2]))


@given(st.integers(1, 60), st.integers(0, 60), st.integers(3, 10**6))
def test_an_index_is_above_one_half_by_a_formula(n, wins, s):
    """kl_upper(p, f / n) > 1/2: p is, or n KL(p, 1/2) = n log 2 + W log p + (n - W) log(1 - p) is below f."""
    wins = min(wins, n)
    reference = sessions_of(UniRankReference(2, 1), {(0, 1): (2 * wins - n, n)})
    f = math.log(s) + 3 * math.log(math.log(s))
    entropy = sum(x * math.log(x / n) for x in (wins, n - wins) if x)
    assert (reference.index(0, 1, s) > 0.5) == (2 * wins >= n or n * math.log(2) + entropy < f)


def sure(*chains):
    """Sums of items of which each surely beats all that follow, by far; others were never compared."""
    return {(i, j): (10**6, 10**6) for chain in chains for a, i in enumerate(chain) for j in chain[a + 1 :]}


def explored(reference, times_led=100):
    partition = reference.leader()
    reference.led[partition] = times_led
    return {by_size(parts) for parts in reference.explorations(partition)}


def test_parts_are_merged_in_pairs_and_the_last_gets_one_item_if_it_was_not_merged():
    in_order = sure([0, 1, 2, 3, 4])
    close = {"01": {(0, 1): (60, 1000)}, "23": {(2, 3): (60, 1000)}, "24": {(2, 4): (60, 1000)}, "12": {(1, 2): (60, 1000)}}

    def of(*pairs, n_positions=3, **reading):
        sums = {pair: value for name in pairs for pair, value in close[name].items()}
        return explored(sessions_of(UniRankReference(5, n_positions, 100, **reading), in_order | sums))

    assert of() == {((0,), (1,), (2,))}
    assert of("01") == {((0, 1), (2,))}
    assert of("23") == {((0,), (1,), (2, 3))}
    assert of("23", at_last_place=False) == {((0,), (1,), (2,))}
    assert of("24") == {((0,), (1,), (2, 4))}, "the next part has no such item"
    assert of("23", "24") == {((0,), (1,), (2, 3))}, "the nearest part"
    assert of("23", "24", nearest=False) == {((0,), (1,), (2, 3)), ((0,), (1,), (2, 4))}
    assert of("12", "23") == {((0,), (1, 2))}, "what was merged gets no item"
    assert of("12", "23", merged_gets_item=True) == {((0,), (1, 2, 3))}
    assert of("01", "12") == {((0, 1), (2,))}, "what was merged is not merged again"
    assert of("01", "12", chain=True) == {((0, 1, 2),)}
    assert of("01", "23") == {((0, 1), (2, 3))}
    assert of(n_positions=5) == {((0,), (1,), (2,), (3,), (4,))}


def test_the_further_item_has_the_largest_index_and_parts_are_compared_by_all_pairs():
    """Parts {0, 1} and {2, 3}, K = 2: 3 is closer to 0 than 2 is, and 2 not close to 1, which it is by ids compared with."""
    sums = {(0, 2): (80, 1000), (0, 3): (70, 1000), (1, 2): (900, 1000), (1, 3): (900, 1000)}
    assert explored(sessions_of(UniRankReference(4, 2, 10**3), sums)) == {((0, 1, 3),)}
    assert explored(sessions_of(UniRankReference(4, 2, 10**3), sums | {(0, 2): (70, 1000)})) == {((0, 1, 2),), ((0, 1, 3),)}
    sums[0, 2] = 900, 1000
    assert explored(sessions_of(UniRankReference(4, 3, 10**3), sums)) == {((0, 1, 2, 3),)}
    assert explored(sessions_of(UniRankReference(4, 3, 10**3, all_pairs=False), sums)) == {((0, 1), (2, 3))}


@pytest.mark.parametrize("times_led", [0, 1, 2])
def test_a_partition_that_leads_for_the_first_two_times_allows_everything(times_led):
    reference = sessions_of(UniRankReference(4, 2), sure([0, 1, 2, 3]))
    assert explored(reference, times_led) == ({((0, 1),)} if times_led < 2 else {((0,), (1,))})


def test_an_index_that_rounding_puts_at_one_half_counts_either_way():
    """T = 2, one comparison, lost: kl_upper(0, log 2) = 1/2."""
    reference = sessions_of(UniRankReference(2, 1, 2), {(0, 1): (1, 1)})
    assert explored(reference) == {((0,),), ((0, 1),)}


def test_pairs_of_a_displayed_part_are_compared_where_their_clicks_differ():
    """Items 0 1 2 in one part across the cut at K = 2, 3 below: 1 was clicked, 2 left out."""
    reference = UniRankReference(4, 2)
    state = SimpleNamespace(part=np.zeros(4, int), shown_part=np.array([0, 0, 0, 0]))
    assert reference.allows([0, 1], state)
    reference.learn([0, 1], [0, 1])
    assert reference.compared.tolist() == [[0, 1, 0, 0], [1, 0, 1, 1], [0, 1, 0, 0], [0, 1, 0, 0]]
    assert reference.difference.tolist() == [[0, -1, 0, 0], [1, 0, 1, 1], [0, -1, 0, 0], [0, -1, 0, 0]]


def test_parts_by_number():
    assert parts_of([1, 0, 1, 3, -1]) == (frozenset([1]), frozenset([0, 2]), frozenset([3]))


@long_play
def test_each_other_reading_of_unirank_is_told_apart():
    agreed = set(UNIRANK_READINGS)
    for seed, (model, sessions) in enumerate([(MODELS["PBM"], 500), (MODELS["CM"], 500)]):
        others = {name: UniRankReference(5, 3, **UNIRANK_READINGS[name]) for name in sorted(agreed)}
        agreed, _ = play(UniRankReference(5, 3), draw_unirank, others, model, sessions, seed)
    assert not agreed


def test_readings_of_unirank_with_a_horizon_are_told_apart():
    others = {"s < 3": UniRankReference(5, 3, 10, horizon_counts=True), "f(s)": UniRankReference(5, 3)}
    agreed, _ = play(UniRankReference(5, 3, 10), draw_unirank, others, MODELS["PBM"], 500)
    assert not agreed


@long_play
@pytest.mark.parametrize("kind", ["CM", "PBM"])
def test_unirank_orders_the_items(kind):
    attraction = [0.1, 0.9, 0.5]
    model = CascadeModel(attraction, n_positions=2) if kind == "CM" else PositionBasedModel(attraction, [1.0, 0.7])
    reference = UniRankReference(3, 2)
    _, lists = play(reference, draw_unirank, {}, model, 1500)
    assert lists[-300:].count((1, 2)) > 150
    assert reference.leader() == (frozenset([1]), frozenset([2]), frozenset([0]))


@long_play
@pytest.mark.parametrize("at_last_place", [True, False])
def test_with_one_position_the_further_item_is_all_exploration_there_is(at_last_place):
    """Why a part that starts at position K gets one: else whoever leads first stays there."""
    model, missed = PositionBasedModel([0.3, 0.9, 0.5], [1.0]), []
    for seed in range(6):
        reference = UniRankReference(3, 1, at_last_place=at_last_place)
        _, lists = play(reference, draw_unirank, {}, model, 1000, seed)
        missed.append(lists[-200:].count((1,)) < 100)
    assert any(missed) != at_last_place


def test_lists_of_unirank_are_uniform_within_a_part():
    """Null: the first session shows any of the 12 ordered pairs of 4 items; 6,000 draws. Checks the player of this file."""
    rng, reference = np.random.default_rng(13), UniRankReference(4, 2)
    lists = [tuple(draw_unirank(reference, rng)[0]) for _ in range(6000)]
    counts = [lists.count(ranking) for ranking in permutations(range(4), 2)]
    assert chisquare(counts).pvalue > FALSE_ALARM


# --------------------------------------------------------------------------------------------------------- GLR-Cascade


def draw_glr(reference, rng):
    index, slot, top = reference.indices(), reference.slot(), []
    if slot is not None:
        unknown = [item for item in range(reference.n_items) if item not in reference.explored.values()]
        top = [reference.explored.get(slot, rng.choice(unknown or [0]))]
    rest = [item for item in rng.permutation(reference.n_items).tolist() if item not in top]
    ranking = [int(item) for item in [*top, *sorted(rest, key=lambda item: -index[item])]]
    return ranking[: reference.n_positions], {}, None


@given(st.lists(st.integers(0, 1), min_size=2, max_size=60))
def test_the_statistic_is_the_log_likelihood_ratio_of_a_change(observations):
    """Against binomial laws with the means before and after, over those with one mean; and as the KL sum, in plain Python."""
    n, total = len(observations), sum(observations)
    for s, statistic in enumerate(glr_statistics(observations), 1):
        before, after = sum(observations[:s]), sum(observations[s:])
        changed = binom.logpmf(before, s, before / s) + binom.logpmf(after, n - s, after / (n - s))
        same = binom.logpmf(before, s, total / n) + binom.logpmf(after, n - s, total / n)
        assert statistic == pytest.approx(changed - same, rel=1e-9, abs=1e-9)


def test_the_statistic_is_largest_at_a_corner_of_the_hull_of_sums():
    """Convex in (s, S_s): what lies within the hull of all points of the walk is never above all of its corners."""
    rng = np.random.default_rng(6)
    for _ in range(50):
        observations = rng.binomial(1, rng.random(), int(rng.integers(2, 60)))
        points = [(s, int(total)) for s, total in enumerate(np.cumsum(observations), 1)][:-1]

        def is_corner(point, points=points):
            """No segment between two others passes on both sides of it, or through it."""
            s, total = point
            slopes = [(total - y) / (s - x) for x, y in points if x < s], [(y - total) / (x - s) for x, y in points if x > s]
            if not slopes[0] or not slopes[1]:
                return True
            return max(slopes[0]) < min(slopes[1]) or min(slopes[0]) > max(slopes[1])

        statistics = glr_statistics(observations)
        at_corners = [statistics[s - 1] for s, total in points if is_corner((s, total))]
        assert max(at_corners) == pytest.approx(max(statistics), rel=1e-12, abs=1e-12)


def test_the_threshold_of_a_horizon():
    assert GLRReference(3, 1, "KL", 100).threshold(25) == pytest.approx(math.log(3 * 25**1.5 * 100))
    assert GLRReference(3, 1, "KL", 100, delta=0.5).threshold(25) == pytest.approx(math.log(3 * 25**1.5 * 2))


def test_forced_items_come_in_turn_from_the_first_session_on():
    """L = 3 and p = 0.3: every 10 sessions three of them, each item once, always in the same order, from each restart on."""
    reference, rng = GLRReference(3, 2, "UCB1", 1000, exploration=0.3), np.random.default_rng(7)
    forced = []
    for _ in range(40):
        forced.append(reference.slot())
        ranking, _, _ = draw_glr(reference, rng)
        assert reference.allows(ranking)
        reference.learn(ranking, [0, 0])
    assert forced == ([0, 1, 2] + [None] * 7) * 4
    assert sorted(reference.explored.values()) == [0, 1, 2]


def test_the_rate_of_exploration_grows_with_the_segments():
    rates = [GLRReference(5, 3, "KL", 10**4, n_segments=n).p for n in (1, 4, 10**6)]
    assert rates == [pytest.approx(math.sqrt(5 * math.log(10**4) / 10**4)), pytest.approx(2 * rates[0]), 1.0]
    assert GLRReference(5, 3, "KL", 1).slot() is None, "no exploration where log T = 0"


@pytest.mark.parametrize("kind", ["UCB1", "KL"])
def test_without_exploration_and_restarts_it_is_the_cascade_agent(kind):
    for feedback in ("first_click", "last_click"):
        reference = GLRReference(5, 3, kind, 10**9, delta=1e-300, exploration=0.0, feedback=feedback)
        assert play(reference, draw_glr, {"same": Plain(5, 3, kind, feedback)}, MODELS["PBM"], 300)[0] == {"same"}


class Plain(CascadeReference):
    """A cascade agent compared by its counts only."""

    def agrees(self, state):
        return np.array_equal(state.clicks, self.clicks) and np.array_equal(state.examined, self.seen)


def changing(session, first=(0.95, 0.05, 0.5, 0.5, 0.1), second=(0.05, 0.95, 0.5, 0.1, 0.9)):
    return CascadeModel(second if session // 100 % 2 else first, n_positions=3)


@long_play
@pytest.mark.parametrize("kind", ["UCB1", "KL"])
def test_each_other_reading_of_the_detection_is_told_apart(kind):
    agreed = set(GLR_READINGS)
    for seed in range(4):
        others = {name: GLRReference(5, 3, kind, 300, **GLR_READINGS[name]) for name in sorted(agreed)}
        reference = GLRReference(5, 3, kind, 300)
        agreed, _ = play(reference, draw_glr, others, changing, 600, seed)
        assert len(reference.restarts) >= 3
    assert not agreed


# --------------------------------------------------------------------------------------------------------------- PB-MHB


def draw_pbmhb(reference, rng):
    if reference.t == 1:
        reference.point = reference.start(rng)
    reference.point = point = reference.sample(reference.point, rng)
    theta, kappa = point[: reference.n_items], point[reference.n_items :]
    ranking = np.empty(reference.n_positions, int)
    ranking[np.argsort(-kappa)] = np.argsort(-theta)[: reference.n_positions]
    return ranking.tolist(), {"theta": theta, "kappa": kappa}, None


def small_posterior(**reading):
    """Few clicks, so that the posterior reaches to the ends."""
    reference = PBMHBReference(2, 2, **reading)
    reference.shown[...], reference.clicks[...] = [[4, 2], [3, 2]], [[3, 1], [0, 1]]
    return reference


def test_the_likelihood_is_that_of_independent_clicks():
    point = [0.7, 0.2, 1.0, 0.6]
    rates = np.outer(point[:2], point[2:])
    reference = small_posterior()
    clicks = [
        (c, p) for c, n, p in zip(*map(np.ravel, (reference.clicks, reference.shown, rates)), strict=True) for c in [(c, n)]
    ]
    assert reference.log_likelihood(point) == pytest.approx(
        sum(c * math.log(p) + (n - c) * math.log(1 - p) for (c, n), p in clicks)
    )
    assert PBMHBReference(2, 2).log_likelihood([0.0, 1.0, 1.0, 0.0]) == 0.0
    assert small_posterior().log_ratio(point, 0, 0.0, 1.0) == -math.inf


@pytest.mark.parametrize("sigma", [0.05, 0.5, 3.0, 1000.0])
def test_the_acceptance_ratio_balances_the_posterior(sigma):
    """log of π(x') q(x | x') / (π(x) q(x' | x)), with SciPy's truncated Gaussian for q, and its opposite back."""
    rng, reference = np.random.default_rng(9), small_posterior()
    for _ in range(50):
        point, new = reference.start(rng), rng.random()
        for a in reference.coordinates():
            there, old = point.copy(), point[a]
            there[a] = new
            flow = reference.log_likelihood(there) + reference.log_proposal(new, old, sigma)
            flow -= reference.log_likelihood(point) + reference.log_proposal(old, new, sigma)
            tolerance = 1e-6 + 1e-9 * sigma + (new - old) ** 2 / sigma**2 * 1e-9
            assert reference.log_ratio(point, a, new, sigma) == pytest.approx(flow, abs=tolerance)
            assert reference.log_ratio(there, a, old, sigma) == pytest.approx(-flow, abs=tolerance)
            assert PBMHBReference(2, 2, correction=0).log_ratio(point, a, new, sigma) == 0.0


def marginal_p_values(reference, target, sigma, n_samples=1500, thin=6):
    """Of each coordinate, a Kolmogorov-Smirnov test of a chain against the grid posterior."""
    rng = np.random.default_rng(10)
    middles, mass = target.grid_posterior(100 if len(target.coordinates()) == 3 else 40)
    ends = np.append(middles - middles[0], 1.0)
    chain, point = [], reference.start(rng)
    for _ in range(n_samples):
        for _ in range(thin):
            point = reference.sweep(point, sigma, rng)
        chain.append(point)
    samples = np.array(chain)[:, target.coordinates()]
    cumulated = np.hstack([np.zeros((len(mass), 1)), mass.cumsum(axis=1)])
    return [
        ks_1samp(samples[:, a], lambda x, a=a: np.interp(x, ends, cumulated[a])).pvalue
        for a in range(len(target.coordinates()))
    ]


def test_a_grid_posterior_of_one_item_and_position_is_a_beta():
    reference = PBMHBReference(1, 1)
    reference.shown[...], reference.clicks[...] = 5, 2
    middles, mass = reference.grid_posterior(100)
    assert mass.shape == (1, 100)
    assert mass[0] == pytest.approx(middles**2 * (1 - middles) ** 3 * 60 / 100, abs=1e-5)


@long_play
@pytest.mark.parametrize(("fix_first", "sigma"), [(True, 0.6), (True, 1000.0), (False, 1.0)])
def test_sweeps_sample_the_posterior(fix_first, sigma):
    """Null: a thinned chain has the marginals of the grid posterior; its correlation is small beside the steps between."""
    reference = small_posterior(fix_first=fix_first)
    assert min(marginal_p_values(reference, reference, sigma)) > FALSE_ALARM


@long_play
@pytest.mark.parametrize("reading", [{"correction": 0}, {"correction": -1}, {"prior": 0.5}])
def test_sweeps_of_another_reading_do_not_sample_the_posterior(reading):
    assert min(marginal_p_values(small_posterior(**reading), small_posterior(), 0.4, n_samples=4000, thin=5)) < FALSE_ALARM


def test_the_list_pairs_the_largest_samples_of_both_kinds():
    reference, other = PBMHBReference(3, 2), PBMHBReference(3, 2, best_position_first=False)
    free = PBMHBReference(3, 2, fix_first=False)
    state = SimpleNamespace(theta=np.array([0.2, 0.9, 0.5]), kappa=np.array([1.0, 0.7]))
    assert [reference.allows(ranking, state) for ranking in ([1, 2], [2, 1], [1, 0])] == [True, False, False]
    state.kappa = np.array([0.6, 0.7])
    assert not reference.allows([2, 1], state), "κ of the first position is 1"
    assert free.allows([2, 1], state)
    assert not other.allows([2, 1], state)


def test_the_first_step_has_the_width_c_and_the_fourth_half_of_it():
    reference = PBMHBReference(3, 2, c=10.0)
    widths = []
    for _ in range(4):
        widths.append(reference.sigma())
        reference.learn([0, 1], [0, 0])
    assert widths[0] == 10.0
    assert widths[3] == 5.0
    assert PBMHBReference(3, 2, c=10.0, shrink=1.0).t == 1


def test_a_reference_of_pbmhb_plays_by_itself():
    model = PositionBasedModel([0.1, 0.9, 0.5], [1.0, 0.4])
    _, lists = play(PBMHBReference(3, 2), draw_pbmhb, {}, model, 800)
    assert lists[-200:].count((1, 2)) > 100
    agreed, _ = play(PBMHBReference(3, 2), draw_pbmhb, {"free": PBMHBReference(3, 2, fix_first=False)}, model, 20)
    assert agreed == {"free"}


# ----------------------------------------------------------------------------------------------------------------- PDGD


def draw_pdgd(reference, rng):
    features = rng.random((reference.n_items, 3)) - 0.3
    left, ranking = list(range(reference.n_items)), []
    for _ in range(reference.n_positions):
        scores = (features @ reference.weights)[left]
        share = np.exp(scores - scores.max())
        ranking.append(left.pop(rng.choice(len(left), p=share / share.sum())))
    return ranking, {}, features


def scored(n_items, n_positions, scores, **reading):
    """One feature per item, so that the weights are the scores."""
    reference = PDGDReference(n_items, n_positions, n_items, **reading)
    reference.features, reference.weights = np.eye(n_items), np.array(scores, float)
    return reference


@settings(max_examples=40)
@given(st.lists(st.floats(-700, 700), min_size=1, max_size=5), st.data())
def test_probabilities_of_all_lists_add_up_to_one(scores, data):
    n_positions = data.draw(st.integers(1, len(scores)))
    lists = list(permutations(range(len(scores)), n_positions))
    assert math.fsum(math.exp(log_probability(scores, ranking)) for ranking in lists) == pytest.approx(1.0)


def test_an_items_probability_at_the_top_is_its_share():
    scores = [0.3, -1.0, 2.0]
    shares = np.exp(scores) / np.exp(scores).sum()
    assert [math.exp(log_probability(scores, [item])) for item in range(3)] == pytest.approx(shares.tolist())
    expected = shares[2] * shares[0] / (shares[0] + shares[1])
    assert math.exp(log_probability(scores, [2, 0])) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("clicks", "pairs"),
    [
        ([0, 0, 0, 0], []),
        ([1, 0, 0, 0], [(0, 1)]),
        ([0, 1, 0, 0], [(1, 0), (1, 2)]),
        ([1, 0, 1, 0], [(0, 1), (0, 3), (2, 1), (2, 3)]),
        ([0, 0, 0, 1], [(3, 0), (3, 1), (3, 2)]),
        ([1, 1, 1, 1], []),
    ],
)
def test_pairs_reach_one_place_below_the_last_click(clicks, pairs):
    assert PDGDReference(6, 4, 2).pairs(clicks) == pairs


def test_a_pairs_weight_is_the_share_of_the_exchanged_list():
    rng = np.random.default_rng(11)
    for _ in range(50):
        scores, ranking = rng.normal(size=6) * 3, rng.permutation(6)[:4].tolist()
        a, b = sorted(rng.choice(4, 2, replace=False).tolist())
        exchanged = list(ranking)
        exchanged[a], exchanged[b] = exchanged[b], exchanged[a]
        reference = scored(6, 4, scores)
        there, back = reference.weight(ranking, a, b), reference.weight(exchanged, b, a)
        assert there + back == pytest.approx(1.0)
        sums = [
            [np.exp(scores[[i for i in range(6) if i not in r[:k]]]).sum() for k in range(a + 1, b + 1)]
            for r in (ranking, exchanged)
        ]
        assert there == pytest.approx(1 / (1 + np.prod(sums[1]) / np.prod(sums[0]))), "only places between the two differ"
    assert scored(4, 2, [1.0] * 4).weight([0, 1], 0, 1) == pytest.approx(0.5)
    assert scored(4, 2, [9.0, -9.0, 0.0, 0.0]).weight([0, 1], 0, 1) < 0.01, "the best at the top is hardly ever exchanged"


def test_the_gradient_is_that_of_the_pairs_probability():
    """Of ω p(d before e), ω fixed, by central differences."""
    rng = np.random.default_rng(12)
    reference = PDGDReference(5, 3, 4)
    reference.features, reference.weights = rng.normal(size=(5, 4)), rng.normal(size=4)
    ranking, clicks, step = [3, 0, 4], [0, 1, 0], 1e-6

    def likely(weights):
        f = reference.features @ weights
        return sum(
            reference.weight(ranking, d, e) / (1 + math.exp(f[ranking[e]] - f[ranking[d]])) for d, e in reference.pairs(clicks)
        )

    # ω is taken at the weights of the reference throughout.
    numeric = [(likely(reference.weights + h) - likely(reference.weights - h)) / (2 * step) for h in step * np.eye(4)]
    assert reference.gradient(ranking, clicks) == pytest.approx(np.array(numeric), rel=1e-6)


def preference(reference, attraction, examination, d, e):
    """How much more the weights are moved from e to d than from d to e by the pair, on average over all lists and clicks."""
    model_items, total = range(reference.n_items), 0.0
    for ranking in permutations(model_items, reference.n_positions):
        rates = [attraction[item] * weight for item, weight in zip(ranking, examination, strict=True)]
        for clicks in product([0, 1], repeat=len(rates)):
            chance = math.exp(log_probability(reference.scores(), ranking))
            chance *= math.prod(p if click else 1 - p for p, click in zip(rates, clicks, strict=True))
            for a, b in reference.pairs(clicks):
                if {ranking[a], ranking[b]} == {d, e}:
                    total += chance * reference.weight(ranking, a, b) * (1 if ranking[a] == d else -1)
    return total


@pytest.mark.parametrize("reading", [{}, {"weighted": False}, {"reversed_share": False}, {"among_all": False}])
def test_pairs_of_equally_attractive_items_are_not_preferred(reading):
    """The claim of unbiasedness, on a position-based model; without the weight, or with another, the higher-ranked gains."""
    reference = scored(4, 3, [1.5, -0.5, 0.7, 0.0], **reading)
    unbiased = abs(preference(reference, [0.5, 0.5, 0.8, 0.2], [1.0, 0.5, 0.2], 0, 1)) < 1e-12
    assert unbiased == (not reading)
    if not reading:
        assert preference(reference, [0.4, 0.5, 0.8, 0.2], [1.0, 0.5, 0.2], 0, 1) < 0


def test_each_other_reading_of_pdgd_is_told_apart():
    others = {name: PDGDReference(5, 3, 3, **reading) for name, reading in PDGD_READINGS.items()}
    agreed, _ = play(PDGDReference(5, 3, 3), draw_pdgd, others, MODELS["PBM"], 50)
    assert not agreed


# ------------------------------------------------------------------------------------------------------------ all at edges


@pytest.mark.parametrize(
    ("draw", "make"),
    [
        (draw_grab, GRABReference),
        (draw_grab, lambda L, K: GRABReference(L, K, horizon=1, gamma=1)),
        (draw_grab, lambda L, K: SGRABReference(L, K, gamma=10**9)),
        (draw_unirank, UniRankReference),
        (draw_unirank, lambda L, K: UniRankReference(L, K, horizon=2)),
        (draw_glr, lambda L, K: GLRReference(L, K, "UCB1", 1)),
        (draw_glr, lambda L, K: GLRReference(L, K, "KL", 2, delta=1e-300, exploration=5e-324)),
        (draw_glr, lambda L, K: GLRReference(L, K, "KL", 10**7, delta=0.9, exploration=1.0, feedback="first_click")),
        (draw_pbmhb, PBMHBReference),
        (draw_pbmhb, lambda L, K: PBMHBReference(L, K, c=1e100, n_sweeps=2, fix_first=False)),
        (draw_pbmhb, lambda L, K: PBMHBReference(L, K, c=1e-12)),
        (draw_pdgd, lambda L, K: PDGDReference(L, K, 3)),
        (draw_pdgd, lambda L, K: PDGDReference(L, K, 3, learning_rate=1e5)),
    ],
)
@pytest.mark.parametrize("attraction", [[0.0], [1.0], [1.0, 1.0], [0.0, 1.0, 1.0, 0.5], [0.0] * 4])
def test_references_play_by_themselves_at_the_edges(draw, make, attraction):
    for n_positions in {1, len(attraction)}:
        model = PositionBasedModel(attraction, np.ones(n_positions))
        play(make(len(attraction), n_positions), draw, {}, model, 30)


# --------------------------------------------------------------------------------------------------------- graded users


@pytest.mark.parametrize(("n_grades", "name"), [(n, name) for n in GRADED_USERS for name in GRADED_USERS[n]])
def test_graded_users_have_a_number_for_every_grade_and_click_better_documents_more(n_grades, name):
    table = GRADED_USERS[n_grades][name]
    assert [len(table[key]) for key in ("click", "stop")] == [n_grades] * 2
    assert all(a < b for a, b in pairwise(table["click"]))
    assert all(a <= b for a, b in pairwise(table["stop"]))
    assert all(0 <= p <= 1 for key in table for p in table[key])
