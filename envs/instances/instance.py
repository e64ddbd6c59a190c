"""Instances: ready-made problems by name, by seed, or from a file.

Four kinds, all of which `load_instance` accepts wherever an ``instance`` is asked for:

* a shipped real search query, ``"yandex-98435"`` (parameters estimated from click logs, see the file's own text);
* a synthetic instance of a paper, ``"lagree2016-small"``, some with arguments: ``"li2019-chi-min:i=3"``;
* a random family by seed, ``"uniform:n_items=20,n_positions=5,seed=3"``,
  ``"yandex-like:n_items=20,n_positions=5,seed=3"``;
* a JSON file of your own, ``"folder/mine.json"``: what `Instance.save` writes, or just the ``to_dict()`` of one click
  model.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks import check_count, check_positions, unknown
from ..click_model import ClickModel
from ..files import write_whole

__all__ = ["DEFAULT_INSTANCE", "Instance", "list_instances", "load_instance"]

FORMAT, VERSION = "clickgym-instance", 1
FOLDER = Path(__file__).parent

DEFAULT_INSTANCE = "yandex-9982"
"""The instance of every stationary environment when none is asked for.

The query with by far the most sessions (23,885), so its parameters are the surest; its attractions are well spread, and
under the position-based model the list in production leaves a quarter of the clicks to gain.
"""


@dataclass(frozen=True, eq=False)
class Instance:
    """One ranking problem: the same items and users under one or several click models.

    Args:
        name: how results call it.
        models: the click models by `ClickModel.kind`, over all positions for which there are parameters.
        n_positions: K, the number of positions unless another is asked for.
        description: one line.
        origin: where the parameters come from.
        initial_ranking: ``(L,)`` all item ids, the list that is in production, best first; None if there is none.
        estimation: how the parameters were estimated, and from how many sessions.

    Raises:
        ValueError: naming the field and what was expected.

    Example:
        >>> from clickgym.envs import CascadeModel
        >>> instance = Instance("toy", {"CascadeModel": CascadeModel([0.5, 0.2, 0.1], n_positions=3)}, n_positions=2)
        >>> instance.model("CascadeModel")
        CascadeModel(n_items=3, n_positions=2)
    """

    name: str
    models: Mapping[str, ClickModel]
    n_positions: int
    description: str = ""
    origin: str = ""
    initial_ranking: NDArray[np.int64] | None = None
    estimation: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key in ("name", "description", "origin"):
            if not isinstance(getattr(self, key), str):
                raise ValueError(f"{key} is {getattr(self, key)!r}; expected text")
        if not self.models:
            raise ValueError("models is empty; expected at least one click model")
        sizes = {name: model.n_items for name, model in self.models.items()}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"models have different numbers of items: {sizes}")
        available = min(model.n_positions for model in self.models.values())
        check_positions(self.n_positions, self.n_items, available)
        if self.initial_ranking is not None:
            ranking = np.atleast_1d(np.array(self.initial_ranking, dtype=object)).tolist()
            if any(type(item) is not int for item in ranking) or sorted(ranking) != list(range(self.n_items)):
                raise ValueError(f"initial_ranking must hold each item id from 0 to {self.n_items - 1} exactly once")
            object.__setattr__(self, "initial_ranking", np.array(ranking, np.int64))

    @property
    def n_items(self) -> int:
        """L, the number of items."""
        return next(iter(self.models.values())).n_items

    def model(self, model_class: type[ClickModel] | str, n_positions: int | None = None) -> ClickModel:
        """The instance under one click model.

        Args:
            model_class: a click model class, or the name of a kind, such as ``"PiecewiseStationaryModel of CascadeModel"``.
            n_positions: K; None takes the instance's.

        Raises:
            ValueError: if the instance has no such model, or not so many positions.
        """
        name = model_class if isinstance(model_class, str) else model_class.__name__
        if name not in self.models:
            raise ValueError(f"the instance {self.name!r} has no {name}; it has {', '.join(self.models)}")
        return self.models[name].with_positions(self.n_positions if n_positions is None else n_positions)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the instance to a JSON file, which `load_instance` reads back; no half-written file is left."""
        entries = {
            "format": FORMAT,
            "version": VERSION,
            "name": self.name,
            "description": self.description,
            "origin": self.origin,
            "n_positions": self.n_positions,
            "initial_ranking": None if self.initial_ranking is None else self.initial_ranking.tolist(),
            "estimation": dict(self.estimation),
        }
        lines = [f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in entries.items()]
        models = ",\n".join(f"  {json.dumps(model.to_dict())}" for model in self.models.values())
        text = "{\n" + ",\n".join([*lines, f' "models": [\n{models}\n ]']) + "\n}\n"
        write_whole(Path(path), lambda draft: draft.write_text(text, encoding="utf-8"))


