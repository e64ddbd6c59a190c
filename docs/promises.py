"""What simulations of a log promise of an algorithm, in 30 shops whose truth is known.

    python docs/promises.py    # prints the table of which_agent.md

Users are a dynamic Bayesian network (DBN). Half of the sessions of a week show today's list, the
others five lists near it. Two algorithms start from this log and play another week, with clicks
once a day: before the true users, and before users that are fitted to the same log. By halves, the
users are fitted to one half of the sessions, and the algorithms start from the other.
"""

from __future__ import annotations

import numpy as np

import clickgym
from clickgym.envs import DynamicBayesianModel, Instance
from clickgym_logs import ClickLog, fit_models, train_test_split

SHOPS, ITEMS, POSITIONS, DAY, DAYS = 30, 10, 5, 1_000, 7
AGENTS = "CascadeTS", "PBMHB"


def shop(rng: np.random.Generator) -> tuple[Instance, ClickLog]:
    """The users of a shop, and its log."""
    attraction, satisfaction = rng.beta(1.5, 5, ITEMS), rng.beta(2, 3, ITEMS)
    users = DynamicBayesianModel(attraction, satisfaction, 0.85, n_positions=POSITIONS)
    orders = np.argsort(-np.log(attraction) - rng.normal(0, 0.7, (6, ITEMS)), axis=1)
    shown = rng.choice(6, DAYS * DAY, p=[0.5, 0.1, 0.1, 0.1, 0.1, 0.1])
    lists = orders[shown, :POSITIONS]
    labels = tuple(map(str, range(ITEMS)))
    clicks = [users.sample(ranking, rng) for ranking in lists]
    log = ClickLog(lists, clicks, np.zeros(len(lists)), labels, ("query",))
    facts = {"query": "query", "items": list(labels)}
    models = {"DBN": users}
    return Instance("true", models, POSITIONS, initial_ranking=orders[0], estimation=facts), log


def gain(users: Instance, start: ClickLog) -> np.ndarray:
    """How many clicks a day more than today's list each algorithm gets in the first week."""
    (model,) = users.models
    results = clickgym.sweep(
        [f"{model}Rank-v0"],
        [*AGENTS, "Fixed"],
        DAY * DAYS,
        4,
        instances=[users],
        start=start,
        delay=f"batch:{DAY}",
    )
    regret = dict(results.table().select("agent", "regret").iter_rows())
    return np.array([(regret["Fixed"] - regret[agent]) / DAYS for agent in AGENTS])


def fitted(log: ClickLog, model: str) -> Instance:
    return fit_models(log, [model], test_share=0).instances["query"]


def main() -> None:
    shops = [shop(np.random.default_rng([2026, seed])) for seed in range(SHOPS)]
    print("|", " | ".join(["users", *AGENTS]), "|")
    print("|---" * 3 + "|")

    def show(name: str, gains: list[np.ndarray]) -> None:
        cells = [f"{mean:+.0f}" for mean in np.mean(gains, axis=0)]
        print("|", " | ".join([name, *cells]), "|", flush=True)

    show("the true ones, DBN", [gain(*each) for each in shops])
    for model in ("DBN", "UBM", "PBM"):
        show(f"{model}, fitted", [gain(fitted(log, model), log) for _, log in shops])
        halves = [train_test_split(log, 0.5) for _, log in shops]
        crossed = [
            (gain(fitted(first, model), second) + gain(fitted(second, model), first)) / 2
            for first, second in halves
        ]
        show(f"{model}, by halves", crossed)


if __name__ == "__main__":
    main()
