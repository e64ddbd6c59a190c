"""`clickgym.tune`: what is searched, that a study resumes, what it promises of its result, and the
command.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import numpy as np
import polars
import pytest

import clickgym
from clickgym.__main__ import main
from clickgym.agents import Range
from clickgym.runner import agent_maker
from clickgym.runner import tuning as module
from clickgym.runner.identity import identities
from clickgym.runner.tuning import STUDY, TRIALS, tune

optuna = pytest.importorskip("optuna")

SMALL = {
    "horizon": 200,
    "runs": 2,
    "instances": ["uniform:seed=1", "uniform:seed=2"],
}
SPACE = {"c": Range(0.0, 3.0), "feedback": ("first_click", "last_click")}


def tuned(trials=10, agent="CascadeKLUCB", envs=("PBMRank-v0",), **given):
    return tune(agent, list(envs), trials, **{**SMALL, "search_space": SPACE, **given})


def test_result_is_a_spec_and_a_table_of_all_trials():
    result = tuned()
    assert result.agent.startswith("CascadeKLUCB:c=")
    assert result.hyperparameters.keys() == {"c", "feedback"}
    assert clickgym.run(result.agent, "PBMRank-v0", 10, seed=0).steps[-1] == 10
    assert result.trials.columns == ["trial", "state", "score", "c", "feedback"]
    assert len(result.trials) == 10
    complete = result.trials.filter(state="COMPLETE")
    best = complete.row(complete["score"].arg_min(), named=True)
    assert {key: best[key] for key in SPACE} == result.hyperparameters
    assert result.trials["c"].is_between(0.0, 3.0).all()
    assert 0 < result.score < 1
    assert 0 < result.default_score < 1


def test_the_score_is_a_geometric_mean_of_ratios_to_random_lists():
    frame = polars.DataFrame(
        {
            "env": ["A"] * 4 + ["B"] * 2,
            "instance": ["x"] * 6,
            "agent": ["Random", "tuned"] * 3,
            "regret": [10.0, 4.0, 30.0, 12.0, 5.0, 5.0],
        }
    )
    assert module._score(frame) == pytest.approx(np.sqrt(0.4 * 1.0))
    perfect = frame.with_columns(regret=polars.when(agent="tuned").then(0.0).otherwise("regret"))
    assert module._score(perfect) == pytest.approx(1e-9)


def test_best_trial_and_default_are_scored_by_other_seeds_than_the_trials():
    """The trials have the seeds 3 and 4; the lowest of their scores is too low by chance."""
    result, scores = tuned(3, seed=3), []
    for agent in (result.agent, "CascadeKLUCB"):
        agents = {"tuned": agent, "Random": "Random"}
        results = clickgym.sweep(["PBMRank-v0"], agents, seed=5, checkpoints=[200], **SMALL)
        scores.append(module._score(results.frame))
    assert [result.score, result.default_score] == pytest.approx(scores)
    assert result.score not in result.trials["score"].to_list()


@pytest.mark.filterwarnings("error")
def test_values_that_are_sequences(tmp_path):
    """Such as the layers of networks: they reach the agent as they are, also after the tenth trial,
    from which on Optuna reads its storage, and in a study that resumes.
    """

    class Layers(clickgym.agents.Random):
        def __init__(self, n_items, n_positions, *, net_arch=(64, 64), seed=None):
            super().__init__(n_items, n_positions, seed=seed)
            assert net_arch in [(32,), (64, 64), None]

    space = {"net_arch": [(32,), (64, 64), None]}
    few = {"horizon": 20, "runs": 1, "n_jobs": 1, "out": tmp_path}
    for trials in (11, 13):
        result = tuned(trials, Layers, search_space=space, **few)
    assert result.hyperparameters["net_arch"] in space["net_arch"]
    assert set(result.trials["net_arch"]) == {"(32,)", "(64, 64)", None}
    assert len(polars.read_csv(tmp_path / TRIALS)) == 13


def test_workers_and_interruptions_change_nothing(tmp_path, monkeypatch):
    whole = tuned(12, n_jobs=2)
    assert tuned(12, n_jobs=1).trials.equals(whole.trials)
    calls = []

    def interrupted(*arguments, **given):
        calls.append(None)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return clickgym.sweep(*arguments, **given)

    monkeypatch.setattr(module, "sweep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tuned(12, out=tmp_path)
    monkeypatch.undo()
    resumed = tuned(12, out=tmp_path)
    assert resumed.trials.equals(whole.trials)
    assert (resumed.agent, resumed.score) == (whole.agent, whole.score)
    assert polars.read_csv(tmp_path / TRIALS).height == 12
    storage = f"sqlite:///{tmp_path / STUDY}"
    assert len(optuna.load_study(study_name=None, storage=storage).trials) > 12
    assert tuned(14, out=tmp_path).trials.head(12).equals(resumed.trials)


def test_other_arguments_are_another_study(tmp_path):
    first = tuned(8, out=tmp_path)
    other = tuned(8, out=tmp_path, horizon=300)
    assert first.study.study_name != other.study.study_name
    assert not first.trials.equals(other.trials)
    assert tuned(8, out=tmp_path).trials.equals(first.trials)


def test_bad_trials_are_given_up():
    assert "PRUNED" in tuned(24, runs=4, search_space={"c": Range(0.0, 300.0)}).trials["state"]


def test_what_has_a_value_is_not_searched():
    result = tuned(8, agent="CascadeKLUCB:feedback=first_click", search_space=None)
    assert result.trials.columns == ["trial", "state", "score", "c"]
    assert "feedback=first_click" in result.agent


def test_what_has_a_value_keeps_it_in_all_trials():
    """The trial, the best trial and the default are all the agent as it was given."""
    agent, scores = "CascadeKLUCB:c=6", []
    result = tuned(1, agent, runs=1, search_space={"feedback": ["last_click"]})
    for seed in (0, 1, 1):
        given = {**SMALL, "runs": 1, "seed": seed, "checkpoints": [200]}
        results = clickgym.sweep(["PBMRank-v0"], {"tuned": agent, "Random": "Random"}, **given)
        scores.append(module._score(results.frame))
    assert [*result.trials["score"], result.score, result.default_score] == pytest.approx(scores)


def test_whole_numbers_and_logarithms_are_searched_as_such():
    result = tuned(8, agent="CascadeSWUCB", search_space={"tau": Range(10, 1000, log=True)})
    assert result.trials["tau"].dtype == polars.Int64


@pytest.mark.parametrize(
    "given",
    [
        {"agent": "Random", "search_space": None},
        {"agent": "CascadeKLUCB:c=1,feedback=last_click", "search_space": None},
        {"trials": 0},
        {"search_space": {"c": 3}},
        {"search_space": {"d": Range(0, 1)}},
        {"horizon": 0},
    ],
)
def test_wrong_input_is_named(given):
    named = r"nothing to tune|trials is 0|has 3 for c|'d'|horizon is 0"
    with pytest.raises((ValueError, TypeError), match=named):
        tuned(**given)


def test_without_optuna_a_line_says_so(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'install it: pip install "clickgym\[tune\]"'):
        tuned()


def test_command_prints_the_best_and_resumes(tmp_path, printed):
    words = "tune EpsilonGreedy --environments PBMRank-v0 --horizon 100 --runs 1 --trials 8 --out"
    first, second = (printed([*words.split(), str(tmp_path)]) for _ in range(2))
    assert first == second
    assert "In new runs EpsilonGreedy:epsilon=" in first
    assert f"All trials are in {tmp_path / TRIALS}" in " ".join(first.split())


OWN = """
from clickgym.agents import Range, EpsilonGreedy

