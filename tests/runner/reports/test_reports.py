"""Tests of reports: `Results` in Python, the printed table, the figures and the page."""

import re
from dataclasses import replace

import gymnasium as gym
import polars
import pytest
from polars.testing import assert_frame_equal

import clickgym
from clickgym.agents import FrozenPolicy
from clickgym.cli import main
from clickgym.core.kernels import uncompiled
from clickgym.core.text import regret_text
from clickgym.envs import CascadeModel, Instance, PiecewiseStationaryModel
from clickgym.runner.reports.table import format_table, to_latex
from tests.conftest import draw_nothing
from tests.runner.reports.test_summaries import frame_of

ENVS, INSTANCES = ["PBMRank-v0", "PBMRank-v0:reward=any_click"], ["yandex-9", "yandex-990"]
AGENTS = ["TopRank", "CascadeUCB1", "Random", "Oracle"]
FAMILIES = ["clickbait", "journey:seed=1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("results") / "out"


@pytest.fixture(scope="module")
def returned(folder):
    metrics = ["ndcg", "any_click"]
    # what draws is another test's, and so are compiled kernels
    with pytest.MonkeyPatch.context() as patch, uncompiled():
        draw_nothing(patch)
        return clickgym.sweep(
            ENVS, AGENTS, 500, 3, out=folder, instances=INSTANCES, metrics=metrics
        )


# -------------------------------------------------------------------------------------- in Python


def test_results_of_a_folder_are_those_of_the_sweep(returned, folder):
    there = clickgym.Results(folder)
    assert repr(returned) == repr(there)
    assert_frame_equal(returned.rows, there.rows)
    assert there.configs == returned.configs
    parts = clickgym.Results([returned.select(environments=[env]) for env in ENVS])
    for joined in (there, parts):
        assert_frame_equal(joined.table(), returned.table())
    chosen = there.select(["Random", "TopRank"], ENVS[1:])
    assert (chosen.names("agent"), chosen.names("env")) == (["Random", "TopRank"], ENVS[1:])
    assert len(there.frame) == 4 * len(chosen.frame)
    with pytest.raises(ValueError, match="did you mean 'TopRank'"):
        there.select(["TopRnk"])


def test_a_table_by_instance(returned, folder, capsys):
    """Its rows are those of each instance alone. A mean over families has no interval and no p."""
    table = returned.table(by_instance=True)
    parts = table.partition_by(["env", "instance"], as_dict=True)
    assert len(parts) == 4
    for (env, instance), part in parts.items():
        alone = returned.rows.filter(env=env, instance=instance)
        assert_frame_equal(part.drop("instance"), clickgym.Results.of_rows(alone).table())
    assert main(["report", str(folder), "--agents", "TopRank", "--by-instance"]) == 0
    printed = capsys.readouterr().out
    assert all(f"{env}, {instance}" in printed for env in ENVS for instance in INSTANCES)
    families = polars.col("instance").replace(dict(zip(INSTANCES, FAMILIES, strict=True)))
    mixed = clickgym.Results.of_rows(returned.rows.with_columns(families))
    assert sum(mixed.table().select("^.*ci95.*$", "p").count().row(0)) == 0
    latex = mixed.to_latex(names={"clickbait": "Bait"})
    envs = " and ".join(ENVS).replace("_", r"\_")
    assert f"In {envs}, means are over different families (clickbait and journey)" in latex
    assert "clickgym report" in str(mixed)
    assert "clickgym report" not in latex
    assert mixed.select(instances=FAMILIES[1:]).table()["p"].count()
    groups = dict(zip(INSTANCES, ["personal:users=train", "personal:users=test"], strict=True))
    one_world = returned.rows.with_columns(polars.col("instance").replace(groups))
    assert "each group in its own table" in str(clickgym.Results.of_rows(one_world))


# ---------------------------------------------------------------------------------------- figures


def test_an_agent_has_one_style_in_all_panels(returned):
    """Each agent has its own style, even if the first agent appears only in the second panel."""
    both = polars.col("env") == ENVS[1]
    rows = returned.rows.filter(both | (polars.col("agent") != "TopRank"))
    panels = clickgym.Results.of_rows(rows).plot().axes[:2]
    styles = {
        (line.get_label(), line.get_color(), line.get_linestyle())
        for panel in panels
        for line in panel.lines
    }
    assert len(styles) == len({label for label, *_ in styles}) == 3
    assert len({look[1:] for look in styles}) == 3


def test_panels_curves_and_metrics(returned):
    """There is a panel for each environment, and a row of panels for each metric."""
    figure = returned.plot()
    assert [panel.get_title() for panel in figure.axes[:2]] == [
        f"{env}\nmean over 2 instances" for env in ENVS
    ]
    labels = [panel.get_ylabel() for panel in figure.axes]
    assert labels[2:] == ["ndcg per session"] * 2 + ["any_click per session"] * 2
    assert labels[:2] == ["cumulative regret"] * 2
    assert figure.get_suptitle().endswith("over 2 instances with 3 runs each")
    ends = {line.get_label(): line.get_ydata()[-1] for line in figure.axes[1].lines}
    table = returned.table().filter(env=ENVS[1])
    wanted = {row["agent"]: row["regret"] for row in table.iter_rows(named=True)}
    assert "no regret: Oracle" in [text.get_text() for text in figure.axes[1].texts]
    assert ends == pytest.approx({name: wanted[name] for name in AGENTS[:3]})


def test_print_shows_the_table_and_report_needs_no_folder(returned, capsys, tmp_path, monkeypatch):
    """The printed text starts with the first lines of the report. Neither of the two calls writes a
    file.
    """
    monkeypatch.chdir(tmp_path)
    results = returned.select(AGENTS[:3], ENVS[1:])
    results.report()
    printed = capsys.readouterr().out.strip()
    assert str(results) == printed
    assert f"\n{ENVS[1]}\nagent " in printed
    monkeypatch.setattr("clickgym.runner.results.LINES", 4)
    *lines, rest = str(results).splitlines()
    assert lines == printed.splitlines()[:4]
    assert rest == f"… {len(printed.splitlines()) - 4} more lines: report() prints them all"
    assert not [*tmp_path.iterdir()]


def test_emphasis_names_and_width(returned):
    """In a figure that fits one column of a paper, the user's own line is thick and drawn below the
    other lines, so that it hides none of them; labels are kept, and the legend is below the panel.
    The legend lists the lines from top to bottom, in the order in which they leave the panel on the
    right.
    """
    results = returned.select(AGENTS[:3], ENVS[1:])
    names = {"TopRank": "ours", ENVS[1]: "position-based model"}
    arguments = {"names": names, "width": 3.3, "measures": ["regret"]}
    figure = results.plot(emphasis="TopRank", **arguments)
    (axes,) = figure.axes
    assert figure.get_figwidth() == 3.3
    assert axes.get_title() == "position-based model\nmean over 2 instances"
    assert axes.lines[0].get_label() == "ours"
    thick = {line.get_label(): line.get_linewidth() for line in axes.lines}
    assert thick["ours"] > max(thick["CascadeUCB1"], thick["Random"])
    ends = {line.get_label(): line.get_ydata()[-1] for line in axes.lines}
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == sorted(ends, key=ends.get, reverse=True)
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
    assert figure.bbox.y0 <= box.y0 < box.y1 < axes.xaxis.label.get_window_extent().y0
    with pytest.raises(ValueError, match="unknown emphasis 'Toprank'; did you mean 'TopRank'"):
        results.plot(emphasis="Toprank")


@pytest.mark.usefixtures("undrawn")
def test_dashed_lines_where_users_change(tmp_path):
    """Dashed lines are drawn for a sweep in memory and for one read from its folder. Lines beyond
    the axes are left out.
    """
    models = [CascadeModel(attraction, 1) for attraction in ([0.1, 0.9], [0.9, 0.1])] * 2
    changing = PiecewiseStationaryModel(models, [0, 1, 400, 2000])
    envs = {"changing": changing, "constant": models[0]}
    swept = clickgym.sweep(envs, ["Random"], 1000, 2, n_jobs=1, out=tmp_path, progress=False)
    for results in (swept, clickgym.Results(tmp_path)):
        for arguments in ({}, {"log": False}):
            figure = results.plot(**arguments)
            marks = [[x.get_xdata()[0] for x in axes.lines[1:]] for axes in figure.axes]
            assert marks == [[400], []]
            entries = [text.get_text() for text in figure.legends[0].get_texts()]
            assert entries == ["Random", "users change"]
    assert len(swept.select(None, ["constant"]).plot().legends[0].get_texts()) == 1


@pytest.mark.usefixtures("undrawn")
def test_a_mean_has_the_changes_of_all_its_instances():
    """If users change at different times, a panel for each instance has the lines."""
    models = [CascadeModel(attraction, 1) for attraction in ([0.1, 0.9], [0.9, 0.1])]
    early, late = (PiecewiseStationaryModel(models, [0, n]) for n in (100, 300))
    title = "users change at different times"
    for users, mean_has, says in (((early, early), [100], False), ((early, late), [], True)):
        instances = [
            Instance(name, {model.kind: model}, 1) for name, model in zip("ab", users, strict=True)
        ]
        settings = {"instances": instances, "n_jobs": 1, "progress": False}
        results = clickgym.sweep(["NonStationaryCMRank-v0"], ["Random"], 500, 2, **settings)
        (mean,) = results.plot().axes
        assert [line.get_xdata()[0] for line in mean.lines[1:]] == mean_has
        assert (title in mean.get_title()) == says
        panels = results.plot(by_instance=True).axes
        starts = [[line.get_xdata()[0] for line in axes.lines[1:]] for axes in panels]
        assert starts == [[model.starts[1]] for model in users]
        assert not any(title in axes.get_title() for axes in panels)


def test_bands_end_where_values_end():
    """The half-width of the interval of 1 and 3 is 12.7, of 0.9 and 1 it is 0.635. Regret is not
    below 0, and a share not above 1, unless its mean is. Differences have no such bounds.
    """
    share = polars.when(agent="a", run=1).then(1.0).otherwise(0.9) * polars.col("step")
    rows = frame_of({"a": [1, 3], "b": [0, 0]}).with_columns(ndcg=share, any_click=3 * share)
    for measure, reference, ends in (
        ("regret", None, (0, 2 + 12.71)),
        ("regret", "b", (2 - 12.71, 2 + 12.71)),
        ("ndcg", None, (0.95 - 0.635, 1)),
        ("any_click", None, (2.85 - 1.906, 2.85 + 1.906)),
        ("ndcg", "b", (0.05 - 0.635, 0.05 + 0.635)),
    ):
        arguments = {"log": False, "measures": [measure], "reference": reference}
        figure = clickgym.Results.of_rows(rows).plot(**arguments)
        heights = [y for _, y in figure.axes[0].collections[0].get_paths()[0].vertices]
        assert (min(heights), max(heights)) == pytest.approx(ends, abs=0.01)


def test_paired_curves(returned):
    """The curves end at the differences of the table."""
    results = returned.select(AGENTS[1:], ENVS[1:])
    (axes, *_) = results.plot(reference="Random").axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "linear")
    ends = {line.get_label(): line.get_ydata()[-1] for line in axes.lines}
    table = results.table("Random").filter(polars.col("agent") != "Random")
    assert ends == pytest.approx(dict(table.select("agent", "difference").iter_rows()))


