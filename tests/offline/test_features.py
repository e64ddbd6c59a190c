"""Features from data: decomposition, autoencoder, instances made from ratings and documents, and the command."""

import json
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import svds

import clickgym
from clickgym.command_line import main
from clickgym.envs.contextual.interactions import with_products
from clickgym.offline import (
    DenoisingAutoencoder,
    Judgements,
    TruncatedSVD,
    contextual_instance,
    label_attraction,
    read_letor,
    read_ratings,
)

RNG = np.random.default_rng(0)


def some_ratings(n_users=12, n_items=30, share=0.7):
    users, items = np.nonzero(np.random.default_rng(1).random((n_users, n_items)) < share)
    labels = np.random.default_rng(2).integers(1, 11, len(users)) / 2
    return Judgements(users, items, labels, tuple(f"u{i}" for i in range(n_users)), tuple(f"i{j}" for j in range(n_items)))


def some_documents(n_queries=6, n_documents=9, n_features=7):
    rng = np.random.default_rng(3)
    size = n_queries * n_documents
    features = rng.random((size, n_features)) * (rng.random((size, n_features)) < 0.8) * 10.0 ** rng.integers(-2, 3, n_features)
    labels = rng.integers(0, 5, size)
    names = tuple(map(str, range(size)))
    return Judgements(
        np.repeat(np.arange(n_queries), n_documents),
        np.arange(size),
        labels,
        names[:n_queries],
        names,
        sparse.csr_array(features),
    )


# ------------------------------------------------------------------------------------------------------------- estimators


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_decomposition_is_that_of_arpack(make):
    """Slowly decaying singular values: those of a random sparse matrix."""
    dense = RNG.random((80, 60)) * (RNG.random((80, 60)) < 0.2)
    svd = TruncatedSVD(5, n_iterations=30, seed=1).fit(make(dense))
    left, values, right = svds(dense, k=5)
    np.testing.assert_allclose(svd.singular_values_, values[::-1], rtol=1e-6)
    np.testing.assert_allclose(
        svd.users_ @ np.diag(svd.singular_values_) @ svd.items_.T, left @ np.diag(values) @ right, atol=1e-4
    )
    np.testing.assert_allclose(svd.users_.T @ svd.users_, np.eye(5), atol=1e-12)
    np.testing.assert_allclose(svd.items_.T @ svd.items_, np.eye(5), atol=1e-12)
    np.testing.assert_allclose(svd.transform(make(dense)), svd.users_, atol=1e-3)
    assert (svd.items_[np.abs(svd.items_).argmax(axis=0), range(5)] > 0).all()


def test_decomposition_is_a_function_of_its_seed():
    dense = RNG.random((30, 20))
    first, again, other = (TruncatedSVD(4, n_iterations=0, seed=seed).fit(dense).items_ for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((3, 9)), "n_components is 4; expected at most 3"),
        (np.ones((9, 9)), "the matrix has the rank 1; expected at least n_components = 4"),
        (np.zeros((9, 9)), "the matrix has the rank 0; expected at least n_components = 4"),
        ([[1.0, np.inf]] * 4, r"matrix\[0, 1\] is inf; expected a finite number"),
        (np.ones(4), r"matrix has shape \(4,\); expected \(rows, columns\)"),
    ],
)
def test_what_cannot_be_decomposed_is_named(matrix, message):
    with pytest.raises(ValueError, match=message):
        TruncatedSVD(4).fit(matrix)


@pytest.mark.slow
def test_autoencoder_restores_what_lies_on_a_curved_surface():
    """A code of 2 for 8 features that depend on 2 numbers: far less is lost than by the mean, the best code of 0."""
    torch = pytest.importorskip("torch")
    hidden = RNG.random((400, 2))
    x = 1 / (1 + np.exp(-3 * (hidden - 0.5) @ RNG.standard_normal((2, 8))))
    before = torch.get_rng_state()
    coder = DenoisingAutoencoder((25, 10, 10, 25), epochs=60, batch_size=32, seed=4).fit(x)
    assert torch.equal(torch.get_rng_state(), before)
    assert coder.losses_[-1] < 0.2 * x.var(axis=0).mean()
    assert coder.losses_[-1] < coder.losses_[0] / 4
    codes = coder.transform(x)
    assert codes.shape == (400, 10)
    assert codes.min() >= 0
    assert [weights.shape for weights in coder.weights_] == [(8, 25), (25, 10), (10, 10), (10, 25), (25, 8)]
    np.testing.assert_allclose(coder.transform(sparse.csr_array(x[:5])), codes[:5])
    again = DenoisingAutoencoder((25, 10, 10, 25), epochs=60, batch_size=32, seed=4).fit(x)
    np.testing.assert_array_equal(again.transform(x), codes)


