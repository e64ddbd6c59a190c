"""Commands of the command line. Each command parses its arguments, calls one Python function, and
prints the result.
"""
