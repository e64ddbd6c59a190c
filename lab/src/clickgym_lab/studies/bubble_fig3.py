"""Regret of BubbleRank against wrong pairs in the initial list, and against examination of the last
position.

Li et al. 2019 (BubbleRank), figure 3.

In the first experiment the paper has 100 queries. We have ten random lists for each of 60 published
or 16 shipped queries, and one run of each.

In the second experiment the users are the paper's own, and no scale reduces it. The best one of ten
items stands last, where users examine it with probability 0.5^i. The paper prints the base list as
(2, …, K-1, 1). We read (2, …, K, 1). Section 5.1 says that the paper measures performance at the
top five positions, so we test their regret. The regret of all ten positions stands beside it,
because the paper does not say which of the two its figure has. The bounds are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from clickgym.envs import Instance, load_instance
from clickgym.runner.play.metrics import wrong_pairs

from .claims import (
    Curves,
    Finding,
    Number,
    Results,
    Statement,
    Values,
    all_of,
    certain,
    estimate,
    number,
    several,
    short,
)
from .plots import BLACK, BLUE, GREEN, ORANGE, PURPLE, YELLOW, Figure, band, finish, grid
from .re_ranking import ENVS, in_each
from .study import LAST_ENDS, Sweep

PAIRS = "bubble-fig3-pairs"
CHI, CHI_TOP_5 = "bubble-fig3-chi", "bubble-fig3-chi-top5"
CHI_ENVS = {CHI: "PBMRank-v0", CHI_TOP_5: "PBMRank-v0:cutoff=5"}
N_LISTS = 10
CHI_MIN = tuple(f"li2019-chi-min:i={i}" for i in range(1, 6))


def random_lists(queries: Sequence[str]) -> Iterator[Instance]:
    """Instances that differ from the queries in their production list: ten random lists of each
    query, the same every time.
    """
    for query in queries:
        instance = load_instance(query)
        rng = np.random.default_rng(list(instance.name.encode()))
        for place in range(N_LISTS):
            name = f"{instance.name}-list{place}"
            yield replace(instance, name=name, initial_ranking=rng.permutation(instance.n_items))


def wrong_in_list(env: Any) -> float:
    """The number of wrongly ordered pairs |V_0| of the production list."""
    return float(wrong_pairs(env.unwrapped.model.attraction, env.unwrapped.initial_ranking))


SWEEPS = [
    Sweep(
        PAIRS,
        ENVS,
        ["BubbleRank"],
        horizon=5_000_000,
        runs=1,
        instances=random_lists,
        queries=100,
        ends=LAST_ENDS,
        facts={"wrong_pairs": wrong_in_list},
    ),
    *(
        Sweep(
            part,
            [env],
            ["BubbleRank"],
            horizon=1_000_000,
            runs=10,
            instances=CHI_MIN,
            whole=True,
            scaled=False,
        )
        for part, env in CHI_ENVS.items()
    ),
]
"""Ten random initial lists of each query; then users whose last position is examined with 0.5^i, by
the regret of all positions and of the first five. Learning the last pair takes 10⁵ sessions at
i = 5, whatever the scale.
"""


def within_queries(curves: Curves, env: str) -> list[tuple[Values, Values]]:
    """For each query |V_0| and regret of its lists, both less their means."""
    wrong = curves.by_instance(env, "BubbleRank", "wrong_pairs")[:, 0]
    regret = curves.by_instance(env, "BubbleRank").mean(axis=1)
    query = np.array([name.rpartition("-list")[0] for name in curves.instances])
    groups = [query == name for name in dict.fromkeys(query)]
    return [(wrong[g] - wrong[g].mean(), regret[g] - regret[g].mean()) for g in groups]


def slopes(curves: Curves, env: str) -> Values:
    """``(queries,)`` regret per wrong pair, by a line through the lists of each query."""
    return np.array([x @ y / (x @ x) for x, y in within_queries(curves, env)])


def linear_in_pairs(curves: Curves, env: str) -> Finding:
    """Whether regret grows with the wrong pairs, and a parabola fits hardly better than a line."""
    groups = within_queries(curves, env)
    x, y = (np.concatenate(parts) for parts in zip(*groups, strict=True))
    squares = np.concatenate([x**2 - (x**2).mean() for x, _ in groups])
    explained = []
    for design in (x[:, None], np.stack([x, squares], axis=1)):
        rest = y - design @ np.linalg.lstsq(design, y)[0]
        explained.append(1 - rest @ rest / (y @ y))
    slope, (line, parabola) = estimate(slopes(curves, env)), explained
    words = f"{slope} per pair, R² {line:.2f}, with a square {parabola:.2f}"
    return all_of(words, [slope.above(0.0), certain("", bool(parabola - line < 0.05))])


def chi_regrets(results: Results, part: str = CHI_TOP_5) -> list[Values]:
    """For each i ``(runs,)`` regret at the end."""
    env = CHI_ENVS[part]
    return [results[part].by_run(env, "BubbleRank", instance=name)[:, -1] for name in CHI_MIN]


def factors(results: Results, part: str = CHI_TOP_5) -> list[float]:
    """By what mean regret grows from each i to the next."""
    means = [values.mean() for values in chi_regrets(results, part)]
    return [high / low for low, high in pairwise(means)]


def mean_factor(results: Results) -> Values:
    """``(runs,)`` the fourth root of regret at i = 5 over that at i = 1."""
    regrets = chi_regrets(results)
    return (regrets[-1] / regrets[0]) ** 0.25


def doubles(results: Results) -> Finding:
    """Whether regret grows with each i, and its mean factor is nearer to 2 than to 1 and to 4."""
    regrets = chi_regrets(results)
    grows = {
        f"i = {i} to {i + 1}": estimate(high - low).above(
            0.0, f"{high.mean() / low.mean():.2f} times"
        )
        for i, (low, high) in enumerate(pairwise(regrets), start=1)
    }
    mean = estimate(mean_factor(results))
    return several({**grows, "mean factor": mean.within(2**0.5, 2**1.5)})


NUMBERS = [
    Number("Mean factor of the regret when i grows by one (the paper: expected)", 2.0, mean_factor)
]
STATEMENTS = [
    Statement(
        "We observe that the regret of BubbleRank is linear in |V_0| in the CM, DCM, and PBM.",
        "section 5.4",
        "In each click model we fit regret by a line in |V_0|, within each query. Its slope is "
        "above 0, and a quadratic term explains less than 0.05 (ours) more of the variance.",
        lambda results: in_each(lambda env: linear_in_pairs(results[PAIRS], env)),
        late=True,
    ),
    Statement(
        "Since this position is examined with probability 0.5^i, we expect the regret to double "
        "when i increases by one. We experiment with i∈[5] in Figure 3 and observe this trend in 1 "
        "million steps.",
        "section 5.4",
        "Regret of the first five positions grows with each i. Its mean factor over the runs is "
        "between √2 and 2√2 (ours), that is nearer to 2 than to 1 or 4.",
        doubles,
    ),
]


def seen(results: Results) -> Iterator[str]:
    """The factors, and those of all positions."""
    top = ", ".join(number(factor) for factor in factors(results))
    yield f"The regret of the first five positions grows {top} times from each i to the next."
    everywhere = factors(results, CHI)
    words = ", ".join(number(factor) for factor in everywhere)
    losses = [0.9 - 0.5**i for i in range(1, 6)]
    told = [
        factor * low / high
        for factor, (low, high) in zip(everywhere, pairwise(losses), strict=True)
    ]
    yield (
        f"The regret of all ten positions grows {words} times. Divided by the loss per session at "
        f"the start, 0.4 (0.9 - 0.5^i), it grows {', '.join(number(f) for f in told)} times."
    )


def draw(results: Results) -> Figure:
    """Regret against wrong pairs, and with each examination of the last position."""
    curves = results[PAIRS]
    figure, panels = grid(2, 2, labels=[f"regret after {curves.horizon:,} sessions"])
    for axes, env in zip(panels, ENVS, strict=False):
        wrong = curves.by_instance(env, "BubbleRank", "wrong_pairs")[:, 0]
        regret = curves.by_instance(env, "BubbleRank").mean(axis=1)
        axes.plot(wrong, regret, ".", color=PURPLE, markersize=4, alpha=0.6)
        ends = np.array([wrong.min(), wrong.max()])
        line = regret.mean() + slopes(curves, env).mean() * (ends - wrong.mean())
        axes.plot(ends, line, color=BLACK, linewidth=1.2)
        axes.set(title=short(env), xlabel="wrong pairs in the initial list, |V_0|")
    curves = results[CHI_TOP_5]
    for instance, color in zip(CHI_MIN, (PURPLE, ORANGE, GREEN, YELLOW, BLUE), strict=True):
        values = curves.by_run(CHI_ENVS[CHI_TOP_5], "BubbleRank", instance=instance)
        style = {"color": color, "linestyle": "-"}
        band(panels[3], curves.steps, values, instance.rpartition(":")[2], style)
    panels[3].set(title="PBM, examination 0.5^i at the end", xlabel="session", ylabel="regret")
    panels[3].ticklabel_format(axis="x", style="sci", scilimits=(0, 0), useMathText=True)
    return finish(figure, panels[3:], results, "Regret of BubbleRank")
