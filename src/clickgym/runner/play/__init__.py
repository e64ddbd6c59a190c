"""One run: an agent object plays in an environment object, and is measured.

Nothing here knows names, specs, labels, logs or folders: what is passed was made and checked
before. `play_run.play_run` lets one of three loops play: ``compiled``, ``python`` or ``learner``.
"""
