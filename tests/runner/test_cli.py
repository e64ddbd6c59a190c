"""The command line: what it prints, writes and returns; progress; figures."""

import io
import re
import signal
import subprocess
import sys
import time

import polars
import pytest
from rich.console import Console
from slow import slow

import clickgym
from clickgym.agents import AGENTS, CONTEXTUAL_AGENTS, LEARNERS
from clickgym.command_line import main
from clickgym.envs import CONTEXTUAL, ENVIRONMENTS, list_instances
from clickgym.runner.catalogue import NEEDS
from clickgym.runner.progress import Progress
from clickgym.runner.reports.figures import regret_figure, save_figure
from clickgym.runner.results import Trial, read_results
from clickgym.runner.summaries import average
from clickgym.runner.words import command_of


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A finished sweep: two environments, one of them with arguments, two instances, and an agent
    without regret.
    """
    folder = tmp_path_factory.mktemp("results") / "out"
    agents = ["TopRank", "CascadeKLUCB:feedback=first_click", "Oracle"]
    clickgym.sweep(
        ["PBMRank-v0", "CMRank-v0:reward=any_click"],
        agents,
        2000,
        3,
        out=folder,
        instances=["yandex-9", "yandex-990"],
    )
    return folder


def command(*words, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "clickgym", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


# ------------------------------------------------------------------------------------------------------------------ list


def test_list_gives_one_line_to_everything(printed):
    lines = printed(["list"]).splitlines()
    for name in [
        *ENVIRONMENTS,
        *CONTEXTUAL,
        *list_instances(),
        *AGENTS,
        *CONTEXTUAL_AGENTS,
        *LEARNERS,
    ]:
        assert sum(line.startswith(f"{name} ") for line in lines) == 1


def test_list_says_what_an_agent_is_for_needs_and_is_told(printed):
    out = printed(["list", "agents"])
    groups = dict(
        part.strip().partition("\n")[::2]
        for part in re.split(r"^needs ", out, flags=re.MULTILINE)[1:]
    )
    groups = {what.strip(): text for what, text in groups.items()}
    assert list(groups) == list(NEEDS)
    assert re.search(
        r"^PBMUCB +PBM +Lagrée et al. 2016.* examination", groups["examination"], flags=re.MULTILINE
    )
    assert re.search(r"^CascadeSWUCB +CM that changes +", groups["nothing"], flags=re.MULTILINE)
    assert "PBMRank-v0" not in out


def test_show_describes_an_agent_of_ones_own(tmp_path, monkeypatch, printed, refused):
    (tmp_path / "shown_agent.py").write_text(
        'from clickgym.agents import Random\nclass Mine(Random):\n    """Steps at random."""\n'
        "    def __init__(self, n_items, n_positions, *, step=3, seed=None):\n"
        "        super().__init__(n_items, n_positions, seed=seed)\n"
    )
    monkeypatch.chdir(tmp_path)
    out = printed(["show", "shown_agent:Mine"])
    assert out.splitlines() == ["shown_agent:Mine", "Steps at random."]
    assert "there is no module 'no_such_module'" in refused(["show", "no_such_module:Mine"])
    assert "there is no agent" in refused(["show", "TopRank:Mine"])


def test_show_describes_an_environment_of_ones_own(tmp_path, monkeypatch, printed, refused):
    (tmp_path / "shown_env.py").write_text(
        "import clickgym, gymnasium\nfrom clickgym.envs import CascadeModel\nclass Mine(CascadeModel):\n"
        '    """Users of mine: they click twice."""\n    short, title = "Mine", "my model"\n'
        'clickgym.register_click_model("ShownRank-v0", Mine)\ngymnasium.register("Plain-v0", entry_point="shown_env:Mine")\n'
    )
    monkeypatch.chdir(tmp_path)
    for form, about in {
        "": "they click twice",
        "NonStationary": "change abruptly",
        "Contextual": "other candidates",
    }.items():
        assert re.search(
            rf"my model \(Mine\).*{about}", printed(["show", f"shown_env:{form}ShownRank-v0"])
        )
    assert "the module 'shown_env' registers no id 'NoRank-v0'" in refused(
        ["show", "shown_env:NoRank-v0"]
    )
    assert (
        "shown_env:Plain-v0 is no environment that clickgym.register_click_model made"
        in refused(["show", "shown_env:Plain-v0"])
    )
    assert "Position-based model" in printed(["show", "clickgym:PBMRank-v0"])


# ------------------------------------------------------------------------------------------------------------------- run


@pytest.mark.usefixtures("undrawn")
def test_run_takes_several_values_after_one_flag(tmp_path, capsys):
    words = "run PBMRank-v0 CMRank-v0 --agents TopRank Random -a Oracle --instance yandex-9 yandex-990 --horizon 1e3 --runs 2"
    assert main([*words.split(), "--seed", "3", "--out", str(tmp_path / "out")]) == 0
    table, _, config = read_results(tmp_path / "out")
    assert config["envs"] == ["PBMRank-v0", "CMRank-v0"]
    assert config["agents"] == ["TopRank", "Random", "Oracle"]
    assert config["instances"] == ["yandex-9", "yandex-990"]
    assert (config["horizon"], config["runs"], config["seed"]) == (1000, 2, 3)
    assert len(table.filter(polars.col("step") == 1000)) == 2 * 3 * 2 * 2
    out, err = capsys.readouterr()
    assert "Regret after 1,000 sessions, mean over 2 instances" in out
    assert len(re.findall(r"^(?:TopRank|Random|Oracle) .* ± .* compiled", out, re.MULTILINE)) == 6
    assert (
        len(
            re.findall(
                r"^\w+Rank-v0  yandex-\d+  \w+  regret .* ± .* / session  compiled$",
                err,
                flags=re.MULTILINE,
            )
        )
        == 12
    )
    assert "\x1b" not in out + err


@pytest.mark.usefixtures("undrawn")
def test_run_once_more_prints_the_table_at_once(tmp_path, capsys):
    words = [
        "run",
        "PBMRank-v0",
        "--agents",
        "TopRank",
        "--horizon",
        "500",
        "--runs",
        "2",
        "--out",
        str(tmp_path / "out"),
    ]
    assert main(words) == 0
    first = capsys.readouterr()
    assert main(words) == 0
    second = capsys.readouterr()
    assert second.out == first.out
    assert second.err == "2 of 2 runs were finished before\n"


def test_long_round_horizons_are_written_short():
    config = {"envs": ["E"], "agents": ["A"], "instances": ["i"], "runs": 1, "seed": 0}
    written = [
        command_of(config | {"horizon": horizon}).split()[8]
        for horizon in (10, 200, 1000, 120_000, 10**6, 1234)
    ]
    assert written == ["10", "200", "1e3", "12e4", "1e6", "1234"]


def test_run_help_teaches(printed):
    out = printed(["run", "--help"])
    for word in ("--agents BatchRank TopRank", "my_module:MyAgent", "query.json", "Ctrl-C"):
        assert word in out


def test_without_words_there_is_help(printed):
    assert "report" in printed([])


def test_ctrl_c_says_what_is_kept_and_leaves_no_traceback(tmp_path):
    words = [
        "run",
        "PBMRank-v0",
        "--agents",
        "TopRank",
        "--horizon",
        "1e10",
        "--runs",
        "2",
        "--out",
        "out",
    ]
    process = command(*words, cwd=tmp_path)
    while not (tmp_path / "out" / "cells").exists():
        time.sleep(0.05)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (
        err.strip()
        == "clickgym: stopped; 0 of 2 runs are finished and kept in out, and the same command resumes it"
    )


def test_help_and_list_load_neither_data_frames_nor_figures():
    code = "import sys; sys.modules['clickgym_lab'] = None; "  # whose studies need both
    code += "from clickgym.command_line import main; main(['list']); print(*sys.modules, file=sys.stderr)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stderr.split()
    assert {"polars", "matplotlib", "scipy.special", "torch"} & set(loaded) == set()


@pytest.fixture(scope="module")
def help_of_a_process():
    """What it prints, and the modules that it loads."""
    words = [sys.executable, "-X", "importtime", "-m", "clickgym", "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return done.stdout, [line.rpartition("|")[2].strip() for line in done.stderr.splitlines()]


def test_the_module_is_the_command(help_of_a_process):
    assert "clickgym run PBMRank-v0" in help_of_a_process[0]


def test_help_loads_neither_agents_nor_a_command(help_of_a_process):
    loaded = help_of_a_process[1]
    assert "clickgym.command_line" in loaded
    assert [
        name
        for name in loaded
        if name.startswith(tuple(f"clickgym.{room}" for room in ("agents", "runner", "lab")))
    ] == []


# ------------------------------------------------------------------------------------------------------- report and table


def test_intervals_are_students_and_over_runs():
    regrets = {("i", 0): 1.0, ("i", 1): 3.0, ("j", 0): 5.0, ("j", 1): 11.0}
    rows = [("e", i, "a", run, 10, regret, 20.0, 3) for (i, run), regret in regrets.items()]
    table = polars.DataFrame(
        rows,
        schema=["env", "instance", "agent", "run", "step", "regret", "reward", "clicks"],
        orient="row",
    )
    (row,) = average(table, ["env", "agent"]).iter_rows(named=True)
    # Means over instances are 3 and 7; t for one degree of freedom is 12.706, and the standard error 2.
    assert (row["regret"], row["instances"], row["runs"]) == (5.0, 2, 2)
    assert row["regret_ci95"] == pytest.approx(12.7062 * 2, rel=1e-4)
    (row,) = average(table.filter(run=0), ["env", "agent"]).iter_rows(named=True)
    assert row["regret_ci95"] is None


# ---------------------------------------------------------------------------------------------------------------- figure


def test_a_panel_for_each_environment_and_the_same_colours_everywhere(results):
    table, _, config = read_results(results)
    figure = regret_figure(table, config)
    assert [panel.get_title() for panel in figure.axes] == config["envs"]
    assert [panel.get_ylabel() for panel in figure.axes] == [
        "cumulative regret (clicks)",
        "cumulative regret (clicked lists)",
    ]
    colours = [[line.get_color() for line in panel.lines] for panel in figure.axes]
    assert colours[0] == colours[1]
    assert len(set(colours[0])) == 3
    assert all(
        "no regret: Oracle" in [text.get_text() for text in panel.texts] for panel in figure.axes
    )
    assert [text.get_text() for text in figure.legends[0].texts] == [
        "TopRank",
        "CascadeKLUCB:feedback=first_click",
    ]
    ends = {
        line.get_color(): line.get_ydata()[-1]
        for line in figure.axes[0].lines
        if len(line.get_ydata())
    }
    wanted = average(table.filter(step=2000, env="PBMRank-v0"), ["agent"])["regret"].to_list()[:2]
    assert list(ends.values()) == pytest.approx(wanted)


@pytest.mark.parametrize("n_envs", [1, *slow(2, 4, 5)])
def test_any_number_of_environments_one_run_and_no_regret_at_all(n_envs, tmp_path):
    envs = [f"PBMRank-v0:cutoff={k}" for k in range(1, n_envs + 1)]
    clickgym.sweep(envs, ["Oracle"], 10, 1, out=tmp_path / "out", n_jobs=1)
    table, _, config = read_results(tmp_path / "out")
    figure = regret_figure(table, config)
    assert len(figure.axes) == n_envs
    assert all(file.stat().st_size > 1000 for file in save_figure(figure, tmp_path / "picture"))


# -------------------------------------------------------------------------------------------------------------- progress


def test_progress_on_a_terminal_shows_sessions_rate_and_time_left(results):
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=150)
    cells = [Trial("E", "i", "A", run) for run in range(2)]
    frame = polars.read_parquet(next((results / "cells").iterdir()))
    with Progress(console) as progress:
        progress.start(cells, {}, 2000)
        progress.sessions(1500)
        progress.sessions(500)
        progress.finished(cells[0], frame, counted=True)
        progress.finished(
            cells[1], frame.with_columns(run=polars.lit(99, polars.Int64)), counted=False
        )
        bar = progress._bar
        assert bar.tasks[0].completed == bar.tasks[0].total == 4000
    shown = text.getvalue()
    assert "100 %" in shown
    assert "left" in shown
    assert "regret" in shown
    assert progress.kept("out") == "2 of 2 runs are finished and kept in out"


def test_progress_of_several_sweeps_is_one_bar_at_a_time_and_no_lines(results):
    text = io.StringIO()
    trials = [Trial("E", "i", "A", run) for run in range(2)]
    frame = polars.read_parquet(next((results / "cells").iterdir()))
    with Progress(Console(file=text, force_terminal=True, width=150), lines=False) as progress:
        for _ in range(2):
            progress.start(trials, {trials[0]: frame}, 2000)
            progress.finished(trials[1], frame, counted=False)
            assert [task.completed for task in progress._bar.tasks] == [4000]
    assert "regret" not in text.getvalue()
    assert progress.kept("out") == "what is finished is kept in out"


def test_progress_of_sweeps_that_belong_together_is_one_bar(results):
    text, file = io.StringIO(), io.StringIO()
    frame = polars.read_parquet(next((results / "cells").iterdir()))
    with Progress(Console(file=text, force_terminal=True, width=150)) as progress:
        progress.whole("two sweeps", 8000)
        done, played = {}, 0
        for env in ("E", "F"):
            trials = [Trial(env, "i", "A", run) for run in range(2)]
            done[trials[0]] = (
                frame  # by an earlier process; those of the other sweep are counted already
            )
            progress.start(trials, done, 2000)
            progress.finished(trials[1], frame, counted=False)
            done[trials[1]], played = frame, played + 4000
            assert [(task.description, task.completed) for task in progress._bar.tasks] == [
                ("two sweeps", played)
            ]
    assert "100 %" in text.getvalue()
    assert "regret" not in text.getvalue()
    assert progress.kept("out") == "what is finished is kept in out"
    with Progress(Console(file=file, width=1000), lines=False) as progress:
        progress.whole("two sweeps", 8000)
    assert file.getvalue() == "two sweeps: 8,000 sessions\n"
