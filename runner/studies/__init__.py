"""The studies by name. To add those of a paper, write their module after one of these and enter it in `PAPERS`."""

from __future__ import annotations

from . import he2020, lagree2016, li2019_bubble, li2019_cascade, zoghi2017
from .study import Study

__all__ = ["STUDIES"]

PAPERS = (zoghi2017, li2019_bubble, li2019_cascade, lagree2016, he2020)

STUDIES: dict[str, Study] = {name: study for paper in PAPERS for name, study in paper.STUDIES.items()}
"""The studies by name."""
