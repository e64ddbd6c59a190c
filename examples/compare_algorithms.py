"""Compare four algorithms on three random problems, in a table and a figure.

python examples/compare_algorithms.py

The command `clickgym run` makes such comparisons, too, and docs/first_comparison.md explains it.
"""

import clickgym

if __name__ == "__main__":  # worker processes import this file
    results = clickgym.sweep(
        ["PBMRank-v0", "CMRank-v0"],
        ["CascadeTS", "CascadeKLUCB", "TopRank", "Random"],  # the first agent is the reference
        horizon=10_000,
        runs=3,
        instances=["uniform:seed=1", "uniform:seed=2", "uniform:seed=3"],
        # out="results/mine" would save the runs, and the same sweep could continue after a stop
    )
    print(results)
    results.plot("comparison.png")
    print("\ncomparison.png has the figure, and results.rows all numbers:\n")
    print(results.rows.select("env", "instance", "agent", "run", "step", "regret").tail(3))
