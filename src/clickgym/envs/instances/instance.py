"""The class `Instance`, the function `load_instance`, and the registry of families of instances.

`load_instance`, and every argument ``instance``, accepts:

* the name of a real search query that comes with clickgym, such as ``"yandex-98435"``; its file
  describes how the parameters were estimated from click logs;
* the name of a synthetic instance from a paper, such as ``"lagree2016-small"``, in some cases with
  arguments, such as ``"li2019-chi-min:i=3"``;
* the name of a random family with a seed, such as ``"uniform:n_items=20,n_positions=5,seed=3"`` or
  ``"yandex-like:n_items=20,n_positions=5,seed=3"``;
* any of these names with random item ids, such as ``"yandex-98435:shuffle=1"``, where 1 is a seed;
  the ids then carry no information;
* the path of a JSON file, such as ``"folder/mine.json"``, that `Instance.save` wrote or that
  contains the ``to_dict()`` of one click model; or the content of such a file, as a dict;
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

from ...core.checks import as_list, check_count, check_kind, check_number, check_path, check_seed
from ...core.files import read_json, write_whole
from ...core.messages import as_call, short_repr, suggestions
from ...core.specs import parse_spec
from ..click_models.click_model import CLICK_MODELS
from ..simulation.user_model import UserModel, user_model_from
from ..spaces import named_ranking

INSTANCE_FORMAT, INSTANCE_VERSION = "clickgym-instance", 1
FOLDER = Path(__file__).parent / "data"

DEFAULT_INSTANCE = "yandex-9982"
"""The default instance of environments whose users follow one click model that never changes.

This real query has by far the most sessions (23,885), so its parameters are the most precise. Its
attractions are well spread. In the position-based model, the best list gets a third more clicks
than the production list.
"""


@dataclass(frozen=True, eq=False)
class Instance:
    """One ranking problem: the same items, with users who follow one or several click models.

    Args:
        name: the name of the instance in results.
        models: the click models (or other users) by `UserModel.kind` or class name, each with all
            positions for which there are parameters.
        n_positions: K, the default length of a list.
        description: a description in one line; by default, empty.
        origin: the source of the parameters; by default, empty.
        initial_ranking: ``(L,)`` all item ids in the order of the production list, best first; by
            default, there is no production list.
        estimation: how the parameters were estimated, and from how many sessions; by default,
            empty.

    Raises:
        ValueError: an argument is invalid; the message names the argument and what was expected.

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
        check_kind("name", self.name, str, "text")
        check_count("n_positions", self.n_positions)
        if not self.models:
            raise ValueError("models is empty; expected at least one click model")
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
        """The name of each of the L items in the click log from which the instance was estimated;
        the item ids, as text, if the items have no names.
        """
        items = self.estimation.get("items")
        return tuple(map(str, items if isinstance(items, list) else range(self.n_items)))

    def __repr__(self) -> str:
        sizes = {"n_items": self.n_items, "n_positions": self.n_positions}
        return as_call(self, name=self.name, **sizes, models=list(self.models))

    def model(self, model_class: type[UserModel] | str, n_positions: int | None = None) -> Any:
        """Return the instance's users under one click model.

        Args:
            model_class: the class of the click model, its short name, or a kind such as
                ``"PiecewiseStationaryModel of CM"``.
            n_positions: K, the length of a list; by default, the instance's ``n_positions``.

        Raises:
            ValueError: the instance does not contain this click model; ``n_positions`` exceeds the
                positions for which there are parameters; or the click model's number of items
                differs from the production list or from the first click model.
        """
        name = model_class if isinstance(model_class, str) else model_class.name()
        if name not in self.models:
            has = f"it has {', '.join(self.models)}"
            if f"PiecewiseStationaryModel of {name}" in self.models:
                has += f"; its users change, so use NonStationary{name}Rank-v0"
            raise ValueError(f"the instance {self.name!r} has no model {name!r}; {has}")
        users = self.models[name]
        if users.n_items != self.n_items:
            other = "the first model" if self.initial_ranking is None else "initial_ranking"
            raise ValueError(f"{name} has {users.n_items} items, but {other} has {self.n_items}")
        length = self.n_positions if n_positions is None else n_positions
        return users if length == users.n_positions else users.with_positions(length)

    def shuffled(self, seed: int) -> Instance:
        """Return the same instance with randomly permuted item ids, so that an id carries no
        information.

        Args:
            seed: the seed of the permutation.

        Raises:
            ValueError: candidates change in every session, so they already are in random order.

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
        """Write the instance to a JSON file that `load_instance` can read. The file appears only
        when it is complete.
        """
        write_whole(check_path("path", path), json.dumps(self.to_dict(), ensure_ascii=False) + "\n")

    def to_dict(self) -> dict[str, Any]:
        """Return the instance as a dict of plain lists and numbers, as `save` writes it."""
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
    """Return an instance without a name that contains users of different kinds. Its ``n_positions``
    comes from the first users.
    """
    kinds = {model.kind: model for model in models}
    sizes = models[0].n_positions
    return Instance("", kinds, sizes, origin=origin, initial_ranking=initial_ranking)


AnyInstance = Instance | Mapping[str, Any] | PathLike[str] | str
"""The types that `load_instance` accepts."""


FAMILIES: dict[str, Callable[..., Instance]] = {}
"""The functions that create instances, by the family's name: clickgym's families and your own. All
arguments of these functions are numbers or text, and have defaults.
"""

DESCRIPTIONS: dict[str, str] = {}
"""The description of each family for `list_instances`, by the family's name."""

