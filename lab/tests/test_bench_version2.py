"""The scorecard: its tasks, its statistics, its reference run from end to end on a few short tasks, cards and their folders."""

from __future__ import annotations

import itertools
import json
import math
import re
import shutil
import sys
from dataclasses import replace
from functools import partial
from importlib.metadata import version

import numpy as np
import polars
import pytest
import reseal as resealing
import scorecard as make
from polars import col

import clickgym
from clickgym.__main__ import main
from clickgym.agents import CascadeTS, TopRank
from clickgym.runner.make import make_agent, make_env
from clickgym_lab.bench import card as cards
from clickgym_lab.bench import figures, reference, tuned
from clickgym_lab.bench.anchors import Anchor
from clickgym_lab.bench.boards import boards_tables, source_link, table_html
from clickgym_lab.bench.equipment import Equipped, equipped, examination
from clickgym_lab.bench.leaderboard import cells_of, leaderboard
from clickgym_lab.bench.pages import leaderboard_html
from clickgym_lab.bench.play import blocks, play, play_one, suited
from clickgym_lab.bench.protocol import BESIDE, BY_FEATURES, CURRENT, DEVELOPMENT
from clickgym_lab.bench.reference import agent_of, machine
from clickgym_lab.bench.score import holm, pairs, scored, standing
from clickgym_lab.bench.submission import read_submission
from clickgym_lab.bench.task_set import GROUPS, Group, Place, task_set
from clickgym_lab.production import EXCHANGED, log_of_production
from clickgym_lab.shipped import read_shipped, stale, write_shipped

ABILITIES = CURRENT.abilities

# --------------------------------------------------------------------------------------------------------------- the tasks


def test_the_test_set_is_frozen():
    """A change of a task, of its users, of its horizon or of its production ranking makes version 4."""
    assert CURRENT.fingerprint == CURRENT.frozen


def test_the_tasks_of_version_2_are_as_they_were():
    """Its fingerprint, which its results name."""
    assert replace(CURRENT, version=2).fingerprint == CURRENT.extends


def test_every_ability_has_enough_tasks_and_instances():
    for ability in ABILITIES:
        own = [task for task in CURRENT.candidates if task.ability == ability]
        assert len(own) >= (12 if own[0].since == 3 else 16), ability
        assert len({task.query for task in own}) >= 8, ability
        assert len({task.horizon for task in own}) == 1, ability
    safety = [task for task in CURRENT.candidates if task.ability == "safety"]
    assert len({task.query for task in safety}) >= 12
    assert len({task.click_model for task in safety}) >= 3


def test_each_task_has_a_name_and_a_sentence_of_its_own():
    assert len(CURRENT.by_name) == len(CURRENT.candidates) + len(CURRENT.added)
    assert list(dict.fromkeys(task.ability for task in CURRENT.candidates)) == list(ABILITIES)
    assert all(f"{task.horizon:,}" in task.about and "{" not in task.about for task in CURRENT.candidates)


def test_sets_are_made_by_their_seed_and_share_nothing():
    assert task_set(7, real=False) == task_set(7, real=False)
    secret, tests = task_set(7, real=False), (*CURRENT.make_tasks(),)
    assert [task.name for task in secret] == [task.name for task in tests]
    instances = [{task.instance for task in tasks} for tasks in (secret, tests, DEVELOPMENT.candidates)]
    assert all(one.isdisjoint(other) for one, other in itertools.combinations(instances, 2))
    assert not any("yandex-9" in task.instance for task in DEVELOPMENT.candidates)
    assert sum("yandex-9" in task.instance for task in tests) > 100


def test_every_development_task_can_be_made():
    assert all(task.make().action_space for task in DEVELOPMENT.candidates[::9])


def test_the_quick_tasks_are_few_enough_for_plain_python():
    quick = [task for task in CURRENT.candidates if task.quick]
    assert {task.ability for task in quick} == set(ABILITIES) - set(BESIDE)
    assert CURRENT.quick_runs * sum(task.horizon for task in quick) <= 3.5e6


def test_blocks_are_of_one_ability_horizon_measure_and_log():
    for block in blocks(CURRENT.candidates).values():
        assert len({(task.ability, task.horizon, task.measure, task.log) for task in block}) == 1


def test_steps_are_spaced_by_logarithm_and_contain_the_stages():
    for task in CURRENT.candidates:
        steps = CURRENT.checkpoints(task.horizon)
        assert set(CURRENT.stages(task)) <= set(steps)
        assert len(steps) <= (25 if task.horizon == 1_000_000 else 20)
        assert steps[-1] == task.horizon


def test_agents_play_what_they_are_made_for():
    some = [task for task in CURRENT.candidates if task.quick]
    own = {
        agent: {task.ability for task in suited(agent, some)}
        for agent in ("TopRank", "PBMUCB", "CMLinUCB", "CascadeVI", "Random", "PPO", "A2C:actions=codes", "DQN")
    }
    without = set(ABILITIES) - {*BY_FEATURES, *BESIDE}
    assert own["TopRank"] == without
    assert own["PBMUCB"] == without - {"memory"}
    assert own["CMLinUCB"] == set(BY_FEATURES)
    assert own["PPO"] == own["Random"] - {"change", "drift"}  # by rankings, its first actions; users who change it cannot play
    assert set(BY_FEATURES).isdisjoint(own["A2C:actions=codes"] | own["DQN"])
    assert own["CascadeVI"] == {"memory"}
    assert own["Random"] == set(ABILITIES) - set(BESIDE)
    assert {task.ability for task in suited("RecurRank", CURRENT.candidates)} == {"contextual"}


