"""What every agent of the registry must do beyond the interface, which
`tests/runner/test_check_agent.py` checks.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from edge_cases import EVERY_AGENT, draw
from reference_agents import MODELS, RANDOMISED, make, plain
from scipy.stats import chisquare, ks_2samp
from slow import slow

import clickgym
from clickgym.agents import (
    AGENTS,
    CONTEXTUAL_AGENTS,
    PBMUCB,
    BatchRank,
    CompiledAgent,
    EpsilonGreedy,
    Fixed,
    TopRank,
)
from clickgym.envs import CascadeModel, ClickEnv, ClickModel, PositionBasedModel

PBM = MODELS["PBM"]


def state_of(agent: CompiledAgent) -> dict[str, object]:
    """All that determines what an agent does next, comparable with ==."""
    return plain(agent.state) | {
        "generator": agent.rng.bit_generator.state,
        "ranking": agent.ranking.tolist(),
    }


def lists(agent: CompiledAgent, model: ClickModel, n: int, seed: int = 0) -> list[list[int]]:
    rng, shown = np.random.default_rng(seed), []
    for _ in range(n):
        ranking = agent.rank(None)
        agent.update(None, ranking, model.sample(ranking, rng))
        shown.append(ranking.tolist())
    return shown


# --------------------------------------------------------------------------------------------------------- the interface


def test_registries_are_by_class_name():
    assert not set(AGENTS) & set(CONTEXTUAL_AGENTS)
    assert all(name == agent_class.__name__ for name, agent_class in EVERY_AGENT.items())
    assert set(EVERY_AGENT) <= set(clickgym.agents.__all__)


# ---------------------------------------------------------------------------------------------------------- the learning


@pytest.mark.parametrize("name", [name for name in AGENTS if name not in ("Fixed", "Random")])
def test_learns_a_trivial_problem(name):
    """Two good items among five: after 10⁵ sessions the regret is below a quarter of Random's."""
    model = PositionBasedModel([0.05, 0.9, 0.1, 0.7, 0.05], [1.0, 0.6])
    env, horizon = ClickEnv(model), 100_000
    regret = {
        agent: clickgym.run(make(agent, model, horizon=horizon), env, horizon, seed=1).regret[-1]
        for agent in (name, "Random")
    }
    assert regret[name] < 0.25 * regret["Random"]
    assert regret[name] == 0.0 or name != "Oracle"


# ------------------------------------------------------------------------------------------------------------ randomness


@pytest.mark.parametrize("name", RANDOMISED)
def test_different_seeds_differ(name):
    assert lists(make(name, PBM, seed=3), PBM, 30) != lists(make(name, PBM, seed=4), PBM, 30)


@pytest.mark.parametrize("name", RANDOMISED)
def test_first_list_is_uniform(name):
    """Null: the first list is uniform on the 12 lists of 2 out of 4 items. 600 seeds, false-alarm
    rate 1e-5 per agent.
    """
    model = PositionBasedModel([0.5, 0.4, 0.3, 0.2], [1.0, 0.5])
    counts = Counter(tuple(make(name, model, seed=seed).rank(None).tolist()) for seed in range(600))
    assert chisquare([counts[r] for r in itertools.permutations(range(4), 2)]).pvalue > 1e-5


ORDERS = {"up": [0, 1, 2, 3, 4, 5], "down": [5, 4, 3, 2, 1, 0], "shuffled": [3, 0, 5, 1, 4, 2]}


RELABELLED = ("BatchRank", "EpsilonGreedy", "PBMTS", "TopRank")
"""Agents that split late, and some that the quick tests of `check_agent` leave out, which has a
shorter test of the same.
"""


