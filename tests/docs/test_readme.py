"""Tests that the code of the README runs and prints what the README shows."""

import re
import subprocess
import sys

import pytest

import clickgym
from tests.helpers.pages import ROOT, blocks, commands, page

README = page("README")
LOOP, AGENT, LEARNER, USERS = blocks(README, "python")
PRINTED, TABLE, OWN_TABLE, LEARNED = blocks(README, "text")
COMPARED, OWN, *OF_LOGS = commands(README)


def test_programs():
    """The agent and the users of the README play."""
    names = {"__name__": "readme"}
    for code in (LOOP, AGENT, USERS):
        exec(code, names)
    assert clickgym.run(names["ThompsonSampling"], "PBMRank-v0", 1_000, seed=0).steps[-1] == 1_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "text", "rows"),
    [(COMPARED, TABLE, 8), (OWN, OWN_TABLE, 3)],
    ids=["compared", "own"],
)
def test_tables(command, text, rows, tmp_path, monkeypatch, printed):
    """The commands print what the README shows. The README's tables have fewer columns."""
    (tmp_path / "my_module.py").write_text(AGENT)
    monkeypatch.chdir(tmp_path)
    assert_shown(text, printed([*command, "--jobs", "1"], 100), rows)


def assert_shown(text, output, rows):
    """Check that every cell of the given number of agents occurs in the first table of the output,
    which has more rows.
    """
    shown = re.findall(r"^\S+ +[\d,.]+ ± .+", text, flags=re.MULTILINE)
    for row in shown:
        agent, *cells = re.split(" {2,}", row)
        printed = re.search(rf"^{re.escape(agent)} .*", output, re.MULTILINE)[0]
        assert set(cells) <= set(re.split(" {2,}", printed)), row
    assert len(shown) == rows


@pytest.mark.slow
def test_click_log(tmp_path, monkeypatch, printed):
    """Each command reads what the previous command wrote; `fit` names the model of the users."""
    monkeypatch.chdir(tmp_path)
    outputs = {command[0]: printed(command, 100) for command in OF_LOGS}
    assert [*outputs] == ["record", "check-models", "fit", "run"]
    assert "Simulations of this log can be trusted" in outputs["check-models"]
    assert "DBN predicts the held-out sessions best" in outputs["fit"]
    assert re.search(r"^CascadeTS .*\n(?:.*\n)*Fixed ", outputs["run"], re.MULTILINE)


def test_beside_a_clone(tmp_path):
    """The folder of a clone has the same name as the package, but programs in its parent folder
    still find the package. The loop prints the sessions that the README shows.
    """
    (tmp_path / "clickgym").symlink_to(ROOT)
    done = subprocess.run(
        [sys.executable, "-c", LOOP], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == (PRINTED, "")


@pytest.mark.slow
def test_ppo(tmp_path, monkeypatch, capsys):
    """The bandits lose as many clicks as the table shows. PPO learns with every version of torch:
    while it trains, it loses less than a third of what random lists lose.
    """
    pytest.importorskip("stable_baselines3")
    monkeypatch.chdir(tmp_path)
    exec(LEARNER, {"__name__": "readme"})
    printed = capsys.readouterr().out
    assert_shown(LEARNED, printed, 2)
    lost = re.search(r"^PPO +([\d,.]+) ", printed, re.MULTILINE)[1]
    assert float(lost.replace(",", "")) < 8_663 / 3
