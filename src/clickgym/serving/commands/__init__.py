"""The command of stores: it parses, calls one function, and prints."""
