"""Tests of digits that every version keeps: regret of agents, sessions of environments, fitted
parameters.

``tests/data/digits.json`` holds the digits, and what they are of. Floats are written as by
``float.hex()``, and whole numbers as such. The changelog names each change of a digit.

Lists, clicks, states, rewards and all whole numbers are equal on every processor
(``tests/processors.py`` tries several). Other floats, such as regret, are equal to twelve digits,
because C libraries and NumPy compute logarithms and powers with different last bits. The hash of
features is computed from values rounded to nine decimals. For learners only an interval of the mean
regret is checked, because torch differs across builds. PPO runs with its earlier settings where
items have features.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import clickgym
import clickgym.logs
from clickgym.agents import AGENTS
from clickgym.envs import ENVIRONMENTS
from tests.helpers.compiled_pairs import PAIRS
from tests.helpers.registries import CONTEXTUAL_AGENTS, STATE_AGENTS

DATA = Path(__file__).parent / "data"
LOG = DATA / "digits_log.csv"
EXACT = ("clicks", "states", "rewards", "reward", "features")
TOLERANCE = 1e-12
CHECKPOINTS = [200, 1000, 2000]
SESSIONS = 50
SLOW_IN_PYTHON = {"MixTS", "PBMHB", "PBMTS", "RankedKLUCB", *CONTEXTUAL_AGENTS}
DIGITS = json.loads((DATA / "digits.json").read_text("utf-8"))


def cases(part: str, chosen: Callable[[Any], bool] = bool, *marks: Any) -> list[Any]:
    """The chosen cases of a part of the file. Each case is named in pytest after what it plays."""
    found = [case for case in DIGITS.get(part, []) if chosen(case)]
    return [pytest.param(case, id=name(case), marks=marks) for case in found]


def is_compiled(case: dict[str, Any]) -> bool:
    """Whether slow tests also play a run of an agent compiled: if its kernels are those of the
    tests of engines, or are made for users with memory.
    """
    agent, env = case["agent"].partition(":")[0], ENVIRONMENTS[case["env"]]
    if env.kind == "Memory":
        return agent in STATE_AGENTS
    return (agent, env.click_model.name()) in PAIRS


def at_home(case: dict[str, Any]) -> bool:
    """Whether a run is in the PBM, of users with memory, or in a model that the agent is made
    for.
    """
    env, agent = ENVIRONMENTS[case["env"]], AGENTS.get(case["agent"].partition(":")[0])
    here = {"PBM", *(agent.made_for_models if agent else ())}
    return env.kind == "Memory" or env.click_model.name() in here


def enumerates(case: dict[str, Any]) -> bool:
    """Whether each session's optimum is searched among all lists, which takes Python long."""
    return case["env"] == "ContextualUBMRank-v0" and "reward" in case["kwargs"]


def name(case: dict[str, Any]) -> str:
    """What a case plays, in one line."""
    told = (case.get(key) for key in ("agent", "estimator", "env", "kwargs", "seed", "num_envs"))
    return " ".join(
        json.dumps(value) if isinstance(value, dict) else str(value)
        for value in told
        if value not in (None, {})
    )


def digits(values: Any) -> list[str]:
    """Write floats to the last bit, and whole numbers as such, because they are easier to read."""
    return [
        str(int(x)) if x == int(x) else x.hex() for x in np.ravel(values).astype(float).tolist()
    ]


