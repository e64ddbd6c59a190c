"""``clickgym check-models``: can the users of a log be simulated?"""

from __future__ import annotations

import math

from ...runner.console import Column, announce_compiling, errors, output, print_table, say
from ..check_models import ROUNDS, check_models
from .options import Columns, Log, sessions_of


def check(
    log: Log,
    columns: Columns = "",
) -> None:
    """Find out whether you can trust simulated users of your click log.

    The last line of the output says whether they can tell good lists from bad ones, among lists
    like those of the log:

    clickgym check-models log.csv

    The command leaves out each list once, and never two lists of a query at the same time. Each
    click model predicts the click rates of this list from all other lists. A query counts if the
    log shows two or more lists of it, and the answer needs five such queries.

    The column predicted is the share of the differences between lists that a model predicts. 1 is
    all of it, and what a model with less error than noise gets. 0 is no better than the click
    rates of positions. Its interval holds at 0.95. The column error is the root of the mean
    squared error. The column noise is the error of a model that knows the truth.
    """
    status = errors()
    with announce_compiling(status):
        sessions = sessions_of(log, columns)
        say(status, f"each model is now fitted up to {ROUNDS} times")
        checked = check_models(sessions)
    rows = []
    for model, error, noise, predicted, low, high in checked.table.iter_rows():
        interval = "" if math.isnan(low) else f"{low:.3f} to {high:.3f}"
        share = "" if math.isnan(predicted) else f"{predicted:.3f}"
        rows.append([model, f"{error:.4f}", f"{noise:.4f}", share, interval])
    heads = (Column(name, right=True) for name in ("error", "noise", "predicted", "interval"))
    print_table(output(), [Column("model"), *heads], rows)
    say(output(), checked.sentence, "bold")
