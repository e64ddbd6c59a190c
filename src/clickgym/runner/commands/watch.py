"""``clickgym watch``: an animation of an agent that learns."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

from ...core.console import compiling_told, errors, output
from ...core.formats import folded, visible
from ...envs.rendering import to_ansi
from ..watch import Frame, Watching, moments, powers_of_ten
from .names import agents as agent_names
from .names import environments
from .run import number

SECONDS = 15.0
"""How long the animation lasts, if playing takes no longer."""
WIDEST = 30
"""Characters of the longest bar."""


def watch(
    env: Annotated[str, typer.Argument(
        metavar="ENV", autocompletion=environments, show_default=False,
        help="The environment, before the options, as after [bold]clickgym run[/].",
    )],
    agent: Annotated[str, typer.Option(
        "--agent", "-a", metavar="AGENT", autocompletion=agent_names, show_default=False,
        help="The agent, as [bold]TopRank[/], with arguments [bold]TopRank:delta=0.1[/], or your own [bold]module:Class[/].",
    )],
    sessions: Annotated[str, typer.Option(metavar="N", help="Sessions, as [bold]100000[/] or [bold]1e5[/].")] = "1e5",
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same sessions.")] = 0,
    out: Annotated[Path | None, typer.Option(hidden=True)] = None,
) -> None:  # fmt: skip
    """Show an agent while it learns: its lists, the clicks on them, and its regret so far.

    The animation shows each of the first sessions and then ever fewer; it takes about 20 seconds. If the output is a file or a
    pipe, the command prints only sessions 1, 10, 100, ... A bar shows the attraction of each item, which the agent does not
    know; environments whose items change have no bars.

    [bold]Examples[/]

      clickgym watch PBMRank-v0 --agent TopRank
    """
    if out is not None:
        raise ValueError("--out is retired: the animation plays in a terminal only; for a page use clickgym run ENV --out DIR")
    try:
        watching = Watching(env, agent, number(sessions), seed=seed)
    except TypeError as error:  # of an argument that was typed
        raise ValueError(str(error)) from None
    console = output()
    with compiling_told(errors()):
        if console.is_terminal:
            _animate(console, watching, f"{agent} in {env}")
        else:
            watching.play(_printer(console, watching.sessions))


def _animate(console: Console, watching: Watching, title: str) -> None:
    """Play a run on a terminal, each moment for the same time."""
    pause = SECONDS / len(moments(watching.sessions))
    live, due = Live(console=console, auto_refresh=False), time.perf_counter()

    def show(frame: Frame) -> None:
        nonlocal due
        if not live.is_started:
            live.start()
            due = time.perf_counter()
        live.update(_screen(frame, title, watching.sessions, console.width), refresh=True)
        due += pause
        time.sleep(max(due - time.perf_counter(), 0.0))

    try:
        watching.play(show)
    finally:
        live.stop()


def _screen(frame: Frame, title: str, sessions: int, width: int) -> Text:
    """A moment as lines of a terminal."""
    page: Any = frame.page  # of a session, so that nothing of it is None
    text = Text()
    text.append(f"{visible(title)}\n", "bold")
    text.append(f"session {page.step:,} of {sessions:,}\n\n")
    room = min(max(width - 36, 0), WIDEST)
    for place, (item, clicked, examined) in enumerate(zip(page.ranking, page.clicks, page.examined, strict=True)):
        style = "bold" if examined else "dim"
        text.append(f"{place + 1:3d}. item {item:<4d}", style)
        if page.attraction is not None and room:
            filled = round(room * page.attraction[place])
            text.append(" " + "━" * filled, "blue").append("─" * (room - filled), "dim").append(
                f" {page.attraction[place]:.2f}", style
            )
        text.append("  ● clicked" if clicked else "  examined" if examined else "", "bold green" if clicked else "")
        text.append("\n")
    text.append("\n" + "\n".join(folded(_totals(frame), width)))
    return text


def _totals(frame: Frame) -> list[str]:
    speed = [] if frame.speed is None else [f"{frame.speed:,.0f} sessions/s"]
    return [f"clicks so far {frame.clicks:,}", f"regret so far {frame.page.regret:z,.1f}", *speed]


def _printer(console: Console, sessions: int) -> Callable[[Frame], None]:
    """Print a few moments, each below the one before: the powers of ten, and the last."""

    def show(frame: Frame) -> None:
        if frame.page.step in (*powers_of_ten(sessions), sessions):
            console.print(Text(visible(to_ansi(frame.page), keep="\n")), Text(f"      {', '.join(_totals(frame))}"), sep="\n")

    return show
