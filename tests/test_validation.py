"""Every public argument refuses what it cannot mean: the walk over all constructors and functions,
by their signatures.

A recipe says how each is called rightly. Then each argument is replaced by values of a wrong kind:
True, 0.5 for an integer, "3", nan, infinity, -1, None, a list for a number, 10³⁰, an entry of a
wrong kind in an array. The call must end in a ValueError or a TypeError whose message contains the
argument's name. What has no recipe fails `test_every_public_name_is_walked`.
"""

from __future__ import annotations

import inspect
import linecache
import math
import re
import traceback
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cache, partial
from importlib.util import find_spec
from io import StringIO
from pathlib import Path, PurePosixPath
from threading import Lock
from types import SimpleNamespace
from typing import Any, NamedTuple
from uuid import UUID

import gymnasium as gym
import numpy as np
import polars
import pytest
from numpy.random import SeedSequence
from scipy import sparse

import clickgym
import clickgym_logs as logs
from clickgym import agents, envs
from clickgym.agents import AGENTS, CONTEXTUAL_AGENTS, LEARNERS, Agent, FrozenPolicy
from clickgym.core.checks import short
from clickgym.envs import CLICK_MODELS, ClickEnv, ClickVectorEnv, PositionBasedModel
from clickgym.envs.instances.instance import FAMILIES
from clickgym.envs.scan import best_scan
from clickgym.envs.spaces import BatchedRankedList
from clickgym.envs.wrappers.regret import Meter
from clickgym_logs.estimation.estimator import MODEL_ESTIMATORS

HUGE = 10**30

# ------------------------------------------------------------------------------------------------------- what is called

PBM = PositionBasedModel([0.5, 0.4, 0.3, 0.2], [1.0, 0.6])
LOG = logs.ClickLog(
    [[0, 1], [1, 0]] * 6,
    [[1, 0], [0, 1]] * 6,
    [0] * 12,
    ("a", "b"),
    ("q",),
    propensities=[[0.5] * 2] * 12,
)
SIZES = {"n_items": 4, "n_positions": 2}
VALUES: dict[str, Any] = {  # what a parameter of a click model is, by its shape
    "L": [0.5, 0.4, 0.3, 0.2],
    "K": [1.0, 0.6],
    "KK": [[1.0, 0.0], [0.5, 0.9]],
    "": 0.5,
}
OF_AGENTS: dict[str, Any] = {
    "seed": 0,
    "horizon": 100,
    "examination": [1.0, 0.6],
    "ranking": [0, 1],
    "initial": [2, 1],
    "n_features": 3,
    "position_order": [1, 0],
    "inflation": 0.5,
    "max_batches": 2,
}
"""What neither a default nor a search space says of hyper-parameters."""
RATINGS = {
    "users": [0, 0, 0, 0, 1, 1, 1, 1],
    "items": [0, 1, 2, 3, 0, 1, 2, 3],
    "stars": [0.0, 1.0, 2.0, 0.0, 2.0, 1.0, 0.0, 1.0],
    "user_labels": ("p", "q"),
    "item_labels": ("a", "b", "c", "d"),
}


class Clumsy(Agent):
    """A plain agent with nothing to be checked."""

    def __init__(self, n_items, n_positions, *, seed=None):
        self.n_items, self.n_positions = n_items, n_positions

    def rank(self, observation):
        return np.arange(self.n_positions)

    def update(self, observation, ranking, clicks, reward):
        pass


def scalar() -> ClickEnv:
    return ClickEnv(PBM)


def vector() -> ClickVectorEnv:
    return ClickVectorEnv(PBM, 2, autoreset_mode="SameStep")


def policy(observation: Any) -> list[int]:
    return [0, 0]


@cache
def contextual_log() -> logs.ClickLog:
    """Sessions that `replay` takes."""
    env = gym.make(
        "ContextualUBMRank-v0",
        instance="linear:n_items=3,n_positions=3,n_features=3,n_pool=5,n_users=2",
    )
    return logs.record(clickgym.make_agent("Random", env, seed=0), env, 5, seed=0)


MDP = envs.CascadeMDP([[0.5, 0.4, 0.3]] * 2, [[[0.5, 0.5]] * 4] * 2, n_positions=2)


class Call(NamedTuple):
    """How something is called rightly."""

    function: Callable[..., Any]
    arguments: dict[str, Any]


def right(agent: type[agents.CompiledAgent], name: str) -> Any:
    """A hyper-parameter that an agent takes: of the table, by default, or the first that may be
    searched.
    """
    default = inspect.signature(agent).parameters[name].default
    if name in OF_AGENTS or default is not None:
        return OF_AGENTS.get(name, default)
    searched = agent.search_space[name]
    return (
        searched.low
        if isinstance(searched, agents.Range)
        else next(value for value in searched if value is not None)
    )


