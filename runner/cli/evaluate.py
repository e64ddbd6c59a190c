"""What ``clickgym evaluate`` does: policies as words, and estimates as a table."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from ...envs import CLICK_MODELS, load_instance
from ...envs.checks import unknown
from ...offline import (
    ClickLog,
    Evaluation,
    FixedPolicy,
    ItemPositionLog,
    ItemPositionPolicy,
    PlackettLucePolicy,
    Policy,
    UniformPolicy,
    empirical_policies,
    read_log,
    read_open_bandit,
)
from ...offline.evaluation import Policies
from ...offline.policies import sessions_by_query
from ...offline.readers import LOG_FORMATS

__all__ = ["print_evaluations", "read_policy", "read_sessions"]

FORMATS = ("auto", *LOG_FORMATS, "obd")


def read_sessions(path: Path, log_format: str, query: str | None = None) -> ClickLog | ItemPositionLog:
    """Read a log.

    Args:
        path: its file.
        log_format: ``"obd"`` for the Open Bandit Dataset, else as for `read_log`.
        query: keep only the sessions of the query with this label; None keeps all.

    Raises:
        ValueError: on an unknown format or query, or as the reader.
    """
    if log_format not in FORMATS:
        raise ValueError(unknown("log format", log_format, FORMATS))
    if log_format == "obd":
        if query is not None:
            raise ValueError("a log of the Open Bandit Dataset has no queries to choose from")
        return read_open_bandit(path)
    log = read_log(path, log_format)
    if query is None:
        return log
    if query not in log.query_labels:
        raise ValueError(unknown("query", query, log.query_labels))
    return log[log.queries == log.query_labels.index(query)]


def read_policy(spec: str, log: ClickLog | ItemPositionLog, reward: str = "clicks", cutoff: int | None = None) -> Policies:
    """The policy, or one for each query, that a word of the command line stands for.

    Args:
        spec: ``uniform`` (every list of a query's logged items alike), ``empirical`` (as often as logged),
            ``fixed:<item>,<item>,...`` (the items by label), an ``.npz`` file with ``action_dist`` (items × positions) or
            ``scores`` (items; a Plackett-Luce policy), and optionally the labels in ``items`` (by default 0, 1, ...); or
            what ``clickgym fit`` wrote, a file or a folder of several, ``<path>:<model>``: the best list of each query under
            that click model (which need not be named where there is but one).
        log: the log whose items the policy ranks.
        reward, cutoff: for which a list of a click model is best.

    Raises:
        ValueError: if nothing is called so, or if the file or an item does not fit.
    """
    if spec == "uniform":
        if isinstance(log, ItemPositionLog):
            return UniformPolicy(log.n_items, log.n_positions)
        return {
            query: UniformPolicy(np.unique(log.items[sessions]), log.n_positions) for query, sessions in sessions_by_query(log)
        }
    if spec == "empirical" and isinstance(log, ClickLog):
        return empirical_policies(log)
    fixed = spec.startswith("fixed:")
    path, _, model = spec.rpartition(":") if ":" in spec and not Path(spec).exists() else (spec, "", "")
    if not fixed and (path.endswith(".json") or Path(path).is_dir()):
        return _best_lists(Path(path), model, log, reward, cutoff)
    if isinstance(log, ClickLog) and len(np.unique(log.queries)) > 1:
        raise ValueError(f"the policy {spec!r} ranks the items of one query, and the log has several; choose one with --query")
    if fixed:
        return FixedPolicy(_numbers(spec.removeprefix("fixed:").split(","), log))
    if not spec.endswith(".npz"):
        raise ValueError(
            f"unknown policy {spec!r}; expected uniform, empirical, fixed:<item>,..., an .npz file or what clickgym fit wrote"
        )
    try:
        arrays = np.load(spec, allow_pickle=False)
        if not isinstance(arrays, np.lib.npyio.NpzFile):
            raise ValueError("it is a single array; expected what np.savez writes")
        with arrays:
            held = {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"cannot read the policy {spec}: {error}") from None
    for name in ("action_dist", "scores"):
        if name in held:
            labels = held.get("items", np.arange(len(np.atleast_1d(held[name]))))
            try:
                items = _numbers([str(label) for label in labels.ravel().tolist()], log)
                if name == "scores":
                    return PlackettLucePolicy(held[name], log.n_positions, items)
                return ItemPositionPolicy(held[name], items)
            except ValueError as error:
                raise ValueError(f"{spec}: {error}") from None
    raise ValueError(f"{spec} holds neither 'action_dist' nor 'scores', but {', '.join(held) or 'nothing'}")


def _best_lists(path: Path, model: str, log: ClickLog | ItemPositionLog, reward: str, cutoff: int | None) -> dict[str, Policy]:
    """For each query of the instance file, or of those in the folder, the best list under a click model of the file."""
    policies: dict[str, Policy] = {}
    for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
        instance = load_instance(file)
        query, items = instance.estimation.get("query"), instance.estimation.get("items")
        if not isinstance(query, str) or not isinstance(items, list) or len(items) != instance.n_items:
            raise ValueError(f"{file} does not tell the query and the items' labels in a log; the files of clickgym fit do")
        if query in policies:
            raise ValueError(f"{file} is a second file of the query {query!r} in {path}; expected one for each query")
        kinds = [kind for kind in instance.models if kind in CLICK_MODELS]
        if not kinds:
            raise ValueError(f"{file} has no click model of {', '.join(CLICK_MODELS)}; it has {', '.join(instance.models)}")
        chosen = [kind for kind in kinds if model.upper() in ("", kind)]
        if len(chosen) != 1:
            raise ValueError(f"{file} has the click models {', '.join(kinds)}; choose one, as in {path}:{kinds[0]}")
        best = instance.model(chosen[0], log.n_positions).optimal_ranking(reward, cutoff)
        policies[query] = FixedPolicy(_numbers(items, log)[best])
    if isinstance(log, ClickLog):
        for query, _ in sessions_by_query(log):
            if query not in policies:
                raise ValueError(f"{path} has no list for the query {query!r} of the log; choose a query with --query")
    return policies


def _numbers(labels: Sequence[str], log: ClickLog | ItemPositionLog) -> NDArray[np.int64]:
    """How the log numbers the items with these labels."""
    if isinstance(log, ItemPositionLog):
        if not all(label.isdecimal() and len(label) <= 9 for label in labels):
            raise ValueError(f"the items of this log are numbers of up to 9 digits; got {', '.join(labels)}")
        return np.array([int(label) for label in labels])
    number = {label: index for index, label in enumerate(log.item_labels)}
    for label in labels:
        if label not in number:
            raise ValueError(unknown("item", label, number))
    return np.array([number[label] for label in labels])


REWARDS = {"clicks": "Clicks", "any_click": "Lists with a click", "satisfaction": "Satisfied users"}


def print_evaluations(
    results: Sequence[Evaluation],
    on_policy: float | None,
    level: float,
    what: str,
    console: Console,
    reward: str = "clicks",
    cutoff: int | None = None,
) -> None:
    """Show estimates as a table.

    Args:
        results: the estimates by different estimators from one log.
        on_policy: the reward per session in a log of the evaluated policy itself; None if there is none.
        level: confidence level of the intervals.
        what: ``"session"`` or ``"row"``.
        console: where to print.
        reward, cutoff: what was estimated.
    """
    earned = f"{REWARDS[reward]} per {what}" + (f", first {cutoff} positions" if cutoff else "")
    table = Table(box=None, pad_edge=False, title=f"{earned}, under the policy", title_justify="left")
    interval = f"{level:.4g} interval"
    for name in ("estimator", "estimate", interval, "self-normalised", interval, "effective size", "mean weight", "largest"):
        table.add_column(name, justify="left" if name == "estimator" else "right")
    for result in results:
        table.add_row(
            result.estimator,
            f"{result.value:.7g}",
            "{:.4g} to {:.4g}".format(*result.interval),
            f"{result.self_normalised:.7g}",
            "{:.4g} to {:.4g}".format(*result.self_normalised_interval),
            f"{result.effective_sample_size:.0f}",
            f"{result.mean_weight:.3f}",
            f"{result.max_weight:.4g}",
        )
    say = partial(console.print, highlight=False)
    say(table)
    if results[0].on_policy is None:
        say(f"The log ({results[0].n_sessions:,} {what}s) does not tell who was satisfied")
    else:
        say(f"{earned}, in the log: {results[0].on_policy:.7g} (of {results[0].n_sessions:,})")
    if on_policy is not None:
        say(f"{earned}, in the evaluated policy's own log: {on_policy:.7g}")
    for result in results:
        if abs(result.mean_weight - 1.0) > 0.1:
            say(
                f"Caution: the mean weight of {result.estimator} is {result.mean_weight:.3f}, where 1 is expected: the log is "
                f"too short for this policy, or lacks what it shows."
            )
