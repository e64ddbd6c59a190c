"""How a verdict follows from what speaks for lists; here nothing is fitted."""

from statistics import NormalDist

import numpy as np
import pytest

from clickgym.offline.decision.evidence import (
    LEVEL,
    Evidence,
    Ground,
    _measured_grounds,
    experiment,
    larger_step,
    settle,
)
from clickgym.offline.decision.lists import Measured


def ground(name, p_value, doubt=0.0, difference=0.1, error=0.03, labels=("d", "c", "b")):
    return Ground(name, labels, difference, error, 1.0, p_value, doubt)


VERDICTS = {
    "measured, and sure": ([ground("measured", LEVEL)], True, "better"),
    "measured, but by chance": ([ground("measured", 1.01 * LEVEL, error=0.06)], True, "not better"),
    "measured, and not proven": ([ground("measured", 1.01 * LEVEL)], True, "not proven"),
    "measured in one stretch of time": ([ground("measured", 1e-9, doubt=0.051)], True, "not proven"),
    "measured without any fifth of the time": ([ground("measured", LEVEL, doubt=0.05)], True, "better"),
    "click models alone are never sure": ([ground("models", 0.0)], True, "likely better"),
    "models, but by chance": ([ground("models", 1.01 * LEVEL, error=0.06)], True, "not better"),
    "models, and not proven": ([ground("models", 1.01 * LEVEL)], True, "not proven"),
    "a measured list comes first": ([ground("measured", LEVEL), ground("models", 0.0)], True, "better"),
    "models speak where nothing measured is proven": (
        [ground("measured", 0.01), ground("models", LEVEL)],
        True,
        "likely better",
    ),
    "nothing stands out": ([], True, "not better"),
    "nothing to judge by": ([], False, "unknown"),
}


@pytest.mark.parametrize(("grounds", "enough", "wanted"), VERDICTS.values(), ids=VERDICTS)
def test_the_verdict_follows_from_the_ground(grounds, enough, wanted):
    evidence = Evidence((), tuple(grounds), 1.0, (), (), (), (), (), (), enough, False, 5, LEVEL)
    verdict, ground = settle(grounds, enough, LEVEL)
    assert verdict == wanted
    assert (evidence.ground, evidence.proposal) == ((None, None) if ground is None else (ground.name, ground.labels))


def test_a_ground_is_judged_at_the_level_that_counts():
    """At .005 the list of the largest proven gain; at .001 a surer one; at 1e-7 nothing measured, and the models may speak."""
    large, sure = ground("measured", 0.004, difference=0.3, error=0.11), ground("measured", 1e-6, difference=0.1, error=0.02)
    models = ground("models", 1e-9, difference=0.4, error=0.06, labels=("b", "c", "d"))
    grounds = [large, sure, models]
    assert [settle(grounds, True, level) for level in (0.005, 0.001, 1e-7, 1e-10)] == [
        ("better", large), ("better", sure), ("likely better", models), ("not proven", models)
    ]  # fmt: skip
    assert [larger_step(grounds, settle(grounds, True, level)[1], level) for level in (0.005, 1e-7, 1e-10)] == [
        models,
        None,
        None,
    ]


LARGER = {
    "it promises more": (ground("models", 0.001, difference=0.2, labels=("b", "c", "d")), True),
    "it promises less": (ground("models", 0.001, difference=0.05, labels=("b", "c", "d")), False),
    "it is not proven": (ground("models", 0.01, difference=0.2, labels=("b", "c", "d")), False),
    "it is the measured list": (ground("models", 0.001, difference=0.2), False),
}


@pytest.mark.parametrize(("models", "wanted"), LARGER.values(), ids=LARGER)
def test_beside_a_measured_list_models_may_propose_a_larger_step(models, wanted):
    safe = ground("measured", 0.001)
    assert larger_step([safe, models], safe, LEVEL) == (models if wanted else None)


def test_intervals_are_of_95_percent():
    assert ground("measured", 0.5, difference=0.2, error=0.1).interval == pytest.approx((0.2 - 0.1959964, 0.2 + 0.1959964))


def test_the_measured_grounds_are_those_that_no_other_surpasses(measured_gain):
    """In the order of certainly large gains: each of the others has to be surer than all before it."""
    gains = [
        measured_gain("a", 0.5, 0.1, 1e-4), measured_gain("b", 0.45, 0.1, 2e-4), measured_gain("c", 0.2, 0.02, 1e-9),
        measured_gain("d", 0.9, 0.1, 1e-8, doubt=0.2), measured_gain("e", 0.2, 0.08, 0.02), measured_gain("f", 0.1, 0.06, 0.01),
    ]  # fmt: skip
    assert [each.labels for each in _measured_grounds(gains, LEVEL)] == [("a",), ("c",), ("d",)]
    assert [each.labels for each in _measured_grounds(gains[4:], LEVEL)] == [("e",)]
    assert _measured_grounds([], LEVEL) == []


@pytest.fixture
def measured_gain():
    def make(label, difference, error, p_value, doubt=0.0):
        return Measured((label,), 500, 1.0, 1.2, difference, error, (0.0, 1.0), p_value, 0.0, doubt, 0.0, 1.0, difference, 20)

    return make


def test_the_length_of_an_experiment():
    """By simulation: of 2,000 A/B tests of this length 80 % prove the gain, up to three standard errors."""
    gain, level = 0.05, 0.01
    half = experiment(gain, 0.25, level) // 2
    assert half == 2008
    rng = np.random.default_rng(0)
    means = rng.binomial(half, [[0.5], [0.5 + gain]], (2, 2000)) / half
    z = (means[1] - means[0]) / np.sqrt((means * (1 - means)).sum(axis=0) / half)
    assert abs((z > NormalDist().inv_cdf(1 - level)).mean() - 0.8) < 3 * np.sqrt(0.16 / 2000)
