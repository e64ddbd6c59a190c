"""Fit simulated users to a click log, and find out which algorithm suits these users.

python examples/fit_a_log.py

To use your own log, you need a CSV or Parquet file with a row for each item shown.
docs/first_log.md explains the same steps in more detail, and docs/fit.md lists the columns.
"""

import gymnasium as gym
import polars as pl

import clickgym
from clickgym import logs

QUERIES = ["yandex-9", "yandex-990", "yandex-9910", "yandex-9941", "yandex-9982", "yandex-99761"]

if __name__ == "__main__":
    sessions = []
    for number, query in enumerate(QUERIES):  # simulated users take the place of your real users
        env = gym.make("DBNRank-v0", instance=query)
        log = logs.record(clickgym.make_agent("BubbleRank", env, seed=0), env, 2_000, seed=0)
        sessions.append(log.to_frame().with_columns(pl.col("session") + 2_000 * number))
    pl.concat(sessions).write_csv("log.csv")

    log = logs.read_log("log.csv")
    print(log)
    print(logs.check_models(log, ["PBM", "DBN"]).sentence)  # can the models rank new lists?
    fitted = logs.fit_models(log, ["DBN"], QUERIES)
    for query, users in fitted.instances.items():
        users.save(f"{query}.json")
    agents = ["CascadeTS", "PBMHB", "Fixed", "Random"]  # Fixed shows today's list
    files = [f"{query}.json" for query in QUERIES]
    print(clickgym.sweep(["DBNRank-v0"], agents, 5_000, 2, instances=files))
