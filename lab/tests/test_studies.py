"""Studies from the sweep to the page, and the results that ship."""

import dataclasses
import re
import shutil
from pathlib import Path

import gymnasium as gym
import made_judgments
import numpy as np
import polars
import pytest
from replay import main as replay_main
from replay import replay_study, replay_sweep, unlike
from scipy.special import stdtrit

import clickgym
from clickgym.envs import load_instance
from clickgym_lab.results import read_results, write_results
from clickgym_lab.studies import find_study, studies
from clickgym_lab.studies.page import page
from clickgym_lab.studies.plots import band, grid, points
from clickgym_lab.studies.study import (
    Setting,
    Sweep,
    read_study,
    run_study,
)
from clickgym_lab.studies.when_rl_pays import BanditByState

RESULTS = Path(__file__).resolve().parents[1] / "results"
FAST = ["zoghi-fig2", "pbm-queries", "ubm-fig3"]
"""One of some papers, of which few agents are compiled for it alone."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Of all studies, for several share a sweep."""
    return tmp_path_factory.mktemp("studies")


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in FAST else pytest.mark.slow) for n in studies()]
)
def test_study_plays_judges_and_draws(name, folder):
    """Two runs at the least scale, on one query; the results are the same when they are read."""
    study, queries = find_study(name), ["yandex-990"]
    if name == "oltr":
        queries = [str(folder / "train.txt"), str(folder / "test.txt")]
        for file in queries:
            made_judgments.write_judgments(Path(file), 10)
    setting = Setting(folder, 1e-9, runs=2, n_jobs=1, names=queries)
    measured = run_study(study, setting)
    figure = study.draw(measured.results)
    assert figure.get_supxlabel() == ""  # the command is in the metadata of the file
    text = page([measured])
    heads = ["## Figure", "## What the paper says", "## Repeat it", "## How to read this page"]
    places = [text.index(head) for head in heads if head in text]
    assert places == sorted(places)
    assert len(measured.judged) == len(study.statements)
    again = read_study(study, folder / f"{name}.parquet")
    assert page([again]) == text


def test_bandit_by_state_takes_any_seed():
    """A seed sequence gives the lists of its integer."""
    env = gym.make("CascadeMDPRank-v0")
    agents = (BanditByState(12, 4, 4, seed=seed) for seed in (1, np.random.SeedSequence(1)))
    first, other = (clickgym.run(agent, env, 200, seed=0).regret[-1] for agent in agents)
    assert first == other


def test_study_of_ones_own(program, tmp_path, refused):
    """That of the page, as a program, and its results judged again; a mistake in it is named with
    its line.
    """
    text = (RESULTS.parents[1] / "docs" / "studies.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(# my_study.py.*?)```", text, flags=re.DOTALL)
    file = tmp_path / "my_study.py"
    file.write_text(code, encoding="utf-8")
    options = ["--scale", "1e-9", "--runs", "2", "--jobs", "1", "--instances", "yandex-990"]
    shown = program(file, *options, "--out", "out", folder=tmp_path)
    assert "CascadeTS has less regret" in shown
    page = (tmp_path / "out" / "my-study.md").read_text(encoding="utf-8")
    assert "Does sampling have less regret" in page
    assert "    clickgym study my_study.py --instances yandex-990 --scale 1e-09" in page
    assert "| CascadeTS, CascadeUCB1 | 2 | 10,000 |" in page
    again = program(file, "--from", "out", "--out", "again", folder=tmp_path)
    assert (tmp_path / "again" / "my-study.md").read_text(encoding="utf-8") == page
    assert again.splitlines()[:-1] == shown.splitlines()[:-1]
    for right, wrong, message in (
        ("[Sweep(", "[Swep(", "NameError: name 'Swep'"),
        ("def draw(results):", "def draw(results)", "expected ':'"),
        (
            '["my-study"].values(ENV, one)',
            '["my-study"].value(ENV, one)',
            "AttributeError: 'Curves'",
        ),
        ("grid(1, ", "grid(2, 3, ", "ValueError: too many values"),
    ):
        [line] = [n for n, row in enumerate(code.splitlines(), 1) if right in row]
        message = f"line {line}: {message}"
        file.write_text(code.replace(right, wrong), encoding="utf-8")
        words = ["--from", str(tmp_path / "out"), "--out", str(tmp_path / "x")]
        assert f"{file}, {message}" in refused(["study", str(file), *words])


