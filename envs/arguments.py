"""Arguments of an environment: the simulated users that they describe."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_choice, short, unexpected
from .click_model import ClickModel
from .contextual.labelled import LabelledModel
from .contextual.linear import LinearModel
from .instances.instance import AnyInstance, load_instance
from .piecewise_stationary import PiecewiseStationaryModel
from .queries import QueryUsers
from .users import Users, build, users_class


class Form(NamedTuple):
    """A kind of environment of a click model, by the prefix of its id."""

    classes: tuple[type[Users], ...]
    """The classes of its users; none: the click model itself. Of two classes, the parameter
    ``attraction``, or an instance without the first, asks for the second.
    """
    family: str
    """A family of instances of any size."""
    instance: str | None
    """The default instance, if the click model has one; None: that of the click model."""
    about: str = ""
    """What the form adds to the title of a click model."""
    episode: int | None = 1000
    """The number of sessions after which an id truncates an episode; None: it does not."""


FORMS = {
    "": Form((), "uniform", None),
    "NonStationary": Form(
        (PiecewiseStationaryModel,),
        "abrupt",
        "li2019-switching",
        "with parameters that change abruptly at given steps",
        100_000,
    ),
    "Contextual": Form(
        (LinearModel, LabelledModel), "linear", "linear", "with new candidates in every session"
    ),
    "Queries": Form(
        (QueryUsers,), "queries", "queries", "with another query in every episode", None
    ),
}
"""The forms by the prefixes of ids."""

OF_ENVIRONMENT = ("instance", "n_positions", "reward", "cutoff", "reference", "render_mode")
"""The keyword arguments of every environment, for messages."""


class Described(NamedTuple):
    """The users of an environment, with name and production list of their instance."""

    users: Users
    instance: str = "custom"
    """The name of the instance."""
    initial_ranking: NDArray[np.int64] | None = None
    """All L items in the order of the production list, if the instance has one."""
    feature_scale: float = 1.0
    """What the features of the instance's file were divided by; 1 if they were not."""


def described_users(
    model: Users | str,
    form: str,
    instance: AnyInstance | None,
    n_positions: int | None,
    parameters: Mapping[str, Any],
) -> Described:
    """Return the users that the arguments of `ClickEnv` describe.

    Raises:
        ValueError, TypeError: arguments contradict one another, or an instance or parameter is bad.
    """
    check_choice("form", form, FORMS)
    if isinstance(model, Users):
        names = ["form"] * bool(form) + ["instance"] * (instance is not None) + [*parameters]
        if names:
            raise TypeError(
                f"__init__() got an unexpected keyword argument {names[0]!r}: the model is an "
                f"object; expected no {', '.join(names)}, or the name of a model, such as "
                f"{model.kind!r}"
            )
        return Described(model if n_positions is None else model.with_positions(n_positions))
    if not isinstance(model, str):
        raise TypeError(f"model is a {type(model).__name__}; expected a ClickModel or its name")
    click_model: Any = users_class(model, imports=True)
    if form and form not in forms_of(click_model):
        raise ValueError(
            f"a {click_model.__name__} has no {form} environments: its items have no attraction"
        )
    if parameters:
        return _of_parameters(click_model, form, instance, n_positions, parameters)
    return _of_instance(click_model, form, instance, n_positions)


def _of_parameters(
    click_model: type[ClickModel],
    form: str,
    instance: AnyInstance | None,
    n_positions: int | None,
    parameters: Mapping[str, Any],
) -> Described:
    classes = FORMS[form].classes or (click_model,)
    users = classes[-1 if "attraction" in parameters else 0]
    accepted = _names(users, click_model)
    for parameter, value in parameters.items():
        if parameter not in accepted:
            raise TypeError(_why_unknown(parameter, value, accepted, form, click_model))
    if instance is not None:
        raise ValueError(
            f"give either an instance or the parameters {', '.join(accepted)}, not both"
        )
    if n_positions is not None and "n_positions" in inspect.signature(users).parameters:
        parameters = {**parameters, "n_positions": n_positions}
    described = build(users, parameters)
    expected = _kind(users, click_model)
    if described.kind != expected:
        raise ValueError(f"the parameters make a {described.kind}; expected a {expected}")
    if n_positions not in (None, described.n_positions):
        described = described.with_positions(n_positions)
    return Described(described)


def _of_instance(
    click_model: type[ClickModel], form: str, instance: AnyInstance | None, n_positions: int | None
) -> Described:
    classes = FORMS[form].classes or (click_model,)
    chosen = instance if instance is not None else default_instance(form, click_model)
    if chosen is None:
        raise ValueError(
            f"a {click_model.__name__} has no default instance: give instance=... or the "
            f"parameters {', '.join(_names(classes[0], click_model))}"
        )
    loaded = load_instance(chosen)
    kinds = [_kind(users, click_model) for users in classes]
    kind = next((kind for kind in kinds if kind in loaded.models), kinds[0])
    # Candidates change from session to session: a production list would be of none of them.
    initial_ranking = None if form == "Contextual" else loaded.initial_ranking
    scale = float(loaded.estimation.get("scale", 1.0))
    return Described(loaded.model(kind, n_positions), loaded.name, initial_ranking, scale)


def _kind(users: type[Users], click_model: type[ClickModel]) -> str:
    """Return the name in instances of users of a class that are based on a click model."""
    if users is click_model:
        return click_model.name()
    return f"{users.name()} of {click_model.name()}"


def forms_of(model: Any) -> tuple[str, ...]:
    """Return the forms of the ids of users; the contextual form requires an attraction, and that of
    queries requires parameters.
    """
    if not model.has_forms:
        return ("",)
    needs = {"Contextual": "attraction" in model.shapes, "Queries": bool(model.shapes)}
    return tuple(form for form in FORMS if needs.get(form, True))


def default_instance(form: str, model: type[ClickModel]) -> str | None:
    """Return the default instance of a click model in a form; None if it has none."""
    if model.default_instance is None:
        return None
    return FORMS[form].instance or model.default_instance


def _names(users: type[Users], click_model: type[ClickModel]) -> list[str]:
    """Return the names of the users' parameters; those of contextual users replace the
    attraction.
    """
    signature = inspect.signature(users).parameters
    names = [name for name in signature if name not in ("n_positions", "others")]
    return names + click_model.item_parameters()[1:] if "others" in signature else names


def _why_unknown(
    name: str, value: Any, names: Sequence[str], form: str, click_model: type[ClickModel]
) -> str:
    if name != "n_items":
        return unexpected(name, [*OF_ENVIRONMENT, *names])
    family = FORMS[form].family if click_model.has_forms else click_model.default_instance
    return (
        f"__init__() got an unexpected keyword argument {name!r}: the number of items follows from "
        f"{names[0]}, or from the instance, such as instance={f'{family}:n_items={short(value)}'!r}"
    )
