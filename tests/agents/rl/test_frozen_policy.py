"""Tests of trained policies used as agents: they show the lists that their training wrapper makes
of their predictions.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import FilterObservation, FlattenObservation

import clickgym

pytest.importorskip("stable_baselines3")

from stable_baselines3 import PPO, SAC
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from clickgym.agents import FrozenPolicy, PlackettLuceActorCritic, vec_env
from clickgym.agents.rl.learner import one_thread
from clickgym.envs import (
    CascadeMDP,
    ClickEnv,
    ContextualModel,
    ItemByItem,
    PositionBasedModel,
    ScoresAction,
)

pytestmark = pytest.mark.uncompiled

SMALL = PositionBasedModel([0.6, 0.5, 0.3, 0.1], [1.0, 0.7, 0.4])
FEW = {"n_steps": 64, "n_epochs": 2}
OF_LISTS = {"policy": PlackettLuceActorCritic, "n_steps": 16, "batch_size": 16, "n_epochs": 2}
CLICKS = np.random.default_rng(0).integers(0, 2, (30, 3)).astype(np.int8)


def trained(algorithm, envs, policy=None, **settings):
    """Return a model trained for 100 steps."""
    is_dict = isinstance(envs.observation_space, spaces.Dict)
    policy = policy or ("MultiInputPolicy" if is_dict else "MlpPolicy")
    with one_thread():
        return algorithm(policy, envs, seed=0, device="cpu", **settings).learn(100)


def test_a_saved_model_knows_its_lists(tmp_path):
    """The action space of a saved model tells how its actions become lists."""
    env = ScoresAction(ClickEnv(SMALL))
    model = trained(PPO, env, **FEW)
    model.save(file := tmp_path / "model.zip")
    agents = [FrozenPolicy(model=it) for it in (model, PPO.load(file))]
    agents += [FrozenPolicy(model=file, algorithm=PPO)]
    agents += [clickgym.make_agent(f"FrozenPolicy:model={file},algorithm=PPO", ClickEnv(SMALL))]
    for clicks in CLICKS:
        action, _ = model.predict(clicks, deterministic=True)
        for agent in agents:
            assert (agent.n_items, agent.n_positions) == (4, 3)
            np.testing.assert_array_equal(agent.rank(clicks), env.action(action))
    other_sizes = "lists of 3 out of 4 items, but lists of 5 out of 10"
    for env in ("PBMRank-v0", ClickEnv(PositionBasedModel([0.5] * 10, [1.0] * 5))):
        with pytest.raises(ValueError, match=other_sizes):
            clickgym.run(agents[0], env, 10)
    with pytest.raises(ValueError, match=other_sizes):
        clickgym.make_agent((FrozenPolicy, {"model": model}), "PBMRank-v0")
    with pytest.raises(TypeError, match="name the algorithm that saved it"):
        FrozenPolicy(model=str(file))
    with pytest.raises(ValueError, match=r"'A2' *\Z|no 'A2'"):
        FrozenPolicy(model=file, algorithm="A2")


class Remembers:
    """A recurrent policy whose state counts the sessions of an episode."""

    def __init__(self):
        self.seen = []

    def predict(self, observation, state=None, episode_start=None, deterministic=True):
        self.seen.append((state, bool(episode_start[0])))
        return [4, 0, 4], 1 if state is None else state + 1


def test_the_state_of_a_policy_ends_with_the_episode():
    """A repeated item is shown once; the first item that is not in the list takes its place."""
    model = Remembers()
    agent = FrozenPolicy(6, 3, model=model)
    for session in range(4):
        assert agent.rank(np.zeros(3)).tolist() == [4, 0, 1]
        if session == 1:
            agent.leave()
    assert model.seen == [(None, True), (1, False), (None, True), (1, False)]


def test_masked_policy():
    """A masked policy builds its list item by item within one session."""
    contrib = pytest.importorskip("sb3_contrib")
    env = ItemByItem(ClickEnv(SMALL))
    model = trained(contrib.MaskablePPO, env, n_steps=66, batch_size=33, n_epochs=2)
    agent = FrozenPolicy(4, 3, model=model)
    env = ItemByItem(clickgym.RecordRegret(ClickEnv(SMALL)))
    observation, _ = env.reset(seed=0)
    clicks = np.zeros(3, np.int8)
    for _ in range(10):
        shown = agent.rank(clicks)
        done = False
        while not done:
            masks = env.action_masks()
            choice, _ = model.predict(observation, deterministic=True, action_masks=masks)
            observation, _, done, _, _ = env.step(choice)
        np.testing.assert_array_equal(shown, observation["placed"].argmax(axis=1))
        clicks = observation["observation"]
        observation, _ = env.reset()
    assert env.env.meter.step == 10


@pytest.mark.parametrize("name", ["PPO", "DQN"])
def test_what_a_learner_has_learned_can_be_frozen(name):
    pytest.importorskip("sb3_contrib")
    env = ClickEnv(SMALL)
    quick = {"n_envs": 8} | ({} if name == "DQN" else {"n_steps": 6, "batch_size": 24})
    learner = clickgym.make_agent(name, env, seed=0, **quick)
    clickgym.run(learner, env, 300, seed=0)
    agent = FrozenPolicy(model=learner.model, trained=300)
    result = clickgym.run(agent, env, 50, seed=0)
    assert (result.agent, result.engine, result.trained) == ("FrozenPolicy", "frozen policy", 300)


FEATURES = ContextualModel(
    PositionBasedModel([0] * 4, [1.0, 0.5]),
    theta=[0.9, 0.1, 0.3],
    items=np.random.default_rng(0).uniform(size=(9, 3)) / 2,
)
"""Candidates that change in every session: four out of nine items, with three features."""


def envs_of_training(wrap, normalised, actions="rankings", users=FEATURES):
    """Environments for stable-baselines3 with observation wrappers, behind `VecNormalize`."""

    def make():
        env = ClickEnv(users)
        return wrap(ScoresAction(env) if actions == "scores" else env)

    envs = DummyVecEnv([make, make])
    keys = ["features"] if isinstance(envs.observation_space, spaces.Dict) else None
    return VecNormalize(envs, norm_reward=False, norm_obs_keys=keys) if normalised else envs


@pytest.mark.parametrize(
    ("wrap", "normalised"),
    [(lambda env: env, False), (FlattenObservation, True)],
    ids=["dict", "flattened, VecNormalize"],
)
@pytest.mark.parametrize(
    ("algorithm", "actions", "settings"),
    [(PPO, "rankings", OF_LISTS), (SAC, "scores", {"learning_starts": 80})],
)
def test_lists_of_a_policy_behind_wrappers(algorithm, actions, settings, wrap, normalised):
    """The agent shows the lists of the trained policy, but ranks in the unwrapped environment."""
    with one_thread():
        envs = envs_of_training(wrap, normalised, actions)
        model = trained(algorithm, envs, **settings)
        agent = FrozenPolicy(4, 2, model=model)
        env, lists = wrap(ClickEnv(FEATURES)), []
        observation, _ = env.reset(seed=1)
        decode = {
            "rankings": np.asarray,
            "scores": lambda action: np.argsort(-(raw["features"] * action).sum(axis=1))[:2],
        }[actions]
        for _ in range(20):
            core = env.unwrapped
            raw = core.task.observe(core.state, 0, core.shown.clicks)
            seen = envs.normalize_obs(observation) if normalised else observation
            expected = decode(model.predict(seen, deterministic=True)[0])
            np.testing.assert_array_equal(agent.rank(raw), expected)
            lists.append(tuple(expected.tolist()))
            observation, *_ = env.step(env.action_space.sample())
        assert len(set(lists)) > 1


def test_a_model_of_filtered_observations_needs_the_filter():
    """Without it, or with other sizes, the error comes before the first session."""
    filtered = FilterObservation(ClickEnv(FEATURES), ["features"])
    with one_thread():
        agent = FrozenPolicy(model=trained(PPO, FlattenObservation(filtered), **FEW))
        assert clickgym.run(agent, filtered, 30, seed=1).steps[-1] == 30
    two_features = ContextualModel(FEATURES.base, theta=[0.9, 0.1], items=np.eye(9, 2))
    for users in (FEATURES, two_features):
        with pytest.raises(ValueError, match=r"trained on observations of shape \(12,\), but the"):
            clickgym.run(agent, ClickEnv(users), 30)


@pytest.mark.parametrize(
    "wrap",
    [lambda env: env, ItemByItem, ScoresAction, lambda env: ItemByItem(FlattenObservation(env))],
)
def test_a_flattened_state_is_one_hot(wrap):
    """The state and the number of sessions left are one-hot encoded, so the lists equal those
    chosen behind FlattenObservation, in a single run and in a sweep.
    """
    users = CascadeMDP(
        [[0.9, 0.1, 0.5], [0.1, 0.9, 0.5]], np.full((2, 4, 2), 0.5), n_positions=2, n_sessions=4
    )
    env = FlattenObservation(wrap(ClickEnv(users)))
    with one_thread():
        model = trained(PPO, env, **FEW)
        result = clickgym.run(FrozenPolicy(model=model), env.unwrapped, 30, seed=1)
        regret = []
        seen, _ = env.reset(seed=1)
        while len(regret) < 30:
            action, _ = model.predict(seen, deterministic=True)
            seen, _, terminated, truncated, info = env.step(action)
            regret += [info["regret"]] if "regret" in info else []
            if terminated or truncated:
                seen, _ = env.reset()
    np.testing.assert_allclose(result.regret[-1], sum(regret))
    agents = {"frozen": (FrozenPolicy, {"model": model})}
    results = clickgym.sweep({"users": users}, agents, 30, 1, n_jobs=1, progress=False)
    row = results.frame.row(-1, named=True)
    repeated = clickgym.run(FrozenPolicy(model=model), ClickEnv(users), 30, seed=row["seed"])
    assert row["regret"] == repeated.regret[-1]


def test_a_model_loaded_with_its_normalisation(tmp_path):
    """A model that is loaded together with its `VecNormalize`, and a model that was pickled and so
    has lost its environment, play like the original model.
    """
    with one_thread():
        envs = envs_of_training(FlattenObservation, True)
        model = trained(PPO, envs, **OF_LISTS)
        model.save(file := tmp_path / "model.zip")
        envs.save(statistics := str(tmp_path / "statistics.pkl"))
        fresh = envs_of_training(FlattenObservation, False)
        loaded = PPO.load(file, env=VecNormalize.load(statistics, fresh))
        sent = pickle.loads(pickle.dumps(model))
        env = ClickEnv(FEATURES)
        agents = [FrozenPolicy(4, 2, model=each) for each in (model, loaded, sent)]
        first, *others = (clickgym.run(agent, env, 100, seed=0).regret.tolist() for agent in agents)
        assert others == [first, first]


def test_drawn_actions_repeat_with_the_seed_and_disturb_no_training():
    """Training that continues after drawn actions were played ends in the same policy as training
    without an interruption.
    """
    weights = []
    for is_evaluated in (False, True):
        model = trained(PPO, ClickEnv(SMALL), **FEW)
        if is_evaluated:
            lists = []
            for seed in (1, 1, 2):
                agent = FrozenPolicy(4, 3, model=model, deterministic=False, seed=seed)
                lists.append([agent.rank(clicks).tolist() for clicks in CLICKS])
            assert lists[0] == lists[1] != lists[2]
        model.learn(100, reset_num_timesteps=False)
        weights.append([p.tolist() for p in model.policy.parameters()])
    assert weights[0] == weights[1]


def test_a_model_trained_in_vec_env_goes_to_worker_processes():
    """The model's environment is pickled together with it."""
    model = trained(PPO, vec_env("PBMRank-v0", 2), **FEW)
    agents = {"frozen": (FrozenPolicy, {"model": model})}
    regret = [
        clickgym.sweep(["PBMRank-v0"], agents, 50, 2, n_jobs=n_jobs, progress=False).frame["regret"]
        for n_jobs in (1, 2)
    ]
    assert regret[0].equals(regret[1])
