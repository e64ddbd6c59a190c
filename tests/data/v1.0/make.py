"""How the files in this folder were made, once, by clickgym 1.0.0; later versions must open them and go on from them.

python make.py FOLDER, with that version installed. `tests/test_compatibility.py` reads what it writes.
"""

from __future__ import annotations

import inspect
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np

import clickgym
from clickgym.agents import AGENTS, CONTEXTUAL_AGENTS, STATE_AGENTS
from clickgym.envs import (
    CLICK_MODELS,
    CascadeMDP,
    GradedModel,
    Instance,
    LabelledModel,
    LinearModel,
    PiecewiseStationaryModel,
    load_instance,
)
from clickgym.offline import ClickLog, compare, fit_models, read_log, write_tidy

L, K, D, S = 6, 3, 3, 2
LEARNED, AFTER = 300, 20
LIFE = 7
"""After so many sessions a user leaves, and the next one comes."""
KNOWN = {
    "horizon": 1000,
    "ranking": [4, 0, 2],
    "initial": [4, 0, 2, 1, 5, 3],
    "examination": [0.9, 0.6, 0.3],
    "epsilon": 0.2,
    "n_features": D,
    "n_states": S,
    "mean_sessions": 7.0,
    "click_rewards": [[1.0, 0.5, 2.0, 1.0, 1.5, 0.25], [1.0] * L],
}
EXPERIMENT = """\
envs = ["PBMRank-v0", "NonStationaryCMRank-v0"]
agents = ["BatchRank", "CascadeKLUCB:feedback=first_click", "Random"]
horizon = 1000
runs = 2
instances = ["query.json"]
seed = 3
checkpoints = [10, 100, 500, 1000]
metrics = ["any_click", "ndcg"]
"""
FITTED = ["CM", "PBM", "DCM", "UBM", "DBN", "SDBN", "CCM"]


def archive(folder: Path) -> None:
    """Pack a folder of many small files."""
    shutil.make_archive(str(folder), "zip", folder)
    shutil.rmtree(folder)


def command(*words: str, cwd: Path) -> None:
    subprocess.run([sys.executable, "-m", "clickgym", *words], check=True, cwd=cwd, stdout=subprocess.DEVNULL)


# --------------------------------------------------------------------------------------------------------------- agents


def agents(folder: Path) -> None:
    """Every agent after some sessions, saved after `update` and again after the next `rank`, and the lists that follow."""
    rng = np.random.default_rng(0)
    n_sessions = LEARNED + AFTER
    clicks = (rng.random((n_sessions, K)) < [0.5, 0.3, 0.2]).astype(int)
    features = rng.uniform(-0.5, 0.5, (n_sessions, L, D)).round(3)
    states = rng.integers(S, size=n_sessions)
    leaves = np.arange(1, n_sessions + 1) % LIFE == 0
    lists = {}
    saved = folder / "saved"
    for point in ("after_update", "before_update"):
        (saved / point).mkdir(parents=True)
    for name, agent_class in (AGENTS | CONTEXTUAL_AGENTS | STATE_AGENTS).items():
        parameters = inspect.signature(agent_class).parameters
        arguments = {argument: value for argument, value in KNOWN.items() if argument in parameters}
        if name == "UBMLinUCB":
            arguments["examination"] = [[0.9, 0, 0], [0.6, 0.8, 0], [0.4, 0.5, 0.75]]
        agent = agent_class(L, K, seed=1, **arguments)
        rankings = []
        for t in range(n_sessions):
            observation = {"features": features[t], "state": int(states[t])}
            if t == LEARNED:
                agent.save(saved / "after_update" / f"{name}.npz")
            ranking = agent.rank(observation)
            if t == LEARNED:
                agent.save(saved / "before_update" / f"{name}.npz")
            agent.update(observation, ranking, clicks[t], float(clicks[t].sum()))
            if leaves[t]:
                agent.leave()
            rankings.append(ranking.tolist())
        lists[name] = rankings[LEARNED:]
    arrays = {"clicks": clicks, "features": features, "states": states, "leaves": leaves}
    after = {key: array[LEARNED:].tolist() for key, array in arrays.items()}
    (folder / "lists.json").write_text(json.dumps(after | {"lists": lists}) + "\n")
    archive(saved)


# ------------------------------------------------------------------------------------------------------------ instances


