"""Families of instances with the same items in every session: instances from papers, random
instances, instances with users who change, and mixtures.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np

from ...core.checks import check_positions
from ...core.files import read_json
from ...core.state import Floats
from ..click_models.cascade import CascadeModel
from ..click_models.click_model import CLICK_MODELS, ClickModel
from ..click_models.mixture import MixtureModel
from ..click_models.position_based import PositionBasedModel
from ..click_models.trust_bias import TrustBiasModel
from ..users.piecewise_stationary import PiecewiseStationaryModel
from .instance import (
    DEFAULT_INSTANCE,
    FOLDER,
    Count,
    Instance,
    NotNegative,
    Probability,
    Seed,
    Share,
    family,
    instance_of,
    load_instance,
)

# ------------------------------------------------------------------------------------ of the papers


@family(
    "K items have attraction p and the others p - Δ, as in Kveton et al. 2015 (CM; PBM with χ_k = "
    "1/k)"
)
def _kveton2015(
    n_items: Count = 16, n_positions: Count = 2, p: Probability = 0.2, delta: Probability = 0.15
) -> Instance:
    attraction = np.where(np.arange(n_items) < n_positions, p, p - delta)
    models = [
        CascadeModel(attraction, n_positions),
        PositionBasedModel(attraction, _examination(n_positions, 1.0)),
    ]
    paper = "Cascading bandits: learning to rank in the cascade model, ICML 2015, section 5.1"
    return instance_of(models, f"B. Kveton et al., {paper}")


def _examination(n_positions: int, eta: float) -> Floats:
    """Return examination probabilities ``1 / k^η``, as is usual in the literature on position
    bias.
    """
    return np.arange(1.0, n_positions + 1) ** -eta


@family("Lagrée 2016: 5 items, 3 positions (PBM)")
def _lagree2016_small() -> Instance:
    model = PositionBasedModel([0.45, 0.35, 0.25, 0.15, 0.05], [0.9, 0.6, 0.3])
    paper = "Multiple-play bandits in the position-based model, NIPS 2016, section 5"
    return instance_of([model], f"P. Lagrée, C. Vernade, O. Cappé, {paper}")


@family(
    "The best of 10 items is last in the production list, and the last two positions are examined "
    "with probability 0.5^i, as in figure 3 of the BubbleRank paper, Li et al. 2019 (PBM)"
)
def _li2019_chi_min(i: Count = 1) -> Instance:
    model = PositionBasedModel([0.9] + [0.5] * 9, [0.9] * 8 + [0.5**i] * 2)
    paper = "BubbleRank: safe online learning to re-rank via implicit click feedback, UAI 2019"
    origin = f"C. Li et al., {paper}, section 5.4"
    return instance_of([model], origin, initial_ranking=np.roll(np.arange(10), -1))


# ------------------------------------------------------------------------------------------- random


@family(
    "Position k is examined with probability 1/k^η, from mild (η = 0.25) to steep (η = 2) position "
    "bias, and attractions resemble those of real queries (PBM, TPBM)"
)
def _position_bias(
    n_items: Count = 10, n_positions: Count = 5, eta: NotNegative = 1.0, seed: Seed = 0
) -> Instance:
    attraction = _yandex_like(n_items, n_positions, seed).model("PBM").attraction
    examination = _examination(n_positions, eta)
    models = [kind(attraction, examination) for kind in (PositionBasedModel, TrustBiasModel)]
    return instance_of(models, "drawn at random")


@family(
    "Attractions are at most 0.02 (argument most) and mostly below half of this maximum; all other "
    "parameters resemble those of real queries (all click models)"
)
def _rare_clicks(
    n_items: Count = 10, n_positions: Count = 5, most: Probability = 0.02, seed: Seed = 0
) -> Instance:
    order = np.random.default_rng(seed).permutation(n_items)
    attraction = most * np.logspace(-1.5, 0, n_items)[order]
    base = _yandex_like(n_items, n_positions, seed)
    models = [base.model(kind).with_items(attraction=attraction) for kind in base.models]
    return instance_of(models, "drawn at random")


@family(
    "All parameters are uniform on [0, 1]; lower positions are examined less often (all click "
    "models)"
)
def _uniform(n_items: Count = 10, n_positions: Count = 5, seed: Seed = 0) -> Instance:
    attraction, satisfaction, rng = _draw_item_values(n_items, n_positions, seed)
    curve = np.sort(rng.random(n_positions))[::-1]
    browsing = np.sort(rng.random((n_positions, n_positions)), axis=0)[::-1]
    table = {
        ("attraction", "L"): attraction,
        ("satisfaction", "L"): satisfaction,
        ("examination", "K"): curve,
        ("examination", "KK"): np.tril(browsing),
        ("termination", "K"): rng.random(n_positions),
        ("perseverance", ""): rng.random(),
    }
    models = []
    for model_class in CLICK_MODELS.values():
        # Click models from outside clickgym may reject these parameters; the family omits them.
        with contextlib.suppress(ValueError):
            models.append(draw_model(model_class, table, n_items, n_positions, seed))
    return instance_of(models, "drawn at random")


@family(
    "Parameters are drawn from distributions that were fitted to the real queries, for any number "
    "of items and positions (all click models)"
)
def _yandex_like(n_items: Count = 10, n_positions: Count = 5, seed: Seed = 0) -> Instance:
    from scipy.special import betaincinv, expit  # only here, because importing SciPy is slow

    attraction, satisfaction, _ = _draw_item_values(n_items, n_positions, seed)
    family = read_json(FOLDER / "yandex-like.json")
    quantiles = {"attraction": attraction, "satisfaction": satisfaction}
    position = np.log(np.arange(1, n_positions + 1))

    def curve(parameter: str) -> Floats:
        intercept, slope = family[parameter]
        return expit(intercept + slope * position)

    k, j = np.indices((n_positions, n_positions))
    intercept, slope, distance_slope = family["browsing_after_click"]
    distance = np.log(np.maximum(k + 1 - j, 1))
    browsing = expit(intercept + slope * position[:, None] + distance_slope * distance)
    browsing[:, 0] = curve("browsing_before_click")
    table = {
        ("examination", "K"): curve("examination"),
        ("examination", "KK"): np.tril(browsing),
        ("termination", "K"): curve("termination"),
    }
    table |= {(name, ""): value for name, value in family.items() if isinstance(value, float)}
    models = []
    for name in family["attraction"]:
        for parameter, values in quantiles.items():
            if name in family[parameter]:
                table[parameter, "L"] = betaincinv(*family[parameter][name], values)
        models.append(draw_model(CLICK_MODELS[name], table, n_items, n_positions, seed))
    return instance_of(models, family["origin"])


@family(
    "The users of yandex-like, with a production list about as good as the production lists of the "
    "real queries (all click models)"
)
def _in_production(
    n_items: Count = 10, n_positions: Count = 5, noise: NotNegative = 0.4, seed: Seed = 0
) -> Instance:
    base = _yandex_like(n_items, n_positions, seed)
    # The production list sorts items by their attraction's quantile plus noise. With noise 0.4,
    # the mean of Kendall's tau is 0.4, as for the real queries.
    quantiles = _draw_item_values(n_items, n_positions, seed)[0]
    noisy = quantiles + noise * child_rng(seed, 3).normal(size=n_items)
    return replace(base, initial_ranking=np.argsort(-noisy, kind="stable"))


def draw_model(
    model_class: type[ClickModel],
    table: Mapping[tuple[str, str], Any],
    n_items: int,
    n_positions: int,
    seed: int,
) -> ClickModel:
    """Return a click model with the parameters in a table, and with random values for parameters
    that the table lacks.

    Args:
        model_class: the class of the click model.
        table: the values of parameters, by name and shape (see `ClickModel.shapes`).
        n_items: L, the number of items.
        n_positions: K, the length of a list.
        seed: the seed of the random values, which are uniform on [0, 1] and have a separate
            generator for each parameter. A parameter whose default is None keeps this default.
    """
    sizes = {"L": n_items, "K": n_positions}
    signature = inspect.signature(model_class).parameters
    lengths = {"n_items": n_items, "n_positions": n_positions}
    arguments: dict[str, Any] = {key: lengths[key] for key in lengths.keys() & signature.keys()}
    for parameter, shape in model_class.shapes.items():
        if (parameter, shape) in table:
            arguments[parameter] = table[parameter, shape]
        elif signature[parameter].default is not None:
            rng = child_rng(seed, crc32(parameter.encode()))
            arguments[parameter] = rng.random([sizes[letter] for letter in shape] or None)
    return model_class(**arguments)


def child_rng(seed: int, *key: int) -> np.random.Generator:
    """Return a random generator that is independent of all generators with the same seed and a
    different key.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def _draw_item_values(
    n_items: int, n_positions: int, seed: int
) -> tuple[Floats, Floats, np.random.Generator]:
    """Return uniform random numbers for the attractions ``(L,)`` and satisfactions ``(L,)`` of
    items, and the generator for all other draws.

    The three generators are separate, so that a seed's items do not depend on the number of
    positions.
    """
    check_positions(n_positions, n_items)
    first, second, third = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(3))
    return first.random(n_items), second.random(n_items), third


