"""RecurRank: every list and phase against the reference, designs, and who may stand where."""

from __future__ import annotations

import re

import gymnasium as gym
import numpy as np
import pytest
from reference_agents import MODELS
from reference_agents.late_displays import Clicks
from reference_agents.recur_rank import RecurRankReference

import clickgym
from clickgym.agents import RecurRank
from clickgym.envs import CascadeModel, ClickEnv, LinearModel, PositionBasedModel
from clickgym.runner.labels import UnsuitedError

L, K, D = 6, 3, 3
THETA = np.array([0.9, 0.5, 0.1])
FEATURES = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0.5, 0], [0, 0.5, 0.5], [0.9, 0.1, 0]])
ATTRACTION = FEATURES @ THETA


def users(kind="PBM", attraction=ATTRACTION):
    return PositionBasedModel(attraction, [1.0, 0.8, 0.6]) if kind == "PBM" else CascadeModel(attraction, K)


def follow(agent, reference, model, features, n, delay=0.0, cut=0.0, void=0.0, lost=0.0, seed=1):
    """Play an agent whose candidates stand in another order in each session, and whose reference must agree."""
    rng, waiting = np.random.default_rng(seed), {}
    for session in range(n):
        rows = rng.permutation(len(features))
        observation = {"features": features[rows]}
        ranking = agent.rank(observation)
        shown = reference.show(ranking.tolist(), agent.state, observation["features"])
        assert shown is not None, session
        clicks = model.sample(rows[ranking], rng).tolist()
        if rng.random() < cut:
            n_shown = int(rng.integers(len(clicks) + 1))
            clicks[n_shown:] = [-1] * (len(clicks) - n_shown)
        flags = (rng.random(len(clicks)) < void).tolist()
        due = session + (rng.geometric(1 / (1 + delay)) - 1 if delay else 0)
        if rng.random() >= lost:
            waiting.setdefault(due, []).append((agent.display, observation, ranking, clicks, flags, shown))
        for display, seen, ranking, clicks, flags, memory in waiting.pop(session, []):
            agent.update(seen, ranking, clicks, display=display, void=np.array(flags))
            reference.arrive(memory, Clicks(ranking.tolist(), clicks, flags))
            assert reference.agrees(agent.state), session


def made(scale=0.02, horizon=1000, seed=0, sizes=(L, K, D)):
    agent = RecurRank(*sizes[:2], n_features=sizes[2], horizon=horizon, scale=scale, seed=seed)
    return agent, RecurRankReference(*sizes, horizon, scale)


@pytest.mark.parametrize("kind", ["PBM", "CM"])
def test_it_follows_the_reference(kind):
    agent, reference = made()
    follow(agent, reference, users(kind), FEATURES, 1500)
    assert reference.n_cuts > 0
    assert reference.n_dropped > 0


@pytest.mark.parametrize("seed", range(3))
def test_late_clicks_count_in_the_phase_of_their_display(seed):
    """In any order, of lists that were cut off, void or never; what is missing is shown again."""
    agent, reference = made(seed=seed)
    follow(agent, reference, users(), FEATURES, 1200, delay=15.0, cut=0.1, void=0.1, lost=0.1, seed=seed)
    assert reference.n_cuts > 0


def test_a_relabelling_of_candidates_relabels_the_lists():
    """One seed, candidates in two orders: the same candidates are shown in every session."""
    agents, rng = [made()[0] for _ in range(2)], np.random.default_rng(3)
    relabelled = rng.permutation(L)
    for _ in range(600):
        first, second = agents[0].rank({"features": FEATURES}), agents[1].rank({"features": FEATURES[relabelled]})
        assert first.tolist() == relabelled[second].tolist()
        clicks = users().sample(first, rng)
        agents[0].update({"features": FEATURES}, first, clicks)
        agents[1].update({"features": FEATURES[relabelled]}, second, clicks)
    assert agents[0].state.n_parts[0] > 1