def test_metrics_are_drawn_per_session_of_a_window(returned):
    """Each point is the mean since the previous point, not since session 1. The axes are linear."""
    results = returned.select(AGENTS[1:2], ENVS[1:])
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


@pytest.mark.usefixtures("undrawn")
def test_report_says_table_metrics_and_files(returned, folder, printed):
    """The report shows the numbers of the table for the chosen reference; the summary has the same
    numbers.
    """
    out = printed(["report", str(folder), "--reference", "Random"])
    assert re.search(r"difference +worst +median +reward +ndcg +any_click +time", out)
    table = returned.table("Random")
    for row in table.iter_rows(named=True):
        regret, worst = regret_text(row["regret"], row["regret_ci95"]), f"{row['worst']:,.0f}"
        cells = f"{row['reward']:.4f} +{regret_text(row['ndcg'], row['ndcg_ci95'])}"
        pattern = rf"{row['env']}\n(.+\n)*{row['agent']} +{regret} .+ {worst}.* {cells} "
        assert row["worst"] < 100 or re.search(pattern, out)
    summary = polars.read_csv(folder / "summary.csv")
    assert summary.columns == table.columns
    for name in ("regret", "regret_ci95", "difference", "reward", "ndcg_ci95", "any_click"):
        known = table[name].is_not_null()
        assert summary[name].filter(known).to_list() == pytest.approx(table[name].drop_nulls())


