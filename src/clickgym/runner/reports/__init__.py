"""Reports: the statistics of finished runs, and the table, the figure and the bibliography made
from them.
"""
