"""What `instance=` takes besides names: objects, paths and dicts."""

import json

import gymnasium as gym
import pytest

from clickgym.envs import ClickEnv, Instance, PositionBasedModel, load_instance

SMALL = PositionBasedModel([0.6, 0.4, 0.2], [1.0, 0.5])


def instance_of(model, name):
    return Instance(name, {model.kind: model}, model.n_positions)


def forms(tmp_path):
    instance = instance_of(SMALL, "mine")
    path = tmp_path / "mine.json"
    instance.save(path)
    return {
        "object": instance,
        "path": path,
        "name": str(path),
        "saved dict": json.loads(path.read_text()),
        "model dict": SMALL.to_dict(),
    }


@pytest.mark.parametrize("form", ["object", "path", "name", "saved dict", "model dict"])
def test_an_instance_is_taken_in_every_form_and_means_the_same(tmp_path, form):
    given = forms(tmp_path)[form]
    name = "custom" if form == "model dict" else "mine"
    assert load_instance(given).name == name
    for env in (gym.make("PBMRank-v0", instance=given).unwrapped, ClickEnv("PBM", instance=given)):
        assert env.model == SMALL
        assert env.instance == name
    envs = gym.make_vec("PBMRank-v0", num_envs=3, instance=given)
    assert envs.unwrapped.model == SMALL
    gym.make("PBMRank-v0", instance=given).reset(seed=0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"model": "PBM", "attraction": [0.5]}, "the instance: PBM"),
        ({"name": "x"}, "neither a field .model., such as .PBM., nor the format"),
        (7, "instance is 7; expected a name, path, dict or Instance"),
        ([SMALL.to_dict()], "expected a name, path, dict or Instance"),
    ],
)
def test_no_instance(given, words):
    with pytest.raises((ValueError, TypeError), match=words):
        gym.make("PBMRank-v0", instance=given)
