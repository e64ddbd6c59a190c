"""Names that the shell completes: agents, environments, instances, metrics."""

from __future__ import annotations

from collections.abc import Iterable

from ...envs import CONTEXTUAL, ENVIRONMENTS, MEMORY, list_instances
from ..labels import PUBLISHED
from ..metrics import DERIVED, METRICS


def beginning(known: Iterable[str], incomplete: str) -> list[str]:
    """The names that begin with what was typed."""
    return [name for name in known if name.startswith(incomplete)]


def agents(incomplete: str) -> list[str]:
    """Agents of which the name begins so."""
    return beginning(PUBLISHED, incomplete)


def environments(incomplete: str) -> list[str]:
    """Environments of which the id begins so."""
    return beginning(ENVIRONMENTS | CONTEXTUAL | MEMORY, incomplete)


def instances(incomplete: str) -> list[str]:
    """Instances of which the name begins so."""
    return beginning(list_instances(), incomplete)


def metrics(incomplete: str) -> list[str]:
    """Metrics of which the name begins so."""
    return beginning(METRICS | DERIVED, incomplete)


def everything(incomplete: str) -> list[str]:
    """Environments, agents, instances and metrics of which the name begins so."""
    kinds = (environments, agents, instances, metrics)
    return [name for names in kinds for name in names(incomplete)]
