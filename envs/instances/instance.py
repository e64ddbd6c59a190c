"""Instances: ready-made problems by name, by seed, or from a file.

`load_instance`, and every argument ``instance``, accepts:

* a shipped real search query, ``"yandex-98435"`` (parameters estimated from click logs, as the file
  describes);
* a synthetic instance of a paper, ``"lagree2016-small"``, some with arguments:
  ``"li2019-chi-min:i=3"``;
* a random family by seed, ``"uniform:n_items=20,n_positions=5,seed=3"``,
  ``"yandex-like:n_items=20,n_positions=5,seed=3"``;
* any of these instances with random item ids, so that ids carry no information:
  ``"yandex-98435:shuffle=1"``, where 1 is a seed;
* a JSON file of your own, ``"folder/mine.json"``, written by `Instance.save` or holding the
  ``to_dict()`` of one click model; or the content of such a file, as a dict;
* an `Instance`.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial, wraps
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from ...core.checks import (
    as_call,
    as_list,
    check_count,
    check_number,
    check_seed,
    short_repr,
    unknown_message,
)
from ...core.files import read_json, write_whole
from ...core.specs import parse_spec
from ..click_model import CLICK_MODELS
from ..spaces import named_ranking
from ..user_model import UserModel, user_model_from

INSTANCE_FORMAT, INSTANCE_VERSION = "clickgym-instance", 1
FOLDER = Path(__file__).parent

DEFAULT_INSTANCE = "yandex-9982"
"""The default instance of the stationary environments.

It is the query with by far the most sessions (23,885), so its parameters are the most precise. Its
attractions are well spread, and in the position-based model the best list has a third more clicks
than the production list.
"""


@dataclass(frozen=True, eq=False)
class Instance:
    """One ranking problem: the same items and users under one or several click models.

    Args:
        name: the name of the instance in results.
        models: the click models (and other users) by `UserModel.kind`, with all positions that have
            parameters; the names of classes are also accepted.
        n_positions: K, the default number of positions.
        description: a description in one line.
        origin: where the parameters come from.
        initial_ranking: ``(L,)`` all item ids in the order of the production list, best first; None
            without such a list.
        estimation: how the parameters were estimated, and from how many sessions.

    Raises:
        ValueError: an invalid argument; the message names the field and what was expected.

    Example:
        >>> from clickgym.envs import CascadeModel
        >>> model = CascadeModel([0.5, 0.2, 0.1], n_positions=3)
        >>> instance = Instance("toy", {"CM": model}, n_positions=2)
        >>> instance.model("CM")
        CascadeModel(n_items=3, n_positions=2)
    """

    name: str
    models: Mapping[str, UserModel]
    n_positions: int
    description: str = ""
    origin: str = ""
    initial_ranking: NDArray[np.int64] | None = None
    estimation: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_count("n_positions", self.n_positions)
        if self.initial_ranking is not None:
            size = np.size(self.initial_ranking)
            ranking = named_ranking("initial_ranking", self.initial_ranking, size, size).copy()
            object.__setattr__(self, "initial_ranking", ranking)

    @property
    def n_items(self) -> int:
        """L, the number of items."""
        if self.initial_ranking is not None:
            return len(self.initial_ranking)
        return next(iter(self.models.values())).n_items

    @property
    def labels(self) -> tuple[str, ...]:
        """The name of each item in the log from which the instance was estimated, ``(L,)``. Without
        a log, and for shipped instances, whose items have no names, these are the ids.
        """
        items = self.estimation.get("items")
        return tuple(map(str, items if isinstance(items, list) else range(self.n_items)))

    def __repr__(self) -> str:
        sizes = {"n_items": self.n_items, "n_positions": self.n_positions}
        return as_call(self, name=self.name, **sizes, models=list(self.models))

    def model(self, model_class: type[UserModel] | str, n_positions: int | None = None) -> Any:
        """Return the users of the instance under one click model.

        Args:
            model_class: a click model class, its short name, or a kind such as
                ``"PiecewiseStationaryModel of CM"``.
            n_positions: K; by default, the instance's number of positions.

        Raises:
            ValueError: the instance has no such model, fewer positions, or another number of items
                in this model than in others or in its production list.
        """
        name = model_class if isinstance(model_class, str) else model_class.name()
        if name not in self.models:
            has = f"it has {', '.join(self.models)}"
            raise ValueError(f"the instance {self.name!r} has no {name!r}; {has}")
        users = self.models[name]
        if users.n_items != self.n_items:
            other = "the first model" if self.initial_ranking is None else "initial_ranking"
            raise ValueError(f"{name} has {users.n_items} items, but {other} has {self.n_items}")
        length = self.n_positions if n_positions is None else n_positions
        return users if length == users.n_positions else users.with_positions(length)

    def shuffled(self, seed: int) -> Instance:
        """Return the same instance with item ids in random order, so that an id carries no
        information.

        Args:
            seed: seeds the order.

        Raises:
            ValueError: candidates change in every session; they are in random order already.

        Example:
            >>> instance = load_instance("kveton2015:n_items=4").shuffled(0)
            >>> instance.model("CM").attraction
            array([0.05, 0.2 , 0.2 , 0.05])
        """
        order = np.random.default_rng(check_seed(seed)).permutation(self.n_items)
        initial = None if self.initial_ranking is None else np.argsort(order)[self.initial_ranking]
        models = {kind: model.relabelled(order) for kind, model in self.models.items()}
        estimation = dict(self.estimation)
        if isinstance(estimation.get("items"), list):
            estimation["items"] = [self.labels[item] for item in order]
        return replace(self, models=models, initial_ranking=initial, estimation=estimation)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the instance to a JSON file, atomically; `load_instance` reads it."""
        write_whole(Path(path), json.dumps(self.to_dict(), ensure_ascii=False) + "\n")

    def to_dict(self) -> dict[str, Any]:
        """Return what `save` writes, as plain lists and numbers."""
        initial = self.initial_ranking
        return {
            "format": INSTANCE_FORMAT,
            "version": INSTANCE_VERSION,
            "name": self.name,
            "description": self.description,
            "origin": self.origin,
            "n_positions": self.n_positions,
            "initial_ranking": None if initial is None else initial.tolist(),
            "estimation": dict(self.estimation),
            "models": [model.to_dict() for model in self.models.values()],
        }


