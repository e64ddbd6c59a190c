"""No file makes the package import a module that the caller neither names nor trusts: importing it would run its code."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import clickgym
from clickgym.agents import CompiledAgent, EpsilonGreedy
from clickgym.command_line import main
from clickgym.core import trust
from clickgym.core.trust import UntrustedError
from clickgym.envs import ClickModel, PiecewiseStationaryModel, load_instance
from clickgym.runner.sweep import sweep_again

STRANGER = """
from pathlib import Path
Path(__file__).with_name("witness").touch()
import gymnasium
from os import mkdir
from clickgym.agents import EpsilonGreedy
from clickgym.envs import CascadeModel

class Model(CascadeModel, abstract=True):
    short = "stranger"

class Agent(EpsilonGreedy):
    pass

def env(instance="yandex-9982"):
    return gymnasium.make("PBMRank-v0", instance=instance)
"""
MODEL = {"model": "stranger:Model", "attraction": [0.5, 0.2], "n_positions": 1}
RUN = ["--horizon", "20", "--runs", "1", "--jobs", "1"]


@pytest.fixture
def stranger(tmp_path, monkeypatch):
    """A folder with a module, and with files that name it; its witness is there once it was imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(trust, "_NAMED", set())
    Path("stranger.py").write_text(STRANGER)
    Path("instance.json").write_text(json.dumps(MODEL))
    Path("model.json").write_text(json.dumps({"model": "CM", "attraction": [0.5, 0.2], "n_positions": 1}))
    Path("experiment.toml").write_text('envs = ["PBMRank-v0"]\nagents = ["stranger:Agent"]\nhorizon = 20\nruns = 1\n')
    yield tmp_path
    sys.modules.pop("stranger", None)
    for known in (clickgym.envs.users.Users._defined, CompiledAgent._classes):
        for name in [name for name in known if "stranger" in str(name)]:
            del known[name]


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """A folder of another process: results of a stranger's environment and agent, and that agent."""
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "stranger.py").write_text(STRANGER)
    made = "import clickgym; clickgym.sweep(['stranger:env'], ['stranger:Agent', 'Random'], 20, 1, n_jobs=1, out='results')"
    made += "; import stranger; stranger.Agent(4, 2, seed=0).save('agent.npz')"
    subprocess.run([sys.executable, "-B", "-c", made], check=True, capture_output=True, cwd=folder)
    return folder


@pytest.fixture
def results(stranger, elsewhere):
    return shutil.copytree(elsewhere / "results", stranger / "results")


def renamed(config: Path, **names: list[str]) -> None:
    """The configuration of some results, with other names in it."""
    (part,) = json.loads(config.read_text())["parts"]
    config.write_text(json.dumps({"format": 2, "parts": [{**part, **names}]}))


REFUSED = r"names the (click model|agent|environment) 'stranger:\w+'; a module that a file names is imported only where"


@pytest.mark.parametrize(
    "words",
    [
        ["show", "instance.json"],
        ["run", "CMRank-v0", "--agents", "Random", *RUN, "--instance", "instance.json", "--out", "out"],
        ["run", "CMRank-v0:instance=instance.json,cutoff=1", "--agents", "Random", *RUN, "--out", "out"],
        ["run", "experiment.toml", "--out", "out"],
    ],
)
def test_a_file_imports_nothing_on_the_command_line(words, stranger, capsys):
    assert main(words) == 2
    assert re.search(REFUSED, capsys.readouterr().err)
    assert not Path("witness").exists()


@pytest.mark.usefixtures("undrawn")
def test_a_trusted_file_imports_its_module(stranger, capsys):
    assert main(["show", "instance.json", "--trust"]) == 0
    assert Path("witness").exists()
    assert main(["run", "experiment.toml", "--out", "out", "--jobs", "1", "--trust"]) == 0


def test_a_file_may_name_the_module_that_the_command_names(stranger, capsys):
    words = ["--agents", "stranger:Agent", *RUN, "--instance", "instance.json", "--out", "out"]
    assert main(["run", "PBMRank-v0", *words]) == 2
    assert "has no PBM; it has stranger" in capsys.readouterr().err  # the file was read


