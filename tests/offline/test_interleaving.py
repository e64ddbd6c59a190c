"""The laws of interleaving, the joint law of clicks, and tests that may be looked at after every session."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import permutations, product

import numpy as np
import pytest
from click_stories import exact_law, make_model, marginal
from scipy.stats import beta

from clickgym.envs import DependentClickModel, load_instance
from clickgym.offline.interleaving import (
    KNOWN,
    Interleaving,
    Probabilistic,
    TeamDraft,
    click_law,
    click_vectors,
    completed,
    moments,
    normal_mixture,
    outcomes,
    running,
    running_difference,
    sign_test,
)

POWER = 7.848879734


def law_of(method: Interleaving, a: list[int], b: list[int], n_positions: int) -> dict[tuple[tuple[int, ...], str], float]:
    """The probability of each list with its teams: a, b, or - for nobody's."""
    law: dict[tuple[tuple[int, ...], str], float] = defaultdict(float)
    for items, notes, probability in zip(*method.law(a, b, n_positions), strict=True):
        teams = "".join("-" if math.isnan(note) else "ab"[int(note == 0.0)] for note in notes)
        law[tuple(items.tolist()), teams] += probability
    return dict(law)


# ------------------------------------------------------------------------------------------------------------ team draft


def test_team_draft_throws_a_coin_whenever_both_teams_have_as_many_items():
    """One coin for the list would give two lists of a half each; a coin for each position also the teams aa and bb."""
    law = law_of(TeamDraft(), [0, 1, 2, 3], [1, 0, 3, 2], 4)
    assert law == {
        ((0, 1, 2, 3), "abab"): 0.25,
        ((0, 1, 3, 2), "abba"): 0.25,
        ((1, 0, 2, 3), "baab"): 0.25,
        ((1, 0, 3, 2), "baba"): 0.25,
    }


def test_items_on_which_both_agree_from_the_top_on_are_nobodys_or_the_teams_that_pick_them():
    assert law_of(TeamDraft(), [0, 1, 2], [0, 2, 1], 3) == {((0, 1, 2), "-ab"): 0.5, ((0, 2, 1), "-ba"): 0.5}
    assert law_of(TeamDraft("team"), [0, 1, 2], [0, 2, 1], 3) == {
        ((0, 2, 1), "aba"): 0.25,
        ((0, 2, 1), "abb"): 0.25,
        ((0, 1, 2), "baa"): 0.25,
        ((0, 1, 2), "bab"): 0.25,
    }


def test_agreement_below_a_difference_is_the_teams():
    assert {teams for _, teams in law_of(TeamDraft(), [0, 1, 2], [1, 0, 2], 3)} == {"aba", "abb", "baa", "bab"}


def test_equal_rankings_give_no_outcome_if_common_items_are_nobodys():
    ranking, vectors = [2, 0, 1], click_vectors(3)
    for credit in ("sign", "clicks"):
        _, notes, _ = TeamDraft().law(ranking, ranking, 3)
        assert not outcomes(notes[:, None], vectors, credit).any()
        _, notes, _ = Probabilistic().law(ranking, ranking, 3)
        assert np.abs(outcomes(notes[:, None], vectors, credit)).max() < 1e-15
        _, notes, _ = TeamDraft("team").law(ranking, ranking, 3)
        assert outcomes(notes[:, None], vectors, credit).any()


# --------------------------------------------------------------------------------------------------------- probabilistic


def test_probabilistic_interleaving_is_the_sum_over_who_drew_which_item():
    """Every sequence of coins and draws is played; notes and outcomes are compared with its posterior of the coins."""
    a, b, tau, n_positions = [0, 1, 2, 3], [2, 0, 3, 1], 3.0, 3
    weight = [{item: (place + 1) ** -tau for place, item in enumerate(ranking)} for ranking in (a, b)]
    joint: dict[tuple[int, ...], dict[tuple[int, ...], float]] = defaultdict(lambda: defaultdict(float))
    for items, coins in product(permutations(a, n_positions), product((0, 1), repeat=n_positions)):
        probability = 1.0
        for k, coin in enumerate(coins):
            probability *= 0.5 * weight[coin][items[k]] / sum(weight[coin][item] for item in a if item not in items[:k])
        joint[items][coins] += probability
    for items, notes, probability in zip(*Probabilistic(tau).law(a, b, n_positions), strict=True):
        of_coins = joint[tuple(items.tolist())]
        total = sum(of_coins.values())
        assert probability == pytest.approx(total)
        assert notes == pytest.approx(
            [sum(p for coins, p in of_coins.items() if not coins[k]) / total for k in range(n_positions)]
        )
        for clicks in click_vectors(n_positions):
            ours = {coins: int(sum(clicks * (1 - 2 * np.array(coins)))) for coins in of_coins}
            expected = {
                "clicks": sum(p * ours[coins] for coins, p in of_coins.items()) / total,
                "sign": sum(p * np.sign(ours[coins]) for coins, p in of_coins.items()) / total,
            }
            for credit, value in expected.items():
                assert outcomes(notes, clicks, credit) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("method", [TeamDraft(), TeamDraft("team"), Probabilistic()], ids=["none", "team", "probabilistic"])
