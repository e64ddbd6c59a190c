"""Instances made from arguments: the papers' synthetic instances, and random families by seed;
`family` registers them.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ...core.checks import (
    check_at_least,
    check_between,
    check_choice,
    check_count,
    check_positions,
    check_seed,
    check_within,
    probability,
)
from ...core.files import read_json
from ..click_model import CLICK_MODELS, ClickModel
from ..contextual.interactions import INTERACTIONS, interaction_pairs, largest_norm
from ..contextual.model import LabelledModel
from ..memory.model import CascadeMDP
from ..mixture import MixtureModel
from ..users import Users
from .instance import DEFAULT_INSTANCE, FOLDER, Instance, family, load_instance


def _model(name: str, **parameters: Any) -> Any:
    return Users.from_dict({"model": name, **parameters})


def _of_models(
    models: Sequence[Users], origin: str, initial_ranking: NDArray[np.int64] | None = None
) -> Instance:
    return Instance(
        "",
        {model.kind: model for model in models},
        models[0].n_positions,
        origin=origin,
        initial_ranking=initial_ranking,
    )


@family("kveton2015")
def _kveton2015(
    n_items: int = 16, n_positions: int = 2, p: float = 0.2, delta: float = 0.15
) -> Instance:
    """Kveton 2015: B_LB(L, K, p, Δ), K items attract with p and the others with p - Δ (CM; PBM with
    χ_k = 1/k)
    """
    check_positions(n_positions, check_count("n_items", n_items))
    probability("p", p)
    probability("delta", delta)
    attraction = np.where(np.arange(n_items) < n_positions, p, p - delta)
    return _of_models(
        [
            _model("CM", attraction=attraction, n_positions=n_positions),
            _model("PBM", attraction=attraction, examination=_examined(n_positions, 1.0)),
        ],
        "B. Kveton et al., Cascading bandits: learning to rank in the cascade model, ICML 2015, section 5.1",
    )


def _examined(n_positions: int, eta: float) -> NDArray[np.float64]:
    """Examination as most of the literature on position bias has it, ``1 / k^η``."""
    return np.arange(1.0, n_positions + 1) ** -eta


@family("position-bias")
def _position_bias(
    n_items: int = 10, n_positions: int = 5, eta: float = 1.0, seed: int = 0
) -> Instance:
    """Examined with 1/k^η, from mild (η = 0.25) to steep (2), attraction like that of real queries
    (PBM, trust bias)
    """
    check_at_least("eta", eta, 0)
    attraction = _yandex_like(n_items, n_positions, seed).model("PBM").attraction
    examination = _examined(n_positions, eta)
    models = [
        _model(name, attraction=attraction, examination=examination) for name in ("PBM", "TPBM")
    ]
    return _of_models(models, "drawn at random")


@family("rare-clicks")
def _rare_clicks(
    n_items: int = 10, n_positions: int = 5, most: float = 0.02, seed: int = 0
) -> Instance:
    """Like real queries, but nothing attracts with more than 0.02 (most), and little with half of
    it (all click models)
    """
    probability("most", most)
    attraction = (
        most
        * np.logspace(-1.5, 0, n_items)[
            np.random.default_rng(check_seed(seed)).permutation(n_items)
        ]
    )
    like = _yandex_like(n_items, n_positions, seed)
    models = [like.model(kind).with_items(attraction=attraction) for kind in like.models]
    return _of_models(models, "drawn at random")


@family("lagree2016-small")
def _lagree2016_small() -> Instance:
    """Lagrée 2016: 5 items, 3 positions (PBM)"""
    return _of_models(
        [_model("PBM", attraction=[0.45, 0.35, 0.25, 0.15, 0.05], examination=[0.9, 0.6, 0.3])],
        "P. Lagrée, C. Vernade, O. Cappé, Multiple-play bandits in the position-based model, NIPS 2016, section 5",
    )


@family("li2019-chi-min")
def _li2019_chi_min(i: int = 1) -> Instance:
    """Li 2019a, figure 3: the best of 10 items starts last, where it is examined with 0.5^i
    (PBM)
    """
    check_count("i", i)
    return _of_models(
        [_model("PBM", attraction=[0.9] + [0.5] * 9, examination=[0.9] * 8 + [0.5**i] * 2)],
        "C. Li et al., BubbleRank: safe online learning to re-rank via implicit click feedback, UAI 2019, section 5.4",
        initial_ranking=np.roll(np.arange(10), -1),
    )


def _with_parameters(
    name: str,
    of_items: Mapping[str, Any],
    others: Mapping[tuple[str, str], Any],
    n_positions: int,
    rng_seed: int | None,
) -> Any:
    """A registered click model with the parameters of a family; None if the family has none for it.

    Args:
        name: its short name.
        of_items: what belongs to items, by name.
        others: the other parameters, by name and shape (see `ClickModel.shapes`).
        n_positions: K.
        rng_seed: draw a parameter that the family does not know uniformly, from a generator of its
            own, unless the model has a default for it; None draws nothing.
    """
    model_class = CLICK_MODELS[name]
    signature = inspect.signature(model_class).parameters
    table = {(parameter, "L"): values for parameter, values in of_items.items()} | dict(others)
    sizes = {"n_items": len(of_items["attraction"]), "n_positions": n_positions}
    parameters: dict[str, Any] = {
        size: number for size, number in sizes.items() if size in signature
    }
    for parameter, shape in model_class.shapes.items():
        if (parameter, shape) in table:
            parameters[parameter] = table[parameter, shape]
        elif signature[parameter].default is None:
            continue
        elif rng_seed is None:
            return None
        else:
            rng = np.random.default_rng(
                np.random.SeedSequence(rng_seed, spawn_key=(crc32(parameter.encode()),))
            )
            size = tuple({"L": sizes["n_items"], "K": n_positions}[letter] for letter in shape)
            parameters[parameter] = rng.random(size) if size else rng.random()
    return model_class(**parameters)


@family("uniform")
def _uniform(n_items: int = 10, n_positions: int = 5, seed: int = 0) -> Instance:
    """Every parameter uniform on [0, 1], examination sorted so that lower positions are seen less
    (all click models)
    """
    attraction, satisfaction, rng = _items(n_items, n_positions, seed)
    curve = np.sort(rng.random(n_positions))[::-1]
    browsing = np.sort(rng.random((n_positions, n_positions)), axis=0)[::-1]
    others = {
        ("examination", "K"): curve,
        ("examination", "KK"): np.tril(browsing),
        ("termination", "K"): rng.random(n_positions),
        ("perseverance", ""): rng.random(),
    }
    of_items = {"attraction": attraction, "satisfaction": satisfaction}
    models = []
    for name in CLICK_MODELS:
        with contextlib.suppress(
            ValueError
        ):  # a model of one's own may not take any numbers: it is not in the family
            models.append(_with_parameters(name, of_items, others, n_positions, seed))
    return _of_models(models, "drawn at random")


@family("yandex-like")
def _yandex_like(n_items: int = 10, n_positions: int = 5, seed: int = 0) -> Instance:
    """Drawn from distributions fitted to the real queries, any number of items and positions (all
    click models)
    """
    from scipy.special import (
        betaincinv,
        expit,
    )  # only here, for it takes longer to import than all the rest

    attraction, satisfaction, _ = _items(n_items, n_positions, seed)
    family = read_json(FOLDER / "yandex-like.json")
    quantiles = {"attraction": attraction, "satisfaction": satisfaction}
    position = np.log(np.arange(1, n_positions + 1))

    def curve(parameter: str) -> NDArray[np.float64]:
        intercept, slope = family[parameter]
        return expit(intercept + slope * position)

    k, j = np.indices((n_positions, n_positions))
    intercept, slope, distance_slope = family["browsing_after_click"]
    browsing = expit(
        intercept + slope * position[:, None] + distance_slope * np.log(np.maximum(k + 1 - j, 1))
    )
    browsing[:, 0] = curve("browsing_before_click")
    others = {
        ("examination", "K"): curve("examination"),
        ("examination", "KK"): np.tril(browsing),
        ("termination", "K"): curve("termination"),
    } | {(name, ""): value for name, value in family.items() if isinstance(value, float)}
    models = []
    for name in family["attraction"]:
        of_items = {
            parameter: betaincinv(*family[parameter][name], values)
            for parameter, values in quantiles.items()
            if name in family[parameter]
        }
        models.append(_with_parameters(name, of_items, others, n_positions, None))
    return _of_models(models, family["origin"])


@family("in-production")
def _in_production(
    n_items: int = 10, n_positions: int = 5, noise: float = 0.4, seed: int = 0
) -> Instance:
    """Like yandex-like, with a production ranking that is about as good as those of the real
    queries (all click models)
    """
    check_at_least("noise", noise, 0)
    like = _yandex_like(n_items, n_positions, seed)
    # By the items' quantiles of attraction and noise: with 0.4 Kendall's tau is 0.4 on average, as in the real queries.
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(3,)))
    ranking = np.argsort(
        -_items(n_items, n_positions, seed)[0] - noise * rng.normal(size=n_items), kind="stable"
    )
    return replace(like, initial_ranking=ranking)


@family("two-kinds")
def _two_kinds(query: str = DEFAULT_INSTANCE, weight: float = 0.5) -> Instance:
    """Half of the users (weight) click by the PBM and half by the DBN of one real query (mixture)"""
    source = load_instance(query)
    return _mixture([source.model("PBM"), source.model("DBN")], weight, source)


@family("two-tastes")
def _two_tastes(
    n_items: int = 10, n_positions: int = 5, model: str = "PBM", seed: int = 0
) -> Instance:
    """Two kinds of users with opposite tastes: each likes best what the other likes least (mixture)"""
    like = _yandex_like(n_items, n_positions, seed)
    first = like.model(model)
    best_first, half = np.argsort(-first.attraction, kind="stable"), n_items // 2
    better, worse = best_first[:half], best_first[n_items - half :]
    attraction = first.attraction.copy()
    attraction[better], attraction[worse] = attraction[worse], attraction[better]
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(4,)))
    weight = rng.uniform(0.3, 0.7)
    return _mixture([first, first.with_items(attraction=attraction)], weight, like)


@family("two-laws")
def _two_laws(
    n_items: int = 10, n_positions: int = 5, weight: float = 0.5, seed: int = 0
) -> Instance:
    """Half of the users (weight) click by a PBM and half by a CM, with one taste (mixture)"""
    like = _yandex_like(n_items, n_positions, seed)
    first = like.model("PBM")
    second = _model("CM", attraction=first.attraction, n_positions=n_positions)
    return _mixture([first, second], weight, like)


def _mixture(models: Sequence[ClickModel], weight: float, like: Instance) -> Instance:
    """A mixture of two models, the first with a weight, over the items of an instance."""
    check_between("weight", weight, 0.0, 1.0)
    mixture = MixtureModel(models, [weight, 1.0 - weight])
    return _of_models([mixture], like.origin, like.initial_ranking)


def _click_models(instance: Instance) -> list[ClickModel]:
    """The click models of an instance that have environments and do not change."""
    models: list[Any] = [model for kind, model in instance.models.items() if kind in CLICK_MODELS]
    if not models:
        raise ValueError(
            f"{instance.name!r} has no click model of {', '.join(CLICK_MODELS)}; it has {', '.join(instance.models)}"
        )
    return models


def _epochs(
    base: Instance, n_positions: int, length: int, attractions: Callable[..., Iterable[Any]]
) -> Instance:
    """For each click model of an instance the same with attractions that change every ``length``
    steps; without attraction it is the first parameter of items that changes.
    """
    check_count("length", length)
    models = []
    for model in _click_models(base):
        if not model.item_parameters():
            continue
        first = model.with_positions(check_positions(n_positions, model.n_items, model.n_positions))
        changing = model.item_parameters()[0]
        epochs = [
            first.with_items(**{changing: values})
            for values in attractions(getattr(first.parameters, changing))
        ]
        models.append(
            _model(
                "PiecewiseStationaryModel", models=epochs, starts=np.arange(len(epochs)) * length
            )
        )
    return _of_models(models, base.origin, base.initial_ranking)


@family("li2019-switching")
def _li2019_switching(
    query: str = DEFAULT_INSTANCE,
    n_positions: int = 3,
    n_epochs: int = 10,
    length: int = 10_000,
    seed: int = 0,
) -> Instance:
    """Li 2019b: in every second epoch three random items outside the top K attract with 0.9 (all
    models, changing)
    """
    check_count("n_epochs", n_epochs)
    base = load_instance(query)
    if base.n_items < n_positions + 3:
        raise ValueError(
            f"{query!r} has {base.n_items} items; expected n_positions + 3 = {n_positions + 3} or more"
        )

    def attractions(attraction: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        rng = np.random.default_rng(seed)
        others = np.argsort(-attraction, kind="stable")[n_positions:]
        result = [attraction.copy() for _ in range(n_epochs)]
        for raised in result[1::2]:
            raised[rng.choice(others, 3, replace=False)] = 0.9
        return result

    return _epochs(base, n_positions, length, attractions)


@family("li2019-two-changes")
def _li2019_two_changes(
    n_positions: int = 3,
    attraction: float = 0.5,
    gap: float = 0.3,
    length: int = 100_000,
    seed: int = 0,
) -> Instance:
    """Li 2019b, theorem 3: of 2K items K attract more, by a gap; the halves change places twice
    (all models, changing)
    """
    check_count("n_positions", n_positions)
    probability("attraction", attraction)
    probability("gap", gap)
    if gap > attraction:
        raise ValueError(f"gap is {gap!r}; expected at most attraction = {attraction!r}")
    better, worse = [attraction] * n_positions, [attraction - gap] * n_positions
    epochs = [np.array(epoch) for epoch in (better + worse, worse + better, better + worse)]
    return _epochs(
        _uniform(2 * n_positions, n_positions, seed), n_positions, length, lambda _: epochs
    )


@family("abrupt")
def _abrupt(
    n_items: int = 10, n_positions: int = 5, n_epochs: int = 10, length: int = 10_000, seed: int = 0
) -> Instance:
    """Attractions drawn afresh, uniform on [0, 1], in every epoch (all models, changing)"""
    check_count("n_epochs", n_epochs)
    rng_seed = np.random.SeedSequence(
        seed, spawn_key=(1,)
    )  # the first epoch is the stationary instance of the seed
    return _epochs(
        _uniform(n_items, n_positions, seed),
        n_positions,
        length,
        lambda attraction: [
            attraction,
            *np.random.default_rng(rng_seed).random((n_epochs - 1, n_items)),
        ],
    )


@family("random-walk")
def _random_walk(
    n_items: int = 10,
    n_positions: int = 5,
    n_epochs: int = 100,
    length: int = 1_000,
    step: float = 0.05,
    seed: int = 0,
) -> Instance:
    """Attractions move by Gaussian steps, reflected at 0 and 1, from epoch to epoch (all models,
    changing)
    """
    check_count("n_epochs", n_epochs)
    check_at_least("step", step, 0)
    rng_seed = np.random.SeedSequence(seed, spawn_key=(2,))

    def attractions(attraction: NDArray[np.float64]) -> NDArray[np.float64]:
        moves = np.random.default_rng(rng_seed).normal(0.0, step, (n_epochs, n_items))
        moves[0] = 0.0
        walk = np.mod(attraction + moves.cumsum(axis=0), 2.0)
        return np.minimum(walk, 2.0 - walk)  # folded back into [0, 1]

    return _epochs(_uniform(n_items, n_positions, seed), n_positions, length, attractions)


@family("linear")
def _linear(
    n_items: int = 20,
    n_positions: int = 5,
    n_features: int = 10,
    n_pool: int = 1_000,
    n_users: int = 100,
    query: str = DEFAULT_INSTANCE,
    seed: int = 0,
) -> Instance:
    """20 candidates in each session, attraction linear in features, examination of a real query
    (contextual models)
    """
    for name, value in (("n_features", n_features), ("n_pool", n_pool), ("n_users", n_users)):
        check_count(name, value)
    check_positions(n_positions, check_count("n_items", n_items))
    check_seed(seed)
    # Users and items are mixtures of topics, most of them of one or two, and few topics attract much: θ* are the cubes of
    # equally spaced numbers, in random order. With entries that add up to 1, θ*ᵀx is a mean of the θ*, and ‖x‖₂ ≤ ‖x‖₁ = 1.
    rng = np.random.default_rng(seed)
    n_user_features = n_features // 2
    sizes = (n_user_features, n_features - n_user_features)
    theta = np.concatenate(
        [rng.permutation((np.arange(size) + 0.5) / max(size, 1)) ** 3 for size in sizes]
    )
    items = rng.dirichlet(np.full(n_features - n_user_features, 0.3), n_pool)
    users = rng.dirichlet(np.full(n_user_features, 0.3), n_users) if n_user_features else None
    share = 0.0 if users is None else 0.25
    scaled = {"items": (1.0 - share) * items, "users": None if users is None else share * users}
    bases, origin = _with_candidates(query, n_items, n_positions, n_pool, seed)
    models = [
        _model("LinearModel", base=base, theta=theta, **scaled, **others) for base, others in bases
    ]
    return _of_models(models, f"features and θ* drawn at random; examination: {origin}")


def _with_candidates(
    query: str, n_items: int, n_positions: int, n_pool: int, seed: int
) -> tuple[list[tuple[ClickModel, dict[str, NDArray[np.float64]]]], str]:
    """The click models of an instance that have attractions, each with what else belongs to the
    items of the pool, drawn uniformly; and the origin of the instance.
    """
    source, bases = load_instance(query), []
    for model in _click_models(source):
        if "attraction" not in model.shapes:
            continue
        names = model.item_parameters()
        base = model.with_positions(n_positions).with_items(
            **{name: np.zeros(n_items) for name in names}
        )
        seeds = {
            name: np.random.SeedSequence(seed, spawn_key=(crc32(name.encode()),))
            for name in names[1:]
        }
        bases.append(
            (base, {name: np.random.default_rng(seeds[name]).random(n_pool) for name in seeds})
        )
    return bases, source.origin


SHARPNESS = 2.0
"""a in the attraction σ(a z + b) of a standardised score z."""

HIDDEN = 32
"""Hidden units of the network of the family."""

FEATURES = ("plain", *INTERACTIONS)
"""What agents see of a user u and an item v: c [u, v], or c [1, u, v] and products of their
features.
"""

Floats: TypeAlias = NDArray[np.float64]
Score: TypeAlias = Callable[[np.random.Generator, Floats, Floats], Floats]


@family("personal")
def _personal(
    n_items: int = 20,
    n_positions: int = 5,
    d_u: int = 5,
    d_v: int = 5,
    n_pool: int = 500,
    n_users: int = 200,
    form: str = "bilinear",
    popularity: float = 0.0,
    rate: float = 0.2,
    features: str = "plain",
    query: str = DEFAULT_INSTANCE,
    seed: int = 0,
) -> Instance:
    """Each user prefers other items: the score is bilinear in the features of user and item
    (contextual models)
    """
    if check_choice("form", form, ("bilinear", "inner")) == "inner" and d_u != d_v:
        raise ValueError(
            f"form is inner, d_u is {d_u} and d_v is {d_v}; expected as many features of users as of items"
        )

    def score(rng: np.random.Generator, users: Floats, items: Floats) -> Floats:
        weights = rng.standard_normal((d_u, d_v)) if form == "bilinear" else np.eye(d_u)
        return _products(_products(users, weights.T), items)

    return _world(
        score,
        n_items,
        n_positions,
        d_u,
        d_v,
        n_pool,
        n_users,
        popularity,
        rate,
        features,
        query,
        seed,
    )


@family("network")
def _network(
    n_items: int = 20,
    n_positions: int = 5,
    d_u: int = 3,
    d_v: int = 3,
    n_pool: int = 500,
    n_users: int = 200,
    gain: float = 2.0,
    popularity: float = 0.0,
    rate: float = 0.2,
    features: str = "plain",
    query: str = DEFAULT_INSTANCE,
    seed: int = 0,
) -> Instance:
    """Each user prefers other items: the score is a network of sines, beyond products of features
    (contextual models)
    """
    check_at_least("gain", gain, 0, strictly=True)

    def score(rng: np.random.Generator, users: Floats, items: Floats) -> Floats:
        inputs = rng.standard_normal((HIDDEN, d_u + d_v))
        shifts, weights = rng.uniform(-np.pi, np.pi, HIDDEN), rng.standard_normal(HIDDEN)
        total = np.zeros((len(users), len(items)))
        # The inputs are √2 [u, v] and are divided by √2; unit by unit, so that no table of users, items and units is held.
        of_users, of_items = _products(inputs[:, :d_u], users), _products(inputs[:, d_u:], items)
        for unit in range(HIDDEN):
            total += weights[unit] * np.sin(
                gain * (of_users[unit][:, None] + of_items[unit]) + shifts[unit]
            )
        return total

    return _world(
        score,
        n_items,
        n_positions,
        d_u,
        d_v,
        n_pool,
        n_users,
        popularity,
        rate,
        features,
        query,
        seed,
    )


def _world(  # the arguments of the families, and their score
    score: Score,
    n_items: int,
    n_positions: int,
    d_u: int,
    d_v: int,
    n_pool: int,
    n_users: int,
    popularity: float,
    rate: float,
    features: str,
    query: str,
    seed: int,
) -> Instance:
    """Users and items drawn at random, with the attraction ``σ(a z + b)`` of standardised scores z,
    a = `SHARPNESS`.

    ⚠ b is no constant: it is solved by bisection so that the mean attraction over all pairs is
    ``rate``, whatever the seed. ⚠ One b for all users: with one for each, users would differ in
    nothing but their order. ⚠ With ``popularity`` s the score ``√(1-s) z + √s p`` is standardised
    once more, for p and the items' means of z are not quite independent. p/4 is a further feature
    of items, behind v; it takes no part in products.
    """
    for name, value in (("d_u", d_u), ("d_v", d_v), ("n_pool", n_pool), ("n_users", n_users)):
        check_count(name, value)
    check_positions(n_positions, check_within("n_items", n_items, 1, n_pool, "n_pool = "))
    probability("popularity", popularity)
    check_between("rate", rate, 0.0, 1.0)
    check_choice("features", features, FEATURES)
    check_seed(seed)
    bases, origin = _with_candidates(query, n_items, n_positions, n_pool, seed)
    pairs = interaction_pairs(features, range(1, d_u + 1), range(d_u + 1, d_u + d_v + 1))
    rng = np.random.default_rng(seed)
    drawn = [rng.standard_normal(shape) for shape in ((n_users, d_u), (n_pool, d_v))]
    users, items = (rows / np.sqrt(2.0 * (rows**2).sum(axis=1, keepdims=True)) for rows in drawn)
    z = _standardised(score(rng, users, items))
    if popularity:
        popular = _standardised(rng.standard_normal(n_pool))
        z = _standardised(np.sqrt(1.0 - popularity) * z + np.sqrt(popularity) * popular)
        items = np.hstack([items, popular[:, None] / 4.0])
    attraction = _attraction(z, rate)
    if len(pairs):
        users = np.hstack([np.ones((n_users, 1)), users])
    scale = 1.0 / largest_norm(users, items, pairs)
    table = {
        "items": scale * items,
        "users": scale * users,
        "candidates": [np.arange(n_pool)] * n_users,
    }
    models = []
    for base, others in bases:
        of_items = {name: [values] * n_users for name, values in others.items()}
        models.append(
            LabelledModel(base, attraction=list(attraction), **table, **of_items).with_interactions(
                pairs
            )
        )
    return _of_models(
        models, f"users, items and their scores drawn at random; examination: {origin}"
    )


def _products(first: Floats, second: Floats) -> Floats:
    """``first @ second.T``, summed in one order on every machine, so that a seed gives the same
    instance.
    """
    total = np.zeros((len(first), len(second)))
    for column in range(first.shape[1]):
        total += first[:, column, None] * second[:, column]
    return total


def _standardised(scores: Floats) -> Floats:
    spread = scores.std()
    if spread < 1e-9:
        raise ValueError(
            "all scores are the same; expected more users, more items of the pool or more features"
        )
    return (scores - scores.mean()) / spread


def _attraction(z: Floats, rate: float) -> Floats:
    """``σ(a z + b)`` with the mean ``rate``: b by bisection, to 1e-12."""
    from scipy.special import (
        expit,
        logit,
    )  # only here, for it takes longer to import than all the rest

    low, high = logit(rate) - SHARPNESS * z.max(), logit(rate) - SHARPNESS * z.min()
    while high - low > 1e-12:
        middle = (low + high) / 2.0
        low, high = (middle, high) if expit(SHARPNESS * z + middle).mean() < rate else (low, middle)
    return expit(SHARPNESS * z + (low + high) / 2.0)


BORED = 0.25
"""What is left of the attraction in the last state of the families of users with a memory."""


Chances: TypeAlias = Callable[[Floats, Floats, np.random.Generator], tuple[Floats, Floats]]
"""Attraction ``(S, L)`` and transition ``(S, L + 1, S)`` by attraction in the best state, and how
much of it is left in each.
"""


def _remembering(name: str) -> Callable[[Chances], Chances]:
    """Register a family of users with a memory, who begin in the first state."""

    def register(chances: Chances) -> Chances:
        def make(
            n_states: int = 4,
            n_items: int = 12,
            n_positions: int = 4,
            mean_sessions: float = 30.0,
            query: str = "",
            seed: int = 0,
        ) -> Instance:
            check_count("n_states", n_states)
            check_seed(seed)
            rng, origin = np.random.default_rng(seed), "drawn at random"
            if query:
                source = load_instance(query)
                attraction, origin = source.model("CM").attraction, source.origin
                check_positions(n_positions, len(attraction))
            else:
                check_positions(n_positions, check_count("n_items", n_items))
                attraction = rng.uniform(0.05, 0.5, n_items)
            sizes: dict[str, Any] = {"mean_sessions": mean_sessions, "n_positions": n_positions}
            both = chances(attraction, np.linspace(1.0, BORED, n_states), rng)
            return _of_models([CascadeMDP(*both, first=np.eye(n_states)[0], **sizes)], origin)

        make.__doc__ = chances.__doc__
        family(name)(make)
        return chances

    return register


@_remembering("independent")
def _independent(
    attraction: Floats, decay: Floats, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Users who come back in another state, whatever they clicked: to look at one session alone is
    optimal (with a memory)
    """
    n_states, n_items = len(decay), len(attraction)
    order = rng.permuted(
        np.tile(np.arange(n_items), (n_states, 1)), axis=1
    )  # each state has its own favourites
    moves = rng.dirichlet(np.ones(n_states), n_states)
    return decay[:, None] * attraction[order], np.repeat(moves[:, None], n_items + 1, axis=1)


