"""The studies by name. To add those of a paper, write their module after one of these and enter it in `PAPERS`."""

from __future__ import annotations

from . import study_he2020, study_lagree2016, study_li2019_bubble, study_li2019_cascade, study_zoghi2017
from .study import Study

__all__ = ["STUDIES"]

PAPERS = (study_zoghi2017, study_li2019_bubble, study_li2019_cascade, study_lagree2016, study_he2020)

STUDIES: dict[str, Study] = {name: study for paper in PAPERS for name, study in paper.STUDIES.items()}
"""The studies by name."""
