"""Estimation of click models from logs: ``browsing`` fits the PBM and the UBM, ``cascading`` the
CM, the DCM and the DBN, and ``click_chain`` the CCM. An import registers a module's estimators.
"""

from . import browsing, cascading, click_chain

__all__ = ["browsing", "cascading", "click_chain"]
