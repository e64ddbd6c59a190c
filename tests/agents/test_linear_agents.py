"""The contextual agents against plain NumPy: samples and weights, indices, α_t, ties, drift of the
inverse, and regret.
"""

from __future__ import annotations

import math
import warnings

import gymnasium as gym
import numpy as np
import pytest
from click_stories import assert_sampled_from
from reference_agents import follow, reference_of

import clickgym
from clickgym.agents import (
    C2UCB,
    CONTEXTUAL_AGENTS,
    DCMLinUCB,
    PBMLinUCB,
    UBMLinUCB,
)
from clickgym.agents.linear import _RidgeAgent
from clickgym.envs import (
    ClickEnv,
    DependentClickModel,
    LinearModel,
    UserBrowsingModel,
    load_instance,
)

L, K, D = 7, 4, 3
WEIGHTS = np.array([[0.9, 0, 0, 0], [0.6, 0.8, 0, 0], [0.4, 0.5, 0.75, 0], [0.2, 0.3, 0.35, 0.7]])
KAPPA = np.array([0.9, 0.7, 0.5, 0.3])
TOLD = {
    "UBMLinUCB": {"examination": WEIGHTS},
    "PBMLinUCB": {"examination": KAPPA},
}
OPTIMISTIC = [name for name in CONTEXTUAL_AGENTS if name.endswith("UCB")]
REGRESSIONS = [name for name, agent in CONTEXTUAL_AGENTS.items() if issubclass(agent, _RidgeAgent)]
by_name = pytest.mark.parametrize("name", CONTEXTUAL_AGENTS)
by_regression = pytest.mark.parametrize("name", REGRESSIONS)
by_optimistic = pytest.mark.parametrize("name", OPTIMISTIC)


def make(name, sizes=(L, K), n_features=D, seed=0, **arguments):
    return CONTEXTUAL_AGENTS[name](
        *sizes, n_features=n_features, seed=seed, **(TOLD.get(name, {}) | arguments)
    )


