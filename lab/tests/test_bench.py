"""The scorecard: its tasks, its scores, its board."""

import inspect
import re
from pathlib import Path

import numpy as np
import polars
import pytest
from play_scorecard import anchor_table
from replay import names_of, replay, replay_agent, unlikely
from scipy.stats import ttest_1samp
from slow import slow

from clickgym.agents import AGENTS, Agent, Random, TopRank
from clickgym.envs import load_instance
from clickgym_lab.bench import board
from clickgym_lab.bench.board import DATA, HEADER, line_of, save_line
from clickgym_lab.bench.play import log_of_production, play, playable, prepared
from clickgym_lab.bench.score import Anchor, anchors_of, is_scored, score, scores_of, summarize
from clickgym_lab.bench.tasks import (
    ABILITIES,
    DISAPPOINTING,
    Group,
    Task,
    all_tasks,
    quick_tasks,
    tasks_of,
)
from clickgym_lab.results import read_results, write_results

OTHER_USERS = ("features", "memory", "change", "drift")

# ------------------------------------------------------------------------------------------- tasks


def test_tasks_are_few():
    names = [task.name for task in all_tasks()]
    assert len(set(names)) == len(names)
    assert max(len(tasks_of(name)) for name in set(ABILITIES) - {"features"}) <= 18
    assert [task.ability for task in quick_tasks()] == [a for a in ABILITIES if a != "long run"]


@pytest.mark.parametrize("tasks", [quick_tasks, *slow(all_tasks)])
def test_tasks_can_be_made(tasks):
    for task in tasks():
        assert task.make().observation_space is not None


def test_no_two_groups_share_a_seed():
    groups = [group for ability in ABILITIES.values() for group in ability]
    sizes = [len(group.models) * len(group.places) * len(group.logs) for group in groups]
    pairs = list(zip(groups, sizes, strict=True))
    seeds = [group.seed + n for group, size in pairs for n in range(1, size + 1)]
    assert len(set(seeds)) == len(seeds) == len(all_tasks())


@pytest.fixture
def abilities():
    """The abilities, which are put back in their order after the test."""
    shipped = dict(ABILITIES)
    yield ABILITIES
    ABILITIES.clear()
    ABILITIES.update(shipped)


@pytest.fixture
def another(abilities):
    """An ability of two tasks that somebody adds, before all others."""
    added = [
        Group(
            "two items", ("CM", "PBM"), ["uniform:n_items=2,n_positions=2,seed={seed}"], 1500, 100
        )
    ]
    shipped = dict(abilities)
    abilities.clear()
    abilities.update({"two items": added}, **shipped)


def test_another_ability_moves_no_task(request):
    before = all_tasks(), quick_tasks(), board.scored_tasks(), board.recommended()
    lines = [line.summary(before[2], intervals=False) for line in board.published()]
    of_learners = board.learner_tasks(), board.learners()
    request.getfixturevalue("another")
    first, second, *others = all_tasks()
    assert first == Task(
        "two-items-01",
        "two items",
        "CMRank-v0",
        "uniform:n_items=2,n_positions=2,seed=1501,shuffle=1501",
        100,
    )
    assert second.instance == "uniform:n_items=2,n_positions=2,seed=1502,shuffle=1502"
    assert (tuple(others), quick_tasks()) == (before[0], (first, *before[1]))
    board.published.cache_clear()
    tasks = board.scored_tasks()
    assert [line.summary(tasks, intervals=False) for line in board.published()] == lines
    header, ours, *recommended = board.recommended()
    assert [header, *recommended] == before[3]
    assert ours == ["two items", *5 * [""]]
    assert (board.learner_tasks(), board.learners()) == ([first, *of_learners[0]], of_learners[1])


@pytest.mark.parametrize("number", [1, 2, 3, 18])
@pytest.mark.usefixtures("another")
def test_quick_takes_a_task_that_is_there(number):
    [group] = ABILITIES["two items"]
    ABILITIES["two items"] = [group._replace(quick=number)]
    [task] = [task for task in quick_tasks() if task.ability == "two items"]
    assert task.name == f"two-items-{1 + (number - 1) % 2:02}"


