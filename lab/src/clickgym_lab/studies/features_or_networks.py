"""Features, networks or generic RL, where each user prefers other items.

ours.

200 users, 500 items, 10 candidates, 5 positions; five instances of each world, and one run in each.
PPO and A2C have one network for all candidates, and the same features as the linear agents: [u, v]
(plain), also u∘v (products), or u ⊗ v (outer). In `personal` the order is that of uᵀWv, in `inner`
that of uᵀv, in `network` that of a random network of sines. All statements are ours, written before
the run, after sketches of another law's constant. Told more than plain features, PPO and A2C play
in the PBM only. The UBM and the CM are played for 30,000 sessions to save time, which was decided
before they were played. --instances changes nothing here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

from .claims import (
    Claim,
    Finding,
    Results,
    Values,
    certain,
    estimate,
    less_regret,
    number,
    several,
    times,
    versus,
)
from .plots import Figure, finish, grid, style_of
from .study import Sweep, Table

WORLDS = {"personal": "personal:", "inner": "personal:form=inner,", "network": "network:"}
"""The beginning of the names of the instances of each world."""
FEATURES = ("plain", "products", "outer")
MODELS = ("PBM", "UBM", "CM")
LINEAR = ("PBMLinUCB", "C2UCB", "LinearTS", "PDGD")
GENERIC = ("PPO", "A2C")
RANDOM = "Random"
FEW = ("personal", "inner")
"""The worlds in which products of features make the order linear."""


def _env(model: str) -> str:
    return f"Contextual{model}Rank-v0"


def _part(world: str, features: str, model: str) -> str:
    """The PBM, in which all agents are given all features, has parts of its own."""
    return f"features-{world}-{features}{'' if model == 'PBM' else '-others'}"


def _sweeps(world: str, features: str) -> list[Sweep]:
    """All agents with all features in the PBM; PPO and A2C with plain features elsewhere."""
    everybody, only_linear = (*LINEAR, *GENERIC, RANDOM), (*LINEAR, RANDOM)
    elsewhere = everybody if features == "plain" else only_linear
    seeds = [f"{WORLDS[world]}seed={seed},features={features}" for seed in range(5)]
    return [
        Sweep(
            _part(world, features, models[0]),
            [_env(model) for model in models],
            agents,
            horizon,
            runs=1,
            instances=[f"{seed},n_items=10,n_positions=5" for seed in seeds],
            least_horizon=20_000,
        )
        for models, agents, horizon in (
            (["PBM"], everybody, 100_000),
            (["UBM", "CM"], elsewhere, 30_000),
        )
    ]


SWEEPS = [
    sweep for world, features in product(WORLDS, FEATURES) for sweep in _sweeps(world, features)
]
"""Five instances of each world, one run of each agent in each."""


def claims(results: Results) -> Iterator[Claim]:
    """Statements of ours, written before the run.

    A test asks whether the mean of independent values lies between two bounds: yes if its 95 %
    interval (Student's t) lies between them, no if it lies outside, else it cannot tell; all
    statements are judged together by Holm's procedure. `several` asks that all tests hold; one that
    surely does not contradicts the statement.

    All intervals are over the five instances. `share` asks whether an agent's regret at the end, as
    a multiple of random lists', lies between two bounds; `plain_less` and `told_less` whether the
    gap between two agents' regret at the end is above 0. `slow_start` compares two means, without
    an interval.
    """

    def shares(
        agents: Sequence[str], worlds: Sequence[str], features: str, *bounds: float
    ) -> Finding:
        findings = {}
        for world, agent in product(worlds, agents):
            words = [world] * (len(worlds) > 1) + [agent] * (len(agents) > 1)
            findings[" ".join(words)] = share(results, agent, world, features, *bounds)
        return several(findings)

    triples = list(product(WORLDS, MODELS, LINEAR))
    for agent in GENERIC:
        less = {f"{w} {m} {a}": plain_less(results, agent, a, w, m) for w, m, a in triples}
        yield Claim(
            f"Told plain features, {agent} has less regret than every linear agent, in all worlds "
            "and models",
            "less regret at the end than each",
            several(less),
        )
    yield Claim(
        "Told plain features, linear agents hardly learn where users differ",
        "at least 75 % of random lists' regret at the end in personal and inner, PBM",
        shares(LINEAR, FEW, "plain", 0.75, math.inf),
    )
    for agent in GENERIC:
        yield Claim(
            f"Told plain features, {agent} learns most of what there is",
            "at most 40 % of random lists' regret at the end in personal and inner, PBM",
            shares([agent], FEW, "plain", 0, 0.4),
        )
    yield Claim(
        "With the right features a linear agent hardly loses anything: PBMLinUCB told outer",
        "at most 1 % of random lists' regret at the end, PBM",
        shares(["PBMLinUCB"], FEW, "outer", 0, 0.01),
    )
    outer, pairs = ("PBMLinUCB", "outer"), list(product(FEW, ("PBM", "UBM")))
    for agent in GENERIC:
        ten = {f"{w} {m}": told_less(results, outer, (agent, "plain"), w, m, 10) for w, m in pairs}
        yield Claim(
            "The right features help a linear agent ten times more than a network helps " + agent,
            "ten times the regret of PBMLinUCB told outer is below that of the agent told plain, "
            "personal and inner, PBM and UBM",
            several(ten),
        )
    for agent in GENERIC:
        plain = (agent, "plain")
        yield Claim(
            f"Where no products of features make the order linear (network), {agent} told plain "
            "loses less than any linear agent told outer",
            "less regret at the end than each, PBM",
            several({a: told_less(results, plain, (a, "outer"), "network") for a in LINEAR}),
        )
    yield Claim(
        "The wrong products do not help enough: in personal linear agents told products still lose "
        "half of random lists' clicks",
        "at least 50 % of random lists' regret at the end, PBM",
        shares(LINEAR, ["personal"], "products", 0.5, math.inf),
    )
    for agent in GENERIC:
        yield Claim(
            f"{agent}, too, loses less when told the right products than when told plain features",
            "less regret at the end with outer than with plain in personal, PBM",
            told_less(results, (agent, "outer"), (agent, "plain"), "personal"),
        )
    for agent in GENERIC:
        yield Claim(
            f"{agent} starts slowly: told plain features, it has gained little in 10,000 sessions",
            "at least half of random lists' regret after 10,000 sessions, personal and inner, PBM",
            several({world: slow_start(results, agent, world) for world in FEW}),
        )
    yield Claim(
        "A2C has less regret than PPO, told plain features in personal",
        "less regret at the end, in each model",
        several({m: plain_less(results, "A2C", "PPO", "personal", m) for m in MODELS}),
    )


def ends(results: Results, agent: str, world: str, features: str, model: str = "PBM") -> Values:
    """``(instances,)`` regret at the end."""
    return results[_part(world, features, model)].at_end(_env(model), agent)


def share(
    results: Results, agent: str, world: str, features: str, low: float, high: float
) -> Finding:
    """Whether regret at the end in the PBM, as a share of random lists', is between two bounds."""
    return times(results[_part(world, features, "PBM")], _env("PBM"), agent, RANDOM, low, high)


def plain_less(results: Results, better: str, worse: str, world: str, model: str) -> Finding:
    """Whether one agent has less regret at the end than another, both given plain features."""
    return less_regret(results[_part(world, "plain", model)], _env(model), better, worse)


def told_less(
    results: Results,
    better: tuple[str, str],
    worse: tuple[str, str],
    world: str,
    model: str = "PBM",
    by: float = 1,
) -> Finding:
    """Whether an agent with some features has less regret, multiplied by a number, than an agent
    with other features.
    """
    low = by * ends(results, better[0], world, better[1], model)
    high = ends(results, worse[0], world, worse[1], model)
    multiple = f"{by:g} times " if by != 1 else ""
    return versus(low, high, f" ({multiple}{better[1]}, {worse[1]})", "over 5 instances")


def slow_start(results: Results, agent: str, world: str) -> Finding:
    """Whether an agent given plain features has lost at least half of what random lists lose after
    a tenth of the sessions, in the mean over the instances.
    """
    curves = results[_part(world, "plain", "PBM")]
    step = round(0.1 * curves.horizon)
    own, random = (
        curves.at(curves.by_run(_env("PBM"), name), step).mean() for name in (agent, RANDOM)
    )
    words = f"{own / random:.2f} of random lists’ after {step:,}"
    return certain(words, bool(own >= 0.5 * random))


def percents(results: Results, agent: str, world: str, features: str, model: str = "PBM") -> Values:
    """``(instances,)`` regret at the end in per cent of random lists'."""
    random = ends(results, RANDOM, world, features, model)
    return 100 * ends(results, agent, world, features, model) / random


def table(results: Results) -> Table:
    """Regret at the end in per cent of random lists', by features."""
    rows = [["world", "model", "agent", *FEATURES]]
    for world, model, agent in product(WORLDS, MODELS, (*LINEAR, *GENERIC)):
        cells = dict.fromkeys(FEATURES, "")
        for features in FEATURES:
            if agent in results[_part(world, features, model)].agents:
                values = percents(results, agent, world, features, model)
                cells[features] = f"{estimate(values)}, worst {number(values.max())}"
        rows.append([world, model, agent, *cells.values()])
    title = "Regret at the end, % of random lists’, mean over 5 instances with its 95 % interval"
    return f"{title}, and the worst", rows


def draw(results: Results) -> Figure:
    """Regret by the features that agents are given, in the PBM."""
    figure, panels = grid(len(WORLDS), labels=[f"regret, % of {RANDOM}"])
    for axes, world in zip(panels, WORLDS, strict=True):
        for agent in (*LINEAR, *GENERIC):
            means = [percents(results, agent, world, features).mean() for features in FEATURES]
            axes.plot(FEATURES, means, marker="o", label=agent, **style_of(agent, axes))
        axes.set(yscale="log", ylim=(0.1, 150), title=f"{world}, PBM", xlabel="features")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    title = "What agents are told, and what they lose"
    return finish(figure, panels[:1], results, title, "means over the instances")
