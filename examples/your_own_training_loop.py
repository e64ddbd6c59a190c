"""REINFORCE in NumPy, in your own training loop, compared with two bandits in one table.

python examples/your_own_training_loop.py

docs/own_rl_loop.md gives the rules for such loops; cleanrl_style_ppo.py is a longer
example that uses torch.
"""

import gymnasium as gym
import numpy as np

import clickgym

B, K = 64, 5  # parallel environments, positions


def train(seed, n_sessions, rate=0.5):
    """Learn a score for each item, from the rewards of lists that are drawn by these scores."""
    rng, scores = np.random.default_rng(seed), np.zeros(10)
    envs = clickgym.RecordVectorRegret(gym.make_vec("PBMRank-v0", B))
    envs.reset(seed=seed)
    for _ in range(n_sessions // B):
        lists = np.argsort(-scores - rng.gumbel(size=(B, 10)))[:, :K]  # Plackett–Luce
        _, rewards, *_ = envs.step(lists)
        gain = rewards - rewards.mean()
        left, gradient = np.tile(np.exp(scores), (B, 1)), np.zeros(10)
        for k in range(K):
            chosen = np.eye(10)[lists[:, k]]
            gradient += gain @ (chosen - left / left.sum(axis=1, keepdims=True))
            left *= 1 - chosen
        scores += rate * gradient / B
    return envs.result("REINFORCE", trained=0)


if __name__ == "__main__":
    mine = [train(seed, 20_480) for seed in (0, 1000, 2000)]
    bandits = clickgym.sweep(["PBMRank-v0"], ["CascadeTS", "Random"], 20_480, runs=3)
    print(clickgym.Results([bandits, *mine]))
