"""What a shell completes: the names of what there is, without loading more than they need."""

from __future__ import annotations

from collections.abc import Iterable

from ...envs import CONTEXTUAL, ENVIRONMENTS, list_instances
from ..labels import PUBLISHED
from ..metrics import DERIVED, METRICS

__all__ = ["agents", "environments", "everything", "instances", "metrics", "studies"]


def _beginning(known: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in known if name.startswith(incomplete)]


def agents(incomplete: str) -> list[str]:
    """Agents of which the name begins so."""
    return _beginning(PUBLISHED, incomplete)


def environments(incomplete: str) -> list[str]:
    """Environments of which the id begins so."""
    return _beginning(ENVIRONMENTS | CONTEXTUAL, incomplete)


def instances(incomplete: str) -> list[str]:
    """Instances of which the name begins so."""
    return _beginning(list_instances(), incomplete)


def metrics(incomplete: str) -> list[str]:
    """Metrics of which the name begins so."""
    return _beginning(METRICS | DERIVED, incomplete)


def studies(incomplete: str) -> list[str]:
    """Studies of which the name begins so."""
    from ..studies import STUDIES

    return _beginning(STUDIES, incomplete)


def everything(incomplete: str) -> list[str]:
    """All of them."""
    return [name for names in (agents, environments, instances, metrics, studies) for name in names(incomplete)]
