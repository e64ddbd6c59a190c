"""Stateful users: the lists that they see today change how they click tomorrow."""
