"""Tests of UBM-IPS: its value by hand, and its errors compared with those of estimators that know
less.
"""

import numpy as np
import pytest
from he2020_offline import errors, ips, pbm_ips, ubm_ips

from clickgym.logs import ClickLog

LOG = ClickLog(
    [[0, 1], [0, 1], [1, 0], [1, 0]],
    [[1, 1], [0, 0], [0, 1], [1, 0]],
    [0] * 4,
    ("a", "b"),
    ("q",),
)


def test_values_by_hand():
    """Each item has two clicks. It is certainly examined at position 1 in two sessions; at position
    2 it is shown once below a click, and once without a click above it.
    """
    attraction = 2 / (1 + 1 + 0.8 + 0.5)
    below = attraction * 0.8 + (1 - attraction) * 0.5
    examination = np.array([[1.0, 0.0], [0.5, 0.8]])
    assert ubm_ips(LOG, [0, 1], examination) == pytest.approx(attraction * (1 + below))
    examined = 1 + 1 + 0.6 + 0.6
    assert pbm_ips(LOG, [0, 1], np.array([1.0, 0.6])) == pytest.approx(2 / examined * 1.6)
    assert ips(LOG, [0, 1], 0.5) == pytest.approx(2 / 0.5 / 4)
    with pytest.raises(ValueError, match="never shows"):
        ubm_ips(LOG[[]], [0, 1], examination)


def test_what_knows_the_users_errs_least():
    found = errors(10, 2000)
    assert found["UBM-IPS"] < 0.1 * found["IPS"]
    assert found["UBM-IPS"] < 1e-2
