"""The interface of agents, and the published algorithms; click models are in `clickgym.envs`."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from .agent import Agent
from .compiled import CompiledAgent, ContextualAgent, StateAgent
from .published import *  # noqa: F403
from .published import AGENTS
from .rl.frozen_policy import FrozenPolicy
from .rl.learner import Learner, OwnLoop

if TYPE_CHECKING:
    from .rl.plackett_luce import PlackettLuceActorCritic as PlackettLuceActorCritic
    from .rl.regret_callback import RegretCallback as RegretCallback
    from .rl.vec_env import as_vec_env as as_vec_env

__all__ = [
    "AGENTS",
    "Agent",
    "CompiledAgent",
    "ContextualAgent",
    "FrozenPolicy",
    "Learner",
    "OwnLoop",
    "StateAgent",
]
__all__ += AGENTS

if find_spec("stable_baselines3"):  # otherwise a star import would fail
    __all__ += ["PlackettLuceActorCritic", "RegretCallback", "as_vec_env"]

if not TYPE_CHECKING:  # for a type checker, any name would exist

    def __getattr__(name: str) -> object:
        """Load what imports torch at its first use."""
        if name == "PlackettLuceActorCritic":
            from .rl.plackett_luce import PlackettLuceActorCritic

            return PlackettLuceActorCritic
        if name == "RegretCallback":
            from .rl.regret_callback import RegretCallback

            return RegretCallback
        if name == "as_vec_env":
            from .rl.vec_env import as_vec_env

            return as_vec_env
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
