"""The scorecard: its tasks, its scores against slow references, and the results that ship."""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import polars
import pytest
from scipy.stats import ttest_1samp

from clickgym.agents import Agent, CascadeSWUCB
from clickgym.envs import load_instance
from clickgym_lab.bench.anchors import Anchor
from clickgym_lab.bench.card import bench
from clickgym_lab.bench.play import play, suited
from clickgym_lab.bench.protocol import BESIDE, CURRENT
from clickgym_lab.bench.reference import baselines, reference
from clickgym_lab.bench.score import ability_scores, better, improvement, scored
from clickgym_lab.bench.task import Task

BY_FEATURES = ("contextual", "personal")
LISTED = ("Oracle", "Fixed", "BubbleRank")
tasks = CURRENT.tasks


# --------------------------------------------------------------------------------------------------------- the protocol


def test_every_ability_has_tasks_that_count():
    assert {task.ability for task in tasks()} == set(CURRENT.abilities) - set(BESIDE)
    assert {task.name for task in CURRENT.candidates} == set(CURRENT.anchors)
    counted = [task for task in CURRENT.candidates if task.ability not in BESIDE]
    assert set(counted) - set(tasks()) == {
        task for task in counted if not CURRENT.anchors[task.name].kept
    }


def test_item_ids_tell_nothing():
    """Two agents that always show the first ids, and the last, lose as much as each other.

    Null: the ids of a task are in random order, so that the difference of the two scores is
    symmetric about 0. Student's t test over the tasks without features or states; false-alarm rate
    1 %.
    """
    differences = []
    for task in tasks():
        env = task.make().unwrapped
        if task.ability in (*BY_FEATURES, "memory", "safety", "change", "drift"):
            continue
        best = env.task.optimal_reward
        ids = np.arange(env.model.n_items)
        lists = (ids[: env.model.n_positions], ids[::-1][: env.model.n_positions])
        losses = np.array(
            [task.horizon * (best - env.model.expected_reward(ranking)) for ranking in lists]
        )
        first, last = CURRENT.anchors[task.name].score(losses)
        differences.append(first - last)
    assert len(differences) > 100
    assert ttest_1samp(differences, 0.0).pvalue > 0.01


class Misled(CascadeSWUCB):
    """Told that there are a thousand sessions, whatever there are."""

    def __init__(self, n_items, n_positions, horizon, seed=None, **others):
        super().__init__(n_items, n_positions, horizon=1000, seed=seed, **others)


def test_who_is_told_the_horizon_wrongly_is_hurt_where_it_matters(tmp_path):
    """It forgets after a window for a thousand sessions: as good in tasks of a thousand, worse in
    those of 100,000.

    Fixed seeds; the difference of the longer tasks is asserted far below what chance gives (every
    run is worse).
    """
    chosen = [task for task in tasks(quick=True) if task.ability in ("cold_start", "small_gaps")]
    right, wrong = (
        scored(play(CURRENT, "SW", agent, chosen, 3, tmp_path / agent.__name__)).filter(
            step=polars.col("horizon")
        )
        for agent in (CascadeSWUCB, Misled)
    )
    both = right.join(wrong, on=["task", "run", "ability"], suffix="_misled")
    short, long = (
        both.filter(polars.col("ability") == ability) for ability in ("cold_start", "small_gaps")
    )
    assert (short["loss"] == short["loss_misled"]).all()
    assert len(long) == 3
    assert (long["score_misled"] < long["score"] - 0.1).all()


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


ONE = {"standard-1": [0.1, 0.2, 0.95], "standard-2": [0.5, 0.6, 0.7], "change-1": [0.3, 0.3, 0.4]}
OTHERS = {"change-2": [1.0, 1.0], "memory-1": [0.9, 0.9, 0.9]}


@pytest.fixture
def protocol(tmp_path):
    """Makes a protocol of tasks that are named by their abilities, each with an instance of its own
    but for those given.
    """

    def make(names, **instances):
        given = [
            Task(
                name.partition("-")[0], "CMRank-v0", instances.get(name, name), 1000, "", name=name
            )
            for name in names
        ]
        anchors = {task.name: [100.0, 1.0, "A"] for task in given}
        (tmp_path / "anchors.json").write_text(json.dumps(anchors), encoding="utf-8")
        return replace(CURRENT, make_tasks=lambda: tuple(given), data=tmp_path)

    return make


def table(scores, agent="A"):
    """Rows of `scored` from ``{task: scores of runs}``."""
    rows = [
        (task.partition("-")[0], task, agent, run, 100.0 ** (1.0 - score), score)
        for task, values in scores.items()
        for run, score in enumerate(values)
    ]
    return polars.DataFrame(
        rows, ["ability", "task", "agent", "run", "loss", "score"], orient="row"
    )