def test_clickbait_seeds_are_the_first():
    for model, seeds in DISAPPOINTING.items():
        first = []
        for seed in range(1, max(seeds) + 1):
            parameters = load_instance(f"uniform:seed={seed}").model(model).parameters
            if model == "DBN":
                pair = (parameters.attraction, parameters.satisfaction)
                disappoints = np.corrcoef(*pair)[0, 1] <= -0.5
            else:
                gap = parameters.continue_after_relevant - parameters.continue_after_click
                disappoints = gap >= 0.5
            first += [seed] * bool(disappoints)
        assert tuple(first) == seeds


def test_item_ids_tell_nothing():
    """Two agents that always show the first ids, and the last, lose as much as each other.

    Null: ids are in random order, so that the relative difference of the two losses is symmetric
    about 0. Student's t test over the tasks without features or states; false-alarm rate 1 %.
    """
    differences = []
    for task in all_tasks():
        if task.ability in OTHER_USERS:
            continue
        env = task.make().unwrapped
        ids, k = np.arange(env.model.n_items), env.model.n_positions
        best = env.task.optimal_reward
        first, last = (best - env.model.expected_reward(row[:k]) for row in (ids, ids[::-1]))
        differences.append((first - last) / (first + last))
    assert len(differences) > 100
    assert ttest_1samp(differences, 0.0).pvalue > 0.01


# ------------------------------------------------------------------------------------------ playing


class Plain(Agent):
    """Shows the items in the order of their mean clicks, with ties in random order."""

    def __init__(self, n_items, n_positions, seed=None):
        self.n_items, self.n_positions = n_items, n_positions
        self.rng = np.random.default_rng(seed)
        self.clicks, self.shown = np.zeros(n_items), np.ones(n_items)

    def rank(self, observation):
        noise = 1e-6 * self.rng.random(self.n_items)
        return np.argsort(-(self.clicks + 1) / self.shown - noise)[: self.n_positions]

    def update(self, observation, ranking, clicks, reward):
        self.shown[ranking] += 1
        self.clicks[ranking] += clicks


class Broken(Plain):
    def __init__(self, n_items, n_positions, seed=None):
        raise ValueError("out of order")


def test_playable_tasks():
    pytest.importorskip("stable_baselines3")

    def abilities(agent):
        return {task.ability for task in playable(agent, quick_tasks())}

    of_items = {ability for ability in ABILITIES if ability not in ("features", "long run")}
    assert abilities("TopRank") == abilities(Plain) == of_items
    assert abilities("PBMTS") == of_items - {"memory"}
    assert abilities("CascadeVI") == {"memory"}
    assert abilities("UBMLinUCB") == {"features"}
    assert abilities("Random") == {*of_items, "features"}
    assert abilities("PPO") == {*of_items, "features"} - {"change", "drift"}
    with pytest.raises(ValueError, match="out of order"):
        playable(Broken, quick_tasks())


def test_runs_resume_and_depend_on_no_name(tmp_path):
    tasks = [task for task in quick_tasks() if task.ability in ("early sessions", "warm start")]
    once = play("TopRank", tasks, 1, tmp_path / "a", n_jobs=1)
    more = play("TopRank", tasks, 2, tmp_path / "a", n_jobs=1)
    other = play(TopRank, tasks, 2, tmp_path / "b", n_jobs=1)
    assert more.filter(run=0).equals(once)
    assert more.drop("seconds").equals(other.drop("seconds"))
    others = play("Random", tasks, 2, tmp_path / "c", n_jobs=1)
    assert (others["loss"] > more["loss"]).all()
    assert (
        play("TopRank:delta=0.1", tasks, 2, tmp_path / "a", n_jobs=1)["loss"] != more["loss"]
    ).any()
    again = play("TopRank", tasks, 2, tmp_path / "a", n_jobs=1)
    assert again.equals(more)  # the seconds, too