def instance_of(
    models: Sequence[UserModel], origin: str, initial_ranking: NDArray[np.int64] | None = None
) -> Instance:
    """Return an instance without a name that holds users of different kinds, with all positions of
    the first.
    """
    kinds = {model.kind: model for model in models}
    sizes = models[0].n_positions
    return Instance("", kinds, sizes, origin=origin, initial_ranking=initial_ranking)


AnyInstance = Instance | Mapping[str, Any] | PathLike[str] | str
"""The types that `load_instance` accepts."""


FAMILIES: dict[str, Callable[..., Instance]] = {}
"""Functions that make instances, by name: those that the files of this folder list, and your own.
Their arguments are numbers or text, all with defaults.
"""

DESCRIPTIONS: dict[str, str] = {}
"""The description of each family in `list_instances`, by name."""

# The ranges of arguments, which `family` checks.
Count = Annotated[int, check_count]
Seed = Annotated[int, partial(check_count, least=0)]
Probability = Annotated[float, partial(check_number, least=0, most=1)]
Share = Annotated[float, partial(check_number, above=0, below=1)]
Positive = Annotated[float, partial(check_number, above=0)]
NotNegative = Annotated[float, partial(check_number, least=0)]


def family(description: str) -> Callable[[Callable[..., Instance]], Callable[..., Instance]]:
    """Register the decorated function as a family of instances under its own name, with hyphens.
    When it is called, each argument must be in the range that its annotation declares, such as
    `Count`.

    Args:
        description: one line for `list_instances`, with the click models in parentheses.
    """

    def register(make: Callable[..., Instance]) -> Callable[..., Instance]:
        signature, hints = inspect.signature(make), get_type_hints(make, include_extras=True)
        checks = {
            name: hint.__metadata__[0]
            for name, hint in hints.items()
            if hasattr(hint, "__metadata__")
        }

        @wraps(make)
        def make_checked(*arguments: Any, **keywords: Any) -> Instance:
            for name, value in signature.bind(*arguments, **keywords).arguments.items():
                if name in checks:
                    checks[name](name, value)
            return make(*arguments, **keywords)

        name = make.__name__.strip("_").replace("_", "-")
        FAMILIES[name], DESCRIPTIONS[name] = make_checked, description
        return make_checked

    return register