def rounds(n, seed=0, sizes=(L, K), n_features=D):
    """Features of norm at most 1, and clicks: all vectors of clicks occur."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        features = rng.normal(size=(sizes[0], n_features))
        features /= np.linalg.norm(features, axis=1, keepdims=True) * rng.uniform(
            1, 3, (sizes[0], 1)
        )
        yield (
            {"clicks": np.zeros(sizes[1], np.int8), "features": features},
            (rng.random(sizes[1]) < 0.35).astype(np.int8),
        )


def samples_of(name, clicks):
    """The weights of the positions that an agent learns from, by the table of He et al. 2020 read
    with the eye.
    """
    clicked = np.flatnonzero(clicks)
    if name == "UBMLinUCB":
        above = [clicked[clicked < k] for k in range(K)]
        return {k: WEIGHTS[k, above[k][-1] + 1 if len(above[k]) else 0] for k in range(K)}
    if name == "PBMLinUCB":
        return dict(enumerate(KAPPA))
    if name == "CMLinUCB" and len(clicked):
        return dict.fromkeys(range(clicked[0] + 1), 1.0)
    if name == "DCMLinUCB" and len(clicked):
        return dict.fromkeys(range(clicked[-1] + 1), 1.0)
    return dict.fromkeys(range(K), 1.0)


def phi(name):
    return {"UBMLinUCB": 0.9**2 + 0.8**2 + 0.75**2 + 0.7**2, "PBMLinUCB": float(KAPPA @ KAPPA)}.get(
        name, float(K)
    )


# --------------------------------------------------------------------------------- ridge regression


@by_regression
def test_the_regression_is_that_of_plain_numpy(name):
    agent = make(name)
    gram, moment = phi(name) * np.eye(D), np.zeros(D)
    for observation, clicks in rounds(250):  # past two factorisations
        ranking = agent.rank(observation)
        agent.update(observation, ranking, clicks)
        for k, weight in samples_of(name, clicks).items():
            x = observation["features"][ranking[k]]
            gram += weight**2 * np.outer(x, x)
            moment += weight * clicks[k] * x
    np.testing.assert_allclose(agent.state.gram, gram, rtol=1e-12)
    np.testing.assert_allclose(agent.state.inverse, np.linalg.inv(gram), rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(
        agent.state.theta, np.linalg.solve(gram, moment), rtol=1e-10, atol=1e-14
    )


@by_optimistic
@pytest.mark.parametrize("alpha", [None, 0.0, 0.7])
def test_lists_are_those_of_the_largest_indices(name, alpha):
    agent, users = (
        make(name, alpha=alpha),
        DependentClickModel(np.linspace(0.1, 0.7, L), [0.6, 0.3, 0.8, 0.5]),
    )
    follow(agent, reference_of(agent), users, 300, n_features=D)


def test_alpha_by_hand():
    """d = 1, K = 1, w = 1: φ' = λ = 1, so α_1 = sqrt(ln 2 + 2 ln 1) + 1, and the bonus of x is α_1
    |x|.
    """
    agent = UBMLinUCB(2, 1, n_features=1, examination=[[1.0]], seed=0)
    agent.rank({"features": [[0.5], [0.25]]})
    np.testing.assert_allclose(
        agent.state.indices, (math.sqrt(math.log(2)) + 1) * np.array([0.5, 0.25]), rtol=1e-15
    )


def test_the_ridge_is_at_least_one():
    assert (
        UBMLinUCB(3, 2, n_features=2, examination=[[0.5, 0], [0.1, 0.2]], seed=0).state.ridge == 1.0
    )
    assert PBMLinUCB(3, 2, n_features=2, examination=[0.5, 0.2], seed=0).state.ridge == 1.0
    assert make("UBMLinUCB").state.ridge == pytest.approx(0.9**2 + 0.8**2 + 0.75**2 + 0.7**2)
    assert make("UBMLinUCB", ridge=0.1).state.ridge == 0.1
    assert make("C2UCB").state.ridge == K


def test_a_sample_that_weighs_nothing_teaches_nothing():
    agent = UBMLinUCB(3, 2, n_features=2, examination=[[1.0, 0], [0.0, 0.0]], seed=0)
    observation = {"features": np.eye(3, 2)}
    ranking = agent.rank(observation)
    agent.update(observation, ranking, [0, 0])
    x = observation["features"][ranking[0]]
    np.testing.assert_array_equal(agent.state.gram, np.eye(2) + np.outer(x, x))


def drift(n, n_features, ridge=None):
    """The relative error of the inverse against a fresh solve, in the spectral norm, after n
    sessions.
    """
    env = gym.make("ContextualUBMRank-v0", instance=f"linear:n_features={n_features},seed=1")
    agent = clickgym.make_agent("UBMLinUCB", env, seed=0, alpha=0.5, ridge=ridge)
    clickgym.run(agent, env, n, seed=0)
    fresh = np.linalg.solve(agent.state.gram, np.eye(n_features))
    return np.linalg.norm(agent.state.inverse - fresh, 2) / np.linalg.norm(fresh, 2)


@pytest.mark.parametrize("n_features", [2, 10, 25])
@pytest.mark.parametrize("n", [99, 20_099])
def test_the_inverse_does_not_drift(n, n_features):
    """Just before a factorisation, when the error is largest."""
    assert drift(n, n_features) < 1e-10


@pytest.mark.parametrize("ridge", [1e-3, 1e6])
def test_the_inverse_does_not_drift_with_extreme_ridges(ridge):
    assert drift(20_099, 10, ridge) < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("n_features", [2, 10, 25])
def test_the_inverse_does_not_drift_over_a_million_sessions(n_features):
    assert drift(1_000_099, n_features) < 1e-8


def test_the_sum_that_is_factorised_is_exact_enough():
    """A itself is summed up over all sessions; against the sum without rounding."""
    agent = C2UCB(5, 2, n_features=2, seed=0)
    entries = []
    for observation, clicks in rounds(3000, sizes=(5, 2), n_features=2):
        ranking = agent.rank(observation)
        agent.update(observation, ranking, clicks)
        entries += [x[0] * x[1] for x in observation["features"][ranking]]
    assert agent.state.gram[0, 1] == pytest.approx(math.fsum(entries), rel=1e-12)


# --------------------------------------------------------------------------------------------- ties


@by_name
def test_a_cold_start_shows_every_list_of_equal_norms_alike(name):
    """Norms equal up to rounding: each ordered pair of items is equally likely, whatever their
    numbers and features.
    """
    rng = np.random.default_rng(1)
    features = rng.normal(size=(4, 6))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    told = {**TOLD.get(name, {})}
    if "examination" in told:
        told["examination"] = told["examination"][(slice(2),) * told["examination"].ndim]
    drawn_for_all = name == "LinearTS"
    shown = []
    for seed in range(300 if drawn_for_all else 1200):
        agent = CONTEXTUAL_AGENTS[name](4, 2, n_features=6, seed=seed, **told)
        shown.append(tuple(agent.rank({"features": features}).tolist()))
    # one draw for all candidates: equally likely only on average over features, so over signs of
    # them
    if drawn_for_all:
        assert len(set(shown)) == 12
        return
    assert_sampled_from({(i, j): 1 / 12 for i in range(4) for j in range(4) if i != j}, shown)


def test_indices_that_differ_by_more_than_rounding_are_no_tie():
    for seed in range(50):
        agent = C2UCB(3, 2, n_features=1, alpha=1.0, seed=seed)
        assert agent.rank({"features": [[0.5], [0.5 + 1e-9], [0.5 + 2e-9]]}).tolist() == [2, 1]


def test_ties_below_the_best_do_not_reach_it():
    """A chain of near-ties longer than the tolerance does not make its ends equal."""
    features = 0.5 + 0.8e-10 * np.arange(4)[:, None]
    ranks = {
        C2UCB(4, 1, n_features=1, alpha=2.0, ridge=1.0, seed=seed).rank({"features": features})[0]
        for seed in range(100)
    }
    assert ranks == {3}
    ranks = {
        C2UCB(4, 1, n_features=1, alpha=1.0, ridge=1.0, seed=seed).rank({"features": features})[0]
        for seed in range(100)
    }
    assert ranks == {2, 3}


@pytest.mark.parametrize("name", [name for name in REGRESSIONS if name != "LinearTS"])
def test_relabelled_candidates_and_rotated_features_change_no_list_but_by_name(name):
    """Without ties an agent is equivariant: candidates in another order are the same candidates."""
    rotation, _ = np.linalg.qr(np.random.default_rng(2).normal(size=(D, D)))
    permutation = np.random.default_rng(3).permutation(L)
    first, second = make(name, alpha=0.5), make(name, alpha=0.5)
    for observation, clicks in rounds(200):
        relabelled = {"features": (observation["features"] @ rotation)[permutation]}
        ranking, other = first.rank(observation), second.rank(relabelled)
        np.testing.assert_array_equal(permutation[other], ranking)
        first.update(observation, ranking, clicks)
        second.update(relabelled, other, clicks)


# ------------------------------------------------------------------------------------------- regret


def strong_position_effects():
    """Examination falls to 0.35 of itself from position to position, and starts anew below a
    click.
    """
    base = load_instance("linear:n_features=20,seed=0").model("LinearModel of UBM")
    weights = np.array(
        [[0.35**k if j == 0 else 0.95 * 0.35 ** (k - j) for j in range(5)] for k in range(5)]
    )
    return LinearModel(
        UserBrowsingModel(np.zeros(20), np.tril(weights)), base.theta, base.items, base.users
    )


@pytest.mark.slow  # that the agents are those of the papers is tested above, against references
def test_weights_of_examination_pay_where_positions_matter():
    """He et al. 2020: UBMLinUCB learns, C2UCB takes what nobody saw for dislike.

    Over 16 pairs of runs of 30,000 sessions each: UBMLinUCB has the smaller regret in at least 14
    (probability 0.002 were they equal), and in the mean less than a third of C2UCB's; its last
    third costs less than a fifth of its first.
    """
    model = strong_position_effects()
    regret = {}
    for name in ("UBMLinUCB", "C2UCB"):
        regret[name] = []
        for seed in range(16):
            env = ClickEnv(model)
            agent = clickgym.make_agent(name, env, seed=seed, alpha=0.5)
            regret[name].append(
                clickgym.run(agent, env, 30_000, seed=seed, checkpoints=[10_000, 20_000]).regret
            )
    ubm, c2 = np.array(regret["UBMLinUCB"]), np.array(regret["C2UCB"])
    assert np.sum(ubm[:, -1] < c2[:, -1]) >= 14
    assert ubm[:, -1].mean() < c2[:, -1].mean() / 3
    assert (ubm[:, 2] - ubm[:, 1]).mean() < ubm[:, 0].mean() / 5


@pytest.mark.parametrize(
    ("env_id", "name"),
    [
        ("ContextualUBMRank-v0", "UBMLinUCB"),
        ("ContextualPBMRank-v0", "PBMLinUCB"),
        ("ContextualPBMRank-v0", "UBMLinUCB"),
        ("ContextualCMRank-v0", "CMLinUCB"),
        ("ContextualDCMRank-v0", "DCMLinUCB"),
        ("ContextualCMRank-v0", "LinearTS"),
    ],
)
def test_agents_learn_in_the_model_that_they_are_made_for(env_id, name):
    """Regret of sessions 10,001 to 20,000 under a tenth of the random agent's."""
    late = {}
    for agent_name in (name, "Random"):
        env = gym.make(env_id)
        arguments = {"alpha": 0.3} if agent_name.endswith("UCB") else {}
        agent = clickgym.make_agent(agent_name, env, seed=0, **arguments)
        regret = clickgym.run(agent, env, 20_000, seed=0, checkpoints=[10_000]).regret
        late[agent_name] = regret[1] - regret[0]
    assert late[name] < late["Random"] / 10