def recipes() -> dict[Any, Call]:
    """Every public class and function that takes arguments, by what it is."""
    calls: dict[Any, Call] = {}

    def add(function: Callable[..., Any], **arguments: Any) -> None:
        calls[function] = Call(function, arguments)

    for model in CLICK_MODELS.values():
        sizes = {"n_positions": 2} if "n_positions" in inspect.signature(model).parameters else {}
        values = {name: VALUES[shape] for name, shape in model.shapes.items()}
        if "trust_irrelevant" in values:
            values["trust_irrelevant"] = [0.5, 0.5]
        add(model, **values, **sizes)
    add(envs.PiecewiseStationaryModel, models=[PBM, PBM], starts=[0, 5])
    items = [[0.5, 0.0], [0.0, 0.5], [0.2, 0.2], [0.1, 0.3]]
    candidates = [[0, 1, 2, 3], [3, 2, 1, 0]]
    contextual: dict[str, Any] = {
        "base": PBM,
        "items": items,
        "users": [[0.3], [0.1]],
        "candidates": candidates,
    }
    add(envs.LinearModel, theta=[0.5, 0.5, 0.5], **contextual)
    add(envs.LabelledModel, attraction=[[0.1, 0.2, 0.3, 0.4]] * 2, **contextual)
    spoils = [[[1, 0], [0, 1], [1, 0], [1, 0], [1, 0]], [[0, 1]] * 5]
    add(
        envs.CascadeMDP,
        attraction=[[0.5, 0.4, 0.3, 0.2], [0.1, 0.1, 0.1, 0.1]],
        transition=spoils,
        first=[1, 0],
        click_rewards=[[1.0, 0.5, 1.0, 1.0]] * 2,
        mean_sessions=5.0,
        n_sessions=3,
        n_positions=2,
    )
    add(envs.Instance, name="toy", models={"PBM": PBM}, n_positions=2, initial_ranking=[3, 2, 1, 0])
    add(envs.RankedList, **SIZES, seed=0)
    add(BatchedRankedList, n=2, **SIZES, seed=0)
    calls["check_ranking"] = Call(
        partial(envs.check_ranking, **SIZES), {"ranking": [1, 0]}
    )  # the sizes are its caller's
    one_session = {
        "reward": "clicks",
        "cutoff": 1,
        "reference": [1, 0],
        "render_mode": "ansi",
        "n_positions": 2,
    }
    add(ClickEnv, model=PBM, **one_session)
    add(
        ClickVectorEnv,
        model=PBM,
        num_envs=2,
        max_episode_steps=5,
        autoreset_mode="SameStep",
        **one_session,
    )
    add(envs.load_instance, name="yandex-9982")
    for wrapper in (envs.LehmerAction, envs.ScoresAction, envs.EnumeratedAction):
        add(wrapper, env=scalar(), items=[3, 1, 0, 2])
    for wrapper in (envs.LehmerVectorAction, envs.ScoresVectorAction, envs.EnumeratedVectorAction):
        add(wrapper, env=vector(), items=[3, 1, 0, 2])
    add(envs.ItemByItem, env=scalar(), items=[3, 1, 0, 2], across_lists=True)
    add(envs.ItemByItemVector, env=vector(), items=[3, 1, 0, 2], across_lists=True)
    add(envs.RecordRegret, env=scalar(), checkpoints=[1, 5])
    add(envs.RecordVectorRegret, env=vector(), checkpoints=[1, 5])
    add(Meter, checkpoints=[1, 5], n_metrics=2)
    for agent in (AGENTS | CONTEXTUAL_AGENTS).values():
        parameters = inspect.signature(agent).parameters.items()
        named = [
            name
            for name, parameter in parameters
            if name not in SIZES and parameter.kind is not parameter.VAR_KEYWORD
        ]
        known = {name: right(agent, name) for name in named}
        if "examination" in known and agent.told["examination"] == "browsing":
            known["examination"] = VALUES["KK"]
        add(agent, **SIZES, **known)
    rewards = [[1.0, 0.5, 1.0, 1.0]] * 2
    add(
        agents.CascadeVI,
        **SIZES,
        n_states=2,
        mean_sessions=5.0,
        click_rewards=rewards,
        bonus=0.5,
        seed=0,
    )
    add(agents.Range, low=0.5, high=2.0, log=True)
    add(
        FrozenPolicy,
        **SIZES,
        model=policy,
        actions="codes",
        items=[3, 1, 0, 2],
        deterministic=True,
        seed=0,
    )
    if find_spec("sb3_contrib") is not None:
        for learner in LEARNERS.values():
            add(learner, **SIZES, seed=0, **learner.defaults)
    add(
        logs.ClickLog,
        items=[[0, 1]],
        clicks=[[1, 0]],
        queries=[0],
        item_labels=("a", "b"),
        query_labels=("q",),
        propensities=[[0.5, 0.5]],
        list_propensities=[0.5],
        context=[[[0.5], [0.1]]],
        off_list_clicks=1,
        times=[3.5],
    )
    add(logs.Ratings, **RATINGS)
    add(logs.ListPolicy, lists=[[0, 1], [1, 0]], probabilities=[0.5, 0.5])
    add(logs.FixedPolicy, ranking=[1, 0])
    add(logs.PlackettLucePolicy, scores=[0.5, 0.0, -1.0], n_positions=2, items=[2, 0, 1])
    add(logs.UniformPolicy, items=[0, 1, 2], n_positions=2)
    calls["UniformPolicy", "of a number"] = Call(logs.UniformPolicy, {"items": 3, "n_positions": 2})
    add(logs.ItemPositionPolicy, action_dist=[[0.5, 0.5], [0.5, 0.5]], items=[1, 0])
    add(
        logs.MixturePolicy,
        policies=[logs.FixedPolicy([1, 0]), logs.UniformPolicy(2, 2)],
        probabilities=[0.5, 0.5],
    )
    add(logs.TruncatedSVD, n_components=2, n_iterations=1, seed=0)
    for estimator in MODEL_ESTIMATORS.values():
        known = {"iterations": 2, "tol": 0.1, "per_query": False, "method": "em"}
        add(estimator, **{name: known[name] for name in inspect.signature(estimator).parameters})
    add(logs.hold_out, log=LOG, share=0.5, seed=0)
    fit: dict[str, Any] = {
        "n_items": 2,
        "test_share": 0.2,
        "iterations": 2,
        "tol": 0.5,
        "per_query": False,
        "seed": 0,
        "bootstrap": 2,
    }
    add(logs.fit_models, log=LOG, models=["PBM"], queries=["q"], **fit)
    add(
        logs.query_instance,
        log=LOG,
        query="q",
        estimators={"CM": logs.CMEstimator().fit(LOG)},
        n_items=2,
    )
    bootstrap = {"bootstrap": 2, "level": 0.9, "seed": 0}
    what: dict[str, Any] = {"estimator": "item-position", "reward": "clicks", "cutoff": 1}
    target = logs.UniformPolicy(2, 2)
    add(logs.evaluate, log=LOG, target=target, **what, **bootstrap)
    add(logs.contributions, log=LOG, target=target, **what)
    add(
        logs.compare,
        log=LOG,
        policies="uniform",
        estimators=["item-position"],
        reward="clicks",
        cutoff=1,
        **bootstrap,
    )
    add(logs.label_attraction, labels=[0.0, 1.0], floor=0.1)
    data: dict[str, Any] = {
        "n_items": 3,
        "n_positions": 2,
        "linear": True,
        "floor": 0.1,
        "dimension": 1,
        "seed": 0,
    }
    add(
        logs.contextual_instance,
        ratings=logs.Ratings(**RATINGS),
        models=["PBM"],
        most_rated=4,
        **data,
    )
    session = {"horizon": 4, "seed": 0, "checkpoints": [2], "engine": "python", "metrics": ["ndcg"]}
    add(best_scan, gain=[0.6, 0.5, 0.1], continuation=[0.4, 1.0, 0.2], n_chosen=2, terminal=0.5)
    calls["relabelled"] = Call(PBM.relabelled, {"order": [3, 1, 0, 2]})
    calls["list_value"] = Call(MDP.list_value, {"state": 1, "ranking": [1, 0], "value": [0.5, 0.2]})
    calls["worth"] = Call(MDP.worth, {"value": [0.5, 0.2]})
    calls["policy_value"] = Call(MDP.policy_value, {"lists": [[0, 1], [1, 0]]})
    calls["sample"] = Call(PBM.sample, {"ranking": [0, 1], "rng": np.random.default_rng(0)})
    calls["expected_reward"] = Call(
        PBM.expected_reward, {"ranking": [0, 1], "reward": "clicks", "cutoff": 1}
    )
    add(logs.read_policy, spec="uniform", log=LOG, reward="clicks", cutoff=1)
    add(logs.empirical_policies, log=LOG)
    add(
        logs.check_models,
        log=LOG[np.arange(120) % 12],
        models=["PBM"],
        least_sessions=10,
        bootstrap=2,
        seed=0,
    )
    add(clickgym.run, agent=Clumsy(4, 2), env=scalar(), **session)
    sweep: dict[str, Any] = {
        "envs": ["PBMRank-v0"],
        "agents": ["Random"],
        "instances": ["yandex-9"],
    }
    add(clickgym.sweep, **sweep, runs=1, n_jobs=1, progress=False, **session)
    tune: dict[str, Any] = {
        "agent": "EpsilonGreedy",
        "envs": ["PBMRank-v0"],
        "instances": ["yandex-9"],
    }
    add(clickgym.tune, **tune, trials=8, horizon=4, runs=1, seed=0, n_jobs=1, progress=False)
    add(logs.record, agent=Clumsy(4, 2), env=scalar(), sessions=2, seed=0)
    add(logs.replay, agent=Clumsy(3, 2), log=contextual_log(), learn=False, seed=0)
    add(clickgym.make_agent, agent="TopRank", env=scalar(), horizon=10, seed=0)
    return calls


