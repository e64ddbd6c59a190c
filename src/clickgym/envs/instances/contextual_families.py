"""Families of instances with new candidates in every session. Attraction is linear in the features,
or depends on both the user and the item.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias
from zlib import crc32

import numpy as np

from ...core.checks import check_choice
from ...core.state import Floats
from ...core.sums import products_of_rows
from ..click_models.click_model import ClickModel
from ..users.contextual import ContextualModel
from ..users.contextual_features import INTERACTIONS, interaction_pairs, largest_norm
from .families import child_rng, click_models
from .instance import (
    DEFAULT_INSTANCE,
    Count,
    Instance,
    Positive,
    Probability,
    Seed,
    Share,
    family,
    instance_of,
    load_instance,
)

SHARPNESS = 2.0
"""The factor a in the attraction σ(a z + b) of a standardised score z."""

N_HIDDEN = 32
"""The number of hidden units of the network in the family ``network``."""

FEATURES = ("plain", *INTERACTIONS)
"""The kinds of features that agents see for a user u and an item v: c [u, v] if plain, otherwise
c [1, u, v] and products of features.
"""

Score: TypeAlias = Callable[[np.random.Generator, Floats, Floats], Floats]


class WorldSizes(NamedTuple):
    """The sizes of a world of random users and items."""

    n_items: int
    """L, the number of candidates in a session."""
    n_positions: int
    """K, the length of a list."""
    d_u: int
    """The number of features of a user."""
    d_v: int
    """The number of features of an item."""
    n_pool: int
    """The number of items from which candidates are drawn."""
    n_users: int
    """The number of users."""


@family(
    "Attraction is linear in the features of the 20 candidates in each session, and examination "
    "comes from a real query (contextual models)"
)
def _linear(
    n_items: Count = 20,
    n_positions: Count = 5,
    n_features: Count = 10,
    n_pool: Count = 1_000,
    n_users: Count = 100,
    users: str = "all",
    query: str = DEFAULT_INSTANCE,
    seed: Seed = 0,
) -> Instance:
    # Users and items are mixtures of topics, mostly of one or two topics. Few topics attract much,
    # because the entries of θ* are the cubes of equally spaced numbers, in random order. The
    # entries of x add up to 1, so θ*ᵀx is a weighted mean of the entries of θ*, and ‖x‖₂ ≤ ‖x‖₁ =
    # 1. Features agree between processors only to 1e-15, because draws from a Dirichlet
    # distribution use the C library's `pow`, whose last bit depends on the processor (FMA).
    rng = np.random.default_rng(seed)
    n_user_features = n_features // 2
    sizes = (n_user_features, n_features - n_user_features)
    parts = [rng.permutation((np.arange(size) + 0.5) / max(size, 1)) ** 3 for size in sizes]
    theta = np.concatenate(parts)
    items = rng.dirichlet(np.full(n_features - n_user_features, 0.3), n_pool)
    share, features = 0.25 if n_user_features else 0.0, dict[str, Any]()
    split = _users_of_split(users, n_users if n_user_features else 1)
    if n_user_features:
        user_features = rng.dirichlet(np.full(n_user_features, 0.3), n_users)
        features["users"] = share * user_features[split]
    features["items"] = (1.0 - share) * items
    bases, origin = _with_candidates(query, n_items, n_positions, n_pool, seed)
    models = [ContextualModel(base, theta=theta, **features, **others) for base, others in bases]
    return instance_of(models, f"features and θ* drawn at random; examination: {origin}")


def _users_of_split(users: str, n_users: int) -> slice:
    """Return a slice that selects the users of a split: ``"all"``, ``"train"`` (the first three
    quarters) or ``"test"`` (the others).
    """
    check_choice("users", users, ("all", "train", "test"))
    if users == "all":
        return slice(None)
    if n_users < 2:
        raise ValueError(
            f"users={users}: the world has one user; expected at least two, so that both training "
            "and testing have a user"
        )
    n_train = n_users - max(n_users // 4, 1)
    return slice(n_train) if users == "train" else slice(n_train, None)


def _with_candidates(
    query: str, n_items: int, n_positions: int, n_pool: int, seed: int
) -> tuple[list[tuple[ClickModel, dict[str, Any]]], str]:
    """Return the base models for `ContextualModel`, and the origin of the instance ``query`` from
    which they come.

    Each base model is a click model with attraction. It is paired with its other item parameters,
    which are drawn uniformly for all items of the pool.
    """
    source, bases = load_instance(query), []
    for model in click_models(source):
        if "attraction" in model.shapes:
            attraction, *others = model.item_parameters()
            nothing = dict.fromkeys([attraction, *others], np.zeros(n_items))
            base = model.with_positions(n_positions).with_items(**nothing)
            keys = {name: crc32(name.encode()) for name in others}
            draws = {name: child_rng(seed, key).random(n_pool) for name, key in keys.items()}
            bases.append((base, draws))
    return bases, source.origin


@family(
    "Users prefer different items: their scores are bilinear in the features of user and item "
    "(contextual models)"
)
def _personal(
    n_items: Count = 20,
    n_positions: Count = 5,
    d_u: Count = 5,
    d_v: Count = 5,
    n_pool: Count = 500,
    n_users: Count = 200,
    form: str = "bilinear",
    popularity: Probability = 0.0,
    rate: Share = 0.2,
    features: str = "plain",
    users: str = "all",
    query: str = DEFAULT_INSTANCE,
    seed: Seed = 0,
) -> Instance:
    if check_choice("form", form, ("bilinear", "inner")) == "inner" and d_u != d_v:
        raise ValueError(f"d_u is {d_u} and d_v is {d_v}; form=inner requires equal numbers")

    def score(rng: np.random.Generator, users: Floats, items: Floats) -> Floats:
        weights = rng.standard_normal((d_u, d_v)) if form == "bilinear" else np.eye(d_u)
        return products_of_rows(products_of_rows(users, weights.T), items)

    sizes = WorldSizes(n_items, n_positions, d_u, d_v, n_pool, n_users)
    return _world(score, sizes, popularity, rate, features, users, query, seed)


@family(
    "Users prefer different items: their scores come from a network of sines, which products of "
    "features cannot represent (contextual models)"
)
def _network(
    n_items: Count = 20,
    n_positions: Count = 5,
    d_u: Count = 3,
    d_v: Count = 3,
    n_pool: Count = 500,
    n_users: Count = 200,
    gain: Positive = 2.0,
    popularity: Probability = 0.0,
    rate: Share = 0.2,
    features: str = "plain",
    users: str = "all",
    query: str = DEFAULT_INSTANCE,
    seed: Seed = 0,
) -> Instance:
    def score(rng: np.random.Generator, users: Floats, items: Floats) -> Floats:
        inputs = rng.standard_normal((N_HIDDEN, d_u + d_v))
        shifts, weights = rng.uniform(-np.pi, np.pi, N_HIDDEN), rng.standard_normal(N_HIDDEN)
        total = np.zeros((len(users), len(items)))
        # The network's inputs √2 [u, v] are divided by √2, which gives [u, v]. A loop over units
        # avoids a large array over users, items and units.
        user_inputs = products_of_rows(inputs[:, :d_u], users)
        item_inputs = products_of_rows(inputs[:, d_u:], items)
        for unit in range(N_HIDDEN):
            angle = gain * (user_inputs[unit][:, None] + item_inputs[unit]) + shifts[unit]
            total += weights[unit] * np.sin(angle)
        return total

    sizes = WorldSizes(n_items, n_positions, d_u, d_v, n_pool, n_users)
    return _world(score, sizes, popularity, rate, features, users, query, seed)


def _world(
    score: Score,
    sizes: WorldSizes,
    popularity: float,
    rate: float,
    features: str,
    user_split: str,
    query: str,
    seed: int,
) -> Instance:
    """Return an instance of random users and items with the attraction ``σ(a z + b)``, where z is a
    standardised score and a is `SHARPNESS`. All splits select users from the same world.

    ⚠ b depends on the seed: bisection finds the b for which the mean attraction over all pairs of
    user and item is ``rate``. ⚠ All users have the same b. With a separate b for each user, users
    would differ only in their order of the items. ⚠ With ``popularity`` s, the score ``√(1-s) z +
    √s p`` is standardised again, because p and the items' means of z are not quite independent. The
    items get p/4 as an additional feature after v, which products do not include.
    """
    n_items, n_positions, d_u, d_v, n_pool, n_users = sizes
    check_choice("features", features, FEATURES)
    bases, origin = _with_candidates(query, n_items, n_positions, n_pool, seed)
    pairs = interaction_pairs(features, range(1, d_u + 1), range(d_u + 1, d_u + d_v + 1))

    # Draw features with the norm √½, and compute the attraction of each pair of user and item.
    rng = np.random.default_rng(seed)
    raw_features = [rng.standard_normal(shape) for shape in ((n_users, d_u), (n_pool, d_v))]
    users, items = (
        rows / np.sqrt(2.0 * (rows**2).sum(axis=1, keepdims=True)) for rows in raw_features
    )
    z = _standardise(score(rng, users, items))
    if popularity:
        popular = _standardise(rng.standard_normal(n_pool))
        z = _standardise(np.sqrt(1.0 - popularity) * z + np.sqrt(popularity) * popular)
        items = np.hstack([items, popular[:, None] / 4.0])
    attraction = _attraction(z, rate)

    # Add the constant for products, and divide all features by the same number.
    if len(pairs):
        users = np.hstack([np.ones((n_users, 1)), users])
    scale = 1.0 / largest_norm(users, items, pairs)
    split = _users_of_split(user_split, n_users)
    table: dict[str, Any] = {
        "items": scale * items,
        "users": scale * users[split],
        "attraction": list(attraction[split]),
        "interactions": pairs,
    }
    models = [ContextualModel(base, **table, **others) for base, others in bases]
    law = "users, items and their scores drawn at random"
    return instance_of(models, f"{law}; examination: {origin}")


def _standardise(scores: Floats) -> Floats:
    return (scores - scores.mean()) / scores.std()


def _attraction(z: Floats, rate: float) -> Floats:
    """Return the attractions ``σ(a z + b)`` with the mean ``rate``; bisection finds b to 1e-12."""
    from scipy.special import expit, logit  # only here, because importing SciPy is slow

    low, high = logit(rate) - SHARPNESS * z.max(), logit(rate) - SHARPNESS * z.min()
    while high - low > 1e-12:
        middle = (low + high) / 2.0
        low, high = (middle, high) if expit(SHARPNESS * z + middle).mean() < rate else (low, middle)
    return expit(SHARPNESS * z + (low + high) / 2.0)
