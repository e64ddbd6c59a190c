"""Run agents in environments: one pair, many pairs, their results, figures and commands.

The way of a sweep, file by file:

- ``make``: specs and labels are read, and environments and agents are made of them;
- ``sweep``: every agent is tried in every environment, and the runs that are missing are
  played in parallel (``workers``);
- ``play``: one run. ``play.play_run``, which has `clickgym.run`, chooses a loop,
  ``play.compiled_loop`` or ``play.python_loop``; ``play.metrics`` has what is measured besides
  regret, reward and clicks, ``play.loop`` what a loop gets, and ``play.run_errors`` the errors
  that say who failed;
- ``store``: a folder, with what its sweep is of, in text, and the finished runs, which are read as
  rows; ``meaning`` tells what stands behind a label;
- ``results`` holds rows, also of single runs; ``summaries`` makes their table, and ``reports``
  prints and draws it (``console``).

Four words have one meaning here:

- a *spec* is how an agent or an environment is written, ``"TopRank:delta=0.1"``, and resolved
  into a class, a function, a registered id or users, and arguments;
- a *label* is what tables call it: its spec, or a name that you give;
- a *config* is what a sweep is of, as it stands in a folder;
- a *cell* is all runs of an agent in an environment with an instance. A folder knows a run by the
  labels of these three and by its number.
"""

from .play.metrics import METRICS, Metric

__all__ = ["METRICS", "Metric"]
