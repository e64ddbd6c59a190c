"""Ids follow from click models: the package's own and a user's, with their forms, as Gymnasium's
registry holds them.
"""

from __future__ import annotations

import json
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from click_stories import TOLD, story_of
from registries import default_ids
from test_check_click_model import Charming

import clickgym
from clickgym.envs import (
    CLICK_MODELS,
    ENVIRONMENTS,
    ClickEnv,
    ClickModel,
    ClickVectorEnv,
    Users,
)
from clickgym.envs.arguments import forms_of

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


@pytest.mark.recipe
def test_every_click_model_has_a_story_and_four_ids():
    assert all(map(callable, map(story_of, TOLD)))
    own = {
        model
        for model in Users.classes.values()
        if issubclass(model, ClickModel) and hasattr(model, "short")
    }
    own = {model for model in own if model.__module__.startswith("clickgym.")}
    assert own <= set(CLICK_MODELS.values())
    for short, model in CLICK_MODELS.items():
        ids = [f"{form}{short}Rank-v0" for form in forms_of(model)]
        assert {ENVIRONMENTS[env_id].click_model for env_id in ids} == {model}
        assert len(ids) == 4 or "attraction" not in model.shapes
        assert model.short == model.name() == short


@pytest.mark.parametrize("env_id", default_ids())
def test_a_specification_can_be_written_and_read(env_id):
    spec = gym.spec(env_id)
    again = gym.envs.registration.EnvSpec.from_json(spec.to_json())
    assert again.kwargs == spec.kwargs == json.loads(spec.to_json())["kwargs"]
    env = gym.make(again)
    assert type(env.unwrapped) is ClickEnv
    assert env.unwrapped.model == gym.make(env_id).unwrapped.model
    assert type(gym.make_vec(env_id, num_envs=2).unwrapped) is ClickVectorEnv


def test_registration_by_name(tmp_path):
    """The class is imported when the environment is made."""
    (tmp_path / "shymodule.py").write_text(OWN)
    code = """
import sys, gymnasium as gym, clickgym
clickgym.register_click_model("ShyRank-v0", "shymodule:Shy")
assert "shymodule" not in sys.modules
for form in ("", "NonStationary", "Contextual", "Queries"):
    assert gym.spec(f"{form}ShyRank-v0").kwargs["model"] == "shymodule:Shy"
env = gym.make("ShyRank-v0", attraction=[0.5, 0.4], examination=[1.0])
assert env.unwrapped.model.kind == "SHY"
base = env.unwrapped.model.to_dict()
changing = gym.make("NonStationaryShyRank-v0", models=[base, base], starts=[0, 5]).unwrapped.model
assert changing.kind == "PiecewiseStationaryModel of SHY"
items = [[0.5, 0.1], [0.1, 0.5]]
rounds = gym.make("ContextualShyRank-v0", base=base, theta=[0.5, 0.5], items=items).unwrapped.model
assert rounds.kind == "LinearModel of SHY"
queries = gym.make("QueriesShyRank-v0", models=[base, base]).unwrapped.model
assert queries.kind == "QueryUsers of SHY"
needs = {
    "": "attraction, examination",
    "NonStationary": "models, starts",
    "Contextual": "base, theta, items",
    "Queries": "models, n_sessions, agent_knowledge",
}
for form, wanted in needs.items():
    try:
        gym.make(f"{form}ShyRank-v0")
    except ValueError as error:
        words = f"a Shy has no default instance: give instance=... or the parameters {wanted}"
        assert words in str(error), error
    else:
        raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


# ------------------------------------------------------------------------ models without attraction


@pytest.mark.uncompiled
def test_model_without_attraction(monkeypatch):
    """It has all but contextual environments."""
    monkeypatch.setitem(CLICK_MODELS, "CHARM", Charming)
    users = Charming([0.1, 0.5, 0.3, 0.4], [1.0, 0.25])
    assert users.optimal_ranking().tolist() == [1, 3]
    assert users.relabelled(np.array([1, 0, 2, 3])).optimal_ranking().tolist() == [0, 3]
    with pytest.raises(AttributeError, match="a Charming has no attraction"):
        _ = users.attraction
    clickgym.register_click_model("CharmRank-v0", Charming)
    assert "ContextualCharmRank-v0" not in gym.registry
    with pytest.raises(ValueError, match="a Charming has no default instance"):
        gym.make("CharmRank-v0")
    with pytest.raises(ValueError, match="a Charming has no Contextual environments"):
        ClickEnv("CHARM", form="Contextual", instance="linear")
    for arguments in ({"charm": [0.1, 0.5, 0.3], "looking": [1.0, 0.25]}, {"instance": "uniform"}):
        env = gym.make("CharmRank-v0", **arguments)
        env.reset(seed=0)
        *_, info = env.step(env.unwrapped.model.optimal_ranking())
        assert info["regret"] == 0.0
        streams = gym.make_vec("CharmRank-v0", num_envs=3, **arguments)
        streams.reset(seed=0)
        assert (streams.step(streams.action_space.sample())[4]["regret"] >= 0).all()
    changing = gym.make("NonStationaryCharmRank-v0", instance="abrupt:n_epochs=2").unwrapped.model
    assert changing.kind == "PiecewiseStationaryModel of CHARM"
    assert (changing.epochs[0].parameters.charm != changing.epochs[1].parameters.charm).all()
    result = clickgym.run("TopRank", "CharmRank-v0:instance=uniform", 100, seed=0)
    assert result.engine == "compiled"
    with pytest.raises(ValueError, match="ndcg ranks by attraction, which"):
        clickgym.run("Random", "CharmRank-v0:instance=uniform", 10, metrics=["ndcg"])
    queries = gym.make("QueriesCharmRank-v0", instance="queries:split=valid,n_positions=2")
    assert queries.unwrapped.model.kind == "QueryUsers of CHARM"
    assert clickgym.run("TopRank", queries, 100, seed=0).engine == "compiled"
