"""Study of why regret under changes at a constant rate is not sublinear (Li and de Rijke 2019, figure 1)."""

from __future__ import annotations

import numpy as np

from .li2019_cascade import ADAPTIVE, CHANGING, switching
from .plots import Figure, bands, colour_of, finish, grid
from .study import LAST, LINEAR, Curves, Evidence, Finding, Values, estimate

__all__ = ["switching"]

PAPERS, RATE, NUMBER = "why-change-short", "why-change-rate", "why-change-number"


def share_of_rate(curves: Curves, agent: str) -> Values:
    """``(runs,)`` the share of the rate of the second fifth that the last fifth keeps."""
    values = curves.units(CHANGING, agent)
    return curves.rate(values, 0.8, 1.0) / curves.rate(values, 0.2, 0.4)


def exponent(evidence: Evidence, longer: str, agent: str) -> Values:
    """``(runs,)`` b in regret ~ T^b, from the paper's horizon to that of a part with more sessions."""
    short, long = evidence[PAPERS], evidence[longer]
    ends = [curves.units(CHANGING, agent)[:, -1] for curves in (short, long)]
    return np.log(ends[1] / ends[0].mean()) / np.log(long.horizon / short.horizon)


def after_a_change(curves: Curves, agent: str) -> Values:
    """``(runs,)`` the share of an epoch's regret in its first fifth, over the epochs after a change."""
    values = curves.units(CHANGING, agent)
    first = np.sum([curves.rate(values, e / 10, e / 10 + 0.02) * 0.02 for e in range(1, 10)], axis=0)
    return first / (curves.rate(values, 0.1, 1.0) * 0.9)


def first_epoch(curves: Curves, agent: str) -> Values:
    """``(runs,)`` regret of the first epoch over the mean of the later epochs with the same users."""
    values = curves.units(CHANGING, agent)
    later = np.mean([curves.rate(values, e / 10, (e + 1) / 10) for e in (2, 4, 6, 8)], axis=0)
    return curves.rate(values, 0.0, 0.1) / later


def times_worse(curves: Curves, agent: str) -> Values:
    """``(runs,)`` how many times the regret of [0, 10k) that of [80k, 90k) is."""
    values = curves.units(CHANGING, agent)
    return curves.rate(values, 0.8, 0.9) / curves.rate(values, 0.0, 0.1)


def over_queries(curves: Curves) -> Values:
    """``(runs,)`` half the interval of CascadeKL-UCB's regret at the end over queries, as a share of the mean."""
    return np.array([half / mean for mean, half in map(estimate, curves.ends(CHANGING, LAST).T)])


def nothing_left(curves: Curves, agent: str) -> Finding:
    """Whether the share kept under changes at a constant rate, at the paper's horizon, counts as sublinear."""
    return estimate(share_of_rate(curves, agent) - LINEAR).finding(f" above {LINEAR}", high=0.0)


def nothing_left_of_four(curves: Curves) -> Finding:
    """Whether CascadeKL-UCB is about as many times worse as in the paper."""
    return estimate(times_worse(curves, LAST)).finding(" times (paper 4.0)", 3.2, 4.8)


def draw(evidence: Evidence) -> Figure:
    """Regret of the agents that adapt in each part, beside what is proportional to T."""
    figure, panels = grid(3, labels=["cumulative regret"])
    titles = {PAPERS: "the paper's changes", RATE: "a change every 10,000", NUMBER: "nine changes at either horizon"}
    for axes, (part, title) in zip(panels, titles.items(), strict=True):
        curves = evidence[part]
        places = np.arange(len(curves.steps))
        if part == RATE:  # each second epoch only: between them is nothing but their alternation
            places = np.searchsorted(curves.steps, np.linspace(0, curves.horizon, 21)[1:].round())
        bands(axes, curves, CHANGING, ADAPTIVE, places)
        if part != PAPERS:
            short = evidence[PAPERS]
            for agent in ADAPTIVE:
                end = short.units(CHANGING, agent)[:, -1].mean()
                axes.plot(short.horizon, end, "o", color=colour_of(agent, axes), markersize=5)
                rise = end * curves.steps / short.horizon
                axes.plot(curves.steps, rise, ":", color=colour_of(agent, axes), linewidth=0.8, label="proportional to T")
        axes.set(title=title, xlabel="session", xlim=(0, None), ylim=(0, None))
        axes.ticklabel_format(axis="x", style="sci", scilimits=(0, 0), useMathText=True)
    return finish(figure, panels[:1], evidence, "Regret where the users change")
