"""Reports: `Results` in Python, the printed table, figures and the page."""

import copy
import html
import html.parser
import json
import os
import pickle
import re
import subprocess
import sys
import warnings

import numpy as np
import polars
import pytest
from matplotlib.figure import Figure
from polars.testing import assert_frame_equal
from slow import slow

import clickgym
from clickgym.command_line import main
from clickgym.core.formats import regret_text
from clickgym.runner.reports.figures import looks_of
from clickgym.runner.reports.page import to_html
from clickgym.runner.reports.table import in_words
from clickgym.runner.summaries import final_table

ENVS, INSTANCES = ["PBMRank-v0", "CMRank-v0:reward=any_click"], ["yandex-9", "yandex-990"]
AGENTS = ["TopRank", "CascadeKLUCB", "Random", "Oracle"]
HOSTILE = (
    """mine:Agent:note=</script><img src=x onerror=alert(1)>&amp;"'`|*_[a](b)\\&%$#{}~^---%{x}"""
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("results") / "out"


@pytest.fixture(scope="module")
def returned(folder):
    metrics = ["ndcg", "window_regret"]
    return clickgym.sweep(ENVS, AGENTS, 2000, 3, out=folder, instances=INSTANCES, metrics=metrics)


@pytest.fixture(params=["returned", "folder", "rows"])
def results(request, returned, folder):
    sources = {"folder": folder, "rows": returned.rows}
    return returned if request.param == "returned" else clickgym.Results(sources[request.param])


# -------------------------------------------------------------------------------------- in Python


def test_results_of_a_folder_are_those_of_the_sweep(returned, folder):
    there = clickgym.Results(folder)
    assert repr(returned) == repr(there)
    assert_frame_equal(returned.rows, there.rows)
    assert there.config == returned.config
    assert returned.table().equals(there.table())


def test_results_are_copied_and_told_in_one_line(results):
    text = "<Results: 4 agents, 2 environments, 2 instances, 3 runs, 2,000 sessions>"
    for copied in (results, copy.deepcopy(results), pickle.loads(pickle.dumps(results))):
        assert repr(copied) == text
        assert copied.frame.equals(results.frame)


def test_interval_stands_beside_regret_at_80_columns():
    """As polars prints a table into a terminal (B4)."""
    code = (
        "import clickgym; results = clickgym.sweep(['PBMRank-v0', 'CMRank-v0'], ['TopRank', "
        "'Random'], 100, 2, instances=['yandex-9', 'yandex-990'], progress=False); "
        "print(results.table())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"POLARS_TABLE_WIDTH": "80"},
    )
    (heading,) = (line for line in done.stdout.splitlines() if "agent" in line)
    assert re.search(r"agent +┆ regret +┆ regret_", heading), done.stdout


def test_selection_in_the_order_of_its_names(results):
    chosen = results.select(["Random", "TopRank"], ENVS[1:])
    assert (chosen.names("agent"), chosen.names("env")) == (["Random", "TopRank"], ENVS[1:])
    assert chosen.table()["agent"].to_list() == ["TopRank", "Random"]
    assert len(results.frame) == 4 * len(chosen.frame)
    with pytest.raises(ValueError, match="unknown agent 'TopRnk'; did you mean 'TopRank'"):
        results.select(["TopRnk"])
    with_random = (polars.col("agent") != "Random") | (polars.col("env") == ENVS[0])
    some = clickgym.Results(results.rows.filter(with_random))
    with pytest.raises(ValueError, match="there are no results of these agents"):
        some.select(["Random"], ENVS[1:])


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        ("nowhere", ValueError, "is not a results folder"),
        (3, TypeError, "source is 3; expected a path"),
        (
            polars.DataFrame({"env": ["E"]}),
            ValueError,
            "the table lacks 'agent', which a sweep has",
        ),
    ],
)
def test_what_holds_no_results(source, error, message):
    with pytest.raises(error, match=message):
        clickgym.Results(source)


# ---------------------------------------------------------------------------------------- figures


