"""The table, the figure and the page of a sweep."""

from .figures import figure_bytes, regret_figure, save_figure, write_figure

__all__ = ["figure_bytes", "regret_figure", "save_figure", "write_figure"]