def test_agent_without_identity_is_played_again(tmp_path):
    task = quick_tasks()[0]._replace(horizon=10)

    def agent(**sizes):
        return Random(**sizes)

    for runs in (2, 1):
        with pytest.warns(UserWarning, match="agent agent is run, but not resumed"):
            assert len(play(agent, [task], runs, tmp_path, n_jobs=1)) == runs


def test_agents_learn_from_the_log_before_they_rank():
    """In a fifth of its sessions two of ten items have exchanged their places; with five positions
    two ninths of these exchanges are not seen.
    """
    task = next(task for task in all_tasks() if task.log == 10_000)
    log = log_of_production(task, 0)
    production = task.make().unwrapped.initial_ranking
    differ = (log.rankings != production[: log.rankings.shape[1]]).any(axis=1)
    assert differ.mean() == pytest.approx(0.2 * 7 / 9, abs=0.02)
    assert 0.02 < log.clicks.mean() < 0.6
    agent = prepared("CascadeTS", task, task.make(), 0)
    assert agent.state.examined.sum() > 5_000


def test_agents_keep_the_examination_that_they_are_given():
    """Others are told that of random lists: of a cascade model's users, those examine the second
    position who do not click a random item.
    """
    task = next(task for task in quick_tasks() if task.ability == "standard")
    given, env = [1.0, 0.5, 0.25, 0.2, 0.1], task.make()
    agent = prepared(("PBMUCB", {"examination": given}), task, env, 0)
    assert agent.hyperparameters["examination"].tolist() == given
    measured = prepared("PBMUCB", task, env, 0).hyperparameters["examination"]
    expected = [1.0, 1.0 - env.unwrapped.model.attraction.mean()]
    assert measured[:2].tolist() == pytest.approx(expected, abs=0.02)


# ------------------------------------------------------------------------------------------- scores

TASK = Task("standard-01", "standard", "CMRank-v0", "yandex-9:shuffle=1", 1000)


def test_score_between_anchors():
    losses = np.array([6000.0, 5000.0, 500.0, 50.0, 5.0, 0.5, 0.0, -1.0])
    values = score(losses, Anchor(5000.0, 50.0, "TopRank"), TASK)
    assert values[1:4] == pytest.approx([0, 0.5, 1])
    assert values[0] < 0
    assert (np.diff(values) >= 0).all()
    assert values[5] == values[6] == values[7]  # below the loss of one session of random lists
    safety = TASK._replace(measure="violations", horizon=100_000)
    none, some = score([0.0, 900.0], Anchor(90_000.0, 0.0, "BubbleRank"), safety)
    assert none == pytest.approx(1)
    assert some == pytest.approx(np.log(90_100 / 1000) / np.log(90_100 / 100.9))


def made_tasks(n, users=None):
    users = users or [f"uniform:seed={i}" for i in range(n)]
    return [TASK._replace(name=f"t{i}", instance=users[i]) for i in range(n)]


def test_interquartile_mean_over_tasks():
    """Of eight tasks the four in the middle; a task that was not played counts 0."""
    tasks = made_tasks(8)
    scores = {f"t{i}": np.array([i / 10, i / 10 + 0.2]) for i in range(1, 8)}
    summary = summarize(scores, tasks)
    assert summary.value == pytest.approx(np.mean([0.3, 0.4, 0.5, 0.6]))
    assert summary.worst_run == pytest.approx(np.mean([0.2, 0.3, 0.4, 0.5]))
    assert summary.low < summary.value < summary.high
    single = {name: values[:1] for name, values in scores.items()}
    assert np.isnan(summarize(single, tasks).low)


def test_bootstrap_draws_users_with_all_their_tasks():
    """If the tasks are of two users, good and bad, half of all replicates have a single user, so
    that the interval is from 0 to 1; with as many users as tasks it is narrower.
    """
    scores = {f"t{i}": np.full(3, float(i % 2)) for i in range(32)}
    together = summarize(scores, made_tasks(32, ["good", "bad"] * 16))
    apart = summarize(scores, made_tasks(32))
    assert (together.low, together.high) == (0.0, 1.0)
    assert 0.0 < apart.low < apart.value == 0.5 < apart.high < 1.0


