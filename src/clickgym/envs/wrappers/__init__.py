"""Wrappers for environments: other action spaces for RL algorithms, and episode counts in
observations.
"""