# --------------------------------------------------------------------------------- users who change


def _changing_instance(
    base: Instance, n_positions: int, length: int, attractions: Callable[..., Iterable[Any]]
) -> Instance:
    """Return an instance in which the attractions of the click models of ``base`` change every
    ``length`` steps.

    In a click model without attraction, the first item parameter changes. ``attractions`` is a
    function that returns this parameter's values in each epoch, given its values in ``base``.
    """
    models = []
    for model in click_models(base):
        for parameter in model.item_parameters()[:1]:
            length_of_lists = check_positions(n_positions, model.n_items, model.n_positions)
            first = model.with_positions(length_of_lists)
            values_of_epochs = attractions(getattr(first.parameters, parameter))
            epochs = [first.with_items(**{parameter: values}) for values in values_of_epochs]
            starts = np.arange(len(epochs)) * length
            models.append(PiecewiseStationaryModel(epochs, starts))
    return instance_of(models, base.origin, base.initial_ranking)


@family(
    "In every second epoch, three random items outside the top K get the attraction 0.9, as in Li "
    "and de Rijke 2019 (all models, changing)"
)
def _li2019_switching(
    query: str = DEFAULT_INSTANCE,
    n_positions: Count = 3,
    n_epochs: Count = 10,
    length: Count = 10_000,
    seed: Seed = 0,
) -> Instance:
    base = load_instance(query)
    if base.n_items < n_positions + 3:
        expected = f"expected n_positions + 3 = {n_positions + 3} or more"
        raise ValueError(f"{query!r} has {base.n_items} items; {expected}")

    def attractions(attraction: Floats) -> list[Floats]:
        rng = np.random.default_rng(seed)
        others = np.argsort(-attraction, kind="stable")[n_positions:]
        result = [attraction.copy() for _ in range(n_epochs)]
        for raised in result[1::2]:
            raised[rng.choice(others, 3, replace=False)] = 0.9
        return result

    return _changing_instance(base, n_positions, length, attractions)


