"""Run agents in environments: one pair, many pairs, their results, figures and commands; `clickgym.sweep` is in
``runner.sweep``.
"""

from .loop import AgentError
from .make import make_agent
from .run import Result, run

__all__ = ["AgentError", "Result", "make_agent", "run"]
