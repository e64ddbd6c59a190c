"""clickgym: Gymnasium environments, published algorithms and a fast runner for online learning to
rank from clicks.
"""

from . import _interrupts  # noqa: F401  (before what takes a second to load)

# isort: split
from importlib.metadata import version
from typing import TYPE_CHECKING

from . import envs as envs
from .core.later import loader
from .envs import RecordRegret as RecordRegret
from .envs import RecordVectorRegret as RecordVectorRegret
from .envs import register_click_model as register_click_model

if TYPE_CHECKING:
    from . import agents as agents
    from .envs.check_click_model import check_click_model as check_click_model
    from .runner.catalogue import list_agents as list_agents
    from .runner.catalogue import list_environments as list_environments
    from .runner.catalogue import list_instances as list_instances
    from .runner.catalogue import list_metrics as list_metrics
    from .runner.check_agent import check_agent as check_agent
    from .runner.loop import AgentError as AgentError
    from .runner.make import make_agent as make_agent
    from .runner.run import Result as Result
    from .runner.run import run as run
    from .runner.sweep import sweep as sweep
    from .runner.sweep_results import Results as Results
    from .runner.tuning import Tuning as Tuning
    from .runner.tuning import tune as tune


__version__ = version("clickgym")
# Loaded when first used: they need half a second, and data frames another.
_LATER = {
    "AgentError": ".runner.loop",
    "Result": ".runner.run",
    "Results": ".runner.sweep_results",
    "Tuning": ".runner.tuning",
    "agents": ".agents",
    "check_agent": ".runner.check_agent",
    "check_click_model": ".envs.check_click_model",
    "list_agents": ".runner.catalogue",
    "list_environments": ".runner.catalogue",
    "list_instances": ".runner.catalogue",
    "list_metrics": ".runner.catalogue",
    "make_agent": ".runner.make",
    "run": ".runner.run",
    "runner": ".runner",
    "sweep": ".runner.sweep",
    "tune": ".runner.tuning",
}
_ROOMS = {"runner"}
_OURS = {
    "RecordRegret",
    "RecordVectorRegret",
    "__version__",
    "envs",
    "register_click_model",
    *_LATER.keys() - _ROOMS,
}
__all__ = sorted(_OURS)


if (
    not TYPE_CHECKING
):  # or every name would be an object to a type checker, also one that there is not
    __getattr__ = loader(__name__, _LATER)


def __dir__() -> list[str]:
    return __all__