def test_the_output_of_the_autoencoder_is_linear_so_that_it_can_be_negative():
    """Rectified, it could do no better than 0, with the loss 1; noise moves the input away from -1."""
    pytest.importorskip("torch")
    coder = DenoisingAutoencoder((6, 4, 4, 6), epochs=300, batch_size=20, learning_rate=1e-2, seed=0).fit(-np.ones((20, 3)))
    assert coder.losses_[-1] < 0.05


def test_the_code_is_the_output_of_the_second_hidden_layer():
    pytest.importorskip("torch")
    coder = DenoisingAutoencoder((4, 3, 3, 4), epochs=1, seed=0).fit(RNG.random((20, 5)))
    x = RNG.random((6, 5))
    first = np.maximum(x @ coder.weights_[0] + coder.biases_[0], 0)
    np.testing.assert_allclose(coder.transform(x), np.maximum(first @ coder.weights_[1] + coder.biases_[1], 0))


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"pip install 'clickgym\[rl\]'"):
        DenoisingAutoencoder().fit(np.ones((3, 3)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hidden": (3,)}, "expected the units of two layers or more"),
        ({"hidden": (3, 0)}, "hidden is 0"),
        ({"noise": 1.0}, "noise is 1.0; expected a number from 0 to below 1"),
        ({"epochs": 0}, "epochs is 0"),
        ({"learning_rate": 0}, "learning_rate is 0"),
    ],
)
def test_wrong_arguments_of_the_autoencoder_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        DenoisingAutoencoder(**arguments)


# -------------------------------------------------------------------------------------------------------------- instances


def test_attraction_of_labels():
    np.testing.assert_allclose(label_attraction(np.array([0, 1, 2, 4]), 0.0), [0, 1 / 16, 3 / 16, 15 / 16])
    np.testing.assert_allclose(label_attraction(np.array([0.0, 5.0]), 0.2), [0.2, 0.2 + 0.8 * 31 / 32])
    assert label_attraction(np.array([0.0, 5000.0]), 0.1).tolist() == [0.1, 1.0]


def test_an_instance_from_ratings_holds_what_was_rated():
    ratings = some_ratings()
    instance = contextual_instance(ratings, ("UBM", "DCM"), n_items=8, n_positions=3, dimension=4)
    assert list(instance.models) == ["LabelledModel of UBM", "LabelledModel of DCM"]
    model = instance.model("LabelledModel of UserBrowsingModel")
    assert (model.n_items, model.n_positions, model.n_features) == (8, 3, 9)
    attraction = label_attraction(ratings.labels)
    for user in range(12):
        own = ratings.users == user
        assert model.candidates[user].tolist() == ratings.items[own].tolist()
        np.testing.assert_array_equal(model.attractions[user], attraction[own])
    svd = TruncatedSVD(4).fit(sparse.csr_array((attraction, (ratings.users, ratings.items))))
    for directions, mine in ((svd.users_, model.users[:, 1:]), (svd.items_, model.items)):
        expected = directions / np.linalg.norm(directions, axis=1, keepdims=True) / np.sqrt(3)
        np.testing.assert_allclose(mine, expected, atol=1.1e-6)
    np.testing.assert_allclose(model.users[:, 0], 1 / np.sqrt(3), atol=1.1e-6)
    query = clickgym.envs.load_instance("yandex-9982").model("UBM", 3)
    np.testing.assert_array_equal(model.base.examination, query.examination)


def model_of(judgements, n_items=8, n_positions=3, **arguments):
    """The only click model of an instance."""
    (model,) = contextual_instance(judgements, n_items=n_items, n_positions=n_positions, **arguments).models.values()
    return model


def fitted(model):
    """Features and attraction of all candidates."""
    entries = [
        (np.concatenate([() if model.users is None else model.users[user], model.items[item]]), user, place)
        for user, numbers in enumerate(model.candidates)
        for place, item in enumerate(numbers)
    ]
    return np.array([x for x, _, _ in entries])


