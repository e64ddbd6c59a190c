"""Tests of learners: those known by name, classes of the libraries, and user classes; what they
observe of users with features or with a state, and how their runs are counted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

import clickgym
from clickgym.agents import DQN, PPO, FrozenPolicy, Learner
from clickgym.core.specs import parse_spec
from clickgym.envs import CascadeMDP, ClickEnv, ClickVectorEnv, ContextualModel, PositionBasedModel
from clickgym.runner.make.labels import spec_of
from clickgym.runner.reports.table import format_table
from tests.helpers.engines import run_reporting
from tests.helpers.registries import LEARNERS
from tests.helpers.slow import slow

pytest.importorskip("sb3_contrib")

from clickgym.agents import PlackettLuceActorCritic
from clickgym.agents.rl.vec_env import StableBaselinesVecEnv

SMALL = PositionBasedModel([0.6, 0.5, 0.3, 0.1], [1.0, 0.7, 0.4])
ITEMS = np.random.default_rng(1).random((12, 3)) / 2
USERS = ContextualModel(PositionBasedModel(np.zeros(5), [1.0, 0.6]), ITEMS, theta=[0.9, 0.2, 0.4])
MEMORY = "CascadeMDPRank-v0"
by_name = pytest.mark.parametrize("name", LEARNERS)


def quick(name: str, **arguments: Any) -> Learner:
    """Return a learner with fewer streams that learns from the start."""
    defaults = LEARNERS[name].defaults
    small = {"n_envs": 8, "learning_starts": 16, "batch_size": 8, "n_steps": 4, "n_epochs": 2}
    chosen = {key: value for key, value in small.items() if key in defaults}
    return LEARNERS[name](4, 3, **chosen | arguments)


# ------------------------------------------------------------------------------------- each of them


@by_name
def test_same_seed_same_regret(name: str) -> None:
    def measured(agent_seed: Any, env_seed: int) -> list[float]:
        np.random.random(3)  # noqa: NPY002  (the library draws from the global generator)
        result = clickgym.run(quick(name, seed=agent_seed), ClickEnv(SMALL), 72, seed=env_seed)
        return [*result.regret, *result.reward]

    first = measured(1, 2)
    assert measured(np.random.SeedSequence(1), 2) == first
    assert first not in (measured(2, 2), measured(1, 3))


@by_name
def test_exactly_the_horizon_is_counted(name: str) -> None:
    reported: list[int] = []
    agent, steps = quick(name, seed=0), [1, 64, 65]
    result = run_reporting(
        agent, ClickEnv(SMALL), 101, seed=0, checkpoints=steps, on_chunk=reported.append
    )
    assert result.steps.tolist() == [1, 64, 65, 101]
    assert reported == [8] * 12 + [5]
    assert result.reward[-1] == result.clicks[-1]
    assert (np.diff(result.regret) >= 0).all()
    run_reporting(agent, ClickEnv(SMALL), 13, seed=0, on_chunk=reported.append)
    assert reported[13:] == [8, 5], "a second training has its own length"


def test_masks_of_each_stream_reach_the_library() -> None:
    """A forbidden item is replaced by the next item that is left. A list that is built item by item
    is a complete episode, so its end is no time limit, even where the stream is cut off.
    """
    streams = ClickVectorEnv(SMALL, 2, autoreset_mode="SameStep", max_episode_steps=1)
    envs = StableBaselinesVecEnv(streams, "items", is_flat=True)
    envs.reset()
    envs.step(np.array([1, 3]))
    left = [[True, False, True, True], [True, True, True, False]]
    assert [mask.tolist() for mask in envs.env_method("action_masks")] == left
    assert envs.env_method("action_masks", indices=[1])[0].tolist() == left[1]
    observations, rewards, dones, _ = envs.step(np.array([1, 3]))
    assert observations[:, :4].tolist() == [[0, 1, 1, 0], [1, 0, 0, 1]]
    assert not rewards.any()
    assert not dones.any()
    _, _, dones, infos = envs.step(np.array([0, 1]))
    assert dones.all()
    assert infos[0]["terminal_observation"][:7].tolist() == [1, 1, 1, 0, 1, 1, 1]
    assert infos[0]["TimeLimit.truncated"] is False
    lost = SMALL.expected_reward([0, 1, 2]) - SMALL.expected_reward([3, 0, 1])
    assert infos[1]["regret"] == pytest.approx(lost)


# ------------------------------------------------------------------------- classes of the libraries


@pytest.mark.parametrize(
    ("spec", "actions"),
    [
        ("stable_baselines3:PPO:n_steps=8,batch_size=64,n_epochs=2", "rankings"),
        ("stable_baselines3:DQN:learning_starts=16", "items"),
        ("sb3_contrib:MaskablePPO:n_steps=10,batch_size=64,n_epochs=2", "items"),
        ("sb3_contrib:RecurrentPPO:n_steps=8,batch_size=64,n_epochs=2", "rankings"),
        ("stable_baselines3:TD3:learning_starts=16", "scores"),
        *slow(
            ("sb3_contrib:TRPO:n_steps=8,batch_size=64", "rankings"),
            ("sb3_contrib:TQC:learning_starts=16,n_envs=4", "scores"),
            ("sb3_contrib:QRDQN:learning_starts=16", "items"),
            ("sbx:PPO:n_steps=8,batch_size=64", "rankings"),
            ("sbx:DQN:learning_starts=16", "items"),
            ("sbx:SAC:learning_starts=16,n_envs=4", "scores"),
        ),
    ],
)
def test_classes_of_the_libraries_run_as_they_are(spec: str, actions: str) -> None:
    name, arguments = parse_spec(spec)
    library = pytest.importorskip(name.partition(":")[0])
    assert spec_of(getattr(library, name.partition(":")[2])) == name
    env, regret = gym.make("PBMRank-v0"), []
    for _ in range(2):
        agent = clickgym.make_agent(name, env, seed=0, **arguments)
        assert agent.actions == actions
        result = clickgym.run(agent, env, 80, seed=0)
        assert result.agent == spec.split(":")[1]
        regret.append(result.regret.tolist())
        assert agent.model.gamma == (1.0 if actions == "items" else 0.0)
    assert regret[0] == regret[1]


@pytest.mark.uncompiled
@pytest.mark.parametrize(
    ("name", "env_id"),
    [("stable_baselines3:PPO", "PBMRank-v0"), ("stable_baselines3:A2C", "ContextualPBMRank-v0")],
)
def test_ppo_and_a2c_of_the_library_draw_whole_lists(name: str, env_id: str) -> None:
    """PPO and A2C use the policy of the named learners, which reads the features of each item, also
    if it is named. Another policy may be named, and further arguments are passed to the library.
    """
    env, given, regrets = gym.make(env_id), {"n_envs": 4, "n_steps": 4, "vf_coef": 0.25}, set()
    for named in ({}, {"policy": "PlackettLuceActorCritic"}, {"policy": PlackettLuceActorCritic}):
        agent = clickgym.make_agent(name, env, seed=0, **given, **named)
        regrets.add(clickgym.run(agent, env, 16, seed=0).regret[-1])
        assert isinstance(policy := agent.model.policy, PlackettLuceActorCritic)
        assert (policy.sees_features, agent.model.vf_coef) == (env_id != "PBMRank-v0", 0.25)
    assert len(regrets) == 1 or env_id == "PBMRank-v0"  # there, items may have another order
    agent = clickgym.make_agent(name, env, seed=0, **given, policy="MlpPolicy")
    clickgym.run(agent, env, 16, seed=0)
    assert not isinstance(agent.model.policy, PlackettLuceActorCritic)
    items = agent.model.action_space.items.tolist()  # in an order of its own
    assert sorted(items) == list(range(env.action_space.n_items)) != items


# ------------------------------------------------------------------------------------ user classes

OWN = """
from stable_baselines3 import PPO

