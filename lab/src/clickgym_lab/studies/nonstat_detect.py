"""Study of detecting changes beside forgetting: GLR-CascadeUCB and GLR-CascadeKLUCB on the changes of Li and de Rijke 2019."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clickgym import make_agent, run

from .li2019_cascade import ADAPTIVE, CHANGING, switching
from .plots import DASHED, Figure, band, colour_of, finish, grid, look_of
from .study import LAST, Curves, Evidence, Finding, Values, estimate

__all__ = ["switching"]

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


FAST, SLOW = map(_facts, PARTS.values())


# ---------------------------------------------------------------------------------------------------------- judging


def noticed(curves: Curves, agent: str) -> Finding:
    """Whether an agent restarts after nearly every change."""
    steps, length = _steps(curves, agent), curves.horizon // N_EPOCHS
    delay = np.nanmedian(steps - length * np.arange(1, N_EPOCHS))
    return estimate(np.isfinite(steps).mean(axis=1)).finding(f" of the changes, after {delay:,.0f} sessions (median)", 0.9)


def without_cause(curves: Curves, agent: str) -> Finding:
    """Whether there are few restarts beside the first after each change."""
    further = curves.ends(CHANGING, agent, _name(agent, "count"))[:, 0] - np.isfinite(_steps(curves, agent)).sum(axis=1)
    return estimate(further).finding(" a run", high=1.0)


def grows(evidence: Evidence, other: str) -> Finding:
    """GLR-CascadeKLUCB's regret as a share of another agent's, with fast and with slow changes."""
    ends = [[evidence[part].units(CHANGING, agent)[:, -1] for agent in (DETECTING[1], other)] for part in PARTS]
    fast, slow = (own / others for own, others in ends)
    return Finding(f"{estimate(fast)} of it, then {estimate(slow)}", estimate(fast - slow).above(0.0))


def draw(evidence: Evidence) -> Figure:
    """Regret above, the delays of restarts below, with fast and with slow changes."""
    delays = "sessions from a change to the\nrestart (x UCB, dot KL-UCB)"
    figure, panels = grid(2, 2, labels=["cumulative regret\n(grey: three other items attract)", delays])
    for (part, length), above, below in zip(PARTS.items(), panels[:2], panels[2:], strict=True):
        curves = evidence[part]
        places = np.searchsorted(curves.steps, np.linspace(0, curves.horizon, 51)[1:].round())
        for agent in (*DETECTING, TOLD, *ADAPTIVE, *STUBBORN):
            look = (colour_of(LAST, above), DASHED) if agent == STUBBORN[0] else look_of(agent, above)
            band(above, curves.steps[places], curves.units(CHANGING, agent)[:, places], agent, look)
        above.set(title=f"a change every {length:,}", ylim=(0, None))
        changes = length * np.arange(1, N_EPOCHS)
        for offset, agent, mark in zip((-0.12, 0.12), DETECTING, ("x", "."), strict=True):
            late = _steps(curves, agent) - changes
            places = np.broadcast_to(changes + offset * length, late.shape)
            below.plot(places.ravel(), late.ravel(), mark, color=colour_of(agent, below), markersize=4, markeredgewidth=0.8)
        below.set(xlabel="session", yscale="log", ylim=(1, length))
        for axes in (above, below):
            axes.set_xlim(0, curves.horizon)
            axes.ticklabel_format(axis="x", style="sci", scilimits=(0, 0), useMathText=True)
            for start in range(length, curves.horizon, 2 * length):
                axes.axvspan(start, start + length, color="0.93", zorder=0)
    return finish(figure, panels[:1], evidence, "Regret where the users change")