def test_pbm_ucb_of_a_catalogue():
    """It ranks the candidates of every session by the indices of their item numbers."""
    name = "clickgym_lab.studies.catalogue:CataloguePBMUCB:epsilon=0.5"
    env = gym.make("ContextualUBMRank-v0", instance="linear:n_items=4,n_positions=2,n_pool=7")
    agent, loop = (clickgym.make_agent(name, env, seed=0) for _ in range(2))
    kappa = env.unwrapped.knowledge("examination")
    clicks, shown, weight = np.zeros((3, 7))
    env.reset(seed=0)
    for t in range(1, 301):
        items = env.unwrapped.state.items[0].copy()
        ranking = agent.rank({"items": items})
        with np.errstate(divide="ignore", invalid="ignore"):
            width = np.sqrt(shown / weight) * np.sqrt(1.5 * np.log(t) / (2 * weight))
            index = np.where(shown > 0, clicks / weight + width, np.inf)[items]
        assert (np.sort(-index)[:2] == -index[ranking]).all()
        observation, reward, *_ = env.step(ranking)
        agent.update({"items": items}, ranking, observation["clicks"], reward)
        chosen = items[ranking]
        clicks[chosen] += observation["clicks"]
        shown[chosen] += 1
        weight[chosen] += kappa
    clickgym.run(loop, env, 300, seed=0)
    np.testing.assert_array_equal(loop.state.mean[:7], clicks / weight)
    small = clickgym.make_agent(f"{name},n_catalogue=6", env, seed=0)
    with pytest.raises(clickgym.AgentError, match="an item is beyond the catalogue"):
        clickgym.run(small, env, 100, seed=0)


def test_what_trained_agents_are_worth(tmp_path, monkeypatch):
    """Runs are those of a sweep; what is played is not played again."""
    env, instance = "ContextualPBMRank-v0", load_instance("linear:n_pool=30")
    kept = {"instances": [instance], "measure": lambda names: lambda a: 7.0, "scaled": False}
    setting, sweep = Setting(tmp_path, seed=3), Sweep("few", [env], ["PBMLinUCB"], 50, 2, **kept)
    table, made = setting.run(sweep, ("regret",))
    swept = clickgym.sweep([env], ["PBMLinUCB"], 50, 2, instances=[instance], seed=3)
    ends = table.filter(step=50).drop_nulls("instance")
    assert ends["trained"].to_list() == [7.0, 7.0]
    np.testing.assert_allclose(ends["regret"], swept.frame.filter(step=50)["regret"], rtol=1e-6)
    assert (made["runs"], made["instances"]) == (2, [instance.name])
    monkeypatch.setattr(clickgym, "run", None)
    assert setting.run(sweep, ("regret",))[0].equals(table)


@pytest.mark.usefixtures("undrawn")
def test_sweeps_reduce_and_share_folders(tmp_path):
    """A scale multiplies the horizon, and queries and runs by its fourth root; a sweep of several
    studies is played once.
    """
    setting = Setting(tmp_path, 0.2)
    assert (len(setting.queries(100)), setting.queries(1)) == (16, ["yandex-9982"])
    many = Setting(tmp_path, 0.2, names=[f"uniform:seed={seed}" for seed in range(100)])
    assert len(many.queries(100)) == 67  # 0.2 ** 0.25 is 0.669
    made, runs = [], tmp_path / "bubble" / "runs"
    setting = Setting(tmp_path, 1e-9, runs=1, names=["yandex-990"])
    for name in ("bubble-fig1", "bubble-fig4"):
        sweep = find_study(name).sweeps[0]
        small = dataclasses.replace(sweep, envs=["PBMRank-v0"], agents=["Fixed"])
        table, _ = setting.run(small, find_study(name).columns)
        assert set(find_study(name).columns) < set(table.columns)
        made.append({path: path.stat().st_mtime_ns for path in runs.rglob("*.jsonl")})
    assert made[0] == made[1]
    assert len(made[0]) == 1


