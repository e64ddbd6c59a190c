"""Functions that turn the arguments of an environment into its simulated users."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.messages import suggestions
from ..core.specs import format_spec, parse_spec
from .instances.instance import FAMILIES, AnyInstance, check_base_name, load_instance
from .simulation.user_model import UserModel, user_model_class
from .users.contextual import ContextualModel
from .users.piecewise_stationary import PiecewiseStationaryModel
from .users.queries import QueryUsers

FORMS: dict[str, type[UserModel] | None] = {
    "": None,
    "NonStationary": PiecewiseStationaryModel,
    "Contextual": ContextualModel,
    "Queries": QueryUsers,
}
"""The prefixes of environment ids, each with the class of users that contains the click model; None
means that the users are the click model itself.
"""

EXAMPLES = {
    "": "'uniform'",
    "NonStationary": "'abrupt'",
    "Contextual": "'linear:query=NAME.json', where NAME.json is an instance of this click model",
    "Queries": "'queries'",
}
"""For each of the `FORMS`, an instance that also has users of the user's own click model."""

ENV_ARGUMENTS = ("instance", "n_positions", "reward", "cutoff", "reference", "render_mode")
"""The arguments that every environment accepts, whatever its users; messages list them."""


class ResolvedModel(NamedTuple):
    """The users of an environment, with the name and the production list of their instance."""

    model: UserModel
    instance: str = "custom"
    """The name of the instance, or of users that come from parameters; by default ``"custom"``."""
    initial_ranking: NDArray[np.int64] | None = None
    """All L items in the order of the production list; None if there is no production list."""
    feature_scale: float = 1.0
    """The number by which the features in the instance's file were divided; by default 1."""


def resolve_model(
    model: UserModel | str,
    form: str = "",
    instance: AnyInstance | None = None,
    n_positions: int | None = None,
    name: str | None = None,
    **parameters: Any,
) -> ResolvedModel:
    """Return the users that the arguments of `ClickEnv` describe.

    Raises:
        ValueError, TypeError: the arguments contradict each other, or the instance or a parameter
            is invalid.
    """
    if isinstance(model, UserModel):
        if form or instance is not None or parameters:
            names = [*parameters, "instance", "form"]
            raise TypeError(
                f"got an unexpected keyword argument {names[0]!r}: the model is an object "
                f"that already has its parameters; leave {names[0]} out"
            )
        return _resolve_own(model, n_positions, name)
    click_model: Any = user_model_class(model, imports=True)
    if form not in forms_of(click_model):
        part = {"Contextual": "the parameter attraction", "Queries": "a parameter"}
        raise ValueError(
            f"{click_model.__name__} has no {form} environment, which requires a click model "
            f"with {part.get(form, 'a short name')}"
        )
    model_class: Any = FORMS[form] or click_model
    kind = click_model.name() if form == "" else f"{model_class.name()} of {click_model.name()}"
    if parameters:
        shapes = getattr(click_model, "shapes", ())
        names = [*signature(model_class).parameters, *shapes]
        _check_parameters(parameters, names, instance)
        if instance is not None:
            given, hint = ", ".join(parameters), _instance_hint(instance, parameters)
            raise ValueError(f"pass either an instance or {given}, not both{hint}")
        if n_positions is not None and "n_positions" in signature(model_class).parameters:
            parameters["n_positions"] = n_positions
        _check_complete(parameters, model_class)
        users = model_class(**parameters)
        if users.kind != kind:
            raise ValueError(f"the parameters describe a {users.kind}; expected a {kind}")
        return _resolve_own(users, n_positions, name)
    if name is not None:
        raise ValueError(f"name is {name!r}; leave name out, because an instance has its own name")
    if instance is None:
        instance = default_instance(form, click_model)
    if instance is None:
        env = f"{form}{click_model.short}Rank-v0" if click_model.short else kind
        raise ValueError(
            f"{env} has no default instance: pass instance=... (--instances), for your own click "
            f"model such as {EXAMPLES[form]}, or the parameters"
        )
    if isinstance(instance, str) and not instance.endswith(".json"):
        check_base_name(instance, kind)
    loaded_instance = load_instance(instance)
    if form and kind not in loaded_instance.models:
        raise ValueError(
            f"the instance {loaded_instance.name!r} has no {kind}; it has "
            f"{', '.join(loaded_instance.models)}; use the environment of these users, or an "
            f"instance such as {EXAMPLES[form]}"
        )
    # Candidates change from session to session, so they have no production list.
    initial_ranking = None if form == "Contextual" else loaded_instance.initial_ranking
    scale = float(loaded_instance.estimation.get("scale", 1.0))
    return ResolvedModel(
        loaded_instance.model(kind, n_positions), loaded_instance.name, initial_ranking, scale
    )


