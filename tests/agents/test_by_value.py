"""Agents that take item values into their order, against plain Python; which engines, files and environments serve them."""

from __future__ import annotations

import io
import itertools
import math
import re
import warnings

import gymnasium as gym
import numpy as np
import pytest
from reference_agents import exact_upper_bound

import clickgym
from clickgym.agents import (
    PBMTS,
    PBMUCB,
    CascadeKLUCB,
    CascadeTS,
    CascadeUCB1,
    CompiledAgent,
    LinearTS,
    MixTS,
    PBMLinUCB,
    TopRank,
)
from clickgym.envs import CascadeModel, ClickEnv, LinearModel, PositionBasedModel
from clickgym.envs.wrappers.regret import Meter
from clickgym.runner import Metrics
from clickgym.runner.learners.in_turn import InTurn

VALUES = np.array([0.0, 1.0, 2.0, 2.0, 5.0])
SCANNING = [CascadeUCB1, CascadeKLUCB, CascadeTS]
KAPPA = np.array([0.5, 1.0, 0.25])


def scan_worth(attraction, ranking):
    """What a list earns in the cascade model."""
    total, looking = 0.0, 1.0
    for item in ranking:
        total += looking * attraction[item] * VALUES[item]
        looking *= 1.0 - attraction[item]
    return total


def index_of(agent, kind):
    """The plain definition of each index, from the counts."""
    state, t = agent.state, int(agent.state.t[0])
    index = []
    for clicks, n in zip(state.clicks.tolist(), state.examined.tolist(), strict=True):
        if n == 0:
            index.append(math.inf)
        elif kind is CascadeUCB1:
            index.append(clicks / n + math.sqrt(1.5 * math.log(t) / n))
        else:
            bound = max(math.log(t) + 3 * math.log(math.log(t)), 0.0) if t > 1 else 0.0
            index.append(float(exact_upper_bound(clicks / n, bound / n)))
    return index


@pytest.mark.parametrize("kind", SCANNING)
def test_a_cascade_agent_shows_the_list_of_most_value_if_each_attraction_were_its_index(kind):
    """⚠ An index above 1 counts as 1, also that of an item never examined, which does not rank first."""
    env = ClickEnv(CascadeModel([0.9, 0.5, 0.3, 0.2, 0.05], 3), item_values=VALUES)
    agent = kind(5, 3, item_values=VALUES, seed=1)
    observation, _ = env.reset(seed=2)
    for _ in range(120):
        ranking = agent.rank(observation)
        index = agent.state.draws if kind is CascadeTS else index_of(agent, kind)
        attraction = np.minimum(index, 1.0)
        best = max(scan_worth(attraction, other) for other in itertools.permutations(range(5), 3))
        assert scan_worth(attraction, ranking) == pytest.approx(best, rel=1e-9)
        clicks, reward, *_ = env.step(ranking)
        agent.update(observation, ranking, clicks, reward)
    rates = agent.state.clicks / np.maximum(agent.state.examined, 1)
    best = max(scan_worth(rates, other) for other in itertools.permutations(range(5), 3))
    assert scan_worth(rates, agent.best()) == pytest.approx(best)


def test_items_of_one_value_stand_in_the_order_of_their_index():
    agent = CascadeTS(5, 3, item_values=[2.0] * 5, seed=0)
    for _ in range(30):
        draws = agent.state.draws[agent.rank()]
        assert (np.diff(draws) <= 0).all()
        assert set(draws) == set(np.sort(agent.state.draws)[-3:])


@pytest.mark.parametrize("kind", [PBMUCB, PBMTS])
def test_an_agent_for_known_examination_ranks_by_value_times_index(kind):
    env = ClickEnv(PositionBasedModel([0.9, 0.5, 0.3, 0.2, 0.05], KAPPA), item_values=VALUES)
    agent = kind(5, 3, examination=KAPPA, item_values=VALUES, seed=1)
    observation, _ = env.reset(seed=2)
    clicks_of, shown, weight = np.zeros(5), np.zeros(5), np.zeros(5)
    for t in range(1, 121):
        ranking = agent.rank(observation)
        if kind is PBMUCB:
            with np.errstate(divide="ignore", invalid="ignore"):
                index = np.where(shown > 0, clicks_of / weight + np.sqrt(shown / weight * math.log(t) / (2 * weight)), np.inf)
                worth = np.where(VALUES > 0, VALUES * index, 0.0)
        else:
            worth = agent.state.draws  # of which the law is below
        in_order = ranking[np.argsort(-KAPPA)]
        assert np.sort(worth)[::-1][:3] == pytest.approx(worth[in_order], rel=1e-9)
        clicks, reward, *_ = env.step(ranking)
        agent.update(observation, ranking, clicks, reward)
        for k, item in enumerate(ranking):
            clicks_of[item], shown[item], weight[item] = clicks_of[item] + clicks[k], shown[item] + 1, weight[item] + KAPPA[k]
    if kind is PBMUCB:
        rates = np.divide(clicks_of, weight, out=np.zeros(5), where=weight > 0) * VALUES
        assert rates[agent.best()[np.argsort(-KAPPA)]] == pytest.approx(np.sort(rates)[::-1][:3])


