"""What a sweep is of: its setting, and the cells of its table with their runs and their seeds."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from importlib.metadata import version
from itertools import product
from typing import Any, NamedTuple, Self

import numpy as np

from ..core.checks import short
from ..core.files import FORMAT, check_format
from .identity import UNKNOWN

LABELLED = ("envs", "instances", "agents")
"""What has labels: attributes of `Config`, in the order of `Cell`."""


class Trial(NamedTuple):
    """One run of one agent in one environment."""

    env: str
    instance: str
    agent: str
    run: int


class Cell(NamedTuple):
    """All runs of an agent in an environment.

    Attributes:
        env, instance, agent: labels.
        key: a hash of all that the runs depend on beside their number.
        runs: how many.
    """

    env: str
    instance: str
    agent: str
    key: str
    runs: int


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The settings that all runs of a table share.

    Attributes:
        clickgym: the version of the package.
        versions: of the packages that it computes with.
        horizon: T, sessions per run.
        seed: of the sweep.
        checkpoints: the steps at which results are kept.
        metrics: their names.
    """

    clickgym: str
    versions: dict[str, str]
    horizon: int
    seed: int
    checkpoints: list[int]
    metrics: list[str]

    def key(self, instance: str, *identities: str) -> str:
        """The `Cell.key` of an instance's name, and the identities of what plays there."""
        content = [vars(self), instance, *identities]
        hashed = sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]
        is_unknown = any(identity.startswith(UNKNOWN) for identity in identities)
        return UNKNOWN + hashed[len(UNKNOWN) :] if is_unknown else hashed


@dataclass(frozen=True, kw_only=True)
class Config:
    """What a sweep, or the table of a folder, is of.

    Attributes:
        setting: of all runs.
        envs, instances, agents: the spec of each label; None if it has none.
        identities: hashes of what the labels stand for.
        cells: of the table.
        queries: of each instance with several queries their number; a run plays one of them.
    """

    setting: Setting
    envs: dict[str, str | None]
    instances: dict[str, str | None]
    agents: dict[str, str | None]
    identities: dict[str, dict[str, str]]
    cells: list[Cell]
    queries: dict[str, int]

    @classmethod
    def from_json(cls, where: object, content: Mapping[str, Any]) -> Self:
        """The configuration in a JSON object, as `to_json` writes it.

        Args:
            where: it is from, for messages.
            content: the object.

        Raises:
            ValueError: it is of another version's format, or something is missing.
        """
        check_format(where, content.get("format"))
        try:
            setting = Setting(**{one.name: content[one.name] for one in fields(Setting)})
            own = {one.name: content[one.name] for one in fields(cls) if one.name != "setting"}
            own["cells"] = [Cell(*cell) for cell in content["cells"]]
            return cls(setting=setting, **own)
        except (TypeError, KeyError) as error:
            raise ValueError(f"{where} is not the configuration of a sweep ({error})") from None

    def to_json(self) -> dict[str, Any]:
        """This configuration as a JSON object, with the format and the `command`."""
        content = asdict(self)
        setting = content.pop("setting")
        return {"format": FORMAT, **setting, **content, "runs": self.runs, "command": self.command}

    def meaning(self, cell: Cell) -> list[str]:
        """What the labels of a cell stand for."""
        labels = dict(zip(LABELLED, cell[:3], strict=True))
        return [self.identities[things][label] for things, label in labels.items()]

    def only(self, cells: Iterable[Cell]) -> Self:
        """The configuration of some cells, with their labels alone."""
        cells = list(cells)
        labels: dict[str, Any] = {}
        identities: dict[str, dict[str, str]] = {}
        for column, things in enumerate(LABELLED):
            used = {cell[column] for cell in cells}
            labels[things] = {
                key: spec for key, spec in getattr(self, things).items() if key in used
            }
            known = self.identities[things]
            identities[things] = {key: known[key] for key in labels[things]}
        return replace(self, cells=cells, identities=identities, **labels)

    @property
    def runs(self) -> int:
        """The most runs of a cell."""
        return max(cell.runs for cell in self.cells)

    @property
    def command(self) -> str:
        """The command line that plays all of it; objects without an importable name are written by
        their label.
        """
        envs, agents = (
            [label if spec in (None, label) else f"{label}={spec}" for label, spec in specs.items()]
            for specs in (self.envs, self.agents)
        )
        options = {
            "--agents": agents,
            "--instance": [spec for spec in self.instances.values() if spec is not None],
            "--horizon": [str(self.setting.horizon)],
            "--runs": [str(self.runs)],
            "--seed": [str(self.setting.seed)],
            "--metrics": self.setting.metrics,
        }
        words = [word for option, values in options.items() if values for word in (option, *values)]
        return shlex.join(["clickgym", "run", *envs, *words])

    @property
    def origin(self) -> str:
        """Version and command, for the metadata of figures."""
        return f"clickgym {self.setting.clickgym}: {self.command}"

    @cached_property
    def trials(self) -> dict[Trial, str]:
        """All runs in the order of the table, each with its key."""
        cells = {cell[:3]: cell for cell in self.cells}
        labels = product(self.envs, self.instances, self.agents)
        in_order = (cells[names] for names in labels if names in cells)
        return {
            Trial(*cell[:3], run): f"{cell.key}-{run}"
            for cell in in_order
            for run in range(cell.runs)
        }

    def changes(self, new: Config) -> list[str]:
        """The differences in the setting of a further sweep, in words."""
        before, now = vars(self.setting), vars(new.setting)
        changed = [key for key in before if now[key] != before[key]]
        if "horizon" in changed:  # checkpoints follow from it, or were chosen with it
            changed = [key for key in changed if key != "checkpoints"]
        return [f"{key}: {short(before[key])} before, {short(now[key])} now" for key in changed]


