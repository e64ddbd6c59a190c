"""Stateful users: the clicks of a session change how the same user clicks in the next one."""