@_remembering("clickbait")
def _clickbait(
    attraction: Floats, decay: Floats, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Users whom the more attractive half of the items disappoints: after a click on bait they
    click less (with a memory)
    """
    bait, stays = attraction > np.median(attraction), np.eye(len(decay))
    better, worse = _neighbours(len(decay))
    after = np.where(
        bait[None, :, None],
        (0.8 * worse + 0.2 * stays)[:, None],
        (0.5 * better + 0.5 * stays)[:, None],
    )
    return decay[:, None] * attraction, np.concatenate([after, stays[:, None]], axis=1)


@_remembering("habit")
def _habit(attraction: Floats, decay: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Users who make a habit of it: clicks on items that satisfy let them click more from then on
    (with a memory)
    """
    satisfies = np.where(rng.random(len(attraction)) < 0.5, 0.05, 0.6)[None, :, None]
    less, more = _neighbours(len(decay))
    after = (
        satisfies * more[:, None]
        + (1.0 - satisfies) * (0.3 * less + 0.7 * np.eye(len(decay)))[:, None]
    )
    none = 0.1 * less + 0.9 * np.eye(len(decay))
    return decay[::-1, None] * attraction, np.concatenate([after, none[:, None]], axis=1)


def _neighbours(n_states: int) -> tuple[Floats, Floats]:
    """The moves from each state to the one before and to the one after; there is no state beyond
    the ends.
    """
    before, after = np.eye(n_states, k=-1), np.eye(n_states, k=1)
    before[0, 0] = after[-1, -1] = 1.0
    return before, after


def _items(
    n_items: int, n_positions: int, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], np.random.Generator]:
    """Uniform numbers for the items' two parameters, and the generator of what else is drawn.

    Each has a generator of its own, so that the items of a seed do not depend on the number of
    positions.
    """
    check_positions(n_positions, check_count("n_items", n_items))
    check_seed(seed)
    first, second, third = (
        np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(3)
    )
    return first.random(n_items), second.random(n_items), third
