"""What an estimate says of itself: error, effective sample size and weights, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clickgym.offline import ClickLog, FixedPolicy, evaluate

WEIGHTS = [[2, 2], [4, 0], [0, 0], [1, 4]]  # of the list (a, b), which of its items is where in each session


def log():
    items = [[0, 1], [0, 2], [1, 0], [0, 1]]
    propensities = [[1 / weight if weight else 0.5 for weight in row] for row in WEIGHTS]
    return ClickLog(
        items, [[1, 0], [0, 1], [1, 1], [1, 1]], [0] * 4, ("a", "b", "c"), ("q",),
        propensities=propensities, list_propensities=[0.5, 0.5, 0.5, 0.2],
    )  # fmt: skip


def test_diagnostics_are_those_of_the_worst_position():
    """Σw and Σw² are 7 and 21 at the first position, 6 and 20 at the second; sessions earn 2, 0, 0 and 1 + 4."""
    result = evaluate(log(), FixedPolicy([0, 1]), "item-position")
    assert result.value == pytest.approx(7 / 4)
    assert result.standard_error == pytest.approx(math.sqrt((4 + 25) / 4 - (7 / 4) ** 2) / 2)
    assert result.self_normalised == pytest.approx(3 / 7 + 4 / 6)
    assert result.effective_sample_size == pytest.approx(36 / 20)
    assert result.mean_weight == pytest.approx(6 / 4)
    assert result.max_weight == 4
    assert result.on_policy == 6 / 4
    assert result.n_sessions == 4


def test_diagnostics_of_weights_of_lists():
    """Of the list (a, b) itself, shown in the first and the last session, with weights 2 and 5."""
    result = evaluate(log(), FixedPolicy([0, 1]), "ips")
    assert result.value == pytest.approx((2 * 1 + 5 * 2) / 4)
    assert result.effective_sample_size == pytest.approx(49 / 29)
    assert result.mean_weight == pytest.approx(7 / 4)
    assert result.max_weight == pytest.approx(5)


def test_the_interval_holds_the_middle_of_the_resamplings():
    """Sessions earn 2, 0, 0 and 10 by `ips`. Of the sums of four draws 6 % are 0 and 19 % at most 2, 7 % at least 24 and 17 %
    at least 22, so that with 10,000 resamplings the 10 % and 90 % points are 2 and 22, by more than 8 standard errors."""
    result = evaluate(log(), FixedPolicy([0, 1]), "ips", bootstrap=10_000, level=0.8)
    assert result.interval == pytest.approx((2 / 4, 22 / 4))


def test_the_interval_is_of_a_thousand_resamplings_unless_told_otherwise():
    rng = np.random.default_rng(0)
    items = rng.permuted(np.tile([0, 1, 2], (200, 1)), axis=1)[:, :2]
    many = ClickLog(
        items, rng.random((200, 2)) < 0.4, [0] * 200, ("a", "b", "c"), ("q",), propensities=rng.uniform(0.2, 0.9, (200, 2))
    )
    usual = evaluate(many, FixedPolicy([0, 1]), "item-position")
    assert usual == evaluate(many, FixedPolicy([0, 1]), "item-position", bootstrap=1000, level=0.95, seed=0)
    for other in ({"bootstrap": 999}, {"bootstrap": 1001}, {"level": 0.94}, {"seed": 1}):
        assert usual.interval != evaluate(many, FixedPolicy([0, 1]), "item-position", **other).interval
