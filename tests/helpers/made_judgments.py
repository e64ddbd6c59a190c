"""Made files of judged queries."""

import numpy as np


def write_judgments(path, n_queries, seed=0):
    """Write queries with 5 to 14 documents, of which the first feature is the grade, with noise."""
    rng, lines = np.random.default_rng(seed), []
    for query in range(n_queries):
        for _ in range(rng.integers(5, 15)):
            grade = rng.integers(5)
            good, *noise = 0.2 * rng.random(4) + [grade / 5, 0, 0, 0]
            features = " ".join(f"{i}:{x:.3f}" for i, x in enumerate([good, *noise], 1))
            lines.append(f"{grade} qid:{query} {features}\n")
    path.write_text("".join(lines), encoding="utf-8")
