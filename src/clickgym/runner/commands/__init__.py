"""The commands ``clickgym list``, ``report``, ``run`` and ``show``. Each command parses its
arguments, calls one Python function, and prints the result. The commands for logs are in
`clickgym.logs.commands`, and ``clickgym bench`` is in `clickgym.bench.command`.
"""
