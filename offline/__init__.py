"""Click logs: readers and writers, estimation of click models, and off-policy evaluation.

Example:
    >>> from clickgym.offline import ClickLog, CMEstimator
    >>> log = ClickLog([[0, 1]] * 2, [[1, 0], [0, 0]], [0, 0], ("a", "b"), ("q",))
    >>> CMEstimator().fit(log).click_model("q", ["a", "b"]).attraction.round(3)
    array([0.5  , 0.333])
"""

from .contextual import contextual_instance, label_attraction
from .estimation.browsing import PBMEstimator, UBMEstimator
from .estimation.cascading import CMEstimator, DBNEstimator, DCMEstimator, SDBNEstimator
from .estimation.estimator import ConvergenceWarning, Estimator
from .evaluation import ESTIMATORS, Evaluation, contributions, evaluate
from .features import DenoisingAutoencoder, TruncatedSVD
from .fitting import hold_out, query_instance
from .judgements import Judgements, read_letor, read_ratings
from .log import ClickLog, ItemPositionLog, write_tidy
from .policies import (
    FixedPolicy,
    ItemPositionPolicy,
    ListPolicy,
    PlackettLucePolicy,
    Policy,
    UniformPolicy,
    empirical_policies,
)
from .readers import read_log, read_open_bandit, read_tidy, read_yandex_personalized, read_yandex_relevance
from .yandex60 import convert_yandex60

__all__ = [
    "ESTIMATORS",
    "CMEstimator",
    "ClickLog",
    "ConvergenceWarning",
    "DBNEstimator",
    "DCMEstimator",
    "DenoisingAutoencoder",
    "Estimator",
    "Evaluation",
    "FixedPolicy",
    "ItemPositionLog",
    "ItemPositionPolicy",
    "Judgements",
    "ListPolicy",
    "PBMEstimator",
    "PlackettLucePolicy",
    "Policy",
    "SDBNEstimator",
    "TruncatedSVD",
    "UBMEstimator",
    "UniformPolicy",
    "contextual_instance",
    "contributions",
    "convert_yandex60",
    "empirical_policies",
    "evaluate",
    "hold_out",
    "label_attraction",
    "query_instance",
    "read_letor",
    "read_log",
    "read_open_bandit",
    "read_ratings",
    "read_tidy",
    "read_yandex_personalized",
    "read_yandex_relevance",
    "write_tidy",
]
