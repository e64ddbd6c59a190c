"""Tests of instances: the shipped real queries and their fit, the papers' and the random ones, user
files, and invalid ones.
"""

from __future__ import annotations

import json

import gymnasium as gym
import numpy as np
import pytest
from scipy.stats import kendalltau, kstest

import clickgym  # noqa: F401 - registers the environments
from clickgym.envs import CascadeModel, PositionBasedModel
from clickgym.envs.instances import Instance, load_instance
from clickgym.envs.instances.instance import FAMILIES, FOLDER

KINDS = ["CM", "PBM", "DCM", "UBM", "DBN", "CCM", "TPBM"]
REAL = sorted(file.stem for file in FOLDER.glob("yandex-*.json") if file.stem != "yandex-like")


# --------------------------------------------------------------------------------- the real queries


def test_real_queries():
    assert len(REAL) == 16
    for name in REAL:
        instance = load_instance(name)
        assert instance.name == name
        assert (list(instance.models), instance.n_items, instance.n_positions) == (KINDS, 10, 5)
        assert all(model.n_positions == 10 for model in instance.models.values())
        assert sorted(instance.initial_ranking.tolist()) == list(range(10))
        assert instance.estimation["sessions"] >= 500
        assert "PyClick" in instance.origin


# ------------------------------------------------------------------ the papers' and the random ones


def test_instances_of_the_papers():
    small = load_instance("lagree2016-small").model("PBM")
    assert small.attraction.tolist() == [0.45, 0.35, 0.25, 0.15, 0.05]
    assert small.examination.tolist() == [0.9, 0.6, 0.3]
    bubble = load_instance("li2019-chi-min:i=3")
    model = bubble.model(PositionBasedModel)
    assert model.attraction.tolist() == [0.9] + [0.5] * 9
    assert model.examination.tolist() == [0.9] * 8 + [0.125] * 2
    assert bubble.initial_ranking.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]
    cascade = load_instance("kveton2015:n_items=8,n_positions=4,delta=0.05").model(CascadeModel)
    np.testing.assert_allclose(cascade.attraction, [0.2] * 4 + [0.15] * 4)
    assert load_instance("kveton2015").model(CascadeModel).n_items == 16


@pytest.mark.parametrize("family", ["uniform", "yandex-like"])
def test_random_families(family):
    first, other = (
        load_instance(f"{family}:n_items=30,n_positions=15,seed={seed}") for seed in (3, 4)
    )
    again = FAMILIES[family](n_items=30, n_positions=15, seed=3)  # not the cached one
    shorter = load_instance(f"{family}:n_items=30,n_positions=2,seed=3")
    for kind in KINDS:
        assert first.model(kind) == again.model(kind)
        assert (first.model(kind).n_items, first.model(kind).n_positions) == (30, 15)
        assert not np.array_equal(first.model(kind).attraction, other.model(kind).attraction)
        np.testing.assert_array_equal(first.model(kind).attraction, shorter.model(kind).attraction)
    examination = first.model("PBM").examination
    assert (np.diff(examination) <= 0).all()
    assert load_instance(f"{family}:n_items=1,n_positions=1").n_items == 1


@pytest.mark.parametrize("family", ["uniform", "yandex-like", "kveton2015", "two-laws", "abrupt"])
def test_fewer_items_than_a_list_has_by_default(family):
    """Without a given length, the list is as long as there are items."""
    instance = load_instance(f"{family}:n_items=1")
    assert (instance.n_items, instance.n_positions) == (1, 1)
    longer = load_instance(f"{family}:n_items=20")
    assert longer.n_positions == load_instance(family).n_positions
    with pytest.raises(ValueError, match="n_positions is 2, but there are only n_items = 1"):
        load_instance(f"{family}:n_items=1,n_positions=2")
    with pytest.raises(ValueError, match="n_items"):
        load_instance(f"{family}:n_items=0")


WRONG = {
    "kveton2015": "p=1.5 delta=-0.1 delta=0.3 n_items=1,n_positions=2 n_items=2.5",
    "in-production": "noise=-1 noise=nan noise=loud",
    "li2019-switching": "length=0 n_epochs=0 n_positions=8 query=yandex-1",
    "li2019-two-changes": "attraction=2 gap=-0.1 gap=0.6 length=-5 n_positions=0",
    "uniform": "1 seed seed=-1",
    "two-tastes": "model=X n_items=0 n_positions=11",
    "linear": "n_features=0 n_users=0 n_pool=10 n_items=1,n_positions=2",
    "personal": "form=inner,d_u=3 d_v=0 popularity=2 popularity=-1 rate=0 rate=1 features=all",
    "clickbait": "n_states=0 mean_sessions=0.5 n_positions=13 query=lagree2016-small",
    "queries": "split=all most=1 n_sessions=0 split=real,n_items=9 n_positions=11",
}


@pytest.mark.parametrize("family", WRONG)
def test_a_wrong_argument_of_a_family_makes_no_world(family):
    for arguments in WRONG[family].split():
        with pytest.raises(ValueError, match=f"^'?{family}:{arguments}"):
            load_instance(f"{family}:{arguments}")


