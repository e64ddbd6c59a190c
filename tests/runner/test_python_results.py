"""`Result` and `Results` in Python: short words, tables, figures that need no pyplot, the same
numbers as the command line.
"""

import copy
import pickle
import sys
from types import SimpleNamespace

import numpy as np
import polars
import pytest
from slow import slow

import clickgym
from clickgym.runner.reports.figures import COLOURS
from clickgym.runner.results import read_results
from clickgym.runner.summaries import pairwise, summary

ENVS, INSTANCES = ["PBMRank-v0", "CMRank-v0:reward=any_click"], ["yandex-9", "yandex-990"]
AGENTS = ["TopRank", "CascadeKLUCB", "Random", "Oracle"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("results") / "out"


@pytest.fixture(scope="module")
def returned(folder):
    return clickgym.sweep(ENVS, AGENTS, 2000, 3, out=folder, instances=INSTANCES)


@pytest.fixture(params=["returned", "folder", "frame"])
def results(request, returned, folder):
    if request.param == "returned":
        return returned
    return clickgym.Results(
        folder if request.param == "folder" else polars.read_parquet(folder / "results.parquet")
    )


# ------------------------------------------------------------------------------------------------------------- one run


def test_a_run_is_told_in_one_line():
    result = clickgym.run("Random", "PBMRank-v0", 1000, seed=0)
    words = f"Random in PBMRank-v0, yandex-9982: sessions=1,000, regret={result.regret[-1]:,.1f}, engine=compiled, seconds="
    assert repr(result).startswith(f"<Result of {words}")
    assert len(repr(result)) < 130


def test_runs_are_drawn_beside_each_other_in_the_colours_of_the_command_line():
    results = [
        clickgym.run(agent, "PBMRank-v0", 2000, seed=0) for agent in ("Random", "TopRank", "Oracle")
    ]
    axes = None
    for result in results:
        axes = result.plot(axes)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [line.get_color() for line in axes.lines] == list(COLOURS[:3])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "Random",
        "TopRank",
        "Oracle",
    ]
    assert np.array_equal(axes.lines[0].get_ydata(), results[0].regret[results[0].steps >= 2])
    low, high = axes.get_ylim()
    for line in axes.lines[:2]:  # the later ones do not push the first out of the picture
        assert low <= line.get_ydata().min() < line.get_ydata().max() <= high
    assert axes.get_title() == "PBMRank-v0, yandex-9982"


def test_a_run_of_unknown_regret_shows_its_reward():
    steps = np.array([1, 10, 100])
    unknown = np.full(3, np.nan)
    result = clickgym.Result(
        "Shop-v0", "custom", "Mine", 0, steps, unknown, steps * 0.5, steps, {}, 0.1, "python"
    )
    assert "reward=50.0" in repr(result)
    axes = result.plot()
    assert axes.get_ylabel() == "cumulative reward"
    assert axes.lines[0].get_ydata().tolist() == [0.5, 5.0, 50.0]


