"""The loop of RL algorithms, which run their own training loops on parallel streams of sessions."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv, VectorWrapper

from ...core.errors import FAILURES, Fault, SessionError
from ...core.kernels import clock
from ...envs import ClickEnv, ClickVectorEnv, UserModel
from ...envs.base_env import name_of
from ...measure.session_reader import read_all_sessions, read_stream_session, session_readers
from ..errors import AgentError, agent_error
from .prepared_run import PreparedRun


def play_learner(run: PreparedRun) -> float:
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
    _load_libraries()
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

    try:
        agent.learn(streams, meter.horizon, on_step, discount_of(users))
    except InterruptedError:  # raised by on_chunk
        raise
    except FAILURES as error:
        raise agent_error(agent, run.env, f"step {meter.step + 1}", error) from error
    if meter.step < meter.horizon:  # too few sessions would look like a small regret
        name = type(agent).__name__
        raise AgentError(f"{name} stopped training after {meter.step} of {meter.horizon} sessions")
    return clock() - start - run.metrics.held_out_seconds


def _load_libraries() -> None:
    """Load what takes seconds that do not belong to a run: the library, and the modules that
    PyTorch loads with the first optimiser of a process.
    """
    import stable_baselines3  # noqa: F401
    import torch

    torch.optim.Adam([torch.zeros(1)])


def discount_of(users: UserModel | None) -> float | None:
    """Return the probability that another session of the same user follows; None if sessions are
    independent of one another, or the environment is not clickgym's.
    """
    return users.discount if users is not None and users.may_leave else None


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

    def __init__(self, run: PreparedRun) -> None:
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
            self._measure_each_stream(actions, contexts, outcome)
            return outcome
        clicks, sessions = read_all_sessions(observations, infos)
        rows = zip(
            sessions["regret"].tolist(), rewards.tolist(), clicks.sum(axis=1).tolist(), strict=True
        )
        for b, row in enumerate(rows):
            if contexts and meter.step < meter.horizon:
                ranking, expectation = sessions["ranking"][b], sessions["expected_reward"][b]
                metrics.measure(contexts[b], ranking, clicks[b], expectation, meter.totals)
            meter.add(*row)
        return outcome

    def _measure_each_stream(self, actions: Any, contexts: Any, outcome: tuple[Any, ...]) -> None:
        """Measure the sessions of an environment from another package, given what `step` got and
        what the environment returned.
        """
        meter, metrics = self._run.meter, self._run.metrics
        for b in range(self.num_envs):
            try:
                clicks, reward, regret, info = read_stream_session(self._readers, outcome, b)
            except Fault as fault:
                place = f"{name_of(self._run.env)}, session {meter.step + 1}"
                raise SessionError(f"{place}: {fault}") from None
            if contexts and meter.step < meter.horizon:
                ranking = np.asarray(actions[b], np.int64)
                expectation = float(info.get("expected_reward", math.nan))
                metrics.measure(contexts[b], ranking, clicks, expectation, meter.totals)
            meter.add(regret, reward, int(clicks.sum()))