class MyPPO(PPO):
    def __init__(self, policy, env, boldness=1.0, **others):
        rate = 1e-3 * boldness
        super().__init__(policy, env, n_steps=8, batch_size=8, learning_rate=rate, **others)

class Broken(PPO):
    def train(self):
        raise KeyError("weights")

class Early(PPO):
    def learn(self, total_timesteps, callback=None, **others):
        return super().learn(16, callback, **others) if not self.num_timesteps else self
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder that contains the module ``pond``."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pond.py").write_text(OWN)


@pytest.mark.usefixtures("own")
def test_an_algorithm_of_ones_own() -> None:
    spec, env = "pond:MyPPO:boldness=2.0,n_envs=4", gym.make("PBMRank-v0")
    table = clickgym.sweep(["PBMRank-v0"], [spec], 50, 1, n_jobs=1).frame
    assert table["agent"].unique().to_list() == [spec]
    assert clickgym.make_agent(spec, env).arguments()["boldness"] == 2.0


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Early", "Early stopped training after 32 of 100 sessions"),
        ("Broken", r"Broken in ClickEnv, step 33: KeyError: 'weights'"),
    ],
)
def test_what_is_wrong_is_one_line(name: str, message: str) -> None:
    with pytest.raises(clickgym.AgentError, match=message) as caught:
        clickgym.run(f"pond:{name}:n_steps=4,n_envs=8,batch_size=8", SMALL, 100, seed=0)
    assert "\n" not in str(caught.value)


