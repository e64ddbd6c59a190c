"""The study of rankers learned from logs: its logs, its rules, and the parts of its baseline CUOLR."""

import math

import numpy as np
import polars
import pytest
import torch

from clickgym.runner import make_env
from clickgym_lab.studies import learn_from_a_log as study
from clickgym_lab.studies.cuolr import (
    CUOLR,
    conservative,
    position_codes,
    states_of,
    target_entropy,
    targets,
)
from clickgym_lab.studies.study import Curves

LEFT = torch.ones(3, 3, dtype=torch.bool).triu()


# ------------------------------------------------------------------------------------------------------------------ CUOLR


def test_a_state_is_the_mean_of_what_is_placed_the_clicks_so_far_and_the_code_of_its_own_position():
    documents = torch.tensor([[[1.0, 0.0], [3.0, 2.0], [5.0, 4.0]]])
    states = states_of(documents, torch.tensor([[1.0, 0.0, 1.0]]))[0]
    assert states[:, :2].tolist() == [[0, 0], [1, 0], [2, 1]]
    assert states[:, 2:5].tolist() == [[0, 0, 0], [1, 0, 0], [1, 0, 0]]
    codes = [[math.sin(k / 10_000 ** (2 * i / 2)) for i in range(2)] for k in range(3)]
    np.testing.assert_allclose(states[:, 5:], codes, rtol=1e-6)
    np.testing.assert_allclose(position_codes(3, 2), codes, rtol=1e-6)


def test_the_target_of_a_choice_has_the_value_of_the_next_state_and_the_last_one_has_none():
    wanted = targets(torch.tensor([[1.0, 0.0, 1.0]]), torch.tensor([[10.0, 20.0, 30.0]]), 0.5)
    assert wanted.tolist() == [[11.0, 15.0, 1.0]]


def test_conservatism_compares_the_logged_choice_with_what_is_left():
    """The mean of Q in its place would be the same whatever was logged."""
    q = torch.tensor([[[0.0, 1.0, 2.0], [9.0, 4.0, 4.0], [9.0, 9.0, 7.0]]])
    gaps = conservative(q, LEFT)[0]
    np.testing.assert_allclose(gaps, [math.log(1 + math.e + math.e**2), math.log(2), 0], atol=1e-6)
    other = conservative(q[:, :, [2, 1, 0]], LEFT)[0]
    assert float(other[0]) == pytest.approx(float(gaps[0]) - 2)


def test_the_wanted_entropy_can_be_had():
    np.testing.assert_allclose(target_entropy(LEFT), [0.5 * math.log(3), 0.5 * math.log(2), 0], rtol=1e-6)


def test_it_learns_which_documents_are_clicked_the_same_every_time():
    rng = np.random.default_rng(0)
    context = rng.normal(size=(2000, 3, 2))
    clicks = (rng.random((2000, 3)) < 1 / (1 + np.exp(-3 * context[:, :, 0]))).astype(np.int8)
    rankers = [CUOLR(context, clicks, 1, steps=150, batch=64) for _ in range(2)]
    candidates = rng.normal(size=(200, 6, 2))
    best = np.array([rankers[0].best(each) for each in candidates])
    assert (np.sort(best)[:, 1:] > np.sort(best)[:, :-1]).all()
    assert (best[:, 0] == candidates[:, :, 0].argmax(axis=1)).mean() > 0.8  # by chance 1/6
    assert (best == [rankers[1].best(each) for each in candidates]).all()


# ------------------------------------------------------------------------------------------------------------- the study


@pytest.fixture(scope="module")
def users():
    return study.env_of("personal", "PBM", 9).unwrapped.model


@pytest.mark.parametrize("lists", ["mixed", "production"])
def test_placements_are_those_of_the_log(users, lists):
    """The expected number of lists on which production has its way, by 3,000 sessions; 5 standard errors."""
    log, share = study.log_of("personal", "PBM", 9, lists, 3000), study.LISTS[lists]
    placed = [
        study.placements(users, share, log.query_labels[query], [log.item_labels[item] for item in items])
        for query, items in zip(log.queries, log.candidates, strict=True)
    ]
    np.testing.assert_allclose(np.sum(placed, axis=1), 1.0)
    as_wanted = np.array([table.max() == table[np.flatnonzero(row == shown[0])[0], 0]
                          for table, row, shown in zip(placed, log.candidates, log.items, strict=True)])  # fmt: skip
    assert as_wanted.mean() == pytest.approx(1 - 0.9 * share, abs=5 * math.sqrt(share * (1 - share) / 3000) + 1e-12)


