"""Sessions of one agent in one environment: the compiled loop, the Python loop, and which of them a pair can use."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker

from ..agents import Agent, CompiledAgent, ContextualAgent, Learner, StateAgent
from ..core.kernels import KernelError, SessionError, cause, only_own_frames, specialise
from ..envs import CascadeMDP, ClickEnv, ContextualModel, EnumeratedAction, check_ranking
from ..envs.axes import Axes
from ..envs.click_env import name_of
from ..envs.guests import clicks_of, regret_of, sizes_of
from ..envs.registration import is_limit_of_id
from ..envs.session import is_ranked_list, session
from ..envs.wrappers.regret import Meter
from .axes_loop import ClicksAsTheyCome, absent_item, loop_with_axes, update_blindly
from .labels import UnsuitedError
from .metrics import Metrics

OnChunk = Callable[[int], object]

# Left open in the templates below; `specialise` binds them to the kernels of a model and an agent.
rank: Callable[..., None]
update: Callable[..., None]
play_session: Callable[..., tuple[float, float, int]]
measure: Callable[..., None]
sessions: Callable[..., tuple[int, float, int]]
next_round: Callable[..., None]


class AgentError(SessionError):
    """An agent failed during a run; the message names the agent, the step and the fault."""


def session_error(agent: Agent, env: gym.Env, when: str, error: Exception) -> Exception:
    """The error to raise for a fault in a session of an agent in an environment; ``when`` such as ``"step 7"``.

    What says by itself where it is from stays as it is; only an environment does not know whom it faces. The traceback of the
    error, which is the cause of what is raised, is left with the frames of who wrote the agent.
    """
    if type(error) is SessionError:
        return SessionError(f"{error}, facing {type(agent).__name__}")
    if isinstance(error, AgentError | KernelError):
        return error
    only_own_frames(error)
    return AgentError(f"{type(agent).__name__} in {name_of(env)}, {when}: {cause(error)}")


def check_list(agent: Agent, ranking: Any, n_items: int, n_positions: int, what: str, number: int) -> None:
    """Raise an `AgentError` for a bad list; ``what`` and ``number`` say when, such as ``"step", 7``."""
    try:
        check_ranking(ranking, n_items, n_positions)
    except (TypeError, ValueError) as error:
        raise AgentError(f"{type(agent).__name__}, {what} {number}: {error}") from None


# The flat argument lists below are written four times on purpose: bundled in named tuples, or forwarded by ``*arguments``, they
# give the same numbers but cost 20 to 60 % more a session (measured over six pairs).


def _sessions(  # type: ignore[no-untyped-def]
    parameters, env_rng, uniforms, clicks, examined, scratch, reward, cutoff, pool, drawn,
    state, agent_rng, ranking, seen, contexts, n_sessions, totals,
):  # fmt: skip
    """``n_sessions`` rounds of rank, session, update; returns how many were played before a bad list."""
    n_positions = len(ranking)
    regret, rewards, n_clicks = totals[0], totals[1], totals[2]
    satisfied, realised, played = -1, 0.0, np.int64(0)  # no literal, for which numba would compile `is_ranked_list` once more
    while played < n_sessions:
        rank(state, agent_rng, drawn.features, ranking)
        if not is_ranked_list(ranking, seen, played):
            break
        for k in range(n_positions):
            uniforms[k] = env_rng.random()
        realised, expectation, satisfied = play_session(
            parameters, ranking, uniforms, clicks, examined, reward, cutoff, scratch
        )
        update(state, drawn.features, ranking, clicks)
        measure(contexts, ranking, clicks, expectation, totals, 3)
        regret += drawn.optimum[0] - expectation
        rewards += realised
        for k in range(n_positions):
            n_clicks += clicks[k]
        next_round(pool, drawn, parameters, env_rng, reward, scratch)
        played += 1
    totals[0], totals[1], totals[2] = regret, rewards, n_clicks
    return played, realised, satisfied


def _play(  # type: ignore[no-untyped-def]
    parameters, env_rng, uniforms, clicks, examined, scratch, reward, cutoff, pool, drawn,
    state, agent_rng, ranking, seen, contexts, n_sessions, totals,
):  # fmt: skip
    return sessions(
        parameters, env_rng, uniforms, clicks, examined, scratch, reward, cutoff, pool, drawn,
        state, agent_rng, ranking, seen, contexts, n_sessions, totals,
    )  # fmt: skip


def _rank_blindly(state, rng, features, ranking):  # type: ignore[no-untyped-def]
    rank(state, rng, ranking)


def why_not_compiled(agent: object, env: gym.Env) -> str | None:
    """The reason why a pair cannot run in the compiled loop; None if it can."""
    if not isinstance(agent, CompiledAgent):
        return f"{type(agent).__name__} is a plain Python agent"
    base = next(base for base in (ContextualAgent, StateAgent, CompiledAgent) if isinstance(agent, base))
    if type(agent).rank is not base.rank or type(agent).update is not base.update:
        return f"{type(agent).__name__} overrides rank or update in Python"
    if env.render_mode == "human":
        return "render_mode='human' shows every session"
    env = _within_harmless(env)
    if isinstance(env, gym.Wrapper):
        return f"the wrapper {type(env).__name__} must see every step"
    return _why_env_not_compiled(env)


def _why_env_not_compiled(env: gym.Env) -> str | None:
    if not isinstance(env, ClickEnv):
        return f"{type(env).__name__} is no ClickEnv: what its users do is known to its own step only"
    if type(env).step is not ClickEnv.step:
        return f"{type(env).__name__} has a step of its own"
    if env.axes is not None and env.axes.changes_items and getattr(env.task, "find_kernel", None) is None:
        return f"the best list of some of the items of a {type(env.model).__name__} is found in Python"
    return None


def _is_harmless(env: gym.Env) -> bool:
    """Whether a wrapper is one that every id brings, and nothing is lost without."""
    return type(env) in (OrderEnforcing, PassiveEnvChecker) or is_limit_of_id(env)


def _within_harmless(env: gym.Env) -> gym.Env:
    """The environment, or the outermost wrapper that is not harmless."""
    while _is_harmless(env):
        env = env.env  # type: ignore[attr-defined]
    return env


def playable(agent: Learner, env: gym.Env) -> ClickEnv:
    """The environment inside harmless wrappers, if a learner can play its own streams instead.

    Raises:
        UnsuitedError: it cannot, naming what stands in the way; or there are too many lists for actions that number them.
    """
    layer = _within_harmless(env)
    bypass = f"{type(agent).__name__} learns on streams of its own, which would bypass {type(layer).__name__}"
    if not isinstance(layer, ClickEnv):
        raise UnsuitedError(bypass)
    if isinstance(layer.model, ContextualModel):
        raise UnsuitedError(
            f"{type(agent).__name__} cannot be run by name in a contextual environment, because it observes no features; wrap "
            "the environment in RecordRegret and let the library's own algorithm step it"
        )
    if type(layer).step is not ClickEnv.step:
        raise UnsuitedError(bypass)
    if layer.task.model is not layer.model:
        raise UnsuitedError(
            f"{type(agent).__name__} learns on parallel streams, each with a clock of its own, so that it cannot be run with "
            f"users who change at given steps ({type(layer.model).__name__})"
        )
    if isinstance(layer.model, CascadeMDP) and agent.training is not None:
        raise UnsuitedError("protocol='meta' trains on users without a memory, and cannot be run with others")
    if layer.axes is not None:
        _check_axes_of_learner(agent, layer, layer.axes)
    if agent.actions == "lists":
        EnumeratedAction(layer)  # raises if there are too many
    return layer


def _check_axes_of_learner(agent: Learner, env: ClickEnv, axes: Axes) -> None:
    """Refuse a learner that cannot play the axes of an environment."""
    learner = type(agent).__name__
    given = ", ".join(f"{name}={value!r}" for name, value in env.axes_arguments.items())
    if isinstance(env.model, CascadeMDP):
        raise UnsuitedError(
            f"{learner} cannot be run by name with users with a memory if other arguments change the sessions ({given})"
        )
    if axes.available is not None and not agent.takes_candidates():
        raise UnsuitedError(
            f"{learner} supports no masks and cannot choose from a subset of the items ({given}); MaskablePPO can"
        )
    if agent.training is not None and (axes.arrival is not None or axes.changes_items):
        raise UnsuitedError(
            f"protocol='meta' reads clicks that come at once, on items that stay, and cannot be run with {given}"
        )


def loop(
    agent: CompiledAgent, env: ClickEnv, measure: Any, before: Sequence[Any]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The compiled loop of a pair under the present task, and the arguments that it takes beside those of every pair.

    Those that it took under the last task are ``before``.
    """
    if env.axes is not None:
        compiled, axes = loop_with_axes(agent, env, measure, *(before or (None,)))
        return compiled, (axes,)
    kernels: dict[str, Any] = {"rank": agent.rank_kernel, "update": agent.update_kernel}
    if not isinstance(agent, (ContextualAgent, StateAgent)):
        kernels["rank"] = specialise(_rank_blindly, rank=agent.rank_kernel)
        kernels["update"] = specialise(update_blindly, update=agent.update_kernel)
    kernels |= {"play_session": session(env.task.model), "measure": measure, "next_round": env.task.next_round}
    return specialise(_play, sessions=specialise(_sessions, **kernels), counted=True), ()


