"""Estimation of click models from logs, one file per family of models; each registers its
estimators.
"""

from . import browsing, cascading, click_chain

__all__ = ["browsing", "cascading", "click_chain"]
