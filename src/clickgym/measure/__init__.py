"""Measurements of a run: cumulative regret, reward and clicks, additional metrics, the wrappers
that record them while your own loop runs, and the class `Result`.
"""
