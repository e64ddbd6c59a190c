"""Study of why the numbers of safety violations differ from those of Li et al. 2019, figure 2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from clickgym.envs import Instance, load_instance

from .li2019_bubble import BUBBLE, VIOLATIONS, WRONG_PAIRS, wrong_in_list
from .plots import BLACK, Figure, colour_of, finish, grid, points
from .study import FIRST, LAST, Curves, Evidence, Finding, Values, estimate, every, short

__all__ = ["TOP_RANK", "lists_with", "wrong_in_list"]

TOP_RANK = "TopRank:delta=2e-07"
"""As in the paper, whose horizon is 5·10⁶."""
LEVEL = "CascadeKLUCB:c=0"
N_ITEMS, EARLY = 10, 100
LEVELS = (8, 11, 14, 17)
OUTER = (4, 22)
MODELS = tuple(map(short, BUBBLE))
OWN = "why-violations-own"


def lists_with(queries: Sequence[str], model: str, counts: Sequence[int]) -> Iterator[Instance]:
    """Instances whose production list has a given number of wrong pairs, the same every time.

    Args:
        queries: names or files of instances.
        model: the click model by whose attractions pairs are wrong.
        counts: the numbers; for each an instance of each query, named ``QUERY-wrongNUMBER``.
    """
    for query in queries:
        instance = load_instance(query)
        attraction = instance.model(model).attraction
        rng = np.random.default_rng(list(instance.name.encode()))
        for count in counts:
            ranking = np.argsort(-attraction, kind="stable")
            for _ in range(
                count
            ):  # each swap of neighbours in the right order makes one pair wrong
                right = np.flatnonzero(attraction[ranking[:-1]] > attraction[ranking[1:]])
                if not len(right):
                    break
                place = rng.choice(right)
                ranking[[place, place + 1]] = ranking[[place + 1, place]]
            yield replace(instance, name=f"{instance.name}-wrong{count}", initial_ranking=ranking)


@cache
def unsafe_share(wrong: int) -> float:
    """The share of the orders of ten items with more than ``wrong + 5`` wrong pairs (Mahonian
    numbers).
    """
    counts = np.ones(1)
    for size in range(2, N_ITEMS + 1):
        counts = np.convolve(counts, np.ones(size))
    return float(counts[wrong + N_ITEMS // 2 + 1 :].sum() / counts.sum())


# ---------------------------------------------------------------------------------------------------------------- measures


def early(curves: Curves, env: str, agent: str) -> Values:
    """``(runs,)`` violations in the first 100 sessions on the queries' own production lists."""
    return curves.at(curves.units(env, agent, "violations"), EARLY)


def like_random(curves: Curves, env: str, agent: str) -> Values:
    """``(runs,)`` the same over those of Random."""
    return early(curves, env, agent) / early(curves, env, "Random")


def foretold(curves: Curves, env: str) -> Values:
    """``(runs,)`` TopRank's less 100 times the share of unsafe orders at each query's |V_0|."""
    wrong = curves.ends(env, TOP_RANK, WRONG_PAIRS)[:, 0]
    return early(curves, env, TOP_RANK) - EARLY * np.mean(
        [unsafe_share(int(min(count, 30))) for count in wrong]
    )


def without_loglog(curves: Curves, env: str) -> Values:
    """``(runs,)`` by how many per cent the level log t changes CascadeKL-UCB's."""
    return 100 * (early(curves, env, LEVEL) / early(curves, env, LAST) - 1)


def on_lists(curves: Curves, env: str, agent: str, levels: Sequence[int] = LEVELS) -> Values:
    """``(levels, runs)`` the same on lists with given numbers of wrong pairs."""
    ends = curves.ends(env, agent, "violations")
    each = [[name.endswith(f"-wrong{level}") for name in curves.instances] for level in levels]
    return np.array([ends[np.array(places)].mean(axis=0) for places in each])


def implied(model: str) -> float:
    """|V_0| at which random lists are unsafe as often as TopRank's in the paper."""
    published = VIOLATIONS["TopRank"][MODELS.index(model)] / EARLY
    shares = [unsafe_share(level) for level in range(26)]
    return float(np.interp(-published, -np.array(shares), np.arange(26)))


