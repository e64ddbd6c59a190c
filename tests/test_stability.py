"""Tests of what `docs/stability.md` promises for 9.x: this version has the public names of 9.0, and
reads and continues the files that 9.0 wrote.
"""

from __future__ import annotations

import json
import shutil
from functools import partial
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path

import numpy as np
import pytest
from polars import read_parquet
from polars.testing import assert_frame_equal

import clickgym
from clickgym import Results
from clickgym.agents import AGENTS, FrozenPolicy
from clickgym.logs import ClickLog, CMEstimator
from clickgym.runner.results_folder import Config, versions
from tests.helpers.public_api import public_api

API = Path(__file__).parent / "data" / "api_9.json"
"""What `public_api` returned in version 9.0."""
WRITTEN = Path(__file__).parent / "data" / "version_9"
"""What version 9.0 wrote: the results folder of `sweep` with two runs, two agents, and a policy of
PPO; and the modules of the agent in the sweep that is a user's own.
"""
OWN_AGENT = "own_agent:MoveUp:reverse=true"


def is_kept(before: list[str], now: list[str]) -> bool:
    """Whether all that was valid with an entry of version 9.0 still is: new parameters come after
    those that can be passed by position, and have defaults.
    """
    kind, *old = before
    kind_now, *new = now
    by_position = [*takewhile(lambda word: word[0] != "*", old)]
    return (
        kind in (kind_now, "attribute")
        and new[: len(by_position)] == by_position
        and {*old} <= {*new}
        and all("=" in word or word == "*" for word in new if word not in old)
    )


def test_nothing_of_version_9_is_missing():
    pytest.importorskip("stable_baselines3")  # without it, some names are not exported
    before, now = json.loads(API.read_text(encoding="utf-8")), public_api()
    changed = {
        name: f"{words}, now {now.get(name)}"
        for name, words in before.items()
        if not is_kept(words, now.get(name, [""]))
    }
    assert not changed, "docs/stability.md promises what 9.0 had until 10.0"


def sweep(out, n_runs, horizon=50, *more, **settings):
    return clickgym.sweep(
        ["PBMRank-v0"],
        ["CascadeTS", "TopRank:delta=0.1", OWN_AGENT, *more],
        horizon,
        n_runs,
        out=out,
        checkpoints=[10, 50],
        n_jobs=1,
        progress=False,
        **settings,
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A results folder of version 9.0, with an agent of the user, in version 9.1."""
    shutil.copytree(WRITTEN, tmp_path, dirs_exist_ok=True)
    config = tmp_path / "results" / "config.json"
    content = json.loads(config.read_text(encoding="utf-8"))
    content["versions"] = versions() | {"clickgym": "9.0.0"}  # of the libraries that are installed
    config.write_text(json.dumps(content), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(
        "clickgym.runner.results_folder.version",
        lambda name: "9.1.0" if name == "clickgym" else version(name),
    )
    return tmp_path / "results"


@pytest.mark.uncompiled
def test_folders_of_version_9_are_continued(folder, tmp_path):
    """They hold the runs that this version plays, and runs and agents can be added."""
    old = Results(folder).rows
    assert sorted(old["run"].unique()) == [0, 1]
    written = read_parquet(folder / "results.parquet").drop("seconds").columns
    fresh = sweep(None, 3, 50, "Random").rows[written]
    continued = sweep(folder, 3, 50, "Random").rows[written]
    assert_frame_equal(continued, fresh, rel_tol=1e-12)
    sweep(tmp_path / "other", 2, seed=1)
    joined = Results([folder, tmp_path / "other"]).rows
    assert joined["sweep_seed"].unique().sort().to_list() == [0, 1]
    with pytest.raises(ValueError, match="horizon is 50, not 100"):
        sweep(folder, 2, 100)


@pytest.mark.uncompiled
def test_code_in_folders_of_version_9_is_compared(folder, tmp_path):
    """Version 9.0 compared comments, too; the folder is compared without them once it has been
    continued.
    """
    rule = tmp_path / "own_rule.py"
    text = rule.read_text(encoding="utf-8")
    rule.write_text(text.replace("the top", "the first"), encoding="utf-8")
    with pytest.raises(ValueError, match="own_rule has changed"):
        sweep(folder, 2)
    rule.write_text(text, encoding="utf-8")
    sweep(folder, 2)
    rule.write_text(text.replace("the top", "the first"), encoding="utf-8")
    sweep(folder, 2)
    rule.write_text(text.replace("if place", "if place > 1"), encoding="utf-8")
    with pytest.raises(ValueError, match="own_rule has changed"):
        sweep(folder, 2)


@pytest.mark.uncompiled
def test_folders_of_a_version_with_other_results_are_not_continued(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("clickgym.runner.sweep.plan.Config", partial(Config, results=2))
    with pytest.raises(ValueError, match=r"clickgym 9\.0\.0 gives other results than 9\.1\.0"):
        sweep(folder, 2)
    sweep(tmp_path / "other", 2, seed=1)
    with pytest.raises(ValueError, match="gives other results than"):
        Results([folder, tmp_path / "other"])


def test_methods_of_classes_written_for_version_9_are_called():
    class HalfClicked(CMEstimator):
        def _conditional(self, pairs, clicks):
            return np.full(pairs.shape, 0.5)

    log = ClickLog([[0, 1]] * 2, [[1, 0], [0, 1]], [0] * 2, ("a", "b"), ("q",))
    assert HalfClicked().fit(log).log_likelihood(log) == pytest.approx(2 * [np.log(0.25)])


@pytest.mark.uncompiled
@pytest.mark.parametrize(
    ("name", "regret"), [("UniRank", 18.146176282359), ("PBMTS", 14.49383689763501)]
)
def test_agents_of_version_9_are_loaded(name, regret):
    """They were saved after 30 sessions, and go on as in 9.0."""
    agent = AGENTS[name].load(WRITTEN / f"{name}.npz")
    assert clickgym.run(agent, "PBMRank-v0", 200, seed=3).regret[-1] == pytest.approx(
        regret, rel=1e-12
    )


@pytest.mark.uncompiled
def test_trained_policies_of_version_9_are_loaded():
    """The file contains pickles that name the modules of `RankedList` and of the policy."""
    stable_baselines3 = pytest.importorskip("stable_baselines3")
    pytest.importorskip("numpy._core", reason="NumPy 1 cannot read what NumPy 2 pickled")
    policy = FrozenPolicy(model=stable_baselines3.PPO.load(WRITTEN / "PPO.zip"))
    regret = clickgym.run(policy, "PBMRank-v0", 200, seed=3).regret[-1]
    assert regret == pytest.approx(3.699858210430018)
