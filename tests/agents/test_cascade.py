"""CascadeUCB-V, TS-Cascade, and the agents that stand corrupted sessions: indices and draws.

Random choices are tested against their exact laws, with fixed seeds and a false-alarm rate of 1e-5 each.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference_agents import MODELS, CascadeReference, TSCascadeReference, UCBVReference, follow, reference_of
from scipy.stats import kstest

from clickgym.agents import CascadeKLUCB, CascadeTS, CascadeUCB1, CascadeUCBV, TSCascade
from clickgym.envs import CascadeModel

FALSE_ALARM = 1e-5
ROBUST = [CascadeUCB1, CascadeKLUCB, CascadeUCBV]
each_robust = pytest.mark.parametrize("agent_class", ROBUST)

COUNTS = {"clicks": [0, 3, 40, 7], "examined": [30, 40, 40, 9]}


def counted(agent, t=99, *, clicks=COUNTS["clicks"], examined=COUNTS["examined"]):
    """An agent that has seen these clicks, one item at a time, in t sessions, and ranks once more."""
    n_items = agent.n_items
    for item in range(n_items):
        for session in range(examined[item]):
            ranking = [item, *(other for other in range(n_items) if other != item)][: agent.n_positions]
            agent.update(None, ranking, [int(session < clicks[item])] + [-1] * (agent.n_positions - 1))
    agent.state.t[0] = t
    agent.rank()
    return agent


# ----------------------------------------------------------------------------------------------------------- CascadeUCBV


CASES = [(each, {"feedback": feedback}) for each in (CascadeUCBV, TSCascade) for feedback in ("last_click", "first_click")]
CASES += [(CascadeUCBV, {"variance": variance, "bias": bias}) for variance, bias in ((0.5, 0.0), (0.0, 0.5))]


@pytest.mark.parametrize("kind", ["CM", "PBM"])
@pytest.mark.parametrize(("agent_class", "given"), CASES)
def test_they_follow_their_definitions(agent_class, given, kind):
    agent = agent_class(5, 3, seed=1, **given)
    follow(agent, reference_of(agent), MODELS[kind], 300)


@pytest.mark.parametrize(("rate", "turn"), [(0.0, 24), (0.5, 713)])
def test_when_the_intervals_of_ucbv_become_narrower(rate, turn):
    """As the docstring says: than those of CascadeUCB1 once N exceeds 24 log t without clicks, 713 log t at a rate of 1/2."""
    for n, narrower in ((2 * round(0.49 * turn * 5), False), (2 * round(0.51 * turn * 5), True)):
        counts = {"clicks": [int(n * rate)], "examined": [n]}
        state_v, state_1 = (
            counted(cls(1, 1, seed=0), round(math.exp(5)) - 1, **counts).state for cls in (CascadeUCBV, CascadeUCB1)
        )
        assert (state_v.indices[0] < state_1.indices[0]) == narrower


# ------------------------------------------------------------------------------------------------------------- TSCascade


def test_ts_cascade_draws_a_standard_normal_number():
    """Null: Z ~ N(0, 1); 4000 sessions without clicks."""
    agent = TSCascade(4, 2, seed=3)
    draws = [(agent.rank(), agent.state.draws[0] / math.log(session + 1))[1] for session in range(1, 4001)]
    assert kstest(draws, "norm").pvalue > FALSE_ALARM


def test_items_that_were_never_examined_do_not_come_first():
    follow(TSCascade(5, 1, seed=4), TSCascadeReference(5, 1, "last_click"), MODELS["CM"].with_positions(1), 30)


# ------------------------------------------------------------------------------------------------- corrupted sessions


class Checked(CascadeReference):
    """With the indices compared, too."""

    def allows(self, ranking, drawn=None, features=None):
        return super().allows(ranking) and np.allclose(drawn.indices, self.indices(), rtol=1e-9)


def robust_reference(agent_class, corruption, feedback="last_click"):
    if agent_class is CascadeUCBV:
        return UCBVReference(5, 3, 4.0, 6.0, feedback, corruption)
    return Checked(5, 3, "UCB1" if agent_class is CascadeUCB1 else "KL", feedback, corruption=corruption)


@each_robust
@pytest.mark.parametrize("corruption", [0.5, 30])
def test_the_index_grows_by_the_corruption_over_n(agent_class, corruption):
    agent = agent_class(5, 3, corruption=corruption, seed=1)
    follow(agent, robust_reference(agent_class, corruption), MODELS["PBM"], 300)


@each_robust
def test_candidates_are_ranked_with_corruption_and_clicks_come_late(agent_class):
    """t counts displays, not clicks: 40 lists are shown before the first of them is answered, in another order."""
    agent, rng = agent_class(5, 3, corruption=8, seed=2), np.random.default_rng(5)
    reference = robust_reference(agent_class, 8)
    for _ in range(3):
        waiting = {}
        for _ in range(40):
            available = rng.permutation(5) < 4
            ranking = agent.rank(candidates=available).tolist()
            index = [value if can else -math.inf for value, can in zip(reference.indices(), available, strict=True)]
            np.testing.assert_allclose([index[item] for item in ranking], sorted(index, reverse=True)[:3], rtol=1e-9)
            waiting[agent.display] = ranking
            reference.t = agent.display + 1
        for display in rng.permutation(list(waiting)).tolist():
            clicks = MODELS["PBM"].sample(np.array(waiting[display]), rng)
            agent.update(None, waiting[display], clicks, display=display)
            reference.learn(waiting[display], clicks.tolist())
            reference.t = agent.display + 1
    assert reference.agrees(agent.state)


@pytest.mark.parametrize("agent_class", [CascadeUCBV, CascadeTS, TSCascade])
@pytest.mark.parametrize(
    ("feedback", "clicks", "void", "examined", "counted"),
    [
        ("last_click", [0, 1, 0, 1, 0], [], [1, 1, 1, 1, 0], [0, 1, 0, 1, 0]),
        ("first_click", [0, 1, 0, 1, 0], [], [1, 1, 0, 0, 0], [0, 1, 0, 0, 0]),
        ("last_click", [0, 0, 0, 0, 0], [], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]),
        ("last_click", [0, 0, 0, -1, -1], [], [1, 1, 1, 0, 0], [0, 0, 0, 0, 0]),
        ("last_click", [1, 0, 1, 0, 0], [0, 2], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0]),
        ("first_click", [0, 0, 1, 0, 0], [2], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]),
    ],
)
def test_what_counts_as_examined(agent_class, feedback, clicks, void, examined, counted):
    agent = agent_class(6, 5, feedback=feedback, seed=0)
    ranking = agent.rank()
    agent.update(None, ranking, clicks, void=np.isin(np.arange(5), void))
    assert agent.state.examined[ranking].tolist() == examined
    assert agent.state.clicks[ranking].tolist() == counted


def test_the_first_sessions_are_of_a_click_farm():
    """Items 4 and 5 are clicked whenever they are shown, 50 times: with C = 50 the others come back, sooner or later."""
    model, lost = CascadeModel([0.5, 0.45, 0.4, 0.15, 0.1, 0.05], 3), {}
    for corruption in (0, 50):
        agent, rng = CascadeUCB1(6, 3, corruption=corruption, seed=7), np.random.default_rng(7)
        for session in range(400):
            ranking = agent.rank()
            clicks = np.isin(ranking, [4, 5]) if session < 50 else model.sample(ranking, rng)
            agent.update(None, ranking, clicks.astype(int))
        lost[corruption] = agent.state.examined.min()
    assert lost[50] > 2 * lost[0]


@pytest.mark.parametrize(("agent_class", "given"), [*((robust, {"corruption": 3}) for robust in ROBUST), (TSCascade, {})])
def test_lists_of_others_raise_the_clock_and_a_replaced_item_is_as_new(agent_class, given):
    agent, new = (agent_class(5, 3, seed=8, **given) for _ in range(2))
    new = new.state._asdict()
    for _ in range(20):
        agent.update(None, [0, 1, 2], [0, 1, 1])
    assert agent.state.t[0] == agent.display == 20
    agent.replace(1)
    for field in {"clicks", "examined", "mean", "width", "deviation", "share", "peak"} & new.keys():
        assert getattr(agent.state, field)[1] == new[field][1], field
    assert agent_class is TSCascade or 1 in agent.rank(), "the new item comes first"
