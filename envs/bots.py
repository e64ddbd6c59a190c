"""Bots: sessions whose clicks do not come from users (the argument ``bots``)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_choice, check_count, check_share, probability, short
from ..core.kernels import kernel
from .options import Options

RANDOM, FARM, QUIT = range(3)
KINDS = {"random": ("rate",), "farm": ("targets",), "quit": ("target",)}
"""The kinds of bots, and the options that each has beside ``share``, ``first`` and ``users``."""


class BotsState(NamedTuple):
    """The state of the bots of S streams, as the kernels read it."""

    kind: int
    share: float  # of the sessions, beside the first
    first: int  # sessions 1..first are corrupted
    rate: float  # of random clicks
    real: bool  # whether the users of corrupted sessions are real, so that their regret counts
    targets: NDArray[np.bool_]  # (S, L)
    uniforms: NDArray[np.float64]  # (S, 1 + K) of the present session: whether it is corrupted, and a click for each position
    cost: NDArray[np.int64]  # (S,) corrupted sessions whose report differs from the true clicks


class Bots:
    """The argument ``bots`` of an environment: sessions whose clicks do not come from users.

    Args:
        value: ``"KIND:share=p"`` (each session with probability p) or ``"KIND:first=C"`` (sessions 1 to C). ``random`` clicks
            each position with probability ``rate`` (½). ``farm`` clicks the shown items among ``targets``, written as ``3+7``
            (by default the two items of smallest attraction at the start). ``quit`` reports only a click on ``target``, if it
            is shown (by default the item of smallest attraction). With ``users=real`` the regret of corrupted sessions counts,
            with ``users=bots`` it does not; by default it counts under ``quit`` only.
        n_items: L.

    Raises:
        ValueError: naming the part of the value and what was expected.

    Example:
        >>> Bots("farm:share=0.01:targets=3+7", n_items=10).targets
        (3, 7)
    """

    def __init__(self, value: str, n_items: int) -> None:
        options = Options("bots", value, "KIND:share=p or KIND:first=C, KIND one of random, farm, quit")
        self.kind = list(KINDS).index(check_choice("bots", options.kind, KINDS))
        values = options.read(
            share=check_share, first=lambda name, text: check_count(name, text, 0), users=_users,
            **{name: {"rate": probability}.get(name, _items) for name in KINDS[options.kind]},
        )  # fmt: skip
        if ("share" in values) == ("first" in values):
            raise ValueError(f"bots is {short(value)}; expected either share=p or first=C")
        self.share, self.first = values.get("share", 0.0), values.get("first", 0)
        self.rate = values.get("rate", 0.5)
        self.users_are_real = values.get("users", "real" if self.kind == QUIT else "bots") == "real"
        self.targets: tuple[int, ...] = values.get("targets", values.get("target", ()))
        if self.kind == QUIT and len(self.targets) > 1:
            raise ValueError(f"bots is {short(value)}: quit has one target")
        for item in self.targets:
            if item >= n_items:
                raise ValueError(f"bots is {short(value)}: there is no item {item}, items are 0 to {n_items - 1}")

    @property
    def has_targets(self) -> bool:
        """Whether the bots click certain items."""
        return self.kind != RANDOM

    def state(self, attractions: NDArray[np.float64], n_positions: int, rng: np.random.Generator) -> BotsState:
        """The state at the start of S streams.

        Args:
            attractions: ``(S, L)`` at the start, by which default targets are chosen.
            n_positions: K.
            rng: breaks ties; L uniforms are drawn for each stream.
        """
        ties = rng.random(attractions.shape)
        targets = np.zeros(attractions.shape, np.bool_)
        if self.targets:
            targets[:, list(self.targets)] = True
        elif self.has_targets:
            for stream in range(len(targets)):
                order = np.lexsort((ties[stream], attractions[stream]))
                targets[stream, order[: 2 if self.kind == FARM else 1]] = True
        n_streams = len(targets)
        return BotsState(
            self.kind, self.share, self.first, self.rate, self.users_are_real, targets,
            np.empty((n_streams, 1 + n_positions)), np.zeros(n_streams, np.int64),
        )  # fmt: skip


def _users(name: str, text: Any) -> str:
    return check_choice(name, text, ("bots", "real"))


def _items(name: str, text: Any) -> tuple[int, ...]:
    """Item ids with a plus between them."""
    items = str(text).split("+") if not isinstance(text, float) or math.isfinite(text) else [""]
    if not all(item.isascii() and item.isdigit() for item in items):
        raise ValueError(f"{name} is {short(text)}; expected item ids with + between them, as 3+7")
    return tuple(map(int, items))


@kernel
def report(bots, stream, session, ranking, clicks, reported):  # type: ignore[no-untyped-def]
    """Write the clicks that the agent gets for session number ``session``, and return whether they are those of bots.

    ``bots.uniforms[stream]`` holds the session's 1 + K uniforms.
    """
    if session > bots.first and bots.uniforms[stream, 0] >= bots.share:
        for k in range(len(ranking)):
            reported[k] = clicks[k] != 0
        return False
    differs = False
    for k in range(len(ranking)):
        click = bots.uniforms[stream, 1 + k] < bots.rate if bots.kind == RANDOM else bots.targets[stream, ranking[k]]
        differs = differs or click != (clicks[k] != 0)
        reported[k] = click
    if differs:
        bots.cost[stream] += 1
    return True


@kernel
def paid(reported, corrupted, realised, reward, cutoff):  # type: ignore[no-untyped-def]
    """The reward of the reported clicks; a corrupted session never reports satisfaction."""
    if not corrupted:
        return realised
    n_clicks = 0
    for k in range(cutoff):
        n_clicks += reported[k]
    if reward == 2:
        return 0.0
    return float(n_clicks if reward == 0 else min(n_clicks, 1))


@kernel
def reports(bots, sessions, rankings, clicks, realised, reward, cutoff, reported, rewards, corrupted):  # type: ignore[no-untyped-def]
    """`report` and `paid` on every stream; the last three are written."""
    for stream in range(len(rankings)):
        corrupted[stream] = report(bots, stream, sessions[stream], rankings[stream], clicks[stream], reported[stream])
        rewards[stream] = paid(reported[stream], corrupted[stream], realised[stream], reward, cutoff)
