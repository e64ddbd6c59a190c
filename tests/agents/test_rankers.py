"""PairRank, DBGD, MGD and COLTR: against their references, by hand, the laws of what they draw, and what they remember."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from itertools import permutations
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
from reference_agents import MODELS, follow, plain, reference_of
from scipy.optimize import minimize
from scipy.stats import chisquare, kstest

import clickgym
from clickgym.agents import COLTR, DBGD, GRAB, MGD, PDGD, NeuralGreedy, NeuralLinearTS, OLLambdaRank, OLRankNet, PairRank
from clickgym.agents.dueling import advantage, draft, multileave
from clickgym.agents.streams import draw_direction, next_uniform

FALSE_ALARM = 1e-5


def assert_law(counts, law):
    """Null: the law, by outcome, that an enumeration gives."""
    assert set(counts) <= set(law)
    n = sum(counts.values())
    assert chisquare([counts[each] for each in law], [n * p for p in law.values()]).pvalue > FALSE_ALARM


def observed(rng, n_items=5, n_features=3):
    return {"features": rng.random((n_items, n_features)) - 0.3}


# ---------------------------------------------------------------------------------------------------------- the reference

CASES = [
    (PairRank, {}),
    (PairRank, {"alpha": 0.02, "loss": "sum", "disjoint": False, "inside": "certain", "growth": 0.1}),
    (PairRank, {"one_below": True}),
    (PairRank, {"disjoint": False, "one_below": True, "growth": 0.3}),
    (DBGD, {"decay": 0.9, "leaving": "probabilistic"}),
    (MGD, {"decay": 0.9}),
    (MGD, {"decay": 0.9, "leaving": "probabilistic", "n_candidates": 6}),
    (COLTR, {"n_candidates": 10}),
]


@pytest.mark.parametrize(("agent", "given"), CASES)
def test_it_follows_the_reference(agent, given):
    played = agent(5, 3, n_features=3, seed=1, **given)
    follow(played, reference_of(played), MODELS["PBM"], 120, n_features=3)


@pytest.mark.parametrize(("agent", "given"), [(MGD, {}), (COLTR, {"n_candidates": 10, "learning_rate": 1.0})])
def test_late_clicks_meet_what_the_display_has_left(agent, given):
    """In batches of 20, in any order."""
    played, rng = agent(5, 3, n_features=3, seed=1, **given), np.random.default_rng(2)
    reference, waiting = reference_of(played), []
    for session in range(1, 101):
        seen = observed(rng)
        ranking = played.rank(seen)
        assert reference.allows(ranking.tolist(), played.state, seen["features"])
        waiting.append((session, seen, ranking, MODELS["PBM"].sample(ranking, rng), reference.remember()))
        if session % 20 == 0:
            for place in rng.permutation(20):
                display, before, shown, clicks, memory = waiting[place]
                played.update(before, shown, clicks, display=display)
                reference.recall(memory)
                reference.learn(shown.tolist(), clicks.tolist())
                assert reference.agrees(played.state)
            waiting.clear()


NETWORK = {"hidden": [4], "epochs": 3, "learning_rate": 0.03}
NETWORKS = [OLRankNet, OLLambdaRank, NeuralLinearTS, NeuralGreedy]


@pytest.mark.parametrize(
    ("agent", "given", "click"),
    [*((agent, {}, 1) for agent in (PairRank, DBGD, MGD, COLTR)), *((agent, NETWORK, 0) for agent in NETWORKS)],
)
def test_what_is_void_or_was_not_shown_is_no_sample(agent, given, click):
    played, twin = (agent(6, 4, n_features=3, seed=3, **given) for _ in range(2))
    first, rng, void = plain(played.state), np.random.default_rng(1), np.array([False, False, True, False])
    for _ in range(60):
        seen = observed(rng, 6)
        ranking = played.rank(seen)
        assert twin.rank(seen).tolist() == ranking.tolist()
        played.update(seen, ranking, [0, 1, click, -1], void=void)
        twin.update(seen, ranking, [0, 1, -1, -1])
    assert plain(played.state) == plain(twin.state)
    learned = "network" if given else "weights"
    assert plain(played.state)[learned] != first[learned]


@pytest.mark.parametrize("agent", [PairRank, COLTR])
def test_a_void_click_tells_how_far_the_user_looked(agent):
    """So that the unclicked candidate above it is a sample."""
    played, seen = agent(6, 4, n_features=6, seed=3), {"features": np.eye(6)}
    ranking = played.rank(seen)
    played.update(seen, ranking, [1, 0, 1, -1], void=np.array([False, False, True, False]))
    weights = played.state.weights[ranking]
    assert weights[0] > 0 > weights[1]


@pytest.mark.parametrize("agent", [PairRank, DBGD, MGD, COLTR, partial(PDGD, learning_rate=0.1)])
def test_candidates_that_were_never_seen_are_ordered(agent):
    """Clicks on candidates by their first feature."""
    played, rng = agent(6, 4, n_features=3, seed=2), np.random.default_rng(3)
    for _ in range(2000):
        seen = {"features": rng.random((6, 3))}
        ranking = played.rank(seen)
        played.update(seen, ranking, (rng.random(4) < seen["features"][ranking, 0] * [1.0, 0.8, 0.6, 0.5]).astype(int))
    weights = played.state.weights
    assert weights[0] > 3 * np.abs(weights[1:]).max()


# --------------------------------------------------------------------------------------------------------------- streams


def test_the_stream_is_splitmix():
    """The published numbers of the seed 1234567, and the definition in whole numbers of Python."""
    stream, x = np.array([1234567], np.uint64), 1234567
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    for n in range(1000):
        x = (x + 0x9E3779B97F4A7C15) % 2**64
        z = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
        z ^= z >> 31
        assert n >= 3 or z == published[n]
        assert next_uniform(stream) == (z >> 11) / 2**53


@pytest.mark.parametrize("d", [1, 2, 3])
def test_directions_are_uniform_on_the_sphere(d):
    """Null: the angle in the plane, and a coordinate in space, are uniform (Archimedes); 5,000 directions."""
    stream, directions = np.array([5], np.uint64), np.empty((5000, d))
    for direction in directions:
        draw_direction(stream, direction)
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1.0)
    if d == 1:
        return assert_law(Counter(directions[:, 0].tolist()), {1.0: 0.5, -1.0: 0.5})
    axes = directions.T if d == 3 else [np.arctan2(*directions.T) / math.pi]
    assert all(kstest(values, "uniform", (-1, 2)).pvalue > FALSE_ALARM for values in axes)


# -------------------------------------------------------------------------------------------------------------- PairRank


def scored(scores, n_positions, **given):
    """An agent of one feature, with w = 1 and A = 1; and what it sees."""
    agent = PairRank(len(scores), n_positions, n_features=1, l2=1.0, seed=0, **given)
    agent.state.weights[:] = 1.0
    return agent, {"features": np.array(scores, float)[:, None]}


def test_certainty_is_closed():
    """The bound of the outer pair is σ(6) - 0.6 < ½, those of the inner ones are σ(3) - 0.3 > ½."""
    agent, seen = scored([3.0, 0.0, 6.0], 3)
    for _ in range(20):
        assert agent.rank(seen).tolist() == [2, 0, 1]
    assert agent.state.blocks.tolist() == [1, 2, 0]


def test_a_bound_of_a_half_is_not_certain():
    """Neither at first, when w = 0, nor where candidates are equal, whatever alpha; all orders are then as likely."""
    fresh = PairRank(3, 2, n_features=2, alpha=0.0, seed=0)
    same, equal = scored([1.0, 1.0, 1.0], 2, alpha=0.0)
    for agent, seen in ((fresh, {"features": np.eye(3, 2)}), (same, equal)):
        counts = Counter(tuple(agent.rank(seen).tolist()) for _ in range(3000))
        assert agent.state.blocks.tolist() == [0, 0, 0]
        assert_law(counts, dict.fromkeys(permutations(range(3), 2), 1 / 6))


def test_blocks_below_the_list_stay_there():
    """Two blocks of two equal candidates, and two of one: of a list of three the second block has one position."""
    agent, seen = scored([0.0, 20.0, 60.0, 20.0, 60.0, -40.0], 3, alpha=0.001)
    counts = Counter(tuple(agent.rank(seen).tolist()) for _ in range(2000))
    assert agent.state.blocks.tolist() == [2, 1, 0, 1, 0, 3]
    assert_law(counts, {(2, 4, 1): 0.25, (4, 2, 1): 0.25, (2, 4, 3): 0.25, (4, 2, 3): 0.25})


@pytest.mark.parametrize("inside", ["random", "certain"])
def test_orders_inside_of_a_block(inside):
    """Candidate 2 certainly precedes 0; candidate 1 has a score between, but is far from both. Null: by enumeration."""
    agent = PairRank(3, 3, n_features=2, l2=1.0, inside=inside, seed=0)  # σ(2) - 0.2 > ½ > σ(1) - 0.1 sqrt(26)
    seen, agent.state.weights[0] = {"features": [[0.0, 0.0], [1.0, 5.0], [2.0, 0.0]]}, 1.0
    counts = Counter(tuple(agent.rank(seen).tolist()) for _ in range(3000))
    assert agent.state.blocks.tolist() == [0, 0, 0]
    if inside == "random":
        assert_law(counts, dict.fromkeys(permutations(range(3)), 1 / 6))
    else:  # among 1 and 2 at first; after 1 only 2, after 2 one of both others
        assert_law(counts, {(1, 2, 0): 0.5, (2, 1, 0): 0.25, (2, 0, 1): 0.25})


def test_disjoint_pairs_are_drawn_uniformly():
    """Clicks on positions 1 and 3 of five, with 0 and 2 unclicked above; 4 is below the last. Null: two ways, as likely."""
    agent, seen, ways = PairRank(5, 5, n_features=5, growth=1e9, seed=0), {"features": np.eye(5)}, Counter()
    for session in range(1000):
        ranking = agent.rank(seen)
        agent.update(seen, ranking, [0, 1, 0, 1, 0])
        assert agent.state.n_pairs[0] == 2 * (session + 1)
        new = agent.state.pairs[2 * session : 2 * session + 2][:, ranking]
        ways[frozenset((int(pair.argmax()), int(pair.argmin())) for pair in new)] += 1
    assert_law(ways, {frozenset({(1, 0), (3, 2)}): 0.5, frozenset({(1, 2), (3, 0)}): 0.5})


@pytest.mark.parametrize(("loss", "clicks"), [("mean", 1.0), ("sum", 1.0), ("mean", 1e3), ("sum", 1e3)])
def test_the_fit_is_the_minimum(loss, clicks):
    """Where it is an optimiser of scipy's; of features of norm 1 and of 1,000, the pairs of which are separable."""
    agent, rng = PairRank(6, 4, n_features=4, loss=loss, seed=0), np.random.default_rng(1)
    for _ in range(60):
        seen = {"features": rng.random((6, 4)) * clicks}
        ranking = agent.rank(seen)
        agent.update(seen, ranking, (seen["features"][ranking, 0] > 0.5 * clicks).astype(int))
    deltas, l2 = agent.state.pairs[: agent.state.n_pairs[0]], 0.1

    def objective(w):
        losses = np.logaddexp(0.0, -deltas @ w)
        return losses.mean() + l2 * w @ w if loss == "mean" else losses.sum() + 0.5 * l2 * w @ w

    best = minimize(objective, agent.state.weights + 1e-3, method="BFGS", options={"gtol": 1e-10})
    np.testing.assert_allclose(agent.state.weights, best.x, atol=1e-5)
    assert objective(agent.state.weights) <= best.fun + 1e-12


