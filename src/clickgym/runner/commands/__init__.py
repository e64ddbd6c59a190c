"""Commands of the command line: each parses, calls one Python function, and prints."""
