"""Wrappers for environments: other action spaces for RL algorithms, episode counts in observations,
and the measurement of regret.
"""
