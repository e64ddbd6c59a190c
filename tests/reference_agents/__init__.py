"""Reference implementations of the agents, written in plain Python from the papers' pseudo-code,
against which the compiled kernels are tested.

A `Reference` makes no random draws. It receives the list that an agent showed, decides whether the
algorithm allows this list in its current state, and learns from the clicks. A test can therefore
follow an agent session by session, regardless of the agent's random choices (``following``).
``registry`` finds the reference of any published agent. ``models`` contains a small click model of
each class, and a function that creates any agent for such a model.
"""