def test_the_fit_comes_back_from_afar():
    """Where the loss is straight a whole step of Newton's is far too long; of a pair and its opposite, w = 0 is best."""
    agent, seen = PairRank(2, 2, n_features=1, l2=1e-6, seed=0), {"features": [[0.0], [1.0]]}
    agent.update(seen, [0, 1], [0, 1])
    agent.state.weights[0] = 50.0
    agent.update(seen, [1, 0], [0, 1])
    assert agent.state.pairs[:2].tolist() == [[1.0], [-1.0]]
    assert abs(agent.state.weights[0]) < 1e-6


def test_pairs_have_room():
    """Of displays that wait for their clicks, of lists of others, and of a log; there are six in a session, for 64 at first."""
    agent, seen = PairRank(5, 5, n_features=5, disjoint=False, growth=1e9, seed=0), {"features": np.eye(5)}
    lists, clicks = [agent.rank(seen) for _ in range(100)], [0, 0, 0, 1, 1]
    agent.make_room(10)
    assert len(agent.state.pairs) >= 110 * 6
    for endless in (agent, GRAB(5, 3, seed=0)):
        for wrong in (math.inf, math.nan, -1, "1"):
            with pytest.raises(ValueError, match=r"n_sessions is .*; expected an integer of at least 0"):
                endless.make_room(wrong)
    for display, ranking in enumerate(lists, start=1):
        agent.update(seen, ranking, clicks, display=display)
    for _ in range(100):
        agent.update(seen, [3, 2, 1, 0, 4], clicks)
    log = SimpleNamespace(rankings=[range(5)] * 100, clicks=[clicks] * 100, context=[np.eye(5)] * 100)
    agent.learn(log)
    assert agent.state.n_pairs[0] == 300 * 6
    assert set(np.abs(agent.state.pairs[: 300 * 6]).sum(axis=1)) == {2.0}


