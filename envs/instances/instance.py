"""Instances: ready-made problems by name, by seed, or from a file.

`load_instance`, and every argument ``instance``, accepts:

* a shipped real search query, ``"yandex-98435"`` (parameters estimated from click logs, as the file
  describes);
* a synthetic instance of a paper, ``"lagree2016-small"``, some with arguments:
  ``"li2019-chi-min:i=3"``;
* a random family by seed, ``"uniform:n_items=20,n_positions=5,seed=3"``,
  ``"yandex-like:n_items=20,n_positions=5,seed=3"``;
* any of them with random item ids, so that ids carry no information:
  ``"yandex-98435:shuffle=1"``, where 1 is a seed;
* a JSON file of your own, ``"folder/mine.json"``, written by `Instance.save` or holding the
  ``to_dict()`` of one click model; or the content of such a file, as a dict;
* an `Instance`.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.checks import (
    as_call,
    check_path,
    check_positions,
    check_seed,
    short,
    unknown,
)
from ...core.files import read_json, write_whole
from ...core.specs import parse_spec
from ..click_model import CLICK_MODELS
from ..spaces import named_ranking
from ..users import Users

FORMAT, VERSION = "clickgym-instance", 1
FOLDER = Path(__file__).parent

DEFAULT_INSTANCE = "yandex-9982"
"""The default instance of the stationary environments.

It is the query with by far the most sessions (23,885), so its parameters are the most precise. Its
attractions are well spread, and in the position-based model the best list has a third more clicks
than the production list.
"""


class LazyModels(Mapping[str, Any]):
    """Users by their kinds, each built when it is asked for.

    Args:
        sources: by kind what it is built from, known to be valid.
        build: returns the users of a source.
    """

    def __init__(self, sources: Mapping[str, Any], build: Callable[[Any], Any]) -> None:
        self._sources, self._build = sources, build
        self._built: dict[str, Any] = {}

    def __getitem__(self, kind: str) -> Any:
        if kind not in self._built:
            self._built[kind] = self._build(self._sources[kind])
        return self._built[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)


@dataclass(frozen=True, eq=False)
class Instance:
    """One ranking problem: the same items and users under one or several click models.

    Args:
        name: the name of the instance in results.
        models: the click models (and other users) by `Users.kind`, with all positions that have
            parameters; the names of classes are also accepted.
        n_positions: K, the default number of positions.
        description: a description in one line.
        origin: where the parameters come from.
        initial_ranking: ``(L,)`` all item ids in the order of the production list, best first; None
            without such a list.
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
        if isinstance(self.models, LazyModels):  # of the package, where tests check them
            if self.initial_ranking is not None:
                object.__setattr__(self, "initial_ranking", np.array(self.initial_ranking))
            return
        object.__setattr__(self, "models", dict(self.models))
        sizes = {name: model.n_items for name, model in self.models.items()}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"models have different numbers of items: {sizes}")
        n_items = next(iter(sizes.values()))
        available = min(model.n_positions for model in self.models.values())
        object.__setattr__(
            self, "n_positions", check_positions(self.n_positions, n_items, available)
        )
        if self.initial_ranking is not None:
            ranking = named_ranking("initial_ranking", self.initial_ranking, n_items, n_items)
            object.__setattr__(self, "initial_ranking", ranking.copy())

    @property
    def n_items(self) -> int:
        """L, the number of items."""
        if self.initial_ranking is not None:
            return len(self.initial_ranking)
        return next(iter(self.models.values())).n_items

    @property
    def labels(self) -> tuple[str, ...]:
        """The name of each item in the log from which the instance was estimated, ``(L,)``; the ids
        without a log, and of a shipped instance, whose items have no names.
        """
        items = self.estimation.get("items")
        if not isinstance(items, list | tuple) or len(items) != self.n_items:
            return tuple(map(str, range(self.n_items)))
        return tuple(map(str, items))

    def __repr__(self) -> str:
        sizes = {"n_items": self.n_items, "n_positions": self.n_positions}
        return as_call(self, name=self.name, **sizes, models=list(self.models))

    def model(self, model_class: type[Users] | str, n_positions: int | None = None) -> Any:
        """Return the users of the instance under one click model.

        Args:
            model_class: a click model class, its short name, or a kind such as
                ``"PiecewiseStationaryModel of CM"``.
            n_positions: K; None takes that of the instance.

        Raises:
            ValueError: the instance has no such model, or fewer positions.
        """
        name = model_class if isinstance(model_class, str) else model_class.name()
        if name not in self.models:
            has = f"it has {', '.join(self.models)}"
            raise ValueError(f"the instance {self.name!r} has no {name!r}; {has}")
        users = self.models[name]
        length = self.n_positions if n_positions is None else n_positions
        return users if length == users.n_positions else users.with_positions(length)

    def shuffled(self, seed: int) -> Instance:
        """Return the same instance with item ids in random order, so that an id carries no
        information.

        Args:
            seed: of the order.

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
        if isinstance(estimation.get("items"), list | tuple):
            estimation["items"] = [self.labels[item] for item in order]
        return replace(self, models=models, initial_ranking=initial, estimation=estimation)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the instance to a JSON file, atomically; `load_instance` reads it."""
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
Their arguments are numbers or text, all with defaults; the docstring is the description.
"""


def load_instance(name: AnyInstance) -> Instance:
    """Load an instance by name, from a file, or from a dict.

    Args:
        name: a name in `list_instances`, which may have arguments. Or the path of a JSON file: a
            path object, or a string that ends with ``.json``. Or the content of such a file, as a
            dict. An instance is returned as it is.

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
        raise TypeError(f"instance is {short(name)}; expected a name, path, dict or Instance")
    if not isinstance(name, str) or name.endswith(".json"):
        return _read(Path(name))
    base = name.partition(":")[0]
    if base in FAMILIES:
        return _generate(name, FAMILIES[base])
    if base in shipped_instances():
        order = _arguments(name, {})["shuffle"] if name != base else None
        content = _shipped(base)
        estimation = dict(content["estimation"])
        instance = Instance(**content | {"name": name, "estimation": estimation})
        return instance if order is None else instance.shuffled(order)
    raise ValueError(unknown("instance", base, list_instances()) + "; a file must end with .json")


