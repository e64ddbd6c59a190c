"""``clickgym check-models``: can simulated users stand in for the users of a log?"""

from __future__ import annotations

import math

from ...core.kernels import compilation_note
from ...runner.console import Column, errors, output, print_table, say
from ..check_models import ROUNDS, check_models
from .options import ColumnNames, LogFiles, sessions_of


def check(
    log: LogFiles,
    columns: ColumnNames = "",
) -> None:
    """Find out whether you can trust simulated users made from your click log.

    The last line of the output says whether such users can tell good lists from bad ones, as long
    as the lists resemble those in the log:

    clickgym check-models log.csv

    The command leaves out each list once, but never two lists of a query at the same time. Each
    click model then predicts the click rates of this list from the other lists. Only queries for
    which the log shows two or more lists count, and the answer needs at least five of them.

    The column predicted says what share of the differences between lists a model predicts: 1 is
    all of it, and 0 is no better than the click rates of positions. The next column is its 95 %
    interval. The column error is the root mean squared error, and the column noise is the error
    that a model would have if it knew the truth. A model whose error is below the noise gets 1.
    """
    with compilation_note():
        sessions = sessions_of(log, columns)
        say(errors(), f"fitting each model up to {ROUNDS} times")
        checked = check_models(sessions)
    rows = []
    for model, error, noise, predicted, low, high in checked.table.iter_rows():
        interval = "" if math.isnan(low) else f"{low:.3f} to {high:.3f}"
        share = "" if math.isnan(predicted) else f"{predicted:.3f}"
        rows.append([model, f"{error:.4f}", f"{noise:.4f}", share, interval])
    heads = (Column(name, right=True) for name in ("error", "noise", "predicted", "interval"))
    print_table(output(), [Column("model"), *heads], rows)
    say(output(), checked.sentence, "bold")