# ------------------------------------------------------------------------------ users with features


class InOrder(Learner):
    """A learner that shows the first candidates of each session, and stores what the streams
    return.
    """

    engine = "a test"

    def __init__(self, n_envs):
        self.n_envs, self.infos, self.gains = n_envs, [], []

    def best(self, features):
        return np.arange(len(features))

    def learn(self, envs, sessions, on_step, discount):
        envs.reset()
        going_on = True
        while going_on:
            self.gains.append(envs.unwrapped.state.values[:, 0].copy())
            self.infos.append(envs.step(np.tile([0, 1], (self.n_envs, 1))))
            going_on = on_step()


@pytest.mark.parametrize("n", [1, 4])
def test_regret_and_metrics_of_streams(n):
    """The expected values are computed by hand from what the streams return: session after session,
    and within a step stream by stream.
    """
    agent, names, steps = InOrder(n), ("any_click", "ndcg@2"), range(1, 49)
    result = clickgym.run(agent, ClickEnv(USERS), 48, seed=5, checkpoints=steps, metrics=names)
    clicks = np.concatenate([step[0]["clicks"] for step in agent.infos])
    regret = np.concatenate([step[-1]["regret"] for step in agent.infos])
    gains, discount = np.concatenate(agent.gains), 1 / np.log2([2, 3])
    ideal = np.sort(gains, axis=1)[:, :-3:-1] @ discount
    expected = {"any_click": clicks.any(axis=1), "ndcg@2": gains[:, :2] @ discount / ideal}
    np.testing.assert_allclose(result.regret, np.cumsum(regret), rtol=1e-12)
    np.testing.assert_array_equal(result.clicks, np.cumsum(clicks.sum(axis=1)))
    for name in names:
        np.testing.assert_allclose(result.metrics[name], np.cumsum(expected[name]), rtol=1e-12)


def test_held_out_queries_of_streams():
    """Each checkpoint has a value, even if a single step of the streams reaches several
    checkpoints.
    """
    held_out = {"gain": range(12), "held_out": [range(6), range(6, 12)]}
    users = ContextualModel(USERS.base, ITEMS, theta=[0.9, 0.2, 0.4], **held_out)
    options = {"checkpoints": [1, 2, 3], "metrics": ["held_out_ndcg@2"]}
    result = clickgym.run(InOrder(8), ClickEnv(users), 16, seed=0, **options)
    values = result.metrics["held_out_ndcg@2"]
    assert values.tolist() == [values[0]] * len(result.steps)


@pytest.mark.parametrize(
    ("name", "given", "used"),
    [("A2C", {}, 5e-3), ("PPO", {}, 3e-3), ("PPO", {"learning_rate": 0.01}, 0.01)],
)
def test_defaults_with_features_do_not_replace_what_is_given(name, given, used):
    agent = clickgym.make_agent(name, ClickEnv(USERS), seed=0, n_envs=4, n_steps=2, **given)
    clickgym.run(agent, ClickEnv(USERS), 8, seed=0)
    assert agent.model.learning_rate == used


