"""``clickgym list``: the environments, instances, agents and metrics, with a line about each; and
``clickgym show``: one of them in detail.
"""

from __future__ import annotations

import inspect
import re
import sys
from typing import Annotated, Any

import typer

from ...agents import AGENTS
from ...core.checks import check_choice, unknown_message
from ...envs import ENVIRONMENTS, list_instances, load_instance
from ...envs.instances.instance import FAMILIES
from ..console import Column, output, print_table, say
from ..make import resolve_agent, resolve_env
from ..play.metrics import AT_K, METRICS, metric_of

WIDEST = 100
"""Characters of a line, even if the output is a file or a pipe."""


KINDS = ("environments", "instances", "agents", "metrics")


def list_(
    kinds: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KIND", help=f"What to list: {', '.join(KINDS)}; by default, all of them."
        ),
    ] = None,
) -> None:
    """List the environments, instances, agents and metrics.

    \b
    clickgym list agents
    clickgym list

    clickgym show NAME describes one of them in detail.
    """
    chosen = [_kind(word) for word in kinds or KINDS]
    console = output()
    console.width = min(console.width, WIDEST)
    for kind in chosen:
        columns, rows = _rows_of(kind)
        print_table(console, columns, rows, title=kind.capitalize(), headings=len(columns) > 2)
        console.print()


def _kind(word: str) -> str:
    """Return the kind whose name starts with a word, such as ``env``, ``envs`` or
    ``environment``.
    """
    beginning = word.rstrip("s")
    return next((kind for kind in KINDS if kind.startswith(beginning)), "") or check_choice(
        "kind", word, KINDS
    )


def _rows_of(kind: str) -> tuple[list[Column], list[list[str]]]:
    columns = [Column("name"), Column("about")]
    if kind == "environments":
        ids = ENVIRONMENTS
        return columns, [[name, environment.about] for name, environment in ids.items()]
    if kind == "instances":
        return columns, [[name, about] for name, about in list_instances().items()]
    if kind == "metrics":
        return columns, [[name, metric.description] for name, metric in METRICS.items()]
    columns = [Column("name"), *(Column(name) for name in ("made for", "requires"))]
    columns.append(Column("paper"))
    agents: dict[str, Any] = dict(AGENTS)
    return columns, [
        [name, agent.click_models, ", ".join(getattr(agent, "requires", {})) or "–", agent.paper]
        for name, agent in agents.items()
    ]


def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            show_default=False,
            help="A name that clickgym list prints, or your own agent (module:Class), environment "
            "(module:Id) or JSON file.",
        ),
    ],
) -> None:
    """Explain an agent, an environment, an instance or a metric in detail.

    \b
    clickgym show TopRank
    clickgym show PBMRank-v0
    clickgym show yandex-990
    """
    console = output()
    text = text_of(name)
    say(console, name, "bold")
    console.print(text, markup=False, highlight=False)


def text_of(name: str) -> str:
    """The description of a name.

    Raises:
        ValueError: there is no such name.
    """
    if name in METRICS or name.partition("@")[0] in AT_K:
        return metric_of(name).description
    if name in FAMILIES:
        return f"{load_instance(name).description}\n{_arguments_of(FAMILIES[name])}"
    if name.endswith(".json") or name.partition(":")[0] in list_instances():
        instance = load_instance(name)
        return instance.description or repr(instance)
    if name in ENVIRONMENTS or re.fullmatch(r"[\w.]+:[\w.-]+-v\d+", name):
        maker, _ = resolve_env(name)  # which imports a module first, so that it registers the id
        environment = ENVIRONMENTS.get(getattr(maker, "id", ""))
        if environment is None:
            raise ValueError(f"{name} has no click model of clickgym")
        return f"{environment.about}\n\n{_docstring_of(environment.model_class)}"
    if name in AGENTS or re.fullmatch(r"[\w.]+:[\w.]+", name):
        agent: Any = resolve_agent(name)[0]
        text = _docstring_of(agent)
        bases = [base for base in agent.__mro__ if f"that of `{base.__name__}`, where" in text]
        texts = [
            _arguments_of(agent),
            text,
            *(f"{base.__name__}\n{_docstring_of(base)}" for base in bases),
        ]
        settings = [getattr(agent, name, {}) for name in ("defaults", "with_features")]
        return "\n\n".join([*texts, *map(repr, filter(None, settings))])
    names = [*AGENTS, *ENVIRONMENTS, *list_instances(), *METRICS]
    raise ValueError(unknown_message("name", name, names))


def _docstring_of(thing: Any) -> str:
    """Return a docstring, or a line that says why there is none."""
    if sys.flags.optimize > 1:
        return "Python removed the docstrings: run it without -OO to read a description"
    return inspect.getdoc(thing) or ""


def _arguments_of(function: Any) -> str:
    """The names and defaults of the arguments of a function or class."""
    arguments = inspect.signature(function).parameters.values()
    listed = ", ".join(str(one.replace(annotation=one.empty)) for one in arguments)
    return f"Arguments: {listed}"