class Mine(EpsilonGreedy):
    search_space = {"epsilon": Range(0.01, 0.5)}
    best = 1
"""


def test_changed_agent_begins_another_study(tmp_path, monkeypatch, capsys):
    """Trials of two agents do not stand in one study; a comment changes nothing."""
    monkeypatch.chdir(tmp_path)
    words = "tune mine_to_tune:Mine -e PBMRank-v0 --horizon 20 --runs 1 --jobs 1 --out out --trials"

    def tune(text, trials):
        Path("mine_to_tune.py").write_text(text)
        sys.modules.pop("mine_to_tune", None)
        assert main([*words.split(), str(trials)]) == 0
        lines = [line for line in capsys.readouterr().err.splitlines() if "has changed" in line]
        studies = optuna.get_all_study_names(f"sqlite:///{tmp_path / 'out' / STUDY}")
        return polars.read_csv("out/trials.csv").height, len(studies), len(lines)

    assert tune(OWN, 2) == (2, 1, 0)
    assert tune(OWN + "# a comment\n", 3) == (3, 1, 0)
    assert tune(OWN.replace("best = 1", "best = 2"), 2) == (2, 2, 1)


def test_agent_without_identity_begins_another_study(tmp_path):
    agent = ("CascadeKLUCB", {"feedback": "first_click", "given": threading.Lock()})
    studies = []
    for _ in range(2):
        with pytest.warns(UserWarning, match="agent CascadeKLUCB is run, but not resumed"):
            studies.append(module._study(tmp_path, "CascadeKLUCB", [], known(agent)).study_name)
    assert studies[0] != studies[1]


def known(agent):
    return identities("agent", {"CascadeKLUCB": agent_maker(agent)})


def test_interrupt_says_what_is_kept(tmp_path, monkeypatch):
    def interrupted(*arguments, **given):
        raise KeyboardInterrupt

    tuned(2, out=tmp_path)
    monkeypatch.setattr(module, "sweep", interrupted)
    with pytest.raises(KeyboardInterrupt, match=r"^stopped; 2 of 3 trials are kept in .* resumes$"):
        tuned(3, out=tmp_path)
