"""Users by grades of relevance: what they do, and the environments made of them."""

from __future__ import annotations

import itertools

import gymnasium as gym
import numpy as np
import pytest
from scipy import sparse

from clickgym.command_line import main
from clickgym.envs import GRADED_USERS, GradedModel, Users, graded_model, load_instance
from clickgym.offline import Judgements, contextual_instance

# Written down a second time: (clicks, stops) of the literature's tables.
PUBLISHED = {
    ("perfect", 2): ("0 1", "0 0"),
    ("perfect", 3): ("0 .5 1", "0 0 0"),
    ("perfect", 5): ("0 .2 .4 .8 1", "0 0 0 0 0"),
    ("navigational", 2): (".05 .95", ".2 .9"),
    ("navigational", 3): (".05 .5 .95", ".2 .5 .9"),
    ("navigational", 5): (".05 .3 .5 .7 .95", ".2 .3 .5 .7 .9"),
    ("informational", 2): (".4 .9", ".1 .5"),
    ("informational", 3): (".4 .7 .9", ".1 .3 .5"),
    ("informational", 5): (".4 .6 .7 .8 .9", ".1 .2 .3 .4 .5"),
    ("almost_random", 2): (".4 .6", ".5 .5"),
    ("almost_random", 3): (".4 .5 .6", ".5 .5 .5"),
    ("almost_random", 5): (".4 .45 .5 .55 .6", ".5 .5 .5 .5 .5"),
}


def judged(n_queries=6, size=5, n_grades=3):
    """Documents whose first feature is the grade, each judged for one query."""
    rng = np.random.default_rng(0)
    n = n_queries * size
    grades = rng.integers(0, n_grades, n)
    grades[0] = n_grades - 1
    features = sparse.csr_array(np.column_stack([grades + 1.0, rng.random(n) * 100]))
    queries, documents = tuple(f"q{i}" for i in range(n_queries)), tuple(f"d{i}" for i in range(n))
    return Judgements(np.repeat(np.arange(n_queries), size), np.arange(n), grades, queries, documents, features)


def test_the_table_is_the_published_one():
    known = {(name, n): both for name, tables in GRADED_USERS.items() for n, both in tables.items()}
    assert known == {key: tuple(tuple(map(float, row.split())) for row in rows) for key, rows in PUBLISHED.items()}


def test_users_stop_after_a_click_and_not_at_what_they_only_examined():
    """⚠ The papers' reading: the click probabilities on each list, by hand; the other reading gives others."""
    model = graded_model([0, 2, 1], "navigational", n_positions=3)
    click, stop = {0: 0.05, 1: 0.5, 2: 0.95}, {0: 0.2, 1: 0.5, 2: 0.9}
    for ranking in itertools.permutations(range(3)):
        grades = [[0, 2, 1][item] for item in ranking]
        examined, expected, other, examined_there = 1.0, [], [], 1.0
        for grade in grades:
            expected.append(examined * click[grade])
            examined *= 1 - click[grade] * stop[grade]
            other.append(examined_there * click[grade])
            examined_there *= 1 - stop[grade]
        np.testing.assert_allclose(model.click_probabilities(ranking), expected)
        assert np.abs(np.subtract(expected, other)).max() > 0.01


def test_the_smallest_table_that_has_the_highest_grade_is_taken():
    for highest, n_grades in ((0, 2), (1, 2), (2, 3), (3, 5), (4, 5)):
        model = graded_model([0, highest], "informational", n_positions=1)
        assert model.attraction[1] == GRADED_USERS["informational"][n_grades][0][highest]
    with pytest.raises(ValueError, match=r"grades\[1\] is 5"):
        graded_model([0, 5], "perfect", n_positions=1)
    with pytest.raises(ValueError, match="behaviour"):
        graded_model([0, 1], "careless", n_positions=1)


