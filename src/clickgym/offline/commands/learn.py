"""``clickgym learn``: from a click log to a ranker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from ...core.checks import numbers
from ...core.console import errors, output
from ...core.files import reading
from ...core.terminal import say
from ..comparison import read_policy
from ..learning.learn import METHODS, SCORERS
from ..learning.learn import learn as learn_
from ..learning.ranker import Key, LearnedRanker
from ..readers import read_log
from ..reading import Reading
from .logs import LogFormat, Steps, reads_logs

DIFFERENCE = (
    "Learned from the whole log at once, corrected for what its policy showed, and fixed from now on; agent.learn(log) shows "
    "an online agent the sessions one by one, without correction, and it goes on learning"
)
"""The first line: how it differs from what agents do with a log."""


MOST_LISTS = 5
"""Queries whose lists are printed."""


@reads_logs("sessions_per_file")
def learn(
    log: Annotated[str, typer.Argument(
        metavar="LOG", help="The click log, before the options, in any format that [bold]clickgym fit[/] reads.",
        show_default=False,
    )],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The ranker, [bold]FILE.npz[/].")],
    method: Annotated[str, typer.Option(
        metavar="|".join(METHODS), help="[bold]ips[/]: clicks weighed by inverse exposure; [bold]dr[/]: doubly robust, with a "
        "prediction of clicks; both follow the gradient of the expected clicks. [bold]softmax[/]: a listwise loss on weighed "
        "clicks.",
    )] = "dr",
    scorer: Annotated[str, typer.Option(
        metavar="|".join(SCORERS), help="A linear score of the features, or a neural network.",
    )] = "linear",
    features: Annotated[Path | None, typer.Option(
        metavar="FILE", help="CSV table of features: the column [bold]item[/], for features of pairs also [bold]query[/], and "
        "numbers.",
        show_default="the columns feature_1, ... of the log; without them each item of a query by itself",
    )] = None,
    logging: Annotated[str | None, typer.Option(
        metavar="POLICY", help="The policy that made the log: [bold]uniform[/], [bold]fixed:ITEM,...[/], [bold]empirical[/] or "
        "a file, as in [bold]clickgym evaluate[/].",
        show_default="the column propensity",
    )] = None,
    examination: Annotated[str | None, typer.Option(
        metavar="P,P,...", help="Examination probability of each position.", show_default="fitted to the log",
    )] = None,
    clip: Annotated[float | None, typer.Option(
        metavar="P", help="The least exposure that counts: less variance, more bias.", show_default="none",
    )] = None,
    held_out: Annotated[float, typer.Option(
        "--held-out", metavar="P", help="Share of the sessions by which it is decided when to stop.",
    )] = 0.2,
    log_format: LogFormat = "auto",
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same ranker.")] = 0,
    *,
    reading: Reading,
) -> None:  # fmt: skip
    """Learn a ranker from a click log, corrected for what its policy showed (agent.learn feeds a log to an online agent).

    The log must say with which probability its policy shows an item at a position (the column [bold]propensity[/]), or the
    policy must be named. Users are taken for those of a position-based model; where the clicks of held-out sessions do not fit
    it, there is a warning. Items that the policy never shows cannot be judged, and are named.

    [bold]Examples[/]

    A log of random lists, a table of features for each item, and a network:

      clickgym learn log.csv --logging uniform --features items.csv --scorer network --out ranker

    A log with propensities; each item of a query is scored by itself:

      clickgym learn log.csv --method dr --out ranker

    In Python, [bold]clickgym.offline.LearnedRanker.load("ranker.npz")[/] orders candidates, plays in [bold]clickgym.run[/], and
    is the production of a [bold]clickgym.Ranker[/].
    """
    path = _file(out)
    console, told = output(), errors()
    table = None if features is None else read_features(features)
    logged = read_log(log, log_format, **reading)
    for note in logged.notes:
        say(told, note)
    steps = Steps("learning")
    with steps.bar:
        ranker = learn_(
            logged, method, scorer=scorer, features=table, examination=_numbers(examination),
            logging=logging if logging in (None, "uniform") else read_policy(logging, logged), clip=clip, held_out=held_out,
            seed=seed, on_progress=steps.advance,
        )  # fmt: skip
    ranker.save(path)
    for line in lines(ranker):
        say(console, line)
    if ranker.table:
        for query, policy in list(ranker.policies(logged).items())[:MOST_LISTS]:
            say(console, f"list for {query}: {', '.join(logged.item_labels[item] for item in policy.ranking)}")
    say(console, f"{path}: SHA-256 {ranker.digest}", "bold")


def lines(ranker: LearnedRanker) -> list[str]:
    """What is said of a ranker, the difference to an agent that learns from a log first."""
    of, held = ranker.facts, ranker.facts["held_out"]
    names = "".join(f", {name}" for name in of["not_judged_first"])[2:]
    more = ", ..." * (of["not_judged"] > len(of["not_judged_first"]))
    fit = "not tested, for no query has 50 sessions for each of its items"
    if of["fit"]:
        fit = f"p = {of['fit']['p_value']:.2g} ({of['fit']['figure']})"
    interval, gain = ("{:.4g} to {:.4g}".format(*held[name]) for name in ("interval", "gain_interval"))
    return [
        DIFFERENCE,
        f"{of['method']}, {of['scorer']} scorer, {of['sessions']:,} sessions; logging policy: {of['logging']}",
        f"examination{' (fitted)' * of['examination_fitted']}: {', '.join(f'{p:.3f}' for p in of['examination'])}",
        f"least exposure {of['least_propensity']:.4g}; sessions that count {of['effective_sessions']:,.0f}; clip "
        + (f"{of['clip']:.4g}" if of["clip"] else "none"),
        f"not judged: {of['not_judged']:,} of {of['pairs']:,} candidates{': ' * bool(names)}{names}{more}",
        f"position-based model: {fit}",
        f"held-out estimate ({held['sessions']:,} sessions): {held['value']:.4g} clicks per session ({interval}); the log's "
        f"{held['logged']:.4g}, gain {gain}",
    ]


def read_features(path: Path) -> dict[Key, list[float]]:
    """Features by item label, or by query label and item label, from a CSV table."""
    with reading(path, "cannot be read as a table of features", "expected CSV with the column item and numbers"):
        frame = pl.read_csv(path, schema_overrides={"item": pl.String, "query": pl.String})
        labels = [name for name in ("query", "item") if name in frame.columns]
        keys: list[Any] = frame[labels].rows() if "query" in labels else frame["item"].to_list()
        rows = numbers("features", frame.drop(labels).to_numpy(), (None, None))
        if len(set(keys)) < len(keys):
            raise ValueError(f"{next(key for key in keys if keys.count(key) > 1)!r} is there twice")
    return dict(zip(keys, rows.tolist(), strict=True))


def _file(out: Path) -> Path:
    """The ranker's file; refused is one that cannot be written."""
    path = out if out.suffix == ".npz" else out.with_name(f"{out.name}.npz")
    if not path.absolute().parent.is_dir() or path.is_dir():
        raise ValueError(f"--out is {out}; expected the name of a .npz file in a folder that exists")
    return path


def _numbers(text: str | None) -> list[float] | None:
    try:
        return None if text is None else [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--examination is {text!r}; expected numbers, as in 1,0.6,0.4") from None
