"""The study of interleaving: balanced and optimized interleaving, which it makes itself, and the facts that it reads."""

import json
from pathlib import Path

import numpy as np
import pytest

from clickgym.envs import load_instance
from clickgym.offline.interleaving import TeamDraft, outcomes
from clickgym_lab.studies import interleaving
from clickgym_lab.studies.interleaving import (
    FACTS,
    PAIRS,
    POWER,
    balanced,
    balanced_outcomes,
    credit_of,
    expected,
    optimized,
    optimized_outcomes,
    six_best,
    values,
)
from clickgym_lab.studies.play import read_study
from clickgym_lab.studies.setting import by_setting

BALANCED = [  # sessions for 80 % power, to the digit
    ("PBM", "swapped", 247), ("PBM", "reversed", 27), ("PBM", "replaced", 102_307), ("UBM", "swapped", 166),
    ("CM", "reversed", 35), ("DCM", "swapped", 340), ("DCM", "reversed", 43), ("DBN", "swapped", 306), ("DBN", "reversed", 37),
]  # fmt: skip


@pytest.mark.parametrize(("users", "pair", "needed"), BALANCED)
def test_the_sessions_that_balanced_interleaving_needs(users, pair, needed):
    model = six_best(load_instance("yandex-9982").models[users].with_positions(5))
    mean, deviation = expected("balanced", model, interleaving.BEST, PAIRS[pair])
    assert round(POWER * (deviation / mean) ** 2) == needed


def one_random_click(n_positions):
    """The rows of single clicks among all click vectors."""
    return [2**k for k in range(n_positions)]


def test_balanced_interleaving_prefers_a_ranking_by_one_random_click_and_the_others_do_not():
    a, b, k = [0, 1, 2, 3], [1, 2, 3, 0], 4
    lists, probabilities = balanced(a, b, k)
    assert lists.tolist() == [[0, 1, 2, 3], [1, 0, 2, 3]]
    assert probabilities @ balanced_outcomes(a, b, lists)[:, one_random_click(k)].mean(axis=1) == pytest.approx(-0.5)
    lists, probabilities = optimized(a, b, k)
    assert probabilities @ credit_of(a, b, lists).mean(axis=1) == pytest.approx(0.0, abs=1e-9)
    _, notes, probabilities = TeamDraft().law(a, b, k)
    assert probabilities @ outcomes(notes[:, None], np.eye(k)).mean(axis=1) == pytest.approx(0.0)


@pytest.mark.parametrize(("a", "b"), [([0, 1, 2, 3], b) for b in ([1, 0, 2, 3], [3, 2, 1, 0], [0, 2, 3, 1])])
def test_optimized_interleaving_is_fair_for_every_prefix_and_shows_only_next_items(a, b):
    lists, probabilities = optimized(a, b, 3)
    assert probabilities.sum() == pytest.approx(1.0)
    assert np.abs(probabilities @ credit_of(a, b, lists).cumsum(axis=1)).max() < 1e-9
    for shown in lists.tolist():
        for k, item in enumerate(shown):
            assert item in [next(each for each in ranking if each not in shown[:k]) for ranking in (a, b)]
    assert optimized_outcomes(a, b, lists)[:, 0].tolist() == [0.0] * len(lists)  # without clicks


def test_the_facts_are_those_that_are_measured(monkeypatch):
    monkeypatch.setattr(interleaving, "SESSIONS", 100)
    monkeypatch.setattr(interleaving, "NULL_RUNS", 1)
    monkeypatch.setattr(interleaving, "AXES", {name: {} for name in interleaving.AXES})
    facts = interleaving.measured.__wrapped__(json.dumps(load_instance("yandex-990").models["DCM"].with_positions(5).to_dict()))
    assert set(facts) == set(FACTS)
    assert facts["none_reversed"] > 0.1
    assert facts["n_team_replaced"] > facts["n_none_replaced"]


def test_what_the_page_says_of_the_study():
    (setting,) = by_setting("interleaving", read_study("interleaving", Path(__file__).parents[1] / "results"))
    curves = setting.evidence["interleaving"]
    for model in ("PBM", "UBM"):
        for pair in ("swapped", "reversed"):
            assert (np.sign(values(curves, model, f"ab_{pair}")) == np.sign(values(curves, model, f"none_{pair}"))).all()
    assert (values(curves, "TPBM", "ab_swapped") < 0).all()
    assert (values(curves, "TPBM", "none_swapped") > 0).all()
    means = {model: values(curves, model, "ab_reversed").mean() for model in ("DCM", "DBN", "CCM")}
    assert means["DCM"] < 0 < min(means["DBN"], means["CCM"])
