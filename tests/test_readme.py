"""The code of the README runs and prints what the README shows."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import clickgym

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LOOP, AGENT, PPO = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
[COMMAND] = re.findall(r"```console\n\$ clickgym (.*?)  #.*?```", README, flags=re.DOTALL)
[PRINTED] = re.findall(r"```text\n(.*?)```", README, flags=re.DOTALL)


def test_loop_and_own_agent(capsys):
    """The loop prints the sessions that the README shows, and the agent passes `check_agent`."""
    names = {"__name__": "readme"}
    exec(LOOP, names)
    assert capsys.readouterr().out == PRINTED
    exec(AGENT, names)
    assert clickgym.run(names["ThompsonSampling"], "PBMRank-v0", 1_000, seed=0).steps[-1] == 1_000


@pytest.mark.slow
def test_own_agent_beside_others(tmp_path, monkeypatch, printed):
    """Its command has the regret that the README shows."""
    (tmp_path / "my_module.py").write_text(AGENT)
    monkeypatch.chdir(tmp_path)
    shown = README.partition("```console")[2].partition("```")[0].splitlines()[4:]
    found = printed([*COMMAND.split(), "--jobs", "1"], 100)
    for row in shown:
        regret = re.match(r"\w+ +[\d,]+ ± \d+", row)[0]
        assert regret in found, row
    assert len(shown) == 3


def test_beside_a_clone(tmp_path):
    """A clone's folder has the name of the package, and hides it from no program in its parent."""
    (tmp_path / "clickgym").symlink_to(ROOT)
    done = subprocess.run(
        [sys.executable, "-c", LOOP], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == (PRINTED, "")


@pytest.mark.slow
def test_ppo(capsys):
    """PPO learns as the README says, on every build of torch, and its log has a curve."""
    pytest.importorskip("stable_baselines3")
    exec(PPO, {"__name__": "readme"})
    printed = capsys.readouterr().out
    rewards = [float(value) for value in re.findall(r"ep_rew_mean +\| ([\d.]+)", printed)]
    assert len(rewards) > 3
    assert rewards[-1] > rewards[0] + 1
    assert float(printed.split()[-1]) < 1_000
