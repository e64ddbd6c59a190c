"""Learners where clicks come late: every list gets its own reward. Imports torch."""

import numpy as np
import pytest
from slow import slow

import clickgym
from clickgym.agents import LEARNERS
from clickgym.envs import ClickEnv, DelayedCredit, PositionBasedModel
from clickgym.envs.wrappers.regret import Meter
from clickgym.runner.labels import UnsuitedError
from clickgym.runner.metrics import Metrics

pytest.importorskip("stable_baselines3")
SURE = PositionBasedModel([1.0, 1.0, 1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0])
"""The reward of a list is the number of its items below 3: it is known from the list."""
L, K, N = 6, 3, 4
SMALL = {
    "PPO": {"n_steps": 2, "batch_size": 8, "learning_rate": 0.05},
    "A2C": {"n_steps": 2, "learning_rate": 0.05},
    "MaskablePPO": {"n_steps": 6, "batch_size": 24, "learning_rate": 0.05},
    "DQN": {"learning_starts": 30, "batch_size": 8, "train_freq": K, "n_steps": K},
    "SAC": {"learning_starts": 10, "batch_size": 8},
    "TD3": {"learning_starts": 10, "batch_size": 8},
}


class Played:
    """A learner's play of some sessions: the rows of its networks by display, and the buffers of its updates."""

    def __init__(self, monkeypatch, name, arrival, sessions, **arguments):
        from clickgym.runner.learners.in_turn import InTurn
        from clickgym.runner.learners.play import _streams

        axes = {key: arguments.pop(key) for key in ("available",) if key in arguments}
        learner = LEARNERS[name](L, K, seed=0, n_envs=N, **SMALL[name] | arguments)
        self.learner, self.updates = learner, []
        self.choices = K if learner.actions == "items" else 1
        env = ClickEnv(SURE, arrival=arrival, **axes)
        env.reset(seed=1)
        self.lists, step = [], env.step
        monkeypatch.setattr(env, "step", lambda ranking: self.lists.append(ranking.copy()) or step(ranking))
        meter = Meter([sessions])
        monkeypatch.setattr(learner.algorithm(), "train", self.recorded(learner.algorithm().train))
        learner.learn(
            _streams(learner, InTurn(env, N, meter, Metrics(), learner.actions == "rankings")),
            sessions,
            lambda: meter.step < sessions,
        )
        self.model = learner.model
        # In which order lists arrive, from the environment alone. Where the run ends, the library stores no more.
        alone, self.order = DelayedCredit(ClickEnv(SURE, arrival=arrival, **axes)), []
        alone.reset(seed=1)
        for ranking in self.lists[:-N]:
            self.order += [transition.display - 1 for transition in alone.step(ranking)[-1]["transitions"]]

    def recorded(self, train):
        def recording(model, *args, **kwargs):
            self.update(model)
            train(model, *args, **kwargs)

        return recording

    def update(self, model):
        """Keep a rollout in the order of arrival: arrays with a row for each transition."""
        if not hasattr(model, "rollout_buffer"):
            self.updates.append(model.replay_buffer.size())
            return
        buffer, rows = model.rollout_buffer, {}
        arrays = vars(buffer) | (buffer.observations if isinstance(buffer.observations, dict) else {})
        for name, array in arrays.items():
            if isinstance(array, np.ndarray):
                rows[name] = array.copy() if len(array) == N * model.n_steps else buffer.swap_and_flatten(array)
        self.updates.append(rows)

    def joined(self, name):
        return np.concatenate([rows[name] for rows in self.updates])

    @property
    def own(self):
        """The rewards of the lists by display, which follow from the lists."""
        return np.array([(ranking < 3).sum() for ranking in self.lists])


@pytest.fixture
def drawn(monkeypatch):
    """What policies drew, by step: actions, values and log-probabilities of all streams."""
    from stable_baselines3.common.policies import ActorCriticPolicy

    policies, draws = [ActorCriticPolicy], []
    try:
        from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy

        policies.append(MaskableActorCriticPolicy)
    except ImportError:
        pass
    for policy in policies:

        def forward(self, *args, of=policy.forward, **kwargs):
            parts = of(self, *args, **kwargs)
            draws.append([part.detach().numpy().copy() for part in parts])
            return parts

        monkeypatch.setattr(policy, "forward", forward)
    return draws


