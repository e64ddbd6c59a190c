"""The scorecard: its protocol, its scores against slow references, its folders, and the results that ship."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
import shutil
import subprocess
import sys
from functools import partial
from importlib.metadata import version

import numpy as np
import polars
import pytest
from scipy.stats import ttest_1samp

import clickgym
from clickgym.__main__ import main
from clickgym.agents import AGENTS, CONTEXTUAL_AGENTS, LEARNERS, STATE_AGENTS, Agent, CascadeSWUCB, Random, TopRank
from clickgym.envs import load_instance
from clickgym_lab.bench import leaderboard as boards
from clickgym_lab.bench.anchors import Anchor
from clickgym_lab.bench.play import blocks, play_one, suited
from clickgym_lab.bench.play import play as play_
from clickgym_lab.bench.protocol import VERSION_1
from clickgym_lab.bench.reference import machine, processor
from clickgym_lab.bench.reference import reference as reference_
from clickgym_lab.bench.score import better
from clickgym_lab.bench.score import improvement as improvement_
from clickgym_lab.bench.score import scored as scored_
from clickgym_lab.bench.score import standing as standing_
from clickgym_lab.bench.submission import read_submission
from clickgym_lab.shipped import read_shipped, stale

RESULTS, ANCHORS, CARD = (VERSION_1.data / name for name in ("version1.parquet", "anchors.json", "README.md"))
ABILITIES, RUNS, QUICK_RUNS, SEED = VERSION_1.abilities, VERSION_1.runs, VERSION_1.quick_runs, VERSION_1.seed
VERSION = ["--version", "1"]
bench = partial(clickgym.bench, version=1)
LISTED = ("Oracle", "Fixed", "BubbleRank")
tasks, candidates = VERSION_1.tasks, VERSION_1.candidates
anchors = {name: anchor for name, stages in VERSION_1.anchors.items() for anchor in stages.values()}
play = partial(play_, VERSION_1)
scored, standing, improvement = (partial(each, protocol=VERSION_1) for each in (scored_, standing_, improvement_))
reference, leaderboard = partial(reference_, VERSION_1), partial(boards.leaderboard, VERSION_1)


# --------------------------------------------------------------------------------------------------------- the protocol


def test_the_protocol_is_frozen():
    """A change of a task, of its users or of its horizon makes version 2, with results of its own."""
    assert VERSION_1.fingerprint == VERSION_1.frozen


def test_production_lists_and_anchors_are_frozen():
    """What a fingerprint of users does not hold: the lists that `safety` compares with, and what scores are made of."""
    lists = [load_instance(task.instance).initial_ranking for task in candidates]
    plain = [None if ranking is None else [int(item) for item in ranking] for ranking in lists]
    sums = [hashlib.sha256(content).hexdigest()[:16] for content in (json.dumps(plain).encode(), ANCHORS.read_bytes())]
    assert sums == ["add1324819df46b2", "aa3a9c6ef9f5177f"]


def test_each_task_has_a_name_a_sentence_and_an_ability_of_its_own():
    names = [task.name for task in candidates]
    assert len(set(names)) == len(names)
    assert list(dict.fromkeys(task.ability for task in candidates)) == list(ABILITIES)
    for task in candidates:
        assert f"{task.horizon:,}" in task.about
        assert "{" not in task.about


def test_every_ability_has_tasks_that_count():
    assert {task.ability for task in tasks()} == set(ABILITIES)
    dropped = [name for name, anchor in anchors.items() if anchor.random < 3 * anchor.best]
    assert {task.name for task in candidates} - {task.name for task in tasks()} == set(dropped)


def test_the_quick_tasks_are_few_and_short_enough_for_plain_python():
    sessions = QUICK_RUNS * sum(task.horizon for task in tasks(quick=True))
    assert sessions <= 3e6  # at 100 µs each five minutes of one processor
    assert {task.ability for task in tasks(quick=True)} >= set(ABILITIES) - {"contextual"}


def test_item_ids_tell_nothing():
    """Two agents that always show the first ids, and the last, lose as much as each other.

    Null: the ids of a task are in random order, so that the difference of the two scores is symmetric about 0. Student's t test
    over the tasks without features or states; false-alarm rate 1 %.
    """
    differences = []
    for task in tasks():
        env = task.make().unwrapped
        if task.ability in ("contextual", "memory", "safety", "change"):
            continue
        best = env.task.optimal_reward
        ids = np.arange(env.model.n_items)
        lists = (ids[: env.model.n_positions], ids[::-1][: env.model.n_positions])
        losses = np.array([task.horizon * (best - env.model.expected_reward(ranking)) for ranking in lists])
        first, last = anchors[task.name].score(losses)
        differences.append(first - last)
    assert len(differences) > 100
    assert ttest_1samp(differences, 0.0).pvalue > 0.01


class Misled(CascadeSWUCB):
    """Told that there are a thousand sessions, whatever there are."""

    def __init__(self, n_items, n_positions, horizon, seed=None, **others):
        super().__init__(n_items, n_positions, horizon=1000, seed=seed, **others)


def test_who_is_told_the_horizon_wrongly_is_hurt_where_it_matters(tmp_path):
    """It forgets after a window for a thousand sessions: as good in tasks of a thousand, worse in those of 100,000.

    Fixed seeds; the difference of the longer tasks is asserted far below what chance gives (every run is worse).
    """
    chosen = [task for task in tasks(quick=True) if task.ability in ("cold_start", "small_gaps")]
    right, wrong = (scored(play("SW", agent, chosen, 3, tmp_path / agent.__name__)) for agent in (CascadeSWUCB, Misled))
    both = right.join(wrong, on=["task", "run", "ability"], suffix="_misled")
    short, long = (both.filter(polars.col("ability") == ability) for ability in ("cold_start", "small_gaps"))
    assert (short["loss"] == short["loss_misled"]).all()
    assert len(long) == 3
    assert (long["score_misled"] < long["score"] - 0.1).all()


def test_agents_play_what_they_are_made_for():
    def played(agent):
        return {task.ability for task in suited(agent, tasks())}

    assert played("TopRank") == set(ABILITIES) - {"contextual"}
    assert played("LinearTS") == {"contextual"}
    assert played("RecurRank") == set()
    assert played("CascadeVI") == {"memory"}
    assert played("Random") == played(Random) == set(ABILITIES)
    assert "change" not in played("PPO")


class Broken(Agent):
    def __init__(self, n_items, n_positions, seed=None):
        raise ValueError("out of order")

    def rank(self, observation):
        raise AssertionError

    def update(self, observation, ranking, clicks, reward):
        raise AssertionError


def test_a_fault_of_an_agent_is_no_excuse():
    with pytest.raises(ValueError, match="out of order"):
        suited(Broken, tasks(quick=True))


# ------------------------------------------------------------------------------------------------------------- the scores


def test_the_score_of_random_lists_is_0_and_of_the_best_1_and_it_falls_with_the_loss():
    anchor = Anchor(5000.0, 50.0, "TopRank", horizon=1000)
    scores = anchor.score(np.array([6000.0, 5000.0, 500.0, 50.0, 5.0, 0.5, 0.0, -1.0]))
    assert scores[1] == 0
    assert scores[3] == 1
    assert scores[2] == pytest.approx(0.5)
    assert scores[0] < 0
    assert (np.diff(scores) >= 0).all()
    assert scores[5] == scores[6] == scores[7]  # below the loss of one session of random lists
    assert np.isfinite(scores).all()


def artificial(scores, agent="A"):
    """A table of two abilities from ``{task: scores of runs}``."""
    rows = [
        (task.partition(" ")[0], task, agent, run, score) for task, values in scores.items() for run, score in enumerate(values)
    ]
    return polars.DataFrame(rows, ["ability", "task", "agent", "run", "score"], orient="row")


ONE = {"standard a": [0.1, 0.2, 0.95], "standard b": [0.5, 0.6, 0.7], "change c": [0.3, 0.3, 0.4]}


def test_an_ability_is_the_interquartile_mean_over_tasks_and_runs_and_overall_the_mean_over_abilities():
    found = standing(artificial(ONE))
    middle = sorted([*ONE["standard a"], *ONE["standard b"]])[1:-1]
    assert found.abilities["standard"].value == pytest.approx(np.mean(middle))
    assert found.abilities["change"].value == pytest.approx(np.mean([0.3, 0.3, 0.4]))
    assert found.overall.value == pytest.approx((np.mean(middle) + np.mean([0.3, 0.3, 0.4])) / 2)
    assert found.n_tasks == 3


def test_what_is_for_agents_of_their_own_does_not_count_overall_but_for_them():
    both = standing(artificial(ONE | {"memory d": [0.9, 0.9, 0.9]}))
    assert both.overall.value == pytest.approx(standing(artificial(ONE)).overall.value)
    assert both.abilities["memory"].value == pytest.approx(0.9)
    assert standing(artificial({"memory d": [0.9, 0.9, 0.9]})).overall.value == pytest.approx(0.9)


def middle_of(values):
    """The mean of the middle half, for as many values as can be divided by four."""
    return np.mean(sorted(values)[len(values) // 4 : -len(values) // 4])


def test_intervals_are_those_of_instances_and_runs_drawn_anew():
    """Against all 4 · 256 · 256 ways to draw two instances, and four runs in each, whose quantiles are exact; 1,000 draws come
    near."""
    scores = {"standard CMRank-v0 a": [0.1, 0.2, 0.3, 0.35], "standard CMRank-v0 b:shuffle=3": [0.5, 0.6, 0.7, 0.9]}
    ways = [np.array(list(itertools.product(values, repeat=4))) for values in scores.values()]
    both = np.array([middle_of([*a, *b]) for a in ways[0][::3] for b in ways[1][::3]])
    alone = [np.array([middle_of(way) for way in each]) for each in ways]
    drawn = np.concatenate([both, both, *(np.repeat(each, len(both) // len(each)) for each in alone)])
    low, high = np.quantile(drawn, [0.025, 0.975])
    estimate = standing(artificial(scores)).abilities["standard"]
    assert estimate.low == pytest.approx(low, abs=0.03)
    assert estimate.high == pytest.approx(high, abs=0.03)


def test_the_tasks_of_an_instance_are_drawn_together():
    """Two instances under five click models each are two, not ten."""
    models = ["CM", "PBM", "DCM", "UBM", "DBN"]
    scores = {
        f"standard {model}Rank-v0 {name}:shuffle={seed}": [value, value]
        for name, value in (("easy", 0.9), ("hard:n_items=5", 0.1))
        for seed, model in enumerate(models)
    }
    scores = {task.replace("n_items=5:", "n_items=5,"): values for task, values in scores.items()}
    estimate = standing(artificial(scores)).abilities["standard"]
    assert (estimate.low, estimate.high) == (pytest.approx(0.1), pytest.approx(0.9))  # each alone in a quarter of the draws


def test_a_single_run_has_no_interval():
    found = standing(artificial({"standard a": [0.2], "change c": [0.4]}))
    assert found.overall.value == pytest.approx(0.3)
    assert math.isnan(found.overall.low)
    assert "(" not in str(found.overall)


def test_a_single_run_beside_several_has_one():
    several, single = artificial(ONE), artificial({"standard a": [0.2]}, "B")
    found, _ = improvement(several, single)
    assert found.low <= found.value <= found.high
    both = standing(polars.concat([single, several.filter(polars.col("task") != "standard a")]))
    assert both.overall.low <= both.overall.value <= both.overall.high


def test_improvement_is_over_the_tasks_that_both_play():
    other = {"standard b": [0.6, 0.1], "change c": [0.3, 0.9], "change d": [1.0, 1.0]}
    found, common = improvement(artificial(ONE), artificial(other, "B"))
    expected = [
        np.mean([(x > y) + 0.5 * (x == y) for x in ONE[name] for y in other[name]]) for name in ("standard b", "change c")
    ]
    assert common == 2
    assert found.value == pytest.approx(np.mean(expected))
    assert found.low <= found.value <= found.high
    assert improvement(artificial(ONE), artificial({"memory e": [1.0]}, "C")) is None


def test_better_counts_ties_half():
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 4, (5, 3)).astype(float), rng.integers(0, 4, (5, 4)).astype(float)
    slow = [np.mean([(x > y) + 0.5 * (x == y) for x in a for y in b]) for a, b in zip(one, other, strict=True)]
    np.testing.assert_allclose(better(one, other), slow)


def test_tasks_whose_anchors_are_near_are_dropped():
    assert not Anchor(100.0, 34.0, "A", 1000).kept
    assert Anchor(100.0, 33.0, "A", 1000).kept
    assert not Anchor(0.0, 0.0, "A", 1000).kept


# ------------------------------------------------------------------------------------------------- what ships of the agents


def test_the_results_that_ship_are_those_of_this_version():
    """Names what has changed since; the command beside it makes the results anew."""
    assert stale(read_shipped(RESULTS)) == []


def test_every_agent_of_version_1_is_one_of_the_package_and_has_a_place():
    """No line is added: agents that came later have none."""
    assert set(reference()["agent"]) <= {*AGENTS, *CONTEXTUAL_AGENTS, *STATE_AGENTS, *LEARNERS}
    assert reference()["agent"].n_unique() == 51
    assert {place.agent for place in leaderboard()} == set(reference()["agent"])


def test_the_results_are_small_and_the_data_card_holds_their_sums():
    assert sum(file.stat().st_size for file in RESULTS.parent.iterdir()) < 2_000_000
    text = CARD.read_text(encoding="utf-8")
    for file in (RESULTS, ANCHORS):
        assert hashlib.sha256(file.read_bytes()).hexdigest() in text
    assert VERSION_1.fingerprint in text


def test_anchors_are_of_agents_that_are_told_no_list():
    for name, anchor in anchors.items():
        assert anchor.agent != "Oracle"
        assert name.startswith("safety") or anchor.agent not in LISTED


def test_random_lists_score_nothing_and_the_best_agents_one():
    """The anchors have seeds of their own, so that neither holds by construction."""
    places = {place.agent: place.standing for place in leaderboard()}
    for estimate in places["Random"].abilities.values():
        assert abs(estimate.value) < 0.05
    standard = {agent: found.abilities["standard"].value for agent, found in places.items() if "standard" in found.abilities}
    assert max(score for agent, score in standard.items() if agent != "Oracle") > 0.9


def test_runs_of_the_reference_come_out_again():
    made_with = read_shipped(RESULTS)[0].made["versions"]
    elsewhere = any(version(name) != made_with[name] for name in ("numpy", "numba"))
    if elsewhere or processor() not in CARD.read_text(encoding="utf-8"):
        pytest.skip("another processor: a last digit may turn a choice")
    short = reference().filter(polars.col("horizon") <= 1000).sample(20, seed=0)
    named = {task.name: task for task in tasks()}
    for task, agent, run, loss in short.select("task", "agent", "run", "loss").iter_rows():
        assert np.float32(play_one(VERSION_1, agent, agent, named[task], run)) == np.float32(loss), (task, agent, run)


# --------------------------------------------------------------------------------------------------- a newcomer, and its folder


@pytest.fixture(scope="module")
def submitted(tmp_path_factory):
    """The folder of an agent of one's own, made by the command."""
    folder = tmp_path_factory.mktemp("submitted")
    (folder / "newcomer.py").write_text("from clickgym.agents import TopRank\n\n\nclass Mine(TopRank):\n    pass\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["bench", "newcomer:Mine", "--quick", *VERSION, "--out", "mine"]) == 0
    return folder


def test_the_command_writes_the_card(submitted):
    page = (submitted / "mine" / "scorecard.html").read_text(encoding="utf-8")
    text = (submitted / "mine" / "scorecard.md").read_text(encoding="utf-8")
    for part in (page, text):
        assert "newcomer:Mine" in part
        assert "PBMHB" in part
        assert "clickgym bench newcomer:Mine --quick" in part
    assert "http" not in page.replace("http-equiv", "").replace("url = {https://", "")  # the address in the entry to cite
    config = json.loads((submitted / "mine" / "bench.json").read_text(encoding="utf-8"))
    assert config["fingerprint"] == VERSION_1.frozen


def test_an_agent_goes_where_its_equal_is(submitted, monkeypatch):
    """TopRank under another name, so with other seeds: neither is better than chance.

    Null: both scores have one distribution. Of 16 tasks with 2 · 5 pairs the probability of improvement has a standard
    deviation of about 0.075; ± 0.25 is beyond three of them. False-alarm rate below 1 %.
    """
    monkeypatch.chdir(submitted)
    card = bench("newcomer:Mine", out="mine", quick=True)
    [against] = [each for each in card.comparisons if each.agent == "TopRank"]
    assert against.n_tasks == len(suited("TopRank", tasks(quick=True)))
    assert abs(against.improvement.value - 0.5) < 0.25


def test_a_folder_is_gone_on_with(submitted, monkeypatch, capsys):
    monkeypatch.chdir(submitted)
    before = {file: file.stat().st_mtime_ns for file in (submitted / "mine" / "plays").rglob("cells/*.parquet")}
    assert main(["bench", "newcomer:Mine", "--quick", *VERSION, "--out", "mine"]) == 0
    assert {file: file.stat().st_mtime_ns for file in (submitted / "mine" / "plays").rglob("cells/*.parquet")} == before
    assert "newcomer:Mine scores" in capsys.readouterr().out


def test_a_folder_of_another_agent_is_refused(submitted, monkeypatch, capsys):
    monkeypatch.chdir(submitted)
    assert main(["bench", "TopRank", "--quick", *VERSION, "--out", "mine"]) == 2
    assert "holds a scorecard of agent 'newcomer:Mine', not 'TopRank'" in capsys.readouterr().err


def elsewhere(folder, to, **changes):
    """The folder as if another machine had made it."""
    shutil.copytree(folder, to)
    config = json.loads((to / "bench.json").read_text(encoding="utf-8"))
    (to / "bench.json").write_text(json.dumps(config | {"machines": ["another"]} | changes))
    return to


def test_every_machine_and_version_that_had_a_part_is_known(submitted, tmp_path, monkeypatch):
    """Also where the last call played nothing, or one sweep was made by other versions."""
    monkeypatch.chdir(submitted)
    folder = elsewhere("mine", tmp_path / "parts", finished=[])
    config = next((folder / "plays").glob("*/config.json"))
    before = json.loads(config.read_text(encoding="utf-8"))
    bench("newcomer:Mine", out=folder, quick=True)
    made = read_submission(folder).made
    assert {value for name, value in made if name == "machine"} == {"another", machine()}
    bench("newcomer:Mine", out=elsewhere("mine", tmp_path / "read"), quick=True)
    assert ("machine", machine()) not in read_submission(tmp_path / "read").made
    [part] = before["parts"]
    before["parts"] = [part | {"versions": part["versions"] | {"numpy": "1.0"}}, part]
    before.pop("checksum")
    config.write_text(json.dumps(before))
    assert {value for name, value in read_submission(folder).made if name == "numpy"} == {"1.0", version("numpy")}


def test_a_finished_folder_stays_whole_where_its_agent_has_changed(submitted, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(submitted)
    shutil.copytree("mine", tmp_path / "mine")
    (tmp_path / "newcomer.py").write_text("from clickgym.agents import CascadeUCB1\n\n\nclass Mine(CascadeUCB1):\n    pass\n")
    done = subprocess.run(
        [sys.executable, "-m", "clickgym", "bench", "newcomer:Mine", "--quick", *VERSION, "--out", "mine"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "holds results of another configuration" in done.stderr
    assert read_submission(tmp_path / "mine").table.height == 32


def test_equal_runs_tie_with_those_that_ship():
    card = bench({"mine": "Fixed"}, quick=True)
    [against] = [each for each in card.comparisons if each.agent == "Fixed"]
    assert against.improvement.value == 0.5


def test_click_models_are_known_in_every_list_of_them():
    card = bench("CascadeKLUCB", quick=True)
    rows = polars.DataFrame({"ability": ["misspecified"] * 2, "env": ["CMRank-v0", "PBMRank-v0"], "score": [0.75, 0.25]})
    assert dataclasses.replace(card, table=rows)._by_click_model() == (0.75, 0.25)


def test_an_agent_that_nobody_can_type_is_passed_in_python(tmp_path):
    card = bench({"mine": "Random"}, quick=True, out=tmp_path)
    assert card.command == "clickgym.bench({'mine': agent}, quick=True, version=1, out=DIR)"
    assert dataclasses.replace(card, agent="__main__:Mine").command == "clickgym.bench(agent, quick=True, version=1, out=DIR)"


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
        (["bench", "--verify", "x"], "--verify is retired: the judge plays all runs of a folder again"),
        (["bench", "TopRank", "--unconfined", "--out", "x"], "--unconfined is only for --judge"),
        (["bench", "TopRnk", "--out", "x"], "did you mean 'TopRank'"),
    ):
        assert main(words) == 2
        assert message in capsys.readouterr().err


def test_python_shows_the_card_in_a_notebook():
    card = bench(TopRank, quick=True, progress=False)
    assert card.agent == "TopRank"
    assert "<table>" in card._repr_html_()
    assert "TopRank scores" in repr(card)
    assert card.place.standing.n_tasks == len(set(card.table["task"]))


def test_sweeps_of_a_card_are_of_one_environment_and_horizon():
    for block in blocks(candidates).values():
        assert len({(task.ability, task.env, task.horizon, task.measure) for task in block}) == 1


def test_a_mapping_names_the_agent_and_only_one_is_played():
    with pytest.raises(ValueError, match="one agent is played at a time, got a, b"):
        bench({"a": TopRank, "b": TopRank})


def test_runs_are_those_of_the_protocol():
    counts = reference().filter(polars.col("agent") == "TopRank").group_by("task").len()["len"].unique().to_list()
    assert counts == [RUNS]


def test_shuffled_instances_are_the_same_problem():
    for name, kind in (("yandex-9", "PBM"), ("li2019-switching", "PiecewiseStationaryModel of CM"), ("habit", "CascadeMDP")):
        plain, shuffled = load_instance(name), load_instance(f"{name}:shuffle=5")
        one, other = plain.model(kind), shuffled.model(kind)
        assert one.to_dict() != other.to_dict()
        if kind == "CascadeMDP":
            np.testing.assert_allclose(one.value, other.value)
        else:
            for step in (0, 10_000) if len(one.epochs) > 1 else ({},):
                at = {"step": step} if len(one.epochs) > 1 else {}
                best = [model.expected_reward(model.optimal_ranking(**at), **at) for model in (one, other)]
                assert best[0] == pytest.approx(best[1])
            production = [
                model.expected_reward(instance.initial_ranking[: model.n_positions])
                for model, instance in ((one, plain), (other, shuffled))
            ]
            assert production[0] == pytest.approx(production[1])
