"""The interface of agents, and the published algorithms; click models are in `clickgym.envs`."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from ..core.later import loader
from .agent import Agent as Agent
from .cascade_vi import CascadeVI as CascadeVI
from .compiled import CompiledAgent as CompiledAgent
from .compiled import ContextualAgent as ContextualAgent
from .compiled import StateAgent as StateAgent
from .published import *  # noqa: F403
from .published import AGENTS, CONTEXTUAL_AGENTS
from .rl.frozen_policy import FrozenPolicy as FrozenPolicy
from .rl.learner import Learner as Learner
from .rl.named_learners import A2C as A2C
from .rl.named_learners import DQN as DQN
from .rl.named_learners import LEARNERS as LEARNERS
from .rl.named_learners import PPO as PPO
from .rl.named_learners import SAC as SAC
from .rl.named_learners import TD3 as TD3
from .rl.named_learners import MaskablePPO as MaskablePPO
from .rl.named_learners import RecurrentPPO as RecurrentPPO
from .search_space import Range as Range

if TYPE_CHECKING:
    from .rl.plackett_luce import PlackettLuceActorCritic as PlackettLuceActorCritic
    from .rl.vec_env import as_vec_env as as_vec_env

STATE_AGENTS: dict[str, type[StateAgent]] = {CascadeVI.__name__: CascadeVI}
"""The agents that observe the state of stateful users, by name."""

__all__ = [
    "AGENTS",
    "CONTEXTUAL_AGENTS",
    "LEARNERS",
    "STATE_AGENTS",
    "Agent",
    "CompiledAgent",
    "ContextualAgent",
    "FrozenPolicy",
    "Learner",
    "Range",
    "StateAgent",
    *AGENTS,
    *CONTEXTUAL_AGENTS,
    *STATE_AGENTS,
    *LEARNERS,
]

if find_spec("stable_baselines3"):  # otherwise a star import would fail
    __all__ += ["PlackettLuceActorCritic", "as_vec_env"]

if not TYPE_CHECKING:  # both import torch
    __getattr__ = loader(
        __name__, {"PlackettLuceActorCritic": ".rl.plackett_luce", "as_vec_env": ".rl.vec_env"}
    )
