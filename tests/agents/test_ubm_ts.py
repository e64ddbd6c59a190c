"""UBM-TS: every list against the reference in plain Python, and what each of its parts is for."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from reference_agents import MODELS, plain
from reference_agents.late_displays import Clicks, after, at_once, at_random, follow_late, in_batches
from reference_agents.ubm_ts import UBMTSReference
from scipy.stats import norm
from slow import slow

import clickgym
from clickgym.agents.ubm_ts import UBMTS
from clickgym.envs import (
    CascadeModel,
    ClickEnv,
    DependentClickModel,
    DynamicBayesianModel,
    PiecewiseStationaryModel,
    PositionBasedModel,
)
from clickgym.runner.metrics import wrong_pairs

FALSE_ALARM = 1e-5
L, K = 5, 3


def changing(session):
    """Users who change all at once, every 300 sessions."""
    first, second = (0.95, 0.05, 0.5, 0.5, 0.1), (0.05, 0.95, 0.5, 0.1, 0.9)
    return PositionBasedModel(second if session // 300 % 2 else first, [1.0, 0.7, 0.9])


def satisfied(attraction, satisfying, length):
    """Users whom clicks on some items satisfy, so that they leave; every so many sessions, preferences move round the items."""
    satisfaction = np.where(np.isin(np.arange(len(attraction)), satisfying), 0.95, 0.05)
    users = [
        DynamicBayesianModel(np.roll(attraction, by), np.roll(satisfaction, by), 0.95, n_positions=K)
        for by in (0, len(attraction) // 2)
    ]
    return lambda session: users[session // length % 2]


SATISFIED = satisfied(np.linspace(0.8, 0.2, L), [0, 2, 4], 400)


def made(seed=3, sizes=(L, K), **arguments):
    """An agent and its reference."""
    return UBMTS(*sizes, seed=seed, **arguments), UBMTSReference(*sizes, seed=seed, **arguments)


ABLATIONS = {
    "all": {},
    "no examination": {"learn_examination": False},
    "no continuation": {"learn_continuation": False},
    "no arrangement": {"arrange": False},
    "no detection": {"detect": False},
    "attraction alone": {"learn_examination": False, "learn_continuation": False, "arrange": False, "detect": False},
    "wide": {"sharpness": 0.5},
}
GUARDS = {
    "guard": {"safe": True, "initial": [2, 0, 4]},
    "guard, a list of all items": {"safe": True, "initial": [4, 1, 2, 0, 3]},
    "guard, no detection": {"safe": True, "initial": [2, 0, 4], "detect": False},
}
ALL = {"cut": 0.1, "void": 0.1, "churn": 0.01, "foreign": 0.2}
"""Chances of what happens to clicks and items."""


# -------------------------------------------------------------------------------------------------- against the reference


@pytest.mark.parametrize("kind", ["CM", "PBM", "DCM", "UBM", "DBN", *slow("CCM", "TPBM")])
def test_lists_are_those_of_the_reference(kind):
    for seed in range(2):
        agent, reference = made(seed=seed)
        follow_late(agent, reference, MODELS[kind], 800, at_once, lost=0.0)


@pytest.mark.parametrize("kind", ["DCM", *slow("CM", "PBM", "UBM", "DBN", "CCM", "TPBM")])
@pytest.mark.parametrize("part", ABLATIONS)
def test_lists_without_a_part(part, kind):
    agent, reference = made(**ABLATIONS[part])
    follow_late(agent, reference, MODELS[kind], 500, at_once)


@pytest.mark.parametrize("part", ABLATIONS | GUARDS)
@pytest.mark.parametrize("arrivals", [at_random(12), *slow(at_once, in_batches(20), after(15))])
def test_users_who_change_and_all_that_happens_to_clicks_and_items(part, arrivals):
    """Late in any order, lost, cut off, void; candidates, items that are replaced, lists of others."""
    arguments = (ABLATIONS | GUARDS)[part]
    agent, reference = made(**arguments)
    follow_late(agent, reference, changing, 700, arrivals, masked=0.5, **ALL)
    assert (reference.n_alarms > 0) == arguments.get("detect", True)


@pytest.mark.parametrize("part", ABLATIONS | GUARDS)
@pytest.mark.parametrize("arrivals", [at_random(12), *slow(at_once)])
def test_users_whom_some_items_satisfy(part, arrivals):
    """So that continuation differs by item, and lists are arranged by it, with all that happens to clicks and items."""
    arguments = (ABLATIONS | GUARDS)[part]
    agent, reference = made(**arguments)
    follow_late(agent, reference, SATISFIED, 900, arrivals, masked=0.5, **(ALL | {"churn": 0.002}))
    assert (reference.n_differing > 200) == arguments.get("learn_continuation", True)


@pytest.mark.parametrize(("n_items", "masked"), [(L, 0.0), *slow((12, 0.3))])
def test_some_thousand_users_whom_some_items_satisfy(n_items, masked):
    """Continuation differs in most sessions; among 12 items, as some cannot be shown and others stand in for them."""
    sessions = 400 * n_items
    users = satisfied(np.linspace(0.8, 0.3, n_items), range(0, n_items, 2), sessions)
    agent, reference = made(sizes=(n_items, K))
    follow_late(agent, reference, users, sessions, at_once, masked=masked, lost=0.0)
    assert reference.n_differing > sessions / 2


@pytest.mark.parametrize("guard", [False, True])
@pytest.mark.parametrize("sizes", [(1, 1), (4, 1), (4, 4), (9, 6)])
def test_other_numbers_of_items_and_positions(sizes, guard):
    n_items, n_positions = sizes
    order = np.random.default_rng(0).permutation(n_items)
    users = PositionBasedModel(np.linspace(0.1, 0.9, n_items)[order], np.linspace(1.0, 0.5, n_positions))
    for initial in (range(n_items), range(n_positions)):
        arguments = {"safe": True, "initial": list(initial)} if guard else {}
        agent, reference = made(sizes=sizes, **arguments)
        follow_late(agent, reference, users, 300, at_random(5), masked=0.4, **ALL)
        assert (reference.n_newcomers > 0) == (guard and n_items > n_positions)


def test_a_learned_log():
    """Lists of others that were cut off, and of fewer positions; users have changed before and change after it."""
    rng = np.random.default_rng(7)
    for columns, arguments in ((3, {}), (2, {}), (3, GUARDS["guard"])):
        rankings = rng.permuted(np.tile(np.arange(L), (600, 1)), axis=1)[:, :K]
        clicks = np.array([changing(session).sample(row, rng) for session, row in enumerate(rankings)])
        unseen = np.arange(K) >= rng.integers(1, K + 2, 600)[:, None]
        clicks[unseen] = -1
        agent, reference = made(**arguments)
        agent.learn(SimpleNamespace(rankings=rankings[:, :columns], clicks=clicks[:, :columns]))
        clicks[:, columns:] = -1
        for ranking, row in zip(rankings.tolist(), clicks.tolist(), strict=True):
            reference.arrive(None, Clicks(ranking, row, [False] * K))
        follow_late(agent, reference, changing, 600, at_once)
        assert reference.n_alarms > 0


# ----------------------------------------------------------------------------------------------------------- longer plays


def test_users_who_change_often():
    agent, reference = made()
    follow_late(agent, reference, changing, 1500, at_once)
    assert reference.n_alarms > 5
    assert reference.n_changes < reference.n_alarms


def test_users_whom_some_of_many_items_satisfy():
    """Of the items 2 K are tried in a list, and there are more."""
    agent, reference = made(sizes=(12, K))
    users = satisfied(np.linspace(0.8, 0.5, 12), range(9), 500)
    follow_late(agent, reference, users, 1500, at_random(12), masked=0.3, **(ALL | {"churn": 0.003}))
    assert 100 < reference.n_differing < reference.t - 100

    agent, reference = made()
    follow_late(agent, reference, SATISFIED, 1500, at_random(12), **(ALL | {"churn": 0.0}))
    assert reference.n_alarms > 0
    assert reference.n_differing > 100


def test_late_and_lost_clicks_of_users_who_change():
    agent, reference = made()
    follow_late(agent, reference, changing, 1000, at_random(12), **ALL)
    assert reference.n_exchanges > 0


def test_a_learned_log_tells_nothing_of_continuation():
    rng = np.random.default_rng(8)
    rankings = rng.permuted(np.tile(np.arange(L), (600, 1)), axis=1)[:, :K]
    clicks = np.array([SATISFIED(session).sample(row, rng) for session, row in enumerate(rankings)])
    agent, reference = made()
    agent.learn(SimpleNamespace(rankings=rankings, clicks=clicks))
    for ranking, row in zip(rankings.tolist(), clicks.tolist(), strict=True):
        reference.arrive(None, Clicks(ranking, row, [False] * K))
    follow_late(agent, reference, SATISFIED, 300, at_once)


def test_a_guard_with_a_list_of_all_items_where_some_cannot_be_shown():
    agent, reference = made(safe=True, initial=[2, 0, 4, 3, 1])
    follow_late(agent, reference, changing, 1000, at_random(12), masked=0.6, **ALL)


# ------------------------------------------------------------------------------------------------------------ saved agents


@pytest.mark.parametrize("arguments", [{}, GUARDS["guard"]], ids=["free", "guard"])
def test_a_loaded_agent_goes_on_bit_for_bit(arguments, tmp_path):
    """With displays that wait for their clicks, of which items are replaced since."""
    agent, rng, waiting = made(**arguments)[0], np.random.default_rng(4), {}

    def play(agents, sessions):
        for session in range(sessions):
            available = rng.permutation(L) < rng.integers(K, L + 1)
            rankings = [each.rank(None, available) for each in agents]
            assert all(ranking.tolist() == rankings[0].tolist() for ranking in rankings)
            clicks = changing(session).sample(rankings[0], rng)
            if rng.random() < 0.7:
                for each in agents:
                    each.update(None, rankings[0], clicks)
            else:
                waiting[agent.display] = rankings[0]

    play([agent], 700)
    agent.replace(1)
    assert agent.state.changes[1] > 0
    agent.save(tmp_path / "agent.npz")
    copy = UBMTS.load(tmp_path / "agent.npz")
    for display in reversed(waiting):
        for each in (agent, copy):
            each.update(None, waiting[display], [1] * K, display=display)
    play([agent, copy], 500)
    assert plain(agent.state) == plain(copy.state)


def test_a_production_list_without_safe_changes_nothing():
    follow_late(made(initial=[2, 0, 4])[0], made()[1], changing, 300, at_once)
    follow_late(made(safe=True)[0], made()[1], changing, 300, at_once)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"initial": [0, 0, 1]}, "initial: "),
        ({"initial": [0, 1]}, "initial: "),
        ({"initial": [0, 1, 5]}, "initial: "),
        ({"sharpness": 0.0}, "sharpness is 0"),
        ({"safe": 1}, "safe is 1"),
        ({"learn_continuation": 1}, "learn_continuation is 1"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        UBMTS(L, K, **arguments)


# -------------------------------------------------------------------------------------------------------------- its parts

EXAMINATION = np.array([1.0, 0.8, 0.5, 0.3])
PBM = PositionBasedModel([0.6, 0.5, 0.4, 0.3, 0.2, 0.1], EXAMINATION)


def mean_regret(users, checkpoints=(), runs=10, sessions=20_000, reward=None, **arguments):
    """``(runs, checkpoints + 1)`` of agents of other seeds."""
    env = ClickEnv(users) if reward is None else ClickEnv(users, reward=reward)
    sizes = env.model.n_items, env.model.n_positions
    return np.array(
        [
            clickgym.run(UBMTS(*sizes, seed=seed, **arguments), env, sessions, seed=seed, checkpoints=list(checkpoints)).regret
            for seed in range(runs)
        ]
    ).mean(axis=0)


def test_examination_is_that_of_the_users_up_to_a_common_factor():
    """Of a log of 10,000 random lists, on each position and for each last click above.

    Null: the logarithm of each of the nine ratios to the first is normal, and its variance that of two numbers of clicks at
    most, which are Poisson.
    """
    rng = np.random.default_rng(1)
    rankings = rng.permuted(np.tile(np.arange(6), (10_000, 1)), axis=1)[:, :4]
    clicks = np.array([PBM.sample(ranking, rng) for ranking in rankings])
    agent = UBMTS(6, 4, seed=0)
    agent.learn(SimpleNamespace(rankings=rankings, clicks=clicks))
    agent.rank()
    estimate, n = agent.state.examination, agent.state.clicked
    scores = [
        np.log(estimate[k, j] / estimate[0, 0] / EXAMINATION[k]) / np.sqrt(1 / n[k, j] + 1 / n[0, 0])
        for k in range(1, 4)
        for j in range(k + 1)
    ]
    assert np.abs(scores).max() < norm.isf(FALSE_ALARM / 2 / len(scores))


def test_examination_is_learned_from_its_own_lists():
    """60 runs in the PBM: errors of ratios to the first position halve after 100 times the sessions, and are then less than
    a quarter of those of an agent that takes all for examined. Most of them are of few runs, whose lists hardly change."""
    errors = {}
    for sessions in (100, 10_000):
        ratios = []
        for seed in range(60):
            agent = UBMTS(6, 4, seed=seed)
            clickgym.run(agent, ClickEnv(PBM), sessions, seed=seed, checkpoints=[])
            ratios.append(agent.state.examination[1:, 0] / agent.state.examination[0, 0])
        errors[sessions] = np.sqrt(np.mean((np.array(ratios) / EXAMINATION[1:] - 1) ** 2))
    assert errors[10_000] < errors[100] / 2
    assert errors[10_000] < np.sqrt(np.mean((1 / EXAMINATION[1:] - 1) ** 2)) / 4


def test_false_alarms_are_rare():
    """In 100 CMs that do not change, 10,000 sessions each; at a rate of 1 % there are more than six in 1 of 10,000 tests."""
    alarms = 0
    for seed in range(100):
        agent = UBMTS(6, 3, seed=seed)
        users = CascadeModel(np.random.default_rng(seed).random(6), n_positions=3)
        clickgym.run(agent, ClickEnv(users), 10_000, seed=seed, checkpoints=[])
        alarms += agent.state.changes[1] > 0
    assert alarms <= 6


def test_a_change_in_a_learned_log_is_seen():
    """40,000 random lists; in the last 6,000 the worst item is the best one. It is then shown at the top."""
    rng = np.random.default_rng(0)
    rankings = rng.permuted(np.tile(np.arange(6), (40_000, 1)), axis=1)[:, :3]
    attraction = np.tile([0.6, 0.55, 0.5, 0.45, 0.4, 0.05], (40_000, 1))
    attraction[34_000:, 5] = 0.95
    clicks = rng.random(rankings.shape) < np.take_along_axis(attraction, rankings, axis=1) * [1.0, 0.8, 0.6]
    agent = UBMTS(6, 3, seed=0)
    agent.learn(SimpleNamespace(rankings=rankings, clicks=clicks.astype(int)))
    assert agent.state.changes[1] == 1
    assert np.mean([agent.rank()[0] == 5 for _ in range(100)]) > 0.9


@pytest.mark.parametrize("kind", ["CM", "PBM"])
def test_it_recovers_from_an_abrupt_change(kind):
    """All attractions change in the middle; the last tenth's regret in 10 runs is under a fifth of that without detection."""
    first = np.array([0.6, 0.5, 0.4, 0.1, 0.1, 0.1, 0.1, 0.1])
    models = [
        CascadeModel(attraction, n_positions=3) if kind == "CM" else PositionBasedModel(attraction, [1.0, 0.8, 0.6])
        for attraction in (first, first[::-1])
    ]
    users = PiecewiseStationaryModel(models, starts=[0, 10_000])
    late = {}
    for detect in (True, False):
        before, after = mean_regret(users, [18_000], detect=detect)
        late[detect] = after - before
    assert late[True] < late[False] / 5


