"""Your own click model: from arrays, and from a JSON file that the command line takes too.

python examples/own_parameters.py --out results/own
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import gymnasium as gym
import numpy as np

import clickgym
from clickgym.envs import DependentClickModel, Instance


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--horizon", type=float, default=1e5, help="sessions per run")
    parser.add_argument("--out", type=Path, required=True, help="folder of the files and results")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)

    # From arrays: the parameters are arguments of the environment.
    env = gym.make(
        "PBMRank-v0", attraction=np.linspace(0.5, 0.05, 12), examination=[1.0, 0.7, 0.5, 0.4]
    )
    agent = clickgym.make_agent("PBMUCB", env, seed=0)
    result = clickgym.run(agent, env, arguments.horizon, seed=0)
    print(f"from arrays: {agent!r}, regret {result.regret[-1]:.0f}")

    # From a file: the description of one click model is enough.
    model = DependentClickModel(attraction=[0.6, 0.5, 0.3, 0.2, 0.1], termination=[0.8, 0.6, 0.4])
    file = arguments.out / "mine.json"
    file.write_text(json.dumps(model.to_dict()), encoding="utf-8")
    env = gym.make("DCMRank-v0", instance=str(file), reward="satisfaction")
    print(f"from a file: {env.unwrapped.model!r}, best list {env.reset()[1]['optimal_ranking']}")

    # With a production list, `Fixed` knows what to show, and several click models can share the items.
    file = arguments.out / "shop.json"
    instance = Instance(
        "shop",
        {"DCM": model},
        n_positions=3,
        description="a shop's landing page",
        initial_ranking=np.array([2, 0, 1, 3, 4]),
    )
    instance.save(file)
    results = clickgym.sweep(
        ["DCMRank-v0:reward=satisfaction"],
        ["Fixed", "TopRank", "CascadeKLUCB:feedback=first_click"],
        arguments.horizon,
        2,
        out=arguments.out / "sweep",
        instances=[str(file)],
    )
    print(results.table().select("agent", "regret", "regret_ci95"))


if __name__ == "__main__":
    main()
