"""The table, the figure and the page of a sweep."""

from .figures import drawn, regret_figure, save_figure, write_figure

__all__ = ["drawn", "regret_figure", "save_figure", "write_figure"]
