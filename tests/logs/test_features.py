"""Instances made from ratings, and the command."""

import json

import gymnasium as gym
import numpy as np
import polars as pl
import pytest
from scipy import sparse

import clickgym
from clickgym.command_line import main
from clickgym.envs import with_products
from clickgym.logs import contextual_instance, read_ratings
from clickgym.logs.contextual import label_attraction
from clickgym.logs.reading import coded


def some_ratings(n_users=12, n_items=30, share=0.7):
    users, items = np.nonzero(np.random.default_rng(1).random((n_users, n_items)) < share)
    labels = np.random.default_rng(2).integers(1, 11, len(users)) / 2
    return pl.DataFrame({"user": users, "item": items, "rating": labels})


def full_ratings(stars):
    """Of every user for every item, ``(users, items)``."""
    users, items = (part.ravel() for part in np.indices(stars.shape))
    return pl.DataFrame({"user": users, "item": items, "rating": stars.ravel()})


# ------------------------------------------------------------------------------------------------
# -------------- instances


def test_attraction_of_labels():
    wanted = [0.05, 0.05 + 0.95 / 16, 0.05 + 0.95 * 3 / 16, 0.05 + 0.95 * 15 / 16]
    np.testing.assert_allclose(label_attraction(np.array([0, 1, 2, 4.0])), wanted)
    assert label_attraction(np.array([0.0, 5000.0])).tolist() == [0.05, 1.0]


def test_an_instance_from_ratings_holds_what_was_rated():
    ratings = some_ratings()
    instance = contextual_instance(ratings, ("UBM", "DCM"), n_items=8, n_positions=3, dimension=4)
    assert list(instance.models) == ["LabelledModel of UBM", "LabelledModel of DCM"]
    model = instance.model("LabelledModel of UBM")
    assert (model.n_items, model.n_positions, model.n_features) == (8, 3, 9)
    users, _ = coded(ratings["user"])
    items, _ = coded(ratings["item"])
    attraction = label_attraction(ratings["rating"].to_numpy())
    for user in range(12):
        own = users == user
        assert model.candidates[user].tolist() == items[own].tolist()
        np.testing.assert_array_equal(model.attractions[user], attraction[own])
    matrix = sparse.csr_array((attraction, (users, items))).toarray()
    left, _, right = np.linalg.svd(matrix)
    signs = np.sign(right[np.arange(4), np.abs(right[:4]).argmax(axis=1)])
    for directions, mine in ((left, model.users[:, 1:]), (right.T, model.items)):
        expected = directions[:, :4] * signs
        expected /= np.linalg.norm(expected, axis=1, keepdims=True) * np.sqrt(3)
        np.testing.assert_allclose(mine, expected, atol=1.1e-6)
    np.testing.assert_allclose(model.users[:, 0], 1 / np.sqrt(3), atol=1.1e-6)
    query = clickgym.envs.load_instance("yandex-9982").model("UBM", 3)
    np.testing.assert_array_equal(model.base.examination, query.examination)


def model_of(judgements, n_items=8, n_positions=3, **arguments):
    """The only click model of an instance."""
    (model,) = contextual_instance(
        judgements, n_items=n_items, n_positions=n_positions, **arguments
    ).models.values()
    return model


def fitted(model):
    """Features of all candidates."""
    return np.array(
        [
            np.concatenate([features, model.items[item]])
            for features, items in zip(model.users, model.candidates, strict=True)
            for item in items
        ]
    )


