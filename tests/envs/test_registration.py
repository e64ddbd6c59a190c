"""Ids follow from click models: the package's own and a user's, with their forms, as Gymnasium's registry holds them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import ClassVar

import gymnasium as gym
import numpy as np
import pytest
from click_stories import STORIES

import clickgym
from clickgym.envs import CLICK_MODELS, CONTEXTUAL, ENVIRONMENTS, ClickEnv, ClickModel, ClickVectorEnv, PositionBasedModel
from clickgym.envs.problem import FORMS

OWN = """
from typing import NamedTuple
import numpy as np
from clickgym.envs import PositionBasedModel

class Shy(PositionBasedModel):
    \"\"\"Shy users: who examine half as much as others.

    Args:
        attraction: ``(L,)`` probabilities.
        examination: ``(K,)`` probabilities.

    Source:
        None.

    Example:
        >>> 1
        1
    \"\"\"

    short = "SHY"
    title = "shy model"
    default_instance = None
"""


def test_every_click_model_has_three_ids_and_a_story():
    assert set(STORIES) == set(CLICK_MODELS.values())
    for short, model in CLICK_MODELS.items():
        ids = [f"{form}{short}Rank-v0" for form in FORMS]
        assert [(ENVIRONMENTS | CONTEXTUAL)[env_id].click_model for env_id in ids] == [model] * 3
        assert model.short == model.name() == short


@pytest.mark.parametrize("env_id", [*ENVIRONMENTS, *CONTEXTUAL])
def test_a_specification_can_be_written_and_read(env_id):
    spec = gym.spec(env_id)
    again = gym.envs.registration.EnvSpec.from_json(spec.to_json())
    assert again.kwargs == spec.kwargs == json.loads(spec.to_json())["kwargs"]
    env = gym.make(again)
    assert type(env.unwrapped) is ClickEnv
    assert env.unwrapped.model == gym.make(env_id).unwrapped.model
    assert type(gym.make_vec(env_id, num_envs=2).unwrapped) is ClickVectorEnv


def test_all_ids_stand_under_one_heading():
    printed = gym.pprint_registry(disable_print=True)
    heading = [part for part in printed.split("=====") if "PBMRank-v0" in part]
    assert len(heading) == 1
    assert all(env_id in heading[0] for env_id in [*ENVIRONMENTS, *CONTEXTUAL])


def test_two_models_of_one_short_name_are_refused_but_a_cell_run_again_replaces():
    def cell(version):
        class Twin(PositionBasedModel):
            short = "TWIN"
            title = f"twin {version}"

        return Twin

    first, again = cell(1), cell(2)
    assert first is not again
    assert CLICK_MODELS["TWIN"] is again
    with pytest.raises(ValueError, match=r"Other: the short name 'TWIN' is that of .*Twin"):

        class Other(PositionBasedModel):
            short = "TWIN"

    with pytest.raises(ValueError, match=r"the short name 'PBM' is that of .*PositionBasedModel"):

        class Another(ClickModel):
            short = "PBM"
            shapes: ClassVar = {}


def test_a_class_that_can_be_imported_is_registered_by_its_name_and_imported_when_it_is_made(tmp_path):
    (tmp_path / "shymodule.py").write_text(OWN)
    code = """
import sys, gymnasium as gym, clickgym
clickgym.register("ShyRank-v0", "shymodule:Shy")
assert "shymodule" not in sys.modules
for form in ("", "NonStationary", "Contextual"):
    assert gym.spec(f"{form}ShyRank-v0").kwargs["model"] == "shymodule:Shy"
env = gym.make("ShyRank-v0", attraction=[0.5, 0.4], examination=[1.0])
assert env.unwrapped.model.kind == "SHY"
base = env.unwrapped.model.to_dict()
changing = gym.make("NonStationaryShyRank-v0", models=[base, base], starts=[0, 5]).unwrapped.model
assert changing.kind == "PiecewiseStationaryModel of SHY"
items = [[0.5, 0.1], [0.1, 0.5]]
rounds = gym.make("ContextualShyRank-v0", base=base, theta=[0.5, 0.5], items=items).unwrapped.model
assert rounds.kind == "LinearModel of SHY"
needs = {"": "attraction, examination", "NonStationary": "models, starts", "Contextual": "base, theta, items"}
for form, wanted in needs.items():
    try:
        gym.make(f"{form}ShyRank-v0")
    except ValueError as error:
        assert f"a Shy has no default instance: give instance=... or the parameters {wanted}" in str(error), error
    else:
        raise AssertionError
from clickgym.lab.pages.environments import page
assert "shy model" in page("ShyRank-v0")
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


@pytest.mark.parametrize(
    ("env_id", "model", "error", "message"),
    [
        ("Mine", "PBM", ValueError, "the id is 'Mine'; expected a name with a version, as MyRank-v0"),
        ("Mine-v0", int, TypeError, "model is <class 'int'>; expected a subclass of clickgym.envs.ClickModel, or its name"),
    ],
)
def test_a_bad_registration_is_refused(env_id, model, error, message):
    with pytest.raises(error, match=message):
        clickgym.register(env_id, model)


def test_a_model_that_cannot_be_imported_is_named_when_it_is_made():
    clickgym.register("GhostRank-v0", "no_such_module:Ghost")
    with pytest.raises(ValueError, match="click model 'no_such_module:Ghost': No module named 'no_such_module'"):
        gym.make("GhostRank-v0")


def test_what_belongs_to_items_and_positions_is_cut_and_replaced_by_its_shape():
    for model in CLICK_MODELS.values():
        users = gym.make(f"{model.short}Rank-v0").unwrapped.model
        shorter = users.with_positions(2)
        for name, shape in model.shapes.items():
            whole, cut = np.asarray(getattr(users.parameters, name)), np.asarray(getattr(shorter.parameters, name))
            assert whole.shape == tuple({"L": users.n_items, "K": users.n_positions}[letter] for letter in shape)
            np.testing.assert_array_equal(cut, whole[(slice(2),) * len(shape)] if "K" in shape else whole)
        fewer = users.with_positions(2).with_items(**{name: [0.5, 0.25] for name in model.item_parameters()})
        assert (fewer.n_items, fewer.attraction.tolist()) == (2, [0.5, 0.25])
