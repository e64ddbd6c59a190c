"""Results that are passed on: what is kept, what damage is noticed, and what makes them stale."""

import json
import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars
import pytest
from matplotlib.testing.compare import compare_images
from polars.testing import assert_frame_equal
from reseal import Original, renewed, reseal

from clickgym.agents import CascadeKLUCB, MergeRank, TopRank, kl_ucb, merge_rank
from clickgym.agents.hyperparameters import at_least, hyperparameter
from clickgym.core.kernels import inner
from clickgym.envs import ENVIRONMENTS, CascadeModel, PositionBasedModel
from clickgym.runner.sweep import sweep
from clickgym.runner.sweep_results import Results
from clickgym_lab import shipped
from clickgym_lab.shipped import Shipped, compact, fingerprints, kernel_digest, read_shipped, stale, write_shipped
from clickgym_lab.studies import STUDIES
from clickgym_lab.studies.study import Curves, linear

ROOT = Path(__file__).resolve().parents[2]
RESULTS, SWEEPS = ROOT / "lab" / "results", ROOT / "docs" / "sweeps"
STEPS = [1, 50, 99, 100]


def table(instances=("x", "y", "z"), runs=4):
    rng = np.random.default_rng(0)
    rows = [("E", name, agent, run, step) for name in instances for agent in "AB" for run in range(runs) for step in STEPS]
    frame = polars.DataFrame(rows, ["env", "instance", "agent", "run", "step"], orient="row")
    return frame.with_columns(polars.Series(name, rng.random(len(rows)).astype(np.float32)) for name in ("regret", "reward"))


def result(**changes):
    arguments = ["CMRank-v0"], ["TopRank", "CascadeKLUCB:c=0"], ["yandex-9", "yandex-990"]
    made = dict(zip(("envs", "agents", "instances"), arguments, strict=True))
    made |= {"command": "the command", "made": "today", **fingerprints(*arguments)}
    return Shipped("shipped", "part", compact(table(), ["regret"]), made | changes)


@pytest.mark.parametrize("each", [False, True])
def test_what_is_kept_says_the_same_as_all(each):
    """Means over instances, and ends of each instance: as they were, to the last digit of a single."""
    full = Curves(table())
    small = Curves(compact(table(), ["regret"], each=each))
    for agent in "AB":
        np.testing.assert_allclose(small.units("E", agent), full.units("E", agent), rtol=1e-7)
        for column in ("regret", "reward"):
            np.testing.assert_array_equal(small.ends("E", agent, column), full.ends("E", agent, column))
        np.testing.assert_array_equal(small.final("E", agent), full.final("E", agent))
        if each:
            np.testing.assert_array_equal(small.units("E", agent, instance="y"), full.units("E", agent, instance="y"))
    assert small.instances == full.instances
    assert small.n_runs == full.n_runs == 4


def test_growth_is_judged_over_queries_where_the_values_of_each_are_kept():
    """Two queries whose runs agree, with other regret each: over runs the interval has no width, over queries it has one."""
    steps, slopes = (20, 40, 80, 99, 100), {"x": 1.0, "y": 3.0}
    rows = [("E", i, "A", run, step, slope * step) for i, slope in slopes.items() for run in range(4) for step in steps]
    frame = polars.DataFrame(rows, [*shipped.KEYS, "regret"], orient="row")
    kept = [Curves(compact(frame, ["regret"], fractions=fractions)) for fractions in ((0.99, 1.0), (0.2, 0.4, 0.8, 0.99, 1.0))]
    found = [linear(curves, "E", "A") for curves in kept]
    assert [finding.verdict for finding in found] == ["yes", "cannot tell"]
    assert found[0].measured == "2 ± 0 per session over runs, 1.00 times the earlier rate"
    assert found[1].measured == "2 ± 13 per session over 2 queries, 1.00 times the earlier rate"


def test_facts_are_kept_and_other_columns_are_not():
    frame = table().with_columns(polars.lit(3.0).alias("fact"), polars.lit(1.0).alias("clicks"))
    small = compact(frame, ["regret"], ["fact"])
    assert "clicks" not in small.columns
    assert (Curves(small).ends("E", "A", "fact") == 3).all()


