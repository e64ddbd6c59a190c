"""Late clicks: when they arrive, what the agent sees until then, in both engines."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from engines import assert_engines_agree, chunks_of
from reference_agents import MODELS, make
from registries import CLICK_AGENTS, CONTEXTUAL_AGENTS
from slow import slow

import clickgym
from clickgym.agents import PBMUCB, Agent, Random
from clickgym.envs import ClickEnv
from clickgym.runner.play.delay import Delay

PBM = MODELS["PBM"]
DELAYS = ("batch:7", "fixed:5", "geometric:4")
LATE = [name for name, agent in CLICK_AGENTS.items() if agent.learns_from_any_list]
LATE_WITH_FEATURES = [
    name for name, agent in CONTEXTUAL_AGENTS.items() if agent.learns_from_any_list
]


# ---------------------------------------------------------------------------- when clicks arrive


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("batch:1", [1, 2, 3, 4, 5, 6, 7]),
        ("batch:3", [3, 3, 3, 6, 6, 6, 9]),  # the third session is in the first batch
        ("fixed:1", [2, 3, 4, 5, 6, 7, 8]),  # one session later, not at once
        ("fixed:3", [4, 5, 6, 7, 8, 9, 10]),
        ("geometric:1", [2, 3, 4, 5, 6, 7, 8]),
    ],
)
def test_due_sessions(text, due):
    delay = Delay(text, seed=0)
    assert delay.due(1, 7).tolist() == due
    delay = Delay(text, seed=0)
    assert [*delay.due(1, 3), *delay.due(4, 4)] == due


def test_geometric_law():
    """P(G = g) = (1/m) (1 − 1/m)^(g − 1) from 1 on, with mean m; cut at 20 m."""
    delays = Delay("geometric:4", seed=1).due(1, 200_000) - np.arange(1, 200_001)
    share = np.bincount(delays, minlength=81)[1:] / len(delays)
    law = 0.25 * 0.75 ** np.arange(80)
    assert abs(share - law).max() < 5 * np.sqrt(0.25 * 0.75 / len(delays))
    assert delays.mean() == pytest.approx(4, abs=0.05)

    assert Delay("geometric:4", seed=1).slots == 81


# -------------------------------------------------------------------------- what the agent sees


class Listener(Agent):
    """Shows lists in turn, and writes down what it is called with."""

    learns_from_any_list = True

    def __init__(self, n_items: int = 4, n_positions: int = 2, *, seed: Any = None) -> None:
        self.items, self.n_positions = np.arange(n_items), n_positions
        self.ranked: list[Any] = []
        self.updates: list[list[Any]] = [[]]

    def rank(self, observation: Any) -> Any:
        self.ranked.append(copy.deepcopy(observation))
        self.updates.append([])
        self.items = np.roll(self.items, 1)
        return self.items[: self.n_positions]

    def update(self, observation: Any, ranking: Any, clicks: Any, reward: float) -> None:
        self.updates[-1].append((observation, np.array(ranking), clicks, reward))


class Counter(gym.Env):
    """Session t is clicked by the binary digits of t, and shows the hour t."""

    action_space = gym.spaces.MultiDiscrete([4, 4])
    observation_space = gym.spaces.Dict(
        clicks=gym.spaces.MultiBinary(2), hour=gym.spaces.Box(0, 10**6, (1,), np.int64)
    )

    def __init__(self, ends: bool = False) -> None:
        self.ends, self.t, self.clicks = ends, 0, np.zeros(2, np.int8)
        self.hour = np.zeros(1, np.int64)

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        return {"clicks": self.clicks, "hour": self.hour}, {}

    def step(self, action: Any) -> Any:
        self.t += 1
        self.clicks[:] = self.t % 2, self.t // 2 % 2  # in place, as some environments do
        self.hour[:] = self.t
        over = self.ends and self.t % 10 == 0
        return {"clicks": self.clicks, "hour": self.hour}, float(self.t), over, False, {}


@pytest.mark.parametrize("text", DELAYS)
def test_what_arrives_and_what_is_seen(text):
    """Each session comes whole, in the order shown, with what its own `rank` saw; `rank` sees the
    clicks that came last, and of the environment what is not late.
    """
    agent = Listener()
    clickgym.run(agent, Counter(), 30, seed=3, delay=text)
    due, shown, last = Delay(text, seed=3).due(1, 30), Listener(), np.zeros(2, np.int8)
    lists = [shown.rank(None) for _ in range(30)]
    for t in range(1, 31):
        np.testing.assert_array_equal(agent.ranked[t - 1]["clicks"], last)
        assert agent.ranked[t - 1]["hour"] == t - 1
        arrived = [n for n in range(1, t + 1) if due[n - 1] == t]
        assert [reward for *_, reward in agent.updates[t]] == arrived
        for n, (seen, ranking, clicks, _) in zip(arrived, agent.updates[t], strict=True):
            np.testing.assert_array_equal(seen["clicks"], agent.ranked[n - 1]["clicks"])
            assert seen["hour"] == n - 1
            np.testing.assert_array_equal(ranking, lists[n - 1])
            np.testing.assert_array_equal(clicks, [n % 2, n // 2 % 2])
            last = clicks


def test_what_is_due_after_the_horizon_is_never_learned():
    agent = Listener()
    clickgym.run(agent, Counter(), 10, seed=0, delay="batch:4")
    assert [len(updates) for updates in agent.updates] == [0, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0]


@pytest.mark.uncompiled
@pytest.mark.parametrize("text", DELAYS)
@pytest.mark.parametrize("engine", ["compiled", "python"])
def test_users_and_agent_draw_as_without_a_delay(engine, text):
    """An agent that learns nothing shows the same lists to the same users."""
    runs = [
        clickgym.run(Random(5, 3, seed=1), ClickEnv(PBM), 200, seed=0, delay=delay, engine=engine)
        for delay in (None, text)
    ]
    np.testing.assert_array_equal(runs[0].regret, runs[1].regret)
    np.testing.assert_array_equal(runs[0].clicks, runs[1].clicks)


# ----------------------------------------------------------------------------------- both engines


TYPICAL = ("CascadeTS", "CascadeSWUCB", "GRAB")
"""An agent that draws, one that keeps past sessions, and one whose state grows; the loop of late
clicks is the same for all, and `test_engines` compares their kernels.
"""


@pytest.mark.parametrize(
    "name",
    [
        TYPICAL[0],
        *(pytest.param(name, marks=pytest.mark.uncompiled) for name in TYPICAL[1:]),
        *slow(*sorted(set(LATE) - {*TYPICAL})),
    ],
)
@pytest.mark.parametrize(
    "text", ["batch:1", "batch:7", "fixed:1", "fixed:5", "geometric:4", "geometric:300"]
)
def test_engines_agree(name, text):
    assert_engines_agree(
        lambda: make(name, PBM, horizon=10, seed=5), lambda: ClickEnv(PBM), delay=text
    )


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("C2UCB", marks=pytest.mark.uncompiled),
        *slow(*sorted(LATE_WITH_FEATURES)),
    ],
)
def test_engines_agree_where_candidates_change(name):
    """The features of a session wait with its clicks."""
    for text in DELAYS:
        assert_engines_agree(
            lambda: clickgym.make_agent(name, gym.make("ContextualPBMRank-v0"), seed=5),
            lambda: gym.make("ContextualPBMRank-v0"),
            100,
            text,
        )


@pytest.mark.uncompiled
def test_engines_agree_where_users_change():
    env = "NonStationaryCMRank-v0"
    assert_engines_agree(
        lambda: clickgym.make_agent("CascadeDUCB", gym.make(env), horizon=2000, seed=5),
        lambda: gym.make(env),
        2000,
        "geometric:40",
    )


@pytest.mark.uncompiled
@pytest.mark.parametrize("engine", ["compiled", "python"])
def test_batch_of_one_is_no_delay(engine):
    def regret(delay):
        agent = PBMUCB(5, 3, examination=PBM.examination, seed=1)
        env = ClickEnv(PBM)
        return clickgym.run(agent, env, 300, seed=0, delay=delay, engine=engine).regret

    np.testing.assert_array_equal(regret("batch:1"), regret(None))
    assert (regret("fixed:1") != regret(None)).any()


@pytest.mark.uncompiled
def test_room_for_all_that_is_learned_at_once(monkeypatch):
    """An agent whose state grows when it learns gets room for all clicks that may come in a chunk,
    and for a list of others; kernels allocate no memory.
    """
    agent, rooms = PBMUCB(5, 3, examination=PBM.examination, seed=1), []
    monkeypatch.setattr(agent, "make_room", rooms.append)
    with chunks_of(999):  # at the end of the second chunk, a single session, all clicks come
        clickgym.run(agent, ClickEnv(PBM), 1000, seed=0, delay="batch:1000")
    assert len(rooms) == 2
    assert rooms[1] >= 1000
    rooms.clear()
    agent.update(None, [2, 1, 0], [0, 0, 0])
    assert rooms == [1]


# ------------------------------------------------------------------------------------- refusals


class Silent(Listener):
    learns_from_any_list = False


@pytest.mark.parametrize(
    ("agent", "env"),
    [
        ("TopRank", "PBMRank-v0"),
        (Silent(10, 5), "PBMRank-v0"),
        ("CascadeVI", "CascadeMDPRank-v0"),
        ("CascadeTS", "CascadeMDPRank-v0"),
        (Listener(), Counter(ends=True)),
        ("PPO", "PBMRank-v0"),
    ],
    ids=str,
)
def test_pairs_without_delay(agent, env):
    """An agent of its last list, users with a state or who leave, and generic RL."""
    if agent == "PPO":
        pytest.importorskip("stable_baselines3")
    with pytest.raises((ValueError, RuntimeError), match=r"late clicks|a user left"):
        clickgym.run(agent, env, 100, seed=0, delay="fixed:9")


# --------------------------------------------------------------------------------------- sweeps


@pytest.mark.usefixtures("undrawn")
def test_sweep_and_command_line(tmp_path, capsys):
    """A delay is a setting of a sweep: the command line has it, a folder shows one."""
    from clickgym.command_line import main

    out = tmp_path / "late"
    words = "run PBMRank-v0 --agents CascadeTS --horizon 500 --runs 2 --delay batch:50 --jobs 1"
    assert main([*words.split(), "--out", str(out)]) == 0
    assert ", delay batch:50 (mean" in " ".join(capsys.readouterr().out.split())

    def sweep(delay, **options):
        return clickgym.sweep(
            ["PBMRank-v0"], ["CascadeTS"], 500, 2, delay=delay, n_jobs=1, **options
        ).frame["regret"]

    late = sweep("batch:50")
    assert late.equals(sweep("batch:50", engine="python"))
    assert late.equals(sweep("batch:50", out=out))
    assert not late.equals(sweep(None))
    assert clickgym.Results(out).config["delay"] == "batch:50"
    for other in (None, "batch:5"):
        with pytest.warns(UserWarning, match="2 runs are played anew .*delay: "):
            sweep(other, out=out)
    with pytest.raises(ValueError, match="late clicks"):
        clickgym.sweep(["PBMRank-v0"], ["TopRank"], 500, 2, delay="batch:5", out=tmp_path / "no")
    assert not (tmp_path / "no").exists()
