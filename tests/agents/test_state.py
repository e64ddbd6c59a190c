"""First states: what fields declare, and what agents add."""

from __future__ import annotations

import math
import os
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
import pytest
from typing_extensions import TypeAliasType

import clickgym
from clickgym import agents
from clickgym.agents import CompiledAgent
from clickgym.core import memory
from clickgym.core.state import Flags, Floats, Ints, declared
from clickgym.envs import PositionBasedModel, kernel

pytestmark = pytest.mark.uncompiled


class State(NamedTuple):
    clicks: Annotated[Ints, "L K"]
    mean: Annotated[Floats, "L", math.inf]
    changes: Annotated[Floats, "3", (0.0, 0.5, -1.0)]
    rows: Annotated[Ints, "K L", range]
    chance: Annotated[Floats, "2K+1"]
    seen: Annotated[Flags, "L+1", True]
    slots: Annotated[np.ndarray[tuple[int, ...], np.dtype[np.int32]], "2C", -1]
    prior: Floats
    given: Floats
    scale: float


Kind = TypeVar("Kind", bound=np.generic)
Alias = TypeAliasType("Alias", np.ndarray[tuple[Any, ...], np.dtype[Kind]], type_params=(Kind,))


class StateOfAliases(NamedTuple):
    clicks: Annotated[Alias[np.int64], "L K"]


def test_array_types_of_numpy_2_5():
    assert [field.dtype for field in declared(StateOfAliases)] == ["int64"]


@kernel
def rank(state, rng, ranking):
    for k in range(len(ranking)):
        ranking[k] = k


@kernel
def update(state, ranking, clicks):
    state.clicks[ranking[0], 0] += clicks[0]


class Declaring(CompiledAgent):
    paper = "an example"
    state_type = State
    rank_kernel, update_kernel = rank, update

    def __init__(self, n_items, n_positions, *, scale=1.0, seed=None):
        super().__init__(n_items, n_positions, seed, scale=scale, given=np.ones(2), other=5)

    def sizes(self):
        return super().sizes() | {"C": 2}

    def first_values(self):
        return {"prior": np.full(self.n_items, 0.25)}


def test_the_notation():
    agent = Declaring(3, 2, scale=0.5, seed=0)
    expected = {
        "clicks": np.zeros((3, 2), np.int64),
        "mean": np.full(3, np.inf),
        "changes": np.array([0.0, 0.5, -1.0]),
        "rows": np.tile(np.arange(3), (2, 1)),
        "chance": np.zeros(5),
        "seen": np.ones(4, np.bool_),
        "slots": np.full(4, -1, np.int32),
        "prior": np.full(3, 0.25),
        "given": np.ones(2),
        "scale": 0.5,
    }
    assert agent.state._fields == tuple(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(
            getattr(agent.state, name), value, strict=isinstance(value, np.ndarray)
        )
    assert not np.shares_memory(agent.state.given, agent.hyperparameters["given"])
    agent.rank()
    agent.update(None, [0, 1], [1, 0])
    assert agent.state.clicks[0, 0] == 1


# ------------------------------------------------------------------------------------------- memory


def test_arrays_that_do_not_fit_are_refused_before_they_are_made():
    """No machine has 90 TB; the error names the arrays, their size and an agent that fits."""
    with pytest.raises(ValueError, match=r"TopRank.* L × L.*L = 3,000,000: .* GB.*CascadeKLUCB"):
        agents.TopRank(3_000_000, 10, horizon=100)
    with pytest.raises(ValueError, match=r"W × K arrays at K = 3, W = 1,000,000,000,000: .* GB"):
        agents.CascadeSWUCB(10, 3, tau=10**12)
    few, many = agents.CascadeKLUCB(100_000, 10), agents.TopRank(4_000, 10, horizon=100)
    assert few.n_bytes < 10**8 < many.n_bytes


def test_runs_at_a_time_must_fit_together():
    env = {"big": PositionBasedModel(np.full(5_000, 0.5), [1.0])}
    with pytest.raises(ValueError, match="1000 runs at a time of TopRank"):
        clickgym.sweep(env, ["TopRank"], 10, 1_000, n_jobs=1_000)
    assert clickgym.sweep(env, ["TopRank"], 10, 1, n_jobs=1).rows.height


def test_available_memory(monkeypatch, tmp_path):
    """What the system has free, within the limit of a container; not what it does not say."""
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    installed = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert memory.available_memory() == 0.9 * installed
    memory.MEMINFO.write_text("MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable:    1000 kB\n")
    assert memory.available_memory() == 0.9 * 1_024_000
    for limit, available in (("max", 1_024_000), ("500000", 300_000), ("100", 0)):
        (tmp_path / "memory.max").write_text(f"{limit}\n")
        (tmp_path / "memory.current").write_text("200000\n")
        assert memory.available_memory() == 0.9 * available