def test_command_judges_what_ships(printed, tmp_path):
    """On the largest set of queries; of others of the same size, on those that do not ship."""
    text = printed(["study", "pbm-queries", "--from", str(RESULTS), "--out", str(tmp_path)], 200)
    assert text.count("not tested") == 3
    kinds = [f"pbm-queries{label}.{kind}" for label in ("", ".kdd") for kind in ("png", "svg")]
    assert {path.name for path in tmp_path.iterdir()} == {"pbm-queries.md", *kinds}
    page = (tmp_path / "pbm-queries.md").read_text(encoding="utf-8")
    assert "Tested on 8 queries of the KDD Cup." in page
    command = ["study", "unknown-examination", "--from", str(RESULTS), "--out", str(tmp_path)]
    assert re.search(r"a gap of \d+ ± \d+ +reproduced", printed(command, 200))
    shown = printed(["study", "--list"], 200)
    assert all(name in shown for name in studies())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["zoghi-fig3", "--out", "x"], "unknown study 'zoghi-fig3'"),
        (["absent.py", "--out", "x"], "absent.py"),
        ([made_judgments.__file__, "--out", "x"], "made_judgments.py has no SWEEPS, draw"),
        (["zoghi-fig1"], "expected a study and a folder"),
        (["zoghi-fig1", "--scale", "0", "--out", "x"], "expected a number in (0, 1]"),
        (["oltr", "--out", "x"], "oltr needs judged queries in SVMlight format"),
        (["zoghi-fig1", "--from", "nowhere", "--out", "x"], "nowhere has no zoghi-fig1.parquet"),
    ],
)
def test_command_refuses(words, message, refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message in refused(["study", *words])
    assert not list(tmp_path.iterdir())


def test_damaged_results_are_refused(tmp_path):
    path = tmp_path / "damaged.parquet"
    path.write_bytes((RESULTS / "pbm-queries.parquet").read_bytes()[:-100])
    with pytest.raises(ValueError, match="holds no results of the lab, or is damaged"):
        read_results(path)
    polars.DataFrame({"a": [1]}).write_parquet(path)
    with pytest.raises(ValueError, match="holds no results of the lab"):
        read_results(path)


def test_bands_are_intervals_of_the_mean():
    """At 95 %, by Student's t; a band ends at 0."""
    values = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 9.0]])
    half = stdtrit(2, 0.975) * values.std(axis=0, ddof=1) / np.sqrt(3)
    mean = values.mean(axis=0)
    ends = np.maximum([mean - half, mean + half], 0.0)
    _, (axes, other) = grid(2)
    band(axes, np.array([10, 20]), values, "TopRank")
    (drawn,) = axes.collections
    for place, step in enumerate((10, 20)):
        heights = [y for x, y in drawn.get_paths()[0].vertices if x == step]
        assert (min(heights), max(heights)) == pytest.approx(ends[:, place])
    points(other, [10, 20], values.T, "TopRank")
    (bars,) = other.collections
    for place, bar in enumerate(bars.get_segments()):
        assert bar[:, 1] == pytest.approx([mean[place] - half[place], mean[place] + half[place]])


def test_shipped_results_say_what_made_them():
    """And they are small."""
    for path in RESULTS.glob("*.parquet"):
        made = read_results(path)[1]
        assert made["command"].startswith("clickgym study ")
        for part in made["parts"].values():
            assert re.fullmatch(r"\d+\.\d+\.\d+", part["clickgym"])
            assert re.fullmatch(r"[0-9a-f]{8}", part["commit"])
    assert sum(path.stat().st_size for path in RESULTS.iterdir()) < 3_500_000


