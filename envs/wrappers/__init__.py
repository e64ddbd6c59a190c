"""Wrappers: actions of plain spaces that represent lists, items one by one, and measurement of
regret.
"""
