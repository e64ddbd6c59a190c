"""Run agents in environments: one pair, many pairs, their results, figures and commands."""
