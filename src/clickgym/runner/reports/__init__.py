"""The table, the figure and the page of a sweep."""
