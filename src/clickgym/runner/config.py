"""What a sweep is of: the setting of all runs, and the cells of its table."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple, Self

import numpy as np

from ..core.compiling import numba
from ..core.files import FORMAT, check_format
from .identity import UNKNOWN

SETTING = ("horizon", "checkpoints", "metrics", "clickgym", "versions")
"""The attributes of `Config` that the runs of one table have in common."""
LABELLED = ("envs", "instances", "agents")
"""Those that hold labels, in the order of `Cell`."""


class Cell(NamedTuple):
    """All runs of an agent in an environment with an instance, of one seed of a sweep.

    Attributes:
        env, instance, agent: labels.
        identities: hashes of what these stand for.
        runs: how many.
        n_queries: of the instance; a run plays one of them.
        seed: of the sweep.
    """

    env: str
    instance: str
    agent: str
    identities: list[str]
    runs: int
    n_queries: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class Config:
    """What a sweep, or the table of a folder, is of.

    Attributes:
        clickgym: the version of the package.
        versions: of the packages that it computes with.
        horizon: T, sessions per run.
        checkpoints: the steps at which results are kept.
        metrics: their names.
        envs, instances, agents: the spec of each label; None if it has none.
        cells: of the table, in its order.
    """

    clickgym: str
    versions: dict[str, str]
    horizon: int
    checkpoints: list[int]
    metrics: list[str]
    envs: dict[str, str | None]
    instances: dict[str, str | None]
    agents: dict[str, str | None]
    cells: list[Cell]

    @classmethod
    def from_json(cls, where: object, content: Mapping[str, Any]) -> Self:
        """The configuration in a JSON object, as `to_json` writes it; ``where`` is it from?

        Raises:
            ValueError: it is of another version's format, or something is missing.
        """
        check_format(where, content.get("format"))
        try:
            own = {one.name: content[one.name] for one in fields(cls)}
            return cls(**own | {"cells": [Cell(*cell) for cell in content["cells"]]})
        except (TypeError, KeyError) as error:
            raise ValueError(f"{where} is not the configuration of a sweep ({error})") from None

    def to_json(self) -> dict[str, Any]:
        """This configuration as a JSON object, with the format and the `command`."""
        return {"format": FORMAT, **asdict(self), "seeds": self.seeds, "command": self.command}

    @property
    def setting(self) -> dict[str, Any]:
        """What the runs of one table have in common."""
        return {name: getattr(self, name) for name in SETTING}

    def trials(self) -> Iterator[tuple[Cell, int, str]]:
        """All runs in the order of the table: the cell, the number of the run, and the key by which
        a folder knows it, a hash of all that it depends on.
        """
        setting = self.setting
        for cell in self.cells:
            about = setting, cell.seed, cell.instance, cell.identities
            content = json.dumps(about, sort_keys=True)
            key = sha256(content.encode()).hexdigest()[:32]
            for run in range(cell.runs):
                yield cell, run, f"{key}-{run}"

    def only(self, cells: Iterable[Cell]) -> Self:
        """The configuration of some cells, with their labels alone."""
        cells = list(cells)
        labels: dict[str, Any] = {}
        for column, things in enumerate(LABELLED):
            specs, used = getattr(self, things), {cell[column] for cell in cells}
            labels[things] = {label: spec for label, spec in specs.items() if label in used}
        return replace(self, cells=cells, **labels)

    @property
    def seeds(self) -> list[int]:
        """The seeds of its sweeps."""
        return sorted({cell.seed for cell in self.cells})

    @property
    def command(self) -> str:
        """The command lines that play all of it, one for each seed; objects without an importable
        name are written by their label.
        """
        envs, agents = (
            [label if spec in (None, label) else f"{label}={spec}" for label, spec in specs.items()]
            for specs in (self.envs, self.agents)
        )
        options = {
            "--agents": agents,
            "--instance": [spec for spec in self.instances.values() if spec is not None],
            "--horizon": [str(self.horizon)],
            "--metrics": self.metrics,
        }
        words = [word for option, values in options.items() if values for word in (option, *values)]
        command = shlex.join(["clickgym", "run", *envs, *words])
        runs = {
            seed: max(cell.runs for cell in self.cells if cell.seed == seed) for seed in self.seeds
        }
        return " && ".join(f"{command} --runs {n} --seed {seed}" for seed, n in runs.items())

    @property
    def origin(self) -> str:
        """Version and command, for the metadata of figures."""
        return f"clickgym {self.clickgym}: {self.command}"


def check_cells(cells: Collection[Cell]) -> None:
    """Check that no environment has the same users under two names, which would count as two, and
    that no label stands for two things.

    Raises:
        ValueError: one has, or does.
    """
    names, meanings = dict[tuple[str, str], str](), dict[Any, str]()
    for cell in cells:
        for label, identity in zip(enumerate(cell[:3]), cell.identities, strict=True):
            meaning = meanings.setdefault(label, identity)
            if meaning != identity and not identity.startswith(UNKNOWN):
                raise ValueError(
                    f"{label[1]} is not the same in two sweeps, and one table cannot show both; "
                    "repeat one of them with another name for it"
                )
        known = names.setdefault((cell.env, cell.identities[1]), cell.instance)
        if known != cell.instance:
            raise ValueError(
                f"{known} and {cell.instance} are the same users; leave out one of the two, "
                "because a table would count both"
            )


def begun(configs: Iterable[Config], finished: Container[str]) -> list[Config]:
    """Those of some sweeps that have a finished run, by its key."""
    return [one for one in configs if any(key in finished for *_, key in one.trials())]


def shown_of(configs: Sequence[Config]) -> Config:
    """What the table of a folder shows after some sweeps: the last one, and what the others of the
    same setting have beside it, also with other seeds. In a table a label stands for one thing, as
    the last sweep with it says; and of a thing that was renamed the last label counts.

    Args:
        configs: of the sweeps, the last one at the end.

    Raises:
        ValueError: as `check_cells`.
    """
    same = [config for config in configs if config.setting == configs[-1].setting]
    labels: dict[str, Any] = {things: {} for things in LABELLED}
    meanings = dict[tuple[int, str], str]()
    for config in same:
        for column, things in enumerate(LABELLED):
            labels[things] |= getattr(config, things)
            for cell in config.cells:
                meanings[column, str(cell[column])] = cell.identities[column]
    cells: dict[Any, Cell] = {}
    for config in reversed(same):
        newer = [(cell.seed, cell.instance, cell.identities) for cell in cells.values()]
        for cell in config.cells:
            place = *cell[:3], cell.seed
            is_current = cell.identities == [meanings[one] for one in enumerate(cell[:3])]
            is_new = (cell.seed, cell.instance, cell.identities) not in newer
            is_renamed = place not in cells and not is_new
            if is_current and not is_renamed:
                cells[place] = max(cells.get(place, cell), cell, key=lambda one: one.runs)
    check_cells(cells.values())
    order = [list(labels[things]) for things in LABELLED]
    in_order = sorted(
        cells.values(), key=lambda cell: [*map(list.index, order, cell[:3]), cell.seed]
    )
    return replace(same[-1], **labels).only(in_order)


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
    return {"numpy": np.__version__, "numba": numba.__version__ if numba else "not installed"}
