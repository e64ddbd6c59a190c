"""Tests that copies of environments continue exactly like the original and share no memory
with it.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from tests.helpers.registries import default_ids

pytestmark = pytest.mark.uncompiled

IDS = ["PBMRank-v0", "MixtureRank-v0", "NonStationaryCMRank-v0", "ContextualDBNRank-v0"]
IDS += ["QueriesUBMRank-v0", *default_ids("Memory")]
"""One id for each kind of environment."""
COPIES = {"deepcopy": copy.deepcopy, "pickle": lambda env: pickle.loads(pickle.dumps(env))}
FORMS = ("scalar", *COPIES), ("vector", *reversed(COPIES))


def make(env_id: str, form: str) -> Any:
    real = "queries:split=real,n_positions=3,n_sessions=7"
    few = {"instance": real} if env_id.startswith("Queries") else {}
    if form == "scalar":
        return gym.make(env_id, **few)
    return gym.make_vec(env_id, 3, vectorization_mode="vector_entry_point", **few)


def flat(value: Any) -> list[Any]:
    """Everything that an environment returned, as plain numbers."""
    if isinstance(value, dict):
        return [[name, flat(value[name])] for name in sorted(value)]
    if isinstance(value, tuple):
        return [flat(part) for part in value]
    return np.asarray(value).tolist()


def history(env: Any, lists: list[Any]) -> list[Any]:
    """Return what an environment returns while these lists are shown."""
    returned: list[Any] = []
    for actions in lists:
        last = env.step(actions)
        returned.append(flat(last))
        if np.ndim(last[2]) == 0 and last[2]:  # a user with memory has left
            returned.append(flat(env.reset()))
    return returned


@pytest.mark.parametrize(("form", "first", "second"), FORMS)
@pytest.mark.parametrize("env_id", IDS)
def test_copy_plays_on_like_the_original(env_id, form, first, second):
    """A copy made before the reset and a copy made in mid-episode return the same as the
    original.
    """
    env = make(env_id, form)
    env.action_space.seed(0)
    lists = [env.action_space.sample() for _ in range(30)]
    early = COPIES[first](env)
    assert flat(early.reset(seed=7)) == flat(env.reset(seed=7))
    assert history(early, lists[:5]) == history(env, lists[:5])
    late = COPIES[second](env)
    expected = history(env, lists)
    assert history(late, lists) == expected, "the original disturbed its copy"
    assert history(early, lists) == expected
    assert flat(late.reset()) == flat(early.reset())
    assert repr(late) == repr(env)