def on_lists_foretold(evidence: Evidence, env: str) -> Values:
    """``(runs,)`` as `foretold`, on lists that were made."""
    expected = np.array([EARLY * unsafe_share(level) for level in LEVELS])
    return (
        on_lists(evidence[f"why-violations-{short(env)}"], env, TOP_RANK) - expected[:, None]
    ).mean(axis=0)


def at_implied(evidence: Evidence, env: str, agent: str) -> Values:
    """``(runs,)`` violations where |V_0| is what the paper's numbers for TopRank imply, between the
    levels on a line.
    """
    model = short(env)
    values = on_lists(evidence[f"why-violations-{model}"], env, agent)
    return np.array([np.interp(implied(model), LEVELS, run) for run in values.T])


def spread_out(evidence: Evidence, env: str, agent: str) -> Values:
    """``(runs,)`` the same if lists have either 4 or 22 wrong pairs, so many of each that TopRank
    has the paper's number.
    """
    curves = evidence[f"why-violations-{short(env)}-spread"]
    good, bad = on_lists(curves, env, TOP_RANK, OUTER).mean(axis=1)
    share = (published("TopRank", env) - bad) / (good - bad) if good > bad else 1.0
    few, many = on_lists(curves, env, agent, OUTER)
    return share * few + (1 - share) * many


def published(agent: str, env: str) -> float:
    """The number of the paper."""
    return VIOLATIONS[agent][BUBBLE.index(env)]


def nothing_left(evidence: Evidence, env: str, agent: str) -> Finding:
    """Whether the paper's number for CascadeKL-UCB less ours on its lists is less than a tenth of
    it.
    """
    number = published(LAST, env)
    return estimate(number - at_implied(evidence, env, agent)).finding(
        f" of {number:g}", -0.1 * number, 0.1 * number
    )


def nothing_left_by_spread(evidence: Evidence, env: str, agent: str) -> Finding:
    """Whether the paper's number lies between those of lists all alike and of lists as different as
    can be.
    """
    number = published(LAST, env)
    low, high = (
        estimate(at_implied(evidence, env, agent)),
        estimate(spread_out(evidence, env, agent)),
    )
    return Finding(
        f"{low} to {high} (paper {number:g})", every([low.below(number), high.above(number)])
    )


def nothing_left_of_random(evidence: Evidence, env: str) -> Finding:
    """As `nothing_left` for TopRank and BatchRank: the paper's numbers less that of the lists that
    TopRank's number implies.
    """
    ours = at_implied(evidence, env, TOP_RANK)
    gaps = {name: estimate(published(name, env) - ours) for name in ("TopRank", "BatchRank")}
    bound = 0.1 * published("TopRank", env)
    words = ", ".join(f"{name} {gap}" for name, gap in gaps.items())
    return Finding(words, every([gap.within(-bound, bound) for gap in gaps.values()]))


def draw(evidence: Evidence) -> Figure:
    """Violations against the wrong pairs of the production list."""
    figure, panels = grid(3, labels=[f"violations in {EARLY} sessions"])
    for axes, env, model in zip(panels, BUBBLE, MODELS, strict=True):
        curves = evidence[f"why-violations-{model}"]
        levels = np.arange(4, 23)
        shares = [EARLY * unsafe_share(int(level)) for level in levels]
        axes.plot(
            levels, shares, color=BLACK, linewidth=0.8, linestyle=":", label="random lists (exact)"
        )
        for agent in (TOP_RANK, LAST, FIRST):
            ends = dict(zip(LEVELS, on_lists(curves, env, agent), strict=True))
            ends |= dict(
                zip(
                    OUTER,
                    on_lists(evidence[f"why-violations-{model}-spread"], env, agent, OUTER),
                    strict=True,
                )
            )
            points(
                axes,
                sorted(ends),
                [ends[level] for level in sorted(ends)],
                agent,
                agent.partition(":delta")[0],
            )
            if agent != FIRST:
                name = agent.partition(":")[0]
                axes.plot(
                    implied(model),
                    published(name, env),
                    "*",
                    color=colour_of(agent, axes),
                    markersize=11,
                    markeredgecolor="black",
                    markeredgewidth=0.6,
                    label=f"{name} in the paper",
                )
        axes.set(title=model, xlabel="wrong pairs in the production list, |V_0|", ylim=(0, 100))
    return finish(figure, panels, evidence, "Violations against the production list")
