"""Agents in service: `Ranker`, its store, and its report; no web framework, and nothing that simulates users."""

from .ranker import Impression, Ranker
from .report import Report

__all__ = ["Impression", "Ranker", "Report"]
