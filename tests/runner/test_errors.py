"""Tests of errors that agents and click models raise in mid-run, in compiled code and in Python:
one line names the class, the place, the step and the cause.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import clickgym
from clickgym.agents import Agent, CompiledAgent, Random
from clickgym.agents.baselines import ListState, learn_nothing, rank_fixed
from clickgym.cli import main
from clickgym.core.kernels import kernel
from clickgym.envs import ClickEnv, PositionBasedModel, SessionError
from clickgym.envs.click_models.position_based import sample as sample_pbm
from tests.envs.test_check_click_model import WorstFirst
from tests.helpers.engines import chunks_of

PBM = PositionBasedModel([0.2, 0.7, 0.1, 0.5], [0.9, 0.4])


@kernel
def divide(state, ranking, clicks):
    state.items[-1] -= 1
    state.items[-2] = 100 // state.items[-1]


@kernel
def divide_first(state, rng, ranking):
    rank_fixed(state, rng, ranking)
    divide(state, ranking, ranking)


@kernel
def give_up(state, ranking, clicks):
    state.items[-1] -= 1
    if state.items[-1] == 0:
        raise IndexError("nothing left")


class Failing(CompiledAgent):
    """An agent of which one kernel fails at step 137."""

    paper = "none"
    state_type = ListState
    rank_kernel = rank_fixed
    update_kernel = divide

    def first_values(self) -> dict[str, Any]:
        return {"items": np.append(np.arange(self.n_items), [0, 137])}


class FailingToRank(Failing):
    rank_kernel, update_kernel = divide_first, learn_nothing


class GivingUp(Failing):
    update_kernel = give_up


class Plain(Agent):
    def __init__(self, error: Exception) -> None:
        self.error, self.left = error, 137

    def rank(self, observation: Any) -> Any:
        return np.arange(2)

    def update(self, observation: Any, ranking: Any, clicks: Any, reward: float) -> None:
        self.left -= 1
        if not self.left:
            raise self.error


LINE = r"\(.*test_errors.py:\d+ in give_up: .*\)"


@pytest.mark.parametrize(
    ("agent", "told"),
    [
        (Failing, "Failing in ClickEnv, .*step 137: ZeroDivisionError"),
        (
            FailingToRank,
            "FailingToRank in ClickEnv, (after the .*step 136|step 137): ZeroDivisionErr",
        ),
        (GivingUp, rf"GivingUp in ClickEnv, .*step 137: IndexError: nothing left {LINE}$"),
    ],
)
@pytest.mark.parametrize("chunk", [1000, 136, 1, None])
def test_fault_in_a_kernel(agent, told, chunk):
    """The message names the exact step, wherever the chunks of the compiled loop end, and also in
    Python.
    """
    engine = "python" if chunk is None else "compiled"
    with chunks_of(chunk or 1000), pytest.raises(clickgym.AgentError, match=f"^{told}"):
        clickgym.run(agent(4, 2), ClickEnv(PBM), 1000, seed=0, engine=engine)


OWN = """
from clickgym.agents import Random
from numpy.random import default_rng

def helper(clicks):
    default_rng(0).beta(0.0, len(clicks))

class Mine(Random):
    def update(self, observation, ranking, clicks, reward):
        helper(clicks)
"""


def test_command_ends_in_a_line_that_names_the_users_own(tmp_path, monkeypatch, capsys):
    """The message names a line of the user's own code, even if a call of NumPy failed inside it,
    and finished runs that are lost. With ``--out``, they are kept.
    """
    (tmp_path / "faulty_agent.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    words = "run PBMRank-v0 --agents Random faulty_agent:Mine --horizon 10 --runs 1"
    assert main(f"{words} --jobs 1".split()) == main(f"{words} --jobs 1 --out out".split()) == 1
    *_, other, line = capsys.readouterr().err.splitlines()
    assert other.startswith(f"{line}; finished runs that are lost: 1;")
    where = "instance yandex-9982, run 0, seed"
    for part in ("Mine", "PBMRank-v0", "step 1", where, "faulty_agent.py:6 in helper: "):
        assert part in line
    assert clickgym.Results("out").names("agent") == ["Random"]


@pytest.mark.parametrize("error", [ValueError("one\ntwo"), StopIteration(), SystemExit(3)])
def test_errors_of_plain_agents_are_told_in_one_line(error):
    with pytest.raises(clickgym.AgentError) as caught:
        clickgym.run(Plain(error), ClickEnv(PBM), 1000, seed=0)
    assert str(caught.value).startswith(f"Plain in ClickEnv, step 137: {type(error).__name__}")
    assert "'raise self.error')" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is error


# ------------------------------------------------------------------------------------- click models


@kernel
def sample_or_fail(parameters, ranking, uniforms, clicks, examined):
    """Fail if the first number is below 0.02."""
    uniforms[0] = uniforms[0] + 0.0 / (uniforms[0] // 0.02)
    return sample_pbm(parameters, ranking, uniforms, clicks, examined)


class Fragile(PositionBasedModel):
    sample_kernel = sample_or_fail


def test_click_model_that_fails():
    env, told = ClickEnv(Fragile([0.2, 0.7, 0.1, 0.5], [0.9, 0.4])), []
    for engine in ("compiled", "python"):
        with pytest.raises(SessionError) as caught:
            clickgym.run(Random(4, 2, seed=1), env, 10_000, seed=3, engine=engine)
        assert not isinstance(caught.value, clickgym.AgentError)
        told.append(str(caught.value))
    assert told[0] == told[1]
    wanted = r"ClickEnv, step \d+: ZeroDivisionError: .*, in a Fragile \(agent: Random\)"
    assert re.fullmatch(wanted, told[0])


@pytest.mark.parametrize("engine", ["compiled", "python"])
def test_lists_that_are_better_than_the_best_list(engine):
    """A list that is better than the best list is reported as a fault of the click model. A list
    that was passed as the reference may be worse than the lists shown.
    """
    users = WorstFirst([0.2, 0.7, 0.1, 0.5], [0.9, 0.4])
    message = r"^ClickEnv, by step \d+: TopRank showed better lists .*check_click_model.*$"
    with pytest.raises(SessionError, match=message):
        clickgym.run("TopRank", ClickEnv(users), 200, seed=0, engine=engine)
    env = ClickEnv(PBM, reference=[2, 0])
    assert clickgym.run("TopRank", env, 200, seed=0, engine=engine).regret[-1] < 0
