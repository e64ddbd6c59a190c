"""``clickgym merge``: one results folder of several."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...core.console import Pdf, output
from ..reports.report import write_report
from ..results import merge as merge_folders

__all__ = ["merge"]


def merge(
    folders: Annotated[list[Path], typer.Argument(
        metavar="DIR...", help="Folders of finished [bold]clickgym run[/]s.", show_default=False,
    )],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The new folder.")],
    pdf: Pdf = False,
) -> None:  # fmt: skip
    """Make one results folder of several, and table and figure of it all; the folders stay as they are.

    They must have the same horizon, seed, checkpoints, engine and metrics. A run that several have counts once.

    [bold]Examples[/]

    What two machines did, in one table:

      clickgym merge results/here results/there --out results/both
    """
    merge_folders(folders, out)
    write_report(out, output(), pdf=pdf)
