"""Tests of the programs for other libraries in docs/wrappers.md, exactly as printed there: their
loops end episodes, and their output is right.
"""

from __future__ import annotations

import re
import sys

import gymnasium as gym
import pytest

import clickgym
from tests.helpers.pages import blocks, page
from tests.helpers.programs import output

CODE = blocks(page("docs/wrappers").partition("## Other libraries")[2], "python")
LOOPS = "needs the libraries of make test-slow"


def program(library):
    """The program of the page that imports a library."""
    imports = rf"^(from|import) {re.escape(library)}\b"
    return next(code for code in CODE if re.search(imports, code, flags=re.MULTILINE))


def printed(*arguments, folder):
    """What Python prints in its own process, because libraries change global settings."""
    return output(sys.executable, *arguments, cwd=folder)


def numbers(text):
    return [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*\.?\d*", text)]


def optimum(**arguments):
    return gym.make("PBMRank-v0", **arguments).reset(seed=0)[1]["optimal_reward"]


@pytest.mark.slow
def test_tensorboard_has_returns_from_the_first_rollout(tmp_path):
    """Three episodes end in 64 sessions, and the callback evaluates after each of them."""
    for library in ("stable_baselines3", "tensorboard"):
        pytest.importorskip(library, reason=LOOPS)
    (code,) = (code for code in CODE if "tensorboard_log" in code)
    printed("-c", code, folder=tmp_path)
    events = """
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
log = EventAccumulator("log/PPO_1").Reload()
for name in ("rollout/ep_rew_mean", "eval/mean_reward"):
    print(*(event.step for event in log.Scalars(name)))
    assert all(0 < event.value < 20 * 5 for event in log.Scalars(name))
"""
    assert printed("-c", events, folder=tmp_path).splitlines() == ["64 128 192 256"] * 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("library", "words"),
    [("torchrl.envs", r"\d+ clicks in 200 sessions\n"), ("sbx", r"SBX would show \[.*\]\n")],
)
def test_short_programs(library, words, tmp_path):
    """TorchRL makes an environment by its id; SBX trains on one."""
    pytest.importorskip(library.partition(".")[0], reason=LOOPS)
    assert re.fullmatch(words, printed("-c", program(library), folder=tmp_path))


@pytest.mark.slow
def test_skrl_learns(tmp_path):
    """Rule: the agent loses less than 35 % of what random lists lose. Null: it does not learn, and
    loses as much as random lists, within 2 %. With seeds 0 to 2 it lost 11 % to 18 %.
    """
    pytest.importorskip("skrl", reason=LOOPS)
    lost, sessions = numbers(printed("-c", program("skrl"), folder=tmp_path).partition("lost")[2])
    assert sessions == 64_000
    assert lost < 0.35 * clickgym.run("Random", "PBMRank-v0", 64_000, seed=0).regret[-1]


@pytest.mark.slow
def test_tianshou_learns(tmp_path):
    """Rule: the greedy policy earns more than 85 % of the best list's reward. Null: the policy does
    not learn, and shows one list whatever it observes; 3 of 90 lists earn that much.
    """
    for library in ("tianshou", "rliable"):
        pytest.importorskip(library, reason=LOOPS)
    code = program("tianshou.highlevel.config")
    (earned,) = numbers(printed("-c", code, folder=tmp_path).partition(":")[2])
    assert 0.85 < earned / (1000 * optimum(n_positions=2)) < 1.1


@pytest.mark.slow
def test_minari_reads_back_what_it_recorded(tmp_path, monkeypatch):
    for library in ("minari", "jax", "h5py"):
        pytest.importorskip(library, reason=LOOPS)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    lines = printed("-c", program("minari"), folder=tmp_path).splitlines()
    assert len(lines) == 3
    for sessions, earned, regret in map(numbers, lines):
        assert sessions == 1000
        assert earned == pytest.approx(1000 * optimum() - regret, abs=150)
