"""Saved agents: whole files or none, and refusals of one line."""

from __future__ import annotations

import io
import json
import re
import tracemalloc
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reference_agents import ATTRACTION, MODELS, make, plain
from registries import CLICK_AGENTS, CONTEXTUAL_AGENTS, STATE_AGENTS

import clickgym
from clickgym.agents import (
    AGENTS,
    PBMUCB,
    BatchRank,
    CompiledAgent,
    EpsilonGreedy,
    Fixed,
    TopRank,
)
from clickgym.envs import (
    CascadeMDP,
    ClickEnv,
    Instance,
    LinearModel,
    PositionBasedModel,
    check_ranking,
    load_instance,
)

PBM = MODELS["PBM"]


@pytest.mark.parametrize(
    "agent",
    [
        Fixed(4, 2, ranking=np.array([1, 2], np.int32)),
        EpsilonGreedy(4, 2, epsilon=np.float32(0.5)),
        PBMUCB(4, 2, examination=np.array([1, 0.5], np.float32), epsilon=np.float32(0.5)),
        BatchRank(4, 2, horizon=np.int32(100)),
        BatchRank(4, 2, horizon=1e6),
        TopRank(4, 2, horizon=100, delta=np.float32(0.1)),
    ],
    ids=lambda agent: repr(agent)[:40],
)
def test_numpy_arguments(agent, tmp_path):
    agent.save(tmp_path / "agent.npz")
    assert plain(type(agent).load(tmp_path / "agent.npz").state) == plain(agent.state)


def test_save_is_atomic(tmp_path, monkeypatch):
    """A crash in mid-write leaves the earlier file as it was."""
    agent = make("TopRank", PBM)
    agent.save(tmp_path / "agent.npz")
    before = (tmp_path / "agent.npz").read_bytes()

    def crash(file, **arrays):
        file.write(b"half of it")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", crash)
    with pytest.raises(OSError, match="disk full"):
        agent.save(tmp_path / "agent.npz")
    assert (tmp_path / "agent.npz").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["agent.npz"]


def saved(folder: Path, name: str = "TopRank") -> Path:
    path = folder / "agent.npz"
    make(name, PBM).save(path)
    return path


