"""Errors during a run, which say whether the agent or the environment failed."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from ..core.compiling import KernelError
from ..core.errors import Fault, SessionError, cause
from ..envs import check_ranking
from ..envs.base_env import name_of


class AgentError(SessionError):
    """An error that an agent caused during a run; its message names the agent, step and cause.

    Example:
        >>> import clickgym
        >>> from clickgym.agents import Agent
        >>> class Broken(Agent):
        ...     def rank(self, observation):
        ...         return [0, 0, 1, 2, 3]
        ...
        ...     def update(self, observation, ranking, clicks, reward):
        ...         pass
        >>> clickgym.run(Broken(), "PBMRank-v0", 100)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        clickgym.runner.errors.AgentError: Broken, step 1: ...
    """


def check_list(
    agent: Any, ranking: Any, n_items: int, n_positions: int, unit: str, number: int
) -> None:
    """Raise an `AgentError` if an agent proposed an invalid list. ``unit`` and ``number`` say when
    the agent proposed the list, such as ``"step"`` and 7.
    """
    try:
        check_ranking(ranking, n_items, n_positions)
    except (TypeError, ValueError) as error:
        raise AgentError(f"{type(agent).__name__}, {unit} {number}: {error}") from None


def agent_error(agent: Any, env: gym.Env, when: str, error: BaseException) -> BaseException:
    """Return the error to raise after an agent failed in an environment.

    An `AgentError` or `KernelError` is returned unchanged, because it already names its source. A
    `SessionError` is returned with the agent's name added.

    Args:
        agent: the agent that failed.
        env: the environment in which the agent was playing.
        when: a text that says when the error occurred, such as ``"step 7"``.
        error: the error that was caught.
    """
    if type(error) is SessionError:
        return SessionError(f"{error} (agent: {type(agent).__name__})")
    if isinstance(error, AgentError | KernelError):
        return error
    return AgentError(f"{type(agent).__name__} in {name_of(env)}, {when}: {cause(error)}")


def environment_error(agent: Any, env: gym.Env, when: str, error: BaseException) -> BaseException:
    """Return the error to raise after an environment failed.

    Args:
        agent: the agent that was playing.
        env: the environment.
        when: a text that says when the error occurred, such as ``"step 7"``.
        error: the error that was caught. A `KernelError` is returned unchanged.
    """
    if isinstance(error, KernelError):
        return error
    text = str(error) if isinstance(error, Fault | SessionError) else cause(error)
    if not isinstance(error, SessionError):  # a SessionError already names the environment
        text = f"{name_of(env)}, {when}: {text}"
    return SessionError(f"{text} (agent: {type(agent).__name__})")
