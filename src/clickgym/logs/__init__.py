"""Tools for click logs and judged queries: read click logs and judgments, and fit click models to
click logs.

Example:
    >>> from clickgym.logs import ClickLog, CMEstimator
    >>> log = ClickLog([[0, 1]] * 2, [[1, 0], [0, 0]], [0, 0], ("a", "b"), ("q",))
    >>> CMEstimator(prior=(1, 1)).fit(log).click_model("q", ["a", "b"]).attraction.round(3)
    array([0.5  , 0.333])
"""

from .checking import check_models
from .estimation.browsing import PBMEstimator, UBMEstimator
from .estimation.cascading import CMEstimator, DBNEstimator, DCMEstimator
from .estimation.click_chain import CCMEstimator
from .estimation.estimator import Estimator
from .fitting import fit_models
from .judgments import GRADED_USERS, Judgments, held_out_ndcg, judged_instance, read_judgments
from .log import ClickLog, write_tidy
from .reading import read_log
from .recording import record

__all__ = [
    "GRADED_USERS",
    "CCMEstimator",
    "CMEstimator",
    "ClickLog",
    "DBNEstimator",
    "DCMEstimator",
    "Estimator",
    "Judgments",
    "PBMEstimator",
    "UBMEstimator",
    "check_models",
    "fit_models",
    "held_out_ndcg",
    "judged_instance",
    "read_judgments",
    "read_log",
    "record",
    "write_tidy",
]
