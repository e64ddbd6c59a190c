"""Click models with new candidates in every session.

In the order of reading: `model` defines who clicks; `task` draws sessions in compiled code;
`features` computes products of features.
"""