def test_linear_attraction_is_the_least_squares_fit():
    judgements = some_ratings()
    labelled, linear = (
        contextual_instance(judgements, n_items=8, n_positions=3, dimension=4, linear=linear)
        for linear in (False, True)
    )
    given = labelled.model("LabelledModel of UBM")
    model = linear.model("LinearModel of UBM")
    x, y = fitted(given), np.concatenate(given.attractions)
    np.testing.assert_array_equal(x, fitted(model))
    best = x @ np.linalg.lstsq(x, y, rcond=None)[0]
    np.testing.assert_allclose(x @ model.theta, best, atol=1e-9)  # here they lie in [0, 1]
    share = 1 - ((y - best) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    assert linear.estimation["explained_by_linear_fit"] == pytest.approx(share, abs=1e-4)


def test_who_rated_too_little_is_left_out():
    ratings = full_ratings(np.random.default_rng(0).integers(1, 6, (6, 9)))
    fewer = ratings[np.setdiff1d(np.arange(54), [0, 1, 12])]
    instance = contextual_instance(fewer, n_items=8, n_positions=3, dimension=2)
    assert instance.estimation["left_out"] == 1
    assert instance.description.startswith("5 users, 9 items, 5 features")
    attraction = label_attraction(fewer["rating"].to_numpy().astype(float))[7:]
    np.testing.assert_array_equal(
        np.concatenate(instance.model("LabelledModel of UBM").attractions), attraction
    )
    with pytest.raises(ValueError, match="no user has 10 candidates, the most has 9"):
        contextual_instance(fewer, n_items=10, n_positions=3, dimension=2)


@pytest.mark.parametrize(("interactions", "n_products"), [("products", 4), ("outer", 16)])
def test_products_of_ratings_are_those_of_user_and_item(interactions, n_products):
    """All features are those without products times one number, up to their six decimals."""
    plain, crossed = (
        model_of(some_ratings(), dimension=4, interactions=each) for each in ("none", interactions)
    )
    assert crossed.n_features == 9 + n_products
    assert crossed.attractions[3].tolist() == plain.attractions[3].tolist()
    x, before = with_products(fitted(crossed), crossed.interactions), fitted(plain)
    scale = x[0, 0] / before[0, 0]
    np.testing.assert_allclose(x[:, :9], scale * before, atol=3e-6)
    u, v = before[:, 1:5] / before[:, :1], before[:, 5:9] / before[:, :1]
    products = (
        u * v if interactions == "products" else (u[:, :, None] * v[:, None]).reshape(len(u), 16)
    )
    np.testing.assert_allclose(x[:, 9:], x[0, 0] * products, atol=1e-5)
    assert np.linalg.norm(x, axis=1).max() <= 1.0


# ------------------------------------------------------------------------------------------------
# ----------- the command

STARS = np.random.default_rng(5).integers(1, 11, (20, 15)) / 2
RATINGS = "userId,movieId,rating\n" + "".join(
    f"{u},{10 * i},{STARS[u - 1, i - 1]}\n" for u in range(1, 21) for i in range(1, 16)
)


def test_the_command_makes_an_instance_that_loads_and_runs(tmp_path, capsys):
    (tmp_path / "ratings.csv").write_text(RATINGS)
    command = ["features", str(tmp_path / "ratings.csv"), "--candidates", "5"]
    command += ["--out", str(tmp_path / "films.json")]
    assert main([*command, "--positions", "3"]) == 0
    assert "read 300 ratings of 20 users" in capsys.readouterr().out
    env = gym.make("ContextualUBMRank-v0", instance=str(tmp_path / "films.json"))
    assert env.unwrapped.instance == "films"
    result = clickgym.run(clickgym.make_agent("C2UCB", env, seed=0), env, 100, seed=0)
    assert result.engine == "compiled"
    assert main([*command, "--positions", "3", "--interactions", "outer"]) == 0
    assert "121 features; attraction from labels" in capsys.readouterr().out
    assert json.loads((tmp_path / "films.json").read_text())["origin"].startswith(
        "made by clickgym from ratings.csv; examination"
    )


def test_the_command_names_what_is_wrong(tmp_path, refused):
    (tmp_path / "ratings.csv").write_text(RATINGS)
    cases = [
        (["ratings.csv", "--out", "films"], "expected the name of a .json file"),
        (["absent.csv", "--out", "films.json"], "absent.csv"),
        (["twice.csv", "--out", "films.json"], "the user '1' rates the item '10' twice"),
        (["words.csv", "--out", "films.json"], "words.csv cannot be read (could not parse `x`"),
    ]
    (tmp_path / "twice.csv").write_text(RATINGS + "1,10,3\n")
    (tmp_path / "words.csv").write_text("userId,movieId,rating\n1,2,x\n")
    for (data, *rest), message in cases:
        rest[-1] = str(tmp_path / rest[-1])
        assert message in refused(["features", str(tmp_path / data), *rest])
    assert not list(tmp_path.glob("*films*"))


def test_real_ratings(data_folder):
    if not (path := data_folder / "movielens" / "ratings.csv").is_file():
        pytest.skip(f"{path} is absent")
    ratings = read_ratings(path)
    sizes = len(ratings), ratings["user"].n_unique(), ratings["item"].n_unique()
    assert sizes == (100_836, 610, 9_724)
    assert (ratings["rating"].min(), ratings["rating"].max()) == (0.5, 5.0)
