"""The statistics of `decide` beside the same computed another way: session by session, pair by pair, list by list."""

from dataclasses import replace
from itertools import combinations, pairwise
from math import log as ln
from math import sqrt
from statistics import NormalDist

import numpy as np
import pytest
from scipy.stats import chi2

from clickgym.envs import PositionBasedModel
from clickgym.offline import ClickLog, PBMEstimator
from clickgym.offline.decision.correction import ERRORS, USUAL_ERROR, Corrected, Correction, Gains
from clickgym.offline.decision.evidence import _chance
from clickgym.offline.decision.lists import DistinctLists
from clickgym.offline.goodness_of_fit import LEAST_DISPLAYS, LEAST_EXPECTED, PATTERNS, check_fit

USERS = PositionBasedModel([0.15, 0.3, 0.45, 0.6, 0.25], [0.9, 0.6, 0.3])
LABELS = tuple("abcde")


def log_of(n, seed, lists=None):
    """Sessions of one query; a fifth of them show two items. Clicks become more frequent with time."""
    rng = np.random.default_rng(seed)
    items = (
        rng.permuted(np.tile(np.arange(5), (n, 1)), axis=1)[:, :3] if lists is None else lists[rng.integers(0, len(lists), n)]
    )
    items = np.where((np.arange(3) == 2) & (rng.random((n, 1)) < 0.2), -1, items)
    rates = USERS.attraction[items] * USERS.examination * (0.7 + 0.6 * np.arange(n)[:, None] / n)
    return ClickLog(
        items, (rng.random(items.shape) < rates) & (items >= 0), np.zeros(n), LABELS, ("shoes",), times=np.arange(n)
    )


# ------------------------------------------------------------------------------------------------------------ test of fit