@pytest.mark.parametrize(("n_items", "n_features"), [(2, 1), (5, 2), (20, 10), (60, 8), (4, 9)])
def test_designs_are_g_optimal(n_items, n_features):
    """No norm is above 1.001 r (and what dropping small weights adds): of features with a shared part, of many sizes, equal."""
    rng = np.random.default_rng(n_items)
    for features in (
        rng.normal(size=(n_items, n_features)),
        np.hstack([np.ones((n_items, 1)), rng.random((n_items, n_features - 1))]),
        rng.random((n_items, n_features)) * 10.0 ** rng.integers(-6, 1, (n_items, 1)),
        rng.random((max(n_items // 2, 1), n_features))[rng.integers(0, max(n_items // 2, 1), n_items)],
        rng.random((n_items, n_features)) @ np.diag(10.0 ** -np.arange(n_features)),
    ):
        agent = RecurRank(n_items, 1, n_features=n_features, horizon=100, seed=0)
        agent.rank({"features": features})
        plain = RecurRankReference(n_items, 1, n_features, 100)
        assert plain.show([int(agent.ranking[0])], agent.state, features) is not None
        assert agent.state.rank[0] == np.linalg.matrix_rank(features)


def test_weights_that_only_rounding_leaves_are_dropped():
    """Steps away from a point leave 1e-16 of its weight here, and a sample of it would be one too many."""
    features = np.random.default_rng(29).normal(size=(5, 2))
    agent = RecurRank(5, 1, n_features=2, horizon=100, seed=0)
    agent.rank({"features": features})
    weights = agent.state.weights
    assert weights.sum() == pytest.approx(1)
    assert weights[weights > 0].min() > 1e-4 / 5
    assert ((weights > 0) == (agent.state.targets > 0)).all()


def test_all_features_zero_leave_nothing_to_learn():
    agent, reference = made(sizes=(4, 2, 3))
    follow(agent, reference, PositionBasedModel([0.5] * 4, [1, 0.5]), np.zeros((4, 3)), 50)
    assert agent.state.phase[0] == 1
    assert not agent.state.arrived.any()


@pytest.mark.parametrize("kind", ["PBM", "CM"])
def test_candidates_with_the_same_features_are_one_point(kind):
    features = FEATURES[[0, 0, 1, 1, 1, 2]]
    agent, reference = made()
    follow(agent, reference, users(kind, features @ THETA), features, 800)


def test_the_first_phase_by_hand():
    """Two candidates of one dimension, K = 1, T = 1: ⌈4 log(2 · 2 · 1 · 2)⌉ samples of the longer; then the gap is 1."""
    agent = RecurRank(2, 1, n_features=1, horizon=1, seed=0)
    observation = {"features": [[0.25], [1.0]]}
    n = int(np.ceil(4 * np.log(8)))
    for session in range(n):
        assert agent.state.phase[0] == 1
        ranking = agent.rank(observation)
        assert ranking.tolist() == [1], session
        agent.update(observation, ranking, [1])
    assert agent.rank(observation).tolist() == [1]
    assert (agent.state.phase[0], agent.state.size[0]) == (2, 2)  # 1 - 1/4 < 1
    assert agent.best([[0.25], [1.0]]).tolist() == [1, 0]


def test_a_gap_of_exactly_one_cuts_in_the_first_phase():
    """Clicks always on one and never on the other: the estimates are 1 and 0, up to rounding."""
    agent = RecurRank(2, 2, n_features=2, horizon=10, scale=0.1, seed=0)
    for _ in range(50):
        ranking = agent.rank({"features": np.eye(2)})
        agent.update({"features": np.eye(2)}, ranking, (ranking == 1).astype(int))
    assert agent.state.n_parts[0] == 2
    assert ranking.tolist() == [1, 0]


# ----------------------------------------------------------------------------------------------------- the same candidates


def test_other_candidates_are_refused_at_the_first_change():
    agent = made()[0]
    agent.rank({"features": FEATURES})
    ranking = agent.rank({"features": FEATURES[::-1]})
    assert agent.display == 2
    changed = FEATURES.copy()
    changed[4, 2] += 1e-12
    for features in (changed, FEATURES[[0, 1, 2, 3, 4, 4]]):
        with pytest.raises(
            ValueError, match=r"^the candidates have changed since the first session; expected the same features"
        ):
            agent.rank({"features": features})
    assert agent.display == 2  # nothing was shown
    agent.update({"features": FEATURES[::-1]}, ranking, [0, 0, 0], display=2)


@pytest.mark.parametrize("engine", ["compiled", "python"])
def test_a_run_ends_where_candidates_change(engine):
    model = LinearModel(PositionBasedModel([0] * 3, [1.0]), THETA, FEATURES)
    agent = RecurRank(3, 1, n_features=3, horizon=100, seed=0)
    with pytest.raises(RuntimeError, match=r"^RecurRank in .*, step [234]: ValueError: the candidates have changed since"):
        clickgym.run(agent, ClickEnv(model), 100, seed=1, engine=engine)


def test_an_environment_whose_candidates_change_is_refused_before_it_is_played(tmp_path):
    env = gym.make("ContextualCMRank-v0")
    message = re.escape("RecurRank ranks the same candidates in every session, and those of this LinearModel of CM change")
    with pytest.raises(UnsuitedError, match=message):
        clickgym.make_agent("RecurRank", env, horizon=100)
    with pytest.raises(UnsuitedError, match=message):
        clickgym.sweep(["ContextualCMRank-v0"], ["Random", "RecurRank"], 100, 1, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_best_orders_the_candidates_that_were_met():
    agent = made()[0]
    assert agent.best(FEATURES[:2]).tolist() == [0, 1]
    agent.rank({"features": FEATURES})
    assert agent.best(FEATURES[[3, 3, 0]]).shape == (3,)
    with pytest.raises(ValueError, match=r"^features\[1\] is none of the candidates; RecurRank ranks those that it has met$"):
        agent.best([FEATURES[0], [0.3, 0.3, 0.3]])


def test_it_learns_in_an_environment_with_the_same_candidates():
    """Linear attraction in the PBM, a fixed seed: the last fifth of the regret is under a fiftieth of that of random lists."""
    env = gym.make("ContextualPBMRank-v0", instance="linear:n_items=8,n_pool=8,n_users=1,n_features=4,n_positions=3,seed=1")
    late = {}
    for name in ("RecurRank:scale=0.05", "Random"):
        agent = clickgym.make_agent(name, env, horizon=50_000, seed=0)
        regret = clickgym.run(agent, env, 50_000, seed=0, checkpoints=[40_000]).regret
        late[name] = regret[1] - regret[0]
    assert late["RecurRank:scale=0.05"] < late["Random"] / 50


@pytest.mark.parametrize("model", MODELS)
def test_whether_candidates_are_the_same(model):
    pool = np.eye(7)[:, :2] * 0.5
    base = MODELS[model].with_positions(2) if hasattr(MODELS[model], "with_positions") else MODELS[model]
    others = {name: np.full(7, 0.5) for name in base.item_parameters()[1:]}
    same = {name: values[:5] for name, values in others.items()}
    assert not LinearModel(base, [0.5, 0.5], pool, **others).same_candidates
    assert LinearModel(base, [0.5, 0.5], pool[:5], **same).same_candidates
    assert LinearModel(base, [0.5, 0.5], pool, candidates=[[0, 1, 2, 3, 4]] * 2, **others).same_candidates
    assert not LinearModel(base, [0.5, 0.5], pool, candidates=[[0, 1, 2, 3, 4], [0, 1, 2, 3, 5]], **others).same_candidates
    two = [[0.5], [0.2]]
    assert not LinearModel(base, [0.1, 0.5, 0.5], pool[:5], users=two, **same).same_candidates
