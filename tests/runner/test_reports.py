"""Reports: `Results` in Python, the printed table, figures and the page."""

import os
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import polars
import pytest
from polars.testing import assert_frame_equal

import clickgym
from clickgym.agents import FrozenPolicy
from clickgym.core.formats import regret_text
from clickgym.runner.reports import figures
from clickgym.runner.reports.figures import line_styles
from clickgym.runner.reports.table import in_words, to_latex

ENVS, INSTANCES = ["PBMRank-v0", "PBMRank-v0:reward=any_click"], ["yandex-9", "yandex-990"]
AGENTS = ["TopRank", "CascadeKLUCB", "Random", "Oracle"]
HOSTILE = (
    """mine:Agent:note=</script><img src=x onerror=alert(1)>&amp;"'`|*_[a](b)\\&%$#{}~^---%{x}"""
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("results") / "out"


@pytest.fixture(scope="module")
def returned(folder):
    metrics = ["ndcg", "any_click"]
    with pytest.MonkeyPatch.context() as patch:  # what draws is another test's
        patch.setattr(figures, "figure_bytes", lambda *_, **__: b"")
        return clickgym.sweep(
            ENVS, AGENTS, 2000, 3, out=folder, instances=INSTANCES, metrics=metrics
        )


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


def test_selection_in_the_order_of_its_names(results):
    chosen = results.select(["Random", "TopRank"], ENVS[1:])
    assert (chosen.names("agent"), chosen.names("env")) == (["Random", "TopRank"], ENVS[1:])
    assert chosen.table()["agent"].to_list() == ["TopRank", "Random"]
    assert len(results.frame) == 4 * len(chosen.frame)
    with pytest.raises(ValueError, match="did you mean 'TopRank'"):
        results.select(["TopRnk"])


# ---------------------------------------------------------------------------------------- figures


def test_panels_curves_and_metrics(results):
    """A panel for each environment, and a row of panels for each metric."""
    figure = results.plot()
    assert [panel.get_title() for panel in figure.axes[:2]] == [
        f"{env}\nmean over 2 instances" for env in ENVS
    ]
    labels = [panel.get_ylabel() for panel in figure.axes]
    assert labels[2:] == ["ndcg per session"] * 2 + ["any_click per session"] * 2
    assert labels[:2] == ["cumulative regret"] * 2
    assert figure.get_suptitle().endswith("over 2 instances with 3 runs each")
    ends = {line.get_label(): line.get_ydata()[-1] for line in figure.axes[1].lines}
    table = results.table().filter(env=ENVS[1])
    wanted = {row["agent"]: row["regret"] for row in table.iter_rows(named=True)}
    assert "no regret: Oracle" in [text.get_text() for text in figure.axes[1].texts]
    assert ends == pytest.approx({name: wanted[name] for name in AGENTS[:3]})
    rows = {row["agent"]: row for row in table.iter_rows(named=True)}
    for line, band in zip(figure.axes[1].lines, figure.axes[1].collections, strict=True):
        mean, half = (rows[line.get_label()][key] for key in ("regret", "regret_ci95"))
        heights = [y for x, y in band.get_paths()[0].vertices if x == 2000]
        low = max(mean - half, figures.FLOOR)
        assert (min(heights), max(heights)) == pytest.approx((low, mean + half))


def test_agents_without_regret_alone(returned):
    """A logarithmic axis has no place for them."""
    for axes in returned.select(["Oracle"]).plot().axes[:2]:
        (line,) = axes.lines
        assert not line.get_ydata().any()
        assert axes.get_yscale() == "linear"


def test_panel_of_each_instance(results):
    """Its curves are those of the results on this instance alone."""
    figure = results.select(AGENTS[:3]).plot(by_instance=True)
    titles = [f"{env}\n{instance}" for env in ENVS for instance in INSTANCES]
    assert [panel.get_title() for panel in figure.axes[:4]] == titles
    rows = results.rows.filter(env=ENVS[1], instance=INSTANCES[0])
    (alone, *_) = clickgym.Results(rows, results.config).select(AGENTS[:3]).plot().axes
    assert alone.get_title() == titles[2]
    for line, other in zip(figure.axes[2].lines, alone.lines, strict=True):
        assert line.get_label() == other.get_label()
        np.testing.assert_array_equal(line.get_xydata(), other.get_xydata())


def test_colour_of_an_agent_is_the_same_in_figures_of_the_same_results(results):
    """Also where the curves have another order; further agents differ in their dashes."""
    colours = {}
    for figure in (results.plot(), results.plot(log=False), results.plot(reference="Oracle")):
        for line in (line for panel in figure.axes for line in panel.lines):
            colour = line.get_color()
            assert colours.setdefault(line.get_label(), colour) == colour
    assert len(set(colours.values())) == len(AGENTS)
    many = [f"agent {i}" for i in range(40)]
    assert len(set(map(str, line_styles(many).values()))) > len(many)


def test_emphasis_names_and_width(results):
    """A figure for a column of a paper: one's own line is thick and above the others, the labels
    stay, and the legend is below.
    """
    rows = results.rows.drop("ndcg", "any_click")
    results = clickgym.Results(rows).select(AGENTS[:3], ENVS[1:])
    names = {"TopRank": "ours", ENVS[1]: "position-based model"}
    figure = results.plot(emphasis="TopRank", names=names, width=3.3)
    (axes,) = figure.axes
    assert figure.get_figwidth() == 3.3
    assert axes.get_title() == "position-based model\nmean over 2 instances"
    assert [line.get_label() for line in axes.lines][-1] == "ours"
    thick = {line.get_label(): line.get_linewidth() for line in axes.lines}
    assert thick["ours"] > max(thick["CascadeKLUCB"], thick["Random"])
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in (axes.xaxis.label, axes.yaxis.label)]
    boxes += [axes.title.get_window_extent(), figure.legends[0].get_window_extent()]
    assert all(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 for box in boxes)
    assert all(figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1 for box in boxes)
    assert figure.legends[0].get_window_extent().y1 < axes.xaxis.label.get_window_extent().y0
    with pytest.raises(ValueError, match="unknown emphasis 'Toprank'; did you mean 'TopRank'"):
        results.plot(emphasis="Toprank")


