"""Agents for users who change."""
