"""The Python loop: one ``env.step`` at a time, in environments of any origin."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from ...core.checks import short
from ...core.faults import FAILURES, Fault
from ...core.kernels import clock
from ...envs.any_env import (
    checked_clicks,
    checked_number,
    clicks_of,
    clicks_shown,
    own_step_of,
    regret_of,
    sizes_of,
)
from ...envs.meter import Meter
from ...envs.registration import endless, without_own_wrappers
from .faults import check_list, environment_error, first_observation, session_error
from .loop import CHUNK, Run


class Session(NamedTuple):
    """The result of ``env.step`` for a session."""

    observation: Any  # the next one
    clicks: NDArray[np.int8]
    reward: float
    regret: float  # nan if unknown
    expectation: float  # the expected reward of the list; nan if unknown
    has_left: bool  # the user, for good
    is_cut: bool  # the episode, otherwise


class TrustedStep:
    """The step of a `ClickEnv` below the wrappers of its id, whose results need no check.

    Args:
        env: as the loop steps it.
    """

    def __init__(self, env: gym.Env) -> None:
        self.env = env

    def private(self, observation: Any) -> Any:
        """An observation that the environment does not change."""
        return observation

    def play(self, ranking: Any) -> Session:
        """Show a list."""
        following, reward, has_left, is_cut, info = self.env.step(ranking)
        regret, expectation = info["regret"], info["expected_reward"]
        return Session(
            following, clicks_of(following), float(reward), regret, expectation, has_left, is_cut
        )


class CheckedStep(TrustedStep):
    """The step of an environment of another package or behind wrappers. The results of the
    outermost one count, and are checked.

    Clicks are those observed; of observations that show none (stacked, flattened) the users'.
    Regret is unknown if ``info`` does not say it, or says that of another reward. An environment of
    another package may write into its arrays again, so they are copied.

    Args:
        env: as the loop steps it.
        n_positions: K.
        meter: forgets the regret of a reward that was changed.

    Raises:
        Fault: clicks that are not 0 or 1, a reward or regret that is not finite, or a wrapper that
            showed another list.
    """

    def __init__(self, env: gym.Env, n_positions: int, meter: Meter) -> None:
        super().__init__(env)
        self.n_positions, self.meter = n_positions, meter
        self.users_env = own_step_of(env)
        self.has_clicks = (
            self.users_env is None or clicks_shown(env.observation_space) == n_positions
        )

    def private(self, observation: Any) -> Any:
        return observation if self.users_env is not None else copy.deepcopy(observation)

    def play(self, ranking: Any) -> Session:
        users_env = self.users_env
        answer: Any = self.env.step(ranking if users_env is not None else np.array(ranking))
        if not isinstance(answer, tuple) or len(answer) != 5 or not isinstance(answer[4], Mapping):
            expected = "(observation, reward, terminated, truncated, info)"
            raise Fault(f"it returned {short(answer)}; expected {expected}")
        following, reward, terminated, truncated, info = answer
        reward = checked_number("reward", reward)
        if users_env is not None:
            shown, clicks = users_env.last_session()
            if not np.array_equal(shown, ranking):
                chosen = np.asarray(ranking).tolist()
                raise Fault(f"a wrapper showed {shown.tolist()} where the agent chose {chosen}")
            if not users_env.regret_is_of(reward, info):
                self.meter.forget_regret()
        if self.has_clicks:
            clicks = checked_clicks(following, self.n_positions)
        return Session(
            observation=self.private(following),
            clicks=clicks,
            reward=reward,
            regret=regret_of(info),
            expectation=float(info.get("expected_reward", math.nan)),
            has_left=bool(terminated),
            is_cut=bool(truncated),
        )


def play_python(run: Run) -> float:
    """Play up to the meter's horizon through ``env.step``; any agent in any environment.

    Returns:
        As `play_compiled`.

    Raises:
        AgentError: the agent proposed a bad list, or failed.
        SessionError: the environment failed, as `CheckedStep` says.
    """
    agent, env, meter, metrics = run.agent, run.env, run.meter, run.metrics
    n_items, n_positions, *_ = sizes_of(env)
    is_trusted = own_step_of(env) is without_own_wrappers(env)
    before = clock()
    reported, next_report = meter.step, before + CHUNK
    agent.leave()
    # The limit of an id would end the stay of stateful users after 1000 sessions.
    with endless(env):
        step = TrustedStep(env) if is_trusted else CheckedStep(env, n_positions, meter)
        play, observation = step.play, step.private(run.observation)
        while meter.step < meter.horizon:
            try:
                ranking = agent.rank(observation)
                check_list(agent, ranking, n_items, n_positions, "step", meter.step + 1)
            except FAILURES as error:
                raise session_error(agent, env, f"step {meter.step + 1}", error) from error
            contexts = metrics.before_step(env.unwrapped)[0] if metrics.summed else ()
            try:
                session = play(ranking)
            except FAILURES as error:
                raise environment_error(agent, env, f"step {meter.step + 1}", error) from error
            clicks, reward = session.clicks, session.reward
            try:
                agent.update(observation, ranking, clicks, reward)
            except FAILURES as error:
                raise session_error(agent, env, f"step {meter.step + 1}", error) from error
            if metrics.summed:
                items, expectation = np.asarray(ranking, np.int64), session.expectation
                metrics.measure(contexts, items, clicks, expectation, meter.totals)
            meter.add(session.regret, reward, int(clicks.sum()))
            if metrics.held_out:
                metrics.ask(agent, env, meter)
            observation = session.observation
            if session.has_left or session.is_cut:
                observation = step.private(first_observation(agent, env))
                agent.leave()
            if run.on_chunk is not None and (meter.step == meter.horizon or clock() > next_report):
                run.on_chunk(meter.step - reported)
                reported, next_report = meter.step, clock() + CHUNK
    return clock() - before - metrics.seconds
