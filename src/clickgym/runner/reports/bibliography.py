"""BibTeX entries for the papers behind agents and environments."""

from __future__ import annotations

import re
import warnings
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from ...agents import AGENTS
from ...core.errors import PACKAGE
from ...envs import ENVIRONMENTS
from ...envs.instances.instance import shipped_instances
from ..make.agents import resolve_agent
from ..make.environments import resolve_env
from ..results_folder import LabelColumn

if TYPE_CHECKING:
    from ..results import Results

REAL_QUERIES = "wscd2012"
"""The BibTeX key of the data from which the shipped instances were estimated."""


def to_bibtex(results: Results) -> str:
    """Return BibTeX entries for the agents, environments and real queries in some results.

    A comment above each entry names the agents, environments or instances that the entry is for.

    Warns:
        UserWarning: agents that did not come with clickgym have no entry.
    """
    users: dict[str, list[str]] = {}
    columns: tuple[LabelColumn, ...] = "agent", "env"
    for column in columns:
        for label in results.names(column):
            with suppress(Exception):  # a user's module may be missing
                for entry in _entries(column, results.spec(column, label)):
                    users.setdefault(entry, []).append(label)
    own = [
        label
        for label in results.names("agent")
        if results.spec("agent", label).partition(":")[0] not in AGENTS
        and not any(label in labels for labels in users.values())
    ]
    if own:
        warnings.warn(f"there is no BibTeX entry for {', '.join(own)}", stacklevel=2)
    instances = {name: results.spec("instance", name) for name in results.names("instance")}
    shipped = shipped_instances()  # the user's own instances may have the same names, but no spec
    if real := [name for name, spec in instances.items() if spec.partition(":")[0] in shipped]:
        users[bibliography()[REAL_QUERIES]] = real
    return "\n\n".join(f"% {', '.join(users[entry])}\n{entry}" for entry in sorted(users))


def _entries(column: str, spec: str) -> list[str]:
    """Return the BibTeX entries for an agent, or for an environment's click model and users."""
    if column == "agent":
        return papers(resolve_agent(spec)[0])
    environment = ENVIRONMENTS[getattr(resolve_env(spec)[0], "id", "")]
    return list(dict.fromkeys([*papers(environment.click_model), *papers(environment.model_class)]))


# --------------------------------------------------------------------------------- the bibliography


@cache
def bibliography() -> dict[str, str]:
    """Return the entries of the file ``references.bib`` by their keys."""
    text = (PACKAGE / "references.bib").read_text(encoding="utf-8")
    entries = [entry.strip() for entry in re.split(r"\n(?=@)", text)]
    return {entry.partition("{")[2].partition(",")[0]: entry for entry in entries}


def papers(obj: Any) -> list[str]:
    """Return the BibTeX entries for the papers that the attribute ``bibtex_keys`` of a class names.

    Raises:
        LookupError: ``references.bib`` has no entry for a key.
    """
    keys = getattr(obj, "bibtex_keys", ())
    for key in keys:
        if key not in bibliography():
            raise LookupError(f"{obj.__name__}: references.bib has no entry {key!r}; add it")
    return [bibliography()[key] for key in keys]