def test_what_is_drawn_has_the_law(method):
    """Null: draws follow the law; 20,000 draws, each list and note within 5 standard errors, seed fixed."""
    rng, n, counts = np.random.default_rng(3), 20_000, defaultdict(int)
    for _ in range(n):
        items, notes = method.draw([0, 1, 2, 3], [0, 3, 1, 2], 3, rng)
        counts[tuple(items.tolist()), tuple(np.nan_to_num(notes, nan=-1.0).round(9))] += 1
    law = defaultdict(float)
    for items, notes, probability in zip(*method.law([0, 1, 2, 3], [0, 3, 1, 2], 3), strict=True):
        law[tuple(items.tolist()), tuple(np.nan_to_num(notes, nan=-1.0).round(9))] += probability
    assert set(counts) <= set(law)
    for key, probability in law.items():
        assert abs(counts[key] / n - probability) <= 5 * math.sqrt(probability * (1 - probability) / n)


def test_more_lists_than_can_be_enumerated_are_refused_at_once():
    with pytest.raises(ValueError, match="there are more than 60,000 lists of 5 out of 100 items"):
        Probabilistic().law(list(range(100)), list(range(100)), 5)


def test_lists_of_different_items_are_completed_by_each_other():
    assert completed([3, 1], [2, 3]) == ([3, 1, 2], [2, 3, 1])


# ---------------------------------------------------------------------------------------------------------------- clicks


@pytest.mark.parametrize("model_class", KNOWN, ids=lambda model: model.short)
def test_the_joint_law_of_clicks_is_that_of_the_story(model_class):
    model = make_model(model_class, 5, 4, np.random.default_rng(7).random)
    lists = [[0, 1, 2, 3], [4, 2, 0, 1]]
    for ranking, law in zip(lists, click_law(model, lists), strict=True):
        exact = marginal(exact_law(model, ranking), lambda clicks, *_: clicks)
        for clicks, probability in zip(click_vectors(4).tolist(), law, strict=True):
            assert probability == pytest.approx(exact.get(tuple(clicks), 0.0), abs=1e-12)


def test_a_click_model_of_ones_own_has_no_known_law():
    class Own(DependentClickModel):
        pass

    with pytest.raises(ValueError, match="the joint law of clicks is not known for a Own; it can only be simulated"):
        click_law(Own([0.5, 0.4], [0.5, 0.5]), [[0, 1]])


# ------------------------------------------------------------------------------------------------------------- the table


def best_six(name: str):
    """The fitted users of yandex-9982, their six most attractive items and five positions; items by attraction."""
    model = load_instance("yandex-9982").models[name].with_positions(5)
    best = np.argsort(-model.attraction, kind="stable")[:6]
    return model.with_items(**{each: getattr(model.parameters, each)[best] for each in model.item_parameters()})


PAIRS = {"swapped": [1, 0, 2, 3, 4, 5], "reversed": [4, 3, 2, 1, 0, 5], "replaced": [0, 1, 2, 3, 5, 4]}
TABLE = [  # users, B, difference in clicks, sessions of A/B, E of team draft, its sessions, with common="none", probabilistic
    ("PBM", "swapped", 0.0519, 8264, 0.126, 270, 270, 394),
    ("PBM", "reversed", 0.2895, 255, 0.343, 31, 31, 44),
    ("PBM", "replaced", 0.0041, 1_261_376, 0.001, 2_194_799, 102_307, 76_166),
    ("UBM", "swapped", 0.0517, 11_393, 0.144, 196, 196, 295),
    ("CM", "reversed", 0.0, math.inf, 0.309, 40, 40, 53),
    ("DCM", "swapped", -0.0024, 3_069_581, 0.098, 425, 425, 505),
    ("DCM", "reversed", -0.0184, 52_205, 0.267, 52, 52, 62),
    ("DBN", "swapped", -0.0046, 942_875, 0.110, 399, 399, 862),
    ("DBN", "reversed", -0.0147, 116_621, 0.312, 41, 41, 86),
    ("leaves", "reversed", -0.0517, 5724, 0.469, 20, 20, 33),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]} {row[1]}")
