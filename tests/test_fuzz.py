"""No public function fails raw: a wrong value for any argument is refused in one line of ours."""

from __future__ import annotations

import inspect
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from wrong_values import Call, call, faults

import clickgym
from clickgym import agents, envs
from clickgym.agents import AGENTS, FrozenPolicy, Learner
from clickgym.envs import ClickEnv, ClickVectorEnv, PositionBasedModel, RankedList, Users
from clickgym.envs.any_env import sizes_of
from clickgym.runner.make import make_env

MODEL = PositionBasedModel([0.5, 0.4, 0.3, 0.2], [1.0, 0.6])
FEATURES = "linear:n_items=4,n_positions=2,n_features=2,n_pool=6,n_users=2"
STATES = "independent:n_items=4,n_positions=2,n_states=2,mean_sessions=3"
LOCAL = {"n_jobs": 1, "progress": False}


def env(env_id: str = "PBMRank-v0", **arguments: Any) -> Any:
    return gym.make(
        env_id, **arguments or {"attraction": [0.5, 0.4, 0.3, 0.2], "examination": [1, 0.6]}
    )


def featured(wrap: Any = lambda made: made) -> Any:
    made = wrap(env("ContextualPBMRank-v0", instance=FEATURES))
    made.reset(seed=0)
    return made


def begun() -> ClickEnv:
    begun = ClickEnv(MODEL)
    begun.reset(seed=0)
    return begun


def streams(**arguments: Any) -> ClickVectorEnv:
    begun = ClickVectorEnv(MODEL, num_envs=2, **arguments)
    begun.reset(seed=0)
    return begun


def place(cls: Any) -> gym.Env:
    """An environment that has what an agent needs."""
    if cls == "Fixed":
        return env()
    for arguments in (
        {},
        {"env_id": "ContextualPBMRank-v0", "instance": FEATURES},
        {"env_id": "CascadeMDPRank-v0", "instance": STATES},
    ):
        it = env(**arguments)
        try:
            clickgym.make_agent(cls, it, horizon=10, seed=0)
        except ValueError:
            continue
        return it
    raise AssertionError(cls)


def of_agent(name: str) -> dict[str, Call]:
    passed = {"ranking": [0, 1]} if name == "Fixed" else {}
    made: Any = clickgym.make_agent(name, place(name), horizon=10, seed=0, **passed)
    calls = {name: call(AGENTS[name], **made.filled_in, **passed)}
    if isinstance(made, Learner):
        return {name: Call(AGENTS[name], lambda: {**made.filled_in, **made.hyperparameters})}

    def ranked() -> tuple[Any, Any]:
        it = place(name)
        agent = clickgym.make_agent(name, it, horizon=10, seed=0, **passed)
        observation, _ = it.reset(seed=0)
        return agent, {"observation": observation, "ranking": agent.rank(observation)}

    def update(**arguments: Any) -> None:
        agent, known = ranked()
        agent.update(**{**known, **arguments})

    calls[f"{name}.update"] = Call(update, lambda: {**ranked()[1], "clicks": [1, 0], "reward": 1.0})
    calls[f"{name}.rank"] = Call(made.rank, lambda: {"observation": ranked()[1]["observation"]})
    return calls


def of_models(folder: Any) -> dict[str, Call]:
    calls = {}
    for name, cls in envs.CLICK_MODELS.items():
        model = envs.load_instance("uniform:n_items=4,n_positions=2").model(cls)
        described = {key: value for key, value in model.to_dict().items() if key != "model"}
        calls[name] = Call(cls, described.copy)
        for method, arguments in {
            "sample": {"ranking": [0, 1], "rng": np.random.default_rng(0)},
            "click_probabilities": {"ranking": [0, 1]},
            "examination_probabilities": {"ranking": [0, 1]},
            "expected_reward": {"ranking": [0, 1], "reward": "clicks", "cutoff": None},
            "optimal_ranking": {"reward": "clicks", "cutoff": None},
            "with_positions": {"n_positions": 1},
            "relabelled": {"order": [3, 2, 1, 0]},
        }.items():
            calls[f"{name}.{method}"] = Call(getattr(model, method), arguments.copy)
    return calls