def test_arrangement_brings_clicks_where_sessions_end_high_in_the_list():
    """DCM whose last position ends sessions most often and its middle one least; the reward is the number of clicks."""
    users = DependentClickModel(np.random.default_rng(1).permutation(np.linspace(0.2, 0.8, 8)), [0.6, 0.3, 0.8])
    assert mean_regret(users, reward="clicks")[-1] < mean_regret(users, reward="clicks", arrange=False)[-1] / 2


def test_continuation_brings_clicks_where_some_items_satisfy():
    """DBN in which every other item satisfies who clicks it; the reward is the number of clicks."""
    users = DynamicBayesianModel(np.linspace(0.7, 0.4, 8), [0.95, 0.05] * 4, 0.95, n_positions=3)
    with_it, without = (mean_regret(users, reward="clicks", learn_continuation=learns)[-1] for learns in (True, False))
    assert with_it < without / 2


def test_continuation_does_not_differ_where_it_is_the_same():
    """Users who leave after one click in two, whatever the item: of 40 runs of 10,000 sessions it differs in one at most."""
    users = DependentClickModel(np.random.default_rng(1).permutation(np.linspace(0.2, 0.8, 8)), [0.5, 0.5, 0.5])
    differing = 0
    for seed in range(40):
        agent = UBMTS(8, 3, seed=seed)
        clickgym.run(agent, ClickEnv(users), 10_000, seed=seed, checkpoints=[])
        differing += agent.state.differs.any()
    assert differing <= 1