@family(
    "K of 2K items have an attraction that is higher by a gap, and both halves of the items swap "
    "attractions twice, as in theorem 3 of Li and de Rijke 2019 (all models, changing)"
)
def _li2019_two_changes(
    n_positions: Count = 3,
    attraction: Probability = 0.5,
    gap: Probability = 0.3,
    length: Count = 100_000,
    seed: Seed = 0,
) -> Instance:
    better, worse = [attraction] * n_positions, [attraction - gap] * n_positions
    epochs = [np.array(epoch) for epoch in (better + worse, worse + better, better + worse)]
    base = _uniform(2 * n_positions, n_positions, seed)
    return _changing_instance(base, n_positions, length, lambda _: epochs)


@family("Attractions are drawn anew in every epoch, uniform on [0, 1] (all models, changing)")
def _abrupt(
    n_items: Count = 10,
    n_positions: Count = 5,
    n_epochs: Count = 10,
    length: Count = 10_000,
    seed: Seed = 0,
) -> Instance:
    def attractions(attraction: Floats) -> list[Floats]:
        return [attraction, *child_rng(seed, 1).random((n_epochs - 1, n_items))]

    # The first epoch is the instance of the family uniform with the same seed.
    return _changing_instance(
        _uniform(n_items, n_positions, seed), n_positions, length, attractions
    )