def test_an_instance_from_judged_documents_saves_and_opens(tmp_path):
    instance = contextual_instance(judged(), users="informational", n_items=4, n_positions=3, held_out=1 / 3)
    model = instance.model("GradedModel of DBN")
    assert (len(model.candidates), len(model.held_out.candidates)) == (4, 2)
    click, stop = (np.array(row) for row in GRADED_USERS["informational"][3])
    for query, grades in enumerate(model.grades):
        np.testing.assert_array_equal(model.attractions[query], click[grades])
        np.testing.assert_array_equal(model.labels["satisfaction"][query], stop[grades])
    instance.save(tmp_path / "users.json")
    again = load_instance(tmp_path / "users.json").model("GradedModel of DBN")
    assert again.to_dict() == model.to_dict()
    env = gym.make("ContextualDBNRank-v0", instance=str(tmp_path / "users.json"))
    assert env.unwrapped.model.kind == "GradedModel of DBN"


def with_a_top_grade(grade, size=2):
    """As `judged`, and a query of few documents, the last of them the only one of its grade."""
    known = judged()
    queries, documents = known.user_labels, tuple(f"d{i}" for i in range(len(known) + size))
    users, grades = np.append(known.users, [len(queries)] * size), np.append(known.labels, [0] * (size - 1) + [grade])
    features = sparse.vstack([known.features, sparse.csr_array(np.ones((size, 2)))]).tocsr()
    return Judgements(users, np.arange(len(documents)), grades, (*queries, "few"), documents, features)


def test_the_users_are_those_of_all_judgements(tmp_path):
    """Whatever is left out for having too few documents, or held out, in this file or in another."""
    documents, sizes = with_a_top_grade(4), {"users": "navigational", "n_positions": 2}
    five = list(GRADED_USERS["navigational"][5][0])
    several = [{"n_items": 2}, {"n_items": 3}, *({"n_items": 2, "held_out": 0.5, "seed": seed} for seed in range(4))]
    for arguments in several:
        instance = contextual_instance(documents, **sizes, **arguments)
        assert "of navigational users by 5 grades" in instance.description
        assert instance.model("GradedModel of DBN").click_by_grade.tolist() == five
    few = contextual_instance(judged(), **sizes, n_items=3, held_out=documents)
    assert few.model("GradedModel of DBN").click_by_grade.tolist() == five

    instance = contextual_instance(documents, **sizes, n_items=3)
    instance.save(tmp_path / "users.json")
    model = load_instance(tmp_path / "users.json").model("GradedModel of DBN", 3)
    assert (model.n_grades, model.n_positions, max(map(max, model.grades))) == (5, 3, 2)
    for other in (model, model.before("perfect").before("navigational")):
        assert other.to_dict() == instance.model("GradedModel of DBN", 3).to_dict()
        assert other.click_by_grade.tolist() == five
    with pytest.raises(ValueError, match=r"labels\[31\] is 5.0; expected an integer from 0 to 4"):
        contextual_instance(with_a_top_grade(5), **sizes, n_items=3)


def test_the_number_of_grades_is_written_where_the_grades_do_not_tell_it():
    """So that files of before open, with the users that they had, and keep their digests."""
    documents = {"items": np.eye(3), "candidates": [[0, 1, 2]], "grades": [[0, 2, 1]], "n_items": 3, "n_positions": 2}
    known = GradedModel("perfect", **documents)
    same, more = known.of_grades(3), known.of_grades(5)
    assert known.to_dict() == same.to_dict() == {key: more.to_dict()[key] for key in known.to_dict()}
    assert more.to_dict().keys() - known.to_dict().keys() == {"n_grades"}
    for model, attraction in ((known, [0.0, 1.0, 0.5]), (more, [0.0, 0.4, 0.2])):
        assert Users.from_dict(model.to_dict()) == model
        assert model.attractions[0].tolist() == attraction
        assert model.mean.attraction.tolist() == pytest.approx([np.mean(attraction)] * 3)
    for wrong in (2, 4, 6, True, 3.0, "3"):
        with pytest.raises(ValueError, match=f"n_grades is {wrong!r}; expected"):
            known.of_grades(wrong)
        with pytest.raises(ValueError, match=f"n_grades is {wrong!r}; expected"):
            Users.from_dict(known.to_dict() | {"n_grades": wrong})


