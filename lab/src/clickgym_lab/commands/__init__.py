"""Commands of the command line for studies and the scorecard, and those that list and show
everything.
"""
