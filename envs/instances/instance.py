"""Instances: ready-made problems by name, by seed, or from a file.

What `load_instance` accepts wherever an ``instance`` is asked for:

* a shipped real search query, ``"yandex-98435"`` (parameters estimated from click logs, see the
  file's own text);
* a synthetic instance of a paper, ``"lagree2016-small"``, some with arguments:
  ``"li2019-chi-min:i=3"``;
* a random family by seed, ``"uniform:n_items=20,n_positions=5,seed=3"``,
  ``"yandex-like:n_items=20,n_positions=5,seed=3"``;
* either of them with other item ids, so that their order tells nothing:
  ``"yandex-98435:shuffle=1"``, where 1 is a seed;
* a JSON file of your own, ``"folder/mine.json"``: what `Instance.save` writes, or just the
  ``to_dict()`` of one click model; or what stands in such a file, as a dict;
* an `Instance` itself.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, lru_cache, partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.checks import (
    as_call,
    check_kind,
    check_path,
    check_positions,
    check_seed,
    short,
    unknown,
)
from ...core.files import read_json, write_whole
from ..spaces import check_order
from ..users import Users

FORMAT, VERSION = "clickgym-instance", 1
FOLDER = Path(__file__).parent

DEFAULT_INSTANCE = "yandex-9982"
"""The instance of every stationary environment when none is asked for.