def unsafe_lists(sizes, safe, runs=20, sessions=300):
    """How many lists have more than K/2 wrongly ordered pairs more than production; how many while all intervals are right; and
    how many sessions those were. Everything is examined, so clicks are binomial; the production list is the best one."""
    n_items, n_positions = sizes
    unsafe, of_right, right = 0, 0, 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        attraction = rng.uniform(0.05, 0.95, n_items)
        users, angle = PositionBasedModel(attraction, np.ones(n_positions)), np.arcsin(np.sqrt(attraction))
        best = np.argsort(-attraction)
        agent = UBMTS(*sizes, initial=best, safe=safe, learn_examination=False, detect=False, seed=seed)
        for _ in range(sessions):
            is_right = bool((np.abs(agent.state.centre - angle) <= 2.5 * agent.state.spread).all())
            ranking = agent.rank()
            is_unsafe = wrong_pairs(attraction, ranking) > n_positions / 2
            unsafe, of_right, right = unsafe + is_unsafe, of_right + (is_unsafe and is_right), right + is_right
            agent.update(None, ranking, users.sample(ranking, rng))
    return unsafe, of_right, right


@pytest.mark.parametrize("sizes", [(8, 4), (8, 8)])
def test_guarded_lists_are_safe_while_intervals_are_right(sizes):
    """But for 1 in 1,000 (an item from outside is judged by the middle 90 % of its posterior): of 6,000 sessions of 20 runs,
    in most of which intervals are right. Without the guard, at least 1 in 20 lists is not."""
    unsafe, of_right, right = unsafe_lists(sizes, safe=True)
    assert right > 4_000
    assert of_right <= right / 1000
    assert unsafe <= 6
    assert unsafe_lists(sizes, safe=False)[0] > 300


