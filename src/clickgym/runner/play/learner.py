"""The loop of agents that train by themselves: parallel streams of sessions, measured like any
other.
"""

from __future__ import annotations

from typing import Any

from gymnasium.vector import AutoresetMode, VectorWrapper

from ...core.faults import FAILURES
from ...core.kernels import clock
from ...envs import ClickVectorEnv
from ...envs.wrappers.regret import played
from .faults import AgentError, session_error
from .loop import Run


def play_learner(run: Run) -> float:
    """Let a learner train up to the meter's horizon, on `RecordedStreams` of its own.

    Sessions are counted step by step, and within a step stream by stream. The last step may play up
    to ``n_envs - 1`` sessions beyond the horizon, which do not count.

    Returns:
        The seconds of the sessions.

    Raises:
        AgentError: the learner failed, or ended before the horizon.
    """
    agent, meter, core = run.agent, run.meter, run.env.unwrapped
    users = core.task.model  # type: ignore[attr-defined]
    before, streams = clock(), RecordedStreams(run)
    reported, stopped_by = 0, None

    def on_step() -> bool:
        nonlocal reported, stopped_by
        if run.metrics.held_out:
            run.metrics.ask(agent, run.env, meter)
        if run.on_chunk is not None and meter.step > reported:
            try:
                run.on_chunk(meter.step - reported)
            except Exception as error:  # the caller's, and no fault of the learner
                stopped_by = error
                raise
        reported = meter.step
        return meter.step < meter.horizon

    discount = users.discount if users.may_leave else None
    try:
        agent.learn(streams, meter.horizon, on_step, discount)
    except FAILURES as error:
        if error is stopped_by:
            raise
        raise session_error(agent, run.env, f"step {meter.step + 1}", error) from error
    if meter.step < meter.horizon:  # its regret would pass for that of the whole horizon
        name = type(agent).__name__
        raise AgentError(f"{name} ended after {meter.step} of {meter.horizon} sessions")
    return clock() - before - run.metrics.seconds


class RecordedStreams(VectorWrapper):
    """The streams of a run's users on which a learner trains: the run's meter and metrics count
    their sessions, and the run's seed determines the users, whatever seed `reset` gets first.

    Args:
        run: whose agent has ``n_envs``, the number of streams.
    """

    def __init__(self, run: Run) -> None:
        env: Any = run.env.unwrapped
        model = env.model
        envs = ClickVectorEnv(
            model,
            run.agent.n_envs,
            env.reward,
            env.cutoff,
            reference=env.task.optimal_ranking if model.are_alike and not model.may_leave else None,
            autoreset_mode=AutoresetMode.SAME_STEP,
        )
        super().__init__(envs)
        self._run, self._is_over = run, False
        self._seed: int | None = int(env.np_random.integers(2**31))

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        if self._seed is not None:
            seed, self._seed = self._seed, None
        return super().reset(seed=seed, options=options)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        meter, metrics = self._run.meter, self._run.metrics
        if self._is_over:  # it would never end
            raise RuntimeError("learn goes on after its last session: stop when on_step() is False")
        self._is_over = meter.step >= meter.horizon  # a step more does no harm
        contexts = metrics.before_step(self.env, self.num_envs) if metrics.summed else ()
        outcome = observations, rewards, _, _, infos = super().step(actions)
        _, clicks, sessions = played(observations, infos)
        n_clicks, regret, earned = clicks.sum(axis=1).tolist(), sessions["regret"], rewards.tolist()
        for b, lost in enumerate(regret.tolist()):
            if contexts and meter.step < meter.horizon:
                ranking, expectation = sessions["ranking"][b], sessions["expected_reward"][b]
                metrics.measure(contexts[b], ranking, clicks[b], expectation, meter.totals)
            meter.add(lost, earned[b], n_clicks[b])
        return outcome
