"""Agents: base classes for your own algorithms, and the published algorithms. Click models are in
`clickgym.envs`.

Each folder contains a family of algorithms; ``MADE_FOR`` in `published` says for which users they
were made. The folder `rl` also contains what else needs PyTorch, and `common` what families share.
The modules beside the folders contain the base classes from which you derive your own agent
(`agent`, `compiled_agent`), the kernels for your own agent (`shared_kernels`), and the simple
algorithms for comparison (`baselines`).
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ..core.checks import check_number as check_number
from ..core.kernels import kernel as kernel
from ..core.state import Floats as Floats
from ..core.state import Ints as Ints
from . import published
from .agent import Agent
from .compiled_agent import CompiledAgent, ContextualAgent, StateAgent
from .published import *  # noqa: F403
from .published import AGENTS
from .rl.frozen_policy import FrozenPolicy
from .rl.learner import Learner
from .shared_kernels import kl as kl
from .shared_kernels import kl_upper as kl_upper
from .shared_kernels import rank_by_draw as rank_by_draw
from .shared_kernels import rank_by_index as rank_by_index
from .shared_kernels import show as show

if TYPE_CHECKING:
    from .rl.plackett_luce import PlackettLuceActorCritic as PlackettLuceActorCritic
    from .rl.regret_callback import RegretCallback as RegretCallback
    from .rl.vec_env import vec_env as vec_env

__all__ = [
    "AGENTS",
    "Agent",
    "CompiledAgent",
    "ContextualAgent",
    "FrozenPolicy",
    "Learner",
    "StateAgent",
]
__all__ += published.__all__

_FOR_OWN_AGENTS = ["Floats", "Ints", "check_number", "kernel", "kl", "kl_upper"]
_FOR_OWN_AGENTS += ["rank_by_draw", "rank_by_index", "show"]
"""What an agent of one's own needs; a star import leaves out such short names."""

_OF_TORCH = {
    "PlackettLuceActorCritic": "plackett_luce",
    "RegretCallback": "regret_callback",
    "vec_env": "vec_env",
}
"""The public names whose modules import torch, in a mapping to their modules in ``rl``. Each module
is imported when its name is first used.
"""

if find_spec("stable_baselines3"):  # without it, a star import of these names would fail
    __all__ += _OF_TORCH

if not TYPE_CHECKING:  # a type checker would otherwise accept any name

    def __getattr__(name: str) -> object:
        if name in _OF_TORCH:
            return getattr(import_module(f".rl.{_OF_TORCH[name]}", __name__), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:  # completion then proposes names that are not imported yet
        return sorted([*__all__, *_FOR_OWN_AGENTS])
