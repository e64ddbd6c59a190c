"""The published agents. All tables and all tests that cover every agent read this module.

An agent's family is the folder of its module. To add an agent to a family, import it here and add
its name to ``__all__``.
"""

from .agent import Agent
from .baselines import EpsilonGreedy, Fixed, Oracle, Random
from .cascade.cascade_kl_ucb import CascadeKLUCB
from .cascade.cascade_ts import CascadeTS
from .cascade.cascade_ucb1 import CascadeUCB1
from .cascade.cascade_ucb_v import CascadeUCBV
from .cascade.dcm_kl_ucb import DCMKLUCB
from .contextual.c2ucb import C2UCB
from .contextual.cm_lin_ucb import CMLinUCB
from .contextual.dbgd import DBGD
from .contextual.dcm_lin_ucb import DCMLinUCB
from .contextual.linear_ts import LinearTS
from .contextual.pbm_lin_ucb import PBMLinUCB
from .contextual.pdgd import PDGD
from .contextual.ubm_lin_ucb import UBMLinUCB
from .memory.cascade_vi import CascadeVI
from .memory.slate_q import SlateQ
from .nonstationary.cascade_ducb import CascadeDUCB
from .nonstationary.cascade_swucb import CascadeSWUCB
from .nonstationary.glr_cascade_kl_ucb import GLRCascadeKLUCB
from .position_based.bc_mpts import BCMPTS
from .position_based.grab import GRAB
from .position_based.pbm_pie import PBMPIE
from .position_based.pbm_ts import PBMTS
from .position_based.pbm_ucb import PBMUCB
from .position_based.pbmhb import PBMHB
from .rl.learner import Learner
from .rl.named_learners import A2C, DQN, PPO, SAC
from .rl.neural_greedy import NeuralGreedy
from .several_click_models.batch_rank import BatchRank
from .several_click_models.bubble_rank import BubbleRank
from .several_click_models.mix_ts import MixTS
from .several_click_models.ranked_bandits import RankedExp3, RankedKLUCB
from .several_click_models.top_rank import TopRank
from .several_click_models.uni_rank import UniRank

__all__ = [  # noqa: RUF022 (the order of all tables; a literal, because type checkers read it)
    "CascadeUCB1",
    "CascadeKLUCB",
    "CascadeUCBV",
    "CascadeTS",
    "DCMKLUCB",
    "PBMUCB",
    "PBMPIE",
    "PBMTS",
    "BCMPTS",
    "PBMHB",
    "GRAB",
    "RankedExp3",
    "RankedKLUCB",
    "BatchRank",
    "TopRank",
    "BubbleRank",
    "UniRank",
    "MixTS",
    "CascadeDUCB",
    "CascadeSWUCB",
    "GLRCascadeKLUCB",
    "LinearTS",
    "C2UCB",
    "CMLinUCB",
    "DCMLinUCB",
    "PBMLinUCB",
    "UBMLinUCB",
    "DBGD",
    "PDGD",
    "CascadeVI",
    "SlateQ",
    "NeuralGreedy",
    "PPO",
    "A2C",
    "DQN",
    "SAC",
    "Random",
    "EpsilonGreedy",
    "Fixed",
    "Oracle",
]

MADE_FOR = {
    "cascade": "users who read from the top",
    "position_based": "users who look less at lower positions",
    "several_click_models": "users of unknown kind",
    "nonstationary": "users who change",
    "contextual": "items with features",
    "memory": "users with a memory",
    "rl": "deep learning",
    "baselines": "comparison",
}
"""For each family, in the order of all tables, the users for whom its agents were made, or what the
agents are for. A family is a folder, or the module of the simple agents for comparison.
"""


_PUBLISHED = [globals()[name] for name in __all__]
FAMILIES: dict[str, tuple[type[Agent | Learner], ...]] = {
    family: tuple(agent for agent in _PUBLISHED if agent.__module__.split(".")[2] == family)
    for family in MADE_FOR  # the third part of a name such as clickgym.agents.cascade.cascade_ts
}
"""The published agents of each family. The other columns of the tables come from the attributes of
each class: ``paper``, ``bibtex_keys``, ``click_models``, ``observes`` and ``requires``.
"""

AGENTS: dict[str, type[Agent | Learner]] = {
    agent.__name__: agent for family in FAMILIES.values() for agent in family
}
"""The published agents, in a mapping from class names to classes."""