def test_draws_by_value_are_those_of_the_agent_without_times_the_values():
    plain, valued = (PBMTS(5, 3, examination=KAPPA, seed=4, **arguments) for arguments in ({}, {"item_values": VALUES}))
    for _ in range(20):
        for agent in (plain, valued):
            agent.rank()
            agent.update(None, agent.ranking.copy(), [1, 0, 0], 1.0)
            agent.state.clicks[:], agent.state.misses[:], agent.state.stale[:] = 1, 1, True
            agent.rng = np.random.default_rng(9)
    plain.rank(), valued.rank()
    assert (valued.state.draws == plain.state.draws * VALUES).all()


@pytest.mark.parametrize("kind", [LinearTS, PBMLinUCB])
def test_an_agent_by_features_ranks_by_observed_value_times_index(kind):
    rng = np.random.default_rng(3)
    told = {"examination": [1.0, 0.5, 0.3], "alpha": 0.5} if kind is PBMLinUCB else {}
    agent = kind(5, 3, n_features=2, item_values=True, seed=0, **told)
    for _ in range(60):
        observation = {"features": rng.random((5, 2)) - 0.3, "values": rng.integers(0, 4, 5)}
        before = agent.rng.bit_generator.state
        moment, gram = agent.state.moment.copy(), agent.state.gram.copy()
        ranking = agent.rank(observation)
        features, theta = observation["features"], np.linalg.solve(gram, moment)
        if kind is LinearTS:
            generator = np.random.default_rng(0)
            generator.bit_generator.state = before
            noise = np.linalg.solve(np.linalg.cholesky(gram).T, generator.standard_normal(2))
            index = features @ (theta + 0.5 * noise)
        else:
            index = features @ theta + 0.5 * np.sqrt(np.einsum("ad,de,ae->a", features, np.linalg.inv(gram), features))
        worth = np.maximum(index, 0.0) * observation["values"]
        assert worth[ranking] == pytest.approx(np.sort(worth)[::-1][:3], abs=1e-9)
        clicks = rng.integers(0, 2, 3).astype(np.int8)
        agent.update(observation, ranking, clicks, 0.0)
    weights = told.get("examination", [1.0] * 3)
    x = features[ranking] * np.reshape(weights, (3, 1))
    assert agent.state.gram == pytest.approx(gram + x.T @ x)
    assert agent.state.moment == pytest.approx(moment + x.T @ clicks)


@pytest.mark.parametrize(
    ("env_id", "agent"),
    [
        ("CMRank-v0", "CascadeUCB1"),
        ("CMRank-v0", "CascadeTS"),
        ("PBMRank-v0", "PBMUCB"),
        ("PBMRank-v0", "PBMTS"),
        ("DBNRank-v0", "MixTS"),
        ("ContextualPBMRank-v0", "LinearTS"),
        ("ContextualPBMRank-v0", "PBMLinUCB:alpha=0.2"),
        ("ContextualPBMRank-v0", "LinearTS:item_values=false"),
    ],
)
def test_both_engines_play_the_same_sessions(env_id, agent):
    plain = gym.make(env_id).unwrapped.model
    n = len(plain.items) if "Contextual" in env_id else plain.n_items
    env = gym.make(env_id, item_values=np.random.default_rng(0).integers(1, 9, n))
    results = [clickgym.run(agent, env, 500, seed=1, engine=engine) for engine in ("compiled", "python")]
    assert (results[0].regret == results[1].regret).all()
    assert (results[0].reward == results[1].reward).all()
    assert results[0].agent.endswith("ByValue") != ("false" in agent)
    assert results[0].regret[-1] >= 0


def test_the_values_of_an_environment_are_given_to_agents_that_take_them_and_others_are_warned_of():
    env = gym.make("CMRank-v0", item_values=range(10))
    assert clickgym.make_agent("CascadeTS", env).hyperparameters["item_values"].tolist() == list(range(10))
    with pytest.warns(UserWarning, match=re.escape("TopRank maximises clicks, not their item_values")):
        clickgym.make_agent("TopRank", env, horizon=100)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for agent in ("Random", "Oracle", "CascadeTS", "CascadeTS:item_values=false"):
            clickgym.make_agent(agent, env)
        clickgym.make_agent("TopRank", gym.make("CMRank-v0"), horizon=100)
    assert type(clickgym.make_agent("CascadeTS:item_values=false", env)) is CascadeTS


def test_the_agent_that_takes_values_earns_more():
    """Values against the order of attraction; 5 runs of 3,000 sessions, fixed seeds."""
    values = np.empty(10)
    values[np.argsort(-gym.make("CMRank-v0").unwrapped.model.attraction)] = np.arange(10) + 0.5
    env = gym.make("CMRank-v0", item_values=values)
    regret = {
        spec: np.mean([clickgym.run(spec, env, 3000, seed=seed).regret[-1] for seed in range(5)])
        for spec in ("CascadeTS", "CascadeTS:item_values=false")
    }
    assert regret["CascadeTS"] < 0.2 * regret["CascadeTS:item_values=false"]


