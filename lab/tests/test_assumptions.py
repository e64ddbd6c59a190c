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
NAMES = {f"Z{i}": f"Zoghi 2017 Assumption {i}" for i in (3, 4, 5, 6)}
NAMES |= {f"A{i}": f"Li 2019a A{i}" for i in (1, 2, 3, 4, 5)}
CM = CascadeModel(ALPHA, 3)
PBM = PositionBasedModel(ALPHA, [0.9, 0.6, 0.2])
UBM = UserBrowsingModel(ALPHA, [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.3, 0.5, 0.7]])


def dcm(*termination):
    return DependentClickModel(ALPHA, termination)


def sdbn(*satisfaction, perseverance=1.0):
    return DynamicBayesianModel(ALPHA, satisfaction, perseverance, n_positions=3)


def failing(model, *args, **kwargs):
    findings = check_assumptions(model, *args, **kwargs)
    assert [finding.name for finding in findings] == list(NAMES.values())
    return {short for short, finding in zip(NAMES, findings, strict=True) if not finding.holds}


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (CM, ""),
        (PBM, ""),
        (CascadeModel([0.4, 0.4, 0.4, 0.2], 3), ""),
        (PositionBasedModel([0.4, 0.4, 0.1], [0.5, 0.5, 0.0]), ""),
        (CascadeModel([1.0, 1.0, 0.0], 3), ""),
        (CascadeModel([0.5], 1), ""),
        (PositionBasedModel([0.5, 0.2], [0.0]), ""),
        (PositionBasedModel(np.linspace(0.9, 0.1, 10), [1, 0.8, 0.5, 0.4, 0.3]), ""),
        # a DCM of equal termination but for users who give up
        (sdbn(0.6, 0.6, 0.6, 0.6, perseverance=0.9), ""),
        (dcm(0.5, 0.5, 0.5), ""),
        # what happens after a click at the last position changes no examination
        (dcm(0.5, 0.5, 0.1), ""),
        (dcm(0.9, 0.1, 0.5), "Z3 A1 A2"),
        (UBM, "Z3 Z5 Z6 A2 A4 A5"),
        (UserBrowsingModel(ALPHA, [[0.9, 0, 0], [0.6, 0.6, 0], [0.2, 0.2, 0.2]]), ""),
        (sdbn(0.2, 0.9, 0.1, 0.9), "Z5 Z6 A1 A4 A5"),
        (PositionBasedModel([0.5, 0.4, 0.3], [0.2, 0.9]), "Z4 A1 A3"),
        # the next two: differences between rounding and effects
        (PositionBasedModel([0.5, 0.4], [0.5, 0.5 + TOLERANCE / 10]), ""),
        (PositionBasedModel([0.5, 0.4], [0.5, 0.5 + 100 * TOLERANCE]), "Z4 A1 A3"),
    ],
    ids=str,
)
def test_verdicts(model, expected):
    assert failing(model) == set(expected.split())


def test_a1_depends_on_reward_and_cutoff():
    """For satisfaction the best item belongs where termination is likeliest."""
    model = dcm(0.1, 0.9, 0.5)
    for cutoff in (1, 3):
        for reward in ("clicks", "any_click", "satisfaction"):
            names = failing(model, reward, cutoff)
            assert ("A1" in names) == ((reward, cutoff) == ("satisfaction", 3))
            assert names - {"A1"} == {"Z3", "Z6", "A2", "A5"}


@pytest.mark.parametrize("satisfaction", [(0.9, 0.1, 0.5), (0.1, 0.9, 0.5)])
def test_tied_items_may_stand_in_either_order(satisfaction):
    """With equal α but unequal s each order is a sorted list, so whichever is the worse one counts,
    whatever the ids.
    """
    model = DynamicBayesianModel([0.5, 0.5, 0.1], satisfaction, n_positions=3)
    assert {"A1", "A4", "A5"} <= failing(model)
    only_sorted_lists = DynamicBayesianModel([0.5, 0.5], satisfaction[:2], n_positions=2)
    assert "A1" in failing(only_sorted_lists), "one of the two is best, the other is not"


VALUE = r"(χ|r)\((\[[\d, ]+\])(?:, (\d+))?\) = (\d+(?:\.\d+)?(?:e-\d+)?)"


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
    """Both numbers are recomputed, and the lists stand in the relation the assumption is about."""
    for name, finding in zip(NAMES, check_assumptions(model), strict=True):
        text = finding.counterexample
        assert finding.holds == (text == "")
        if finding.holds:
            continue
        lists, positions, values, printed = [], [], [], []
        for kind, items, position, value in re.findall(VALUE, text):
            ranking = [int(item) for item in re.findall(r"\d+", items)]
            lists.append(ranking)
            positions.append(int(position or 0))
            chi = model.examination_probabilities(ranking)
            values.append(model.expected_reward(ranking) if kind == "r" else chi[positions[-1] - 1])
            printed.append(float(value))
        assert values == pytest.approx(printed, rel=1e-5)
        assert (values[0] > values[1]) == (name == "A1")
        (first, second), (k, below) = lists, positions
        if name in ("Z4", "A3"):
            assert first == second
            assert k < below
            continue
        assert k == below
        if name in ("Z3", "A2"):
            assert set(first[: k - 1]) == set(second[: k - 1])
            assert first[k - 1] == second[k - 1] or name == "A2"
        elif name in ("Z5", "A4"):
            upper = int(re.search(rf"exchanging positions (\d) and {k}", text)[1])
            assert upper < k
            assert ALPHA[first[upper - 1]] <= ALPHA[first[k - 1]]
            first[upper - 1], first[k - 1] = first[k - 1], first[upper - 1]
            assert first == second
        else:
            assert sorted(ALPHA, reverse=True)[:3] == [ALPHA[item] for item in second]


@pytest.mark.parametrize(
    "model", [CM, PBM, dcm(0.4, 0.4, 0.4), sdbn(0.2, 0.9, 0.1, 0.9, perseverance=0.8)]
)
def test_joint_laws_agree_if_order_does_not_matter(model):
    """Zoghi's Assumption 3 is about realisations: these would agree, so the joint law of what they
    determine must, too.
    """
    assert "Z3" not in failing(model)
    laws = {ranking: exact_law(model, ranking) for ranking in itertools.permutations(range(4), 3)}
    for one, two in itertools.combinations(laws, 2):
        shared = [k for k in range(3) if set(one[:k]) == set(two[:k]) and one[k] == two[k]]

        def at(clicks, examined, satisfied, shared=shared):
            return tuple((clicks[k], examined[k]) for k in shared)

        first, second = marginal(laws[one], at), marginal(laws[two], at)
        differences = [first.get(key, 0) - second.get(key, 0) for key in first | second]
        np.testing.assert_allclose(differences, 0, atol=1e-12)


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
