"""Options that commands of click logs share: how a log is read, and what of a session counts."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any

import typer

from ...core.console import errors
from ...core.progress import progress_bar
from ...envs import REWARDS
from ..readers import LOG_FORMATS

LOG_FORMAT = f"auto|{'|'.join(LOG_FORMATS)}"
"""The values of ``--format``, as help texts show them."""

LogFormat = Annotated[str, typer.Option(
    "--format", metavar=LOG_FORMAT, help="Format of the log, see [bold]clickgym fit --help[/].",
)]  # fmt: skip
Columns = Annotated[str, typer.Option(
    metavar="NAME=COLUMN,...", show_default="the standard names",
    help="Names of the columns of your tidy log, as in [bold]item=doc_id,clicked=is_click[/].",
)]  # fmt: skip
Time = Annotated[str | None, typer.Option(
    metavar="COLUMN", show_default="time, if there is one",
    help="The column of your tidy log that says when a session was: a number, or a date and time in ISO 8601, the same in all "
    "rows of a session; '' for none.",
)]  # fmt: skip
Duplicates = Annotated[str, typer.Option(
    metavar="refuse|first", help="If rows have the same session and position: refuse the log, or keep the first of them.",
)]  # fmt: skip
BadRows = Annotated[str, typer.Option(
    metavar="strict|skip|skip:P%", help="If rows are malformed: refuse the log, or leave out and count their sessions, up to "
    "1 % (or P %) of all sessions.",
)]  # fmt: skip
Repeated = Annotated[str, typer.Option(
    metavar="keep|once", help="If the log has the same session several times (same time, query, list and clicks): keep all, or "
    "the first one.",
)]  # fmt: skip
MaxMemory = Annotated[str, typer.Option(
    metavar="SIZE", help="Maximum memory for the log: 5 bytes for each session and position, and the labels.",
)]  # fmt: skip
SessionsPerFile = Annotated[bool, typer.Option(
    "--sessions-per-file", help="Of several files: the ids of sessions begin anew in each file.",
)]  # fmt: skip
ClickAction = Annotated[str, typer.Option(
    metavar="NAME", help="Of a UBI log: the action that counts as a click, as [bold]purchase[/].",
)]  # fmt: skip
Reward = Annotated[str, typer.Option(
    metavar="|".join(REWARDS), help="Reward of a session: its number of clicks, 1 for at least one click, or 1 for a satisfied "
    "user.",
)]  # fmt: skip
Cutoff = Annotated[int | None, typer.Option(
    metavar="N", help="Count only the first N positions.", show_default="all",
)]  # fmt: skip
OPTIONS: dict[str, tuple[Any, Any]] = {
    "columns": (Columns, ""), "time": (Time, None), "duplicates": (Duplicates, "refuse"), "bad_rows": (BadRows, "strict"),
    "repeated": (Repeated, "keep"), "max_memory": (MaxMemory, "4GB"), "click_action": (ClickAction, "click"),
    "sessions_per_file": (SessionsPerFile, False),
}  # fmt: skip
"""The options that say how a log is read, with their defaults: keywords of `read_log`, and what is the time."""


class Steps:
    """A bar for each step of a command, with how much of it is done.

    Args:
        what: is named before the step.
    """

    def __init__(self, what: str) -> None:
        self.what, self.bar, self._tasks = what, progress_bar(errors()), dict[str, Any]()
        self.done: dict[str, tuple[int, int]] = {}

    def advance(self, step: str, done: int, total: int) -> None:
        """Show that so much of a step is done."""
        self.done[step] = done, total
        if step not in self._tasks:
            self._tasks[step] = self.bar.add_task(f"{self.what} {step}", total=total)
        self.bar.update(self._tasks[step], completed=done)


def _names(columns: str, time: str | None) -> dict[str, str]:
    parts = [part.partition("=") for part in columns.split(",") if part]
    names = {name: column for name, _, column in parts}
    if not all(name and column for name, _, column in parts) or len(names) < len(parts):
        raise ValueError(f"--columns is {columns!r}; expected NAME=COLUMN,... with each name once, as in item=doc_id")
    if time is not None:
        if "time" in names:
            raise ValueError(f"--columns names the time, {names['time']!r}, and --time is {time!r}; expected one of them")
        names["time"] = time
    return names


def reads_logs(*without: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command, below its option ``log_format``, those that say how a log is read; it gets them as ``reading``.

    Args:
        without: names of options that it has not.
    """
    options = [
        Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=kind)
        for name, (kind, default) in OPTIONS.items()
        if name not in without
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**keywords: Any) -> None:
            reading = {option.name: keywords.pop(option.name) for option in options}
            reading["columns"] = _names(reading["columns"], reading.pop("time"))
            command(**keywords, reading=reading)

        own = signature(command, eval_str=True).parameters
        all_of_them = [
            each
            for name, option in own.items()
            for each in ([option, *options] if name == "log_format" else [option])
            if name != "reading"
        ]
        run.__signature__ = Signature(all_of_them)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in all_of_them}
        return run

    return decorate
