"""Stateful users, whose clicks in one session change how they click in later sessions."""
