"""The studies by name: to add those of a paper, write their module and enter it in `PAPERS`."""

from __future__ import annotations

from . import (
    churn,
    click_farms,
    features_or_networks,
    he2020,
    interleaving,
    lagree2016,
    late_clicks,
    learn_from_a_log,
    li2019_bubble,
    li2019_cascade,
    linear_cascade,
    neural_by_features,
    never_locked,
    nonstat_detect,
    pdgd,
    robust,
    unknown_examination,
    variance,
    warm_start,
    when_rl_pays,
    why_change,
    why_early_regret,
    why_exp3,
    why_ubm_lead,
    why_violations,
    wrong_priors,
    zoghi2017,
)
from .study import Study

PAPERS = (zoghi2017, li2019_bubble, li2019_cascade, lagree2016, he2020)
WHY = (why_ubm_lead, why_violations, why_exp3, why_early_regret, why_change)
"""Not of a paper: why some of its statements are contradicted."""
FURTHER = (
    unknown_examination,
    nonstat_detect,
    pdgd,
    when_rl_pays,
    variance,
    robust,
    linear_cascade,
    late_clicks,
    click_farms,
    churn,
    warm_start,
    features_or_networks,
    neural_by_features,
    never_locked,
    interleaving,
    wrong_priors,
    learn_from_a_log,
)
"""Of ours: on what later papers say of their algorithms, and on clicks as they come."""

STUDIES: dict[str, Study] = {name: study for module in (*PAPERS, *WHY, *FURTHER) for name, study in module.STUDIES.items()}
"""The studies by name."""
