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

MEASURES = {
    "regret": "what the best list of each session is expected to earn, minus what the list shown "
    "is, summed over sessions; exact, by the users' model (of a stateful user: the return lost)",
    "reward": "what users gave: clicks, or with reward=any_click sessions with a click; its mean "
    "over sessions",
}
"""Of every run, beside metrics."""
OF_QUERIES = """An observation shows the clicks of one session, and nothing of those before it.
So a policy without memory cannot learn from it which items the users of the query like.
The wrapper clickgym.envs.EpisodeCounts shows what was counted in the episode."""
SYMBOLS = {"prod": "∏", "sum": "∑", "mid": "|", "top": "⊤"}
"""The commands of LaTeX in docstrings that are no words."""


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
    ids, instances = ENVIRONMENTS, list_instances()
    if name in MEASURES:
        return MEASURES[name]
    if name in METRICS or name.partition("@")[0] in AT_K:
        return metric_of(name).description
    if name in FAMILIES:
        arguments = inspect.signature(FAMILIES[name]).parameters.values()
        defaults = ",".join(f"{argument.name}={argument.default}" for argument in arguments)
        return f"{load_instance(name).description}\n{':'.join(filter(None, (name, defaults)))}"
    if name.endswith(".json") or name.partition(":")[0] in instances:
        instance = load_instance(name)
        return instance.description or repr(instance)
    if name in ids or re.fullmatch(r"[\w.]+:[\w.-]+-v\d+", name):
        return _of_environment(name)
    if name in AGENTS or re.fullmatch(r"[\w.]+:[\w.]+", name):
        agent = agent_recipe(name)[0]
        return _documented(agent) + _defaults(agent)
    raise ValueError(unknown("name", name, [*AGENTS, *ids, *instances, *MEASURES, *METRICS]))


def _documented(thing: Any) -> str:
    return inspect.getdoc(thing) or "It has no docstring."


def _defaults(agent: Any) -> str:
    """The hyper-parameters of an algorithm of a library, as `Learner` has them; else nothing."""
    parts = {
        "Defaults": getattr(agent, "defaults", {}),
        "Where items have features": getattr(agent, "with_features", {}),
    }
    texts = {
        name: ", ".join(f"{key}={value}" for key, value in values.items())
        for name, values in parts.items()
    }
    return "".join(f"\n\n{name}:\n    {text}" for name, text in texts.items() if text)


def _of_environment(env_id: str) -> str:
    """What an environment is, and the docstring of its users."""
    maker, _ = env_recipe(env_id)  # which imports a module first, so that it registers the id
    environment = ENVIRONMENTS.get(getattr(maker, "id", ""))
    if environment is None:
        raise ValueError(f"{env_id} has no click model of clickgym, whose docstring could be shown")
    text = re.sub(r"\$\$(.+?)\$\$", _formula, _documented(environment.users), flags=re.DOTALL)
    about = environment.about
    if environment.form == "Queries":
        about += f"\n\n{OF_QUERIES}"
    return f"{about}\n\n{text}" if environment.form else text


def _formula(found: re.Match[str]) -> str:
    """A formula between dollars as plain text."""
    plain = re.sub(r"\\text\{(.*?) ?\}", r"\1", found[1])
    return re.sub(r"\\([a-z]+)", lambda command: SYMBOLS.get(command[1], command[1]), plain)
