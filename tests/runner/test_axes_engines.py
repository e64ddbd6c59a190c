"""Clicks as they come: both engines play them alike, agents that cannot are refused, and what comes late is learned late."""

import gymnasium as gym
import numpy as np
import pytest
from slow import slow

import clickgym
from clickgym.agents import AGENTS, Agent
from clickgym.runner.labels import UnsuitedError

ALL = {"arrival": "delay:geometric:20:lost=0.1", "bots": "farm:share=0.05", "churn": 0.02, "available": 7}
LATE, CHURN = {"arrival": "batch:25"}, {"arrival": "delay:30", "churn": 0.02}
CASES = [
    ("CascadeKLUCB", "CMRank-v0", ALL),
    ("CascadeUCB1", "PBMRank-v0", {"bots": "quit:first=100"}),
    ("GLRCascadeKLUCB", "NonStationaryCMRank-v0", CHURN),
    ("TopRank", "PBMRank-v0", ALL),
    ("BatchRank", "DBNRank-v0", CHURN),
    ("RankedExp3", "UBMRank-v0", LATE),
    ("C2UCB", "ContextualUBMRank-v0", {"arrival": "delay:geometric:20:lost=0.1"}),
    ("PDGD", "ContextualCMRank-v0", {"arrival": "batch:25", "bots": "random:share=0.1"}),
    ("CascadeVI", "CascadeMDPRank-v0", {"bots": "quit:share=0.1"}),
]
DELAY = {"arrival": "delay:geometric:20", "bots": "farm:share=0.1"}
OTHERS = [(name, *pair) for name in AGENTS for pair in (("CMRank-v0", LATE), ("PBMRank-v0", CHURN), ("DCMRank-v0", DELAY))]


@pytest.mark.parametrize(("name", "env_id", "axes"), [*CASES, *slow(*(case for case in OTHERS if case[0] != "Oracle"))])
def test_both_engines_play_alike(name, env_id, axes):
    results, agents = [], []
    for engine in ("compiled", "python"):
        env = gym.make(env_id, **axes)
        agents.append(clickgym.make_agent(name, env, horizon=400, seed=1))
        results.append(clickgym.run(agents[-1], env, 400, seed=2, engine=engine, metrics=["any_click"]))
    for quantity in ("regret", "reward", "clicks"):
        np.testing.assert_array_equal(getattr(results[0], quantity), getattr(results[1], quantity), quantity)
    np.testing.assert_array_equal(results[0].metrics["any_click"], results[1].metrics["any_click"])
    first, second = agents
    assert first.rng.bit_generator.state == second.rng.bit_generator.state
    assert (first.display, first.n_open) == (second.display, second.n_open) == (400, 0)
    for field, one, other in zip(first.state._fields, first.state, second.state, strict=True):
        if isinstance(one, np.ndarray) and field not in first.remembered:  # of which display that was last
            np.testing.assert_array_equal(one, other, field)


class Counting(Agent):
    """Shows the same list, and writes down what it is told."""

    learns_from = "its displays"

    def __init__(self, n_items, n_positions, *, seed=None):
        self.told, self.replaced, self.n_positions = [], [], n_positions

    def rank(self, observation, candidates=None):
        items = np.arange(10) if candidates is None else np.flatnonzero(candidates)
        return items[: self.n_positions]

    def update(self, observation, ranking, clicks, reward, *, display=None, void=None):
        self.told.append((display, ranking.tolist(), clicks.tolist(), None if void is None else void.tolist()))

    def replace(self, item):
        self.replaced.append((len(self.told), item))


def told(horizon, **axes):
    agent = Counting(10, 5)
    clickgym.run(agent, gym.make("PBMRank-v0", **axes), horizon, seed=3)
    return agent


def test_an_agent_in_plain_python_is_told_of_its_displays_by_number():
    """Batches of 10 in 35 sessions: the clicks of the last five never come."""
    at_once, late = told(35), told(35, arrival="batch:10")
    assert [display for display, *_ in late.told] == list(range(1, 31))
    assert [clicks for _, _, clicks, _ in late.told] == [clicks for _, _, clicks, _ in at_once.told][:30]
    assert [display for display, *_ in told(35, arrival="delay:4").told] == list(range(1, 32))


def test_clicks_on_what_was_replaced_since_are_void():
    agent = told(400, arrival="delay:50", churn=0.05)
    last = {}
    for n_told, item in agent.replaced:  # session n_told + 50 is the one after which it was
        last.setdefault(item, []).append(n_told + 50)
    assert sum(any(void) for *_, void in agent.told) > 20
    for display, ranking, _, void in agent.told:
        assert void == [any(display <= session < display + 50 for session in last.get(item, [])) for item in ranking]


def test_only_what_is_available_is_shown_and_a_list_beside_it_is_refused():
    assert {item for _, ranking, *_ in told(200, available=6).told for item in ranking} == set(range(9))

    class Stubborn(Counting):
        def rank(self, observation, candidates=None):
            return np.arange(5)

    with pytest.raises(clickgym.runner.loop.AgentError, match=r"position \d shows item \d, which is not available"):
        clickgym.run(Stubborn(10, 5), gym.make("PBMRank-v0", available=6), 50, seed=0)


