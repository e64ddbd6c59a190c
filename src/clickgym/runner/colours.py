"""The palette of every figure and page, and the look of each published agent."""

from typing import Any

# The palette of Okabe and Ito, which readers with colour-vision deficiency can distinguish; grey
# replaces its yellow, which is faint in print. Further curves reuse it with another dash pattern.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#000000", "#56B4E9", "#888888")
DASHES = (
    "-",
    (0, (5, 1.5)),
    (0, (1, 1.2)),
    (0, (5, 1.5, 1, 1.5)),
    (0, (3, 1, 1, 1, 1, 1)),
    (0, (1, 3)),
)
LOOKS: list[dict[str, Any]] = [
    {"color": colour, "linestyle": dash} for dash in DASHES for colour in COLOURS
]
# A row for each pattern, a column for each colour: agents that are often compared differ in colour.
_ROWS = """
CascadeTS CascadeKLUCB TopRank BubbleRank PBMHB UniRank BatchRank RankedExp3
PBMPIE CascadeKLUCB:feedback=first_click PBMTS PBMUCB CascadeUCB1 EpsilonGreedy BCMPTS RankedKLUCB
GRAB DCMKLUCB CascadeDUCB GLRCascadeKLUCB CascadeUCBV Fixed CascadeSWUCB Random
UBMLinUCB CMLinUCB LinearTS PBMLinUCB DCMLinUCB PDGD CascadeVI C2UCB
SAC A2C DQN NeuralGreedy MaskablePPO PPO TD3 Oracle
RecurrentPPO
"""
PLACES = {agent: number for number, agent in enumerate(_ROWS.split())}
"""The place of each agent's look in `LOOKS`."""
