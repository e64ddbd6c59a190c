"""Wrong input: one table of what is wrong and what is said, through the command line and through
Python.
"""

from __future__ import annotations

import json
import shutil
import sys

import gymnasium as gym
import pytest

import clickgym
import clickgym_logs
from clickgym.command_line import main
from clickgym.envs import ClickEnv, ClickModel, PositionBasedModel

OWN = """
from clickgym.agents import Agent

class Clumsy(Agent):
    def __init__(self, n_items, n_positions, *, at=50, seed=None):
        self.n_items, self.n_positions, self.at, self.step = n_items, n_positions, at, 0

    def rank(self, observation):
        self.step += 1
        return [0, 1, 2, 3, self.n_items if self.step == self.at else 4]

    def update(self, observation, ranking, clicks, reward):
        pass

class NoAgent:
    pass
"""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder with results and other things, to be copied by each test."""
    folder = tmp_path_factory.mktemp("prepared")
    clickgym.sweep(["PBMRank-v0"], ["Random"], 100, 2, out=folder / "finished", n_jobs=1)
    for name in ("damaged", "foreign", "unreadable", "unfinished", "shuffled"):
        shutil.copytree(folder / "finished", folder / name)
    first, second = sorted((folder / "damaged" / "cells").iterdir())
    first.write_bytes(second.read_bytes()[:100])
    (folder / "foreign" / "config.json").write_text('{"name": "another program"}')
    (folder / "unreadable" / "config.json").write_text("{")
    (folder / "unfinished" / "results.parquet").unlink()
    first, second = sorted((folder / "shuffled" / "cells").iterdir())
    first.write_bytes(second.read_bytes())
    (folder / "other").mkdir()
    (folder / "other" / "thesis.txt").write_text("precious")
    (folder / "file").write_text("")
    (folder / "clumsy.py").write_text(OWN)
    (folder / "broken.json").write_text("{")
    (folder / "nan.json").write_text('{"model": "CM", "attraction": [0.5, NaN], "n_positions": 2}')
    too_long = {"model": "CM", "attraction": [0.5, 0.4], "n_positions": 3}
    (folder / "long.json").write_text(json.dumps(too_long))
    nested = "[" * 100_000 + "]" * 100_000
    epochs = (
        '{"model": "PiecewiseStationaryModel", "starts": [0], "models": [' * 100 + "{}" + "]}" * 100
    )
    texts = {
        "twice": '{"model": "CM", "attraction": [0.5, 0.4], "n_positions": 1, "n_positions": 2}',
        "deep": nested,
        "epochs": epochs,
        "list": "[1, 2]",
        "digits": '{"model": "CM", "attraction": [0.5], "n_positions": ' + "9" * 5000 + "}",
        "infinite": '{"model": "CM", "attraction": [0.5, 0.4], "n_positions": Infinity}',
    }
    for name, text in texts.items():
        (folder / f"{name}.json").write_text(text)
        shutil.copytree(folder / "other", folder / f"config-{name}")
        (folder / f"config-{name}" / "config.json").write_text(text)
    return folder


@pytest.fixture
def workplace(prepared, tmp_path, monkeypatch):
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("clumsy", None)


RUN = "run PBMRank-v0 --agents Random --horizon 100 --runs 2 --out new"

# The words after `clickgym`, and what the one line on stderr must say.
COMMANDS = [
    ("lst", "No such command 'lst'. Did you mean 'list'?"),
    ("list agent", "unknown kind 'agent'; did you mean 'agents'?"),
    ("run", "Missing argument 'ENVS...'"),
    ("run PBMRank-v0 --horizon 100 --out new", "Missing option '--agents'"),
    (f"{RUN} --horizn 5", "No such option: --horizn (Possible options: --horizon)"),
    (f"{RUN} --runs x", "Invalid value for '--runs'"),
    (
        RUN.replace("PBMRank-v0", "PBMRnk-v0"),
        "unknown environment 'PBMRnk-v0'; did you mean 'PBMRank-v0'?",
    ),
    (RUN.replace("Random", "Batchrank"), "unknown agent 'Batchrank'; did you mean 'BatchRank'?"),
    (RUN.replace("Random", "Random Random"), "agent 'Random' is named twice"),
    (RUN.replace("PBMRank-v0", "PBMRank-v0 PBMRank-v0"), "environment 'PBMRank-v0' is named twice"),
    (
        RUN.replace("Random", "CascadeKLUCB:feedbak=last_click"),
        "unknown hyper-parameter 'feedbak'; did you mean 'feedback'?",
    ),
    (RUN.replace("Random", "CascadeKLUCB:feedback=last_clik"), "did you mean 'last_click'?"),
    (
        RUN.replace("Random", "CascadeKLUCB:feedback=last_click,first"),
        "expected key=value after the name, got 'first'",
    ),
    (RUN.replace("Random", "EpsilonGreedy:epsilon=2"), "epsilon is 2; expected a probability"),
    (RUN.replace("Random", "no_module:MyAgent"), "there is no module 'no_module'"),
    (RUN.replace("Random", "clumsy:Clumsi"), "the module 'clumsy' has no 'Clumsi'"),
    (RUN.replace("Random", "clumsy:NoAgent"), "is not a subclass of clickgym.agents.Agent"),
    (
        RUN.replace("PBMRank-v0", "PBMRank-v0:rewrd=clicks"),
        "unknown parameter 'rewrd'; did you mean 'reward'?",
    ),
    (RUN.replace("PBMRank-v0", "PBMRank-v0:reward=satisfaction"), "reward"),
    (RUN.replace("PBMRank-v0", "PBMRank-v0:cutoff=6"), "cutoff is 6"),
    (
        RUN.replace("PBMRank-v0", "PBMRank-v0:n_positions=11"),
        "n_positions is 11, but there are only n_items = 10 items",
    ),
    (RUN.replace("PBMRank-v0", "PBMRank-v0:cutoff=2,reward"), "expected key=value after the name"),
    (
        f"{RUN} --instance yandex-99357 yandex-9935",
        "unknown instance 'yandex-9935'; did you mean 'yandex-99357'?",
    ),
    (f"{RUN} --instance yandex-9 yandex-9", "two instances have the same name"),
    (f"{RUN} --instance none.json", "there is no instance file none.json"),
    (f"{RUN} --instance broken.json", "broken.json is not JSON"),
    (f"{RUN} --instance nan.json", "attraction[1] is nan; expected a probability in [0, 1]"),
    (f"{RUN} --instance long.json", "n_positions is 3, but there are only n_items = 2 items"),
    (f"{RUN} --instance uniform:n_item=3", "unknown argument 'n_item'; did you mean 'n_items'?"),
    (f"{RUN} --horizon 0", "horizon is 0; expected an integer of at least 1"),
    (f"{RUN} --horizon 1.5", "horizon is 1.5; expected an integer of at least 1"),
    (f"{RUN} --horizon abc", "horizon is 'abc'; expected an integer of at least 1"),
    (f"{RUN} --horizon nan", "horizon is nan; expected an integer of at least 1"),
    (f"{RUN} --horizon inf", "horizon is inf; expected an integer of at least 1"),
    (f"{RUN} --horizon=-5", "horizon is -5; expected an integer of at least 1"),
    (
        RUN.replace("Random --horizon 100", "BatchRank --horizon 4"),
        "horizon is 4; expected an integer of at least 5",
    ),
    (f"{RUN} --runs 0", "runs is 0; expected a positive integer"),
    (f"{RUN} --seed=-1", "seed is -1; expected a non-negative integer"),
    (f"{RUN} --jobs 0", "n_jobs is 0; expected a number of workers"),
    (f"{RUN} --engine numba", "unknown engine 'numba'"),
    (f"{RUN} --engine compile", "did you mean 'compiled'?"),
    (
        RUN.replace("Random", "clumsy:Clumsy") + " --engine compiled",
        "Clumsy is a plain Python agent",
    ),
    (RUN.replace("new", "file"), "file is a file, or lies below a file; expected a folder"),
    (RUN.replace("new", "file/new"), "file/new is a file, or lies below a file; expected a folder"),
    (RUN.replace("new", "other"), "other is not a results folder: it has no config.json"),
    (RUN.replace("new", "foreign"), "is not the configuration of a sweep"),
    (RUN.replace("new", "unreadable"), "unreadable/config.json cannot be read"),
    (
        RUN.replace("new", "finished") + " --seed 1",
        "results of another configuration (seed: 0 there, 1 now)",
    ),
    (
        RUN.replace("new", "finished").replace("100", "99"),
        "results of another configuration (horizon: 100 there, 99 now; ch",
    ),
    (
        RUN.replace("new", "finished") + " --metrics ndcg",
        'results of another configuration (metrics: [] there, ["ndcg"] now)',
    ),
    (RUN.replace("new", "damaged"), "is damaged"),
    (RUN.replace("new", "shuffled"), "it belongs to another run"),
    (
        f"{RUN} --instance twice.json",
        "twice.json cannot be read: the key 'n_positions' is there twice",
    ),
    (f"{RUN} --instance deep.json", "deep.json cannot be read: it is nested too deep"),
    (
        f"{RUN} --instance epochs.json",
        "models[0]: it is a PiecewiseStationaryModel; expected a click model that",
    ),
    (f"{RUN} --instance list.json", "list.json holds a list; expected a JSON object"),
    (f"{RUN} --instance digits.json", "digits.json cannot be read: "),
    (f"{RUN} --instance infinite.json", "n_positions is inf; expected a positive integer"),
    (f"{RUN} --instance new/none.json", "there is no instance file new/none.json"),
    ("report config-twice", "config.json cannot be read: the key 'n_positions' is there twice"),
    ("report config-deep", "config.json cannot be read: it is nested too deep"),
    ("report config-list", "config.json holds a list; expected a JSON object"),
    ("report config-digits", "config.json cannot be read: "),
    (
        RUN.replace("Random", "TopRank:horizon=5"),
        "TopRank: horizon is set by --horizon, the argument horizon",
    ),
    (
        RUN.replace("Random", "Random:seed=3"),
        "Random: seed is set by --seed, the argument seed; it is no hyper-parameter",
    ),
    (
        RUN.replace("Random", "Random:n_items=3"),
        "Random: n_items is set by the environment; it is no hyper-parameter",
    ),
    (RUN.replace("Random", "TopRank:delta=0.1,delta=0.2"), "delta is given twice"),
    (
        RUN.replace("Random", 'PPO:policy_kwargs={"a":1,"a":2}'),
        "policy_kwargs: the key 'a' is there twice",
    ),
    (
        RUN.replace("Random", "TopRank:delta=" + "[" * 100_000 + "]" * 100_000),
        "delta: it is nested too deep",
    ),
    (RUN.replace("Random", "TopRank:delta=" + "9" * 5000), "delta: "),
    (RUN.replace("Random", "TopRank:delta=NaN"), "delta is nan; expected a number in (1e-300, 1)"),
    (
        RUN.replace("Random", "TopRank:delta=true"),
        "delta is True; expected a number in (1e-300, 1)",
    ),
    (RUN.replace("Random", "PBMUCB:examination=[1,true,1,1,1]"), "examination[1] is True"),
    (RUN.replace("Random", 'PBMUCB:examination=["1",1,1,1,1]'), "examination[0] is '1'"),
    (
        RUN.replace("Random", "../x:Y"),
        "agent '../x:Y': '../x' is no name of a module; expected module:Name",
    ),
    (
        RUN.replace("PBMRank-v0", "../x:Y"),
        "environment '../x:Y': '../x' is no name of a module; expected module:Name",
    ),
    (
        RUN.replace("PBMRank-v0", "PBMRank-v0:n_items=20"),
        "has no argument n_items; the number of items follows from",
    ),
    (RUN.replace("PBMRank-v0", "PBMRank-v0:id=3"), "id"),
    (
        RUN.replace("PBMRank-v0", "PBMRank-v0:cutoff=true"),
        "cutoff is True; expected an integer from 1",
    ),
    (RUN.replace("PBMRank-v0", "PBMRank-v0:seed=3"), "unknown parameter 'seed'"),
    (f"{RUN} --instance uniform:seed=1,seed=2", "seed is given twice"),
    (f"{RUN} --instance uniform:seed=True", "seed is 'True'; expected an integer"),
    ("report", "Missing argument 'DIR'"),
    ("report nowhere", "nowhere is not a results folder"),
    ("report other", "other is not a results folder"),
    ("report foreign", "is not the configuration of a sweep"),
    ("report unfinished", "holds an unfinished sweep; run it again"),
]


@pytest.mark.parametrize(("words", "message"), COMMANDS, ids=[words[:80] for words, _ in COMMANDS])
def test_the_command_line_names_the_fault_in_one_line(workplace, capsys, words, message):
    before = {
        file: file.stat().st_mtime_ns
        for file in workplace.rglob("*")
        if "__pycache__" not in file.parts
    }
    assert main(words.split()) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert err.startswith("clickgym: ")
    assert err.count("\n") == 1
    assert out == ""
    after = {
        file: file.stat().st_mtime_ns
        for file in workplace.rglob("*")
        if "__pycache__" not in file.parts
    }
    assert after == before, "nothing is written"


def test_an_agents_fault_in_mid_run_is_named_and_what_is_finished_is_kept(workplace, capsys):
    words = RUN.replace("Random", "Random clumsy:Clumsy --jobs 1")
    assert main(words.split()) == 1
    _, err = capsys.readouterr()
    assert err.splitlines()[-1].startswith("clickgym: Clumsy, step 50: ")
    assert "2 of 4 runs are finished and kept in new" in err
    assert "Traceback" not in err
    assert len(list((workplace / "new" / "cells").glob("*.parquet"))) == 2


ENDLESS: dict = {"model": "PiecewiseStationaryModel", "starts": [0]}
ENDLESS["models"] = [ENDLESS]
MODEL = PositionBasedModel([0.5, 0.4, 0.3], [1.0, 0.5])


def agent(**arguments):
    return clickgym.make_agent("BatchRank", ClickEnv(MODEL), horizon=100, seed=0, **arguments)


LOG = clickgym_logs.ClickLog(
    [[0, 1], [1, 0]] * 500, [[1, 0], [0, 1]] * 500, [0] * 1000, ("a", "b"), ("q",)
)


# What is called, with the error it raises and what that says.
CALLS = [
    (
        lambda: clickgym.make_agent("BatchRnk", ClickEnv(MODEL)),
        ValueError,
        "did you mean 'BatchRank'",
    ),
    (
        lambda: clickgym.make_agent("BatchRank", ClickEnv(MODEL)),
        ValueError,
        "BatchRank needs a horizon",
    ),
    (
        lambda: clickgym.make_agent("Fixed", ClickEnv(MODEL)),
        ValueError,
        "Fixed must be told ranking",
    ),
    (lambda: agent(delta=0.1), TypeError, "unknown hyper-parameter 'delta'"),
    (
        lambda: clickgym.run(agent(), ClickEnv(MODEL), 9, checkpoints=[10]),
        ValueError,
        r"checkpoints\[0\] is 10",
    ),
    (
        lambda: clickgym.run(agent(), gym.make("PBMRank-v0"), 9),
        ValueError,
        "n_items = 3, but the environment has 10",
    ),
    (
        lambda: clickgym.sweep("PBMRank-v0", ["Random"], 9, 1, out="new"),
        TypeError,
        "expected a list of environments",
    ),
    (
        lambda: clickgym.sweep([], ["Random"], 9, 1, out="new"),
        ValueError,
        "no environment was named",
    ),
    (lambda: clickgym.sweep(["PBMRank-v0"], [], 9, 1, out="new"), ValueError, "no agent was named"),
    (
        lambda: clickgym.sweep(["PBMRank-v0"], ["Random"], 9, 1, instances=[], out="new"),
        ValueError,
        "no instance was named",
    ),
    (
        lambda: clickgym.sweep(["PBMRank-v0"], ["Random"], 9, 1, instances="yandex-9", out="new"),
        TypeError,
        "instances is",
    ),
    (
        lambda: clickgym.sweep(["PBMRank-v0"], ["Random"], 9, 1, instances=[3], out="new"),
        TypeError,
        "instance is a name",
    ),
    (
        lambda: clickgym.run(agent(), ClickEnv(MODEL), 9, metrics="ndcg"),
        ValueError,
        "metrics is 'ndcg'; expected a sequence",
    ),
    (
        lambda: gym.make_vec("PBMRank-v0", 2, instance=["yandex-9", 3]),
        TypeError,
        r"instance\[1\]: an instance is a name",
    ),
    (
        lambda: clickgym.make_agent("TopRank", ClickEnv(MODEL), horizon=9, n_items=3),
        ValueError,
        "n_items is set by the env",
    ),
    (lambda: clickgym.make_agent("../x:Y", ClickEnv(MODEL)), ValueError, "is no name of a module"),
    (lambda: ClickModel.from_dict({"model": "../x:Y"}), ValueError, "unknown click model '../x:Y'"),
    (
        lambda: ClickModel.from_dict(ENDLESS),
        ValueError,
        r"^models.0.: it is a PiecewiseStationaryModel; expected",
    ),
    (
        lambda: clickgym.agents.Random(3, 2).learn([1]),
        TypeError,
        r"log is \[1\]; expected an object with rankings and clicks",
    ),
    (lambda: clickgym.agents.Random(3, 2).save(None), TypeError, "path is None; expected a path"),
    (lambda: clickgym_logs.decide(None), TypeError, "log is None; expected a ClickLog"),
    (
        lambda: clickgym_logs.compare(LOG, "fixed:a,b", ["pbm"]).lists([1]),
        ValueError,
        "unknown policy",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), CALLS, ids=range(len(CALLS)))
def test_python_names_the_fault(workplace, call, error, message):
    with pytest.raises(error, match=message):
        call()
    assert not (workplace / "new").exists()
