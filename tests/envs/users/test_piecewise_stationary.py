"""Tests of users who change: the piecewise-stationary model, its environments on both engines, and
the families of instances.
"""

from __future__ import annotations

import json

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import clickgym
from clickgym import envs
from clickgym.agents import PBMPIE
from tests.reference_agents.models import MODELS

pytestmark = pytest.mark.uncompiled

FIRST, SECOND, THIRD = (
    envs.CascadeModel([0.9, 0.1, 0.2], 2),
    envs.CascadeModel([0.1, 0.9, 0.2], 2),
    envs.CascadeModel([0.1, 0.3, 0.8], 2),
)
CHANGING = envs.PiecewiseStationaryModel([FIRST, SECOND, THIRD], starts=[0, 3, 7])
PBM = MODELS["PBM"]


# ---------------------------------------------------------------------------------------- the model


def test_description():
    again = envs.ClickModel.from_dict(json.loads(json.dumps(CHANGING.to_dict())))
    assert again == CHANGING
    assert CHANGING.kind == "PiecewiseStationaryModel of CM"
    assert (CHANGING.n_items, CHANGING.n_positions, list(CHANGING.starts)) == (3, 2, [0, 3, 7])
    assert [model.n_positions for model in CHANGING.with_positions(1).epochs] == [1, 1, 1]


def test_model_of_a_step():
    """The first step of an epoch belongs to this epoch."""
    at = [CHANGING.at(step) for step in (0, 2, 3, 6, 7, 10**9)]
    assert at == [FIRST, FIRST, SECOND, SECOND, THIRD, THIRD]


# ------------------------------------------------------------------------------------- environments


def test_a_seed_sets_the_clock_back():
    env = envs.ClickEnv(CHANGING)
    env.reset(seed=0)
    for _ in range(9):
        env.step([0, 1])
    assert env.task.model is THIRD
    env.reset()
    assert env.task.model is THIRD
    _, info = env.reset(seed=3)
    assert info["optimal_reward"] == FIRST.expected_reward([0, 2])
    for model in (FIRST, FIRST, SECOND):
        env.step([0, 1])
        assert env.task.model is model


def test_models_and_starts_as_arguments():
    env = gym.make("NonStationaryCMRank-v0", models=[FIRST, SECOND.to_dict()], starts=[0, 2])
    assert env.unwrapped.model == envs.PiecewiseStationaryModel([FIRST, SECOND], [0, 2])
    with pytest.raises(ValueError, match=r"a PiecewiseStationaryModel of CM; expected a .* of PBM"):
        gym.make("NonStationaryPBMRank-v0", models=[FIRST, SECOND], starts=[0, 2])


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_vector_environment_changes_at_the_same_steps(mode):
    """All streams share one clock, which continues from one episode of 5 steps to the next."""
    streams = envs.ClickVectorEnv(CHANGING, 3, max_episode_steps=5, autoreset_mode=mode)
    streams.reset(seed=0)
    actions = np.array([[0, 2], [1, 2], [2, 1]])
    step = 0
    for _ in range(24):
        _, _, _, truncated, infos = streams.step(actions)
        infos = infos.get("final_info", infos)
        epoch = CHANGING.at(step)
        if "regret" not in infos:  # the reset of NEXT_STEP
            assert (infos["optimal_reward"] == epoch.expected_reward(epoch.optimal_ranking())).all()
            continue
        np.testing.assert_array_equal(
            infos["expected_reward"], [epoch.expected_reward(action) for action in actions]
        )
        np.testing.assert_array_equal(
            infos["optimal_reward"], [epoch.expected_reward(epoch.optimal_ranking())] * 3
        )
        np.testing.assert_allclose(
            infos["regret"], infos["optimal_reward"] - infos["expected_reward"], atol=1e-15
        )
        step += 1
        assert truncated.all() == (step % 5 == 0)


def test_agents_know_the_first_epoch():
    first, last = (envs.PositionBasedModel([0.5, 0.4, 0.3], κ) for κ in ([1.0, 0.5], [0.2, 0.9]))
    env = envs.ClickEnv(envs.PiecewiseStationaryModel([first, last], [0, 50]))
    agent = clickgym.make_agent(PBMPIE, env, horizon=100, seed=0)
    np.testing.assert_array_equal(agent.hyperparameters["examination"], [1.0, 0.5])


# -------------------------------------------------------------------------------- instance families


def attractions(instance: str | envs.Instance, kind: str = "CM") -> np.ndarray:
    """``(epochs, L)``"""
    instance = envs.load_instance(instance) if isinstance(instance, str) else instance
    epochs = instance.model(f"PiecewiseStationaryModel of {kind}").epochs
    return np.array([model.attraction for model in epochs])


@pytest.mark.parametrize(
    "kind", [model.short for model in MODELS.values() if model.default_instance]
)
def test_li2019_switching(kind):
    """The K best items keep their attraction. In every second epoch, three other items, drawn anew,
    have the attraction 0.9. There are 9 changes in 10⁵ steps.
    """
    model = envs.load_instance("li2019-switching").model(f"PiecewiseStationaryModel of {kind}")
    assert list(model.starts) == list(range(0, 100_000, 10_000))
    assert model.n_positions == 3
    table = np.array([epoch.attraction for epoch in model.epochs])
    base = envs.load_instance("yandex-9982").model(kind).attraction
    best = np.argsort(-base)[:3]
    raised_sets = []
    for epoch, attraction in enumerate(table):
        raised = np.flatnonzero(attraction != base)
        if epoch % 2 == 0:
            assert len(raised) == 0
        else:
            assert len(raised) == 3
            assert not set(raised) & set(best)
            assert (attraction[raised] == 0.9).all()
            raised_sets.append(frozenset(raised.tolist()))
    assert len(set(raised_sets)) > 1
    first = model.epochs[0].to_dict()
    for epoch in model.epochs:  # nothing but the attraction changes
        assert epoch.to_dict() | {"attraction": None} == first | {"attraction": None}


def test_abrupt():
    table = attractions("abrupt:n_items=200,n_positions=3,n_epochs=4,length=5,seed=7")
    np.testing.assert_array_equal(
        table[0],
        envs.load_instance("uniform:n_items=200,n_positions=3,seed=7").model("CM").attraction,
    )
    assert np.abs(np.corrcoef(table) - np.eye(4)).max() < 0.35
    for row in table:
        assert 0.4 < row.mean() < 0.6
        assert 0 <= row.min() < 0.05 < 0.95 < row.max() <= 1


def test_random_walk():
    table = attractions(
        "random-walk:n_items=50,n_positions=3,n_epochs=400,length=1,step=0.05,seed=7"
    )
    np.testing.assert_array_equal(
        table[0],
        envs.load_instance("uniform:n_items=50,n_positions=3,seed=7").model("CM").attraction,
    )
    assert 0 <= table.min() < 0.01 < 0.99 < table.max() <= 1
    moves = np.diff(table, axis=0)
    inside = (table[:-1] > 0.25) & (table[:-1] < 0.75)  # five standard deviations from the walls
    assert moves[inside].std() == pytest.approx(0.05, rel=0.05)
    assert np.abs(moves).max() < 0.3  # no jump where it is folded back


def test_two_changes():
    better, worse = [0.75, 0.75], [0.5, 0.5]
    epochs = attractions("li2019-two-changes:n_positions=2,attraction=0.75,gap=0.25,length=9")
    np.testing.assert_array_equal(epochs, [better + worse, worse + better, better + worse])
