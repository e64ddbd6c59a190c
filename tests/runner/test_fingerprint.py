"""Tests of whether a folder holds the same sweep: the same settings and labels, and the same user
code behind the labels.
"""

import importlib
import sys

import pytest

import clickgym
from clickgym.envs import CLICK_MODELS, Instance
from tests.conftest import AGENT

pytestmark = [pytest.mark.uncompiled, pytest.mark.usefixtures("undrawn")]


def sweep(out, agents, n_runs=1, **more):
    settings = {"n_jobs": 1, "progress": False, **more}
    return clickgym.sweep(["PBMRank-v0"], agents, 10, n_runs, out=out, **settings)


# ---------------------------------------------------------------------------------------- your code


@pytest.mark.parametrize(
    ("files", "helper"),
    [
        ({"own": AGENT}, "own"),
        ({"own": f"import rules{AGENT}", "rules": "", "plots": ""}, "rules"),
        ({"lab__own": f"from tools import rules{AGENT}", "tools__rules": ""}, "tools__rules"),
        (
            {"lab__own": f"from tools.rules import draw{AGENT}", "tools__rules": "def draw(): ..."},
            "tools__rules",
        ),
    ],
)
def test_an_edit_of_a_module_that_the_class_imports(write, tmp_path, files, helper):
    """An edit of a module that the class imports changes the sweep, both in a flat folder and in a
    package. Edits of other modules of the program do not.
    """
    write(**{"plots": "", **files})
    importlib.import_module("plots")
    own = importlib.import_module(next(iter(files)).replace("__", "."))
    sweep(tmp_path / "out", [own.Forward])
    write(plots="edited = True")
    sweep(tmp_path / "out", [own.Forward], 2)
    write(**{helper: f"{files[helper]}\nedited = True"})
    with pytest.raises(ValueError, match=f"{helper.replace('__', '.')} has changed"):
        sweep(tmp_path / "out", [own.Forward])
    write(**{helper: files[helper]})
    sweep(tmp_path / "out", [own.Forward])


SHOP = """
import clickgym

class Shop(clickgym.envs.CascadeModel):
    short = "Shop"

clickgym.register_click_model("ShopRank-v0", Shop)
"""


def test_an_edit_of_your_click_model(write, tmp_path):
    write(shop=SHOP)
    envs, out = ["shop:ShopRank-v0:attraction=[0.5,0.2],n_positions=1"], tmp_path / "out"
    clickgym.sweep(envs, ["Random"], 10, 1, out=out, n_jobs=1, progress=False)
    write(shop=f"{SHOP}\nedited = True")
    with pytest.raises(ValueError, match=r"env shop:.* because shop has changed"):
        clickgym.sweep(envs, ["Random"], 10, 1, out=out, n_jobs=1, progress=False)


@pytest.mark.parametrize("name", ["Forward.shift", "ALPHA", "rules.BETA"])
def test_values_that_a_program_sets_make_another_sweep(write, tmp_path, name):
    """A changed value in a class, in its module, or in a module that this module imports makes
    another agent, which needs another label.
    """
    write(own=f"import rules\nALPHA = 1{AGENT}", rules="BETA = 1")
    own = importlib.import_module("own")
    *owners, attribute = name.split(".")
    owner = getattr(own, owners[0]) if owners else own
    out = tmp_path / "out"
    sweep(out, {"mine": own.Forward})
    setattr(owner, attribute, [2, 3])
    with pytest.raises(ValueError, match=rf"agent mine needs .*{attribute} has changed"):
        sweep(out, {"mine": own.Forward})
    sweep(out, {"other": own.Forward})
    assert clickgym.Results(out).names("agent") == ["mine", "other"]


SCRIPT = """
import clickgym
from clickgym.agents import Random

RUNS = 1
SIZE = 1

def order(): ...

class Mine(Random):
    def size(self): return SIZE, order()

sweep = clickgym.sweep(["PBMRank-v0"], [Mine], 10, RUNS, out="out", n_jobs=1, progress=False)
print(sweep.rows["run"].n_unique())
"""
EDITS = {
    "Mine has changed": ("order()\n", "order() + 0\n"),
    "order has changed": ("order(): ...", "order(): return 1"),
    "__main__:SIZE has changed": ("SIZE = 1", "SIZE = 2"),
}
"""Edits of the script, by the message that each one causes."""


