"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

Seed = Annotated[
    int,
    typer.Option(
        rich_help_panel="Results", metavar="N", help="The same seed gives the same numbers."
    ),
]
Jobs = Annotated[
    int,
    typer.Option(
        rich_help_panel="Speed",
        metavar="N",
        help="Worker processes; -1 for one per CPU. Results stay the same.",
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        rich_help_panel="Speed",
        help="Run on the workers of a Dask cluster: the "
        "address of its scheduler, tcp://host:8786. Results stay the same.",
    ),
]