@pytest.mark.parametrize("make", [some_ratings, some_documents])
def test_linear_attraction_is_the_least_squares_fit(make):
    judgements = make()
    labelled, linear = (
        contextual_instance(judgements, n_items=8, n_positions=3, dimension=4, linear=linear) for linear in (False, True)
    )
    given = labelled.model("LabelledModel of UserBrowsingModel")
    model = linear.model("LinearModel of UserBrowsingModel")
    x, y = fitted(given), np.concatenate(given.attractions)
    np.testing.assert_array_equal(x, fitted(model))
    best = x @ np.linalg.lstsq(x, y, rcond=None)[0]
    np.testing.assert_allclose(x @ model.theta, best, atol=1e-9)  # here they lie in [0, 1]
    share = 1 - ((y - best) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    assert linear.estimation["explained_by_linear_fit"] == pytest.approx(share, abs=1e-4)


def test_a_fit_that_leaves_the_unit_interval_is_moved_into_it():
    """One feature, labels 0 0 0 9: the fit is negative at one end, and linear in the labels' fit it remains."""
    features = sparse.csr_array(np.array([[0.0], [1.0], [2.0], [10.0]]))
    judgements = Judgements([0] * 4, range(4), [0, 0, 0, 9], ("q",), ("a", "b", "c", "d"), features)
    model = model_of(judgements, 4, 2, linear=True, floor=0.0)
    x = fitted(model)
    best = x @ np.linalg.lstsq(x, label_attraction(judgements.labels, 0.0), rcond=None)[0]
    assert best.min() < -0.01
    attraction = x @ model.theta
    assert attraction.min() == pytest.approx(0, abs=1e-12)
    assert np.corrcoef(attraction, best)[0, 1] == pytest.approx(1)
    assert attraction.max() <= 1


@pytest.mark.parametrize("reduce", ["none", "svd", "autoencoder"])
def test_an_instance_from_documents(reduce):
    if reduce == "autoencoder":
        pytest.importorskip("torch")
    documents = some_documents()
    model = model_of(documents, 6, reduce=reduce, dimension=3)
    assert model.n_features == 1 + (7 if reduce == "none" else 3)
    assert [len(numbers) for numbers in model.candidates] == [9] * 6
    norms = np.linalg.norm(model.items, axis=1)
    assert norms.max() == pytest.approx(1, abs=1e-5)
    np.testing.assert_allclose(model.items[:, 0], np.sqrt(0.5), atol=1.1e-6)
    if reduce == "none":
        scaled = documents.features.toarray() / documents.features.toarray().max(axis=0)
        expected = scaled / np.linalg.norm(scaled, axis=1).max() / np.sqrt(2)
        np.testing.assert_allclose(model.items[:, 1:], expected, atol=1.1e-6)


@pytest.mark.parametrize("kind", ["bsr", "coo", "csc", "dia", "dok", "lil"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.bool_])
def test_features_are_the_same_in_every_sparse_format(kind, dtype):
    documents = some_documents()
    x = documents.features.astype(dtype)
    labels, names = documents.labels, (documents.user_labels, documents.item_labels)
    made = [
        Judgements(documents.users, documents.items, labels, *names, given)
        for given in (sparse.csr_array(x.toarray(), dtype=np.float64), x.asformat(kind))
    ]
    known, model = (model_of(of, 6, users="perfect") for of in made)
    assert (made[1].features.format, made[1].features.dtype) == ("csr", np.float64)
    np.testing.assert_array_equal(model.items, known.items)
    np.testing.assert_array_equal(x.toarray(), documents.features.toarray().astype(dtype))


def test_who_judged_too_little_is_left_out():
    documents = some_documents()
    kept = np.ones(len(documents), bool)
    kept[[0, 1, 2, 12]] = False
    fewer = Judgements(
        documents.users[kept], documents.items[kept], documents.labels[kept], documents.user_labels, documents.item_labels,
        documents.features,
    )  # fmt: skip
    instance = contextual_instance(fewer, n_items=8, n_positions=3)
    assert instance.estimation["left_out"] == 1
    assert instance.description.startswith("5 queries, 44 items, 8 features")
    model = instance.model("LabelledModel of UserBrowsingModel")
    scaled = documents.features.toarray()[kept] / documents.features.toarray()[kept].max(axis=0)
    expected = scaled[fewer.users > 0] / np.linalg.norm(scaled, axis=1).max() / np.sqrt(2)
    np.testing.assert_allclose(model.items[np.concatenate(model.candidates), 1:], expected, atol=1.1e-6)
    attraction = label_attraction(fewer.labels)[fewer.users > 0]
    np.testing.assert_array_equal(np.concatenate(model.attractions), attraction)
    with pytest.raises(ValueError, match="no user or query has 10 candidates, the most has 9"):
        contextual_instance(fewer, n_items=10, n_positions=3)


def test_the_most_rated_items_only():
    ratings = some_ratings()
    model = model_of(ratings, 4, 2, dimension=3, most_rated=10)
    counts = np.bincount(ratings.items, minlength=30)
    assert len(model.items) == 10
    met = np.bincount(np.concatenate(model.candidates), minlength=10)
    assert sorted(met.tolist()) == sorted(counts.tolist())[-10:]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"models": ("DBN",)}, "unknown model 'DBN'"),
        ({"models": ("UBM", "UBM")}, r"models\[1\] is 'UBM', as models\[0\]; expected each once"),
        ({"reduce": "pca"}, "unknown reduction 'pca'"),
        ({"reduce": "svd"}, "ratings have no features to change"),
        ({"interactions": "plain"}, r"unknown interactions 'plain' \(there is: none, products, outer\)"),
        ({"floor": 1.5}, "floor is 1.5; expected a probability"),
        ({"n_positions": 11}, "n_positions is 11"),
        ({"dimension": 13}, "n_components is 13; expected at most 12"),
        ({"examination": "nothing"}, "unknown instance 'nothing'"),
        ({"seed": -1}, "seed is -1; expected a non-negative integer"),
    ],
)
def test_wrong_arguments_of_an_instance_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        contextual_instance(some_ratings(), **arguments)