def play_compiled(agent: CompiledAgent, env: gym.Env, meter: Meter, metrics: Metrics, on_chunk: OnChunk | None = None) -> float:
    """Play up to the meter's horizon in compiled code, in chunks of about 50 ms; the environment has been reset.

    Args:
        agent: whose kernels are called; its state, generator and last list are advanced in place.
        env: the environment, whose generator is advanced as by ``step``.
        meter: receives the totals.
        metrics: what is measured besides.
        on_chunk: called after each chunk with the number of its sessions; what it raises ends the run.

    Returns:
        The seconds of the sessions, compilation excluded.

    Raises:
        AgentError: the agent proposed a bad list, or failed.
        SessionError: the click model failed.
    """
    click_env = env.unwrapped
    assert isinstance(click_env, ClickEnv)
    n_positions = click_env.model.n_positions
    uniforms, scratch = np.empty(n_positions), np.empty(n_positions + 1)
    clicks, examined = np.zeros(n_positions, np.int8), np.zeros(n_positions, np.int8)
    seen = np.empty(click_env.model.n_items, np.int64)
    task: Any = None
    axes: tuple[Any, ...] = ()

    def play(size: int) -> tuple[int, float, int]:
        return compiled(
            task.parameters, click_env.np_random, uniforms, clicks, examined, scratch, task.code, task.cutoff,
            task.pool, task.round, agent.state, agent.rng, agent.ranking, seen, contexts, size, meter.totals, *axes,
        )  # fmt: skip

    def found_guilty(error: Exception) -> Exception:
        """What failed in the chunk: ``seen`` tells how many of its lists were shown, and the last session is played again from
        its own random numbers; if that fails, too, it was the click model."""
        count = int(seen.max()) + 1
        if not count:
            return session_error(agent, env, f"step {meter.step + 1}", error)
        try:
            session(task.model)(task.parameters, agent.ranking, uniforms, clicks, examined, task.code, task.cutoff, scratch)
        except Exception as again:
            what = f"{cause(again)}, in a {type(task.model).__name__}"
            error = SessionError(f"{name_of(env)}, step {meter.step + count}: {what}")
        return session_error(agent, env, f"after the list of step {meter.step + count}", error)

    agent.keep_open()
    chunk, seconds = 1000, 0.0
    while meter.step < meter.horizon:
        if task is not click_env.task:  # at the start, and where the users change
            task, contexts = click_env.task, metrics.contexts(click_env)
            compiled, axes = loop(agent, click_env, metrics.kernel, axes)
            play(0)  # compiles
        seen.fill(-1)
        size = min(chunk, meter.next_checkpoint - meter.step, click_env.sessions_to_change)
        agent.make_room(size)
        for state in axes:
            state.played[0] = click_env._steps
        before, regret = time.perf_counter(), meter.totals[0]
        try:
            played, realised, satisfied = play(size)
        except Exception as error:
            raise found_guilty(error) from error
        lasted = time.perf_counter() - before
        if played < size:
            step = meter.step + played + 1
            check_list(agent, agent.ranking, click_env.model.n_items, n_positions, "step", step)
            raise session_error(agent, env, f"step {step}", absent_item(agent.ranking, click_env))
        click_env._record(size, meter.totals[0] - regret, agent.ranking, clicks, examined, satisfied, realised)
        agent.ranking[0] = -1  # its clicks are learned
        agent.display += size
        meter.advance(size)
        seconds += lasted
        if size == chunk:  # not cut short: its time tells the speed
            chunk = int(np.clip(chunk * 0.05 / max(lasted, 1e-6), chunk / 4, chunk * 4)) + 1
        if on_chunk is not None:
            on_chunk(size)
    if axes:
        agent.close_displays()
    return seconds


