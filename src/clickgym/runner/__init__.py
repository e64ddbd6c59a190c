"""Single runs, sweeps over many agents and environments, their results, and the commands.

- ``make`` creates ``agents`` and ``environments`` from what users pass, and gives each run its own
  ``copies``. ``labels`` parses their specs and labels.
- ``play`` plays one run. ``run``, which contains `clickgym.run`, chooses one of the loops in
  ``compiled_loop``, ``python_loop`` and ``learner_loop`` (RL algorithms). ``prepared_run`` defines
  the argument of every loop, and ``additional_metrics`` combines the additional metrics of a run.
- ``sweep`` plays many runs. In the order in which `clickgym.sweep` uses them, ``plan`` says what to
  play, and tries every agent in every environment; ``jobs`` plays the runs that the folder lacks,
  each with its seed from ``seeds``; ``workers`` are the threads or processes that play the jobs in
  parallel, and ``progress`` prints how far they are.
- ``results_folder`` saves the runs of a sweep with its configuration, in which ``fingerprint``
  records what each label stands for, so that two sweeps can be compared.
- ``results`` contains `clickgym.Results`, the rows of finished runs, and ``combine`` joins the rows
  of several sweeps and runs.
- ``reports`` shows them. ``summaries`` computes the statistics; ``table`` with its ``notes``,
  ``figures`` and ``bibliography`` are what a user sees.
- ``commands`` contains the commands of the command line.

``check_agent`` checks agents, ``errors`` defines errors that say whether the agent or the
environment failed, and ``console`` prints text and tables.

Four words have a fixed meaning in these modules:

- A *spec* names an agent or an environment and its arguments, such as ``"TopRank:delta=0.1"``. To
  *resolve* a spec means to find the class, function, registered id or users that it names.
- A *label* is the name of an agent, environment or instance in tables: its spec, or a name of your
  choice.
- A *config* describes a sweep, and is saved in the sweep's folder.
- A *cell* consists of all runs of one agent in one environment with one instance. In a folder, a
  run is identified by the labels of its agent, environment and instance, and by its number.
"""

from ..measure.metrics import METRICS, Metric

__all__ = ["METRICS", "Metric"]
