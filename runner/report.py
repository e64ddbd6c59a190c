"""Table and figure of a finished sweep: printed, and written beside its results."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

import polars
from rich import box
from rich.console import Console
from rich.table import Table

from .summary import summary
from .sweep import read_results, write_whole

__all__ = ["command_of", "duration", "regret_text", "write_report"]

SUMMARY = "summary.csv"


def write_report(folder: str | os.PathLike[str], console: Console) -> None:
    """Print the table of a finished sweep, and write ``summary.csv``, ``regret.png`` and ``regret.svg`` into its folder.

    Args:
        folder: the ``out`` of the sweep.
        console: where to print. The table averages over instances; ``summary.csv`` has a row for each.

    Raises:
        ValueError: the folder is not one of finished results.
    """
    from .plots import regret_figure, save_figure  # matplotlib is slow to load, and bad input should be named before

    folder = Path(folder)
    table, timings, config = read_results(folder)
    write_whole(folder / SUMMARY, summary(table, timings, ("env", "instance", "agent")).write_csv)
    console.print(_table(summary(table, timings), config))
    pictures = save_figure(regret_figure(table, config), folder / "regret")
    console.print(f"Results in {folder}: {', '.join([*(picture.name for picture in pictures), SUMMARY])}, results.parquet",
                  highlight=False)  # fmt: skip


def command_of(config: dict[str, Any]) -> str:
    """The command line that makes the results of a configuration again.

    Args:
        config: as `read_results` returns it.
    """
    words = ["clickgym", "run", *config["envs"], "--agents", *config["agents"], "--instance", *config["instances"]]
    plain = str(config["horizon"])
    digits = plain.rstrip("0")
    horizon = f"{digits}e{len(plain) - len(digits)}" if len(plain) - len(digits) > 2 else plain
    return shlex.join([*words, "--horizon", horizon, "--runs", str(config["runs"]), "--seed", str(config["seed"])])


def regret_text(mean: float, half_width: float | None) -> str:
    """A mean and half of its interval, both with the digits that the interval makes worth reading.

    Example:
        >>> regret_text(1234.567, 45.6), regret_text(3.14159, 0.021), regret_text(17.25, None)
        ('1,235 ± 46', '3.142 ± 0.021', '17.2')
    """
    if half_width is None:
        return f"{mean:,.1f}"
    digits = 0
    while half_width and half_width * 10**digits < 10 and digits < 3:
        digits += 1
    return f"{mean:,.{digits}f} ± {half_width:,.{digits}f}"


def duration(nanoseconds: float) -> str:
    """A time per session.

    Example:
        >>> duration(87.4), duration(71_300)
        ('87 ns', '71.3 µs')
    """
    return f"{nanoseconds:.0f} ns" if nanoseconds < 1000 else f"{nanoseconds / 1000:,.1f} µs"


def _table(rows: polars.DataFrame, config: dict[str, Any]) -> Table:
    instances = config["instances"]
    where = instances[0] if len(instances) == 1 else f"mean over {len(instances)} instances"
    interval = f"mean ± 95 % interval over {config['runs']} runs" if config["runs"] > 1 else "one run"
    table = Table(
        title=f"Regret after {config['horizon']:,} sessions, {where} ({interval})", box=box.SIMPLE_HEAD, title_style="bold"
    )
    for name in ("environment", "agent"):
        table.add_column(name, no_wrap=True)
    for name in ("regret", "reward / session", "time / session"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("engine")
    for env in config["envs"]:
        table.add_section()
        for row in rows.filter(polars.col("env") == env).sort("regret").iter_rows(named=True):
            table.add_row(
                env,
                row["agent"],
                regret_text(row["regret"], row["regret_ci95"]),
                f"{row['reward']:.4f}",
                duration(row["ns_per_session"]),
                row["engine"],
            )
    return table
