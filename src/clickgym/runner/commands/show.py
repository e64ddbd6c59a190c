"""``clickgym show``: the docstring of an agent, an environment or a metric, and what is known of an
instance.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from ...core.console import output
from ...core.formats import visible
from ...core.terminal import say
from ...envs import CONTEXTUAL, ENVIRONMENTS, MEMORY, Instance, list_instances, load_instance
from ..labels import PUBLISHED
from ..make import agent_class, place_of
from ..metrics import DERIVED, METRICS
from .names import everything


def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            show_default=False,
            autocompletion=everything,
            help="A name that [bold]clickgym list[/] prints; or your own agent (module:Class), environment (module:Id), JSON file.",
        ),
    ],
) -> None:
    """Print the docstring of an agent, environment or metric, or what is known of an instance.

    [bold]Examples[/]

      clickgym show TopRank

      clickgym show PBMRank-v0

      clickgym show yandex-990
    """
    console = output()
    text = text_of(name)
    say(console, name, "bold")
    console.print(visible(text, keep="\n"), markup=False, highlight=False)


def text_of(name: str) -> str:
    """What is written of a name.

    Raises:
        ValueError: there is no such name.
    """
    if name in PUBLISHED:
        return _documented(PUBLISHED[name])
    if name in ENVIRONMENTS | CONTEXTUAL | MEMORY:
        return _of_environment(name)
    if name in METRICS:
        return METRICS[name].description
    if name in DERIVED:
        return _documented(DERIVED[name])
    base = name.partition(":")[0]
    if name.endswith(".json") or base in list_instances():
        return _of_instance(load_instance(name))
    if base in _names() or not re.fullmatch(r"[\w.]+:[\w.-]+", name):
        raise ValueError(_unknown(base))
    return (
        _of_environment(name) if re.search(r"-v\d+$", name) else _documented(agent_class(name))
    )  # your own


def _documented(thing: Any) -> str:
    return inspect.getdoc(thing) or "It has no docstring."


def _of_environment(env_id: str) -> str:
    """What an environment is, and the docstring of its users."""
    key = getattr(
        place_of(env_id).maker, "id", ""
    )  # which imports a module first, so that it registers the id
    environment = (ENVIRONMENTS | CONTEXTUAL | MEMORY).get(key)
    if environment is None:
        raise ValueError(
            f"{env_id} is no environment that clickgym.register_click_model made, and only these are shown"
        )
    return f"{environment.about}\n\n{_documented(environment.users)}"


def _of_instance(instance: Instance) -> str:
    production = instance.initial_ranking
    lines = {
        "about": instance.description,
        "origin": instance.origin,
        "sizes": f"{instance.n_items} items, {instance.n_positions} positions",
        "click models": ", ".join(instance.models),
        "in production": "" if production is None else " ".join(map(str, production)),
    }
    return "\n".join(f"{what}: {text}" for what, text in lines.items() if text)


def _names() -> dict[str, str]:
    """All names, each with its kind."""
    kinds: dict[str, Iterable[str]] = {
        "agent": PUBLISHED,
        "environment": ENVIRONMENTS | CONTEXTUAL | MEMORY,
        "metric": METRICS | DERIVED,
        "instance": list_instances(),
    }
    return {name: kind for kind, names in kinds.items() for name in names}


def _unknown(name: str) -> str:
    """What was meant, of whatever kind."""
    kind_of = _names()
    by_lower = {each.lower(): each for each in kind_of}
    users = (
        [f"{name.lower()}rank-v0"] if f"{name.lower()}rank-v0" in by_lower else []
    )  # PBM is what PBMRank-v0 simulates
    close = users or difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    hint = (
        f"; did you mean the {kind_of[by_lower[close[0]]]} {by_lower[close[0]]!r}?" if close else ""
    )
    return f"there is no agent, environment, instance or metric {name!r}{hint} (clickgym list names them all)"