@pytest.mark.usefixtures("undrawn")
def test_results_import_nothing(results, capsys):
    assert main(["report", "results", "--bounds", "--html"]) == 0
    assert "names the environment 'stranger:env'" in capsys.readouterr().out
    assert main(["run", "results/config.json", "--out", "again", "--jobs", "1"]) == 2
    with pytest.raises(UntrustedError, match=f"^results/config.json {REFUSED}"):
        sweep_again("results/config.json", out="again")
    assert main(["merge", "results", "--out", "merged"]) == 0
    assert not Path("witness").exists()
    sweep_again("results/config.json", out="again", n_jobs=1, trust=True)
    assert Path("witness").exists()


@pytest.mark.parametrize(
    "env", ["stranger:mkdir:path=made", "stranger:Path.mkdir", "clickgym.core.files:write_whole:path=made,content=x"]
)
def test_results_call_no_function_that_a_module_only_imports(env, results, capsys):
    trust.allow(["stranger"])
    renamed(results / "config.json", envs=[env], models={f"{env} yandex-9982": "0"})
    assert main(["run", "results/config.json", "--out", "again", "--jobs", "1"]) == 2
    assert "does not define as one" in capsys.readouterr().err
    assert not Path("made").exists()


def test_descriptions_import_nothing(stranger):
    for describe in (
        lambda: ClickModel.from_dict(MODEL),
        lambda: load_instance(MODEL),
        lambda: load_instance(Path("instance.json")),
        lambda: PiecewiseStationaryModel([MODEL], [1]),
    ):
        with pytest.raises(ValueError, match=REFUSED):
            describe()
    assert not Path("witness").exists()
    assert ClickModel.from_dict(MODEL, trust=True).short == "stranger"
    assert load_instance("instance.json").n_items == 2  # of a module that is imported already


def test_a_saved_agent_imports_nothing(stranger, elsewhere):
    shutil.copy(elsewhere / "agent.npz", "agent.npz")
    for caller in (CompiledAgent, EpsilonGreedy):
        with pytest.raises(UntrustedError, match=r"^agent.npz holds an agent of the class Agent of the module stranger, which"):
            caller.load("agent.npz")
    assert not Path("witness").exists()
    sys.path.insert(0, str(stranger))
    try:
        agent = CompiledAgent.load("agent.npz", trust=True)
    finally:
        sys.path.remove(str(stranger))
    assert type(type(agent).load("agent.npz")) is type(agent)
    with pytest.raises(UntrustedError, match="which the call does not name"):
        CompiledAgent.load("agent.npz")


def test_a_class_names_only_itself_and_its_subclasses(tmp_path):
    class Mine(EpsilonGreedy):
        pass

    class Other(EpsilonGreedy):
        pass

    Other(4, 2, seed=0).save(tmp_path / "agent.npz")
    with pytest.raises(UntrustedError, match=r"call .*Other\.load, or trust the file"):
        Mine.load(tmp_path / "agent.npz")
    EpsilonGreedy(4, 2, seed=0).save(tmp_path / "agent.npz")
    with np.load(tmp_path / "agent.npz") as file:
        arrays = dict(file)
    description = json.loads(str(arrays["description"]))
    arrays["description"] = np.array(json.dumps({**description, "agent": "Mine"}))  # as if it were one of the package
    np.savez(tmp_path / "agent.npz", **arrays)
    with pytest.raises(UntrustedError, match="which the call does not name"):
        CompiledAgent.load(tmp_path / "agent.npz")


def test_no_module_of_the_working_folder_stands_for_a_library(stranger):
    """Where the caller names no module, the working folder is not searched."""
    Path("sb3_contrib.py").write_text("1 / 0")
    with trust.from_file("config.json"), pytest.raises(ValueError, match=r"there is no module|no attribute|has no 'Nothing'"):
        clickgym.runner.make.agent_class("sb3_contrib:Nothing")
