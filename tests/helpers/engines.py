"""Runs in the compiled and the Python engine that record every session, and a comparison of both
engines.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import clickgym
from clickgym.agents import Agent, CompiledAgent
from clickgym.measure.meter import checkpoint_steps
from clickgym.runner.play.additional_metrics import AdditionalMetrics
from clickgym.runner.play.run import engine_of, play_run
from tests.reference_agents.following import as_plain

LOOP = importlib.import_module("clickgym.runner.play.compiled_loop")


@contextmanager
def chunks_of(sessions: int) -> Iterator[None]:
    """Context manager in which the compiled loop begins with a chunk of the given number of
    sessions. Later chunks become as small as possible, down to single sessions.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LOOP, "FIRST_CHUNK", sessions)
        patch.setattr(LOOP, "CHUNK", 0.0)
        yield


def run_reporting(
    agent: Any,
    env: Any,
    horizon: int,
    *,
    on_chunk: Callable[[int], object],
    seed: int | None = None,
    checkpoints: Any = None,
    engine: Any = "auto",
) -> clickgym.Result:
    """Run an agent, and call ``on_chunk`` with the number of sessions after each chunk."""
    played_by = engine_of(agent, env, engine)
    steps = checkpoint_steps(horizon, checkpoints)
    return play_run(agent, env, played_by, steps, AdditionalMetrics(), seed, on_chunk)


def run_compiled(
    agent: CompiledAgent, env: gym.Env, horizon: int, seed: int | None
) -> tuple[clickgym.Result, list, list]:
    """Run an agent in the compiled engine, and record the list and the clicks of every session."""
    lists, clicks = [], []

    def record(sessions: int) -> None:
        assert sessions == 1
        lists.append(env.unwrapped.last_session()[0].tolist())
        clicks.append(env.unwrapped.shown.clicks.tolist())

    every = {"checkpoints": np.arange(1, horizon + 1), "engine": "compiled"}
    with chunks_of(1):
        result = run_reporting(agent, env, horizon, seed=seed, on_chunk=record, **every)
    return result, lists, clicks


class InPython(Agent):
    """A compiled agent whose kernels run as Python functions, so that only its loop is compiled."""

    def __init__(self, agent: CompiledAgent) -> None:
        self.agent = agent

    def rank(self, observation: Any) -> Any:
        agent = self.agent
        agent.make_room(1)
        agent.rank_kernel(
            agent.state, agent.rng, agent.ranking, *agent.observed_arrays(observation)
        )
        return agent.ranking.copy()

    def update(self, observation: Any, ranking: Any, clicks: Any, reward: float) -> None:
        agent = self.agent
        agent.update_kernel(agent.state, agent.ranking, clicks, *agent.observed_arrays(observation))
        agent.ranking[0] = -1


class Recorder(gym.Wrapper):
    """Wrapper that records the list and the clicks of every step, and whether the step ended a
    user's stay or an episode.
    """

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self.lists: list[list[int]] = []
        self.clicks: list[list[int]] = []
        self.ends: list[bool] = []

    def step(self, action: Any) -> Any:
        result = self.env.step(action)
        seen = result[0]["clicks"] if isinstance(result[0], dict) else result[0]
        self.lists.append(np.asarray(action).tolist())
        self.clicks.append(seen.tolist())
        self.ends.append(result[2] or result[3])
        return result


def state_of(agent: CompiledAgent, env: gym.Env) -> list[object]:
    """Return everything that determines what an agent and an environment do next, in a form that ==
    can compare.
    """
    inner: Any = env.unwrapped
    generators = agent.rng.bit_generator.state, inner.np_random.bit_generator.state
    shown = agent.ranking.tolist(), inner.last_session()[0].tolist(), inner.steps
    session = [part.tolist() for part in inner.shown[:3]]  # the others count lists in the loop
    return [as_plain(agent.state), as_plain(inner.state), session, generators, shown]


def assert_engines_agree(
    make_agent: Callable[[], CompiledAgent],
    make_env: Callable[[], gym.Env],
    horizon: int = 400,
    stepping: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> None:
    """Check that both engines produce the same lists and numbers at every step, and end in the same
    state.

    `stepping` is a context manager for the Python loop; pass `uncompiled` to avoid compiling the
    environment's step.
    """
    agents, envs = (make_agent(), make_agent()), (make_env(), Recorder(make_env()))
    compiled, lists, clicks = run_compiled(agents[0], envs[0], horizon, 7)
    every = {"checkpoints": range(1, horizon + 1), "engine": "python"}
    with stepping():
        python = clickgym.run(InPython(agents[1]), envs[1], horizon, seed=7, **every)
    assert (compiled.engine, python.engine) == ("compiled", "python")
    assert lists == envs[1].lists
    assert clicks == envs[1].clicks
    for column in ("steps", "regret", "reward", "clicks"):
        np.testing.assert_array_equal(getattr(compiled, column), getattr(python, column))
    assert state_of(agents[0], envs[0]) == state_of(agents[1], envs[1])
