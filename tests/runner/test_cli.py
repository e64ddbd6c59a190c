"""The command line: what it prints, writes and returns."""

import os
import re
import signal
import subprocess
import sys
import time
from importlib import import_module
from importlib.metadata import version

import pytest

import clickgym
from clickgym.agents import AGENTS
from clickgym.command_line import COMMANDS, main
from clickgym.envs import ENVIRONMENTS, list_instances
from clickgym.runner.play.metrics import METRICS

sweep_module = import_module("clickgym.runner.sweep")
NAMES = [*ENVIRONMENTS, *list_instances(), *AGENTS, *METRICS]


# ------------------------------------------------------------------------------------------- help


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_is_right_at_80_columns(command, printed):
    """No line is longer, no word is broken, nothing is padded, and no markup is left."""
    unlimited = printed([*command.split(), "--help"], 300)
    out = printed([*command.split(), "--help"], 80)
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines if line != line.rstrip()]
    assert not re.search(r"\[/|\[bold|[│╭╰…]", out)
    assert out.split() == unlimited.split()


def test_help_and_version(printed):
    """Without words it is the help."""
    assert printed([]) == printed(["--help"])
    assert printed(["--version"]) == f"clickgym {version('clickgym')}\n"


# ------------------------------------------------------------------------------------ list, show


def test_list_gives_one_line_to_everything(printed):
    """Also into a pipe, at most 100 characters wide."""
    lines = printed(["list"]).splitlines()
    assert max(map(len, lines)) <= 100
    for name in NAMES:
        assert sum(line.startswith(f"{name} ") for line in lines) == 1
    assert re.search(r"^PBMUCB +PBM +examination +Lagrée", "\n".join(lines), flags=re.MULTILINE)
    metrics = printed(["list", "metrics"])
    assert "\n".join(lines).rstrip().endswith(metrics.rstrip())
    assert printed(["list", "metrics", "agents"]) == metrics + printed(["list", "agents"])
    assert printed(["list", "envs"]) == printed(["list", "environments"])


def test_show_prints_a_docstring_of_every_name(printed):
    for name in NAMES:
        out = printed(["show", name])
        assert out.startswith(f"{name}\n")
    assert "A/B test" not in printed(["show", "TopRank"])
    for name, word in {
        "TopRank": "Lattimore",
        "ndcg": "positions",
        "personal": "form='bilinear'",
        "yandex-like": "n_positions=5",
    }.items():
        assert word in printed(["show", name])


def test_wrong_name_suggests_across_all_kinds(refused):
    for wrong, meant in {"toprank": "TopRank", "ndgc": "ndcg", "yandex-9983": "yandex-99"}.items():
        assert f"did you mean '{meant}" in refused(["show", wrong])


def test_show_prints_the_defaults_of_a_learner(printed):
    text = printed(["show", "PPO"])
    assert "'n_steps': 4, 'batch_size': 128" in text


# -------------------------------------------------------------------------------------------- run


def test_run_without_a_folder_prints_its_table(tmp_path, monkeypatch, printed):
    monkeypatch.chdir(tmp_path)
    words = ["run", "PBMRank-v0", "--agents", "Random", "--horizon", "100", "--runs", "2"]
    table, note = printed(words).rstrip().split("\n\nNothing was kept")
    assert os.listdir(tmp_path) == []
    kept = printed([*words, "--out", "out"])
    measured = r"Random +[\d.]+ ± [\d.]+ +[\d.]+"
    assert re.search(measured, table)[0] == re.search(measured, kept)[0]
    assert "--out" in note


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [(ValueError("bad\ninput"), 2, "bad input"), (MemoryError(), 1, "memory")],
)
def test_an_error_of_a_command_is_a_line(error, code, words, monkeypatch, capsys):
    def fail() -> None:
        raise error

    monkeypatch.setattr("clickgym.runner.commands.show.list_", fail)
    assert main(["list"]) == code
    out, err = capsys.readouterr()
    assert out == ""
    [line] = err.splitlines()
    assert words in line


def test_run_has_a_horizon_by_itself(printed):
    out = printed(["run", "PBMRank-v0", "--agents", "Random", "--runs", "1", "--jobs", "1"])
    assert out.startswith("Regret after 10,000 sessions")


def test_run_takes_several_values_after_one_flag(tmp_path, capsys):
    words = "run PBMRank-v0 PBMRank-v0:reward=any_click --agents TopRank Random -a Oracle --seed 3"
    words += " --instances yandex-9 yandex-990 --horizon 1e3 --runs 2 --metrics ndcg any_click"
    words += f" --out {tmp_path / 'out'}"
    assert main(words.split()) == 0
    results = clickgym.Results(tmp_path / "out")
    assert list(results.config.specs("env")) == ["PBMRank-v0", "PBMRank-v0:reward=any_click"]
    assert list(results.config.specs("agent")) == ["TopRank", "Random", "Oracle"]
    assert list(results.config.specs("instance")) == ["yandex-9", "yandex-990"]
    assert results.config.metrics == ["ndcg", "any_click"]
    assert (results.config.horizon, results.config.seeds) == (1000, [3])
    assert len(results.frame.filter(step=1000)) == 2 * 3 * 2 * 2
    out, err = capsys.readouterr()
    assert {"1,000", "2"} <= set(re.findall(r"[\d,]+", out.partition("\n")[0]))
    assert len(re.findall(r" ± .* [\d.]+ [nµ]s *$", out, flags=re.MULTILINE)) == 6
    assert max(map(len, re.findall(r".+ [nµ]s", out))) <= 100
    assert "\x1b" not in out + err
    assert main(words.split()) == 0
    again = capsys.readouterr()
    assert again.out == out
    assert again.err == f"clickgym: 24 of 24 runs were in {tmp_path / 'out'} already\n"


@pytest.mark.usefixtures("undrawn")
def test_a_command_prints_what_it_asked_for(tmp_path, monkeypatch, printed):
    """Also when another command, with another horizon, fills the folder meanwhile; the folder shows
    all agents of its last horizon.
    """
    words = f"run PBMRank-v0 --runs 1 --jobs 1 --out {tmp_path / 'out'} --horizon".split()
    printed([*words, "50", "--agents", "Random"])
    write_folder = sweep_module.write_folder

    def after_another(out):
        monkeypatch.setattr(sweep_module, "write_folder", write_folder)
        printed([*words, "60", "--agents", "CascadeTS"])
        write_folder(out)

    assert "Random" not in printed([*words, "50", "--agents", "TopRank"])
    monkeypatch.setattr(sweep_module, "write_folder", after_another)
    out = printed([*words, "50", "--agents", "TopRank", "Oracle"])
    assert out.startswith("Regret after 50 sessions")
    assert {"TopRank", "Oracle"} <= set(out.split())
    shown = printed(["report", str(tmp_path / "out")])
    assert shown.startswith("Regret after 60 sessions")


def test_ctrl_c_leaves_no_traceback(tmp_path):
    words = "run PBMRank-v0 --agents TopRank --horizon 1e10 --runs 2 --out out"
    command = [sys.executable, "-m", "clickgym", *words.split()]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    while not list(tmp_path.glob("out/runs/*")):
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 130, err
    _, line = err.splitlines()
    assert line.startswith("clickgym: stopped")
    assert "0 of 2 runs" in line
    assert sorted(os.listdir(tmp_path / "out")) == ["runs"]
