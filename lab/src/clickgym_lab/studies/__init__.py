"""Studies: experiments of papers and ours, a file each; `STUDIES` lists them by name."""

from . import (
    bubble,
    features_or_networks,
    late_feedback,
    nonstat,
    oltr,
    pbm,
    ubm,
    unknown_examination,
    when_rl_pays,
    why_violations,
    zoghi,
)
from .study import Study

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        zoghi.FIG1,
        zoghi.FIG2,
        bubble.FIG1,
        bubble.FIG2,
        bubble.FIG3,
        bubble.FIG4,
        nonstat.FIG1,
        nonstat.FIG2,
        nonstat.THEOREM3,
        pbm.SYNTHETIC,
        pbm.REAL,
        ubm.STUDY_FIG2,
        ubm.STUDY_TABLE1,
        ubm.STUDY_FIG3,
        why_violations.STUDY,
        unknown_examination.STUDY,
        when_rl_pays.STUDY,
        features_or_networks.STUDY,
        late_feedback.STUDY,
        oltr.STUDY,
    )
}
"""Studies of papers, then ours."""
