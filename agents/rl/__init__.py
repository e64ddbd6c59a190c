"""Generic reinforcement learning; what it needs comes with ``pip install "clickgym[rl]"``."""
