"""``clickgym show``: the docstring of an agent or an environment, the description of an instance or
a metric.
"""

from __future__ import annotations

import inspect
import re
from typing import Annotated, Any

import typer

from ...agents import AGENTS
from ...core.checks import unknown
from ...envs import ENVIRONMENTS, list_instances, load_instance
from ...envs.instances.instance import FAMILIES
from ..console import output, say
from ..make import agent_recipe, env_recipe
from ..play.metrics import AT_K, METRICS, metric_of


def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            show_default=False,
            help="A name that clickgym list prints; or your own agent (module:Class), environment "
            "(module:Id) or JSON file.",
        ),
    ],
) -> None:
    """Print the docstring of an agent or environment, or what an instance or a metric is.

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
        arguments = inspect.signature(FAMILIES[name]).parameters.values()
        listed = ", ".join(str(one.replace(annotation=one.empty)) for one in arguments)
        return f"{load_instance(name).description}\nArguments: {listed}"
    if name.endswith(".json") or name.partition(":")[0] in list_instances():
        instance = load_instance(name)
        return instance.description or repr(instance)
    if name in ENVIRONMENTS or re.fullmatch(r"[\w.]+:[\w.-]+-v\d+", name):
        maker, _ = env_recipe(name)  # which imports a module first, so that it registers the id
        environment = ENVIRONMENTS.get(getattr(maker, "id", ""))
        if environment is None:
            raise ValueError(f"{name} has no click model of clickgym")
        return f"{environment.about}\n\n{inspect.getdoc(environment.users)}"
    if name in AGENTS or re.fullmatch(r"[\w.]+:[\w.]+", name):
        agent: Any = agent_recipe(name)[0]
        settings = [getattr(agent, name, {}) for name in ("defaults", "with_features")]
        return "\n\n".join([inspect.getdoc(agent) or "", *map(repr, filter(None, settings))])
    names = [*AGENTS, *ENVIRONMENTS, *list_instances(), *METRICS]
    raise ValueError(unknown("name", name, names))
