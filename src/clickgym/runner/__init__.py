"""Run agents in environments: one pair, many pairs, their results, figures and commands;
`clickgym.sweep` is in ``runner.sweep``.

What is listed here is for those who build on the library; `clickgym` lists what its users call.
"""

from typing import TYPE_CHECKING

from ..core.later import loader
from ..envs.interface import sizes_of
from .engines import engine_of
from .labels import PUBLISHED, AgentLike, UnsuitedError, by_label, parse_spec
from .loop import AgentError
from .make import Place, Player, make_agent, make_env, place_of, player_of
from .metrics import Metrics, wrong_pairs
from .run import Result, run

# They need data frames and a terminal.
_LATER = {"Callback": ".progress", "Progress": ".progress", "Trial": ".results"}

if TYPE_CHECKING:
    from .progress import Callback, Progress
    from .results import Trial
else:
    __getattr__ = loader(__name__, _LATER)

__all__ = [
    "PUBLISHED",
    "AgentError",
    "AgentLike",
    "Callback",
    "Metrics",
    "Place",
    "Player",
    "Progress",
    "Result",
    "Trial",
    "UnsuitedError",
    "by_label",
    "engine_of",
    "make_agent",
    "make_env",
    "parse_spec",
    "place_of",
    "player_of",
    "run",
    "sizes_of",
    "wrong_pairs",
]
