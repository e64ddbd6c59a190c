"""Curves, estimates, verdicts, and Holm's procedure, on tables that are made."""

import numpy as np
import polars
import pytest
from made_curves import STEPS, curves, piecewise, rows
from scipy.special import stdtrit

from clickgym_lab.studies import claims
from clickgym_lab.studies.claims import (
    Curves,
    Estimate,
    Finding,
    NotTestedError,
    Number,
    Results,
    Statement,
    all_of,
    any_of,
    certain,
    estimate,
    judge,
)

INITIALS = {
    "r": "reproduced",
    "n": "not reproduced on these queries",
    "u": "undecided",
    "t": "not tested",
}


def test_rate_between_two_fractions():
    one = curves(rows("E", "A", piecewise(1, 2, 3, 4)), rows("E", "B", lambda steps: steps))
    values = one.by_run("E", "A")
    assert values.shape == (4, len(STEPS))
    spans = ((0, 0.25), (0.25, 0.5), (0, 1), (0.9, 1), (0.25, 0.75))
    rates = [one.rate("E", "A", *span)[0] for span in spans]
    np.testing.assert_allclose(rates, [1.0, 2.0, 2.5, 4.0, 2.5])
    np.testing.assert_allclose(one.at(values, 11)[0], 100)  # the next checkpoint
    np.testing.assert_allclose(one.values("E", "A")[0], 250_000)
    np.testing.assert_allclose(one.window_rates(values)[0], np.repeat([1, 2, 3, 4], 25))


def test_units_are_queries_or_the_runs_of_a_single_one():
    """Also if the rows come in another order."""
    frames = [
        rows("E", "A", lambda steps, rate=rate: rate * steps, instances=[name])
        for name, rate in {"x": 1.0, "y": 3.0}.items()
    ]
    one = curves(*frames)
    assert one.instances == ["x", "y"]
    assert (one.over, curves(frames[0]).over) == ("2 queries", "4 runs of one query")
    np.testing.assert_allclose(one.by_instance("E", "A")[:, 0], [100_000, 300_000])
    np.testing.assert_allclose(one.rate("E", "A", *claims.END), [1, 3], rtol=1e-5)
    assert curves(frames[0]).values("E", "A").shape == (4,)
    np.testing.assert_allclose(one.by_run("E", "A")[:, -1], 200_000 * (1 + 1e-6 * np.arange(4)))
    shuffled = Curves(one.table.sample(fraction=1, shuffle=True, seed=0))
    for name in "xy":
        one_of = [table.by_run("E", "A", instance=name) for table in (one, shuffled)]
        np.testing.assert_array_equal(*one_of)


def test_what_is_not_kept_is_not_tested():
    """Never over other units: not on values of queries that the results do not have, and not on a
    part that was not played.
    """
    table = rows("E", "A", lambda steps: steps, instances="xyz")
    means = table.group_by("env", "agent", "run", "step").agg(polars.col("regret").mean())
    ends = table.filter(polars.col("step").is_in([99_000, 100_000]))
    kept = Curves(polars.concat([means, ends], how="diagonal"))
    assert len(kept.rate("E", "A", *claims.END)) == 3
    with pytest.raises(NotTestedError, match="no values of single queries at session 20,000"):
        kept.rate("E", "A", 0.2, 0.4)
    results = Results({"part": kept})
    statements = [
        Statement("a", "", "", lambda results: claims.linear(results["part"], "E", "A")),
        Statement("b", "", "", lambda results: estimate(results["part"].values("E", "A")).above(1)),
        Statement(
            "c", "", "", lambda results: estimate(results["other"].values("E", "A")).above(1)
        ),
        Statement("d", "", "no data"),
        Statement(
            "e", "", "", lambda results: estimate(results["part"].rate("E", "A", 0.2, 1)).above(0)
        ),
    ]
    judged = judge(statements, results, full=True)
    assert "".join(row.verdict[0] for row in judged) == "rrnnn"
    assert [row.verdict for row in judged[2:]] == ["not tested"] * 3
    assert judged[2].measured == "other was not played on these queries"
    number = Number("x", 2.0, lambda results: results["other"].values("E", "A"))
    assert number.ours(results) is None


