"""``clickgym show``: the description of an agent, an environment, an instance or a metric."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from typing import Annotated

import typer
from rich.console import Console

from ...core.console import output
from ...core.terminal import Column, print_table, say
from ...envs import CONTEXTUAL, ENVIRONMENTS, MEMORY, Instance, list_instances, load_instance
from ..describe import Description, describe_agent, describe_environment, describe_metric
from ..labels import PUBLISHED
from ..metrics import DERIVED, METRICS
from .names import everything


def show(
    name: Annotated[str, typer.Argument(
        metavar="NAME", show_default=False, autocompletion=everything,
        help="A name that [bold]clickgym list[/] prints; or your own agent (module:Class), environment (module:Id), JSON file.",
    )],
) -> None:  # fmt: skip
    """Describe an agent, environment, instance or metric: its parameters, its paper and what it needs.

    [bold]Examples[/]

      clickgym show TopRank

      clickgym show PBMRank-v0

      clickgym show yandex-990
    """
    console = output()
    described = _describer(name)
    if described is not None:
        return _print(console, described(name))
    _print_instance(console, load_instance(name))


def _describer(name: str) -> Callable[[str], Description] | None:
    """What describes a name; nothing for an instance."""
    described = {each: describe for names, describe in _kinds().values() for each in names}
    base = name.partition(":")[0]
    if name in described or name.endswith(".json") or base in list_instances():
        return described.get(name)
    if base in described or not re.fullmatch(r"[\w.]+:[\w.-]+", name):
        raise ValueError(_unknown(base))
    return describe_environment if re.search(r"-v\d+$", name) else describe_agent  # one of your own


def _kinds() -> dict[str, tuple[Iterable[str], Callable[[str], Description]]]:
    """What is described by its name alone."""
    return {
        "agent": (PUBLISHED, describe_agent),
        "environment": (ENVIRONMENTS | CONTEXTUAL | MEMORY, describe_environment),
        "metric": (METRICS | DERIVED, describe_metric),
    }


def _unknown(name: str) -> str:
    """What was meant, of whatever kind."""
    kind_of = {each: kind for kind, (names, _) in _kinds().items() for each in names}
    kind_of |= dict.fromkeys(list_instances(), "instance")
    by_lower = {each.lower(): each for each in kind_of}
    users = [f"{name.lower()}rank-v0"] if f"{name.lower()}rank-v0" in by_lower else []  # PBM is what PBMRank-v0 simulates
    close = users or difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    hint = f"; did you mean the {kind_of[by_lower[close[0]]]} {by_lower[close[0]]!r}?" if close else ""
    return f"there is no agent, environment, instance or metric {name!r}{hint} (clickgym list names them all)"


def _print(console: Console, described: Description) -> None:
    say(console, f"{described.name} ({described.kind})", "bold")
    rows = [("about", described.about), *described.facts.items()]
    print_table(console, _named("", ""), rows, headings=False, indent=2)
    for table in described.tables:
        console.print()
        columns = [Column(heading, words=place > 0) for place, heading in enumerate(table.headings)]
        if any(len(row[0]) > 40 for row in table.rows):  # sentences, not names
            columns[0] = Column(table.headings[0], words=True)
        print_table(console, columns, table.rows, title=table.title, indent=2)


def _print_instance(console: Console, instance: Instance) -> None:
    say(console, instance.name, "bold")
    production = instance.initial_ranking
    facts = {
        "about": instance.description,
        "origin": instance.origin,
        "sizes": f"{instance.n_items} items, {instance.n_positions} positions",
        "click models": ", ".join(instance.models),
        "in production": "" if production is None else " ".join(map(str, production)),
    }
    rows = [(name, text) for name, text in facts.items() if text]
    print_table(console, _named("", ""), rows, headings=False, indent=2)


def _named(*headings: str) -> list[Column]:
    """Columns of which the last folds."""
    return [Column(heading, words=place == len(headings) - 1) for place, heading in enumerate(headings)]
