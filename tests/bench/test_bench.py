"""Tests of the scorecard: its tasks, scores and board."""

import inspect
import re

import gymnasium as gym
import numpy as np
import polars
import pytest
from differences import difference
from play_scorecard import anchor_table, anchors_of
from replay import replay
from scipy.stats import ttest_1samp

from clickgym.agents import AGENTS, PBMUCB, EpsilonGreedy, TopRank
from clickgym.bench import board
from clickgym.bench.board import BEST_AND_WORST, DATA, HEADER, BoardLine, save_line
from clickgym.bench.play_tasks import (
    make_informed_agent,
    mean_examination,
    play_tasks,
    playable_tasks,
)
from clickgym.bench.result_files import read_results, write_results
from clickgym.bench.score import Anchor, is_scored, score, scores_of, summarize
from clickgym.bench.tasks import ABILITIES, ScoredTask, all_tasks, quick_tasks, tasks_of
from clickgym.envs import CascadeModel

# ------------------------------------------------------------------------------------------- tasks


def test_tasks_are_few_and_share_no_seed():
    names = [task.name for task in all_tasks()]
    assert len(set(names)) == len(names)
    assert max(len(tasks_of(name)) for name in set(ABILITIES) - {"features"}) <= 18
    assert [task.ability for task in quick_tasks()] == [a for a in ABILITIES if a != "long run"]
    groups = [group for ability in ABILITIES.values() for group in ability]
    seeds = [
        group.seed + n
        for group in groups
        for n in range(1, len(group.models) * len(group.instances) + 1)
    ]
    assert len(set(seeds)) == len(seeds) == len(names)


@pytest.fixture
def abilities():
    """The kinds of task, which are restored after the test."""
    shipped = dict(ABILITIES)
    yield ABILITIES
    ABILITIES.clear()
    ABILITIES.update(shipped)


def test_item_ids_tell_nothing():
    """An agent that always shows the first ids and one that always shows the last ids lose equally
    many clicks.

    Null: ids are in random order, so the relative difference of the two losses is symmetric about
    0. Student's t test over the tasks without features or states, with a false-alarm rate of 1 %.
    """
    differences = []
    for task in all_tasks():
        if task.ability not in ("features", "memory", "change", "drift"):
            env = task.make().unwrapped
            ids, k = np.arange(env.model.n_items), env.model.n_positions
            best = env.task.optimal_reward
            first, last = (best - env.model.expected_reward(row[:k]) for row in (ids, ids[::-1]))
            differences.append((first - last) / (first + last))
    assert len(differences) > 100
    assert ttest_1samp(differences, 0.0).pvalue > 0.01


# ------------------------------------------------------------------------------------------ playing


class Plain(EpsilonGreedy):
    """An agent whose sessions run in Python."""

    def update(self, *session):
        super().update(*session)


class Broken(Plain):
    def __init__(self, n_items, n_positions, *, seed=None):
        raise ValueError("out of order")


def test_playable_tasks():
    pytest.importorskip("stable_baselines3")

    def abilities(agent):
        return {task.ability for task in playable_tasks(agent, quick_tasks())}

    of_items = {ability for ability in ABILITIES if ability not in ("features", "long run")}
    assert abilities("TopRank") == abilities(Plain) == of_items
    assert abilities("PBMTS") == of_items - {"memory"}
    assert abilities("CascadeVI") == {"memory"}
    assert abilities("UBMLinUCB") == {"features"}
    assert abilities("Random") == {*of_items, "features"}
    assert abilities("PPO") == {*of_items, "features"} - {"change", "drift"}
    with pytest.raises(ValueError, match="out of order"):
        playable_tasks(Broken, quick_tasks())


@pytest.mark.uncompiled
def test_finished_tasks_are_kept_and_no_name_matters(tmp_path, monkeypatch):
    tasks = [task for task in quick_tasks() if task.ability in ("early sessions", "ties")]
    tasks = [task._replace(horizon=200) for task in tasks]
    first = play_tasks("TopRank", tasks, 2, tmp_path / "a", n_jobs=1)
    assert first["loss"].n_unique() == 4
    other = play_tasks(TopRank, tasks, 2, tmp_path / "b", n_jobs=1)
    assert first.drop("seconds").equals(other.drop("seconds"))
    monkeypatch.setattr("clickgym.bench.play_tasks.run", None)
    assert play_tasks("TopRank", tasks, 2, tmp_path / "a", n_jobs=1).equals(first)


@pytest.mark.uncompiled
def test_loss_is_the_measure_of_the_task(tmp_path):
    """The loss of this task is measured in bad lists, not in clicks."""
    task = next(task for task in all_tasks() if task.measure == "violations")
    losses = play_tasks("Random", [task._replace(horizon=100)], 2, tmp_path, n_jobs=1)["loss"]
    assert 0 < losses.max() <= 100
    assert losses.equals(losses.round())


