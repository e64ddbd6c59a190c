"""The board *unseen queries*: its agents, its cells, its score, and what ships."""

from __future__ import annotations

import numpy as np
import polars
import pytest
from hand import Greedy, Sampling, prior_of, told
from play_unseen_board import AGENTS

import clickgym
from clickgym.agents import Agent
from clickgym.bench import unseen
from clickgym.bench.command import bench
from clickgym.bench.results import read_results
from clickgym.bench.unseen import CELLS, ENV, Cell, play, score
from clickgym.core.statistics import half_width
from clickgym.runner.config import run_seed
from clickgym.runner.make import make_env

pytestmark = pytest.mark.usefixtures("undrawn")

SMALL = Cell("small", "queries:split=real,n_sessions=30", 30, 32, 0.5)


def test_greedy_has_the_posterior_of_its_docstring():
    agent = Greedy(3, 2, examination=[1.0, 0.5], seed=0)
    for ranking, clicks in (([2, 0], [1, 0]), ([2, 1], [0, 1])):
        agent.ranking[:] = ranking
        agent.update(None, ranking, clicks, 1.0)
    # Beta(1, 1.5), Beta(2, 0.5) and Beta(2, 2)
    assert agent.rank(None).tolist() == agent.best().tolist() == [1, 2]
    np.testing.assert_allclose(agent.state.worth, [1 / 2.5, 2 / 2.5, 2 / 4])


def test_noise_falls_to_zero_at_the_horizon():
    """Its size in the first session, over 4,000 draws; and none in the last."""
    worth = []
    for seed in range(2000):
        agent = Greedy(2, 1, examination=[1.0], noise=0.5, horizon=2, seed=seed)
        agent.rank(None)
        worth += agent.state.worth.tolist()
    deviation = 0.5 * np.sqrt(1 / 12)
    assert np.mean(worth) == pytest.approx(0.5, abs=4.5 * deviation / np.sqrt(4000))
    assert np.std(worth) == pytest.approx(deviation, rel=0.06)
    for _ in range(2):
        agent.ranking[0] = 0
        agent.update(None, [0], [0])
    agent.rank(None)
    np.testing.assert_allclose(agent.state.worth, [1 / 4, 1 / 2])


def test_the_prior_of_the_sampling_rule_is_that_of_the_training_split():
    users = clickgym.envs.load_instance("queries").model("QueryUsers of PBM")
    prior = prior_of(np.concatenate([model.attraction for model in users.models]))
    agent = Sampling(10, 5, examination=np.ones(5))
    assert (agent.state.alpha, agent.state.beta) == tuple(round(value, 2) for value in prior)


def test_agents_are_told_nothing_of_the_query():
    """But *told*, which gets its examination; all others that of the training split."""
    for cell in CELLS[:1], CELLS[2:3]:
        env = make_env(ENV, cell[0].instance)
        train = make_env(ENV, "queries:split=train").unwrapped.knowledge("examination")
        given = clickgym.make_agent(Greedy, env).state.examination
        np.testing.assert_array_equal(given, train)
        knows = told(env, 3, cell[0], 0).state.examination
        assert knows.tolist() == env.unwrapped.model.models[3].parameters.examination.tolist()


def test_score_is_a_ratio_of_means_paired_by_query():
    rng = np.random.default_rng(0)
    least = rng.uniform(1, 2, 50)
    agent, random = least + rng.uniform(0, 1, 50), least + rng.uniform(5, 9, 50)
    found = score(random, agent, least)
    assert found.value == pytest.approx((random - agent).mean() / (random - least).mean())
    # jackknife, another estimate of the same deviation
    values = [
        score(*(np.delete(each, q) for each in (random, agent, least))).value for q in range(50)
    ]
    spread = np.sqrt(49 * np.var(values))
    assert found.half == pytest.approx(half_width(50) * np.sqrt(50) * spread, rel=0.02)
    assert score(random, random, least) == (0.0, 0.0)
    assert score(random, least, least) == (1.0, 0.0)


class ByNumber(Agent):
    """The first items; only for lists of five."""

    def __init__(self, n_items, n_positions, *, seed=None):
        if n_positions != 5:
            raise ValueError("a policy for lists of five")
        self.n_positions = n_positions

    def rank(self, observation):
        return np.arange(self.n_positions)

    def update(self, observation, ranking, clicks, reward):
        pass


def test_an_agent_of_ones_own_plays_what_it_can(tmp_path, monkeypatch):
    other = SMALL._replace(title="other", instance="queries:split=real,n_positions=3", runs=16)
    monkeypatch.setattr(unseen, "CELLS", (SMALL, other))
    refused = []
    table = play(
        ByNumber, tmp_path, 1, lambda cell, error: refused.append((cell.title, str(error)))
    )
    assert refused == [("other", "a policy for lists of five")]
    assert table["query"].to_list() == list(range(16))
    env = make_env(ENV, SMALL.instance)
    regrets = [
        clickgym.run(ByNumber(10, 5), env, 30, seed=run_seed(0, SMALL.instance, run, 16)).regret[-1]
        for run in (3, 19)
    ]
    assert table["regret"][3] == pytest.approx(np.mean(regrets))


def test_what_ships_is_complete():
    tables = unseen.shipped()
    assert set(tables) >= set(AGENTS)
    for table in tables.values():
        for cell in CELLS:
            n_queries = 16 if "real" in cell.instance else 200
            assert len(table.filter(cell=cell.title)) in (0, n_queries)
    header, *rows = unseen.board(tables)
    assert len(header) == 1 + len(CELLS)
    by_name = {row[0]: row[1:] for row in rows}
    assert set(by_name["told"]) == {"1.00"}
    assert set(by_name["Random"]) == {"0.00"}


@pytest.mark.parametrize("name", ["BCMPTS", "told"])
def test_a_shipped_value_is_played_again(name, tmp_path):
    """In the first cell, query 7."""
    table, cell = unseen.shipped()[name], CELLS[0]
    env, losses = make_env(ENV, cell.instance), []
    for run in range(7, cell.runs, 200):
        seed = run_seed(0, cell.instance, run, 200)
        if name == "told":
            agent = told(env, 7, cell, seed)
        else:
            agent = clickgym.make_agent(name, env, horizon=cell.horizon, seed=seed)
        losses.append(clickgym.run(agent, env, cell.horizon, seed=seed).regret[-1])
    shipped = table.filter(polars.col("cell") == cell.title, query=7)["regret"][0]
    assert shipped == pytest.approx(np.mean(losses), rel=1e-9)


def test_the_command_prints_the_board_and_plays_an_agent(tmp_path, monkeypatch, capsys):
    cell = CELLS[2]._replace(runs=16)
    monkeypatch.setattr(unseen, "CELLS", (cell, CELLS[1]._replace(instance="queries:most=2")))
    bench(agent=None, out=None, ability=unseen.NAME)
    assert "hand, greedy" in capsys.readouterr().out
    bench(agent="BCMPTS", out=tmp_path, ability=unseen.NAME, jobs=1)
    told = capsys.readouterr()
    assert "Not played: test, 1,000" in told.err
    table, made = read_results(unseen.file_of(tmp_path, "BCMPTS"))
    assert made["agent"] == "BCMPTS"
    assert table["cell"].unique().to_list() == [cell.title]
    assert table["query"].to_list() == list(range(16))
    with pytest.raises(ValueError, match="expected a folder"):
        bench(agent="BCMPTS", out=None, ability=unseen.NAME)
