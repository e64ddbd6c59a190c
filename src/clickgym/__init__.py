"""clickgym: Gymnasium environments, published algorithms and a fast runner for online learning to rank from clicks."""

import importlib
from importlib.metadata import version

import gymnasium

from . import agents, envs
from .envs import RecordRegret, RecordVectorRegret
from .runner import AgentError, Result, make_agent, run

__version__ = version("clickgym")
__all__ = [
    "AgentError",
    "RecordRegret",
    "RecordVectorRegret",
    "Result",
    "__version__",
    "agents",
    "envs",
    "make_agent",
    "record",
    "replay",
    "run",
    "sweep",
]

for _id, (_scalar, _vector) in (envs.ENVIRONMENTS | envs.CONTEXTUAL).items():
    gymnasium.register(
        _id,
        entry_point=f"{_scalar.__module__}:{_scalar.__name__}",
        vector_entry_point=f"{_vector.__module__}:{_vector.__name__}",
    )


def __getattr__(name: str) -> object:
    # Only who uses these pays for the import of data frames.
    if name == "sweep":
        return importlib.import_module(".runner.sweep", __name__).sweep
    if name == "record":
        return importlib.import_module(".runner.record", __name__).record
    if name == "replay":
        return importlib.import_module(".runner.replay", __name__).replay
    if name == "offline":
        return importlib.import_module(".offline", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
