"""`clickgym.compare_online`: enumeration against simulation, late clicks, masks, bots, rankers, and what is refused."""

from __future__ import annotations

import json
import math
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from click_stories import make_model

import clickgym
from clickgym.envs import ClickEnv, DependentClickModel, PositionBasedModel
from clickgym.offline import ClickLog
from clickgym.offline.interleaving import KNOWN

METHODS = ("ab", "team_draft", "probabilistic")
USERS = DependentClickModel([0.6, 0.5, 0.4, 0.3], [0.9, 0.1, 0.1])
LOG = ClickLog(
    [[0, 1, 2], [1, 0, 2], [2, 1, 0]] * 40, [[1, 0, 0], [0, 1, 0], [0, 1, 1]] * 40, [0] * 120, ("x", "y", "z"), ("q",)
)


@pytest.mark.parametrize("credit", ["sign", "clicks"])
@pytest.mark.parametrize("model_class", KNOWN, ids=lambda model: model.short)
def test_enumeration_agrees_with_simulation(model_class, credit):
    """Null: 4,000 simulated sessions have the enumerated expectation; within 4 standard errors, seed fixed."""
    model = make_model(model_class, 5, 4, np.random.default_rng(2).random)
    users = ClickEnv(model, reference=range(4))
    compared = clickgym.compare_online([0, 1, 2, 3, 4], [0, 3, 1, 4, 2], users, METHODS, credit=credit, sessions=4000, seed=1)
    for test in compared.tests.values():
        assert test.error == 0.0
        assert abs(test.estimate - test.mean) <= 4 * test.deviation / math.sqrt(test.n), test.by
    assert compared.tests["ab"].mean == pytest.approx(compared.clicks[0] - compared.clicks[1])


def test_lists_of_more_than_five_positions_are_simulated():
    users = PositionBasedModel(np.linspace(0.7, 0.1, 8), np.linspace(1.0, 0.3, 6))
    compared = clickgym.compare_online(range(8), [*range(7, -1, -1)], users, METHODS, sessions=1000)
    for test in compared.tests.values():
        assert test.error == pytest.approx(test.deviation / math.sqrt(1000))
        assert test.mean == test.estimate
    assert compared.clicks[0] == pytest.approx(users.expected_reward(range(6)))


def test_credit_against_clicks_is_said_and_agreement_with_satisfaction_too():
    compared = clickgym.compare_online([0, 1, 2, 3], [2, 1, 0, 3], USERS, METHODS, sessions=200)
    assert compared.clicks[0] < compared.clicks[1]
    assert compared.satisfaction[0] > compared.satisfaction[1]
    team, probabilistic = compared.warnings
    assert team.startswith("team_draft prefers A (+0.")
    assert "but B gets 0.0800 more clicks" in team
    assert "its credit is a preference, not clicks; it agrees with satisfaction" in team
    assert probabilistic.startswith("probabilistic prefers A")
    opposite = clickgym.compare_online([2, 1, 0, 3], [0, 1, 2, 3], USERS, "team_draft", sessions=200)
    assert opposite.warnings[0].startswith("team_draft prefers B (-0.")


def test_credit_with_clicks_needs_no_warning():
    users = PositionBasedModel([0.6, 0.5, 0.4], [1.0, 0.5])
    assert not clickgym.compare_online([0, 1, 2], [2, 1, 0], users, METHODS, sessions=200).warnings
    equal = clickgym.compare_online([0, 1, 2], [0, 1, 2], users, METHODS, sessions=200)
    assert not equal.warnings
    assert equal.tests["team_draft"].sessions == math.inf
    assert equal.tests["team_draft"].deviation == 0.0


def test_the_same_users_on_both_lists_need_fewer_sessions():
    a, b = [0, 1, 2, 3], [0, 1, 3, 2]
    apart, paired = (
        clickgym.compare_online(a, b, USERS, "ab", paired=same_users, sessions=3000).tests["ab"] for same_users in (False, True)
    )
    assert paired.mean == apart.mean
    assert paired.sessions < apart.sessions / 4
    assert abs(paired.estimate - paired.mean) <= 4 * paired.deviation / math.sqrt(paired.n)


