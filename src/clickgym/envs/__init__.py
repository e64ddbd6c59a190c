"""Simulated users: click models, and the environments, action spaces and instances built on them.

To follow ``gym.make("PBMRank-v0")`` down to the first click, read the modules in this order:

1. `registration` registers the environment ids. Each id stands for a click model and a form, such
   as ``"NonStationary"``.
2. `resolve_model` creates the users, from parameters that you pass or from an instance
   (`instances`).
3. `simulation.user_model` defines what all kinds of users have in common.
   `click_models.click_model` adds what click models have in common: three kernels, and the search
   for the best list. Each click model has its own module, such as `click_models.cascade`. `users`
   contains the other kinds of users.
4. `simulation.task` defines how sessions are simulated: with constants, a state, and the three
   kernels ``session``, ``begin`` and ``advance``.
5. `simulation.session` combines these three kernels into the kernel of one step, which `click_env`
   calls for one stream of sessions and `click_vector_env` for many streams.
"""

from ..core.compiling import KernelError
from ..core.errors import SessionError
from ..core.kernels import entry, kernel
from .click_env import ClickEnv
from .click_models.cascade import CascadeModel
from .click_models.click_chain import ClickChainModel
from .click_models.click_model import CLICK_MODELS, MAX_SEARCH, ClickModel
from .click_models.dependent_click import DependentClickModel
from .click_models.dynamic_bayesian import DynamicBayesianModel
from .click_models.mixture import MixtureModel
from .click_models.position_based import PositionBasedModel
from .click_models.trust_bias import TrustBiasModel
from .click_models.user_browsing import UserBrowsingModel
from .click_vector_env import ClickVectorEnv
from .instances import DEFAULT_INSTANCE, Instance, list_instances, load_instance
from .registration import ENVIRONMENTS, register_click_model
from .simulation.task import REWARDS, Kernels, Task
from .simulation.user_model import UserModel
from .spaces import RankedList, check_ranking
from .users.contextual import ContextualModel
from .users.contextual_features import interaction_pairs, with_products
from .users.memory import CascadeMDP
from .users.piecewise_stationary import PiecewiseStationaryModel
from .users.queries import QueryUsers
from .wrappers.actions import ScoresAction
from .wrappers.episode_counts import EpisodeCounts, EpisodeCountsVector
from .wrappers.item_by_item import ItemByItem

__all__ = [
    "CLICK_MODELS",
    "DEFAULT_INSTANCE",
    "ENVIRONMENTS",
    "MAX_SEARCH",
    "REWARDS",
    "CascadeMDP",
    "CascadeModel",
    "ClickChainModel",
    "ClickEnv",
    "ClickModel",
    "ClickVectorEnv",
    "ContextualModel",
    "DependentClickModel",
    "DynamicBayesianModel",
    "EpisodeCounts",
    "EpisodeCountsVector",
    "Instance",
    "ItemByItem",
    "KernelError",
    "Kernels",
    "MixtureModel",
    "PiecewiseStationaryModel",
    "PositionBasedModel",
    "QueryUsers",
    "RankedList",
    "ScoresAction",
    "SessionError",
    "Task",
    "TrustBiasModel",
    "UserBrowsingModel",
    "UserModel",
    "check_ranking",
    "entry",
    "interaction_pairs",
    "kernel",
    "list_instances",
    "load_instance",
    "register_click_model",
    "with_products",
]
