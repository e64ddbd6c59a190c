"""Wrappers that represent lists by actions of plain spaces, that choose lists item by item, or that
measure regret.
"""