@pytest.mark.parametrize(("interactions", "n_products"), [("products", 4), ("outer", 16)])
def test_products_of_ratings_are_those_of_user_and_item(interactions, n_products):
    """All features are those without products times one number, up to their six decimals."""
    plain, crossed = (model_of(some_ratings(), dimension=4, interactions=each) for each in ("none", interactions))
    assert crossed.n_features == 9 + n_products
    assert crossed.attractions[3].tolist() == plain.attractions[3].tolist()
    x, before = with_products(fitted(crossed), crossed.interactions), fitted(plain)
    scale = x[0, 0] / before[0, 0]
    np.testing.assert_allclose(x[:, :9], scale * before, atol=3e-6)
    u, v = before[:, 1:5] / before[:, :1], before[:, 5:9] / before[:, :1]
    products = u * v if interactions == "products" else (u[:, :, None] * v[:, None]).reshape(len(u), 16)
    np.testing.assert_allclose(x[:, 9:], x[0, 0] * products, atol=1e-5)
    assert np.linalg.norm(x, axis=1).max() == pytest.approx(1.0, abs=1e-5)
    assert np.linalg.norm(x, axis=1).max() <= 1.0


@pytest.mark.parametrize("make", [some_ratings, some_documents])
def test_linear_attraction_may_be_linear_in_products(make):
    arguments = {"n_items": 8, "n_positions": 3, "dimension": 2, "interactions": "products"}
    given, linear = (contextual_instance(make(), linear=linear, **arguments) for linear in (False, True))
    model, labelled = linear.model("LabelledModel of UBM"), given.model("LabelledModel of UBM")
    x = with_products(fitted(model), model.interactions)
    y = np.concatenate(model.attractions)
    np.testing.assert_allclose(x @ np.linalg.lstsq(x, y, rcond=None)[0], y, atol=1e-9)
    best = x @ np.linalg.lstsq(x, np.concatenate(labelled.attractions), rcond=None)[0]
    assert np.corrcoef(y, best)[0, 1] == pytest.approx(1.0)
    without = contextual_instance(make(), **arguments | {"interactions": "none"})
    assert linear.estimation["explained_by_linear_fit"] >= without.estimation["explained_by_linear_fit"]


@pytest.mark.parametrize(("interactions", "n_products"), [("products", 7), ("outer", 28)])
@pytest.mark.parametrize("arguments", [{}, {"users": "navigational", "normalise": "query", "held_out": 0.4}])
def test_products_of_documents_are_those_of_their_own_features(interactions, n_products, arguments):
    instance = contextual_instance(some_documents(), n_items=6, n_positions=3, interactions=interactions, **arguments)
    model = next(iter(instance.models.values()))
    assert model.n_features == 8 + n_products
    x = with_products(model.items, model.interactions)
    f = x[0, 1:8] / x[0, 0]
    products = f**2 if interactions == "products" else np.outer(f, f)[np.triu_indices(7)]
    np.testing.assert_allclose(x[0, 8:], x[0, 0] * products, atol=1e-9)
    assert np.linalg.norm(x[np.concatenate(model.candidates)], axis=1).max() <= 1.0
    assert instance.estimation["interactions"] == interactions