@pytest.mark.usefixtures("undrawn")
def test_selection_never_overwrites_the_whole(returned, folder, tmp_path, printed):
    """A report of a selection is printed, and written only into another folder."""
    words = ["report", str(folder), "-e", ENVS[1], "-a", *AGENTS[:2], "-i", INSTANCES[1]]
    before = {path: path.read_bytes() for path in folder.rglob("*.*")}
    out = printed(words)
    assert "No files were written" in out
    assert "Oracle" not in out
    assert printed([*words, "--out", str(tmp_path / "new")])
    assert {path: path.read_bytes() for path in folder.rglob("*.*")} == before
    selected = polars.read_parquet(tmp_path / "new" / "results.parquet")
    assert {*selected["agent"], *selected["instance"]} == {*AGENTS[:2], INSTANCES[1]}


@pytest.mark.usefixtures("returned", "undrawn")
@pytest.mark.uncompiled
def test_papers_to_cite(folder, write, tmp_path, printed, capsys):
    """Lists the papers of all agents and environments, each once. A subclass has the papers of its
    base class. A warning names the user's agents without papers.
    """
    text = "from clickgym.agents import TopRank\nclass Mine(TopRank): ...\n"
    text += "class New(Mine): bibtex_keys = ()\n"
    write(module_with_mine=text)
    agents = ["module_with_mine:Mine", "LinearTS", "new=module_with_mine:New", "Random"]
    clickgym.sweep(["ContextualPBMRank-v0"], agents, 20, 1, n_jobs=1, out=tmp_path / "out")
    users = ["pbmbandits", "predictingclicks"]
    for where, keys in (
        (folder, ["cascadingbandits", *users, "toprank", "wscd2012"]),
        (tmp_path / "out", ["lints", *users, "toprank", "ubmlinucb"]),
    ):
        text = printed(["report", str(where), "--bib"])
        assert sorted(re.findall(r"^@\w+\{(\w+),", text, re.MULTILINE)) == keys
        assert text.count("{") == text.count("}")
    assert main(["report", str(tmp_path / "out"), "--bib"]) == 0
    assert "entry for new\n" in capsys.readouterr().err


