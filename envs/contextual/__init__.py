"""Users who meet other candidates in every session: their models, one round in compiled code, and
the environments.
"""
