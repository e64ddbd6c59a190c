"""Tests of estimates against brute force, and of the extrapolation that makes EM converge
faster.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import betaln

from clickgym.logs import ClickLog, CMEstimator, PBMEstimator, UBMEstimator
from clickgym.logs.estimation.priors import fit_prior
from tests.helpers.reference_estimators import BruteForce, LeaveOut
from tests.logs.test_estimators import (
    ALL,
    EM,
    TRUTH,
    UNIFORM,
    cut_short,
    penalised,
    simulated,
    small_log,
    unequal_log,
)

# ------------------------------------------------------------------------------------------------
# --- brute force


@pytest.mark.parametrize("make_log", [small_log, unequal_log])
@pytest.mark.parametrize("name", ALL)
def test_estimates_are_those_of_brute_force(name, make_log):
    """Compares three steps with brute force, which enumerates every sequence of a user's coin
    flips. The cascade model needs no steps.
    """
    log = make_log(2, 80)
    fitted = ALL[name]().fit(log) if name == "CM" else ALL[name](3).fit(log)
    reference = BruteForce(name, 3).fit(log)
    attraction = [reference.p(("α", *pair)) for pair in fitted.pairs_]
    np.testing.assert_allclose(fitted.attraction_[:-1], attraction, rtol=1e-9)
    np.testing.assert_allclose(fitted.log_likelihood(log), reference.log_likelihood(log), rtol=1e-9)
    np.testing.assert_allclose(
        fitted.perplexity_by_rank(log), reference.perplexity_by_rank(log), rtol=1e-9
    )


# ------------------------------------------------------------------------------------------------
# ---- the shorter way


@pytest.mark.parametrize(("seed", "prior"), [(0, UNIFORM), (1, UNIFORM), (2, (2.0, 6.0))])
@pytest.mark.parametrize("name", EM)
def test_extrapolation_against_plain_em(name, seed, prior):
    """Extrapolation ends at a likelihood no lower than plain EM, after fewer steps than plain EM
    needs to come close.
    """
    log, kind = small_log(seed, 200), type(ALL[name]())
    fitted = kind(10_000, 1e-12, prior).fit(log)
    plain = kind(fitted.n_iter_, None, prior).fit(log)
    assert fitted.converged_
    assert min(np.diff(fitted.log_posterior_)[:-1]) >= -1e-9  # may fall by rounding
    assert fitted.log_posterior_[-1] >= plain.log_posterior_[-1] - 1e-9
    assert fitted.log_posterior_[-1] == pytest.approx(penalised(fitted, log), abs=1e-8)


# ------------------------------------------------------------------------------------------------
# ------ many rare pairs


def rare_log(users, n_sessions, seed, order):
    """A log of 200 queries with 8 items each, in random order or with attractive items mostly at
    the top.
    """
    rng = np.random.default_rng(seed)
    lists, clicks = [], []
    for _ in range(200):
        attraction = rng.beta(1.0, 2.5, 8)
        model = users.with_items(attraction=attraction)
        scores = order * np.log(attraction) + rng.gumbel(size=(n_sessions, 8))
        rankings = np.argsort(-scores, axis=1)[:, : users.n_positions]
        lists.append(rankings)
        clicks += [model.sample(ranking, rng) for ranking in rankings]
    queries = np.repeat(np.arange(200), n_sessions)
    return ClickLog(
        np.concatenate(lists), clicks, queries, tuple("abcdefgh"), tuple(map(str, range(200)))
    )


def shared_parameter(name, estimator):
    """Return the mean examination before a click relative to position 1, or the mean
    termination.
    """
    if name == "DCM":
        return estimator.termination_[:3].mean()
    before_click = estimator.examination_.reshape(4, -1)[:, 0]
    return (before_click / before_click[0])[1:].mean()


@pytest.mark.parametrize(
    ("name", "order", "truth", "published"),
    [("PBM", 1.0, 5 / 9, 0.51), ("UBM", 1.0, 5 / 9, 0.51), ("DCM", 0.0, 0.3, 0.36)],
)
def test_rare_pairs_do_not_bias_what_all_share(name, order, truth, published):
    """Each query has ten sessions. The standard error of the means over six logs is at most
    0.009.
    """
    kind = type(ALL[name]())
    logs = [rare_log(TRUTH[name], 10, seed, order) for seed in range(6)]
    fitted, uniform = (
        np.mean([shared_parameter(name, kind(prior=prior).fit(log)) for log in logs])
        for prior in (None, UNIFORM)
    )
    assert fitted == pytest.approx(truth, abs=0.03)
    assert (uniform - published) * (published - truth) > 0  # shows that the log is difficult


@pytest.mark.parametrize("name", ["DCM", "DBN", "CCM"])
def test_sessions_are_explained_by_what_others_say(name):
    """At convergence without a given prior, another step in plain Python changes nothing. Fitted
    priors move in steps of at least 1 %, and EM continues as long as they move.
    """
    kind, log = type(ALL[name]()), cut_short(simulated(TRUTH[name], 60, 0), 0)
    for one in (log, small_log(1)):
        assert kind().fit(one).prior_ == pytest.approx(kind(1000, None).fit(one).prior_, rel=4e-3)
    fitted = kind(10_000, 1e-13).fit(log)
    following, tolerance = LeaveOut(name, fitted, log), 2e-3 if name == "DBN" else 1e-6
    np.testing.assert_allclose(following.α, fitted.attraction_[:-1], atol=1e-3)
    for parameter, values in following.shared.items():
        found = np.atleast_1d(getattr(fitted, parameter))[: len(values)]
        np.testing.assert_allclose(values, found, atol=tolerance)


def test_fitted_prior_is_the_most_likely():
    """The fitted prior is compared with its neighbours on a grid, including the weak prior on mean
    and spread, which matters only with few counts. Without counts the result is Beta(1, 1).
    """
    rng = np.random.default_rng(0)
    for n in (5, 2000):
        trials = rng.integers(1, 20, n)
        clicks = rng.binomial(trials, rng.beta(0.8, 3.8, n)).astype(float)
        a, b = fit_prior(clicks, trials - clicks)
        around = []
        for x, y in product((0.98 * a, a, 1.02 * a), (0.98 * b, b, 1.02 * b)):
            mean, spread = x / (x + y), 1 / (x + y + 1)
            law = np.log(mean * (1 - mean) * spread * (1 - spread) ** 2)
            gains = betaln(x + clicks, y + trials - clicks) - betaln(x, y)
            around.append(gains.sum() + law)
        assert np.argmax(around) == 4
    assert (a, b) == pytest.approx((0.8, 3.8), rel=0.25)
    assert fit_prior(np.zeros(0), np.zeros(0)) == pytest.approx((1, 1))


def test_examinations_are_compared_within_pairs():
    """The estimate solves these equations, which are computed here without the package's code."""
    log = small_log(6, 40)
    fitted = PBMEstimator(tol=1e-12).fit(log)
    γ, pairs = fitted.examination_, log.queries[:, None] * 5 + log.items
    clicks = np.bincount(pairs.ravel(), log.clicks.ravel())
    rate = (clicks / np.bincount(pairs.ravel(), np.tile(γ, len(log))))[pairs]
    mean = (1 + rate.sum()) / (2 + rate.size)
    shape = (mean + log.clicks.sum(axis=0)) / (2 * mean + rate.sum(axis=0))
    np.testing.assert_allclose(shape / shape[0], γ / γ[0], atol=1e-4)


def test_the_prior_of_the_cascade_model_is_fitted_to_its_counts():
    """The counts are those of pairs down to the first click."""
    log = small_log(0, 80)
    fitted = CMEstimator().fit(log)
    examined = np.cumsum(log.clicks, axis=1) - log.clicks == 0
    pairs = log.queries[:, None] * 5 + log.items
    trials, clicks = (np.bincount(pairs[examined], log.clicks[examined] ** n) for n in (0, 1))
    assert fitted.prior_ == pytest.approx(fit_prior(clicks, trials - clicks))
    a, b = fitted.prior_
    np.testing.assert_allclose(fitted.attraction_[:-1], (a + clicks) / (a + b + trials))


def test_an_examination_that_nothing_was_seen_of_is_one_half():
    """Here it is the examination of position 2 after a click at position 1, which never occurs."""
    log = small_log(0, 80)
    log = ClickLog(log.items, log.clicks * [0, 1, 1], log.queries, tuple("abcde"), ("p", "q"))
    assert UBMEstimator().fit(log).examination_[1, 1] == 0.5
