"""MixTS, our own agent: Thompson sampling from a mixture of click models."""

from .agent import MixTS

__all__ = ["MixTS"]
