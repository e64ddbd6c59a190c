"""Wrappers: actions that stand for lists, the history as observation, items one by one, and the measurement of regret."""
