"""clickgym: Gymnasium environments, published algorithms and a fast runner for online learning to
rank from clicks.
"""

from .core import orphans as _orphans  # noqa: F401  # isort: skip (what follows takes seconds)

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
    from .runner.check_agent import check_agent as check_agent
    from .runner.loop import AgentError as AgentError
    from .runner.make import make_agent as make_agent
    from .runner.results import Results as Results
    from .runner.run import Result as Result
    from .runner.run import run as run
    from .runner.sweep import sweep as sweep

__version__ = version("clickgym")
_LATER = {
    "AgentError": ".runner.loop",
    "Result": ".runner.run",
    "Results": ".runner.results",
    "agents": ".agents",
    "check_agent": ".runner.check_agent",
    "check_click_model": ".envs.check_click_model",
    "make_agent": ".runner.make",
    "run": ".runner.run",
    "runner": ".runner",
    "sweep": ".runner.sweep",
}
"""Names that are loaded at first use: they take half a second, and data frames another."""
__all__ = sorted(
    {"RecordRegret", "RecordVectorRegret", "__version__", "envs", "register_click_model", *_LATER}
    - {"runner"}
)

if not TYPE_CHECKING:  # for a type checker, any name would exist
    __getattr__ = loader(__name__, _LATER)


def __dir__() -> list[str]:
    return __all__
