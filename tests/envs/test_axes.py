"""Clicks as they come: `arrival`, `bots`, `churn` and `available`, beside a slow and obvious simulation of each."""

from __future__ import annotations

import itertools
import math
import warnings
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import clickgym
from clickgym.envs import (
    CLICK_MODELS,
    ClickEnv,
    EnumeratedAction,
    EnumeratedVectorAction,
    HistoryObservation,
    ItemByItem,
    ItemByItemVector,
    LehmerAction,
    LehmerVectorAction,
    RecordRegret,
    RecordVectorRegret,
    ScoresAction,
    ScoresVectorAction,
    load_instance,
)
from clickgym.envs.arrival import Arrival

K, L = 3, 6
ORDER = ("arrival", "bots", "churn", "available")


def uniforms(seed, axis):
    """The generator of an axis of an environment that was reset with a seed."""
    child = np.random.SeedSequence(seed, spawn_key=(0xC11C, 0xA8E5, ORDER.index(axis)))
    return np.random.Generator(np.random.PCG64(child))


def clicks_of_users(env_id, lists, seed, **arguments):
    """The clicks of the users on lists, without any axis."""
    env = gym.make(env_id, **arguments).unwrapped
    env.reset(seed=seed)
    return [env.step(ranking)[0].tolist() for ranking in lists]


def some_lists(n, seed=0, n_items=L):
    rng = np.random.default_rng(seed)
    return [rng.permutation(n_items)[:K] for _ in range(n)]


def small(env_id="CMRank-v0", **arguments):
    return gym.make(env_id, instance=f"uniform:n_items={L},n_positions={K},seed=1", **arguments).unwrapped


def play(env, lists, seed=0):
    """Observations (that of the reset first), rewards and infos."""
    observation, info = env.reset(seed=seed)
    observations, rewards, infos = [observation], [], [info]
    for ranking in lists:
        observation, reward, _, _, info = env.step(ranking)
        observations.append(observation)
        rewards.append(reward)
        infos.append(info)
    return observations, rewards, infos


def rows(observation):
    """What has arrived: displays, lists, clicks."""
    n = int(observation["n_arrived"])
    for name in ("displays", "rankings", "clicks"):
        assert (observation[name][n:] == -1).all()
        assert (observation[name][:n] >= 0).all()
    return [
        (int(display), ranking.tolist(), clicks.tolist())
        for display, ranking, clicks in zip(
            *(observation[name][:n] for name in ("displays", "rankings", "clicks")), strict=True
        )
    ]


# arrival -----------------------------------------------------------


def due(kind, number, s, u):
    """At the end of which session the feedback of session s arrives."""
    if kind == "immediate":
        return s
    if kind == "batch":
        return math.ceil(s / number) * number
    if kind == "delay":
        return s + number
    rho = 1 / (1 + number)
    return s + math.floor(math.log(1 - u) / math.log(1 - rho))


@pytest.mark.parametrize(
    ("value", "kind", "number", "lost", "most"),
    [
        ("batch:7", "batch", 7, 0, 7),
        ("batch:4:lost=0.3", "batch", 4, 0.3, 4),
        ("delay:5", "delay", 5, 0, 1),
        ("immediate:lost=0.5", "immediate", 0, 0.5, 1),
        ("delay:geometric:6", "geometric", 6, 0, 64),
        ("delay:geometric:6:lost=0.2:max_arrivals=1", "geometric", 6, 0.2, 1),
    ],
)
def test_feedback_arrives_when_it_is_due_in_the_order_of_displays(value, kind, number, lost, most):
    n, seed = 200, 3
    lists = some_lists(n)
    env = small(arrival=value)
    observations, rewards, infos = play(env, lists, seed)
    clicks = [info["true_clicks"].tolist() for info in infos[1:]]
    rng, waiting = uniforms(seed, "arrival"), []
    for s in range(1, n + 1):
        delay, loss = rng.random(2)
        if loss >= lost:
            waiting.append((due(kind, number, s, delay), s))
        waiting.sort()
        now = [item for item in waiting if item[0] <= s][:most]
        waiting = [item for item in waiting if item not in now]
        arrived = rows(observations[s])
        assert arrived == [(display, lists[display - 1].tolist(), clicks[display - 1]) for _, display in now]
        assert rewards[s - 1] == sum(sum(clicks[display - 1]) for _, display in now)
        assert observations[s]["display"].tolist() == [s] == [infos[s]["display"]]
        assert infos[s]["realised_reward"] == sum(clicks[s - 1])
        assert observations[s] in env.observation_space
    assert observations[0]["n_arrived"] == 0
    assert clicks == clicks_of_users("CMRank-v0", lists, seed, instance=f"uniform:n_items={L},n_positions={K},seed=1")


def test_the_last_incomplete_batch_never_arrives():
    observations, _, _ = play(small(arrival="batch:10"), some_lists(25))
    assert [int(observation["n_arrived"]) for observation in observations] == [10 * (s in (10, 20)) for s in range(26)]


def test_a_geometric_delay_has_the_mean_that_was_asked_for_and_may_be_none():
    """Mean m and P(0) = 1/(1 + m) of 4,000 delays: five standard errors."""
    n, m = 4_000, 3.0
    observations, _, _ = play(small(arrival=f"delay:geometric:{m}:max_arrivals=500"), [np.arange(K)] * (n + 200))
    delays = [s - display for s, observation in enumerate(observations) for display, *_ in rows(observation) if display <= n]
    assert len(delays) == n
    assert abs(np.mean(delays) - m) < 5 * math.sqrt(m * (1 + m) / n)
    assert abs(np.mean(np.array(delays) == 0) - 1 / (1 + m)) < 5 * math.sqrt(3 / 16 / n)


