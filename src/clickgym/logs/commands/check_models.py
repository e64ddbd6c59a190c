"""The command ``clickgym check-models``, which checks whether simulated users can stand in for the
users of a log.
"""

from __future__ import annotations

import math

from ...runner.console import Column, error_console, output_console, print_table, print_text
from ..checking import ROUNDS, check_models
from .options import ColumnNames, IdsPerFile, LogFiles, read_sessions


def check(
    log: LogFiles,
    columns: ColumnNames = "",
    ids_per_file: IdsPerFile = False,
) -> None:
    """Find out whether you can trust simulated users made from your click log.

    The last line of the output says whether simulations with such users can tell good lists from
    bad lists, as long as the lists resemble the lists in the log:

    clickgym check-models log.csv

    The command leaves out up to five lists of each query, one at a time. Each click model then
    predicts the click rates on the left-out list from the other lists. The command uses only
    queries for which the log shows two or more lists, one of them in 100 sessions or more.
    Intervals and the last line need at least five such queries.

    In the output, "predicted" is the fraction of the differences between lists that a model
    predicts: 1 means all differences, and 0 means that the model is no better than the click rates
    of the positions. "interval" is the 95 % interval of this fraction. "error" is the root mean
    squared error of the model, and "noise" is the error that a model would have if it knew the true
    click probabilities. If the error is below the noise, the fraction is 1.
    """
    sessions = read_sessions(log, columns, ids_per_file)
    print_text(error_console(), f"fitting each model up to {ROUNDS} times")
    result = check_models(sessions)
    rows = []
    for model, error, noise, predicted, low, high in result.table.iter_rows():
        interval = "" if math.isnan(low) else f"{low:.3f} to {high:.3f}"
        share = "" if math.isnan(predicted) else f"{predicted:.3f}"
        rows.append([model, f"{error:.4f}", f"{noise:.4f}", share, interval])
    names = ("error", "noise", "predicted", "interval")
    print_table(
        output_console(),
        [Column("model"), *(Column(name, align_right=True) for name in names)],
        rows,
    )
    print_text(output_console(), result.sentence, "bold")