def test_results_are_written_and_read(tmp_path):
    others = [result(), Shipped("mine", "part", compact(table(("x",)), ["reward"]), {"command": "another"})]
    write_shipped(tmp_path / "a.parquet", others)
    again = read_shipped(tmp_path / "a.parquet")
    assert [(each.setting, each.part, each.made) for each in again] == [(e.setting, e.part, e.made) for e in others]
    assert all(there.table.equals(here.table.select(there.table.columns)) for there, here in zip(again, others, strict=True))


def test_damage_is_noticed(tmp_path):
    path = tmp_path / "a.parquet"
    write_shipped(path, [result()])
    content, rng = path.read_bytes(), np.random.default_rng(0)
    for bit in rng.integers(0, 8 * len(content), 60):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="or is damaged"):
            read_shipped(path)
    table().write_parquet(path)
    with pytest.raises(ValueError, match="holds no results to be passed on"):
        read_shipped(path)


# --------------------------------------------------------------------------------------------------------------- staleness


def test_results_of_this_version_are_not_stale():
    assert stale([result()]) == []


def test_what_changed_is_named():
    made = result().made
    kernels = made["kernels"] | {"TopRank": "another"}
    assert stale([result(kernels=kernels)]) == ["part, shipped: the kernels of TopRank changed since today: the command"]
    assert stale([result(models={"CMRank-v0": "another"})]) == [
        "part, shipped: the users of CMRank-v0 changed since today: the command"
    ]
    files = {"instances": ["queries/mine.json"], "models": {"CMRank-v0": "another"}}
    assert stale([result(**files)]) == [], "users that were given by a file are not at hand"


def test_a_kernel_and_what_it_reaches_are_part_of_its_digest(monkeypatch):
    before = [kernel_digest(agent) for agent in (CascadeKLUCB, MergeRank, TopRank)]
    assert len(set(before)) == 3
    monkeypatch.setattr(kl_ucb, "DOUBT", 1e-9)  # a constant that a kernel of a kernel names

    @inner
    def other(state, b):
        return 0

    monkeypatch.setattr(merge_rank, "enough", other)
    after = [kernel_digest(agent) for agent in (CascadeKLUCB, MergeRank, TopRank)]
    assert [then == now for then, now in zip(before, after, strict=True)] == [False, False, True]


def test_words_and_layout_are_not_part_of_a_digest():
    def first(x):
        """What it does."""
        if x < 0:
            raise ValueError(f"{x} is negative")
        return x + 1  # why

    def second(x):
        if x < 0:
            raise ValueError("x is below 0")
        return (
            x
            + 1
        )  # fmt: skip

    texts = [shipped._without_words(function).replace("first", "second") for function in (first, second)]
    assert texts[0] == texts[1]


def test_imports_and_modules_are_not_part_of_a_digest(monkeypatch):
    def first(x):
        from math import pi

        return x + pi

    def second(x):
        return x + pi  # noqa: F821

    texts = [shipped._without_words(function).replace("first", "second") for function in (first, second)]
    assert texts[0] == texts[1]
    before = kernel_digest(TopRank)
    for function in (TopRank._first_values, TopRank.rank_kernel.py_func):
        monkeypatch.setattr(function, "__module__", "clickgym.elsewhere")
    assert kernel_digest(TopRank) == before


def test_default_and_check_of_a_hyperparameter_are_part_of_a_digest():
    def digest_with(default, least, search=None):
        prior = hyperparameter(default=default, check=at_least(least), search=search)
        return kernel_digest(type("Mine", (TopRank,), {"prior": prior}))

    assert len({digest_with(1.0, 0), digest_with(2.0, 0), digest_with(1.0, 0.5)}) == 3
    assert digest_with(1.0, 0, (1, 2)) == digest_with(1.0, 0)


def test_two_constants_of_one_name_are_told_apart(monkeypatch):
    """Exchanged between two modules they are as many as before, but others."""

    def value(constant):
        return eval("lambda: BOUND", {"BOUND": constant, "__name__": "clickgym.one"})

    first, second = value(1), value(2)
    monkeypatch.setattr(shipped, "_without_words", lambda function: "lambda: BOUND")
    digests = [shipped._identity(function, {}) for function in (first, second)]
    assert digests[0] != digests[1]