# Annotations for the arguments of families; `family` checks that values are in these ranges.
Count = Annotated[int, check_count]
Seed = Annotated[int, partial(check_count, least=0)]
Probability = Annotated[float, partial(check_number, least=0, most=1)]
Share = Annotated[float, partial(check_number, above=0, below=1)]
Positive = Annotated[float, partial(check_number, above=0)]
NotNegative = Annotated[float, partial(check_number, least=0)]


def family(description: str) -> Callable[[Callable[..., Instance]], Callable[..., Instance]]:
    """Register the decorated function as a family of instances.

    The family's name is the function's name, with hyphens in place of underscores. Each call checks
    that the arguments are in the ranges that their annotations declare, such as `Count`.

    Args:
        description: one line for `list_instances`, which ends with the click models in parentheses.
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
        name: a name from `list_instances`, in some cases with arguments; the path of a JSON file,
            as a path object or as a string that ends with ``.json``; or the content of such a file,
            as a dict. An `Instance` is returned unchanged.

    Returns:
        The instance, completely validated.

    Raises:
        ValueError: the name is unknown, an argument is invalid, or the file is missing or does not
            describe an instance; the message names the file, the field and what was expected.
        TypeError: ``name`` is not a name, a path, a dict or an `Instance`.

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
    has_arguments = str(name).partition(":")[0] in FAMILIES  # such as linear:query=users.json
    if not isinstance(name, str) or (name.endswith(".json") and not has_arguments):
        return _read_file(check_path("instance", name))
    base = check_base_name(name)
    make = FAMILIES.get(base, _shipped)
    # Files may change, so instances that come from files are not cached.
    make_instance = _make_named.__wrapped__ if ".json" in name else _make_named
    return make_instance(name, base, make, tuple(CLICK_MODELS.values()))


def check_base_name(name: str, kind: str | None = None) -> str:
    """Return an instance's name without its arguments, after checking that the name is known.

    Args:
        name: the name, with or without arguments.
        kind: the kind of users that the instance needs. The message about an unknown name suggests
            instances with these users; by default, it suggests any instances.

    Raises:
        ValueError: the name is unknown, or stands for several instances.
    """
    base = name.partition(":")[0]
    if base == "shipped":
        raise ValueError(
            "'shipped' stands for several instances, so only clickgym run --instances and "
            "sweep(instances=...) accept it; pass the name of one of them, such as 'yandex-9982' "
            "(clickgym list instances shows all names)"
        )
    if base not in FAMILIES and base not in shipped_instances():
        path = Path(base)
        if base.endswith(".json"):
            raise ValueError(f"instance {name!r}: a file has no arguments; expected {base}")
        if path.is_dir():
            raise ValueError(f"instance {base!r} is a folder; name its files, as in {path}/*.json")
        names = list_instances()
        suited = [each for each in names if kind is None or kind in load_instance(each).models]
        known = [*(suited or names), *_json_files(path.parent)]
        raise ValueError(
            f"unknown instance {base!r}{suggestions(base, known)}; the name of an instance file "
            "must end with .json"
        )
    return base


# Most programs use few instances, and instances are immutable, so a small cache is enough.
@lru_cache(maxsize=8)
def _make_named(name: str, base: str, make: Callable[..., Instance], models: object) -> Instance:
    """Create the instance that a name with arguments describes.

    Args:
        name: the whole name, with arguments.
        base: the name before the colon.
        make: the function that creates the instance.
        models: the registered click models. Only the cache uses this argument: after a click model
            was registered, instances are created again.
    """
    signature = {} if make is _shipped else inspect.signature(make).parameters
    defaults = {key: parameter.default for key, parameter in signature.items()}
    types = {key: type(default) for key, default in defaults.items()} | {"shuffle": int}

    def parse_argument(key: str, text: str) -> Any:
        if key not in types:
            raise ValueError(f"unknown argument{suggestions(key, types)}")
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
        # The default length of a list must not exceed the number of items.
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
    """Return the names of all instances and families that `load_instance` accepts, each with a
    one-line description.

    Example:
        >>> list_instances()["lagree2016-small"]
        'Lagrée 2016: 5 items, 3 positions (PBM)'
    """
    shipped = {name: _shipped(name).description for name in shipped_instances()}
    return shipped | dict(sorted(DESCRIPTIONS.items()))


@cache
def shipped_instances() -> tuple[str, ...]:
    """Return the names of the real queries that come with clickgym, ordered by their numbers."""
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
        hint = suggestions(path, _json_files(path.parent))
        raise ValueError(f"the instance file {path} does not exist{hint}") from None
    return _from_content(path.stem, content, path)


def _json_files(folder: Path) -> list[str]:
    """Return the paths of the JSON files in a folder, for messages about a file's name."""
    return sorted(str(path) for path in folder.glob("*.json"))


def _from_content(name: str, content: Mapping[str, Any], source: object) -> Instance:
    """Return the instance that a JSON object describes. Errors begin with ``source``, the file or
    the argument that contains the object.
    """
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
            instance.model(kind)  # raises an error if sizes differ
        return instance
    except (TypeError, ValueError) as error:
        raise ValueError(f"{source}: {error}") from None
