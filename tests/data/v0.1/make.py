"""How the files in this folder were made, once, by clickgym 0.1.0: instances that later versions read, and a sweep that they
refuse, of which the configuration is kept.

python make.py FOLDER, with that version installed. `tests/test_compatibility.py` and `tests/runner/test_results.py` read what
it writes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np

import clickgym
from clickgym.envs import LabelledModel, PositionBasedModel, load_instance

L, K, D = 6, 3, 3
SHORT = {
    "CM": "CascadeModel",
    "PBM": "PositionBasedModel",
    "DCM": "DependentClickModel",
    "UBM": "UserBrowsingModel",
    "DBN": "DynamicBayesianModel",
}


def sweep(folder: Path) -> None:
    words = (
        "PBMRank-v0 CMRank-v0 DCMRank-v0 --agents BatchRank CascadeKLUCB:feedback=first_click Random --horizon 2000 --runs 2"
    )
    command = ["clickgym", "run", *words.split(), "--metrics", "any_click", "ndcg", "--out", folder]
    subprocess.run([sys.executable, "-m", *command], check=True)
    for name in ("regret.png", "regret.svg", "cells"):  # large, and not read again
        path = folder / name
        for file in path.iterdir() if path.is_dir() else [path]:
            file.unlink()
    (folder / "cells").rmdir()


def instances(folder: Path) -> None:
    """Instance files of every kind; what a list earns in each, and the regret of random lists in its environments."""
    base = PositionBasedModel([0] * 4, [0.9, 0.5])
    labelled = LabelledModel(
        base,
        candidates=[[0, 1, 2, 3, 4], [2, 3, 4, 5]],
        attraction=[[0.9, 0.1, 0.3, 0.5, 0.2], [0.2, 0.3, 0.8, 0.4]],
        items=[[0.1, 0.2], [0.3, 0.1], [0.5, 0.5], [0.2, 0.6], [0.4, 0.4], [0.6, 0.1]],
        users=[[0.2], [0.4]],
    )
    made = {
        "uniform": load_instance("uniform:n_items=6,n_positions=3,seed=1"),
        "switching": load_instance("li2019-switching:n_positions=3,n_epochs=4,length=50,seed=1"),
        "linear": load_instance("linear:n_items=5,n_positions=3,n_features=4,n_pool=12,n_users=6,seed=1"),
        "labelled": clickgym.envs.Instance("labelled", {labelled.kind: labelled}, 2, "two users", "made up"),
    }
    for name, instance in made.items():
        instance.save(folder / f"{name}.json")
    bare = dict(made["uniform"].models.items())
    for name in ("switching", "linear", "labelled"):
        bare |= dict(list(made[name].models.items())[:1])
    for kind, model in bare.items():
        (folder / f"{kind.replace(' ', '-')}.json").write_text(json.dumps(model.to_dict()) + "\n")
    earned: dict[str, dict] = {}
    for file in sorted(folder.glob("*.json")):
        earned[file.name] = {}
        for kind, model in load_instance(str(file)).models.items():
            ranking = list(range(model.n_positions))[::-1]
            record: dict = {"list": ranking}
            if kind.startswith("LinearModel"):
                at = [model.at(model.items[:5] if model.users is None else _features(model, user)) for user in (0, 1)]
            elif kind.startswith("LabelledModel"):
                at = [model.at(user, model.candidates[user][: model.n_items]) for user in (0, 1)]
            elif kind.startswith("Piecewise"):
                at = [model.at(step) for step in (0, 60)]
            else:
                at = [model]
            record["expected"] = [{reward: one.expected_reward(ranking, reward) for reward in one.rewards} for one in at]
            env_id = _id(kind)
            env = gym.make(env_id, instance=str(file)) if env_id in gym.registry else None
            if env is not None:
                agent = clickgym.make_agent("Random", env, seed=2)
                record["env"] = env_id
                record["regret"] = clickgym.run(agent, env, 200, seed=3, checkpoints=[50, 200]).regret.tolist()
            earned[file.name][kind] = record
    (folder / "earned.json").write_text(json.dumps(earned, indent=1) + "\n")


def _features(model, user: int) -> np.ndarray:
    return np.hstack([np.tile(model.users[user], (5, 1)), model.items[:5]])


def _id(kind: str) -> str:
    outer, _, base = kind.rpartition(" of ")
    prefix = next(short for short, name in SHORT.items() if name == base)
    kinds = {"": "", "PiecewiseStationaryModel": "NonStationary", "LinearModel": "Contextual", "LabelledModel": "Contextual"}
    return f"{kinds[outer]}{prefix}Rank-v0"


if __name__ == "__main__":
    target = Path(sys.argv[1]).resolve()
    for make in (sweep, instances):
        (target / make.__name__).mkdir(parents=True)
        make(target / make.__name__)
