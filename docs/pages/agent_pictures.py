"""The picture of an agent's page, its regret beside others: SVG, for light and dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import matplotlib
import polars
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator
from polars import col

from clickgym import run
from clickgym.agents.mix_ts import HYPOTHESES
from clickgym.core.colours import COLOURS
from clickgym.runner.reports import drawn
from clickgym_lab.bench.protocol import CURRENT, Protocol
from clickgym_lab.bench.reference import curves_of

from .advice import Case

INK = "#7d828a"
"""Of text and axes: dark enough on white, light enough on black."""
LIGHTER = ("#56b4e9", "#ff8f4a", "#3fcf9f")
"""The first colours of the palette on dark pages."""
TICKS = {100: "10²", 1_000: "10³", 10_000: "10⁴", 100_000: "10⁵"}


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


# ----------------------------------------------------------------------------------------------------------------- our own

STEPS = (
    "the list that is best for one hypothesis,\ndrawn by its share",
    "clicks of one user",
    "five hypotheses foretold these clicks:\nthe better, the larger a share",
)
"""What `MixTS` does in a session."""


def idea_figure() -> Figure:
    """The idea of `MixTS`: the steps of a session, and the shares of its hypotheses in one run before users of the DCM."""
    ends = sorted({round(10 ** (power / 20)) for power in range(20, 81)})
    metrics = [f"belief_{name.lower()}" for name in HYPOTHESES]
    table = run("MixTS", "DCMRank-v0", ends[-1], seed=0, checkpoints=ends, metrics=metrics).to_frame()
    figure = Figure(figsize=(8.6, 2.9), layout="constrained")
    loop, shares = figure.subplots(1, 2, width_ratios=(1.0, 1.35))
    loop.set(xlim=(0.0, 1.0), ylim=(-0.25, 2.25))
    loop.axis("off")
    for height, words in zip((2, 1, 0), STEPS, strict=True):
        box = {"boxstyle": "round,pad=0.5", "facecolor": "none", "edgecolor": INK}
        loop.text(0.43, height, words, ha="center", va="center", fontsize=9, color=INK, bbox=box)
    for start, end, bend in (((0.43, 1.7), (0.43, 1.2), 0.0), ((0.43, 0.8), (0.43, 0.3), 0.0), ((0.8, 0.0), (0.8, 2.0), 0.45)):
        arrow = {"arrowstyle": "-|>", "color": INK, "connectionstyle": f"arc3,rad={bend}"}
        loop.annotate("", end, start, arrowprops=arrow)
    for i, (name, metric) in enumerate(zip(HYPOTHESES, metrics, strict=True)):
        shares.plot(table["step"].to_numpy(), table[metric].to_numpy(), label=name, color=COLOURS[i], linewidth=2.0)
    draw_on_page(shares, ends[-1])
    shares.set_yscale("linear")
    shares.set_title("share of each hypothesis, users of the DCM", fontsize=10, color=INK)
    figure.legend(loc="outside lower center", ncols=len(HYPOTHESES), frameon=False, fontsize=9, labelcolor=INK)
    return figure
