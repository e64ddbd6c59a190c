"""What ranks: the interface of agents and the published algorithms."""

from .agent import Agent, CompiledAgent, ContextualAgent
from .baselines import EpsilonGreedy, Fixed, Oracle, Random
from .batch_rank import BatchRank
from .bubble_rank import BubbleRank
from .cascade import CascadeTS, CascadeUCB1
from .cascade_nonstationary import CascadeDUCB, CascadeSWUCB
from .frozen_policy import FrozenPolicy
from .generic_rl import A2C, DQN, PPO, SAC, TD3, MaskablePPO, RecurrentPPO, StableBaselines
from .kl_ucb import DCMKLUCB, CascadeKLUCB
from .learner import Learner
from .linear import C2UCB, CMLinUCB, DCMLinUCB, LinearEpsilonGreedy, LinearTS, PBMLinUCB, UBMLinUCB
from .pie import PIE
from .position_based import PBMPIE, PBMUCB
from .position_based_ts import BCMPTS, PBMTS
from .ranked_bandits import RankedExp3, RankedKLUCB, RankedUCB1
from .top_rank import TopRank

AGENTS: dict[str, type[CompiledAgent]] = {
    agent.__name__: agent
    for agent in (
        Fixed,
        Random,
        Oracle,
        EpsilonGreedy,
        CascadeUCB1,
        CascadeKLUCB,
        CascadeTS,
        DCMKLUCB,
        PIE,
        RankedExp3,
        RankedUCB1,
        RankedKLUCB,
        BatchRank,
        TopRank,
        BubbleRank,
        CascadeDUCB,
        CascadeSWUCB,
        PBMUCB,
        PBMPIE,
        PBMTS,
        BCMPTS,
    )
}
"""The published algorithms by name."""

CONTEXTUAL_AGENTS: dict[str, type[ContextualAgent]] = {
    agent.__name__: agent for agent in (UBMLinUCB, C2UCB, CMLinUCB, DCMLinUCB, PBMLinUCB, LinearEpsilonGreedy, LinearTS)
}
"""The published algorithms that rank by features, by name; they need a contextual environment."""

LEARNERS: dict[str, type[StableBaselines]] = {
    learner.__name__: learner for learner in (PPO, A2C, DQN, SAC, TD3, MaskablePPO, RecurrentPPO)
}
"""Generic reinforcement learning by name; each needs ``pip install "clickgym[rl]"``."""

__all__ = [
    "AGENTS",
    "CONTEXTUAL_AGENTS",
    "LEARNERS",
    "Agent",
    "CompiledAgent",
    "ContextualAgent",
    "FrozenPolicy",
    "Learner",
    *AGENTS,
    *CONTEXTUAL_AGENTS,
    *LEARNERS,
]
