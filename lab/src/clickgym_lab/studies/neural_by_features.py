"""Study of small networks that rank online by features: what do they lose beside linear agents and generic RL?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from clickgym.core.statistics import worst_tenth

from .axes import RANDOM, left, times
from .features_or_networks import WORLDS
from .plots import Figure, finish, grid, style_of
from .study import Curves, Evidence, Finding, PaperTable, Values, estimate, less_regret, number, versus

WORLD = "ContextualPBMRank-v0"
FEATURES = ("plain", "outer")
SEEDS = range(10, 15)
"""Of the worlds; those of 0 to 4 were played when the agents were made."""
BANDITS, RANKERS = ("NeuralLinearTS", "NeuralGreedy"), ("OLRankNet:growth=0.1", "OLLambdaRank:growth=0.1")
NETWORKS = (*BANDITS, *RANKERS)
PAIRS, DUELS = "PairRank:loss=sum,growth=0.01", "PDGD:learning_rate=3"
LINEAR = ("LinearTS", PAIRS, DUELS)
AGENTS = ("PBMLinUCB", *NETWORKS, *LINEAR, "A2C", RANDOM)
TOLD_OUTER = ("PBMLinUCB", "NeuralLinearTS", *LINEAR, "A2C", RANDOM)
PLAYED = ("personal", "network")
EARLY = 0.8
"""The share of the sessions after which the targets are judged: 8,000."""


def instances(_: Sequence[str], world: str, features: str) -> list[str]:
    """Users of a world, who are told by these features; 10 candidates, 5 positions."""
    return [f"{WORLDS[world]}seed={seed},features={features},n_items=10,n_positions=5" for seed in SEEDS]


def _of(evidence: Evidence, world: str, features: str) -> Curves:
    return evidence[f"neural-{world}-{features}"]


def percents(curves: Curves, agent: str, fraction: float = 1.0) -> Values:
    """``(instances,)`` regret in percent of random lists' at the end, or at a fraction of the sessions."""
    lost, random = (curves.end_units(WORLD, each, fraction=fraction) for each in (agent, RANDOM))
    return 100 * lost / random


def _words(values: Values) -> str:
    return f"{estimate(values)}, worst {number(-worst_tenth(-values))}"


def target(evidence: Evidence, agent: str, world: str, most: float) -> Finding:
    """Whether the median over the instances is at most so many percent of random lists' regret after 8,000 sessions."""
    values = percents(_of(evidence, world, "plain"), agent, EARLY)
    worst = number(-worst_tenth(-values))
    return Finding(f"{number(np.median(values))} %, worst {worst} %", "yes" if np.median(values) <= most else "no")


def less(evidence: Evidence, better: str, worse: str, world: str, features: str) -> Finding:
    """Whether one agent has less regret at the end than another that is told the same."""
    return less_regret(_of(evidence, world, features), WORLD, better, worse)


def told_less(evidence: Evidence, better: str, with_features: str, worse: str, than: str, world: str) -> Finding:
    """Whether one agent with some features has less regret than another with other features."""
    low = _of(evidence, world, with_features).end_units(WORLD, better)
    return versus(low, _of(evidence, world, than).end_units(WORLD, worse), f" ({with_features}, {than})", "over 5 instances")


def share(evidence: Evidence, agent: str, world: str, features: str, low: float, high: float) -> Finding:
    """Regret at the end as a share of that of random lists."""
    return times(_of(evidence, world, features), agent, WORLD, low, high, other=RANDOM)


def goes_on(evidence: Evidence, agent: str, world: str, features: str, low: float, high: float) -> Finding:
    """Regret per session in the last hundredth, as a share of that of random lists."""
    return left(_of(evidence, world, features), agent, WORLD, low, high)


def table(evidence: Evidence) -> PaperTable:
    """Regret at the end in percent of random lists', by features."""
    rows = [["world", "agent", *FEATURES]]
    for world, agent in product(PLAYED, AGENTS[:-1]):
        told = [curves for each in FEATURES if agent in (curves := _of(evidence, world, each)).agents]
        cells = [_words(percents(curves, agent)) for curves in told]
        rows.append([world, agent, *cells, *[""] * (len(FEATURES) - len(cells))])
    return (
        "Regret at the end, % of random lists’: mean over five instances, its 95 % interval, and the worst tenth of them",
        rows,
    )


def draw(evidence: Evidence) -> Figure:
    """Regret of all agents by sessions, by world and features."""
    figure, panels = grid(2, 2, labels=2 * [f"regret so far, % of {RANDOM}"])
    for axes, (features, world) in zip(panels, product(FEATURES, PLAYED), strict=True):
        curves = _of(evidence, world, features)
        places, random = curves.steps >= 100, curves.units(WORLD, RANDOM).mean(axis=0)
        for agent in curves.agents:
            if agent != RANDOM:
                mean = 100 * curves.units(WORLD, agent).mean(axis=0) / random
                axes.plot(curves.steps[places], mean[places], label=agent, **style_of(agent, axes))
        axes.set(xscale="log", title=f"{world}, {features}", ylim=(0, 125), xlabel="session")
    return finish(figure, panels[:1], evidence, "What networks lose while they learn", "means over the instances")
