"""Doubly robust estimators: by hand, on simulated logs with a wrong and with the right click model, and on real displays."""

from functools import cache

import numpy as np
import pytest
from slow import slow
from test_evaluation import TARGETS, WRONG, K, L, click_log, logging_policy, simulate, users, value

from clickgym.envs import CascadeModel, PositionBasedModel
from clickgym.offline import (
    ClickLog,
    FixedPolicy,
    ItemPositionLog,
    ItemPositionPolicy,
    ListPolicy,
    PBMEstimator,
    UBMEstimator,
    UniformPolicy,
    contributions,
    evaluate,
    read_open_bandit,
)

DOUBLY_ROBUST = {"dr": "ips", "cascade-dr": "cascade", "item-position-dr": "item-position"}

# ---------------------------------------------------------------------------------------------------------------- by hand


def test_each_doubly_robust_estimate_by_hand():
    """Two items, half of the lists either way; the model expects 1/2 and 1/4 clicks at the top, half of that below.

    The target shows (a, b): it is predicted 1/2 + 1/8, of the other list 1/4 + 1/4. The first session shows (a, b) with a click
    on top, the second the other without any. Weights are 2 and 0, at each position.
    """
    log = click_log([[0, 1], [1, 0]], [[1, 0], [0, 0]])
    how = {"logging": UniformPolicy(2, 2), "model": PositionBasedModel([0.5, 0.25], [1.0, 0.5])}
    target = FixedPolicy([0, 1])
    values, weights = contributions(log, target, "dr", **how)
    assert values.tolist() == [[0.625, 2 * (1 - 0.625)], [0.625, 0.0]]
    assert weights.tolist() == [[1, 2], [1, 0]]
    values, weights = contributions(log, target, "cascade-dr", **how)
    # Q(1) = 0.625, Q(2) = 0.125 after a; below an item that the target does not show first, nothing counts.
    assert values.tolist() == [[0.625, 2 * 0.125, 2 * (1 - 0.625), 2 * (0 - 0.125)], [0.625, 0.0, 0.0, 0.0]]
    assert weights.tolist() == [[1, 2, 2, 2], [1, 0, 0, 0]]
    values, weights = contributions(log, target, "item-position-dr", **how)
    assert values.tolist() == [[0.625, 2 * (1 - 0.5), 2 * (0 - 0.125)], [0.625, 0.0, 0.0]]
    result = evaluate(log, target, "dr", bootstrap=5, **how)
    assert (result.value, result.self_normalised) == (0.625 + 0.375, 0.625 + 0.375)
    assert (result.mean_weight, result.max_weight, result.effective_sample_size) == (1.0, 2.0, 1.0)


def test_the_cascade_form_takes_the_mean_over_what_the_target_would_show_next():
    """Three items, one position counted, then two: Q after a is the mean of b and c below it."""
    log = click_log([[0, 1, 2]], [[0, 1, 0]])
    target, model = ListPolicy([[0, 1, 2], [0, 2, 1]], [0.75, 0.25]), CascadeModel([0.5, 0.4, 0.2], 3)
    values, weights = contributions(log, target, "cascade-dr", logging=UniformPolicy(3, 3), model=model, cutoff=2)
    below = 0.5 * (0.75 * 0.4 + 0.25 * 0.2)
    assert weights[0] == pytest.approx([1, 3, 3, 4.5])
    assert values[0] == pytest.approx([0.5 + below, 3 * below, 3 * (0 - (0.5 + below)), 4.5 * (1 - 0.5 * 0.4)])


# ------------------------------------------------------------------------------------------------------- simulated logs


@cache
def simulated(n, seed):
    """A log of users of the PBM, which several tests read."""
    return click_log(*simulate(users("pbm"), logging_policy(), n, seed))


@pytest.mark.parametrize(
    ("estimator", "model"),
    [*((name, WRONG) for name in DOUBLY_ROBUST), ("cascade-dr", None), *slow(("dr", None), ("item-position-dr", None))],
)
def test_the_mean_over_many_logs_is_the_value_whatever_the_click_model(estimator, model):
    """The mean of 100 logs of 300 sessions lies within 3.9 of its standard errors: it fails once in 10,000 if unbiased."""
    truth_of, target = users("pbm"), TARGETS["plackett-luce"]
    found = [
        contributions(simulated(300, seed), target, estimator, logging=logging_policy(), model=model)[0].sum(axis=1).mean()
        for seed in range(100)
    ]
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - value(truth_of, target)) < 3.9 * error


