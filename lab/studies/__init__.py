"""Studies: the papers' experiments, one file per paper, and why some statements are contradicted, one file per question; the
results that ship lie in ``docs/results``."""

from .registry import STUDIES

__all__ = ["STUDIES"]
