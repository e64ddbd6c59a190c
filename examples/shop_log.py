"""The click log of a simulated shop, an A/B test in it, and what a real shop cannot know.

    python examples/shop_log.py                               # writes log.parquet
    python examples/shop_log.py --test hats belts --days 56   # writes test.parquet
    python examples/shop_log.py --truth hats belts            # prints what list B is worth
    python examples/shop_log.py --users hats belts            # writes its users into true/

The shop has 30 queries. For 60 days a second server answers one session in four, with other lists.
From day 40 on it shows today's list for hats. ``--test`` plays an A/B test of the lists of both
servers after these days, in which each user keeps an arm. The users of ``--users`` click like the
average user of the shop, and know all eight items of a query, of which the log shows some.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl

from clickgym.envs import Instance, PositionBasedModel

NAMES = (
    "shoes hats jackets scarves socks shirts belts dresses caps gloves skirts boots jeans coats "
    "sweaters umbrellas bags ties vests shorts sandals pyjamas hoodies blouses suits slippers "
    "leggings raincoats swimwear watches"
)
QUERIES = NAMES.split()
ITEMS, POSITIONS = 8, 5  # of each query
USERS, SESSIONS_A_DAY = 30_000, 1_200
DAYS, LAST_DAY_OF_B = 60, {"hats": 40}
FIRST_DAY = 1_772_323_200  # 1 March 2026, in seconds since 1970
EXAMINATION = 0.95 * 0.75 ** np.arange(POSITIONS)


class Shop:
    """Two lists of each query, and users who differ in how readily they click."""

    def __init__(self) -> None:
        rng = np.random.default_rng(11)
        self.attraction = rng.beta(1.6, 6.0, (len(QUERIES), ITEMS))
        guesses = np.log(self.attraction) + rng.normal(0, 0.7, (2, len(QUERIES), ITEMS))
        self.lists = np.argsort(-guesses, axis=2)[:, :, :POSITIONS]  # of servers A and B
        popularity = 1 / np.arange(1, len(QUERIES) + 1)
        self.popularity = popularity / popularity.sum()
        activity = rng.lognormal(0, 1, USERS)
        self.activity = activity / activity.sum()
        taste = rng.lognormal(0, 0.5, USERS)
        self.taste = taste / (self.activity @ taste)

    def gain(self, name: str) -> float:
        """What list B earns more than list A, in clicks per session."""
        query = QUERIES.index(name)
        today, other = self.attraction[query, self.lists[:, query]] @ EXAMINATION
        return float(other - today)

    def users(self, name: str) -> Instance:
        """The average users of a query, and its items: those of list A first."""
        query = QUERIES.index(name)
        order = np.argsort(~np.isin(np.arange(ITEMS), self.lists[0, query]), kind="stable")
        order[:POSITIONS] = self.lists[0, query]
        users = PositionBasedModel(self.attraction[query, order], EXAMINATION)
        items = [f"{name}-{item + 1}" for item in order]
        facts = {"query": name, "items": items}
        return Instance(
            name, {"PBM": users}, POSITIONS, initial_ranking=np.arange(ITEMS), estimation=facts
        )

    def sessions(self, first_day: int, days: int, seed: int) -> pl.DataFrame:
        """Draw who asks which query when, in the order of time."""
        rng = np.random.default_rng(seed)
        n = days * SESSIONS_A_DAY
        day = np.sort(first_day + rng.integers(days, size=n) + rng.beta(3, 2, n))
        return pl.DataFrame(
            {
                "session": first_day * SESSIONS_A_DAY + np.arange(n),
                "user": rng.choice(USERS, n, p=self.activity),
                "query": np.array(QUERIES)[rng.choice(len(QUERIES), n, p=self.popularity)],
                "day": day,
                "time": (FIRST_DAY + 86_400 * day).astype(np.int64),
            }
        )

    def shown(self, sessions: pl.DataFrame, is_b: np.ndarray, seed: int) -> pl.DataFrame:
        """Show a list in each session, and draw the clicks: a row for each position."""
        query = sessions["query"].replace_strict(QUERIES, range(len(QUERIES))).to_numpy()
        items = self.lists[is_b.astype(int), query]
        evening = 1 + 0.2 * np.sin(2 * np.pi * (sessions["day"].to_numpy() - 0.6))
        readily = self.taste[sessions["user"].to_numpy()] * evening
        chances = readily[:, None] * self.attraction[query[:, None], items] * EXAMINATION
        clicks = np.random.default_rng(seed).random(chances.shape) < chances
        rows = sessions.drop("day")[np.arange(len(sessions)).repeat(POSITIONS)]
        return rows.with_columns(
            position=pl.Series(np.tile(np.arange(1, POSITIONS + 1), len(sessions))),
            item=pl.format("{}-{}", "query", pl.Series(items.ravel() + 1)),
            clicked=pl.Series(clicks.ravel().astype(np.int8)),
        )

    def log(self) -> pl.DataFrame:
        sessions = self.sessions(0, DAYS, seed=0)
        is_b = np.random.default_rng(1).random(len(sessions)) < 0.25
        ends = sessions["query"].replace_strict(LAST_DAY_OF_B, default=DAYS).to_numpy()
        return self.shown(sessions, is_b & (sessions["day"].to_numpy() < ends), seed=2)

    def test(self, names: list[str], days: int) -> pl.DataFrame:
        sessions = self.sessions(DAYS, days, seed=3).filter(pl.col("query").is_in(names))
        is_b = np.random.default_rng(4).random(USERS)[sessions["user"].to_numpy()] < 0.5
        arms = pl.Series("arm", np.where(is_b, "B", "A"))
        return self.shown(sessions.with_columns(arms), is_b, seed=5)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--test", nargs="+", choices=QUERIES, default=[], metavar="QUERY")
    parser.add_argument("--days", type=int, default=42, help="length of the test (default 42)")
    parser.add_argument("--truth", nargs="+", choices=QUERIES, default=[], metavar="QUERY")
    parser.add_argument("--users", nargs="+", choices=QUERIES, default=[], metavar="QUERY")
    arguments = parser.parse_args()
    shop = Shop()
    for name in arguments.truth:
        a_day = SESSIONS_A_DAY * shop.popularity[QUERIES.index(name)] * shop.gain(name)
        print(f"{name:8} {shop.gain(name):+.3f} clicks a session, {a_day:+5.1f} a day")
    for name in arguments.users:
        Path("true").mkdir(exist_ok=True)
        shop.users(name).save(Path("true") / f"{name}.json")
    if arguments.test:
        shop.test(arguments.test, arguments.days).write_parquet("test.parquet")
    elif not arguments.truth and not arguments.users:
        shop.log().write_parquet("log.parquet")


if __name__ == "__main__":
    main()