def instances(folder: Path) -> None:
    """Instance files of every kind; what a list earns in each, and the regret of random lists in its environments."""
    stationary = load_instance("uniform:n_items=6,n_positions=3,seed=1")
    bases = {name: stationary.model(name) for name in CLICK_MODELS}
    several = {
        "stationary": list(bases.values()),
        "piecewise": [_piecewise(base) for base in bases.values()],
        "linear": [_linear(base) for base in bases.values()],
        "labelled": [_labelled(base) for base in bases.values()],
        "graded": [_graded("navigational")],
        "memory": [_memory()],
        "memory-fixed": [_memory(n_sessions=4)],
    }
    ready = {
        "switching": load_instance("li2019-switching:n_positions=3,n_epochs=4,length=50,seed=1"),
        "contextual": load_instance("linear:n_items=5,n_positions=3,n_features=4,n_pool=12,n_users=6,seed=1"),
        "habit": load_instance("habit:n_items=5,n_positions=2,seed=1"),
    }
    kinds = {model.kind: model for models in several.values() for model in models}
    several["all-kinds-of-six-items"] = [model for model in kinds.values() if model.n_items == L]
    for name, models in several.items():
        Instance(name, {model.kind: model for model in models}, models[0].n_positions, "compatibility", "made up").save(
            folder / f"{name}.json"
        )
    for name, instance in ready.items():
        instance.save(folder / f"{name}.json")
    for kind in ("CM", "TPBM", "PiecewiseStationaryModel of CM", "LinearModel of UBM", "LabelledModel of PBM", "CascadeMDP"):
        (folder / f"{kind.replace(' ', '-')}.json").write_text(json.dumps(kinds[kind].to_dict()) + "\n")
    (folder / "GradedModel-of-DBN.json").write_text(json.dumps(_graded("informational").of_grades(5).to_dict()) + "\n")
    earned: dict[str, dict] = {}
    for file in sorted(folder.glob("*.json")):
        earned[file.name] = {}
        for kind, model in load_instance(file).models.items():
            if file.stem == "all-kinds-of-six-items" and not kind.startswith(("CM", "Graded", "CascadeMDP")):
                continue
            ranking = list(range(model.n_positions))[::-1]
            env_id = _id(kind)
            env = gym.make(env_id, instance=str(file))
            result = clickgym.run(clickgym.make_agent("Random", env, seed=2), env, 200, seed=3, checkpoints=[50, 200])
            earned[file.name][kind] = {
                "list": ranking, "expected": expected(model, kind, ranking), "env": env_id, "regret": result.regret.tolist()
            }  # fmt: skip
    (folder / "earned.json").write_text(json.dumps(earned, indent=1) + "\n")


def expected(model, kind: str, ranking: list[int]) -> list:
    """What a list earns before two users, in two epochs, or in each state."""
    if kind == "CascadeMDP":
        value = model.value if model.n_sessions is None else model.value[0]
        return [model.list_value(state, ranking, value) for state in range(model.n_states)] + model.value.tolist()
    if kind.startswith("LinearModel"):
        users = np.zeros((2, 0)) if model.users is None else model.users
        n_items = model.n_items
        others = {name: values[:n_items] for name, values in model.others.items()}
        at = [model.at(np.hstack([np.tile(user, (n_items, 1)), model.items[:n_items]]), **others) for user in users[:2]]
    elif kind.startswith(("LabelledModel", "GradedModel")):
        at = [model.at(user, model.candidates[user][: model.n_items]) for user in (0, 1)]
    elif kind.startswith("PiecewiseStationaryModel"):
        at = [model.at(step) for step in (0, 60)]
    else:
        at = [model]
    return [{reward: one.expected_reward(ranking, reward) for reward in one.rewards} for one in at]


def _piecewise(base) -> PiecewiseStationaryModel:
    rng = np.random.default_rng(4)
    return PiecewiseStationaryModel([base, base.with_items(attraction=rng.uniform(size=L).round(3))], starts=[0, 60])


def _pool() -> tuple[np.ndarray, np.ndarray, list]:
    """Features of items and of two users, and the candidates of each user."""
    rng = np.random.default_rng(5)
    candidates = [sorted(rng.choice(10, size, replace=False).tolist()) for size in (8, 7)]
    return rng.uniform(0, 0.4, (10, D)).round(3), np.array([[0.2], [0.4]]), candidates


def _linear(base) -> LinearModel:
    items, users, candidates = _pool()
    rng = np.random.default_rng(6)
    others = {name: rng.uniform(size=10).round(3) for name in base.item_parameters()[1:]}
    return LinearModel(base, [0.3, 0.6, 0.2, 0.5], items, users, candidates, **others)


