"""Run agents in environments: one pair, many pairs, their results, figures and commands.

What is listed here, and `progress`, is for those who build on the library; `clickgym` lists what
its users call. Each name is loaded at its first use: the command line needs its console only.
"""

from typing import TYPE_CHECKING

from ..core.later import loader

if TYPE_CHECKING:
    from ..agents.agent import UnsuitedError as UnsuitedError
    from ..envs.any_env import checked_clicks as checked_clicks
    from ..envs.any_env import clicks_shown as clicks_shown
    from ..envs.any_env import sizes_of as sizes_of
    from .commands.logs import typed_log as typed_log
    from .config import provenance as provenance
    from .engines import engine_of as engine_of
    from .identity import identities as identities
    from .labels import AgentLike as AgentLike
    from .labels import by_label as by_label
    from .make import agent_maker as agent_maker
    from .make import make_agent as make_agent
    from .make import make_env as make_env
    from .make import maker_name as maker_name
    from .make import observed_sizes as observed_sizes
    from .make import requirements as requirements
    from .metrics import Metrics as Metrics
    from .metrics import wrong_pairs as wrong_pairs
    from .results import IDENTITY as IDENTITY
    from .results import Trial as Trial
    from .results import read_sealed as read_sealed
    from .results import run_seed as run_seed
    from .sweep import resumable as resumable
    from .warm_start import sessions_of as sessions_of

_MODULES = {
    "IDENTITY": ".results",
    "AgentLike": ".labels",
    "Metrics": ".metrics",
    "Trial": ".results",
    "UnsuitedError": "..agents.agent",
    "agent_maker": ".make",
    "by_label": ".labels",
    "checked_clicks": "..envs.any_env",
    "clicks_shown": "..envs.any_env",
    "engine_of": ".engines",
    "identities": ".identity",
    "make_agent": ".make",
    "make_env": ".make",
    "maker_name": ".make",
    "observed_sizes": ".make",
    "provenance": ".config",
    "read_sealed": ".results",
    "requirements": ".make",
    "resumable": ".sweep",
    "run_seed": ".results",
    "sessions_of": ".warm_start",
    "sizes_of": "..envs.any_env",
    "typed_log": ".commands.logs",
    "wrong_pairs": ".metrics",
}
__all__ = sorted(_MODULES)

if not TYPE_CHECKING:  # for a type checker, any name would exist
    __getattr__ = loader(__name__, _MODULES)
