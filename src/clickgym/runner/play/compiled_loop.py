"""The compiled loop, which plays sessions in machine code, one chunk of sessions at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.compiling import KernelError
from ...core.errors import FAILURES, SessionError, cause
from ...core.kernels import clock, entry, kernel
from ...envs.base_env import name_of
from ...envs.simulation.session import SessionBuffers, make_session_kernel
from ...measure.meter import CLICKS, REGRET, REWARD
from ..errors import agent_error, check_list
from .prepared_run import CHUNK, PreparedRun

FIRST_CHUNK = 1000
"""The number of sessions in the first chunk; later chunks last about `CHUNK` seconds."""


class ChunkData(NamedTuple):
    """All data that the sessions in a chunk read and write, except the agent and the generators.

    Random generators are passed separately, because numba takes 0.2 ms in each call to find the
    type of a tuple that contains a generator.
    """

    constants: Any  # constants and state are explained in `clickgym.envs.simulation.task`
    state: Any
    observed: tuple[Any, ...]  # views of the state: what the agent observes in addition to clicks
    shown: SessionBuffers
    contexts: tuple[Any, ...]  # the data of the metrics
    totals: NDArray[np.float64]
    checkpoints: NDArray[np.int64]  # counted in sessions from the start of the chunk
    at_checkpoints: NDArray[np.float64]  # the totals at these checkpoints


@cache
def make_loop_kernel(
    rank: Callable[..., None],
    update: Callable[..., None],
    measure: Callable[..., None],
    session: Callable[..., tuple[float, float, int]],
    begin: Callable[..., Any],
    advance: Callable[..., bool],
) -> Callable[..., tuple[int, float, int]]:
    """Return the kernel that plays the sessions of a chunk.

    The kernel returns

    - the number of sessions that it played, which is smaller than requested if a list was bad;
    - the reward of the last session;
    - the position at which the user of the last session left satisfied, or -1.
    """
    play_one = make_session_kernel(session)

    @kernel
    def sessions(  # type: ignore[no-untyped-def]
        data, env_rng, agent_state, agent_rng, ranking, n_sessions
    ):
        constants, state, shown, totals = data.constants, data.state, data.shown, data.totals
        regret, rewards, n_clicks = totals[REGRET], totals[REWARD], totals[CLICKS]
        last_reward, last_satisfied, n_played = 0.0, -1, np.int64(0)
        n_checkpoints = 0
        while n_played < n_sessions:
            rank(agent_state, agent_rng, ranking, *data.observed)
            is_valid, reward, expectation, satisfied = play_one(
                constants, state, env_rng, shown, ranking
            )
            if not is_valid:
                break
            last_reward, last_satisfied = reward, satisfied
            regret += state.optimum[0] - expectation  # `State` lists the other such places
            rewards += reward
            for k in range(len(ranking)):
                n_clicks += shown.clicks[k]
            measure(data.contexts, ranking, shown.clicks, expectation, totals)
            update(agent_state, ranking, shown.clicks, *data.observed)
            n_played += 1
            shown.draws[0] = True  # from here on, an error comes from the users
            if advance(constants, state, np.int64(0), env_rng):
                begin(constants, state, np.int64(0), env_rng)
            shown.draws[0] = False
            if n_played == data.checkpoints[n_checkpoints]:
                totals[REGRET], totals[REWARD], totals[CLICKS] = regret, rewards, n_clicks
                for i in range(len(totals)):
                    data.at_checkpoints[n_checkpoints, i] = totals[i]
                n_checkpoints += 1
        totals[REGRET], totals[REWARD], totals[CLICKS] = regret, rewards, n_clicks
        return n_played, last_reward, last_satisfied

    return sessions


def play_compiled(run: PreparedRun) -> float:
    """Play a run in compiled code, in chunks of about 50 ms.

    The agent's state, generator and last list are updated in place. The environment's generator
    advances exactly as in ``step``.

    Returns:
        The seconds that the sessions took, without the compilation of kernels.

    Raises:
        AgentError: the agent failed or proposed an invalid list.
        SessionError: the click model or a metric failed.
    """
    agent, meter, metrics = run.agent, run.meter, run.metrics
    env: Any = run.env.unwrapped
    state, chunk, seconds = None, FIRST_CHUNK, 0.0
    while meter.step < meter.horizon:
        if env.state is not state:  # at the start, and when the users change
            task, state = env.task, env.state
            observed = task.observed(state, agent.observes)
            contexts = metrics.contexts(env)
            chunk_inputs = task.constants, state, observed, env.shown, contexts, meter.totals
            kernels = agent.rank_kernel, agent.update_kernel, metrics.kernel, *task.kernels
            loop = entry(make_loop_kernel(*kernels))
        size = min(chunk, meter.horizon - meter.step, env.next_change - env.steps)
        if metrics.held_out:
            size = min(size, meter.next_checkpoint - meter.step)
        agent.make_room(size)
        data = ChunkData(*chunk_inputs, *meter.ahead())
        play_sessions = partial(loop, data, env.np_random, agent.state, agent.rng, agent.ranking)
        chunk_seconds = _play_chunk(run, play_sessions, size)
        seconds += chunk_seconds
        if size == chunk:  # a shortened chunk does not show the speed
            next_size = chunk * CHUNK / max(chunk_seconds, 1e-6)
            chunk = int(min(max(next_size, chunk / 4), chunk * 4)) + 1
        if metrics.held_out:
            metrics.measure_held_out(agent, env, meter)
        if run.on_chunk is not None:
            run.on_chunk(size)
    return seconds


def _play_chunk(
    run: PreparedRun, play_sessions: Callable[[int], tuple[int, float, int]], size: int
) -> float:
    """Play a chunk of sessions, add the sessions to the meter, and return their wall time."""
    agent, meter = run.agent, run.meter
    env: Any = run.env.unwrapped
    n_lists = int(env.shown.n_lists[0])
    regret, start = meter.totals[REGRET], clock()
    try:
        played, reward, satisfied = play_sessions(size)
    except KernelError:
        raise
    except FAILURES as error:
        fault = run.metrics.metric_error(error, meter.totals) or error
        raise _chunk_error(agent, env, meter.step, n_lists, fault) from error
    seconds = clock() - start
    if played < size:  # the kernel stopped at an invalid list; `check_list` raises the error
        step = meter.step + played + 1
        check_list(agent, agent.ranking, agent.n_items, agent.n_positions, "step", step)
    regret = meter.totals[REGRET] - regret
    env.finish_sessions(size, regret, agent.ranking.copy(), reward, satisfied)
    agent.ranking[0] = -1  # tells the agent that no list is waiting for clicks
    meter.advance(size)
    return seconds


def _chunk_error(
    agent: Any, env: Any, steps: int, n_lists: int, error: BaseException
) -> BaseException:
    """Return the error to raise after a failed chunk; it says whether users or agent failed.

    The users failed if the last list has no clicks yet, or if the users were drawing random numbers
    after a session; in all other cases, the agent failed.

    Args:
        agent: the agent that was playing.
        env: the environment in which the agent was playing.
        steps: the number of steps before the chunk.
        n_lists: the number of lists before the chunk.
        error: the error that was caught.
    """
    lists = env.shown.n_lists[0]
    n_shown = int(lists) - n_lists
    if n_shown and (env.shown.n_sessions[0] < lists or env.shown.draws[0]):
        env.shown.draws[0] = False
        fault = f"{cause(error)}, in a {type(env.task.model).__name__}"
        error = SessionError(f"{name_of(env)}, step {steps + n_shown}: {fault}")
    when = f"after the list of step {steps + n_shown}" if n_shown else f"step {steps + 1}"
    return agent_error(agent, env, when, error)