@pytest.mark.parametrize("name", ["SAC", *slow("stable_baselines3:TD3")])
def test_continuous_actions_are_weights_of_features(name):
    """The action has a weight for each feature, whatever the number of items, or a score for each
    item if there are no features. A frozen policy shows the lists that its weights choose for the
    features it sees.
    """
    spec, env = f"{name}:learning_starts=16,batch_size=8", ClickEnv(USERS)
    agent = clickgym.make_agent(spec, env, seed=0)
    clickgym.run(agent, env, 64, seed=0)
    assert (agent.actions, agent.model.action_space.shape) == ("scores", (3,))
    frozen = FrozenPolicy(model=agent.model)
    observation, _ = env.reset(seed=1)
    for _ in range(10):
        features = observation["features"]
        weights, _ = agent.model.predict(features.ravel().astype(np.float32), deterministic=True)
        expected = np.argsort(-(features * weights).sum(axis=1), kind="stable")[:2]
        assert frozen.rank(observation).tolist() == expected.tolist()
        observation, *_ = env.step(expected)
    plain = ClickEnv(PositionBasedModel([0.5, 0.4, 0.3, 0.2, 0.1], [1.0, 0.5]))
    other = clickgym.make_agent(spec, plain, seed=0)
    clickgym.run(other, plain, 64, seed=0)
    assert (other.actions, other.model.action_space.shape) == ("scores", (5,))


# ------------------------------------------------------------------------------ users with memory


def streams():
    users = {"instance": "clickbait:mean_sessions=3"}
    return gym.make_vec(MEMORY, 6, autoreset_mode="SameStep", **users)


def test_the_state_is_seen_one_hot_beside_the_clicks():
    plain, envs = streams(), StableBaselinesVecEnv(streams(), is_flat=True)
    envs.seed(0)
    (seen, _), flat, ends = plain.reset(seed=0), envs.reset(), 0
    lists = np.tile([0, 1, 2, 3], (6, 1))
    for _ in range(30):
        np.testing.assert_array_equal(flat[:, :4], seen["clicks"])
        np.testing.assert_array_equal(flat[:, 4:], np.eye(flat.shape[1] - 4)[seen["state"]])
        seen, _, ended, _, infos = plain.step(lists)
        flat, _, _, others = envs.step(lists)
        for b in np.flatnonzero(ended):
            ends += 1
            last, following = others[b]["terminal_observation"], infos["final_obs"][b]
            np.testing.assert_array_equal(last[:4], following["clicks"])
            assert last[4:].argmax() == following["state"]
    assert ends > 20


@pytest.mark.parametrize(("n_sessions", "cut_off"), [(2, False), (3, True)])
def test_a_user_who_leaves_at_the_limit_was_not_cut_off(n_sessions, cut_off):
    """The library estimates the value of the rest of an episode only for users who were cut off."""
    users = CascadeMDP([[0.5, 0.2]], [[[1.0]] * 3], n_positions=1, n_sessions=n_sessions)
    mode = AutoresetMode.SAME_STEP
    envs = ClickVectorEnv(users, 3, autoreset_mode=mode, max_episode_steps=2)
    adapter = StableBaselinesVecEnv(envs, is_flat=True)
    adapter.reset()
    for over in (False, True):
        _, _, dones, infos = adapter.step(np.zeros((3, 1), np.int64))
        assert dones.tolist() == [over] * 3
    assert [info["TimeLimit.truncated"] for info in infos] == [cut_off] * 3


@pytest.mark.parametrize(("learner", "power"), [(PPO, 1), (DQN, 1 / 4)])
def test_discount_is_the_probability_of_another_visit(learner, power):
    env = gym.make(MEMORY, instance="clickbait:mean_sessions=10")
    agent = learner(12, 4, seed=0)
    with pytest.warns(match=r"about 1\.0 users on each of 64 streams .* a horizon of 6,400"):
        result = clickgym.run(agent, env, 640, seed=0)
    assert agent.model.gamma == pytest.approx(0.9**power)
    assert (result.regret[-1] > 0, result.steps[-1]) == (True, 640)


def test_a_table_says_which_learners_were_told_the_discount():
    agents = ["PPO:n_envs=2", "PPO:n_envs=2,gamma=0", "SlateQ:mean_sessions=2"]
    results = clickgym.sweep([MEMORY], agents, 8, runs=2, n_jobs=1)
    plain = clickgym.sweep(["PBMRank-v0"], [agents[0], "Random"], 8, runs=2, n_jobs=1)
    (note,) = (note for note in format_table(results).notes if "was told" in note)
    assert "PPO:n_envs=2 was told the users' discount" in note
    assert "mean_sessions=2 was told how long users stay (as its argument says)" in note
    assert "gamma=0 was told" not in note
    assert not any("was told" in note for note in format_table(plain).notes)