def test_the_table_of_exact_expectations(row):
    users, pair, difference, of_ab, credit, of_team, of_none, of_probabilistic = row
    leaves = DependentClickModel(best_six("PBM").attraction, [0.6, 0.5, 0.5, 0.4, 0.4])
    model = leaves if users == "leaves" else best_six(users)
    a, b, vectors = [0, 1, 2, 3, 4, 5], PAIRS[pair], click_vectors(5)

    def sessions(mean, deviation):
        return round(POWER * (deviation / mean) ** 2) if abs(mean) > 1e-12 else math.inf

    def found(method, credit="sign"):
        lists, notes, probabilities = method.law(a, b, 5)
        return moments(model, lists, probabilities, lambda some: outcomes(notes[some, None], vectors, credit))

    (mean_a, sd_a), (mean_b, sd_b) = (
        moments(model, np.array([ranking[:5]]), np.ones(1), lambda some: vectors.sum(axis=1)[None]) for ranking in (a, b)
    )
    assert round(mean_a - mean_b, 4) == difference
    assert mean_a == pytest.approx(model.expected_reward(a[:5]))
    assert sessions(mean_a - mean_b, math.sqrt(2 * (sd_a**2 + sd_b**2))) == of_ab
    assert round(found(TeamDraft("team"))[0], 3) == credit
    assert sessions(*found(TeamDraft("team"))) == of_team
    assert sessions(*found(TeamDraft())) == of_none
    # ⚠ The column of probabilistic interleaving counts expected clicks, not signs.
    assert sessions(*found(Probabilistic(), "clicks")) == of_probabilistic


# -------------------------------------------------------------------------------------------------------- any-time tests

RUNS, SESSIONS = 2000, 2000


def alarms(evidence: np.ndarray) -> int:
    """Runs in which p ≤ 0.05 at any time."""
    return int((evidence.max(axis=1) >= math.log(20)).sum())


def most(count: int) -> float:
    """The upper end of the 99 % interval of a rate."""
    return float(beta.ppf(0.995, count + 1, RUNS - count))


@pytest.fixture(scope="module")
def null_outcomes():
    """Outcomes without a difference: A 30 %, B 30 %, ties."""
    return np.random.default_rng(11).choice([1.0, -1.0, 0.0], (RUNS, SESSIONS), p=[0.3, 0.3, 0.4])


def test_the_sign_test_gives_few_false_alarms_though_it_is_looked_at_after_every_session(null_outcomes):
    """Null: no difference; 2,000 runs of 2,000 sessions; the rate is at most 5 % with its 99 % interval, seed fixed."""
    wins, losses = (np.cumsum(null_outcomes == sign, axis=1) for sign in (1, -1))
    assert most(alarms(sign_test(wins, losses))) <= 0.05


def test_the_normal_mixture_gives_few_false_alarms_and_a_repeated_z_test_gives_many(null_outcomes):
    """As above; a fixed-horizon z that is looked at after every session rejects in a third of the runs and more."""
    n = np.arange(1, SESSIONS + 1)
    means = np.cumsum(null_outcomes, axis=1) / n
    deviations = np.sqrt(np.cumsum(null_outcomes**2, axis=1) / n - means**2)
    evidence, half = normal_mixture(n, means, deviations)
    assert most(alarms(evidence)) <= 0.05
    assert most(int((np.abs(means) > half).any(axis=1).sum())) <= 0.05  # the interval misses 0 as seldom
    peeked = np.abs(means) > 1.96 * deviations / np.sqrt(n)
    assert peeked[:, 100:].any(axis=1).mean() > 0.3


def test_the_a_b_test_gives_few_false_alarms():
    """Null: the same users on both sides, 500 runs of 2,000 sessions, seed fixed; 10 of 500 would be 2 %."""
    rng, count = np.random.default_rng(5), 0
    for _ in range(500):
        means, deviations = running_difference(rng.poisson(1.0, SESSIONS), rng.random(SESSIONS) < 0.5)
        count += normal_mixture(np.arange(1, SESSIONS + 1), means, deviations)[0].max() >= math.log(20)
    assert beta.ppf(0.995, count + 1, 500 - count) <= 0.06


def test_the_normal_mixture_says_nothing_before_a_hundred_sessions():
    evidence, half = normal_mixture([99, 100], [1.0, 1.0], [0.1, 0.1])
    assert evidence[0] == 0.0
    assert half[0] == math.inf
    assert evidence[1] > 100
    assert half[1] < 0.1


def test_running_means_are_those_of_the_first_sessions():
    values = np.random.default_rng(0).normal(size=50)
    means, deviations = running(values)
    assert means[19] == pytest.approx(values[:20].mean())
    assert deviations[19] == pytest.approx(values[:20].std())
    of_a = np.arange(50) % 3 == 0
    means, deviations = running_difference(values, of_a)
    a, b = values[of_a], values[~of_a]
    assert means[-1] == pytest.approx(a.mean() - b.mean())
    assert deviations[-1] / math.sqrt(50) == pytest.approx(math.sqrt(a.var() / len(a) + b.var() / len(b)))