def test_more_grades_change_clicks_and_stops_each_by_its_own_table():
    """As if a document of the highest grade were there."""
    documents = {"items": np.eye(4), "n_items": 3, "n_positions": 2}
    for behaviour in ("navigational", "informational"):
        few = GradedModel(behaviour, candidates=[[0, 1, 2]], grades=[[0, 2, 1]], **documents).of_grades(5)
        all_there = GradedModel(behaviour, candidates=[[0, 1, 2, 3]], grades=[[0, 2, 1, 4]], **documents)
        for name in ("attraction", "satisfaction"):
            assert few.labels[name][0].tolist() == all_there.labels[name][0][:3].tolist()
        assert few.labels["attraction"][0].tolist() != few.labels["satisfaction"][0].tolist()


def test_a_query_without_a_relevant_document_counts_0_in_ndcg():
    held_out = {"candidates": [[0, 1], [1, 2], [0, 2], [0, 1]], "grades": [[1, 0], [0, 0], [0, 0], [1, 0]]}
    documents = {"items": np.eye(3), "candidates": [[0, 1]], "grades": [[0, 1]], "n_items": 2, "n_positions": 1}
    model = GradedModel("perfect", **documents, held_out=held_out)
    assert model.held_out_ndcg(lambda features: np.argsort(-features[:, 0])) == pytest.approx(0.5)


def test_features_within_queries_go_from_0_to_1():
    documents = judged()
    plain = contextual_instance(documents, users="perfect", n_items=3, n_positions=2, normalise="query").model(
        "GradedModel of DBN"
    )
    dense, longest = documents.features.toarray(), 0.0
    for numbers in plain.candidates:
        own = dense[numbers]
        dense[numbers] = (own - own.min(axis=0)) / np.maximum(np.ptp(own, axis=0), 1e-300)
    longest = np.linalg.norm(dense, axis=1).max()
    np.testing.assert_allclose(plain.items[:, 1:], dense / longest / np.sqrt(2), atol=1.1e-6)


def test_ndcg_of_queries_held_out_is_that_of_the_order():
    model = contextual_instance(judged(), users="perfect", n_items=3, n_positions=2, held_out=2 / 6).model("GradedModel of DBN")
    assert model.held_out_ndcg(lambda features: np.argsort(-features[:, 1])) == pytest.approx(1.0)  # the grade itself
    worst, cutoff = [], 2
    for grades in model.held_out.grades:
        gain = np.sort(2.0**grades - 1)
        discount = 1 / np.log2([2, 3])
        worst.append(gain[:cutoff] @ discount / (gain[::-1][:cutoff] @ discount))
    assert model.held_out_ndcg(lambda features: np.argsort(features[:, 1]), cutoff) == pytest.approx(np.mean(worst))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"users": "careless"}, "careless"),
        ({"models": ["UBM"]}, "models is given beside users"),
        ({"held_out": 1.0}, "held_out is 1.0"),
        ({"users": None, "held_out": 0.5}, "held_out is for simulated users"),
        ({"normalise": "most"}, "normalisation"),
    ],
)
def test_wrong_arguments_are_named(changed, message):
    with pytest.raises(ValueError, match=message):
        contextual_instance(judged(), **({"users": "perfect", "n_items": 3, "n_positions": 2} | changed))


def test_the_command_makes_users_by_grades(tmp_path, capsys):
    lines = [f"{doc % 3} qid:{query} 1:{doc} 2:{query + doc}" for query in range(4) for doc in range(6)]
    (tmp_path / "docs.txt").write_text("\n".join(lines) + "\n")
    out = tmp_path / "nav.json"
    command = ["features", str(tmp_path / "docs.txt"), "--users", "navigational", "--candidates", "4", "--positions", "3"]
    assert main([*command, "--normalise", "query", "--held-out", "0.25", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "of navigational users by 3 grades" in said
    assert "1 queries held out" in said
    assert isinstance(load_instance(out).model("GradedModel of DBN"), GradedModel)
