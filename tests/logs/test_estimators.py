"""Tests of click logs: the laws and estimates of each click model."""

import pickle
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from clickgym.envs import (
    CascadeModel,
    ClickChainModel,
    DependentClickModel,
    DynamicBayesianModel,
    PositionBasedModel,
    UserBrowsingModel,
    load_instance,
)
from clickgym.logs import (
    CCMEstimator,
    ClickLog,
    CMEstimator,
    DBNEstimator,
    DCMEstimator,
    PBMEstimator,
    UBMEstimator,
)
from clickgym.logs.estimation.em import ConvergenceWarning
from clickgym.logs.estimation.estimator import MODEL_ESTIMATORS

UNIFORM = (1, 1)


def published(kind):
    """EM as published, with 50 plain steps and the prior Beta(1, 1)."""
    return lambda iterations=50, tol=None: kind(iterations, tol, UNIFORM)


ALL = {
    "CM": lambda: CMEstimator(UNIFORM),
    "DCM": published(DCMEstimator),
    "PBM": published(PBMEstimator),
    "UBM": published(UBMEstimator),
    "DBN": published(DBNEstimator),
    "CCM": published(CCMEstimator),
}
EM = ("DCM", "PBM", "UBM", "DBN", "CCM")

ATTRACTION = [0.7, 0.5, 0.4, 0.3, 0.2, 0.1]
TRUTH = {
    "CM": CascadeModel(ATTRACTION, 4),
    "DCM": DependentClickModel(ATTRACTION, [0.3, 0.3, 0.3, 0.3]),
    "PBM": PositionBasedModel(ATTRACTION, [0.9, 0.7, 0.5, 0.3]),
    "UBM": UserBrowsingModel(
        ATTRACTION, [[0.9, 0, 0, 0], [0.7, 0.8, 0, 0], [0.5, 0.6, 0.8, 0], [0.3, 0.4, 0.6, 0.8]]
    ),
    "DBN": DynamicBayesianModel(ATTRACTION, [0.2, 0.6, 0.4, 0.5, 0.3, 0.7], 0.8, n_positions=4),
    "CCM": ClickChainModel(ATTRACTION, 0.9, 0.8, 0.3, 4),
}


def simulated(model, n_sessions, seed):
    rng = np.random.default_rng(seed)
    items = rng.permuted(np.tile(np.arange(model.n_items), (n_sessions, 1)), axis=1)[
        :, : model.n_positions
    ]
    clicks = [model.sample(ranking, rng) for ranking in items]
    return ClickLog(items, clicks, np.zeros(n_sessions), tuple("abcdefgh"[: model.n_items]), ("q",))


def small_log(seed, n_sessions=60):
    """A log of two queries that share items, with arbitrary clicks."""
    rng = np.random.default_rng(seed)
    items = rng.permuted(np.tile(np.arange(5), (n_sessions, 1)), axis=1)[:, :3]
    clicks = rng.random((n_sessions, 3)) < [0.6, 0.4, 0.3]
    return ClickLog(items, clicks, rng.integers(2, size=n_sessions), tuple("abcde"), ("p", "q"))


def unequal_log(seed, n_sessions=60):
    """The same log with lists of one to three items."""
    return cut_short(small_log(seed, n_sessions), seed)


def cut_short(log, seed):
    """The same log with each list cut to a random length of at least one item."""
    lengths = np.random.default_rng(seed).integers(1, log.n_positions + 1, len(log))
    shown = np.arange(log.n_positions) < lengths[:, None]
    return replace(log, items=np.where(shown, log.items, -1), clicks=log.clicks * shown)


# ------------------------------------------------------------------------------------------------
# ------------- laws


@pytest.mark.parametrize("name", ALL)
def test_pairs_never_shown_keep_one_half_and_labels_match_logs(name):
    log = small_log(1)
    estimator = ALL[name]().fit(log)
    for items, labels in ((log.items, "abcde"), (4 - log.items, "edcba")):
        renumbered = ClickLog(items, log.clicks, 1 - log.queries, tuple(labels), ("q", "p"))
        np.testing.assert_array_equal(
            estimator.log_likelihood(renumbered), estimator.log_likelihood(log)
        )
    swapped = ClickLog(log.items, log.clicks, 1 - log.queries, tuple("abcde"), ("p", "q"))
    assert (estimator.log_likelihood(swapped) != estimator.log_likelihood(log)).any()
    unknown = ClickLog([[0, 1, 2]], [[0, 0, 0]], [0], ("a", "y", "z"), ("elsewhere",))
    first = np.log2(estimator.perplexity_by_rank(unknown)[0])
    examined = np.ravel(estimator.examination_)[0] if name in ("PBM", "UBM") else 1.0
    assert first == pytest.approx(-np.log2(1 - 0.5 * examined))


@pytest.mark.parametrize("name", MODEL_ESTIMATORS)
def test_an_item_of_another_query_is_scored_like_one_of_no_query(name):
    """In the order of labels, "b" lies between the two items of query "p", of which one is never
    clicked and one always.
    """
    lists = np.tile([[0, 2], [1, 3]], (20, 1))
    log = ClickLog(
        lists, np.tile([[0, 1], [1, 0]], (20, 1)), np.tile([0, 1], 20), tuple("abcd"), ("p", "q")
    )
    estimator = MODEL_ESTIMATORS[name]().fit(log)
    elsewhere, nowhere = (
        ClickLog([[0, 1]] * 2, [[0, 0], [0, 1]], [0, 0], ("a", other), ("p",)) for other in "bz"
    )
    np.testing.assert_array_equal(
        estimator.log_likelihood(elsewhere), estimator.log_likelihood(nowhere)
    )


