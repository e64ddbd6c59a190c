"""Commands of the command line that work on click logs; the Python functions that they call lie
beside this folder.
"""