def test_an_ability_is_the_mean_over_tasks_and_runs(protocol):
    found = ability_scores(table(ONE), protocol(ONE))
    assert found["standard"].value == pytest.approx(
        np.mean([*ONE["standard-1"], *ONE["standard-2"]])
    )
    assert found["change"].value == pytest.approx(np.mean(ONE["change-1"]))


def test_a_task_that_is_not_played_counts_0(protocol):
    whole = protocol(ONE | OTHERS)
    found = ability_scores(table(ONE), whole)
    assert found["change"].value == pytest.approx(np.mean(ONE["change-1"]) / 2)
    assert "memory" not in found


def test_intervals_are_those_of_weights_of_instances_and_of_runs_drawn_anew(protocol):
    """Against all 256 · 256 ways to draw four runs in each of two instances; the share of the
    weight of one is uniform. 1,000 draws come near.
    """
    scores = {"standard-1": [0.1, 0.2, 0.3, 0.35], "standard-2": [0.5, 0.6, 0.7, 0.9]}
    one, other = (
        np.array([np.mean(way) for way in itertools.product(values, repeat=4)])
        for values in scores.values()
    )
    drawn = [share * one[:, None] + (1 - share) * other for share in (np.arange(20) + 0.5) / 20]
    low, high = np.quantile(drawn, [0.025, 0.975])
    estimate = ability_scores(table(scores), protocol(scores))["standard"]
    assert estimate.low == pytest.approx(low, abs=0.03)
    assert estimate.high == pytest.approx(high, abs=0.03)


def test_the_tasks_of_an_instance_are_drawn_together(protocol):
    """Two instances under five orders of ids each are two, not ten."""
    easy = {f"standard-{seed}": f"easy:shuffle={seed}" for seed in range(5)}
    hard = {f"standard-1{seed}": f"hard:n_items=5,shuffle={seed}" for seed in range(5)}
    scores = {name: [0.9, 0.9] for name in easy} | {name: [0.1, 0.1] for name in hard}
    estimate = ability_scores(table(scores), protocol(scores, **easy, **hard))["standard"]
    assert (estimate.low, estimate.high) == (
        pytest.approx(0.12, abs=0.02),
        pytest.approx(0.88, abs=0.02),
    )


def test_a_single_run_has_no_interval(protocol):
    scores = {"standard-1": [0.2], "change-1": [0.4]}
    found = ability_scores(table(scores), protocol(scores))["standard"]
    assert found.value == pytest.approx(0.2)
    assert math.isnan(found.low)
    assert "(" not in str(found)


def test_a_single_run_beside_several_has_one(protocol):
    several, single, whole = table(ONE), table({"standard-1": [0.2]}, "B"), protocol(ONE)
    found, _ = improvement(several, single, whole)
    assert found.low <= found.value <= found.high
    both = ability_scores(
        polars.concat([single, several.filter(polars.col("task") != "standard-1")]), whole
    )["standard"]
    assert both.low <= both.value <= both.high


def test_improvement_is_over_the_tasks_that_both_play(protocol):
    other = {"standard-2": [0.6, 0.1], "change-1": [0.3, 0.9], "change-2": [1.0, 1.0]}
    whole = protocol(ONE | OTHERS)
    found, common = improvement(table(ONE), table(other, "B"), whole)
    expected = [
        np.mean([(x > y) + 0.5 * (x == y) for x in ONE[name] for y in other[name]])
        for name in ("standard-2", "change-1")
    ]
    assert common == 2
    assert found.value == pytest.approx(np.mean(expected))
    assert found.low <= found.value <= found.high
    assert improvement(table(ONE), table({"memory-1": [1.0]}, "C"), whole) is None


def test_the_interval_of_an_improvement_is_over_the_instances(protocol):
    """Always better on one of two, never on the other, which share the weight in any way alike."""
    one, other = ({"standard-1": [mine, mine], "standard-2": [0.5, 0.5]} for mine in (0.9, 0.1))
    other["standard-2"] = [0.6, 0.6]
    found, common = improvement(table(one), table(other, "B"), protocol(one))
    assert (*found, common) == pytest.approx((0.5, 0.025, 0.975, 2), abs=0.02)


def test_better_counts_ties_half():
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 4, (5, 3)).astype(float), rng.integers(0, 4, (5, 4)).astype(float)
    slow = [
        np.mean([(x > y) + 0.5 * (x == y) for x in a for y in b])
        for a, b in zip(one, other, strict=True)
    ]
    np.testing.assert_allclose(better(one, other), slow)


def test_tasks_whose_anchors_are_near_are_dropped():
    assert not Anchor(100.0, 34.0, "A", 1000).kept
    assert Anchor(100.0, 33.0, "A", 1000).kept
    assert not Anchor(0.0, 0.0, "A", 1000).kept


