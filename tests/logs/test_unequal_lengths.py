"""Lists of unequal length: below the end of a list nothing is examined, in every estimator and
score.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from test_offline import ALL, EM, PARAMETERS, assert_no_parameter_can_improve, penalised, small_log

from clickgym.logs import ClickLog, CMEstimator, PBMEstimator


def cut(log, lengths):
    """The log with lists of the given lengths: what was below their ends has not been shown."""
    shown = np.arange(log.n_positions) < np.asarray(lengths)[:, None]
    return replace(log, items=np.where(shown, log.items, -1), clicks=log.clicks * shown)


def unequal_log(seed, n_sessions=60):
    log = small_log(seed, n_sessions)
    return cut(log, np.random.default_rng(seed).integers(1, 4, n_sessions))


LISTS = [[0, 1, 2], [1, 0, -1], [2, -1, -1]]
HAND = ClickLog(LISTS, [[0, 1, 0], [1, 0, 0], [0, 0, 0]], [0, 0, 0], tuple("abc"), ("q",))

# ------------------------------------------------------------------------------------------------
# ---------------- the log


def test_a_log_knows_its_lengths_and_shows_no_rows_below_an_end():
    assert HAND.lengths.tolist() == [3, 2, 1]
    rows = HAND.to_frame().select("session", "position", "item", "clicked").rows()
    assert rows == [
        (0, 1, "a", 0),
        (0, 2, "b", 1),
        (0, 3, "c", 0),
        (1, 1, "b", 1),
        (1, 2, "a", 0),
        (2, 1, "c", 0),
    ]


# ------------------------------------------------------------------------------------------------
# ------------- estimators


def test_closed_form_by_hand():
    # Examined down to the first click, or to the end of the list: a twice (once above a
    # click), b twice, c once.
    assert CMEstimator((1, 1)).fit(HAND).attraction_.tolist() == [1 / 3, 3 / 4, 1 / 3, 0.5]


def test_one_step_of_the_position_based_model_by_hand():
    """From 0.5: a click was examined and attractive, a skip each with probability (1/2 - 1/4)/(3/4)
    = 1/3.
    """
    fitted = PBMEstimator(iterations=1, tol=None, prior=(1, 1)).fit(HAND)
    third = 1 / 3
    np.testing.assert_allclose(
        fitted.attraction_[:3], [(1 + 2 * third) / 4, (1 + 2) / 4, (1 + 2 * third) / 4]
    )
    # Position 1: a click and two skips; position 2: a click and a skip; position 3: a skip,
    # of the one list that has it.
    expected = [(1 + 1 + 2 * third) / 5, (1 + 1 + third) / 4, (1 + third) / 3]
    np.testing.assert_allclose(fitted.examination_, expected)


@pytest.mark.parametrize("name", ALL)
def test_a_position_that_no_list_has_changes_nothing(name):
    log = small_log(3)
    wide = cut(
        replace(
            log,
            items=np.hstack([log.items, log.items[:, :1] * 0 + 5]),
            clicks=np.hstack([log.clicks, log.clicks[:, :1] * 0]),
            item_labels=(*log.item_labels, "never"),
        ),
        [3] * 60,
    )
    narrow, padded = ALL[name]().fit(log), ALL[name]().fit(wide)
    np.testing.assert_array_equal(padded.attraction_, narrow.attraction_)
    np.testing.assert_array_equal(padded.log_likelihood(wide), narrow.log_likelihood(log))
    np.testing.assert_array_equal(
        padded.perplexity_by_rank(wide), [*narrow.perplexity_by_rank(log), np.nan]
    )


@pytest.mark.parametrize("name", EM)
def test_em_ends_where_no_parameter_can_improve(name):
    log = unequal_log(5)
    estimator = ALL[name](3000).fit(log)
    assert np.diff(estimator.log_posterior_).min() > -1e-9
    assert estimator.log_posterior_[-1] == pytest.approx(penalised(estimator, log), abs=1e-8)
    assert_no_parameter_can_improve(estimator, log, PARAMETERS[name])


@pytest.mark.parametrize("name", ALL)
def test_a_short_list_is_as_probable_as_all_that_may_follow_it(name):
    log = unequal_log(1)
    estimator = ALL[name]().fit(log)
    for session in range(12):
        one = log[[session]]
        n = int(one.lengths[0])
        below = np.array(list(itertools.product([0, 1], repeat=3 - n)), np.int8).reshape(
            2 ** (3 - n), 3 - n
        )
        rest = np.setdiff1d(np.arange(5), one.items[0])[: 3 - n]
        ranking = [*one.items[0, :n], *rest]
        clicks = np.hstack([np.repeat(one.clicks[:, :n], len(below), axis=0), below])
        queries = np.repeat(one.queries, len(below))
        every = replace(log, items=[ranking] * len(below), clicks=clicks, queries=queries)
        assert np.exp(estimator.score(one)) == pytest.approx(
            np.exp(estimator.log_likelihood(every)).sum(), abs=1e-12
        )


@pytest.mark.parametrize("name", ALL)
def test_perplexity_counts_the_lists_that_have_a_position(name):
    log = unequal_log(2)
    estimator = ALL[name]().fit(log)
    logs = [[], [], []]
    for session in range(len(log)):
        n, query = int(log.lengths[session]), log.query_labels[log.queries[session]]
        model = estimator.click_model(query, [log.item_labels[i] for i in range(5)])
        filled = [*log.items[session, :n], *np.setdiff1d(np.arange(5), log.items[session])[: 3 - n]]
        marginals = model.click_probabilities(filled)
        for k in range(n):
            logs[k].append(np.log(marginals[k] if log.clicks[session, k] else 1 - marginals[k]))
    expected = [np.exp(-np.mean(values)) for values in logs]
    np.testing.assert_allclose(estimator.perplexity_by_rank(log), expected)
