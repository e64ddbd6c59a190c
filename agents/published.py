"""The published agents: each is imported here, and its name stands in ``__all__``."""

from .agent import Agent
from .baselines import EpsilonGreedy, Fixed, Oracle, Random
from .batch_rank import BatchRank
from .bubble_rank import BubbleRank
from .cascade import CascadeTS, CascadeUCB1
from .cascade_nonstationary import CascadeDUCB, CascadeSWUCB
from .cascade_restarts import GLRCascadeKLUCB
from .cascade_variance import CascadeUCBV
from .cascade_vi import CascadeVI
from .grab import GRAB
from .kl_ucb import DCMKLUCB, CascadeKLUCB
from .linear import C2UCB, CMLinUCB, DCMLinUCB, LinearTS, PBMLinUCB, UBMLinUCB
from .pbmhb import PBMHB
from .pdgd import PDGD
from .position_based import PBMPIE, PBMUCB
from .position_based_ts import BCMPTS, PBMTS
from .ranked_bandits import RankedExp3, RankedKLUCB
from .rl.learner import Learner
from .rl.named_learners import A2C, DQN, PPO, SAC, TD3, MaskablePPO, RecurrentPPO
from .rl.neural_greedy import NeuralGreedy
from .top_rank import TopRank
from .uni_rank import UniRank

__all__ = [  # noqa: RUF022 (the order of all tables)
    "Fixed",
    "Random",
    "Oracle",
    "EpsilonGreedy",
    "CascadeUCB1",
    "CascadeUCBV",
    "CascadeKLUCB",
    "CascadeTS",
    "DCMKLUCB",
    "RankedExp3",
    "RankedKLUCB",
    "BatchRank",
    "TopRank",
    "GRAB",
    "UniRank",
    "BubbleRank",
    "CascadeDUCB",
    "CascadeSWUCB",
    "GLRCascadeKLUCB",
    "PBMUCB",
    "PBMPIE",
    "PBMTS",
    "BCMPTS",
    "PBMHB",
    "UBMLinUCB",
    "C2UCB",
    "CMLinUCB",
    "DCMLinUCB",
    "PBMLinUCB",
    "LinearTS",
    "PDGD",
    "NeuralGreedy",
    "CascadeVI",
    "PPO",
    "A2C",
    "DQN",
    "SAC",
    "TD3",
    "MaskablePPO",
    "RecurrentPPO",
]

AGENTS: dict[str, type[Agent | Learner]] = {name: globals()[name] for name in __all__}
"""The published agents by name, made from ``__all__``: a list that type checkers can read. An
agent's kind is read off its class: ``observes``, ``requires``, and whether it is a `Learner`.
"""