@pytest.mark.parametrize(
    ("name", "kind", "labels"),
    [
        *((name, "PBM", ("up", "down")) for name in RELABELLED),  # the orders that differ most
        *slow(*((name, kind, tuple(ORDERS)) for name in RANDOMISED for kind in ("PBM", "CM"))),
    ],
)
def test_relabelled_items_give_the_same_regret(name, kind, labels):
    """Null: the law of the regret does not depend on which item has which number.

    Two-sample Kolmogorov-Smirnov between attractions sorted up, sorted down and shuffled (another
    seed for every run), 200 runs each, after 40 and after 400 sessions; the horizon told to
    BatchRank and TopRank is 10, so that they split early. 2 lengths x 3 pairs x 2 models of each
    agent share a false-alarm rate of 1e-4; ties in the regret make it smaller still.
    """
    alpha = 1e-4 / (2 * 3 * 2 * len(RANDOMISED))
    attraction = np.array([0.05, 0.1, 0.2, 0.4, 0.6, 0.9])
    regret = {}
    for block, label in enumerate(labels):
        shuffled = attraction[ORDERS[label]]
        model = (
            CascadeModel(shuffled, 3)
            if kind == "CM"
            else PositionBasedModel(shuffled, [1.0, 0.7, 0.5])
        )
        env = ClickEnv(model)
        runs = [
            clickgym.run(
                make(name, model, horizon=10, seed=seed), env, 400, seed=seed, checkpoints=[40]
            )
            for seed in range(200 * block, 200 * (block + 1))
        ]
        assert {run.engine for run in runs} == {"compiled"}
        regret[label] = np.array([run.regret for run in runs])
    for first, second in itertools.combinations(labels, 2):
        for column, length in enumerate((40, 400)):
            p = ks_2samp(
                regret[first][:, column].round(9), regret[second][:, column].round(9)
            ).pvalue
            assert p > alpha, f"{first} and {second} differ after {length} sessions: p = {p:.1e}"


# ---------------------------------------------------------------------------------------------------- saving and loading


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
def test_numpy_arguments_are_saved(agent, tmp_path):
    agent.save(tmp_path / "agent.npz")
    assert state_of(type(agent).load(tmp_path / "agent.npz")) == state_of(agent)


def test_save_is_atomic(tmp_path, monkeypatch):
    """A crash in mid-write leaves the earlier file as it was."""
    agent = make("TopRank", PBM)
    agent.save(tmp_path / "agent.npz")
    before = (tmp_path / "agent.npz").read_bytes()
    lists(agent, PBM, 10)

    def crash(file, **arrays):
        file.write(b"half of it")
        raise OSError("disk full")

    monkeypatch.setattr(np, "savez", crash)
    with pytest.raises(OSError, match="disk full"):
        agent.save(tmp_path / "agent.npz")
    assert (tmp_path / "agent.npz").read_bytes() == before
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["agent.npz"]
    agent.save(tmp_path / "agent.npz")
    assert state_of(TopRank.load(tmp_path / "agent.npz")) == state_of(agent)
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
def test_spoiled_files_are_refused(spoil, tmp_path):
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


def test_load_refuses_another_class(tmp_path):
    with pytest.raises(ValueError, match=r"agent\.npz holds a TopRank, not a BatchRank"):
        BatchRank.load(saved(tmp_path))


def test_an_agent_of_your_own_is_loaded_by_its_class(tmp_path):
    """A user's TopRank does not stand in for the package's, nor the other way round."""

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


@pytest.mark.parametrize("number", [3, None])
def test_an_agent_of_another_version_is_refused_in_one_line(number, tmp_path):
    with np.load(saved(tmp_path)) as file:
        description = json.loads(str(file["description"])) | {"format": number}
    rewritten(tmp_path / "agent.npz", description=np.array(json.dumps(description)))
    with pytest.raises(
        ValueError,
        match=rf"^\S*agent\.npz is of another version of clickgym: its format is {number}, ",
    ):
        TopRank.load(tmp_path / "agent.npz")


def test_load_of_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        TopRank.load(tmp_path / "nothing.npz")


# --------------------------------------------------------------------------------------------------------- documentation


@pytest.mark.parametrize("name", EVERY_AGENT)
def test_docstring_documents_every_argument(name):
    agent_class = EVERY_AGENT[name]
    doc = agent_class.__doc__ or ""
    assert agent_class.paper
    assert agent_class.click_models
    assert "Source: " in doc
    arguments = {"n_items", "n_positions", "seed", *draw(name, 0).agent().hyperparameters}
    section = doc.partition("Args:")[2].partition("\n\n")[0]
    assert all(re.search(rf"\b{argument}\b", section) for argument in arguments)