def test_agents_of_plain_python_skip_what_they_cannot_learn_from():
    late, early = CURRENT.by_name["late-01"], CURRENT.by_name["churn-01"]
    assert suited(Plain, [late, early]) == [early]


class Plain(clickgym.agents.Agent):
    """Shows the first items."""

    def __init__(self, n_items, n_positions, *, seed=None):
        self.ranking = np.arange(n_positions)

    def rank(self, observation):
        return self.ranking.copy()

    def update(self, observation, ranking, clicks, reward):
        pass


# ------------------------------------------------------------------------------------------------------- what agents are given


def test_examination_probabilities_are_those_that_make_agent_gives_where_it_can():
    env = make_env("CMRank-v0", "yandex-9")
    given = make_agent("PBMUCB", env, seed=0).filled_in["examination"]
    np.testing.assert_array_equal(examination(env.unwrapped.model, env.unwrapped.initial_ranking), given)
    weights = examination(make_env("PBMRank-v0", "uniform:seed=1").unwrapped.model, None)
    np.testing.assert_array_equal(weights, make_env("PBMRank-v0", "uniform:seed=1").unwrapped.model.examination)


def test_without_a_production_ranking_they_are_means_over_random_lists():
    """Against the exact mean over all lists of 2 of 4 items; 200 lists come within 0.1 at far beyond three deviations."""
    model = make_env("CMRank-v0", "uniform:n_items=4,n_positions=2,seed=1").unwrapped.model
    exact = np.mean([model.examination_probabilities(np.array(each)) for each in itertools.permutations(range(4), 2)], axis=0)
    np.testing.assert_allclose(examination(model, None), exact, atol=0.1)


def test_a_log_is_of_the_production_ranking_with_exchanges_and_clicks_by_the_model():
    """Shares of 20,000 sessions, whose standard deviations are below 0.004; ± 0.02 is beyond five of them."""
    env = make_env("PBMRank-v0", "yandex-9:shuffle=3").unwrapped
    log = log_of_production(env.model, env.initial_ranking, 20_000, seed=0)
    production = (log.rankings == env.initial_ranking[:5]).all(axis=1)
    others = EXCHANGED * (1 - 5 * 4 / (10 * 9))  # of the pairs that are exchanged, those outside the list change nothing
    assert production.mean() == pytest.approx(1 - others, abs=0.02)
    expected = env.model.attraction[env.initial_ranking[:5]] * env.model.examination
    np.testing.assert_allclose(log.clicks[production].mean(axis=0), expected, atol=0.02)
    assert all(len(set(ranking)) == 5 for ranking in log.rankings[:100].tolist())


def test_who_learns_from_any_list_has_learned_the_log_and_others_begin_as_ever():
    task = CURRENT.by_name["warm_start-02"]
    env = task.make()
    learned = make_agent(equipped("CascadeTS", task), env, horizon=task.horizon, seed=5)
    assert learned.display == task.log
    again = make_agent(equipped("CascadeTS", task), env, horizon=task.horizon, seed=5)
    np.testing.assert_array_equal(learned.state.examined, again.state.examined)
    other = make_agent(equipped("CascadeTS", task), env, horizon=task.horizon, seed=6)
    assert (other.state.examined != learned.state.examined).any()
    plain = make_agent(equipped("TopRank", task), env, horizon=task.horizon, seed=5)
    assert plain.display == 0
    assert plain.hyperparameters == TopRank(10, 5, horizon=task.horizon, seed=5).hyperparameters


def test_an_agent_is_equipped_only_where_it_needs_it():
    plain, log = CURRENT.by_name["standard-01"], CURRENT.by_name["warm_start-01"]
    assert equipped("CascadeTS", plain) == "CascadeTS"
    assert isinstance(equipped("CascadeTS", log), Equipped)
    assert isinstance(equipped("PBMUCB", plain), Equipped)
    assert equipped("PBMUCB:examination=[1,1,1,1,1]", plain) == "PBMUCB:examination=[1,1,1,1,1]"


# ------------------------------------------------------------------------------------------------------------- what ships


def test_the_results_that_ship_are_those_of_this_version():
    """Names what has changed since; the command beside it makes the results anew."""
    assert stale([each for file in CURRENT.data.glob("*.parquet") for each in read_shipped(file)]) == []


def test_every_agent_that_was_played_is_a_published_one_and_all_are_small():
    """An agent that came since has no file until it is played."""
    files = {file.stem: file.stat().st_size for file in CURRENT.data.glob("*.parquet")}
    assert set(files) <= {agent_of(name) for name in make.PLAYERS}
    assert "MixTS" in files
    assert sum(files.values()) < 6_000_000


