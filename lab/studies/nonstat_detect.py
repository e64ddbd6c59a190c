"""Study of detecting changes beside forgetting: GLR-CascadeUCB and GLR-CascadeKLUCB on the changes of Li and de Rijke 2019."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...runner.make import make_agent
from ...runner.run import run
from .li2019_cascade import ADAPTIVE, CHANGING
from .plots import DASHED, band, colour_of, finish, grid, look_of
from .study import LAST, Curves, Evidence, Finding, Part, Statement, Study, Values, estimate, less, several, total
from .why_change import switching

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["STUDIES"]

DETECTING = ("GLRCascadeUCB", "GLRCascadeKLUCB")
TOLD = "GLRCascadeKLUCB:n_segments=10"
STUBBORN = ("CascadeUCB1", LAST)
N_EPOCHS = 10
PARTS = {"nonstat-detect-fast": 10_000, "nonstat-detect-slow": 100_000}
"""Sessions between two changes."""


# ----------------------------------------------------------------------------------------------- restarts, as facts


@cache
def restarts(agent: str, length: int, env: Any) -> NDArray[np.int64]:
    """After which sessions an agent restarts, in one run of its own on these users."""
    horizon = N_EPOCHS * length
    player: Any = make_agent(agent, env, horizon=horizon, seed=0)
    run(player, env, horizon, seed=0, checkpoints=[horizon])
    return np.sort(player.state.restart_steps[: player.state.n_restarts[0]])


def _first(agent: str, length: int, change: int, env: Any) -> float:
    """The session of the first restart after a change and before the next; NaN if there is none."""
    steps = restarts(agent, length, env)
    there = steps[(steps > change * length) & (steps <= (change + 1) * length)]
    return float(there[0]) if len(there) else math.nan


def _count(agent: str, length: int, env: Any) -> float:
    return float(len(restarts(agent, length, env)))


def _name(agent: str, change: int | str) -> str:
    return f"{agent} restart {change}"


def _facts(length: int) -> Mapping[str, Callable[[Any], float]]:
    """The first restart after each change, and the number of all restarts, for both agents."""
    facts: dict[str, Callable[[Any], float]] = {}
    for agent in DETECTING:
        facts |= {_name(agent, change): partial(_first, agent, length, change) for change in range(1, N_EPOCHS)}
        facts[_name(agent, "count")] = partial(_count, agent, length)
    return facts


def _steps(curves: Curves, agent: str) -> Values:
    """``(instances, changes)`` the first restart after each change."""
    return np.array([curves.ends(CHANGING, agent, _name(agent, change))[:, 0] for change in range(1, N_EPOCHS)]).T


# ---------------------------------------------------------------------------------------------------------- judging


def _noticed(agent: str, evidence: Evidence) -> Finding:
    findings = {}
    for part, length in PARTS.items():
        steps = _steps(evidence[part], agent)
        share = estimate(np.isfinite(steps).mean(axis=1))
        delay = np.nanmedian(steps - length * np.arange(1, N_EPOCHS))
        findings[part] = Finding(f"{share} of the changes, after {delay:,.0f} sessions (median)", share.above(0.9))
    return several(findings)


def _without_cause(agent: str, evidence: Evidence) -> Finding:
    findings = {}
    for part in PARTS:
        curves = evidence[part]
        noticed = np.isfinite(_steps(curves, agent)).sum(axis=1)
        further = estimate(curves.ends(CHANGING, agent, _name(agent, "count"))[:, 0] - noticed)
        findings[part] = Finding(f"{further} a run", further.below(1.0))
    return several(findings)


def _less(better: str, worse: Sequence[str], evidence: Evidence) -> Finding:
    findings = {}
    for part in PARTS:
        curves = evidence[part]
        for other in worse:
            findings[f"{part} {other}"] = less(curves, CHANGING, better, other, total(curves))
    return several(findings)


def _grows(other: str, evidence: Evidence) -> Finding:
    """GLR-CascadeKLUCB's regret as a share of another agent's, with fast and with slow changes."""
    shares = []
    for part in PARTS:
        ends = [evidence[part].units(CHANGING, agent)[:, -1] for agent in (DETECTING[1], other)]
        shares.append(ends[0] / ends[1])
    gap = estimate(shares[0] - shares[1])
    return Finding(f"{estimate(shares[0])} of it, then {estimate(shares[1])}", gap.above(0.0))


def _study() -> Study:
    agents = (*DETECTING, TOLD, *ADAPTIVE, *STUBBORN)
    parts = tuple(
        Part(name, (CHANGING,), agents, N_EPOCHS * length, 10, 16, partial(switching, N_EPOCHS, length),
             least_horizon=N_EPOCHS * length, windows=50, facts=_facts(length))
        for name, length in PARTS.items()
    )  # fmt: skip
    statements = (
        *(
            Statement(
                f"{agent} outperforms CascadeDUCB and CascadeSWUCB",
                "less cumulative regret at the end than both, at both rates of change",
                partial(_less, agent, ADAPTIVE),
                paper="outperform the state of the art",
            )
            for agent in DETECTING
        ),
        Statement(
            "GLR-CascadeKLUCB is better than GLR-CascadeUCB",
            "less cumulative regret at the end, at both rates",
            partial(_less, DETECTING[1], DETECTING[:1]),
        ),
        *(
            Statement(
                f"{agent} notices the changes (ours)",
                "more than 0.9 of the changes are followed by a restart before the next, at both rates; interval over queries",
                partial(_noticed, agent),
            )
            for agent in DETECTING
        ),
        *(
            Statement(
                f"{agent} seldom restarts without cause (ours)",
                "less than one restart a run beside the first after each change, at both rates; interval over queries",
                partial(_without_cause, agent),
            )
            for agent in DETECTING
        ),
        *(
            Statement(
                f"The rarer the changes, the more detection saves on {agent}, which forgets all the time (ours)",
                "GLR-CascadeKLUCB's share of its regret is smaller with slow changes",
                partial(_grows, agent),
            )
            for agent in ADAPTIVE
        ),
        Statement(
            "To begin anew is better than never to forget: GLR-CascadeKLUCB against CascadeKL-UCB (ours)",
            "less cumulative regret at the end, at both rates",
            partial(_less, DETECTING[1], (LAST,)),
        ),
        Statement(
            "To know the number of segments is worth something: n_segments=10 against 1 (ours)",
            "less cumulative regret at the end, at both rates",
            partial(_less, TOLD, DETECTING[1:]),
        ),
    )
    return Study(
        "Regret where the users change: detecting changes beside forgetting",
        "Wang et al. 2019 on the changes of Li and de Rijke 2019",
        parts,
        statements,
        "Statements are of the paper's abstract, those marked (ours) were predicted before the run. Changes every 10,000 and "
        "every 100,000 sessions, ten epochs of either. Horizons are not scaled. Restarts are those of one further run on each "
        "query.",
        _draw,
    )


def _draw(evidence: Evidence) -> Figure:
    figure, panels = grid(2, 2)
    for (part, length), above, below in zip(PARTS.items(), panels[:2], panels[2:], strict=True):
        curves = evidence[part]
        places = np.searchsorted(curves.steps, np.linspace(0, curves.horizon, 51)[1:].round())
        for agent in (*DETECTING, TOLD, *ADAPTIVE, *STUBBORN):
            look = (colour_of(LAST, above), DASHED) if agent == STUBBORN[0] else look_of(agent, above)
            band(above, curves.steps[places], curves.units(CHANGING, agent)[:, places], agent, look)
        above.set(title=f"a change every {length:,}", ylim=(0, None))
        changes = length * np.arange(1, N_EPOCHS)
        for offset, agent, mark in zip((-0.12, 0.12), DETECTING, ("x", "."), strict=True):
            delays = _steps(curves, agent) - changes
            places = np.broadcast_to(changes + offset * length, delays.shape)
            below.plot(places.ravel(), delays.ravel(), mark, color=colour_of(agent, below), markersize=4, markeredgewidth=0.8)
        below.set(xlabel="session", yscale="log", ylim=(1, length))
        for axes in (above, below):
            axes.set_xlim(0, curves.horizon)
            axes.ticklabel_format(axis="x", style="sci", scilimits=(0, 0), useMathText=True)
            for start in range(length, curves.horizon, 2 * length):
                axes.axvspan(start, start + length, color="0.93", zorder=0)
    panels[0].set_ylabel("cumulative regret\n(grey: three other items attract)")
    panels[2].set_ylabel("sessions from a change to the\nrestart (x UCB, dot KL-UCB)")
    return finish(figure, panels[:1], evidence, "Regret where the users change")


STUDIES: dict[str, Study] = {"nonstat-detect": _study()}
