"""Click logs: readers and writers, estimation of click models, off-policy evaluation, and the
decision between lists.

Example:
    >>> from clickgym_logs import ClickLog, CMEstimator
    >>> log = ClickLog([[0, 1]] * 2, [[1, 0], [0, 0]], [0, 0], ("a", "b"), ("q",))
    >>> CMEstimator().fit(log).click_model("q", ["a", "b"]).attraction.round(3)
    array([0.5  , 0.333])
"""

from .comparison import Comparison, compare, read_policy
from .contextual import Ratings, contextual_instance, label_attraction, read_ratings
from .decide import Decision, decide, decide_all
from .estimation.browsing import PBMEstimator, UBMEstimator
from .estimation.cascading import CMEstimator, DBNEstimator, DCMEstimator, SDBNEstimator
from .estimation.click_chain import CCMEstimator
from .estimation.estimator import ConvergenceWarning, Estimator
from .evaluation import ESTIMATORS, Evaluation, contributions, evaluate
from .features import TruncatedSVD
from .fitting import Fitted, fit_models, hold_out, query_instance
from .left_out import Simulability, check_models
from .log import ClickLog, write_tidy
from .page import write_decisions
from .policies import (
    FixedPolicy,
    ItemPositionPolicy,
    ListPolicy,
    MixturePolicy,
    PlackettLucePolicy,
    Policy,
    UniformPolicy,
    empirical_policies,
)
from .readers import read_log, read_yandex
from .record import record
from .replay import replay

__all__ = [
    "ESTIMATORS",
    "CCMEstimator",
    "CMEstimator",
    "ClickLog",
    "Comparison",
    "ConvergenceWarning",
    "DBNEstimator",
    "DCMEstimator",
    "Decision",
    "Estimator",
    "Evaluation",
    "Fitted",
    "FixedPolicy",
    "ItemPositionPolicy",
    "ListPolicy",
    "MixturePolicy",
    "PBMEstimator",
    "PlackettLucePolicy",
    "Policy",
    "Ratings",
    "SDBNEstimator",
    "Simulability",
    "TruncatedSVD",
    "UBMEstimator",
    "UniformPolicy",
    "check_models",
    "compare",
    "contextual_instance",
    "contributions",
    "decide",
    "decide_all",
    "empirical_policies",
    "evaluate",
    "fit_models",
    "hold_out",
    "label_attraction",
    "query_instance",
    "read_log",
    "read_policy",
    "read_ratings",
    "read_yandex",
    "record",
    "replay",
    "write_decisions",
    "write_tidy",
]
