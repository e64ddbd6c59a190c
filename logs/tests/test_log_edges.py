"""Estimators of click models and of policies on tiny logs at the edges, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from edge_logs import CHECKS, check, draw

from clickgym_logs import ClickLog, FixedPolicy, ListPolicy, UniformPolicy, evaluate


def faults(name: str, seeds: range) -> list[str]:
    found = ((seed, check(name, draw(name, seed), seed)) for seed in seeds)
    return [
        f"seed {seed}: {fault}"
        for seed, fault in found
        if fault and not fault.startswith("refused: ")
    ]


@pytest.mark.parametrize("name", CHECKS)
def test_tiny_logs_at_the_edges(name):
    assert faults(name, range(24)) == []


# ------------------------------------------------------------------------------------------------
# --- what was found and mended


def log_of(n_sessions: int = 2) -> ClickLog:
    log = ClickLog([[0, 1], [1, 0]], [[1, 0], [0, 1]], [0, 0], ("a", "b"), ("q",))
    return log[:n_sessions]


@pytest.mark.parametrize("probability", [5e-324, 1e-300, 1e-101])
def test_a_weight_next_to_infinity_is_refused(probability):
    logging = ListPolicy([[0, 1], [1, 0]], [probability, 1.0])
    with pytest.raises(
        ValueError,
        match=r"^session 0 \(counted from 0\): .* policy with 1: a weight above 1e\+100$",
    ):
        evaluate(log_of(), FixedPolicy([0, 1]), "ips", logging=logging)


@pytest.mark.parametrize("probability", [1e-90, 1e-200])
def test_sizes_of_weights_are_no_matter_to_the_spread(probability):
    """Weights of 1e90, whose squares' squares overflow, or of 1e-200, whose squares are 0."""
    rare, usual = (
        ListPolicy([[0, 1], [1, 0]], [probability, 1.0 - probability]),
        UniformPolicy(2, 2),
    )
    target, logging = (usual, rare) if probability == 1e-90 else (rare, usual)
    result = evaluate(log_of(), target, "ips", logging=logging)
    assert 1.0 <= result.effective_sample_size <= 2.0
    assert np.isfinite([result.standard_error, *result.interval]).all()
    only = evaluate(
        log_of(1), FixedPolicy([0, 1]), "ips", logging=ListPolicy([[0, 1], [1, 0]], [1e-90, 1.0])
    )
    assert only.effective_sample_size == 1.0


def test_a_single_session_has_a_value_but_no_spread():
    result = evaluate(log_of(1), FixedPolicy([0, 1]), "ips", logging=UniformPolicy(2, 2))
    assert (result.value, result.effective_sample_size) == (2.0, 1.0)
    assert np.isnan([result.standard_error, *result.interval]).all()
