"""Tests that ids follow from click models, both the package's and a user's, with all their forms,
as Gymnasium's registry shows.
"""

from __future__ import annotations

import json
import sys

import gymnasium as gym
import pytest

import clickgym
from clickgym import envs
from clickgym.envs.resolve_model import forms_of
from tests.helpers.click_stories import TOLD, story_of
from tests.helpers.registries import default_ids

OWN = """
from clickgym.envs import PositionBasedModel

class Shy(PositionBasedModel):
    \"\"\"Shy users.\"\"\"

    short = "SHY"
    title = "shy model"
    default_instance = None
"""


@pytest.mark.recipe
def test_every_click_model_has_a_story_and_four_ids():
    assert all(map(callable, map(story_of, TOLD)))
    own = {
        model
        for model in envs.UserModel.classes.values()
        if issubclass(model, envs.ClickModel) and model.short
    }
    own = {model for model in own if model.__module__.startswith("clickgym.")}
    assert own <= set(envs.CLICK_MODELS.values())
    for short, model in envs.CLICK_MODELS.items():
        ids = [f"{form}{short}Rank-v0" for form in forms_of(model)]
        assert {envs.ENVIRONMENTS[env_id].click_model for env_id in ids} == {model}
        assert len(ids) == 4 or "attraction" not in model.shapes
        assert model.short == model.name() == short


@pytest.mark.parametrize("module", ["clickgym.envs", "clickgym.envs.cascade"])
def test_users_are_found_under_their_public_and_their_former_name(module):
    """Before version 9.1, the example of `register_click_model` contained the second name."""
    assert isinstance(envs.ClickEnv(f"{module}:CascadeModel").model, envs.CascadeModel)


@pytest.mark.parametrize("env_id", default_ids())
def test_a_specification_can_be_written_and_read(env_id):
    spec = gym.spec(env_id)
    again = gym.envs.registration.EnvSpec.from_json(spec.to_json())
    assert again.kwargs == spec.kwargs == json.loads(spec.to_json())["kwargs"]
    env = gym.make(again)
    assert type(env.unwrapped) is envs.ClickEnv
    assert env.unwrapped.model == gym.make(env_id).unwrapped.model
    assert type(gym.make_vec(env_id, num_envs=2).unwrapped) is envs.ClickVectorEnv


def test_registration_by_name(write):
    """The class is imported only when the environment is made."""
    write(shymodule=OWN)
    clickgym.register_click_model("ShyRank-v0", "shymodule:Shy")
    assert "shymodule" not in sys.modules
    assert gym.spec("ShyRank-v0").max_episode_steps == 1000
    base = gym.make("ShyRank-v0", attraction=[0.5, 0.4], examination=[1.0]).unwrapped.model
    assert base.kind == "SHY"
    two = {"models": [base.to_dict()] * 2}
    of_items = {"base": base.to_dict(), "theta": [0.5, 0.5], "items": [[0.5, 0.1], [0.1, 0.5]]}
    for form, given, kind in (
        ("NonStationary", two | {"starts": [0, 5]}, "PiecewiseStationaryModel of SHY"),
        ("Contextual", of_items, "ContextualModel of SHY"),
        ("Queries", two, "QueryUsers of SHY"),
    ):
        assert gym.make(f"{form}ShyRank-v0", **given).unwrapped.model.kind == kind
        hint = {"NonStationary": "abrupt", "Contextual": "linear:query="}.get(form, "queries")
        for instance in (None, "uniform:n_items=4"):
            with pytest.raises(ValueError, match=f"such as '{hint}"):
                gym.make(f"{form}ShyRank-v0", instance=instance)