@pytest.mark.parametrize("kind", SCANNING)
def test_an_agent_by_value_goes_on_from_its_file(kind):
    agent = kind(5, 3, item_values=VALUES, seed=3)
    for _ in range(10):
        agent.update(None, agent.rank(), [0, 1, 0], 1.0)
    file = io.BytesIO()
    agent.save(file)
    file.seek(0)
    again = CompiledAgent.load(file)
    assert type(again) is type(agent)
    assert isinstance(again, kind)
    for _ in range(10):
        assert (again.rank() == agent.rank()).all()


class Own(CascadeTS):
    """A user's subclass, which knows nothing of values."""


def test_bad_values_are_refused_in_one_line():
    with pytest.raises(ValueError, match=re.escape("item_values has shape (4,); expected (5,)")):
        CascadeTS(5, 3, item_values=[1] * 4)
    with pytest.raises(ValueError, match="item_values are all 0"):
        PBMUCB(5, 3, examination=KAPPA, item_values=[0] * 5)
    with pytest.raises(ValueError, match=re.escape("item_values[1] is -2.0")):
        CascadeUCB1(5, 3, item_values=[1, -2, 1, 1, 1])
    with pytest.raises(TypeError, match="item_values"):
        Own(5, 3, item_values=[1] * 5)
    with pytest.raises(TypeError, match="item_values"):
        TopRank(5, 3, horizon=100, item_values=[1] * 5)
    with pytest.raises(TypeError, match="unknown hyper-parameter 'item_values'"):
        clickgym.make_agent("TopRank:item_values=[1,2]", gym.make("CMRank-v0"), horizon=100)
    with pytest.raises(ValueError, match="item_values"):
        LinearTS(5, 3, n_features=2, item_values=[1, 2, 3])
    with pytest.raises(ValueError, match="needs an observation with 'values'"):
        LinearTS(5, 3, n_features=2, item_values=True).rank({"features": np.zeros((5, 2))})
    with pytest.raises(ValueError, match="the environment has no item_values"):
        clickgym.run("LinearTS:item_values=true", "ContextualPBMRank-v0", 10)


def test_a_log_without_values_teaches_an_agent_by_features():
    model = LinearModel(CascadeModel([0, 0, 0], 2), [0.9, 0.1], [[1, 0], [0, 1], [0.5, 0.5]])
    env = clickgym.envs.ContextualClickEnv(model)
    log = clickgym.record(clickgym.agents.Random(3, 2, seed=0), env, 50, seed=0)
    agents = [LinearTS(3, 2, n_features=2, seed=0, **arguments) for arguments in ({}, {"item_values": True})]
    for agent in agents:
        agent.learn(log)
    assert (agents[0].state.theta == agents[1].state.theta).all()


def test_generic_reinforcement_learning_observes_the_value_of_a_candidate_as_its_last_feature():
    n_items = len(gym.make("ContextualCMRank-v0").unwrapped.model.items)
    env = gym.make("ContextualCMRank-v0", item_values=np.arange(n_items)).unwrapped
    streams = InTurn(env, 3, Meter([100]), Metrics(), apart=True)
    observations, _ = streams.reset(seed=0)
    assert streams.observation_space["features"].shape == observations["features"].shape
    for _ in range(3):
        coming = observations["features"]
        lists = np.tile(np.arange(env.model.n_positions), (3, 1))
        assert (coming[0, :, -1] == env.task.round.others[-1]).all()
        observations, *_ = streams.step(lists)
    values = {tuple(row): value for value, row in enumerate(env.model.items.tolist())}
    d = env.model.items.shape[1]
    shown = [[values[tuple(row[-d - 1 : -1])] for row in stream] for stream in observations["features"].tolist()]
    assert observations["features"][..., -1].tolist() == shown


@pytest.mark.parametrize("env_id", ["CMRank-v0", "PBMRank-v0", "DCMRank-v0", "UBMRank-v0", "DBNRank-v0"])
def test_mix_ts_finds_a_list_of_nearly_the_most_value_under_each_click_model(env_id):
    """20,000 sessions, one fixed seed; the most clicks are worth much less: values fall where attraction rises."""
    model = gym.make(env_id).unwrapped.model
    values = np.empty(10)
    values[np.argsort(-model.attraction)] = np.arange(10) + 0.5
    env = gym.make(env_id, item_values=values)
    agent = clickgym.make_agent("MixTS", env, seed=0)
    clickgym.run(agent, env, 20_000, seed=1)
    valued = env.unwrapped.model
    best = valued.expected_reward(valued.optimal_ranking())
    assert valued.expected_reward(agent.best()) > 0.95 * best
    assert valued.expected_reward(model.optimal_ranking()) < 0.8 * best


def test_the_guard_of_mix_ts_counts_clicks_so_it_is_refused_with_values():
    with pytest.raises(ValueError, match="safe is True with item_values; the guard of MixTS counts clicks"):
        MixTS(4, 2, initial=[0, 1], safe=True, item_values=[1.0, 2.0, 3.0, 4.0])
