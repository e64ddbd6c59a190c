"""Trained policies as agents: their lists are those that the wrapper they were trained under makes
of their predictions.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from slow import slow

import clickgym
from clickgym.agents import FrozenPolicy
from clickgym.envs import (
    ClickEnv,
    EnumeratedAction,
    ItemByItem,
    LehmerAction,
    LinearModel,
    PositionBasedModel,
    ScoresAction,
)
from clickgym.runner.loop import AgentError

SMALL = PositionBasedModel([0.6, 0.5, 0.3, 0.1], [1.0, 0.7, 0.4])
ITEMS = [2, 0, 3, 1]
WRAPPERS = {"codes": LehmerAction, "scores": ScoresAction, "lists": EnumeratedAction}


class Stream:
    """Clicks that no list had a part in."""

    def __init__(self, n):
        self.clicks = np.random.default_rng(0).integers(0, 2, (n, 3)).astype(np.int8)


def trained(name, env, **arguments):
    """A model of a few hundred steps."""
    pytest.importorskip("stable_baselines3")
    import stable_baselines3
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the networks are too small for more
    library = stable_baselines3
    if name in ("RecurrentPPO", "MaskablePPO"):
        library = pytest.importorskip("sb3_contrib")
    policies = {"RecurrentPPO": "MlpLstmPolicy"}
    default = (
        "MultiInputPolicy" if isinstance(env.observation_space, gym.spaces.Dict) else "MlpPolicy"
    )
    settings = {
        "PPO": {"n_steps": 64, "n_epochs": 2},
        "RecurrentPPO": {"n_steps": 64, "n_epochs": 2, "policy_kwargs": {"lstm_hidden_size": 8}},
        "MaskablePPO": {"n_steps": 66, "batch_size": 33, "n_epochs": 2},
        "SAC": {"learning_starts": 50, "train_freq": 25},
        "DQN": {"learning_starts": 50},
    }[name]
    made = getattr(library, name)(
        policies.get(name, default), env, seed=0, device="cpu", **settings, **arguments
    )
    made.learn(200)
    torch.set_num_threads(threads)
    return made


@pytest.mark.parametrize(
    ("name", "actions"),
    [("PPO", "codes"), *slow(("SAC", "scores"), ("DQN", "lists"), ("PPO", "scores"))],
)
def test_lists_are_what_the_wrapper_makes_of_the_predictions(name, actions):
    env = WRAPPERS[actions](ClickEnv(SMALL), ITEMS)
    model = trained(name, env)
    agent = FrozenPolicy(4, 3, model=model, actions=actions, items=ITEMS)
    for clicks in Stream(20).clicks:
        action, _ = model.predict(clicks, deterministic=True)
        np.testing.assert_array_equal(agent.rank(clicks), env.action(action))


def test_recurrent_policy():
    """Its state is carried from session to session."""
    env = LehmerAction(ClickEnv(SMALL), ITEMS)
    model = trained("RecurrentPPO", env)
    agent = FrozenPolicy(4, 3, model=model, actions="codes", items=ITEMS)
    state, states = None, []
    for number, clicks in enumerate(Stream(20).clicks):
        action, state = model.predict(clicks, state, np.array([number == 0]), deterministic=True)
        states.append(state[0].copy())
        np.testing.assert_array_equal(agent.rank(clicks), env.action(action))
        np.testing.assert_array_equal(agent._state[0], state[0])
    assert not np.array_equal(states[0], states[-1])


def test_masked_policy():
    """It builds its list item by item within one session."""
    model = trained("MaskablePPO", ItemByItem(ClickEnv(SMALL), ITEMS))
    agent = FrozenPolicy(4, 3, model=model, actions="items", items=ITEMS)
    env = ItemByItem(clickgym.RecordRegret(ClickEnv(SMALL)), ITEMS)
    observation, _ = env.reset(seed=0)
    clicks = np.zeros(3, np.int8)
    for _ in range(10):
        shown = agent.rank(clicks)
        done = False
        while not done:
            choice, _ = model.predict(
                observation, deterministic=True, action_masks=env.action_masks()
            )
            observation, _, done, _, _ = env.step(choice)
        np.testing.assert_array_equal(shown, np.array(ITEMS)[observation["placed"].argmax(axis=1)])
        clicks = observation["observation"]
        observation, _ = env.reset()
    assert env.env.meter.step == 10


@pytest.mark.parametrize("name", ["PPO", "DQN", *slow("MaskablePPO", "SAC", "RecurrentPPO")])
def test_what_a_learner_has_learned_can_be_frozen(name):
    pytest.importorskip("sb3_contrib")
    env = ClickEnv(SMALL)
    quick = {"n_envs": 8} | ({} if name in ("DQN", "SAC") else {"n_steps": 6, "batch_size": 24})
    learner = clickgym.agents.AGENTS[name](4, 3, seed=0, **quick)
    clickgym.run(learner, env, 300, seed=0)
    agent = FrozenPolicy(4, 3, model=learner.model, actions=learner.actions, items=learner.items)
    result = clickgym.run(agent, env, 50, seed=0)
    assert (result.agent, result.engine, result.steps[-1]) == ("FrozenPolicy", "python", 50)
    again = FrozenPolicy(4, 3, model=learner.model, actions=learner.actions, items=learner.items)
    np.testing.assert_array_equal(clickgym.run(again, env, 50, seed=0).regret, result.regret)


def test_what_is_observed_is_as_in_training():
    users = LinearModel(
        PositionBasedModel([0, 0], [1.0, 0.5]), theta=[0.9, 0.1], items=[[1, 0], [0, 1], [0.5, 0.5]]
    )
    contextual = ClickEnv(users)
    agent = FrozenPolicy(2, 2, model=trained("PPO", LehmerAction(contextual)))
    assert clickgym.run(agent, contextual, 20, seed=0).steps[-1] == 20
    with pytest.raises(
        AgentError,
        match=r"trained on observations Dict.*features.*wrap the environment as in training",
    ):
        clickgym.run(
            FrozenPolicy(2, 2, model=agent.model),
            ClickEnv(PositionBasedModel([0.5, 0.4], [1.0, 0.5])),
            20,
            seed=0,
        )


def test_a_function_is_called_with_what_it_takes():
    calls = []

    def predict(observation, state=None, *, deterministic):
        calls.append((state, deterministic))
        return np.array([3, 0, 0]), len(calls)

    agent = FrozenPolicy(4, 3, model=predict, deterministic=False)
    for _ in range(3):
        agent.rank(np.zeros(3, np.int8))
    assert calls == [(None, False), (1, False), (2, False)]
    assert FrozenPolicy(
        4, 3, model=lambda observation: [0.1, 0.4, 0.3, 0.2], actions="scores"
    ).rank(None).tolist() == [1, 2, 3]


def test_function_that_chooses_items():
    """It sees what is placed and what is left."""
    seen = []

    def predict(observation, action_masks):
        seen.append((observation["placed"].sum(), action_masks.sum()))
        return int(np.flatnonzero(action_masks)[-1])

    agent = FrozenPolicy(4, 3, model=predict, actions="items", items=ITEMS)
    assert agent.rank(np.zeros(3, np.int8)).tolist() == [1, 3, 0]
    assert seen == [(0, 4), (1, 3), (2, 2)]
    with pytest.raises(ValueError, match="forbidden at position 1"):
        FrozenPolicy(4, 3, model=lambda observation: 2, actions="items").rank(np.zeros(3, np.int8))


def test_where_episodes_start():
    """Items one by one: with each list, as in training; whole lists: with the first one."""
    starts = {"items": [], "codes": []}
    for actions, items in (("items", [2, 0, 1]), ("codes", [[0, 0, 0]])):
        choices = iter(3 * items)

        def predict(observation, episode_start, calls=starts[actions], choices=choices):
            calls.append(bool(episode_start))
            return next(choices)

        agent = FrozenPolicy(4, 3, model=predict, actions=actions)
        for _ in range(3):
            agent.rank(np.zeros(3, np.int8))
    assert starts == {"items": [True, False, False] * 3, "codes": [True, False, False]}


def test_drawn_actions_repeat_with_the_seed():
    model = trained("PPO", LehmerAction(ClickEnv(SMALL)))

    def lists(seed):
        agent = FrozenPolicy(4, 3, model=model, deterministic=False, seed=seed)
        return [agent.rank(clicks).tolist() for clicks in Stream(30).clicks]

    assert lists(1) == lists(1) != lists(2)


def test_a_model_of_other_actions_or_sizes_is_refused():
    model = trained("PPO", LehmerAction(ClickEnv(SMALL)))
    with pytest.raises(
        ValueError, match=r"MultiDiscrete\(\[4 3 2\]\); actions='scores' .* are Box"
    ):
        FrozenPolicy(4, 3, model=model, actions="scores")
    with pytest.raises(ValueError, match="lists of 3 out of 5 items"):
        FrozenPolicy(5, 3, model=model)
