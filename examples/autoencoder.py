"""Features through a denoising autoencoder, as in section 6.4.1 of He et al. 2020, Contextual user
browsing bandits (RecSys).

    python examples/autoencoder.py --epochs 200

The paper compresses 56 features of items by hidden layers of 25, 10, 10 and 25 units; the output of
the second layer is the code. It does not report optimiser, epochs or batch size: here Adam, 200 and
128. The items are synthetic: 56 observed features of 10 hidden ones. Then a bandit ranks by the
codes, for users whose attraction is linear in the hidden features. Requires the extra ``rl``.
"""

from __future__ import annotations

import argparse

import gymnasium as gym
import numpy as np
import torch

import clickgym
from clickgym.envs import UserBrowsingModel

N_ITEMS, N_FEATURES, N_HIDDEN = 2000, 56, 10
NOISE, BATCH = 0.05, 128


def made_up(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return synthetic items: their hidden features, and their observed features in [0, 1]."""
    hidden = rng.random((N_ITEMS, N_HIDDEN))
    seen = 1 / (1 + np.exp(-(hidden - 0.5) @ rng.normal(size=(N_HIDDEN, N_FEATURES))))
    return hidden, seen


def codes_of(features: np.ndarray, epochs: int, seed: int) -> tuple[np.ndarray, float]:
    """Return the codes of features, and the mean squared error of the reconstruction."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    layers = (
        torch.nn.Linear(N_FEATURES, 25),
        torch.nn.Linear(25, 10),
        torch.nn.Linear(10, 10),
        torch.nn.Linear(10, 25),
    )
    encoder = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU())
    decoder = torch.nn.Sequential(
        layers[2], torch.nn.ReLU(), layers[3], torch.nn.ReLU(), torch.nn.Linear(25, N_FEATURES)
    )
    optimiser = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
    clean = torch.tensor(features, dtype=torch.float32)
    for _ in range(epochs):
        for rows in torch.randperm(len(clean)).split(BATCH):
            noisy = (1 - NOISE) * clean[rows] + NOISE * torch.rand(len(rows), N_FEATURES)
            loss = torch.mean((decoder(encoder(noisy)) - clean[rows]) ** 2)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    with torch.no_grad():
        codes = encoder(clean)
        return codes.numpy().astype(float), float(torch.mean((decoder(codes) - clean) ** 2))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--sessions", type=int, default=20_000)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    hidden, seen = made_up(rng)
    codes, error = codes_of(seen, options.epochs, seed=0)
    print(
        f"{N_FEATURES} features restored from {codes.shape[1]} numbers: "
        f"error {error:.4f}, variance {seen.var():.4f}"
    )
    candidates = [rng.permutation(N_ITEMS)[:12] for _ in range(200)]
    attraction = list((hidden @ rng.dirichlet(np.ones(N_HIDDEN)))[np.array(candidates)])
    base = UserBrowsingModel(np.full(12, 0.5), np.tril(np.full((6, 6), 0.8)))
    for name, features in (("the features", seen), ("the codes", codes)):
        scaled = features / np.linalg.norm(features, axis=1).max()
        env = gym.make(
            "ContextualUBMRank-v0",
            base=base,
            candidates=candidates,
            attraction=attraction,
            items=scaled,
        )
        result = clickgym.run("UBMLinUCB:alpha=0.1", env, options.sessions, seed=0)
        print(
            f"UBM-LinUCB with {name}: regret {result.regret[-1]:,.0f} "
            f"after {options.sessions:,} sessions"
        )


if __name__ == "__main__":
    main()
