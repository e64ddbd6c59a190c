"""Make the simulated users of an environment from a click model, an instance, or the parameters of
a model.
"""

from __future__ import annotations

import inspect
import itertools
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


def forms_of(model: type[ClickModel]) -> tuple[str, ...]:
    """The forms of a click model's ids: candidates that change need an attraction."""
    return tuple(form for form in FORMS if form != "Contextual" or "attraction" in model.shapes)


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

    @classmethod
    def of(cls, asked: Asked) -> Problem:
        """What the arguments of `ClickEnv` describe.

        Raises:
            ValueError, TypeError: on arguments that do not fit together, and on a bad instance or
                parameter.
        """
        model, form, instance, n_positions, parameters = asked
        check_choice("form", form, FORMS)
        if isinstance(model, Users):
            if (
                extras := ["form"] * bool(form)
                + ["instance"] * (instance is not None)
                + list(parameters)
            ):
                raise TypeError(
                    f"the model is given, so {', '.join(extras)} cannot be; or name the model, as {model.kind!r}"
                )
            return cls(model if n_positions is None else model.with_positions(n_positions))
        click_model = _click_model(model, form)
        kinds = {f"{name} of {click_model.name()}": users_class(name) for name in FORMS[form]} or {
            click_model.name(): click_model
        }
        if parameters:
            # Contextual users whose attractions are given are not linear.
            kind = list(kinds)["attraction" in parameters and len(kinds) > 1]
            return cls(_from_parameters(kinds[kind], click_model, kind, asked))
        return cls._of_instance(kinds, click_model, asked)

    @classmethod
    def _of_instance(
        cls, kinds: Mapping[str, type[Users]], click_model: type[ClickModel], asked: Asked
    ) -> Problem:
        _, form, instance, n_positions, _ = asked
        if isinstance(instance, list | tuple):
            raise TypeError(
                "instance is a list: an environment has one instance; gym.make_vec distributes several over its streams"
            )
        name = cls.default_instance(form, click_model) if instance is None else instance
        if name is None:
            names = ", ".join(_names(next(iter(kinds.values()))))
            raise ValueError(
                f"a {click_model.__name__} has no default instance: give instance=... or the parameters {names}"
            )
        chosen = load_instance(name)
        kind = next(filter(chosen.models.__contains__, kinds), next(iter(kinds)))
        initial_ranking = chosen.initial_ranking if form != "Contextual" else None
        return cls(chosen.model(kind, n_positions), chosen.name, initial_ranking)

    @classmethod
    def each(cls, asked: Asked) -> list[Problem]:
        """What the arguments of `ClickVectorEnv` describe: a problem for each instance, all of one
        size.

        Raises:
            ValueError, TypeError: as `of`; on an empty list, and on instances of different sizes,
                naming two.
        """
        if not isinstance(asked.instance, list | tuple):
            return [cls.of(asked)]
        if asked.parameters:
            raise ValueError(
                f"give either instances or the parameters {', '.join(asked.parameters)}, not both"
            )
        problems = []
        for number, one in enumerate(asked.instance):
            try:
                problems.append(cls.of(asked._replace(instance=one)))
            except (TypeError, ValueError) as error:
                raise type(error)(f"instance[{number}]: {error}") from None
        if not problems:
            raise ValueError("instance is an empty list; expected at least one instance")
        sizes = [
            f"{each.model.n_items} items and {each.model.n_positions} positions"
            for each in problems
        ]
        for problem, size in zip(problems, sizes, strict=True):
            if size != sizes[0]:
                named = f"{problems[0].instance} has {sizes[0]} and {problem.instance} has {size}"
                raise ValueError(
                    f"the instances of one vector environment must have one size, but {named}"
                )
        return problems

    @staticmethod
    def default_instance(form: str, model: type[ClickModel]) -> str | None:
        """The instance of a click model's form when none is asked for; None if one must be."""
        return (
            None
            if model.default_instance is None
            else DEFAULT_INSTANCES.get(form, model.default_instance)
        )


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


def _parameters(users: type[Users]) -> dict[str, inspect.Parameter]:
    """The constructor's arguments; those of the click model's items, which contextual users take
    too, not among them.
    """
    named = inspect.signature(users).parameters.items()
    return {
        name: parameter
        for name, parameter in named
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    }


def _names(users: type[Users]) -> list[str]:
    """The parameters by which users are given."""
    return [name for name in _parameters(users) if name != "n_positions"]


def _required(users: type[Users]) -> list[str]:
    return [
        name
        for name, parameter in _parameters(users).items()
        if parameter.default is parameter.empty
    ]


OF_ENVIRONMENT = ("instance", "n_positions", "reward", "cutoff")


def _why_unknown(users: type[Users], form: str, name: str, value: Any, names: Sequence[str]) -> str:
    if name != "n_items":
        return unknown("parameter", name, [*OF_ENVIRONMENT, *names])
    family = f"{users.default_instance if users.session_kernel else FAMILIES[form]}:n_items={short(value)}"
    return (
        f"{users.__name__} has no argument n_items; the number of items follows from {names[0]}, or from the instance, "
        f"as instance={family!r}"
    )


def _from_parameters(
    users: type[Users], click_model: type[ClickModel], kind: str, asked: Asked
) -> Users:
    _, form, instance, n_positions, parameters = asked
    signature = _parameters(users)
    names = _names(users)
    if len(signature) < len(inspect.signature(users).parameters):
        names += click_model.item_parameters()[1:]
    for name in itertools.filterfalse(names.__contains__, parameters):
        raise TypeError(_why_unknown(users, form, name, parameters[name], names))
    if instance is not None:
        raise ValueError(f"give either an instance or the parameters {', '.join(names)}, not both")
    arguments = dict(parameters)
    if "n_positions" in signature:
        arguments["n_positions"] = n_positions
    if missing := [name for name in _required(users) if arguments.get(name) is None]:
        raise ValueError(
            f"{users.__name__} also needs {', '.join(missing)}, since its parameters are given"
        )
    model = users(**arguments)
    if n_positions is not None:
        model = model.with_positions(check_positions(n_positions, model.n_items, model.n_positions))
    if model.kind != kind:
        raise ValueError(f"the parameters make a {model.kind}; expected a {kind}")
    return model