# -------------------------------------------------------------------------------------------------------------- the scores


def test_one_bad_list_among_all_is_a_small_part_of_the_score():
    anchor = Anchor(60_000.0, 0.0, "Fixed", 100_000, allowance=100.0)
    scores = anchor.score(np.array([0.0, 1.0, 100.0, 60_000.0]))
    assert scores[0] - scores[1] < 0.01
    assert scores[2] > 0.85
    assert scores[3] == 0
    assert CURRENT.by_name["safety-01"].allowance == CURRENT.by_name["safety-01"].horizon / 1000


def test_holm_is_the_closed_test_of_bonferroni():
    """A hypothesis is rejected at a level if every set of hypotheses with it is, by its smallest p-value."""
    p = np.array([0.001, 0.04, 0.02, 0.3])
    expected = [
        max(
            min(1.0, len(own) * min(p[list(own)]))
            for n in range(1, 5)
            for own in itertools.combinations(range(4), n)
            if i in own
        )
        for i in range(4)
    ]
    np.testing.assert_allclose(holm(p), expected)


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """The protocol and its development set with a few short tasks, and an empty folder."""
    data = tmp_path_factory.mktemp("data")
    names = ("standard-01", "standard-02", "safety-01", "cold_start-01", "late-01", "warm_start-01", "contextual-01")

    def few(whole, names=None):
        tasks = [task for task in whole.candidates if names is None or task.name in names]
        tasks = [task._replace(horizon=min(task.horizon, 6000 if task.ability == "late" else 2000)) for task in tasks]
        return replace(whole, data=data, frozen="", runs=3, make_tasks=lambda: tuple(tasks))

    return few(CURRENT, names), few(DEVELOPMENT)


@pytest.fixture(scope="module")
def made(short, tmp_path_factory):
    """A reference run of a few agents, tuned on two development tasks of 200 sessions."""
    out = tmp_path_factory.mktemp("reference")
    agents = ["Random", "CascadeKLUCB", "CascadeTS", "Fixed", "PBMUCB", "CMLinUCB"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuned, "HORIZON", 200)
        patch.setattr(tuned, "development_tasks", lambda whole, board: two_tasks(whole, board))
        run = partial(make.make, *short, out, agents=agents, budget=30_000, jobs=1)
        run()
        before = {file: file.read_bytes() for file in sorted(short[0].data.iterdir())}
        run()
    assert {file: file.read_bytes() for file in sorted(short[0].data.iterdir())} == before
    return short[0]


def two_tasks(whole, board):
    return [whole.by_name[f"{ability}-0{n}"] for ability in board.abilities[:1] for n in (1, 2)]


def test_the_reference_run_writes_a_file_for_each_agent_anchors_and_a_card(made):
    names = {file.name for file in made.data.iterdir()}
    agents = ("Random", "CascadeKLUCB", "CascadeTS", "Fixed", "PBMUCB", "CMLinUCB")
    assert names == {"anchors.json", "README.md", *(f"{agent}.parquet" for agent in agents)}
    anchors = json.loads((made.data / "anchors.json").read_text())
    assert set(anchors) == {task.name for task in made.candidates}
    assert list(anchors["standard-01"]) == ["1000", "2000"]
    assert all(
        best[2] != "Fixed" for name, stages in anchors.items() for best in stages.values() if not name.startswith("safety")
    )
    assert made.fingerprint in (made.data / "README.md").read_text()


def test_published_and_tuned_lines_stand_on_the_board(made):
    lines = reference.lines(made)
    assert {"CascadeKLUCB", "Random", "PBMUCB"} <= set(lines)
    changed = [line for name, line in lines.items() if name.endswith(", tuned")]
    assert changed
    for line in changed:
        assert " from " in line.changes
        assert line.tuning["score"] < line.tuning["default_score"]
        assert 0 < line.tuning["sessions"] <= 30_000
    assert lines["CascadeKLUCB"].changes == ""


def test_boards_hold_those_who_may_know_the_same(made):
    agents = {board.name: {place.agent.partition(",")[0] for place in leaderboard(made, board)} for board in made.boards}
    assert agents["no extra knowledge"] == {"Random", "CascadeKLUCB", "CascadeTS", "Fixed"}
    assert agents["extra knowledge"] == {"PBMUCB"}
    assert agents["features"] == {"CMLinUCB", "Random"}
    assert agents["memory"] == set()


def test_a_row_has_a_cell_for_each_head_and_a_dash_for_what_was_not_played(made):
    board = made.boards[0]
    rows = {place.agent: cells_of(place, made, board) for place in leaderboard(made, board)}
    assert abs(float(rows["Random"]["late"])) < 0.05
    assert rows["Random"]["small gaps"] == "–"
    assert rows["CascadeKLUCB"]["regret"] == "1 ×"
    assert rows["Random"]["place"].endswith(str(len(rows)))
    assert rows["Random"]["bad run"] == "–"  # of three runs


