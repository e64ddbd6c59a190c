"""What stands behind a label: equal for the same thing in another process, different for what the
rule names; what cannot be compared has no digest.
"""

import functools
import importlib
import sys
import threading
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import WrapperSpec
from gymnasium.spaces import Box, Discrete

from clickgym.agents import Random, TopRank
from clickgym.envs import CLICK_MODELS, Instance, MixtureModel, Users, load_instance
from clickgym.runner.make import resolved_env
from clickgym.runner.sources import Source

AGENT = "from clickgym.agents import Random\n\nclass Mine(Random):\n    c = 1.0\n"


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """Import a module with a text as if for the first time, from a folder of its own."""
    count = iter(range(100))

    def load(text, **others):
        folder = tmp_path / str(next(count))
        folder.mkdir()
        for module, its_text in {"ag": text, **others}.items():
            file = folder / f"{module.replace('.', '/')}.py"
            file.parent.mkdir(exist_ok=True)
            file.write_text(its_text)
            monkeypatch.delitem(sys.modules, module, raising=False)
            monkeypatch.delitem(sys.modules, module.partition(".")[0], raising=False)
        monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
        importlib.invalidate_caches()
        return importlib.import_module("ag")

    return load


def source_of(thing):
    """What a sweep compares: both digests."""
    source = Source(thing)
    assert source.digest
    return source.digest, source.digests()


def of(maker, **arguments):
    return source_of((maker, arguments))


# ------------------------------------------------------------------------------ agents


def test_agent_by_name_arguments_and_code(imported):
    first = of(imported(AGENT).Mine)
    assert of(imported(AGENT).Mine) == first
    assert of(imported(AGENT + "\nanything = 1\n").Mine) != first
    assert of(imported(AGENT.replace("Mine", "Other")).Other) != first
    mine = imported(AGENT).Mine
    assert of(mine, c=1.0) not in (first, of(mine, c=2.0))
    assert of(functools.partial(mine, c=1.0)) not in (first, of(functools.partial(mine, c=2.0)))


BASE = "from clickgym.agents import Random\nclass Base(Random): c = 1\n"


@pytest.mark.parametrize(
    ("text", "others", "edited"),
    [
        ("from base import Base\nclass Mine(Base): ...", {"base": BASE}, "base"),
        (
            AGENT + "import deep.one",
            {"deep.one": "from . import two", "deep.two": "c = 1"},
            "deep.two",
        ),
        (
            AGENT + "    def rank(self, seen): import one",
            {"one": "import two", "two": "import one; c = 1"},
            "two",
        ),
    ],
)
def test_own_modules_behind_an_agent(imported, text, others, edited):
    """Files of base classes, and what files import: relatively, late, in a circle."""
    first = of(imported(text, **others).Mine)
    assert of(imported(text, **others, other="c = 1").Mine) == first
    changed = others | {edited: others[edited].replace("c = 1", "c = 2")}
    assert of(imported(text, **changed).Mine) != first


def test_own_code_in_arguments(imported):
    """A class, a function or an object of your own, at any depth."""
    text = "def f(c): return c + 1\nclass C: ..."
    for given in (lambda it: it.f, lambda it: {"nets": [it.C]}, lambda it: it.C()):
        same, again, other = (
            [of(Random, given=one), of(functools.partial(Random, given=one))]
            for one in (given(imported(its)) for its in (text, text, text.replace("1", "2")))
        )
        assert same == again
        assert not [one for one in same if one in other]


@pytest.mark.parametrize(
    ("first", "second"),
    [([1, 2], [2, 1]), ({"a": 1}, {"a": 2}), (np.arange(3), np.arange(3.0)), (Discrete, Box)],
)
def test_arguments(first, second):
    assert of(Random, given=first) == of(Random, given=first) != of(Random, given=second)


def test_file_that_an_argument_names(tmp_path):
    """A model of stable-baselines3 is named without its suffix."""
    hashes = []
    for text in ("1", "1", "2"):
        (tmp_path / "model.zip").write_text(text)
        hashes.append(of(Random, model=str(tmp_path / "model")))
    assert hashes[0] == hashes[1] != hashes[2]


