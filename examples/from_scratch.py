"""Learn to rank from clicks without clickgym, in one file, and then with clickgym for comparison.

    python examples/from_scratch.py --out scratch.png

The first part needs only NumPy and matplotlib. Copy it, and change the users or the algorithm.
"""

import argparse

import numpy as np
from matplotlib.figure import Figure

ATTRACTION = np.array([0.5, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1])  # (L,), for items 0 to 7
EXAMINATION = np.array([1.0, 0.6, 0.4, 0.3])  # (K,), for positions 1 to 4


def click(ranking, rng):
    """Draw the clicks of one user on a list: (K,) zeros and ones."""
    looks = rng.random(len(ranking)) < EXAMINATION
    return looks & (rng.random(len(ranking)) < ATTRACTION[ranking])


def expected_clicks(ranking):
    """Return the expected number of clicks on a list, so that luck plays no part in the regret."""
    return EXAMINATION @ ATTRACTION[ranking]


BEST = np.argsort(-ATTRACTION)[: len(EXAMINATION)]  # because examination decreases


class ThompsonSampling:
    """Draw a plausible attraction for each item, given its clicks so far, and rank by the draws.

    The agent knows how often users look at each position, so showing an item at a lower position
    counts for less. The algorithm is BC-MPTS (Lagrée et al. 2016, section 5).
    """

    def __init__(self, rng):
        self.rng = rng
        self.clicks = np.zeros(len(ATTRACTION))
        self.seen = np.zeros(len(ATTRACTION))  # expected number of examinations

    def rank(self):
        skips = np.maximum(self.seen - self.clicks, 0)
        draws = self.rng.beta(1 + self.clicks, 1 + skips)
        return np.argsort(-draws)[: len(EXAMINATION)]

    def update(self, ranking, clicks):
        self.clicks[ranking] += clicks
        self.seen[ranking] += EXAMINATION


def play(horizon, seed):
    """Play one run, and return the cumulative regret after each session, (horizon,)."""
    users, agent = np.random.default_rng(seed), ThompsonSampling(np.random.default_rng([seed, 1]))
    lost = np.empty(horizon)
    for session in range(horizon):
        ranking = agent.rank()
        agent.update(ranking, click(ranking, users))
        lost[session] = expected_clicks(BEST) - expected_clicks(ranking)
    return lost.cumsum()


def described(regret):
    """Format the mean regret over the runs, with an approximate 95 % interval."""
    return f"{np.mean(regret):.1f} ± {1.96 * np.std(regret, ddof=1) / np.sqrt(len(regret)):.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--horizon", type=int, default=5_000, help="sessions per run")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--out", default="scratch.png", help="file for the figure")
    given = parser.parse_args()

    runs = np.array([play(given.horizon, seed) for seed in range(given.runs)])
    print(f"from scratch:  {described(runs[:, -1])} clicks lost in {given.horizon:,} sessions")

    figure = Figure(figsize=(5, 3.5), layout="constrained")
    axes = figure.add_subplot(xlabel="sessions", ylabel="clicks lost so far")
    axes.plot(runs.T, color="tab:blue", alpha=0.2)
    axes.plot(runs.mean(axis=0), color="tab:blue")
    figure.savefig(given.out)

    # The same users and algorithm in clickgym, which draws different random numbers.
    import gymnasium as gym

    import clickgym

    env = gym.make("PBMRank-v0", attraction=ATTRACTION, examination=EXAMINATION)
    regret = []
    for seed in range(given.runs):
        agent = clickgym.make_agent("BCMPTS", env, seed=seed)
        regret.append(clickgym.run(agent, env, given.horizon, seed=seed).regret[-1])
    print(f"with clickgym: {described(regret)}")


if __name__ == "__main__":
    main()
