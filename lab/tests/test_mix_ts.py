"""MixTS: whom it believes, what it finds, and what its guard is for; `test_mix_ts_reference` pins
every number of its state.
"""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from reference_agents import MODELS
from scipy.stats import chisquare
from slow import slow

import clickgym
from clickgym.envs import ClickEnv, DependentClickModel, DynamicBayesianModel, PositionBasedModel
from clickgym_lab.mix_ts import MixTS
from clickgym_lab.mix_ts.agent import HYPOTHESES

SPEC = "clickgym_lab.mix_ts:MixTS"
L, K = 6, 3
ATTRACTION = np.array([0.2, 0.7, 0.35, 0.6, 0.1, 0.45])


def played(model, sessions, seed=0, **arguments):
    """An agent after some sessions, and its run."""
    agent = MixTS(model.n_items, model.n_positions, seed=seed, **arguments)
    return agent, clickgym.run(agent, ClickEnv(model), sessions, seed=seed)


def state_of(agent):
    return {name: np.asarray(value).tolist() for name, value in agent.state._asdict().items()}


@pytest.mark.parametrize(
    ("hypothesis", "model"),
    [
        ("PBM", PositionBasedModel(ATTRACTION, [1.0, 0.6, 0.3])),
        (
            "DBN",
            DynamicBayesianModel(ATTRACTION, [0.1, 0.9, 0.2, 0.8, 0.1, 0.3], 0.9, n_positions=K),
        ),
        ("DCM", DependentClickModel(ATTRACTION, [0.9, 0.1, 0.6])),
    ],
)
def test_believes_the_model_of_the_users_and_finds_its_best_list(hypothesis, model):
    """Fixed seed; of the seeds 0 to 2 none failed."""
    agent, _ = played(model, 20_000)
    beliefs = agent.beliefs()
    assert list(beliefs) == list(HYPOTHESES)
    assert sum(beliefs.values()) == pytest.approx(1.0)
    assert max(beliefs, key=beliefs.get) == hypothesis
    assert model.expected_reward(agent.best()) > 0.98 * model.expected_reward(
        model.optimal_ranking()
    )


def test_unattractive_items_enter_the_list_where_a_click_ends_most_sessions():
    model = DependentClickModel([0.9, 0.8, 0.7, 0.05, 0.6], [0.99, 0.0, 0.0])
    assert 3 in model.optimal_ranking()
    agent, _ = played(model, 20_000)
    assert agent.best().tolist()[0] == 3


def test_parameters_do_not_creep_while_one_list_is_shown():
    """After some random lists one list is shown for long: examination stays that of the random
    lists, which tell it apart.
    """
    model, rng, agent = (
        PositionBasedModel(ATTRACTION, [1.0, 0.5, 0.25]),
        np.random.default_rng(5),
        MixTS(L, K, seed=0),
    )
    rankings = np.concatenate(
        [
            rng.permuted(np.tile(np.arange(L), (6000, 1)), axis=1)[:, :K],
            np.tile([1, 3, 5], (60_000, 1)),
        ]
    )
    for ranking in rankings:
        agent.update(None, ranking, model.sample(ranking, rng))
    assert agent.state.examination[0, :, 0] == pytest.approx([1.0, 0.5, 0.25], abs=0.04)


def test_a_change_is_noticed():
    before, after = (
        PositionBasedModel(ATTRACTION, [1.0, 0.6, 0.3]),
        PositionBasedModel(1.0 - ATTRACTION, [1.0, 0.6, 0.3]),
    )
    for detect in (True, False):
        agent, _ = played(before, 5000, detect=detect)
        result = clickgym.run(agent, ClickEnv(after), 5000, seed=1)
        assert (agent.state.changes[1] > 0) == detect
        assert (result.regret[-1] < 500) == detect


@pytest.mark.parametrize("kind", ["PBM", *slow("CM", "DBN", "DCM", "UBM", "TPBM")])
def test_the_guard_keeps_lists_from_losing_many_clicks(kind):
    """The first list is production's. Of 2,000 lists at most 1 % lose more than they may."""
    model = MODELS[kind]
    best = model.optimal_ranking()
    least = 0.8 * model.expected_reward(best)
    agent = MixTS(model.n_items, model.n_positions, initial=best, safe=True, seed=2)
    rng, lists = np.random.default_rng(3), []
    for _ in range(2000):
        lists.append(agent.rank(None))
        agent.update(None, lists[-1], model.sample(lists[-1], rng))
    assert lists[0].tolist() == best.tolist()
    assert np.mean([model.expected_reward(row) < least for row in lists]) <= 0.01


