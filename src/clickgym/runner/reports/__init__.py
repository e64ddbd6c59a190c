"""The table, the figure and the bibliography of a sweep."""
