"""The simulated users of an environment, made from a model, an instance, or parameters."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_choice, check_positions, short, unknown
from .click_model import ClickModel
from .instances.instance import load_instance
from .users import Users, users_class

FORMS: dict[str, tuple[str, ...]] = {
    "": (),
    "NonStationary": ("PiecewiseStationaryModel",),
    "Contextual": ("LinearModel", "LabelledModel"),
}
"""The prefixes of an id, and the users that each makes of a click model: the first, unless instance
or parameters say otherwise.
"""

DEFAULT_INSTANCES = {"NonStationary": "li2019-switching", "Contextual": "linear"}
"""The instance of a form when none is asked for, if the click model has one; without a form it is
the click model's own.
"""

FAMILIES = {"": "uniform", "NonStationary": "abrupt", "Contextual": "linear"}
"""A family of instances of any size, for each form."""


OF_ENVIRONMENT = ("instance", "n_positions", "reward", "cutoff")
"""The named arguments of every environment, for messages."""


class Asked(NamedTuple):
    """The arguments of `ClickEnv` that say who the users are."""

    model: Users | str
    form: str
    instance: Any
    n_positions: int | None
    parameters: Mapping[str, Any]


class Problem(NamedTuple):
    """The users of an environment, and what their instance tells besides."""

    model: Users
    instance: str = "custom"
    """The name of the instance."""
    initial_ranking: NDArray[np.int64] | None = None
    """All L items in the order of the production list, where the instance knows one."""


def problem_of(asked: Asked) -> Problem:
    """What the arguments of `ClickEnv` describe.

    Raises:
        ValueError, TypeError: on arguments that do not fit together, and on a bad instance or
            parameter.
    """
    model, form, instance, n_positions, parameters = asked
    check_choice("form", form, FORMS)
    if isinstance(model, Users):
        extras = [*(["form"] if form else []), *(["instance"] if instance is not None else [])]
        if extras or parameters:
            names = ", ".join([*extras, *parameters])
            raise TypeError(
                f"the model is given, so {names} cannot be; or name the model, as {model.kind!r}"
            )
        return Problem(model if n_positions is None else model.with_positions(n_positions))
    click_model = _click_model(model, form)
    name = click_model.name()
    kinds = {f"{users} of {name}": users_class(users) for users in FORMS[form]}
    kinds = kinds or {name: click_model}
    if parameters:
        # Contextual users whose attractions are given are not linear.
        kind = list(kinds)[-1 if "attraction" in parameters else 0]
        return Problem(_from_parameters(kinds[kind], click_model, kind, asked))
    chosen = instance if instance is not None else default_instance(form, click_model)
    if chosen is None:
        names = ", ".join(_names(next(iter(kinds.values()))))
        raise ValueError(
            f"a {click_model.__name__} has no default instance: give instance=... or the "
            f"parameters {names}"
        )
    loaded = load_instance(chosen)
    kind = next((kind for kind in kinds if kind in loaded.models), next(iter(kinds)))
    initial_ranking = None if form == "Contextual" else loaded.initial_ranking
    return Problem(loaded.model(kind, n_positions), loaded.name, initial_ranking)


def forms_of(model: type[ClickModel]) -> tuple[str, ...]:
    """The forms of a click model's ids: candidates that change need an attraction."""
    return tuple(form for form in FORMS if form != "Contextual" or "attraction" in model.shapes)


def default_instance(form: str, model: type[ClickModel]) -> str | None:
    """The instance of a click model's form when none is asked for; None if one must be."""
    if model.default_instance is None:
        return None
    return DEFAULT_INSTANCES.get(form, model.default_instance)


def _click_model(name: Any, form: str) -> type[ClickModel]:
    """The class of click models of a name, which has environments of the form."""
    if not isinstance(name, str):
        raise TypeError(f"model must be a ClickModel or the name of one, got {type(name).__name__}")
    click_model: type[ClickModel] = users_class(name)  # type: ignore[assignment]
    if hasattr(click_model, "short") and form not in forms_of(click_model):
        raise ValueError(
            f"a {click_model.__name__} has no {form} environments: its items have no attraction"
        )
    return click_model


def _from_parameters(
    users: type[Users], click_model: type[ClickModel], kind: str, asked: Asked
) -> Users:
    """The users of a kind with the parameters that were asked for."""
    signature, names = inspect.signature(users).parameters, _names(users)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.values()):
        names += click_model.item_parameters()[1:]
    for name, value in asked.parameters.items():
        if name not in names:
            raise TypeError(_why_unknown(users, asked.form, name, value, names))
    if asked.instance is not None:
        raise ValueError(f"give either an instance or the parameters {', '.join(names)}, not both")
    arguments, n_positions = dict(asked.parameters), asked.n_positions
    if "n_positions" in signature and n_positions is not None:
        arguments["n_positions"] = n_positions
    missing = [
        name
        for name, parameter in signature.items()
        if parameter.default is parameter.empty
        and parameter.kind is not parameter.VAR_KEYWORD
        and arguments.get(name) is None
    ]
    if missing:
        raise ValueError(
            f"{users.__name__} also needs {', '.join(missing)}, since its parameters are given"
        )
    model = users(**arguments)
    if n_positions is not None:
        model = model.with_positions(check_positions(n_positions, model.n_items, model.n_positions))
    if model.kind != kind:
        raise ValueError(f"the parameters make a {model.kind}; expected a {kind}")
    return model


def _names(users: type[Users]) -> list[str]:
    """The parameters by which users are given, without those of the click model's items that
    contextual users take, too.
    """
    parameters = inspect.signature(users).parameters.values()
    named = [
        parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD
    ]
    return [name for name in named if name != "n_positions"]


def _why_unknown(users: type[Users], form: str, name: str, value: Any, names: Sequence[str]) -> str:
    if name != "n_items":
        return unknown("parameter", name, [*OF_ENVIRONMENT, *names])
    family = users.default_instance if users.session_kernel else FAMILIES[form]
    return (
        f"{users.__name__} has no argument n_items; the number of items follows from {names[0]}, "
        f"or from the instance, as instance={f'{family}:n_items={short(value)}'!r}"
    )