@pytest.mark.parametrize(("estimator", "plain"), DOUBLY_ROBUST.items())
@pytest.mark.parametrize("target", ["fixed", *slow("uniform", "plackett-luce")])
def test_the_right_click_model_makes_it_vary_less(estimator, plain, target):
    model = users("pbm")
    log = simulated(20_000, 1)
    with_model = evaluate(log, TARGETS[target], estimator, logging=logging_policy(), model=model, bootstrap=10)
    without = evaluate(log, TARGETS[target], plain, logging=logging_policy(), bootstrap=10)
    assert with_model.standard_error < without.standard_error
    fitted = evaluate(log, TARGETS[target], estimator, logging=logging_policy(), bootstrap=10)
    assert fitted.standard_error < without.standard_error


def test_a_model_that_expects_nothing_leaves_the_plain_estimate():
    log = click_log(*simulate(users("dcm"), logging_policy(), 200, seed=2))
    nothing = PositionBasedModel(np.zeros(L), np.ones(K))
    for estimator, plain in DOUBLY_ROBUST.items():
        one = evaluate(log, TARGETS["uniform"], estimator, logging=logging_policy(), model=nothing, bootstrap=10)
        other = evaluate(log, TARGETS["uniform"], plain, logging=logging_policy(), bootstrap=10)
        assert one.value == pytest.approx(other.value, rel=1e-12)
        assert one.self_normalised == pytest.approx(other.self_normalised, rel=1e-12)
        for same in ("effective_sample_size", "mean_weight", "max_weight"):
            assert getattr(one, same) == getattr(other, same)


def test_sessions_are_predicted_by_a_model_of_the_other_half():
    log = click_log(*simulate(users("ubm"), logging_policy(), 100, seed=3))
    first = np.random.default_rng(0).permutation(100) % 2 == 0
    how = {"target": TARGETS["uniform"], "estimator": "dr", "logging": logging_policy()}
    values, weights = contributions(log, **how)
    for half in (first, ~first):
        wanted = contributions(log[half], **how, model=UBMEstimator().fit(log[~half]))
        np.testing.assert_allclose((values[half], weights[half]), wanted, rtol=1e-12)


def test_two_sessions_predict_each_other():
    log, both = click_log([[0, 1], [1, 0]], [[1, 0], [0, 0]]), UniformPolicy(2, 2)
    assert np.isfinite(evaluate(log, both, "dr", logging=both, bootstrap=5).value)


def test_an_item_that_the_other_half_lacks_is_attractive_with_one_half():
    log = ClickLog([[0, 1], [1, 0], [0, 1], [2, 0]], [[1, 0], [0, 1], [0, 0], [1, 0]], [0] * 4, tuple("abc"), ("q",))
    fitted = PBMEstimator().fit(log[:3])
    with pytest.raises(KeyError):
        fitted.click_model("q", ["a", "c"])
    assert fitted.click_model("q", ["a", "c"], unseen=True).attraction[1] == 0.5
    assert fitted.click_model("elsewhere", ["a", "b"], unseen=True).attraction.tolist() == [0.5, 0.5]
    assert np.isfinite(evaluate(log, UniformPolicy(3, 2), "dr", logging=UniformPolicy(3, 2), bootstrap=5).value)


def test_an_item_of_no_query_is_not_taken_for_one_of_another_query():
    """More queries than items: what is not there must not be looked up in the row of another query."""
    log = ClickLog([[0]] * 4, [[1]] * 4, [0, 1, 2, 3], ("a",), tuple("pqrs"))
    with pytest.raises(KeyError):
        PBMEstimator().fit(log).click_model("s", ["b"])


# ------------------------------------------------------------------------------------------------------ single displays


def displays(n, seed, attraction=(0.6, 0.3, 0.1), examination=(0.9, 0.3)):
    rng = np.random.default_rng(seed)
    items, positions = rng.integers(3, size=n), rng.integers(2, size=n)
    clicks = rng.random(n) < np.array(attraction)[items] * np.array(examination)[positions]
    return ItemPositionLog(items, positions, clicks.astype(np.int8), np.full(n, 1 / 3))


SHOWN = np.array([[0.1, 0.2], [0.2, 0.3], [0.7, 0.5]])


def test_single_displays_by_hand():
    log = ItemPositionLog([0, 1], [0, 1], [1, 0], [0.5, 0.25])
    model = PositionBasedModel([0.5, 0.25], [1.0, 0.5])
    target = ItemPositionPolicy([[0.5, 0.5], [0.5, 0.5]])
    values, weights = contributions(log, target, "item-position-dr", model=model)
    assert weights.tolist() == [[1, 1], [1, 2]]
    assert values.tolist() == [[0.375, 1 * (1 - 0.5)], [0.1875, 2 * (0 - 0.125)]]


