"""Agents for users who look less at lower positions, as in the position-based model."""