def check_instances(configs: Iterable[Config]) -> None:
    """Check that no environment has the same users under two names, which would count as two.

    Args:
        configs: of results that stand in one table.

    Raises:
        ValueError: it has.
    """
    names = dict[tuple[str, str], str]()
    for config in configs:
        for env, name, *_ in config.cells:
            known = names.setdefault((env, config.identities["instances"][name]), name)
            if known != name:
                raise ValueError(
                    f"{known} and {name} are the same users; leave out one of the two, because a "
                    "table would count both"
                )


def shown_of(configs: Sequence[Config]) -> Config:
    """What the table of a folder shows after some sweeps: the last one, with what the others of the
    same setting had beside it. A label that was renamed goes. So does what a label stood for before
    it got another meaning: in a table it stands for one thing.

    Args:
        configs: of the sweeps, the last one at the end.

    Raises:
        ValueError: as `check_instances`.
    """
    same = [config for config in configs if config.setting == configs[-1].setting]
    queries: dict[str, int] = {}
    specs: dict[str, Any] = {things: {} for things in LABELLED}
    meanings: dict[str, dict[str, str]] = {things: {} for things in LABELLED}
    for config in same:  # what later sweeps say of a label counts
        queries |= config.queries
        for things in LABELLED:
            specs[things] |= getattr(config, things)
            meanings[things] |= config.identities[things]
    every = replace(same[-1], queries=queries, identities=meanings, **specs)
    cells: dict[tuple[str, ...], Cell] = {}
    for config in reversed(same):
        newer = {cell.key for cell in cells.values()}
        for cell in config.cells:
            labels = cell[:3]
            has_changed = config.meaning(cell) != every.meaning(cell)
            is_renamed = labels not in cells and cell.key in newer
            if not has_changed and not is_renamed:
                there = cells.get(labels, cell)
                cells[labels] = there if there.runs > cell.runs else cell
    shown = every.only(cells.values())
    check_instances([shown])
    return shown


@lru_cache(maxsize=2**16)
def run_seed(seed: int, instance: str, run: int, n_queries: int = 1) -> int:
    """The seed of a run of a sweep, which its users and its agent get.

    All agents have the same seed, so that they meet the same users. The instance is in the key, so
    that instances are independent; the environment is not. Where a run plays one of several
    queries, run r plays query r modulo their number, because the seed names the query.

    Args:
        seed: of the sweep.
        instance: its name in the results.
        run: its number, from 0.
        n_queries: Q, of the instance.

    Returns:
        An integer, with which `clickgym.run` repeats the run.

    Example:
        >>> import clickgym
        >>> rows = clickgym.sweep(["PBMRank-v0"], ["TopRank"], 100, 2, seed=7).rows
        >>> int(rows["seed"][-1]) == run_seed(7, "yandex-9982", 1)
        True
        >>> alone = clickgym.run("TopRank", "PBMRank-v0", 100, seed=run_seed(7, "yandex-9982", 1))
        >>> bool(rows["regret"][-1] == alone.regret[-1])
        True
    """
    key = (run, *instance.encode())
    drawn = int(np.random.SeedSequence(seed, spawn_key=key).generate_state(1)[0])
    return drawn - drawn % n_queries + run % n_queries


def versions() -> dict[str, str]:
    """The versions of the packages that digits depend on, beside clickgym."""
    return {name: version(name) for name in ("numpy", "numba")}