def of_environments(folder: Any) -> dict[str, Call]:
    instance = envs.load_instance("uniform:n_items=4,n_positions=2")
    lists = RankedList(4, 2)
    of_env = call(ClickEnv, model=MODEL)
    return {
        "ClickEnv": of_env,
        "ClickEnv of an instance": Call(
            ClickEnv, lambda: {"model": "PBM", "instance": "uniform", "n_positions": 2, "form": ""}
        ),
        "ClickVectorEnv": call(ClickVectorEnv, model=MODEL, num_envs=2),
        "ClickEnv.reset": Call(
            lambda **a: begun().reset(**a), lambda: {"seed": 0, "options": None}
        ),
        "ClickEnv.step": Call(lambda **a: begun().step(**a), lambda: {"action": [0, 1]}),
        "ClickVectorEnv.reset": Call(
            lambda **a: streams().reset(**a), lambda: {"seed": 0, "options": None}
        ),
        "ClickVectorEnv.step": Call(
            lambda **a: streams().step(**a), lambda: {"actions": [[0, 1], [1, 2]]}
        ),
        "RankedList": Call(RankedList, lambda: {"n_items": 4, "n_positions": 2}),
        "RankedList.sample": Call(lists.sample, lambda: {"mask": None, "probability": None}),
        "RankedList.contains": Call(lists.contains, lambda: {"x": [0, 1]}),
        "Instance": call(envs.Instance, name="mine", models={"PBM": MODEL}, n_positions=2),
        "Instance.model": Call(instance.model, lambda: {"model_class": "PBM", "n_positions": 2}),
        "Instance.shuffled": Call(instance.shuffled, lambda: {"seed": 1}),
        "Instance.save": Call(instance.save, lambda: {"path": folder / "instance.json"}),
        "load_instance": Call(
            envs.load_instance,
            lambda: {next(iter(inspect.signature(envs.load_instance).parameters)): "uniform"},
        ),
        "check_ranking": Call(
            envs.check_ranking, lambda: {"ranking": [0, 1], "n_items": 4, "n_positions": 2}
        ),
        "with_products": Call(
            envs.with_products, lambda: {"features": [[0.5, 0.2, 0.1]], "pairs": [[1, 2]]}
        ),
        "interaction_pairs": Call(
            envs.interaction_pairs, lambda: {"kind": "outer", "first": [1, 2], "second": [3]}
        ),
        "register_click_model": Call(
            envs.register_click_model, lambda: {"env_id": "FuzzRank-v0", "model": "PBM"}
        ),
        "Users.from_dict": Call(Users.from_dict, lambda: {"description": MODEL.to_dict()}),
        "RecordRegret": Call(clickgym.RecordRegret, lambda: {"env": env(), "checkpoints": [1, 2]}),
        "RecordVectorRegret": Call(
            clickgym.RecordVectorRegret, lambda: {"env": streams(), "checkpoints": [1, 2]}
        ),
        "kernel": Call(envs.kernel, lambda: {"function": lambda x: x}),
        "entry": Call(envs.entry, lambda: {"function": lambda x: x}),
        "FeatureWeightsAction": Call(envs.FeatureWeightsAction, lambda: {"env": featured()}),
        "FeatureWeightsAction.step": Call(
            lambda **a: featured(envs.FeatureWeightsAction).step(**a), lambda: {"action": [0.5, 1]}
        ),
        **{
            name: Call(getattr(envs, name), lambda: {"env": env(), "items": [3, 2, 1, 0]})
            for name in ("ScoresAction", "ItemByItem")
        },
        **{
            name: Call(getattr(envs, name), lambda: {"env": streams(), "items": [3, 2, 1, 0]})
            for name in ("ScoresVectorAction", "ItemByItemVector")
        },
    }


def of_the_runner(folder: Any) -> dict[str, Call]:
    results = clickgym.sweep(["PBMRank-v0"], ["Random"], 10, 2, out=folder / "results", n_jobs=1)
    result = clickgym.run("Random", env(), 10, seed=0)
    agent = clickgym.make_agent("TopRank", env(), horizon=10, seed=0)
    fits = {"agent": lambda: agents.TopRank(4, 2, horizon=10, seed=0)}
    run = {"horizon": 10, "seed": 0, "checkpoints": [5], "metrics": ["ndcg"], "engine": "auto"}
    return {
        "run": Call(clickgym.run, lambda: {"agent": fits["agent"](), "env": env(), **run}),
        "make_agent": Call(
            clickgym.make_agent,
            lambda: {"agent": "TopRank", "env": env(), "horizon": 10, "seed": 0, "delta": 0.1},
        ),
        "make_env": Call(make_env, lambda: {"env": "PBMRank-v0", "instance": "uniform"}),
        "sizes_of": Call(sizes_of, lambda: {"env": env()}),
        "sweep": call(
            clickgym.sweep, envs=["PBMRank-v0"], agents=["Random"], horizon=10, runs=1, n_jobs=1
        ),
        "Results": Call(clickgym.Results, lambda: {"source": folder / "results", "config": None}),
        "Results.names": Call(results.names, lambda: {"column": "agent"}),
        "Results.select": call(results.select),
        "Result.to_frame": Call(result.to_frame, lambda: {"run": 0}),
        "save": Call(agent.save, lambda: {"path": folder / "agent.npz"}),
        "load": Call(agents.TopRank.load, lambda: {"path": folder / "agent.npz"}),
        "Results.plot": Call(
            results.plot, lambda: {"path": None, "title": "x", "ax": None, "log": True}
        ),
        "FrozenPolicy": call(
            FrozenPolicy, n_items=4, n_positions=2, model=lambda observation: [0, 0]
        ),
    }


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where files are written; the registry of environments stays as it is."""
    monkeypatch.chdir(tmp_path)
    registry, known = gym.registry.copy(), envs.ENVIRONMENTS.copy()
    yield tmp_path
    for now, before in ((gym.registry, registry), (envs.ENVIRONMENTS, known)):
        now.clear()
        now.update(before)


def of_agents(folder: Any) -> dict[str, Call]:
    return {name: call for agent in AGENTS for name, call in of_agent(agent).items()}


def of_checks(folder: Any) -> dict[str, Call]:
    return {
        "check_agent": call(clickgym.check_agent, agent="Random"),
        "check_click_model": call(clickgym.check_click_model, model=MODEL),
        "as_vec_env": call(agents.as_vec_env, envs=streams(autoreset_mode="SameStep")),
    }


GROUPS = {
    "environments": of_environments,
    "models": of_models,
    "runner": of_the_runner,
    "agents": of_agents,
    "checks": of_checks,
}


@pytest.mark.parametrize(
    ("group", "step"), [("environments", 12), ("models", 20), ("runner", 80), ("agents", 150)]
)
def test_wrong_values(group, step, folder):
    """Some of the values for every argument."""
    assert faults(GROUPS[group](folder), step) == []


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_all_wrong_values(group, folder):
    assert faults(GROUPS[group](folder)) == []