def test_a_linear_fit_that_no_memory_holds_is_refused(monkeypatch):
    monkeypatch.setattr("clickgym.core.files._memory", lambda: 10_000)
    with pytest.raises(
        ValueError, match=r"a linear fit of \d+ candidates with 25 features would take .* kB of memory; 10.0 kB"
    ):
        contextual_instance(some_ratings(), n_items=8, n_positions=3, dimension=4, interactions="outer")


def test_only_ratings_are_reduced_to_the_most_rated():
    with pytest.raises(ValueError, match="most_rated is 5; only ratings"):
        contextual_instance(some_documents(), n_items=5, n_positions=3, most_rated=5)


def test_equal_attractions_are_wholly_explained():
    """Their variance is rounding error, and nothing is to be divided by it."""
    users, items = (part.ravel() for part in np.indices((12, 12)))
    names = tuple(map(str, range(12)))
    ratings = Judgements(users, items, np.full(144, 3.0), names, names)
    assert contextual_instance(ratings, dimension=1).estimation["explained_by_linear_fit"] == 1.0


@pytest.mark.parametrize("reduce", ["none", "svd", "autoencoder"])
def test_features_that_no_memory_holds_are_refused(reduce):
    wide = sparse.csr_array(([1.0, 1.0], ([0, 1], [0, 999_999_998])), (2, 999_999_999))
    documents = Judgements([0, 0], [0, 1], [0, 1], ("q",), ("a", "b"), wide)
    with pytest.raises(ValueError, match="features numbered up to 999,999,999, too many to hold in memory"):
        contextual_instance(documents, n_items=2, n_positions=2, reduce=reduce)


def test_tiny_features_are_divided_by_the_largest_without_overflow():
    tiny = sparse.csr_array([[1e-320, 0.0], [0.0, 0.5], [1e-320, 0.5]])
    documents = Judgements([0, 0, 0], [0, 1, 2], [0, 1, 2], ("q",), tuple("abc"), tiny)
    model = model_of(documents, 3, 2)
    np.testing.assert_allclose(model.items[:, 1:], [[0.5, 0], [0, 0.5], [0.5, 0.5]], atol=1.1e-6)


@pytest.mark.parametrize("reduce", ["none", "svd", "autoencoder"])
def test_a_feature_that_only_queries_held_out_have_is_left_out(reduce):
    """It has no scale, and nothing is learned of it."""
    if reduce == "autoencoder":
        pytest.importorskip("torch")
    documents = some_documents()
    x = documents.features.toarray()
    x[:, 3] = 0.0
    without, further = (
        Judgements(
            documents.users, documents.items, documents.labels, documents.user_labels, documents.item_labels,
            sparse.csr_array(given),
        )
        for given in (x, np.where(np.arange(7) == 3, -5e6, x))
    )  # fmt: skip
    made = [
        model_of(without, 6, users="perfect", reduce=reduce, dimension=3, held_out=held_out) for held_out in (without, further)
    ]
    np.testing.assert_array_equal(made[0].items, made[1].items)
    agent = clickgym.agents.PDGD(6, 3, n_features=made[1].n_features, seed=0)
    assert made[1].held_out_ndcg(agent.best) == made[0].held_out_ndcg(agent.best)


# ----------------------------------------------------------------------------------------------------------- the command

RATINGS = "userId,movieId,rating\n" + "".join(
    f"{u},{10 * i},{(u * i) % 9 / 2 + 0.5}\n" for u in range(1, 9) for i in range(1, 8)
)