def test_boards_at_fewer_sessions_have_scores_of_their_own(made):
    end, early = ({place.agent: place for place in leaderboard(made, made.boards[0], stage)} for stage in (None, 1000))
    assert set(end) == set(early)
    assert end["CascadeTS"].standing.abilities["standard"] != early["CascadeTS"].standing.abilities["standard"]
    assert end["CascadeTS"].standing.abilities["cold_start"] == early["CascadeTS"].standing.abilities["cold_start"]


def test_what_is_absent_counts_0(made):
    rows = reference.reference(made).filter(agent="CascadeTS")
    whole = standing(rows, made, made.boards[0])
    lacks = standing(rows.filter(col("ability") != "late"), made, made.boards[0])
    n = len({task.ability for task in made.tasks()} & set(made.boards[0].abilities))
    assert lacks.overall.value == pytest.approx(whole.overall.value - whole.abilities["late"].value / n)
    assert "late" not in lacks.abilities
    half = standing(rows.filter(col("task") != "standard-01"), made, made.boards[0])
    of_task = rows.filter(task="standard-02")["score"].mean()
    assert half.abilities["standard"].value == pytest.approx(of_task / 2)
    assert lacks.worst == 0
    assert whole.worst == pytest.approx(
        min(rows.filter(col("ability") != "contextual").group_by("task").agg(col("score").mean())["score"])
    )
    assert set(whole.models) == {"CM", "PBM"}


def test_pairs_are_over_common_tasks_and_have_the_intervals_of_instances_and_runs(made):
    table = reference.reference(made)
    tables = {name: table.filter(agent=name) for name in ("CascadeTS", "Random", "Fixed")}
    found = pairs(tables, made, made.boards[0])
    assert list(found) == [("CascadeTS", "Random"), ("CascadeTS", "Fixed"), ("Random", "Fixed")]
    common = set(tables["CascadeTS"]["task"]) & set(tables["Fixed"]["task"])
    assert found["CascadeTS", "Fixed"].n_tasks == len(common) < len(made.tasks())
    means = {
        name: np.mean(
            rows.filter(col("task").is_in(common))
            .group_by("ability", "task")
            .agg(col("score").mean())
            .group_by("ability")
            .agg(col("score").mean())["score"]
            .to_numpy()
        )
        for name, rows in tables.items()
    }
    difference = found["CascadeTS", "Fixed"].difference
    assert difference.value == pytest.approx(means["CascadeTS"] - means["Fixed"])
    assert difference.low < difference.value < difference.high
    assert found["CascadeTS", "Random"].p < 0.001


def test_equal_lines_are_tied(made):
    rows = reference.reference(made).filter(agent="CascadeTS")
    found = pairs({"one": rows, "other": rows}, made, made.boards[0])
    assert found["one", "other"].p == 1
    assert found["one", "other"].difference.value == 0


def test_seeds_hang_on_task_and_run_and_not_on_the_name(made, tmp_path):
    tasks = [made.by_name[name] for name in ("standard-01", "warm_start-01")]
    one, other = (play(made, name, CascadeTS, tasks, 2, tmp_path / name, n_jobs=1) for name in ("One", "Other"))
    assert one.drop("agent", "seconds").equals(other.drop("agent", "seconds"))
    runs = one.filter(step=2000, task="standard-01")["loss"]
    assert runs[0] != runs[1]


def test_a_run_comes_out_again_alone(made):
    """As a judge plays it: with late clicks, a log, and examination probabilities."""
    table = reference.curves_of(made).filter(step=col("horizon"))
    for agent, name in (("CascadeTS", "late-01"), ("CascadeTS", "warm_start-01"), ("PBMUCB", "standard-02")):
        [loss] = table.filter(agent=agent, task=name, run=1)["loss"]
        assert np.float32(play_one(made, agent, made.by_name[name], 1)) == np.float32(loss)


def test_curves_are_right_to_two_per_mille_and_exact_at_stages(made, tmp_path):
    task = made.by_name["standard-01"]
    exact = play(made, "CascadeTS", "CascadeTS", [task], 3, tmp_path, n_jobs=1)
    kept = reference.curves_of(made).filter(task=task.name, agent="CascadeTS")
    both = kept.join(exact, on=["run", "step"], suffix="_exact").filter(col("regret_exact") > 0)
    off = (both["regret"] / both["regret_exact"] - 1).abs()
    assert 0.0005 < off.max() <= 0.002
    ends = both.filter(col("step").is_in(made.stages(task)))
    assert (ends["regret"] == ends["regret_exact"].cast(polars.Float32).cast(polars.Float64)).all()


@pytest.fixture
def current(made, short, monkeypatch):
    """The short protocol in the place of the current one."""
    monkeypatch.setattr(cards, "CURRENT", made)
    for module in (reference, figures):
        monkeypatch.setattr(module, "CURRENT", made)
    monkeypatch.setattr(cards, "DEVELOPMENT", short[1])
    return made


