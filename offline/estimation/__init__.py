"""Estimation of click models from logs, one file per family of models."""

from .browsing import PBMEstimator, UBMEstimator
from .cascading import CMEstimator, DBNEstimator, DCMEstimator, SDBNEstimator
from .click_chain import CCMEstimator
from .click_through import DCTREstimator, RCMEstimator, RCTREstimator
from .estimator import ConvergenceWarning, Estimator

__all__ = [
    "CCMEstimator",
    "CMEstimator",
    "ConvergenceWarning",
    "DBNEstimator",
    "DCMEstimator",
    "DCTREstimator",
    "Estimator",
    "PBMEstimator",
    "RCMEstimator",
    "RCTREstimator",
    "SDBNEstimator",
    "UBMEstimator",
]
