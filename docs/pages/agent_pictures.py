"""Pictures of an agent's page: its regret beside others, and how its list changes. Both are SVG, for light and dark pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import polars
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator
from numpy.typing import NDArray
from polars import col

from clickgym import make_agent, run
from clickgym.agents import ContextualAgent, Learner, StateAgent
from clickgym.core.colours import COLOURS
from clickgym.runner import PUBLISHED, make_env
from clickgym.runner.reports import drawn
from clickgym_lab.bench.protocol import CURRENT, Protocol
from clickgym_lab.bench.reference import curves_of

from .advice import Case

INK = "#7d828a"
"""Of text and axes: dark enough on white, light enough on black."""
MOMENTS = (1, 3, 10, 32, 100, 316, 1_000, 3_162, 10_000, 31_623, 100_000)
"""The sessions whose lists are drawn."""
SLOW = ("COLTR", "PairRank")
"""Agents that play a tenth of the sessions, for each takes them many times as long as others."""
LIGHTER = ("#56b4e9", "#ff8f4a", "#3fcf9f")
"""The first colours of the palette on dark pages."""
TICKS = {100: "10²", 1_000: "10³", 10_000: "10⁴", 100_000: "10⁵"}
OTHER = 0.28
"""The opacity of an item that the best list does not show."""


def svg(figure: Figure) -> bytes:
    """A figure as a file without a background, whose words are text, and whose colours are lighter on dark pages."""
    with matplotlib.rc_context({"svg.fonttype": "none", "font.sans-serif": ["DejaVu Sans"]}):
        content = drawn(figure, "svg", transparent=True)
    rules = (
        f'[style*="{part}: {colour.lower()}"] {{ {part}: {lighter} !important }}'
        for colour, lighter in zip(COLOURS, LIGHTER, strict=False)
        for part in ("stroke", "fill")
    )
    style = f"<style>@media (prefers-color-scheme: dark) {{ {' '.join(rules)} }}</style>"
    return content.replace(b"<defs>", style.encode() + b"\n <defs>", 1)


# --------------------------------------------------------------------------------------------------------------- regret


def regret_figure(case: Case) -> Figure | None:
    """The regret of an agent, of the base of its board and of the best line, in percent of random lists'.

    A panel each for the first ability of the board, for that in which the agent scores highest, and for that in which it scores
    lowest; over the tasks that all of them play.

    Args:
        case: of the agent.

    Returns:
        The figure; None where the agent stands on no board.
    """
    if case.place is None or case.table is None:
        return None
    own, board = case.place, case.table.board
    best = next(place.agent for place in case.table.places if place.agent != "Oracle")
    names = list(dict.fromkeys([own.agent, board.base, best]))
    scores = {name: each.value for name, each in own.standing.abilities.items() if name in board.abilities}
    first, highest, lowest = next(iter(scores)), max(scores, key=scores.__getitem__), min(scores, key=scores.__getitem__)
    abilities = list(dict.fromkeys([first, highest, lowest]))
    figure = Figure(figsize=(2.6 * len(abilities) + 0.4, 2.6), layout="constrained")
    panels = figure.subplots(1, len(abilities), squeeze=False, sharey=True)[0]
    for panel, ability in zip(panels, abilities, strict=True):
        _draw_regret(panel, ability, names)
    panels[0].set_ylabel("regret, % of random lists’", color=INK, fontsize=9)
    words = {own.agent: f"{own.agent}, this agent", best: f"{best}, the best of its board"}
    if best == own.agent:
        words[best] = f"{best}, this agent and the best of its board"
    labels = [words.get(name, name) for name in names]
    handles = [Line2D([], [], label=label, **line_look(i)) for i, label in enumerate(labels)]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=9, labelcolor=INK)
    return figure


def _draw_regret(panel: Axes, ability: str, names: Sequence[str]) -> None:
    rows = mean_regret(CURRENT).filter(ability=ability)
    tasks = [own for name in (*names, "Random") if (own := set(rows.filter(agent=name)["task"]))]
    rows = rows.filter(col("task").is_in(set.intersection(*tasks)))
    random = _sums(rows, "Random").rename({"regret": "random"})
    for i, name in enumerate(names):
        curve = _sums(rows, name).join(random, on="step").sort("step").filter(col("regret") > 0)
        panel.plot(curve["step"].to_numpy(), (100 * curve["regret"] / curve["random"]).to_numpy(), **line_look(i))
    panel.set_title(ability.replace("_", " "), fontsize=10, color=INK)
    draw_on_page(panel, int(rows["step"].to_numpy().max(initial=0)))


@cache
def mean_regret(protocol: Protocol) -> polars.DataFrame:
    """The mean regret over the runs of each line in each task that ships.

    Args:
        protocol: the version.
    """
    return curves_of(protocol).group_by("agent", "ability", "task", "step").agg(col("regret").mean())


def _sums(rows: polars.DataFrame, agent: str) -> polars.DataFrame:
    return rows.filter(agent=agent).group_by("step").agg(col("regret").sum())


def line_look(i: int) -> dict[str, Any]:
    """How the curve number ``i`` is drawn; the first one is on top of the others."""
    return {"color": COLOURS[i], "linewidth": 1.6 if i else 2.6, "zorder": 2 if i else 3}


def draw_on_page(panel: Axes, n_sessions: int) -> None:
    """Give a panel of curves logarithmic axes in the colour of text, which is legible on light and dark pages.

    Args:
        panel: with its curves.
        n_sessions: where they end.
    """
    panel.set(xscale="log", yscale="log")
    ticks = {step: text for step, text in TICKS.items() if n_sessions >= step}
    panel.set_xticks([*ticks], [*ticks.values()])
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
    panel.yaxis.set_major_formatter("{x:g}")
    panel.minorticks_off()
    panel.set_xlabel("sessions", fontsize=9, color=INK)
    panel.grid(which="major", color=INK, alpha=0.25, linewidth=0.6)
    panel.tick_params(colors=INK, labelsize=8)
    panel.spines[["top", "right"]].set_visible(False)
    for side in ("left", "bottom"):
        panel.spines[side].set_color(INK)


# ---------------------------------------------------------------------------------------------------------------- lists


class Shown(NamedTuple):
    """The lists that an agent has shown.

    Attributes:
        env, instance: where, as `make_env` takes them.
        sessions: ``(n,)`` when.
        places: ``(n, K)`` the position of each item in the best list of that session, from 1; 0 of one that is not in it.
        changes: whether the users had changed since the list before.
    """

    env: str
    instance: str | None
    sessions: NDArray[np.int64]
    places: NDArray[np.int64]
    changes: NDArray[np.bool_]


def env_of(name: str) -> tuple[str, str | None]:
    """An environment that suits an agent, by the click models of its class, and its instance; None is the default one.

    Example:
        >>> env_of("TopRank"), env_of("CascadeSWUCB")
        (('CMRank-v0', None), ('NonStationaryCMRank-v0', None))
        >>> env_of("RecurRank")
        ('ContextualPBMRank-v0', 'linear:n_items=20,n_pool=20,n_users=1')
    """
    agent: Any = PUBLISHED[name]
    if issubclass(agent, StateAgent):
        return "CascadeMDPRank-v0", None
    model = next(iter(re.findall(r"\b(?:CM|PBM|DCM|UBM)\b", agent.click_models)), "PBM")
    if issubclass(agent, ContextualAgent):
        return f"Contextual{model}Rank-v0", "linear:n_items=20,n_pool=20,n_users=1" if agent.same_candidates else None
    if "changes" in agent.click_models:
        return f"NonStationary{model}Rank-v0", None
    return f"{model}Rank-v0" + ":reward=satisfaction" * (model == "DCM"), None


@cache
def play(name: str) -> Shown | None:
    """Play an agent in the environment that suits it, with the seed 0, and keep some of the lists that it shows.

    Args:
        name: of the agent.

    Returns:
        The lists; None for an agent that has a loop of its own.
    """
    if issubclass(PUBLISHED[name], Learner):
        return None
    where = env_of(name)
    moments = [moment for moment in MOMENTS if moment <= (10_000 if name in SLOW else 100_000)]
    env: Any = make_env(*where).unwrapped
    agent: Any = make_agent(name, env, horizon=moments[-1], seed=0)
    env.reset(seed=0)
    places, n_played, best, changes = [], 0, None, []
    for moment in moments:
        if moment - 1 > n_played:
            run(agent, env, moment - 1 - n_played, checkpoints=[])
        observation, info = env.reset()
        ranking = agent.rank(observation)
        observed, reward, *_ = env.step(ranking)
        agent.update(observation, ranking, observed["clicks"] if isinstance(observed, dict) else observed, reward)
        n_played = moment
        order = {int(item): place for place, item in enumerate(info["optimal_ranking"], 1)}
        places.append([order.get(int(item), 0) for item in ranking])
        changes.append(best is not None and best != order and "NonStationary" in where[0])
        best = order
    return Shown(*where, np.array(moments), np.array(places), np.array(changes))


def lists_figure(shown: Shown) -> Figure:
    """The lists as columns: a number is the position that the item has in the best list, and the darker the better.

    Args:
        shown: the lists.
    """
    n, n_positions = shown.places.shape
    figure = Figure(figsize=(0.5 * n + 0.7, 0.3 * n_positions + 0.7), layout="constrained")
    panel = figure.add_subplot()
    cells = np.array([[_cell(place, n_positions) for place in column] for column in shown.places])
    panel.imshow(np.transpose(cells, (1, 0, 2)), aspect="auto", interpolation="nearest")
    for (column, row), place in np.ndenumerate(shown.places):
        if place:
            colour = "white" if place <= (n_positions + 1) // 2 else "#10202c"
            panel.text(column, row, str(place), ha="center", va="center", fontsize=9, color=colour)
    for edge in np.flatnonzero(shown.changes):
        panel.axvline(edge - 0.5, color=COLOURS[1], linewidth=2, linestyle=(0, (2, 1)))
    panel.set_xticks(range(n), [f"{session:,}" for session in shown.sessions])
    panel.set_yticks(range(n_positions), [str(k) for k in range(1, n_positions + 1)])
    panel.set_xlabel("session", fontsize=9, color=INK)
    panel.set_ylabel("position", fontsize=9, color=INK)
    panel.tick_params(length=0, labelsize=8, colors=INK)
    panel.spines[:].set_visible(False)
    return figure


def _cell(place: int, n_positions: int) -> tuple[float, float, float, float]:
    """The colour of an item by its position in the best list."""
    if not place:
        return (*to_rgb(INK), OTHER)
    share = (place - 1) / max(n_positions - 1, 1)
    red, green, blue = ((1 - 0.65 * share) * np.array(to_rgb(COLOURS[0])) + 0.65 * share).tolist()
    return red, green, blue, 1.0