def test_baselines_are_results(current, tmp_path):
    results = clickgym.baselines("standard", ["CascadeTS", "Random"])
    assert isinstance(results, clickgym.Results)
    assert results.config["envs"] == ["CMRank-v0", "PBMRank-v0"]
    assert results.table().filter(env="CMRank-v0")["agent"].to_list() == ["CascadeTS", "Random"]
    assert results.pairwise()["differ"].to_list() == [True, True]
    assert "–" in results._repr_html_()
    results.plot(tmp_path / "standard.svg")
    with pytest.raises(ValueError, match="did you mean 'standard'"):
        clickgym.baselines("standart")
    with pytest.raises(ValueError, match="did you mean 'CascadeTS'"):
        clickgym.baselines("standard", ["CascadeTs"])


def test_results_read_the_file_of_an_agent(current):
    results = clickgym.Results(current.data / "CascadeTS.parquet").select(environments=["late-01"])
    assert results.config["checkpoints"][-2:] == [3981, 6000]
    assert results.frame["reward"].null_count() == len(results.frame)


def test_the_command_draws_an_ability(current, tmp_path, capsys):
    assert main(["bench", "--plot", "late", "--out", str(tmp_path / "late.pdf")]) == 0
    assert (tmp_path / "late.pdf").read_bytes().startswith(b"%PDF")
    for words, message in (
        (["--plot", "late"], "--plot needs --out FILE, and takes no other option"),
        (["--plot", "lat", "--out", "x.pdf"], "did you mean 'late'"),
        (["TopRank", "--plot", "late", "--out", "x.pdf"], "--plot needs --out FILE, and takes no other option"),
    ):
        assert main(["bench", *words]) == 2
        assert message in capsys.readouterr().err


def test_a_newcomer_has_a_card_that_is_verified(current, tmp_path):
    card = clickgym.bench({"mine": "CascadeTS"}, out=tmp_path / "mine", n_jobs=1)
    assert card.board is current.boards[0]
    assert set(card.table["step"]) == {1000, 2000, 6000}
    [same] = [each for each in card.comparisons if each.agent == "CascadeTS"]
    assert same.improvement.value == 0.5
    assert same.pair.p == 1
    [random] = [each for each in card.comparisons if each.agent == "Random"]
    assert random.pair.p < 0.05
    assert card.standing.overall.value == pytest.approx(
        next(place for place in leaderboard(current, card.board) if place.agent == "CascadeTS").standing.overall.value
    )
    assert "mine scores" in card.summary[0]
    card.save(tmp_path)
    assert read_submission(tmp_path / "mine", current).agent == "mine"


# ------------------------------------------------------------------------------------------------------ tasks that are added


@pytest.fixture(scope="module")
def grown(made, short, tmp_path_factory):
    """The reference of ``made``, to which a task of ``standard`` was added: it is played, and nothing else is played again."""
    toy = made.by_name["standard-02"]._replace(name="standard-99", about="A toy", since=4)
    data, out = tmp_path_factory.mktemp("grown") / "data", tmp_path_factory.mktemp("out")
    shutil.copytree(made.data, data)
    more = replace(made, data=data, make_tasks=lambda: (*made.candidates, toy._replace(quick=True)))
    agents = [file.stem for file in data.glob("*.parquet")]
    for _ in range(2):  # the second finds everything there
        make.make(more, short[1], out, agents=agents, budget=30_000, jobs=1, anchors=True)
    assert {folder.name for folder in (out / "published" / "CascadeTS").iterdir()} == {"standard-99"}
    return more


def test_a_task_that_is_added_is_scored_as_a_column_and_changes_no_other_score(made, grown):
    assert grown.fingerprint == made.fingerprint
    assert (grown.data / "anchors.json").read_bytes() == (made.data / "anchors.json").read_bytes()
    assert list(json.loads((grown.data / "added.json").read_text())) == ["standard-99"]
    board = made.boards[0]
    assert list(grown.columns(board)) == [*made.columns(board), "standard-99"]
    assert "standard-99" not in grown.columns(made.boards[2])
    for before, after in zip(leaderboard(made, board), leaderboard(grown, board), strict=True):
        scores = dict(after.standing.abilities)
        assert 0 <= scores.pop("standard-99").value < 2 or before.agent == "Random"
        early = {step: place.standing.overall for step, place in after.early.items()}
        assert early == {step: place.standing.overall for step, place in before.early.items()}
        assert after._replace(standing=after.standing._replace(abilities=scores), early={}) == before._replace(early={})
        row = cells_of(after, grown, board)
        assert row["standard-99"] == f"{after.standing.abilities['standard-99'].value:z.2f}"
    assert "standard-99" in leaderboard_html(grown)


def test_a_card_shows_a_task_that_was_added(grown, made, tmp_path, monkeypatch):
    cards_of = {}
    for protocol in (made, grown):
        monkeypatch.setattr(cards, "CURRENT", protocol)
        cards_of[protocol] = clickgym.bench({"mine": "CascadeKLUCB"}, out=tmp_path / str(len(cards_of)), n_jobs=1)
    before, after = cards_of.values()
    assert after.n_tasks("standard-99") == 1
    assert after.standing.overall == before.standing.overall
    assert after.standing.n_tasks == before.standing.n_tasks
    assert after.comparisons == before.comparisons
    assert after.summary == before.summary
    assert "standard-99" in after.to_html()
    assert "standard-99" in after._repr_html_()
    tables = [read_submission(tmp_path / name, made).table.drop("seconds") for name in "01"]
    assert tables[0].equals(tables[1])


