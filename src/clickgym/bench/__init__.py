"""The scorecard: a fixed set of tasks, the results of the built-in agents on these tasks, and a
command that compares your own agent with the built-in agents.
"""