def test_the_command_makes_an_instance_that_loads_and_runs(tmp_path, capsys):
    (tmp_path / "ratings.csv").write_text(RATINGS)
    command = ["features", str(tmp_path / "ratings.csv"), "--out", str(tmp_path / "films.json"), "--candidates", "5"]
    assert main([*command, "--positions", "3", "--dimension", "2", "--model", "UBM", "PBM"]) == 0
    assert "read 56 judgements of 8 users" in capsys.readouterr().out
    for env_id in ("ContextualUBMRank-v0", "ContextualPBMRank-v0"):
        env = gym.make(env_id, instance=str(tmp_path / "films.json"))
        assert env.unwrapped.instance == "films"
        result = clickgym.run(clickgym.make_agent("C2UCB", env, seed=0), env, 100, seed=0)
        assert result.engine == "compiled"
    assert main([*command, "--positions", "3", "--dimension", "2", "--interactions", "outer"]) == 0
    assert "9 features; attraction from labels" in capsys.readouterr().out
    assert gym.make("ContextualUBMRank-v0", instance=str(tmp_path / "films.json")).unwrapped.model.n_features == 5 + 4
    assert json.loads((tmp_path / "films.json").read_text())["origin"].startswith(
        "made by clickgym from ratings.csv; examination"
    )


def test_the_command_names_what_is_wrong(tmp_path, refused):
    (tmp_path / "ratings.csv").write_text(RATINGS + "1,10,5\n")
    (tmp_path / "letor.txt").write_text("1 1:0.5\n")
    cases = [
        (["ratings.csv", "--out", "films.json"], "ratings.csv, line 58: user 1 rates 10 a second time"),
        (["letor.txt", "--out", "films.json"], "there is no file"),
        (["letor.txt", "--out", "films"], "expected the name of a .json file"),
        (["absent.csv", "--out", "films.json"], "absent.csv"),
        (["long.csv", "--out", "films.json"], "long.csv, line 2: rating is '111"),
        (["long.txt", "--out", "films.json"], "long.txt, line 1: expected 'label number:value"),
        (["ratings.csv", "--out", "folder.json"], "expected the name of a .json file"),
    ]
    digits = "1" * 100_000 + "x"  # minutes, where the time grows as their square
    (tmp_path / "long.csv").write_text(f"userId,movieId,rating\n1,1,{digits}\n")
    (tmp_path / "long.txt").write_text(f"1 qid:1 1:{digits}\n")
    (tmp_path / "folder.json").mkdir()
    for (data, *rest), message in cases:
        rest[-1] = str(tmp_path / rest[-1])
        assert message in refused(["features", str(tmp_path / data), *rest])
    assert not list(tmp_path.glob("*films*"))


def test_real_ratings_and_documents(data_folder):
    for path in ("movielens/ratings.csv", "letor/rank.train.gz"):
        if not (data_folder / path).is_file():
            pytest.skip(f"{data_folder / path} is absent")
    ratings = read_ratings(data_folder / "movielens" / "ratings.csv")
    assert (len(ratings), len(ratings.user_labels), len(ratings.item_labels)) == (100_836, 610, 9_724)
    assert (ratings.labels.min(), ratings.labels.max()) == (0.5, 5.0)
    sizes = {"train": (201, 3005), "test": (50, 768)}
    for part, (n_queries, n_documents) in sizes.items():
        documents = read_letor(data_folder / "letor" / f"rank.{part}.gz")
        assert (len(documents.user_labels), len(documents)) == (n_queries, n_documents)
        assert set(documents.labels) == {0, 1, 2, 3, 4}
    assert documents.features.shape[1] == 300


@pytest.mark.slow
def test_a_file_as_large_as_those_of_the_literature_is_read_and_used(tmp_path):
    """100,000 documents with 136 features each, 125 MB of text, become an instance in less than 2 GB."""
    rng = np.random.default_rng(0)
    rows = [" ".join(f"{j + 1}:{value:.4g}" for j, value in enumerate(row)) for row in rng.random((500, 136))]
    with (tmp_path / "web.txt").open("w") as file:
        file.writelines(f"{i % 5} qid:{i // 100} {rows[i % 500]}\n" for i in range(100_000))
    program = """
import resource, sys
from clickgym.offline import contextual_instance, read_letor
documents = read_letor(sys.argv[1])
assert documents.features.shape == (100_000, 136) and documents.features.nnz == 13_600_000
model = contextual_instance(documents, users="informational", normalise="query", held_out=0.2).model("GradedModel of DBN")
assert (len(model.candidates), len(model.held_out.candidates)) == (800, 200)
try:  # not getrusage on Linux, whose maximum a process inherits from the one that started it
    print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
except FileNotFoundError:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    done = subprocess.run([sys.executable, "-c", program, tmp_path / "web.txt"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) * (1 if sys.platform == "darwin" else 1024) < 2e9
