"""The checker of bandit assumptions: verdicts that theory gives, counterexamples recomputed, and
its decisions.
"""

import itertools
import re

import numpy as np
import pytest
from click_stories import exact_law, marginal

from clickgym.envs import (
    CascadeModel,
    DependentClickModel,
    DynamicBayesianModel,
    MixtureModel,
    PiecewiseStationaryModel,
    PositionBasedModel,
    UserBrowsingModel,
)
from clickgym.envs.instances import load_instance
from clickgym_lab.assumptions import MAX_LISTS, TOLERANCE, check_assumptions

ALPHA = [0.3, 0.7, 0.5, 0.1]  # not in the order of the ids
ZOGHI = [f"Zoghi 2017 Assumption {number}" for number in (3, 4, 5, 6)]
LI = [f"Li 2019a A{number}" for number in (1, 2, 3, 4, 5)]
CM = CascadeModel(ALPHA, 3)
PBM = PositionBasedModel(ALPHA, [0.9, 0.6, 0.2])
UBM = UserBrowsingModel(ALPHA, [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.3, 0.5, 0.7]])


def dcm(*termination):
    return DependentClickModel(ALPHA, termination)


def sdbn(*satisfaction, perseverance=1.0):
    return DynamicBayesianModel(ALPHA, satisfaction, perseverance, n_positions=3)


def failing(model, *args, **kwargs):
    return {
        finding.name for finding in check_assumptions(model, *args, **kwargs) if not finding.holds
    }


def test_all_nine_are_reported_in_order():
    assert [finding.name for finding in check_assumptions(CM)] == ZOGHI + LI


@pytest.mark.parametrize(
    "model",
    [
        CM,
        PBM,
        CascadeModel([0.4, 0.4, 0.4, 0.2], 3),
        PositionBasedModel([0.4, 0.4, 0.1], [0.5, 0.5, 0.0]),
        CascadeModel([1.0, 1.0, 0.0], 3),
        CascadeModel([0.5], 1),
        PositionBasedModel([0.5, 0.2], [0.0]),
        # a DCM of equal termination but for users who give up
        sdbn(0.6, 0.6, 0.6, 0.6, perseverance=0.9),
    ],
    ids=lambda model: f"{model}",
)
def test_these_satisfy_all(model):
    assert failing(model) == set()


def test_unequal_termination_violates_order_independence():
    assert {"Zoghi 2017 Assumption 3", "Li 2019a A2"} <= failing(dcm(0.9, 0.1, 0.5))
    assert failing(dcm(0.9, 0.1, 0.5), "any_click") == {"Zoghi 2017 Assumption 3", "Li 2019a A2"}
    assert failing(dcm(0.5, 0.5, 0.5)) == set()
    assert failing(dcm(0.5, 0.5, 0.1)) == set(), (
        "what happens after a click at the last position changes no examination"
    )


def test_usual_user_browsing_violates_a2_a4_a5():
    assert failing(UBM) == {
        "Li 2019a A2",
        "Li 2019a A4",
        "Li 2019a A5",
        "Zoghi 2017 Assumption 3",
        "Zoghi 2017 Assumption 5",
        "Zoghi 2017 Assumption 6",
    }
    position_based = UserBrowsingModel(ALPHA, [[0.9, 0, 0], [0.6, 0.6, 0], [0.2, 0.2, 0.2]])
    assert failing(position_based) == set()


def test_satisfaction_by_item_violates_a1_a4_a5():
    assert failing(sdbn(0.2, 0.9, 0.1, 0.9)) == {
        "Li 2019a A1",
        "Li 2019a A4",
        "Li 2019a A5",
        "Zoghi 2017 Assumption 5",
        "Zoghi 2017 Assumption 6",
    }


def test_rising_examination_violates_a1_and_a3():
    model = PositionBasedModel([0.5, 0.4, 0.3], [0.2, 0.9])
    assert failing(model) == {"Li 2019a A1", "Li 2019a A3", "Zoghi 2017 Assumption 4"}


def test_a1_depends_on_reward_and_cutoff():
    model = dcm(0.1, 0.9, 0.5)
    verdicts = {
        (reward, cutoff): "Li 2019a A1" not in failing(model, reward, cutoff)
        for reward in ("clicks", "any_click", "satisfaction")
        for cutoff in (1, 3)
    }
    assert verdicts["any_click", 3], "any order of the best items will do"
    assert not verdicts["satisfaction", 3], "the best item belongs where termination is likeliest"
    assert all(verdicts[reward, 1] for reward in ("clicks", "any_click", "satisfaction"))
    rest = [
        failing(model, reward) - {"Li 2019a A1"}
        for reward in ("clicks", "any_click", "satisfaction")
    ]
    assert rest[0] == rest[1] == rest[2]


def test_a4_is_the_implication_and_not_the_printed_equivalence():
    chi = np.array(
        [PBM.examination_probabilities(ranking) for ranking in itertools.permutations(range(4), 3)]
    )
    assert np.ptp(chi, axis=0).max() == 0, (
        "so χ(R, l) ≥ χ(R', l) always, α(R(k)) ≤ α(R(l)) only for half of the lists"
    )
    assert "Li 2019a A4" not in failing(PBM)


