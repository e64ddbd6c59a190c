"""Users by grades of relevance: what they do, and the environments made of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from clickgym.envs import GRADED_USERS, GradedModel, Users, graded_model

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
