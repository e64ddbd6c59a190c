"""Tests of the families personal and network, and of products of features: their laws, what linear
functions can reach in them, and both engines.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit

from clickgym.envs import ContextualModel, PositionBasedModel, load_instance
from clickgym.envs.users.contextual_features import with_products

pytestmark = pytest.mark.uncompiled

PBM = "ContextualModel of PBM"


def model_of(name):
    return load_instance(name).models[PBM]


def all_features(model):
    """``(M N, d)`` the features of every item for every user, as agents see them."""
    n_users, n_items = len(model.users), len(model.items)
    plain = np.hstack([np.repeat(model.users, n_items, axis=0), np.tile(model.items, (n_users, 1))])
    return with_products(plain, model.interactions)


# --------------------------------------------------------------------------------------------- laws


def world(
    family, features, seed, n_users, n_pool, d, gain=2.0, inner=False, popularity=0.0, rate=0.2
):
    """Attractions ``(M, N)`` and features ``(M, N, d)``, computed from the definition for one pair
    after another.
    """
    rng = np.random.default_rng(seed)
    users, items = rng.normal(size=(n_users, d)), rng.normal(size=(n_pool, d))
    users /= np.sqrt(2) * np.linalg.norm(users, axis=1, keepdims=True)
    items /= np.sqrt(2) * np.linalg.norm(items, axis=1, keepdims=True)
    if family == "personal":
        z = users @ (np.eye(d) if inner else rng.normal(size=(d, d))) @ items.T
    else:
        a, beta, w = (
            rng.normal(size=(32, 2 * d)),
            rng.uniform(-np.pi, np.pi, 32),
            rng.normal(size=32),
        )
        both = np.sqrt(2) * np.array([[[*u, *v] for v in items] for u in users])
        z = np.sin(gain * (both @ a.T) / np.sqrt(2) + beta) @ w
    z = (z - z.mean()) / z.std()
    extra = np.zeros((n_pool, 0))
    if popularity:
        p = rng.normal(size=n_pool)
        p = (p - p.mean()) / p.std()
        z = np.sqrt(1 - popularity) * z + np.sqrt(popularity) * p
        z, extra = (z - z.mean()) / z.std(), p[:, None] / 4
    b = brentq(lambda b: expit(2 * z + b).mean() - rate, -50, 50, xtol=1e-14)
    products = {
        "plain": lambda u, v, e: [*u, *v, *e],
        "products": lambda u, v, e: [1, *u, *v, *e, *(u * v)],
        "outer": lambda u, v, e: [1, *u, *v, *e, *np.outer(u, v).ravel()],
    }[features]
    x = np.array([[products(u, v, e) for v, e in zip(items, extra, strict=True)] for u in users])
    return expit(2 * z + b), x / np.linalg.norm(x, axis=2).max()


@pytest.mark.parametrize("features", ["plain", "products", "outer"])
@pytest.mark.parametrize(
    ("family", "d", "arguments", "options"),
    [
        ("personal", 5, "", {}),
        ("personal", 4, ",d_u=4,d_v=4,form=inner,rate=0.4", {"inner": True, "rate": 0.4}),
        ("personal", 5, ",popularity=0.25", {"popularity": 0.25}),
        ("network", 3, "", {}),
        (
            "network",
            2,
            ",d_u=2,d_v=2,gain=0.7,popularity=0.5,rate=0.05",
            {"gain": 0.7, "popularity": 0.5, "rate": 0.05},
        ),
    ],
)
def test_attractions_and_features_by_definition(family, d, arguments, options, features):
    """The test would notice another order of draws, a separate scale for each pair, products
    without the main effects, or a separate b for each user.
    """
    model = model_of(f"{family}:n_users=12,n_pool=30,seed=4,features={features}{arguments}")
    attraction, x = world(family, features, 4, 12, 30, d, **options)
    np.testing.assert_allclose(model.attraction, attraction, rtol=0, atol=1e-9)
    np.testing.assert_allclose(all_features(model), x.reshape(12 * 30, -1), rtol=0, atol=1e-12)
    assert model.n_features == x.shape[2]


def test_linear_worlds_by_definition():
    """θ holds the cubes of equally spaced numbers in random order. Users and items draw their
    shares of topics from a Dirichlet distribution with parameter 0.3; the squares of k shares add
    up to 1.3 / (1 + 0.3 k) on average.
    """
    model = model_of("linear:n_features=7,n_users=4000,n_pool=4000,seed=3")
    parts = (model.theta[:3], model.users, 0.25), (model.theta[3:], model.items, 0.75)
    for theta, table, share in parts:
        k = len(theta)
        np.testing.assert_allclose(np.sort(theta), ((np.arange(k) + 0.5) / k) ** 3)
        np.testing.assert_allclose(table.sum(axis=1), share)
        assert table.min() >= 0
        squares = (table / share) ** 2
        assert squares.sum(axis=1).mean() == pytest.approx(1.3 / (1 + 0.3 * k), abs=0.02)


@pytest.mark.parametrize("family", ["linear", "personal", "network"])
def test_held_out_users_are_of_the_same_world(family):
    """The training and test users together are all users, with the same features and tastes."""
    whole, train, test = (
        model_of(f"{family}:n_users=10,n_pool=30,seed=4{users}")
        for users in ("", ",users=train", ",users=test")
    )
    assert (len(train.users), len(test.users)) == (8, 2)
    np.testing.assert_array_equal(np.vstack([train.users, test.users]), whole.users)
    parts = [*train.attraction, *test.attraction]
    np.testing.assert_array_equal(parts, whole.attraction)
    np.testing.assert_array_equal(train.items, test.items)
    with pytest.raises(ValueError, match="users=test: the world has one user"):
        model_of(f"{family}:n_users=1,users=test")


# --------------------------------------------------------------------------------- models and files


@pytest.mark.parametrize("pairs", [None, [[1, 2]]])
def test_features_of_each_user_and_candidate_have_a_norm_of_at_most_one(pairs):
    """Norms include the products, which are divided by the first feature. Items that are not
    candidates of a user do not count.
    """
    first, seconds, candidates = 0.5, [0.1, 0.3, 0.2], [[0, 1], [2, 3], [4, 5]]
    given = {"users": [[first, second] for second in seconds], "theta": [0, 0, 0]}
    given |= {"candidates": candidates, "interactions": pairs}
    base = PositionBasedModel([0, 0], [1.0])
    for second, row in zip(seconds, candidates, strict=True):
        for item in row:
            items, factor = np.full((6, 1), 0.1), 1 + (second / first) ** 2 * bool(pairs)
            items[item] = ((0.99**2 - first**2 - second**2) / factor) ** 0.5
            ContextualModel(base, items, **given)
            items[item] = ((1.01**2 - first**2 - second**2) / factor) ** 0.5
            with pytest.raises(ValueError, match=r"have the norm 1\.01; expected at most 1"):
                ContextualModel(base, items, **given)
