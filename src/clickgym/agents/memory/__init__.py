"""Agents for users with a memory."""