def test_panels_curves_and_metrics(results):
    """A panel for each environment, and a row of panels for each metric (A7)."""
    figure = results.plot()
    assert [panel.get_title() for panel in figure.axes[:2]] == [
        f"{env}\nmean over 2 instances" for env in ENVS
    ]
    labels = [panel.get_ylabel() for panel in figure.axes]
    assert labels[2:] == ["ndcg per session"] * 2 + ["window_regret"] * 2
    assert labels[:2] == ["cumulative regret (clicks)", "cumulative regret (clicked lists)"]
    assert figure.get_suptitle() == "Mean and 95 % confidence band of 3 runs"
    ends = {line.get_label(): line.get_ydata()[-1] for line in figure.axes[1].lines}
    table = results.table().filter(env=ENVS[1])
    wanted = {row["agent"]: row["regret"] for row in table.iter_rows(named=True)}
    assert "no regret: Oracle" in [text.get_text() for text in figure.axes[1].texts]
    assert ends == pytest.approx({name: wanted[name] for name in AGENTS[:3]})
    ends = {line.get_label(): line.get_ydata()[-1] for line in figure.axes[3].lines}
    wanted = {row["agent"]: row["ndcg"] for row in table.iter_rows(named=True)}
    assert ends == pytest.approx(wanted)


def test_colour_of_an_agent_is_the_same_in_every_figure(results):
    """Whatever is drawn beside it (B4)."""
    colours = {}
    figures = [results.plot(), results.select(AGENTS[1:3]).plot(log=False)]
    figures.append(clickgym.run("Random", "PBMRank-v0", 100, seed=0).plot().figure)
    for figure in figures:
        for line in (line for panel in figure.axes for line in panel.lines):
            look = (line.get_color(), line.get_linestyle())
            assert colours.setdefault(line.get_label(), look) == look
    assert len(set(colours.values())) == len(AGENTS)
    looks = looks_of([f"agent {i}" for i in range(35)] + AGENTS)
    assert len({str(look) for look in looks.values()}) == 39
    assert looks["TopRank"] == looks_of(["TopRank"])["TopRank"]


def test_linear_axes(results):
    axes = results.plot(log=False).axes[0]
    assert (axes.get_xscale(), axes.get_xlim()[0], axes.get_ylim()[0]) == ("linear", 0, 0)
    assert [line.get_label() for line in axes.lines] == AGENTS
    assert len(axes.lines[0].get_xdata()) == results.frame["step"].n_unique()


def test_title_and_axes_of_ones_own(results):
    assert results.plot(title="Two click models").get_suptitle() == "Two click models"
    figure = Figure()
    ax = figure.add_subplot()
    assert results.select(environments=ENVS[:1]).plot(title="$5", ax=ax) is figure
    assert ax.get_title() == r"\$5"
    assert {text.get_text() for text in ax.get_legend().get_texts()} == set(AGENTS[:3])
    with pytest.raises(ValueError, match="ax holds one environment, and there are 2; see select"):
        results.plot(ax=ax)


@pytest.mark.parametrize("results", ["returned", *slow("rows")], indirect=True)
def test_files_of_figures(results, tmp_path):
    """In the format of the suffix, with TrueType fonts, and version and command in the metadata."""
    results = results.select(AGENTS[:2], ENVS[1:])
    starts = {"regret.pdf": b"%PDF", "regret.svg": b"<?xml", "regret.PNG": b"\x89PNG"}
    for name, start in starts.items():
        figure = results.plot(tmp_path / name)
        content = (tmp_path / name).read_bytes()
        assert content.startswith(start)
        assert (b"clickgym run" in content) == bool(results.config) or name.endswith("pdf")
        results.plot(tmp_path / name)
        assert (tmp_path / name).read_bytes() == content  # no time of writing stands in it
    assert not [text for text in figure.findobj() if "clickgym" in getattr(text, "get_text", str)()]
    figure.savefig(tmp_path / "saved.pdf")
    for name in ("regret.pdf", "saved.pdf"):
        content = (tmp_path / name).read_bytes()
        assert b"/Type3" not in content
        assert content.count(b"/FontFile2") == content.count(b"/Subtype /Type0") > 0
    for name, error in (("regret.foo", ValueError), ("regret", ValueError), (3, TypeError)):
        with pytest.raises(error, match=r"suffix of a figure|path is 3"):
            results.plot(name)


@pytest.mark.parametrize("n_envs", [1, *slow(2, 4, 5)])
def test_any_number_of_environments_one_run_and_no_regret(n_envs):
    envs = [f"PBMRank-v0:cutoff={k}" for k in range(1, n_envs + 1)]
    figure = clickgym.sweep(envs, ["Oracle"], 10, 1, n_jobs=1).plot()
    assert len(figure.axes) == n_envs
    assert figure.get_suptitle() == "One run"