# Not walked, each with the reason.
ELSEWHERE = {
    "an interface, an error or a result, which nobody calls with numbers": {
        "Agent",
        "AgentError",
        "ClickModel",
        "CompiledAgent",
        "Comparison",
        "Decision",
        "ContextualAgent",
        "ContextualModel",
        "ConvergenceWarning",
        "Estimator",
        "Evaluation",
        "Fitted",
        "KernelError",
        "Learner",
        "Policy",
        "Result",
        "Simulability",
        "SessionError",
        "StateAgent",
        "Tuning",
        "Users",
    },
    "the library's algorithms call it: tests/agents/test_plackett_luce.py has its wrong arguments": {
        "PlackettLuceActorCritic"
    },
    "takes what ClickEnv takes": {"ContextualClickEnv", "ContextualClickVectorEnv"},
    "logs/tests/test_decide.py has their wrong arguments": {
        "decide",
        "decide_all",
        "write_decisions",
    },
    "takes names, files, or objects of its own": {
        "Results",
        "check_agent",
        "check_click_model",
        "entry",
        "kernel",
        "list_agents",
        "list_environments",
        "list_instances",
        "list_metrics",
        "read_log",
        "read_ratings",
        "read_yandex",
        "register",
        "sessions",
        "write_tidy",
    },
}


def public_names() -> dict[str, Any]:
    found = {
        name: getattr(module, name)
        for module in (clickgym, envs, agents, logs)
        for name in module.__all__
    }
    return {name: thing for name, thing in found.items() if callable(thing)}


# -------------------------------------------------------------------------------------------------------- what is wrong

NUMBERS = {
    "an integer": [
        True,
        0.5,
        "3",
        math.nan,
        math.inf,
        -1,
        None,
        [1],
        HUGE,
        np.True_,
        np.float64(0.5),
        b"3",
        1j,
    ],
    "a number": [True, "3", math.nan, math.inf, -1.0, None, [1.0], np.True_, b"3", 1j, 10**400],
    "a seed": [True, 0.5, "3", math.nan, -1, [1], 1j],
    "a horizon": [True, 0.5, "3", math.nan, math.inf, -1, None, [1], HUGE, 1e300],
    "a flag": ["false", 0, 1, None, 0.5, [True]],
    "a choice": [3, True, None, "x", ["clicks"]],
    "names": [3, "abc", ["x", "x"], [3], None],
}
HORIZONS = ("horizon",)
NAMES = ("metrics", "models", "queries", "estimators", "item_labels", "query_labels", "user_labels")
CHOICES = (
    "reward",
    "feedback",
    "engine",
    "actions",
    "protocol",
    "family",
    "method",
    "render_mode",
    "autoreset_mode",
    "estimator",
)