@pytest.mark.slow
def test_pairs_that_come_late_have_room():
    """Batches of 100 sessions in chunks of 10."""
    agents = []
    for engine in ("compiled", "python"):
        env = gym.make("ContextualCMRank-v0", arrival="batch:100")
        agents.append(clickgym.make_agent("PairRank", env, growth=0.2, disjoint=False, seed=1))
        clickgym.run(agents[-1], env, 400, seed=2, engine=engine, checkpoints=range(10, 401, 10))
    first, second = agents
    assert first.state.n_pairs[0] > 200
    assert plain(first.state) == plain(second.state)


# ---------------------------------------------------------------------------------------------------------- DBGD and MGD


def of_lists(lists, n_positions, **given):
    """An agent whose rankers have ordered the candidates so."""
    n_items = len(lists[0])
    agent = MGD(n_items, n_positions, n_features=1, n_candidates=len(lists) - 1, seed=0, **given)
    agent.state.lists[:] = [order[: agent.state.lists.shape[1]] for order in lists]
    return agent


def drawn(agent, draw):
    ranking = np.zeros(agent.n_positions, np.int64)
    agent.state.left[:], agent.state.credit[:] = True, 0.0
    draw(agent.state, agent.rng, ranking)
    return tuple(ranking.tolist())


def test_the_law_of_a_multileaved_list():
    """Null: all orders of three candidates, by two rankers, each position from the mean of their laws; 4,000 lists."""
    lists, tau, law = ([0, 1, 2], [2, 0, 1]), 1.5, {}
    for ranking in permutations(range(3)):
        law[ranking] = 1.0
        for k in range(3):
            masses = [{item: (order.index(item) + 1) ** -tau for item in ranking[k:]} for order in lists]
            law[ranking] *= np.mean([mass[ranking[k]] / sum(mass.values()) for mass in masses])
    assert sum(law.values()) == pytest.approx(1.0)
    agent = of_lists(lists, 3, leaving="probabilistic", tau=tau)
    assert_law(Counter(drawn(agent, multileave) for _ in range(4000)), law)