@pytest.mark.parametrize("arrival", ["batch:7", "delay:5", "delay:geometric:4", "delay:geometric:4:lost=0.3"])
def test_late_clicks_are_credited_to_their_own_display(arrival):
    """Every user clicks item 0, which is A's: the outcome is 1 in every session, unless clicks meet the note of another."""
    users = ClickEnv(PositionBasedModel([1.0, 0.0], [1.0, 1.0]), arrival=arrival)
    test = clickgym.compare_online([0, 1], [1, 0], users, "team_draft", sessions=400).tests["team_draft"]
    assert test.n < 400
    assert (test.estimate, test.deviation) == (1.0, 0.0)


def test_clicks_on_items_that_were_replaced_are_nobodys():
    """With ``churn=1`` an item is replaced after every session, so that of two items at most one counts after a delay."""
    users = ClickEnv(PositionBasedModel([1.0, 1.0], [1.0, 1.0]), arrival="delay:1", churn=1.0)
    test = clickgym.compare_online([0, 1], [1, 0], users, "team_draft", credit="clicks", sessions=400).tests["team_draft"]
    assert test.deviation == pytest.approx(1.0, abs=0.05)  # +1 or -1, never 0 as with both clicks


def test_where_items_are_missing_rankings_are_cut_and_probabilistic_is_refused():
    users = ClickEnv(PositionBasedModel([0.9, 0.5, 0.3, 0.1], [1.0, 0.5]), available=3)
    compared = clickgym.compare_online([0, 1, 2, 3], [3, 2, 1, 0], users, sessions=2000)
    values = []
    for missing in range(4):
        lists = [[item for item in ranking if item != missing][:2] for ranking in ([0, 1, 2, 3], [3, 2, 1, 0])]
        values.append([users.model.expected_reward(each) for each in lists])
    assert compared.clicks == pytest.approx(np.mean(values, axis=0), abs=0.03)
    assert compared.tests["team_draft"].mean > 4 * compared.tests["team_draft"].error > 0
    with pytest.raises(ValueError, match="probabilistic has no law where not all items are available; ab and team_draft have"):
        clickgym.compare_online([0, 1, 2, 3], [3, 2, 1, 0], users, "probabilistic")
    with pytest.raises(ValueError, match="a ranks 3 items; expected all, as not all are available in every session"):
        clickgym.compare_online([0, 1, 2], [2, 1, 0], users)


def test_bots_are_in_the_outcome_and_not_in_the_truth():
    model = PositionBasedModel([0.6, 0.5, 0.1], [1.0, 0.5])
    users = ClickEnv(model, bots="farm:share=0.5:targets=2")
    compared = clickgym.compare_online([0, 1, 2], [2, 1, 0], users, sessions=4000)
    assert compared.clicks == pytest.approx((model.expected_reward([0, 1]), model.expected_reward([2, 1])))
    assert compared.tests["ab"].estimate < compared.clicks[0] - compared.clicks[1] - 0.2


def test_agents_learn_first_and_rankers_are_taken_as_they_are():
    users = gym.make("PBMRank-v0", instance="uniform:n_items=5,n_positions=2,seed=1")
    best = users.unwrapped.model.optimal_ranking().tolist()
    compared = clickgym.compare_online("CascadeKLUCB", "Oracle", users, sessions=200, train=20_000)
    assert compared.b[:2] == best
    assert set(compared.a) == set(compared.b)

    class Ranker:
        def best(self):
            return [4, 3]

    compared = clickgym.compare_online(Ranker(), [0, 1, 2, 3, 4], users, METHODS, sessions=200)
    assert (compared.a, compared.b) == ([4, 3, 0, 1, 2], [0, 1, 2, 3, 4])


def test_rankers_by_features_rank_the_candidates_of_each_session():
    made = partial(gym.make, "ContextualPBMRank-v0", instance="linear:n_items=6,n_positions=2,n_features=4,seed=2")

    class Backwards:
        def __init__(self, agent):
            self.agent = agent

        def best(self, features):
            return self.agent.best(features)[::-1]

    agent = clickgym.make_agent("LinearTS", made(), seed=0)
    clickgym.run(agent, made(), 2000, seed=1)
    compared = clickgym.compare_online(agent, Backwards(agent), made(), METHODS, sessions=1500)
    assert compared.a is None
    assert compared.clicks[0] > compared.clicks[1]
    for test in compared.tests.values():
        assert test.mean > 4 * test.error, test.by


