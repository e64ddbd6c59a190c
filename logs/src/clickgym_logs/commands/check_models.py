"""``clickgym check-models``: can the users of a log be simulated?"""

from __future__ import annotations

import math

from clickgym.runner.console import announce_compiling, errors, output
from clickgym.runner.terminal import Column, print_table, say

from ..readers import read_log
from ..simulability import check_models
from .logs import Columns, Log, names


def check(
    log: Log,
    columns: Columns = "",
) -> None:
    """Check whether simulations of a click log can be trusted to order lists.

    Each query with two or more lists leaves out one list at a time, and click models predict its
    click rates by position from all other lists. error is the root of their mean squared
    error, noise that of a model that knows the truth. predicted is the share of
    the differences between lists that a model predicts, without noise: 1 is all, 0 is what the
    click rates of positions predict, below 0 is worse; its interval (0.95) is from resampled
    queries.

    \b
    clickgym check-models log.csv
    """
    with announce_compiling(errors()):
        sessions = read_log(log, columns=names(columns))
        checked = check_models(sessions)
    rows = []
    for model, error, noise, predicted, low, high in checked.table.iter_rows():
        interval = "" if math.isnan(low) else f"{low:.3f} to {high:.3f}"
        share = "" if math.isnan(predicted) else f"{predicted:.3f}"
        rows.append([model, f"{error:.4f}", f"{noise:.4f}", share, interval])
    heads = (Column(name, right=True) for name in ("error", "noise", "predicted", "interval"))
    print_table(output(), [Column("model"), *heads], rows)
    say(output(), checked.sentence, "bold")