def test_a_row_says_that_the_correction_took_its_verdict_back():
    found = [Finding("x", 0.03, 1.0), Finding("y", 1.0, 0.001), Finding("z", 1.0, 1.0)]
    statements = [Statement("", "", "", lambda _, one=one: one) for one in found]
    first, second, third = judge(statements, Results({}), full=True)
    assert (first.verdict, second.verdict[0], third.verdict) == ("undecided", "n", "undecided")
    assert first.measured == "x; reproduced before the correction for the number of statements"
    assert (second.measured, third.measured) == ("y", "z")


def test_verdicts_at_bounds():
    """Student's t with 3 degrees of freedom: 3.182 standard errors."""
    values = estimate([1.0, 2.0, 3.0, 4.0])
    half = 3.182446 * np.sqrt(5 / 3) / 2
    assert values.half == pytest.approx(half)
    for bound, verdict in ((2.5 - 1.001 * half, "r"), (2.5 - 0.999 * half, "u")):
        assert values.above(bound).verdict == INITIALS[verdict]
    for bound, verdict in ((2.5 + 1.001 * half, "r"), (2.5 - 1.001 * half, "n")):
        assert values.below(bound).verdict == INITIALS[verdict]
    exact = Estimate(1.0, 0.0, 3)
    assert "".join(exact.above(bound).verdict[0] for bound in (0.9, 1.0, 1.1)) == "rnn"
    spans = ((0, 2), (2, 3), (0, 0.5))
    assert "".join(exact.within(*span).verdict[0] for span in spans) == "rnn"
    alone = estimate([1.0])
    assert (str(alone), alone.above(0).verdict) == ("1 ± ?", "undecided")


def test_all_or_any_must_hold():
    """A part that fails, corrected for the number of parts, contradicts all; nothing contradicts a
    statement that something can be.
    """
    yes, no, unknown = certain("", True), certain("", False), Finding("", 1.0, 1.0)
    assert all_of("", [yes, yes]).verdict == "reproduced"
    assert all_of("", [unknown, yes]).verdict == "undecided"
    assert all_of("", [unknown, no, yes]).verdict == "not reproduced on these queries"
    assert all_of("", [yes, Finding("", 1.0, 0.03)]).verdict == "undecided"
    assert any_of("", [no, yes]).verdict == "reproduced"
    assert any_of("", [no, no]).verdict == "undecided"
    assert any_of("", [no, Finding("", 0.03, 1.0)]).verdict == "undecided"


@pytest.mark.parametrize(
    ("last", "first", "expected"),
    [
        (0.01, 0.02, "r"),
        (-0.01, -0.02, "n"),
        (0.01, 0.2, "u"),
        (0.2, -0.01, "u"),
        (0.01, -0.01, "u"),
    ],
)
def test_both_readings_decide(last, first, expected):
    """What holds in one reading only, or fails in one only, is undecided."""
    found = {"A": of_level(last), "A:feedback=first_click": of_level(first)}
    both = claims.in_readings(found.__getitem__, "A")
    assert both.verdict[0] == expected
    alone = [
        f"{name}_click (alone {one.verdict})"
        for name, one in zip(("last", "first"), found.values(), strict=True)
    ]
    assert all(words in both.measured for words in alone)


@pytest.mark.parametrize(
    ("count", "n", "bound", "expected"),
    [
        (0, 60, 0.01, "u"),  # a t interval would be a point at 0
        (0, 500, 0.01, "n"),
        (1, 60, 0.01, "u"),
        (3, 60, 0.01, "r"),
        (60, 60, 0.5, "r"),
        (35, 60, 0.5, "u"),
        (15, 60, 0.5, "n"),
    ],
)
def test_share_of_queries(count, n, bound, expected):
    assert claims.above_share(np.arange(n) < count, bound).verdict[0] == expected


