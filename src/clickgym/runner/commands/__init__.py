"""The commands ``clickgym list``, ``report``, ``run`` and ``show``. Each command parses its
arguments, calls one Python function, and prints the result.
"""