def _check_parameters(
    parameters: Mapping[str, Any], names: Sequence[str], instance: object
) -> None:
    """Check that each parameter's name is one of ``names``, which the users accept; the TypeError
    suggests a similar name, the instance to which the parameter belongs, and where Gymnasium takes
    the autoreset mode.
    """
    for parameter, value in parameters.items():
        if parameter in names:
            continue
        if parameter == "n_items":
            hint = _instance_hint(instance or "uniform", {parameter: value})
            raise TypeError(f"n_items is determined by the instance or the parameters{hint}")
        # TorchRL searches the message for Python's words, and then tries without the argument.
        words = f"unexpected keyword argument {parameter!r}"
        known = dict.fromkeys([*names, *ENV_ARGUMENTS, "max_episode_steps"])
        known.pop(parameter, None)  # max_episode_steps itself, which only gym.make takes
        words += suggestions(parameter, known)
        if parameter == "autoreset_mode":
            words += "; with a vectorization_mode, write vector_kwargs={'autoreset_mode': ...}"
        raise TypeError(words + _instance_hint(instance, {parameter: value}))


def _instance_hint(instance: object, parameters: Mapping[str, Any]) -> str:
    """Return a hint that shows how to write the parameters that may be meant for an instance:
    numbers or texts with the name of an argument of some family. The text is empty without any.
    """
    names = {
        "shuffle",
        *(name for make in FAMILIES.values() for name in signature(make).parameters),
    }
    meant = {
        name: value
        for name, value in parameters.items()
        if name in names and isinstance(value, str | int | float)
    }
    if not meant:
        return ""
    name, arguments = parse_spec(instance) if isinstance(instance, str) else ("NAME", {})
    spec, given = format_spec(name, {**arguments, **meant}), " and ".join(meant)
    return f'; if {given} belongs to the instance, write instance="{spec}" (--instances {spec})'


def _check_complete(parameters: Mapping[str, Any], model_class: Any) -> None:
    """Check that no parameter without a default is missing; the TypeError names all of them."""
    arguments = signature(model_class).parameters.values()
    required = [
        argument.name
        for argument in arguments
        if argument.default is argument.empty
        and argument.kind not in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD)
    ]
    if missing := [name for name in required if name not in parameters]:
        raise TypeError(
            f"{model_class.__name__} requires {', '.join(required)}; missing: {', '.join(missing)}"
            f"{_instance_hint(None, parameters)}"
        )


def _resolve_own(model: UserModel, n_positions: int | None, name: str | None) -> ResolvedModel:
    """Return users that do not come from an instance. If they have a name, a `digest` of their
    parameters is appended to the name, to distinguish different users with the same name.
    """
    model = model if n_positions is None else model.with_positions(n_positions)
    if name is None:
        return ResolvedModel(model)
    return ResolvedModel(model, f"{name} {digest(model.to_dict())}")


def digest(description: Any) -> str:
    """Return six hexadecimal digits that identify a description of users."""
    return sha256(json.dumps(description, default=int).encode()).hexdigest()[:6]


def forms_of(model: Any) -> tuple[str, ...]:
    """Return the keys of `FORMS` for which a class of users has environments.

    Only click models have environments with a prefix. ``"Contextual"`` requires that the click
    model has an attraction, and ``"Queries"`` requires that it has parameters.
    """
    if not model.short:
        return ("",)
    needs = {"Contextual": "attraction" in model.shapes, "Queries": bool(model.shapes)}
    return tuple(form for form in FORMS if needs.get(form, True))


def default_instance(form: str, model: type[UserModel]) -> str | None:
    """Return the default instance of a click model in a form; None if the model has no default."""
    return model.default_instance and (FORMS[form] or model).default_instance
