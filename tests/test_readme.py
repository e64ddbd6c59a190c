"""The code of the README runs and prints what the README shows."""

import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
LOOP, AGENT, PPO = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
[PRINTED] = re.findall(r"```text\n(.*?)```", README, flags=re.DOTALL)


def test_loop_and_own_agent(capsys):
    """The loop prints the sessions that the README shows, and the agent passes `check_agent`."""
    names = {"__name__": "readme"}
    exec(LOOP, names)
    assert capsys.readouterr().out == PRINTED
    exec(AGENT, names)
    assert names["result"].steps[-1] == 1_000


@pytest.mark.slow
def test_ppo(capsys):
    """PPO comes as near to the best list as the README says, on every build of torch."""
    pytest.importorskip("stable_baselines3")
    exec(LOOP + PPO, {"__name__": "readme"})
    assert float(capsys.readouterr().out.split()[-1]) > 10_500