@family(
    "From epoch to epoch, attractions move by Gaussian steps and are reflected at 0 and 1 (all "
    "models, changing)"
)
def _random_walk(
    n_items: Count = 10,
    n_positions: Count = 5,
    n_epochs: Count = 100,
    length: Count = 1_000,
    step: NotNegative = 0.05,
    seed: Seed = 0,
) -> Instance:
    def attractions(attraction: Floats) -> Floats:
        moves = child_rng(seed, 2).normal(0.0, step, (n_epochs, n_items))
        moves[0] = 0.0
        walk = np.mod(attraction + moves.cumsum(axis=0), 2.0)
        return np.minimum(walk, 2.0 - walk)  # reflected into [0, 1]

    return _changing_instance(
        _uniform(n_items, n_positions, seed), n_positions, length, attractions
    )


# --------------------------------------------------------------------------- users of several kinds


@family(
    "Half of the users (argument weight) follow the PBM of a real query, and the others follow the "
    "DBN of the same query (mixture)"
)
def _two_kinds(query: str = DEFAULT_INSTANCE, weight: Share = 0.5) -> Instance:
    source = load_instance(query)
    return _mixture_instance([source.model("PBM"), source.model("DBN")], weight, source)


@family(
    "Two kinds of users have opposite tastes: the best items for one kind are the worst items for "
    "the other kind (mixture)"
)
def _two_tastes(
    n_items: Count = 10, n_positions: Count = 5, model: str = "PBM", seed: Seed = 0
) -> Instance:
    base = _yandex_like(n_items, n_positions, seed)
    first = base.model(model)
    best_first, half = np.argsort(-first.attraction, kind="stable"), n_items // 2
    better, worse = best_first[:half], best_first[n_items - half :]
    attraction = first.attraction.copy()
    attraction[better], attraction[worse] = attraction[worse], attraction[better]
    weight = child_rng(seed, 4).uniform(0.3, 0.7)
    return _mixture_instance([first, first.with_items(attraction=attraction)], weight, base)


@family(
    "Half of the users (argument weight) follow a PBM, and the others follow a CM with the same "
    "attractions (mixture)"
)
def _two_laws(
    n_items: Count = 10, n_positions: Count = 5, weight: Share = 0.5, seed: Seed = 0
) -> Instance:
    base = _yandex_like(n_items, n_positions, seed)
    first = base.model("PBM")
    return _mixture_instance([first, CascadeModel(first.attraction, n_positions)], weight, base)


def _mixture_instance(models: Sequence[ClickModel], weight: float, base: Instance) -> Instance:
    """Return an instance that contains the mixture of two click models, the first of which has the
    probability ``weight``. Origin and production list come from the instance ``base``.
    """
    mixture = MixtureModel(models, [weight, 1.0 - weight])
    return instance_of([mixture], base.origin, base.initial_ranking)


# ------------------------------------------------------------------------------------------- shared


def click_models(instance: Instance) -> list[ClickModel]:
    """Return the click models of an instance, without users who change or have a state.

    Raises:
        ValueError: the instance contains no click model.
    """
    models: list[Any] = [model for kind, model in instance.models.items() if kind in CLICK_MODELS]
    if not models:
        has = f"it has {', '.join(instance.models)}"
        raise ValueError(f"{instance.name!r} has no click model ({', '.join(CLICK_MODELS)}); {has}")
    return models