def test_the_law_of_a_team_draft():
    """Item 3 is common; then each of three rankers has a turn in random order. Null: by enumeration of their orders."""
    lists, law = ([3, 0, 1, 2], [3, 1, 0, 2], [3, 0, 2, 1]), Counter()
    for turns in permutations(range(3)):
        ranking, owners = [3], [-1]
        for r in turns:
            ranking.append(next(item for item in lists[r] if item not in ranking))
            owners.append(r)
        law[tuple(ranking), tuple(owners)] += 1 / 6
    agent, counts = of_lists(lists, 4), Counter()
    for _ in range(4000):
        ranking = drawn(agent, draft)
        counts[ranking, tuple(int(row.argmax()) if row.any() else -1 for row in agent.state.credit)] += 1
    assert_law(counts, law)


def test_clicks_on_common_positions_are_nobodys():
    """The list is 3, then ranker 1 owns item 1: it wins by a click on that, whether or not item 3 is clicked."""
    agent = of_lists(([3, 0, 1, 2], [3, 1, 0, 2]), 4)
    while drawn(agent, draft)[1] != 1:
        pass
    for clicks, ahead in (([1, 0, 0, 0], 0), ([0, 1, 0, 0], 1), ([1, 1, 0, 0], 1), ([1, 0, 1, 0], -1), ([1, 1, 1, 0], 0)):
        assert advantage(agent.state, np.array(clicks, np.int8), 1) == ahead