def test_items_that_the_guard_keeps_out_do_not_move_those_that_stay():
    """Production is the best list. Others were seen once at most: they are wanted, at the top as
    well, and are not let in.
    """
    model = PositionBasedModel(
        [0.22, 0.19, 0.23, 0.05, 0.41, 0.01, 0.5, 0.38, 0.62, 0.09], [0.82, 0.64, 0.5, 0.41, 0.33]
    )
    agent = MixTS(10, 5, initial=[8, 6, 4, 7, 2], safe=True, seed=1)
    result = clickgym.run(agent, ClickEnv(model), 5000, seed=3)
    assert result.regret[-1] < 150


@pytest.mark.parametrize(("sizes", "most"), [((20, 5), 30_000), ((1000, 10), 8_000_000)])
def test_memory(sizes, most):
    assert (
        sum(array.nbytes for array in MixTS(*sizes).state if isinstance(array, np.ndarray)) <= most
    )


@pytest.mark.parametrize("sizes", [(1, 1), (4, 1), (4, 4), (9, 6)])
def test_a_saved_agent_goes_on_alike(sizes, tmp_path):
    rng = np.random.default_rng(0)
    agents = [MixTS(*sizes, initial=range(sizes[1]), safe=True, seed=4)]
    for session in range(60):
        if session == 30:
            agents[0].save(tmp_path / "agent.npz")
            agents.append(MixTS.load(tmp_path / "agent.npz"))
        clicks = rng.integers(0, 2, sizes[1])
        lists = [agent.rank(None).tolist() for agent in agents]
        assert lists[0] == lists[-1]
        for agent, row in zip(agents, lists, strict=True):
            agent.update(None, row, clicks)
    assert state_of(agents[0]) == state_of(agents[1])


def test_what_trusting_users_examine_follows_from_the_counts_after_each_fit():
    """Brought up to date alone it drifts: with a guard that kept one list for 40,000 sessions until
    a division by zero.
    """
    agent, _ = played(
        PositionBasedModel(ATTRACTION, [1.0, 0.6, 0.3]),
        30_000,
        initial=[5, 4, 3, 2, 1, 0],
        safe=True,
    )
    while agent.state.t[1] + 1 < agent.state.t[2]:
        agent.update(None, agent.rank(None), np.zeros(K, int))
    agent.update(None, agent.rank(None), np.zeros(K, int))  # parameters are fitted
    displays = agent.state.displays.sum(axis=2)
    np.testing.assert_allclose(agent.state.exposure[4], displays @ agent.state.slope, rtol=1e-12)
    np.testing.assert_allclose(
        agent.state.offset, displays @ agent.state.base, rtol=1e-12, atol=1e-9
    )


# ----------------------------------------------------------- what the agents of the library must do


def test_keeps_to_the_interface():
    clickgym.check_agent(SPEC)


def test_learns_a_trivial_problem():
    """Two good items among five: after 10⁵ sessions the regret is below a quarter of Random's."""
    env = ClickEnv(PositionBasedModel([0.05, 0.9, 0.1, 0.7, 0.05], [1.0, 0.6]))
    own, random = (
        clickgym.run(agent, env, 100_000, seed=1).regret[-1] for agent in (SPEC, "Random")
    )
    assert own < 0.25 * random


def test_first_list_is_uniform():
    """Null: the first list is uniform on the 12 lists of 2 out of 4 items. 600 seeds, false-alarm
    rate 1e-5.
    """
    counts = Counter(tuple(MixTS(4, 2, seed=seed).rank(None).tolist()) for seed in range(600))
    assert chisquare([counts[row] for row in itertools.permutations(range(4), 2)]).pvalue > 1e-5


@pytest.mark.parametrize("tolerance", [0, 1.5, "much", np.nan])
def test_a_wrong_tolerance_is_named(tolerance):
    with pytest.raises((ValueError, TypeError), match="tolerance"):
        MixTS(3, 2, tolerance=tolerance, seed=0)


@pytest.mark.parametrize(
    ("initial", "message"), [([0, 0], "initial: .*shows item 0 again"), ([0], "initial: .*shape")]
)
def test_a_wrong_production_list_is_named(initial, message):
    with pytest.raises(ValueError, match=message):
        MixTS(3, 2, initial=initial, seed=0)


def test_a_sweep_plays_it_under_its_label_in_both_engines():
    compiled, python = (
        clickgym.sweep(["DBNRank-v0"], [f"mix={SPEC}"], 200, 2, n_jobs=1, engine=engine).frame
        for engine in ("auto", "python")
    )
    assert compiled["agent"].unique().to_list() == ["mix"]
    assert compiled.equals(python)
