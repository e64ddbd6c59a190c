"""Click models with new candidates in every session.

To read: `catalogue` checks users, items and candidates; `model`, `linear` and `labelled` say who
clicks; `task` draws sessions in compiled code; `interactions` are products of features.
"""
