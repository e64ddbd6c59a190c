"""Warm start: agents that learn from a log before their first session."""

from __future__ import annotations

import re
import sys
import warnings
from dataclasses import dataclass, replace
from inspect import signature

import gymnasium as gym
import numpy as np
import polars
import pytest
from two_list_logs import of_best_and_rank

import clickgym
from clickgym.agents import AGENTS, Agent
from clickgym.agents.agent import UnsuitedError
from clickgym.command_line import main
from clickgym.envs import ClickEnv, Instance, PositionBasedModel
from clickgym.runner.reports.table import in_words
from clickgym.runner.results import Results, run_seed
from clickgym.runner.warm_start import Start

pytestmark = pytest.mark.usefixtures("undrawn")

LABELS = tuple("abcdef")
DAY = 86_400
USERS = PositionBasedModel([0.3, 0.1, 0.5, 0.2, 0.4, 0.15], [0.9, 0.6, 0.4])
PRODUCTION = [0, 2, 1, 3, 4, 5]


@dataclass
class Log:
    """No more of a log than the runner asks for."""

    items: np.ndarray
    clicks: np.ndarray
    times: np.ndarray
    queries: np.ndarray
    item_labels: tuple[str, ...] = LABELS
    query_labels: tuple[str, ...] = ("shoes",)

    @property
    def order(self):
        return np.argsort(self.times, kind="stable")

    def of_query(self, query):
        rows = self.queries == self.query_labels.index(query)
        parts = (self.items[rows], self.clicks[rows], self.times[rows], self.queries[rows])
        return Log(*parts, self.item_labels, self.query_labels)


def a_log(n=600, users=USERS, seed=0, production=PRODUCTION[:3]):
    """Half of the lists are the production list; times are in no order."""
    rng = np.random.default_rng(seed)
    lists = rng.permuted(np.tile(np.arange(6), (n, 1)), axis=1)[:, :3]
    lists[rng.random(n) < 0.5] = production
    clicks = np.array([users.sample(ranking, rng) for ranking in lists])
    return Log(lists, clicks, rng.permutation(n), np.zeros(n, int))


def shop(initial=PRODUCTION, users=USERS, **facts):
    estimation = {"query": "shoes", "items": list(LABELS), **facts}
    return Instance("shoes", {"PBM": users}, 3, initial_ranking=initial, estimation=estimation)


@pytest.fixture
def env():
    return gym.make("PBMRank-v0", instance=shop())


class Counting(Agent):
    """An agent in plain Python: items by clicks."""

    learns_from_any_list = True

    def __init__(self, n_items, n_positions, *, seed=None):
        self.clicks, self.sizes, self.rewards = np.zeros(n_items), (n_items, n_positions), []

    def rank(self, observation):
        return np.argsort(-self.clicks, kind="stable")[: self.sizes[1]]

    def update(self, observation, ranking, clicks, reward):
        self.clicks[ranking] += clicks
        self.rewards.append(reward)


@pytest.mark.parametrize("name", ["PBMHB", "GRAB", "CascadeSWUCB", "PBMTS", Counting])
def test_start_is_update_session_by_session(env, name):
    """The state is that of `update` in the order of time, and both engines go on alike."""
    log = a_log()
    warm, cold = (clickgym.make_agent(name, env, seed=3, log=it) for it in (log, None))
    order = log.order
    for ranking, clicks in zip(log.items[order], log.clicks[order], strict=True):
        cold.update(None, ranking, clicks, float(clicks.sum()))
    cold.start_after_log()
    results = [clickgym.run(agent, env, 200, seed=1) for agent in (warm, cold)]
    results.append(clickgym.run(name, env, 200, seed=1, start=log, engine="python"))
    again = clickgym.make_agent(name, env, seed=1, horizon=200, log=log)
    results.append(clickgym.run(again, env, 200, seed=1))
    for one, other in (results[:2], results[2:]):
        np.testing.assert_array_equal(one.regret, other.regret)
        np.testing.assert_array_equal(one.clicks, other.clicks)


