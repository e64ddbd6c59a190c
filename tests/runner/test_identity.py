"""Identity of what a label stands for: equal for what is the same in another process, place or
state of this process; different for whatever changes results.
"""

import copy
import functools
import importlib
import os
import subprocess
import sys
import threading
import types

import gymnasium as gym
import numpy as np
import pytest

from clickgym.agents import Random, TopRank
from clickgym.envs import CLICK_MODELS, Instance, PiecewiseStationaryModel, Users, load_instance
from clickgym.runner.identity import NoIdentityError, identity
from clickgym.runner.make import agent_maker, env_maker

AGENT = """
from clickgym.agents import Random
from helper import order  # a comment

class Mine(Random):
    c = 1.0

    def rank(self, observation):
        return order(self.n_items)
"""
HELPER = "from deeper import depth\n\ndef order(n):\n    return list(range(n))[:depth]\n"
TYPED = HELPER.replace("order(n)", "order(n: int) -> list")
FILES = {"ag.py": AGENT, "helper.py": HELPER, "deeper.py": "depth = 5\n", "other.py": "a = 1\n"}


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """Import a module of some files as if for the first time, from a folder of its own."""
    count = iter(range(100))

    def load(files, module="ag"):
        folder = tmp_path / str(next(count))
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        tops = {name.partition("/")[0].partition(".")[0] for name in files}
        for loaded in [it for it in sys.modules if it.partition(".")[0] in tops]:
            del sys.modules[loaded]
        monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
        importlib.invalidate_caches()
        return importlib.import_module(module)

    return load


def of(maker, **arguments):
    return identity((maker, arguments))


# ------------------------------------------------------------------------------ sources


@pytest.mark.parametrize(
    "changed",
    [
        {"ag.py": AGENT.replace("# a comment", "# another comment").replace("\n\n", "\n\n\n")},
        {"ag.py": AGENT + "\nif __name__ == '__main__':\n    print('played')\n"},
        {"other.py": "a = 2\n"},
        {
            "helper.py": '"""Words."""\n__version__ = "2"\n'
            + HELPER.replace("order(n)", "order(n: int) -> list")
        },
        {"ag.py": AGENT.replace("    c = 1.0", '    """Mine."""\n\n    c = 1.0')},
        {"ag.py": "\n".join([*AGENT.split("\n")[2:0:-1], *AGENT.split("\n")[3:]])},
        {},
    ],
)
def test_same_agent(imported, changed):
    """A comment, a block for scripts, a module that is not imported, another folder; docstrings,
    annotations, the order of imports, a version.
    """
    assert of(imported(FILES).Mine) == of(imported(FILES | changed).Mine)


@pytest.mark.parametrize(
    "changed",
    [
        {"ag.py": AGENT.replace("c = 1.0", "c = 2.0")},
        {"ag.py": AGENT.replace("return order(", "return order(1 + ")},
        {"helper.py": HELPER.replace("[:depth]", "[depth:]")},
        {"deeper.py": "depth = 6\n"},
    ],
)
def test_changed_agent(imported, changed):
    assert of(imported(FILES).Mine) != of(imported(FILES | changed).Mine)


LAZY = {
    "ag.py": "class Mine:\n    def rank(self):\n        import lazy\n        return lazy.a\n",
    "lazy.py": "a = 1\n",
}
PACKAGE = {
    "pack/__init__.py": "",
    "pack/ag.py": "from . import near\nfrom .sub.far import f\nclass Mine:\n    x = near.a, f\n",
    "pack/near.py": "a = 1\n",
    "pack/sub/__init__.py": "from ..beside import b\n",
    "pack/sub/far.py": "f = 1\n",
    "pack/beside.py": "b = 1\n",
    "pack/never.py": "c = 1\n",
}


def test_lazy_import(imported):
    """A module counts whether it was imported already or not."""
    first = of(imported(LAZY).Mine)
    mine = imported(LAZY).Mine
    importlib.import_module("lazy")
    assert of(mine) == first
    assert of(imported(LAZY | {"lazy.py": "a = 2\n"}).Mine) != first


