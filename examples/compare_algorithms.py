"""Compare four algorithms on three random problems, with a table and a figure.

python examples/compare_algorithms.py

`clickgym run` does the same from the command line, and docs/first_comparison.md explains it.
"""

import clickgym

if __name__ == "__main__":  # workers import this file
    results = clickgym.sweep(
        ["PBMRank-v0", "CMRank-v0"],
        ["CascadeTS", "CascadeKLUCB", "TopRank", "Random"],  # the first is the reference
        horizon=10_000,
        runs=3,
        instances=["uniform:seed=1", "uniform:seed=2", "uniform:seed=3"],
        # out="results/mine" would keep the runs: a stopped sweep then resumes
    )
    print(results)
    results.plot("comparison.png")
    print("\ncomparison.png has the figure, and results.rows all numbers:\n")
    print(results.rows.select("env", "instance", "agent", "run", "step", "regret").tail(3))
