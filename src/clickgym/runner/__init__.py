"""Run agents in environments: one pair, many pairs, their results, figures and commands.

The way of a sweep, file by file:

- ``names``: specs are read, and things get labels;
- ``make``: specs and classes become recipes, and of these environments and agents are made;
- ``plan``: every agent is tried in every environment; each pair is a cell of the table
  (``config``), known by what its runs depend on (``identity``), ``own_code``);
- ``sweep``: the runs that are not finished are played in parallel (``workers``, ``progress``);
- ``play``: one run. ``play.pair`` chooses a loop, ``play.compiled``, ``play.python`` or
  ``play.learner``, and ``play.measuring`` measures (``play.metrics``);
- ``store``: finished runs are kept in a folder, and read as rows;
- ``results`` holds rows, also of single runs; ``summaries`` makes their table, and ``reports``
  prints and draws it (``console``).

Words that each have one meaning here:

- a *spec* is how an agent or an environment is written, ``"TopRank:delta=0.1"``;
- a *label* is what tables call it: its spec, or a name that you give;
- a *recipe* is what makes it, a class, a function, a registered id or the users of an environment
  (the *maker*), with its arguments;
- an *identity* is a hash of what a label stands for: a recipe or an instance. It is the same in
  another process;
- a *cell* is all runs of an agent in an environment with an instance. Its setting, its identities
  and the number of a run make the *key* by which a folder knows the run.

`clickgym.run` (``single_run``) takes the same way from ``make`` to ``play``.
"""

from .play.metrics import METRICS, Metric

__all__ = ["METRICS", "Metric"]
