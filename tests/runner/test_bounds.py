"""Theory bounds: cases worked by hand, the lower bounds as solutions of the linear programs they come from, refusals."""

import inspect
import itertools
import math

import gymnasium as gym
import numpy as np
import pytest
from scipy.optimize import linprog

import clickgym
from clickgym import envs
from clickgym.agents.batch_rank import BatchRank
from clickgym.agents.bubble_rank import BubbleRank
from clickgym.agents.cascade_nonstationary import CascadeDUCB, CascadeSWUCB
from clickgym.agents.linear import UBMLinUCB
from clickgym.agents.position_based import PBMPIE, PBMUCB
from clickgym.agents.top_rank import TopRank
from clickgym.runner.theory import bounds

E = math.e
CM = envs.CascadeModel([0.2, 0.6, 0.4, 0.1], 2)
PBM = envs.PositionBasedModel([0.3, 0.5, 0.1, 0.4], [0.4, 0.8])
FULL = envs.PositionBasedModel([0.5, 0.4, 0.1], [0.9, 0.6, 0.3])
SORTED = envs.PositionBasedModel([0.5, 0.4, 0.2, 0.1], [1.0, 0.5, 0.4])
CHANGING = envs.PiecewiseStationaryModel(
    [envs.CascadeModel([0.5, 0.4, 0.2], 1), envs.CascadeModel([0.1, 0.4, 0.2], 1)], [0, 100]
)
SWITCHING = envs.PiecewiseStationaryModel(
    [envs.CascadeModel(attraction, 2) for attraction in ([0.5, 0.5, 0.2, 0.2], [0.2, 0.2, 0.5, 0.5], [0.5, 0.2, 0.2, 0.5])],
    [0, 9, 20],
)
BROWSING = [[1.0, 0.0], [0.5, 0.8]]
FILMS = envs.LinearModel(envs.UserBrowsingModel([0, 0, 0], BROWSING), [0.6, 0.8], [[0.6, 0.6], [0.5, 0.1], [0.3, 0.9]])
AGENTS = {
    agent.__name__: agent for agent in (BatchRank, BubbleRank, CascadeDUCB, CascadeSWUCB, PBMPIE, PBMUCB, TopRank, UBMLinUCB)
}


