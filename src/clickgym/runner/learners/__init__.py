"""Generic reinforcement learning: adapters of vector environments, streams for training, and the
loop.
"""
