"""What ranks: the interface of agents and the published algorithms."""

from .agent import Agent, CompiledAgent
from .baselines import EpsilonGreedy, Fixed, Oracle, Random
from .batch_rank import BatchRank
from .cascade import CascadeUCB1
from .generic_rl import PPO, Learner
from .kl_ucb import CascadeKLUCB
from .position_based import PBMUCB
from .top_rank import TopRank

AGENTS: dict[str, type[CompiledAgent]] = {
    agent.__name__: agent
    for agent in (Fixed, Random, Oracle, EpsilonGreedy, CascadeUCB1, CascadeKLUCB, BatchRank, TopRank, PBMUCB)
}
"""The published algorithms by name."""

LEARNERS: dict[str, type[Learner]] = {learner.__name__: learner for learner in (PPO,)}
"""Generic reinforcement learning by name; each needs ``pip install "clickgym[rl]"``."""

__all__ = ["AGENTS", "LEARNERS", "Agent", "CompiledAgent", "Learner", *AGENTS, *LEARNERS]
