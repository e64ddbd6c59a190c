"""Logs of single items: the policy that made the log may be given in place of what was recorded."""

import numpy as np
import pytest

from clickgym.offline import ItemPositionLog, ItemPositionPolicy, UniformPolicy, evaluate

PROBABILITIES = np.array([[0.5, 0.2, 0.3], [0.3, 0.5, 0.2], [0.2, 0.3, 0.5]])


def log(n_positions):
    """Each item once at each position, with propensities that are not those of any policy."""
    items, positions = np.divmod(np.arange(3 * n_positions), n_positions)
    return ItemPositionLog(items, positions, items == positions, np.full(len(items), 0.9))


@pytest.mark.parametrize("n_positions", [2, 3])
def test_a_given_policy_stands_for_the_recorded_propensities(n_positions):
    """It, and the target, fill as many positions as the log has, or more."""
    shown, logging = log(n_positions), ItemPositionPolicy(PROBABILITIES)
    result = evaluate(shown, UniformPolicy(3, 3), "item-position", logging=logging)
    weights = (1 / 3) / PROBABILITIES[:, :n_positions].ravel()
    assert result.value == pytest.approx((weights * shown.clicks).mean())
    assert result.max_weight == pytest.approx(weights.max())
    recorded = evaluate(shown, UniformPolicy(3, 3), "item-position")
    assert recorded.value == pytest.approx(shown.clicks.mean() / 3 / 0.9)


def test_a_policy_that_fills_fewer_positions_than_the_log_is_refused():
    few = ItemPositionPolicy(np.full((3, 2), 1 / 3))
    with pytest.raises(ValueError, match="the logging policy fills 2 positions; the log has 3"):
        evaluate(log(3), UniformPolicy(3, 3), "item-position", logging=few)
    with pytest.raises(ValueError, match="the target policy fills 2 positions; the log has 3"):
        evaluate(log(3), few, "item-position")