def load_instance(name: str | PathLike[str]) -> Instance:
    """The instance of a name, or in a file.

    Args:
        name: a name that `list_instances` gives, with arguments where it takes some, or the path of a JSON file
            (anything that ends with ``.json`` or is a path object).

    Returns:
        The instance, completely validated.

    Raises:
        ValueError: on an unknown name (with a suggestion), a bad argument, or a file that is absent or not an instance:
            naming the file, the field and what was expected.

    Example:
        >>> load_instance("yandex-98435").model("PositionBasedModel")
        PositionBasedModel(n_items=10, n_positions=5)
        >>> load_instance("uniform:n_items=20,n_positions=3,seed=1").n_items
        20
    """
    if not isinstance(name, str) or name.endswith(".json"):
        return _read(Path(name))
    base, colon, arguments = name.partition(":")
    if base in GENERATED:
        return _generate(name, base, arguments)
    if base in _shipped():
        if colon:
            raise ValueError(f"the instance {base!r} takes no arguments, got {arguments!r}")
        return _read(FOLDER / f"{base}.json")
    raise ValueError(unknown("instance", base, list_instances()) + "; a file must end with .json")


def list_instances() -> dict[str, str]:
    """Every name that `load_instance` knows, with one line that describes it.

    Example:
        >>> list_instances()["lagree2016-small"]
        'Lagrée 2016: 5 items, 3 positions (PositionBasedModel)'
    """
    generated = {name: make.__doc__ or "" for name, make in GENERATED.items()}
    return {name: _json(FOLDER / f"{name}.json")["description"] for name in _shipped()} | generated


def _shipped() -> list[str]:
    """The names of the shipped real queries, in natural order."""
    names = [file.stem for file in FOLDER.glob("yandex-*.json") if file.stem not in GENERATED]
    return sorted(names, key=lambda name: [int(part) for part in name.split("-")[1:]])


# ------------------------------------------------------------------------------------------------------------ files


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"there is no instance file {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not JSON: {error}") from None


def _read(path: Path) -> Instance:
    content = _json(path)
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds a {type(content).__name__}; expected a JSON object")
    try:
        return _from_model(path.stem, content) if "model" in content else _from_entries(content)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _from_model(name: str, description: dict[str, Any]) -> Instance:
    model = ClickModel.from_dict(description)
    return Instance(name, {model.kind: model}, model.n_positions, origin="a user's click model")


def _from_entries(content: dict[str, Any]) -> Instance:
    for key, expected in (("format", FORMAT), ("version", VERSION)):
        if content.get(key) != expected:
            raise ValueError(f"{key} is {content.get(key)!r}; expected {expected!r}")
    fields = ["name", "description", "origin", "n_positions", "initial_ranking", "estimation", "models"]
    for key in content:
        if key not in ["format", "version", *fields]:
            raise ValueError(unknown("field", key, fields))
    for key in ("name", "n_positions", "models"):
        if key not in content:
            raise ValueError(f"the field {key!r} is missing")
    if not isinstance(content["models"], list):
        raise ValueError("models must be a list of click models")
    if not isinstance(content.get("estimation", {}), dict):
        raise ValueError("estimation must be a JSON object")
    models: dict[str, ClickModel] = {}
    for number, description in enumerate(content["models"]):
        try:
            model = ClickModel.from_dict(description)
        except ValueError as error:
            kind = description.get("model") if isinstance(description, dict) else description
            raise ValueError(f"models[{number}] ({kind}): {error}") from None
        if model.kind in models:
            raise ValueError(f"models[{number}]: a second {model.kind}; expected one of each kind")
        models[model.kind] = model
    return Instance(models=models, **{key: content[key] for key in fields if key != "models" and key in content})


