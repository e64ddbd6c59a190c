"""The scorecard: a fixed set of tasks, the results of the built-in agents, and the comparison of
your agent with them.
"""
