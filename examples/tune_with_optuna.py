"""Tune PPO's hyperparameters with Optuna (pip install optuna).

python examples/tune_with_optuna.py

The comparison at the end uses different instances and seeds than the search: on the same instances
and seeds, the best trial would owe part of its result to luck. Each trial trains two policies for
5,000 sessions each, which takes about two seconds. For real results, use more trials, runs and
instances than this program. docs/runner.md tunes a bandit in the same way, and docs/rl.md shows how
to stop bad trials of your own training loop early.
"""

import optuna

import clickgym

SEARCHED = ["uniform:seed=11", "uniform:seed=12"]
REPORTED = ["uniform:seed=1", "uniform:seed=2", "uniform:seed=3"]


def play(agents, instances, seed):
    return clickgym.sweep(
        ["PBMRank-v0"], agents, 5_000, 1, instances=instances, seed=seed, progress=False
    )


def regret(trial):
    settings = {
        "learning_rate": trial.suggest_float("learning_rate", 3e-4, 3e-2, log=True),
        "n_steps": trial.suggest_categorical("n_steps", [2, 4, 8]),
        "n_epochs": trial.suggest_int("n_epochs", 2, 8),
    }
    return play({"trial": ("PPO", settings)}, SEARCHED, seed=0).table()["regret"][0]


if __name__ == "__main__":
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(regret, n_trials=6)
    print("the best of the search:", study.best_params)
    print(play({"default": "PPO", "tuned": ("PPO", study.best_params)}, REPORTED, seed=1))
