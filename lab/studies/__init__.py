"""Studies: experiments of papers (one file per paper), and why some statements are contradicted (one file per question).

The results that ship are in ``docs/results``.
"""

from .registry import STUDIES

__all__ = ["STUDIES"]
