"""Estimation of click models from logs, with a module for each family of models. When a module is
imported, its estimators are registered.
"""

from . import browsing, cascading, click_chain

__all__ = ["browsing", "cascading", "click_chain"]
