"""Run agents in environments: one pair, many pairs, their results, figures and commands.

The way of a sweep, file by file:

- ``make``: specs and labels are read, and environments and agents are made of them;
- ``sweep``: every agent is tried in every environment, and the runs that are not finished are
  played in parallel (``workers``);
- ``hashes``: what a run is known by, so that a folder has it once;
- ``play``: one run. ``play.play_run`` chooses a loop, ``play.compiled`` or ``play.python``, and
  ``play.metrics`` has what is measured beside regret, reward and clicks (``play.loop``);
- ``store``: what a sweep is of, and its finished runs in a folder, which are read as rows;
- ``results`` holds rows, also of single runs; ``summaries`` makes their table, and ``reports``
  prints and draws it (``console``).

`clickgym.run` (``single_run``) takes the same way from ``make`` to ``play``.

Four words have one meaning here:

- a *spec* is how an agent or an environment is written, ``"TopRank:delta=0.1"``, and resolved
  into a class, a function, a registered id or users, and arguments;
- a *label* is what tables call it: its spec, or a name that you give;
- a *config* is what a sweep is of: its setting, which all its runs have in common, and its cells;
- a *cell* is all runs of an agent in an environment with an instance. The setting, hashes of these
  three and the number of a run make the key by which a folder knows the run.
"""

from .play.metrics import METRICS, Metric

__all__ = ["METRICS", "Metric"]
