"""Commands of the command line that run, merge and report; the Python functions that they call lie beside this folder."""
