"""Totals over sessions, and their values at checkpoints."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

REGRET, REWARD, CLICKS = 0, 1, 2
"""The columns of totals; those of further metrics follow."""
N_TOTALS = 3


class Meter:
    """Running totals over sessions, and their values at checkpoints; its memory does not grow with
    the horizon.

    Args:
        checkpoints: increasing numbers of sessions, from 1, at which the totals are kept; sessions
            after the last one are not counted.
        n_metrics: the number of further metrics.

    Attributes:
        totals: ``(3 + n_metrics,)`` expected regret, realised reward, clicks and further metrics,
            summed over the sessions so far.
        step: the number of sessions so far.
        horizon: the last checkpoint.
        next_checkpoint: the first checkpoint not yet reached; the horizon if all are.
        at_checkpoints: ``(n, 3 + n_metrics)`` the totals at n checkpoints; zeros at those not yet
            reached.
        steps, regret, reward, clicks: the checkpoints reached so far, and the totals there. From a
            session on whose regret is unknown, all regret is nan.
    """

    def __init__(self, checkpoints: Sequence[int] | NDArray[np.int64], n_metrics: int = 0) -> None:
        self._checkpoints = np.asarray(checkpoints)
        self.at_checkpoints = np.zeros((len(self._checkpoints), N_TOTALS + n_metrics))
        self._reached = 0
        self.horizon = int(self._checkpoints[-1])
        self.next_checkpoint = int(self._checkpoints[0])
        self.totals = np.zeros(N_TOTALS + n_metrics)
        self.step = 0

    def add(self, regret: float, reward: float, clicks: int) -> None:
        """Count one session; ``regret`` is nan if it is unknown."""
        if self.step < self.horizon:
            self.totals[REGRET] += regret
            self.totals[REWARD] += reward
            self.totals[CLICKS] += clicks
            if self.step + 1 == self.next_checkpoint:
                self.at_checkpoints[self._reached] = self.totals
            self.advance(1)

    def forget_regret(self) -> None:
        """Make the regret of all sessions unknown, of those that come, too."""
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