def kind_of(name: str, value: Any) -> str:
    """What an argument is, by its name and by a value that it takes."""
    if name == "seed":
        return "a seed"
    if name in HORIZONS:
        return "a horizon"
    if isinstance(value, str):
        return "a choice" if name in CHOICES else ""
    for kind, types in {"a flag": bool, "an integer": int, "a number": float}.items():
        if isinstance(value, types):
            return kind
    if isinstance(value, list | tuple) and all(isinstance(entry, str) for entry in value):
        return "names" if name in NAMES else ""
    if isinstance(value, list | tuple) and all(
        isinstance(entry, int | float | list) for entry in value
    ):
        return "an array"
    return ""


def last_entry(values: Any) -> tuple[int, ...]:
    """Where the last number of nested lists stands."""
    place = len(values) - 1
    return (place, *(last_entry(values[place]) if isinstance(values[place], list) else ()))


def replaced(values: Any, place: tuple[int, ...], entry: Any) -> Any:
    first, *rest = place
    inner = replaced(values[first], tuple(rest), entry) if rest else entry
    return [inner if number == first else value for number, value in enumerate(values)]


def wrong_arrays(values: Any) -> Iterator[Any]:
    """An array with a single wrong entry, or of a wrong kind or shape."""
    place = last_entry(values)
    number: Any = values
    for index in place:
        number = number[index]
    mistaken = [0.5, -1, HUGE] if isinstance(number, int) else [10**400]
    for entry in (True, "3", None, math.nan, math.inf, [0], 1j, b"1", *mistaken):
        yield replaced(values, place, entry)
    yield from (None, "abc", {1, 2}, object(), [], True, 7.5, [values, values, [values]])
    yield np.array(values).astype(bool)
    yield np.array(values).astype(str)


def is_taken(call: Call, name: str, value: Any) -> bool:
    """Whether a value that looks wrong is not: the argument may be None, or what its documentation
    says.
    """
    parameter = inspect.signature(call.function).parameters.get(name)
    if value is None:
        return parameter is not None and "None" in str(parameter.annotation)
    if isinstance(value, np.ndarray):
        return name == "clicks" and value.dtype == np.bool_  # a mask
    documented: dict[str, Any] = {
        "n_jobs": -1,
        "net_arch": [],
        "max_episode_steps": -1,
        "terminal": -1.0,
    }
    if call.function in (clickgym.run, clickgym.sweep):
        documented["checkpoints"] = []  # the horizon alone
    if (
        call.function in (logs.ClickLog, logs.ListPolicy)
        and name in ("items", "lists")
        and isinstance(value, list)
    ):
        return value[-1:] in ([[0, -1]], [[1, -1]])  # below the end of a list
    return (
        name in documented and type(value) is type(documented[name]) and value == documented[name]
    )


def walked() -> dict[tuple[Any, str], list[Any]]:
    """The arguments that are walked, each with its wrong values."""
    found: dict[tuple[Any, str], list[Any]] = {}
    for key, call in RECIPES.items():
        for name, value in call.arguments.items():
            kind = kind_of(name, value)
            if kind:
                wrong = list(wrong_arrays(value) if kind == "an array" else NUMBERS[kind])
                found[key, name] = [value for value in wrong if not is_taken(call, name, value)]
    return found


def name_of(key: Any) -> str:
    return " ".join(key) if isinstance(key, tuple) else getattr(key, "__name__", str(key))


def attempt(call: Callable[[], Any], name: str) -> str | None:
    """How a call with a wrong argument fails to be refused properly; None if it is."""
    try:
        call()
    except (ValueError, TypeError) as error:
        frame, _ = list(traceback.walk_tb(error.__traceback__))[-1]
        if "numpy" in frame.f_code.co_filename.split("clickgym")[-1]:
            return f"an error from inside NumPy: {error}"
        return (
            None
            if not name or re.search(rf"\b{name}\b", str(error))
            else f"{name} is not named: {error}"
        )
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "accepted"


RECIPES = recipes()
WALKED = walked()


# --------------------------------------------------------------------------------------------------------------- the walk


def test_every_public_name_is_walked():
    public = {name: thing for name, thing in public_names().items() if not name.startswith("_")}
    reached = {name_of(key) for key in RECIPES}
    elsewhere = set().union(*ELSEWHERE.values())
    missing = public.keys() - reached - elsewhere
    if find_spec("sb3_contrib") is None:
        missing -= {*LEARNERS}
    assert not missing, "a recipe is missing, or a reason why there is none"
    assert not elsewhere - public.keys() or elsewhere - public.keys() <= {
        "Estimator",
        "PlackettLuceActorCritic",
    }
    lacking = []
    for key, call in RECIPES.items():
        for name, parameter in inspect.signature(call.function).parameters.items():
            kind = re.search(r"\b(int|float|bool|ArrayLike|Seed)\b", str(parameter.annotation))
            known = (
                isinstance(call.function, partial)
                or parameter.kind is inspect.Parameter.VAR_KEYWORD
            )
            if kind and not known and name not in call.arguments:
                lacking.append(f"{name_of(key)}: {name}")
    assert not lacking, "a recipe lacks an argument"


