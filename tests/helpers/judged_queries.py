"""Random queries with relevance judgments, as objects and as files, and nDCG by its definition."""

import math

import gymnasium as gym
import numpy as np

from clickgym.logs import Judgments, judged_instance


def judged(n_queries=7, n_features=4, seed=0, prefix=""):
    """Return random judged queries with 1 to 7 documents each. The first query has no relevant
    document. The names of the queries are numbers after a prefix.
    """
    rng = np.random.default_rng(seed)
    sizes = np.arange(n_queries) + 1
    starts = np.concatenate([[0], np.cumsum(sizes)])
    grades = rng.integers(0, 5, starts[-1])
    grades[0] = 0
    features = rng.normal(size=(starts[-1], n_features))
    queries = tuple(f"{prefix}{number}" for number in range(n_queries))
    return Judgments(queries, starts, grades, features)


def ndcg(shown, candidates, k):
    """Return nDCG, computed from gains by its definition."""
    gains = [
        sum(gain / math.log2(p + 2) for p, gain in enumerate(row[:k]))
        for row in (shown, sorted(candidates, reverse=True)[: min(k, len(shown))])
    ]
    return gains[0] / gains[1] if gains[1] else 0.0


def with_test(folder):
    """Return an environment with held-out queries, created from a file as the commands on the page
    do, and the held-out queries.
    """
    test = judged(seed=1, prefix="new")
    instance = judged_instance(judged(), test=test, n_items=5, n_positions=3)
    instance.save(folder / "judged.json")
    return gym.make("ContextualDBNRank-v0", instance=folder / "judged.json"), test


def write_judgments(path, n_queries, seed=0):
    """Write a file of judged queries with 5 to 14 documents each. The first feature of a document
    is its grade plus noise.
    """
    rng, lines = np.random.default_rng(seed), []
    for query in range(n_queries):
        for _ in range(rng.integers(5, 15)):
            grade = rng.integers(5)
            good, *noise = 0.2 * rng.random(4) + [grade / 5, 0, 0, 0]
            features = " ".join(f"{i}:{x:.3f}" for i, x in enumerate([good, *noise], 1))
            lines.append(f"{grade} qid:{query} {features}\n")
    path.write_text("".join(lines), encoding="utf-8")
