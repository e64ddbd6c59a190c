"""Hyper-parameters of compiled agents, each declared once in the body of its class: default, check,
search range.

::

    class CascadeKLUCB(CascadeAgent):
        c: float = hyperparameter(default=3.0, check=at_least(0), search=Range(0.0, 6.0))
        horizon: int = hyperparameter(check=sessions())  # without a default: required

`CompiledAgent` makes the constructor, ``search_space`` and ``told`` of the class from its own
declarations and those of its bases. What a hyper-parameter means is in the docstring of the class.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..core.checks import check_at_least, check_between, check_choice, check_count, check_horizon
from .search_space import Range

REQUIRED = inspect.Parameter.empty
Check = Callable[..., Any]


@dataclass(frozen=True, repr=False)
class Hyperparameter:
    """A declared hyper-parameter, as `hyperparameter`; its ``repr`` says what can change an agent:
    default and check.
    """

    default: Any
    check: Check | None
    sizes: tuple[str, ...]
    search: Range | Sequence[Any] | None
    told: str | None
    doc: str | None
    annotation: Any = REQUIRED

    def checked(self, name: str, value: Any, agent: Any) -> Any:
        """Return the value as the agent keeps it; None is not checked where it is the default."""
        if self.check is None or (value is None and self.default is None):
            return value
        return self.check(name, value, *[getattr(agent, size) for size in self.sizes])

    def __repr__(self) -> str:
        check: Any = self.check
        name = getattr(getattr(check, "func", check), "__name__", check)
        return f"hyperparameter({self.default!r}, {name}, {getattr(check, 'keywords', {})})"


def hyperparameter(
    *,
    default: Any = REQUIRED,
    check: Check | None = None,
    sizes: Sequence[str] = (),
    search: Range | Sequence[Any] | None = None,
    told: str | None = None,
    doc: str | None = None,
) -> Any:
    """Declare a hyper-parameter: ``name: type = hyperparameter(...)`` in the body of a
    `CompiledAgent`.

    Args:
        default: without one, the hyper-parameter is required. If it is None, None is not checked.
        check: ``(name, value, *sizes)``, returns the value as the agent keeps it, or raises an
            error that names it; None takes every value.
        sizes: what else the check needs, names of attributes of the agent: ``"n_items"``,
        ``"n_positions"``, ``"n_states"``.
        search: a `Range` or the values that `clickgym.tune` may search.
        told: the source from which ``make_agent`` fills it in, as in `CompiledAgent.told`.
        doc: of a property of the same name; None: agents have no such property, and the value is in
            ``hyperparameters``.
    """
    return Hyperparameter(default, check, tuple(sizes), search, told, doc)


def take_declarations(cls: type) -> dict[str, Hyperparameter]:
    """Remove the declarations from the body of a class, and return them by name."""
    own = {name: value for name, value in vars(cls).items() if isinstance(value, Hyperparameter)}
    for name, each in own.items():
        own[name] = replace(each, annotation=cls.__annotations__.pop(name, each.annotation))
        delattr(cls, name)
        if each.doc is not None:
            setattr(cls, name, property(partial(_value, name), doc=each.doc))
    return own


def _value(name: str, agent: Any) -> Any:
    return agent.hyperparameters[name]


def replaced_by(
    own: Mapping[str, Hyperparameter], inherited: Mapping[str, Any], field: str
) -> dict[str, Any]:
    """Return what is inherited of other hyper-parameters, and what a field of the own ones says
    unless it is None.
    """
    others = {name: value for name, value in inherited.items() if name not in own}
    return others | {
        name: value for name, each in own.items() if (value := getattr(each, field)) is not None
    }


def constructor(
    cls: type, declared: Mapping[str, Hyperparameter], begin: Callable[..., None]
) -> Any:
    """Return ``__init__(self, n_items, n_positions, *, ..., seed=None)``, which hands the
    hyper-parameters on to ``begin``.

    It is compiled, as the methods of a named tuple are, so that Python itself refuses unknown and
    missing arguments.
    """
    names = sorted(
        declared, key=lambda name: declared[name].default is not REQUIRED
    )  # required ones first
    given = "".join(f", {name}={name}" for name in declared)
    source = f"def __init__(self, n_items, n_positions, *, {', '.join([*names, 'seed'])}): "
    namespace = {"begin": begin, "__name__": f"constructor_of_{cls.__name__}"}
    exec(f"{source}begin(self, n_items, n_positions, seed{given})", namespace)
    function: Any = namespace["__init__"]
    function.__qualname__ = f"{cls.__qualname__}.__init__"
    function.__kwdefaults__ = {
        name: declared[name].default for name in names if declared[name].default is not REQUIRED
    }
    function.__kwdefaults__["seed"] = None
    annotations = {
        name: each.annotation for name, each in declared.items() if each.annotation is not REQUIRED
    }
    function.__annotations__ = {
        "n_items": "int",
        "n_positions": "int",
        **annotations,
        "seed": "Seed",
        "return": "None",
    }
    function.is_declared = True
    return function


# ------------------------------------------------------------------------------------------------------------ the checks


def at_least(least: float) -> Check:
    """A finite number not below ``least``."""
    return partial(check_at_least, least=least)


def above(least: float) -> Check:
    """A finite number above ``least``."""
    return partial(check_at_least, least=least, strictly=True)


def between(low: float, high: float, *, closed: bool = False) -> Check:
    """A number between two others, of which ``closed`` allows the upper."""
    return partial(check_between, above=low, below=high, closed=closed)


def count(least: int = 1) -> Check:
    """An integer of at least ``least``."""
    return partial(check_count, least=least)


def sessions(least: int = 1) -> Check:
    """A number of sessions, of at least ``least``."""
    return partial(_sessions, least=least)


def _sessions(name: str, value: Any, least: int) -> int:
    return check_horizon(value, least, name)


def one_of(choices: Iterable[str]) -> Check:
    """One of some words."""
    return partial(check_choice, choices=choices)