def test_curves_of_a_task_that_was_added_are_drawn_by_its_name(grown, monkeypatch):
    for module in (reference, figures):
        monkeypatch.setattr(module, "CURRENT", grown)
    assert clickgym.baselines("standard-99", ["CascadeTS"]).frame["instance"].unique().to_list() == ["standard-99"]
    assert "standard-99" not in clickgym.baselines("standard").frame["instance"].to_list()
    figures.curves_figure("standard-99")


def test_a_group_that_is_added_leaves_the_frozen_tasks_as_they_are(monkeypatch):
    toy = Group("churn", ("CM", "PBM"), [Place("{query}", "churn=0.01")], "A toy under the {model}", 1000, since=4)
    before = CURRENT.added
    monkeypatch.setattr("clickgym_lab.bench.task_set.GROUPS", (*GROUPS, toy))
    grown = replace(CURRENT)
    assert grown.candidates == CURRENT.candidates
    assert [task.about for task in grown.added if task not in before] == ["A toy under the CM", "A toy under the PBM"]
    assert grown.tasks() == CURRENT.tasks()


def test_the_next_version_counts_a_task_that_was_added(grown):
    following = replace(grown, version=4)
    assert following.added == ()
    assert following.by_name["standard-99"].ability == "standard"
    assert following.fingerprint != grown.fingerprint


# --------------------------------------------------------------------------------------------------- a newcomer, and its folder


@pytest.fixture(scope="module")
def submitted(made, tmp_path_factory):
    """The folder of an agent of one's own, made by the command."""
    folder = tmp_path_factory.mktemp("submitted")
    (folder / "newcomer.py").write_text("from clickgym.agents import CascadeTS\n\n\nclass Mine(CascadeTS):\n    pass\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cards, "CURRENT", made)
        patch.chdir(folder)
        assert main(["bench", "newcomer:Mine", "--quick", "--out", "mine"]) == 0
    return folder


def test_the_command_writes_the_card(submitted, made):
    page = (submitted / "mine" / "scorecard.html").read_text(encoding="utf-8")
    text = (submitted / "mine" / "scorecard.md").read_text(encoding="utf-8")
    for part in (page, text):
        assert "newcomer:Mine" in part
        assert "CascadeKLUCB" in part
        assert "clickgym bench newcomer:Mine --quick" in part
    assert "http" not in page.replace("http-equiv", "").replace("url = {https://", "")  # the address in the entry to cite
    config = json.loads((submitted / "mine" / "bench.json").read_text(encoding="utf-8"))
    assert config["fingerprint"] == made.fingerprint


@pytest.mark.usefixtures("current")
def test_a_folder_is_gone_on_with(submitted, monkeypatch, capsys):
    monkeypatch.chdir(submitted)
    before = {file: file.stat().st_mtime_ns for file in (submitted / "mine" / "plays").rglob("cells/*.parquet")}
    assert main(["bench", "newcomer:Mine", "--quick", "--out", "mine"]) == 0
    assert {file: file.stat().st_mtime_ns for file in (submitted / "mine" / "plays").rglob("cells/*.parquet")} == before
    assert "newcomer:Mine scores" in capsys.readouterr().out


@pytest.mark.usefixtures("current")
def test_a_finished_folder_stays_whole_where_its_agent_has_changed(submitted, made, tmp_path, monkeypatch, capsys):
    shutil.copytree(submitted / "mine", tmp_path / "mine")
    (tmp_path / "newcomer.py").write_text("from clickgym.agents import CascadeUCB1\n\n\nclass Mine(CascadeUCB1):\n    pass\n")
    before = read_submission(tmp_path / "mine", made).table
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "newcomer")
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["bench", "newcomer:Mine", "--quick", "--out", "mine"]) == 2
    assert "holds results of another configuration" in capsys.readouterr().err
    assert read_submission(tmp_path / "mine", made).table.equals(before)


