"""The loops in Python: `play_python` plays one ``env.step`` at a time, in any environment;
`play_learner` lets an RL algorithm run its own training loop, on parallel streams of sessions.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorWrapper
from numpy.typing import NDArray

from ...core.checks import short_repr
from ...core.errors import FAILURES, Fault
from ...core.kernels import clock
from ...envs import ClickVectorEnv
from ...envs.any_env import Measure, click_env_of, clicks_of, sizes_of
from ...envs.registration import endless, without_own_wrappers
from ...envs.vector_env import read_step
from .loop import CHUNK, Run, first_observation
from .run_errors import AgentError, agent_error, check_list, environment_error


class Session(NamedTuple):
    """The result of ``env.step`` for a session."""

    observation: Any  # the next observation
    clicks: NDArray[np.int8]
    reward: float
    regret: float  # nan if unknown
    expectation: float  # the expected reward of the list; nan if unknown
    has_left: bool  # whether the user left for good
    is_cut: bool  # whether the episode ended in another way


Step = Callable[[Any], Session]
"""A function that shows a list to a user, and returns the session."""


def unchecked_step(env: gym.Env, ranking: Any) -> Session:
    """Show a list in a `ClickEnv` with no wrappers but those of its id; results need no check."""
    next_observation, reward, has_left, is_cut, info = env.step(ranking)
    regret, expectation = info["regret"], info["expected_reward"]
    clicks = clicks_of(next_observation)
    return Session(next_observation, clicks, float(reward), regret, expectation, has_left, is_cut)


def checked_step(env: gym.Env) -> Step:
    """Return the step of an environment that comes from another package or has wrappers. The step
    returns the results of the outermost wrapper, which `Measure` checks.

    The step raises a Fault if clicks are not 0 or 1, if a reward or regret is not finite, or if a
    wrapper showed another list.
    """
    click_env, measure = click_env_of(env), Measure(env)

    def step(ranking: Any) -> Session:
        result: Any = env.step(ranking if click_env is not None else np.array(ranking))
        if not isinstance(result, tuple) or len(result) != 5 or not isinstance(result[4], Mapping):
            expected = "(observation, reward, terminated, truncated, info)"
            raise Fault(f"it returned {short_repr(result)}; expected {expected}")
        next_observation, reward, terminated, truncated, info = result
        shown_list = ranking if click_env is None else click_env.last_session()[0]
        if not np.array_equal(shown_list, ranking):
            shown_items, chosen_items = (
                np.asarray(items).tolist() for items in (shown_list, ranking)
            )
            raise Fault(
                f"a wrapper showed {shown_items}, but the agent chose {chosen_items}; remove the "
                "wrapper that changes lists"
            )
        clicks, reward, regret = measure(next_observation, reward, info)
        return Session(
            observation=_copy_observation(next_observation, click_env),
            clicks=clicks,
            reward=reward,
            regret=regret,
            expectation=float(info.get("expected_reward", math.nan)),
            has_left=bool(terminated),
            is_cut=bool(truncated),
        )

    return step


def _copy_observation(observation: Any, click_env: Any) -> Any:
    """Return an observation that the environment will not change: a copy if the environment comes
    from another package, because such an environment may reuse its arrays.
    """
    return observation if click_env is not None else copy.deepcopy(observation)


def play_python(run: Run) -> float:
    """Play up to the meter's horizon through ``env.step``. Any agent can play in any environment.

    Returns:
        As `play_compiled`.

    Raises:
        AgentError: the agent proposed a bad list, or failed.
        SessionError: the environment failed, as `checked_step` says.
    """
    agent, env, meter, metrics = run.agent, run.env, run.meter, run.metrics
    n_items, n_positions, *_ = sizes_of(env)
    click_env = click_env_of(env)
    step: Step = partial(unchecked_step, env)
    if click_env is not without_own_wrappers(env):
        step = checked_step(env)
    start = clock()
    last_report, next_report = meter.step, start + CHUNK
    agent.leave()
    # The step limit of a registered id would make users with memory leave after 1000 sessions.
    with endless(env):
        observation = _copy_observation(run.observation, click_env)
        while meter.step < meter.horizon:
            try:
                ranking = agent.rank(observation)
                check_list(agent, ranking, n_items, n_positions, "step", meter.step + 1)
            except FAILURES as error:
                raise agent_error(agent, env, f"step {meter.step + 1}", error) from error
            contexts = metrics.before_step(env.unwrapped)[0] if metrics.summed else ()
            try:
                session = step(ranking)
            except FAILURES as error:
                raise environment_error(agent, env, f"step {meter.step + 1}", error) from error
            clicks, reward = session.clicks, session.reward
            try:
                agent.update(observation, ranking, clicks.astype(np.int64), reward)
            except FAILURES as error:
                raise agent_error(agent, env, f"step {meter.step + 1}", error) from error
            if metrics.summed:
                items, expectation = np.asarray(ranking, np.int64), session.expectation
                metrics.measure(contexts, items, clicks, expectation, meter.totals)
            meter.add(session.regret, reward, int(clicks.sum()))
            if metrics.held_out:
                metrics.measure_held_out(agent, env, meter)
            observation = session.observation
            if session.has_left or session.is_cut:
                observation = _copy_observation(first_observation(agent, env), click_env)
                agent.leave()
            if run.on_chunk is not None and (meter.step == meter.horizon or clock() > next_report):
                run.on_chunk(meter.step - last_report)
                last_report, next_report = meter.step, clock() + CHUNK
    return clock() - start - metrics.seconds


def play_learner(run: Run) -> float:
    """Let an RL algorithm train up to the meter's horizon, on its own `RecordedStreams`.

    Sessions are counted step by step, and within a step stream by stream. The last step may play up
    to ``n_envs - 1`` sessions beyond the horizon, which do not count.

    Returns:
        The seconds that the sessions took.

    Raises:
        AgentError: the RL algorithm failed, or ended before the horizon.
    """
    agent, meter, base_env = run.agent, run.meter, run.env.unwrapped
    users = base_env.task.model  # type: ignore[attr-defined]
    import_module("stable_baselines3")  # takes seconds, which do not count as time of the run
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

    discount = users.discount if users.may_leave else None
    try:
        agent.learn(streams, meter.horizon, on_step, discount)
    except InterruptedError:  # raised by on_chunk
        raise
    except FAILURES as error:
        raise agent_error(agent, run.env, f"step {meter.step + 1}", error) from error
    if meter.step < meter.horizon:  # otherwise its regret would count as that of the whole horizon
        name = type(agent).__name__
        raise AgentError(f"{name} ended after {meter.step} of {meter.horizon} sessions")
    return clock() - start - run.metrics.seconds


class RecordedStreams(VectorWrapper):
    """Parallel streams of a run's users, on which an RL algorithm trains. The run's meter and
    metrics record the sessions of all streams. The run's seed determines the users, whatever seed
    `reset` receives.

    Args:
        run: the run, whose agent has ``n_envs``, the number of streams.
    """

    def __init__(self, run: Run) -> None:
        env: Any = run.env.unwrapped
        model = env.model
        envs = ClickVectorEnv(
            model,
            run.agent.n_envs,
            env.reward,
            env.cutoff,
            reference=env.task.optimal_ranking
            if model.iid_sessions and not model.may_leave
            else None,
            autoreset_mode=AutoresetMode.SAME_STEP,
        )
        super().__init__(envs)
        self._run = run
        self._seed = int(env.np_random.integers(2**31))

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        seed = None if self._run.meter.step else self._seed
        return super().reset(seed=seed, options=options)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        meter, metrics = self._run.meter, self._run.metrics
        contexts = metrics.before_step(self.env, self.num_envs) if metrics.summed else ()
        outcome = observations, rewards, _, _, infos = super().step(actions)
        _, clicks, sessions = read_step(observations, infos)
        n_clicks, regret, earned = clicks.sum(axis=1).tolist(), sessions["regret"], rewards.tolist()
        for b, lost in enumerate(regret.tolist()):
            if contexts and meter.step < meter.horizon:
                ranking, expectation = sessions["ranking"][b], sessions["expected_reward"][b]
                metrics.measure(contexts[b], ranking, clicks[b], expectation, meter.totals)
            meter.add(lost, earned[b], n_clicks[b])
        return outcome
