"""``clickgym show``: the description of an agent, an environment, an instance, a metric or a study."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from ...core.console import output
from ...core.lab import has_lab, lab
from ...core.terminal import Column, print_table, say
from ...envs import CONTEXTUAL, ENVIRONMENTS, MEMORY, list_instances, load_instance
from ..describe import Description, describe_agent, describe_environment, describe_metric
from ..labels import PUBLISHED
from ..metrics import DERIVED, LEARNED, METRICS
from ..theory.assumptions import Finding
from ..theory.describe import BestList, InstanceDescription, ModelDescription, describe_instance
from .names import everything


def show(
    name: Annotated[str, typer.Argument(
        metavar="NAME", show_default=False, autocompletion=everything,
        help="A name that [bold]clickgym list[/] prints; or your own agent (module:Class), environment (module:Id), JSON file.",
    )],
    positions: Annotated[int | None, typer.Option(
        metavar="K", help="Length of the lists of an instance.", show_default="the instance's",
    )] = None,
) -> None:  # fmt: skip
    """Describe an agent, environment, instance, metric or study: its parameters, its paper and what it needs.

    [bold]Examples[/]

      clickgym show TopRank

      clickgym show PBMRank-v0

      clickgym show yandex-990

      clickgym show uniform:n_items=20,n_positions=5,seed=1 --positions 3

    For an instance, the command prints its click models, their best lists, and which assumptions of the papers hold. The proof
    for BatchRank needs the assumptions of Zoghi 2017, the proofs for TopRank and BubbleRank those of Li 2019a. If an assumption
    fails, the command prints two lists as a counterexample; the algorithm may then learn a list that is not the best.
    """
    console = output()
    described = _describer(name)
    if described is not None:
        if positions is not None:
            raise ValueError(f"--positions is only for instances, and {name} is not an instance")
        return _print(console, described(name))
    _print_instance(console, describe_instance(load_instance(name), positions))


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
    studies = {"study": (lab("studies").STUDIES, lab("studies.describe").describe_study)} if has_lab() else {}
    return {
        "agent": (PUBLISHED, describe_agent),
        "environment": (ENVIRONMENTS | CONTEXTUAL | MEMORY, describe_environment),
        "metric": (METRICS | DERIVED | LEARNED, describe_metric),
        **studies,
    }


def _unknown(name: str) -> str:
    """What was meant, of whatever kind."""
    kind_of = {each: kind for kind, (names, _) in _kinds().items() for each in names}
    kind_of |= dict.fromkeys(list_instances(), "instance")
    by_lower = {each.lower(): each for each in kind_of}
    users = [f"{name.lower()}rank-v0"] if f"{name.lower()}rank-v0" in by_lower else []  # PBM is what PBMRank-v0 simulates
    close = users or difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    hint = f"; did you mean the {kind_of[by_lower[close[0]]]} {by_lower[close[0]]!r}?" if close else ""
    return f"there is no agent, environment, instance, metric or study {name!r}{hint} (clickgym list names them all)"


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


def _print_instance(console: Console, description: InstanceDescription) -> None:
    instance, labels = description.instance, description.labels
    say(console, instance.name, "bold")
    facts = {
        "about": instance.description,
        "origin": instance.origin,
        "sizes": f"{instance.n_items} items, {description.n_positions} positions",
        "labels": _items(range(instance.n_items), labels) if labels else "",
        "in production": "" if instance.initial_ranking is None else _items(instance.initial_ranking),
    }
    rows = [(name, text) for name, text in facts.items() if text]
    print_table(console, _named("", ""), rows, headings=False, indent=2)
    for model in description.models:
        console.print()
        _print_model(console, model, description)


def _print_model(console: Console, model: ModelDescription, description: InstanceDescription) -> None:
    say(console, model.kind, "bold underline")
    print_table(console, _named("", ""), list(model.parameters.items()), headings=False, indent=2)
    if model.best:
        production = [] if description.instance.initial_ranking is None else ["in production"]
        rows = [_best(best, description.labels) for best in model.best]
        console.print()
        print_table(console, _named("reward", "best", *production, "best list"), rows, indent=2)
    if model.note:
        console.print()
        say(console, model.note)
    if model.findings:
        console.print()
        columns = _named("assumption", "", "statement, and where it fails most")
        print_table(console, columns, _verdicts(model.findings), indent=2)


def _best(best: BestList, labels: Sequence[str]) -> tuple[str, ...]:
    production = [] if best.production is None else [f"{best.production:.4f}"]
    value, items = ("?", best.note) if best.ranking is None else (f"{best.value:.4f}", _items(best.ranking, labels))
    return (best.reward, value, *production, items)


def _named(*headings: str) -> list[Column]:
    """Columns of which the last folds."""
    return [Column(heading, words=place == len(headings) - 1) for place, heading in enumerate(headings)]


def _verdicts(findings: Sequence[Finding]) -> list[tuple[str, Text, Text]]:
    """The rows of findings, one for each statement: both papers may assume the same."""
    rows: dict[str, tuple[str, Text, Text]] = {}
    for finding in findings:
        names = "\n".join(other.name for other in findings if other.statement == finding.statement)
        verdict = Text("holds", "green") if finding.holds else Text("FAILS", "bold red")
        # Its two numbers one below the other, and no line end within a list.
        numbers = re.sub(r"(?<=\d), (?=\d)", ",", finding.counterexample).replace(" but ", "\nbut ")
        statement = Text(finding.statement).append("" if finding.holds else f"\n{numbers}", "italic")
        rows[finding.statement] = names, verdict, statement
    return list(rows.values())


def _items(items: Iterable[int], labels: Sequence[str] = ()) -> str:
    return ", ".join(f"{item} ({labels[item]})" for item in items) if labels else " ".join(map(str, items))
