"""Studies: experiments of papers and ours, a file each; `STUDIES` lists them by name."""

from . import (
    bubble_fig1,
    bubble_fig2,
    bubble_fig3,
    bubble_fig4,
    features_or_networks,
    late_feedback,
    nonstat_bound,
    nonstat_fig1,
    nonstat_fig2,
    oltr,
    pbm_queries,
    pbm_synthetic,
    ubm_fig2,
    ubm_fig3,
    ubm_table1,
    unknown_examination,
    when_rl_pays,
    why_violations,
    zoghi_fig1,
    zoghi_fig2,
)
from .study import Study

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        zoghi_fig1.STUDY,
        zoghi_fig2.STUDY,
        bubble_fig1.STUDY,
        bubble_fig2.STUDY,
        bubble_fig3.STUDY,
        bubble_fig4.STUDY,
        nonstat_fig1.STUDY,
        nonstat_fig2.STUDY,
        nonstat_bound.STUDY,
        pbm_synthetic.STUDY,
        pbm_queries.STUDY,
        ubm_fig2.STUDY,
        ubm_table1.STUDY,
        ubm_fig3.STUDY,
        why_violations.STUDY,
        unknown_examination.STUDY,
        when_rl_pays.STUDY,
        features_or_networks.STUDY,
        late_feedback.STUDY,
        oltr.STUDY,
    )
}
"""Studies of papers, then ours."""