def test_planted_digits_are_found(tmp_path):
    """Of the regret, and of a fact; nothing else differs. Runs of other seeds are only likely."""
    run_study(find_study("pbm-synthetic"), Setting(tmp_path, 1e-9, runs=4, n_jobs=1))
    path = tmp_path / "pbm-synthetic.parquet"
    table, made = read_results(path)
    step = int(table["step"].max()) // 10
    planted = {"PBMUCB": "regret", "PBMTS": "lower_bound"}
    for agent, column in planted.items():
        here = (polars.col("agent") == agent) & polars.col("step").is_in([step, 10 * step])
        factor = polars.when(here & (polars.col("part") == "pbm-small")).then(1 + 1e-6)
        changed = polars.col(column) * factor.otherwise(1.0)
        table = table.with_columns(changed.cast(polars.Float32))
    write_results(path, table, made)
    assert replay_study(path) == [
        f"pbm-small: PBMUCB in PBMRank-v0 from session {step:,} on",
        f"pbm-small: PBMTS in PBMRank-v0 from session {10 * step:,} on",
    ]
    for part in made["parts"].values():
        part |= {"clickgym": "5.0.0", "seed": 1}
    write_results(path, table, made)
    assert replay_study(path) == []
    far = polars.when(polars.col("agent") == "PBMUCB").then(10.0).otherwise(1.0)
    regret = (polars.col("regret") * far).cast(polars.Float32)
    write_results(path, table.with_columns(regret=regret), made)
    lines = replay_study(path)
    assert len(lines) == 2
    assert all("PBMUCB in PBMRank-v0: regret -" in line for line in lines)


def test_results_that_were_replayed_are_recorded(tmp_path, monkeypatch):
    shutil.copy(RESULTS / "kveton-table1.parquet", tmp_path)
    (tmp_path / "replayed.txt").write_text("zoghi-fig1 4.0.0\n")
    monkeypatch.setattr("replay.RESULTS", tmp_path)
    assert replay_main(["kveton-table1", "--record"]) == 0
    recorded = f"kveton-table1 {clickgym.__version__}\nzoghi-fig1 4.0.0\n"
    assert (tmp_path / "replayed.txt").read_text() == recorded


def test_replay_plays_what_the_sweep_says(monkeypatch):
    """Everything of a sweep that changes a run is handed on, such as a metric."""
    sweep, *_ = find_study("kveton-table1").sweeps
    small = dataclasses.replace(sweep, agents=["CascadeTS"], queries=4, metrics=["ndcg"])
    setting = Setting(Path(), 1.0, names=["yandex-990"])
    table, _ = read_results(RESULTS / "kveton-table1.parquet")
    asked, original = [], clickgym.run

    def run(*args, **kept):
        asked.append(kept)
        return original(*args, **kept, engine="python")  # another loop would be compiled

    monkeypatch.setattr(clickgym, "run", run)
    replay_sweep(small, table.filter(part=sweep.name), setting, ["regret"])
    assert {tuple(kept["metrics"]) for kept in asked} == {("ndcg",)}
    played = {"name", "envs", "agents", "instances", "queries", "metrics", "facts", "told"}
    from_the_table = {"horizon", "runs", "scaled", "least_horizon", "least_runs"}
    of_kept_rows = {"windows", "ends", "whole", "measure"}
    known = played | from_the_table | of_kept_rows
    assert {field.name for field in dataclasses.fields(Sweep)} == known


def test_learners_are_compared_over_instances():
    """By t tests of the mean over the instances, and over their runs, at 0.1 %."""
    pair = {"env": "E", "agent": "PPO"}
    rows = [{**pair, "instance": name, "run": run} for name in "abc" for run in (0, 1)]
    regret = [9.0, 11.0, 19.0, 21.0, 29.0, 31.0]
    shipped = polars.DataFrame(rows).with_columns(regret=polars.Series(regret))
    once = shipped.filter(run=0).with_columns(regret=polars.Series([11.0, 20.0, 29.0]))
    assert unlike(shipped, once) == []
    far = once.with_columns(polars.col("regret") + 100)
    assert unlike(shipped, far) == ["PPO in E: regret +100 in 3 instances"]
    near = once.with_columns(regret=polars.Series([9.0, 19.01, 29.02]))  # about one less, by chance
    assert unlike(shipped, near) == []
    assert unlike(shipped.filter(run=0), far) == ["PPO in E: regret +101 in 3 instances"]


def test_results_on_absent_queries_are_named(capsys, tmp_path):
    assert replay_main(["pbm-queries.kdd", "--folder", str(tmp_path)]) == 0
    assert "not played, needs queries/kdd-1.json (--folder)" in capsys.readouterr().out