def test_examination_is_the_mean_over_random_lists():
    """The first of two items ends every user's search, so the second position is examined in half
    of the lists. If users change, the examination is that of the first users.
    """
    models = [CascadeModel([1.0, 0.0], 2), CascadeModel([0.0, 0.0], 2)]
    changing = gym.make("NonStationaryCMRank-v0", models=models, starts=[0, 9])
    for env in gym.make("CMRank-v0", attraction=[1.0, 0.0], n_positions=2), changing:
        assert mean_examination(env) == pytest.approx([1.0, 0.5], abs=0.15)
        assert mean_examination(env).tolist() == mean_examination(env).tolist()


class Notes(Plain):
    def __init__(self, n_items, n_positions, notes, seed=None):
        super().__init__(n_items, n_positions, seed=seed)
        notes.append(seed)


def test_an_agent_keeps_the_arguments_that_it_is_given():
    """As in a sweep, each run begins with the arguments as they were passed."""
    env, mine, notes = gym.make("PBMRank-v0"), [1.0, 0.4, 0.3, 0.2, 0.1], []
    agent = make_informed_agent((PBMUCB, {"examination": mine}), env, 100, 0)
    assert agent.hyperparameters["examination"].tolist() == mine
    make_informed_agent((Notes, {"notes": notes}), env, 100, 0)
    assert not notes


# ------------------------------------------------------------------------------------------- scores

TASK = ScoredTask("standard-01", "standard", "CMRank-v0", "yandex-9:shuffle=1", 1000)


def test_score_between_anchors():
    losses = np.array([6000.0, 5000.0, 500.0, 50.0, 5.0, 0.5, 0.0, -1.0])
    values = score(losses, Anchor(5000.0, 50.0, "TopRank"), TASK)
    assert values[1:4] == pytest.approx([0, 0.5, 1])
    assert values[0] < 0
    assert (np.diff(values) >= 0).all()
    assert values[5] == values[6] == values[7]  # loses less than one session of random lists
    safety = TASK._replace(measure="violations", horizon=100_000)
    none, some = score([0.0, 900.0], Anchor(90_000.0, 0.0, "BubbleRank"), safety)
    assert none == pytest.approx(1)
    assert some == pytest.approx(np.log(90_100 / 1000) / np.log(90_100 / 100.9))


def made_tasks(n, users=None):
    users = users or [f"uniform:seed={i}" for i in range(n)]
    return [TASK._replace(name=f"t{i}", instance=users[i]) for i in range(n)]


def test_interquartile_mean_over_tasks():
    """The mean over the middle four of eight tasks. A task that was not played counts 0."""
    tasks = made_tasks(8)
    scores = {f"t{i}": np.array([i**2 / 100, i**2 / 100 + 0.2]) for i in range(1, 8)}
    summary = summarize(scores, tasks)
    assert summary.value == pytest.approx(np.mean([0.14, 0.19, 0.26, 0.35]))
    assert summary.worst_run == pytest.approx(np.mean([0.04, 0.09, 0.16, 0.25]))
    assert summary.low < summary.value < summary.high
    assert np.isnan(summarize({name: values[:1] for name, values in scores.items()}, tasks).low)


def test_bootstrap_draws_users_with_all_their_tasks():
    """If all tasks belong to two users, one good and one bad, half of all replicates draw the same
    user twice, so the interval extends from 0 to 1. With as many users as tasks, the interval is
    narrower. A different order of ids does not make a different user.
    """
    scores = {f"t{i}": np.full(3, float(i % 2)) for i in range(32)}
    two = [f"yandex-{(9, 990)[i % 2]}:shuffle={i}" for i in range(32)]
    together, apart = summarize(scores, made_tasks(32, two)), summarize(scores, made_tasks(32))
    assert (together.low, together.high) == (0.0, 1.0)
    assert 0.0 < apart.low < apart.value == 0.5 < apart.high < 1.0


def test_an_agent_with_fewer_than_half_of_the_tasks_has_no_score():
    tasks, scores = made_tasks(4), {"t0": np.ones(2), "t1": np.ones(2)}
    assert BoardLine("mine", "", scores, 0.0).summary(tasks).value == 0.5
    assert BoardLine("mine", "", {"t0": np.ones(2)}, 0.0).summary(tasks) is None


def test_differences_are_paired():
    """An agent that is ahead by 0.1 in every run has an interval without width, however much the
    tasks differ. An agent that differs from itself by nothing is undecided.
    """
    tasks = made_tasks(8)
    scores = {f"t{i}": np.array([i / 8, i / 8 + 0.3]) for i in range(8)}
    ahead = difference({name: values + 0.1 for name, values in scores.items()}, scores, tasks)
    assert (ahead.value, ahead.low, ahead.high) == pytest.approx((0.1, 0.1, 0.1))
    assert ahead.improvement == 0.75  # three of the four pairs of runs
    assert not ahead.is_undecided
    assert difference(scores, scores, tasks) == (0, 0, 0, 0.5)
    assert difference(scores, scores, tasks).is_undecided


