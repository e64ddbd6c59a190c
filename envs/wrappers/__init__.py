"""Wrappers: plain actions that stand for lists, the history as observation, items one by one, and
measurement of regret.
"""