def test_from_production_alone_items_are_not_judged_and_from_random_lists_all_are():
    arguments = {"method": "dr-linear", "log": 1500, "world": "personal", "model": "PBM", "number": 9}
    missing = {lists: study.Learned(10, 5, lists=lists, **arguments).ranker.facts for lists in ("random", "production")}
    assert missing["random"]["not_judged"] == 0
    assert missing["production"]["not_judged"] > 1000
    assert missing["production"]["not_judged_first"]


def test_networks_and_the_baseline_are_told_plain_features():
    env = make_env("ContextualPBMRank-v0", study.instance("personal", 9))
    observation, _ = env.reset(seed=0)
    widths = {}
    for method in ("dr-linear", "dr-network", "cuolr"):
        agent = study.Learned(10, 5, method=method, lists="random", log=100, world="personal", model="PBM", number=9)
        widths[method] = observation["features"][:, agent.columns].shape[1]
        assert len(agent.rank(observation)) == 5
    assert widths == {"dr-linear": 36, "dr-network": 11, "cuolr": 10}


def test_what_production_never_shows_is_counted_by_pairs_and_by_places_of_the_best_lists(users):
    """Beside a count in plain Python, of the log of which `not_judged` counts the part to learn from."""
    log = study.log_of("personal", "PBM", 9, "production", 1500)
    pairs = {(query, item) for query, row in zip(log.queries, log.candidates, strict=True) for item in row}
    shown = {(query, item) for query, row in zip(log.queries, log.items, strict=True) for item in row}
    assert study.unjudged(None, "personal", 9, 1500) == pytest.approx(1 - len(shown) / len(pairs))
    attraction, lost = np.array(users.attractions), 0
    for query, row in zip(log.queries, log.candidates, strict=True):
        best = sorted(row, key=lambda item: -attraction[query, item])[:5]
        lost += sum((query, item) not in shown for item in best)
    assert study.missed(None, "personal", 9, 1500) == pytest.approx(lost / (5 * 1500))


def test_every_case_of_a_statement_is_in_one_group():
    for world in study.WORLDS:
        for model in study.MODELS:
            played = [case for name, cases in study.GROUPS.items() if name.split("-")[:2] == [world, model] for case in cases]
            assert len(played) == len(set(played))


def evidence_of(losses):
    """Of random lists half a click is lost per session, of each case in a world its number times a share."""
    evidence = {}
    for number in study.NUMBERS:
        agents = {study.RANDOM: 0.5} | {
            study.learned(*case, "personal", "PBM", number): rate * number for case, rate in losses.items()
        }
        rows = [("ContextualPBMRank-v0", "one", agent, 0, 100, 100 * rate) for agent, rate in agents.items()]
        frame = polars.DataFrame(rows, ["env", "instance", "agent", "run", "step", "regret"], orient="row")
        evidence |= {f"log-personal-PBM{which}-{number}": Curves(frame) for which in ("", "-long")}
    return evidence


def test_the_share_of_the_way_is_what_random_lists_lose_and_the_ranker_does_not():
    case = ("dr-linear", "random", study.MIDDLE)
    evidence = evidence_of({case: 0.01})
    np.testing.assert_allclose(study.shares(evidence, "personal", "PBM", *case), [0.98, 0.96, 0.94])
    assert study.reaches(evidence, "personal", "PBM", *case, least=0.9).verdict == "yes"
    assert study.reaches(evidence, "personal", "PBM", *case, least=1.05).verdict == "no"
    assert study.reaches(evidence, "personal", "PBM", *case, most=0.8).verdict == "no"
    assert study.reaches(evidence, "personal", "PBM", *case, least=0.95).measured == "96.0% ± 5 over 3 worlds"


def test_ten_times_the_sessions_halve_what_is_missed():
    evidence = evidence_of({("dr-network", "random", study.MIDDLE): 0.01, ("dr-network", "random", study.LARGE): 0.001})
    found = study.halves(evidence, "personal", "dr-network", study.MIDDLE)
    assert found.measured.startswith("0.8 against 4 % missed, the first doubled, a gap of 3.2")
