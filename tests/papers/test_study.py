"""Tests of what the programs in `examples/papers` share: curves, intervals and verdicts."""

import numpy as np
import polars
import pytest
import study
from scipy.special import stdtrit
from study import Curves, Estimate, Finding, Statement, certain

STEPS = [100, 5000, 9900, 10_000]


def table(agent, values, instances=("one",), runs=3):
    """Rows of an agent in environment E: the regret of run n in instance i is ``values(step)``
    times ``1 + n`` millionths, plus i.
    """
    rows = [
        ("E", name, agent, n, step, values(step) * (1 + 1e-6 * n) + place)
        for place, name in enumerate(instances)
        for n in range(runs)
        for step in STEPS
    ]
    return polars.DataFrame(
        rows, ["env", "instance", "agent", "run", "step", "regret"], orient="row"
    )


def test_what_is_kept_of_a_sweep():
    """The summary keeps the mean of each run over the instances at all checkpoints, and each
    instance at the last checkpoint.
    """
    kept = study.compact(table("A", lambda t: 0.5 * t, ["x", "y"]), (0.5, 1.0))
    assert kept.height == 3 * len(STEPS) + 2 * 3 * 2
    curves = Curves(kept)
    assert (curves.horizon, curves.n_runs, curves.instances) == (10_000, 3, ["x", "y"])
    np.testing.assert_allclose(curves.by_run("E", "A")[0], [50.5, 2500.5, 4950.5, 5000.5])
    np.testing.assert_allclose(curves.values("E", "A"), [5000.005, 5001.005])
    np.testing.assert_allclose(curves.rate("E", "A", 0.5, 1.0), 0.5, rtol=1e-5)
    one = Curves(study.compact(table("A", lambda t: 0.5 * t), ()))
    assert len(one.values("E", "A")) == 3  # the runs, if there is a single instance
    assert one.by_instance("E", "A", end=0.0).tolist() == [[0.0, 0.0, 0.0]]


def test_ratio_interval_covers():
    """Null: the interval holds the known ratio, 2, in 95 % of 2,000 samples. The test allows four
    standard errors.
    """
    rng = np.random.default_rng(0)
    below = rng.gamma(20.0, 1.0, (2000, 50))
    above = 2 * below + rng.normal(0.0, 3.0, below.shape)
    shares = [study.ratio(*pair) for pair in zip(above, below, strict=True)]
    inside = np.mean([abs(share.mean - 2) <= share.half for share in shares])
    assert abs(inside - 0.95) < 4 * np.sqrt(0.95 * 0.05 / len(shares))


def test_all_or_any_must_hold():
    """A single failing part, corrected for the number of parts, contradicts a statement about all
    parts. A statement that some part can hold is never contradicted.
    """
    yes, no, unknown = certain("a", True), certain("b", False), Finding("c", 1.0, 1.0)
    assert study.all_of({1: yes, 2: yes}) == Finding("1: a; 2: a", 0.0, 0.0 + 1.0)
    assert study.all_of({1: unknown, 2: yes}).verdict == "undecided"
    assert study.all_of({1: unknown, 2: no, 3: yes}).verdict == "not reproduced on these queries"
    assert study.all_of({1: yes, 2: Finding("", 1.0, 0.03)}).verdict == "undecided"
    assert study.any_of([no, yes], "").verdict == "reproduced"
    assert study.any_of([no, no], "").verdict == "undecided"
    assert study.any_of([no, Finding("", 0.03, 1.0)], "").verdict == "undecided"


def of_level(p):
    """Return a finding that supports a statement at the level ``p``, or contradicts it if ``p`` is
    negative.
    """
    finding = Estimate(np.sign(p) * stdtrit(9, 1 - abs(p) / 2), 1.0, 9).within(low=0.0)
    assert (finding.supports if p > 0 else finding.contradicts) == pytest.approx(abs(p))
    return finding


def initials(findings):
    said = [Statement("", "", "", finding) for finding in findings]
    return "".join(verdict.replace("not t", "-")[0] for _, verdict in study.verdicts(said))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.04, 0.01, 0.02], "yyy"),  # 0.01 at 0.05 / 3, 0.02 at 0.05 / 2, 0.04 at 0.05 / 1
        ([0.02, 0.02, 0.02], "uuu"),  # none at 0.05 / 3
        ([0.01, 0.03, 0.03], "yuu"),  # one at 0.05 / 3, none at 0.05 / 2
    ],
)
@pytest.mark.parametrize("verdict", ["r", "n"])
def test_holms_procedure(values, expected, verdict):
    findings = [of_level(p if verdict == "r" else -p) for p in values]
    assert initials(findings) == expected.replace("y", verdict)


def test_what_cannot_be_contradicted_and_what_is_not_tested():
    pair = [certain("x", False), certain("x", True), "no data"]
    assert initials(pair) == "nr-"
    assert initials([pair[0].only_supports(), *pair[1:]]) == "ur-"
    assert study.verdicts([Statement("", "", "", "no data")]) == [("no data", "not tested")]