# whose samples are biased in every model
@pytest.mark.parametrize("name", [name for name in OPTIMISTIC if name != "C2UCB"])
def test_the_theory_holds_the_truth_within_its_bounds(name):
    """|xᵀ(θ - θ*)| ≤ α_t sqrt(xᵀA⁻¹x) for all items, in the agent's own model: probability 1 -
    1/(tK) or more.
    """
    env_id = {
        "PBMLinUCB": "ContextualPBMRank-v0",
        "CMLinUCB": "ContextualCMRank-v0",
        "DCMLinUCB": "ContextualCMRank-v0",
    }
    env = gym.make(env_id.get(name, "ContextualUBMRank-v0"))
    agent = clickgym.make_agent(name, env, seed=0)
    model = env.unwrapped.model
    x = np.concatenate([np.tile(model.users[0], (len(model.items), 1)), model.items], axis=1)
    for n in (100, 1000, 10_000):
        clickgym.run(agent, env, n, seed=n)
        state = agent.state
        spread = np.sqrt(np.einsum("ai,ij,aj->a", x, state.inverse, x))
        t = int(state.t[0]) + 1
        radius = 10 * math.log(1 + state.phi * t / (10 * state.ridge)) + 2 * math.log(t * 5)
        assert np.all(
            np.abs(x @ (state.theta - model.theta))
            <= (math.sqrt(radius) + math.sqrt(10 * state.ridge)) * spread
        )


