"""Curves, estimates, and Holm's procedure, on tables that are made."""

import numpy as np
import polars
import pytest
from made_curves import STEPS, curves, piecewise, rows
from scipy.special import stdtrit

from clickgym_lab.studies import claims
from clickgym_lab.studies.claims import (
    Claim,
    Curves,
    Estimate,
    all_of,
    certain,
    estimate,
    judge,
)


def test_rate_between_two_fractions():
    one = curves(rows("E", "A", piecewise(1, 2, 3, 4)), rows("E", "B", lambda steps: steps))
    values = one.by_run("E", "A")
    assert values.shape == (4, len(STEPS))
    spans = ((0, 0.25), (0.25, 0.5), (0, 1), (0.9, 1), (0.25, 0.75))
    rates = [one.rate(values, *span)[0] for span in spans]
    np.testing.assert_allclose(rates, [1.0, 2.0, 2.5, 4.0, 2.5])
    np.testing.assert_allclose(one.at(values, 0), np.zeros(4))
    np.testing.assert_allclose(one.at(values, 11)[0], 100)  # the next checkpoint
    np.testing.assert_allclose(one.at_end("E", "A")[0], 250_000)
    np.testing.assert_allclose(one.rates("E", "A", claims.END)[0][0][0], 4)
    np.testing.assert_allclose(one.window_rates(values)[0], np.repeat([1, 2, 3, 4], 25))


def test_runs_averaged_over_instances():
    """Also if the rows come in another order."""
    frames = [
        rows("E", "A", lambda steps, rate=rate: rate * steps, instances=[name])
        for name, rate in {"x": 1.0, "y": 3.0}.items()
    ]
    one = curves(*frames)
    assert one.instances == ["x", "y"]
    np.testing.assert_allclose(one.by_instance("E", "A")[:, 0], [100_000, 300_000])
    np.testing.assert_allclose(one.rates("E", "A", claims.END)[0][0], [1, 3], rtol=1e-5)
    np.testing.assert_allclose(one.by_run("E", "A")[:, -1], 200_000 * (1 + 1e-6 * np.arange(4)))
    shuffled = Curves(one.table.sample(fraction=1, shuffle=True, seed=0))
    for name in "xy":
        one_of = [table.by_run("E", "A", instance=name) for table in (one, shuffled)]
        np.testing.assert_array_equal(*one_of)


def test_verdicts_at_bounds():
    """Student's t with 3 degrees of freedom: 3.182 standard errors."""
    values = estimate([1.0, 2.0, 3.0, 4.0])
    half = 3.182446 * np.sqrt(5 / 3) / 2
    assert values.half == pytest.approx(half)
    for bound, verdict in ((2.5 - 1.001 * half, "yes"), (2.5 - 0.999 * half, "cannot tell")):
        assert values.above(bound).verdict == verdict
    for bound, verdict in ((2.5 + 1.001 * half, "yes"), (2.5 - 1.001 * half, "no")):
        assert values.below(bound).verdict == verdict
    exact = Estimate(1.0, 0.0, 3)
    assert [exact.above(bound).verdict for bound in (0.9, 1.0, 1.1)] == ["yes", "no", "no"]
    spans = ((0, 2), (2, 3), (0, 0.5))
    assert [exact.within(*span).verdict for span in spans] == ["yes", "no", "no"]
    alone = estimate([1.0])
    assert (str(alone), alone.above(0).verdict) == ("1 ± ?", "cannot tell")


def test_all_findings_must_hold():
    yes, no, unknown = (certain("", holds) for holds in (True, False, None))
    assert all_of("", [yes, yes]).verdict == "yes"
    assert all_of("", [unknown, yes]).verdict == "cannot tell"
    assert all_of("", [unknown, no, yes]).verdict == "no"


@pytest.mark.parametrize(
    ("growth", "is_linear"),
    [
        (lambda t: 0.1 * t, "yes"),
        (np.sqrt, "no"),
        (np.log, "no"),
        (np.zeros_like, "no"),
        # the last fifth is compared with the second
        (piecewise(0, 1, 0, 0, 0.85), "yes"),
        (piecewise(9, 1, 9, 9, 0.75), "no"),
    ],
    ids=["linear", "root", "log", "none", "last above", "last below"],
)
def test_linear_regret_and_learning(growth, is_linear):
    one = curves(rows("E", "A", growth))
    assert claims.linear(one, "E", "A").verdict == is_linear
    learns = {"yes": "no", "no": "yes"}[is_linear]
    assert claims.sublinear(one, "E", "A").verdict == learns