@pytest.mark.parametrize("kind", ["CM", "PBM", "DCM"])
def test_the_guard_prevents_most_unsafe_lists(kind):
    """20 runs with the best list in production, everything learned: the median run has at most a seventh of the unsafe lists
    that there are else, and all runs at most half; most are of a run or two in which the guard is certain of what is wrong.
    Without the guard continuation is not learned, as lists that are arranged by it are not in the order of attraction."""
    counts = {}
    for safe in (True, False):
        counts[safe] = []
        for seed in range(20):
            attraction = np.random.default_rng(seed).uniform(0.05, 0.95, 8)
            users = {
                "CM": lambda alpha: CascadeModel(alpha, 8),
                "PBM": lambda alpha: PositionBasedModel(alpha, np.linspace(1.0, 0.4, 8)),
                "DCM": lambda alpha: DependentClickModel(alpha, [0.6] * 8),
            }[kind](attraction)
            env = ClickEnv(users)
            env.initial_ranking = np.argsort(-attraction)
            agent = UBMTS(8, 8, initial=env.initial_ranking, safe=safe, learn_continuation=safe, seed=seed)
            result = clickgym.run(agent, env, 2000, seed=seed, checkpoints=[], metrics=["violations"])
            counts[safe].append(result.metrics["violations"][-1])
    assert sum(counts[False]) > 400
    assert np.median(counts[True]) < np.median(counts[False]) / 7
    assert sum(counts[True]) < sum(counts[False]) / 2