ARRIVALS = ["batch:3", "delay:2", "delay:geometric:20:lost=0.3", *slow("batch:70")]


@pytest.mark.parametrize("arrival", ARRIVALS)
def test_the_streams_say_which_displays_arrived_and_what_each_earned(arrival):
    from clickgym.runner.learners.in_turn import InTurn

    env, alone = ClickEnv(SURE, arrival=arrival), DelayedCredit(ClickEnv(SURE, arrival=arrival))
    env.reset(seed=3)
    alone.reset(seed=3)
    envs = InTurn(env, N, Meter([100]), Metrics())
    assert envs.arrivals == (0, [])
    for step in range(25):
        lists = np.array([np.random.default_rng([step, b]).permutation(L)[:K] for b in range(N)])
        envs.step(lists)
        arrived = [transition for ranking in lists for transition in alone.step(ranking)[-1]["transitions"]]
        assert envs.arrivals == (N * step + 1, [(transition.display, transition.reward) for transition in arrived])


@pytest.mark.parametrize("arrival", ARRIVALS)
@pytest.mark.parametrize(
    ("name", "actions"),
    [("PPO", "rankings"), ("MaskablePPO", "items"), *slow(("PPO", "codes"), ("PPO", "scores"), ("PPO", "items"))],
)
def test_a_rollout_has_the_next_lists_that_arrived_each_with_what_it_had_at_its_display(
    monkeypatch, drawn, name, actions, arrival
):
    """Reward, log-probability and value are those of the list's display, and not of the update; lost and open lists are in no
    rollout."""
    pytest.importorskip("sb3_contrib")
    steps = {"n_steps": 6, "batch_size": 24} if actions == "items" else {}
    played = Played(monkeypatch, name, arrival, 120, actions=actions, **steps)
    size = N * steps.get("n_steps", 2)
    choices = [display * played.choices + k for display in played.order for k in range(played.choices)]
    complete = len(choices) // size * size
    assert len(played.updates) == complete // size > 3
    # The number of a choice in `draws`: step after step, and in each the streams.
    in_draws = [(display // N * played.choices + k, display % N) for display in played.order for k in range(played.choices)][
        :complete
    ]
    actions_, values, log_probs = (np.array([drawn[step][part][b] for step, b in in_draws]) for part in range(3))
    np.testing.assert_array_equal(played.joined("actions").reshape(actions_.shape), actions_)
    np.testing.assert_array_equal(played.joined("values")[:, 0], values[:, 0])
    np.testing.assert_array_equal(played.joined("log_probs")[:, 0], log_probs)
    rewards = played.joined("rewards").reshape(-1, played.choices)
    np.testing.assert_array_equal(rewards[:, -1], played.own[played.order][: len(rewards)])
    assert not rewards[:, :-1].any()
    np.testing.assert_allclose(played.joined("returns"), played.joined("advantages") + played.joined("values"), rtol=1e-5)
    if played.choices == 1:
        np.testing.assert_allclose(played.joined("advantages"), rewards - values, rtol=1e-5)


def test_rankings_are_kept_with_the_mask_of_their_display(monkeypatch):
    """In a `Dict` observation, whose arrays are moved like all others."""
    played = Played(monkeypatch, "PPO", "delay:5", 80, available=4)
    masks, lists = played.joined("available"), played.joined("actions").astype(int)
    assert (masks.sum(axis=1) == 4).all()
    assert np.take_along_axis(masks, lists, axis=1).all()
    assert lists.tolist() == [played.lists[display].tolist() for display in played.order[: len(lists)]]
    np.testing.assert_array_equal(played.joined("rewards")[:, 0], played.own[played.order][: len(lists)])


def test_advantages_of_a_list_that_is_chosen_item_by_item_are_smoothed_over_its_choices_only(monkeypatch):
    pytest.importorskip("sb3_contrib")
    played = Played(monkeypatch, "MaskablePPO", "delay:3", 60, gae_lambda=0.5)
    values, advantages = (played.joined(name).reshape(-1, K) for name in ("values", "advantages"))
    rewards = played.joined("rewards").reshape(-1, K)[:, -1]
    deltas = np.column_stack([values[:, 1:], rewards]) - values
    last = deltas[:, 2]
    middle = deltas[:, 1] + 0.5 * last
    np.testing.assert_allclose(advantages, np.column_stack([deltas[:, 0] + 0.5 * middle, middle, last]), rtol=1e-4, atol=1e-6)


def test_masks_are_those_of_the_display(monkeypatch):
    pytest.importorskip("sb3_contrib")
    played = Played(monkeypatch, "MaskablePPO", "delay:5", 80, available=4)
    masks, actions = played.joined("action_masks"), played.joined("actions").astype(int)
    assert (masks[np.arange(len(masks)), actions[:, 0]] == 1).all()
    assert masks.sum(axis=1).reshape(-1, K).tolist() == [[4, 3, 2]] * (len(masks) // K)
    items = played.learner.items[actions.reshape(-1, K)]
    assert items.tolist() == [played.lists[display].tolist() for display in played.order[: len(items)]]


def test_a_batch_that_is_never_complete_is_in_no_rollout(monkeypatch):
    assert not Played(monkeypatch, "PPO", "batch:50", 48).updates
    assert len(Played(monkeypatch, "PPO", "batch:50", 56).updates) == 50 // 8


def test_the_advantages_of_a2c_are_multiplied_by_the_ratio_of_probabilities_up_to_1(monkeypatch):
    """Of the present policy to that of the display; at once all ratios would be 1."""
    import torch

    weights = []

    class Weighed(Played):
        def update(self, model):
            super().update(model)
            rows = self.updates[-1]
            with torch.no_grad():
                observations, actions = (torch.as_tensor(rows[name]) for name in ("observations", "actions"))
                _, now, _ = model.policy.evaluate_actions(observations, actions)
            ratio = np.exp(now.numpy() - rows["log_probs"][:, 0])
            weights.extend(ratio)
            plain = rows["rewards"] - rows["values"]
            np.testing.assert_allclose(rows["advantages"][:, 0], plain[:, 0] * np.minimum(ratio, 1), rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(rows["returns"], rows["rewards"], rtol=1e-5, atol=1e-6)

    Weighed(monkeypatch, "A2C", "delay:20", 200)
    weights = np.array(weights)
    assert (weights > 1.1).sum() > 5 < (weights < 0.9).sum()


@pytest.mark.parametrize("arrival", ["batch:3", "delay:geometric:20:lost=0.3"])
@pytest.mark.parametrize("name", ["DQN", "SAC", *slow("TD3")])
def test_a_list_comes_into_the_memory_when_it_arrives_as_an_episode_of_its_own(monkeypatch, name, arrival):
    played = Played(monkeypatch, name, arrival, 120)
    memory, choices = played.model.replay_buffer, played.choices
    arrived = played.order
    assert memory.size() == choices * len(arrived) > choices * 50
    rewards, dones = (array[: memory.size(), 0].reshape(-1, choices) for array in (memory.rewards, memory.dones))
    np.testing.assert_array_equal(rewards[:, -1], played.own[arrived])
    assert not rewards[:, :-1].any()
    assert (dones == ([0] * (choices - 1) + [1])).all()
    assert min(played.updates) >= played.learner.hyperparameters["learning_starts"]
    if name == "SAC":
        lists = played.learner.items[np.argsort(-memory.actions[: memory.size(), 0], axis=1, kind="stable")[:, :K]]
        assert lists.tolist() == [played.lists[display].tolist() for display in arrived]


def test_nothing_is_learned_from_an_empty_memory(monkeypatch):
    played = Played(monkeypatch, "SAC", "batch:1000", 60)
    assert played.updates == []
    assert played.model.replay_buffer.size() == 0


def test_lists_that_wait_are_given_up_beyond_what_fits(monkeypatch):
    from clickgym.agents import delayed_credit

    monkeypatch.setattr(delayed_credit, "MAX_BYTES", 24 * (2 * L * K + 1) * 10)
    assert len(Played(monkeypatch, "PPO", "delay:8", 120).updates) == (120 - N - 8) // 8
    played = Played(monkeypatch, "PPO", "delay:14", 120)
    assert len(played.model.open_lists._open) == 10
    assert not played.updates


def test_what_is_open_belongs_to_one_run(monkeypatch):
    played = Played(monkeypatch, "PPO", "delay:20", 60)
    open_lists = played.model.open_lists
    assert played.model.lists_of(open_lists.envs) is open_lists
    another = type("Streams", (), {"num_envs": N, "observation_space": played.model.observation_space})()
    another.get_attr = lambda name, _: [100]
    assert played.model.lists_of(another) is not open_lists
    assert not played.model.open_lists.completed


def test_a_model_that_learned_from_late_clicks_can_be_saved(monkeypatch, tmp_path):
    from stable_baselines3 import PPO

    played = Played(monkeypatch, "PPO", "delay:5", 40)
    played.model.save(tmp_path / "model")
    loaded = PPO.load(tmp_path / "model", device="cpu")
    observation = played.model.observation_space.sample()
    assert (
        loaded.predict(observation, deterministic=True)[0].tolist()
        == played.model.predict(observation, deterministic=True)[0].tolist()
    )


@pytest.mark.parametrize("name", ["A2C", "PPO", *slow("MaskablePPO", "DQN")])
def test_a_learner_learns_from_late_clicks(name):
    """Random lists lose 3,000 of the 6,000 clicks of the best in the mean. One seed each."""
    pytest.importorskip("sb3_contrib")
    settings = {
        "A2C": {"n_steps": 1, "learning_rate": 0.003},
        "PPO": {"n_steps": 2, "batch_size": 16, "learning_rate": 0.01},
        "MaskablePPO": {"n_steps": 6, "batch_size": 48, "learning_rate": 0.01},
        "DQN": SMALL["DQN"] | {"learning_rate": 0.01},
    }
    learner = LEARNERS[name](L, K, seed=0, n_envs=8, **settings[name])
    result = clickgym.run(learner, ClickEnv(SURE, arrival="batch:16"), 2000, seed=0)
    assert result.regret[-1] < 800


def test_clicks_at_once_are_learned_from_as_ever():
    """Neither the algorithm nor its numbers change where clicks come at once, also among bots."""
    import stable_baselines3

    for axes in ({}, {"bots": "random:share=0.2"}, {"arrival": "delay:0"}):
        learner = LEARNERS["A2C"](L, K, seed=0, n_envs=N)
        clickgym.run(learner, ClickEnv(SURE, **axes), 16, seed=0)
        assert type(learner.model) is stable_baselines3.A2C


def test_classes_of_users_keep_their_own_loop():
    import stable_baselines3

    learner = clickgym.make_agent("stable_baselines3:A2C:n_envs=4", ClickEnv(SURE, arrival="delay:5"), seed=0)
    assert learner.learns_from == "the rewards that arrive"
    clickgym.run(learner, ClickEnv(SURE, arrival="delay:5"), 16, seed=0)
    assert type(learner.model) is stable_baselines3.A2C


def test_recurrent_ppo_is_refused_where_clicks_come_late():
    pytest.importorskip("sb3_contrib")
    message = r"RecurrentPPO learns from sequences of sessions in their order, .*late clicks \(arrival='delay:5'\); PPO can$"
    with pytest.raises(UnsuitedError, match=message):
        clickgym.run(LEARNERS["RecurrentPPO"](L, K, seed=0), ClickEnv(SURE, arrival="delay:5"), 50, seed=0)


@pytest.mark.parametrize(("name", "policy"), [("PPO", "MlpPolicy"), ("A2C", "MultiInputPolicy"), ("DQN", "MlpPolicy")])
def test_algorithms_by_hand_are_told_why_and_what_to_do(name, policy):
    import stable_baselines3

    with pytest.raises(AssertionError, match=r"stores the reward of a step with the list of that step, .* by name"):
        getattr(stable_baselines3, name)(policy, DelayedCredit(ClickEnv(SURE, arrival="batch:3")))
