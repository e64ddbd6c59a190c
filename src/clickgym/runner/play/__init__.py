"""A single run: an agent object plays in an environment object and is measured.

Except for `clickgym.run`, these modules do not handle names, specs, labels, logs or folders: they
receive agents and environments that were already created and checked. `run.play_run` chooses
one of three loops: the compiled loop, the Python loop, or the training loop of an RL algorithm.
"""
