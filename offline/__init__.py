"""Click logs: readers, and estimation of click models.

Example:
    >>> from clickgym.offline import ClickLog, CMEstimator
    >>> log = ClickLog([[0, 1]] * 2, [[1, 0], [0, 0]], [0, 0], ("a", "b"), ("q",))
    >>> CMEstimator().fit(log).click_model("q", ["a", "b"]).attraction.round(3)
    array([0.5  , 0.333])
"""

from .browsing import PBMEstimator, UBMEstimator
from .cascading import CMEstimator, DBNEstimator, DCMEstimator, SDBNEstimator
from .estimation import Estimator
from .log import ClickLog
from .readers import read_tidy, read_yandex_relevance
from .yandex60 import convert_yandex60

__all__ = [
    "CMEstimator",
    "ClickLog",
    "DBNEstimator",
    "DCMEstimator",
    "Estimator",
    "PBMEstimator",
    "SDBNEstimator",
    "UBMEstimator",
    "convert_yandex60",
    "read_tidy",
    "read_yandex_relevance",
]
