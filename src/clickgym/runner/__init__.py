"""Single runs, sweeps over many agents and environments, their results, and the commands.

`sweep.sweep` uses these modules in turn:

- ``make`` parses specs and labels, and creates the environments and agents that they name.
- ``sweep_plan`` says what the sweep is to play, and tries every agent in every environment.
- ``results_folder`` saves the configuration of a sweep and its finished runs; ``fingerprint``
  records what each label stands for, so that two sweeps can be compared.
- ``sweep_jobs`` plays the runs that the folder lacks, in parallel (``workers``).
- ``play`` plays one run. ``play.play_run``, which contains `clickgym.run`, chooses one of the loops
  in ``play.compiled_loop`` and ``play.python_loop``. ``play.run_inputs`` defines the argument of
  every loop, ``play.run_metrics`` combines the additional metrics of a run, and ``run_errors``
  defines errors that say whether the agent or the environment failed.
- ``results`` stores the rows of sweeps and single runs, ``summaries`` computes the table of final
  results, and ``reports`` prints this table (on a ``console``) and draws the figure.

``check_agent`` checks agents, and ``commands`` contains the commands of the command line.

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
