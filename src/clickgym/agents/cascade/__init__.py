"""Agents for users who read from the top, as in the cascade model."""