def test_what_cannot_be_compared():
    """It would be taken for another: a lambda, what a function makes, a class of no file."""

    def made(c):
        class Made(Random):
            size = c

        return Made

    scope = {"__name__": "__main__"}
    exec("from clickgym.agents import Random as f\nclass Typed(f): ...\ndef given(): ...", scope)
    for maker in (made(1), lambda **sizes: TopRank(**sizes), scope["Typed"], scope["given"]):
        assert Source((maker, {})).digest is None
    for given in (threading.Lock(), (entry for entry in ()), lambda: 1):
        assert Source((Random, {"given": given})).digest is None


def test_a_class_of_a_notebook_has_no_file(monkeypatch):
    """It has a name, by which another cell may have another class."""
    module = type(sys)("__main__")
    exec("from clickgym.agents import Random\nclass Typed(Random): ...", vars(module))
    monkeypatch.setitem(sys.modules, "__main__", module)
    assert Source((module.Typed, {})).digests() == {"__main__": None}


# ------------------------------------------------------------------------------ users


def toy(last=0.1, name="toy", **changed):
    models = {"PBM": CLICK_MODELS["PBM"](attraction=[0.5, last], examination=[1.0, 0.5])}
    return Instance(name, models, 2, **changed)


def test_instance_by_content(tmp_path):
    """A file, an object and a name are alike; who fitted it and when does not matter."""
    for name in ("yandex-9", "uniform:seed=3", "linear:seed=2", "two-kinds"):
        instance = load_instance(name)
        instance.save(tmp_path / "file.json")
        assert source_of(load_instance(tmp_path / "file.json")) == source_of(instance)
    first = source_of(toy())
    assert source_of(toy(name="other", description="fitted on Monday")) == first
    assert source_of(toy(0.2)) != first
    assert source_of(toy(initial_ranking=[1, 0])) != first
    toy().save(tmp_path / "users.json")
    before = source_of(resolved_env(("PBMRank-v0", {"instance": str(tmp_path / "users.json")})))
    toy(0.2).save(tmp_path / "users.json")
    after = source_of(resolved_env(("PBMRank-v0", {"instance": str(tmp_path / "users.json")})))
    assert before != after


def test_the_code_of_own_click_models_counts(imported, monkeypatch):
    """Also of one within users."""
    text = "from clickgym.envs import CascadeModel\nclass Own(CascadeModel): short, c = 'Own', 1"
    alone, mixed = [], []
    for its in (text, text.replace("1", "2"), text):
        monkeypatch.delitem(Users.classes, "Own", raising=False)
        users = imported(its).Own([0.5, 0.4], n_positions=1)
        alone.append(source_of(users))
        mixed.append(source_of(MixtureModel([users, users], [0.5, 0.5])))
    for hashes in (alone, mixed):
        assert hashes[0] == hashes[2] != hashes[1]


def test_a_time_limit_or_an_argument_makes_another_environment():
    """Also in the spec of Gymnasium: users with a memory who leave sooner lose less."""
    specs = [
        gym.spec("CascadeMDPRank-v0"),
        gym.make("CascadeMDPRank-v0", max_episode_steps=7).spec,
        gym.spec("PBMRank-v0"),
        gym.make("PBMRank-v0", cutoff=3).spec,
    ]
    assert len({Source(spec).digest for spec in specs}) == 4


def test_arguments_of_the_wrappers_of_an_id_count():
    """As in an id that scales its rewards."""
    specs = [
        replace(
            gym.spec("PBMRank-v0"),
            additional_wrappers=(
                WrapperSpec("Clip", "gymnasium.wrappers:ClipReward", {"max_reward": most}),
            ),
        )
        for most in (1.0, 2.0, 1.0)
    ]
    first, other, same = map(source_of, ((spec, {}) for spec in specs))
    assert first == same != other


def test_what_a_package_imports_from_itself_counts(imported):
    """By a relative import in its __init__.py."""
    package = AGENT.replace("\n\n", "\nfrom .helper import c\n\n", 1)
    hashes = [
        of(imported("from pkg import Mine\n", **{"pkg.__init__": package, "pkg.helper": text}).Mine)
        for text in ("c = 1", "c = 2", "c = 1")
    ]
    assert hashes[0] == hashes[2] != hashes[1]
