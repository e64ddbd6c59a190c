"""Reports: which agents differ, and the same table as Markdown, LaTeX and HTML, with any name in
it.
"""

import html.parser
import itertools
import json
import re
import shlex
import warnings

import numpy as np
import polars
import pytest
from scipy.stats import binom, ttest_1samp, ttest_ind

import clickgym
from clickgym.command_line import main
from clickgym.core.formats import regret_text
from clickgym.runner.reports.figures import regret_figure
from clickgym.runner.reports.page import to_html
from clickgym.runner.results import read_results
from clickgym.runner.summaries import LEVEL, average, pairwise, ranked, summary
from clickgym.runner.sweep_results import Results
from clickgym.runner.words import command_of, commands_of, number_of_runs

HOSTILE = (
    """mine:Agent:note=</script><img src=x onerror=alert(1)>&amp;"'`|*_[a](b)\\&%$#{}~^---%{x}"""
)


def table_of(regrets, env="E", instance="i"):
    """A table with nothing but final regrets, by agent."""
    rows = [
        (env, instance, agent, run, 10, float(r), 1.0)
        for agent, values in regrets.items()
        for run, r in enumerate(values)
    ]
    return polars.DataFrame(
        rows, ["env", "instance", "agent", "run", "step", "regret", "reward"], orient="row"
    )


