"""Complete names in the shell: studies, and everything that `clickgym show` describes."""

from __future__ import annotations

from ...envs import CONTEXTUAL, ENVIRONMENTS, MEMORY
from ...runner.commands.names import agents, beginning, instances, metrics
from ..studies import STUDIES


def studies(incomplete: str) -> list[str]:
    """Studies whose name begins with what was typed."""
    return beginning(STUDIES, incomplete)


def everything(incomplete: str) -> list[str]:
    """Environments, agents, instances, metrics and studies whose name begins with what was typed."""
    ids = beginning(ENVIRONMENTS | CONTEXTUAL | MEMORY, incomplete)
    return [*ids, *(name for names in (agents, instances, metrics, studies) for name in names(incomplete))]