def groups_of(log):
    """By pattern and group, the displays: the pairs of a session and a position."""
    groups = {name: {} for name in PATTERNS}
    for session, ranking in enumerate(log.items.tolist()):
        block = 20 * session // len(log)
        for k, item in enumerate(ranking):
            if item < 0:
                continue
            keys = [
                ("item at position", (k, item)),
                ("block of time", block),
                ("item in a fifth of the time", (block // 4, item)),
            ]
            keys += [("item below item", (ranking[k - 1], item))] if k else []
            keys += [("item above item", (item, ranking[k + 1]))] if k < 2 and ranking[k + 1] >= 0 else []
            for name, key in keys:
                groups[name].setdefault(key, []).append((session, k))
    return groups


@pytest.fixture(scope="module")
def tested():
    """A model that hardly fits, on held-out sessions: what the test says, the predictions, and the sessions."""
    log = log_of(1500, 1)
    estimator = PBMEstimator().fit(log_of(2500, 2))
    return *check_fit("PBM", estimator, log, 2500), estimator.click_probabilities(log), log


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_is_tested_by_the_residuals_of_its_groups(tested, name):
    fit, told, predicted, log = tested
    sums, errors, rates, residuals = [], [], [], []
    for displays in groups_of(log)[name].values():
        at = tuple(np.array(displays).T)
        expected = predicted[at].sum()
        if len(displays) >= LEAST_DISPLAYS and min(expected, len(displays) - expected) >= LEAST_EXPECTED:
            of_session = np.zeros(len(log))
            np.add.at(of_session, at[0], log.clicks[at] - predicted[at])
            residuals.append(of_session)
            sums.append(of_session.sum())
            errors.append(sqrt((predicted[at] * (1 - predicted[at])).sum() * (1 + 1500 / 2500)))
            rates.append((len(displays), expected / len(displays), log.clicks[at].mean(), errors[-1] / len(displays)))
    residuals = np.array(residuals)
    covariance = residuals @ residuals.T  # of which the correlations count
    correlation = covariance / np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    np.fill_diagonal(correlation, 1.0)
    # Off the diagonal they are those of clicks, on it the predicted variance inflated for what was estimated.
    squares = np.square(np.array(sums) / errors)
    scale = (correlation**2).sum() / len(sums)
    (pattern,) = [each for each in fit.patterns if each.name == name]
    assert (pattern.n_groups, pattern.mean_square) == (len(sums), pytest.approx(squares.mean()))
    assert pattern.p_value == pytest.approx(chi2.sf(squares.sum() / scale, len(sums) / scale))
    groups = sorted((each.displays, each.predicted, each.observed, each.error) for of, each in told if of == name)
    np.testing.assert_allclose(groups, sorted(rates))
    assert abs(pattern.worst.deviation) == pytest.approx(np.sqrt(squares.max()))


def test_all_patterns_count(tested):
    fit = tested[0]
    assert fit.p_value == pytest.approx(min(1.0, 5 * min(each.p_value for each in fit.patterns)))
    assert fit.fits == (fit.p_value >= 0.01)
    assert not replace(fit, p_value=0.0099).fits
    assert replace(fit, p_value=0.01).fits


def test_a_model_does_not_fit_users_who_change():
    """The only fault of the model is that everybody clicks more in the end: blocks of time show it, and nothing else does."""
    fit, _ = check_fit("PBM", PBMEstimator().fit(log_of(20_000, 3)), log_of(20_000, 4), 20_000)
    p_values = {each.name: each.p_value for each in fit.patterns}
    assert p_values["block of time"] < 1e-6
    assert p_values["item in a fifth of the time"] < 1e-6
    assert min(p_values[name] for name in PATTERNS[:3]) > 0.01
    assert not fit.fits


# -------------------------------------------------------------------------------------------------------------- correction


def alike(one, other):
    """The covariance of the errors of two lists, in units of τ²: a quarter for each kind of effect."""
    one, other = ([item for item in each if item >= 0] for each in (one, other))
    pairs = [[(a, b) for a, b in combinations(each, 2)] for each in (one, other)]
    neighbours = [[(a, b) for a, b in pairwise(each)] for each in (one, other)]
    # Squares are counted for lists of three items; those of two have fewer effects.
    return (
        sum(a == b for a, b in zip(one, other, strict=False)) / 3
        + len({*neighbours[0]} & {*neighbours[1]}) / 2
        + len({*pairs[0]} & {*pairs[1]}) / 3
        + (one == other)
    ) / 4


def test_the_corrected_gain_is_that_of_a_gaussian_process_with_a_level_for_each_block():
    """The errors of the lists are normal with the covariances of `alike`; of τ there is a grid, and of levels nothing known."""
    lists = np.random.default_rng(8).permuted(np.tile(np.arange(5), (9, 1)), axis=1)[:, :3]
    log = log_of(3000, 9, lists)
    shown = DistinctLists(log, "clicks", None)
    production = shown.lists[(shown.lengths == 3).argmax()]
    correction = Correction(shown, production, range(5))
    parts = np.arange(len(shown.lists)) % 5
    fits = [PBMEstimator().fit(log[parts[shown.index] != part]) for part in range(5)]
    whole = PBMEstimator().fit(log)
    new = np.array([4, 3, 0])
    gains = Corrected(correction, whole, fits, parts).gains(new[None])

    predicted = np.array([correction.predict(fits[part], shown.lists[[row]])[0] for row, part in enumerate(parts)])
    cells = [(row, block) for row in range(len(shown.lists)) for block in range(20)]
    of = {cell: (shown.index == cell[0]) & (np.arange(3000) * 20 // 3000 == cell[1]) for cell in cells}
    cells = [cell for cell in cells if of[cell].any()]
    counts = np.array([of[cell].sum() for cell in cells])
    residuals = np.array([shown.earned[of[cell]].mean() - predicted[cell[0]] for cell in cells])
    noise = shown.variances @ shown.counts / 3000
    average = shown.earned.mean()
    targets = [ranking.copy() for ranking in (new, production) for _ in range(2)]
    targets[1][2] = targets[3][2] = -1
    share = (shown.lengths == 3) @ shown.counts / 3000
    contrast = np.array([share, 1 - share, -share, share - 1])
    every = [*(shown.lists[row] for row, _ in cells), *targets]
    kernel = np.array([[alike(one, other) for other in every] for one in every])
    n = len(cells)
    level = np.array([[1e3 * (a[1] == b[1]) for b in cells] for a in cells])  # hardly anything is known of a level
    evidence, means, variances = [], [], []
    for tau in ERRORS * average:
        covariance = tau**2 * kernel[:n, :n] + level + np.diag(noise / counts)
        solved = np.linalg.solve(covariance, np.column_stack([residuals, tau**2 * kernel[:n, n:] @ contrast]))
        evidence.append(-0.5 * (residuals @ solved[:, 0] + np.linalg.slogdet(covariance)[1]))
        cross = tau**2 * kernel[:n, n:] @ contrast
        means.append(cross @ solved[:, 0])
        variances.append(tau**2 * contrast @ kernel[n:, n:] @ contrast - cross @ solved[:, 1])
    prior = [ln(error) - ln(1 + (error / USUAL_ERROR) ** 2) for error in ERRORS]
    weights = np.exp(np.array(evidence) + prior - max(evidence))
    weights /= weights.sum()
    mean = weights @ means

    def gain(estimator):
        values = [correction.predict(estimator, ranking[None])[0] for ranking in targets]
        return contrast @ values

    assert gains.predicted[0] == pytest.approx(gain(whole))
    assert gains.means[0] == pytest.approx(gain(whole) + mean, rel=1e-3)
    variance = weights @ (np.array(variances) + (np.array(means) - mean) ** 2) + np.var([gain(fit) for fit in fits])
    assert gains.errors[0] == pytest.approx(sqrt(variance), rel=1e-3)


def test_a_correction_lowers_a_predicted_gain_and_never_raises_it():
    gains = Gains(np.array([0.1, 0.1, -0.1]), np.array([0.3, 0.04, 0.2]), np.full(3, 0.05))
    assert gains.agreed.tolist() == [0.1, 0.04, -0.1]
    assert _chance(Gains(*(values[:1] for values in gains))) == pytest.approx(NormalDist().cdf(-2))