@pytest.mark.parametrize("name", ["__init__", "near", "sub/__init__", "sub/far", "beside"])
def test_modules_of_a_package(imported, name):
    first = of(imported(PACKAGE, "pack.ag").Mine)
    assert of(imported(PACKAGE | {"pack/never.py": "c = 2\n"}, "pack.ag").Mine) == first
    edited = {f"pack/{name}.py": PACKAGE[f"pack/{name}.py"] + "more = 1\n"}
    assert of(imported(PACKAGE | edited, "pack.ag").Mine) != first


def test_compiled_modules_by_their_bytes(imported):
    files = {"ag.py": "def f():\n    import fast\nclass Mine: ...\n", "fast.so": b"1"}
    assert of(imported(files).Mine) == of(imported(files).Mine)
    assert of(imported(files).Mine) != of(imported(files | {"fast.so": b"2"}).Mine)


def test_installed_packages_by_their_version(tmp_path):
    folder = tmp_path / "site-packages"
    info = folder / "theirs-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "top_level.txt").write_text("theirs")
    code = (
        "import theirs; from clickgym.runner.identity import identity; "
        "print(identity((theirs.Mine, {})))"
    )
    digests = []
    for version, text in [("1.0", "a = 1"), ("1.0", "a = 2"), ("1.1", "a = 2")]:
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: theirs\nVersion: {version}\n")
        (folder / "theirs.py").write_text(text + "\nclass Mine: ...\n")
        environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        digests.append(done.stdout)
    assert digests[0] == digests[1] != digests[2]


def test_what_is_set_from_outside(imported):
    """A number, an array, a method."""
    mine, hashes = imported(FILES).Mine, set()
    for name, value in [("a", 1), ("c", 3.0), ("c", np.arange(3)), ("rank", lambda self, _: [0])]:
        setattr(mine, name, value)
        hashes.add(of(mine))
    assert len(hashes) == 4


def test_arguments_that_are_the_same():
    """A default, 1 and 1.0, a list and a tuple."""
    assert of(TopRank, delta=None) == of(TopRank)
    assert of(Random, given=[1, 2]) == of(Random, given=(1.0, 2.0)) != of(Random, given=[2, 1])


CELL = """
import numpy as np
from clickgym.agents import Agent
size, table = 3, np.arange(4)

def order(n):
    return list(range(n))

class Mine(Agent):
    '''An agent.'''
    c = 1

    def rank(self, observation):
        return [i + size for i in order(self.n_items)] if table[0] else None  # a comment
"""


def in_notebook(text, name="Mine"):
    """What a cell defines: neither the module nor a file has its source."""
    scope = {"__name__": "__main__"}
    exec(compile(text, "<stdin>", "exec"), scope)
    return scope[name]


def test_class_without_a_file():
    first = of(in_notebook(CELL))
    for old, new in [("# a comment", "# another"), ("size, table", "\n\nresults = 3\nsize, table")]:
        assert of(in_notebook(CELL.replace(old, new))) == first
    for old, new in [
        ("c = 1", "c = 2"),
        ("range(n)", "range(n)[::-1]"),
        ("= 3,", "= 4,"),
        ("arange(4)", "arange(5)"),
        ("(Agent)", "(Agent, dict)"),
        ("i +", "i -"),
    ]:
        assert of(in_notebook(CELL.replace(old, new))) != first, new


def test_functions_of_no_name():
    """Partials, closures, lambdas, bound methods."""

    def made(c, base=TopRank):
        def agent(**sizes):
            return base(**sizes, delta=c)

        return agent

    pairs = [
        (functools.partial(TopRank, delta=0.1), functools.partial(TopRank, delta=0.2)),
        (made(0.1), made(0.2)),
        (made(0.1), made(0.1, Random)),
        (lambda **sizes: TopRank(**sizes), lambda **sizes: Random(**sizes)),
    ]
    for first, second in pairs:
        assert of(first) != of(second)
    assert of(made(0.1)) == of(made(0.1))
    assert of(functools.partial(TopRank, delta=0.1)) == of(functools.partial(TopRank, delta=0.1))


