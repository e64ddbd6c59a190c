"""Agents that use deep learning: RL algorithms of stable-baselines3, trained policies, and a neural
bandit. Install their packages with ``pip install "clickgym[rl]"``.
"""