@pytest.mark.parametrize("key", RECIPES, ids=name_of)
def test_what_is_right_is_taken_in_numpys_types_too(key):
    """Else the walk would prove nothing: a call might be refused for another argument."""
    call = RECIPES[key]
    call.function(**call.arguments)
    kinds = {name: kind_of(name, value) for name, value in call.arguments.items()}
    for integer, real in ((np.int64, np.float64), (np.uint8, np.float32)):
        made = {}
        for name, value in call.arguments.items():
            if (
                kinds[name] == "an array"
                and not isinstance(value, tuple)
                and np.array(value).dtype.kind == "i"
            ):
                made[name] = np.array(value, integer)
            elif kinds[name] == "an array" and not isinstance(value, tuple) and real is np.float64:
                made[name] = np.array(value, real)
            elif kinds[name] in ("an integer", "a seed") or (
                kinds[name] == "a horizon" and isinstance(value, int)
            ):
                made[name] = integer(value) if value < 256 else np.int64(value)
            elif kinds[name] == "a number":
                made[name] = real(value)
            elif kinds[name] == "a flag":
                made[name] = np.bool_(value)
        call.function(**call.arguments | made)


@pytest.mark.parametrize(
    ("key", "name"), WALKED, ids=[f"{name_of(key)} {name}" for key, name in WALKED]
)
def test_what_is_wrong_is_refused_by_name(key, name):
    call = RECIPES[key]
    faults = []
    for value in WALKED[key, name]:
        fault = attempt(lambda value=value: call.function(**call.arguments | {name: value}), name)
        if fault is not None:
            faults.append(f"{name}={value!r}: {fault}")
    assert not faults, "\n".join(faults)


# ------------------------------------------------------------------------------------------------- what nobody would mean


def junk() -> list[Any]:
    """More than a hundred values of every kind; each argument refuses those that it cannot take for
    what it is.
    """
    loop: list[Any] = []
    loop.append(loop)
    deep: Any = 0
    for _ in range(60):
        deep = [deep]
    gaps = np.ma.masked_array([1, 2], [True, False])
    numbers = [
        -1,
        -7,
        HUGE,
        -HUGE,
        10**400,
        0.5,
        -1.5,
        1e308,
        math.nan,
        math.inf,
        np.int64(-3),
        np.uint8(255),
        np.float16(1.5),
    ]
    flags = [True, False, np.True_]
    texts = [
        "",
        "x",
        "abc",
        "3",
        "nan",
        "\x1b[31m",
        "\ud800",
        "x\0",
        "a b",
        "x" * 10_000,
        "None",
        "[1]",
        "{}",
        ":",
        "a:b=c",
        "=",
    ]
    lists = [
        (),
        [],
        [None],
        [True],
        ["x", "x"],
        ["x"],
        [3],
        [[1, 2], [3]],
        [math.nan],
        [1j],
        [[[]]],
        [object()],
        ("a", 1),
        [HUGE],
        (1, 2, 3, 4, 5, 6, 7),
        loop,
        deep,
        [-1],
        [0.5] * 3,
        [{}],
        [b"x"],
        range(0),
        range(-3),
        iter([]),
        (one for one in [1]),
    ]
    arrays = [
        np.array("x"),
        np.array(None),
        np.array(math.nan),
        np.zeros(0),
        np.zeros((0, 0)),
        np.zeros((2, 3, 4)),
        gaps,
        np.array([math.nan] * 4),
        np.array([object()]),
        np.array([b"x"]),
        np.array(["a"]),
        np.array([1j]),
        np.ma.masked,
        np.zeros(3, [("a", int)]),
        np.array([np.datetime64("NaT")]),
        np.array([True, False]),
        polars.Series([1]),
    ]
    mappings = [{}, {1: 2}, {"a": 1}, {"model": "CM"}, {"a": None}, {None: "a"}, {"x": [1]}]
    calls = [
        object,
        int,
        str,
        list,
        type,
        len,
        print,
        lambda: 0,
        lambda *_, **__: None,
        np.int64,
        ValueError,
        agents.TopRank,
    ]
    ours = [PBM, LOG, scalar(), Clumsy(4, 2), logs.FixedPolicy([0, 1]), logs.CMEstimator()]
    others = [
        None,
        1j,
        complex(math.nan, 0),
        np.complex64(1j),
        Fraction(1, 2),
        Decimal("NaN"),
        Decimal("0.5"),
        b"",
        b"3",
        set(),
        {1},
        bytearray(b"ab"),
        frozenset(),
        object(),
        Ellipsis,
        NotImplemented,
        slice(3),
        Path("x"),
        Path("a", "b"),
        timedelta(1),
        date(2020, 1, 1),
        Exception("x"),
        math,
        SimpleNamespace(a=1),
        np.datetime64("2020-01-01"),
        np.dtype(int),
        StringIO(),
        polars.DataFrame(),
        polars.DataFrame({"a": [[1]]}),
        polars.col("a"),
        sparse.csr_array(np.eye(2)),
        np.random,
        zip(),
        np.random.default_rng(0),
        re.compile("x"),
        gym.spaces.Discrete(2),
        SeedSequence(1),
        UUID(int=0),
        map(str, []),
        super,
        property(),
        Enum("E", "a"),
        deque(),
        memoryview(b"ab"),
        array("d"),
        Lock(),
        ContextVar("x"),
        PurePosixPath("x"),
    ]
    modules = [
        clickgym,
        agents,
        envs,
        logs,
        np,
        np.linalg,
        gym,
        gym.spaces,
        polars,
        sparse,
        inspect,
        linecache,
        traceback,
        re,
    ]
    raised = (
        KeyError,
        OSError,
        RuntimeError,
        TypeError,
        Warning,
        EOFError,
        StopIteration,
        MemoryError,
    )
    errors = [error("x") for error in raised]
    times = [
        datetime(2020, 1, 1),
        time(1),
        UTC,
        np.timedelta64(1),
        np.timedelta64("NaT"),
        *(date(y, 1, 1) for y in (1, 9)),
    ]
    views = [SIZES.items(), SIZES.keys(), SIZES.values()]
    return [
        *numbers,
        *flags,
        *texts,
        *lists,
        *arrays,
        *mappings,
        *calls,
        *ours,
        *others,
        *modules,
        *errors,
        *times,
        *views,
    ]


