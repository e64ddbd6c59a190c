"""The studies by name: to add those of a paper, write their module and its TOML file, and enter its
name in `PAPERS`.
"""

from __future__ import annotations

from importlib import import_module

from .reader import read_studies
from .study import Study

PAPERS = ("zoghi2017", "li2019_bubble", "li2019_cascade", "lagree2016", "he2020")
OURS = (
    "why_violations",
    "unknown_examination",
    "when_rl_pays",
    "features_or_networks",
    "never_locked",
)
"""Why statements of a paper are contradicted, what later papers say of their algorithms, and
questions of our own.
"""

STUDIES: dict[str, Study] = {}
"""The studies by name."""
for _name in (*PAPERS, *OURS):
    _module = import_module(f".{_name}", __package__)
    STUDIES |= read_studies(str(_module.__file__), vars(_module))
