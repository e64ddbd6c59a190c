"""Agents by generic reinforcement learning, which require ``pip install "clickgym[rl]"``."""
