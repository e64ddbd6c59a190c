"""Run agents in environments: one pair, many pairs, their results, figures and commands.

The way of a sweep, file by file:

- ``names``: specs such as ``"TopRank:delta=0.1"``, and labels;
- ``make``: names become environments and agents;
- ``plan``: all are made once, to see that they fit; each agent in each environment is a cell of the
  table (``config``), whose key hashes what its runs depend on (``identity``);
- ``sweep``: the runs that are not finished are played in parallel (``workers``, ``progress``);
- ``play``: one run. ``play.pair`` chooses a loop, ``play.compiled``, ``play.python`` or
  ``play.learner``, and ``play.metrics`` measures;
- ``store``: finished runs are kept in a folder;
- ``results``: the runs of a folder as rows; ``summaries`` makes their table, and ``reports`` prints
  and draws it.

`clickgym.run` (``run``) takes the same way from ``make`` to ``play``.
"""

from .play.metrics import METRICS, Metric

__all__ = ["METRICS", "Metric"]