# ------------------------------------------------------------------------------ instances


def toy(last=0.1, name="toy", **changed):
    models = {"PBM": CLICK_MODELS["PBM"](attraction=[0.5, last], examination=[1.0, 0.5])}
    return Instance(name, models, 2, **changed)


def test_instance_by_content(tmp_path):
    """A file, an object and a name are alike; who fitted it and when does not matter."""
    for name in ("yandex-9", "uniform:seed=3", "linear:seed=2", "two-kinds"):
        instance = load_instance(name)
        instance.save(tmp_path / "file.json")
        assert identity(load_instance(tmp_path / "file.json")) == identity(instance)
    first = identity(toy())
    assert identity(toy(name="other", description="fitted on Monday")) == first
    assert identity(toy(0.2)) != first
    assert identity(toy(initial_ranking=[1, 0])) != first
    assert identity(load_instance("uniform:seed=3")) != identity(load_instance("uniform:seed=4"))


def test_instance_of_a_family_beside_own_click_models():
    """A family holds all click models that this process knows."""
    first = identity(load_instance("uniform:seed=3"))

    class Own(CLICK_MODELS["CM"]):
        short = "Own"

    assert "Own" in load_instance("uniform:seed=3").models
    assert identity(load_instance("uniform:seed=3")) == first


def test_own_click_model_within_others(imported):
    """Its code counts where users change, too."""
    text = "from clickgym.envs import CascadeModel\nclass Part(CascadeModel):\n    short = 'Part'\n"
    hashes = []
    for more in ("", "", "    more = 1\n"):
        part = imported({"part.py": text + more}, "part").Part
        users = PiecewiseStationaryModel([part([0.5, 0.2], 1), part([0.2, 0.5], 1)], [0, 10])
        hashes.append(of(users))
        Users.classes.pop("Part")
    assert hashes[0] == hashes[1] != hashes[2]


def test_instances_and_files_among_arguments(tmp_path):
    path = tmp_path / "users.json"

    def all_three(last):
        toy(last).save(path)
        (tmp_path / "model.zip").write_text(str(last))
        env = identity(env_maker(("PBMRank-v0", {"instance": str(path)})))
        return env, of(Random, data=path), of(Random, model=str(tmp_path / "model"))

    assert all_three(0.1) == all_three(0.1)
    assert not set(all_three(0.1)) & set(all_three(0.2))


def test_file_that_a_default_names(tmp_path):
    path = tmp_path / "lists.json"

    def maker(n_items, n_positions, lists=str(path), seed=None):
        return Random(n_items, n_positions, seed=seed)

    path.write_text("[1]", encoding="utf-8")
    first = of(maker)
    assert of(maker) == first
    path.write_text("[2]", encoding="utf-8")
    assert of(maker) != first


@pytest.mark.parametrize(
    "given", ["{}", "{}.npy", {"a": ["{}.npy"]}, types.SimpleNamespace(a="{}")]
)
def test_files_and_folders_that_arguments_name(tmp_path, monkeypatch, given):
    """Also within a dict or another object, and relative to the home of a user."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "kept").mkdir()
    given = eval(repr(given).replace("{}", "~/kept"), {"namespace": types.SimpleNamespace})
    hashes = []
    for text in ("1", "1", "2"):
        (tmp_path / "kept" / "a.txt").write_text(text)
        (tmp_path / "kept.npy").write_text(text)
        hashes.append(of(Random, given=given))
    assert hashes[0] == hashes[1] != hashes[2]


# ------------------------------------------------------------------------------ environments


SHOP = """
import gymnasium as gym
class Shop(gym.Env):
    rate = RATE