@pytest.mark.uncompiled
def test_names_of_a_paper_in_latex():
    """The names stand in the rows, headings and notes. Two agents need two names."""
    env, agents = "ContextualCMRank-v0", ["UBMLinUCB", "C2UCB:alpha=0.2", "C2UCB", "PDGD"]
    names = {env: "Cascade", "UBMLinUCB": "Ours", "C2UCB": "C²UCB", "reward": "satisfied"}
    names["any_click"], metrics = "CTR", ["any_click"]
    swept = clickgym.sweep([env], agents, 20, 2, n_jobs=1, progress=False, metrics=metrics)
    single = [clickgym.run(agent, env, 20, seed=1, metrics=metrics) for agent in agents[:3:2]]
    for results in (swept, clickgym.Results(single)):
        text = results.to_latex("C2UCB", names=names, label="tab:ours")
        for words in ("{Cascade}", "\nOurs & ", "& satisfied & CTR", r"\label{tab:ours}"):
            assert words in text
        for note in ("clicks, Ours was told", "C²UCB explore as much as", "satisfied and CTR are "):
            assert note in text
        assert not re.search("C2UCB &|0.2 explore", text)
    assert "Differences to C²UCB are" in swept.to_latex("C2UCB", names=names)
    assert "learning\\_rate=10 loses far fewer clicks" in swept.to_latex()
    assert r"\caption{Mine, at 95\,\%.}" in swept.to_latex(caption=r"Mine, at 95\,\%.")
    assert swept.to_latex(names={"nobody": "x"}) == swept.to_latex()
    few = swept.to_latex(names=names, columns=["any_click", "worst"])
    assert "agent & CTR & worst " in few
    assert "CTR is per session" in few
    assert "Differences" not in few  # the caption explains the columns that are shown
    with pytest.raises(ValueError, match="'Ours' for two names in the column agent"):
        swept.to_latex(names={"UBMLinUCB": "Ours", "C2UCB": "Ours"})


