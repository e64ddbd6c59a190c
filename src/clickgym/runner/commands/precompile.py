"""``clickgym precompile``: compiled kernels for other machines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...core.console import errors, output
from ...core.files import in_bytes
from ..precompile import precompile as compile_kernels
from .names import agents as agent_names
from .names import environments


def precompile(
    out: Annotated[Path, typer.Option(
        metavar="DIR", help="Folder of the compiled kernels; created if missing. What it holds already is not compiled again.",
    )],
    agents: Annotated[list[str] | None, typer.Option(
        "--agents", "-a", metavar="AGENT...", show_default="all but generic RL", autocompletion=agent_names,
        help="One or more agents of the package: [bold]TopRank[/], with arguments "
        "[bold]CascadeKLUCB:feedback=first_click[/].",
    )] = None,
    envs: Annotated[list[str] | None, typer.Option(
        "--envs", "-e", metavar="ENV...", show_default="all", autocompletion=environments,
        help="One or more environments of the package: [bold]CMRank-v0[/], with arguments "
        "[bold]CMRank-v0:available=7[/].",
    )] = None,
    portable: Annotated[bool, typer.Option(
        "--portable", help="Compile for all processors of this architecture (x86-64 since 2009, all 64-bit ARM) instead of "
        "for this one only.",
    )] = False,
) -> None:  # fmt: skip
    """Compile the kernels of agents and environments into a folder, for containers, CI and workers.

    Without such a folder, every new machine compiles each pair of agent and environment once, in about two seconds. The folder
    is used by every process that has the environment variable CLICKGYM_KERNELS=DIR. It is only read; results stay the same. It
    must belong to the user or to root, and nobody else may write it.

    A kernel is loaded only by the same versions of clickgym's sources, numba, llvmlite, NumPy and Python, and only by a
    processor for which it was compiled. All other kernels are compiled as without the folder. Your own agents are compiled in
    each process.

    [bold]Examples[/]

    In the image of a container that compares two agents:

      clickgym precompile --agents TopRank CascadeKLUCB --envs CMRank-v0 PBMRank-v0 --portable --out /opt/kernels

    Then, wherever it runs:

      CLICKGYM_KERNELS=/opt/kernels clickgym run CMRank-v0 --agents TopRank CascadeKLUCB --horizon 1e5 --out results/first
    """
    console = errors()
    files = compile_kernels(
        out, agents or (), envs or (), portable=portable,
        callback=lambda env, able: console.print(f"{env}: {', '.join(able) or 'no agent'}", highlight=False),
    )  # fmt: skip
    size = in_bytes(sum(file.stat().st_size for file in files))
    output().print(f"{len(files):,} compiled functions ({size}) in {out}; use them with CLICKGYM_KERNELS={out.resolve()}")
