"""Tables, words, figures, Markdown, LaTeX and the page of a finished sweep."""

from .exports import TEX, latex_text
from .figures import drawn, picture, regret_figure, save_figure, write_figure

__all__ = ["TEX", "drawn", "latex_text", "picture", "regret_figure", "save_figure", "write_figure"]
