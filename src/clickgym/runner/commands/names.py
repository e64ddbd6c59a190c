"""Complete names in the shell: agents, environments, instances, metrics, and everything that
`clickgym show` describes.
"""

from __future__ import annotations

from collections.abc import Iterable

import typer

from ...core.console import OPEN_FLAG
from ...envs import CONTEXTUAL, ENVIRONMENTS, MEMORY, list_instances
from ..labels import PUBLISHED
from ..metrics import DERIVED, METRICS


def beginning(known: Iterable[str], incomplete: str) -> list[str]:
    """The names that begin with what was typed."""
    return [name for name in known if name.startswith(incomplete)]


def agents(incomplete: str) -> list[str]:
    """Agents of which the name begins so."""
    return beginning(PUBLISHED, incomplete)


def environments(ctx: typer.Context, incomplete: str) -> list[str]:
    """Environments of which the id begins so; after several values of one flag, what may be a
    further one.
    """
    flag = ctx.meta.get(OPEN_FLAG, "")
    for names, flags in (
        (agents, ("--agents", "-a")),
        (instances, ("--instance", "-i")),
        (metrics, ("--metrics", "-m")),
    ):
        if flag in flags:
            return names(incomplete)
    return beginning(ENVIRONMENTS | CONTEXTUAL | MEMORY, incomplete)


def instances(incomplete: str) -> list[str]:
    """Instances of which the name begins so."""
    return beginning(list_instances(), incomplete)


def metrics(incomplete: str) -> list[str]:
    """Metrics of which the name begins so."""
    return beginning(METRICS | DERIVED, incomplete)


def everything(incomplete: str) -> list[str]:
    """Environments, agents, instances and metrics of which the name begins so."""
    ids = beginning(ENVIRONMENTS | CONTEXTUAL | MEMORY, incomplete)
    return [*ids, *(name for names in (agents, instances, metrics) for name in names(incomplete))]
