"""The seeds of the runs in a sweep."""

from __future__ import annotations

from functools import lru_cache

import numpy as np


@lru_cache(maxsize=2**16)
def run_seed(seed: int, instance: str, run: int, n_queries: int = 1) -> int:
    """Return the seed of a run in a sweep, for both the users and the agent.

    The seed does not depend on the agent, so all agents have the same users. The seed depends on
    the instance, so that runs on different instances are independent, but not on the environment.
    If an instance has several queries, the seed also chooses the query: run r plays query r modulo
    the number of queries.

    Args:
        seed: the seed of the sweep.
        instance: the name of the instance in the results.
        run: the number of the run, from 0.
        n_queries: the number of queries of the instance.

    Returns:
        An integer. Pass it to `clickgym.run` to repeat the run.

    Example:
        >>> import clickgym
        >>> rows = clickgym.sweep(["PBMRank-v0"], ["TopRank"], 100, 2, seed=7).rows
        >>> int(rows["seed"][-1]) == run_seed(7, "yandex-9982", 1)
        True
        >>> alone = clickgym.run("TopRank", "PBMRank-v0", 100, seed=run_seed(7, "yandex-9982", 1))
        >>> bool(rows["regret"][-1] == alone.regret[-1])
        True
    """
    key = (run, *instance.encode())
    number = int(np.random.SeedSequence(seed, spawn_key=key).generate_state(1)[0])
    return number - number % n_queries + run % n_queries