@pytest.mark.parametrize("name", ["CascadeUCB1", "CascadeKLUCB", "BatchRank", "TopRank", "PBMUCB"])
def test_docstring_names_the_source_and_numbers_the_deviations(name):
    doc = AGENTS[name].__doc__ or ""
    source, _, after = doc.partition("Source: ")[2].partition("\n\n")
    assert re.search(r"\b(19|20)\d\d\b", source)
    assert re.search(r"Algorithm|section", source)
    assert re.match(r"\s*Deviations from the paper:\n\s+1\. ", after)
    assert "⚠" in after


# ----------------------------------------------------------------------------------------------------------- wrong input

KNOWING = ("PBMUCB", "PBMPIE", "PBMTS", "BCMPTS", "PBMLinUCB")
BAD_EXAMINATION = [
    ([1.0], r"examination has shape \(1,\); expected \(2,\)"),
    ([[1.0, 0.5]], r"examination has shape \(1, 2\); expected \(2,\)"),
    ([1.0, 0.0], r"examination\[1\] is 0.0; expected a probability in \(0, 1\]"),
    ([1.5, 0.5], r"examination\[0\] is 1.5; expected a probability in \(0, 1\]"),
    ([np.nan, 1.0], r"examination\[0\] is nan"),
    (
        [1.0, 5e-324],
        r"examination\[1\] is 5e-324; expected a probability in \(0, 1\], at least 1e-100",
    ),
]
WRONG = [
    ("Random", {"n_items": 0, "n_positions": 1}, "n_items is 0; expected a positive integer"),
    ("Random", {"n_items": True, "n_positions": 1}, "n_items is True; expected a positive integer"),
    ("Random", {"n_positions": 0}, "n_positions is 0; expected a positive integer"),
    ("Random", {"n_positions": 4}, "n_positions is 4, but there are only n_items = 3 items"),
    ("C2UCB", {"n_positions": 4}, "n_positions is 4, but there are only n_items = 3"),
    ("C2UCB", {"n_features": 0}, "n_features is 0; expected a positive integer"),
    ("Fixed", {"ranking": [0]}, r"has shape \(2,\).*got shape \(1,\)"),
    ("Fixed", {"ranking": [0, 0]}, "position 1 shows item 0 again"),
    ("Fixed", {"ranking": [0, 3]}, "position 1 shows item 3, but items are 0 to 2"),
    ("Fixed", {"ranking": [-1, 0]}, "position 0 shows item -1"),
    ("Fixed", {"n_positions": 4, "ranking": [0, 1, 2]}, "n_positions|shape"),
    ("BubbleRank", {"initial": [0, 0]}, "position 1 shows item 0 again"),
    ("BubbleRank", {"initial": [0]}, "shape"),
    ("BubbleRank", {"initial": [0, 5]}, "position 1 shows item 5"),
    ("BubbleRank", {"delta": 1.0}, "delta is 1.0"),
    ("BubbleRank", {"delta": 0.0}, "delta is 0.0"),
    ("BubbleRank", {"horizon": 1}, "horizon is 1"),
    ("BubbleRank", {"horizon": 2.5}, "horizon is 2.5"),
    ("EpsilonGreedy", {"epsilon": 1.1}, r"epsilon is 1.1; expected a probability in \[0, 1\]"),
    ("CascadeUCB1", {"feedback": "last"}, "unknown feedback 'last'; did you mean 'last_click'"),
    (
        "CascadeKLUCB",
        {"feedback": "every_click"},
        "unknown feedback 'every_click'.*first_click, last_click",
    ),
    ("CascadeDUCB", {"gamma": 0.0}, "gamma is 0.0"),
    ("CascadeDUCB", {"gamma": 1.01}, "gamma is 1.01"),
    ("CascadeDUCB", {"epsilon": 0.0}, "epsilon is 0.0"),
    (
        "CascadeDUCB",
        {"epsilon": 1e308},
        r"epsilon is 1e\+308; expected a finite number > 0, at most 1e\+100",
    ),
    ("CascadeDUCB", {"horizon": 0}, "horizon is 0"),
    ("CascadeDUCB", {"feedback": "lastclick"}, "did you mean 'last_click'"),
    ("CascadeSWUCB", {"tau": 0}, "tau is 0"),
    ("CascadeSWUCB", {"tau": np.inf}, "tau is inf"),
    ("CascadeSWUCB", {"epsilon": -1.0}, "epsilon is -1.0"),
    ("CascadeSWUCB", {"horizon": 10.5}, "horizon is 10.5"),
    *(
        ("DCMKLUCB", {"position_order": order}, "position_order must be a permutation")
        for order in ([0], [0, 0], [0, 2], [0.0, 1.0], "01")
    ),
    *(
        ("RankedExp3", {"horizon": 100, "gamma": gamma}, "gamma")
        for gamma in (0.0, -0.1, 1.1, np.nan)
    ),
    *(
        (name, {}, f"'{missing}'")
        for name, missing in (
            ("Fixed", "ranking"),
            ("BatchRank", "horizon"),
            ("PBMUCB", "examination"),
        )
    ),
    ("BatchRank", {"horizon": 4}, "horizon is 4; expected an integer of at least 5"),
    ("TopRank", {"horizon": 0}, "horizon is 0; expected an integer"),
    ("TopRank", {"horizon": 100, "delta": 0}, "delta is 0; expected"),
    (
        "TopRank",
        {"horizon": 100, "delta": 1.0},
        r"delta is 1.0; expected a number in \(1e-300, 1\)",
    ),
    (
        "TopRank",
        {"horizon": 10, "delta": 5e-324},
        r"delta is 5e-324; expected a number in \(1e-300, 1\)",
    ),
    ("GRAB", {"horizon": 0}, "horizon is 0; expected an integer"),
    ("GRAB", {"gamma": 0}, "gamma is 0; expected a positive integer"),
    ("PBMHB", {"c": 0}, "c is 0; expected a finite number > 0"),
    ("PBMHB", {"n_sweeps": 0}, "n_sweeps is 0; expected a positive integer"),
    ("GLRCascadeKLUCB", {"horizon": 1}, "horizon is 1; expected an integer of at least 2"),
    (
        "GLRCascadeKLUCB",
        {"horizon": 100, "n_segments": 0},
        "n_segments is 0; expected a positive integer",
    ),
    (
        "GLRCascadeKLUCB",
        {"horizon": 100, "delta": 1.0},
        r"delta is 1.0; expected a number in \(1e-300, 1\)",
    ),
    (
        "GLRCascadeKLUCB",
        {"horizon": 100, "exploration": 1.1},
        r"exploration is 1.1; expected a probability in \[0, 1\]",
    ),
    (
        "GLRCascadeKLUCB",
        {"horizon": 100, "n_vertices": 3},
        "n_vertices is 3; expected an integer of at least 4",
    ),
    *(
        (name, {"examination": given}, message)
        for name in KNOWING
        for given, message in BAD_EXAMINATION
    ),
    (
        "UBMLinUCB",
        {"examination": np.ones((3, 3))},
        r"examination has shape \(3, 3\); expected \(2, 2\)",
    ),
    (
        "UBMLinUCB",
        {"examination": [[1.4, 0], [0.5, 0.5]]},
        r"examination\[0, 0\] is 1.4; expected a probability",
    ),
    ("UBMLinUCB", {"examination": [0.5, 0.5]}, r"examination has shape \(2,\); expected \(2, 2\)"),
    ("PDGD", {"learning_rate": 0.0}, "learning_rate is 0.0; expected a finite number > 0"),
    ("C2UCB", {"ridge": 0}, "ridge is 0; expected a finite number >= 1e-06"),
    ("C2UCB", {"ridge": 1e-7}, r"ridge is 1e-07; expected a finite number >= 1e-06"),
    (
        "C2UCB",
        {"alpha": 1e308},
        r"alpha is 1e\+308; expected a finite number >= 0, at most 1e\+100",
    ),
]


@pytest.mark.parametrize(("name", "arguments", "message"), WRONG)
def test_wrong_arguments_are_named(name, arguments, message):
    needed = {"n_items": 3, "n_positions": 2} | (
        {"n_features": 2} if name in CONTEXTUAL_AGENTS else {}
    )
    needed |= {"horizon": 10} if name == "PBMPIE" else {}
    with pytest.raises((ValueError, TypeError), match=message):
        EVERY_AGENT[name](**needed | arguments, seed=0)
