"""The table, the figure and the page of a sweep."""

from .figures import drawn, picture, regret_figure, save_figure, write_figure

__all__ = ["drawn", "picture", "regret_figure", "save_figure", "write_figure"]
