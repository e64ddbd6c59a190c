"""Online learning to rank from judged queries: two curves for each agent and kind of users.

    python examples/letor.py train.txt --test test.txt --figure letor.png

The files are in SVMlight format, ``grade qid:Q feature:value ...``. Without ``--test`` a fifth of
the queries is held out.
"""

import argparse

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np

import clickgym
from clickgym.agents import Agent
from clickgym_logs import Judgments, held_out_ndcg, judged_instance, read_judgments


class Shuffled(Agent):
    """Documents in random order, blank rows last: the baseline, whose features are not read."""

    def __init__(self, n_items, n_positions, *, seed=None):
        self.rng, self.n_positions = np.random.default_rng(seed), n_positions

    def rank(self, observation):
        is_blank = ~observation["features"].any(axis=1)
        order = self.rng.permutation(len(is_blank))
        return order[np.argsort(is_blank[order], kind="stable")][: self.n_positions]

    def update(self, observation, ranking, clicks, reward):
        pass


def part(judged: Judgments, queries: np.ndarray) -> Judgments:
    """Return some of the queries, as another set."""
    rows = [np.arange(judged.starts[query], judged.starts[query + 1]) for query in queries]
    starts = np.cumsum([0, *map(len, rows)])
    names, rows = [judged.queries[query] for query in queries], np.concatenate(rows)
    return Judgments(tuple(names), starts, judged.grades[rows], judged.features[rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("train", help="judged queries to learn from")
    parser.add_argument("--test", help="judged queries to be measured on")
    parser.add_argument("--users", nargs="+", default=["perfect", "navigational", "informational"])
    parser.add_argument("--eta", type=float, default=0.1, help="learning rate of PDGD")
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--figure", default="letor.png", help="a .png or .svg file")
    options = parser.parse_args()

    train = read_judgments(options.train)
    if options.test:
        test = read_judgments(options.test, n_features=train.features.shape[1])
    else:
        order = np.random.default_rng(0).permutation(len(train.queries))
        fifth = len(order) // 5
        train, test = part(train, order[fifth:]), part(train, order[:fifth])
    size = max(options.sessions // 20, 1)
    # features are divided by train.scale in the environment, and PDGD learns in these
    agents = {"PDGD": f"PDGD:learning_rate={options.eta * train.scale**2}", "Shuffled": Shuffled}
    panels = plt.subplots(2, len(options.users), figsize=(10, 5), sharex=True, sharey=True)[1]
    for column, users in zip(panels.reshape(2, -1).T, options.users, strict=True):
        instance = judged_instance(train, users)
        print(instance.description)
        env = gym.make("ContextualDBNRank-v0", instance=instance)
        for name, spec in agents.items():
            agent, online, held_out = clickgym.make_agent(spec, env, seed=0), [], []
            for block in range(20):
                result = clickgym.run(agent, env, size, seed=block, metrics=["ndcg@10"])
                online.append(result.metrics["ndcg@10"][-1] / size)
                if name != "Shuffled":
                    held_out.append(held_out_ndcg(agent.best, test))
            column[0].plot(size * np.arange(1, 21), online, label=name)
            column[1].plot(size * np.arange(1, 1 + len(held_out)), held_out)
            last = f", on held-out queries {held_out[-1]:.3f}" if held_out else ""
            print(f"{users} users, {name}: nDCG@10 online {np.mean(online):.3f}{last}")
        column[0].set(title=f"{users} users")
        column[1].set(xlabel="sessions")
    panels.flat[0].set(ylabel="nDCG@10, shown")
    panels.flat[len(options.users)].set(ylabel="nDCG@10, held out")
    panels.flat[0].legend()
    plt.tight_layout()
    plt.savefig(options.figure)


if __name__ == "__main__":
    main()