# -------------------------------------------------------------------------------------------- instances from arguments


def _generate(name: str, base: str, arguments: str) -> Instance:
    known = inspect.signature(GENERATED[base]).parameters
    values: dict[str, Any] = {}
    for argument in arguments.split(",") if arguments else []:
        key, _, text = argument.partition("=")
        key = key.strip()
        if not known:
            raise ValueError(f"the instance {base!r} takes no arguments, got {arguments!r}")
        if key not in known:
            raise ValueError(f"{name!r}: {unknown('argument', key, known)}")
        if key in values:
            raise ValueError(f"{name!r}: {key} is given twice")
        kind = type(known[key].default)
        try:
            values[key] = kind(text)
        except ValueError:
            wanted = "an integer" if kind is int else "a number"
            raise ValueError(f"{name!r}: {key} is {text!r}; expected {wanted}") from None
    try:
        make = GENERATED[base]
        return replace(make(**values), name=name, description=make.__doc__ or "")
    except ValueError as error:
        raise ValueError(f"{name!r}: {error}") from None


def _model(name: str, **parameters: Any) -> ClickModel:
    return ClickModel.from_dict({"model": name, **parameters})


def _of_models(models: Sequence[ClickModel], origin: str, initial_ranking: NDArray[np.int64] | None = None) -> Instance:
    return Instance(
        "",
        {model.kind: model for model in models},
        models[0].n_positions,
        origin=origin,
        initial_ranking=initial_ranking,
    )


def _kveton2015(n_items: int = 16, n_positions: int = 2, p: float = 0.2, delta: float = 0.15) -> Instance:
    """Kveton 2015: B_LB(L, K, p, Δ), K items attract with p and the others with p - Δ (CascadeModel)"""
    check_positions(n_positions, n_items)
    attraction = np.where(np.arange(n_items) < n_positions, p, p - delta)
    return _of_models(
        [_model("CascadeModel", attraction=attraction, n_positions=n_positions)],
        "B. Kveton et al., Cascading bandits: learning to rank in the cascade model, ICML 2015, section 5.1",
    )


def _lagree2016_small() -> Instance:
    """Lagrée 2016: 5 items, 3 positions (PositionBasedModel)"""
    return _of_models(
        [_model("PositionBasedModel", attraction=[0.45, 0.35, 0.25, 0.15, 0.05], examination=[0.9, 0.6, 0.3])],
        "P. Lagrée, C. Vernade, O. Cappé, Multiple-play bandits in the position-based model, NIPS 2016, section 5",
    )


def _li2019_chi_min(i: int = 1) -> Instance:
    """Li 2019a, figure 3: the best of 10 items starts last, where it is examined with 0.5^i (PositionBasedModel)"""
    if i < 1:
        raise ValueError(f"i is {i}; expected a positive integer")
    return _of_models(
        [_model("PositionBasedModel", attraction=[0.9] + [0.5] * 9, examination=[0.9] * 8 + [0.5**i] * 2)],
        "C. Li et al., BubbleRank: safe online learning to re-rank via implicit click feedback, UAI 2019, section 5.4",
        initial_ranking=np.roll(np.arange(10), -1),
    )


def _uniform(n_items: int = 10, n_positions: int = 5, seed: int = 0) -> Instance:
    """Every parameter uniform on [0, 1], examination sorted so that lower positions are seen less (all click models)"""
    attraction, satisfaction, rng = _items(n_items, n_positions, seed)
    curve = np.sort(rng.random(n_positions))[::-1]
    browsing = np.sort(rng.random((n_positions, n_positions)), axis=0)[::-1]
    return _of_models(
        [
            _model("CascadeModel", attraction=attraction, n_positions=n_positions),
            _model("PositionBasedModel", attraction=attraction, examination=curve),
            _model("DependentClickModel", attraction=attraction, termination=rng.random(n_positions)),
            _model("UserBrowsingModel", attraction=attraction, examination=np.tril(browsing)),
            _model(
                "DynamicBayesianModel",
                attraction=attraction,
                satisfaction=satisfaction,
                perseverance=rng.random(),
                n_positions=n_positions,
            ),
        ],
        "drawn at random",
    )