def test_scores_leave_out_near_anchors():
    losses = {"t0": {"Random": 90.0, "A": 9.0, "B": 31.0}, "t1": {"Random": 90.0, "A": 40.0}}
    anchors = anchors_of(losses)
    assert anchors == {"t0": Anchor(90.0, 9.0, "A"), "t1": Anchor(90.0, 40.0, "A")}
    table = polars.DataFrame({"task": ["t0", "t0", "t1"], "run": [1, 0, 0], "loss": [9.0, 90, 1]})
    (scores,) = scores_of(table, anchors, made_tasks(2)).values()
    assert scores.tolist() == pytest.approx([0.0, 1.0], abs=1e-12)
    safety = TASK._replace(measure="violations", horizon=100_000)  # 100 violations are no matter
    assert is_scored(Anchor(300.0, 30.0, "A"), safety)
    assert not is_scored(Anchor(200.0, 20.0, "A"), safety)


# -------------------------------------------------------------------------------------------- board


def runs_of(names, n_runs, loss):
    table = polars.DataFrame({"task": names}).join(
        polars.DataFrame({"run": range(n_runs)}), how="cross"
    )
    return table.with_columns(loss=polars.lit(loss), seconds=polars.lit(0.1))


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A board of two agents, whose anchors are the same in every task."""
    rows = [(task.name, 1000.0, 10.0, "TopRank") for task in all_tasks()]
    table = polars.DataFrame(rows, ["task", "random", "best", "agent"], orient="row")
    write_results(tmp_path / "anchors.parquet", table, {})
    for agent, loss in {"TopRank": 10.0, "Random": 1000.0}.items():
        names = [task.name for task in all_tasks() if not task.has_features]
        save_line(tmp_path, agent, "", runs_of(names, 2, loss), {})
    monkeypatch.setattr(board, "DATA", tmp_path)
    board.anchors.cache_clear()
    board.published.cache_clear()
    yield tmp_path
    board.anchors.cache_clear()
    board.published.cache_clear()


@pytest.mark.usefixtures("small")
def test_board_has_the_best_first():
    header, *rows = board.board(board.published())
    assert tuple(header) == HEADER
    assert [row[0] for row in rows] == ["TopRank", "Random"]
    assert rows[0][2:5] == ["1.00", "1.00 to 1.00", "1.00"]
    assert board.board(board.published(), features=True) == [list(HEADER)]
    header, *rows = board.board(board.published(), ability="ties")
    assert {len(header), *map(len, rows)} == {len(HEADER) - 2}  # nothing is best or worst


@pytest.mark.usefixtures("small")
def test_recommended_agents_are_the_best_published():
    _, *rows = board.recommended()
    assert [row[0] for row in rows] == list(ABILITIES)
    best = ["TopRank", "1.00", "1.00", "", ""]
    assert all(row[1:] == best for row in rows if row[0] != "features")
    names = [task.name for task in all_tasks() if task.ability == "ties"]
    save_line(board.DATA, "PBMTS", "examination", runs_of(names, 2, 1.0), {})
    for other in ("mine:A", "TopRank:delta=0.1"):  # not published, and not with its defaults
        save_line(board.DATA, other, "", runs_of(names, 2, 0.1), {})
    board.published.cache_clear()
    [ties] = [row for row in board.recommended() if row[0] == "ties"]
    assert ties[1:] == ["TopRank", "1.00", "1.00", "PBMTS", "1.50"]


@pytest.mark.usefixtures("small")
def test_learners_have_a_score_for_each_task():
    first, second = quick_tasks()[:2]
    save_line(board.DATA, "PPO", "", runs_of([first.name, second.name], 3, 1.0), {})
    save_line(board.DATA, "A2C", "", runs_of([second.name], 3, 1000.0), {})
    board.published.cache_clear()
    assert board.learners() == [["task", "A2C", "PPO"], [second.name, "0.00", "1.50"]]


def test_networks_with_arguments_have_lines_and_unscored_tasks(small):
    """They set no anchor, so they may score more than 1, and lose little where no other agent does;
    learners have a table of their own.
    """
    names = [task.name for task in all_tasks() if task.has_features]
    anchors, _ = read_results(small / "anchors.parquet")
    near = polars.when(task="features-16").then(900.0).otherwise("best")
    write_results(small / "anchors.parquet", anchors.with_columns(best=near), {})
    board.anchors.cache_clear()
    for agent in ("NeuralGreedy:feedback=reward", "PPO"):
        save_line(small, agent, "features", runs_of(names, 2, 1.0), {})
    board.published.cache_clear()
    _, *rows = board.board(board.published(), features=True)
    assert rows[0][:3] == ["NeuralGreedy:feedback=reward", "features", "1.50"]
    header, row = board.unscored()
    assert header[-2:] == ["best without a network", "NeuralGreedy:feedback=reward"]
    assert row == ["features-16", "`personal:features=plain`", "PBM", "90 % (TopRank)", "0 %"]


@pytest.mark.usefixtures("small")
def test_partial_lines_have_no_overall_score():
    names = [task.name for task in quick_tasks()]
    line = line_of("A", "", runs_of(names, 1, 100.0))
    assert line.summary(board.scored_tasks()) is None
    assert board.board([line]) == [list(HEADER)]
    tasks = board.scored_tasks()[:6]
    for n, has_score in ((2, False), (3, True)):  # half of the tasks is enough
        line = board.Line("A", "", {task.name: np.ones(2) for task in tasks[:n]}, 0.0)
        assert (line.summary(tasks, intervals=False) is not None) == has_score


@pytest.mark.usefixtures("undrawn")
def test_bench_command(small, printed, tmp_path, monkeypatch, abilities):
    """An agent of one's own, in plain Python, from a module in the working folder, which adds an
    ability as well.
    """
    source = [
        "import numpy as np\nfrom clickgym.agents import Agent",
        "from clickgym_lab.bench.tasks import ABILITIES, Group",
        "ABILITIES['mine'] = [Group('a short run', ['CM'], ['yandex-9'], 1500, 100)]\n\n",
        inspect.getsource(Plain),
    ]
    (tmp_path / "mine.py").write_text("\n".join(source))
    shown = printed(["bench", "--ability", "ties"], 140)
    assert shown.index("TopRank") < shown.index("Random")
    monkeypatch.chdir(tmp_path)
    groups_of_memory = abilities["memory"]
    for name in abilities.keys() - {"early sessions", "warm start"}:
        del abilities[name]
    words = ["bench", "mine:Plain", "--quick", "--out", "out", "--jobs", "1"]
    text = printed(words, 120)
    assert "Scorecard of mine:Plain" in text
    assert "early sessions" in text
    assert re.search(r"early sessions +[\d.-]+ +TopRank 1.00", text)
    table, made = read_results(tmp_path / "out" / "mine%3APlain.parquet")
    assert table["task"].to_list() == ["early-sessions-02", "warm-start-12", "mine-01"]
    assert made["command"] == "clickgym bench mine:Plain --quick"
    assert printed(words, 120) == text
    assert "Not played" not in text
    knows = source[-1].replace(
        "class Plain(Agent):", "class Plain(Agent):\n    requires = {'k': 'mean_sessions'}"
    )
    knows = knows.replace("seed=None", "k, seed=None")
    (tmp_path / "knows.py").write_text("\n".join([source[0], knows]))
    abilities["memory"] = groups_of_memory
    shown = printed(["bench", "knows:Plain", "--quick", "--out", "knows", "--jobs", "1"], 120)
    assert "Not played, and scored 0 on the board: early sessions" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["TopRank"], "expected a folder: clickgym bench AGENT --out DIR"),
        (["--ability", "tie"], "ties"),
        (["Oracl", "--out", "x"], "Oracle"),
    ],
)
def test_bench_refuses(words, message, refused):
    assert message in refused(["bench", *words])


@pytest.mark.parametrize("agent", ["Random", *slow("CascadeTS")])
def test_shipped_line_comes_out_again(agent):
    assert replay(f"scorecard-{agent}") == []


def test_rows_of_a_pull_request_are_drawn(tmp_path, monkeypatch):
    """A changed file is a result of a study or an agent's; a foreign agent needs its
    module.
    """
    changed = ["lab/results/nonstat-fig1.parquet", "lab/results/nonstat-fig1.md"]
    changed += ["lab/src/clickgym_lab/bench/data/Random.parquet", "docs/rl.parquet"]
    assert names_of(changed) == ["nonstat-fig1", "scorecard-Random"]
    (tmp_path / "absent%3AAgent.parquet").touch()
    with pytest.raises(FileNotFoundError, match=r"there is no module 'absent' .* \(--folder\)"):
        replay_agent(tmp_path / "absent%3AAgent.parquet")


def test_planted_loss_is_found(tmp_path):
    """In the runs of the board, and in those of the anchors."""
    (tmp_path / "anchor_runs").mkdir()
    for place in ("Random", "anchor_runs/Random"):
        table, made = read_results(DATA / f"{place}.parquet")
        planted = polars.col("loss") * (1 + 1e-6 * (polars.col("run") == 0))
        write_results(tmp_path / f"{place}.parquet", table.with_columns(planted), made)
    first, second = replay_agent(tmp_path / "Random.parquet", n_tasks=1)
    assert first.split()[0] == second.split()[0]
    assert second.split()[1] == "(anchor_runs):"


def test_learners_are_compared_with_other_runs():
    """Of three runs with a mean of 10 and a deviation of 1 another lies within 36.5, t(2) at 99.9 %
    times the root of 4/3.
    """
    losses = np.array([9.0, 10.0, 11.0])
    assert not unlikely(losses, 10 + 36.4)
    assert unlikely(losses, 10 + 36.6)
    assert unlikely(losses, 10 - 36.6)


def test_anchors_are_those_of_their_runs():
    shipped, _ = read_results(DATA / "anchors.parquet")
    assert anchor_table(list(AGENTS)).equals(shipped)


@pytest.mark.parametrize(
    ("agent", "part"), [("NeuralGreedy", 0.5), ("NeuralGreedy:feedback=reward", 0.65)]
)
def test_a_network_on_the_scorecard(agent, part):
    """LinearTS has the higher scores with features, but in one task, where attraction is not linear
    in them. In tasks without a score the network loses less than a part of what the best agent
    without one loses.
    """
    lines = {line.agent: line.scores for line in board.published()}
    better = set()
    for task in board.scored_tasks(features=True):
        linear, network = (lines[name][task.name] for name in ("LinearTS", agent))
        assert network.max() < linear.min() or linear.max() < network.min()
        if linear.max() < network.min():
            better.add(task.name)
    assert better == {"features-26"}
    header, *rows = board.unscored()
    for row in rows:
        others, lost = (int(row[column].split()[0]) for column in (3, header.index(agent)))
        assert lost < part * others


def test_published_lines_are_small():
    assert sum(path.stat().st_size for path in DATA.iterdir()) < 1_500_000


KINDS = {
    "An ordinary query": "standard",
    "50 to 1,000 items": "large catalogues",
    "Few bad lists allowed": "safety",
    "What users like changes abruptly": "change",
    "Items have features": "features",
}
"""The ability of each row of the README; other rows are over all abilities but features."""


def test_scoreboard_of_the_readme():
    """Its rows are those of the board; a row over all abilities names the scores of the two worst,
    which its score leaves out.
    """
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    text = readme.partition("| Your situation |")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()[2:]]
    assert len(rows) == 7
    lines = {line.agent.rpartition(":")[2]: line for line in board.published()}
    for situation, take, *figures, weak in rows:
        line, ability = lines[re.match(r"\[?(\w+)", take)[1]], KINDS.get(situation)
        tasks = board.scored_tasks(ability == "features", ability)
        summary = line.summary(tasks, intervals=False)
        assert figures == [f"{summary.value:.2f}", f"{summary.worst_run:.2f}"]
        if ability is None:
            values = sorted(each.value for each in board.abilities(line, tasks).values())
            assert sorted(re.findall(r"\((\d\.\d\d)\)", weak)) == [f"{v:.2f}" for v in values[:2]]
