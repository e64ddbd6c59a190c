"""`clickgym.check_click_model`: all models of the package pass, and each planted fault is named in
its line.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
import pytest

import clickgym
from clickgym.envs import CLICK_MODELS, ClickModel, kernel

pytestmark = pytest.mark.uncompiled


@pytest.mark.parametrize("model", CLICK_MODELS.values(), ids=lambda model: model.__name__)
def test_click_models_of_the_package(model):
    clickgym.check_click_model(model)


def test_what_is_no_class_of_click_models():
    with pytest.raises(TypeError, match="model is <class 'int'>; expected a subclass"):
        clickgym.check_click_model(int)


class Parameters(NamedTuple):
    charm: np.ndarray
    looking: np.ndarray


@kernel
def sample(parameters, ranking, uniforms, clicks, examined):
    for k in range(len(ranking)):
        examined[k] = uniforms[k] < parameters.looking[k]
        clicks[k] = uniforms[k] < parameters.looking[k] * parameters.charm[ranking[k]]
    return -1


@kernel
def sample_clicks_only(parameters, ranking, uniforms, clicks, examined):
    for k in range(len(ranking)):
        clicks[k] = uniforms[k] < parameters.looking[k] * parameters.charm[ranking[k]]
    return -1


@kernel
def marginals(parameters, ranking, examination, clicks, scratch):
    for k in range(len(ranking)):
        examination[k] = parameters.looking[k]
        clicks[k] = parameters.looking[k] * parameters.charm[ranking[k]]


@kernel
def marginals_of_charm(parameters, ranking, examination, clicks, scratch):
    for k in range(len(ranking)):
        examination[k] = parameters.looking[k]
        clicks[k] = parameters.charm[ranking[k]]


@kernel
def expected(parameters, ranking, reward, cutoff, scratch):
    n_clicks, no_click = 0.0, 1.0
    for k in range(cutoff):
        click = parameters.looking[k] * parameters.charm[ranking[k]]
        n_clicks += click
        no_click *= 1.0 - click
    return n_clicks if reward == 0 else 1.0 - no_click


@kernel
def expected_less(parameters, ranking, reward, cutoff, scratch):
    n_clicks = 0.0
    for k in range(cutoff):
        n_clicks += 0.99 * parameters.looking[k] * parameters.charm[ranking[k]]
    return n_clicks


@kernel
def expected_any_less(parameters, ranking, reward, cutoff, scratch):
    value = expected(parameters, ranking, reward, cutoff, scratch)
    return value if reward == 0 else value - 0.015


@kernel
def expected_sum(parameters, ranking, reward, cutoff, scratch):
    n_clicks = 0.0
    for k in range(cutoff):
        n_clicks += parameters.looking[k] * parameters.charm[ranking[k]]
    return n_clicks


class Charming(ClickModel):
    """Charming model: the position-based one by other names, so without attraction; its best lists
    are searched.

    Args:
        charm: ``(L,)`` probabilities.
        looking: ``(K,)`` probabilities.
    """

    short, title = "CHARM", "charming model"
    shapes: ClassVar = {"charm": "L", "looking": "K"}
    sample_kernel, marginals_kernel, expected_kernel = sample, marginals, expected

    def __init__(self, charm, looking):
        values = [np.array(given, float) for given in (charm, looking)]
        for array in values:
            array.setflags(write=False)
        self.parameters, self.n_positions = Parameters(*values), len(values[1])

    def position_weights(self):
        return self.parameters.looking


CLICK_MODELS.pop("CHARM")  # no test of another file meets it


class ForgetsExamined(Charming):
    sample_kernel = sample_clicks_only


class WrongMarginals(Charming):
    marginals_kernel = marginals_of_charm


class SumsEverything(Charming):
    expected_kernel = expected_sum


class ExpectsLess(Charming):
    rewards = ("clicks",)
    expected_kernel = expected_less


class ExpectsAnyLess(Charming):
    expected_kernel = expected_any_less


class SortsById(Charming):
    def _places(self, reward, cutoff):
        return np.arange(cutoff)


class Writable(Charming):
    def __init__(self, charm, looking):
        self.parameters, self.n_positions = (
            Parameters(np.array(charm, float), np.array(looking, float)),
            len(looking),
        )


class WrongExamination(Charming):
    def position_weights(self):
        return self.parameters.looking / 2


class LosesParameter(Charming):
    def to_dict(self):
        return super().to_dict() | {"looking": [1.0] * self.n_positions}


@kernel
def sample_too_far(parameters, ranking, uniforms, clicks, examined):
    clicks[len(ranking)] = 0
    return -1


TOO_FAR = {
    "sample_kernel": sample_too_far,
}


@pytest.mark.parametrize("name", TOO_FAR)
def test_index_out_of_range(name):
    """Its line is named, and nothing is compiled, which would not notice it."""
    model = type("TooFar", (Charming,), {name: TOO_FAR[name]})
    with pytest.raises(AssertionError) as caught:
        clickgym.check_click_model(model)
    _, fault = str(caught.value).splitlines()
    line = TOO_FAR[name].__code__.co_firstlineno + 2
    assert fault.startswith("- kernels: IndexError: index ")
    assert f"test_check_click_model.py:{line} in {TOO_FAR[name].__name__}: " in fault


@kernel
def sample_without_return(parameters, ranking, uniforms, clicks, examined):
    for k in range(len(ranking)):
        examined[k] = clicks[k] = 0


class ReturnsNoPlace(Charming):
    sample_kernel = sample_without_return


FAULTS = {
    ReturnsNoPlace: "- kernels: sample returned None; expected a position or -1",
    ForgetsExamined: "- sessions (sample, marginals): examined is not 0 or 1 at every",
    WrongMarginals: "- sessions (sample, marginals): the click probability of [2, 0, 3] at ",
    SumsEverything: "- rewards (expected): for any_click, cutoff 2 the expectation is ",
    ExpectsLess: "- rewards (expected): for clicks, cutoff 1 the expectation is ",
    ExpectsAnyLess: "- rewards (expected): for any_click, cutoff ",
    SortsById: "- optimal list: for clicks, cutoff ",
    Writable: "- parameters: charm is writeable",
    WrongExamination: "- examination (position_weights): it is ",
    LosesParameter: "- descriptions, positions and items: from_dict(to_dict()) of ",
}


def test_model_without_attraction_and_default_instance():
    clickgym.check_click_model(Charming)


COMPILED = (Writable, ForgetsExamined)
"""Models with a kernel of their own, whose faults others of the same checks stand for."""


@pytest.mark.parametrize(
    ("model", "line"),
    [
        pytest.param(model, line, marks=[pytest.mark.slow] * (model in COMPILED), id=model.__name__)
        for model, line in FAULTS.items()
    ],
)
def test_faults(model, line):
    with pytest.raises(AssertionError) as caught:
        clickgym.check_click_model(model)
    heading, *faults = str(caught.value).splitlines()
    assert model.__name__ in heading
    assert any(fault.startswith(line) for fault in faults), faults


def test_fixed_item_ids(monkeypatch):
    monkeypatch.setattr(Charming, "relabelled", lambda model, order: model)
    with pytest.raises(
        AssertionError, match="positions and items: the click probability of relabelled items is "
    ):
        clickgym.check_click_model(Charming)


def test_a_click_model_declares_shapes():
    with pytest.raises(TypeError, match=r"Bare declares no shapes; expected a mapping, such as"):

        class Bare(ClickModel):
            short = "BARE"