def _labelled(base) -> LabelledModel:
    items, users, candidates = _pool()
    rng = np.random.default_rng(7)
    labels = {name: [rng.uniform(size=len(of)).round(3) for of in candidates] for name in base.item_parameters()}
    return LabelledModel(base, candidates, items=items, users=users, **labels)


def _graded(behaviour: str) -> GradedModel:
    items, _, candidates = _pool()
    rng = np.random.default_rng(8)
    grades = [rng.integers(3, size=len(of)) for of in candidates]
    held_out = {"candidates": [[0, 2, 4, 6, 8]], "grades": [[0, 1, 2, 0, 1]]}
    return GradedModel(behaviour, items, candidates, grades, n_items=L, n_positions=K, held_out=held_out)


def _memory(**sessions: int) -> CascadeMDP:
    rng = np.random.default_rng(9)
    laws = rng.dirichlet(np.ones(S), (S, L + 1))
    rewards = rng.uniform(0.5, 2, (S, L)).round(3)
    return CascadeMDP(
        rng.uniform(size=(S, L)).round(3), laws, n_positions=K, first=[0.25, 0.75], click_rewards=rewards, **sessions
    )


def _id(kind: str) -> str:
    outer, _, base = kind.rpartition(" of ")
    forms = {"": "", "PiecewiseStationaryModel": "NonStationary"}
    return f"{forms.get(outer, 'Contextual')}{base}Rank-v0"


# ------------------------------------------------------------------------------------------- sweeps and logs


def sweep(folder: Path) -> None:
    """What `clickgym run` made of an experiment file, with the trials from which it is resumed."""
    (folder / "experiment.toml").write_text(EXPERIMENT)
    shutil.copy(folder.parent / "instances" / "all-kinds-of-six-items.json", folder / "query.json")
    command("run", "experiment.toml", "--out", "results", cwd=folder)
    for name in ("regret.png", "regret.svg", "report.html"):  # large, and not read again
        (folder / "results" / name).unlink(missing_ok=True)


def log(folder: Path) -> None:
    """A log as tables of every kind, the models fitted to it, and what policies would have earned."""
    env = gym.make("DBNRank-v0", instance="uniform:n_items=6,n_positions=3,seed=1")
    env.reset(seed=11)
    rng = np.random.default_rng(10)
    scores = np.linspace(1, 0, L)
    weights = np.exp(scores)
    items, clicks, propensities = [], [], []
    for _ in range(400):
        ranking = np.argsort(-(scores + rng.gumbel(size=L)))[:K]  # the law of Plackett and Luce
        left = weights.sum() - np.cumsum([0, *weights[ranking[:-1]]])
        items.append(ranking)
        clicks.append(env.step(ranking)[0])
        propensities.append(np.prod(weights[ranking] / left))
    queries = (np.arange(len(items)) % 5 == 0).astype(int)
    documents, names = tuple(f"document {letter}" for letter in "abcdef"), ("red, or green?", "blue")
    sessions = ClickLog(items, clicks, queries, documents, names, list_propensities=propensities)
    for name in ("log.parquet", "log.csv"):
        write_tidy(sessions, folder / name)
    sessions = read_log(folder / "log.parquet")  # which numbers items in the order of their first display
    fitted = fit_models(sessions, FITTED, names, test_share=0)
    (folder / "fitted").mkdir()
    for number, query in enumerate(names):
        fitted.instances[query].save(folder / "fitted" / f"{number}.json")
    estimates = {
        name: [estimator.click_model(query, documents).to_dict() for query in names]
        for name, estimator in fitted.estimators.items()
    }
    (folder / "estimates.json").write_text(json.dumps(estimates) + "\n")
    np.savez(folder / "policy.npz", scores=2 * scores[::-1], items=np.array(documents))
    os.chdir(folder)
    values = {}
    for policy in ("policy.npz", "fitted/0.json:PBM", "uniform"):
        comparison = compare(
            sessions[sessions.queries == sessions.query_labels.index(names[0])], policy, ["ips", "pbm"], bootstrap=50
        )
        values[policy] = [[each.estimator, each.value, *each.interval] for each in comparison.evaluations]
    (folder / "values.json").write_text(json.dumps(values, indent=1) + "\n")


if __name__ == "__main__":
    target = Path(sys.argv[1]).resolve()
    for make in (agents, instances, sweep, log):
        (target / make.__name__).mkdir(parents=True)
        make(target / make.__name__)