@pytest.mark.usefixtures("undrawn")
def test_table_in_latex(returned, folder, printed):
    """The LaTeX table has the numbers of the printed table, the rules of booktabs, and no name that
    LaTeX would interpret.
    """
    name = "mine:Agent:note=</script>&amp;\"'`|*_[a](b)\\&%$#{}~^---%{x}"
    rows = returned.rows.with_columns(polars.col("agent").replace("Random", name))
    results = clickgym.Results.of_rows(rows)
    text = to_latex(results, "TopRank")
    body = text.partition("\\toprule")[2].splitlines()
    environments = [line for line in body if line.startswith("\\multicolumn")]
    assert [line.partition("{l}")[2] for line in environments] == [
        "{PBMRank-v0} \\\\",
        "{PBMRank-v0:reward=any\\_click} \\\\",
    ]
    heading, *lines = [line for line in body if line.count(" & ") == 8]
    columns = "agent & regret & $\\pm$ these & difference & worst & median & reward & ndcg"
    assert heading.startswith(columns)
    for line, row in zip(lines, results.table("TopRank").to_dicts(), strict=True):
        assert f"{row['regret']:,.0f}".replace(",", "{,}") in line
        unescaped = re.sub(r"\\[&%$#_{}]", "", line)
        assert unescaped.count("{") == unescaped.count("}")
        assert not re.search(r"[#_~^<>|]", unescaped)
        assert unescaped.count("$") % 2 == 0
    assert "Positive differences favour TopRank." in text
    assert re.search(r"textbackslash.* & \$\+[\d{},]+ ", text)
    printed_text = printed(["report", str(folder), "--latex", "--measure", "ndcg"])
    assert printed_text.strip() == returned.to_latex(measure="ndcg")


def test_numbers_of_the_table():
    """Numbers of single runs and p-values have three digits. Environments are named by their
    instances if these differ.
    """
    regrets = {"a": [1.238, 1.5, 2.0], "b": [12.34, 13.0, 15.0], "c": [3123.4, 3130.0, 3150.0]}
    words = format_table(clickgym.Results.of_rows(frame_of(regrets)), "a")
    (rows,) = words.environments.values()
    cells = [dict(zip(words.headings, row, strict=True)) for row in rows]
    assert [row["median"] for row in cells] == ["1.50", "13.0", "3,130"]
    assert [row["worst"] for row in cells] == ["2.00", "15.0", "3,150"]
    assert [row["p"] for row in cells] == ["–", "0.002", "<0.001"]
    two = [
        clickgym.run("Random", gym.make(f"{kind}Rank-v0", instance=instance), 10, seed=seed)
        for kind, instance in (("PBM", "yandex-9"), ("CM", "yandex-990"))
        for seed in range(2)
    ]
    places = list(format_table(clickgym.Results(two)).environments)
    assert places == ["PBMRank-v0, yandex-9", "CMRank-v0, yandex-990"]
    assert "median" not in format_table(clickgym.Results(two[:1])).headings
    assert words.title == "Regret after 10 sessions, i (mean ± 95 % interval over 3 runs)"
    assert any(note.startswith("± covers more runs with these users") for note in words.notes)


