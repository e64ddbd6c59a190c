"""`clickgym.check_click_model`: all models of the package pass, and each planted fault is named in
its line.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
import pytest
from slow import slow

import clickgym
from clickgym.envs import CLICK_MODELS, ClickModel, kernel

pytestmark = pytest.mark.uncompiled


@pytest.mark.parametrize("name", ["PBM", "CM", *slow(*sorted({*CLICK_MODELS} - {"PBM", "CM"}))])
def test_click_models_of_the_package(name):
    clickgym.check_click_model(CLICK_MODELS[name])


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
def expected_any_less(parameters, ranking, reward, cutoff, scratch):
    value = expected(parameters, ranking, reward, cutoff, scratch)
    return 0.97 * value if reward == 1 and cutoff > 1 else value


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


class ExpectsAnyClickLess(Charming):
    expected_kernel = expected_any_less


class SortsById(Charming):
    def _places(self, reward, cutoff):
        return np.arange(cutoff)


class WrongExamination(Charming):
    def position_weights(self):
        return self.parameters.looking / 2


@kernel
def sample_too_far(parameters, ranking, uniforms, clicks, examined):
    clicks[len(ranking)] = 0
    return -1


def test_index_out_of_range():
    """Its line is named, and nothing is compiled, which would not notice it."""
    model = type("TooFar", (Charming,), {"sample_kernel": sample_too_far})
    with pytest.raises(AssertionError) as caught:
        clickgym.check_click_model(model)
    _, fault = str(caught.value).splitlines()
    line = sample_too_far.__code__.co_firstlineno + 2
    assert fault.startswith("- kernels: IndexError: index ")
    assert f"test_check_click_model.py:{line} in sample_too_far: " in fault


@kernel
def sample_without_return(parameters, ranking, uniforms, clicks, examined):
    for k in range(len(ranking)):
        examined[k] = clicks[k] = 0


class ReturnsNoPlace(Charming):
    sample_kernel = sample_without_return


FAULTS = {
    ReturnsNoPlace: "- kernels: sample returned None; expected a position or -1",
    ForgetsExamined: "- sessions (sample, marginals): clicks or examined is not 0 or 1 at every",
    WrongMarginals: "- sessions (sample, marginals): the click probability of [2, 0, 3] is ",
    ExpectsAnyClickLess: "- rewards (expected): for any_click, cutoff 2 the expectation is ",
    SortsById: "- optimal list: for clicks, cutoff ",
    WrongExamination: "- examination (position_weights): it is ",
}


@pytest.mark.parametrize(
    ("model", "line"), FAULTS.items(), ids=lambda it: getattr(it, "__name__", "")
)
def test_faults(model, line):
    with pytest.raises(AssertionError) as caught:
        clickgym.check_click_model(model)
    heading, *faults = str(caught.value).splitlines()
    assert model.__name__ in heading
    assert any(fault.startswith(line) for fault in faults), faults