def test_a_log_needs_a_click_model_and_its_items_go_by_label():
    compared = clickgym.compare_online(["x", "y", "z"], ["z", "y", "x"], LOG, model="PBM", sessions=100)
    assert (compared.a, compared.b) == ([0, 1, 2], [2, 1, 0])
    assert compared.tests["team_draft"].error == 0.0
    assert clickgym.compare_online(["x", "y", "z"], "Fixed", LOG, model="DCM", sessions=100).satisfaction is not None


WRONG = {
    "a ranks the item 0 and b does not; expected rankings of the same items": {"a": [0, 1, 2], "b": [1, 2, 3]},
    "a ranks 3 items and b 4; expected rankings of the same items": {"a": [0, 1, 2], "b": [0, 1, 2, 3]},
    "a ranks 2 items; expected at least the 3 of a list": {"a": [0, 1], "b": [1, 0]},
    "b ranks the item 1 twice; expected each item once": {"b": [1, 0, 1, 2]},
    "b[3] is 7; expected an integer from 0 to 3": {"b": [0, 1, 2, 7]},
    "a: unknown agent 'Nobody'": {"a": "Nobody"},
    "Random has no best list": {"a": "Random"},
    "unknown by 'interleaving' (there is: ab, team_draft, probabilistic)": {"by": "interleaving"},
    "by is empty; expected one or more of ab, team_draft, probabilistic": {"by": []},
    "unknown credit 'money'": {"credit": "money"},
    "unknown common 'both'": {"common": "both"},
    "tau is 0; expected a number in (0, 50]": {"tau": 0},
    "sessions is 99; expected an integer of at least 100": {"sessions": 99},
    "model and query are for a log": {"model": "PBM"},
    "model is missing: expected the click model that is fitted to the log, as PBM or DCM": {"users": LOG},
    "unknown item of a 'w' (there is: x, y, z)": {"users": LOG, "model": "PBM", "a": ["x", "y", "w"]},
    "is of users with a memory, whom lists change": {"users": "CascadeMDPRank-v0"},
    "a is a list, but candidates change from session to session": {"users": "ContextualPBMRank-v0"},
    "b is 'Random', whose list is not by features": {"users": "ContextualPBMRank-v0", "a": "C2UCB", "b": "Random"},
    "no clicks arrived in 100 sessions": {"users": ClickEnv(USERS, arrival="batch:500"), "sessions": 100},
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_wrong_is_said_in_one_line(message):
    arguments = {"a": [0, 1, 2, 3], "b": [3, 2, 1, 0], "users": USERS, "sessions": 100} | WRONG[message]
    with pytest.raises((ValueError, TypeError)) as error:
        clickgym.compare_online(**arguments)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_command_prints_what_is_true_and_what_each_method_finds(printed):
    words = "compare-online DCMRank-v0 --a 2,4,7,8,0 --b 0,8,7,4,2 --by ab team_draft probabilistic --sessions 500"
    text = printed(words.split())
    assert "Clicks per session: A 0.681994, B 0.70261" in text
    assert "sessions for 80 % power" in text
    assert text.count("Caution: ") == 2
    found = json.loads(printed([*words.split(), "--json"]))
    assert found["a"] == [2, 4, 7, 8, 0]
    assert found["tests"]["team_draft"]["mean"] > 0 > found["clicks"][0] - found["clicks"][1]
    assert found["satisfaction"][0] > found["satisfaction"][1]


def test_the_command_takes_a_log(tmp_path, printed, refused):
    rows = ["session,query,position,item,clicked"]
    rows += [f"{s},q,{k + 1},{'xyz'[(s + k) % 3]},{(s + k) % 2}" for s in range(30) for k in range(3)]
    (tmp_path / "log.csv").write_text("\n".join(rows))
    words = ["compare-online", str(tmp_path / "log.csv"), "--a", "x,y,z", "--b", "z,y,x", "--sessions", "100"]
    assert "team_draft" in printed([*words, "--model", "PBM"])
    assert "model is missing" in refused(words)
