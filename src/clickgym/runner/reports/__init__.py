"""Reports on results: the table, the figure and the bibliography."""