@pytest.mark.usefixtures("current")
def test_a_folder_of_another_agent_or_version_is_refused(submitted, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(submitted)
    assert main(["bench", "TopRank", "--quick", "--out", "mine"]) == 2
    assert "holds a scorecard of agent 'newcomer:Mine', not 'TopRank'" in capsys.readouterr().err
    elsewhere("mine", tmp_path / "old", protocol=1)
    assert main(["bench", "newcomer:Mine", "--quick", "--out", str(tmp_path / "old")]) == 2
    assert "old holds a scorecard of protocol 1, not 3; choose another folder" in capsys.readouterr().err
    with pytest.raises(ValueError, match="is of version 1 of the scorecard, which is closed; expected results of version 3"):
        read_submission(tmp_path / "old")


def elsewhere(folder, to, **changes):
    """The folder as if another machine had made it."""
    shutil.copytree(folder, to)
    config = json.loads((to / "bench.json").read_text(encoding="utf-8"))
    (to / "bench.json").write_text(json.dumps(config | {"machines": ["another"]} | changes))
    return to


def test_every_machine_and_version_that_had_a_part_is_known(submitted, current, tmp_path, monkeypatch):
    """Also where the last call played nothing, or one sweep was made by other versions."""
    monkeypatch.chdir(submitted)
    folder = elsewhere("mine", tmp_path / "parts", finished=[])
    config = next((folder / "plays").glob("*/config.json"))
    before = json.loads(config.read_text(encoding="utf-8"))
    clickgym.bench("newcomer:Mine", out=folder, quick=True)
    made = read_submission(folder, current).made
    assert {value for name, value in made if name == "machine"} == {"another", machine()}
    clickgym.bench("newcomer:Mine", out=elsewhere("mine", tmp_path / "read"), quick=True)
    assert ("machine", machine()) not in read_submission(tmp_path / "read", current).made
    [part] = before["parts"]
    before["parts"] = [part | {"versions": part["versions"] | {"numpy": "1.0"}}, part]
    before.pop("checksum")
    config.write_text(json.dumps(before))
    assert {value for name, value in read_submission(folder, current).made if name == "numpy"} == {"1.0", version("numpy")}


def test_a_folder_that_is_none_or_unfinished_is_said_to_be(tmp_path, capsys):
    with pytest.raises(ValueError, match=r"holds no bench\.json; expected a folder that clickgym bench --out wrote"):
        read_submission(tmp_path)
    for content, message in (("{", "bench.json is not JSON"), ("[]", "holds a list; expected a JSON object")):
        (tmp_path / "bench.json").write_text(content)
        with pytest.raises(ValueError, match=message):
            read_submission(tmp_path)
        assert main(["bench", "TopRank", "--quick", "--out", str(tmp_path)]) == 2
        assert message in capsys.readouterr().err
    (tmp_path / "bench.json").write_text('{"agent": "TopRank"}')
    with pytest.raises(ValueError, match="is unfinished; the same clickgym bench 'TopRank'"):
        read_submission(tmp_path)


def test_bad_words_are_refused(capsys):
    for words, message in (
        (["bench"], "expected an agent and a folder"),
        (["bench", "TopRank"], "expected an agent and a folder"),
        (["bench", "TopRank", "--unconfined", "--out", "x"], "--unconfined is only for --judge"),
        (["bench", "TopRnk", "--out", "x"], "did you mean 'TopRank'"),
    ):
        assert main(words) == 2
        assert message in capsys.readouterr().err


def test_a_mapping_names_the_agent_and_only_one_is_played():
    with pytest.raises(ValueError, match="one agent is played at a time, got a, b"):
        clickgym.bench({"a": TopRank, "b": TopRank})


def test_click_models_are_known_in_every_list_of_them(current):
    card = clickgym.bench("CascadeKLUCB", quick=True, n_jobs=1)
    rows = polars.DataFrame({"ability": ["misspecified"] * 2, "env": ["CMRank-v0", "PBMRank-v0"], "score": [0.75, 0.25]})
    assert replace(card, table=rows).by_click_model() == (0.75, 0.25)
    assert "<table>" in card._repr_html_()
    assert "CascadeKLUCB scores" in repr(card)
    assert card.place.standing.n_tasks == len(set(card.table["task"]))


def test_an_agent_that_nobody_can_type_is_passed_in_python(mine):
    card = replace(mine[0], quick=True)
    assert card.command == "clickgym.bench({'mi_ne': agent}, quick=True, out=DIR)"
    assert replace(card, agent="__main__:Mine").command == "clickgym.bench(agent, quick=True, out=DIR)"


# ------------------------------------------------------------------------------------------------------------ for a paper


@pytest.fixture(scope="module")
def mine(made, tmp_path_factory):
    """A card, and its folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cards, "CURRENT", made)
        folder = tmp_path_factory.mktemp("card")
        card = clickgym.bench({"mi_ne": "CascadeTS"}, n_jobs=1)
        card.save(folder, ["Random", "PBMUCB"])
        return card, folder


def test_the_page_of_a_card_has_curves_click_models_worst_tasks_and_both_settings(mine, made, current):
    card, folder = mine
    page = (folder / "scorecard.html").read_text(encoding="utf-8")
    assert page.count("data:image/svg+xml;base64,") == 1
    for model, score in card.standing.models.items():
        assert re.search(rf'<th scope="row">{model}</th>.*?{score:z.2f}', page, flags=re.DOTALL)
    assert f"it scores {card.standing.worst:z.2f}; tasks that it does not play count 0" in page
    [line] = [place for place in leaderboard(made, card.board) if place.agent == "CascadeTS"]
    assert card.place.number == line.number
    assert card.place.ratio == pytest.approx(line.ratio, rel=1e-6)  # curves that ship have single precision
    assert "CascadeTS" in card.place.tied
    named = clickgym.bench("CascadeKLUCB", n_jobs=1)
    assert dict(line[::2] for line in named.settings) == {
        name: line.changes or "as published" for name, line in reference.lines(made).items() if name.startswith("CascadeKLUCB")
    }


def test_the_worst_tasks_are_a_tenth_of_those_of_the_board(mine):
    card, _ = mine
    scores = [row[-1] for row in card.of_tasks if row[0] in card.board.abilities]
    assert [row[-1] for row in card.worst] == sorted(scores)[: math.ceil(0.1 * len(scores))]


def test_the_latex_table_has_the_card_beside_the_baselines_that_were_named(mine, made):
    card, folder = mine
    text = (folder / "scorecard.tex").read_text(encoding="utf-8")
    rows = [line.removesuffix(r" \\").split(" & ") for line in text.splitlines() if " & " in line]
    assert rows[0] == ["ability", r"mi\_ne", "Random", "PBMUCB"]
    assert {len(row) for row in rows} == {4}
    own = reference.reference(made).filter(agent="PBMUCB")
    expected = [f"{each.overall.value:z.2f}" for each in (card.standing, standing(own, made, card.board))]
    [overall] = [row for row in rows if row[0] == "overall"]
    assert overall[1::2] == expected
    assert made.fingerprint in text
    with pytest.raises(ValueError, match="did you mean 'PBMUCB'"):
        card.to_latex(["PBMUBC"])
    assert "CascadeKLUCB" in card.to_latex()  # one of those that lead the board


def test_the_entry_and_the_sentence_name_version_and_fingerprint(mine, made):
    card, folder = mine
    entry = (folder / "scorecard.bib").read_text(encoding="utf-8")
    assert entry.startswith("@misc{clickgym-scorecard-3,")
    assert entry.count("{") == entry.count("}")
    for text in (entry, card.sentence):
        assert made.fingerprint in text
        assert "version 3" in text
    assert str(card.standing.overall) in card.sentence
    assert card.sentence in (folder / "scorecard.md").read_text(encoding="utf-8")


def test_a_line_beside_that_there_is_not_is_refused_before_anything_is_played(current, tmp_path, capsys):
    words = ["bench", "CascadeTS", "--out", str(tmp_path / "mine"), "--beside", "Radom"]
    assert main(words) == 2
    assert "did you mean 'Random'" in capsys.readouterr().err
    assert not (tmp_path / "mine").exists()


def test_the_page_of_the_boards_has_every_line_with_its_link_and_scores_at_each_stage(made):
    page = leaderboard_html(made)
    tables = boards_tables(made)
    assert [table.board.name for table in tables][:3] == ["no extra knowledge", "extra knowledge", "features"]
    for place in tables[0].places:
        name = place.agent.partition(",")[0]
        assert f'<a href="{source_link(name)}">{name}</a>' in page
        assert list(place.early) == [1000, 10000]
        assert place.trust == "ours"
        assert place.changes in page
    rows = [line for table in tables for line in table_html(table).split("<tr")[2:]]
    heads = [table_html(table).split("<tr")[1].count("<th ") for table in tables]
    assert {row.count("<td") + row.count("<th ") for row in rows} == set(heads)
    assert "<script src" not in page
    assert "http" not in re.sub(r'href="[^"]*"', "", page).partition("</style>")[2].partition("<script>")[0]


def test_a_version_without_anchors_is_refused(short, monkeypatch, tmp_path):
    monkeypatch.setattr(cards, "CURRENT", replace(short[0], data=tmp_path))
    with pytest.raises(ValueError, match="has no anchors yet"):
        clickgym.bench("Random")


def test_tuning_is_on_development_tasks_of_the_board():
    for board, n in zip(CURRENT.boards, (16, 16, 8, 6), strict=True):
        tasks = tuned.development_tasks(DEVELOPMENT, board)
        assert len(tasks) == len({task.name for task in tasks}) == n
        assert {task.ability for task in tasks} <= set(board.abilities)
        assert {task.instance for task in tasks}.isdisjoint(task.instance for task in CURRENT.candidates)
    models = [
        task.click_model for task in tuned.development_tasks(DEVELOPMENT, CURRENT.boards[0]) if task.ability == "standard"
    ]
    assert models == ["CM", "PBM", "DCM", "UBM", "DBN", "CCM"]


def test_a_single_run_has_no_interval(made):
    rows = reference.reference(made).filter(agent="CascadeTS", run=0)
    assert math.isnan(standing(rows, made, made.boards[0]).overall.low)


def test_scores_fall_with_the_loss(made):
    table = reference.curves_of(made).filter(agent="CascadeTS")
    worse = table.with_columns(loss=2 * col("loss") + 1)
    assert (scored(worse, made)["score"] < scored(table, made)["score"]).all()


def test_a_line_that_is_played_again_comes_out_equal_and_has_its_digests_renewed(current, monkeypatch, capsys):
    monkeypatch.setattr(resealing, "CURRENT", current)
    file = current.data / "CascadeTS.parquet"
    before = read_shipped(file)
    old = [replace(each, made={**each.made, "kernels": dict.fromkeys(each.made["kernels"], "of old")}) for each in before]
    write_shipped(file, old)
    assert stale(read_shipped(file))
    try:
        assert resealing.reseal(["scorecard-CascadeTS"], n_jobs=1) == []
        assert stale(read_shipped(file)) == []
        assert "equal" in capsys.readouterr().out
    finally:
        write_shipped(file, before)
