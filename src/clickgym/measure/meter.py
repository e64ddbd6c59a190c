"""Cumulative regret, reward and clicks: `CheckpointMeter` stores them at the checkpoints of a run,
and `SessionMeter` after each session of your own loop.
"""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.checks import as_integers

REGRET, REWARD, CLICKS = 0, 1, 2
"""The columns of an array of totals; the columns of additional metrics follow."""
N_TOTALS = 3


def checkpoint_steps(horizon: int, checkpoints: ArrayLike | None = None) -> NDArray[np.int64]:
    """Return the steps at which a run stores its totals: increasing numbers in ``1..horizon``, of
    which the last is ``horizon``.

    Args:
        horizon: T, the number of sessions in the run.
        checkpoints: steps in any order; by default, 60 steps in geometric and 100 steps in
            arithmetic progression.

    Raises:
        ValueError: a checkpoint is not an integer in ``1..horizon``.
    """
    if checkpoints is None:
        spaced = [np.geomspace(1, horizon, 60), np.linspace(0, horizon, 101)[1:]]
        steps = np.maximum(np.concatenate(spaced).round().astype(np.int64), 1)
    else:
        values = [checkpoints] if np.isscalar(checkpoints) else checkpoints
        steps = as_integers(
            "checkpoints", values, (None,), 1, horizon + 1, allow_empty=True, allow_floats=True
        )
    return np.unique(np.append(steps, horizon))


class CheckpointMeter:
    """Running totals over the sessions of a run, with their values at checkpoints.

    Args:
        checkpoints: increasing numbers of sessions, from 1, at which the totals are stored;
            sessions after the last checkpoint are not counted.
        n_metrics: the number of additional metrics; by default 0.

    Attributes:
        totals: ``(3 + n_metrics,)`` expected regret, realised reward, clicks and additional
            metrics, summed over the sessions so far.
        step: the number of sessions so far.
        horizon: the last checkpoint.
        next_checkpoint: the first checkpoint not yet reached; the horizon if all are reached.
        at_checkpoints: ``(n, 3 + n_metrics)`` the totals at the n checkpoints, with zeros at
            checkpoints not yet reached.
        steps, regret: the checkpoints reached so far, and the cumulative regret at each of them.
            A session with unknown regret makes the regret nan from there on.
    """

    def __init__(self, checkpoints: ArrayLike, n_metrics: int = 0) -> None:
        self._checkpoints = np.asarray(checkpoints)
        self.at_checkpoints = np.zeros((len(self._checkpoints), N_TOTALS + n_metrics))
        self._reached = 0
        self.horizon = int(self._checkpoints[-1])
        self.next_checkpoint = int(self._checkpoints[0])
        self.totals = np.zeros(N_TOTALS + n_metrics)
        self.step = 0

    def add(self, regret: float, reward: float, clicks: int) -> None:
        """Add a session to the totals; ``regret`` is nan if unknown."""
        if self.step < self.horizon:
            self.totals[REGRET] += regret
            self.totals[REWARD] += reward
            self.totals[CLICKS] += clicks
            if self.step + 1 == self.next_checkpoint:
                self.at_checkpoints[self._reached] = self.totals
            self.advance(1)

    def ahead(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the checkpoints not yet reached, as numbers of sessions from now on, and a view of
        the rows of ``at_checkpoints`` for the totals there.
        """
        steps_ahead = self._checkpoints[self._reached :] - self.step
        return steps_ahead, self.at_checkpoints[self._reached :]

    def advance(self, n_sessions: int) -> None:
        """Add ``n_sessions`` to the number of sessions, after a kernel has added these sessions to
        ``totals`` and ``at_checkpoints``.
        """
        self.step += n_sessions
        if self.step >= self.next_checkpoint:
            self._reached = int(self._checkpoints.searchsorted(self.step, "right"))
            ahead = self._checkpoints[self._reached :]
            self.next_checkpoint = int(ahead[0]) if len(ahead) else self.horizon

    @property
    def steps(self) -> NDArray[np.int64]:
        return self._checkpoints[: self._reached]

    @property
    def regret(self) -> NDArray[np.float64]:
        return self.at_checkpoints[: self._reached, REGRET]

    @property
    def metrics(self) -> NDArray[np.float64]:
        """``(n, n_metrics)`` the additional metrics at the checkpoints reached so far."""
        return self.at_checkpoints[: self._reached, N_TOTALS:]


class SessionMeter:
    """Regret, reward and clicks of your own loop, stored for every session.

    Attributes:
        step: the number of sessions so far.
        regret, reward, clicks: ``(step,)`` the cumulative totals after each session. A session with
            unknown regret makes the regret nan from there on.
    """

    def __init__(self) -> None:
        self._sessions = array("d")  # regret, reward and clicks of each session

    def add(self, regret: float, reward: float, clicks: int) -> None:
        """Add a session; ``regret`` is nan if unknown."""
        self._sessions.extend((regret, reward, clicks))

    def add_all(self, sessions: NDArray[np.float64]) -> None:
        """Add n sessions, given as rows ``(n, 3)`` of regret, reward and clicks."""
        self._sessions.frombytes(sessions.tobytes())

    def _totals(self, column: int) -> NDArray[np.float64]:
        return np.array(self._sessions[column::N_TOTALS]).cumsum()

    @property
    def step(self) -> int:
        return len(self._sessions) // N_TOTALS

    @property
    def regret(self) -> NDArray[np.float64]:
        return self._totals(REGRET)

    @property
    def reward(self) -> NDArray[np.float64]:
        return self._totals(REWARD)

    @property
    def clicks(self) -> NDArray[np.int64]:
        return self._totals(CLICKS).astype(np.int64)