def test_of_a_script_the_class_counts(program, tmp_path):
    """In a script, only the class and the names in its text count, so the script may later ask for
    more runs.
    """

    def play(*edit):
        (tmp_path / "study.py").write_text(SCRIPT.replace(*edit))
        return program(tmp_path / "study.py", folder=tmp_path)

    assert play("", "") == "1\n"
    for what, edit in EDITS.items():
        with pytest.raises(ValueError, match=what):
            play(*edit)
    assert play("RUNS = 1", "RUNS = 2") == "2\n"


def test_words_about_code_are_not_code(write, tmp_path):
    """Comments, docstrings and the layout may be edited."""
    write(own=AGENT)
    own = importlib.import_module("own")
    sweep(tmp_path / "out", [own.Forward])
    heading = "class Forward(Agent):\n"
    words = AGENT.replace(heading, f'{heading}    """Better words."""\n\n').replace(
        "):\n", "):  #\n"
    )
    write(own=f'"""A module."""\n\n{words}')
    sweep(tmp_path / "out", [own.Forward], 2)
    write(own=words.replace("self.ranking =", "self.ranking = shown ="))
    with pytest.raises(ValueError, match="own has changed"):
        sweep(tmp_path / "out", [own.Forward])


def test_a_notebook_has_no_file(tmp_path, monkeypatch):
    """A sweep in a notebook can be run and shown, but the next sweep needs a new folder, because a
    class in a notebook has no file to compare. Neither has a lambda.
    """
    module = type(sys)("__main__")
    exec("from clickgym.agents import Random\nclass Typed(Random): ...", vars(module))
    monkeypatch.setitem(sys.modules, "__main__", module)
    for agents in ([module.Typed], {"a lambda": lambda **sizes: module.Typed(**sizes)}):
        rows = sweep(tmp_path, agents, overwrite=True).frame
        assert rows.equals(clickgym.Results(tmp_path).frame)
        with pytest.raises(ValueError, match=r"(Typed|a lambda) needs another .* a notebook"):
            sweep(tmp_path, agents)


# ---------------------------------------------------------------------------- arguments and setting


def toy(last):
    models = {"PBM": CLICK_MODELS["PBM"](attraction=[0.5, last], examination=[1.0, 0.5])}
    return Instance("toy", models, 2)


def test_users_are_told_apart_by_their_numbers(tmp_path):
    sweep(tmp_path, ["Random"], instances=[toy(0.1)])
    sweep(tmp_path, ["Random"], 2, instances=[toy(0.1)])
    with pytest.raises(ValueError, match=r"toy needs another label .*users have changed"):
        sweep(tmp_path, ["Random"], instances=[toy(0.2)])
    toy(0.2).save(tmp_path / "toy.json")
    for users in (f"{tmp_path}/toy.json", f"toy={tmp_path}/toy.json"):
        sweep(tmp_path / "file", ["Random"], instances=[users])
    twice = [f"{tmp_path}/toy.json", f"again={tmp_path}/toy.json"]
    with pytest.warns(UserWarning, match="toy and again have the same users, which count twice"):
        results = sweep(tmp_path / "file", ["Random"], instances=twice)
    assert results.names("instance") == ["toy", "again"]
    assert "toy and again have the same users" in str(clickgym.Results(tmp_path / "file"))


@pytest.mark.parametrize(
    ("agent", "packages"), [("Random", set()), ("PPO", {"torch", "stable-baselines3"})]
)
def test_versions_of_what_decides_numbers(agent, packages):
    pytest.importorskip("stable_baselines3")
    settings = {"n_jobs": 1, "progress": False}
    [config] = clickgym.sweep(["PBMRank-v0"], [f"{agent}"], 10, 1, **settings).configs
    assert {*config.versions} == {"clickgym", "numpy", "numba", *packages}