def _yandex_like(n_items: int = 10, n_positions: int = 5, seed: int = 0) -> Instance:
    """Drawn from distributions fitted to the real queries, any number of items and positions (all click models)"""
    from scipy.special import betaincinv, expit  # only here, for it takes longer to import than all the rest

    attraction, satisfaction, _ = _items(n_items, n_positions, seed)
    family = _json(FOLDER / "yandex-like.json")

    def items(quantiles: NDArray[np.float64], parameter: str, model: str) -> NDArray[np.float64]:
        return betaincinv(*family[parameter][model], quantiles)

    def model(name: str, **parameters: Any) -> ClickModel:
        return _model(name, attraction=items(attraction, "attraction", name), **parameters)

    position = np.log(np.arange(1, n_positions + 1))

    def curve(parameter: str) -> NDArray[np.float64]:
        intercept, slope = family[parameter]
        return expit(intercept + slope * position)

    k, j = np.indices((n_positions, n_positions))
    intercept, slope, distance_slope = family["browsing_after_click"]
    browsing = expit(intercept + slope * position[:, None] + distance_slope * np.log(np.maximum(k + 1 - j, 1)))
    browsing[:, 0] = curve("browsing_before_click")
    return _of_models(
        [
            model("CascadeModel", n_positions=n_positions),
            model("PositionBasedModel", examination=curve("examination")),
            model("DependentClickModel", termination=curve("termination")),
            model("UserBrowsingModel", examination=np.tril(browsing)),
            model(
                "DynamicBayesianModel",
                satisfaction=items(satisfaction, "satisfaction", "DynamicBayesianModel"),
                perseverance=family["perseverance"],
                n_positions=n_positions,
            ),
        ],
        family["origin"],
    )


def _epochs(base: Instance, n_positions: int, length: int, attractions: Callable[..., Iterable[Any]]) -> Instance:
    """For each click model of an instance the same with attractions that change every ``length`` steps."""
    check_count("length", length)
    models = []
    for model in base.models.values():
        first = model.with_positions(check_positions(n_positions, model.n_items, model.n_positions))
        epochs = [
            ClickModel.from_dict(first.to_dict() | {"attraction": attraction.tolist()})
            for attraction in attractions(first.attraction)
        ]
        models.append(_model("PiecewiseStationaryModel", models=epochs, starts=np.arange(len(epochs)) * length))
    return _of_models(models, base.origin, base.initial_ranking)