class Plain(Agent):
    """As users of version 1.0 wrote them."""

    def __init__(self, n_items, n_positions, *, seed=None):
        self.n_positions = n_positions

    def rank(self, observation):
        return np.arange(self.n_positions)

    def update(self, observation, ranking, clicks, reward):
        assert set(clicks.tolist()) <= {0, 1}


@pytest.mark.parametrize(
    ("agent", "axes", "message"),
    [
        (Plain, {"arrival": "batch:10"}, r"Plain learns from the last display, and cannot be run with late clicks"),
        (Plain, {"available": 7}, r"Plain cannot choose from a subset of the items \(available=7\)"),
        ("BatchRank", {"available": 7}, r"BatchRank cannot choose from a subset of the items"),
        ("Oracle", {"churn": 0.1}, r"Oracle cannot replace an item \(churn=0.1\)"),
    ],
)
def test_who_cannot_is_refused_before_any_work(agent, axes, message):
    with pytest.raises(UnsuitedError, match=message):
        clickgym.run(agent, gym.make("PBMRank-v0", **axes), 50, seed=0)


def test_an_agent_of_version_1_plays_on_among_bots_and_new_items():
    result = clickgym.run(Plain, gym.make("PBMRank-v0", bots="random:share=0.5", churn=0.1), 200, seed=0)
    assert result.clicks[-1] > 0


def test_metrics_of_lists_need_items_that_stay():
    with pytest.raises(ValueError, match="the metric 'ndcg' needs the same items in every session"):
        clickgym.run("Random", gym.make("PBMRank-v0", churn=0.1), 50, seed=0, metrics=["ndcg"])


def test_late_clicks_cost_regret():
    """Rule: the mean regret of ten runs at a batch of 500 exceeds that at once by a fifth. Null: equal means; the standard
    error of the ratio is below 6 %, so that the false alarm is below 0.001."""
    means = []
    for axes in ({}, {"arrival": "batch:500"}):
        ends = [clickgym.run("CascadeKLUCB", gym.make("CMRank-v0", **axes), 5000, seed=seed).regret[-1] for seed in range(10)]
        means.append(np.mean(ends))
    assert means[1] > 1.2 * means[0]


def test_a_sweep_refuses_who_cannot_before_it_writes(tmp_path):
    with pytest.raises(UnsuitedError, match="BatchRank cannot choose from a subset of the items"):
        clickgym.sweep(["PBMRank-v0:available=7"], ["BatchRank"], 50, 1, out=tmp_path / "out", n_jobs=1)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("axes", [{"available": 6, "churn": 0.02}, {"churn": 0.02, "bots": "farm:share=0.3"}])
def test_optimal_lists_are_counted_by_the_optimum_of_the_session(axes):
    """Sessions of real users without regret, in both engines."""
    counts = []
    for engine in ("compiled", "python"):
        env = gym.make("CMRank-v0", instance="uniform:n_items=7,n_positions=2", **axes)
        result = clickgym.run(
            "CascadeTS", env, 500, seed=1, engine=engine, checkpoints=range(1, 501), metrics=["optimal_lists"]
        )
        counts.append(result.metrics["optimal_lists"])
        without_regret = np.diff(result.regret, prepend=0) < 1e-12
        assert 20 < counts[-1][-1] <= without_regret.sum() < 480
        assert (np.diff(counts[-1], prepend=0) <= without_regret).all()
        if "bots" not in axes:
            assert counts[-1][-1] == without_regret.sum()
    np.testing.assert_array_equal(*counts)


def test_features_of_open_displays_have_their_share_of_memory(monkeypatch):
    """By default as many displays are open as the features of which fit; a display more or fewer would show."""
    linear = {"instance": "linear:n_items=6,n_positions=3,n_features=4"}
    room = {"n": 0}

    def played(engine, arrival):
        monkeypatch.setattr("clickgym.envs.arrival.MAX_BYTES", 8 * 6 * 4 * room["n"] + 1)
        env = gym.make("ContextualCMRank-v0", arrival=arrival, **linear)
        agent = clickgym.make_agent("C2UCB", env, seed=1)
        result = clickgym.run(agent, env, 100, seed=2, engine=engine, checkpoints=range(1, 101))
        return env.unwrapped.axes.arrival_state.dropped[0], result.regret.tolist()

    room["n"] = 10**6
    given = {n: played("compiled", f"delay:geometric:20:max_open={n}") for n in (11, 12, 13)}
    assert given[11][0] > given[12][0] > given[13][0] > 0
    room["n"] = 12
    for engine in ("compiled", "python"):
        assert played(engine, "delay:geometric:20") == given[12] != given[11]
        assert played(engine, "delay:12") == (88, played("compiled", "batch:1000")[1])  # 13 would be open: nothing ever comes
        assert played(engine, "delay:11")[0] == 0
        assert played(engine, "delay:geometric:20:max_open=13") == given[13]
