"""CascadeKL-UCB, dcmKL-UCB and RankedKL-UCB with many items, and where many indices tie: lists bit
for bit.

Here ties of equal counts go on for hundreds of sessions, which small models of
`test_agent_mechanisms` have at the start alone.
"""

from __future__ import annotations

import numpy as np
import pytest
from reference_agents import KLUCBPlain
from scipy.stats import binomtest
from test_agent_mechanisms import sessions_in_agreement
from test_ranked_bandits import PlainRankedKLUCB

from clickgym.agents import DCMKLUCB, CascadeKLUCB, CompiledAgent, RankedKLUCB
from clickgym.core.kernels import entry, kernel
from clickgym.envs import CascadeModel, ClickModel, PositionBasedModel


def agents_for(name: str, model: ClickModel, seed: int) -> tuple[CompiledAgent, CompiledAgent]:
    """The agent, and its plain definition."""
    sizes = model.n_items, model.n_positions
    if name == "RankedKLUCB":
        return RankedKLUCB(*sizes, seed=seed), PlainRankedKLUCB(*sizes, seed=seed)
    c = 0.0 if name == LOG_T else 3.0
    return CascadeKLUCB(*sizes, c=c, seed=seed), KLUCBPlain(*sizes, c=c, seed=seed)


def usual(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.beta(0.5, 3.0, n)


MODELS = {
    "usual": usual,
    "ties": lambda rng, n: rng.choice([0.05, 0.3, 0.5], n),
    "one good": lambda rng, n: np.where(np.arange(n) == n // 2, 0.9, 0.02),
    "0 and 1": lambda rng, n: rng.choice([0.0, 1.0, 1.0, 0.5], n),
    "near one": lambda rng, n: 1.0 - rng.choice([1e-2, 1e-4, 1e-6], n),
    "all 0": lambda rng, n: np.zeros(n),
    "all 1": lambda rng, n: np.ones(n),
}
LOG_T = "CascadeKLUCB:c=0"
NAMES = ["CascadeKLUCB", LOG_T, "RankedKLUCB"]


def model_of(attraction: np.ndarray, n_positions: int, kind: int) -> ClickModel:
    if kind == 0:
        return CascadeModel(attraction, n_positions)
    return PositionBasedModel(attraction, np.linspace(1.0, 0.3, n_positions))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", MODELS)
def test_lists_of_many_items_are_those_of_the_definition(name, kind):
    model = model_of(MODELS[kind](np.random.default_rng(1), 150), 4, 1)
    assert sessions_in_agreement(agents_for(name, model, 2), model, 2500, 2) == 2500


def put(agent: CompiledAgent, clicks: np.ndarray, examined: np.ndarray, t: int) -> None:
    """Give every bandit of an agent these counts ``(L,)`` and this time."""
    state = agent.state
    state.clicks[:], state.examined[:], state.t[0] = clicks, examined, t - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = [
            np.where(count > 0, count * np.log(count), 0.0)
            for count in (clicks, examined - clicks, examined)
        ]
    state.peak[:] = parts[0] + parts[1] - parts[2]


@pytest.mark.parametrize("name", NAMES)
def test_lists_are_those_of_the_definition_where_indices_rise_fast(name):
    """150 random states of few different counts at an early time, 60 sessions each: the last
    indices are far from the next.
    """
    rng = np.random.default_rng(7)
    for seed in range(150):
        n, n_positions = int(rng.integers(60, 160)), int(rng.integers(1, 4))
        level = int(rng.choice([3, 20, 100, 1000]))
        examined = rng.choice(level + rng.integers(0, 3 + level // 4, int(rng.integers(1, 5))), n)
        clicks = rng.choice(
            [0, level // 3, level // 3 + 1, level // 2][: int(rng.integers(1, 5))], n
        )
        settled = rng.permutation(n)[
            : int(rng.integers(0, 30))
        ]  # their indices hardly move, those of the others overtake them
        examined[settled], clicks[settled] = 10**6, rng.integers(400_000, 800_000, len(settled))
        model = PositionBasedModel(rng.choice([0.0, 0.1, 0.5], n), np.ones(n_positions))
        agents, t = agents_for(name, model, seed), int(rng.choice([1, 3, 10, 50]))
        for agent in agents:
            put(agent, clicks, examined, t)
        assert sessions_in_agreement(agents, model, 60, seed) == 60, f"state {seed}"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_lists_of_many_items_are_those_of_the_definition_over_long_runs(name):
    """All kinds of models, of 35 to 600 items, 1 to 20 positions, up to 30,000 sessions: 2·10⁵ in
    all.
    """
    rng, left = np.random.default_rng(3), 200_000
    while left > 0:
        n, kind, length = (
            int(rng.integers(35, 600)),
            str(rng.choice(list(MODELS))),
            int(rng.choice([500, 3000, 30_000])),
        )
        model = model_of(
            MODELS[kind](rng, n), int(rng.choice([1, 1, 2, 5, 20])), int(rng.integers(2))
        )
        played = sessions_in_agreement(agents_for(name, model, left), model, length, left)
        assert played == length, (
            f"{kind}, {model.n_items} items, {model.n_positions} positions, seed {left}"
        )
        left -= length


def test_dcm_klucb_of_many_items_differs_by_the_order_of_the_positions_alone():
    model = CascadeModel(usual(np.random.default_rng(4), 100), 3)
    plain, ordered = (
        CascadeKLUCB(100, 3, seed=5),
        DCMKLUCB(100, 3, position_order=[2, 0, 1], seed=5),
    )
    rng = np.random.default_rng(6)
    for _ in range(1000):
        first, second = plain.rank(None), ordered.rank(None)
        np.testing.assert_array_equal(first, second[[2, 0, 1]])
        clicks = model.sample(first, rng)
        clicks[:] = clicks.any()  # observed to the last position by both
        plain.update(None, first, clicks)
        ordered.update(None, second, clicks)


# ----------------------------------------------------------------------------------------------------- ties of equal counts


def test_items_of_equal_counts_by_different_histories_tie():
    """Once item 1 is clicked, items 0 and 1 have equal counts. Newton's method ends at two floats
    for most pairs of counts.

    They are seen below a better item 2. In front of a worse one the two tie. Null: a fair coin for
        each of 400 lists.
    """
    rng, first, n_apart = np.random.default_rng(8), [], 0
    for seed in range(400):
        n = int(rng.integers(100, 10_000))
        c = int(rng.integers(2, n // 2))
        below = CascadeKLUCB(3, 1, seed=seed)
        agents = CascadeKLUCB(3, 1, seed=seed), KLUCBPlain(3, 1, seed=seed)
        for agent, clicks in ((below, n - 1), (agents[0], 0), (agents[1], 0)):
            put(agent, np.array([c, c - 1, clicks]), np.array([n, n - 1, n]), 1000)
            for _ in range(2):
                agent.rank()
                agent.update(None, [2], [int(agent is below)])
            agent.update(None, [1], [1])
        assert below.rank() == [2]
        n_apart += below.state.indices[0] != below.state.indices[1]
        lists = [agent.rank().tolist() for agent in agents]
        assert lists[0] == lists[1]
        assert agents[0].rng.bit_generator.state == agents[1].rng.bit_generator.state
        first += lists[0]
    assert n_apart > 100
    assert set(first) == {0, 1}
    assert binomtest(sum(first), len(first)).pvalue > 1e-5


# ---------------------------------------------------------------------------------------------------------- lists of others


def lockstep_with_old_lists(rank_a, rank_b, update, sample):
    """`lockstep`, but what is learned are clicks on lists up to ``len(old)`` sessions old, as on
    those of another agent.
    """

    @kernel
    def play(
        parameters, rng, n, old, uniforms, clicks, examined, a, rng_a, list_a, b, rng_b, list_b
    ):
        wait, n_positions = len(old), len(list_a)
        for t in range(n):
            rank_a(a, rng_a, list_a)
            rank_b(b, rng_b, list_b)
            for k in range(n_positions):
                if list_a[k] != list_b[k]:
                    return t
                old[t % wait, k] = list_a[k]
            if t >= wait:
                late = old[int(rng.random() * wait)]  # some are learned from twice, some never
                for k in range(n_positions):
                    uniforms[k] = rng.random()
                sample(parameters, late, uniforms, clicks, examined)
                update(a, late, clicks)
                update(b, late, clicks)
        return n

    return play


def sessions_with_old_lists(model: ClickModel, n: int, wait: int, seed: int) -> int:
    """How many sessions pass before the agent and its plain definition differ."""
    a, b = agents_for("CascadeKLUCB", model, seed)
    play = entry(
        lockstep_with_old_lists(a.rank_kernel, b.rank_kernel, a.update_kernel, model.sample_kernel)
    )
    k = model.n_positions
    old, (clicks, examined) = np.zeros((wait, k), np.int64), np.zeros((2, k), np.int8)
    played = play(
        model.parameters,
        np.random.default_rng(seed + 1000),
        n,
        old,
        np.empty(k),
        clicks,
        examined,
        a.state,
        a.rng,
        a.ranking,
        b.state,
        b.rng,
        b.ranking,
    )
    if played == n:
        assert a.rng.bit_generator.state == b.rng.bit_generator.state
    return played


@pytest.mark.parametrize("kind", MODELS)
def test_lists_are_those_of_the_definition_where_clicks_are_on_old_lists(kind):
    """Ten items, and 60; lists up to 1, 7 and 300 sessions old."""
    for n_items, wait, n in ((10, 1, 3000), (10, 7, 3000), (60, 300, 3000)):
        model = model_of(MODELS[kind](np.random.default_rng(n_items + wait), n_items), 4, 1)
        assert sessions_with_old_lists(model, n, wait, n_items) == n, (n_items, wait)