KINDS: dict[str, tuple[Any, ...]] = {
    # What an annotation speaks of; a value of such a kind may be right.
    "int|float|Seed": (int, float, np.number, np.random.Generator, SeedSequence, Fraction, Decimal),
    "bool": (bool, np.bool_),
    "Generator": (np.random.Generator,),
    "Seed": (type(None),),
    "str|Spec|AnyInstance|EnvLike|AgentLike|Actions|Engine": (str,),
    "PathLike|Path": (str, Path, PurePosixPath),
    "ArrayLike|NDArray|Floats|Sequence|Iterable|tuple|list": (
        list,
        tuple,
        np.ndarray,
        range,
        polars.Series,
        polars.DataFrame,
        memoryview,
        array,
        deque,
        Iterator,
        sparse.csr_array,
    ),
    "Mapping|dict": (dict,),
    "Callable|OnChunk|AgentLike|EnvLike|AnyInstance|Any": (Callable, type),
    "ClickLog": (logs.ClickLog,),
    "Estimator": (logs.CMEstimator,),
    "Polic": (logs.FixedPolicy,),
    "Users|ClickModel|EnvLike": (PositionBasedModel,),
    "Env": (ClickEnv,),
    "Agent": (Clumsy,),
    "None": (type(None),),
}
UNCHECKED = {
    "shipped results are sealed with the checks of these constructors": {
        "PPO",
        "RecurrentPPO",
        "A2C",
        "DQN",
        "MaskablePPO",
        "QRDQN",
        "TD3",
        "SAC",
        "DDPG",
    },
    "takes a second for each call": {"sweep"},
}
ALL_JUNK = junk()


def may_be_right(call: Call, name: str, value: Any) -> bool:
    """Whether the annotation speaks of values of this kind; of choices only the words there are,
    which are none of these.
    """
    annotation = str(inspect.signature(call.function).parameters[name].annotation)
    kinds = {words: kinds for words, kinds in KINDS.items() if re.search(words, annotation)}
    if name in CHOICES and value is not None:
        kinds.pop("str|Spec|AnyInstance|EnvLike|AgentLike|Actions|Engine", None)
    if "Paths" in annotation and isinstance(value, list) and value:
        return all(isinstance(each, str) for each in value)
    return any(isinstance(value, kind) for kinds_of in kinds.values() for kind in kinds_of)


def refusal(call: Callable[[], Any]) -> str | None:
    """How a call fails to be refused by a ``raise`` of the package, in a message of one line; None
    if it is.
    """
    try:
        call()
    except Exception as error:
        frame, line = list(traceback.walk_tb(error.__traceback__))[-1]
        code = linecache.getline(frame.f_code.co_filename, line).strip()
        place = f"{type(error).__name__} in {frame.f_code.co_filename}:{line}, {code!r}: {error}"
        ours = "clickgym" in frame.f_globals["__name__"] and code.startswith("raise ")
        return (
            None
            if ours and isinstance(error, (ValueError, TypeError)) and "\n" not in str(error)
            else place
        )
    return "accepted"


def arguments_of(key: Any) -> list[str]:
    call = RECIPES[key]
    fixed = call.function.keywords if isinstance(call.function, partial) else {}
    parameters = inspect.signature(call.function).parameters.items()
    return [
        name
        for name, each in parameters
        if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL) and name not in fixed
    ]


def refuses_junk(key: Any, values: Sequence[Any]) -> tuple[int, list[str]]:
    """How many wrong values were tried for the arguments of a call, and those that are not
    refused.
    """
    call, tried, faults = RECIPES[key], 0, []
    for name in arguments_of(key):
        for value in values:
            if not may_be_right(call, name, value):
                tried += 1
                fault = refusal(
                    lambda name=name, value=value: call.function(**call.arguments | {name: value})
                )
                if fault is not None:
                    faults.append(f"{name}={short(value)}: {fault}")
    return tried, faults


FUZZED = [key for key in RECIPES if name_of(key) not in set().union(*UNCHECKED.values())]


@pytest.mark.parametrize("key", FUZZED, ids=name_of)
def test_every_argument_refuses_what_nobody_would_mean(key):
    """Every eighth value, another eighth for each call; all of them are slow."""
    _, faults = refuses_junk(key, ALL_JUNK[FUZZED.index(key) % 8 :: 8])
    assert not faults, "\n".join(faults)


@pytest.mark.slow
@pytest.mark.parametrize("key", FUZZED, ids=name_of)
def test_every_argument_refuses_all_that_nobody_would_mean(key):
    tried, faults = refuses_junk(key, ALL_JUNK)
    assert not faults, "\n".join(faults)
    assert tried >= 100 * len(arguments_of(key))


# --------------------------------------------------------------------------------------------------------------- methods


