"""Agents and environments, made from the names, specs and classes that users pass."""

from .agents import make_agent
from .environments import make_env

__all__ = ["make_agent", "make_env"]
