"""Pages of more positions than an exact search for the best list can take."""

import gymnasium as gym
import numpy as np
import pytest

from clickgym.envs import UserBrowsingModel
from clickgym_logs import ClickLog, decide, fit_models, write_tidy
from clickgym_logs.best_list import best_list, exact_positions


def log_of(n_positions, n=3000):
    """Two lists of users whose examination depends on the last click, which UBM predicts best."""
    rng = np.random.default_rng(3)
    order = rng.permutation(n_positions)
    lists = np.where(rng.random((n, 1)) < 0.4, order[::-1], order)
    attraction = np.linspace(0.6, 0.1, n_positions)
    clicks, last = np.zeros((n, n_positions), int), np.full(n, -1)
    for k in range(n_positions):
        examined = np.where(last < 0, 0.95, 0.9 ** (2 * (k - last)))
        clicks[:, k] = rng.random(n) < attraction[lists[:, k]] * examined
        last = np.where(clicks[:, k], k, last)
    labels = tuple(f"i{item}" for item in range(n_positions))
    return ClickLog(lists, clicks, np.zeros(n, int), labels, ("q",), times=np.arange(n))


class SmallSearch(UserBrowsingModel):
    """Users for whom an exact search compares no more than ten lists."""

    max_search = 10


def test_local_search_finds_the_best_list_or_nearly():
    rng = np.random.default_rng(0)
    models = [UserBrowsingModel(rng.beta(1, 2, 8), rng.random((6, 6))) for _ in range(10)]
    best = [users.expected_reward(users.optimal_ranking()) for users in models]
    models = [SmallSearch(users.attraction, users.examination) for users in models]
    found = [best_list(users) for users in models]
    assert not any(exact for _, exact in found)
    shares = [
        users.expected_reward(ranking) / value
        for users, (ranking, _), value in zip(models, found, best, strict=True)
    ]
    assert min(shares) > 0.95
    assert sum(share > 1 - 1e-9 for share in shares) >= 7
    assert best_list(models[0], "any_click")[1]  # by a theorem


def test_local_search_counts_the_positions_of_the_cutoff():
    users = SmallSearch([0.1, 0.5, 0.3, 0.9], np.full((3, 3), 0.5))
    ranking, exact = best_list(users, cutoff=2)
    assert (set(ranking[:2].tolist()), exact, len(set(ranking.tolist()))) == ({1, 3}, False, 3)


def test_local_search_takes_items_that_are_not_shown_at_first():
    """Who clicks at the top reads no further, and only a click at the second position leads to the
    third: an item that nobody clicks belongs at the top.
    """
    users = SmallSearch([0.9, 0.9, 0.9, 0.0], [[1, 0, 0], [1, 0, 0], [0, 0, 1]])
    ranking, exact = best_list(users)
    assert (ranking[0], exact) == (3, False)
    assert users.expected_reward(ranking) == pytest.approx(0.9 * (1 + 0.9))


def test_verdict_on_fifty_positions():
    decided = decide(log_of(50))
    assert decided.verdict == "no list is proved better"
    assert len(decided.production) == len(decided.measured[0].labels) == 50


def test_commands(tmp_path, printed):
    """What `fit` writes, it names a command for that runs; `evaluate` searches locally."""
    write_tidy(log_of(12, 1000), tmp_path / "log.csv")
    log, file = str(tmp_path / "log.csv"), str(tmp_path / "q.json")
    shown = printed(["fit", log, "--model", "UBM", "--bootstrap", "0", "--out", file])
    assert f"clickgym run UBMRank-v0:cutoff=7 --instance {file}" in shown
    assert gym.make("UBMRank-v0", instance=file, cutoff=7).reset()[1]["optimal_reward"] > 0
    with pytest.raises(ValueError, match="requires an exact search"):
        gym.make("UBMRank-v0", instance=file)
    command = ["evaluate", log, "--policy", f"{file}:UBM", "--estimator", "ubm"]
    assert "local search" in printed(command)


def test_items_of_an_instance_fill_the_positions():
    (instance,) = fit_models(log_of(12), ["PBM"]).instances.values()
    assert (instance.n_items, instance.n_positions) == (12, 12)
    assert exact_positions(instance.model("PBM")) == 12
