"""The loop in Python, which calls ``env.step`` for each session, in any environment."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from ...core.errors import FAILURES, Fault
from ...core.kernels import clock
from ...core.messages import short_repr
from ...envs.env_properties import click_env_of, clicks_of, sizes_of
from ...envs.registration import time_limit_removed, without_own_wrappers
from ...measure.session_reader import SessionReader
from ..errors import agent_error, check_list, environment_error
from .prepared_run import CHUNK, PreparedRun, first_observation


def show_list(
    env: gym.Env, ranking: Any, read_session: SessionReader | None
) -> tuple[tuple[Any, ...], NDArray[np.int8], float, float]:
    """Show a list to a user. Return what ``env.step`` returned, and the session's clicks, reward
    and regret.

    Args:
        env: the environment.
        ranking: the list.
        read_session: a `SessionReader` of the environment; None for a `ClickEnv` without wrappers
            of its user, whose results need no check.

    Raises:
        Fault: the result of ``env.step`` has another form, a click is neither 0 nor 1, a reward or
            regret is not finite, or a wrapper showed a different list.
    """
    if read_session is None:
        outcome: Any = env.step(ranking)
        return outcome, clicks_of(outcome[0]), float(outcome[1]), outcome[4]["regret"]
    click_env = read_session.click_env
    outcome = env.step(ranking if click_env is not None else np.array(ranking))
    if not isinstance(outcome, tuple) or len(outcome) != 5 or not isinstance(outcome[4], Mapping):
        expected = "(observation, reward, terminated, truncated, info)"
        raise Fault(f"the result is {short_repr(outcome)}; expected {expected}")
    shown_list = ranking if click_env is None else click_env.last_session()[0]
    if not np.array_equal(shown_list, ranking):
        shown_items, chosen_items = (np.asarray(items).tolist() for items in (shown_list, ranking))
        raise Fault(
            f"a wrapper showed {shown_items}, but the agent chose {chosen_items}; remove the "
            "wrapper that changes lists"
        )
    observation, reward, _, _, info = outcome
    return outcome, *read_session(observation, reward, info)


def _copy_observation(observation: Any, click_env: Any) -> Any:
    """Copy an observation from another package's environment, which may reuse its arrays. Return
    an observation from a `ClickEnv` unchanged.
    """
    return observation if click_env is not None else copy.deepcopy(observation)


def play_python(run: PreparedRun) -> float:
    """Play a run through ``env.step``, which works for any agent in any environment.

    Returns:
        The seconds that the sessions took, without the time for ranking held-out queries.

    Raises:
        AgentError: the agent failed or proposed an invalid list.
        SessionError: the environment failed or returned an invalid result.
    """
    agent, env, meter, metrics = run.agent, run.env, run.meter, run.metrics
    n_items, n_positions, *_ = sizes_of(env)
    click_env = click_env_of(env)
    start = clock()
    last_report, next_report = meter.step, start + CHUNK
    agent.leave()
    # The step limit of a registered id would make users with memory leave after 1000 sessions.
    with time_limit_removed(env) as env:
        read_session = None if click_env is without_own_wrappers(env) else SessionReader(env)
        observation = _copy_observation(run.observation, click_env)
        while meter.step < meter.horizon:
            try:
                ranking = agent.rank(observation)
                check_list(agent, ranking, n_items, n_positions, "step", meter.step + 1)
            except FAILURES as error:
                raise agent_error(agent, env, f"step {meter.step + 1}", error) from error
            contexts = metrics.before_step(env.unwrapped)[0] if metrics.summed else ()
            try:
                outcome, clicks, reward, regret = show_list(env, ranking, read_session)
            except FAILURES as error:
                raise environment_error(agent, env, f"step {meter.step + 1}", error) from error
            next_observation, _, has_left, is_cut, info = outcome
            if metrics.summed:  # before the update, in which the agent may change its list
                items = np.asarray(ranking, np.int64)
                expectation = float(info.get("expected_reward", math.nan))
                metrics.measure(contexts, items, clicks, expectation, meter.totals)
            try:
                agent.update(observation, ranking, clicks.astype(np.int64), reward)
            except FAILURES as error:
                raise agent_error(agent, env, f"step {meter.step + 1}", error) from error
            meter.add(regret, reward, int(clicks.sum()))
            if metrics.held_out:
                metrics.measure_held_out(agent, env, meter)
            if has_left or is_cut:
                next_observation = first_observation(agent, env)
                agent.leave()
            observation = _copy_observation(next_observation, click_env)
            if run.on_chunk is not None and (meter.step == meter.horizon or clock() > next_report):
                run.on_chunk(meter.step - last_report)
                last_report, next_report = meter.step, clock() + CHUNK
    return clock() - start - metrics.held_out_seconds
