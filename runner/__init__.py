"""One pair, many pairs, their results, figures and the command line."""

from .loop import AgentError
from .make import make_agent
from .run import Result, run

__all__ = ["AgentError", "Result", "make_agent", "run", "sweep"]


def __getattr__(name: str) -> object:
    if name == "sweep":  # only who sweeps pays for the import of data frames
        from .sweep import sweep

        return sweep
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
