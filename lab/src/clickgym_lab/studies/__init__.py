"""Studies: experiments of papers (one file per paper), and questions of our own; their results are
in ``lab/results``.
"""

from .registry import STUDIES

__all__ = ["STUDIES"]
