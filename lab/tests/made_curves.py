"""Curves made to hold or to break a statement."""

import numpy as np
import polars

from clickgym_lab.studies.claims import Curves

STEPS = np.unique(np.concatenate([np.arange(1000, 100_001, 1000), [1, 10, 100, 500]]))


def rows(env, agent, value, column="regret", instances=("one",), steps=STEPS, runs=4):
    """Rows of a pair: the column is ``value(steps)``, in run n of an instance more by n
    millionths.
    """
    n, numbers = len(instances), np.tile(np.repeat(range(runs), len(steps)), len(instances))
    values = np.tile(np.asarray(value(steps), float), n * runs)
    return polars.DataFrame(
        {
            "env": env,
            "instance": np.repeat(list(instances), runs * len(steps)),
            "agent": agent,
            "run": numbers,
            "step": np.tile(steps, n * runs),
            column: values * (1 + 1e-6 * numbers),
        }
    )


def curves(*frames, full=True):
    return Curves(polars.concat(frames), full)


def piecewise(*rates):
    """Cumulative values whose rate is constant in each of as many equal parts of the sessions."""
    ends = np.linspace(0, 100_000, len(rates) + 1)
    values = np.concatenate([[0], np.cumsum(rates) * np.diff(ends)])
    return lambda steps: np.interp(steps, ends, values)
