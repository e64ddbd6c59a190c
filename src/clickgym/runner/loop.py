"""Sessions of one agent in one environment: the compiled loop and the Python loop."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from ..agents import Agent, CompiledAgent
from ..core.checks import short
from ..core.faults import Fault, SessionError, cause
from ..core.kernels import KernelError, clock, entry, kernel
from ..envs import ClickEnv, check_ranking
from ..envs.any_env import (
    checked_clicks,
    checked_number,
    clicks_of,
    clicks_shown,
    regret_of,
    sizes_of,
)
from ..envs.click_env import name_of
from ..envs.meter import Meter
from ..envs.registration import endless, without_own_wrappers
from ..envs.session import Shown, play_session
from .delay import Delay, EmptyQueue, LateAgent, Queue
from .metrics import Metrics

OnChunk = Callable[[int], object]
CHUNK, FIRST_CHUNK = 0.05, 1000
"""Seconds between two reports of progress, and the sessions before the first one."""


class AgentError(SessionError):
    """An agent failed during a run; the message names the agent, the step and the fault."""


# ------------------------------------------------------------------------------ the compiled engine


class Stage(NamedTuple):
    """What the sessions of a chunk read and write, beside the agent.

    Generators stand beside it: numba takes 0.2 ms for each call to find the type of a record that
    holds one.
    """

    users: Any  # as in `clickgym.envs.task`, like the state
    state: Any
    observed: tuple[Any, ...]  # by the agent besides clicks: views of the state
    shown: Shown
    contexts: tuple[Any, ...]  # of the metrics
    totals: NDArray[np.float64]
    due: NDArray[np.int64]  # after how many sessions of the chunk the next checkpoints come
    kept: NDArray[np.float64]  # the totals there
    late: Any  # the sessions whose clicks are late, or None


@cache
def session_loop(
    rank: Callable[..., None],
    learn: Callable[..., None],
    measure: Callable[..., None],
    session: Callable[..., tuple[float, float, int]],
    begin: Callable[..., Any],
    advance: Callable[..., bool],
) -> Callable[..., tuple[int, float, int, int]]:
    """The kernel that plays sessions; it returns how many before a bad list, of the last one the
    reward and where the user left satisfied, and after which, counted from 1, a user left for
    good first, or 0.
    """
    play = play_session(session)

    @kernel
    def sessions(stage, env_rng, agent, agent_rng, ranking, n_sessions):  # type: ignore[no-untyped-def]
        users, state, shown, totals = stage.users, stage.state, stage.shown, stage.totals
        regret, rewards, n_clicks = totals[0], totals[1], totals[2]
        last_reward, last_satisfied, played, left = 0.0, -1, np.int64(0), np.int64(0)
        reached = 0
        while played < n_sessions:
            rank(agent, agent_rng, ranking, *stage.observed)
            is_list, reward, expectation, satisfied = play(users, state, env_rng, shown, ranking)
            if not is_list:
                break
            last_reward, last_satisfied = reward, satisfied
            regret += state.optimum[0] - expectation
            rewards += reward
            for k in range(len(ranking)):
                n_clicks += shown.clicks[k]
            measure(stage.contexts, ranking, shown.clicks, expectation, totals)
            learn(stage.late, played, agent, ranking, shown.clicks, *stage.observed)
            played += 1
            shown.draws[0] = True  # from here, an error is one of the users
            if advance(users, state, np.int64(0), env_rng):
                begin(users, state, np.int64(0), env_rng)
                if left == 0:
                    left = played
            shown.draws[0] = False
            if played == stage.due[reached]:
                totals[0], totals[1], totals[2] = regret, rewards, n_clicks
                for i in range(len(totals)):
                    stage.kept[reached, i] = totals[i]
                reached += 1
        totals[0], totals[1], totals[2] = regret, rewards, n_clicks
        return played, last_reward, last_satisfied, left

    return sessions


def play_compiled(
    agent: CompiledAgent,
    env: ClickEnv,
    meter: Meter,
    metrics: Metrics,
    delay: Delay | None = None,
    on_chunk: OnChunk | None = None,
) -> float:
    """Play up to the meter's horizon in compiled code, in chunks of about 50 ms.

    Args:
        agent: its kernels are called, and its state, generator and last list are advanced in
            place.
        env: it has been reset; its generator is advanced as by ``step``.
        meter: receives the totals.
        metrics: what is measured besides.
        delay: when clicks arrive; None at once.
        on_chunk: called after each chunk with the number of its sessions; what it raises ends the
            run.

    Returns:
        The seconds of the sessions, without the compilation of kernels.

    Raises:
        AgentError: the agent proposed a bad list, or failed.
        SessionError: the click model failed.
    """
    queue = EmptyQueue(agent)
    if delay is not None:
        queue = Queue(agent, delay, env.task.observed(env.state, agent.observes))
    streams, state, chunk, seconds = env.streams, None, FIRST_CHUNK, 0.0
    while meter.step < meter.horizon:
        if streams.state is not state:  # at the start, and where the users change
            task, state = streams.task, streams.state
            observed = task.observed(state, agent.observes)
            contexts = metrics.contexts(env)
            fixed = task.users, state, observed, env.shown, contexts, meter.totals
            kernels = agent.rank_kernel, queue.learn, metrics.kernel, *task.kernels
            loop = entry(session_loop(*kernels))
        size = min(chunk, meter.horizon - meter.step, env.sessions_to_change)
        agent.make_room(size + queue.slots)
        stage = Stage(*fixed, *meter.ahead(), queue.chunk(meter.step + 1, size))
        arguments = stage, env.np_random, agent.state, agent.rng, agent.ranking
        lasted = _play_chunk(agent, env, meter, partial(loop, *arguments), size)
        seconds += lasted
        if size == chunk:  # not cut short: its time tells the speed
            wanted = chunk * CHUNK / max(lasted, 1e-6)
            chunk = int(min(max(wanted, chunk / 4), chunk * 4)) + 1
        if on_chunk is not None:
            on_chunk(size)
    return seconds


def _play_chunk(
    agent: CompiledAgent,
    env: ClickEnv,
    meter: Meter,
    loop: Callable[[int], tuple[int, float, int, int]],
    size: int,
) -> float:
    """Play a chunk of sessions, and count it; return its seconds."""
    n_lists = int(env.shown.n_lists[0])
    regret, before = meter.totals[0], clock()
    try:
        played, reward, satisfied, left = loop(size)
    except KernelError:
        raise
    except Exception as error:
        raise _blamed(agent, env, meter.step, n_lists, error) from error
    lasted = clock() - before
    if played < size:
        step = meter.step + played + 1
        check_list(agent, agent.ranking, agent.n_items, agent.n_positions, "step", step)
    regret = meter.totals[0] - regret
    try:  # users who change here draw a session
        env.finish_sessions(size, regret, agent.ranking.copy(), reward, satisfied, left)
    except SessionError as error:
        raise session_error(agent, env, "", error) from error
    agent.ranking[0] = -1  # its clicks are learned
    meter.advance(size)
    return lasted


def _blamed(
    agent: CompiledAgent, env: ClickEnv, steps: int, n_lists: int, error: Exception
) -> Exception:
    """What failed in a chunk that began after so many steps and lists: the users, if the last list
    has no clicks yet or they were drawing what follows, else the agent.
    """
    lists = env.shown.n_lists[0]
    shown = int(lists) - n_lists
    if shown and (env.shown.n_sessions[0] < lists or env.shown.draws[0]):
        env.shown.draws[0] = False
        what = f"{cause(error)}, in a {type(env.task.model).__name__}"
        error = SessionError(f"{name_of(env)}, step {steps + shown}: {what}")
    when = f"after the list of step {steps + shown}" if shown else f"step {steps + 1}"
    return session_error(agent, env, when, error)


# -------------------------------------------------------------------------------- the Python engine


def play_python(
    agent: Agent,
    env: gym.Env,
    meter: Meter,
    metrics: Metrics,
    observation: Any,
    delay: Delay | None = None,
    on_chunk: OnChunk | None = None,
) -> float:
    """Play up to the meter's horizon through ``env.step``.

    Args:
        agent, meter, metrics, delay, on_chunk: as in `play_compiled`; any agent.
        env: of any origin, with any wrappers; it has been reset.
        observation: what ``reset`` returned.

    Returns:
        As `play_compiled`.

    Raises:
        AgentError: the agent proposed a bad list, or failed.
        SessionError: the environment failed, showed another list, reported clicks that are not 0
            or 1 or a reward or regret that is not finite, or ended an episode while clicks were
            late.
    """
    n_items, n_positions, *_ = sizes_of(env)
    click_env: Any = env.unwrapped
    is_foreign = not isinstance(click_env, ClickEnv)
    # An agent sees the clicks that a wrapper shows, or the users' where it shows none (stacked,
    # flattened); metrics are of the users.
    has_own_step = is_foreign or type(click_env).step is not ClickEnv.step
    is_plain = not has_own_step and not isinstance(without_own_wrappers(env), gym.Wrapper)
    is_shown = has_own_step or clicks_shown(env.observation_space) == n_positions
    player = agent if delay is None else LateAgent(agent, delay, n_positions)
    task, contexts = None if is_foreign else click_env.task, metrics.contexts(click_env)
    before = clock()
    reported, due = meter.step, before + CHUNK
    player.leave()
    # The limit of an id would end the stay of stateful users after 1000 sessions.
    with endless(env) as stream:
        while meter.step < meter.horizon:
            try:
                ranking = player.rank(observation)
                check_list(agent, ranking, n_items, n_positions, "step", meter.step + 1)
            except Exception as error:
                raise session_error(agent, env, f"step {meter.step + 1}", error) from error
            if not is_foreign and click_env.task is not task:
                task, contexts = click_env.task, metrics.contexts(click_env)
            measured = metrics.before_step(contexts)
            last = observation
            if has_own_step:  # which may write into its own arrays, and into the list
                last, ranking = copy.deepcopy(observation), np.array(ranking)
            try:
                answer: Any = stream.step(ranking.copy() if has_own_step else ranking)
                if not is_plain:
                    answer = _checked_step(answer)
                observation, reward, terminated, truncated, info = answer
                if is_plain:
                    clicks = seen = clicks_of(observation)
                    regret = info["regret"]
                else:
                    shown = checked_clicks(observation, n_positions) if is_shown else None
                    clicks = shown if has_own_step else _clicks_on(ranking, click_env)
                    seen = clicks if shown is None else shown
                    reward, regret = checked_number("reward", reward), regret_of(info)
                    if not has_own_step and not click_env.regret_is_of(reward, info):
                        meter.forget_regret()
                is_over = bool(terminated or truncated)
                expectation = float(info.get("expected_reward", math.nan))
            except Exception as error:
                when = f"step {meter.step + 1}"
                raise environment_error(agent, env, when, error) from error
            try:
                player.update(last, ranking, seen, reward)
            except Exception as error:
                raise session_error(agent, env, f"step {meter.step + 1}", error) from error
            if metrics.summed:
                items = np.asarray(ranking, np.int64)
                metrics.measure(measured, items, clicks, expectation, meter.totals)
            meter.add(regret, reward, int(clicks.sum()))
            if is_over:
                if delay is not None and terminated:
                    what = "a user left (terminated): clicks of stateful users cannot be late"
                    raise SessionError(f"{name_of(env)}, step {meter.step}: {what}")
                observation = start_of(agent, stream)
                player.leave()
            is_due = meter.step == meter.horizon or clock() > due
            if on_chunk is not None and is_due:
                on_chunk(meter.step - reported)
                reported, due = meter.step, clock() + CHUNK
    return clock() - before


def start_of(agent: Any, env: gym.Env, seed: int | None = None) -> Any:
    """Reset an environment for an agent; return the first observation.

    Raises:
        SessionError: the environment failed.
    """
    try:
        answer = env.reset(seed=seed)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise Fault(f"it returned {short(answer)}; expected (observation, info)")
    except Exception as error:
        raise environment_error(agent, env, "reset", error) from error
    return answer[0]


def _checked_step(answer: Any) -> tuple[Any, ...]:
    """Return what ``env.step`` returned, checked."""
    if not isinstance(answer, tuple) or len(answer) != 5 or not isinstance(answer[4], Mapping):
        expected = "(observation, reward, terminated, truncated, info)"
        raise Fault(f"it returned {short(answer)}; expected {expected}")
    return answer


def _clicks_on(ranking: Any, env: ClickEnv) -> NDArray[np.int8]:
    """Return the clicks of the last session; a `Fault` if a wrapper showed another list."""
    shown, clicks = env.last_session()
    if not np.array_equal(shown, ranking):
        chosen = np.asarray(ranking).tolist()
        raise Fault(f"a wrapper showed {shown.tolist()} where the agent chose {chosen}")
    return clicks


# ------------------------------------------------------------------------------------------- faults


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


def session_error(agent: Any, env: gym.Env, when: str, error: Exception) -> Exception:
    """The error to raise for a fault of an agent in an environment; ``when`` such as ``"step 7"``.

    An error that already names its source is kept; a SessionError gets the agent's name.
    """
    if type(error) is SessionError:
        return SessionError(f"{error}, facing {type(agent).__name__}")
    if isinstance(error, AgentError | KernelError):
        return error
    return AgentError(f"{type(agent).__name__} in {name_of(env)}, {when}: {cause(error)}")


def environment_error(agent: Any, env: gym.Env, when: str, error: Exception) -> Exception:
    """The error to raise for a fault of an environment; as `session_error`."""
    if isinstance(error, KernelError):
        return error
    text = str(error) if isinstance(error, Fault | SessionError) else cause(error)
    if not isinstance(error, SessionError):  # else it names the environment
        text = f"{name_of(env)}, {when}: {text}"
    return SessionError(f"{text}, facing {type(agent).__name__}")