def test_comparisons_are_within_units():
    """Equal agents differ by nothing; of two queries the gaps, 1 and 3 with all runs equal, say
    little of a third, though the runs themselves would be sure.
    """
    one = curves(rows("E", "A", lambda steps: steps), rows("E", "B", lambda steps: 1.01 * steps))
    assert claims.less_regret(one, "E", "A", "B").verdict == "yes"
    assert claims.less_regret(one, "E", "B", "A").verdict == "no"
    same = claims.less_regret(one, "E", "A", "A", 50_000)
    assert (same.measured, same.verdict) == ("50,000 against 50,000, a gap of 0 ± 0", "no")
    worse = [
        rows("E", "B", lambda steps, gap=gap: (1 + gap) * steps, instances=[name])
        for name, gap in {"x": 1.0, "y": 3.0}.items()
    ]
    two = curves(rows("E", "A", lambda steps: steps, instances=["x", "y"]), *worse)
    finding = claims.less_regret(two, "E", "A", "B")
    assert finding.verdict == "cannot tell"
    assert finding.measured.endswith("over 2 queries")
    assert claims.less_in_the_end(two, "E", "A", "B").verdict == "cannot tell"
    assert claims.less_regret(two, "E", "A", "B", 50_000).verdict == "yes"


def test_growth_over_instances_if_their_values_are_kept():
    """Else over runs, and over the runs that were kept of all instances."""
    table = rows("E", "A", lambda steps: steps, instances="xyz")
    means = table.group_by("env", "agent", "run", "step").agg(polars.col("regret").mean())
    ends = table.filter(polars.col("step").is_in([20_000, 40_000, 80_000, 100_000]))
    kept = polars.concat([means, ends], how="diagonal")
    own = polars.col("instance").is_not_null()
    for gone, units in (
        (False, "over 3 queries"),
        (own & (polars.col("step") == 20_000), "over runs"),
        (own & (polars.col("run") > 1), "over 3 queries, 2 of 4 runs each"),
    ):
        one = Curves(kept.remove(gone))
        assert one.rates("E", "A", (0.2, 0.4), (0.8, 1.0))[1] == units


def test_ratio_interval_covers():
    """Null: the interval holds the known ratio, 2, in 95 % of 2,000 samples; four standard errors
    are let pass.
    """
    rng = np.random.default_rng(0)
    below = rng.gamma(20.0, 1.0, (2000, 50))
    above = 2 * below + rng.normal(0.0, 3.0, below.shape)
    shares = [claims.ratio(*pair) for pair in zip(above, below, strict=True)]
    inside = np.mean([abs(share.mean - 2) <= share.half for share in shares])
    assert abs(inside - 0.95) < 4 * np.sqrt(0.95 * 0.05 / len(shares))


def of_level(p):
    """A finding that supports at a level, or contradicts if that is negative."""
    finding = Estimate(np.sign(p) * stdtrit(9, 1 - abs(p) / 2), 1.0, 9).above(0.0)
    assert (finding.supports if p > 0 else finding.contradicts) == pytest.approx(abs(p))
    return finding


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.04, 0.01, 0.02], "yyy"),  # 0.01 at 0.05 / 3, 0.02 at 0.05 / 2, 0.04 at 0.05 / 1
        ([0.02, 0.02, 0.02], "ccc"),  # none at 0.05 / 3
        ([0.01, 0.03, 0.03], "ycc"),  # one at 0.05 / 3, none at 0.05 / 2
        ([0.01, 0.02, 0.2], "yyc"),
    ],
)
@pytest.mark.parametrize("word", ["yes", "no"])
def test_holms_procedure(values, expected, word):
    findings = [of_level(p if word == "yes" else -p) for p in values]
    judged = judge([Claim("", "", finding) for finding in findings], full=True)
    verdicts = [word if initial == "y" else "cannot tell" for initial in expected]
    assert [row.verdict for row in judged] == verdicts
    assert [row.alone for row in judged] == [word if p <= 0.05 else "cannot tell" for p in values]


def test_shorter_runs_contradict_nothing_about_the_end():
    bad, good = certain("x", False), certain("x", True)
    pairs = [(bad, True), (bad, False), (good, True)]
    statements = [Claim("", "", finding, late=late) for finding, late in pairs]
    assert [row.verdict for row in judge(statements, full=True)] == ["no", "no", "yes"]
    short = judge(statements, full=False)
    assert [row.verdict for row in short] == ["cannot tell", "no", "yes"]
    assert short[0].measured == "x (not by this horizon)"
