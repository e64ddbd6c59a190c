"""Registries of the published agents by name. The form ``import X as X`` marks public names for
type checkers.
"""

from .baselines import EpsilonGreedy as EpsilonGreedy
from .baselines import Fixed as Fixed
from .baselines import Oracle as Oracle
from .baselines import Random as Random
from .batch_rank import BatchRank as BatchRank
from .bubble_rank import BubbleRank as BubbleRank
from .cascade import CascadeTS as CascadeTS
from .cascade import CascadeUCB1 as CascadeUCB1
from .cascade_nonstationary import CascadeDUCB as CascadeDUCB
from .cascade_nonstationary import CascadeSWUCB as CascadeSWUCB
from .cascade_restarts import GLRCascadeKLUCB as GLRCascadeKLUCB
from .compiled import CompiledAgent, ContextualAgent
from .grab import GRAB as GRAB
from .kl_ucb import DCMKLUCB as DCMKLUCB
from .kl_ucb import CascadeKLUCB as CascadeKLUCB
from .linear import C2UCB as C2UCB
from .linear import CMLinUCB as CMLinUCB
from .linear import DCMLinUCB as DCMLinUCB
from .linear import LinearTS as LinearTS
from .linear import PBMLinUCB as PBMLinUCB
from .linear import UBMLinUCB as UBMLinUCB
from .pbmhb import PBMHB as PBMHB
from .pdgd import PDGD as PDGD
from .position_based import PBMPIE as PBMPIE
from .position_based import PBMUCB as PBMUCB
from .position_based_ts import BCMPTS as BCMPTS
from .position_based_ts import PBMTS as PBMTS
from .ranked_bandits import RankedExp3 as RankedExp3
from .ranked_bandits import RankedKLUCB as RankedKLUCB
from .top_rank import TopRank as TopRank
from .uni_rank import UniRank as UniRank

AGENTS: dict[str, type[CompiledAgent]] = {
    agent.__name__: agent
    for agent in (
        Fixed,
        Random,
        Oracle,
        EpsilonGreedy,
        CascadeUCB1,
        CascadeKLUCB,
        CascadeTS,
        DCMKLUCB,
        RankedExp3,
        RankedKLUCB,
        BatchRank,
        TopRank,
        GRAB,
        UniRank,
        BubbleRank,
        CascadeDUCB,
        CascadeSWUCB,
        GLRCascadeKLUCB,
        PBMUCB,
        PBMPIE,
        PBMTS,
        BCMPTS,
        PBMHB,
    )
}
"""The published algorithms by name."""

CONTEXTUAL_AGENTS: dict[str, type[ContextualAgent]] = {
    agent.__name__: agent
    for agent in (
        UBMLinUCB,
        C2UCB,
        CMLinUCB,
        DCMLinUCB,
        PBMLinUCB,
        LinearTS,
        PDGD,
    )
}
"""The published algorithms that rank by features, by name; they require a contextual
environment.
"""
