"""The errors of a run, which say whether the agent or the environment failed."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from ...core.errors import Fault, SessionError, cause
from ...core.kernels import KernelError
from ...envs import check_ranking
from ...envs.base_env import name_of


class AgentError(SessionError):
    """An agent failed during a run; the message names the agent, the step and the fault."""


def check_list(
    agent: Any, ranking: Any, n_items: int, n_positions: int, unit: str, number: int
) -> None:
    """Raise an `AgentError` for a bad list; ``unit`` and ``number`` say when the agent proposed the
    list, such as ``"step", 7``.
    """
    try:
        check_ranking(ranking, n_items, n_positions)
    except (TypeError, ValueError) as error:
        raise AgentError(f"{type(agent).__name__}, {unit} {number}: {error}") from None


def agent_error(agent: Any, env: gym.Env, when: str, error: BaseException) -> BaseException:
    """Return the error to raise if an agent fails in an environment; ``when`` is a text such as
    ``"step 7"``.

    An error that already names its source stays unchanged, except that the agent's name is added to
    a SessionError.
    """
    if type(error) is SessionError:
        return SessionError(f"{error} (agent: {type(agent).__name__})")
    if isinstance(error, AgentError | KernelError):
        return error
    return AgentError(f"{type(agent).__name__} in {name_of(env)}, {when}: {cause(error)}")


def environment_error(agent: Any, env: gym.Env, when: str, error: BaseException) -> BaseException:
    """Return the error to raise if an environment fails; the arguments are as in `agent_error`."""
    if isinstance(error, KernelError):
        return error
    text = str(error) if isinstance(error, Fault | SessionError) else cause(error)
    if not isinstance(error, SessionError):  # a SessionError already names the environment
        text = f"{name_of(env)}, {when}: {text}"
    return SessionError(f"{text} (agent: {type(agent).__name__})")