def test_a_figure_is_shown_where_pyplot_cannot_be_loaded(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    picture, size = clickgym.run("Random", "PBMRank-v0", 100, seed=0).plot()._repr_png_()
    assert picture.startswith(b"\x89PNG")
    assert size["width"] > 300


# ------------------------------------------------------------------------------------------------------------- a sweep


def test_a_sweep_returns_the_results_of_its_folder(returned, folder):
    there = clickgym.Results(folder)
    assert repr(returned) == repr(there)
    assert returned.frame.equals(there.frame)
    assert returned.timings.equals(there.timings)
    assert returned.config == there.config
    assert returned.plot()._supxlabel.get_text() == there.plot()._supxlabel.get_text() != ""


def test_a_sweep_returns_what_was_asked_for_and_not_all_that_the_folder_holds(returned, folder):
    some = clickgym.sweep(ENVS[1:], AGENTS[:2], 2000, 2, out=folder, instances=INSTANCES[:1])
    assert repr(some) == "<Results: 2 agents, 1 environment, 1 instance, 2 runs, 2,000 sessions>"
    wanted = returned.frame.filter(
        polars.col("agent").is_in(AGENTS[:2]),
        polars.col("run") < 2,
        env=ENVS[1],
        instance=INSTANCES[0],
    )
    assert some.frame.equals(wanted)
    assert len(some.timings) == 4


def test_without_a_folder_times_and_the_command_are_known_too():
    results = clickgym.sweep(ENVS[:1], AGENTS[:2], 100, 2)
    assert {"ns_per_session", "engine"} <= set(results.table().columns)
    assert (
        "clickgym run PBMRank-v0 --agents TopRank CascadeKLUCB"
        in results.plot()._supxlabel.get_text()
    )


def test_results_of_a_table_may_be_results(returned):
    assert clickgym.Results(returned).frame is returned.frame
    assert clickgym.Results(returned).table().equals(returned.table())


@pytest.mark.filterwarnings("error")
def test_results_are_no_frame_to_those_who_only_look(returned):
    assert returned
    assert not hasattr(returned, "nonsense")
    assert not hasattr(returned, "_repr_mimebundle_")
    for copied in (copy.deepcopy(returned), pickle.loads(pickle.dumps(returned))):
        assert isinstance(copied, clickgym.Results)
        assert copied.frame.equals(returned.frame)
    with pytest.raises(AttributeError, match="'Results' object has no attribute 'nonsense'"):
        returned.nonsense  # noqa: B018


def test_the_table_is_that_of_the_command_line(results, folder):
    table, timings, _ = read_results(folder)
    for by, rows in (
        (["env"], results.table()),
        (["env", "instance"], results.table(per_instance=True)),
    ):
        wanted = summary(table, timings, [*by, "agent"])
        both = rows.join(wanted, on=[*by, "agent"], suffix="_wanted")
        assert len(both) == len(rows) == len(wanted)
        for name in ("regret", "regret_ci95", "reward", "runs"):
            assert both[name].equals(both[f"{name}_wanted"].alias(name))
        assert rows["env"].unique(maintain_order=True).to_list() == ENVS
        for group in rows.partition_by(by):
            assert group["place"].to_list() == [1, 2, 3, 4]
            assert group["regret"].is_sorted()


def test_ties_are_named_and_agree_with_the_pairs(results):
    for per_instance in (False, True):
        by = ["env", "instance"] if per_instance else ["env"]
        apart = results.pairwise(per_instance).filter("differ")
        told = {frozenset(row) for row in apart.select(*by, "better", "worse").iter_rows()}
        for row in results.table(per_instance).iter_rows(named=True):
            place = [row[name] for name in by]
            others = {
                name
                for name in AGENTS
                if name != row["agent"] and frozenset([*place, row["agent"], name]) not in told
            }
            assert set(row["tied_with"]) == others


def test_times_stand_where_they_are_known(folder):
    assert {"ns_per_session", "engine"} <= set(clickgym.Results(folder).table().columns)
    assert not {"ns_per_session", "engine"} & set(
        clickgym.Results(read_results(folder)[0]).table().columns
    )


def test_pairs_are_those_of_the_test(results, folder):
    assert results.pairwise().equals(pairwise(read_results(folder)[0]))


def test_the_figure_is_that_of_the_command_line_and_a_frame_knows_no_command(folder, tmp_path):
    assert (
        clickgym.Results(folder)
        .plot()
        ._supxlabel.get_text()
        .startswith(f"clickgym {clickgym.__version__}: clickgym run")
    )
    figure = clickgym.Results(read_results(folder)[0]).plot()
    assert figure._supxlabel is None
    assert [axes.get_title() for axes in figure.axes] == ENVS
    assert (
        "mean over 2 instances (mean and 95 % confidence band of 3 runs)"
        in figure._suptitle.get_text()
    )


def test_each_instance_can_have_its_panel(results, folder):
    figure = results.plot(per_instance=True)
    assert [axes.get_title() for axes in figure.axes] == [
        f"{env}\n{name}" for env in ENVS for name in INSTANCES
    ]
    table = read_results(folder)[0]
    means = table.filter(env=ENVS[1], instance=INSTANCES[0], agent="Random", step=2000)[
        "regret"
    ].mean()
    (line,) = (line for line in figure.axes[2].lines if line.get_label() == "Random")
    assert line.get_ydata()[-1] == pytest.approx(means)


def test_linear_axes_show_the_first_sessions_and_who_never_loses(results):
    axes = results.plot(log=False).axes[0]
    assert (axes.get_xscale(), axes.get_xlim()[0], axes.get_ylim()[0]) == ("linear", 0, 0)
    assert [line.get_label() for line in axes.lines] == AGENTS
    assert len(axes.lines[0].get_xdata()) == len(results.config["checkpoints"])


@pytest.mark.parametrize("results", ["returned", *slow("folder", "frame")], indirect=True)
def test_the_figure_is_written_in_the_format_of_its_suffix(results, tmp_path):
    results = results.select(AGENTS[:2], ENVS[1:])
    for name, start in (
        ("regret.pdf", b"%PDF"),
        ("regret.svg", b"<?xml"),
        ("regret.PNG", b"\x89PNG"),
    ):
        figure = results.plot(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    figure.savefig(tmp_path / "saved.pdf")
    for name in ("regret.pdf", "saved.pdf"):
        content = (tmp_path / name).read_bytes()
        assert b"/Type3" not in content
        assert (
            content.count(b"/FontFile2") == content.count(b"/Subtype /Type0") > 0
        )  # embedded as TrueType
    for name, error, says in (
        ("regret.foo", ValueError, "expected .pdf, .svg, .png or the like"),
        ("regret", ValueError, "expected .pdf, .svg, .png or the like"),
        (3, TypeError, "path is 3; expected a path"),
    ):
        with pytest.raises(error, match=says):
            results.plot(name)


def test_some_agents_and_environments_are_taken_in_the_order_of_their_names(results):
    chosen = results.select(["Random", "TopRank"], ENVS[1:])
    assert (chosen.config["agents"], chosen.config["envs"]) == (["Random", "TopRank"], ENVS[1:])
    assert chosen.table().select("env", "agent").rows() == [
        (ENVS[1], "TopRank"),
        (ENVS[1], "Random"),
    ]
    assert chosen.frame["agent"].n_unique() == 2
    assert len(results.frame) == 4 * len(chosen.frame)
    with pytest.raises(ValueError, match="unknown agent 'TopRnk'; did you mean 'TopRank'"):
        results.select(["TopRnk"])
    with pytest.raises(ValueError, match="unknown environment 'PBM'"):
        results.select(environments=["PBM"])


def test_results_are_told_in_one_line(results):
    assert (
        repr(results) == "<Results: 4 agents, 2 environments, 2 instances, 3 runs, 2,000 sessions>"
    )


def test_unknown_regret_is_ranked_by_reward():
    rows = [
        ("Shop-v0", "custom", a, r, 10, None, 10.0 * n + r, 1)
        for n, a in enumerate("ab")
        for r in range(3)
    ]
    names = ["env", "instance", "agent", "run", "step", "regret", "reward", "clicks"]
    results = clickgym.Results(
        polars.DataFrame(rows, names, orient="row", schema_overrides={"regret": polars.Float64})
    )
    assert results.table().select("agent", "regret", "total_reward").rows() == [
        ("b", None, 11.0),
        ("a", None, 1.0),
    ]


def test_one_run_tells_no_interval_and_no_ties(folder):
    results = clickgym.Results(read_results(folder)[0].filter(run=0))
    assert (
        results.table()["tied_with"].null_count()
        == results.table()["regret_ci95"].null_count()
        == 8
    )


def test_rows_become_a_pandas_frame_column_by_column(results, monkeypatch):
    monkeypatch.setitem(
        sys.modules, "pandas", SimpleNamespace(DataFrame=dict)
    )  # arrow is not asked for
    columns = results.to_pandas()
    assert list(columns) == results.frame.columns
    assert columns["agent"] == results.frame["agent"].to_list()
    assert np.array_equal(columns["regret"], results.frame["regret"].to_numpy())
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        ImportError, match="pandas is not installed; install it: pip install pandas"
    ):
        results.to_pandas()


@pytest.mark.parametrize(
    ("source", "error", "says"),
    [
        ("nowhere", ValueError, "is not a results folder"),
        (
            3,
            TypeError,
            "results are 3; expected a results folder, a Parquet file or a polars frame of results",
        ),
        (
            polars.DataFrame({"env": ["E"]}),
            ValueError,
            "no column 'instance'; expected the frame of a sweep",
        ),
    ],
)
def test_what_holds_no_results_is_refused(source, error, says):
    with pytest.raises(error, match=says):
        clickgym.Results(source)
