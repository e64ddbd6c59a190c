"""Totals over sessions, and their values at checkpoints."""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.checks import integers

REGRET, REWARD, CLICKS = 0, 1, 2
"""The columns of totals; those of further metrics follow."""
N_TOTALS = 3


def checkpoint_steps(horizon: int, checkpoints: ArrayLike | None = None) -> NDArray[np.int64]:
    """The steps at which totals are kept: increasing, in ``1..horizon``, the last of them
    ``horizon``.

    Args:
        horizon: T.
        checkpoints: steps in any order; None takes 60 in geometric and 100 in arithmetic
            progression.

    Raises:
        ValueError: on a checkpoint that is not an integer in ``1..horizon``.
    """
    if checkpoints is None:
        steps = (
            np.concatenate([np.geomspace(1, horizon, 60), np.linspace(0, horizon, 101)[1:]])
            .round()
            .astype(np.int64)
        )
        steps = np.maximum(steps, 1)
    else:
        values = [checkpoints] if np.isscalar(checkpoints) else checkpoints
        steps = integers("checkpoints", values, (None,), 1, horizon + 1, empty=True, whole=True)
    return np.unique(np.append(steps, horizon))


class Meter:
    """Running totals over sessions, and their values at checkpoints; its memory does not grow with
    the horizon, if there are checkpoints.

    Args:
        checkpoints: increasing numbers of sessions, from 1, at which the totals are kept; sessions
            after the last one are not counted. None keeps them after every session.
        n_metrics: the number of further metrics.

    Attributes:
        totals: ``(3 + n_metrics,)`` expected regret, realised reward, clicks and further metrics,
            summed over the sessions so far.
        step: the number of sessions so far.
        horizon: the last checkpoint; without checkpoints a number that no session reaches.
        next_checkpoint: the first checkpoint not yet reached; the horizon if all are.
        at_checkpoints: ``(n, 3 + n_metrics)`` the totals at n checkpoints; zeros at those not yet
            reached.
        steps, regret, reward, clicks: the checkpoints reached so far, and the totals there. From a
            session on whose regret is unknown, all regret is nan.
    """

    def __init__(self, checkpoints: ArrayLike | None, n_metrics: int = 0) -> None:
        self.keeps_all = checkpoints is None
        self._checkpoints = np.arange(1, 1025) if checkpoints is None else np.asarray(checkpoints)
        self.at_checkpoints = np.zeros((len(self._checkpoints), N_TOTALS + n_metrics))
        self._reached = 0
        self.horizon = sys.maxsize if self.keeps_all else int(self._checkpoints[-1])
        self.next_checkpoint = int(self._checkpoints[0])
        self.totals = np.zeros(N_TOTALS + n_metrics)
        self.step = 0

    def add(self, regret: float, reward: float, clicks: int) -> None:
        """Count one session; ``regret`` is nan if it is unknown."""
        self._make_room(1)
        if self.step < self.horizon:
            self.totals[REGRET] += regret
            self.totals[REWARD] += reward
            self.totals[CLICKS] += clicks
            if self.step + 1 == self.next_checkpoint:
                self.at_checkpoints[self._reached] = self.totals
            self.advance(1)

    def add_all(self, sessions: NDArray[np.float64]) -> None:
        """Count sessions ``(n, 3)``, each with its regret, reward and clicks, as by `add`."""
        self._make_room(len(sessions))
        sessions = sessions[: self.horizon - self.step]
        if not len(sessions):
            return
        sums = np.vstack([self.totals[:N_TOTALS], sessions]).cumsum(axis=0)
        due = self._checkpoints[self._reached :][: len(sessions)] - self.step
        due = due[due <= len(sessions)]
        self.at_checkpoints[self._reached : self._reached + len(due), :N_TOTALS] = sums[due]
        self.totals[:N_TOTALS] = sums[-1]
        self.advance(len(sessions))

    def _make_room(self, sessions: int) -> None:
        """Without checkpoints, make room for sessions."""
        while self.keeps_all and self.step + sessions > len(self._checkpoints):
            self.next_checkpoint = self.step + 1
            self._checkpoints = np.arange(1, 2 * len(self._checkpoints) + 1)
            more = np.zeros_like(self.at_checkpoints)
            self.at_checkpoints = np.concatenate([self.at_checkpoints, more])

    def forget_regret(self) -> None:
        """Make the regret of all sessions unknown, of those that come, too."""
        if not np.isnan(self.totals[REGRET]):
            self.at_checkpoints[: self._reached, REGRET] = self.totals[REGRET] = np.nan

    def ahead(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the checkpoints not yet reached, in sessions from now on, and the rows of
        ``at_checkpoints`` for the totals there.
        """
        due = self._checkpoints[self._reached :] - self.step
        return due, self.at_checkpoints[self._reached :]

    def advance(self, sessions: int) -> None:
        """Count ``sessions`` that are added to ``totals`` already, which are kept at the
        checkpoints among them.
        """
        self.step += sessions
        if self.step >= self.next_checkpoint:
            self._reached = int(self._checkpoints.searchsorted(self.step, "right"))
            following = self._checkpoints[self._reached :]
            self.next_checkpoint = int(following[0]) if len(following) else self.horizon

    @property
    def steps(self) -> NDArray[np.int64]:
        return self._checkpoints[: self._reached]

    @property
    def regret(self) -> NDArray[np.float64]:
        return self.at_checkpoints[: self._reached, REGRET]

    @property
    def reward(self) -> NDArray[np.float64]:
        return self.at_checkpoints[: self._reached, REWARD]

    @property
    def clicks(self) -> NDArray[np.int64]:
        return self.at_checkpoints[: self._reached, CLICKS].astype(np.int64)

    @property
    def metrics(self) -> NDArray[np.float64]:
        """``(n, n_metrics)`` the further metrics at the checkpoints."""
        return self.at_checkpoints[: self._reached, N_TOTALS:]
