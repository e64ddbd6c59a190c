"""Run agents in environments: one pair, many pairs, their results, figures and commands.

A sweep uses these modules in turn:

- ``make`` reads specs and labels, and makes environments and agents from them.
- ``sweep`` tries every agent in every environment, and plays the missing runs in parallel
  (``workers``).
- ``play`` plays one run. ``play.play_run``, which contains `clickgym.run`, chooses one of the loops
  in ``play.compiled_loop`` and ``play.python_loop``. ``play.metrics`` defines the metrics besides
  regret, reward and clicks, ``play.loop`` defines what a loop receives, and ``play.run_errors``
  defines errors that say whether the agent or the environment failed.
- ``store`` saves the configuration of a sweep and its finished runs in a folder; ``meaning``
  describes what a label stands for.
- ``results`` holds the rows of sweeps and single runs, ``summaries`` computes their table, and
  ``reports`` prints the table (on a ``console``) and draws the figure.

Four words have one meaning here:

- a *spec* is how an agent or an environment is written, such as ``"TopRank:delta=0.1"``; it is
  resolved into a class, a function, a registered id or users, and the arguments for these;
- a *label* is the name in tables: the spec, or another name that you give;
- a *config* describes a sweep, and is saved in the sweep's folder;
- a *cell* is all runs of one agent in one environment with one instance. A folder identifies a run
  by the labels of its agent, environment and instance, and by its number.
"""

from .play.metrics import METRICS, Metric

__all__ = ["METRICS", "Metric"]