def test_so_many_displays_may_be_open_by_default():
    assert Arrival("delay:geometric:500").state(1, 10).due.shape == (1, 1_000_000)
    assert Arrival("delay:geometric:500").state(4, 10).due.shape == (4, 250_000)
    assert Arrival("delay:geometric:500").state(1, 10, n_features=50 * 20).due.shape == (1, 62_500)
    assert 62_500 * 50 * 20 * np.float64().nbytes == 500e6
    assert Arrival("batch:99").state(1, 10, n_features=50 * 20).due.shape == (1, 99)


def test_beyond_the_most_that_may_be_open_the_oldest_is_given_up():
    env = small(arrival="delay:geometric:1000:max_open=20")
    observations, _, _ = play(env, some_lists(300), seed=5)
    rng, waiting, dropped = uniforms(5, "arrival"), [], 0
    for s in range(1, 301):
        delay, _ = rng.random(2)
        if len(waiting) == 20:
            waiting.remove(min(waiting, key=lambda entry: entry[1]))
            dropped += 1
        waiting.append((due("geometric", 1000, s, delay), s))
        now = sorted(entry for entry in waiting if entry[0] <= s)
        waiting = [entry for entry in waiting if entry[0] > s]
        assert [display for display, *_ in rows(observations[s])] == [display for _, display in now]
    assert env.axes.arrival_state.dropped.tolist() == [dropped]
    assert dropped > 200


@pytest.mark.parametrize("value", ["batch:1", "delay:0", "immediate", "delay:0:lost=0"])
def test_what_arrives_at_once_is_the_environment_as_it_was(value):
    env, plain = small(arrival=value), small()
    assert env.observation_space == plain.observation_space
    lists = some_lists(20)
    for mine, other in zip(play(env, lists), play(plain, lists), strict=True):
        assert list(map(str, mine)) == list(map(str, other))


def test_an_episode_goes_on_with_what_is_still_to_come_and_a_seed_begins_anew():
    env = small(arrival="delay:2")
    env.reset(seed=0)
    for ranking in some_lists(3):
        env.step(ranking)
    observation, _ = env.reset()
    assert (observation["n_arrived"], observation["display"].tolist()) == (0, [3])
    assert rows(env.step(np.arange(K))[0])[0][0] == 2
    assert rows(env.step(np.arange(K))[0])[0][0] == 3
    env.reset(seed=0)
    assert env.step(np.arange(K))[0]["n_arrived"] == 0


# bots --------------------------------------------------------------


@pytest.mark.parametrize("env_id", ["CMRank-v0", "PBMRank-v0", "DBNRank-v0"])
@pytest.mark.parametrize(
    ("value", "kind", "share", "first", "of_bots"),
    [
        ("random:share=0.4:rate=0.3", "random", 0.4, 0, True),
        ("farm:share=0.4:targets=1+4", "farm", 0.4, 0, True),
        ("farm:first=30", "farm", 0, 30, True),
        ("quit:share=0.5:target=2", "quit", 0.5, 0, False),
        ("quit:first=25", "quit", 0, 25, False),
        ("farm:share=0.4:users=real", "farm", 0.4, 0, False),
        ("quit:share=0.4:users=bots", "quit", 0.4, 0, True),
    ],
)
def test_bots_report_what_they_like_and_only_real_users_count(env_id, value, kind, share, first, of_bots):
    n, seed = 60, 2
    lists = some_lists(n)
    env = small(env_id, bots=value)
    model, attraction = env.model, env.model.attraction
    observations, rewards, infos = play(env, lists, seed)
    rng = uniforms(seed, "bots")
    ties = rng.random(L)
    smallest = sorted(range(L), key=lambda item: (attraction[item], ties[item]))
    targets = smallest[: 2 if kind == "farm" else 1]
    if "target" in value:
        targets = [1, 4] if kind == "farm" else [2]
    truth, cost = clicks_of_users(env_id, lists, seed, instance=f"uniform:n_items={L},n_positions={K},seed=1"), 0
    best = model.expected_reward(model.optimal_ranking())
    for s, (ranking, clicks, info) in enumerate(zip(lists, truth, infos[1:], strict=True), start=1):
        whether, *each = rng.random(1 + K)
        corrupted = s <= first if first else whether < share
        told = clicks
        if corrupted:
            told = [int(u < 0.3) for u in each] if kind == "random" else [int(item in targets) for item in ranking]
        cost += told != clicks
        assert observations[s].tolist() == told
        assert rewards[s - 1] == sum(told)
        counts = not (corrupted and of_bots)
        assert info["bot"] is not counts
        assert info["true_clicks"].tolist() == clicks
        assert info["realised_reward"] == sum(clicks) * counts
        value_of_list = model.expected_reward(ranking)
        assert info["expected_reward"] == value_of_list * counts
        assert info["optimal_reward"] == best * counts
        assert info["regret"] == pytest.approx((best - value_of_list) * counts)
    assert env.axes.bots_state.cost.tolist() == [cost]
    assert cost > 0
    assert env._regret == pytest.approx(sum(info["regret"] for info in infos[1:]))


def test_targets_of_equal_attraction_are_drawn_by_the_seed():
    chosen = set()
    for seed in range(20):
        env = gym.make("CMRank-v0", attraction=[0.2] * L, n_positions=K, bots="quit:share=0.1").unwrapped
        env.reset(seed=seed)
        chosen.add(int(env.axes.bots_state.targets[0].argmax()))
    assert len(chosen) > 3


def test_the_law_of_a_report_is_the_mixture():
    """Joint law of the clicks on one list, 20,000 sessions of bots that click at random: every frequency within five errors."""
    n, p, rate = 20_000, 0.3, 0.5
    env = small(bots=f"random:share={p}")
    env.reset(seed=0)
    seen = np.array([env.step([0, 1, 2])[0] for _ in range(n)])
    α = env.model.attraction[:3]
    for clicks in itertools.product((0, 1), repeat=K):
        first = clicks.index(1) if 1 in clicks else K
        user = 0.0 if sum(clicks) > 1 else np.prod(1 - α[:first]) * (α[first] if first < K else 1)
        law = (1 - p) * user + p * rate**K
        share = np.mean((seen == clicks).all(axis=1))
        assert abs(share - law) < 5 * math.sqrt(law * (1 - law) / n)