def test_exact_interval_of_a_share():
    """Clopper and Pearson: of none of n the upper end is 1 - 0.025^{1/n}."""
    words = f"0 of 60 queries (0.0 to {100 * (1 - 0.025 ** (1 / 60)):.1f} %)"
    assert claims.above_share(np.zeros(60, bool), 0.01).measured == words


@pytest.mark.parametrize(
    ("growth", "is_linear"),
    [
        (lambda t: 0.1 * t, "reproduced"),
        (lambda t: 1000 + 0.1 * t, "reproduced"),  # what was lost at first
        (np.sqrt, "not reproduced on these queries"),
        (np.log, "not reproduced on these queries"),
        (np.zeros_like, "not reproduced on these queries"),
    ],
    ids=["linear", "linear after a start", "root", "log", "none"],
)
def test_linear_regret(growth, is_linear):
    assert claims.linear(curves(rows("E", "A", growth)), "E", "A").verdict == is_linear


def test_comparisons_are_within_queries():
    """Of two queries the gaps, 1 and 3 with all runs equal, say little of a third, though the runs
    themselves would be sure.
    """
    one = curves(rows("E", "A", lambda steps: steps), rows("E", "B", lambda steps: 1.01 * steps))
    a, b = (one.values("E", agent) for agent in "AB")
    assert claims.less(a, b).verdict == "reproduced"
    assert claims.less(b, a).verdict == "not reproduced on these queries"
    same = claims.less(a, a)
    assert same.measured == "100,000 against 100,000, a gap of 0 ± 0"
    worse = [
        rows("E", "B", lambda steps, gap=gap: (1 + gap) * steps, instances=[name])
        for name, gap in {"x": 1.0, "y": 3.0}.items()
    ]
    two = curves(rows("E", "A", lambda steps: steps, instances=["x", "y"]), *worse)
    assert claims.less(*(two.values("E", agent) for agent in "AB")).verdict == "undecided"


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


def test_difference_to_a_printed_number():
    """The paper's standard error counts; without one, the interval is ours."""
    ours = estimate([1.0, 2.0, 3.0])
    assert Number("x", 3.0, lambda _: np.zeros(1)).difference(ours) == "-1 ± 2.5"
    both = Number("x", 1.5, lambda _: np.zeros(1), error=1.0)
    assert (both.printed, both.difference(ours)) == ("1.5 ± 1", "+0.5 ± 3.2")
    assert both._replace(is_comparable=False).difference(ours) == "+0.5"


def of_level(p):
    """A finding that supports at a level, or contradicts if that is negative."""
    finding = Estimate(np.sign(p) * stdtrit(9, 1 - abs(p) / 2), 1.0, 9).above(0.0)
    assert (finding.supports if p > 0 else finding.contradicts) == pytest.approx(abs(p))
    return finding


def judged_findings(findings, full=True, late=False, other=False):
    statements = [Statement("", "", "", lambda _, one=one: one, late, other) for one in findings]
    return "".join(row.verdict[0] for row in judge(statements, Results(), full))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.04, 0.01, 0.02], "yyy"),  # 0.01 at 0.05 / 3, 0.02 at 0.05 / 2, 0.04 at 0.05 / 1
        ([0.02, 0.02, 0.02], "uuu"),  # none at 0.05 / 3
        ([0.01, 0.03, 0.03], "yuu"),  # one at 0.05 / 3, none at 0.05 / 2
        ([0.01, 0.02, 0.2], "yyu"),
    ],
)
@pytest.mark.parametrize("verdict", ["r", "n"])
def test_holms_procedure(values, expected, verdict):
    findings = [of_level(p if verdict == "r" else -p) for p in values]
    assert judged_findings(findings) == expected.replace("y", verdict)


def test_shorter_runs_contradict_nothing_about_the_end():
    pair = [certain("x", False), certain("x", True)]
    assert judged_findings(pair, full=True, late=True) == "nr"
    assert judged_findings(pair, full=False, late=True) == "ur"
    assert judged_findings(pair, full=False, late=False) == "nr"


def test_another_version_contradicts_nothing():
    assert judged_findings([certain("x", False), certain("x", True)], other=True) == "ur"