def rewritten(path: Path, **changes: object) -> None:
    """Change entries of a saved file; None drops one, and a dict is merged into the description."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    for name, value in changes.items():
        if value is None:
            del arrays[name]
        elif isinstance(value, dict):
            arrays[name] = np.array(json.dumps(json.loads(str(arrays[name])) | value))
        else:
            arrays[name] = np.asarray(value)
    np.savez(path, **arrays)


SPOILERS = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("not an agent"),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-200]),
    "foreign arrays": lambda path: np.savez(path, weights=np.ones(3)),
    "foreign array": lambda path: np.save(path.open("wb"), np.ones(3)),
    "no JSON": lambda path: rewritten(path, description="{"),
    "no state": lambda path: rewritten(path, state_wins=None),
    "no list": lambda path: rewritten(path, ranking=None),
    "state of another size": lambda path: rewritten(path, state_wins=np.ones((4, 4), np.int64)),
    "bad arguments": lambda path: rewritten(
        path, description={"hyperparameters": {"colour": "red"}}
    ),
    "bad sizes": lambda path: rewritten(path, description={"n_positions": 9}),
    "bad generator": lambda path: rewritten(path, description={"generator": {"state": 1}}),
}


@pytest.mark.parametrize("spoil", SPOILERS.values(), ids=SPOILERS)
def test_spoiled_files(spoil, tmp_path):
    path = saved(tmp_path)
    spoil(path)
    with pytest.raises(
        ValueError, match=rf"^{re.escape(str(path))} is not a saved agent, or damaged "
    ):
        TopRank.load(path)


class Evil:
    """Unpickling it leaves a file behind."""

    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self):
        return Path.touch, (self.witness,)


@pytest.mark.parametrize("entry", ["description", "ranking", "state_wins"])
def test_nothing_is_unpickled(entry, tmp_path):
    path, witness = saved(tmp_path), tmp_path / "witness"
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    np.savez(path, **(arrays | {entry: np.array([Evil(witness)], dtype=object)}))
    with pytest.raises(ValueError, match=r"is not a saved agent, or damaged .*allow_pickle"):
        TopRank.load(path)
    assert not witness.exists()


def test_another_class(tmp_path):
    """Also a class of a user that has the name of ours, and the other way round."""

    def own():
        class TopRank(EpsilonGreedy):
            pass

        return TopRank

    Own = own()
    Own(4, 2, seed=0).save(tmp_path / "own.npz")
    assert type(Own.load(tmp_path / "own.npz")) is Own
    for other in (CompiledAgent, EpsilonGreedy, TopRank):
        with pytest.raises(ValueError, match=rf"holds a .*TopRank, not a {other.__name__}$"):
            other.load(tmp_path / "own.npz")
    with pytest.raises(ValueError, match=r"agent\.npz holds a TopRank, not a BatchRank"):
        BatchRank.load(saved(tmp_path))


@pytest.mark.parametrize("number", [3, None])
def test_another_version(number, tmp_path):
    with np.load(saved(tmp_path)) as file:
        description = json.loads(str(file["description"])) | {"format": number}
    rewritten(tmp_path / "agent.npz", description=np.array(json.dumps(description)))
    with pytest.raises(
        ValueError,
        match=rf"^\S*agent\.npz is of another version of clickgym: its format is {number}; ",
    ):
        TopRank.load(tmp_path / "agent.npz")


# --------------------------------------------------------------------------- states that would hurt


def env_of(name: str) -> ClickEnv:
    """Users of 5 items and 3 positions for an agent."""
    users = PositionBasedModel(ATTRACTION, [0.9, 0.6, 0.4])
    if name in CONTEXTUAL_AGENTS:
        features = np.random.default_rng(0).random((5, 2)) / 2
        return ClickEnv(LinearModel(users, [0.7, 0.2], features))
    if name in STATE_AGENTS:
        sizes = "n_items=5,n_positions=3,n_states=2,mean_sessions=8"
        return ClickEnv(load_instance(f"independent:{sizes}").model(CascadeMDP))
    instance = Instance("small", {"PBM": users}, 3, initial_ranking=[2, 3, 0, 4, 1])
    return ClickEnv("PBM", instance=instance)


def after_some_sessions(name: str, n_sessions: int = 20) -> dict[str, Any]:
    """What an agent saves after some sessions."""
    env = env_of(name)
    agent: Any = clickgym.make_agent(name, env, horizon=300, seed=0)
    play(agent, env, n_sessions)
    return arrays_of(agent)


def play(agent: CompiledAgent, env: ClickEnv, n_sessions: int) -> None:
    """Sessions with the kernels as Python, which notices an index out of range."""
    observation, _ = env.reset(seed=0)
    for _ in range(n_sessions):
        agent.make_room(1)
        agent.rank_kernel(agent.state, agent.rng, agent.ranking, *agent.seen(observation))
        ranking = check_ranking(agent.ranking, agent.n_items, agent.n_positions)
        following, _, terminated, truncated, _ = env.step(ranking)
        clicks = following["clicks"] if isinstance(following, dict) else following
        agent.update_kernel(agent.state, ranking, clicks, *agent.seen(observation))
        agent.ranking[0] = -1
        if "user" in agent.session:
            agent.user[1] = 0  # the next session is of the same user
        observation = following
        if terminated or truncated:
            observation, _ = env.reset()
            agent.leave()


def arrays_of(agent: CompiledAgent) -> dict[str, Any]:
    file = io.BytesIO()
    agent.save(file)
    file.seek(0)
    return dict(np.load(file))


def loaded(kind: type[CompiledAgent], arrays: dict[str, Any]) -> CompiledAgent:
    file = io.BytesIO()
    np.savez(file, **arrays)
    file.seek(0)
    return kind.load(file)


COMPILED = [
    name
    for name in (*CLICK_AGENTS, *CONTEXTUAL_AGENTS, *STATE_AGENTS)
    if issubclass(AGENTS[name], CompiledAgent)
]


@pytest.mark.uncompiled
@pytest.mark.parametrize("name", COMPILED)
def test_integers_out_of_range(name):
    """Whatever integers a file holds: it is refused, or no index of the kernels is out of range."""
    arrays, kind, env, n_refused = after_some_sessions(name), AGENTS[name], env_of(name), 0
    assert loaded(kind, arrays).n_items == 5
    fields = [name for name, value in arrays.items() if value.dtype.kind in "iub"]
    for field, value in product(fields, (10**7, -(10**7), 5, -1)):
        if field.startswith("state_"):
            changed = np.full(arrays[field].shape, value).astype(arrays[field].dtype)
            try:
                agent = loaded(kind, arrays | {field: changed})
            except ValueError as error:
                assert "is not a saved agent, or damaged (" in str(error)  # noqa: PT017
                n_refused += 1
                continue
            with np.errstate(all="ignore"), suppress(ValueError, ArithmeticError):
                play(agent, env, 3)
    assert n_refused or not any("order" in field or "items" in field for field in fields)


CONTRADICTIONS = {
    ("BatchRank", "state_size"): [0, 0, 0],
    ("BatchRank", "state_first"): [0, 2, 2, 3],
    ("BubbleRank", "state_base"): [0, 0, 1, 2, 3],
    ("CascadeSWUCB", "state_t"): [10**15],
    ("CascadeTS", "state_examined"): [0, 0, 0, 0, 0],
    ("GRAB", "state_place_of"): [-1, -1, -1, -1, -1],
    ("GRAB", "state_slots"): np.zeros(128, np.int32),
    ("PBMHB", "state_t"): [2**63 - 1],  # the next one overflows
    ("PBMHB", "state_theta"): [0.5, np.nan, 0.5, 0.5, 0.5],
    ("PBMTS", "state_top"): [1e9, 1e9, 1e9, 1e9, 1e9],
    ("RankedExp3", "state_shown"): [True] * 5,
    ("UniRank", "state_start"): [0, 0, 0, 0, 0, 0],
}


@pytest.mark.uncompiled
@pytest.mark.parametrize("place", CONTRADICTIONS, ids=str)
def test_arrays_that_contradict_each_other(place):
    """Kernels with them would leave their arrays, or never end."""
    arrays = after_some_sessions(place[0])
    value = np.array(CONTRADICTIONS[place], arrays[place[1]].dtype)
    assert value.shape == arrays[place[1]].shape
    with pytest.raises(
        ValueError, match=r"contradict each other|shown holds True; expected 0 to 0|t holds 92"
    ):
        loaded(AGENTS[place[0]], arrays | {place[1]: value})


@pytest.mark.uncompiled
def test_sizes_are_compared_before_arrays_are_made():
    """A file of a few kilobytes cannot take the memory of a large catalogue."""
    tracemalloc.start()
    for name in set(COMPILED) - {"Fixed", "Oracle"}:  # which hold one list of K items
        arrays = after_some_sessions(name, 1)
        description = json.loads(str(arrays["description"])) | {"n_items": 3 * 10**7}
        arrays["description"] = np.array(json.dumps(description))
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[1]
        with pytest.raises(ValueError, match="not a saved agent"):
            loaded(AGENTS[name], arrays)
        assert tracemalloc.get_traced_memory()[1] - before < 10**7
    tracemalloc.stop()


@pytest.mark.parametrize("name", ["GRAB", "UniRank"])
def test_grown_arrays(name):
    agent = AGENTS[name](8, 4, seed=0)
    agent.make_room(1000)
    again = loaded(AGENTS[name], arrays_of(agent))
    assert len(again.state.counts) == 1024
    assert plain(again.state) == plain(agent.state)