@pytest.mark.parametrize("reward", ["any_click", "satisfaction"])
def test_the_reward_of_a_corrupted_session_is_that_of_its_report(reward):
    env = small("DBNRank-v0", bots="farm:first=1000:targets=0+1+2", reward=reward, cutoff=2)
    _, rewards, infos = play(env, [[0, 1, 2], [5, 4, 0]] * 5)
    assert rewards == ([1.0, 0.0] if reward == "any_click" else [0.0, 0.0]) * 5
    assert all(info["realised_reward"] == 0 for info in infos[1:])


def test_without_a_share_bots_change_nothing():
    lists = some_lists(30)
    for mine, other in zip(play(small(bots="farm:share=0"), lists)[:2], play(small(), lists)[:2], strict=True):
        assert list(map(str, mine)) == list(map(str, other))


# churn -------------------------------------------------------------


def models_with(model, items):
    """A model with other parameters of items, ``(P, L)``."""
    return model.with_items(**dict(zip(model.item_parameters(), items, strict=True)))


@pytest.mark.parametrize(
    "short", [short for short in CLICK_MODELS if short in ("CM", "PBM", "DCM", "UBM", "DBN", "CCM", "TPBM")]
)
@pytest.mark.parametrize("reward", ["clicks", "any_click"])
def test_churn_gives_an_id_the_parameters_of_an_original_item_and_regret_follows(short, reward):
    n, seed, rate = 25, 4, 0.6
    given = load_instance(f"uniform:n_items={L},n_positions={K},seed=1").model(short)
    env = ClickEnv(given, reward, churn=rate)
    env.reset(seed=seed)
    rng, originals = uniforms(seed, "churn"), np.array([getattr(given.parameters, name) for name in given.item_parameters()])
    items = originals.copy()
    for ranking in some_lists(n):
        model = models_with(given, items)
        observation, *_, info = env.step(ranking)
        optimum, value = (model.expected_reward(each, reward) for each in (model.optimal_ranking(reward), ranking))
        assert info["optimal_reward"] == pytest.approx(optimum, abs=1e-12)
        assert info["regret"] == pytest.approx(optimum - value, abs=1e-12)
        whether, which, what = rng.random(3)
        replaced = -1
        if whether < rate:
            replaced = int(which * L)
            items[:, replaced] = originals[:, int(what * L)]
        assert observation["replaced"].tolist() == [replaced]
        np.testing.assert_array_equal(env.task.items, items)
    assert (items != originals).any()


def test_the_clicks_are_those_of_the_present_items():
    env = gym.make("PBMRank-v0", attraction=[1.0, 0.0, 0.0], examination=[1.0, 1.0, 1.0], churn=1.0).unwrapped
    observation, _ = env.reset(seed=0)
    attraction, seen = [1.0, 0.0, 0.0], set()
    for _ in range(60):
        before = list(attraction)
        observation, *_ = env.step([0, 1, 2])
        assert observation["clicks"].tolist() == before
        attraction = env.task.items[0].tolist()
        seen.add(tuple(before))
    assert len(seen) > 3


def test_new_items_come_from_the_original_ones_for_ever():
    """With new items drawn from the present ones, one parameter would soon be that of all."""
    env = gym.make("CMRank-v0", attraction=np.linspace(0.1, 0.9, L), n_positions=K, churn=1.0).unwrapped
    play(env, [np.arange(K)] * 400)
    late = [env.task.items[0].copy() for _ in range(200) if env.step(np.arange(K)) is not None]
    shares = np.mean([np.isin(np.linspace(0.1, 0.9, L), items) for items in late], axis=0)
    assert (shares > 0.4).all()


@pytest.mark.parametrize(
    ("env_id", "instance", "law"),
    [
        ("DBNRank-v0", "uniform:n_items=6,n_positions=3", None),
        ("PBMRank-v0", "yandex-like:n_items=6,n_positions=3", (1.067153, 2.039659)),
        ("NonStationaryCMRank-v0", "abrupt:n_items=6,n_positions=3", None),
    ],
)
def test_a_family_with_a_law_draws_new_items_from_it(env_id, instance, law):
    """Kolmogorov-Smirnov of 1,000 new items against the law, and correlation of their parameters: false alarms 10⁻⁴."""
    from scipy.stats import beta, kstest, uniform

    env = gym.make(env_id, instance=instance, churn=1.0).unwrapped
    env.reset(seed=1)
    new = []
    for _ in range(1000):
        observation, *_ = env.step(np.arange(3))
        new.append(env.task.items[:, observation["replaced"][0]].copy())
    new = np.array(new).T
    for values in new:
        assert kstest(values, (uniform if law is None else beta(*law)).cdf).pvalue > 1e-4
    if len(new) > 1:
        assert abs(np.corrcoef(new)[0, 1]) < 4 / math.sqrt(1000)


def test_which_items_are_replaced_is_uniform_and_when_has_the_rate():
    env = small(churn=0.25)
    observations, _, _ = play(env, [np.arange(K)] * 4000)
    replaced = np.array([observation["replaced"][0] for observation in observations[1:]])
    assert abs(np.mean(replaced >= 0) - 0.25) < 5 * math.sqrt(0.25 * 0.75 / 4000)
    counts = np.bincount(replaced[replaced >= 0], minlength=L)
    expected = counts.sum() / L
    assert ((counts - expected) ** 2 / expected).sum() < 25.7  # χ² with 5 degrees of freedom: one in 10⁴


