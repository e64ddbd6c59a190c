"""Loops in Python: `play_python` calls ``env.step`` for each session, in any environment;
`play_learner` lets an RL algorithm run its own training loop on parallel streams of sessions.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv, VectorWrapper
from numpy.typing import NDArray

from ...core.errors import FAILURES, Fault, SessionError
from ...core.kernels import clock
from ...core.messages import short_repr
from ...envs import ClickEnv, ClickVectorEnv
from ...envs.base_env import name_of
from ...envs.env_properties import click_env_of, clicks_of, sizes_of
from ...envs.registration import without_own_wrappers, without_time_limit
from ...measure.session_reader import (
    SessionReader,
    compiled_sessions,
    measure_stream,
    session_readers,
)
from ..run_errors import AgentError, agent_error, check_list, environment_error
from .run_inputs import CHUNK, Run, first_observation


def show_list(
    env: gym.Env, ranking: Any, measure: SessionReader | None
) -> tuple[tuple[Any, ...], NDArray[np.int8], float, float]:
    """Show a list to a user. Return what ``env.step`` returned, and the session's clicks, reward
    and regret.

    Args:
        env: the environment.
        ranking: the list.
        measure: a `SessionReader` of the environment; None for a `ClickEnv` without wrappers of
            its user, whose results need no check.

    Raises:
        Fault: the result of ``env.step`` has another form, a click is neither 0 nor 1, a reward or
            regret is not finite, or a wrapper showed a different list.
    """
    if measure is None:
        outcome: Any = env.step(ranking)
        return outcome, clicks_of(outcome[0]), float(outcome[1]), outcome[4]["regret"]
    click_env = measure.click_env
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
    return outcome, *measure(observation, reward, info)


def _copy_observation(observation: Any, click_env: Any) -> Any:
    """Copy an observation from another package's environment, which may reuse its arrays. Return
    an observation from a `ClickEnv` unchanged.
    """
    return observation if click_env is not None else copy.deepcopy(observation)


def play_python(run: Run) -> float:
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
    with without_time_limit(env) as env:
        measure = None if click_env is without_own_wrappers(env) else SessionReader(env)
        observation = _copy_observation(run.observation, click_env)
        while meter.step < meter.horizon:
            try:
                ranking = agent.rank(observation)
                check_list(agent, ranking, n_items, n_positions, "step", meter.step + 1)
            except FAILURES as error:
                raise agent_error(agent, env, f"step {meter.step + 1}", error) from error
            contexts = metrics.before_step(env.unwrapped)[0] if metrics.summed else ()
            try:
                outcome, clicks, reward, regret = show_list(env, ranking, measure)
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
    return clock() - start - metrics.seconds


def play_learner(run: Run) -> float:
    """Let an RL algorithm train on `RecordedStreams` until the run reaches its horizon.

    Sessions are counted step by step and, within a step, stream by stream. The last step may play
    up to ``n_envs - 1`` sessions beyond the horizon; these sessions are not counted.

    Returns:
        The seconds that the sessions took, without the time for ranking held-out queries.

    Raises:
        AgentError: the RL algorithm failed, or stopped training before the horizon.
    """
    agent, meter, base_env = run.agent, run.meter, run.env.unwrapped
    users: Any = base_env.task.model if isinstance(base_env, ClickEnv) else None
    import_module("stable_baselines3")  # takes seconds that do not belong to the run
    start, streams = clock(), RecordedStreams(run)
    last_report = 0

    def on_step() -> bool:
        nonlocal last_report
        if run.metrics.held_out:
            run.metrics.measure_held_out(agent, run.env, meter)
        if run.on_chunk is not None and meter.step > last_report:
            run.on_chunk(meter.step - last_report)
        last_report = meter.step
        return meter.step < meter.horizon

    discount = users.discount if users is not None and users.may_leave else None
    try:
        agent.learn(streams, meter.horizon, on_step, discount)
    except InterruptedError:  # raised by on_chunk
        raise
    except FAILURES as error:
        raise agent_error(agent, run.env, f"step {meter.step + 1}", error) from error
    if meter.step < meter.horizon:  # too few sessions would look like a small regret
        name = type(agent).__name__
        raise AgentError(f"{name} stopped training after {meter.step} of {meter.horizon} sessions")
    return clock() - start - run.metrics.seconds


def parallel_streams(env: gym.Env, n_envs: int) -> VectorEnv:
    """Return a vector environment with ``n_envs`` streams of an environment's users, which are
    stepped in compiled code if the environment is a `ClickEnv`, and otherwise one after another.
    """
    base_env: Any = env.unwrapped
    if not isinstance(base_env, ClickEnv):
        copies = [partial(gym.make, env.spec)] * n_envs  # type: ignore[arg-type]
        return SyncVectorEnv(copies, autoreset_mode=AutoresetMode.SAME_STEP)
    model = base_env.model
    # The environment has already found the best list; no other list is best in a later session.
    has_one_best_list = model.iid_sessions and not model.may_leave and len(model.starts) == 1
    return ClickVectorEnv(
        model,
        n_envs,
        base_env.reward,
        base_env.cutoff,
        reference=base_env.task.optimal_ranking if has_one_best_list else base_env.reference,
        autoreset_mode=AutoresetMode.SAME_STEP,
    )


class RecordedStreams(VectorWrapper):
    """Vector environment with parallel streams of a run's users, on which an RL algorithm trains.

    The run's meter and metrics record the sessions of all streams. The users depend only on the
    run's seed; the seed that is passed to `reset` is ignored.

    Args:
        run: the run. The attribute ``n_envs`` of its agent is the number of streams.
    """

    def __init__(self, run: Run) -> None:
        super().__init__(parallel_streams(run.env, run.agent.n_envs))
        self._run, self._is_compiled = run, isinstance(self.env, ClickVectorEnv)
        self._readers = session_readers(self.env)
        self._seed = int(run.env.unwrapped.np_random.integers(2**31))

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        seed = None if self._run.meter.step else self._seed
        return super().reset(seed=seed, options=options)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        meter, metrics = self._run.meter, self._run.metrics
        contexts = metrics.before_step(self.env, self.num_envs) if metrics.summed else ()
        outcome = observations, rewards, _, _, infos = super().step(actions)
        if not self._is_compiled:
            self._add_checked(actions, contexts, outcome)
            return outcome
        clicks, sessions = compiled_sessions(observations, infos)
        rows = zip(
            sessions["regret"].tolist(), rewards.tolist(), clicks.sum(axis=1).tolist(), strict=True
        )
        for b, row in enumerate(rows):
            if contexts and meter.step < meter.horizon:
                ranking, expectation = sessions["ranking"][b], sessions["expected_reward"][b]
                metrics.measure(contexts[b], ranking, clicks[b], expectation, meter.totals)
            meter.add(*row)
        return outcome

    def _add_checked(self, actions: Any, contexts: Any, outcome: tuple[Any, ...]) -> None:
        """Measure the sessions of an environment from another package, given what `step` got and
        what the environment returned.
        """
        meter, metrics = self._run.meter, self._run.metrics
        for b in range(self.num_envs):
            try:
                clicks, reward, regret, info = measure_stream(self._readers, outcome, b)
            except Fault as fault:
                place = f"{name_of(self._run.env)}, session {meter.step + 1}"
                raise SessionError(f"{place}: {fault}") from None
            if contexts and meter.step < meter.horizon:
                ranking = np.asarray(actions[b], np.int64)
                expectation = float(info.get("expected_reward", math.nan))
                metrics.measure(contexts[b], ranking, clicks, expectation, meter.totals)
            meter.add(regret, reward, int(clicks.sum()))
