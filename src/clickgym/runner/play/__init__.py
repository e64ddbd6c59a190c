"""One run: an agent object plays in an environment object, and is measured.

Except for `clickgym.run`, nothing here knows names, specs, labels, logs or folders: agents and
environments were made and checked before. `play_run.play_run` chooses one of three loops: the
compiled loop, the Python loop, or the loop of an RL algorithm.
"""
