"""The list of published agents, by family. All tables and all tests that cover every agent read
this list. ``__all__`` repeats the names, because type checkers read it without running the module.
"""

from .agent import Agent
from .baselines import EpsilonGreedy, Fixed, Oracle, Random
from .cascade.cascade import CascadeTS, CascadeUCB1
from .cascade.kl_ucb import DCMKLUCB, CascadeKLUCB
from .cascade.variance import CascadeUCBV
from .contextual.dbgd import DBGD
from .contextual.linear import C2UCB, CMLinUCB, DCMLinUCB, LinearTS, PBMLinUCB, UBMLinUCB
from .contextual.pdgd import PDGD
from .memory.cascade_vi import CascadeVI
from .memory.slate_q import SlateQ
from .nonstationary.forgetting import CascadeDUCB, CascadeSWUCB
from .nonstationary.restarts import GLRCascadeKLUCB
from .position_based.confidence_bounds import PBMPIE, PBMUCB
from .position_based.grab import GRAB
from .position_based.pbmhb import PBMHB
from .position_based.thompson_sampling import BCMPTS, PBMTS
from .rl.learner import Learner
from .rl.named_learners import A2C, DQN, PPO, SAC
from .rl.neural_greedy import NeuralGreedy
from .several_click_models.batch_rank import BatchRank
from .several_click_models.bubble_rank import BubbleRank
from .several_click_models.mix_ts import MixTS
from .several_click_models.ranked_bandits import RankedExp3, RankedKLUCB
from .several_click_models.top_rank import TopRank
from .several_click_models.uni_rank import UniRank

__all__ = [
    "A2C",
    "BCMPTS",
    "C2UCB",
    "DBGD",
    "DCMKLUCB",
    "DQN",
    "GRAB",
    "PBMHB",
    "PBMPIE",
    "PBMTS",
    "PBMUCB",
    "PDGD",
    "PPO",
    "SAC",
    "BatchRank",
    "BubbleRank",
    "CMLinUCB",
    "CascadeDUCB",
    "CascadeKLUCB",
    "CascadeSWUCB",
    "CascadeTS",
    "CascadeUCB1",
    "CascadeUCBV",
    "CascadeVI",
    "DCMLinUCB",
    "EpsilonGreedy",
    "Fixed",
    "GLRCascadeKLUCB",
    "LinearTS",
    "MixTS",
    "NeuralGreedy",
    "Oracle",
    "PBMLinUCB",
    "Random",
    "RankedExp3",
    "RankedKLUCB",
    "SlateQ",
    "TopRank",
    "UBMLinUCB",
    "UniRank",
]

FAMILIES: dict[str, tuple[type[Agent | Learner], ...]] = {
    "baselines": (Fixed, Random, Oracle, EpsilonGreedy),
    "cascade bandits": (CascadeUCB1, CascadeUCBV, CascadeKLUCB, CascadeTS, DCMKLUCB),
    "several click models": (RankedExp3, RankedKLUCB, BatchRank, TopRank, UniRank),
    "safe exploration": (BubbleRank,),
    "changing users": (CascadeDUCB, CascadeSWUCB, GLRCascadeKLUCB),
    "position-based bandits": (PBMUCB, PBMPIE, PBMTS, BCMPTS, PBMHB, GRAB),
    "our own": (MixTS,),
    "items with features": (
        UBMLinUCB,
        C2UCB,
        CMLinUCB,
        DCMLinUCB,
        PBMLinUCB,
        LinearTS,
        DBGD,
        PDGD,
        NeuralGreedy,
    ),
    "users with memory": (CascadeVI, SlateQ),
    "reinforcement learning": (PPO, A2C, DQN, SAC),
}
"""The published agents by family, in the order of all tables. The other columns of the tables come
from the attributes of each class: ``paper``, ``bibtex_keys``, ``click_models``, ``observes`` and
``requires``.
"""

AGENTS: dict[str, type[Agent | Learner]] = {
    agent.__name__: agent for family in FAMILIES.values() for agent in family
}
"""The published agents, in a mapping from class names to classes."""