@pytest.mark.parametrize(
    ("apart", "reason"),
    [
        ("abc", "not from single clicks. a, b and c had their own users, not those of the others,"),
        ("abcd", "No agent had the same users as a, so there are no differences."),
        ("a", "Differences to b are over the same runs"),
        ("", "p needs at least three runs."),
    ],
)
def test_notes_say_what_is_compared(apart, reason):
    """A learner whose streams have their own users has no differences over runs, so another agent
    is the reference, and two runs are too few for a p-value.
    """
    frame = frame_of({name: [1.0, 2.0 + len(apart)] for name in "abcd"})
    of_its_own = polars.when(polars.col("agent").is_in([*apart])).then(polars.lit("sb3"))
    rows = frame.with_columns(engine=of_its_own.otherwise("engine"))
    assert reason in " ".join(format_table(clickgym.Results.of_rows(rows)).notes)


def first_items(observation):
    return [0, 1, 2, 3, 4]


@pytest.mark.uncompiled
@pytest.mark.usefixtures("undrawn")
def test_policies_that_did_not_learn_are_named(tmp_path):
    """Frozen policies are named whatever their label, for single runs and for a folder, next to
    agents that learned.
    """
    agents = {"mine": (FrozenPolicy, {"model": first_items}), "TopRank": "TopRank"}
    results = clickgym.sweep(["PBMRank-v0"], agents, 100, 2, n_jobs=1, out=tmp_path)
    one = replace(clickgym.run(agents["mine"], "PBMRank-v0", 100, seed=0), agent="its")
    alone = results.select(["mine"])
    for table in (results, clickgym.Results(tmp_path), clickgym.Results([one, results]), alone):
        marked = {text.partition(":")[0] for text in format_table(table).notes if "learn" in text}
        assert marked == {*table.names("agent")} - {"TopRank"}
    assert results.table("TopRank").filter(agent="mine")["difference"].count() == 1
    notes = " ".join(format_table(clickgym.Results([one, results]), "TopRank").notes)
    assert "its: no differences, because the seeds are not TopRank's." in notes
    assert "mine: ± and p are about this policy, not about other trainings." in notes


def test_a_training_that_continues_with_the_same_seed_is_named():
    """Other algorithms may have this seed."""
    first = replace(clickgym.run("Random", "PBMRank-v0", 100, seed=0), engine="own loop", trained=0)
    other, more = replace(first, agent="other"), replace(first, agent="more", trained=100)
    for runs, is_named in (([first, other], False), ([first, more], True)):
        notes = " ".join(format_table(clickgym.Results(runs)).notes)
        assert ("more had the seed of Random" in notes) == is_named


def test_facts_of_loops_are_shown_everywhere():
    """The facts are shown in the table, in LaTeX and in the legend of the figure, for the agents
    that have any.
    """
    late = [
        replace(clickgym.run("Random", "PBMRank-v0", 100, seed=seed), agent="late", **facts)
        for seed, facts in enumerate(
            [{"trained": 20_000, "reseeded": 7}, {"trained": 0, "unrecorded": 3000}]
        )
    ]
    results = clickgym.Results([*late, clickgym.run("TopRank", "PBMRank-v0", 100, seed=0)])
    facts = results.table().select("agent", "trained", "unrecorded").rows()
    assert sorted(facts) == [("TopRank", None, 0), ("late", 20_000, 3000)]
    assert "1 to 2 runs" in format_table(results).title
    legend = {text.get_text() for text in results.plot().legends[0].get_texts()}
    assert "TopRank" in legend
    [label] = {" ".join(text.split()) for text in legend if text.startswith("late")}
    for words in (label, " ".join(format_table(results).notes), results.to_latex()):
        assert "after 0 to 20,000 sessions of training" in words
        assert "0 to 3,000 sessions not recorded" in words
        assert "a seed was used again 0 to 7 times" in words
