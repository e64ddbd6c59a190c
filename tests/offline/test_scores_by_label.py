"""A fitted estimator knows queries and items by label, whichever of the two another log numbers otherwise."""

import numpy as np
import pytest

from clickgym.offline import ClickLog
from clickgym.offline.estimation.estimator import MODEL_ESTIMATORS


def small_log():
    """Two queries that share items, arbitrary clicks."""
    rng = np.random.default_rng(0)
    items = rng.permuted(np.tile(np.arange(5), (60, 1)), axis=1)[:, :3]
    clicks = rng.random((60, 3)) < [0.6, 0.4, 0.3]
    return ClickLog(items, clicks, rng.integers(2, size=60), tuple("abcde"), ("p", "q"))


@pytest.mark.parametrize("name", MODEL_ESTIMATORS)
def test_labels_decide_where_only_items_or_only_queries_are_numbered_otherwise(name):
    log = small_log()
    estimator = MODEL_ESTIMATORS[name].create().fit(log)
    other_items = ClickLog(4 - log.items, log.clicks, log.queries, tuple("edcba"), ("p", "q"))
    other_queries = ClickLog(log.items, log.clicks, 1 - log.queries, tuple("abcde"), ("q", "p"))
    for other in (other_items, other_queries):
        np.testing.assert_array_equal(estimator.log_likelihood(other), estimator.log_likelihood(log))
    if name in ("RCM", "RCTR"):  # know neither
        return
    swapped = ClickLog(log.items, log.clicks, 1 - log.queries, tuple("abcde"), ("p", "q"))
    assert (estimator.log_likelihood(swapped) != estimator.log_likelihood(log)).any()


@pytest.mark.parametrize("name", MODEL_ESTIMATORS)
def test_an_item_of_another_query_is_scored_like_one_of_no_query(name):
    """In the order of labels "b" lies between the two items of "p", which are clicked never and always."""
    lists = np.tile([[0, 2], [1, 3]], (20, 1))
    log = ClickLog(lists, np.tile([[0, 1], [1, 0]], (20, 1)), np.tile([0, 1], 20), tuple("abcd"), ("p", "q"))
    estimator = MODEL_ESTIMATORS[name].create().fit(log)
    elsewhere, nowhere = (ClickLog([[0, 1]] * 2, [[0, 0], [0, 1]], [0, 0], ("a", other), ("p",)) for other in "bz")
    np.testing.assert_array_equal(estimator.log_likelihood(elsewhere), estimator.log_likelihood(nowhere))


@pytest.mark.parametrize("name", MODEL_ESTIMATORS)
@pytest.mark.parametrize("wrong", [None, 5, "log.csv", [[0, 1]], np.zeros((2, 2))], ids=["None", "5", "str", "list", "array"])
def test_what_is_no_log_is_refused_in_one_line(name, wrong):
    fresh, fitted = MODEL_ESTIMATORS[name].create(), MODEL_ESTIMATORS[name].create().fit(small_log())
    for attempt in (fresh.fit, fitted.score, fitted.log_likelihood, fitted.perplexity, fitted.click_probabilities):
        with pytest.raises(TypeError, match=r"^log is .*; expected a ClickLog$"):
            attempt(wrong)
    with pytest.raises(ValueError, match=r"^this \w+ is not fitted; call fit\(log\) first$"):
        fresh.click_probabilities(small_log())