def test_a_change_of_the_users_ends_what_was_replaced():
    env = gym.make(
        "NonStationaryCMRank-v0", instance="abrupt:n_items=6,n_positions=3,n_epochs=3,length=10", churn=0.9
    ).unwrapped
    env.reset(seed=0)
    for s in range(1, 30):
        env.step([0, 1, 2])
        if s % 10 == 0:
            np.testing.assert_array_equal(env.task.items[0], env.model.epochs[s // 10].attraction)
    env.reset(seed=0)
    np.testing.assert_array_equal(env.task.items[0], env.model.epochs[0].attraction)


def test_late_clicks_on_a_replaced_item_are_void_and_stay_as_they_were():
    n, seed, rate, delay = 150, 6, 0.3, 4
    lists = some_lists(n)
    observations, _, infos = play(small("PBMRank-v0", churn=rate, arrival=f"delay:{delay}"), lists, seed)
    rng, replaced = uniforms(seed, "churn"), []
    void = 0
    for s in range(1, n + 1):
        for row, (display, ranking, clicks) in enumerate(rows(observations[s])):
            assert clicks == infos[display]["true_clicks"].tolist()
            expected = [any(item == other for at, other in replaced if at >= display) for item in ranking]
            assert observations[s]["void"][row].tolist() == expected
            void += sum(expected)
        assert not observations[s]["void"][int(observations[s]["n_arrived"]) :].any()
        whether, which, _ = rng.random(3)
        if whether < rate:
            replaced.append((s, int(which * L)))
    assert void > 20


def test_a_reference_list_is_worth_what_its_present_items_are():
    given = load_instance(f"uniform:n_items={L},n_positions={K},seed=1").model("CM")
    env = ClickEnv(given, reference=[5, 4, 3], churn=0.5)
    env.reset(seed=0)
    for _ in range(20):
        value = models_with(given, env.task.items).expected_reward([5, 4, 3])
        *_, info = env.step([0, 1, 2])
        assert info["optimal_reward"] == pytest.approx(value)


# available ---------------------------------------------------------


@pytest.mark.parametrize(
    ("short", "reward"), [(short, reward) for short, kind in CLICK_MODELS.items() for reward in kind.rewards]
)
def test_the_optimum_is_that_of_the_available_items(short, reward):
    model = load_instance(f"uniform:n_items={L},n_positions={K},seed=1").model(short)
    for cutoff, rate in ((None, 0.0), (2, 0.5)):
        env = ClickEnv(model, reward, cutoff, available=4, churn=rate)
        observation, info = env.reset(seed=3)
        rng = uniforms(3, "available")
        for _ in range(12):
            deck, u = list(range(L)), rng.random(L)
            for a in range(4):
                swap = a + int(u[a] * (L - a))
                deck[a], deck[swap] = deck[swap], deck[a]
            available = sorted(deck[:4])
            assert np.flatnonzero(observation["available"]).tolist() == available
            now = models_with(model, env.task.items)
            best = max(now.expected_reward(each, reward, cutoff) for each in itertools.permutations(available, K))
            assert env._batch.optimal_reward[0] == pytest.approx(best, abs=1e-12)
            assert now.expected_reward(env._batch.optimal_ranking[0], reward, cutoff) == pytest.approx(best, abs=1e-12)
            assert set(env._batch.optimal_ranking[0].tolist()) <= set(available)
            ranking = available[:K]
            value = now.expected_reward(ranking, reward, cutoff)
            observation, _, _, _, info = env.step(ranking)
            assert info["optimal_reward"] == pytest.approx(best, abs=1e-12)
            assert info["regret"] == pytest.approx(best - value, abs=1e-12)


def test_every_set_of_items_is_equally_likely():
    env = small(available=4)
    observation, _ = env.reset(seed=0)
    counts = {}
    for _ in range(3000):
        available = np.flatnonzero(observation["available"])
        counts[tuple(available)] = counts.get(tuple(available), 0) + 1
        observation, *_ = env.step(available[:K])
    assert len(counts) == 15
    assert sum((count - 200) ** 2 / 200 for count in counts.values()) < 42.6  # χ² with 14 degrees of freedom: one in 10⁴


def test_what_the_action_space_draws_is_available():
    env = small(available=4)
    observation, _ = env.reset(seed=0)
    for _ in range(30):
        assert observation["available"][env.action_space.sample()].all()
        observation, *_ = env.step(env.action_space.sample(mask=observation["available"]))


def test_an_item_that_is_not_available_is_refused_by_its_position():
    env = small(available=4)
    observation, _ = env.reset(seed=0)
    there, absent = np.flatnonzero(observation["available"]), int(np.argmin(observation["available"]))
    with pytest.raises(ValueError, match=rf"position 1 shows item {absent}, which is not available"):
        env.step([there[0], absent, there[1]])
    assert env.step(there[:K])[4]["display"] == 1


def test_all_items_available_is_the_environment_as_it_was():
    assert small(available=L).observation_space == small().observation_space
    assert small(available=L).axes is None


def test_the_search_is_limited_by_the_available_items():
    model = load_instance("uniform:n_items=60,n_positions=5").model("UBM")
    with pytest.raises(ValueError, match="limit"):
        ClickEnv(model)
    env = ClickEnv(model, available=7)
    observation, _ = env.reset(seed=0)
    assert env.step(np.flatnonzero(observation["available"])[:5])[4]["regret"] >= 0
    with pytest.raises(ValueError, match="out of 50 available items"):
        ClickEnv(model, available=50)


def test_contextual_candidates_may_be_unavailable():
    env = gym.make("ContextualDBNRank-v0", instance="linear:n_items=7,n_positions=3", available=4, reward="clicks").unwrapped
    plain = gym.make("ContextualDBNRank-v0", instance="linear:n_items=7,n_positions=3", reward="clicks").unwrapped
    observation, _ = env.reset(seed=1)
    other, _ = plain.reset(seed=1)
    for _ in range(10):
        available = np.flatnonzero(observation["available"])
        np.testing.assert_array_equal(observation["features"], other["features"])
        now = plain.model.base.with_items(attraction=plain.task.round.attraction, satisfaction=plain.task.round.others[0])
        best = max(now.expected_reward(each) for each in itertools.permutations(available, 3))
        assert env._batch.optimal_reward[0] == pytest.approx(best)
        observation, _, _, _, info = env.step(available[:3])
        other, _, _, _, reference = plain.step(available[:3])
        assert observation["clicks"].tolist() == other["clicks"].tolist()
        assert info["expected_reward"] == reference["expected_reward"]


# together ----------------------------------------------------------


def test_a_page_says_what_came_between():
    env = small(render_mode="ansi", bots="random:first=9:rate=1", arrival="delay:1", churn=1.0)
    env.reset(seed=0)
    env.step([0, 1, 2])
    env.step([0, 1, 2])
    replaced = env.axes.churn_state.replaced[0]
    assert f"clicks 3 | reward 0 | regret 0.00 | a bot | arrived 1 | item {replaced} replaced" in env.render()


ALL = {"arrival": "delay:geometric:3:lost=0.1", "bots": "farm:share=0.2", "churn": 0.1, "available": 5}


@pytest.mark.parametrize("axes", [{name: value} for name, value in ALL.items() if name != "churn"] + [{"bots": "quit:first=9"}])
@pytest.mark.parametrize("env_id", ["CMRank-v0", "NonStationaryUBMRank-v0", "ContextualPBMRank-v0"])
def test_the_same_lists_get_the_same_true_clicks_whatever_the_axes(env_id, axes):
    if env_id.startswith("Contextual") and "bots" in axes:
        axes = {"bots": "random:share=0.2"}
    names = {"Contextual": "linear", "NonStation": "abrupt", "CMRank-v0": "uniform"}
    instance = f"{names[env_id[:10]]}:n_items={L},n_positions={K}"
    env, plain = (gym.make(env_id, instance=instance, **arguments).unwrapped for arguments in (axes, {}))
    observation, _ = env.reset(seed=1)
    plain.reset(seed=1)
    for _ in range(40):
        ranking = np.flatnonzero(observation["available"])[:K] if "available" in axes else np.arange(K)
        observation, *_, info = env.step(ranking)
        clicks = plain.step(ranking)[0]
        assert info["true_clicks"].tolist() == (clicks["clicks"] if isinstance(clicks, dict) else clicks).tolist()


def test_no_axis_draws_from_another():
    """Each alone draws what it draws beside all others."""
    lists = some_lists(40)
    arguments = {**ALL, "available": None}
    together, _, infos = play(small(**arguments), lists)
    alone = [play(small(**{name: arguments[name]}), lists) for name in ("arrival", "churn", "bots")]
    for s in range(1, 41):
        assert [display for display, *_ in rows(together[s])] == [display for display, *_ in rows(alone[0][0][s])]
        assert together[s]["replaced"].tolist() == alone[1][0][s]["replaced"].tolist()
        assert infos[s]["bot"] == alone[2][2][s]["bot"]


@pytest.mark.parametrize(
    ("env_id", "axes"),
    [
        ("CMRank-v0", ALL),
        ("PBMRank-v0", {"arrival": "batch:5"}),
        ("DBNRank-v0", {"churn": 0.5, "available": 8}),
        ("NonStationaryDCMRank-v0", ALL),
        ("ContextualUBMRank-v0", {"arrival": "delay:3", "bots": "random:share=0.1", "available": 6, "reward": "any_click"}),
        ("CascadeMDPRank-v0", {"bots": "quit:share=0.2"}),
    ],
)
def test_the_checkers_pass(env_id, axes):
    env = gym.make(env_id, **axes)
    # Gymnasium's checker draws a list before the reset that says what is available: codes are lists of what is.
    checked = LehmerAction(env.unwrapped) if "available" in axes else env.unwrapped
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Your observation .* has an unconventional shape")  # lists are rows of numbers
        check_env(checked, skip_render_check=True)
        pytest.importorskip("stable_baselines3.common.env_checker").check_env(checked)
    observation, _ = env.reset(seed=0)
    assert observation in env.observation_space
    for _ in range(30):
        observation, _, terminated, *_ = env.step(env.action_space.sample())
        assert observation in env.observation_space
        if terminated:
            env.reset()
        if "available" in axes:
            ranking = env.action_space.sample(mask=observation["available"])
            assert observation["available"][ranking].all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"arrival": "batch:0"}, "arrival is 'batch:0': B is 0; expected a positive integer"),
        ({"arrival": "batch"}, "arrival is 'batch'; expected immediate, batch:B, delay:D or"),
        ({"arrival": "delay:-1"}, "D is -1; expected an integer of at least 0"),
        ({"arrival": "delay:geometric:0"}, "m is 0; expected a finite number > 0"),
        ({"arrival": "delay:normal:5"}, "expected immediate, batch:B"),
        ({"arrival": "batch:5:lost=1"}, "lost is 1; expected a number from 0 to below 1"),
        ({"arrival": "batch:5:loss=0.1"}, "unknown option of batch 'loss'; did you mean 'lost'"),
        ({"arrival": "batch:5:max_arrivals=3"}, "unknown option of batch 'max_arrivals'"),
        ({"arrival": "batch:10000000000"}, "an observation of 10,000,000,000 arrivals would take"),
        ({"arrival": 5}, "arrival is 5; expected text"),
        ({"bots": "farm"}, "expected either share=p or first=C"),
        ({"bots": "farm:share=0.1:first=3"}, "expected either share=p or first=C"),
        ({"bots": "farms:share=0.1"}, "did you mean 'farm'"),
        ({"bots": "farm:share=1"}, "share is 1; expected a number from 0 to below 1"),
        ({"bots": "farm:first=-1"}, "first is -1; expected an integer of at least 0"),
        ({"bots": "farm:share=0.1:targets=3+17"}, "there is no item 17, items are 0 to 9"),
        ({"bots": "farm:share=0.1:targets=3+x"}, r"targets is '3\+x'; expected item ids"),
        ({"bots": "quit:share=0.1:target=1+2"}, "quit has one target"),
        ({"bots": "random:share=0.1:targets=1"}, "unknown option of random 'targets'"),
        ({"bots": "random:share=0.1:rate=2"}, r"rate is 2; expected a probability in \[0, 1\]"),
        ({"bots": "random:share=0.1:share=0.2"}, "share is given twice"),
        ({"bots": "random:share=0.1:users=nobody"}, "unknown users 'nobody'"),
        ({"churn": -0.1}, r"churn is -0.1; expected a probability in \[0, 1\]"),
        ({"churn": "often"}, "churn is 'often'; expected a probability"),
        ({"available": 4}, "available is 4; expected an integer from 5 to n_items = 10"),
        ({"available": 11}, "available is 11; expected an integer from 5 to n_items = 10"),
        ({"available": 7, "reference": [0, 1, 2, 3, 4]}, "a reference list cannot be given with available"),
        ({"id": "ContextualCMRank-v0", "churn": 0.1}, "churn must be 0 in environments of a LinearModel"),
        ({"id": "ContextualCMRank-v0", "bots": "farm:share=0.1"}, "bots must be 'random' in contextual environments"),
        ({"id": "CascadeMDPRank-v0", "churn": 0.1}, "churn must be 0 in environments of a CascadeMDP"),
        ({"id": "CascadeMDPRank-v0", "arrival": "delay:1"}, "arrival must be 'immediate' for users with a memory"),
        ({"id": "CascadeMDPRank-v0", "available": 8}, "available cannot be given for users with a memory"),
        ({"id": "CascadeMDPRank-v0", "bots": "farm:share=0.1"}, "bots must be 'quit' or have 'users=real'"),
    ],
)
def test_a_bad_value_is_refused_in_one_line(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        gym.make(**{"id": "CMRank-v0", **arguments})
    assert "\n" not in str(caught.value)


def test_ids_with_arguments_name_the_axes():
    env = clickgym.runner.make.make_env("CMRank-v0:arrival=batch:3,churn=1e-4,bots=farm:share=0.01:targets=3+7,available=8")
    assert env.unwrapped.axes_arguments == {
        "arrival": "batch:3", "bots": "farm:share=0.01:targets=3+7", "churn": 1e-4, "available": 8,
    }  # fmt: skip
    assert "arrival='batch:3', bots='farm:share=0.01:targets=3+7', churn=0.0001, available=8" in repr(env.unwrapped)


# many streams ------------------------------------------------------


def many(env_id="CMRank-v0", n=40, **arguments):
    instance = f"uniform:n_items={L},n_positions={K},seed=1"
    return gym.make_vec(env_id, n, vectorization_mode="vector_entry_point", **{"instance": instance, **arguments})


def shown(observations, n, rng):
    """A list for each stream, of items that are available."""
    masks = observations["available"] if isinstance(observations, dict) and "available" in observations else np.ones((n, L))
    return np.array([rng.permutation(np.flatnonzero(mask))[:K] for mask in masks])


@pytest.mark.parametrize("env_id", ["CMRank-v0", "DBNRank-v0", "TPBMRank-v0"])
def test_each_stream_obeys_the_laws(env_id):
    """All axes at once: what each stream tells is checked against the laws, from what its infos tell."""
    n, rng = 12, np.random.default_rng(0)
    envs = many(env_id, n, arrival="batch:3", bots="farm:share=0.3:targets=1+4", churn=0.3, available=5, reward="any_click")
    core, model = (
        envs.unwrapped,
        load_instance(f"uniform:n_items={L},n_positions={K},seed=1").model(env_id.partition("Rank")[0]),
    )
    observations, infos = envs.reset(seed=1)
    assert observations in envs.observation_space
    history, last, bots, differ = [], np.zeros((n, L)), 0, 0
    for s in range(1, 31):
        rankings, items, masks = shown(observations, n, rng), core._batch.items.copy(), observations["available"]
        observations, rewards, _, _, infos = envs.step(rankings)
        assert observations in envs.observation_space
        assert infos["display"].tolist() == [s] * n
        reported = infos["true_clicks"].copy()
        for b in range(n):
            now = models_with(model, items[b])
            value = now.expected_reward(rankings[b], "any_click")
            lists = itertools.permutations(np.flatnonzero(masks[b]), K)
            best = max(now.expected_reward(each, "any_click") for each in lists)
            counts = not infos["bot"][b]
            assert infos["expected_reward"][b] == pytest.approx(value * counts)
            assert infos["optimal_reward"][b] == pytest.approx(best * counts)
            assert infos["regret"][b] == pytest.approx((best - value) * counts)
            assert infos["realised_reward"][b] == infos["true_clicks"][b].any() * counts
            if not counts:
                bots, reported[b] = bots + 1, np.isin(rankings[b], [1, 4])
                differ += reported[b].tolist() != infos["true_clicks"][b].tolist()
            changed = (core._batch.items[b] != items[b]).any(axis=0)
            item = observations["replaced"][b, 0]
            assert not changed.any() or changed.nonzero()[0].tolist() == [item]
        history.append((rankings, reported))
        arrived = history[s - 3 :] if s % 3 == 0 else []
        assert (observations["n_arrived"] == len(arrived)).all()
        for row, (then, clicks) in enumerate(arrived):
            display = s - 2 + row
            assert (observations["displays"][:, row] == display).all()
            np.testing.assert_array_equal(observations["rankings"][:, row], then)
            np.testing.assert_array_equal(observations["clicks"][:, row], clicks)
            np.testing.assert_array_equal(observations["void"][:, row], np.take_along_axis(last, then, axis=1) >= display)
        np.testing.assert_array_equal(rewards, sum((clicks.any(axis=1) for _, clicks in arrived), np.zeros(n)))
        for b, item in enumerate(observations["replaced"][:, 0]):
            if item >= 0:
                last[b, item] = s
    assert bots > 50
    assert core.axes.bots_state.cost.sum() == differ


def test_streams_draw_each_by_itself_with_the_law_of_a_single_one():
    """Means over 200 streams and 60 sessions: five standard errors."""
    n, sessions, rng = 200, 60, np.random.default_rng(0)
    envs = many(n=n, arrival="delay:geometric:2:max_arrivals=60", bots="random:share=0.3", churn=0.2, available=5)
    observations, _ = envs.reset(seed=0)
    bots, replaced, delays, sets = [], [], [], []
    for s in range(1, sessions + 1):
        sets.append(observations["available"])
        observations, _, _, _, infos = envs.step(shown(observations, n, rng))
        bots.append(infos["bot"])
        replaced.append(observations["replaced"][:, 0])
        delays += (s - observations["displays"][observations["displays"] >= 0]).tolist()
    total = n * sessions
    assert abs(np.mean(bots) - 0.3) < 5 * math.sqrt(0.21 / total)
    assert abs(np.mean(np.array(replaced) >= 0) - 0.2) < 5 * math.sqrt(0.16 / total)
    assert (np.abs(np.mean(sets, axis=(0, 1)) - 5 / 6) < 5 * math.sqrt(5 / 36 / total)).all()
    assert abs(np.mean(np.array(delays) == 0) - 1 / 3) < 0.03
    for draws in (bots, replaced):
        assert not (np.array(draws) == np.array(draws)[:, :1]).all()


def test_instances_that_are_dealt_keep_their_own_items_where_another_one_changes():
    instances = [f"abrupt:n_items={L},n_positions={K},n_epochs=3,length={length},seed={length}" for length in (5, 8)]
    envs = many("NonStationaryCMRank-v0", 5, instance=instances, churn=1.0, available=4)
    observations, _ = envs.reset(seed=0)
    core, rng = envs.unwrapped, np.random.default_rng(0)
    for s in range(1, 24):
        before = core._batch.items.copy()
        observations, *_ = envs.step(shown(observations, 5, rng) if s % 2 else envs.action_space.sample())
        for b in range(5):
            length, model = (5, 8)[b % 2], core.models[b % 2]
            epoch = min(s // length, 2)
            changes = s % length == 0 and s // length < 3
            different = (core._batch.items[b] != before[b]).sum()
            if changes:
                np.testing.assert_array_equal(core._batch.items[b, 0], model.epochs[epoch].attraction)
            else:
                assert different <= 1
            optimum = np.sort(core._batch.items[b, 0][observations["available"][b]])[::-1][:K]
            assert core._batch.optimal_reward[b] == pytest.approx(1 - np.prod(1 - optimum))


def test_contextual_streams_have_masks():
    envs = many("ContextualPBMRank-v0", 4, instance="linear:n_items=6,n_positions=3", available=4, arrival="delay:1")
    observations, _ = envs.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(5):
        assert observations in envs.observation_space
        assert (observations["available"].sum(axis=1) == 4).all()
        rankings = shown(observations, 4, rng)
        observations, _, _, _, infos = envs.step(rankings)
        assert (infos["regret"] >= 0).all()
    with pytest.raises(ValueError, match=r"environment 0: bad ranking .* is not available"):
        envs.step(np.argsort(observations["available"], axis=1)[:, :3])


def test_streams_with_their_axes_at_their_defaults_are_as_they_were():
    one, other = many(n=3), many(n=3, arrival="batch:1", available=L)
    assert one.observation_space == other.observation_space
    assert other.unwrapped.axes is None


@pytest.mark.parametrize("mode", ["SameStep", "NextStep"])
def test_what_is_late_arrives_in_the_next_episode(mode):
    envs = many(n=2, arrival="delay:1", max_episode_steps=2, autoreset_mode=mode)
    envs.reset(seed=0)
    displays = []
    for _ in range(6):
        observations, _, _, truncated, infos = envs.step(np.tile(np.arange(K), (2, 1)))
        if mode == "SameStep" and truncated.any():
            assert (observations["n_arrived"] == 0).all()
            displays += [int(infos["final_obs"][0]["displays"][0])]
        elif "regret" in infos:
            displays += observations["displays"][0].tolist()
    assert displays == ([-1, 1, 2, 3, 4, 5] if mode == "SameStep" else [-1, 1, 2, 3])


# wrappers ----------------------------------------------------------

WRAPPERS = {"lehmer": LehmerAction, "scores": ScoresAction, "enumerated": EnumeratedAction}
VECTOR_WRAPPERS = {"lehmer": LehmerVectorAction, "scores": ScoresVectorAction, "enumerated": EnumeratedVectorAction}


@pytest.mark.parametrize("name", WRAPPERS)
def test_every_action_is_a_list_of_available_items_and_every_such_list_has_one(name):
    order = np.random.default_rng(0).permutation(L)
    env = WRAPPERS[name](small(available=4), order)
    observation, _ = env.reset(seed=0)
    env.action_space.seed(0)
    seen = set()
    for _ in range(20):
        there = np.flatnonzero(observation["available"])
        for ranking in itertools.permutations(there, K):
            code = env.encode(ranking)
            assert code in env.action_space
            assert env.action(code).tolist() == list(ranking)
        absent = np.flatnonzero(~observation["available"])
        if name != "scores":
            with pytest.raises(ValueError, match=rf"position 2 shows item {absent[0]}, which is not available"):
                env.encode([*there[:2], absent[0]])
        action = env.action_space.sample()
        seen.add(tuple(env.action(action)))
        observation, *_ = env.step(action)
    assert len(seen) > 10
    if name != "scores":
        space = env.action_space
        assert (math.prod(space.nvec) if name == "lehmer" else space.n) == 24
    check_env(WRAPPERS[name](small(available=4)), skip_render_check=True)


@pytest.mark.parametrize("name", VECTOR_WRAPPERS)
def test_every_action_of_a_stream_is_a_list_of_its_available_items(name):
    orders = np.random.default_rng(0).permuted(np.tile(np.arange(L), (7, 1)), axis=1)
    envs = VECTOR_WRAPPERS[name](many(n=7, available=4), orders)
    observations, _ = envs.reset(seed=0)
    envs.action_space.seed(0)
    for _ in range(10):
        actions = envs.action_space.sample()
        rankings = envs.actions(actions)
        assert np.take_along_axis(observations["available"], rankings, axis=1).all()
        np.testing.assert_array_equal(envs.actions(envs.encode(rankings)), rankings)
        observations, *_ = envs.step(actions)


def test_item_by_item_the_masks_know_what_is_available():
    order = np.random.default_rng(0).permutation(L)
    env = ItemByItem(small(available=4, arrival="batch:3", churn=0.1), order)
    check_env(ItemByItem(small(arrival="batch:3", churn=0.1)), skip_render_check=True)
    rng = np.random.default_rng(0)
    for n in range(12):
        observation, _ = env.reset(**({"seed": 0} if n == 0 else {}))
        left = set(np.flatnonzero(observation["available"]))
        for _ in range(K):
            assert {order[j] for j in np.flatnonzero(env.action_masks())} == left
            absent = next(j for j in range(L) if not env.unwrapped.mask[order[j]])
            with pytest.raises(ValueError, match=rf"item {order[absent]}\) is forbidden .* it is not available"):
                env.step(absent)
            choice = rng.choice(np.flatnonzero(env.action_masks()))
            left.remove(order[choice])
            observation, _, terminated, _, info = env.step(choice)
            assert observation in env.observation_space
        assert terminated
        assert info["display"] == n + 1


def test_item_by_item_on_many_streams():
    envs = ItemByItemVector(many(n=5, available=4, autoreset_mode="SameStep"))
    observations, _ = envs.reset(seed=0)
    for _ in range(4):
        for k in range(K):
            masks = envs.action_masks()
            assert (masks.sum(axis=1) == 4 - k).all()
            assert (masks <= observations["available"]).all()
            observations, _, terminations, _, infos = envs.step(masks.argmax(axis=1))
        assert terminations.all()
        assert (infos["final_info"]["regret"] >= -1e-12).all()


@pytest.mark.parametrize("vector", [False, True])
def test_a_meter_counts_what_users_did_not_what_was_reported(vector):
    arguments = {"arrival": "batch:5", "bots": "random:share=0.5"}
    if vector:
        env = RecordVectorRegret(many(n=1, **arguments), [8])
        steps = [[list(range(K))]] * 8
    else:
        env = RecordRegret(small(**arguments), [8])
        steps = [list(range(K))] * 8
    env.reset(seed=0)
    regret, clicks = 0.0, 0
    for action in steps:
        *_, info = env.step(np.array(action))
        regret += np.sum(info["regret"])
        clicks += 0 if np.all(info["bot"]) else np.sum(info["true_clicks"])
    assert env.meter.regret[0] == pytest.approx(regret)
    assert env.meter.clicks.tolist() == [clicks] == env.meter.reward.tolist()


def test_a_history_is_refused_where_it_would_be_wrong():
    HistoryObservation(small(bots="random:share=0.1"))
    with pytest.raises(TypeError, match="it does not know of clicks that come late"):
        HistoryObservation(small(arrival="batch:2"))


def test_the_example_of_the_documentation_runs(capsys):
    page = (Path(__file__).resolve().parents[2] / "docs" / "environments.md").read_text(encoding="utf-8")
    section = page.partition("## Clicks as they come")[2].partition("\n## ")[0]
    exec(section.partition("```python\n")[2].partition("```")[0], {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10
    assert "[5] [1 2 3 4 5]" in lines[4]


@pytest.mark.parametrize("mode", ["SameStep", "NextStep"])
def test_users_with_a_memory_go_on_while_their_clicks_are_falsely_reported(mode):
    """Real users behind false reports: the states and losses are those without, stream by stream."""
    arguments = {"vectorization_mode": "vector_entry_point", "autoreset_mode": mode, "num_envs": 3}
    envs, plain = (gym.make_vec("CascadeMDPRank-v0", **arguments, **axes) for axes in ({"bots": "quit:first=40:target=2"}, {}))
    envs.reset(seed=0)
    plain.reset(seed=0)
    rankings, sessions = np.tile([5, 2, 7, 1], (3, 1)), np.zeros(3)
    for _ in range(80):
        mine, rewards, ended, _, infos = envs.step(rankings)
        other, earned, left, _, expected = plain.step(rankings)
        np.testing.assert_array_equal(mine["state"], other["state"])
        np.testing.assert_array_equal(ended, left)
        told = infos["final_info"] if ended.any() and mode == "SameStep" else infos
        truth = expected["final_info"] if ended.any() and mode == "SameStep" else expected
        played = told["_regret"] if "_regret" in told else np.ones(3, bool)
        np.testing.assert_array_equal(told["regret"], truth["regret"])
        sessions += infos["_display"] if mode == "NextStep" else 1
        for b in np.flatnonzero(played & (sessions > 40)):
            assert rewards[b] == earned[b]
        for b in np.flatnonzero(played & (sessions <= 40) & ~ended):
            assert mine["clicks"][b].tolist() == [0, 1, 0, 0]
