"""Tests of `clickgym.check_click_model`: models of the package pass, and for each planted fault the
check names it in one line.
"""

from __future__ import annotations

import numpy as np
import pytest

import clickgym
from clickgym.envs import CLICK_MODELS, CascadeModel, ClickModel, PositionBasedModel, kernel
from tests.helpers.slow import slow

pytestmark = pytest.mark.uncompiled

PASSING = ["CM", *slow(*sorted({*CLICK_MODELS} - {"CM"}))]
expected = PositionBasedModel.expected_kernel


def planted(kernel):
    """Return a PBM with another kernel, whose name says which one it replaces."""
    kind = kernel.__name__.partition("_")[0]
    return type(kernel.__name__, (PositionBasedModel,), {f"{kind}_kernel": kernel})


def storing(name, stored):
    """Return a click model that stores other attractions than a checked copy."""

    def init(self, attraction, examination):
        PositionBasedModel.__init__(self, np.zeros(len(attraction)), examination)
        self.parameters = self.parameters._replace(attraction=stored(attraction))

    return type(name, (PositionBasedModel,), {"__init__": init})


@pytest.mark.parametrize("name", PASSING)
def test_click_models_of_the_package(name):
    clickgym.check_click_model(CLICK_MODELS[name])


@kernel
def sample_clicks_only(parameters, ranking, uniforms, clicks, examined):
    for k in range(len(ranking)):
        clicks[k] = uniforms[k] < parameters.examination[k] * parameters.attraction[ranking[k]]
    return -1


@kernel
def sample_for_few_clicks(parameters, ranking, uniforms, clicks, examined):
    n_clicks = 0  # matters only where many items are clicked
    for k in range(len(ranking)):
        examined[k] = uniforms[k] < parameters.examination[k]
        chance = parameters.examination[k] * parameters.attraction[ranking[k]]
        clicks[k] = n_clicks < 4 and uniforms[k] < chance
        n_clicks += clicks[k]
    return -1


@kernel
def sample_without_return(parameters, ranking, uniforms, clicks, examined):
    for k in range(len(ranking)):
        examined[k] = clicks[k] = 0


@kernel
def sample_too_far(parameters, ranking, uniforms, clicks, examined):
    clicks[0] = uniforms[len(ranking)] < 0.5
    return -1


@kernel
def marginals_of_attraction(parameters, ranking, examination, clicks, scratch):
    for k in range(len(ranking)):
        examination[k] = parameters.examination[k]
        clicks[k] = parameters.attraction[ranking[k]]


@kernel
def expected_any_less(parameters, ranking, reward, cutoff, scratch):
    value = expected(parameters, ranking, reward, cutoff, scratch)
    return 0.995 * value if reward == 1 and cutoff > 1 else value


@kernel
def expected_any_rarer(parameters, ranking, reward, cutoff, scratch):
    value = expected(parameters, ranking, reward, cutoff, scratch)
    return 0.9995 * value if reward == 1 and cutoff > 2 else value


@kernel
def marginals_of_neighbours(parameters, ranking, examination, clicks, scratch):
    for k in range(len(ranking)):
        examination[k] = parameters.examination[k]
        clicks[k] = parameters.examination[k] * parameters.attraction[ranking[k]]
        if k + 1 < len(ranking):
            clicks[k] *= 1 - parameters.attraction[ranking[k + 1]]


@kernel
def sample_from_numpy(parameters, ranking, uniforms, clicks, examined):
    for k in range(len(ranking)):
        examined[k] = 1
        clicks[k] = np.random.random() < 0.5  # noqa: NPY002
    return -1


class WorstFirst(PositionBasedModel):
    """A click model whose `optimal_ranking` is the worst list."""

    # the name of `best_ranks` in clickgym 9.0
    def _places(self, reward, cutoff):
        return np.arange(self.n_items)[-cutoff:]


class RarelyWorstFirst(PositionBasedModel):
    def best_ranks(self, reward, cutoff):
        is_right = self.examination[0] < 0.95
        return super().best_ranks(reward, cutoff) if is_right else np.arange(4)[-cutoff:]


class OutOfRange(PositionBasedModel):
    best_ranks = staticmethod(lambda reward, cutoff: np.arange(cutoff) + 9)


class WrongExamination(PositionBasedModel):
    def position_weights(self):
        return self.examination / 2


