"""The studies by name: to add those of a paper, write their module and its TOML file, and enter its name in `PAPERS`."""

from __future__ import annotations

from importlib import import_module

from .reader import read_studies
from .study import Study

PAPERS = ("zoghi2017", "li2019_bubble", "li2019_cascade", "lagree2016", "he2020")
WHY = ("why_ubm_lead", "why_violations", "why_exp3", "why_early_regret", "why_change")
"""Not of a paper: why some of its statements are contradicted."""
FURTHER = (
    "unknown_examination", "nonstat_detect", "pdgd", "when_rl_pays", "variance", "robust", "linear_cascade", "late_clicks",
    "click_farms", "churn", "warm_start", "features_or_networks", "neural_by_features", "never_locked",
)  # fmt: skip
"""Of ours: on what later papers say of their algorithms, and on clicks as they come."""

STUDIES: dict[str, Study] = {}
"""The studies by name."""
for _name in (*PAPERS, *WHY, *FURTHER):
    _module = import_module(f".{_name}", __package__)
    STUDIES |= read_studies(str(_module.__file__), vars(_module))
