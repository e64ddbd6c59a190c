"""``clickgym fit``: from a click log to instance files, with what the fit is worth on held-out
sessions.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from shlex import quote as shell_quote
from typing import Annotated, Any
from urllib.parse import quote

import numpy as np
import typer
from rich.console import Console
from rich.text import Text
from scipy.special import stdtrit

from clickgym.core.files import make_folder
from clickgym.core.formats import visible
from clickgym.envs import ClickModel
from clickgym.runner.console import announce_compiling, errors, output
from clickgym.runner.terminal import Column, print_table, say

from ..best_list import exact_positions
from ..estimation.estimator import MODEL_ESTIMATORS, ConvergenceWarning
from ..fitting import FEW_SESSIONS, Fitted, fit_models
from ..readers import log_name, read_log
from .logs import Columns, Log, Seed, names

FITTED, SURE = "What to fit", "How sure it is"
"""The sections of the help text, after that on the log."""
FALLS, RISES = 0.8, 1.05
"""Examination hardly falls, and rises, if its mean over the last third of the positions is at least
this share of that over the first third.
"""
CONFOUNDED = 0.8
"""The share of displays of items at their usual positions above which there is a caution."""
SPARSE = 0.5
"""The share of rare pairs of query and item above which there is a caution."""
NEVER_SHOWN = "Items that the log never shows are not in these files, and no agent can show them."
MOST_QUERIES = 3
"""Queries whose parameters are printed."""
NOT_IDENTIFIED = {
    "PBM UBM": "PBM, UBM: only products of attraction and examination are identifiable. The prior "
    "sets examination at position 1, and the intervals hold for it; multiply attraction by it and "
    "divide examination by it to have 1 there.",
    "DCM": "DCM: nothing follows the last position, so no click tells who leaves there; the "
    "position above is repeated.",
    "DBN CCM": "DBN, CCM: no log shows whether a user was satisfied or gave up. What is estimated "
    "of it, perseverance included, depends on the prior, and can miss by more than its interval.",
    "prior": "Of an item: no session tells it, and the mean of the prior is left.",
}
"""By click models, why parameters are marked with an asterisk, or intervals are too short."""


def fit(
    log: Log,
    model: Annotated[
        list[str],
        typer.Option(
            "--model",
            "-m",
            rich_help_panel=FITTED,
            metavar="MODEL...",
            help=f"Click models: one or more of {', '.join(map(str, MODEL_ESTIMATORS))}, or all.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            rich_help_panel=FITTED,
            metavar="FILE|DIR",
            help="Where the users go: a file, name.json, or a folder for several queries.",
        ),
    ],
    query: Annotated[
        list[str] | None,
        typer.Option(
            "--query",
            "-q",
            rich_help_panel=FITTED,
            metavar="QUERY...",
            show_default="the most frequent",
            help="The queries whose users you want. All sessions of the log help to estimate how "
            "far users look.",
        ),
    ] = None,
    items: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=FITTED,
            metavar="N",
            help="Keep the N items that were displayed most.",
            show_default="those in at least one of a hundred sessions",
        ),
    ] = None,
    bootstrap: Annotated[
        int,
        typer.Option(
            rich_help_panel=SURE,
            metavar="N",
            help="Fit the models N times to resampled sessions, for intervals; 0 for none.",
        ),
    ] = 10,
    replicates: Annotated[
        int,
        typer.Option(
            rich_help_panel=SURE,
            metavar="N",
            help="Also write the users of N fits to resampled sessions. Run agents on each, to see "
            "whether the log is long enough to tell which agent is better.",
        ),
    ] = 0,
    columns: Columns = "",
    seed: Seed = 0,
) -> None:
    """Make simulated users from your click log, and see which click model predicts it best.

    Two click models, and the users of the most frequent query:

    clickgym fit log.csv --model PBM UBM --out users.json

    Several queries, with a file for each in a folder:

    clickgym fit log.csv --model PBM --query shoes hats --out users

    The output begins with the model that predicts best, and with the commands that play agents on
    these users. Below stand the scores of all models, and the estimates with their intervals.

    Ask clickgym check-models first whether such users can be trusted.
    """
    queries = query or []
    is_file = out.suffix == ".json"
    if is_file and len(queries) > 1:
        raise ValueError(f"--out is {out} for {len(queries)} queries; expected a folder")
    make_folder(out.parent if is_file else out)
    console, status = output(), errors()
    with announce_compiling(status), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the table shows it
        sessions = read_log(log, columns=names(columns))
        say(status, f"read {len(sessions):,} sessions")
        fitted = fit_models(
            sessions,
            model,
            queries,
            n_items=items,
            seed=seed,
            bootstrap=bootstrap,
            replicates=replicates,
            origin=f"estimated by clickgym from the click log {log_name(log)}",
        )
    scores = {name: it.score(fitted.test) for name, it in fitted.scored.items()}
    files = {}
    for label, instance in fitted.instances.items():
        files[label] = file = out if is_file else out / f"{quote(label, safe=' ')}.json"
        instance.save(file)
        if refits := fitted.replicates[label]:
            make_folder(_refits_of(file))
            for number, refit in enumerate(refits, 1):
                refit.save(_refits_of(file) / f"{number:02}.json")
    _print_next(console, fitted, scores, files)
    for line in _cautions(fitted, items):
        say(console, line)
    n_train, n_test = len(fitted.train), len(fitted.test)
    title = f"Fitted to {n_train:,} sessions; per session and by rank on {n_test:,} held out"
    heads, rows = _scores(fitted, scores)
    print_table(console, heads, rows, title=title)
    for label, file in files.items():
        say(console, f"{file}: {fitted.instances[label].description}")
        if refits := fitted.replicates[label]:
            say(console, f"{_refits_of(file)}: {len(refits)} refits to resampled sessions")
    say(console, NEVER_SHOWN)
    for line in _parameter_lines(fitted):
        say(console, line)


def _refits_of(file: Path) -> Path:
    """The folder of the refits of an instance."""
    return file.with_name(f"{file.stem}-refits")


def _print_next(
    console: Console, fitted: Fitted, scores: Mapping[str, float], files: Mapping[str, Path]
) -> None:
    """Print which model predicts best, and the command that plays agents on its users."""
    names = [name for name in scores if np.isfinite(scores[name])] or [*scores][-1:]
    best = max(names, key=scores.__getitem__)
    kind = fitted.scored[best].model_class.short
    env_id, counted = _environment(fitted, kind)
    note = ""
    if counted < fitted.test.n_positions:
        note = (
            f" The best list of {fitted.test.n_positions} positions is not known exactly for "
            f"{kind}, so that regret counts the first {counted} (or give gym.make a reference "
            "list)."
        )
    say(console, f"{best} predicts the held-out sessions best.{note} To run agents on these users:")
    users = " ".join(shell_quote(str(file)) for file in files.values())
    settings = "--agents CascadeTS Fixed --horizon 1e5 --out results/users"
    _print_command(console, f"clickgym run {env_id} --instance {users} {settings}")
    console.print()


def _environment(fitted: Fitted, kind: str) -> tuple[str, int]:
    """The environment of a click model, and the positions that it counts: all, or those of which
    the best list is known exactly.
    """
    counted = min(exact_positions(it.model(kind)) for it in fitted.instances.values())
    env_id = f"{kind}Rank-v0"
    return env_id if counted == fitted.test.n_positions else f"{env_id}:cutoff={counted}", counted


def _print_command(console: Console, command: str) -> None:
    """Print a command without folding it, so that it can be pasted."""
    console.print(Text(visible(command)), soft_wrap=True)


def _scores(fitted: Fitted, scores: Mapping[str, float]) -> tuple[list[Column], list[list[str]]]:
    """Of each model: the steps of EM, and the figures on the held-out sessions."""
    ranks = range(fitted.test.n_positions)
    heads = [Column("model"), Column("EM steps", rank=1, right=True)]
    heads += [Column(name, right=True) for name in ("log likelihood", "perplexity")]
    heads += [Column(f"at {k + 1}", rank=2 + k, right=True) for k in ranks]
    rows = []
    for name, estimator in fitted.scored.items():
        steps = str(getattr(estimator, "n_iter_", "closed form"))
        fits = estimator, fitted.estimators[name]
        if any(getattr(fit, "converged_", None) is False for fit in fits):
            steps += ", not converged"
        by_rank = estimator.perplexity_by_rank(fitted.test)
        figures = [f"{value:.5f}" for value in (scores[name], np.nanmean(by_rank))]
        rows.append([name, steps, *figures, *(f"{value:.4f}" for value in by_rank)])
    return heads, rows


def _parameter_lines(fitted: Fitted) -> Iterator[str]:
    """The parameters of a few queries with their intervals, and what is not identified."""
    marked: set[str] = set()
    for query, instance in [*fitted.instances.items()][:MOST_QUERIES]:
        facts = instance.estimation
        for kind, of_kind in facts.get("standard_errors", {}).items():
            refits = facts["refits"]
            yield f"{kind}, {query}: estimates ± half of their 0.95 intervals, from {refits} refits"
            half = float(stdtrit(refits - 1, 0.975))
            for title, entries in _parameters(instance.model(kind), instance.labels, of_kind):
                cells = [
                    f"{label}{value:.3f}{'*' if error is None else f' ± {half * error:.3f}'}"
                    for label, value, error in entries
                ]
                yield f"{title}: {', '.join(cells)}"
                marked.add(kind)
                of_items = title in instance.model(kind).item_parameters()
                if of_items and any(cell[-1] == "*" for cell in cells):
                    marked.add("prior")
    for kinds, text in NOT_IDENTIFIED.items():
        if marked & set(kinds.split()):
            yield f"* {text}"


def _about_examination(fitted: Fitted) -> Iterator[str]:
    """A caution if users seem to look at low positions as often as at the top, or more often."""
    for name, estimator in fitted.estimators.items():
        if name not in ("PBM", "UBM"):
            continue
        values = np.asarray(estimator.examination_)  # type: ignore[attr-defined]
        values = values if values.ndim == 1 else values[:, 0]  # without a click above
        third = len(values) // 3
        if third and (first := values[:third].mean()) * FALLS <= (last := values[-third:].mean()):
            what = "rises with the position" if last > RISES * first else "is nearly flat"
            yield (
                f"Caution: examination {what} ({name}: {first:.2f} in the upper third of the list, "
                f"{last:.2f} in the lower). A log should have a row for each item that was sent, "
                "also below where users stopped (docs/from_your_export.md)."
            )


def _parameters(
    model: ClickModel, items: Sequence[str], errors_of: Mapping[str, Any]
) -> Iterator[tuple[str, list[tuple[str, float, float | None]]]]:
    """The parameters of a click model: a title, and label, estimate and standard error of each."""
    for name, of_name in errors_of.items():
        values = np.asarray(getattr(model.parameters, name))
        if values.ndim == 2:  # of the UBM: a column for each position of the last click above
            for j, column in enumerate(zip(*of_name, strict=True)):
                title = f"{name} after {f'a click at {j}' if j else 'no click'}"
                rows = range(j, len(values))
                yield title, [(f"{k + 1} ", values[k, j], column[k]) for k in rows]
            continue
        labels = items if name in model.item_parameters() else range(1, values.size + 1)
        named = [f"{label} " for label in labels] if values.ndim else [""]
        yield name, [*zip(named, np.ravel(values), np.ravel(of_name), strict=True)]


def _cautions(fitted: Fitted, n_items: int | None) -> Iterator[str]:
    """What the instances lack, and what makes estimates worse than their intervals say."""
    for query, (left_out, sessions) in fitted.left_out.items():
        if left_out:
            instance = fitted.instances[query]
            why = "fewer than 1 % of the sessions show each" if n_items is None else "--items"
            yield (
                f"{query}: {left_out:,} items are left out ({why}). {sessions:,} of "
                f"{instance.estimation['sessions']:,} sessions show one of them; "
                f"--items {instance.n_items + left_out} keeps all."
            )
    yield from islice(_about_examination(fitted), 1)
    for query, (lists, share) in fitted.variety.items():
        if share > CONFOUNDED:
            yield (
                f"Caution: {query}: in {share:.1%} of the displays an item is where it mostly is "
                f"({lists:,} distinct lists). Clicks hardly tell attraction from position, and "
                "estimates can miss by more than their intervals."
            )
    rare, pairs = fitted.rare
    if rare > SPARSE * pairs:
        yield (
            f"Caution: {rare:,} of {pairs:,} pairs of query and item are in fewer than "
            f"{FEW_SESSIONS} sessions. For these the prior counts more than the log. What DCM, DBN "
            "and CCM estimate for all users can miss by more than its interval."
        )
    several = float((fitted.test.clicks.sum(axis=1) > 1).mean())
    if {"SDBN", "DBN"} <= fitted.scored.keys():
        yield "SDBN and DBN estimate the same click model. The instance has the better one as DBN."
    if "CM" in fitted.scored and several:
        yield (
            f"CM excludes the {several:.1%} of sessions with several clicks. Their likelihood is 0."
        )