# -------------------------------------------------------------------------------------- wrong input


@pytest.mark.parametrize(
    ("observation", "message"),
    [
        (np.zeros(K), "C2UCB needs an observation with 'features'"),
        ({"clicks": np.zeros(K)}, "C2UCB needs an observation with 'features'"),
        ({"features": np.zeros((K, D))}, r"features has shape \(4, 3\); expected \(7, 3\)"),
        (
            {"features": np.full((L, D), np.nan)},
            r"features\[0, 0\] is nan; expected a finite number from",
        ),
    ],
)
def test_wrong_observations_are_refused(observation, message):
    with pytest.raises(ValueError, match=message):
        make("C2UCB").rank(observation)


def test_features_may_be_any_array():
    agent = make("C2UCB", alpha=0.5)
    observation, _ = next(rounds(1))
    ranking = agent.rank(observation)
    frozen = observation["features"].copy(order="F")
    frozen.flags.writeable = False
    for other in (frozen, observation["features"].tolist()):
        np.testing.assert_array_equal(agent.rank({"features": other}), ranking)


def test_weights_that_rise_are_warned_of():
    with pytest.warns(UserWarning, match="position 2 is likelier to be examined before any click"):
        UBMLinUCB(3, 3, n_features=1, examination=[[0.9, 0, 0], [0.3, 0.5, 0], [0.4, 0.2, 0.6]])
    with pytest.warns(UserWarning, match="position 1 is likelier"):
        PBMLinUCB(3, 2, n_features=1, examination=[0.3, 0.4])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make("UBMLinUCB")
        make("PBMLinUCB")
        DCMLinUCB(3, 2, n_features=1)
