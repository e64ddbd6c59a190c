"""Estimate what a list would earn from a log of other lists, by UBM-IPS, PBM-IPS and IPS.

    python examples/papers/he2020_offline.py

UBM-IPS is the estimator that He et al. 2020 (section 6.1, equation 10) propose and use for the
offline part of their comparison. Here a policy shows random lists to simulated users and logs their
clicks. From this log, each estimator says how many clicks per session another list would get. The
simulator knows the true number, so the program can print each estimator's mean squared error.

*What this program cannot repeat*: on 180,000 records of Taobao, which are not public, the paper
reports a mean squared error of 0.1754 for UBM-IPS, and of 0.1943 for IPS. Nobody knows whether the
users of Taobao follow the UBM. Our users do, with the parameters of a real search query. So the
program only shows how much UBM-IPS gains over the other estimators where its assumption holds.

*IPS* weights sessions: only sessions that show the list count, each divided by the probability that
the log shows it. The paper does not define its IPS. *PBM-IPS* (Li et al., KDD 2018), which is not
in the paper, and *UBM-IPS* weight clicks. A click on item a counts ⟨w, Φ(a)⟩ / ⟨w, π(a)⟩: how often
users examine a under the new policy Φ, divided by how often they examine a under the logging policy
π. In the UBM, the examination w depends on the last click above, so ⟨w, Φ(a)⟩ depends on the
estimates for the items above a. All clicks on a have the same weight. So the weighted sum equals
the expected clicks in a click model whose attraction of each item is its number of clicks in the
log, divided by its expected number of examinations there.

As in the paper, π(a) are the frequencies in the log, and EM estimates w. The paper draws the clicks
above a position at random, whereas this program computes their expectation. If an estimated
attraction is above 1, the program uses 1.

Source of PBM-IPS: Li, Abbasi-Yadkori, Kveton, Muthukrishnan, Vinay, Wen, *Offline evaluation of
ranking policies with click models*, KDD 2018.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

import clickgym
from clickgym.envs import ClickModel, PositionBasedModel, UserBrowsingModel, load_instance
from clickgym.logs import ClickLog, PBMEstimator, UBMEstimator, record

N_ITEMS, N_POSITIONS = 6, 3
KINDS = {"PBM": PBMEstimator, "UBM": UBMEstimator}


def ips(log: ClickLog, ranking: Sequence[int], probability: float) -> float:
    """Return the mean clicks by IPS: clicks with this list, divided by the list's probability."""
    same = (log.items == ranking).all(axis=1)
    return float(log.clicks[same].sum() / probability / len(log))


def pbm_ips(log: ClickLog, ranking: Sequence[int], examination: np.ndarray) -> float:
    """Return the estimate of PBM-IPS; examination by position, ``(K,)``."""
    examined = np.broadcast_to(examination, log.items.shape)
    return _of_users(log, ranking, PositionBasedModel, examination, examined)


def ubm_ips(log: ClickLog, ranking: Sequence[int], examination: np.ndarray) -> float:
    """Return the estimate of UBM-IPS; examination by position and last click above, ``(K, K)``."""
    marks = np.where(log.clicks > 0, np.arange(1, log.n_positions + 1), 0)
    last = np.maximum.accumulate(marks, axis=1)[:, :-1]
    last = np.pad(last, ((0, 0), (1, 0)))  # the position, from 1, of the last click above; 0: none
    examined = examination[np.arange(log.n_positions), last]
    return _of_users(log, ranking, UserBrowsingModel, examination, examined)


def _of_users(
    log: ClickLog,
    ranking: Sequence[int],
    kind: type[ClickModel],
    examination: np.ndarray,
    examined: np.ndarray,
) -> float:
    """Return the clicks on a list if attractions are clicks divided by expected examinations."""
    clicks = np.bincount(log.items.ravel(), log.clicks.ravel(), len(log.item_labels))
    looks = np.bincount(log.items.ravel(), examined.ravel(), len(log.item_labels))
    if not looks[ranking].all():
        raise ValueError(f"the log never shows an item of the list {list(ranking)}")
    attraction = np.minimum(clicks / np.maximum(looks, 1e-12), 1.0)
    return kind(attraction, examination).expected_reward(ranking)  # type: ignore[call-arg]


def estimates(log: ClickLog, ranking: Sequence[int], probability: float) -> dict[str, float]:
    """Return each estimator's value of a list, with the examinations that EM finds in the log."""
    found = {name: kind().fit(log).examination_ for name, kind in KINDS.items()}
    # Clicks tell examinations up to a factor, which cancels; 1 keeps all attractions below 1.
    of_pbm, of_ubm = (found[name] / found[name].max() for name in KINDS)
    return {
        "IPS": ips(log, ranking, probability),
        "PBM-IPS": pbm_ips(log, ranking, of_pbm),
        "UBM-IPS": ubm_ips(log, ranking, of_ubm),
    }


def errors(n_logs: int, sessions: int, seed: int = 0) -> dict[str, float]:
    """Return each estimator's mean squared error over logs, with a random list for each log."""
    query = load_instance("yandex-9982").model("UBM", N_POSITIONS)
    env: Any = gym.make(
        "UBMRank-v0",
        attraction=query.attraction[:N_ITEMS],
        examination=query.examination,
    )
    users = env.unwrapped.model
    rng, squares = np.random.default_rng(seed), []
    probability = 1 / np.prod(N_ITEMS - np.arange(N_POSITIONS))
    for number in range(n_logs):
        agent: Any = clickgym.make_agent("Random", env, seed=seed + number)
        log = record(agent, env, sessions, seed=seed + number)
        ranking = rng.permutation(N_ITEMS)[:N_POSITIONS].tolist()
        truth = users.expected_reward(ranking)
        found = estimates(log, ranking, probability)
        squares.append([(value - truth) ** 2 for value in found.values()])
    return dict(zip(found, np.mean(squares, axis=0).tolist(), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description="Errors of UBM-IPS, PBM-IPS and IPS.")
    parser.add_argument("--logs", type=int, default=100, help="how many logs")
    parser.add_argument("--sessions", type=int, nargs="+", default=[1000, 10_000])
    arguments = parser.parse_args()
    for sessions in arguments.sessions:
        print(f"{arguments.logs} logs of {sessions:,} sessions, mean squared error:")
        for name, error in errors(arguments.logs, sessions).items():
            print(f"  {name:8} {error:.2e}")


if __name__ == "__main__":
    main()
