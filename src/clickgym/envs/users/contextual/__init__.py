"""Click models with new candidates in every session.

Read the modules in this order: `model` defines the users, `task` draws their sessions in compiled
code, and `features` computes products of features.
"""
