"""How generic reinforcement learning plays: adapters of vector environments, streams to train on, and the loop."""
