"""``clickgym merge``: one results folder of several."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...core.console import Pdf, output
from ..reports.report import write_report
from ..results import merge as merge_folders


def merge(
    folders: Annotated[list[Path], typer.Argument(
        metavar="DIR...", help="Folders of finished [bold]clickgym run[/]s.", show_default=False,
    )],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The new folder.")],
    pdf: Pdf = False,
) -> None:  # fmt: skip
    """Merge several results folders into a new one, and write its table and its figure.

    All folders must have the same horizon, seed, checkpoints, engine and metrics. They are not changed. If several folders hold
    the same run, it counts once.

    [bold]Examples[/]

    The results of two machines in one table:

      clickgym merge results/here results/there --out results/both
    """
    merge_folders(folders, out)
    write_report(out, output(), pdf=pdf)