def test_learned_sessions():
    """Lists are cut to K; those that are shorter or show an unknown item there are left out."""
    labels = (*"fedcba", "new")  # item i of the log is item 5 - i of the instance
    items = np.array([[0, 1, 2, 6], [6, 0, 1, 2], [3, 4, -1, -1], [5, 4, 3, -1], [0, 2, 1, 3]])
    clicks = np.array([[1, 0, 0, 1], [0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0]])
    log = Log(items, clicks, np.array([4, 0, 1, 2, 3]), np.zeros(5, int), labels)
    past = Start(log).sessions(gym.make("PBMRank-v0", instance=shop()))
    assert past.rankings.tolist() == [[0, 1, 2], [5, 3, 4], [5, 4, 3]]
    assert past.clicks.tolist() == [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert (len(past), past.n_sessions) == (3, 5)
    other = Start(replace(log, clicks=1 - clicks)).sessions(ClickEnv("PBM", instance=shop()))
    assert other.identity != past.identity


@pytest.mark.parametrize(
    "name", [name for name, kind in AGENTS.items() if getattr(kind, "learns_around_gaps", False)]
)
def test_lists_with_an_item_that_the_instance_lacks(env, name):
    """What the agent knows of the other items is what it would know if it had that item, too: the
    clicks stay where they are.
    """
    log = a_log(300)
    few = [*LABELS[:2], *LABELS[3:]]  # without item 2 of the production list
    fewer = PositionBasedModel(np.delete(USERS.attraction, 2), USERS.examination)
    estimation = {"query": "shoes", "items": few}
    instance = Instance("shoes", {"PBM": fewer}, 3, estimation=estimation)
    settings = {"prior_skips": 0} if "prior_skips" in signature(AGENTS[name]).parameters else {}
    some, whole = (
        clickgym.make_agent(name, it, seed=0, horizon=1000, log=log, **settings)
        for it in (gym.make("PBMRank-v0", instance=instance), env)
    )
    compared = 0
    for field in ("clicks", "shown", "displays", "examined", "misses", "weight", "mean", "rate"):
        if field in some.arrays:
            known = np.delete(whole.arrays[field], 2, axis=0)
            np.testing.assert_allclose(some.arrays[field], known, rtol=1e-12)
            compared += 1
    assert compared > 1
    past = Start(log).sessions(gym.make("PBMRank-v0", instance=instance))
    assert len(past) + len(past.with_gaps[0]) == 300
    assert len(past) < 200


def test_agents_of_whole_lists_skip_those_with_gaps(env):
    """And the table says who did what."""
    log = a_log(100)
    log.items[:10] = [0, 6, 1]
    log.item_labels = (*LABELS, "other")
    assert len(clickgym.make_agent(Counting, env, log=log).rewards) == 90
    agents = ["CascadeTS", "CascadeUCB1", "Fixed"]
    results = clickgym.sweep(["PBMRank-v0"], agents, 10, 1, instances=[shop()], start=log)
    note = "10 more sessions show items .*: CascadeTS learned from .*; the others skipped them"
    assert re.search(note, "\n".join(notes_of(results)))


@pytest.mark.parametrize(("reward", "expected"), [("clicks", [2, 0]), ("any_click", [1, 0])])
def test_rewards(reward, expected):
    """Clicks at the counted positions, or whether there is any."""
    env = gym.make("PBMRank-v0", instance=shop(), reward=reward, cutoff=2)
    clicks = np.array([[1, 1, 1], [0, 0, 1]])
    log = Log(np.array([[0, 1, 2]] * 2), clicks, np.arange(2), np.zeros(2, int))
    assert clickgym.make_agent(Counting, env, log=log).rewards == expected


def test_initial_lists():
    """That of the agent, else of the instance, else the log's latest frequent list."""
    own = gym.make("PBMRank-v0", instance=shop(initial=None))
    log = a_log()
    log.items[log.order[-200:]] = [5, 4, 3]
    for env, given, expected in (
        (own, {}, [5, 4, 3]),
        (gym.make("PBMRank-v0", instance=shop()), {}, PRODUCTION[:3]),
        (own, {"ranking": [1, 2, 3]}, [1, 2, 3]),
    ):
        assert clickgym.make_agent("Fixed", env, log=log, **given).rank().tolist() == expected
    assert clickgym.make_agent("BubbleRank", own, seed=0, log=log).best().tolist() == [5, 4, 3]


SAMPLERS = ["PBMTS", "BCMPTS", "PBMHB", "CascadeTS"]


def of_one_list(n=2000, attraction=(0.02, 0.05, 0.04, 0.06, 0.01, 0.03)):
    """Rare clicks on lists of which the 20th only is another."""
    log = a_log(n, PositionBasedModel(attraction, [0.9, 0.6, 0.4]))
    log.items[:] = [3, 1, 2]
    log.items[::20] = [3, 1, 5]
    rates = np.array(attraction)[log.items] * [0.9, 0.6, 0.4]
    log.clicks[:] = np.random.default_rng(1).random(log.items.shape) < rates
    return log


@pytest.mark.parametrize("name", [*SAMPLERS, "EpsilonGreedy"])
def test_items_that_the_log_hardly_shows(env, name):
    """They start as if shown so often that at the log's rate 5 clicks were expected; unless the
    argument is given, or the agent does not take it.
    """
    log = of_one_list()
    displays = np.bincount(log.items.ravel(), minlength=6)
    least = np.ceil(5 * (6000 + 2) / (log.clicks.sum() + 1))
    agent = clickgym.make_agent(name, env, seed=0, log=log)
    if name == "EpsilonGreedy":
        assert "prior_skips" not in agent.filled_in
        return
    expected = np.maximum(least - displays, 0)
    assert (expected > 0).tolist() == [True, False, False, False, True, True]
    np.testing.assert_array_equal(agent.filled_in["prior_skips"], expected)
    off = clickgym.make_agent(name, env, seed=0, log=log, prior_skips=0)
    assert off.hyperparameters["prior_skips"].tolist() == [0] * 6
    known = [item for _ in range(200) for item in agent.rank()]
    unknown = [item for _ in range(200) for item in off.rank()]
    assert np.isin(known, [0, 4]).mean() < 0.05 < 0.3 < np.isin(unknown, [0, 4]).mean()
    enough = clickgym.make_agent(name, env, seed=0, log=a_log())  # every item is shown enough
    assert "prior_skips" not in enough.filled_in


@pytest.mark.parametrize("name", SAMPLERS)
def test_prior_skips(env, name):
    """The counts are those of an agent that saw each item so often alone on top, without a click;
    one number is for all items.
    """
    skips = [3, 0, 5, 1, 0, 2]
    agent = clickgym.make_agent(name, env, seed=0, prior_skips=skips)
    learned = clickgym.make_agent(name, env, seed=0)
    for item, n in enumerate(skips):
        for _ in range(n):
            others = [other for other in range(6) if other != item][:2]
            learned.update(None, [item, *others], [0, -1, -1])
    for field in ("clicks", "examined", "misses", "weight"):
        if field in agent.arrays:
            np.testing.assert_allclose(agent.arrays[field], learned.arrays[field], rtol=1e-12)
    same = clickgym.make_agent(name, env, seed=0, prior_skips=4)
    assert same.hyperparameters["prior_skips"].tolist() == [4] * 6
    for wrong in ([1, 2], [0.5] * 6, -1, "x", [[1], [1, 2]]):
        with pytest.raises(ValueError, match="prior_skips"):
            clickgym.make_agent(name, env, prior_skips=wrong)


def test_chain_starts_at_the_best_fit():
    """That of PBMHB, whose counts are those of `update`."""
    users = PositionBasedModel(USERS.attraction, [1.0, 0.6, 0.4])
    env, log = gym.make("PBMRank-v0", instance=shop(users=users)), a_log(8000, users)
    agent = clickgym.make_agent("PBMHB", env, seed=0, log=log)
    np.testing.assert_allclose(agent.state.theta, users.attraction, atol=0.04)
    np.testing.assert_allclose(agent.state.kappa, users.examination, atol=0.06)
    products = np.outer(agent.state.theta, agent.state.kappa)
    np.testing.assert_allclose(agent.state.log_miss, np.log1p(-products), rtol=1e-12)
    cold = clickgym.make_agent("PBMHB", env, seed=0)
    for ranking, clicks in zip(log.items[log.order], log.clicks[log.order], strict=True):
        cold.update(None, ranking, clicks)
    np.testing.assert_array_equal(agent.state.misses, cold.state.misses)
    cold.start_after_log()
    np.testing.assert_array_equal(agent.state.theta, cold.state.theta)
    by_theta, by_kappa = (np.argsort(-it) for it in (agent.state.theta, agent.state.kappa))
    np.testing.assert_array_equal(agent.best()[by_kappa], by_theta[:3])


def learns_logs(kind):
    learns = getattr(kind, "learns_from_any_list", False)
    return learns and not kind.observes and not kind.learns_nothing


@pytest.mark.parametrize("name", [name for name, kind in AGENTS.items() if learns_logs(kind)])
def test_best_after_a_log(name):
    """It gets as many clicks as the lists that the agent shows, in six queries. Their logs do not
    tell which items attract and which were shown where users look. Fixed seeds.
    """
    best, shown = of_best_and_rank(name)
    assert best.mean() > shown.mean() - 0.01
    assert (best > shown - 0.03).all()


def test_users_draw_as_without(env):
    for agent in ("Fixed", "Oracle", "Random"):
        cold, warm = (clickgym.run(agent, env, 50, seed=7, start=it) for it in (None, a_log()))
        np.testing.assert_array_equal(cold.regret, warm.regret)
        np.testing.assert_array_equal(cold.clicks, warm.clicks)


def test_refusals(env):
    log = a_log()
    for agent in ("TopRank", "PPO", "RankedExp3"):
        with pytest.raises(UnsuitedError, match=f"^{agent} cannot learn from a log, only from"):
            clickgym.run(agent, env, 10, start=log)
    for kind, why in (("Contextual", "no features"), ("NonStationary", "users change")):
        with pytest.raises(UnsuitedError, match=why):
            clickgym.run("CascadeTS", f"{kind}PBMRank-v0", 10, start=log)
    with pytest.raises(UnsuitedError, match="users change"):
        clickgym.run("CascadeTS", "CascadeMDPRank-v0", 10, start=log)
    message = "log's only query is 'shoes'; the instance's query is 'yandex-9982'"
    with pytest.raises(ValueError, match=message):
        clickgym.run("CascadeTS", "PBMRank-v0", 10, start=log)
    message = "each list of 'shoes' with 3 items shows one .* does not have, such as '[u-z]'"
    with pytest.raises(ValueError, match=message):
        clickgym.run("CascadeTS", env, 10, start=replace(log, item_labels=("x", *"uvwyz")))
    short = Log(log.items[:, :2], log.clicks[:, :2], log.times, log.queries)
    message = "in the log, lists of 'shoes' have at most 2 items, and the environment has 3"
    with pytest.raises(ValueError, match=message):
        clickgym.run("CascadeTS", env, 10, start=short)
    with pytest.raises(ValueError, match="agents given by name"):
        clickgym.run(clickgym.agents.CascadeTS(6, 3), env, 10, start=log)
    with pytest.raises(TypeError, match="expected a click log, which has of_query"):
        clickgym.run("CascadeTS", env, 10, start=[1, 2])
    with pytest.raises(TypeError, match="expected a click log, which has of_query"):
        clickgym.sweep([env.spec.id], ["CascadeTS"], 10, 1, start={})


def test_logs_that_are_no_logs(env):
    """A log can be any object, so its arrays are looked at."""
    log = a_log(20)
    few = Log(log.items, log.clicks[:5], log.times, log.queries)
    few.of_query = lambda query: few
    with pytest.raises(TypeError, match=r"items \(20, 3\), clicks \(5, 3\) and order \(20,\)"):
        clickgym.run("PBMHB", env, 10, start=few)
    for value in (2, 0.7, np.nan):
        wrong = a_log(20)
        wrong.clicks = np.where(wrong.clicks == wrong.clicks.max(), value, 0.0)
        with pytest.raises(ValueError, match="clicks of 'shoes' in the log are not all 0 or 1"):
            clickgym.run("PBMHB", env, 10, start=wrong)


def test_every_agent_starts_or_is_refused(env):
    for name, kind in AGENTS.items():
        if kind.observes or name == "FrozenPolicy":  # which needs a model
            continue
        starts = getattr(kind, "learns_from_any_list", False) or name == "BubbleRank"
        try:
            clickgym.make_agent(name, env, horizon=10, seed=0, log=a_log(5))
        except UnsuitedError:
            assert not starts, name
        else:
            assert starts, name


def notes_of(results):
    """All but what the columns of the table are."""
    about = ("Differences", "The intervals")
    return [note for note in in_words(results).notes if not note.startswith(about)]


def test_sweep(tmp_path):
    """Runs are those of `run`; the log is part of their identity; all unsuited are named."""
    envs, agents = ["PBMRank-v0"], ["PBMHB", "CascadeUCB1", "Fixed"]
    settings = {"instances": [shop()], "out": tmp_path / "r", "n_jobs": 1}
    late = {"delay": "batch:10", "engine": "python"}  # else a loop is compiled for each agent
    settings |= late
    warm = clickgym.sweep(envs, agents, 50, 2, start=a_log(), **settings)
    env = ("PBMRank-v0", {"instance": shop()})
    seed = run_seed(0, "shoes", 1)
    by_hand = clickgym.run("PBMHB", env, 50, seed=seed, start=a_log(), **late)
    rows = warm.rows.filter(polars.col("agent") == "PBMHB", polars.col("run") == 1)
    assert rows["regret"].to_list() == by_hand.regret.tolist()
    counts, caution = notes_of(Results(tmp_path / "r"))
    assert "learned from 600 of 600 sessions of shoes" in counts
    assert "CascadeUCB1 explores" in caution
    assert "started from 600 sessions" in in_words(warm).title
    assert warm.configuration.command.endswith("--delay batch:10 --start LOG")
    again = clickgym.sweep(envs, agents[:1], 50, 3, start=a_log(), **settings)
    assert again.rows["run"].max() == 2
    other = a_log()
    other.clicks[0, 0] = 1 - other.clicks[0, 0]
    for log in (other, None):  # runs with another log are other runs
        n_files = len(list((tmp_path / "r" / "runs").glob("*.npy")))
        clickgym.sweep(envs, agents, 50, 2, start=log, **settings)
        assert len(list((tmp_path / "r" / "runs").glob("*.npy"))) == n_files + 6
    message = "^TopRank, mine, PPO .*log.*PBMTS"
    with pytest.raises(UnsuitedError, match=message):
        clickgym.sweep(
            envs, ["TopRank", "mine=BatchRank", "PPO", "Fixed"], 50, 2, start=a_log(), **settings
        )


def test_refusals_of_late_clicks():
    """One message names all agents, by reason."""
    message = "^TopRank, UniRank .*late clicks: .*last list.*CascadeTS.*; PPO .*generic RL"
    with pytest.raises(UnsuitedError, match=message):
        clickgym.sweep(
            ["PBMRank-v0"], ["TopRank", "CascadeTS", "PPO", "UniRank"], 10, 1, delay="fixed:2"
        )


def test_several_instances():
    """The note says in how many instances the best agent lost less."""
    other = replace(shop(), name=shop().refit(2))
    first = replace(shop(), name=shop().refit(1))
    agents = ["Oracle", "Fixed"]
    results = clickgym.sweep(["PBMRank-v0"], agents, 20, 2, instances=[first, other], n_jobs=1)
    notes = "\n".join(notes_of(results))
    assert "Oracle lost less than Fixed in 2 of 2" in notes
    assert "refits" in notes


@pytest.mark.parametrize("words", [["--start", "log.csv"], ["--columns", "item=doc"]])
def test_command_without_a_reader(words, tmp_path, monkeypatch, capsys):
    command = ["run", "PBMRank-v0", "--agents", "CascadeTS", "--horizon", "10", "--runs", "1"]
    assert main(command) == 0  # it loads what a command needs
    monkeypatch.setattr(sys, "path", [])  # where readers are found, if they are installed
    assert main([*command, "--out", str(tmp_path / "r"), *words]) == 2
    error = capsys.readouterr().err
    assert ("no installed package has one" in error) or ("expected --start" in error)
    assert not (tmp_path / "r").exists()


def test_command_without_the_file(tmp_path, monkeypatch, capsys):
    """What the system refuses is named in words, without its number."""
    info = tmp_path / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[clickgym.readers]\na = my_reader:read\n")
    (tmp_path / "my_reader.py").write_text("def read(files, columns):\n    open(files[0])\n")
    monkeypatch.syspath_prepend(tmp_path)  # the first reader by name is taken
    words = ["--agents", "PBMHB", "--horizon", "9", "--out", str(tmp_path / "r"), "--start", "no"]
    assert main(["run", "PBMRank-v0", *words]) == 2
    assert capsys.readouterr().err == "clickgym: no: No such file or directory\n"


def test_other_users(env):
    """A log of other users is named, also if only its first half is of others."""
    assert Start(a_log(3000)).facts(env)["caution"] == ""
    others = PositionBasedModel(USERS.attraction[::-1].copy(), [0.9, 0.6, 0.4])
    log, old = a_log(3000), a_log(3000, others)
    is_early = log.times < 1500
    log.items[is_early], log.clicks[is_early] = old.items[is_early], old.clicks[is_early]
    with pytest.warns(UserWarning, match=r"clicked otherwise than these users of shoes.*part 1, 2"):
        clickgym.run("CascadeTS", env, 10, start=log)
    with warnings.catch_warnings(action="error"):  # what learns nothing is not misled
        for agent in ("Random", "Oracle", "Fixed"):
            clickgym.run(agent, env, 10, start=log)
        with pytest.raises(UnsuitedError, match="cannot learn from late clicks"):
            clickgym.run("BubbleRank", env, 10, start=log, delay="batch:5")
    settings = {"instances": [shop()], "start": log, "n_jobs": 1}
    results = clickgym.sweep(["PBMRank-v0"], ["Random", "Fixed"], 10, 1, **settings)
    [note] = notes_of(results)
    assert "3,000 of 3,000 sessions of shoes" in note


def test_cautions_of_agents(env):
    """In Python as in the table; none where the agents are refused."""
    log = of_one_list()
    rare = "the log shows 3 of 6 items of shoes fewer than"
    bounds = "Caution: CascadeUCB1 explores.*late clicks"
    with pytest.warns(UserWarning, match=bounds):
        clickgym.run("CascadeUCB1", env, 10, start=log, delay="batch:5", engine="python")
    with pytest.warns(UserWarning, match=f"Caution: {rare}.* EpsilonGreedy has no prior_skips"):
        clickgym.run("EpsilonGreedy", env, 10, start=log)
    with pytest.warns(UserWarning, match="Caution: CascadeKLUCB explores items"):
        clickgym.make_agent("CascadeKLUCB", env, log=log)
    settings = {"instances": [shop()], "start": log, "n_jobs": 1}
    agents = ["CascadeUCB1", "EpsilonGreedy", "PBMHB", "Fixed"]
    with pytest.warns(UserWarning, match="Caution") as caught:
        results = clickgym.sweep(["PBMRank-v0"], agents, 10, 1, **settings)
    said = [str(warning.message) for warning in caught]
    assert any(rare in text and "EpsilonGreedy has no" in text for text in said)
    _, note, *others = notes_of(results)
    assert note.startswith(rare[:1].upper() + rare[1:])
    assert set(others) <= set(said)
    with warnings.catch_warnings(action="error"), pytest.raises(UnsuitedError):
        clickgym.sweep(["PBMRank-v0"], [*agents, "TopRank"], 10, 1, **settings)
    with warnings.catch_warnings(action="error"):
        clickgym.sweep(["PBMRank-v0"], agents, 10, 1, instances=[shop()], n_jobs=1)  # without a log


def test_labels_of_a_shuffled_instance():
    instance = shop().shuffled(3)
    order = np.argsort([LABELS.index(label) for label in instance.labels])
    np.testing.assert_array_equal(instance.model("PBM").attraction[order], USERS.attraction)
    assert instance.query == "shoes"