def test_single_checkpoint_is_drawn_as_points():
    results = clickgym.sweep(["PBMRank-v0"], ["TopRank", "Random"], 100, 2, checkpoints=[100])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (panel,) = results.plot().axes
    assert [line.get_marker() for line in panel.lines] == ["o", "o"]


# ---------------------------------------------------------------------------------- a single run


def test_run_is_told_in_one_line():
    result = clickgym.run("Random", "PBMRank-v0", 1000, seed=0)
    words = f"sessions=1,000, regret={result.regret[-1]:,.1f}, engine=compiled, seconds="
    assert repr(result).startswith(f"<Result of Random in PBMRank-v0, yandex-9982: {words}")
    assert len(repr(result)) < 130


def test_runs_are_drawn_beside_each_other():
    runs = [clickgym.run(agent, "PBMRank-v0", 2000, seed=0) for agent in AGENTS[:3]]
    axes = None
    for result in runs:
        axes = result.plot(axes)
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == AGENTS[:3]
    assert np.array_equal(axes.lines[0].get_ydata(), runs[0].regret[runs[0].steps >= 2])
    low, high = axes.get_ylim()
    for line in axes.lines:  # the later ones do not push the first out of the picture
        assert low <= line.get_ydata().min() < line.get_ydata().max() <= high
    assert axes.get_title() == "PBMRank-v0, yandex-9982"


def test_run_of_unknown_regret_shows_its_reward():
    steps = np.array([1, 10, 100])
    unknown, reward = np.full(3, np.nan), steps * 0.5
    names = ("Shop-v0", "custom", "Mine", 0)
    result = clickgym.Result(*names, steps, unknown, reward, steps, {}, 0.1, "python")
    assert "reward=50.0" in repr(result)
    axes = result.plot()
    assert axes.get_ylabel() == "cumulative reward"
    assert axes.lines[0].get_ydata().tolist() == [0.5, 5.0, 50.0]