def load_instance(name: AnyInstance) -> Instance:
    """Load an instance by name, from a file, or from a dict.

    Args:
        name: a name from `list_instances`, which may have arguments; or the path of a JSON file, as
            a path object or as a string that ends with ``.json``; or the content of such a file, as
            a dict. An `Instance` object is returned unchanged.

    Returns:
        The instance, completely validated.

    Raises:
        ValueError: an unknown name (with a suggestion), a bad argument, or a file that is missing
            or not an instance; the message names the file, the field and what was expected.
        TypeError: ``name`` has another type.

    Example:
        >>> load_instance("yandex-98435").model("PBM")
        PositionBasedModel(n_items=10, n_positions=5)
        >>> load_instance("uniform:n_items=20,n_positions=3,seed=1").n_items
        20
    """
    if isinstance(name, Instance):
        return name
    if isinstance(name, Mapping):
        return _from_content("custom", name, "the instance")
    if not isinstance(name, str | PathLike):
        raise TypeError(f"instance is {short_repr(name)}; expected a name, path, dict or Instance")
    if not isinstance(name, str) or name.endswith(".json"):
        return _read_file(Path(name))
    base = name.partition(":")[0]
    if base not in FAMILIES and base not in shipped_instances():
        raise ValueError(
            unknown_message("instance", base, list_instances())
            + "; the name of an instance file must end with .json"
        )
    make = FAMILIES.get(base, _shipped)
    # A user's file may change, so what it describes is not cached.
    make_instance = _make_named.__wrapped__ if ".json" in name else _make_named
    return make_instance(name, base, make, tuple(CLICK_MODELS.values()))


# Cached: most programs use few instances, and users are immutable.
@lru_cache(maxsize=8)
def _make_named(name: str, base: str, make: Callable[..., Instance], models: object) -> Instance:
    """Make an instance from its whole name. ``models`` are the registered click models; if they
    change, the cache makes the instance again.
    """
    signature = {} if make is _shipped else inspect.signature(make).parameters
    defaults = {key: parameter.default for key, parameter in signature.items()}
    types = {key: type(default) for key, default in defaults.items()} | {"shuffle": int}

    def parse_argument(key: str, text: str) -> Any:
        if key not in types:
            raise ValueError(unknown_message("argument", key, types))
        try:
            return types[key](text)
        except ValueError:
            number = "an integer" if types[key] is int else "a number"
            raise ValueError(f"the value is {text!r}; expected {number}") from None

    before_arguments, arguments = parse_spec(name, parse_argument)
    if before_arguments != base:
        raise ValueError(f"{name!r}: expected key=value after the colon, such as n_items=20")
    order = arguments.pop("shuffle", None)
    if (
        "n_positions" not in arguments
        and arguments.get("n_items", 0) > 0
        and "n_positions" in defaults
    ):
        # the default length of a list, shortened to what there is
        defaults["n_positions"] = min(defaults["n_positions"], arguments["n_items"])
    try:
        instance = make(base) if make is _shipped else make(**defaults | arguments)
        instance = replace(
            instance, name=name, description=instance.description or DESCRIPTIONS[base]
        )
        return instance if order is None else instance.shuffled(order)
    except ValueError as error:
        raise ValueError(f"{name!r}: {error}") from None


def list_instances() -> dict[str, str]:
    """Return every name that `load_instance` knows, with a description in one line.

    Example:
        >>> list_instances()["lagree2016-small"]
        'Lagrée 2016: 5 items, 3 positions (PBM)'
    """
    shipped = {name: _shipped(name).description for name in shipped_instances()}
    return shipped | dict(sorted(DESCRIPTIONS.items()))


@cache
def shipped_instances() -> tuple[str, ...]:
    """Return the names of the shipped real queries, in natural order."""
    names = [file.stem for file in FOLDER.glob("yandex-*.json") if file.stem not in FAMILIES]
    return tuple(sorted(names, key=lambda name: [int(part) for part in name.split("-")[1:]]))


@cache
def _shipped(name: str) -> Instance:
    file = FOLDER / f"{name}.json"
    return _from_content(name, read_json(file), file)


# -------------------------------------------------------------------------------------------- files


def _read_file(path: Path) -> Instance:
    try:
        content = read_json(path)
    except FileNotFoundError:
        raise ValueError(f"the instance file {path} does not exist") from None
    return _from_content(path.stem, content, path)


def _from_content(name: str, content: Mapping[str, Any], source: object) -> Instance:
    """Return the instance that a JSON object describes; messages name its ``source``."""
    try:
        if "model" in content:
            model = UserModel.from_dict(content)
            origin = "a user's click model"
            return Instance(name, {model.kind: model}, model.n_positions, origin=origin)
        fields = dict(content)
        header = fields.pop("format", None), fields.pop("version", None)
        if header != (INSTANCE_FORMAT, INSTANCE_VERSION):
            raise ValueError(
                'it is not an instance: expected a field "model", such as "PBM", or the '
                f'fields "format": "{INSTANCE_FORMAT}" and "version": {INSTANCE_VERSION}'
            )
        entries = as_list("models", fields.get("models"), "a list of click models")
        user_models = [
            user_model_from(f"models[{number}]", users) for number, users in enumerate(entries)
        ]
        models = {model.kind: model for model in user_models}
        instance = Instance(**fields | {"models": models})
        for kind in models:
            instance.model(kind)  # checks its sizes
        return instance
    except (TypeError, ValueError) as error:
        raise ValueError(f"{source}: {error}") from None