def timings_of(table):
    return table.select(
        "env", "instance", "agent", "run", engine=polars.lit("compiled"), seconds=polars.lit(1e-6)
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A real sweep, one agent of which is given a name that is code in every language it will be
    written in.
    """
    folder = tmp_path_factory.mktemp("results") / "out"
    envs, agents = (
        ["PBMRank-v0", "CMRank-v0:reward=any_click"],
        ["TopRank", "CascadeKLUCB", "Random", "Oracle"],
    )
    clickgym.sweep(envs, agents, 2000, 3, out=folder, instances=["yandex-9", "yandex-990"])
    for file in ("results.parquet", "timings.parquet"):
        polars.read_parquet(folder / file).with_columns(
            polars.col("agent").replace("Random", HOSTILE)
        ).write_parquet(folder / file)
    config = json.loads((folder / "config.json").read_text())
    config["parts"][0]["agents"][2] = HOSTILE
    del config["checksum"]
    (folder / "config.json").write_text(json.dumps(config))
    return read_results(folder)


def wanted_cells(results):
    """What every form of the table must say, by environment."""
    table, timings, config = results
    rows = summary(table, timings)
    return {
        env: [
            [
                row["agent"],
                regret_text(row["regret"], row["regret_ci95"]),
                f"{row['reward']:.4f}",
                row["engine"],
            ]
            for row in rows.filter(env=env).sort("regret").iter_rows(named=True)
        ]
        for env in config["envs"]
    }


# ---------------------------------------------------------------------------------------------------------- which differ


def test_pairs_are_welchs_with_holms_correction():
    rng = np.random.default_rng(1)
    regrets = {
        name: rng.normal(mean, spread, 6)
        for name, mean, spread in [("a", 10, 1), ("b", 11, 3), ("c", 14, 1), ("d", 30, 9)]
    }
    pairs = pairwise(table_of(regrets))
    raw = {
        pair: ttest_ind(*(regrets[name] for name in pair), equal_var=False).pvalue
        for pair in itertools.combinations("abcd", 2)
    }
    wanted, largest = {}, 0.0
    for tests_left, pair in zip(range(6, 0, -1), sorted(raw, key=raw.get), strict=True):
        wanted[pair] = largest = min(1.0, max(largest, tests_left * raw[pair]))
    found = {(row["better"], row["worse"]): row["p"] for row in pairs.iter_rows(named=True)}
    assert found == pytest.approx(wanted, abs=1e-6)  # regrets count to six decimals
    assert pairs["differ"].to_list() == [p < LEVEL for p in found.values()]
    assert set(pairs["differ"]) == {True, False}
    assert pairs["difference"].to_list() == pytest.approx(
        [regrets[w].mean() - regrets[b].mean() for b, w in found], abs=1e-5
    )


def test_equal_agents_are_rarely_told_apart():
    # Null: four agents with the same mean and spreads of their own. 2000 tables of 5 runs; each tells some pair apart with
    # probability at most 5 %. This test fails by chance with probability below 1e-4.
    rng, n_tables = np.random.default_rng(2), 2000
    spreads = {"a": 1.0, "b": 1.0, "c": 3.0, "d": 10.0}
    tables = [
        table_of({name: rng.normal(50, s, 5) for name, s in spreads.items()}, env=str(i))
        for i in range(n_tables)
    ]
    false_alarms = (
        pairwise(polars.concat(tables))
        .group_by("env")
        .agg(polars.col("differ").any())["differ"]
        .sum()
    )
    assert false_alarms <= binom.isf(1e-4, n_tables, LEVEL)
    assert false_alarms >= 0.005 * n_tables  # nor is the test so careful that it sees nothing


def test_groups_are_corrected_by_themselves_and_instances_averaged_first():
    one, other = {"a": [1, 2, 3], "b": [4, 5, 9]}, {"a": [11, 10, 12], "b": [11, 12, 10]}
    table = polars.concat([table_of(one, instance="i"), table_of(other, instance="j")])
    alone = [pairwise(table_of(regrets))["p"][0] for regrets in (one, other)]
    assert pairwise(table, ("env", "instance"))["p"].to_list() == pytest.approx(alone)
    means = {name: np.mean([one[name], other[name]], axis=0) for name in one}
    assert pairwise(table)["p"].to_list() == pytest.approx(
        [ttest_ind(means["a"], means["b"], equal_var=False).pvalue], rel=1e-4
    )


def test_one_run_tells_nothing_and_one_agent_has_nobody_to_be_compared_with():
    (row,) = pairwise(table_of({"a": [1], "b": [900]})).iter_rows(named=True)
    assert (row["p"], row["differ"], row["difference"]) == (None, None, 899)
    assert pairwise(table_of({"a": [1, 2, 3]})).is_empty()


def test_agents_that_never_vary_differ_as_they_stand_and_burden_no_other_test():
    pairs = pairwise(
        table_of(
            {
                "fixed": [5, 5, 5],
                "oracle": [1e-12, 0, -1e-12],
                "same": [5, 5, 5 + 1e-9],
                "a": [5.1, 7, 6],
            }
        )
    )
    rows = {frozenset((row["better"], row["worse"])): row for row in pairs.iter_rows(named=True)}
    for names, differ in [(("fixed", "oracle"), True), (("fixed", "same"), False)]:
        assert (rows[frozenset(names)]["p"], rows[frozenset(names)]["differ"]) == (None, differ)
    largest = ttest_1samp([5.1, 7, 6], 5).pvalue  # what Welch's test is where one side never varies
    assert rows[frozenset(("fixed", "a"))]["p"] == pytest.approx(
        2 * largest
    )  # of three tests it shares the place of the last two


def test_places_and_ties():
    table = table_of({"c": [30, 31, 32], "a": [10, 12, 14], "b": [11, 13, 15.5], "d": [31, 30, 33]})
    rows = ranked(table, timings_of(table))
    assert rows.select("agent", "place", "alike").rows() == [
        ("a", 1, [2]),
        ("b", 2, [1]),
        ("c", 3, [4]),
        ("d", 4, [3]),
    ]
    apart = table_of({"a": [1, 2, 3], "b": [50, 51, 52]})
    assert ranked(apart, timings_of(apart))["alike"].to_list() == [None, None]


def test_regret_of_nothing_has_no_sign():
    assert (regret_text(-1e-12, 1e-13), regret_text(-1e-12, None)) == ("0.000 ± 0.000", "0.0")


# --------------------------------------------------------------------------------------------------------- Markdown, LaTeX


class Texts(html.parser.HTMLParser):
    """The cells of the tables of a page, and the code in it."""

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
            self.tables[-1][-1].append(" ".join(self.cell.split()))
            self.cell = None

    def handle_data(self, data):
        if self.cell is not None:
            self.cell += data


LATEX_WORDS = {
    r"\textbackslash{}": "\\",
    r"\textasciitilde{}": "~",
    r"\textasciicircum{}": "^",
    r"\textbar{}": "|",
    r"\textless{}": "<",
    r"\textgreater{}": ">",
    r"\textasciigrave{}": "`",
    r"\textquotesingle\textquotesingle{}": '"',
    r"\textquotesingle{}": "'",
    r"$\pm$": "±",
    r"$\mu$": "µ",
    r"\textendash{}": "–",
    "-{}": "-",
} | {f"\\{character}": character for character in "&%$#_{}"}


# ------------------------------------------------------------------------------------------------------------------ HTML


@pytest.fixture(scope="module")
def page(results):
    return to_html(*results)


def test_the_page_reads_as_the_table_for_every_instance(results, page):
    table, timings, config = results
    finals = [table for table in Texts(page).tables if len(table[0]) == 7]
    parts = [
        results,
        *(
            (t.filter(instance=i), m.filter(instance=i), config)
            for t, m in [(table, timings)]
            for i in config["instances"]
        ),
    ]
    of_envs = [wanted_cells(part) for part in parts]
    wanted = [cells[env] for env in config["envs"] for cells in of_envs]
    read = [[[row[1], row[2], row[4], row[6]] for row in rows[1:]] for rows in finals]
    assert read == wanted


def test_the_pairs_of_the_page_are_those_of_the_test(results, page):
    first = next(table for table in Texts(page).tables if len(table[0]) == 5)
    pairs = pairwise(results[0]).filter(env="PBMRank-v0")
    assert [row[:2] for row in first[1:]] == [
        list(pair) for pair in pairs.select("better", "worse").rows()
    ]
    assert [row[4] for row in first[1:]] == [
        "told apart" if differ else "tied" for differ in pairs["differ"]
    ]


def test_the_curves_of_the_page_are_those_of_the_table(results, page):
    table, _, config = results
    data = json.loads(
        re.search(
            r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.DOTALL
        )[1]
    )
    assert [agent["name"] for agent in data["agents"]] == config["agents"]
    for (e, env), (i, part) in itertools.product(
        enumerate(config["envs"]),
        enumerate([table, *(table.filter(instance=name) for name in config["instances"])]),
    ):
        for agent, curve in zip(config["agents"], data["curves"][f"{e}-{i}"], strict=True):
            wanted = average(part.filter(env=env, agent=agent), ["step"])
            assert data["steps"] == wanted["step"].to_list()
            assert curve["mean"] == pytest.approx(wanted["regret"].to_list(), rel=1e-4)
            assert curve["half"] == pytest.approx(wanted["regret_ci95"].to_list(), rel=1e-4)


def test_no_name_becomes_code_and_nothing_is_loaded(page):
    tags = Texts(page).tags
    assert not [tag for tag, _ in tags if tag == "img"]
    assert sum(tag == "script" for tag, _ in tags) == 3
    assert not [attrs for _, attrs in tags if {"src", "onerror"} & attrs.keys()]
    assert [attrs["href"] for tag, attrs in tags if tag in ("a", "link")] == ["data:,", "#tables"]
    (policy,) = (
        attrs["content"]
        for tag, attrs in tags
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none';")


def test_the_page_is_the_same_each_time_and_not_heavy(results, page):
    assert to_html(*results) == page
    assert len(page.encode()) < 2.5e6


@pytest.mark.usefixtures("undrawn")
def test_environments_with_instances_of_their_own_are_not_averaged(tmp_path, capsys):
    own = "PBMRank-v0:attraction=[0.5,0.4,0.3],examination=[1.0,0.5]"
    for out, envs in (("several", ["PBMRank-v0", "ContextualPBMRank-v0", own]), ("custom", [own])):
        clickgym.sweep(envs, ["EpsilonGreedy", "Random"], 100, 2, out=tmp_path / out)
        assert main(["report", str(tmp_path / out), "--html"]) == 0
        table, timings, config = read_results(tmp_path / out)
        page = to_html(table, timings, config)
        titles = [
            " ".join(re.sub("<.*?>", "", title).split())
            for title in re.findall("<h3.*?</h3>", page)
        ]
        names = ["yandex-9982", "linear", "custom"][-len(envs) :]
        assert titles == [f"{env}, {name}" for env, name in zip(envs, names, strict=True)]
        assert not re.search(r"mean over \d", page + capsys.readouterr().out)
        _, *words = shlex.split(command_of(config))
        assert main([*words, "--out", str(tmp_path / "again" / out)]) == 0
        assert read_results(tmp_path / "again" / out)[0].equals(table)


def test_a_single_checkpoint_is_drawn_as_points(tmp_path):
    clickgym.sweep(
        ["PBMRank-v0"], ["TopRank", "Random"], 100, 2, out=tmp_path / "out", checkpoints=[100]
    )
    table, _, config = read_results(tmp_path / "out")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (panel,) = regret_figure(table, config).axes
    assert [line.get_marker() for line in panel.lines] == ["o", "o"]


def test_one_run_is_reported_as_one(tmp_path):
    clickgym.sweep(["PBMRank-v0"], ["TopRank", "Random"], 100, 1, out=tmp_path / "out")
    results = read_results(tmp_path / "out")
    page = to_html(*results)
    assert "cannot tell" in page
    assert 'name="band"' not in page


# ---------------------------------------------------------------------------------------------------------- command line


@pytest.mark.usefixtures("undrawn")
def test_report_writes_what_is_asked_for_beside_the_results(tmp_path, capsys):
    clickgym.sweep(["PBMRank-v0"], ["TopRank", "Random"], 100, 2, out=tmp_path / "out")
    plain = {
        "results.parquet",
        "timings.parquet",
        "config.json",
        "cells",
        "summary.csv",
        "regret.png",
        "regret.svg",
    }
    for words, more in [([], set()), (["--html"], {"report.html"})]:
        assert main(["report", str(tmp_path / "out"), *words]) == 0
        plain |= more
        assert {file.name for file in (tmp_path / "out").iterdir()} == plain
        assert all(name in capsys.readouterr().out for name in [*more][:1])


@pytest.mark.usefixtures("only_svg")
def test_names_are_printed_and_drawn_as_they_are(tmp_path, capsys, monkeypatch):
    # A closing tag, an emoji and a formula, to those who read them so.
    name, folder = r"odd_names:A:note=[/x]$\frac$", tmp_path / "out:x:"
    (tmp_path / "odd_names.py").write_text(
        "from clickgym.agents import Random\n\n\nclass A(Random):\n"
        "    def __init__(self, n_items, n_positions, *, note, seed=None):\n"
        "        super().__init__(n_items, n_positions, seed=seed)\n"
    )
    monkeypatch.chdir(tmp_path)
    words = [
        "run",
        "PBMRank-v0",
        "--agents",
        name,
        "--horizon",
        "100",
        "--runs",
        "2",
        "--jobs",
        "1",
        "--out",
        str(folder),
    ]
    assert main(words) == 0
    printed = capsys.readouterr()
    assert (printed.out + printed.err).count(name) == 2  # when it was finished, and in the table
    assert f"Results in {folder}: " in printed.out
    assert {"regret.png", "regret.svg"} <= {file.name for file in folder.iterdir()}


@pytest.mark.usefixtures("undrawn")
def test_a_report_that_cannot_be_written_is_an_error_in_one_line(tmp_path, refused):
    clickgym.sweep(["PBMRank-v0"], ["Random"], 50, 2, out=tmp_path / "out")
    (tmp_path / "out" / "report.html").mkdir()
    assert "report.html" in refused(["report", str(tmp_path / "out"), "--html"])


@pytest.mark.usefixtures("undrawn")
def test_the_command_says_metrics_and_engine(tmp_path):
    clickgym.sweep(
        ["PBMRank-v0"],
        ["Random"],
        50,
        1,
        out=tmp_path / "one",
        metrics=["any_click"],
        engine="python",
    )
    table, _, config = read_results(tmp_path / "one")
    _, *words = command_of(config).split()
    assert words[-6:-2] == ["--metrics", "any_click", "--engine", "python"]
    assert main([*words, "--out", str(tmp_path / "two")]) == 0
    assert read_results(tmp_path / "two")[0].equals(table)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Two environments on two instances, as nobody has touched them since."""
    folder = tmp_path_factory.mktemp("plain") / "out"
    clickgym.sweep(
        ["PBMRank-v0", "CMRank-v0"],
        ["TopRank", "Random"],
        1000,
        2,
        out=folder,
        instances=["yandex-9", "yandex-990"],
    )
    return folder


def report(folder, out, *words):
    """The texts that a report of one's choice writes, and those of its figure."""
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    assert main(["report", str(folder), "--html", "--out", str(out), *words]) == 0
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == before
    return {file.name: file.read_text() for file in out.iterdir() if file.suffix != ".png"}


@pytest.mark.usefixtures("undrawn")
def test_what_is_chosen_holds_for_table_figure_and_page(plain, tmp_path, capsys):
    words = ["--agents", "Random", "--environments", "CMRank-v0"]
    texts = report(plain, tmp_path / "deep" / "out", *words)
    assert texts.keys() == {"report.html", "regret.svg", "summary.csv"}
    command = "clickgym run CMRank-v0 --agents Random --instance yandex-9 yandex-990 --horizon 1e3 --runs 2 --seed 0"
    for text in (texts["report.html"], texts["summary.csv"], capsys.readouterr().out):
        assert "CMRank-v0" in text
        assert "Random" in text
        assert "PBMRank-v0" not in text
        assert "TopRank" not in text
    (in_page,) = re.findall('<pre id="command">(.*?)</pre>', texts["report.html"], flags=re.DOTALL)
    assert f"{command} --out results/again" in re.sub("<.*?>", "", in_page)
    chosen = Results(plain).select(["Random"], ["CMRank-v0"])
    caption = " ".join(chosen.plot()._supxlabel.get_text().split())
    assert caption == f"clickgym {chosen.config['clickgym']}: {command}"
    assert (
        main([*shlex.split(command)[1:], "--out", str(tmp_path / "again")]) == 0
    )  # the footer is true
    assert read_results(tmp_path / "again")[0].equals(chosen.frame)


@pytest.mark.usefixtures("undrawn")
def test_each_instance_by_itself_in_table_figure_and_page(plain, tmp_path, capsys):
    texts = report(plain, tmp_path, "--per-instance")
    printed = capsys.readouterr().out
    places = [
        f"{env}, {name}"
        for env in ("PBMRank-v0", "CMRank-v0")
        for name in ("yandex-9", "yandex-990")
    ]
    page = texts["report.html"]
    assert re.findall(r"figcaption><span>(.*?)</span>", page.replace("<wbr>", "")) == places
    assert page.count('<div class="view"') == 4
    assert 'name="instance"' not in page
    for text in (printed, page):
        assert "mean over 2" not in text
        assert "averaged" not in text
    rows = ranked(*read_results(plain)[:2], ("env", "instance"))
    for row in rows.iter_rows(named=True):
        cell = regret_text(row["regret"], row["regret_ci95"])
        assert re.search(
            rf"{row['env']}\n(.+\n)*{row['instance']} +{row['agent']} +{cell} ", printed
        )
        assert cell in page


@pytest.mark.usefixtures("only_pdf")
def test_the_figure_of_a_paper_is_a_pdf_of_truetype_fonts(plain, tmp_path, capsys):
    assert main(["report", str(plain), "--out", str(tmp_path), "--pdf"]) == 0
    assert "regret.png, regret.svg, regret.pdf, summary.csv" in capsys.readouterr().out
    content = (tmp_path / "regret.pdf").read_bytes()
    assert content.startswith(b"%PDF")
    assert b"/FontFile2" in content
    assert b"/Type3" not in content
    assert main(["report", str(plain), "--out", str(tmp_path / "again"), "--pdf"]) == 0
    assert (
        tmp_path / "again" / "regret.pdf"
    ).read_bytes() == content  # no time of writing stands in it


@pytest.mark.slow
@pytest.mark.usefixtures("only_svg")
def test_linear_axes_hold_for_figure_and_page(plain, tmp_path):
    pages = {axes: report(plain, tmp_path / axes, f"--{axes}") for axes in ("log", "linear")}
    for axes, texts in pages.items():
        checked = re.findall(
            r'name="[xy]" value="(\w+)" form="controls" checked', texts["report.html"]
        )
        assert checked == [axes] * 2
    assert pages["log"]["regret.svg"] != pages["linear"]["regret.svg"]
    assert report(plain, tmp_path / "default") == pages["log"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["--agents", "TopRnk"],
            "unknown agent 'TopRnk'; did you mean 'TopRank'? (there is: TopRank, Random)",
        ),
        (["--environments", "CMRank"], "unknown environment 'CMRank'; did you mean 'CMRank-v0'?"),
    ],
)
def test_what_was_not_run_cannot_be_reported(words, says, plain, tmp_path, refused):
    assert says in refused(["report", str(plain), "--out", str(tmp_path / "out"), *words])
    assert not (tmp_path / "out").exists()


def test_parts_that_a_choice_leaves_out_are_not_in_the_command(tmp_path):
    clickgym.sweep(["PBMRank-v0"], ["TopRank"], 500, 3, out=tmp_path)
    clickgym.sweep(["CMRank-v0"], ["Random"], 500, 2, out=tmp_path)
    results = Results(tmp_path)
    assert number_of_runs(results.config) == "2 to 3"
    (command,) = commands_of(results.select(environments=["CMRank-v0"]).config)
    assert command.startswith(
        "clickgym run CMRank-v0 --agents Random --instance yandex-9982 --horizon 500 --runs 2"
    )
    chosen = results.select(["Random"])  # which was run in one of the environments
    assert chosen.config["envs"] == ["CMRank-v0"]
    with pytest.raises(ValueError, match="there are no results of Random in PBMRank-v0"):
        results.select(["Random"], ["PBMRank-v0"])


def test_where_nothing_can_be_written_nothing_is_printed(plain, tmp_path, capsys):
    (tmp_path / "file").touch()
    assert main(["report", str(plain), "--out", str(tmp_path / "file")]) == 2
    out, err = capsys.readouterr()
    assert (out, "is a file" in err) == ("", True)