def test_users_of_one_kind_share_a_digest_and_differ_by_their_parameters():
    one, other = fingerprints(["CMRank-v0"], [], ["yandex-9"]), fingerprints(["CMRank-v0"], [], ["yandex-990"])
    assert one["kernels"] == other["kernels"]
    assert one["models"] != other["models"]

    assert kernel_digest(PositionBasedModel) != kernel_digest(CascadeModel)


# ------------------------------------------------------------------------------------------------------------ what ships


@pytest.mark.parametrize("name", [file.stem for file in sorted(RESULTS.glob("*.parquet"))])
def test_results_that_ship_are_those_of_this_version(name):
    """Names what has changed since; the command beside it makes the results anew."""
    assert stale(read_shipped(RESULTS / f"{name}.parquet")) == []


def test_results_that_ship_are_of_studies_and_small():
    assert {file.stem for file in RESULTS.iterdir()} <= {*STUDIES}
    assert sum(file.stat().st_size for file in RESULTS.iterdir()) < 6_700_000


@pytest.mark.parametrize("name", [folder.name for folder in sorted(SWEEPS.iterdir())])
def test_sweeps_that_ship_come_out_again(name):
    """A run of each compiled agent, before users that need no further data."""
    shipped = Results(SWEEPS / name)
    compiled = shipped.timings.filter(polars.col("engine") == "compiled")["agent"].unique(maintain_order=True).to_list()
    assert compiled
    assert sum(file.stat().st_size for file in (SWEEPS / name).iterdir()) < 400_000
    if not all(env in ENVIRONMENTS for env in shipped.config["envs"]):
        pytest.skip("its users are made of data that do not ship")
    config = shipped.config
    again = sweep(config["envs"], compiled, config["horizon"], 1, seed=config["seed"], instances=config["instances"]).frame
    there = shipped.frame.filter(polars.col("agent").is_in(compiled), run=0)
    assert_frame_equal(again, there.select(again.columns), check_row_order=False)


def test_figures_of_the_pages_are_those_of_the_results(tmp_path):
    script = runpy.run_path(str(ROOT / "docs" / "make_pages.py"))
    drawn = dict(script["figures"]())
    named = {ROOT / "docs" / f"{name}.png" for name in ("leaderboard", "mix_ts", *script["SHOWN"])}
    assert set(drawn) == {*(ROOT / "docs" / "studies").glob("*.png"), *named}
    for file, figure in drawn.items():
        figure.savefig(tmp_path / file.name, dpi=110)
        assert compare_images(str(file), str(tmp_path / file.name), tol=1.0) is None, "make pages makes it new"


def test_a_shipped_study_is_drawn_again_without_playing(tmp_path, printed):
    words = ["study", "nonstat-bound", "--from", str(RESULTS), "--out", str(tmp_path), "--pdf"]
    out = printed(words)
    assert "detects changes" in out
    assert "nonstat-bound.svg, nonstat-bound.pdf" in out
    assert b"/Type3" not in (tmp_path / "nonstat-bound.pdf").read_bytes()
    there = json.loads((RESULTS / "nonstat-bound.json").read_text(encoding="utf-8"))
    assert json.loads((tmp_path / "nonstat-bound.json").read_text(encoding="utf-8")) == there
    again, shipped = (read_shipped(folder / "nonstat-bound.parquet") for folder in (tmp_path, RESULTS))
    assert [(each.setting, each.part, each.made) for each in again] == [
        (each.setting, each.part, each.made) for each in shipped
    ]
    assert all(one.table.equals(other.table) for one, other in zip(again, shipped, strict=True))
    assert (tmp_path / "nonstat-bound.png").exists()


# --------------------------------------------------------------------------------------------------- played once more


