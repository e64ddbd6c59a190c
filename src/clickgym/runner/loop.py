"""Sessions of one agent in one environment: the compiled loop and the Python loop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from ..agents import Agent, CompiledAgent
from ..core.faults import SessionError, cause, only_own_frames
from ..core.kernels import KernelError, entry, kernel
from ..envs import ClickEnv, check_ranking
from ..envs.click_env import name_of
from ..envs.guests import clicks_of, regret_of
from ..envs.session import is_ranked_list, session
from ..envs.wrappers.regret import Meter
from .metrics import Metrics
from .pairs import Pair

OnChunk = Callable[[int], object]


class AgentError(SessionError):
    """An agent failed during a run; the message names the agent, the step and the fault."""


def session_error(agent: Agent, env: gym.Env, when: str, error: Exception) -> Exception:
    """The error to raise for a fault in a session of an agent in an environment; ``when`` such as
    ``"step 7"``.

    What says by itself where it is from stays as it is; only an environment does not know whom it
    faces. The traceback of the error, which is the cause of what is raised, is left with the frames
    of who wrote the agent.
    """
    if type(error) is SessionError:
        return SessionError(f"{error}, facing {type(agent).__name__}")
    if isinstance(error, AgentError | KernelError):
        return error
    only_own_frames(error)
    return AgentError(f"{type(agent).__name__} in {name_of(env)}, {when}: {cause(error)}")


def check_list(
    agent: Agent, ranking: Any, n_items: int, n_positions: int, what: str, number: int
) -> None:
    """Raise an `AgentError` for a bad list; ``what`` and ``number`` say when, such as ``"step",
    7``.
    """
    try:
        check_ranking(ranking, n_items, n_positions)
    except (TypeError, ValueError) as error:
        raise AgentError(f"{type(agent).__name__}, {what} {number}: {error}") from None


class UsersState(NamedTuple):
    """The users under the present task, and the arrays of one session of theirs.

    Generators stand beside it: numba takes 0.2 ms for each call to find the type of a record that
        holds one.
    """

    parameters: Any
    reward: int
    cutoff: int
    pool: Any
    round: Any
    seen: tuple[
        Any, ...
    ]  # what the agent sees before it ranks: nothing, the features, or the user's state
    uniforms: NDArray[np.float64]  # (K,), one more in a mixture
    clicks: NDArray[np.int8]  # (K,)
    examined: NDArray[np.int8]  # (K,)
    scratch: NDArray[np.float64]  # (K + 1,)


@cache
def session_loop(
    rank: Callable[..., None],
    update: Callable[..., None],
    play_session: Callable[..., tuple[float, float, int]],
    measure: Callable[..., None],
    next_round: Callable[..., None],
) -> Callable[..., Any]:
    """The kernel that plays ``n_sessions`` rounds of rank, session, update; returns how many were
    played before a bad list.
    """

    @kernel
    def sessions(users, env_rng, state, agent_rng, ranking, seen, contexts, n_sessions, totals):  # type: ignore[no-untyped-def]
        parameters, reward, cutoff, scratch = (
            users.parameters,
            users.reward,
            users.cutoff,
            users.scratch,
        )
        drawn, uniforms, clicks, examined = (
            users.round,
            users.uniforms,
            users.clicks,
            users.examined,
        )
        n_positions = len(ranking)
        regret, rewards, n_clicks = totals[0], totals[1], totals[2]
        satisfied, realised, played = (
            -1,
            0.0,
            np.int64(0),
        )  # no literal, for which numba would compile `is_ranked_list` once more
        while played < n_sessions:
            rank(state, agent_rng, ranking, *users.seen)
            if not is_ranked_list(ranking, seen, played):
                break
            for k in range(len(uniforms)):
                uniforms[k] = env_rng.random()
            realised, expectation, satisfied = play_session(
                parameters, ranking, uniforms, clicks, examined, reward, cutoff, scratch
            )
            regret += drawn.optimum[0] - expectation
            rewards += realised
            for k in range(n_positions):
                n_clicks += clicks[k]
            measure(contexts, ranking, clicks, expectation, totals, 3)
            update(state, ranking, clicks, *users.seen)
            next_round(users.pool, drawn, parameters, env_rng, reward, scratch)
            played += 1
        totals[0], totals[1], totals[2] = regret, rewards, n_clicks
        return played, realised, satisfied

    return sessions


def observed_by(pair: Pair) -> tuple[NDArray[Any], ...]:
    """The array that an agent's kernels see of the present round besides clicks: features, a user's
    state, or none.
    """
    return () if pair.kind is CompiledAgent else (pair.place.core.task.round.features,)


def play_compiled(
    pair: Pair, meter: Meter, metrics: Metrics, on_chunk: OnChunk | None = None
) -> float:
    """Play up to the meter's horizon in compiled code, in chunks of about 50 ms; the environment
    has been reset.

    Args:
        pair: the agent, whose kernels are called and whose state, generator and last list are
            advanced in place; and the environment, whose generator is advanced as by ``step``.
        meter: receives the totals.
        metrics: what is measured besides.
        on_chunk: called after each chunk with the number of its sessions; what it raises ends the
            run.

    Returns:
        The seconds of the sessions, compilation excluded.

    Raises:
        AgentError: the agent proposed a bad list, or failed.
        SessionError: the click model failed.
    """
    agent: CompiledAgent = pair.agent
    click_env: ClickEnv = pair.place.core
    n_positions = click_env.model.n_positions
    uniforms, scratch = np.empty(click_env.model.n_uniforms), np.empty(n_positions + 1)
    clicks, examined = np.zeros(n_positions, np.int8), np.zeros(n_positions, np.int8)
    seen = np.empty(click_env.model.n_items, np.int64)
    task: Any = None

    def play(size: int) -> tuple[int, float, int]:
        users = UsersState(
            task.parameters,
            task.code,
            task.cutoff,
            task.pool,
            task.round,
            observed,
            uniforms,
            clicks,
            examined,
            scratch,
        )
        return compiled(
            users,
            click_env.np_random,
            agent.state,
            agent.rng,
            agent.ranking,
            seen,
            contexts,
            size,
            meter.totals,
        )

    def found_guilty(error: Exception) -> Exception:
        """What failed in the chunk: ``seen`` tells how many of its lists were shown, and the last
        session is played again from its own random numbers; if that fails, too, it was the click
        model.
        """
        count = int(seen.max()) + 1
        if not count:
            return session_error(agent, click_env, f"step {meter.step + 1}", error)
        try:
            entry(session(task.model))(
                task.parameters,
                agent.ranking,
                uniforms,
                clicks,
                examined,
                task.code,
                task.cutoff,
                scratch,
            )
        except Exception as again:
            what = f"{cause(again)}, in a {type(task.model).__name__}"
            error = SessionError(f"{name_of(click_env)}, step {meter.step + count}: {what}")
        return session_error(
            agent, click_env, f"after the list of step {meter.step + count}", error
        )

    chunk, seconds = 1000, 0.0
    while meter.step < meter.horizon:
        if task is not click_env.task:  # at the start, and where the users change
            task, contexts = click_env.task, metrics.contexts(click_env)
            kernels = (
                agent.rank_kernel,
                agent.update_kernel,
                session(task.model),
                metrics.kernel,
                task.next_round,
            )
            compiled, observed = entry(session_loop(*kernels)), observed_by(pair)
            play(0)  # compiles
        seen.fill(-1)
        size = min(chunk, meter.next_checkpoint - meter.step, click_env.sessions_to_change)
        agent.make_room(size)
        before, regret = time.perf_counter(), meter.totals[0]
        try:
            played, realised, satisfied = play(size)
        except Exception as error:
            raise found_guilty(error) from error
        lasted = time.perf_counter() - before
        if played < size:
            check_list(
                agent,
                agent.ranking,
                click_env.model.n_items,
                n_positions,
                "step",
                meter.step + played + 1,
            )
        click_env._record(
            size, meter.totals[0] - regret, agent.ranking, clicks, examined, satisfied, realised
        )
        agent.ranking[0] = -1  # its clicks are learned
        meter.advance(size)
        seconds += lasted
        if size == chunk:  # not cut short: its time tells the speed
            chunk = int(np.clip(chunk * 0.05 / max(lasted, 1e-6), chunk / 4, chunk * 4)) + 1
        if on_chunk is not None:
            on_chunk(size)
    return seconds


def play_python(
    pair: Pair,
    env: gym.Env,
    meter: Meter,
    metrics: Metrics,
    observation: Any,
    on_chunk: OnChunk | None = None,
) -> None:
    """Play up to the meter's horizon through ``env.step``; the environment has been reset to
    ``observation``.

    Args:
        pair, meter, metrics, on_chunk: as in `play_compiled`; any agent, any wrappers, and
        environments of any origin.
        env: that of the pair, without the time limit of its id.
        observation: what ``env.reset`` returned.

    Raises:
        AgentError: the agent proposed a bad list, or failed.
        SessionError: the environment failed.
    """
    agent: Agent = pair.agent
    click_env, guest = pair.place.core, pair.place.is_guest
    n_items, n_positions, *_ = pair.place.sizes
    entered, contexts = None, metrics.contexts(click_env) if guest else ()
    progress = _Progress(on_chunk)
    agent.leave()
    while meter.step < meter.horizon:
        try:
            ranking = agent.rank(observation)
            check_list(agent, ranking, n_items, n_positions, "step", meter.step + 1)
            if not guest and click_env.task is not entered:
                entered, contexts = click_env.task, metrics.contexts(click_env)
            round_contexts = metrics.as_shown(contexts)
            last, (observation, reward, terminated, truncated, info) = (
                observation,
                env.step(ranking),
            )
            clicks, reward = clicks_of(observation), float(reward)
            if guest:
                clicks = np.array(clicks, np.int8)  # a copy: the environment may write into its own
            agent.update(last, ranking, clicks, reward)
        except Exception as error:
            raise session_error(agent, env, f"step {meter.step + 1}", error) from error
        if metrics.summed:
            expectation = float(info.get("expected_reward", math.nan))
            metrics.measure(
                round_contexts, np.asarray(ranking, np.int64), clicks, expectation, meter.totals, 3
            )
        meter.add(regret_of(info), reward, int(clicks.sum()))
        if terminated or truncated:
            observation, _ = env.reset()
            agent.leave()
        progress.add(meter.step == meter.horizon)


class _Progress:
    """Calls back about every 50 ms, and after the last session, with the number of sessions since
    the last call.
    """

    def __init__(self, on_chunk: OnChunk | None) -> None:
        self._on_chunk = on_chunk
        self._n, self._due = 0, time.perf_counter() + 0.05

    def add(self, is_last: bool) -> None:
        self._n += 1
        if self._on_chunk is not None and (is_last or time.perf_counter() > self._due):
            self._on_chunk(self._n)
            self._n, self._due = 0, time.perf_counter() + 0.05
