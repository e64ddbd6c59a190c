"""Tests that wrong input causes an error of one line: in commands, in calls, and in every argument
of models and agents.
"""

from __future__ import annotations

import inspect
import math
import re
import shutil
from functools import partial

import gymnasium as gym
import numpy as np
import pytest

import clickgym
from clickgym import agents, envs, logs
from clickgym.cli import main
from clickgym.envs import CLICK_MODELS, ClickEnv, ClickVectorEnv, PositionBasedModel
from tests.helpers.click_stories import make_model
from tests.helpers.registries import CLICK_AGENTS, CONTEXTUAL_AGENTS
from tests.reference_agents.registry import edges_of

MODEL = PositionBasedModel([0.5, 0.4, 0.3, 0.2], [1.0, 0.6])
SIZES = {"n_items": 4, "n_positions": 2}

# ------------------------------------------------------------ commands

LONG = '{"model": "CM", "attraction": [0.5, 0.4], "n_positions": 3}'


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder with results, instances and an agent, which each test copies."""
    folder = tmp_path_factory.mktemp("prepared")
    clickgym.sweep(["PBMRank-v0"], ["Random"], 100, 2, out=folder / "finished", n_jobs=1)
    (folder / "other").mkdir()
    (folder / "other" / "thesis.txt").write_text("precious")
    (folder / "file").write_text("")
    metrics = "builtin = Metric('', print)\nzero = Metric('', lambda *session: 0.0)\n"
    metrics = f"from clickgym.runner import Metric, sweep\n{metrics}"
    (folder / "clumsy.py").write_text(f"class NoAgent: ...\n{metrics}")
    (folder / "lacks.py").write_text("import not_installed")
    (folder / "ends.py").write_text("import sys\nsys.exit('usage: ends FILE')\n")
    (folder / "long.json").write_text(LONG)
    return folder


@pytest.fixture
def workplace(prepared, tmp_path, monkeypatch):
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


RUN = "run PBMRank-v0 --agents Random --horizon 100 --runs 2 --out new"
RUNS = {  # the first word of a line below
    "AGENT": RUN.replace("Random", "{}"),
    "ENV": RUN.replace("PBMRank-v0", "{}"),
    "INSTANCE": RUN + " --instances {}",
    "OUT": RUN.replace("new", "{}"),
    "RUN": RUN + " {}",
}
COMMANDS = """
lst                               No such command 'lst'. Did you mean 'list'?
report nowhere                    nowhere does not exist
report other                      other is not a results folder
RUN --horizn 5                    --horizon
RUN --runs 0                      runs is 0; expected a positive integer
RUN --metrics any_click@5         unknown metric 'any_click@5'; did you mean 'any_click'?
RUN --metrics clumsy:share        the module 'clumsy' has no 'share' (available: NoAgent,
RUN --metrics clumsy:builtin      whose kernel is a function, as in Metric(
report finished --measure mine    unknown measure 'mine' (available: regret, reward)
RUN --measure ndcg                --measure ndcg needs --metrics ndcg
RUN --measure rewards             unknown measure 'rewards'; did you mean 'reward'?
RUN --metrics ndcg@0              metric is 'ndcg@0'; expected ndcg@k with an integer k
ENV PBMRnk-v0                     unknown environment 'PBMRnk-v0'; did you mean 'PBMRank-v0'?
ENV CartPole-v1                   plays only environments in which an action is a list of items
ENV PBMRank-v0:rewrd=clicks       unexpected keyword argument 'rewrd'; did you mean 'reward'?
ENV PBMRank-v0:max_episode_step=9   did you mean 'max_episode_steps'?
ENV PBMRank-v0:n_items=20         write instance="uniform:n_items=20"
ENV PBMRank-v0:n_positions=11     n_positions is 11, but there are only n_items = 10 items
AGENT Batchrank                   unknown agent 'Batchrank'; did you mean 'BatchRank'?
AGENT TRPO                        name it with its library, as sb3_contrib:TRPO
AGENT CascadeTS:feedbak=x         unknown hyperparameter 'feedbak'; did you mean 'feedback'?
AGENT EpsilonGreedy:epsilon=2     epsilon is 2; expected a probability
AGENT EpsilonGreedy:epsilon=1,epsilon=0   expected key=value once for each key
AGENT mine=TopRank mine=Random    two agents have the label 'mine'
AGENT no_module.py:MyAgent        did you mean 'no_module:MyAgent'?
AGENT mine:clumsy:NoAgent          did you mean 'mine=clumsy:NoAgent'?
AGENT FrozenPolicy                FrozenPolicy requires model: pass model=
AGENT clumsy:NoAgent              is neither a subclass of clickgym.agents.Agent
AGENT lacks:MyAgent               'lacks' cannot be imported: ModuleNotFoundError
AGENT ends:MyAgent                'ends' cannot be imported: its import parses the command line
INSTANCE yandex-9935              unknown instance 'yandex-9935'; did you mean 'yandex-99357'?
run CascadeMDPRank-v0 -a Random -i habits --horizon 9   did you mean 'habit'? (available: clickbait,
run tests.helpers.news:FrontPage-v0 -a Random -i habit --horizon 9   it has no instances
INSTANCE lon.json                 file lon.json does not exist; did you mean 'long.json'?
INSTANCE other                    instance 'other' is a folder; name its files, as in other/*.json
fit file --model PBM --out x.json --columns sid=session   the wrong way round; expected session=sid
fit fil --model PBM --out x.json  fil: no such file; did you mean 'file'?
INSTANCE uniform:n_item=3         n_item: unknown argument; did you mean 'n_items'?
ENV PBMRank-v0:instance=uniform:seed=3,gap=1   write instance="uniform:seed=3,gap=1"
run ContextualPBMRank-v0:users=test -a Random -i personal   --instances personal:users=test
INSTANCE long.json                n_positions is 3, but there are only n_items = 2 items
OUT file                          file cannot be a folder, because it or a part of its path
""".strip().splitlines()


@pytest.mark.parametrize("line", COMMANDS)
def test_command(workplace, capsys, line):
    """One line on standard error names the mistake, and nothing is written."""
    first, *rest = re.split("  +", line)[0].split()
    words = RUNS[first].format(" ".join(rest)) if first in RUNS else " ".join([first, *rest])
    before = files_of(workplace)
    assert main(words.split()) == 2
    out, err = capsys.readouterr()
    assert re.split("  +", line)[1] in err
    assert err.startswith("clickgym: ")
    assert err.count("\n") == 1
    assert out == ""
    assert files_of(workplace) == before


def files_of(folder):
    files = [file for file in folder.rglob("*") if "__pycache__" not in file.parts]
    return {file: file.stat().st_mtime_ns for file in files}


# ------------------------------------------------------------ calls


def batch_rank():
    return clickgym.make_agent("BatchRank", ClickEnv(MODEL), horizon=100, seed=0)


def waiting(agent):
    agent.update(None, [0, 1], [0, 0])


def learning_twice(agent):
    ranking = agent.rank()
    for _ in range(2):
        agent.update(None, ranking, [0, 0])


def linear():
    return agents.C2UCB(4, 2, n_features=3)


def step_of_streams(lists):
    streams = ClickVectorEnv(MODEL, 2)
    streams.reset()
    streams.step(lists)


CASCADE = envs.CascadeModel([0.5] * 4, 2)
LOG = logs.ClickLog([[0, 1]] * 2, [[1, 0], [0, 0]], [0, 0], ("a", "b"), ("q",))
ROW = {"session": ["a"], "position": [2], "item": ["x"], "clicked": [0]}
make_agent, run, sweep = clickgym.make_agent, clickgym.run, clickgym.sweep
short = partial(sweep, horizon=9, runs=1, out="new")
CALLS = {
    "BatchRank requires a horizon": lambda: make_agent("BatchRank", ClickEnv(MODEL)),
    "delta is 1; expected .* and < 1": lambda: agents.TopRank(4, 2, horizon=5, delta=1),
    "did you mean 'learning_rate'": lambda: agents.PPO(4, 3, lr=0.1),
    "n_steps is 0": lambda: short(["PBMRank-v0"], ["PPO:n_steps=0"]),
    "no attribute 'Random'; use clickgym.agents.Random": lambda: clickgym.Random,
    "use stable_baselines3.PPO": lambda: agents.PPO("MlpPolicy", ClickEnv(MODEL)),
    r"checkpoints\[0\] is 10": lambda: run(batch_rank(), ClickEnv(MODEL), 9, checkpoints=[10]),
    "but the environment has 10": lambda: run(batch_rank(), "PBMRank-v0", 9),
    "n_jobs is 0; expected a number of": lambda: short(["PBMRank-v0"], ["Random"], n_jobs=0),
    "UniRank: leave out horizon, which clickgym passes": lambda: run(
        "UniRank:horizon=9", "PBMRank-v0", 9
    ),
    "source is empty; pass at least one folder": lambda: clickgym.Results([]),
    "expected a list of environments": lambda: short("PBMRank-v0", ["Random"]),
    "two instances have the name 'yandex-9'; put a label": lambda: short(
        ["PBMRank-v0"], ["Random"], instances=["yandex-9", "yandex-9"]
    ),
    "no list is waiting for clicks": lambda: waiting(agents.TopRank(4, 2, horizon=5)),
    "has no 'GivinUp'; did you mean 'GivingUp'": lambda: make_agent(
        "tests.runner.test_errors:GivinUp", ClickEnv(MODEL)
    ),
    "call rank before each update": lambda: learning_twice(agents.TopRank(4, 2, horizon=5)),
    r"features has shape \(2, 1\)": lambda: linear().rank({"features": np.zeros((2, 1))}),
    "CascadeVI ranks by .*those of CascadeMDPRank": lambda: run("CascadeVI", "PBMRank-v0", 9),
    # users
    "unknown click model 'PMB'; did you mean 'PBM'": lambda: ClickEnv("PMB"),
    'or users, not both; .* write instance="personal:seed=9,users=test"': lambda: gym.make(
        "ContextualCMRank-v0", instance="personal:seed=9", users="test"
    ),
    "write vector_kwargs=": lambda: gym.make_vec("CMRank-v0", 2, "sync", autoreset_mode="Disabled"),
    "attraction, examination; missing: exam": lambda: ClickEnv("PBM", attraction=[0.5]),
    "no Contextual environment, .* attraction": lambda: ClickEnv("CascadeMDP", form="Contextual"),
    "'shipped' stands for several": lambda: gym.make("PBMRank-v0", instance="shipped"),
    "does not define the reward 'satisfaction'": lambda: ClickEnv(MODEL, "satisfaction"),
    "expected a list of 2 or more click models": lambda: envs.MixtureModel([MODEL], [1.0]),
    "numbers that add up to 1": lambda: envs.MixtureModel([MODEL, CASCADE], [0.5, 0.6]),
    "expected increasing steps": lambda: envs.PiecewiseStationaryModel([MODEL] * 2, [0, 0]),
    "candidates change in every session": lambda: gym.make(
        "ContextualPBMRank-v0", reference=[0, 1]
    ),
    # streams and wrappers
    r"shape \(2,\); expected \(num_envs, n_positions\) = \(2, 2\)": lambda: step_of_streams([0, 1]),
    "dtype float64; expected integer item ids": lambda: step_of_streams([[0.0, 1.0]] * 2),
    "has no episodes of a fixed length; expected": lambda: envs.EpisodeCounts(ClickEnv(MODEL)),
    # logs
    "unknown query 'p' .available: q": lambda: LOG.of_query("p"),
    "PBMEstimator is not fitted; call fit": lambda: logs.PBMEstimator().log_likelihood(LOG),
    "expected 2 or more, to hold some out": lambda: logs.fit_models(LOG[[0]], ["PBM"]),
    "source is empty; pass at least one file": lambda: logs.read_log([]),
    "has no rows": lambda: logs.read_log({name: [] for name in ROW}),
    "item and query are both read from the column 'query'": lambda: logs.read_log(
        ROW, columns={"item": "query"}
    ),
    "positions of session 'a' begin at 2, and 1 of 1 sessions do not begin at 0 or 1": lambda: (
        logs.read_log({**ROW, "query": ["q"]})
    ),
    "items have features, which a click log": lambda: logs.record(
        linear(), gym.make("ContextualPBMRank-v0"), 9
    ),
}


@pytest.mark.parametrize("message", CALLS)
def test_call(workplace, message):
    if message in ("did you mean 'learning_rate'", "n_steps is 0", "use stable_baselines3.PPO"):
        pytest.importorskip("stable_baselines3")
    with pytest.raises((ValueError, TypeError, AttributeError), match=message) as error:
        CALLS[message]()
    assert "\n" not in str(error.value)
    assert not (workplace / "new").exists()


# ------------------------------------------------------------ arguments

SHAPES = {"L": [0.5, 0.4, 0.3, 0.2], "K": [1.0, 0.6], "KK": [[1.0, 0.0], [0.5, 0.9]], "": 0.5}
SIZED = {"ranking": [0, 1], "initial": [2, 1], "n_features": 3, "position_order": [1, 0]}


def recipes():
    """Constructors and functions by name, each with valid arguments."""
    for name, model in CLICK_MODELS.items():
        made = make_model(model, 4, 2, np.random.default_rng(0).random)
        yield name, model, {key: value for key, value in made.to_dict().items() if key != "model"}
    for name, agent in (CLICK_AGENTS | CONTEXTUAL_AGENTS).items():
        arguments = dict(SIZES)
        for parameter in list(inspect.signature(agent).parameters.values())[2:]:
            value = right(agent, parameter)
            if value is not None:
                arguments[parameter.name] = value
        yield name, agent, arguments
    session = {"reward": "clicks", "cutoff": 1, "reference": [1, 0], "n_positions": 2}
    yield "ClickEnv", ClickEnv, {"model": MODEL, **session}
    vector = {"num_envs": 2, "max_episode_steps": 5, "autoreset_mode": "SameStep"}
    yield "ClickVectorEnv", ClickVectorEnv, {"model": MODEL, **vector, **session}
    yield "RankedList", envs.RankedList, SIZES
    yield "ItemByItem", envs.ItemByItem, {"env": ClickEnv(MODEL)}
    settings = {"horizon": 4, "seed": 0, "checkpoints": [2], "engine": "python"}
    yield "run", run, {"agent": "Random", "env": ClickEnv(MODEL), **settings, "metrics": ["ndcg"]}


def right(agent, parameter):
    """A valid value of an agent's hyperparameter: from a table, from its reference, or the
    default; None if the default is None.
    """
    if parameter.name == "examination":
        return SHAPES["KK" if agent.__name__.startswith("UBM") else "K"]
    tried = edges_of(agent.__name__, parameter.name) or [parameter.default]
    return (SIZED | {"seed": 0}).get(parameter.name, tried[0])


WRONG = {
    bool: [0, None, "true"],
    int: [True, 0.5, "3", -1],
    float: [True, "3", math.nan, 1e101],
    str: [3, "x"],
    list: [None, "abc", [], [[1], [1, 2]], ["3"], [math.nan]],
}


TAKEN = [("checkpoints", []), ("metrics", []), ("max_episode_steps", -1)]
"""Values that look wrong but are accepted."""


def refusal(call):
    """Return why a call does not raise the expected error of one line, or None if it does."""
    try:
        call()
    except (ValueError, TypeError) as error:
        return None if "\n" not in str(error) else str(error)
    except Exception as error:
        return repr(error)
    return "accepted"


@pytest.mark.parametrize(
    ("function", "arguments"),
    [pytest.param(function, arguments, id=name) for name, function, arguments in recipes()],
)
def test_argument(function, arguments):
    """Every argument rejects values of a wrong kind and accepts valid ones, including those of
    NumPy types.
    """
    numpy_types = {bool: np.bool_, int: np.int64, float: np.float64, list: np.array}
    as_numpy = {
        name: numpy_types.get(type(value), lambda value: value)(value)
        for name, value in arguments.items()
        if name != "metrics"
    }
    function(**arguments)
    function(**arguments | as_numpy)
    faults = []
    for name, value in arguments.items():
        parameter = inspect.signature(function).parameters[name]
        may_be_none = "None" in str(parameter.annotation) or parameter.default is None
        for wrong in WRONG.get(type(value), []):
            if (wrong is None and may_be_none) or (name, wrong) in TAKEN:
                continue
            fault = refusal(lambda name=name, wrong=wrong: function(**arguments | {name: wrong}))
            if fault is not None:
                faults.append(f"{name}={wrong!r}: {fault}")
    assert not faults, "\n".join(faults)