@pytest.mark.parametrize("satisfaction", [(0.9, 0.1, 0.5), (0.1, 0.9, 0.5)])
def test_tied_items_may_stand_in_either_order(satisfaction):
    """With equal α but unequal s each order is a sorted list, so whichever is the worse one counts,
    whatever the ids.
    """
    model = DynamicBayesianModel([0.5, 0.5, 0.1], satisfaction, n_positions=3)
    assert {"Li 2019a A1", "Li 2019a A4", "Li 2019a A5"} <= failing(model)
    only_sorted_lists = DynamicBayesianModel([0.5, 0.5], satisfaction[:2], n_positions=2)
    assert "Li 2019a A1" in failing(only_sorted_lists), "one of the two is best, the other is not"


def test_tolerance_is_between_rounding_and_effects():
    for size, holds in ((0.0, True), (TOLERANCE / 10, True), (100 * TOLERANCE, False)):
        model = PositionBasedModel([0.5, 0.4], [0.5, 0.5 + size])
        assert ("Li 2019a A3" not in failing(model)) is holds


NUMBER = r"(\d+(?:\.\d+)?(?:e-\d+)?)"
CHI = rf"χ\((\[[\d, ]+\]), (\d+)\) = {NUMBER}"


def lists(text):
    return [int(item) for item in text.strip("[]").split(",")]


@pytest.mark.parametrize(
    "model",
    [
        UBM,
        dcm(0.9, 0.1, 0.5),
        dcm(0.1, 0.9, 0.5),
        sdbn(0.2, 0.9, 0.1, 0.9),
        PositionBasedModel(ALPHA, [0.2, 0.3, 0.9]),
    ],
)
def test_counterexamples_are_what_they_say(model):
    """Both numbers of each counterexample are recomputed, and its lists stand in the relation the
    assumption is about.
    """
    alpha = model.attraction
    for finding in check_assumptions(model):
        if finding.holds:
            assert finding.counterexample == ""
            continue
        if finding.name == "Li 2019a A1":
            better, star = re.findall(rf"r\((\[[\d, ]+\])\) = {NUMBER}", finding.counterexample)
            for text, value in (better, star):
                assert model.expected_reward(lists(text)) == pytest.approx(float(value), rel=1e-5)
            assert float(better[1]) > float(star[1])
            assert list(alpha[lists(star[0])]) == sorted(alpha, reverse=True)[:3]
            continue
        sides = re.findall(CHI, finding.counterexample)
        (first, k, low), (second, below, high) = [
            (lists(text), int(position), float(value)) for text, position, value in sides
        ]
        assert low < high
        for ranking, position, value in ((first, k, low), (second, below, high)):
            assert model.examination_probabilities(ranking)[position - 1] == pytest.approx(
                value, rel=1e-5
            )
        match finding.name.split()[-1]:
            case "3" | "A2":
                assert k == below
                assert set(first[: k - 1]) == set(second[: k - 1])
                assert first[k - 1] == second[k - 1] or finding.name != "Zoghi 2017 Assumption 3"
            case "4" | "A3":
                assert first == second
                assert k < below
            case "5" | "A4":
                one, two = map(
                    int,
                    re.search(
                        r"exchanging positions (\d) and (\d)", finding.counterexample
                    ).groups(),
                )
                assert one < two == k == below
                exchanged = list(first)
                exchanged[one - 1], exchanged[two - 1] = first[two - 1], first[one - 1]
                assert exchanged == second
                assert alpha[first[one - 1]] <= alpha[first[two - 1]]
            case "6" | "A5":
                assert k == below
                assert list(alpha[second]) == sorted(alpha, reverse=True)[:3]


def shared_positions(one, two):
    """The positions of two lists with the same items above them and the same item at them."""
    return [k for k in range(len(one)) if set(one[:k]) == set(two[:k]) and one[k] == two[k]]


@pytest.mark.parametrize(
    "model", [CM, PBM, dcm(0.4, 0.4, 0.4), sdbn(0.2, 0.9, 0.1, 0.9, perseverance=0.8)]
)
def test_where_order_does_not_matter_whole_laws_agree(model):
    """Zoghi's Assumption 3 is about realisations: these would agree, so the joint law of what they
    determine must, too.
    """
    assert "Zoghi 2017 Assumption 3" not in failing(model)
    laws = {ranking: exact_law(model, ranking) for ranking in itertools.permutations(range(4), 3)}
    for one, two in itertools.combinations(laws, 2):
        where = shared_positions(one, two)

        def at(clicks, examined, satisfied, where=where):
            return tuple((clicks[k], examined[k]) for k in where)

        first, second = marginal(laws[one], at), marginal(laws[two], at)
        assert all(
            first.get(outcome, 0) == pytest.approx(second.get(outcome, 0))
            for outcome in first | second
        )


def test_ten_items_on_five_positions_can_be_checked():
    alpha = np.linspace(0.9, 0.1, 10)
    assert failing(PositionBasedModel(alpha, [1, 0.8, 0.5, 0.4, 0.3])) == set()


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (CascadeModel([0.5] * 10, 10), {}, rf"3\.63e\+06 lists, more than the {MAX_LISTS}"),
        (PiecewiseStationaryModel([CM, CM], [0, 10]), {}, "expected a click model of its own"),
        (MixtureModel([CM, CM], [0.5, 0.5]), {}, "expected a click model of its own"),
        (load_instance("linear").model, {}, "choose among items that stay"),
        (load_instance("habit").model, {}, "users that do not change"),
        (CM, {"reward": "satisfaction"}, "does not define the reward"),
        (CM, {"cutoff": 4}, "cutoff is 4"),
    ],
)
def test_refusals(model, options, message):
    with pytest.raises(ValueError, match=message):
        check_assumptions(model, **options)
