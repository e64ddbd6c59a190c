"""Agents for items with features."""