def alike(value: str, old: str) -> bool:
    """Whether two numbers of `digits` are equal to twelve digits. Whole numbers must then be
    exactly equal.
    """
    return math.isclose(*map(number, (value, old)), rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def number(text: str) -> float:
    """Read a number that `digits` wrote."""
    return float.fromhex(text) if "0x" in text else float(text)


def check(case: dict[str, Any], found: dict[str, Any], where: list[str] | None = None) -> None:
    """Fail if a result differs from the file, and name the place and the values. Whole numbers and
    the keys in `EXACT` must be equal; other floats may differ by `TOLERANCE`.
    """
    faults = []
    for key, values in found.items():
        expected = case[key]
        assert len(values) == len(expected), (
            f"{name(case)}: {len(values)} values of {key}, expected {len(expected)}"
        )
        for i, (value, old) in enumerate(zip(values, expected, strict=True)):
            if value != old and (key in EXACT or not alike(value, old)):
                faults.append(f"{key} {where[i] if where else i}: found {value}, expected {old}")
    assert not faults, "\n  ".join([name(case), *faults[:6]])


def play(case: dict[str, Any], checkpoints: list[int] = CHECKPOINTS) -> dict[str, list[str]]:
    """Cumulative regret, reward and clicks at the checkpoints. The agent is given the last
    checkpoint as its horizon.
    """
    env, seed = gym.make(case["env"], **case["kwargs"]), case["seed"]
    agent = clickgym.make_agent(case["agent"], env, horizon=CHECKPOINTS[-1], seed=seed)
    result = clickgym.run(agent, env, checkpoints[-1], seed=seed, checkpoints=checkpoints)
    return {
        "regret": digits(result.regret),
        "reward": digits(result.reward),
        "clicks": digits(result.clicks),
    }


def watch(case: dict[str, Any]) -> dict[str, list[str]]:
    """What an environment shows in its first sessions with randomly drawn lists."""
    streams, kwargs, rng = case["num_envs"], case["kwargs"], np.random.default_rng(case["seed"])
    envs = (
        gym.make_vec(case["env"], num_envs=streams, **kwargs)
        if streams
        else gym.make(case["env"], **kwargs)
    )
    observation, info = envs.reset(seed=case["seed"])
    found: dict[str, list[str]] = {"clicks": [], "states": [], "rewards": [], "first_regrets": []}
    regret, features = np.zeros(streams or 1), hashlib.sha256()
    found["optimum"] = [
        *digits(np.asarray(info["optimal_ranking"])),
        *digits(info["optimal_reward"]),
    ]
    for session in range(SESSIONS):
        lists = rng.random((streams or 1, case["n_items"])).argsort(axis=1)[
            :, : case["n_positions"]
        ]
        if isinstance(observation, dict) and "features" in observation:
            # + 0.0, because a number below 0 is rounded to -0.0
            features.update((np.round(observation["features"], 9) + 0.0).tobytes())
            found.setdefault("first_features", digits(np.ravel(observation["features"])[-3:]))
        observation, reward, terminated, _, info = envs.step(lists if streams else lists[0])
        seen = observation if isinstance(observation, dict) else {"clicks": observation}
        found["clicks"].append(
            "/".join("".join(map(str, row)) for row in np.atleast_2d(seen["clicks"]).tolist())
        )
        found["rewards"].append(" ".join(digits(reward)))
        if "state" in seen:
            found["states"].append(" ".join(digits(seen["state"])))
        if session < 3:
            found["first_regrets"].extend(digits(info["regret"]))
        regret += info["regret"]
        if not streams and terminated:  # a user with memory has left
            observation, _ = envs.reset()
    if "first_features" in found:
        found["features"] = [features.hexdigest()]
    envs.close()
    return found | {"regret": digits(regret)}


@pytest.fixture(scope="module")
def log():
    """The log of the estimators: each row has the query, the items from the top, and a 1 for each
    click.
    """
    rows = [line.split(",") for line in LOG.read_text("utf-8").splitlines()[1:]]
    n_positions = max(len(clicks) for _, _, clicks in rows)
    items, clicks = np.full((len(rows), n_positions), -1), np.zeros((len(rows), n_positions), int)
    for row, (_, listed, clicked) in enumerate(rows):
        items[row, : len(clicked)] = [int(item) for item in listed.split()]
        clicks[row, : len(clicked)] = [int(click) for click in clicked]
    queries = [int(query) for query, _, _ in rows]
    return clickgym.logs.ClickLog(
        items, clicks, queries, tuple(map(str, range(items.max() + 1))), ("0", "1")
    )


def fit(case: dict[str, Any], log: Any) -> Any:
    """A fitted estimator with the settings that version 3 used by default."""
    kind, settings = getattr(clickgym.logs, case["estimator"]), {"prior": (1, 1)}
    if "iterations" in inspect.signature(kind).parameters:
        settings |= {"iterations": 50, "tol": None}
    return kind(**settings | case["kwargs"]).fit(log)


@pytest.mark.slow
@pytest.mark.parametrize("case", cases("runs", is_compiled))
def test_regret_of_compiled_agents(case):
    """The regret equals that of version 3."""
    check(case, play(case), [f"at {step:,} sessions" for step in CHECKPOINTS])


@pytest.mark.uncompiled
@pytest.mark.parametrize("case", cases("runs"))
def test_regret_of_agents(case):
    """The regret equals that of version 3. In models that the agent is not made for, or where
    Python takes long, it is compared only up to the first checkpoint.
    """
    n = len(CHECKPOINTS) if at_home(case) and case["agent"] not in SLOW_IN_PYTHON else 1
    first = {
        key: values[:n] for key, values in case.items() if key in ("regret", "reward", "clicks")
    }
    where = [f"at {step:,} sessions" for step in CHECKPOINTS[:n]]
    check(case | first, play(case, CHECKPOINTS[:n]), where)


@pytest.mark.parametrize(
    "case",
    cases("environments", enumerates, pytest.mark.slow)
    + cases("environments", lambda case: not enumerates(case), pytest.mark.uncompiled),
)
def test_sessions_of_environments(case):
    """The sessions equal those of version 3."""
    check(case, watch(case))


@pytest.mark.parametrize("case", cases("estimators"))
def test_parameters_of_estimators(case, log):
    """The parameters equal those of version 3."""
    fitted = fit(case, log)
    score = float.fromhex(case["score"])
    np.testing.assert_allclose(
        fitted.score(log), score, 1e-12, 1e-12, err_msg=f"{name(case)}: score"
    )
    for query, parameters in case["parameters"].items():
        found = fitted.click_model(query, list(log.item_labels)).to_dict()
        for parameter, expected in parameters.items():
            where = f"{name(case)}: {parameter} of query {query}"
            if parameter == "termination":  # no log determines the last value
                expected[-1] = expected[-2]
            np.testing.assert_allclose(found[parameter], expected, 1e-12, 1e-12, err_msg=where)


@pytest.mark.slow
@pytest.mark.parametrize("case", cases("learners"))
def test_mean_regret_of_learners(case):
    """The mean regret lies in the interval found with version 3."""
    pytest.importorskip("sb3_contrib")
    (low, high), env = case["interval"], gym.make(case["env"], **case["kwargs"])
    runs = [clickgym.run(case["agent"], env, case["horizon"], seed=n) for n in case["seeds"]]
    regrets = [float(run.regret[-1]) for run in runs]
    mean = float(np.mean(regrets))
    assert low <= mean <= high, (
        f"{name(case)}: mean regret {mean:.1f} of {regrets}, expected {low:.1f} to {high:.1f}"
    )
