"""Kinds of users of Kveton et al. 2015 (Cascading Bandits), table 1."""

from __future__ import annotations

from .study import Sweep

CM = "CMRank-v0"
AGENTS = ("CascadeUCB1", "CascadeKLUCB")
SIZES = [(n_items, k, 0.15) for n_items in (16, 32) for k in (2, 4, 8)]
SIZES += [(16, k, 0.075) for k in (2, 4, 8)]
"""L, K and Δ."""
USERS = {
    size: "kveton2015:n_items={},n_positions={},p=0.2,delta={}".format(*size) for size in SIZES
}
PLAYED = Sweep(
    "kveton-table1", [CM], AGENTS, 100_000, runs=20, instances=list(USERS.values()), scaled=False
)
"""Nine kinds of users: K of L items attract with 0.2, the others with 0.2 - Δ."""
