"""Run agents in environments: one pair, many pairs, their results, figures and commands."""

from .play.metrics import METRICS, Metric

__all__ = ["METRICS", "Metric"]
