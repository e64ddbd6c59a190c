"""HTML page of a finished sweep: curves, tables, and the command that repeats it."""

from __future__ import annotations

import base64
import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import polars
from plotly.offline import get_plotlyjs

from ...core.templates import templates
from .. import words
from ..summaries import LEVEL, average, pairwise, ranked, reward_for_regret, without_regret
from .figures import COLOURS, DASHES, FLOOR, ZOOM

# The dashes of the figure, as plotly and as SVG name them.
PLOTLY_DASHES, SVG_DASHES = ("solid", "dash", "dot", "dashdot"), ("none", "8 3", "2 2.5", "8 3 2 3")
ON_DARK = {"#000000": "#FFFFFF"}
"""The colour that a dark page would swallow, and what stands for it there."""

DIGITS = 5
"""Significant digits of a curve: more than any screen shows."""


def alike_text(row: dict[str, Any]) -> str:
    """The places of the agents whose results do not differ significantly from this one's.

    Args:
        row: of `ranked`.

    Example:
        >>> [alike_text({"runs": runs, "alike": places}) for runs, places in [(5, [2, 3]), (5, None), (1, None)]]
        ['2, 3', '–', 'cannot tell']
    """
    if row["runs"] == 1:
        return "cannot tell"
    return ", ".join(map(str, row["alike"])) if row["alike"] else "–"


def to_html(
    table: polars.DataFrame,
    timings: polars.DataFrame,
    config: dict[str, Any],
    *,
    log: bool = True,
) -> str:
    """An HTML page that needs no network and no other file.

    Its policy forbids the browser to fetch anything. The tables are plain HTML and readable without
    JavaScript; the curves are drawn by plotly.js, which is packed into the page (gzip in Base64:
    2.0 MB in place of 4.8).

    Args:
        table, timings, config: of a finished sweep, as `read_results` returns them.
        log: the axes are logarithmic, or linear, until the reader chooses.
    """
    pages = templates(Path(__file__).parent)
    pages.filters |= {"alike": alike_text, "p_value": _p_value}
    agents = [_look(index, name) for index, name in enumerate(config["agents"])]
    views, without = _views(table, timings, config), without_regret(table)
    return pages.get_template("page.html").render(
        config=config,
        agents=agents,
        views=views,
        instances=words.averaged(config),
        separate=words.separate(config),
        axes="log" if log else "linear",
        words=words,
        without=without,
        level=f"{LEVEL:.0%}",
        config_text=json.dumps(config.get("parts", config), indent=1, ensure_ascii=False),
        data={
            "envs": [
                {"name": env, "amount": words.amount_of(config, env, without)}
                for env in config["envs"]
            ],
            "agents": agents,
            "steps": config["checkpoints"],
            "separate": bool(words.separate(config)),
            "start": config["horizon"] / ZOOM,
            "floor": FLOOR,
            "curves": {f"{view['e']}-{view['i']}": view["curves"] for view in views},
        },
        plotly=_plotly(),
    )


def _views(
    table: polars.DataFrame, timings: polars.DataFrame, config: dict[str, Any]
) -> list[dict[str, Any]]:
    """What can be shown of each environment: all instances together, and each by itself, if there
    are several.
    """
    names = _names(config)
    table, timings = (
        polars.concat(
            [
                (frame if name is None else frame.filter(instance=name)).with_columns(view=i)
                for i, name in enumerate(names)
            ]
        )
        for frame in (table, timings)
    )
    by = ("env", "view")
    without = without_regret(table)
    rows, pairs = ranked(table, timings, by), pairwise(table, by)
    rows = rows.with_columns(
        regret=polars.when(polars.col("env").is_in(without))
        .then(-polars.col("regret"))
        .otherwise("regret")
    )
    curves = average(reward_for_regret(table), (*by, "agent", "step")).with_columns(
        polars.col("regret", "regret_ci95").round_sig_figs(DIGITS)
    )
    return [
        {
            "env": env,
            "e": e,
            "i": i,
            "where": words.where(config, env) if name is None else name,
            "rows": rows.filter(env=env, view=i).to_dicts(),
            "pairs": pairs.filter(env=env, view=i).to_dicts(),
            "curves": _curves(curves.filter(env=env, view=i), config["agents"]),
        }
        for e, env in enumerate(config["envs"])
        for i, name in enumerate(names)
        if name is None or f"{env} {name}" in config["pairs"]
    ]


def _curves(rows: polars.DataFrame, agents: list[str]) -> list[dict[str, Any]]:
    """The curve of each agent; empty for one that was not run there."""
    of_agents = (rows.filter(agent=agent).sort("step") for agent in agents)
    return [
        {"mean": curve["regret"].to_list(), "half": curve["regret_ci95"].to_list()}
        for curve in of_agents
    ]


def _names(config: dict[str, Any]) -> list[str | None]:
    """The instances by which views are numbered; None stands for all together."""
    return [*words.separate(config)] or [None, *words.averaged(config)]


def _look(index: int, name: str) -> dict[str, str]:
    colour, dash = COLOURS[index % len(COLOURS)], index // len(COLOURS) % len(DASHES)
    return {
        "name": name,
        "light": colour,
        "dark": ON_DARK.get(colour, colour),
        "dash": PLOTLY_DASHES[dash],
        "strokes": SVG_DASHES[dash],
    }


def _p_value(p: float | None) -> str:
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


@cache
def _plotly() -> str:
    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode()
