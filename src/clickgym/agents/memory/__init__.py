"""Agents for users with memory."""