def kl(p, q):
    return sum(a * math.log(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0)


def near(value):
    return pytest.approx(value, rel=1e-12)


# --------------------------------------------------------------------------------------------------------- lower bounds


def test_cascade_lower_by_hand():
    # Sorted: 0.6, 0.4 | 0.2, 0.1. The other shown item does not attract with probability 1 - 0.6 = 0.4.
    # KL(0.2, 0.4) = 0.2 log(1/2) + 0.8 log(4/3), KL(0.1, 0.4) = 0.1 log(1/4) + 0.9 log(3/2).
    first = 0.2 / (0.2 * math.log(1 / 2) + 0.8 * math.log(4 / 3))
    second = 0.3 / (0.1 * math.log(1 / 4) + 0.9 * math.log(3 / 2))
    assert bounds.cascade_lower(CM, E) == near(0.4 * (first + second))


def test_cascade_lower_is_the_papers_where_it_states_one():
    p, delta, n_items, n_positions = 0.3, 0.2, 7, 3
    model = envs.CascadeModel([p] * n_positions + [p - delta] * (n_items - n_positions), n_positions)
    printed = (1 - p) ** (n_positions - 1) * (n_items - n_positions) * delta / kl(p - delta, p)
    assert bounds.cascade_lower(model, E) == near(printed)


def test_pbm_lower_by_hand():
    # Sorted: 0.5, 0.4 | 0.3, 0.1 at positions 0.8, 0.4; the best list earns 0.8·0.5 + 0.4·0.4 = 0.56.
    # Exploring 0.3 first: 0.8·0.3 + 0.4·0.5 = 0.44 costs 0.12; last: 0.8·0.5 + 0.4·0.3 = 0.52 costs 0.04.
    # Exploring 0.1 first: 0.8·0.1 + 0.4·0.5 = 0.28 costs 0.28; last: 0.8·0.5 + 0.4·0.1 = 0.44 costs 0.12.
    third = min(0.12 / kl(0.24, 0.32), 0.04 / kl(0.12, 0.16))
    fourth = min(0.28 / kl(0.08, 0.32), 0.12 / kl(0.04, 0.16))
    assert bounds.pbm_lower(PBM, E) == near(third + fourth)


def test_pbm_lower_explores_where_it_is_cheap():
    """On top where the best items hardly differ, at the end where the explored item is nearly as good (Lagrée et al., 3.3)."""
    alike = envs.PositionBasedModel([0.5, 0.5, 0.2], [0.9, 0.3])
    assert bounds.pbm_lower(alike, E) == near(0.9 * 0.3 / kl(0.9 * 0.2, 0.9 * 0.5))
    close = envs.PositionBasedModel([0.9, 0.2, 0.199], [0.9, 0.3])
    assert bounds.pbm_lower(close, E) == near(0.3 * 0.001 / kl(0.3 * 0.199, 0.3 * 0.2))


def least_cost(model, information):
    """The linear program of which a lower bound is the value: how often must each list be shown, at what least regret?

    Every item outside the best set must gather one unit of information, summed over the lists that show it.
    """
    lists = list(itertools.permutations(range(model.n_items), model.n_positions))
    best = set(model.optimal_ranking().tolist())
    optimum = model.expected_reward(model.optimal_ranking())
    regret = [optimum - model.expected_reward(ranking) for ranking in lists]
    gathered = [
        [sum(information(ranking, k) for k in range(model.n_positions) if ranking[k] == item) for ranking in lists]
        for item in set(range(model.n_items)) - best
    ]
    return linprog(regret, A_ub=-np.array(gathered), b_ub=-np.ones(len(gathered)), method="highs").fun


@pytest.mark.parametrize("seed", range(4))
def test_pbm_lower_solves_its_linear_program(seed):
    rng = np.random.default_rng(seed)
    model = envs.PositionBasedModel(rng.uniform(0.05, 0.95, 5), rng.uniform(0.1, 1.0, 3))
    last = np.sort(model.attraction)[::-1][2]

    def information(ranking, k):
        return kl(model.examination[k] * model.attraction[ranking[k]], model.examination[k] * last)

    assert bounds.pbm_lower(model, E) == pytest.approx(least_cost(model, information), rel=1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_cascade_lower_solves_its_linear_program(seed):
    model = envs.CascadeModel(np.random.default_rng(seed).uniform(0.05, 0.95, 5), 3)
    last = np.sort(model.attraction)[::-1][2]

    def information(ranking, k):
        return model.examination_probabilities(ranking)[k] * kl(model.attraction[ranking[k]], last)

    assert bounds.cascade_lower(model, E) == pytest.approx(least_cost(model, information), rel=1e-7)


def test_lower_bounds_at_the_edges():
    assert bounds.cascade_lower(envs.CascadeModel([0.5, 0.4], 2), 1000) == 0, "nothing to tell apart"
    assert bounds.pbm_lower(envs.PositionBasedModel([0.5, 0.4], [0.9, 0.8]), 1000) == 0
    assert bounds.cascade_lower(envs.CascadeModel([1.0, 0.4, 0.2], 2), 1000) == 0, "the surely attractive item hides all others"
    assert bounds.pbm_lower(envs.PositionBasedModel([1.0, 0.2], [1.0]), 1000) == 0, "one skip tells all"
    never = bounds.pbm_lower(envs.PositionBasedModel([0.5, 0.0], [1.0]), E)
    assert never == near(0.5 / math.log(2)), "KL(0, 1/2) = log 2"


# --------------------------------------------------------------------------------------------------------- upper bounds


def test_batch_rank_upper_by_hand():
    # L = 4, K = 2, α_max = 0.6; gaps 0.6 - 0.4 and 0.4 - 0.2, that between 0.2 and 0.1 does not count.
    # 192 · 8 · 4 / (0.4 · 0.2) · log T + 4 · 2 · 4 · (3e + 2)
    assert bounds.batch_rank_upper(CM, E**10) == near(76800 * 10 + 96 * E + 64)
    full = envs.PositionBasedModel([0.5, 0.4, 0.1], [1.0, 0.5, 0.5])  # K = L: the gaps 0.1 and 0.3
    assert bounds.batch_rank_upper(full, E**10) == near(192 * 27 * 3 / (0.5 * (0.5 - 0.4)) * 10 + 36 * (3 * E + 3))


def test_batch_rank_upper_is_infinite_where_the_theorem_is_silent():
    assert np.isinf(bounds.batch_rank_upper(CM, [1, 4, 4.9, 5, 6])).tolist() == [True, True, True, False, False]
    assert bounds.batch_rank_upper(envs.CascadeModel([0.5, 0.5, 0.1], 2), 1000) == math.inf
    assert bounds.batch_rank_upper(envs.CascadeModel([1.0, 0.5, 0.1], 2), 1000) == math.inf
    assert bounds.batch_rank_upper(envs.CascadeModel([0.5, 0.4, 0.1, 0.1], 2), 1000) < math.inf
    assert bounds.batch_rank_upper(envs.CascadeModel([0.5], 1), 1000) == near(12 * E + 4), "a single item leaves no gap"


def test_top_rank_upper_by_hand():
    # CM, sorted 0.6, 0.4 | 0.2, 0.1. Pairs with one of the first two: (0.6, 0.4): 1/0.2 = 5, (0.6, 0.2): 0.8/0.4 = 2,
    # (0.6, 0.1): 7/5, (0.4, 0.2): 3, (0.4, 0.1): 5/3. Not (0.2, 0.1). c = 4 sqrt(2/π) / erf(√2).
    c = 4 * math.sqrt(2 / math.pi) / math.erf(math.sqrt(2))
    rate = 6 * (5 + 2 + 7 / 5 + 3 + 5 / 3)
    assert bounds.top_rank_upper(CM, 100) == near(2 * 16 + 5 + rate * math.log(c * 10 * 100))
    assert bounds.top_rank_upper(CM, 100, delta=0.5) == near(50 * 2 * 16 + 5 + rate * math.log(c * 10 / 0.5))


def test_top_rank_upper_is_infinite_where_the_theorem_is_silent():
    assert np.isinf(bounds.top_rank_upper(CM, [1, 2, 1000])).tolist() == [True, False, False]
    assert bounds.top_rank_upper(envs.CascadeModel([0.5, 0.5, 0.1], 1), 1000) == math.inf
    assert bounds.top_rank_upper(envs.CascadeModel([0.5, 0.4, 0.1, 0.1], 2), 1000) < math.inf


@pytest.mark.parametrize("seed", range(6))
def test_what_the_bound_of_top_rank_rests_on(seed):
    """For every partition in the order of attraction: regret is at most the drift of all pairs, each of which drifts enough."""
    rng = np.random.default_rng(seed)
    attraction, examination = np.sort(rng.random(4))[::-1], np.sort(rng.random(2 + seed // 3))[::-1]
    model = (envs.CascadeModel(attraction, 2 + seed // 3), envs.PositionBasedModel(attraction, examination))[seed % 2]
    optimum = model.expected_reward(model.optimal_ranking())
    for cuts in itertools.product([False, True], repeat=3):
        blocks = [list(block) for block in np.split(np.arange(4), 1 + np.flatnonzero(cuts))]
        clicked = np.zeros(4)  # the expected clicks on each item when each block is shuffled
        orders = list(itertools.product(*(itertools.permutations(block) for block in blocks)))
        for order in orders:
            ranking = list(itertools.chain(*order))[: model.n_positions]
            clicked[ranking] += model.click_probabilities(ranking) / len(orders)
        pairs = [pair for block in blocks for pair in itertools.combinations(block, 2)]
        drift = sum(clicked[i] - clicked[j] for i, j in pairs if i < model.n_positions)
        assert optimum - clicked.sum() <= drift + 1e-12
        for i, j in pairs:
            share = (attraction[i] - attraction[j]) / (attraction[i] + attraction[j])
            assert clicked[i] - clicked[j] >= share * (clicked[i] + clicked[j]) - 1e-12


@pytest.mark.parametrize("model", [envs.CascadeModel([0.1, 0.8, 0.4], 2), envs.PositionBasedModel([0.8, 0.1, 0.4], [1.0, 0.5])])
def test_top_rank_keeps_to_its_bound(model):
    """By the docstring's argument the rate would do with 4 in place of 6; the regret keeps to that, too."""
    agent = TopRank(3, 2, horizon=20_000, seed=0)
    regret = clickgym.run(agent, envs.ClickEnv(model), 20_000, seed=0).regret[-1]
    assert 10 < regret < bounds.top_rank_upper(model, 20_000) * 4 / 6


def test_bubble_rank_upper_by_hand():
    # K = 3, χ_max/χ_min = 0.9/0.3, gaps 0.1 and 0.3; R_0 = (2, 0, 1) has α = 0.1, 0.5, 0.4: two wrong pairs.
    # 180 · 3 · 3 · (2 + 2·2) / 0.1 · log(1/δ) + sqrt(δ) · 27 n²
    model = envs.PositionBasedModel([0.5, 0.4, 0.1], [0.9, 0.6, 0.3])
    rate = 180 * 3 * (0.9 / 0.3) * 6 / (0.5 - 0.4)
    assert bounds.bubble_rank_upper(model, E**5, initial=[2, 0, 1]) == near(rate * 4 * 5 + 27)
    assert bounds.bubble_rank_upper(model, 50, initial=[2, 0, 1], delta=0.01) == near(rate * math.log(100) + 0.1 * 27 * 2500)


def test_bubble_rank_upper_takes_the_examination_of_the_sorted_list():
    # CM, α = 0.2, 0.6, 0.4: the last of the sorted list is examined with 0.4 · 0.6 = 0.24; no wrong pair.
    model = envs.CascadeModel([0.2, 0.6, 0.4], 3)
    assert bounds.bubble_rank_upper(model, E, initial=[1, 2, 0]) == near(180 * 3 / 0.24 * 2 / (0.6 - 0.4) * 4 + 27)


def test_bubble_rank_upper_knows_the_list_the_agent_is_given():
    model = envs.PositionBasedModel([0.5, 0.4, 0.1], [0.9, 0.6, 0.3])
    env = envs.ClickEnv(model)
    worst = bounds.bubble_rank_upper(model, 1000, initial=[2, 1, 0])
    assert bounds.bubble_rank_upper(model, 1000) == bounds.bubble_rank_upper(env, 1000) == worst
    env.initial_ranking = np.array([1, 0, 2])
    assert bounds.bubble_rank_upper(env, 1000) == bounds.bubble_rank_upper(model, 1000, initial=[1, 0, 2]) < worst


def test_bubble_rank_upper_is_infinite_where_the_theorem_is_silent():
    assert bounds.bubble_rank_upper(envs.PositionBasedModel([0.5, 0.5], [1.0, 0.5]), [1, 10]).tolist() == [math.inf, math.inf]
    assert bounds.bubble_rank_upper(envs.PositionBasedModel([0.5, 0.4], [1.0, 0.0]), 10) == math.inf


def test_cascade_ducb_upper_by_hand():
    # K = 1. First users: α = 0.5, 0.4, 0.2, gaps –, 0.1, 0.3; then 0.1, 0.4, 0.2, gaps 0.3, –, 0.2. So the least gaps are
    # 0.3, 0.1, 0.2 once both were there. γ = 0.75, ε = 0.75: γ^{1/(1-γ)} = 0.75⁴, sqrt(1 - 1/1.5) = sqrt(1/3).
    first = 3 * 4 / (1 - 1 / E) / math.log(1 + 4 / math.sqrt(3))
    changed = first + 24 / 0.75**4 * (1 / 0.3 + 1 / 0.1 + 1 / 0.2)
    bias = 3 * 1 * math.log(0.25 * 0.75) / math.log(0.75)
    value = bounds.cascade_ducb_upper(CHANGING, 202, gamma=0.75, epsilon=0.75)
    assert value == pytest.approx(bias + changed * 51 * math.log(4), rel=1e-9)  # ⌈202/4⌉ = 51
    before = first + 24 / 0.75**4 * (1 / 0.1 + 1 / 0.3)  # the users change at step 100, the 101st
    value = bounds.cascade_ducb_upper(CHANGING, 100, gamma=0.75, epsilon=0.75)
    assert value == pytest.approx(before * 25 * math.log(4), rel=1e-9)


def test_cascade_ducb_upper_divides_by_the_logarithm():
    """The printed product would fall to nothing as ε falls to 1/2, where the deviations cease to be controlled."""
    surely = envs.CascadeModel([1.0, 0.0], 1)
    values = [
        float(bounds.cascade_ducb_upper(surely, 10_000, gamma=0.9, epsilon=epsilon)) for epsilon in (0.5, 0.5001, 0.51, 0.6)
    ]
    assert values[0] == math.inf
    assert values == sorted(values, reverse=True)


def test_cascade_swucb_upper_by_hand():
    # As above with τ = 10, ε = 0.75 at n = 205: ⌈n/τ⌉ = 21, log 10 = 2.30, c = log(1 + 4/sqrt(3)) = 1.20, ⌈log τ / c⌉ = 2.
    c = math.log(1 + 4 / math.sqrt(3))
    expected = 3 * 1 * 10 + 3 * math.log(10) ** 2 / c
    expected += 3 * 2 * 2 * 205 / 10 + 6 * 21 * math.log(10) * (1 / 0.3 + 1 / 0.1 + 1 / 0.2)
    assert bounds.cascade_swucb_upper(CHANGING, 205, tau=10, epsilon=0.75) == pytest.approx(expected, rel=1e-9)
    assert bounds.cascade_swucb_upper(CHANGING, 205, tau=1, epsilon=0.75) == math.inf
    assert bounds.cascade_swucb_upper(CHANGING, 205, tau=10) == math.inf, "ε = 1/2"


@pytest.mark.parametrize(
    ("bound", "chosen"),
    [
        (bounds.cascade_ducb_upper, {"gamma": 1 - 1 / (4 * math.sqrt(1000))}),
        (bounds.cascade_swucb_upper, {"tau": math.ceil(2 * math.sqrt(1000 * math.log(1000)))}),
    ],
)
def test_forgetting_defaults_to_the_agents(bound, chosen):
    assert bound(CHANGING, 1000, epsilon=0.6) == near(float(bound(CHANGING, 1000, epsilon=0.6, **chosen)))


def test_an_item_that_is_always_among_the_best_has_no_gap():
    model = envs.CascadeModel([0.5, 0.4], 2)
    first = 2 * 4 / (1 - 1 / E) / math.log(1 + 4 / math.sqrt(3))
    assert bounds.cascade_ducb_upper(model, 100, gamma=0.75, epsilon=0.75) == near(first * 25 * math.log(4))
    assert bounds.cascade_ducb_upper(envs.CascadeModel([0.5, 0.5], 1), 100, gamma=0.75, epsilon=0.75) == math.inf


def test_pbm_ucb_upper_by_hand():
    # Sorted: α = 0.5, 0.4 | 0.3, 0.1; χ = 0.8, 0.4, whose sums are 0.8 and 1.2.
    # C = min(1.44/1 + 0.64, 1.44/2 + 1.44) / 0.16 = min(2.08, 2.16) / 0.16 = 13.
    # Δ: exchanging both costs (0.8 - 0.4)(0.5 - 0.4) = 0.04. Others: 1/(0.4 · 0.1) + 1/(0.4 · 0.3) = 25 + 25/3.
    assert bounds.pbm_ucb_upper(PBM, E) == near(16 * 13 * (2 / 0.04 + 25 + 25 / 3))
    assert bounds.pbm_ucb_upper(PBM, E**3, epsilon=0.5) == near(3 * 1.5 * float(bounds.pbm_ucb_upper(PBM, E)))


def test_pbm_ucb_upper_with_many_alike_positions():
    # χ = 0.5 five times: min over l of 6.25/l + 0.25 l² is at l = 2: 3.125 + 1, over 0.25. One tie makes Δ = 0.
    model = envs.PositionBasedModel([0.9, 0.8, 0.7, 0.6, 0.5], [0.5, 0.5 - 1e-9, 0.5 - 2e-9, 0.5 - 3e-9, 0.5 - 4e-9])
    assert bounds.pbm_ucb_upper(model, E) == pytest.approx(16 * 16.5 * 5 / 1e-10, rel=1e-5)
    assert (
        bounds.pbm_ucb_upper(envs.PositionBasedModel([0.9, 0.8, 0.7, 0.6, 0.5], [0.5] * 5), [1, 10]).tolist() == [math.inf] * 2
    )


def test_pbm_pie_upper_by_hand():
    # Explored at the last position, χ = 0.4: 0.4 (0.4 - 0.3) / KL(0.12, 0.16) + 0.4 (0.4 - 0.1) / KL(0.04, 0.16).
    def of(worse):
        p, q = 0.4 * worse, 0.16
        return 0.4 * (0.4 - worse) / (p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q)))

    assert bounds.pbm_pie_upper(PBM, E) == near(of(0.3) + of(0.1))
    assert bounds.pbm_pie_upper(PBM, E**3, epsilon=0.5) == near(3 * 2.25 * (of(0.3) + of(0.1)))
    assert bounds.pbm_pie_upper(PBM, E) >= bounds.pbm_lower(PBM, E)
    assert bounds.pbm_pie_upper(envs.PositionBasedModel([0.5, 0.5, 0.1], [1.0, 0.5]), 10) == math.inf


def test_pbm_pie_explores_where_the_lower_bound_does_not():
    # The best items tie all but: there it is cheapest to explore at the first position, where users look.
    model = envs.PositionBasedModel([0.9, 0.9 - 1e-9, 0.1], [1.0, 0.2])
    assert bounds.pbm_pie_upper(model, E) > 1.5 * bounds.pbm_lower(model, E)


@pytest.mark.parametrize("seed", range(5))
def test_the_nearest_order_of_the_best_list_exchanges_neighbours(seed):
    """The bound's Δ, taken from neighbours, is that of the definition, the minimum over all orders."""
    rng = np.random.default_rng(seed)
    model = envs.PositionBasedModel(rng.random(4), np.sort(rng.random(4))[::-1])
    optimal = tuple(model.optimal_ranking().tolist())
    gap = min(
        model.expected_reward(optimal) - model.expected_reward(order)
        for order in itertools.permutations(optimal)
        if order != optimal
    )
    sums = np.cumsum(model.examination)
    spread = min(sums[-1] ** 2 / length + sums[length - 1] ** 2 for length in range(1, 5)) / model.examination[-1] ** 2
    assert bounds.pbm_ucb_upper(model, E) == pytest.approx(16 * spread * 4 / gap, rel=1e-6)


def test_cascade_switching_lower_by_hand():
    # L = 4, K = 2, p = 1/2, Δ = 0.3: 4 · 0.3 · (1 - 1/2) · sqrt(2n / (3 KL(0.2, 0.5)))
    divergence = 0.2 * math.log(0.2 / 0.5) + 0.8 * math.log(0.8 / 0.5)
    assert bounds.cascade_switching_lower(SWITCHING, 900) == near(0.6 * math.sqrt(600 / divergence))


@pytest.mark.parametrize(
    ("attractions", "n_positions", "words"),
    [
        ([[0.5, 0.2]] * 2, 1, "1 changes"),
        ([[0.5, 0.2, 0.2]] * 3, 1, "L = 3, K = 1"),
        ([[0.5, 0.2], [0.2, 0.5], [0.5, 0.3]], 1, "3 attractions"),
        ([[0.5, 0.2], [0.5, 0.5], [0.2, 0.5]], 1, r"K = 1 best items in every epoch, but there are \[1, 2, 1\]"),
    ],
)
def test_the_lower_bound_of_changes_is_about_two_changes_between_two_attractions(attractions, n_positions, words):
    epochs = [envs.CascadeModel(attraction, n_positions) for attraction in attractions]
    with pytest.raises(ValueError, match=words):
        bounds.cascade_switching_lower(envs.PiecewiseStationaryModel(epochs, [0, 10, 20][: len(epochs)]), 100)


def test_ubm_linucb_upper_by_hand():
    # d = 2, K = 2, φ' = 1² + 0.8² = λ; θ* has the length 1, and the agent's α the length 2 under the last root.
    growth = 2 * math.log(1 + 1000 / 2)
    radius = growth + 2 * math.log(2000)
    bound = 2 * (math.sqrt(radius) + math.sqrt(1.64 * 2)) * math.sqrt(2 * 1000 * 2 * growth) + 1
    assert bounds.ubm_linucb_upper(FILMS, 1000) == near(bound)
    least = math.sqrt(radius) + math.sqrt(1.64)
    assert bounds.ubm_linucb_upper(FILMS, 1000, alpha=least) == near(2 * least * math.sqrt(4000 * growth) + 1)
    assert bounds.ubm_linucb_upper(FILMS, 1000, alpha=0.999 * least) == math.inf
    assert bounds.ubm_linucb_upper(FILMS, 1000, ridge=1.6) == math.inf, "λ must be φ' or more"


@pytest.mark.parametrize(
    ("examination", "words"),
    [
        ([[0.5, 0.0], [0.6, 0.8]], r"examination\[1, 0\] does"),
        ([[1.0, 0.0], [0.5, 0.4]], r"examination\[1, 1\] is 0.4 and examination\[1, 0\] is 0.5"),
    ],
)
def test_ubm_linucb_upper_refuses_users_that_the_proof_is_not_about(examination, words):
    users = envs.LinearModel(envs.UserBrowsingModel([0, 0, 0], examination), FILMS.theta, FILMS.items)
    with pytest.raises(ValueError, match=words):
        bounds.ubm_linucb_upper(users, 100)
    with pytest.raises(ValueError, match="LinearModel of a UserBrowsingModel"):
        bounds.ubm_linucb_upper(CM, 100)


# ------------------------------------------------------------------------------------------------------------- registry


@pytest.mark.parametrize("name", bounds.BOUNDS)
def test_every_bound_has_one_signature(name):
    bound = bounds.BOUNDS[name]
    assert bound.value.__name__ == name
    assert name.endswith(bound.kind)
    assert set(bound.agents) <= set(AGENTS)
    model, steps, *hyperparameters = inspect.signature(bound.value).parameters.values()
    assert (model.name, steps.name) == ("model", "steps")
    for agent in bound.agents:
        known = inspect.signature(AGENTS[agent]).parameters
        for parameter in hyperparameters:
            assert parameter.kind is parameter.KEYWORD_ONLY
            assert parameter.default == known[parameter.name].default, "a call without it is about the agent without it"


@pytest.mark.parametrize("name", bounds.BOUNDS)
def test_every_bound_takes_arrays_and_environments(name):
    bound = bounds.BOUNDS[name]
    options = {"epsilon": 0.75} if name.startswith("cascade_") and bound.kind == "upper" else {}
    models = {"bubble_rank_upper": (CM.with_positions(4), FULL), "cascade_switching_lower": (SWITCHING,)}
    for model in models.get(name, (CM, SORTED, CHANGING, FILMS)):
        if model.kind not in bound.models:
            continue
        steps = np.array([[10, 100, 1000], [20, 200, 2000]])
        values = bound.value(model, steps, **options)
        assert values.shape == steps.shape
        assert np.isfinite(values).all()
        assert (np.diff(values, axis=1) > 0).all()
        for at in np.ndindex(steps.shape):
            assert values[at] == near(float(bound.value(model, float(steps[at]), **options))), "each step is its own horizon"
        env = gym.wrappers.TimeLimit((envs.ContextualClickEnv if model is FILMS else envs.ClickEnv)(model), 10)
        assert np.array_equal(bound.value(env, steps, **options), values)


UBM = envs.UserBrowsingModel([0.5, 0.4, 0.1], [[1.0, 0, 0], [0.6, 0.8, 0], [0.3, 0.5, 0.7]])


@pytest.mark.parametrize(
    ("bound", "model", "options", "message"),
    [
        (bounds.cascade_lower, PBM, {}, "about a CascadeModel; got PositionBasedModel"),
        (bounds.cascade_lower, CHANGING, {}, "about a CascadeModel; got PiecewiseStationaryModel"),
        (bounds.cascade_lower, envs.CascadeModel([0.5, 0.4, 0.4], 2), {}, r"two of attraction 0\.4 tie"),
        (bounds.cascade_lower, envs.ClickEnv(CM, cutoff=1), {}, "counts all 2 positions, not the first 1"),
        (bounds.cascade_lower, envs.ClickEnv(CM, reference=[0, 1]), {}, "against the best list"),
        (bounds.pbm_lower, CM, {}, "about a PositionBasedModel"),
        (bounds.pbm_lower, envs.PositionBasedModel([0.5, 0.4], [0.0]), {}, r"examination\[0\] is 0"),
        (bounds.pbm_lower, envs.PositionBasedModel([0.5, 0.5], [1.0]), {}, "tie for its last place"),
        (bounds.pbm_lower, envs.ClickEnv(PBM, reward="any_click"), {}, "about the reward 'clicks', not 'any_click'"),
        (bounds.batch_rank_upper, PBM, {}, r"does not increase, but examination\[1\] does"),
        (bounds.batch_rank_upper, UBM, {}, "Zoghi 2017 Assumption 3 fails, χ"),
        (bounds.batch_rank_upper, CHANGING, {}, "check each model of its epochs"),
        (bounds.top_rank_upper, PBM, {}, r"does not increase, but examination\[1\] does"),
        (bounds.top_rank_upper, UBM, {}, "about a CascadeModel or a PositionBasedModel; got"),
        (bounds.top_rank_upper, CM, {"delta": 1.0}, r"delta is 1.0; expected a number in \(0, 1\)"),
        (bounds.bubble_rank_upper, CM, {}, "K = L items"),
        (bounds.bubble_rank_upper, UBM, {}, "Li 2019a A2 fails, χ"),
        (bounds.bubble_rank_upper, FULL, {"delta": 1.0}, "delta is 1.0"),
        (bounds.bubble_rank_upper, FULL, {"initial": [0, 0, 1]}, "0"),
        (bounds.cascade_ducb_upper, PBM, {}, "about a CascadeModel"),
        (bounds.cascade_ducb_upper, CHANGING, {"gamma": 0.5}, r"gamma is 0\.5"),
        (bounds.cascade_ducb_upper, CHANGING, {"gamma": 1.0}, r"gamma is 1\.0"),
        (bounds.cascade_ducb_upper, CHANGING, {"epsilon": 1.0}, r"epsilon is 1\.0"),
        (bounds.cascade_swucb_upper, CHANGING, {"epsilon": 0.4}, r"epsilon is 0\.4"),
        (bounds.cascade_swucb_upper, CHANGING, {"tau": 0}, "tau is 0"),
        (bounds.pbm_ucb_upper, PBM, {"epsilon": -1}, "epsilon is -1"),
        (bounds.pbm_pie_upper, PBM, {"epsilon": -1}, "epsilon is -1"),
        (bounds.pbm_ucb_upper, envs.PositionBasedModel([0.5, 0.4], [1.0, 0.0]), {}, r"examination\[1\] is 0"),
    ],
)
def test_what_a_bound_is_not_about_is_refused(bound, model, options, message):
    with pytest.raises(ValueError, match=message):
        bound(model, 1000, **options)


@pytest.mark.parametrize("steps", [0, [10, 0.5], [1, math.nan], -3])
def test_bad_steps_are_refused(steps):
    for bound in (bounds.cascade_lower, bounds.batch_rank_upper, bounds.cascade_ducb_upper):
        with pytest.raises(ValueError, match="expected numbers of at least 1"):
            bound(CM, steps)


def test_other_objects_are_refused():
    with pytest.raises(TypeError, match="got int"):
        bounds.cascade_lower(3, 10)


def test_a_model_of_another_class_may_satisfy_the_assumptions():
    same = envs.UserBrowsingModel([0.5, 0.4, 0.1], [[0.9, 0, 0], [0.6, 0.6, 0], [0.3, 0.3, 0.3]])
    assert bounds.batch_rank_upper(same, 100) == bounds.batch_rank_upper(FULL, 100)
    equal_termination = envs.DependentClickModel([0.5, 0.4, 0.1], [1.0, 1.0, 1.0])
    expected = bounds.bubble_rank_upper(envs.CascadeModel([0.5, 0.4, 0.1], 3), 100)
    assert bounds.bubble_rank_upper(equal_termination, 100) == expected


# ---------------------------------------------------------------------------------------------------- beside the agents


@pytest.mark.parametrize(
    ("agent", "model", "options"),
    [
        (BatchRank, CM, {}),
        (BatchRank, SORTED, {}),
        (BubbleRank, FULL, {}),
        (CascadeDUCB, CHANGING, {"epsilon": 0.75}),
        (CascadeSWUCB, CHANGING, {"epsilon": 0.75}),
        (PBMUCB, SORTED, {"epsilon": 0.1}),
    ],
)
def test_agents_stay_below_their_upper_bounds(agent, model, options):
    (bound,) = [bound for bound in bounds.BOUNDS.values() if agent.__name__ in bound.agents]
    horizon = 20_000
    env = envs.ClickEnv(model)
    built = clickgym.make_agent(agent, env, horizon=horizon, seed=0, **options)
    result = clickgym.run(built, env, horizon, seed=0)
    assert (result.regret <= bound.value(env, horizon, **options)).all()