class WeightsOfTheList(CascadeModel):
    def position_weights(self):
        return np.ones(self.n_positions)


@kernel
def sample_of_three(parameters, ranking, clicks):
    return -1


class CountsByMethod(PositionBasedModel):
    def n_uniforms(self):
        return self.n_positions


class ClicksAboveAttraction(PositionBasedModel):
    attraction = property(lambda self: self.parameters.attraction / 2)
    best_ranks = ClickModel.best_ranks


class ForgetsShape(PositionBasedModel):
    def __init__(self, attraction, examination, patience=0.5):
        super().__init__(attraction, examination * patience)


class DependsOnLength(PositionBasedModel):
    def __init__(self, attraction, examination):
        super().__init__(attraction, examination / len(examination))


LINE = sample_too_far.__code__.co_firstlineno + 2
FAULTS = {
    planted(sample_without_return): "sample returned None; expected -1, or the position",
    planted(sample_too_far): rf"IndexError: .*model\.py:{LINE} in .* property n_uniforms",
    planted(sample_from_numpy): r"sample drew the clicks \[.* from the same uniform numbers",
    CountsByMethod: "n_uniforms is <bound method ",
    planted(marginals_of_neighbours): "the click probability of a list of 1 .* items below",
    planted(sample_clicks_only): "sample left an entry of clicks or examined that is not 0 or 1",
    planted(sample_for_few_clicks): r"the click probability of \[2, 0, 3, 1, 4\] is ",
    planted(marginals_of_attraction): r"the click probability of \[2, 0, 3\] is ",
    planted(expected_any_less): r"the expected reward \(any_click, cutoff 2\) is ",
    OutOfRange: r"best_ranks returned array\(\[9\]\) for clicks, cutoff 1; expected",
    WorstFirst: r"the optimal list for clicks, cutoff .*; in WorstFirst\(attraction=\[0\.\d+, ",
    RarelyWorstFirst: "the optimal list for clicks, cutoff ",
    DependsOnLength: r"the click probability of a list of 2 positions is .* at the top of 3",
    WrongExamination: r"position_weights\(\) is .*; expected ",
    WeightsOfTheList: r"position_weights\(\) is .* but examination depends on the list",
    planted(sample_of_three): r"sample_kernel takes \(.*, clicks\); expected \(.*, examined\)",
    ClicksAboveAttraction: "item . is clicked with probability .* but its attraction is",
    ForgetsShape: "shapes has no entry for patience",
    storing("Ignores", lambda x: np.broadcast_to(0.5, len(x))): "attraction has no effect",
}


NOT_IN_SESSIONS = {OutOfRange, WorstFirst, RarelyWorstFirst, WrongExamination, WeightsOfTheList}
"""The models with faults that no session shows."""


@pytest.mark.parametrize("model", FAULTS, ids=lambda model: model.__name__)
def test_faults(model, monkeypatch):
    if model in NOT_IN_SESSIONS:
        monkeypatch.setattr("clickgym.envs.check_click_model.POINTS", 32)
    with pytest.raises(AssertionError, match=f"^{model.__name__}: {FAULTS[model]}"):
        clickgym.check_click_model(model)


def test_parameters_that_nobody_checked():
    """A model that stores what it was given passes, with warnings."""

    class Unchecked(storing("Stores", lambda x: np.array(x, float))):
        short = "Unchecked"

        def __init__(self, attraction, examination, **more):
            super().__init__(attraction, examination)

    with pytest.warns(UserWarning, match="^Unchecked: the constructor accepts -0.4 for") as warned:
        clickgym.check_click_model(Unchecked)
    assert "Unchecked: the constructor takes **more; give each" in str(warned[0].message)
    assert "Unchecked: the array attraction can be changed" in str(warned[1].message)


def test_nearly_every_session_has_a_click():
    """One session in a million has no click, so the 40,000 that are drawn show none."""

    class AlmostSure(PositionBasedModel):
        short = "AlmostSure"

        def __init__(self, attraction, examination):
            super().__init__(np.maximum(attraction, 0.99), np.maximum(examination, 0.999))

    class Rarer(AlmostSure):
        expected_kernel = expected_any_rarer

    clickgym.check_click_model(AlmostSure)
    with pytest.raises(AssertionError, match=r"\(any_click, cutoff 3\) is \[0.999"):
        clickgym.check_click_model(Rarer)
