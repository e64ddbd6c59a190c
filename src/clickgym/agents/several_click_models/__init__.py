"""Agents for users of unknown kind: each agent learns from users of several click models."""
