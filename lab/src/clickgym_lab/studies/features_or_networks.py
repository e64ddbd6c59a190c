"""Study of features, networks and generic RL: what must be given to whom before users that differ
from one another?
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from .plots import Figure, finish, grid, style_of
from .study import (
    RANDOM,
    Evidence,
    Finding,
    PaperTable,
    Values,
    estimate,
    less_regret,
    number,
    times,
    versus,
)

WORLDS = {"personal": "personal:", "inner": "personal:form=inner,", "network": "network:"}
"""The beginning of the names of the instances of each world."""
FEATURES = ("plain", "products", "outer")
SEEDS = range(5)
MODELS = ("PBM", "UBM", "CM")
LINEAR = ("PBMLinUCB", "C2UCB", "LinearTS", "PDGD")
GENERIC = ("PPO", "A2C")
AGENTS = (*LINEAR, *GENERIC, RANDOM)
ONLY_LINEAR = (*LINEAR, RANDOM)
PBM, OTHERS = ("ContextualPBMRank-v0",), ("ContextualUBMRank-v0", "ContextualCMRank-v0")
EARLY = 0.1
"""The share of the sessions after which a start is judged."""


def instances(_: Sequence[str], world: str, features: str) -> list[str]:
    """Users of a world, who are told by these features; 10 candidates, 5 positions."""
    return [
        f"{WORLDS[world]}seed={seed},features={features},n_items=10,n_positions=5" for seed in SEEDS
    ]


def _env(model: str) -> str:
    return f"Contextual{model}Rank-v0"


def _part(world: str, features: str, model: str) -> str:
    """The part in which a world is played; the PBM, in which all agents are told all features, has
    parts of its own.
    """
    return f"features-{world}-{features}{'' if model == 'PBM' else '-others'}"


def _ends(evidence: Evidence, agent: str, world: str, features: str, model: str = "PBM") -> Values:
    return evidence[_part(world, features, model)].end_units(_env(model), agent)


def _percents(
    evidence: Evidence, agent: str, world: str, features: str, model: str = "PBM"
) -> Values:
    return (
        100
        * _ends(evidence, agent, world, features, model)
        / _ends(evidence, RANDOM, world, features, model)
    )


def share(
    evidence: Evidence,
    agent: str,
    world: str,
    features: str,
    low: float,
    high: float,
    model: str = "PBM",
) -> Finding:
    """Regret at the end as a share of that of random lists."""
    return times(
        evidence[_part(world, features, model)], agent, _env(model), low, high, other=RANDOM
    )


def less(
    evidence: Evidence, better: str, worse: str, world: str, features: str, model: str = "PBM"
) -> Finding:
    """Whether one agent has less regret at the end than another that is told the same."""
    return less_regret(evidence[_part(world, features, model)], _env(model), better, worse)


def told_less(
    evidence: Evidence,
    better: str,
    with_features: str,
    worse: str,
    than: str,
    world: str,
    model: str = "PBM",
    by: float = 1.0,
) -> Finding:
    """Whether one agent with some features has less regret, multiplied by a number, than another
    with other features.
    """
    low = by * _ends(evidence, better, world, with_features, model)
    what = f" ({f'{by:g} times ' if by != 1 else ''}{with_features}, {than})"
    return versus(low, _ends(evidence, worse, world, than, model), what, "over 5 instances")


def start(
    evidence: Evidence, agent: str, world: str, features: str, least: float, model: str = "PBM"
) -> Finding:
    """Whether an agent has lost at least a share of what random lists lose, in the mean over the
    instances, at the start.
    """
    curves = evidence[_part(world, features, model)]
    step = round(EARLY * curves.horizon)
    own, random = (
        curves.at(curves.units(_env(model), each), step).mean() for each in (agent, RANDOM)
    )
    return Finding(
        f"{own / random:.2f} of random lists’ after {step:,}",
        "yes" if own >= least * random else "no",
    )


def table(evidence: Evidence) -> PaperTable:
    """Regret at the end in percent of random lists', by features."""
    rows = [["world", "model", "agent", *FEATURES]]
    for world, model, agent in product(WORLDS, MODELS, (*LINEAR, *GENERIC)):
        cells = dict.fromkeys(FEATURES, "")
        for features in FEATURES:
            if agent in evidence[_part(world, features, model)].agents:
                percents = _percents(evidence, agent, world, features, model)
                cells[features] = f"{estimate(percents)}, worst {number(percents.max())}"
        rows.append([world, model, agent, *cells.values()])
    return (
        "Regret at the end, % of random lists’, mean over 5 instances with its 95 % interval, and the worst",
        rows,
    )


def draw(evidence: Evidence) -> Figure:
    """Regret by what agents are told, in the PBM."""
    figure, panels = grid(len(WORLDS), labels=[f"regret, % of {RANDOM}"])
    for axes, world in zip(panels, WORLDS, strict=True):
        for agent in (*LINEAR, *GENERIC):
            means = [_percents(evidence, agent, world, features).mean() for features in FEATURES]
            axes.plot(FEATURES, means, marker="o", label=agent, **style_of(agent, axes))
        axes.set(yscale="log", ylim=(0.1, 150), title=f"{world}, PBM", xlabel="features")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    return finish(
        figure,
        panels[:1],
        evidence,
        "What agents are told, and what they lose",
        "means over the instances",
    )