def _generate(name: str, make: Callable[..., Instance]) -> Instance:
    """Return the instance that a function makes, with arguments such as ``"n_items=20,seed=3"``;
    ``name`` is the whole specification.
    """
    signature = inspect.signature(make).parameters
    defaults = {key: parameter.default for key, parameter in signature.items()}
    given = _arguments(name, defaults)
    order = given.pop("shuffle")
    values = defaults | given
    if "n_positions" in defaults.keys() - given and given.get("n_items", 0) > 0:
        # the default length of a list, shortened to what there is
        values["n_positions"] = min(values["n_positions"], values["n_items"])
    try:
        is_ours = make.__module__.startswith(f"{__package__}.")
        is_file = any(str(value).endswith(".json") for value in values.values())
        if is_ours and not is_file:
            made = _made(make, tuple(values.items()), tuple(CLICK_MODELS.values()))
        else:  # the user's files and families may change, so they are not cached
            made = make(**values)
        description = made.description or " ".join((make.__doc__ or "").split())
        made = replace(made, name=name, description=description, estimation=dict(made.estimation))
        return made if order is None else made.shuffled(order)
    except ValueError as error:
        raise ValueError(f"{name!r}: {error}") from None


def _arguments(name: str, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments in a specification, values of the types of the defaults.

    Each instance also takes ``shuffle``, the seed of random item ids; without it, None.
    """
    kinds = {key: type(default) for key, default in defaults.items()} | {"shuffle": int}

    def value_of(key: str, text: str) -> Any:
        if key not in kinds:
            raise ValueError(unknown("argument", key, kinds))
        try:
            return kinds[key](text)
        except ValueError:
            wanted = "an integer" if kinds[key] is int else "a number"
            raise ValueError(f"it is {short(text)}; expected {wanted}") from None

    return {"shuffle": None} | parse_spec(name, value_of)[1]


# Cached: most programs use few instances, and their models are immutable.
@lru_cache(maxsize=8)
def _made(make: Callable[..., Instance], values: tuple[Any, ...], models: object) -> Instance:
    """Make an instance. ``models`` is part of the key, because families hold every click model."""
    return make(**dict(values))


def list_instances() -> dict[str, str]:
    """Return every name that `load_instance` knows, with a description in one line.

    Example:
        >>> list_instances()["lagree2016-small"]
        'Lagrée 2016: 5 items, 3 positions (PBM)'
    """
    generated = {
        name: " ".join((make.__doc__ or "").split()) for name, make in sorted(FAMILIES.items())
    }
    shipped = {name: _shipped(name)["description"] for name in shipped_instances()}
    return shipped | generated


@cache
def shipped_instances() -> tuple[str, ...]:
    """Return the names of the shipped real queries, in natural order."""
    names = [file.stem for file in FOLDER.glob("yandex-*.json") if file.stem not in FAMILIES]
    return tuple(sorted(names, key=lambda name: [int(part) for part in name.split("-")[1:]]))


@cache
def _shipped(name: str) -> dict[str, Any]:
    """Return the fields of a shipped instance, whose models are built when they are asked for."""
    content = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))  # a test has checked it
    fields = {key: value for key, value in content.items() if key not in ("format", "version")}
    descriptions = {str(entry["model"]): entry for entry in content["models"]}
    return fields | {"models": LazyModels(descriptions, Users.from_dict)}


# -------------------------------------------------------------------------------------------- files


def _read(path: Path) -> Instance:
    try:
        content = read_json(path)
    except FileNotFoundError:
        raise ValueError(f"the instance file {path} does not exist") from None
    return _from_content(path.stem, content, path)


def _from_content(name: str, content: Mapping[str, Any], where: object) -> Instance:
    """Return the instance that a JSON object describes; messages name ``where`` it comes from."""
    try:
        if "model" in content:
            model = Users.from_dict(content)
            origin = "a user's click model"
            return Instance(name, {model.kind: model}, model.n_positions, origin=origin)
        if (content.get("format"), content.get("version")) != (FORMAT, VERSION):
            raise ValueError(
                f'it has neither a field "model", such as "PBM", nor the format {FORMAT!r} in '
                f"version {VERSION}"
            )
        entries = {key: value for key, value in content.items() if key not in ("format", "version")}
        return Instance(**entries | {"models": _models(content.get("models"))})
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from None


def _models(descriptions: Any) -> dict[str, Users]:
    """Return users by their kinds, from their descriptions."""
    if not isinstance(descriptions, list) or not descriptions:
        raise ValueError(f"models is {short(descriptions)}; expected a list of click models")
    models: dict[str, Users] = {}
    for number, description in enumerate(descriptions):
        try:
            model = Users.from_dict(description)
        except ValueError as error:
            raise ValueError(f"models[{number}]: {error}") from None
        models[model.kind] = model
    return models