def _li2019_switching(
    query: str = DEFAULT_INSTANCE, n_positions: int = 3, n_epochs: int = 10, length: int = 10_000, seed: int = 0
) -> Instance:
    """Li 2019b: in every second epoch three random items outside the top K attract with 0.9 (all models, changing)"""
    check_count("n_epochs", n_epochs)
    base = load_instance(query)
    if base.n_items < n_positions + 3:
        raise ValueError(f"{query!r} has {base.n_items} items; expected n_positions + 3 = {n_positions + 3} or more")

    def attractions(attraction: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        rng = np.random.default_rng(seed)
        others = np.argsort(-attraction, kind="stable")[n_positions:]
        result = [attraction.copy() for _ in range(n_epochs)]
        for raised in result[1::2]:
            raised[rng.choice(others, 3, replace=False)] = 0.9
        return result

    return _epochs(base, n_positions, length, attractions)


def _abrupt(n_items: int = 10, n_positions: int = 5, n_epochs: int = 10, length: int = 10_000, seed: int = 0) -> Instance:
    """Attractions drawn afresh, uniform on [0, 1], in every epoch (all models, changing)"""
    check_count("n_epochs", n_epochs)
    rng_seed = np.random.SeedSequence(seed, spawn_key=(1,))  # the first epoch is the stationary instance of the seed
    return _epochs(
        _uniform(n_items, n_positions, seed),
        n_positions,
        length,
        lambda attraction: [attraction, *np.random.default_rng(rng_seed).random((n_epochs - 1, n_items))],
    )


def _random_walk(
    n_items: int = 10,
    n_positions: int = 5,
    n_epochs: int = 100,
    length: int = 1_000,
    step: float = 0.05,
    seed: int = 0,
) -> Instance:
    """Attractions move by Gaussian steps, reflected at 0 and 1, from epoch to epoch (all models, changing)"""
    check_count("n_epochs", n_epochs)
    if not 0 <= step < np.inf:
        raise ValueError(f"step is {step}; expected a number >= 0")
    rng_seed = np.random.SeedSequence(seed, spawn_key=(2,))

    def attractions(attraction: NDArray[np.float64]) -> NDArray[np.float64]:
        moves = np.random.default_rng(rng_seed).normal(0.0, step, (n_epochs, n_items))
        moves[0] = 0.0
        walk = np.mod(attraction + moves.cumsum(axis=0), 2.0)
        return np.minimum(walk, 2.0 - walk)  # folded back into [0, 1]

    return _epochs(_uniform(n_items, n_positions, seed), n_positions, length, attractions)


def _linear(
    n_items: int = 20,
    n_positions: int = 5,
    n_features: int = 10,
    n_pool: int = 1_000,
    n_users: int = 100,
    query: str = DEFAULT_INSTANCE,
    seed: int = 0,
) -> Instance:
    """20 candidates in each session, attraction linear in features, examination of a real query (contextual models)"""
    for name, value in (("n_features", n_features), ("n_pool", n_pool), ("n_users", n_users)):
        check_count(name, value)
    check_positions(n_positions, check_count("n_items", n_items))
    if seed < 0:
        raise ValueError(f"seed is {seed}; expected an integer from 0")
    # Users and items are mixtures of topics, most of them of one or two, and few topics attract much: θ* are the cubes of
    # equally spaced numbers, in random order. With entries that add up to 1, θ*ᵀx is a mean of the θ*, and ‖x‖₂ ≤ ‖x‖₁ = 1.
    rng = np.random.default_rng(seed)
    n_user_features = n_features // 2
    sizes = (n_user_features, n_features - n_user_features)
    theta = np.concatenate([rng.permutation((np.arange(size) + 0.5) / max(size, 1)) ** 3 for size in sizes])
    items = rng.dirichlet(np.full(n_features - n_user_features, 0.3), n_pool)
    users = rng.dirichlet(np.full(n_user_features, 0.3), n_users) if n_user_features else None
    share = 0.0 if users is None else 0.25
    known = load_instance(query)
    models = []
    for kind in ("UserBrowsingModel", "PositionBasedModel", "CascadeModel", "DependentClickModel"):
        base = known.model(kind, n_positions).to_dict() | {"attraction": [0.0] * n_items}
        scaled = {"items": (1.0 - share) * items, "users": None if users is None else share * users}
        models.append(_model("LinearModel", base=base, theta=theta, **scaled))
    return _of_models(models, f"features and θ* drawn at random; examination: {known.origin}")


def _items(n_items: int, n_positions: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64], np.random.Generator]:
    """Uniform numbers for the items' two parameters, and the generator of what else is drawn.

    Each has a generator of its own, so that the items of a seed do not depend on the number of positions.
    """
    check_positions(n_positions, check_count("n_items", n_items))
    if seed < 0:
        raise ValueError(f"seed is {seed}; expected an integer from 0")
    first, second, third = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(3))
    return first.random(n_items), second.random(n_items), third


GENERATED: dict[str, Callable[..., Instance]] = {
    "abrupt": _abrupt,
    "kveton2015": _kveton2015,
    "lagree2016-small": _lagree2016_small,
    "li2019-chi-min": _li2019_chi_min,
    "li2019-switching": _li2019_switching,
    "linear": _linear,
    "random-walk": _random_walk,
    "uniform": _uniform,
    "yandex-like": _yandex_like,
}
"""The instances made from arguments: the first line of each function's docstring describes it in `list_instances`."""

DEFAULT_INSTANCES = {
    kind: instance
    for model in ("CascadeModel", "PositionBasedModel", "DependentClickModel", "UserBrowsingModel", "DynamicBayesianModel")
    for kind, instance in (
        (model, DEFAULT_INSTANCE),
        (f"PiecewiseStationaryModel of {model}", "li2019-switching"),
        (f"LinearModel of {model}", "linear"),
    )
}
"""The instance of an environment when none is asked for, by the kind of its click model."""