def play_python(
    agent: Agent, env: gym.Env, meter: Meter, metrics: Metrics, observation: Any, on_chunk: OnChunk | None = None
) -> None:
    """Play up to the meter's horizon through ``env.step``; the environment has been reset to ``observation``.

    Args:
        agent, env, meter, metrics, on_chunk: as in `play_compiled`; any agent, any wrappers, and environments of any origin
            that `sizes_of` knows.
        observation: what ``env.reset`` returned.

    Raises:
        AgentError: the agent proposed a bad list, or failed.
        SessionError: the environment failed.
    """
    click_env: Any = env.unwrapped
    guest = not isinstance(click_env, ClickEnv)
    n_items, n_positions, *_ = sizes_of(env)
    entered, contexts = None, metrics.contexts(click_env) if guest else ()
    unreported, due = 0, time.perf_counter() + 0.05
    as_they_come = None if guest or click_env.axes is None else ClicksAsTheyCome(agent, click_env)
    agent.leave()
    while meter.step < meter.horizon:
        try:
            ranking = agent.rank(observation) if as_they_come is None else as_they_come.rank(observation)
            check_list(agent, ranking, n_items, n_positions, "step", meter.step + 1)
            if not guest and click_env.task is not entered:
                entered, contexts = click_env.task, metrics.contexts(click_env)
            round_contexts = metrics.as_shown(contexts)
            last, (observation, reward, terminated, truncated, info) = observation, env.step(ranking)
            if as_they_come is not None:
                as_they_come.update(last, ranking, observation, float(reward))
                clicks, reward = info["true_clicks"], info["realised_reward"]
            else:
                clicks = clicks_of(observation)
                if guest:
                    clicks = np.array(clicks, np.int8)  # a copy: the environment may write into its own
                agent.update(last, ranking, clicks, float(reward))
        except Exception as error:
            raise session_error(agent, env, f"step {meter.step + 1}", error) from error
        if info.get("bot", False):
            clicks = np.zeros_like(clicks)
        elif metrics.summed:
            expectation = float(info.get("expected_reward", math.nan))
            metrics.kernel(round_contexts, np.asarray(ranking, np.int64), clicks, expectation, meter.totals, 3)
        meter.add(regret_of(info), float(reward), int(clicks.sum()))
        if terminated or truncated:
            observation, _ = env.reset()
            agent.leave()
        unreported += 1
        if on_chunk is not None and (time.perf_counter() > due or meter.step == meter.horizon):
            on_chunk(unreported)
            unreported, due = 0, time.perf_counter() + 0.05
    if as_they_come is not None:
        as_they_come.close()