def test_paired_curves(results):
    """Their ends are the differences of the table."""
    results = results.select(AGENTS[1:], ENVS[1:])
    (axes, *_) = results.plot(reference="Random").axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "linear")
    ends = {line.get_label(): line.get_ydata()[-1] for line in axes.lines}
    table = results.table("Random").filter(polars.col("agent") != "Random")
    assert ends == pytest.approx(dict(table.select("agent", "difference").iter_rows()))
    for line, band in zip(axes.lines, axes.collections, strict=True):
        (row,) = table.filter(agent=line.get_label()).iter_rows(named=True)
        heights = [y for x, y in band.get_paths()[0].vertices if x == 2000]
        assert (max(heights) - min(heights)) / 2 == pytest.approx(row["difference_ci95"])


def test_metrics_are_drawn_per_session_of_a_window(results):
    """Not since session 1: the last point is the mean since the point before it, on linear axes."""
    results = results.select(AGENTS[1:2], ENVS[1:])
    panels = results.plot().axes
    assert {panel.get_xscale() for panel in panels[1:]} == {"linear"}
    (line,) = panels[1].lines
    before, last = line.get_xdata()[-2:]
    sums = results.rows.group_by("step").agg(polars.col("ndcg", "any_click").mean())
    gaps = sums.filter(step=last) - sums.filter(step=before)
    assert line.get_ydata()[-1] == pytest.approx((gaps["ndcg"] / gaps["step"]).item())
    (line,) = panels[2].lines
    assert line.get_ydata()[-1] == pytest.approx((gaps["any_click"] / gaps["step"]).item())
    assert len(line.get_xdata()) <= 50


# ---------------------------------------------------------------------------- the command report


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("undrawn")
def test_report_says_table_metrics_and_files(returned, folder, printed):
    """Metrics stand in the table and in the summary."""
    out = printed(["report", str(folder)])
    assert {"2,000", "2", "3"} <= set(re.findall(r"[\d,]+", out.partition("\n")[0]))
    assert "Results in" in out
    assert {"regret.png", "regret.svg", "summary.csv"} <= set(os.listdir(folder))
    summary = polars.read_csv(folder / "summary.csv")
    assert re.search(r"reward +ndcg +any_click +time", out)
    assert "Reward, ndcg, any_click and time are per session." in out
    for row in returned.table().iter_rows(named=True):
        regret = regret_text(row["regret"], row["regret_ci95"])
        cells = f"{row['reward']:.4f} +{row['ndcg']:.4f}"
        assert re.search(rf"{row['env']}\n(.+\n)*{row['agent']} +{regret} .+ {cells} ", out)
    table = returned.table()
    assert summary.columns == table.columns
    for name in ("regret", "regret_ci95", "reward", "runs", "ndcg", "ndcg_ci95", "any_click"):
        assert summary[name].to_list() == pytest.approx(table[name].to_list())


def test_printed_median_and_worst_are_of_the_runs(returned, folder, printed):
    words = ["report", str(folder), "-e", ENVS[0]]
    lines = printed(words).splitlines()
    names = next(line for line in lines if line.startswith("agent")).split()
    last = returned.rows.filter(step=2000, env=ENVS[0])
    for agent in AGENTS:
        regrets = last.filter(agent=agent)["regret"].to_numpy()
        cells = next(line for line in lines if line.startswith(agent)).split()
        for name, wanted in (("median", np.median(regrets)), ("worst", regrets.max())):
            cell = cells[names.index(name) - len(names) - 1].replace(",", "")
            assert float(cell) == pytest.approx(wanted, rel=0.01, abs=0.01)