@pytest.fixture
def checkout(tmp_path):
    """A checkout with one small result, two of whose digests are not those of this version."""
    for name in ("lab/results", "docs/sweeps"):
        (tmp_path / name).mkdir(parents=True)
    results = read_shipped(RESULTS / "why-early-regret.parquet")[2:]
    made = dict(results[0].made)
    made["kernels"] = dict.fromkeys(made["kernels"], "another")
    write_shipped(tmp_path / "lab" / "results" / "why-early-regret.parquet", [replace(results[0], made=made), *results[1:]])
    return tmp_path


def test_digests_are_renewed_where_a_tenth_comes_out_equal(checkout, capsys):
    """Bit for bit, by the seeds of the study that made the result."""
    file = checkout / "lab" / "results" / "why-early-regret.parquet"
    before = read_shipped(file)
    assert reseal(["why-early-regret"], checkout, plan=True) == []
    assert "why-early-regret: why-early-4, shipped: 16 runs of 10,000 sessions\n" in capsys.readouterr().out
    assert [each.made for each in read_shipped(file)] == [each.made for each in before]
    assert reseal(["why-early-regret"], checkout, only_stale=True, n_jobs=1) == []
    out = capsys.readouterr().out
    assert out.count(": equal") == 1
    assert "160,000 sessions played" in out
    assert stale(read_shipped(file)) == []
    assert file.read_bytes() == written_again(checkout, read_shipped(RESULTS / "why-early-regret.parquet")[2:])


def test_only_agents_whose_kernels_have_changed_are_played_again(checkout, capsys):
    file = checkout / "lab" / "results" / "why-early-regret.parquet"
    part = read_shipped(RESULTS / "why-early-regret.parquet")[1]
    made = dict(part.made) | {"kernels": part.made["kernels"] | {"TopRank:delta=2e-07": "another"}}
    write_shipped(file, [replace(part, made=made)])
    assert reseal(["why-early-regret"], checkout, only_stale=True, n_jobs=1) == []
    assert "shipped: 48 runs of 500 sessions" in capsys.readouterr().out  # with BubbleRank twice as many
    assert stale(read_shipped(file)) == []


def written_again(folder, results):
    write_shipped(folder / "again.parquet", results)
    return (folder / "again.parquet").read_bytes()


def test_digests_of_what_differs_are_left_alone(checkout, capsys):
    file = checkout / "lab" / "results" / "why-early-regret.parquet"
    results = read_shipped(file)
    late = (polars.col("run") == 0) & (polars.col("step") == 10_000)
    changed = results[0].table.with_columns(regret=polars.when(late).then(0).otherwise("regret").cast(polars.Float32))
    write_shipped(file, [replace(results[0], table=changed), *results[1:]])
    assert reseal(["why-early-regret"], checkout, only_stale=True, n_jobs=1) == ["why-early-regret: why-early-4, shipped"]
    assert "cutoff=5 differs from session 10,000 on" in capsys.readouterr().out
    assert set(read_shipped(file)[0].made["kernels"].values()) == {"another"}


def test_what_cannot_be_played_is_named(capsys):
    assert reseal(["unknown-examination"], ROOT, plan=True) == []
    out = capsys.readouterr().out
    assert "unknown-examination-cm, shipped: 128 runs of 100,000 sessions" in out
    assert "unknown-examination-cm, yandex60: cannot be played: the instance yandex60-101524 is not there" in out
    with pytest.raises(ValueError, match="zoghi is no shipped result; there is bubble-fig1, "):
        reseal(["zoghi"], ROOT, plan=True)


def test_one_agent_that_differs_leaves_the_others_their_digests():
    arguments = ["CMRank-v0", "PBMRank-v0"], ["TopRank", "Random"], ["yandex-9"]
    made = dict(zip(("envs", "agents", "instances"), arguments, strict=True)) | fingerprints(*arguments)
    old = made | {key: dict.fromkeys(made[key], "another") for key in ("kernels", "models")}
    original = Original("", polars.DataFrame(), None, shipped=Shipped("shipped", "part", table(), old), sources=("yandex-9",))
    again = renewed(original, {("CMRank-v0", "TopRank"): 7}).made
    assert again["kernels"] == made["kernels"] | {"CMRank-v0": "another", "TopRank": "another"}
    assert again["users"] == made["users"]
    assert again["models"] == made["models"] | {"CMRank-v0": "another"}
