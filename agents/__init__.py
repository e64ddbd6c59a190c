"""What ranks: the interface of agents and the published algorithms."""

from .agent import Agent, CompiledAgent
from .baselines import EpsilonGreedy, Fixed, Oracle, Random
from .batch_rank import BatchRank
from .cascade import CascadeKLUCB, CascadeUCB1
from .position_based import PBMUCB
from .top_rank import TopRank

AGENTS: dict[str, type[CompiledAgent]] = {
    agent.__name__: agent
    for agent in (Fixed, Random, Oracle, EpsilonGreedy, CascadeUCB1, CascadeKLUCB, BatchRank, TopRank, PBMUCB)
}
"""The published algorithms by name."""

__all__ = ["AGENTS", "Agent", "CompiledAgent", *AGENTS]