@pytest.mark.usefixtures("undrawn")
def test_selection_never_overwrites_the_whole(returned, folder, tmp_path, printed):
    """It is printed, and written into another folder only."""
    words = ["-e", ENVS[1], "-a", *AGENTS[:2]]
    before = files(folder)
    out = printed(["report", str(folder), *words])
    assert "No files of a selection" in out
    assert "Oracle" not in out
    assert printed(["report", str(folder), *words, "--out", str(tmp_path / "new")])
    assert files(folder) == before
    selected = polars.read_parquet(tmp_path / "new" / "results.parquet")
    assert set(selected["agent"]) == set(words) & set(AGENTS)


@pytest.mark.usefixtures("returned", "undrawn")
def test_papers_to_cite(folder, tmp_path, monkeypatch, printed):
    """Those of all agents and environments, once each; what has none is named."""
    (tmp_path / "module_with_mine.py").write_text(
        "import clickgym\nclass Mine(clickgym.agents.TopRank): ...\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    words = "run ContextualPBMRank-v0 --agents mine=module_with_mine:Mine LinearTS"
    words += f" --horizon 20 --runs 1 --jobs 1 --out {tmp_path / 'out'}"
    printed(words.split())
    text = printed(["report", str(folder), "--bib"])
    keys = re.findall(r"^@\w+\{(\w+),", text, re.MULTILINE)
    users = ["pbmbandits", "predictingclicks"]
    assert sorted(keys) == ["cascadingbandits", *users, "toprank", "wscd2012"]
    assert f"% {', '.join(INSTANCES)}\n@inproceedings{{wscd2012," in text
    assert text.count("{") == text.count("}")
    text = printed(["report", str(tmp_path / "out"), "--bib"])
    keys = re.findall(r"^@\w+\{(\w+),", text, re.MULTILINE)
    assert sorted(keys) == ["lints", "pbmbandits", "predictingclicks", "ubmlinucb"]


# --------------------------------------------------------------------------------------- the page


def test_whom_a_difference_favours(returned):
    table = in_words(returned, "TopRank")
    assert "A positive difference is in favour of TopRank." in " ".join(table.notes)
    column = table.headings.index("difference")
    differences = {row[0]: row[column] for rows in table.environments.values() for row in rows}
    assert differences["Random"].startswith("+")


@pytest.mark.usefixtures("undrawn")
def test_reference_on_the_command_line(returned, folder, printed, refused):
    """It is in the table, the page and the summary; another one is refused."""
    out = printed(["report", str(folder), "--reference", "Random"])
    summary = polars.read_csv(folder / "summary.csv")
    assert "Differences to Random are over the same instances" in out
    gaps = returned.table("Random")["difference"].to_list()
    assert summary["difference"].to_list() == [
        gap if gap is None else pytest.approx(gap) for gap in gaps
    ]
    assert "did you mean 'Random'" in refused(["report", str(folder), "--reference", "Rndom"])


@pytest.mark.usefixtures("undrawn")
def test_table_in_latex(returned, folder, tmp_path, printed):
    """It has the numbers of the table, the rules of booktabs and no name that LaTeX would read; it
    compiles where there is a LaTeX.
    """
    rows = returned.rows.with_columns(polars.col("agent").replace("Random", HOSTILE))
    results = clickgym.Results(rows)
    text = to_latex(results, "TopRank")
    body = text.partition("\\toprule")[2].splitlines()
    assert [line for line in body if line.startswith("\\m")] == [
        "\\midrule",
        "\\multicolumn{9}{l}{PBMRank-v0} \\\\",
        "\\midrule",
        "\\multicolumn{9}{l}{PBMRank-v0:reward=any\\_click} \\\\",
    ]
    heading, *lines = [line for line in body if line.count(" & ") == 8]
    assert heading.startswith(
        "agent & regret & $\\pm$ these & difference & worst & median & reward"
    )
    table = results.table("TopRank").to_dicts()
    for line, row in zip(lines, table, strict=True):
        assert f"{row['regret']:,.0f}".replace(",", "{,}") in line
        assert line.endswith(" \\\\")
        unescaped = re.sub(r"\\[&%$#_{}]", "", line)
        assert unescaped.count("{") == unescaped.count("}")
        assert not re.search(r"[#_~^<>|]", unescaped)
        assert unescaped.count("$") % 2 == 0
    assert "\\textbackslash{}" in text
    printed_text = printed(["report", str(folder), "--latex", "--reference", "TopRank"])
    assert printed_text.strip() == to_latex(returned, "TopRank")
    if compiler := shutil.which("pdflatex"):
        page = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}"
        (tmp_path / "a.tex").write_text(f"{page}\n{text}\n\\end{{document}}\n", encoding="utf-8")
        words = [compiler, "-halt-on-error", "-interaction=batchmode", "a.tex"]
        subprocess.run(words, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
        assert (tmp_path / "a.pdf").exists()


def test_caption_in_latex_says_what_agents_were_told():
    results = clickgym.sweep(["PBMRank-v0"], ["PBMTS", "TopRank"], 100, 1, n_jobs=1)
    assert "PBMTS got examination" in results.to_latex()
    assert "got" not in results.select(["TopRank"]).to_latex()
    single = [clickgym.run(name, "PBMRank-v0", 100, seed=0) for name in ("PBMTS", "TopRank")]
    assert "PBMTS got examination" in clickgym.Results(single).to_latex()


def first_items(observation):
    return [0, 1, 2, 3, 4]


def test_policies_that_did_not_learn_are_named(tmp_path):
    """Under any label, of single runs and of a folder, beside agents that learned."""
    agents = {"mine": (FrozenPolicy, {"model": first_items}), "TopRank": "TopRank"}
    results = clickgym.sweep(["PBMRank-v0"], agents, 100, 2, n_jobs=1, out=tmp_path)
    one = replace(clickgym.run(agents["mine"], "PBMRank-v0", 100, seed=0), agent="its")
    alone = results.select(["mine"])
    for table in (results, clickgym.Results(tmp_path), clickgym.Results([one, results]), alone):
        marked = {text.partition(":")[0] for text in in_words(table).notes if "learn" in text}
        assert marked == {*table.names("agent")} - {"TopRank"}
    assert results.table("TopRank").filter(agent="mine")["difference"].count() == 1


def test_earlier_training_and_unrecorded_sessions_are_shown_everywhere():
    """In the table, in LaTeX and in the legend of the figure, of the agents that have some."""
    late = [
        replace(clickgym.run("Random", "PBMRank-v0", 100, seed=seed), agent="late", **facts)
        for seed, facts in enumerate([{"trained": 20_000}, {"unrecorded": 3000}])
    ]
    results = clickgym.Results([*late, clickgym.run("TopRank", "PBMRank-v0", 100, seed=0)])
    facts = results.table().select("agent", "trained", "unrecorded").rows()
    assert sorted(facts) == [("TopRank", 0, 0), ("late", 20_000, 3000)]
    legend = {text.get_text() for text in results.plot().legends[0].get_texts()}
    assert "TopRank" in legend
    some = [*late, replace(late[0], seed=2, trained=None)]
    notes = " ".join(in_words(clickgym.Results(some)).notes)
    assert "after 0 to 20,000 sessions of training, as far as told" in notes
    for told, is_noted in ((None, True), (0, False)):
        loop = clickgym.Results(replace(late[0], engine="own loop", trained=told))
        assert is_noted == ("not told whether it had learned" in " ".join(in_words(loop).notes))
    [label] = {" ".join(text.split()) for text in legend if text.startswith("late")}
    for words in (label, " ".join(in_words(results).notes), results.to_latex()):
        assert "after 0 to 20,000 sessions of training" in words
        assert "0 to 3,000 sessions were not recorded" in words


def test_a_line_joins_runs_with_equal_checkpoints():
    """The table needs only the last step."""
    runs = [
        clickgym.run("Random", "PBMRank-v0", 100, seed=seed, checkpoints=steps)
        for seed, steps in enumerate([[50, 100], [60, 100]])
    ]
    results = clickgym.Results(runs)
    assert results.table()["runs"].to_list() == [2]
    with pytest.raises(ValueError, match="runs of Random in PBMRank-v0 have different checkpoints"):
        results.plot()
    clickgym.Results([runs[0], replace(runs[1], agent="other")]).plot()


def test_a_long_label_is_a_heading_of_one_line(printed):
    arrays = "attraction=[" + ",".join(["0.25"] * 40) + "],examination=[1.0,0.5]"
    out = printed(["run", f"PBMRank-v0:{arrays}", "-a", "Random", "TopRank", "--horizon", "10"])
    [heading] = [line for line in out.splitlines() if line.startswith("PBMRank-v0:attraction=[")]
    assert len(heading) <= 100


def test_why_identical_agents_have_no_p():
    agents = {"first": "TopRank", "second": "TopRank", "Random": "Random"}
    results = clickgym.sweep(["PBMRank-v0"], agents, 100, 3, n_jobs=1)
    assert results.table()["p"].null_count() == 2
    assert "second had exactly the results of first" in " ".join(in_words(results).notes)
