"""Click logs: readers and writers, estimation of click models, and off-policy evaluation.

Example:
    >>> from clickgym.offline import ClickLog, CMEstimator
    >>> log = ClickLog([[0, 1]] * 2, [[1, 0], [0, 0]], [0, 0], ("a", "b"), ("q",))
    >>> CMEstimator().fit(log).click_model("q", ["a", "b"]).attraction.round(3)
    array([0.5  , 0.333])
"""

from .comparison import Comparison, compare, read_policy, read_sessions
from .contextual import contextual_instance, label_attraction
from .counts import Counts, read_counts
from .estimation.browsing import PBMEstimator, UBMEstimator
from .estimation.cascading import CMEstimator, DBNEstimator, DCMEstimator, SDBNEstimator
from .estimation.click_chain import CCMEstimator
from .estimation.click_through import DCTREstimator, RCMEstimator, RCTREstimator
from .estimation.estimator import ConvergenceWarning, Estimator
from .evaluation import ESTIMATORS, Evaluation, contributions, evaluate
from .features import DenoisingAutoencoder, TruncatedSVD
from .fitting import Fitted, fit_models, hold_out, query_instance
from .interleaving import click_law
from .judgements import Judgements, read_judgements, read_letor, read_ratings
from .learning.learn import FitWarning, learn
from .learning.ranker import LearnedRanker
from .left_out import Simulability, check_models
from .log import ClickLog, ItemPositionLog, write_tidy
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
from .readers import read_log, read_open_bandit, read_tidy, read_yandex_personalized, read_yandex_relevance
from .tally import count_log
from .ubi import read_ubi, write_ubi
from .verdict import Verdict

__all__ = [
    "ESTIMATORS",
    "CCMEstimator",
    "CMEstimator",
    "ClickLog",
    "Comparison",
    "ConvergenceWarning",
    "Counts",
    "DBNEstimator",
    "DCMEstimator",
    "DCTREstimator",
    "DenoisingAutoencoder",
    "Estimator",
    "Evaluation",
    "FitWarning",
    "Fitted",
    "FixedPolicy",
    "ItemPositionLog",
    "ItemPositionPolicy",
    "Judgements",
    "LearnedRanker",
    "ListPolicy",
    "MixturePolicy",
    "PBMEstimator",
    "PlackettLucePolicy",
    "Policy",
    "RCMEstimator",
    "RCTREstimator",
    "SDBNEstimator",
    "Simulability",
    "TruncatedSVD",
    "UBMEstimator",
    "UniformPolicy",
    "Verdict",
    "check_models",
    "click_law",
    "compare",
    "contextual_instance",
    "contributions",
    "count_log",
    "empirical_policies",
    "evaluate",
    "fit_models",
    "hold_out",
    "label_attraction",
    "learn",
    "query_instance",
    "read_counts",
    "read_judgements",
    "read_letor",
    "read_log",
    "read_open_bandit",
    "read_policy",
    "read_ratings",
    "read_sessions",
    "read_tidy",
    "read_ubi",
    "read_yandex_personalized",
    "read_yandex_relevance",
    "write_tidy",
    "write_ubi",
]


def __getattr__(name: str) -> object:
    if name in ("convert_kdd_pbm", "convert_yandex60"):
        raise ImportError(f"{name} has left the package: examples/convert_queries.py of the repository has it")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
