"""clickgym: Gymnasium environments, published algorithms and a fast runner for online learning to
rank from clicks.
"""

from importlib.metadata import version
from typing import TYPE_CHECKING

from . import agents, envs
from .envs import register_click_model
from .envs.check_click_model import check_click_model
from .measure.record_regret import RecordRegret, RecordVectorRegret
from .measure.result import Result
from .runner.check_agent import check_agent
from .runner.errors import AgentError
from .runner.make.agents import make_agent
from .runner.play.run import run

if TYPE_CHECKING:
    from .runner.results import Results
    from .runner.sweep.sweep import sweep

__all__ = [
    "AgentError",
    "RecordRegret",
    "RecordVectorRegret",
    "Result",
    "Results",
    "__version__",
    "agents",
    "check_agent",
    "check_click_model",
    "envs",
    "make_agent",
    "register_click_model",
    "run",
    "sweep",
]
__version__ = version("clickgym")

if not TYPE_CHECKING:  # with __getattr__, type checkers would accept any name

    def __getattr__(name: str) -> object:
        """Import `Results` and `sweep` at their first use. They load Polars, which takes as long to
        import as the rest of clickgym. If an unknown name is in ``agents`` or ``envs``, the error
        says so.
        """
        if name == "Results":
            from .runner.results import Results

            return Results
        if name == "sweep":
            from .runner.sweep.sweep import sweep

            return sweep
        places = [part.__name__ for part in (agents, envs) if name in dir(part)]
        hint = f"; use {places[0]}.{name}" if places else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return __all__