def test_a_new_item_of_a_known_query_has_the_mean_of_the_prior():
    estimator = MODEL_ESTIMATORS["CM"]().fit(small_log(1))
    new = ClickLog([[0, 1, 2]], [[0, 0, 0]], [0], ("new", "a", "b"), ("q",))
    clicked, skipped = estimator.prior_
    expected = clicked / (clicked + skipped)
    assert estimator.predict_proba(new)[0, 0] == pytest.approx(expected)


def test_a_probability_above_one_has_no_score():
    methods = {"conditional_probabilities": lambda *_: np.full((60, 3), 1.3)}
    sure = type("Sure", (CMEstimator,), methods)
    with pytest.raises(ValueError, match="Sure predicts a click with the prob"):
        sure().fit(small_log(1)).score(small_log(1))


# ------------------------------------------------------------------------------------------------
# ----------------- EM


PARAMETERS = {
    "DCM": ["attraction_", "termination_"],
    "PBM": ["attraction_", "examination_"],
    "UBM": ["attraction_", "examination_"],
    "DBN": ["attraction_", "satisfaction_", "perseverance_"],
    "CCM": ["attraction_", *(f"continue_after_{what}_" for what in ("skip", "click", "relevant"))],
}


def penalised(estimator, log):
    """The log-likelihood plus the log of the prior, which EM increases, computed from public parts.
    The prior is Beta(a + 1, b + 1); for parameters that all pairs share a = b = 1, and unused UBM
    contexts are 0.5.
    """
    prior = 0.0
    for name in PARAMETERS[type(estimator).__name__[:3]]:
        values = np.array(getattr(estimator, name))
        if name == "termination_":
            values[-1] = 0.5  # the value that EM leaves if nothing follows
        unused = values.size - np.count_nonzero(values)
        values = values[values > 0]
        a, b = estimator.prior_ if name in ("attraction_", "satisfaction_") else UNIFORM
        prior += (a * np.log(values) + b * np.log(1 - values)).sum() + unused * np.log(0.25)
    return estimator.log_likelihood(log).sum() + prior


@pytest.mark.parametrize("name", EM)
def test_em_stops_at_the_tolerance_or_warns(name):
    log = small_log(3)
    estimator = ALL[name](3000, 1e-6).fit(log)
    gains = np.diff(estimator.log_posterior_) / len(log)
    assert estimator.converged_
    assert estimator.n_iter_ == len(gains) < 3000
    cycles = [gains[0], *(gains[1::2] + gains[2::2])]  # an extrapolated step and a plain one
    assert cycles[-1] < 1e-6 <= min(cycles[:-1])
    with pytest.warns(ConvergenceWarning, match="the last of 5 steps .* pass iterations="):
        short = ALL[name](5, 1e-6).fit(log)
    assert short.converged_ is False
    assert short.n_iter_ == 5
    np.testing.assert_array_equal(short.log_posterior_, estimator.log_posterior_[:6])
    for prior in (UNIFORM, None):
        assert type(estimator)(5, None, prior).fit(log).converged_ is None


# ------------------------------------------------------------------------------------- 60 queries


def test_published_queries_become_instances(program, tmp_path, monkeypatch):
    """In the file, the last column of the UBM stands for "no click yet"."""

    class Model:
        __module__, __qualname__ = "users.users_inner", "Model"

        def __init__(self, *arguments):
            self.arguments = arguments

        def __reduce__(self):
            return Model, self.arguments

    monkeypatch.setitem(sys.modules, "users", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "users.users_inner", SimpleNamespace(Model=Model))
    alpha, examination = np.array([0.5, 0.4, 0.3, 0.2, 0.1]), [1.0, 0.8, 0.6, 0.4, 0.2]
    browsing = np.tril(np.arange(1, 26).reshape(5, 5) / 25)
    unread = np.roll(browsing, -1, axis=1)
    more = {kind: [examination] for kind in ("CM", "PBM", "DCM")}
    more |= {"UBM": [unread], "DBN": [alpha, 0.0], "CCM": [0.9, 0.8, 0.3]}
    kinds = {kind: {"401": {"model": Model(alpha, *more[kind], 0)}} for kind in more}
    file = tmp_path / "models.pkl"
    file.write_bytes(pickle.dumps(kinds, protocol=4))
    example = Path(__file__).resolve().parents[2] / "examples" / "convert_queries.py"
    program(example, "models.pkl", "--out", "out", folder=tmp_path)
    query = load_instance(tmp_path / "out" / "yandex60-401.json")
    assert list(query.models) == ["CM", "PBM", "TPBM", "DCM", "UBM", "DBN", "CCM"]
    assert query.model("PBM") == PositionBasedModel(alpha, examination)
    assert query.model("UBM") == UserBrowsingModel(alpha, browsing)
    assert query.model("CCM") == ClickChainModel(alpha, 0.9, 0.8, 0.3, 5)
    file.write_bytes(pickle.dumps(print))
    with pytest.raises(pickle.UnpicklingError, match="not builtins"):
        program(example, "models.pkl", "--out", "out", folder=tmp_path)
