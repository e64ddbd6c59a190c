"""Run agents in environments: one pair, many pairs, their results, figures and commands.

What is listed here, and `progress`, is for those who build on the library; `clickgym` lists what
its users call.
"""

from ..envs.any_env import sizes_of
from .engines import engine_of
from .labels import AgentLike, UnsuitedError, by_label
from .make import agent_maker, make_agent, make_env, maker_name, observed_sizes, requirements
from .metrics import Metrics, wrong_pairs

__all__ = [
    "AgentLike",
    "Metrics",
    "UnsuitedError",
    "agent_maker",
    "by_label",
    "engine_of",
    "make_agent",
    "make_env",
    "maker_name",
    "observed_sizes",
    "requirements",
    "sizes_of",
    "wrong_pairs",
]