PLAIN_WRONGS = [None, 3, "x", object(), [1], {}, math.nan, math.inf, -1]
TAKEN: dict[
    str, Any
] = {  # what a parameter of methods takes; of one method, where that is something else
    "ranking": [0, 1],
    "rankings": [[0, 1], [1, 0]],
    "lists": [[0, 1], [1, 0]],
    "order": [3, 1, 0, 2],
    "item": 3,
    "clicks": [1, 0],
    "observation": [0, 0],
    "action": [0, 1],
    "actions": [[0, 1], [1, 0]],
    "x": [0, 1],
    "cutoff": 1,
    "reward": "clicks",
    "CompiledAgent.update reward": 1.0,
    "FrozenPolicy.update reward": 1.0,
    "state": 0,
    "value": [0.5, 0.2],
    "rng": np.random.default_rng(0),
    "seed": 0,
    "n_positions": 1,
    "n_sessions": 1,
    "user": 0,
    "model_class": "PBM",
    "path": "file.json",
    "CompiledAgent.load path": "agent.npz",
    "CompiledAgent.save path": "agent.npz",
    "Results.plot path": None,
    "CascadeMDP.course cutoff": None,
    "run": 0,
    "n": 1,
    "description": PBM.to_dict(),
    "behaviour": "perfect",
    "n_grades": 3,
    "items": [0, 1, 2, 3],
    "features": [[0.5] * 3] * 4,
    "best": lambda features: np.arange(2),
    "log": LOG,
    "Results.plot log": True,
    "interactions": np.zeros((0, 2), int),
    "ItemByItem.step action": 0,
    "ItemByItemVector.step actions": [0, 0],
    "reference": None,
    "_ListAction.action action": [0, 0],
    "_ListVectorAction.actions actions": [[0, 0], [0, 0]],
    "step": 0,
}
UNWALKED_METHODS = {
    "called for every session or list, by what has checked the arguments": {
        "Meter.add",
        "Meter.advance",
        "DynamicBayesianModel.click_satisfies",
        "DependentClickModel.click_satisfies",
        "ClickModel.click_satisfies",
    },
    "passes its arguments on to the constructor": {"LabelledModel.described"},
}
ALWAYS_REFUSED = {"Users.relabelled": "candidates change"}


def methods() -> Iterator[tuple[Any, str, Call]]:
    """Each public method of what the recipes make, but for logs: the object, the name, and how it
    is called rightly.
    """
    left_out = {"sweep", "tune", *LEARNERS}
    things = [
        call.function(**call.arguments)
        for key, call in RECIPES.items()
        if name_of(key) not in left_out
    ]
    things.append(clickgym.sweep(["PBMRank-v0"], ["Random"], 4, 2, n_jobs=1, progress=False))
    things.append(
        clickgym.tune("EpsilonGreedy", ["PBMRank-v0"], 8, horizon=50, n_jobs=1, progress=False)
    )
    seen = set().union(*UNWALKED_METHODS.values())
    for thing in things:
        for name, member in inspect.getmembers_static(type(thing)):
            function = getattr(member, "__func__", member)  # of a class method
            home = f"{getattr(function, '__module__', '')}."
            if (
                name.startswith("_")
                or name.endswith("_kernel")
                or not inspect.isfunction(function)
                or function.__qualname__ in seen
            ):
                continue
            if home.startswith("clickgym."):
                label, method = function.__qualname__, getattr(thing, name)
                seen.add(label)
                known = {
                    each.name: TAKEN.get(f"{label} {each.name}", TAKEN.get(each.name, each.default))
                    for each in inspect.signature(method).parameters.values()
                    if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
                }
                if known:
                    yield thing, label, Call(method, known)


def test_no_method_ends_in_a_raw_error(tmp_path, monkeypatch):
    """A wrong value is taken, or refused by a line of the package: no AttributeError from
    inside.
    """
    monkeypatch.chdir(tmp_path)
    agents.Fixed(4, 2, ranking=[0, 1]).save("agent.npz")  # which load takes
    faults, tried = [], 0
    for thing, label, call in methods():

        def outcome(thing=thing, label=label, call=call, **wrong):
            if isinstance(thing, gym.Env | gym.vector.VectorEnv):
                thing.reset(seed=0)
            elif label == "CompiledAgent.update":
                thing.rank()
            return refusal(lambda: call.function(**call.arguments | wrong))

        if (fault := outcome()) != "accepted" and label not in ALWAYS_REFUSED:
            faults.append(f"{label}, called rightly: {fault}")
        for name in call.arguments:
            for value in PLAIN_WRONGS:
                tried += 1
                if (fault := outcome(**{name: value})) not in (None, "accepted"):
                    faults.append(f"{label} {name}={short(value)}: {fault}")
    assert not faults, "\n".join(faults)
    assert tried > 800


# ------------------------------------------------------------------------------------------ what environments are asked for


KEYWORDS: dict[str, list[Any]] = {
    "reward": [3, True, "click"],
    "cutoff": [True, 0.5, "3", 0, HUGE, math.nan],
    "n_positions": [True, 0.5, "3", 0, HUGE, math.nan],
    "reference": [[0.5] * 5, "abc", [True] * 5, [0] * 5, [[0], [1, 2]], 3],
    "instance": [3, True, "yandx-9982", ["yandex-9982"], {"model": "CM"}, {3: 4}, b"yandex-9982"],
    "n_items": [20],
}


@pytest.mark.parametrize("keyword", KEYWORDS)
@pytest.mark.parametrize("env_id", ["PBMRank-v0", "NonStationaryCMRank-v0", "ContextualUBMRank-v0"])
@pytest.mark.parametrize(
    "make", [gym.make, partial(gym.make_vec, num_envs=2)], ids=["make", "make_vec"]
)
def test_keywords_of_gym_make(make, env_id, keyword):
    values = [
        value
        for value in KEYWORDS[keyword]
        if not (isinstance(value, list) and keyword == "instance" and "vec" in repr(make))
    ]
    faults = {
        repr(value): attempt(lambda value=value: make(env_id, **{keyword: value}), keyword)
        for value in values
    }
    assert not {value: fault for value, fault in faults.items() if fault}, faults


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_arguments_of_families(family):
    for name, parameter in inspect.signature(FAMILIES[family]).parameters.items():
        kind = type(parameter.default)
        numbers = ["0.5", str(HUGE), "1e400"] if kind is int else []
        for text in ["True", "nan", "inf", "-1", "x", "", "[1]", "9" * 5000, *numbers]:
            if kind is str or (name == "seed" and text.isdecimal() and len(text) < 100):
                continue
            fault = attempt(
                lambda text=text, name=name: envs.load_instance(f"{family}:{name}={text}"), name
            )
            assert fault is None, f"{family}:{name}={text[:20]}: {fault}"