gym.register(id="Shop-v0", entry_point="shop:Shop")
"""


def test_environments(imported):
    shops = []
    for rate in ("0.1", "0.1", "0.2"):
        gym.registry.pop("Shop-v0", None)
        imported({"shop.py": SHOP.replace("RATE", rate)}, "shop")
        shops.append(identity(env_maker("Shop-v0")))
    assert shops[0] == shops[1] != shops[2]
    specs = ["PBMRank-v0", "CMRank-v0", "PBMRank-v0:cutoff=2", "ContextualPBMRank-v0"]
    assert len({identity(env_maker(spec)) for spec in specs}) == len(specs)
    model = CLICK_MODELS["PBM"]
    users = [model([0.5, last], [1.0, 0.5]) for last in (0.1, 0.1, 0.2)]
    first, same, other = (of(user) for user in users)
    assert first == same != other


# ------------------------------------------------------------------------------ objects


class Model:
    """Something that was trained."""

    def __init__(self, **values):
        self.__dict__.update(values)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (np.arange(3), np.arange(3.0)),
        (np.arange(4), np.arange(4).reshape(2, 2)),
        (np.ma.array([1, 2], mask=[0, 1]), np.ma.array([1, 2], mask=[0, 0])),
        (np.array([{"a": 1}]), np.array([{"a": 2}])),
        (np.float64(0.1), np.float32(0.1)),
        (np.dtype(float), np.dtype(int)),
        (0.1, 0.2),
        (1, True),
        ([1, 2], [2, 1]),
        ({"a": 1}, {"a": 2}),
        ({1, 2}, {1, 3}),
        (Model(weights=np.arange(3)), Model(weights=np.arange(1, 4))),
        (Model(inner=Model(a=[{"b": 1}])), Model(inner=Model(a=[{"b": 2}]))),
        (np.random.default_rng(1), np.random.default_rng(2)),
        (gym.spaces.Box(0, 1, (2,)), gym.spaces.Box(0, 2, (2,))),
        (gym.spaces.Discrete, gym.spaces.Box),
    ],
)
def test_objects_among_arguments(first, second):
    assert of(Random, given=first) == of(Random, given=copy.deepcopy(first))
    assert of(Random, given=first) != of(Random, given=second)


def test_copies_and_shared_parts_are_alike():
    """Pickles of these differ."""
    part = [np.arange(3)]
    assert of(Random, given=[part, part]) == of(Random, given=[part, copy.deepcopy(part)])
    loop = Model()
    loop.itself = loop
    assert of(Random, given=loop) == of(Random, given=copy.deepcopy(loop))


def test_space_that_was_drawn_from():
    space = gym.spaces.Box(0, 1, (2,))
    first = of(Random, given=space)
    space.seed(3)
    assert of(Random, given=space) == first


@pytest.mark.parametrize("given", [threading.Lock(), (entry for entry in ()), sys.stdout])
def test_what_has_no_content(given):
    with pytest.raises(NoIdentityError, match="has no content to compare"):
        of(Random, given=Model(held=given))


def test_learners_of_libraries():
    """An adopted class counts by the version of its library, a spec and a pair are alike."""
    pytest.importorskip("stable_baselines3")
    names = ["PPO", "stable_baselines3:PPO", "stable_baselines3:A2C", "TopRank:delta=0.1"]
    assert len({identity(agent_maker(name)) for name in names}) == len(names)
    assert identity(agent_maker("TopRank:delta=0.1")) == of(TopRank, delta=0.1)


def test_module_of_no_file():
    module = types.ModuleType("of_no_file")
    exec("class Mine:\n    a = 1\n", vars(module))
    first = of(module.Mine)
    exec("class Mine:\n    a = 2\n", vars(module))
    assert of(module.Mine) != first


HERE = """
from clickgym.agents import Random
from clickgym.envs import load_instance
from clickgym.runner.identity import identity

def identities():
    things = [load_instance("uniform:seed=3"), (Random, {"given": {"a", "b", "c"}}), (mine(3), {})]
    return [identity(thing) for thing in things]

def mine(size):
    class Mine(Random):
        def rank(self, observation):
            return super().rank(observation)[:size] if observation in {"a", "b", "c"} else None

    return Mine
"""


def test_equal_in_another_process():
    """Sets have another order there."""
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    code = HERE + "print(*identities())"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == in_notebook(HERE, "identities")()
