"""``clickgym show``, which describes an agent, environment, instance or metric in detail."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from ...agents import AGENTS, Learner
from ...agents.rl.learner import discount_within
from ...core.messages import short_repr, suggestions
from ...core.user_modules import import_user_object
from ...envs import ENVIRONMENTS, ClickModel, Instance, list_instances, load_instance
from ...envs.instances.instance import FAMILIES
from ...measure.metrics import AT_K, METRICS, Metric, metric_of
from ..console import output_console, print_text
from ..make.agents import BY_NAME, resolve_agent
from ..make.environments import resolve_env
from ..make.labels import split_label


def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            show_default=False,
            help="A name from the output of clickgym list, or your own agent or click model "
            "(module:Class), metric (module:name), environment (module:Id) or instance (a JSON "
            "file).",
        ),
    ],
) -> None:
    """Describe one environment, instance, agent or metric in detail.

    \b
    clickgym show TopRank
    clickgym show PBMRank-v0
    clickgym show yandex-990
    """
    console = output_console()
    text = text_of(split_label(name)[1])
    print_text(console, name, "bold")
    console.print(text, markup=False, highlight=False)


def text_of(name: str) -> str:
    """Return the description of an agent, environment, instance or metric.

    Raises:
        ValueError: the name is unknown, or clickgym has no description for it.
    """
    if name in METRICS or name.partition("@")[0] in AT_K:
        return metric_of(name).description
    if name in FAMILIES:
        return f"{load_instance(name).description}\n{_arguments_of(FAMILIES[name])}"
    if name.endswith(".json") or name.partition(":")[0] in list_instances():
        return _description_of(load_instance(name))
    if name in ENVIRONMENTS or re.fullmatch(r"[\w.]+:[\w.-]+-v\d+", name):
        maker, _ = resolve_env(name)  # imports the module, which registers the id
        environment = ENVIRONMENTS.get(getattr(maker, "id", ""))
        if environment is None:
            raise ValueError(
                f"clickgym show cannot describe {name}, which is not an environment of clickgym"
            )
        return f"{environment.about}\n\n{_docstring_of(environment.model_class)}"
    if name in BY_NAME or re.fullmatch(r"[\w.]+:[\w.]+", name):
        own = (
            None
            if name in BY_NAME
            else import_user_object("agent, click model, metric or environment (Id-v0)", name)
        )
        if isinstance(own, Metric):
            return own.description
        if isinstance(own, type) and issubclass(own, ClickModel):
            return f"{_arguments_of(own)}\n\n{_docstring_of(own)}"
        agent: Any = resolve_agent(name)[0]
        text = _docstring_of(agent)
        bases = [base for base in agent.__mro__ if f"that of `{base.__name__}`, where" in text]
        texts = [
            _arguments_of(agent),
            text,
            *(f"{base.__name__}\n{_docstring_of(base)}" for base in bases),
        ]
        if isinstance(agent, type) and issubclass(agent, Learner):
            gamma = {"gamma": discount_within(agent.actions)}
            texts += [
                "Defaults (you can also set all other arguments of the library's class): "
                + _settings_text({**gamma, **agent.defaults}),
                "If users have a memory, gamma follows from how long they stay.",
            ]
            if agent.with_features:
                others = _settings_text(agent.with_features)
                texts.append(f"Other defaults if items have features: {others}")
        return "\n\n".join(texts)
    names = [*AGENTS, *ENVIRONMENTS, *list_instances(), *METRICS]
    raise ValueError(f"unknown name {name!r}{suggestions(name, names)}")


def _description_of(instance: Instance) -> str:
    """Return the description of an instance, the source of its parameters, a line for each fact
    about their estimation, and a line with the steps at which users change.
    """
    facts = [f"{name}: {_as_text(fact)}" for name, fact in instance.estimation.items()]
    changes = {short_repr([*model.starts[1:]]) for model in instance.models.values()} - {"[]"}
    facts += [f"users change after sessions {steps}" for steps in sorted(changes)]
    lines = [instance.description or repr(instance), instance.origin, *facts]
    return "\n".join(line for line in lines if line)


def _settings_text(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in settings.items())


def _as_text(fact: Any) -> str:
    """Return a value from JSON as text without brackets."""
    if isinstance(fact, Mapping):
        return ", ".join(f"{name} {_as_text(value)}" for name, value in fact.items())
    if isinstance(fact, list):
        return "; ".join(map(_as_text, fact))
    return "-inf" if fact is None else str(fact)  # a likelihood, because JSON has no infinity


def _docstring_of(obj: Any) -> str:
    """Return the docstring of an object, or a line that says why Python removed it."""
    if sys.flags.optimize > 1:
        return "Python was run with -OO and removed the docstrings; run it without -OO to read them"
    return inspect.getdoc(obj) or ""


def _arguments_of(function: Any) -> str:
    """Return a line with the names and defaults of the arguments of a function or class."""
    arguments = inspect.signature(function).parameters.values()
    text = ", ".join(str(parameter.replace(annotation=parameter.empty)) for parameter in arguments)
    return f"Arguments: {text}"