def test_scores_leave_out_near_anchors():
    losses = {"t0": {"Random": 90.0, "A": 9.0, "B": 31.0}, "t1": {"Random": 90.0, "A": 40.0}}
    anchors = anchors_of(losses)
    assert anchors == {"t0": Anchor(90.0, 9.0, "A"), "t1": Anchor(90.0, 40.0, "A")}
    table = polars.DataFrame({"task": ["t0", "t0", "t1"], "run": [1, 0, 0], "loss": [9.0, 90, 1]})
    (scores,) = scores_of(table, anchors, made_tasks(2)).values()
    assert scores.tolist() == pytest.approx([0.0, 1.0], abs=1e-12)
    safety = TASK._replace(measure="violations", horizon=100_000)  # 100 violations do not matter
    assert is_scored(Anchor(300.0, 30.0, "A"), safety)
    assert not is_scored(Anchor(200.0, 20.0, "A"), safety)


# -------------------------------------------------------------------------------------------- board


def runs_of(names, n_runs, loss):
    rows = [(name, run, loss, 0.1) for name in names for run in range(n_runs)]
    return polars.DataFrame(rows, ["task", "run", "loss", "seconds"], orient="row")


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A board of two agents, with the same anchors in every task."""
    rows = [(task.name, 1000.0, 10.0, "TopRank") for task in all_tasks()]
    table = polars.DataFrame(rows, ["task", "random", "best", "agent"], orient="row")
    write_results(tmp_path / "anchors.parquet", table, {})
    for agent, loss in {"TopRank": 10.0, "Random": 1000.0}.items():
        names = [task.name for task in all_tasks() if not task.has_features]
        save_line(tmp_path, agent, "", runs_of(names, 2, loss), {})
    monkeypatch.setattr(board, "DATA", tmp_path)
    board.anchors.cache_clear()
    board.published_lines.cache_clear()
    yield tmp_path
    board.anchors.cache_clear()
    board.published_lines.cache_clear()


@pytest.mark.usefixtures("small")
def test_board_has_the_best_first():
    header, *rows = board.board(board.published_lines())
    assert header == [*HEADER, *BEST_AND_WORST]
    assert [row[0] for row in rows] == ["TopRank", "Random"]
    assert rows[0][2:5] == ["1.00", "1.00 to 1.00", "1.00"]
    assert len(board.board(board.published_lines(), features=True)) == 1
    header, *rows = board.board(board.published_lines(), ability="ties")
    assert {len(header), *map(len, rows)} == {len(HEADER)}  # no agent is best or worst


@pytest.mark.usefixtures("undrawn")
def test_bench_command(small, printed, tmp_path, monkeypatch, abilities):
    """The user's agent is in plain Python, in a module in the working folder that also adds a kind
    of task. It is compared with the best published agent.
    """
    save_line(small, "MixTS", "", runs_of([task.name for task in all_tasks()], 1, 1.0), {})
    source = [
        "from clickgym.agents import EpsilonGreedy",
        "from clickgym.bench.tasks import ABILITIES, Group",
        "ABILITIES['mine'] = [Group('a short run', ['CM'], ['yandex-9'], 1500, 100)]\n\n",
        inspect.getsource(Plain),
    ]
    (tmp_path / "mine.py").write_text("\n".join(source))
    shown = printed(["bench", "--ability", "ties"], 140)
    assert shown.index("TopRank") < shown.index("Random")
    monkeypatch.chdir(tmp_path)
    for name in abilities.keys() - {"early sessions", "ties"}:
        del abilities[name]
    abilities["ties"] = [abilities["ties"][0]._replace(horizon=100)]
    words = ["bench", "mine:Plain", "--quick", "--out", "out", "--jobs", "1"]
    text = printed(words, 120)
    assert "Scorecard of mine:Plain" in text
    assert re.search(r"early sessions.* TopRank 1\.00", text)
    table, made = read_results(tmp_path / "out" / "mine%3APlain.parquet")
    assert made["command"] == "clickgym bench mine:Plain --quick"
    assert set(table["task"]) == {"early-sessions-02", "ties-03", "mine-01"}
    assert not list((tmp_path / "out" / "quick").iterdir())  # the next call runs again


def test_a_table_of_something_else_holds_no_results(tmp_path):
    polars.DataFrame({"task": ["ties-01"]}).write_parquet(tmp_path / "other.parquet")
    with pytest.raises(ValueError, match=r"other\.parquet is not a results file of clickgym bench"):
        read_results(tmp_path / "other.parquet")


# ------------------------------------------------------------------------------------- what ships


def test_shipped_runs_are_played_again():
    """A sample of the shipped runs is reproduced digit by digit."""
    assert replay(DATA / "PBMUCB.parquet", n_tasks=1) == []


def test_anchors_are_those_of_their_runs():
    shipped, _ = read_results(DATA / "anchors.parquet")
    assert anchor_table(list(AGENTS)).equals(shipped)