def test_laws_of_random_families():
    """Uniform parameters are uniform (Kolmogorov-Smirnov tests, false-alarm rates of 1e-5).
    Attractions of rare clicks are evenly spaced on a logarithmic scale, in random order. Over 60
    production lists, Kendall's tau is 0.4 on average, within three standard errors.
    """
    uniform = load_instance("uniform:n_items=20000,n_positions=300,seed=2")
    dbn = uniform.model("DBN")
    assert abs(np.corrcoef(dbn.attraction, dbn.satisfaction)[0, 1]) < 0.1
    curves = uniform.model("DCM").termination, uniform.model("PBM").examination
    for drawn in (dbn.attraction, dbn.satisfaction, *curves):
        assert kstest(drawn, "uniform").pvalue > 1e-5
    biased = load_instance("position-bias:n_positions=4,eta=0.5").model("TPBM")
    np.testing.assert_allclose(biased.parameters.examination, np.arange(1, 5) ** -0.5)
    rare = load_instance("rare-clicks:n_items=100,most=0.3").model("UBM").attraction
    np.testing.assert_allclose(np.sort(rare), 0.3 * np.logspace(-1.5, 0, 100))
    assert 0.3 < (np.diff(rare) > 0).mean() < 0.7
    taus = []
    for noise, seed in [("0", 0), *(("0.4", seed) for seed in range(60))]:
        instance = load_instance(f"in-production:noise={noise},seed={seed}")
        shown = instance.model("PBM").attraction[instance.initial_ranking]
        taus.append(kendalltau(np.arange(10), -shown).statistic)
    assert taus[0] == pytest.approx(1)
    assert np.mean(taus[1:]) == pytest.approx(0.4, abs=0.1)


def test_moments_of_yandex_like_items():
    """The mean of 20,000 draws with standard deviation s lies within 5 s/sqrt(20000) of the real
    mean, except with probability 6e-7.
    """
    instance = load_instance("yandex-like:n_items=20000,n_positions=10,seed=0")
    for kind in KINDS:
        real = np.concatenate([load_instance(name).models[kind].attraction for name in REAL])
        drawn = instance.models[kind].attraction
        assert abs(drawn.mean() - real.mean()) < 5 * real.std() / np.sqrt(20_000) + 1e-4
        assert abs(drawn.std() - real.std()) < 0.01
    real, like = (
        load_instance(name).models["PBM"] for name in (REAL[0], "yandex-like:n_positions=10")
    )
    np.testing.assert_allclose(like.examination, real.examination, atol=0.06)


# ---------------------------------------------------------------------------------------- own files


def toy(**changes):
    models = {"PBM": PositionBasedModel([0.5, 0.4, 0.3], [1.0, 0.5, 0.2])}
    fields = {
        "n_positions": 2,
        "description": "a toy",
        "initial_ranking": [2, 0, 1],
        "estimation": {"sessions": 7},
    }
    return Instance("toy", models, **(fields | changes))


def test_shuffled_items_are_the_same_items():
    """The production list of a shuffled instance has the same items as before, under their
    new ids.
    """
    instance = load_instance("yandex-9982")
    shuffled = instance.shuffled(3)
    before, after = (
        one.model("PBM").attraction[one.initial_ranking] for one in (instance, shuffled)
    )
    assert before.tolist() == after.tolist()
    assert shuffled.initial_ranking.tolist() != instance.initial_ranking.tolist()


def test_saved_instance(tmp_path):
    toy().save(tmp_path / "toy.json")
    back = load_instance(str(tmp_path / "toy.json"))
    assert (back.name, back.description, back.estimation) == ("toy", "a toy", {"sessions": 7})
    assert (back.n_positions, back.initial_ranking.tolist()) == (2, [2, 0, 1])
    assert back.models["PBM"] == toy().models["PBM"]
    assert back.model(PositionBasedModel, 3).n_positions == 3
    env = gym.make("PBMRank-v0", instance=str(tmp_path / "toy.json"))
    assert (env.unwrapped.model.n_items, env.unwrapped.model.n_positions) == (3, 2)
    assert [file.name for file in tmp_path.iterdir()] == ["toy.json"]


def test_file_of_one_model(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(CascadeModel([0.5, 0.2, 0.1], n_positions=2).to_dict()))
    instance = load_instance(path)
    assert (instance.name, list(instance.models), instance.n_positions) == ("mine", ["CM"], 2)
    assert instance.initial_ranking is None


CORRUPT = {
    'the fields "format"': {"format": "other"},
    "initial_ranking: .* shows item 0 again": {"initial_ranking": [0, 0, 1]},
    r"n_positions is '2'": {"n_positions": "2"},
    "CM has 2 items": {"models": [{"model": "CM", "attraction": [0.5, 0.4], "n_positions": 2}]},
}


@pytest.mark.parametrize(("said", "changes"), CORRUPT.items(), ids=CORRUPT)
def test_corrupt_files(tmp_path, said, changes):
    """The error names the file and the field."""
    path = tmp_path / "toy.json"
    toy().save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(ValueError, match=f"^{path}: .*{said}"):
        load_instance(path)
