"""Agents in service: `Ranker`, its store and its report.

Nothing here depends on a web framework, and nothing simulates users.
"""

from .ranker import Impression, Ranker
from .report import Report

__all__ = ["Impression", "Ranker", "Report"]
