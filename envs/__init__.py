"""What an agent faces: click models, action spaces, environments and instances."""

from .cascade import CascadeModel, CMRankEnv, CMRankVectorEnv
from .click_env import ClickEnv, ClickVectorEnv
from .click_model import MAX_SEARCH, REWARDS, ClickModel
from .contextual.environment import ContextualClickEnv, ContextualClickVectorEnv
from .contextual.model import ContextualModel, LabelledModel, LinearModel
from .contextual.rank import CONTEXTUAL
from .dependent_click import DCMRankEnv, DCMRankVectorEnv, DependentClickModel
from .dynamic_bayesian import DBNRankEnv, DBNRankVectorEnv, DynamicBayesianModel
from .instances import DEFAULT_INSTANCE, Instance, list_instances, load_instance
from .piecewise_stationary import NON_STATIONARY, PiecewiseStationaryModel
from .position_based import PBMRankEnv, PBMRankVectorEnv, PositionBasedModel
from .rank_env import RankEnv, RankVectorEnv
from .spaces import RankedList, check_ranking
from .user_browsing import UBMRankEnv, UBMRankVectorEnv, UserBrowsingModel
from .wrappers.actions import (
    EnumeratedAction,
    EnumeratedVectorAction,
    ItemByItem,
    ItemByItemVector,
    LehmerAction,
    LehmerVectorAction,
    ScoresAction,
    ScoresVectorAction,
)
from .wrappers.history import HistoryObservation, HistoryVectorObservation
from .wrappers.regret import RecordRegret, RecordVectorRegret

ENVIRONMENTS: dict[str, tuple[type[RankEnv], type[RankVectorEnv]]] = {
    "CMRank-v0": (CMRankEnv, CMRankVectorEnv),
    "PBMRank-v0": (PBMRankEnv, PBMRankVectorEnv),
    "DCMRank-v0": (DCMRankEnv, DCMRankVectorEnv),
    "UBMRank-v0": (UBMRankEnv, UBMRankVectorEnv),
    "DBNRank-v0": (DBNRankEnv, DBNRankVectorEnv),
    **NON_STATIONARY,
}
"""The registered ids, each with its scalar and its vector environment."""

__all__ = [
    "CONTEXTUAL",
    "DEFAULT_INSTANCE",
    "ENVIRONMENTS",
    "MAX_SEARCH",
    "REWARDS",
    "CascadeModel",
    "ClickEnv",
    "ClickModel",
    "ClickVectorEnv",
    "ContextualClickEnv",
    "ContextualClickVectorEnv",
    "ContextualModel",
    "DependentClickModel",
    "DynamicBayesianModel",
    "EnumeratedAction",
    "EnumeratedVectorAction",
    "HistoryObservation",
    "HistoryVectorObservation",
    "Instance",
    "ItemByItem",
    "ItemByItemVector",
    "LabelledModel",
    "LehmerAction",
    "LehmerVectorAction",
    "LinearModel",
    "PiecewiseStationaryModel",
    "PositionBasedModel",
    "RankEnv",
    "RankVectorEnv",
    "RankedList",
    "RecordRegret",
    "RecordVectorRegret",
    "ScoresAction",
    "ScoresVectorAction",
    "UserBrowsingModel",
    "check_ranking",
    "list_instances",
    "load_instance",
]
