"""Users who change: the piecewise-stationary model, its environments on both engines, and the
families of instances.
"""

from __future__ import annotations

import json

import gymnasium as gym
import numpy as np
import pytest
from engines import assert_engines_agree
from gymnasium.vector import AutoresetMode
from reference_agents import MODELS

import clickgym
from clickgym.agents import BatchRank
from clickgym.agents.cascade_nonstationary import CascadeDUCB
from clickgym.agents.position_based import PBMPIE
from clickgym.envs import (
    CascadeModel,
    ClickEnv,
    ClickModel,
    ClickVectorEnv,
    PiecewiseStationaryModel,
    PositionBasedModel,
)

pytestmark = pytest.mark.uncompiled

FIRST, SECOND, THIRD = (
    CascadeModel([0.9, 0.1, 0.2], 2),
    CascadeModel([0.1, 0.9, 0.2], 2),
    CascadeModel([0.1, 0.3, 0.8], 2),
)
CHANGING = PiecewiseStationaryModel([FIRST, SECOND, THIRD], starts=[0, 3, 7])
PBM = MODELS["PBM"]


def changing(*starts: int) -> PiecewiseStationaryModel:
    """PBMs with another attraction in each epoch."""
    rng = np.random.default_rng(1)
    return PiecewiseStationaryModel(
        [PositionBasedModel(rng.random(5), PBM.examination) for _ in starts], starts=starts
    )


# ---------------------------------------------------------------------------------------- the model


def test_model_of_a_step():
    """The first step of an epoch is the epoch's own."""
    for step, epoch in [
        (0, FIRST),
        (2, FIRST),
        (3, SECOND),
        (6, SECOND),
        (7, THIRD),
        (10**9, THIRD),
    ]:
        assert CHANGING.at(step) is epoch
    with pytest.raises(ValueError, match="step is -1"):
        CHANGING.at(-1)


def test_description():
    again = ClickModel.from_dict(json.loads(json.dumps(CHANGING.to_dict())))
    assert again == CHANGING
    assert CHANGING.kind == "PiecewiseStationaryModel of CM"
    assert (CHANGING.n_items, CHANGING.n_positions, list(CHANGING.starts)) == (3, 2, [0, 3, 7])
    cut = CHANGING.with_positions(1)
    assert [model.n_positions for model in cut.epochs] == [1, 1, 1]
    mixed = PiecewiseStationaryModel(
        [FIRST, PositionBasedModel([0.1, 0.2, 0.3], [1.0, 0.5])], [0, 2]
    )
    assert mixed.kind == "PiecewiseStationaryModel of CM and PBM"


# ------------------------------------------------------------------------------------- environments


def test_regret_of_the_present_epoch():
    env = ClickEnv(CHANGING)
    _, info = env.reset(seed=0)
    assert info["optimal_ranking"].tolist() == [0, 2]
    for step in range(10):
        epoch = CHANGING.at(step)
        assert env.task.model is epoch
        _, _, terminated, truncated, info = env.step([0, 2])
        assert info["optimal_reward"] == epoch.expected_reward(epoch.optimal_ranking())
        assert info["expected_reward"] == epoch.expected_reward([0, 2])
        assert info["regret"] == pytest.approx(
            0.0 if step < 3 else info["optimal_reward"] - info["expected_reward"], abs=1e-15
        )
        assert (info["regret"] == 0) == (step < 3)
        assert set(info) == {"ranking", "expected_reward", "regret", "optimal_reward"}
        assert not terminated
        assert not truncated


def test_models_and_starts_as_arguments():
    env = gym.make("NonStationaryCMRank-v0", models=[FIRST, SECOND.to_dict()], starts=[0, 2])
    assert env.unwrapped.model == PiecewiseStationaryModel([FIRST, SECOND], [0, 2])
    with pytest.raises(
        ValueError, match=r"make a PiecewiseStationaryModel of CM; expected a .* of PBM"
    ):
        gym.make("NonStationaryPBMRank-v0", models=[FIRST, SECOND], starts=[0, 2])
    with pytest.raises(ValueError, match="missing 1 required positional argument: 'starts'"):
        gym.make("NonStationaryCMRank-v0", models=[FIRST])


AGENTS = {
    "BatchRank": lambda: BatchRank(5, 3, horizon=10, seed=5),
    "CascadeDUCB": lambda: CascadeDUCB(5, 3, seed=5),
}


@pytest.mark.compiled
@pytest.mark.parametrize("name", AGENTS)
def test_engines_agree_across_changes(name):
    model = changing(0, 1, 2, 17, 100, 101, 257)
    assert_engines_agree(AGENTS[name], lambda: ClickEnv(model), 301)
    in_long_chunks, in_python = (
        clickgym.run(AGENTS[name](), ClickEnv(model), 301, seed=7, checkpoints=[], engine=engine)
        for engine in ("compiled", "python")
    )
    np.testing.assert_array_equal(in_long_chunks.regret, in_python.regret)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_vector_environment_changes_at_the_same_steps(mode):
    """One clock for all streams, which goes on from one episode of 5 steps to the next."""
    envs = ClickVectorEnv(CHANGING, 3, max_episode_steps=5, autoreset_mode=mode)
    envs.reset(seed=0)
    actions = np.array([[0, 2], [1, 2], [2, 1]])
    step = 0
    for _ in range(24):
        _, _, _, truncated, infos = envs.step(actions)
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
    first, last = (PositionBasedModel([0.5, 0.4, 0.3], κ) for κ in ([1.0, 0.5], [0.2, 0.9]))
    env = ClickEnv(PiecewiseStationaryModel([first, last], [0, 50]))
    agent = clickgym.make_agent(PBMPIE, env, horizon=100, seed=0)
    np.testing.assert_array_equal(agent.hyperparameters["examination"], [1.0, 0.5])


# -------------------------------------------------------------------------------- instance families
