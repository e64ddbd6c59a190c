"""``clickgym watch``: the run is that of `clickgym.run`, and what is shown of it is what happened."""

import re

import numpy as np
import pytest

import clickgym
from clickgym.agents import Agent
from clickgym.command_line import main
from clickgym.runner.commands import watch as command
from clickgym.runner.watch import Watching, moments


class InTurn(Agent):
    """A plain Python agent: each session shows the items from another one on."""

    def __init__(self, n_items, n_positions, *, seed=None):
        self.n_items, self.n_positions, self.first = n_items, n_positions, 0

    def rank(self, observation):
        return (self.first + np.arange(self.n_positions)) % self.n_items

    def update(self, observation, ranking, clicks, reward):
        self.first += 1


@pytest.mark.parametrize(
    ("agent", "env"),
    [
        ("CascadeTS", "PBMRank-v0"),
        (InTurn, "PBMRank-v0"),
        (InTurn, "CMRank-v0:bots=random:share=0.2"),
        (InTurn, "CascadeMDPRank-v0"),
    ],
)
def test_what_is_watched_is_the_run_of_the_same_seed(agent, env):
    called = []
    frames = Watching(env, agent, 1000, seed=3).play(called.append)
    steps = moments(1000)
    result = clickgym.run(agent, env, 1000, seed=3, checkpoints=steps)
    assert called == frames
    assert [frame.page.step for frame in frames] == steps.tolist()
    np.testing.assert_allclose([frame.page.regret for frame in frames], result.regret, rtol=1e-9)
    assert [frame.clicks for frame in frames] == result.clicks.tolist()
    assert frames[0].speed is None
    assert all(frame.speed > 0 for frame in frames[1:])


def test_the_first_sessions_follow_one_another_and_the_last_is_there():
    for sessions in (1, 7, 1234, 10**6):
        steps = moments(sessions)
        assert steps[0] == 1
        assert steps[-1] == sessions
        assert (np.diff(steps) > 0).all()
        assert len(steps) < 75
    assert set(range(1, 6)) | {10, 100, 1000, 10**6} <= set(steps.tolist())


def test_attractions_are_those_of_the_items_shown_in_that_session():
    before, after = ({"model": "CM", "attraction": values, "n_positions": 2} for values in ([0.1, 0.2, 0.3], [0.7, 0.8, 0.9]))
    env = ("NonStationaryCMRank-v0", {"models": [before, after], "starts": [0, 10]})
    shown = {frame.page.step: frame.page for frame in Watching(env, "CascadeTS", 20).play()}
    for step, users in ((10, before), (11, after)):
        assert shown[step].attraction == tuple(users["attraction"][item] for item in shown[step].ranking)
    for other in ("CMRank-v0:churn=0.1", "ContextualCMRank-v0", "CascadeMDPRank-v0"):
        assert Watching(other, InTurn, 5).play()[-1].page.attraction is None


def test_in_a_pipe_a_few_moments_are_printed(printed):
    out = printed(["watch", "PBMRank-v0", "--agent", "CascadeTS", "--sessions", "150"])
    assert re.findall(r"session ([\d,]+) ", out) == ["1", "10", "100", "150"]
    assert out.count("clicks so far") == 4
    assert "\x1b" not in out


@pytest.mark.parametrize("width", [40, 100])
def test_on_a_terminal_every_moment_is_drawn_in_its_place(width, monkeypatch, printed):
    monkeypatch.setattr(command, "SECONDS", 0.0)
    for name, value in {"COLUMNS": width, "TTY_COMPATIBLE": 1, "TERM": "xterm"}.items():
        monkeypatch.setenv(name, str(value))
    out = printed(["watch", "PBMRank-v0", "--agent", "CascadeTS", "--sessions", "200"])
    assert [int(step) for step in dict.fromkeys(re.findall(r"session (\d+) of 200\n", out))] == moments(200).tolist()
    last = re.sub("\x1b[^A-Za-z]*[A-Za-z]", "", out.rpartition("CascadeTS in PBMRank-v0")[2])
    end = clickgym.run("CascadeTS", "PBMRank-v0", 200, seed=0)
    assert f"clicks so far {end.clicks[-1]}" in last
    assert f"regret so far {end.regret[-1]:.1f}" in last
    assert max(map(len, last.splitlines())) <= width
    assert "…" not in last


def test_a_failing_agent_is_told(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [
        "from clickgym.agents import Random",
        "class Broken(Random):",
        "    def rank(self, observation):",
        "        return [0]",
    ]
    (tmp_path / "broken.py").write_text("\n".join(lines))
    assert main(["watch", "PBMRank-v0", "--agent", "broken:Broken", "--sessions", "100"]) == 1
    assert "step 1" in capsys.readouterr().err