@pytest.mark.parametrize("model", [None, PositionBasedModel([0.1, 0.9, 0.5], [0.3, 1.0])], ids=["cross-fitted", "wrong model"])
def test_the_mean_over_many_logs_of_single_displays_is_the_value(model):
    """As for lists, once in 10,000."""
    target = ItemPositionPolicy(SHOWN)
    truth = (SHOWN * np.outer([0.6, 0.3, 0.1], [0.9, 0.3])).sum() / 2
    found = [
        contributions(displays(200, seed), target, "item-position-dr", model=model)[0].sum(axis=1).mean() for seed in range(400)
    ]
    assert abs(np.mean(found) - truth) < 3.9 * np.std(found) / np.sqrt(len(found))


def test_single_displays_vary_less_with_predictions():
    log = displays(20_000, 0)
    plain, predicted = (
        evaluate(log, ItemPositionPolicy(SHOWN), name, bootstrap=10) for name in ("item-position", "item-position-dr")
    )
    assert predicted.standard_error < plain.standard_error


# Cross-fitted, on the sample of 10,000 rows: to notice a change, for no other implementation has these figures.
OPEN_BANDIT = {"all": 0.004737801, "men": 0.004683393, "women": 0.006803659}


@pytest.mark.parametrize("campaign", ["all", *slow("men", "women")])
def test_open_bandit_figures(data_folder, campaign):
    folder = data_folder / "open_bandit"
    log = read_open_bandit(folder / f"random_{campaign}.csv.gz")
    target = ItemPositionPolicy(np.load(folder / f"bts_action_dist_{campaign}.npz")["action_dist"])
    result = evaluate(log, target, "item-position-dr")
    plain = evaluate(log, target, "item-position")
    assert result.value == pytest.approx(OPEN_BANDIT[campaign], abs=5e-10)
    assert abs(result.value - plain.value) < plain.standard_error
    assert result.effective_sample_size == plain.effective_sample_size


# ------------------------------------------------------------------------------------------------------------- refusals

LOG = click_log([[0, 1], [1, 0], [2, 1]], [[1, 0], [0, 0], [0, 1]])
UNIFORM, SINGLE = UniformPolicy(3, 2), displays(10, 0)

REFUSED = {
    "no click model": (lambda: evaluate(LOG, UNIFORM, "dr", logging=UNIFORM, model=3), "model is a int; .*takes a click model"),
    "a model of lists": (
        lambda: evaluate(LOG, UNIFORM, "item-position-dr", logging=UNIFORM, model=CascadeModel([0.5] * 3, 2)),
        "model is a CascadeModel; the estimator 'item-position-dr' takes a PositionBasedModel",
    ),
    "too few positions": (
        lambda: evaluate(LOG, UNIFORM, "dr", logging=UNIFORM, model=CascadeModel([0.5] * 3, 1)),
        "the click model has 1 positions; the log has 2",
    ),
    "no propensities": (lambda: evaluate(LOG, UNIFORM, "dr"), "no list_propensities"),
    "no policy": (lambda: evaluate(LOG, UNIFORM, "cascade-dr"), "give the logging policy"),
    "what was never shown": (lambda: evaluate(LOG[:2], UNIFORM, "dr", logging=UniformPolicy(2, 2)), "item 'c': .* infinite"),
    "one session": (lambda: evaluate(LOG[:1], UNIFORM, "dr", logging=UNIFORM), "no other half to predict it from"),
    "a reward of single clicks": (
        lambda: evaluate(LOG, UNIFORM, "item-position-dr", logging=UNIFORM, reward="any_click"), "cannot tell 'any_click'",
    ),
    "few items for single displays": (
        lambda: evaluate(SINGLE, ItemPositionPolicy(SHOWN), "item-position-dr", model=PositionBasedModel([0.5], [1.0])),
        "the click model has 1 items and 1 positions; log and policy have 3 and 2",
    ),
    "lists of single displays": (lambda: evaluate(SINGLE, ItemPositionPolicy(SHOWN), "dr"), "holds single items"),
}  # fmt: skip


@pytest.mark.parametrize(("attempt", "message"), REFUSED.values(), ids=REFUSED)
def test_what_makes_no_sense_is_refused(attempt, message):
    with pytest.raises(ValueError, match=message):
        attempt()
