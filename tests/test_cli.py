"""Tests of the command line: what it prints, writes and returns."""

import inspect
import os
import re
import signal
import subprocess
import sys
import time

import pytest

import clickgym
from clickgym.agents import AGENTS
from clickgym.cli import COMMANDS, main
from clickgym.envs import ENVIRONMENTS, list_instances
from clickgym.measure.metrics import METRICS
from clickgym.runner.commands.run import run

NAMES = [*ENVIRONMENTS, *list_instances(), *AGENTS, *METRICS]


# ------------------------------------------------------------------------------------------- help


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_is_right_at_80_columns(command, printed):
    """No line is longer than 80 columns, no word is broken, nothing is padded, and no markup is
    left.
    """
    unlimited = printed([*command.split(), "--help"], 300)
    out = printed([*command.split(), "--help"], 80)
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines if line != line.rstrip()]
    assert not re.search(r"\[/|\[bold|[│╭╰…]", out)
    assert out.split() == unlimited.split()
    assert command or printed([]) == printed(["--help"])


# ------------------------------------------------------------------------------------ list, show


def test_list_gives_one_line_to_everything(printed):
    """Lines have at most 100 characters, also when the output goes to a pipe."""
    out = printed(["list"])
    assert max(map(len, out.splitlines())) <= 100
    for name in NAMES:
        assert len(re.findall(rf"^{re.escape(name)} ", out, re.MULTILINE)) == 1
    assert re.search(r"^PBMUCB +PBM +examination +Lagrée", out, re.MULTILINE)
    metrics = printed(["list", "metrics"])
    assert out.rstrip().endswith(metrics.rstrip())
    assert [name for name in NAMES if f"\n{name} " in metrics] == [*METRICS]
    assert printed(["list", "metrics", "agents"]) == metrics + printed(["list", "agents"])
    assert printed(["list", "envs"]) == printed(["list", "environments"])


def test_show_prints_a_docstring_of_every_name(printed, refused):
    for name in NAMES:
        assert printed(["show", name]).startswith(f"{name}\n")
    assert "first 7 positions" in printed(["show", "ndcg@7"])
    assert "after sessions [5, 10]" in printed(["show", "abrupt:length=5,n_epochs=3"])
    assert "name 'toprank'; did you mean 'TopRank'" in refused(["show", "mine=toprank"])


def test_each_option_of_run_is_an_argument_of_sweep():
    """Each option has an argument of the same name and with the same default, except the options
    that say what the table shows.
    """
    options, arguments = (inspect.signature(one).parameters for one in (run, clickgym.sweep))
    assert {*options} == {*arguments, "by_instance", "measure"}
    for name in {*arguments} - {"metrics"}:
        assert options[name].default == arguments[name].default, name


# -------------------------------------------------------------------------------------------- run


@pytest.mark.usefixtures("undrawn")
def test_run_without_a_folder_prints_its_table(tmp_path, monkeypatch, printed):
    monkeypatch.chdir(tmp_path)
    words = ["run", "PBMRank-v0", "--agents", "Random", "--horizon", "100", "--runs", "2"]
    table, note = printed(words).rstrip().split("\n\nNothing was saved")
    assert os.listdir(tmp_path) == []
    kept = printed([*words, "--out", "out"])
    measured = r"Random +[\d.]+ ± [\d.]+ +[\d.]+"
    assert re.search(measured, table)[0] == re.search(measured, kept)[0]
    assert "--out" in note


def test_an_error_of_a_command_is_a_line(monkeypatch, capsys):
    def fail() -> None:
        raise MemoryError("of 1\nTB")

    monkeypatch.setattr("clickgym.runner.commands.list.list_", fail)
    assert main(["list"]) == 1
    assert capsys.readouterr() == ("", "clickgym: not enough memory: of 1 TB\n")
    monkeypatch.setenv("CLICKGYM_TRACEBACK", "1")
    with pytest.raises(MemoryError):
        main(["list"])


@pytest.mark.uncompiled
@pytest.mark.usefixtures("undrawn")
def test_run_takes_several_values_after_one_flag(tmp_path, capsys):
    words = "run PBMRank-v0 PBMRank-v0:reward=any_click --agents TopRank Random -a Oracle --seed 3"
    words += " --instances yandex-9 yandex-990 --horizon 200 --runs 2 --metrics ndcg any_click"
    words += f" --out {tmp_path / 'out'}"
    assert main(words.split()) == 0
    results = clickgym.Results(tmp_path / "out")
    [config] = results.configs
    assert [*config.envs] == ["PBMRank-v0", "PBMRank-v0:reward=any_click"]
    assert [*config.agents] == ["TopRank", "Random", "Oracle"]
    assert [*config.instances] == ["yandex-9", "yandex-990"]
    assert config.metrics == ["ndcg", "any_click"]
    assert (config.horizon, config.seed) == (200, 3)
    assert len(results.frame.filter(step=200)) == 2 * 3 * 2 * 2
    out, err = capsys.readouterr()
    assert {"200", "2"} <= set(re.findall(r"[\d,]+", out.partition("\n")[0]))
    assert len(re.findall(r" ± .* [\d.,]+ [nµ]s *$", out, flags=re.MULTILINE)) == 6
    assert max(map(len, re.findall(r".+ [nµ]s", out))) <= 100
    assert "\x1b" not in out + err
    assert main(words.split()) == 0
    again = capsys.readouterr()
    assert again.out == out
    assert f"Results in {tmp_path / 'out'}: regret.png, regret.svg, summary.csv, " in out
    assert again.err == f"clickgym: 24 of 24 runs were in {tmp_path / 'out'} already\n"


def test_ctrl_c_leaves_no_traceback(tmp_path):
    words = "run PBMRank-v0 --agents TopRank --horizon 1e10 --runs 2 --out out"
    command = [sys.executable, "-m", "clickgym", *words.split()]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    while not list(tmp_path.glob("out/config.json")):
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=600)
    # If the signal comes while numba executes generated code, Python ends by the signal, which a
    # shell calls 130, too.
    assert process.returncode in (130, -signal.SIGINT), err
    *_, line = err.splitlines()
    assert line.startswith("clickgym: stopped")
    assert "0 of 2 runs" in line
    assert sorted(os.listdir(tmp_path / "out")) == ["config.json", "runs"]


@pytest.mark.usefixtures("undrawn")
def test_no_name_and_no_number_is_cut(printed, tmp_path):
    """This holds at any terminal width. A width of 0, which containers and build tools set, counts
    as unknown. Columns of a table that do not fit go on below, and begin with the name again.
    """
    agents = ["TopRank", "BatchRank", "CascadeKLUCB:feedback=first_click"]
    clickgym.sweep(["PBMRank-v0", "NonStationaryPBMRank-v0"], agents, 10_000, 3, out=tmp_path)
    for words in (["report", str(tmp_path)], ["list"], ["show", "yandex-990"]):
        unlimited = printed(words).partition("Results in")[0]
        numbers = {word for word in unlimited.split() if re.search(r"\d|-v0|_", word)}
        for width in (0, 60, 80, 140):
            out = printed(words, width)
            assert "…" not in out
            assert width or numbers <= set(out.split())
    wide, narrow = (printed(["report", str(tmp_path)], width) for width in (140, 60))
    assert narrow.count("\nTopRank ") > wide.count("\nTopRank ") == 2
