"""Click models with new candidates in every session.

To read: `model` says who clicks; `task` draws sessions in compiled code; `features` has products of
features.
"""