def test_figure_without_pyplot(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    picture, size = clickgym.run("Random", "PBMRank-v0", 100, seed=0).plot()._repr_png_()
    assert picture.startswith(b"\x89PNG")
    assert size["width"] > 300


# ---------------------------------------------------------------------------- the command report


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("undrawn")
def test_report_says_table_metrics_and_files(returned, folder, printed):
    """Metrics stand in the table and in the summary (A7)."""
    out = printed(["report", str(folder), "--html"])
    assert out.startswith("Regret after 2,000 sessions, mean over 2 instances (mean ± 95 % ")
    assert "Results in" in out
    assert {"report.html", "regret.png", "regret.svg", "summary.csv"} <= set(os.listdir(folder))
    summary = polars.read_csv(folder / "summary.csv")
    assert "ndcg / session" in out
    for row in returned.table().iter_rows(named=True):
        regret = regret_text(row["regret"], row["regret_ci95"])
        cells = f"{regret} +{row['reward']:.4f} +{row['ndcg']:.4f}"
        assert re.search(rf"{row['env']}\n(.+\n)*{row['agent']} +{cells} ", out)
    per_instance = final_table(returned.rows, ("env", "instance"))
    assert len(summary) == len(ENVS) * len(INSTANCES) * len(AGENTS)
    for name in ("regret", "regret_ci95", "reward", "runs", "ndcg", "ndcg_ci95", "window_regret"):
        assert summary[name].to_list() == pytest.approx(per_instance[name].to_list())
    one = returned.frame.filter(env=ENVS[1], instance=INSTANCES[0], agent="Random", step=2000)
    row = summary.filter(env=ENVS[1], instance=INSTANCES[0], agent="Random")
    assert row["regret"][0] == pytest.approx(one["regret"].mean())


@pytest.mark.parametrize("words", [["--agents", "Random"], ["-e", ENVS[1], "-a", *AGENTS[:2]]])
def test_selection_never_overwrites_the_whole(returned, folder, tmp_path, printed, refused, words):
    """It is printed, and written into another folder only (A8)."""
    before = files(folder)
    out = printed(["report", str(folder), *words])
    assert "Nothing is written of a selection" in out
    assert "Oracle" not in out
    assert "would overwrite" in refused(["report", str(folder), *words, "--out", str(folder)])
    assert printed(["report", str(folder), *words, "--html", "--out", str(tmp_path / "new")])
    assert files(folder) == before
    page = (tmp_path / "new" / "report.html").read_text()
    assert "Oracle" not in page.partition("<h2>")[0]
    selected = polars.read_parquet(tmp_path / "new" / "results.parquet")
    assert set(selected["agent"]) == set(
        words[words.index("Random" if "Random" in words else "-a") :]
    ) & set(AGENTS)


@pytest.mark.usefixtures("only_pdf")
def test_pdf_on_request(returned, folder, tmp_path, printed):
    out = printed(["report", str(folder), "--out", str(tmp_path), "--pdf"])
    assert "regret.png, regret.svg, regret.pdf, summary.csv" in out
    assert (tmp_path / "regret.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.usefixtures("only_svg")
def test_names_are_printed_and_drawn_as_they_are(tmp_path, capsys, monkeypatch):
    # A closing tag, an emoji and a formula, to those who read them so.
    name, folder = r"odd_names:A:note=x[/x]$\frac$", tmp_path / "out:x:"
    (tmp_path / "odd_names.py").write_text(
        "from clickgym.agents import Random\n\n\nclass A(Random):\n"
        "    def __init__(self, n_items, n_positions, *, note, seed=None):\n"
        "        super().__init__(n_items, n_positions, seed=seed)\n"
    )
    monkeypatch.chdir(tmp_path)
    words = ["run", "PBMRank-v0", "--agents", name, "--horizon", "100", "--runs", "2"]
    assert main([*words, "--jobs", "1", "--out", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert (out + err).count(name) == 2  # when it was finished, and in the table
    assert f"Results in {folder}: " in out


def test_where_nothing_can_be_written_nothing_is_printed(returned, folder, tmp_path, capsys):
    (tmp_path / "file").touch()
    assert main(["report", str(folder), "--out", str(tmp_path / "file")]) == 2
    out, err = capsys.readouterr()
    assert (out, "is a file" in err) == ("", True)


def test_heading_of_environments_with_instances_of_their_own():
    envs = ["PBMRank-v0", "ContextualPBMRank-v0"]
    results = clickgym.sweep(envs, ["Random"], 10, 1)
    assert in_words(results).title == "Regret after 10 sessions (one run)"


# --------------------------------------------------------------------------------------- the page


class Texts(html.parser.HTMLParser):
    """The tags of a page, and the cells of its tables."""

    def __init__(self, page):
        super().__init__()
        self.tables, self.tags, self.cell = [], [], None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.cell = ""

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.tables[-1][-1].append(self.cell)
            self.cell = None

    def handle_data(self, data):
        if self.cell is not None:
            self.cell += data


@pytest.fixture(scope="module")
def page(returned, folder):
    """A page with a name that is code in every language it could be read in."""
    results = clickgym.Results(folder)
    frame = results.rows.with_columns(polars.col("agent").replace("Random", HOSTILE))
    config = results.config | {"agents": dict.fromkeys([*AGENTS[:2], HOSTILE, "Oracle"])}
    results = clickgym.Results(frame, config)
    return results, to_html(results)


def test_page_says_what_python_says(page):
    results, text = page
    final, pairs = Texts(text).tables
    table = results.table()
    assert [row[:3] for row in final[1:]] == [
        [row["env"], row["agent"], regret_text(row["regret"], row["regret_ci95"])]
        for row in table.iter_rows(named=True)
    ]
    wanted = results.pairwise()
    assert [row[:3] for row in pairs[1:]] == [
        list(row) for row in wanted.select("env", "better", "worse").rows()
    ]
    assert [row[5] for row in pairs[1:]] == [
        "yes" if differ else "no" for differ in wanted["differ"]
    ]
    assert results.config["command"] in text
    assert json.dumps(results.config["versions"]["numba"]) in html.unescape(text)


def test_no_name_becomes_code_and_nothing_is_loaded(page):
    text = page[1]
    tags = Texts(text).tags
    (picture,) = (attrs for tag, attrs in tags if tag == "img")
    assert picture["src"].startswith("data:image/svg+xml;base64,")
    assert not {"script", "link", "a"} & {tag for tag, _ in tags}
    assert not [attrs for _, attrs in tags if "onerror" in attrs]
    assert "default-src 'none'" in text
    assert to_html(page[0]) == text


def test_page_that_cannot_be_written(tmp_path, refused, undrawn):
    clickgym.sweep(["PBMRank-v0"], ["Random"], 50, 2, out=tmp_path / "out")
    (tmp_path / "out" / "report.html").mkdir()
    assert main(["report", str(tmp_path / "out"), "--html"]) == 1