def test_equal_rankers_do_not_win_by_chance():
    """Which 10,000 samples of who owns a click would let them."""
    agent = of_lists(([0, 1, 2], [0, 1, 2], [2, 1, 0]), 3, leaving="probabilistic")
    for _ in range(50):
        ranking = drawn(agent, multileave)
        assert abs(advantage(agent.state, np.array([1, 0, 1], np.int8), 1)) < 1e-15
        assert (abs(advantage(agent.state, np.array([1, 0, 0], np.int8), 2)) > 1e-3) == (ranking[0] != 1)


def test_rankers_break_ties_afresh():
    """Equal candidates: two rankers that had one order between them would have a list in common."""
    agent, same = DBGD(4, 4, n_features=1, seed=0), 0
    for _ in range(400):
        agent.rank({"features": np.ones((4, 1))})
        same += agent.state.lists[0].tolist() == agent.state.lists[1].tolist()
    assert 2 <= same <= 40  # 400 / 24 are expected; outside once in 10⁵ times


def test_a_record_of_a_display_is_small():
    """The directions are drawn again; with them, of 300 features, it would have 118 kB."""
    agent = MGD(10, 10, n_features=300, leaving="probabilistic", seed=0)
    assert sum(array.nbytes for array in agent.remembered_arrays()) < 5000


# ----------------------------------------------------------------------------------------------------------------- COLTR


@pytest.mark.parametrize("scores", [[1000.0, -1000.0, 0.0, 999.0], [-1000.0] * 4, [700.0, 710.0, 0, 1]])
def test_large_scores_do_not_overflow(scores):
    for ranking in permutations(range(4), 3):
        agent = COLTR(4, 3, n_features=4, unit=500.0, seed=0)
        agent.state.weights[:] = scores
        agent.rank({"features": np.eye(4)})
        agent.ranking[:] = ranking
        agent.update({"features": np.eye(4)}, ranking, [0, 1, 0])
        assert np.isfinite(agent.state.weights).all()


@pytest.mark.parametrize("clicks", [[0, 0, 0], [1, 1, 1], [1, 0, 0], [1, 1, 0]])
def test_without_a_risk_nothing_is_learned(clicks):
    agent, seen = COLTR(4, 3, n_features=4, seed=0), {"features": np.eye(4)}
    agent.update(seen, agent.rank(seen), clicks)
    assert not agent.state.weights.any()
