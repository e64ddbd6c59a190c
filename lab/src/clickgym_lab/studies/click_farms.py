"""Study of bots: which agents lose by a click farm, an attack on one item or random clicks, and which recover."""

from __future__ import annotations

from .axes import BARS, RANDOM, in_envs, lines, table_of
from .plots import Figure, finish, grid
from .study import CM, PBM, Evidence, PaperTable

EVERY, MANY = "click-farms", "click-farms-models"
"""All kinds of attacks on the shipped queries; a farm in two click models on all queries."""
FARM = {"0": "", **{f"{share}": f":bots=farm:share={share / 100:g}" for share in (0.1, 0.25, 1, 5)}}
"""By the percentage of the sessions."""
FARM_FIRST = {"0": "", **{f"{first:,}": f":bots=farm:first={first}" for first in (300, 1000, 10_000)}}
QUIT_FIRST = {"0": "", **{f"{first:,}": f":bots=quit:first={first}" for first in (300, 1000, 10_000)}}
OTHERS = {"nothing": "", "random\n5 %": ":bots=random:share=0.05", "quit\n1 %": ":bots=quit:share=0.01"}
ATTACKS = {
    "no bots": "",
    **{f"farm {name} %": argument for name, argument in FARM.items() if argument},
    **{f"farm first {name}": argument for name, argument in FARM_FIRST.items() if argument},
    **{f"quit first {name}": argument for name, argument in QUIT_FIRST.items() if argument},
    "random 5 %": OTHERS["random\n5 %"], "quit 1 %": OTHERS["quit\n1 %"],
}  # fmt: skip
ENVS = tuple(f"{CM}{argument}" for argument in ATTACKS.values())
DRAWN = (
    "Fixed", "BubbleRank", "CascadeTS", "CascadeKLUCB", "GLRCascadeKLUCB", "CascadeSWUCB", "PBMHB", "GRAB", "TopRank",
    "UniRank", "MergeRank",
)  # fmt: skip


def regret(evidence: Evidence) -> PaperTable:
    """Regret of all agents under all attacks."""
    curves = evidence[EVERY]
    envs = {name: f"{CM}{argument}" for name, argument in ATTACKS.items()}
    title = f"Regret of real users in the CM, mean over {len(curves.instances)} queries, {curves.horizon:,} sessions"
    return table_of(curves, *in_envs(envs, curves.agents), title)


def draw(evidence: Evidence) -> Figure:
    """Regret by share, duration and kind of the attack; and in two click models on all queries."""
    figure, panels = grid(3, 2, labels=2 * [f"regret, % of {RANDOM}"])
    curves = evidence[EVERY]
    for axes, attacks, label in (
        (panels[0], FARM, "% of the sessions are of a farm"),
        (panels[1], FARM_FIRST, "so many first sessions are of a farm"),
        (panels[2], QUIT_FIRST, "so many first sessions report one item"),
        (panels[3], OTHERS, "other bots"),
    ):
        lines(axes, curves, *in_envs({name: f"{CM}{argument}" for name, argument in attacks.items()}, DRAWN), CM)
        axes.set(title="CM, shipped queries", xlabel=label)
    curves = evidence[MANY]
    agents = [agent for agent in DRAWN if agent in curves.agents]
    for axes, env in zip(panels[4:], (CM, PBM), strict=True):
        attacks = {"0": "", "0.25": FARM["0.25"]}
        lines(axes, curves, *in_envs({name: f"{env}{argument}" for name, argument in attacks.items()}, agents), env)
        axes.set(title=f"{env.partition('Rank')[0]}, all queries", xlabel="% of the sessions are of a farm")
    return finish(figure, panels[:1], evidence, "Regret by what bots click", BARS)