The query with by far the most sessions (23,885), so its parameters are the surest; its attractions
are well spread, and under the position-based model the list in production leaves a quarter of the
clicks to gain.
"""


@dataclass(frozen=True, eq=False)
class Instance:
    """One ranking problem: the same items and users under one or several click models.

    Args:
        name: the name of the instance in results.
        models: the click models (and users of other kinds) by `Users.kind`, over all positions for
            which there are parameters; the names of classes are accepted too.
        n_positions: K, the number of positions unless another is asked for.
        description: a description in one line.
        origin: where the parameters come from.
        initial_ranking: ``(L,)`` all item ids, best first: the list that production shows; None if
            there is none.
        estimation: how the parameters were estimated, and from how many sessions.

    Raises:
        ValueError: naming the field and what was expected.

    Example:
        >>> from clickgym.envs import CascadeModel
        >>> model = CascadeModel([0.5, 0.2, 0.1], n_positions=3)
        >>> instance = Instance("toy", {"CM": model}, n_positions=2)
        >>> instance.model("CM")
        CascadeModel(n_items=3, n_positions=2)
    """

    name: str
    models: Mapping[str, Users]
    n_positions: int
    description: str = ""
    origin: str = ""
    initial_ranking: NDArray[np.int64] | None = None
    estimation: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key in ("name", "description", "origin"):
            if not isinstance(getattr(self, key), str):
                raise ValueError(f"{key} is {short(getattr(self, key))}; expected text")
        users = list(self.models.values()) if isinstance(self.models, Mapping) else []
        if not users or not all(isinstance(model, Users) for model in users):
            raise ValueError(
                f"models is {short(self.models)}; expected click models by their kinds"
            )
        if not isinstance(self.estimation, Mapping):
            raise ValueError(f"estimation is {short(self.estimation)}; expected a JSON object")
        object.__setattr__(self, "models", dict(self.models))
        sizes = {name: model.n_items for name, model in self.models.items()}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"models have different numbers of items: {sizes}")
        available = min(model.n_positions for model in self.models.values())
        object.__setattr__(
            self, "n_positions", check_positions(self.n_positions, self.n_items, available)
        )
        if self.initial_ranking is not None:
            ranking = check_order("initial_ranking", self.initial_ranking, self.n_items)
            object.__setattr__(self, "initial_ranking", ranking.copy())

    @property
    def n_items(self) -> int:
        """L, the number of items."""
        return next(iter(self.models.values())).n_items

    @property
    def labels(self) -> tuple[str, ...]:
        """What the user's log calls each item, ``(L,)``; the ids where no log was fitted."""
        return tuple(map(str, self.estimation.get("items", range(self.n_items))))

    def __repr__(self) -> str:
        sizes = {"n_items": self.n_items, "n_positions": self.n_positions}
        return as_call(self, name=self.name, **sizes, models=list(self.models))

    def model(self, model_class: type[Users] | str, n_positions: int | None = None) -> Any:
        """The instance under one click model.

        Args:
            model_class: a click model class, its short name, or a kind such as
                ``"PiecewiseStationaryModel of CM"``.
            n_positions: K; None takes the instance's.

        Raises:
            ValueError: if the instance has no such model, or not so many positions.
        """
        check_kind("model_class", model_class, str | type(Users), "a click model class or its name")
        name = model_class if isinstance(model_class, str) else model_class.name()
        if name not in self.models:
            has = f"it has {', '.join(self.models)}"
            raise ValueError(f"the instance {self.name!r} has no {name}; {has}")
        length = self.n_positions if n_positions is None else n_positions
        return self.models[name].with_positions(length)

    def shuffled(self, seed: int) -> Instance:
        """The same instance with other item ids, in random order, so that an id says nothing about
        the item.

        Args:
            seed: of the order.

        Raises:
            ValueError: the users meet other candidates in every session, in random order already.

        Example:
            >>> instance = load_instance("kveton2015:n_items=4").shuffled(0)
            >>> instance.model("CM").attraction
            array([0.05, 0.2 , 0.2 , 0.05])
        """
        order = np.random.default_rng(check_seed(seed)).permutation(self.n_items)
        initial = None if self.initial_ranking is None else np.argsort(order)[self.initial_ranking]
        models = {kind: model.relabelled(order) for kind, model in self.models.items()}
        return replace(self, models=models, initial_ranking=initial)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the instance to a JSON file, which `load_instance` reads back; no half-written file
        is left.
        """
        initial = self.initial_ranking
        entries = {
            "format": FORMAT,
            "version": VERSION,
            "name": self.name,
            "description": self.description,
            "origin": self.origin,
            "n_positions": self.n_positions,
            "initial_ranking": None if initial is None else initial.tolist(),
            "estimation": dict(self.estimation),
        }
        lines = [f' "{key}": {json.dumps(entries[key], ensure_ascii=False)}' for key in entries]
        models = ",\n".join(f"  {json.dumps(model.to_dict())}" for model in self.models.values())
        text = "{\n" + ",\n".join([*lines, f' "models": [\n{models}\n ]']) + "\n}\n"
        write_whole(check_path("path", path), text)


def instance_of(
    models: Sequence[Users], origin: str, initial_ranking: NDArray[np.int64] | None = None
) -> Instance:
    """An instance of users of different kinds, over all positions of the first; it has no name."""
    kinds = {model.kind: model for model in models}
    sizes = models[0].n_positions
    return Instance("", kinds, sizes, origin=origin, initial_ranking=initial_ranking)


AnyInstance = Instance | Mapping[str, Any] | PathLike[str] | str
"""What `load_instance` takes."""


FAMILIES: dict[str, Callable[..., Instance]] = {}
"""Functions that make instances from arguments, by name."""


def family(name: str) -> Callable[[Callable[..., Instance]], Callable[..., Instance]]:
    """Register a function under the name of a family of instances.

    The function takes integers and numbers, all with defaults; the first line of its docstring
    describes the family.
    """

    def register(make: Callable[..., Instance]) -> Callable[..., Instance]:
        FAMILIES[name] = make
        return make

    return register


def load_instance(name: AnyInstance) -> Instance:
    """Load an instance by name, from a file, or from a dict.

    Args:
        name: a name that `list_instances` gives, with arguments where it takes some; the path of a
            JSON file (anything that ends with ``.json`` or is a path object); what stands in such a
            file, as a dict; or an instance, which is returned.

    Returns:
        The instance, completely validated.

    Raises:
        ValueError: on an unknown name (with a suggestion), a bad argument, or a file that is absent
            or not an instance: naming the file, the field and what was expected.
        TypeError: on what can be no instance.

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
        raise TypeError(f"an instance is a name, a path, a dict or an Instance, got {short(name)}")
    if not isinstance(name, str) or name.endswith(".json"):
        return _read(Path(name))
    base, _, arguments = name.partition(":")
    if base in FAMILIES:
        return _generate(name, FAMILIES[base], arguments)
    if base in _shipped():
        return _generate(name, _reader(base), arguments)
    raise ValueError(unknown("instance", base, list_instances()) + "; a file must end with .json")