@pytest.mark.parametrize("name", [*CLICK_MODELS, "PiecewiseStationaryModel", "LinearModel"])
def test_descriptions_of_models_with_a_wrong_kind_at_each_key(name):
    described = envs.load_instance(INSTANCES.get(name, "uniform:n_items=4,n_positions=2"))
    kind = next(
        kind
        for kind in described.models
        if name in (kind.partition(" ")[0], type(described.models[kind]).__name__)
    )
    description = described.models[kind].to_dict()
    for key in description.keys() - {"model", "users"}:
        for value in (None, True, "x", {}, {"a": 1}, [[[]]], [None], -3, math.nan):
            if value is None and key in ("candidates", "trust_relevant", "trust_irrelevant"):
                continue
            fault = attempt(
                lambda key=key, value=value: envs.ClickModel.from_dict(description | {key: value}),
                key,
            )
            assert fault is None, f"{name}, {key}={value!r}: {fault}"
    for wrong in (
        {"model": name},
        {"model": name, 3: 4},
        {"model": [name]},
        {"model": None},
        {},
        [],
        "x",
        None,
    ):
        assert attempt(lambda wrong=wrong: envs.ClickModel.from_dict(wrong), "") is None, wrong


INSTANCES = {
    "PiecewiseStationaryModel": "abrupt:n_items=4,n_positions=2,n_epochs=2",
    "LinearModel": "linear:n_items=3,n_positions=2,n_features=3,n_pool=4,n_users=2",
}


# ---------------------------------------------------------------------------------------------------------- in what order


def test_all_compiled_agents_share_their_update():
    """So that one of them tells for all."""
    shared = (agents.CompiledAgent.update, agents.ContextualAgent.update)
    assert all(agent.update in shared for agent in (AGENTS | CONTEXTUAL_AGENTS).values())


def test_each_list_is_learned_from_once(tmp_path):
    made = RECIPES[AGENTS["TopRank"]]
    agent, observation = made.function(**made.arguments), None
    with pytest.raises(ValueError, match="no list waits for clicks; call rank before each update"):
        agent.update(observation, [0, 1], [0, 0])
    agent.rank(observation)
    ranking = agent.rank(observation)  # may be asked again
    agent.save(tmp_path / "waiting.npz")
    agent.update(observation, ranking, [1, 0])
    with pytest.raises(ValueError, match="no list waits for clicks"):
        agent.update(observation, ranking, [1, 0])
    agent.save(tmp_path / "done.npz")
    type(agent).load(tmp_path / "waiting.npz").update(observation, ranking, [1, 0])
    with pytest.raises(ValueError, match="no list waits for clicks"):
        type(agent).load(tmp_path / "done.npz").update(observation, ranking, [1, 0])


@pytest.mark.parametrize("engine", ["compiled", "python"])
def test_after_a_run_no_list_waits_for_clicks(engine):
    agent = agents.TopRank(4, 2, horizon=5, seed=0)
    env = scalar()
    clickgym.run(agent, env, 5, engine=engine)
    with pytest.raises(ValueError, match="no list waits for clicks"):
        agent.update(None, env._rankings[0], [0, 0])


@pytest.mark.parametrize(
    "make",
    [
        scalar,
        vector,
        lambda: gym.make("PBMRank-v0"),
        lambda: gym.make_vec("PBMRank-v0", num_envs=2),
    ],
)
def test_a_step_needs_a_reset(make):
    env = make()
    with pytest.raises(gym.error.ResetNeeded):
        env.step(env.action_space.sample())


@pytest.mark.parametrize("make", [scalar, vector])
def test_a_reset_knows_seeds_and_no_options(make):
    for seed in (True, 0.5, "3", -1, [1]):
        with pytest.raises(ValueError, match=r"seed is .*; expected a non-negative integer"):
            make().reset(seed=seed)
    with pytest.raises(ValueError, match="reset has no options"):
        make().reset(options={"difficulty": 3})
    env = make()
    first, second = env.reset(seed=np.int64(3), options={}), env.reset(seed=3)
    assert np.array_equal(first[0], second[0])
    assert env.np_random_seed == 3


@pytest.mark.parametrize(
    "action",
    [
        [True, 0],
        [0.0, 1.0],
        ["0", "1"],
        [[0], [1, 2]],
        None,
        "01",
        [0, HUGE],
        [0, math.nan],
        {0, 1},
    ],
)
def test_an_action_is_a_list_of_integers(action):
    env, envs_ = scalar(), vector()
    env.reset(seed=0)
    envs_.reset(seed=0)
    assert attempt(lambda: env.step(action), "") is None
    assert attempt(lambda: envs_.step([action, action]), "") is None
    for wrapper in (envs.LehmerAction, envs.ScoresAction, envs.EnumeratedAction, envs.ItemByItem):
        wrapped = wrapper(env)
        wrapped.reset()
        if not (wrapper is envs.ScoresAction and action == [0.0, 1.0]):
            assert attempt(lambda wrapped=wrapped: wrapped.step(action), "") is None