# ------------------------------------------------------------------------------------------------- what ships of the agents


def test_runs_are_those_of_the_protocol():
    assert set(reference().filter(agent="TopRank").group_by("task").len()["len"]) == {CURRENT.runs}


def test_anchors_are_of_agents_that_are_told_no_list():
    for name, anchor in CURRENT.anchors.items():
        assert not anchor.agent.startswith("Oracle")
        assert name.startswith("safety") or not anchor.agent.startswith(LISTED)


def test_random_lists_score_nothing_and_the_best_agents_one():
    """The anchors have seeds of their own, so that neither holds by construction."""
    scores = {
        agent: ability_scores(reference().filter(agent=agent))
        for agent in reference()["agent"].unique()
    }
    for estimate in scores["Random"].values():
        assert abs(estimate.value) < 0.05
    assert max(found["standard"].value for found in scores.values() if "standard" in found) > 0.9


def test_baselines_are_the_curves_that_ship():
    results = baselines("change", ["TopRank", "Random"])
    assert set(results.frame["agent"]) == {"TopRank", "Random"}
    assert results.frame.filter(agent="TopRank", step=100_000).height == 16 * CURRENT.runs
    with pytest.raises(ValueError, match="unknown agent 'TopRang'"):
        baselines("change", ["TopRang"])


# -------------------------------------------------------------------------------------------------------------- the card


@pytest.fixture
def few_tasks(monkeypatch):
    """The scorecard has two short tasks."""
    chosen = tuple(
        task for task in CURRENT.candidates if task.name in ("cold_start-01", "cold_start-02")
    )
    monkeypatch.setattr(type(CURRENT), "tasks", lambda protocol, quick=False: chosen)


def test_a_built_in_agent_scores_on_its_card_as_in_the_reference(few_tasks, tmp_path):
    card = bench("TopRank", out=tmp_path, n_jobs=1)
    shipped = reference().filter(
        polars.col("task").is_in(["cold_start-01", "cold_start-02"]), agent="TopRank"
    )
    assert (
        card.table.sort("task", "run")["loss"].cast(polars.Float32).to_list()
        == shipped.sort("task", "run")["loss"].to_list()
    )
    text = card.save(tmp_path).read_text(encoding="utf-8")
    assert "| cold start |" in text
    assert "| CascadeKLUCB |" in text
    assert "TopRank" not in text.partition("## Against")[2].partition("## Tasks")[0]


class Plain(Agent):
    """Shows the first items, and learns nothing."""

    def __init__(self, n_items, n_positions, seed=None):
        self.n_positions = n_positions

    def rank(self, observation):
        return np.arange(self.n_positions)

    def update(self, observation, ranking, clicks, reward):
        pass


def test_an_agent_of_ones_own_has_a_card(few_tasks, tmp_path):
    card = bench({"mine": Plain}, out=tmp_path, n_jobs=1)
    assert (card.agent, card.n_tasks("cold_start")) == ("mine", 2)
    assert card.abilities["cold_start"].value < 0.5
    with pytest.raises(ValueError, match="holds a scorecard of agent 'mine'"):
        bench("TopRank", out=tmp_path, n_jobs=1)


def test_the_command_prints_abilities_beside_the_best_agent(few_tasks, printed, tmp_path):
    text = printed(["bench", "TopRank", "--out", str(tmp_path), "--jobs", "1"], 120)
    assert "cold start" in text
    assert "best built-in agent" in text
    assert (tmp_path / "scorecard.md").exists()


def test_curves_are_drawn_without_playing(printed, tmp_path):
    printed(["bench", "--plot", "change", "--out", str(tmp_path / "change.svg")])
    assert (tmp_path / "change.svg").exists()


def test_shuffled_instances_are_the_same_problem():
    for name, kind in (
        ("yandex-9", "PBM"),
        ("li2019-switching", "PiecewiseStationaryModel of CM"),
        ("habit", "CascadeMDP"),
    ):
        plain, shuffled = load_instance(name), load_instance(f"{name}:shuffle=5")
        one, other = plain.model(kind), shuffled.model(kind)
        assert one.to_dict() != other.to_dict()
        if kind == "CascadeMDP":
            np.testing.assert_allclose(one.value, other.value)
        else:
            for step in (0, 10_000) if len(one.epochs) > 1 else ({},):
                at = {"step": step} if len(one.epochs) > 1 else {}
                best = [
                    model.expected_reward(model.optimal_ranking(**at), **at)
                    for model in (one, other)
                ]
                assert best[0] == pytest.approx(best[1])
            production = [
                model.expected_reward(instance.initial_ranking[: model.n_positions])
                for model, instance in ((one, plain), (other, shuffled))
            ]
            assert production[0] == pytest.approx(production[1])