def _generate(name: str, make: Callable[..., Instance], arguments: str) -> Instance:
    """The instance that a function makes, with arguments as in ``"n_items=20,seed=3"``; ``name`` is
    what was asked for.

    Beside those of the function there is ``shuffle``, the seed of other item ids.
    """
    values = _arguments(name, make, arguments)
    order = values.pop("shuffle", None)
    try:
        is_ours = getattr(make, "func", make).__module__.startswith(f"{__package__}.")
        is_file = any(str(value).endswith(".json") for value in values.values())
        # What a file or a family of the user says may change.
        makes = _made if is_ours and not is_file else _made.__wrapped__
        made = makes(make, tuple(values.items()), tuple(Users.classes.values()))
        description = made.description or " ".join((make.__doc__ or "").split())
        estimation = dict(made.estimation)
        made = replace(made, name=name, description=description, estimation=estimation)
        return made if order is None else made.shuffled(order)
    except ValueError as error:
        raise ValueError(f"{name!r}: {error}") from None


def _arguments(name: str, make: Callable[..., Instance], arguments: str) -> dict[str, Any]:
    """The values of arguments; ``name`` is what was asked for."""
    signature = inspect.signature(make).parameters
    defaults = {key: parameter.default for key, parameter in signature.items()} | {"shuffle": 0}
    values: dict[str, Any] = {}
    for argument in arguments.split(",") if arguments else []:
        key, _, text = argument.partition("=")
        key = key.strip()
        if key not in defaults:
            raise ValueError(f"{name!r}: {unknown('argument', key, defaults)}")
        if key in values:
            raise ValueError(f"{name!r}: {key} is given twice")
        kind = type(defaults[key])
        try:
            values[key] = kind(text)
        except ValueError:
            wanted = "an integer" if kind is int else "a number"
            raise ValueError(f"{short(name)}: {key} is {short(text)}; expected {wanted}") from None
    return values


# Most environments of a program are of a few instances, and their models cannot be changed.
@lru_cache(maxsize=8)
def _made(make: Callable[..., Instance], values: tuple[Any, ...], models: object) -> Instance:
    """``models``: those that there are, for most families make an instance of each."""
    return make(**dict(values))


def list_instances() -> dict[str, str]:
    """Every name that `load_instance` knows, with one line that describes it.

    Example:
        >>> list_instances()["lagree2016-small"]
        'Lagrée 2016: 5 items, 3 positions (PBM)'
    """
    generated = {
        name: " ".join((make.__doc__ or "").split()) for name, make in sorted(FAMILIES.items())
    }
    return {
        name: read_json(FOLDER / f"{name}.json")["description"] for name in _shipped()
    } | generated


@cache
def _reader(name: str) -> Callable[[], Instance]:
    """The function, one and the same, that reads a shipped instance."""
    return partial(_read, FOLDER / f"{name}.json")


def _shipped() -> list[str]:
    """The names of the shipped real queries, in natural order."""
    names = [file.stem for file in FOLDER.glob("yandex-*.json") if file.stem not in FAMILIES]
    return sorted(names, key=lambda name: [int(part) for part in name.split("-")[1:]])


# -------------------------------------------------------------------------------------------- files


def _read(path: Path) -> Instance:
    try:
        content = read_json(path)
    except FileNotFoundError:
        raise ValueError(f"there is no instance file {path}") from None
    return _from_content(path.stem, content, path)


def _from_content(name: str, content: Mapping[str, Any], where: object) -> Instance:
    """The instance that a JSON object describes; ``where`` it stands, for messages."""
    try:
        if "model" in content:
            model = Users.from_dict(content)
            origin = "a user's click model"
            return Instance(name, {model.kind: model}, model.n_positions, origin=origin)
        names = [entry.name for entry in fields(Instance)]
        entries = {key: value for key, value in content.items() if key not in ("format", "version")}
        for key, expected in (("format", FORMAT), ("version", VERSION)):
            if content.get(key) != expected:
                raise ValueError(f"{key} is {content.get(key)!r}; expected {expected!r}")
        for key in entries.keys() - names:
            raise ValueError(unknown("field", key, names))
        for key in {"name", "n_positions", "models"} - entries.keys():
            raise ValueError(f"the field {key!r} is missing")
        return Instance(**entries | {"models": _models(content["models"])})
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _models(descriptions: Any) -> dict[str, Users]:
    """Users by their kinds, from their descriptions."""
    if not isinstance(descriptions, list):
        raise ValueError("models must be a list of click models")
    models: dict[str, Users] = {}
    for number, description in enumerate(descriptions):
        try:
            model = Users.from_dict(description)
        except ValueError as error:
            raise ValueError(f"models[{number}]: {error}") from None
        if model.kind in models:
            raise ValueError(f"models[{number}]: a second {model.kind}; expected one of each kind")
        models[model.kind] = model
    return models
